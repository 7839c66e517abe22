//! A ring of big flows among small ones: every rack sends much to the next one, or to the next two, and little to all
//! others (the demand by which the slides of Etalon's first version show that VOQs are a poor estimate: B, s, s, ...).
//!
//! A pair of racks at distance d uses host d - 1 of both, then the next one, so that flows are spread over the hosts of a
//! rack. Where a fabric has no racks, its hosts make the ring.

use super::super::error::Problem;
use super::super::flows::{MOST, Pair, Table};
use super::Made;
use super::patterns::{required, rounds};
use firstlight_units::Bytes;

/// The flows: of each round, of each distance, from each rack.
pub(super) fn expand(table: &Table<'_>) -> Result<Made, Box<Problem>> {
    required(table, "big", "\"10MB\"")?;
    let values = table.values;
    let (start, jitter) = table.start()?;
    let (rounds, asked) = rounds(table, start, jitter)?;
    let (units, hosts) = units(table);
    let rings = values.integer(&table.path("rings")) as usize;
    if units <= rings {
        let text =
            format!("{units} racks or hosts make no ring of distance {rings}: use fewer rings or a larger fabric");
        return Err(table.problem("rings", text));
    }
    let (big, small) = (values.size(&table.path("big")), values.size_opt(&table.path("small")));
    let size = |distance: usize| if distance <= rings { Some(big) } else { small };
    let sent: Vec<(usize, Bytes)> = (1..units).filter_map(|distance| Some((distance, size(distance)?))).collect();
    let parallel = values.integer(&table.path("per_pair")) as usize;
    let in_round = sent.len() * units * parallel;
    if rounds.len().saturating_mul(in_round) > MOST {
        let text = format!("{} rounds of {in_round} flows are too many: use at most {MOST} flows", rounds.len());
        return Err(table.problem(if asked.is_some() { "rounds" } else { "per_pair" }, text));
    }
    let (mut pairs, mut told): (Vec<Pair>, Vec<_>) = (vec![], vec![]);
    for (round, start) in rounds.iter().enumerate() {
        for (distance, size) in &sent {
            for turn in (0..parallel).map(|nth| distance - 1 + nth * (units - 1) + round) {
                let host = |unit: usize| unit % units * hosts + turn % hosts;
                pairs.extend((0..units).map(|from| (host(from), host(from + distance))));
                told.extend(std::iter::repeat_n((*start, *size), units));
            }
        }
    }
    let mut flows = table.between(&pairs)?;
    for (flow, (start, size)) in flows.iter_mut().zip(told) {
        (flow.start, flow.size, flow.jitter) = (start, Some(size), jitter);
    }
    Ok(Made { flows, asked: asked.map(|rounds| rounds * in_round), ..Made::default() })
}

/// How many racks there are, and hosts in each; where there are no racks each host counts as one.
pub(super) fn units(table: &Table<'_>) -> (usize, usize) {
    table.shape.racks().map_or((table.shape.hosts, 1), |racks| (racks, table.shape.per_rack()))
}
