//! Table `throughput`: bytes that each flow's receiver got in order in each interval.

use super::numbers;
use crate::run::Counters;
use crate::table::{Column, Table};
use firstlight_spec::Spec;
use firstlight_units::Span;

/// One row for each flow in each whole interval in which it received something.
pub(super) fn table(spec: &Spec, counters: &Counters, every: Span) -> Table {
    let (mut time, mut flow, mut rate) = (vec![], vec![], vec![]);
    for (index, pair) in counters.received.windows(2).enumerate() {
        for (number, (before, after)) in pair[0].iter().zip(&pair[1]).enumerate() {
            if after > before {
                time.push((spec.warmup + every * index as u64).as_us_f64());
                flow.push(number as i64);
                rate.push((after - before) as f64 * 8e-9 / every.as_secs_f64());
            }
        }
    }
    Table::new("throughput", "one row for each flow and interval of the measured time in which it received something")
        .with("time_us", "when the interval begins, from the start of the run", numbers(time))
        .with("flow", "the flow's id", Column::Integer(flow))
        .with("goodput_gbps", "payload that its receiver got in order", numbers(rate))
}
