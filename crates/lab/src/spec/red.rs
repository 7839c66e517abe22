//! RED (Floyd and Jacobson, 1993), of switches' queues and of VOQs: its keys, and what they say.

use super::error::SpecError;
use super::fabric_keys::SHARE;
use super::keys::{Key, Kind};
use super::registry::key;
use super::values::Values;
use firstlight_net::{Band, Drops, Length, RedConfig};

/// The keys of one table: `min`, `max`, `probability`, `weight`, `gentle` and `drop_beyond`.
pub(super) fn keys(paths: [&'static str; 6]) -> [Key; 6] {
    let red = RedConfig::new(Band::Packets { min: 0, max: 0 });
    let [min, max, probability, weight, gentle, beyond] = paths;
    let length = Kind::Length { least: 1 };
    [
        key(min, length, "RED: no marks while the average queue is below this").or_none("no RED"),
        key(max, length, "RED: where the average queue reaches this, the probability is the full one")
            .or_none("no RED"),
        key(probability, SHARE, "RED: probability of a mark (or drop, without ECN) where the average reaches `max`")
            .or(format!("{:?}", red.max_probability)),
        key(weight, SHARE, "RED: weight of the present queue in the average; 1 for the present queue alone")
            .or(format!("{:?}", red.weight)),
        key(gentle, Kind::Flag, "RED: beyond `max` the probability rises to 1 at twice that").or(red.gentle),
        key(
            beyond,
            Kind::Flag,
            "RED: beyond the upper threshold ECN-capable packets are dropped as well. In a lossless class (`[pfc]`) RED only \
             marks, and passes what cannot be marked, unless `true` is written",
        )
        .or(red.drops == Drops::Beyond),
    ]
}

/// What the keys of one table say.
pub(super) fn read(values: &Values, table: &str) -> Result<RedConfig, SpecError> {
    let path = |key: &str| format!("{table}.{key}");
    let band = match (values.length_opt(&path("min")), values.length_opt(&path("max"))) {
        (Some(Length::Packets(min)), Some(Length::Packets(max))) => Band::Packets { min, max },
        (Some(Length::Bytes(min)), Some(Length::Bytes(max))) => Band::Bytes { min, max },
        _ => {
            let text =
                "RED needs min and max, both in packets or both in data: write for example min = 20 and max = 60";
            return Err(values.problem(table, text).into());
        }
    };
    let red = RedConfig {
        max_probability: values.number(&path("probability")),
        weight: values.number(&path("weight")),
        typical_packet: values.size("hosts.mtu"),
        gentle: values.flag(&path("gentle")),
        drops: if values.flag(&path("drop_beyond")) { Drops::Beyond } else { Drops::Unmarkable },
        ..RedConfig::new(band)
    };
    red.check().map_err(|error| {
        let key = error.parameter.trim_start_matches("red.");
        let key = if key == "max_probability" { "probability" } else { key };
        values.problem(&path(key), error.problem)
    })?;
    Ok(red)
}

/// Whether the table says that beyond the upper threshold packets are dropped.
pub(super) fn is_told_to_drop(values: &Values, table: &str) -> bool {
    let path = format!("{table}.drop_beyond");
    values.has(&path) && values.flag(&path)
}
