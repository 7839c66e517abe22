//! Table `throughput`: bytes that each flow's receiver got in order in each interval, and the window at its end.

use super::numbers;
use crate::run::Counters;
use crate::table::{Column, Table};
use firstlight_spec::Spec;
use firstlight_units::Span;

/// One row for each flow in each whole interval in which it received something.
pub(super) fn table(spec: &Spec, counters: &Counters, every: Span) -> Table {
    let (mut time, mut flow, mut rate, mut cwnd) = (vec![], vec![], vec![], vec![]);
    for (index, pair) in counters.intervals.windows(2).enumerate() {
        for (number, (before, after)) in pair[0].iter().zip(&pair[1]).enumerate() {
            if after.bytes_received > before.bytes_received {
                time.push((spec.tables.warmup + every * index as u64).as_us_f64());
                flow.push(number as i64);
                rate.push((after.bytes_received - before.bytes_received) as f64 * 8e-9 / every.as_secs_f64());
                cwnd.push(after.cwnd.map_or(-1, i64::from));
            }
        }
    }
    Table::new("throughput", "one row for each flow and interval of the measured time in which it received something")
        .with("time_us", "when the interval begins, from the start of the run", numbers(time))
        .with("flow", "the flow's id", Column::Integer(flow))
        .with("goodput_gbps", "payload that its receiver got in order", numbers(rate))
        .with(
            "cwnd_packets",
            "congestion window when the interval ends; 0 once the connection is closed; -1 for Linux hosts",
            Column::Integer(cwnd),
        )
}
