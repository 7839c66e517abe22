//! Tables `ports`, `pairs`, `week` and `circuits`: counts of the network since the start of the run, warm-up included,
//! and its schedule.

use super::numbers;
use crate::diagnose::marking;
use crate::run::Counters;
use crate::table::{Column, Table};
use firstlight_circuits::{Matching, Week};
use firstlight_spec::Spec;

/// One row for each port, link and queue.
pub(super) fn ports(spec: &Spec, counters: &Counters) -> Table {
    let rows = &counters.ports;
    let marking = marking(spec, rows);
    let marking = Column::Text(marking.into_iter().map(Into::into).collect());
    Table::new("ports", "one row for each port, link and queue, since the start of the run")
        .text(
            "name",
            "host3.nic, host3.pacer, host3.limiter, host3.adapter, host3.port, tor0->agg1, voq.0.1, uplink.0, \
             downlink.1 or circuit.0",
            rows,
            |p| p.name.clone(),
        )
        .text(
            "kind",
            "nic, pacer, limiter, adapter, host_port, switch_port, voq, uplink, downlink or circuit",
            rows,
            |p| p.kind.name().into(),
        )
        .count("offered", "packets that arrived", rows, |p| p.offered)
        .count("delivered", "packets that left at the far end", rows, |p| p.delivered)
        .count("dropped", "packets lost here", rows, |p| p.dropped)
        .count("held", "packets inside at the end: waiting, in service or in flight", rows, |p| p.held)
        .count("marked", "packets CE-marked here", rows, |p| p.marked)
        .with(
            "marking",
            "marked; or why not: off (no queue here marks), no traffic, not capable (no flow negotiates ECN), not \
             reached",
            marking,
        )
        .count("peak_queue", "most packets that ever waited", rows, |p| p.peak_queue)
        .number(
            "peak_bytes",
            "of interfaces with adapter.send_buffer: most bytes that one ever held, its pacer and limiter included; \
             else NaN",
            rows,
            |p| p.peak_bytes.map_or(f64::NAN, |bytes| bytes as f64),
        )
        .count("packet_hops", "transmissions begun", rows, |p| p.hops)
}

/// One row for each pair of racks.
pub(super) fn pairs(counters: &Counters) -> Table {
    let rows = &counters.pairs;
    Table::new("pairs", "one row for each pair of racks, since the start of the run")
        .count("src", "source rack", rows, |p| u64::from(p.src.0))
        .count("dst", "destination rack", rows, |p| u64::from(p.dst.0))
        .count("offered", "packets that arrived at the VOQ", rows, |p| p.offered)
        .count("dropped_full", "dropped because the VOQ was full, or by RED", rows, |p| p.dropped_full)
        .count("dropped_shrink", "dropped from the tail when the VOQ became small", rows, |p| p.dropped_shrink)
        .count("marked", "CE-marked at the VOQ", rows, |p| p.marked)
        .count("circuit_packets", "packets sent over the circuit", rows, |p| p.circuit_packets)
        .count("packet_packets", "packets sent over the packet network", rows, |p| p.packet_packets)
        .count("circuit_bytes", "bytes sent over the circuit, headers included", rows, |p| p.circuit_bytes)
        .count("packet_bytes", "bytes sent over the packet network, headers included", rows, |p| p.packet_bytes)
        .count(
            "overtakings",
            "packets that arrived over the packet network before an earlier one of the circuit",
            rows,
            |p| p.overtakings,
        )
        .count("peak", "most packets that ever waited in the VOQ", rows, |p| p.peak)
        .count("held", "packets in the VOQ at the end", rows, |p| p.held)
}

/// One row for each day of the week, its night before it.
pub(super) fn week(week: &Week) -> Table {
    let days = week.days();
    let times: Vec<_> = week.day_times().collect();
    Table::new("week", "one row for each day of the schedule")
        .with("index", "the day, from 0", Column::Integer((0..days.len() as i64).collect()))
        .with("night_us", "how long the night before it lasts", numbers(days.iter().map(|day| day.night.as_us_f64())))
        .with(
            "start_us",
            "when the day begins, from the week's start",
            numbers(times.iter().map(|(begins, _)| begins.as_us_f64())),
        )
        .with("end_us", "when it ends", numbers(times.iter().map(|(_, ends)| ends.as_us_f64())))
        .text("matching", "who has a circuit to whom: 0->1 1->0", days, |day| matching_text(&day.matching))
}

/// One row for each circuit of each day that a control loop made.
pub(super) fn circuits(counters: &Counters) -> Table {
    let rows = &counters.circuits;
    Table::new("circuits", "one row for each circuit of each day, in the order in which they went down")
        .count("week", "the week, from 0", rows, |c| c.week)
        .count("day", "the day, from 0 in its week", rows, |c| c.day as u64)
        .number("start_us", "when it came up, from the start of the run", rows, |c| c.begins.as_us_f64())
        .number("end_us", "when it went down", rows, |c| c.ends.as_us_f64())
        .count("src", "source rack", rows, |c| u64::from(c.src.0))
        .count("dst", "destination rack", rows, |c| u64::from(c.dst.0))
        .count(
            "demand_bytes",
            "estimated demand of the pair for this week; the largest number for flows that never end",
            rows,
            |c| c.demand,
        )
        .count("carried_bytes", "bytes sent over it, headers included", rows, |c| c.carried)
}

/// A matching as text: `0->1 1->2 2->0`, or `idle` without circuits.
pub(crate) fn matching_text(matching: &Matching) -> String {
    matching.to_string().replace('>', "->")
}
