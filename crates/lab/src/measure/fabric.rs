//! Tables `ports`, `pairs` and `week`: the network's own counts since the start of the run, warm-up included, and the
//! schedule it followed.

use super::numbers;
use crate::run::Counters;
use crate::table::{Column, Table};
use firstlight_circuits::{Matching, Week};

/// One row for each port, link and queue.
pub(super) fn ports(counters: &Counters) -> Table {
    let rows = &counters.ports;
    Table::new("ports")
        .text("name", rows, |p| p.name.clone())
        .text("kind", rows, |p| p.kind.name().into())
        .count("offered", rows, |p| p.offered)
        .count("delivered", rows, |p| p.delivered)
        .count("dropped", rows, |p| p.dropped)
        .count("held", rows, |p| p.held)
        .count("marked", rows, |p| p.marked)
        .count("peak_queue", rows, |p| p.peak_queue)
        .count("packet_hops", rows, |p| p.hops)
}

/// One row for each pair of racks.
pub(super) fn pairs(counters: &Counters) -> Table {
    let rows = &counters.pairs;
    Table::new("pairs")
        .count("src", rows, |p| u64::from(p.src.0))
        .count("dst", rows, |p| u64::from(p.dst.0))
        .count("offered", rows, |p| p.offered)
        .count("dropped_full", rows, |p| p.dropped_full)
        .count("dropped_shrink", rows, |p| p.dropped_shrink)
        .count("marked", rows, |p| p.marked)
        .count("circuit_packets", rows, |p| p.circuit_packets)
        .count("packet_packets", rows, |p| p.packet_packets)
        .count("overtakings", rows, |p| p.overtakings)
        .count("peak", rows, |p| p.peak)
        .count("held", rows, |p| p.held)
}

/// One row for each day of the week, its night before it.
pub(super) fn week(week: &Week) -> Table {
    let days = week.days();
    let times: Vec<_> = week.day_times().collect();
    Table::new("week")
        .with("index", Column::Integer((0..days.len() as i64).collect()))
        .with("night_us", numbers(days.iter().map(|day| day.night.as_us_f64())))
        .with("start_us", numbers(times.iter().map(|(begins, _)| begins.as_us_f64())))
        .with("end_us", numbers(times.iter().map(|(_, ends)| ends.as_us_f64())))
        .text("matching", days, |day| matching_text(&day.matching))
}

/// `0->1 1->2 2->0`; `idle` when nobody sends.
pub(crate) fn matching_text(matching: &Matching) -> String {
    let pairs: Vec<String> = matching.pairs().map(|(src, dst)| format!("{src}->{dst}")).collect();
    if pairs.is_empty() { "idle".into() } else { pairs.join(" ") }
}
