//! Tables `probes` and `probe_packets`: datagrams of probes. Times are the experiment's own; readings of clocks are in
//! the hosts' time.

use super::numbers;
use crate::quantile::histogram_quantile_us;
use crate::table::Table;
use firstlight_sim::{ProbeReport, ProbeSample};
use firstlight_spec::{Probe, Spec};

/// One row for each probe.
pub(super) fn table(spec: &Spec, probes: &[ProbeReport]) -> Table {
    let scale = f64::from(spec.tables.time_scale);
    let rates = probes.iter().zip(&spec.probes).map(|(reported, asked)| throughput_gbps(spec, reported, asked));
    let latency = |part| move |probe: &ProbeReport| histogram_quantile_us(&probe.latency, part) / scale;
    Table::new("probes", "one row for each probe, and each pair of hosts that datagrams go between")
        .text("workload", "the workload's name", &spec.probes, |probe| spec.workload_name(probe.entry).to_string())
        .count("src", "sending host", probes, |probe| probe.src.0.into())
        .count("dst", "receiving host", probes, |probe| probe.dst.0.into())
        .count("sent", "packets sent", probes, |probe| probe.sent)
        .count("received", "packets that arrived", probes, |probe| probe.received)
        .count("lost", "packets that did not, those on their way at the end included", probes, |probe| {
            probe.sent - probe.received
        })
        .with(
            "throughput_gbps",
            "bytes that arrived, IP headers included, over the time in which it sent; NaN when it sent none",
            numbers(rates),
        )
        .number("latency_min_us", "least time from host to host; NaN when none arrived", probes, latency(0.0))
        .number("latency_p50_us", "time that half of them did not exceed", probes, latency(0.5))
        .number("latency_p99_us", "time that 99% did not exceed", probes, latency(0.99))
        .number("latency_max_us", "the longest", probes, latency(1.0))
}

/// Rate of the datagrams that arrived, in Gb/s.
fn throughput_gbps(spec: &Spec, reported: &ProbeReport, asked: &Probe) -> f64 {
    let time = reported.last_sent.map(|last| spec.own_time(last).saturating_sub(asked.start) + asked.interval);
    time.map_or(f64::NAN, |time| (reported.received * asked.packet.get()) as f64 * 8e-9 / time.as_secs_f64())
}

/// One row for each packet that arrived.
pub(super) fn packets(spec: &Spec, probes: &[ProbeReport]) -> Table {
    let rows: Vec<(usize, &ProbeSample)> = probes
        .iter()
        .enumerate()
        .flat_map(|(index, probe)| probe.samples.iter().map(move |sample| (index, sample)))
        .collect();
    let scale = f64::from(spec.tables.time_scale);
    Table::new("probe_packets", "one row for each packet of a probe that arrived")
        .count("probe", "row of table probes", &rows, |(probe, _)| *probe as u64)
        .number("sent_us", "when its host sent it", &rows, |(_, sample)| spec.own_time(sample.sent).as_us_f64())
        .number("latency_us", "from host to host", &rows, |(_, sample)| sample.latency.as_us_f64() / scale)
        .count("sent_clock_ns", "when its first bit left, by the sender's clock, modulo 2^32", &rows, |(_, sample)| {
            sample.stamps.sent.into()
        })
        .count(
            "received_clock_ns",
            "when its last bit arrived, by the receiver's clock, modulo 2^32",
            &rows,
            |(_, sample)| sample.stamps.received.into(),
        )
}
