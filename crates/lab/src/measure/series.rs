//! Table `series`: the measured pair over the time since a fold's start, averaged over all folds.
//!
//! `sequence_bytes` is the in-order bytes that have arrived at the destination's ToR since the fold's start, averaged
//! over the pair's flows. `voq_packets` is the packets in the pair's VOQ. `day` is true while the pair's circuit is up.

use super::numbers;
use crate::table::{Column, Table};
use firstlight_circuits::{RackId, Week};
use firstlight_sim::SeriesReport;
use firstlight_spec::{Network, Spec};
use firstlight_units::Span;

/// One row for each sample.
pub(super) fn table(spec: &Spec, series: &SeriesReport) -> Table {
    let times: Vec<Span> = (0..series.sequence.len() as u64).map(|index| series.every * index).collect();
    let day = |at: &Span| match (&spec.network, spec.pair) {
        (Network::Hybrid(hybrid), Some(pair)) => is_day(&hybrid.week, pair, *at),
        _ => false,
    };
    Table::new("series", "the measured pair over time, folded over weeks")
        .with("time_us", "time since the fold's start", numbers(times.iter().map(|at| at.as_us_f64())))
        .with(
            "sequence_bytes",
            "in-order bytes that have arrived at the destination's ToR since then, averaged over flows and folds",
            numbers(series.sequence.iter().copied()),
        )
        .with("voq_packets", "packets in the pair's VOQ, averaged over folds", numbers(series.voq.iter().copied()))
        .with("day", "whether the pair's circuit is up", Column::Flag(times.iter().map(day).collect()))
}

/// Whether the pair's circuit is up, `at` after the start of any week.
fn is_day(week: &Week, pair: (RackId, RackId), at: Span) -> bool {
    let at = Span::from_ps(at.as_ps() % week.length().as_ps());
    let mut days = week.days().iter().zip(week.day_times());
    days.any(|(day, (begins, ends))| begins <= at && at < ends && day.matching.destination(pair.0) == Some(pair.1))
}
