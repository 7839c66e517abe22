//! Table `rate_limiters`: rates of flows that QCN limits, over time.

use crate::table::{Column, Table};
use firstlight_sim::{FlowReport, QcnReport, RateSample};
use std::collections::BTreeMap;

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
        .number("target_mbps", "the target of its rate", kept, |sample| mbps(sample.target))
}
