//! Steady traffic that adds up to a demand matrix from a file.
//!
//! An entry is a multiple of `rate`. Its pair gets flows of one size at constant spacing, so that they come to that rate of
//! payload; the first one starts at a random part of the spacing, so that pairs do not start together. Entries are of
//! racks, whose hosts take turns, or, where a fabric has no racks, of hosts.

use super::super::error::Problem;
use super::super::flows::{MOST, Pair, Table};
use super::Made;
use super::patterns::required;
use super::ring::units;
use firstlight_formats::matrix;
use firstlight_sim::uniform;
use firstlight_units::Span;

/// Moments are kept in parts of a picosecond, so that they do not drift.
const FRACTION: u32 = 32;

/// The flows, pair by pair.
pub(super) fn expand(table: &Table<'_>) -> Result<Made, Box<Problem>> {
    for (key, example) in [("file", "\"demand.csv\""), ("rate", "\"1Gbps\""), ("size", "\"1MB\"")] {
        required(table, key, example)?;
    }
    let values = table.values;
    let (start, _) = table.start()?;
    let (units, hosts) = units(table);
    let (path, text) = table.file("file")?;
    let entries = matrix::read(&text, &path, units).map_err(|error| table.imported("file", error))?;
    let (size, rate) = (values.size(&table.path("size")), values.rate(&table.path("rate")));
    let mut random = table.random("phases");
    let (mut pairs, mut starts): (Vec<Pair>, Vec<Span>) = (vec![], vec![]);
    for (from, row) in entries.iter().enumerate() {
        for (to, &entry) in row.iter().enumerate().filter(|(_, entry)| **entry > 0.0) {
            let gap = size.get() as f64 * 8e12 / (rate.as_bps() as f64 * entry);
            let gap = (gap.min(2f64.powi(63)) * 2f64.powi(FRACTION as i32)) as u128;
            let phase = (gap * u128::from(uniform(&mut random, 1 << 32))) >> 32;
            let moments = (0u128..).map(|nth| (phase + gap * nth) >> FRACTION);
            let moments = moments.map_while(|at| u64::try_from(at).ok()?.checked_add(start.as_ps()).map(Span::from_ps));
            for (turn, at) in moments.take_while(|at| *at < table.duration()).enumerate() {
                pairs.push((from * hosts + (to + turn) % hosts, to * hosts + (from + turn) % hosts));
                starts.push(at);
                if pairs.len() > MOST {
                    let text = format!("more than {MOST} flows would start: use larger ones, or a lower rate");
                    return Err(table.problem("size", text));
                }
            }
        }
    }
    let mut flows = table.between(&pairs)?;
    for (flow, start) in flows.iter_mut().zip(starts) {
        (flow.start, flow.size) = (start, Some(size));
    }
    Ok(Made { flows, ..Made::default() })
}
