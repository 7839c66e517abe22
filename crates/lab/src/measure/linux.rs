//! Tables `tcp_info` and `programs`: reports of Linux hosts. Times are the experiment's own: the hosts' divided by
//! `time_scale`; rates are multiplied by it.

use super::numbers;
use crate::run::{LinuxCounters, ProgramEnd, TcpInfoSample};
use crate::table::{Column, Table};
use firstlight_spec::{Linux, Program, Spec};
use firstlight_units::Span;

/// Names of the states of congestion control, by the kernel's number.
const CA_STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];

/// One row for each sample of each flow.
pub(super) fn tcp_info(spec: &Spec, linux: &LinuxCounters) -> Table {
    let rows = &linux.samples;
    let scale = f64::from(spec.tables.time_scale);
    let us = move |n: u32| f64::from(n) / scale;
    let gbps = move |bytes: u64| bytes as f64 * 8e-9 * scale;
    let state =
        |row: &TcpInfoSample| CA_STATES.get(usize::from(row.info.ca_state)).map_or("unknown", |name| name).into();
    Table::new("tcp_info", "one row for each sample of each flow with Linux hosts: its sender's TCP_INFO")
        .number("time_us", "when", rows, |r| spec.own_time(r.at).as_us_f64())
        .count("flow", "the flow's id", rows, |r| r.flow.into())
        .count("cwnd_packets", "congestion window", rows, |r| r.info.cwnd.into())
        .number("ssthresh_packets", "slow start threshold; NaN before the first congestion", rows, |r| {
            r.info.ssthresh.map_or(f64::NAN, f64::from)
        })
        .number("srtt_us", "smoothed round-trip time", rows, |r| us(r.info.rtt_us))
        .number("rttvar_us", "its variation", rows, |r| us(r.info.rttvar_us))
        .number("min_rtt_us", "smallest round-trip time", rows, |r| r.info.min_rtt_us.map_or(f64::NAN, us))
        .number("rto_us", "retransmission timeout", rows, |r| us(r.info.rto_us))
        .count("unacked", "packets sent and not acknowledged", rows, |r| r.info.unacked.into())
        .count("sacked", "of those, reported by SACK", rows, |r| r.info.sacked.into())
        .count("lost", "of those, believed lost", rows, |r| r.info.lost.into())
        .count("retrans", "of those, sent again", rows, |r| r.info.retrans.into())
        .count("retransmits", "packets sent again since the start", rows, |r| r.info.total_retrans.into())
        .count("timeouts", "retransmission timeouts since the start", rows, |r| r.info.total_rto.into())
        .text("ca_state", "open, disorder, cwr, recovery or loss", rows, state)
        .count("reordering", "packets that may come out of order before one is believed lost", rows, |r| {
            r.info.reordering.into()
        })
        .number("pacing_gbps", "pacing rate; NaN without pacing", rows, |r| r.info.pacing_rate.map_or(f64::NAN, gbps))
        .number("delivery_gbps", "latest delivery rate", rows, |r| gbps(r.info.delivery_rate))
        .count("bytes_acked", "bytes acknowledged, and one for the SYN", rows, |r| r.info.bytes_acked)
        .count("delivered", "packets delivered, the SYN included", rows, |r| r.info.delivered.into())
        .count("delivered_ce", "of those, reported with a congestion mark", rows, |r| r.info.delivered_ce.into())
}

/// One row for each flow: the sending kernel's own counters of the causes that an account divides.
pub(super) fn limits(spec: &Spec, linux: &LinuxCounters) -> Table {
    let rows: Vec<_> = linux.senders.iter().collect();
    let us = move |time: u64| time as f64 / f64::from(spec.tables.time_scale);
    Table::new(
        "account_tcp_info",
        "one row for each flow with Linux hosts, beside its account: times that the sender's kernel counts, in ticks",
    )
    .count("flow", "number of the flow, as in table flows", &rows, |row| u64::from(*row.0))
    .number("busy_us", "how long data were unsent or unacknowledged", &rows, |row| us(row.1.busy_us))
    .number("receive_window_us", "of this, how long the peer's window held data back", &rows, |row| {
        us(row.1.rwnd_limited_us)
    })
    .number("send_buffer_us", "of this, how long the send buffer held the program back", &rows, |row| {
        us(row.1.sndbuf_limited_us)
    })
}

/// One row for each host with processors.
pub(super) fn processors(spec: &Spec, hosts: &Linux, linux: &LinuxCounters) -> Table {
    let rows: Vec<_> = hosts.hosts.iter().zip(&linux.processors).collect();
    let us = move |time: Span| time.as_us_f64() / f64::from(spec.tables.time_scale);
    Table::new("processors", "one row for each Linux host with processors, since the start of the run")
        .count("host", "the host", &rows, |row| u64::from(row.0.host.0))
        .number("busy_us", "time of all work, of all its processors together", &rows, |row| us(row.1.busy))
        .number(
            "card_us",
            "of this, interrupts, packets that arrived, and what the stack sent in response at once",
            &rows,
            |row| us(row.1.card),
        )
        .count("interrupts", "interrupts of its network card", &rows, |row| row.1.interrupts)
}

/// One row for each program.
pub(super) fn programs(spec: &Spec, programs: &[Program], linux: &LinuxCounters) -> Table {
    let ended = |index: usize| linux.ended.get(index).copied().flatten();
    let all: Vec<Option<ProgramEnd>> = (0..programs.len()).map(ended).collect();
    let ends = all.iter().map(|end| end.map_or(f64::NAN, |end| spec.own_time(end.at).as_us_f64()));
    Table::new("programs", "one row for each program that ran on a Linux host")
        .text("name", "its name, and that of its output", programs, |p| p.name.clone())
        .count("host", "where it ran", programs, |p| u64::from(p.on.0))
        .text("command", "its command line", programs, |p| p.command.clone())
        .number("start_us", "when it started", programs, |p| p.start.as_us_f64())
        .with("end_us", "when it ended by itself; NaN if it ran until the end", numbers(ends))
        .with(
            "exit_code",
            "its exit code, or 128 and the number of the signal that ended it; -1 if it ran until the end",
            Column::Integer(all.iter().map(|end| end.map_or(-1, |end| end.code.into())).collect()),
        )
}
