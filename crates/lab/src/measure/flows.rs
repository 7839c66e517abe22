//! Table `flows`: one row for each connection, in the order of the experiment's entries.
//!
//! `fct_us` runs from the connection's start to the time at which the receiver has all bytes in order. Counts that a
//! kernel does not report are -1.

use super::ideal::Ideal;
use super::numbers;
use crate::run::Counters;
use crate::table::{Column, Table};
use firstlight_sim::FlowReport;
use firstlight_spec::{HostKind, Spec};
use firstlight_units::{Span, Time};

/// Table `flows`.
pub(super) fn table(spec: &Spec, counters: &Counters) -> Table {
    let rows = &counters.flows;
    let ideal = Ideal::of(spec);
    let own = |span: Span| span.as_us_f64() / f64::from(spec.tables.time_scale);
    let own_opt = |span: Option<Span>| span.map_or(f64::NAN, own);
    let sizes = rows.iter().map(|f| f.size.map_or(-1, |size| i64::try_from(size.get()).unwrap_or(i64::MAX))).collect();
    let ours = |of: fn(&FlowReport) -> u64| {
        let reported = rows.iter().zip(&spec.flows).map(|(row, flow)| match flow.hosts {
            HostKind::Simulated => i64::try_from(of(row)).unwrap_or(i64::MAX),
            HostKind::Linux => -1,
        });
        Column::Integer(reported.collect())
    };
    Table::new("flows", "one row for each connection")
        .with(
            "id",
            "number of the flow, in the order of the experiment",
            Column::Integer((0..rows.len() as i64).collect()),
        )
        .text("entry", "the table that it comes from, counted from 0: flows.0, workload.0", &spec.flows, |flow| {
            flow.entry.to_string()
        })
        .text("workload", "that workload's name; flows: from [[flows]]", &spec.flows, |flow| {
            spec.workload_name(flow.entry).to_string()
        })
        .count("src", "sending host", rows, |f| u64::from(f.src.0))
        .count("dst", "receiving host", rows, |f| u64::from(f.dst.0))
        .count("sport", "sender's port", rows, |f| u64::from(f.sport))
        .count("dport", "receiver's port", rows, |f| u64::from(f.dport))
        .text("cc", "congestion control", &spec.flows, |flow| flow.cc.name().to_string())
        .count("class", "traffic class of its packets", &spec.flows, |flow| u64::from(flow.class))
        .count("messages", "messages that it carries; 0: it sends all its bytes from its start", &spec.flows, |flow| {
            u64::from(flow.messages)
        })
        .number("start_us", "when it connected; NaN if none of its messages was due", rows, |f| {
            if f.start == Time::MAX { f64::NAN } else { spec.own_time(f.start).as_us_f64() }
        })
        .number(
            "established_us",
            "from start until the connection was established; NaN: never, or not reported",
            rows,
            |f| f.sender.established.map_or(f64::NAN, |at| since_start(spec, f, at).as_us_f64()),
        )
        .with("size_bytes", "how much it was to send; -1: until the end", Column::Integer(sizes))
        .number("fct_us", "from start until the receiver had all bytes in order; NaN if it never had", rows, |f| {
            completion(spec, f).map_or(f64::NAN, Span::as_us_f64)
        })
        .with(
            "slowdown",
            "fct_us over the least that the empty fabric allows; NaN where that is not known, and with several \
             messages",
            numbers(rows.iter().zip(&spec.flows).map(|(reported, asked)| {
                let slowdown = ideal.slowdown(spec, reported).filter(|_| asked.is_timed());
                slowdown.unwrap_or(f64::NAN)
            })),
        )
        .count("bytes_acked", "bytes acknowledged to the sender", rows, |f| f.bytes_acked)
        .count("bytes_received", "bytes in order at the receiver", rows, |f| f.bytes_received)
        .count("packets_sent", "data packets sent, retransmissions included", rows, |f| f.sender.packets_sent)
        .count("retransmits", "data packets sent again", rows, |f| f.sender.retransmits)
        .count("timeouts", "retransmission timeouts", rows, |f| f.sender.timeouts)
        .with("probes", "tail loss probes; -1: not reported", ours(|f| f.sender.probes))
        .with(
            "recoveries",
            "loss recoveries entered without a timeout; -1: not reported",
            ours(|f| f.sender.recoveries),
        )
        .with("undos", "reductions taken back because they were spurious; -1: not reported", ours(|f| f.sender.undos))
        .count("duplicates", "duplicates that the receiver reported", rows, |f| f.sender.duplicates)
        .count("reorderings", "deliveries out of order that were no losses", rows, |f| f.sender.reorderings)
        .with(
            "syn_retransmits",
            "SYN and SYN-ACK packets sent again; -1: not reported, and counted as data by the kernel",
            ours(|f| f.sender.syn_retransmits + f.receiver.syn_retransmits),
        )
        .count("cwnd_packets", "the sender's window at the end", rows, |f| u64::from(f.cwnd))
        .number("srtt_us", "the sender's smoothed round-trip time at the end, divided by time_scale", rows, |f| {
            own_opt(f.srtt)
        })
        .number("min_rtt_us", "the sender's smallest round-trip time, divided by time_scale", rows, |f| {
            own_opt(f.min_rtt)
        })
}

/// Completion time of a sized flow in the experiment's own time.
pub(super) fn completion(spec: &Spec, flow: &FlowReport) -> Option<Span> {
    flow.finish.map(|finish| since_start(spec, flow, finish))
}

/// Time from a flow's start until `at`, in the experiment's own time.
fn since_start(spec: &Spec, flow: &FlowReport, at: Time) -> Span {
    spec.own_time(at).saturating_sub(spec.own_time(flow.start))
}
