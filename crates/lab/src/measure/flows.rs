//! Table `flows`: one row for each connection, in the order of the experiment's entries.
//!
//! `fct_us` runs from the connection's start to the moment at which the receiver has all bytes in order.

use crate::run::Counters;
use crate::spec::Spec;
use crate::table::{Column, Table};
use firstlight_sim::FlowReport;
use firstlight_units::Span;

/// All flows.
pub(super) fn table(spec: &Spec, counters: &Counters) -> Table {
    let rows = &counters.flows;
    let own = |span: Span| span.as_us_f64() / f64::from(spec.time_scale);
    let own_opt = |span: Option<Span>| span.map_or(f64::NAN, own);
    let sizes = rows.iter().map(|f| f.size.map_or(-1, |size| i64::try_from(size.get()).unwrap_or(i64::MAX))).collect();
    Table::new("flows")
        .with("id", Column::Integer((0..rows.len() as i64).collect()))
        .count("entry", &spec.flows, |flow| flow.entry as u64)
        .count("src", rows, |f| u64::from(f.src.0))
        .count("dst", rows, |f| u64::from(f.dst.0))
        .count("sport", rows, |f| u64::from(f.sport))
        .count("dport", rows, |f| u64::from(f.dport))
        .text("cc", rows, |f| f.cc.to_string())
        .number("start_us", rows, |f| spec.own_time(f.start).as_us_f64())
        .with("size_bytes", Column::Integer(sizes))
        .number("fct_us", rows, |f| completion(spec, f).map_or(f64::NAN, Span::as_us_f64))
        .count("bytes_acked", rows, |f| f.bytes_acked)
        .count("bytes_received", rows, |f| f.bytes_received)
        .count("packets_sent", rows, |f| f.sender.packets_sent)
        .count("retransmits", rows, |f| f.sender.retransmits)
        .count("timeouts", rows, |f| f.sender.timeouts)
        .count("probes", rows, |f| f.sender.probes)
        .count("recoveries", rows, |f| f.sender.recoveries)
        .count("undos", rows, |f| f.sender.undos)
        .count("duplicates", rows, |f| f.sender.duplicates)
        .count("reorderings", rows, |f| f.sender.reorderings)
        .count("syn_retransmits", rows, |f| f.sender.syn_retransmits + f.receiver.syn_retransmits)
        .count("cwnd_packets", rows, |f| u64::from(f.cwnd))
        .number("srtt_us", rows, |f| own_opt(f.srtt))
        .number("min_rtt_us", rows, |f| own_opt(f.min_rtt))
}

/// How long a sized flow took, in the experiment's own time.
pub(super) fn completion(spec: &Spec, flow: &FlowReport) -> Option<Span> {
    flow.finish.map(|finish| spec.own_time(finish).saturating_sub(spec.own_time(flow.start)))
}
