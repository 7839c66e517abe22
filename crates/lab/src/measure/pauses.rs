//! Tables `pauses`, `pause_causes` and `pause_events`: pauses on a lossless fabric since the start of the run.

use crate::diagnose::pausing;
use crate::table::{Column, Table};
use firstlight_sim::{PauseReport, PausedPort};
use firstlight_units::Span;

/// All tables of pauses.
pub(super) fn tables(report: &PauseReport) -> [Table; 3] {
    [ports(&report.ports), causes(report), events(report)]
}

/// A class as text: its number, or `all`.
fn class(class: Option<u8>) -> String {
    class.map_or_else(|| "all".into(), |class| class.to_string())
}

fn us(span: Span) -> f64 {
    span.as_us_f64()
}

/// One row for each class of each port and NIC that leads to a switch, or to a host's adapter that can pause it.
fn ports(rows: &[PausedPort]) -> Table {
    Table::new(
        "pauses",
        "one row for each class of each port and NIC that leads to a switch, and with adapter.drain of those that \
         lead to hosts, since the start of the run",
    )
    .text("name", "the port that is paused: host3.nic, tor0->agg1, or with adapter.drain host3.port", rows, |p| {
        p.name.clone()
    })
    .text("class", "the class, or all", rows, |p| class(p.class))
    .text(
        "state",
        "paused; or why not: not reached (the account stayed at or below XOFF, or came back before its pause frame \
         went), no traffic, off (the class is not lossless)",
        rows,
        |p| pausing(p).into(),
    )
    .count("pauses", "how often it was paused", rows, |p| p.pauses)
    .number(
        "paused_us",
        "how long it was stopped: from each pause's effect, or the end of the frame in service, to the pause's end",
        rows,
        |p| us(p.paused),
    )
    .number(
        "victim_us",
        "how much of this its first packet was bound for an idle port of the next switch; NaN with packet \
         spraying, where its path is not known in advance",
        rows,
        |p| p.victim.map_or(f64::NAN, us),
    )
    .count("packets", "packets that it has begun to send", rows, |p| p.packets)
    .count(
        "peak_bytes",
        "most bytes of packets from here that the next switch, or the host's adapter, held at one time",
        rows,
        |p| p.peak,
    )
    .count("xon_bytes", "go on at or below this", rows, |p| p.limits.xon.get())
    .count("xoff_bytes", "pause above this", rows, |p| p.limits.xoff.get())
    .count("buffer_bytes", "lose beyond this", rows, |p| p.limits.buffer.get())
    .count("headroom_bytes", "bytes that can arrive once XOFF is exceeded", rows, |p| p.limits.headroom.get())
}

/// One row for each paused class of a port and cause.
fn causes(report: &PauseReport) -> Table {
    let rows = &report.causes;
    Table::new("pause_causes", "one row for each paused port, class and cause")
        .text("name", "the port that was paused", rows, |cause| cause.name.clone())
        .text("class", "the class, or all", rows, |cause| class(cause.class))
        .text("switch", "the switch that paused it, or the host", rows, |cause| cause.switch.clone())
        .text(
            "egress",
            "the port of that switch for which most of the account's bytes waited; host3.adapter where a host paused",
            rows,
            |cause| cause.egress.clone(),
        )
        .text(
            "root",
            "the last of the ports that waited for each other from there on: the one that was not paused; circle \
             without one",
            rows,
            |cause| cause.root.clone().unwrap_or_else(|| "circle".into()),
        )
        .count("pauses", "how often", rows, |cause| cause.pauses)
        .number("paused_us", "how long", rows, |cause| us(cause.paused))
}

/// One row for each beginning and end.
fn events(report: &PauseReport) -> Table {
    let rows = &report.events;
    Table::new("pause_events", "one row for each beginning and end of a pause, the first pfc.events of them")
        .number("at_us", "when, from the start of the run", rows, |event| us(event.at))
        .text("name", "the port that is paused", rows, |event| event.name.clone())
        .text("class", "the class, or all", rows, |event| class(event.class))
        .with("paused", "whether it begins", Column::Flag(rows.iter().map(|event| event.paused).collect()))
}
