//! Table `rate_limiters`: the rates of the flows that QCN limits, over time.

use crate::spec::Spec;
use crate::table::{Column, Table};
use firstlight_sim::{FlowReport, QcnReport, RateSample};
use std::collections::BTreeMap;

/// Most changes of rates that a result keeps, of all hosts.
const MOST_CHANGES: usize = 1_000_000;

/// How many of them each of so many hosts may keep.
pub(crate) fn changes_of_each(hosts: usize) -> usize {
    (MOST_CHANGES / hosts.max(1)).max(1000)
}

/// One row for each change of a rate.
pub(super) fn table(flows: &[FlowReport], qcn: &QcnReport) -> Table {
    let mut rows: BTreeMap<[u16; 4], i64> = BTreeMap::new();
    for (row, flow) in (0..).zip(flows) {
        rows.insert([flow.src.0, flow.dst.0, flow.sport, flow.dport], row);
        rows.insert([flow.dst.0, flow.src.0, flow.dport, flow.sport], row);
    }
    let row = |sample: &RateSample| {
        let ends = [sample.host.0, sample.flow.dst, sample.flow.sport, sample.flow.dport];
        rows.get(&ends).copied().unwrap_or(-1)
    };
    let mbps = |rate: firstlight_units::Rate| rate.as_bps() as f64 * 1e-6;
    let kept = &qcn.kept;
    Table::new("rate_limiters", "one row for each change of a rate that QCN limits, in the order of time")
        .number("time_us", "when, from the start of the run", kept, |sample| sample.at.as_us_f64())
        .count("host", "the sending host", kept, |sample| sample.host.0.into())
        .count("to", "the host that it sends to", kept, |sample| sample.flow.dst.into())
        .with(
            "flow",
            "row of table flows, whose data or, at its receiver, whose ACKs are limited; -1 for a probe or a program",
            Column::Integer(kept.iter().map(row).collect()),
        )
        .number("current_mbps", "its rate from now on", kept, |sample| mbps(sample.current))
        .number("target_mbps", "what the rate is on its way to", kept, |sample| mbps(sample.target))
}

/// Why no switch has sent a notification, if none has.
pub(crate) fn silence(spec: &Spec, qcn: &QcnReport) -> Option<String> {
    let config = spec.network.interface().qcn?;
    if qcn.sent.notifications > 0 {
        return None;
    }
    Some(match qcn.sent.samples {
        0 => format!("no queue was sampled: through none went qcn.sample = {}", config.sample),
        samples => {
            format!("none of {samples} samples found a queue above qcn.qeq = {} or growing fast", config.set_point)
        }
    })
}
