//! Tables `probes` and `probe_packets`: what became of the datagrams of probes. Times are the experiment's own; readings of
//! clocks are the hosts'.

use crate::spec::Spec;
use crate::table::Table;
use firstlight_sim::{ProbeReport, ProbeSample};

/// One row for each probe.
pub(super) fn table(spec: &Spec, probes: &[ProbeReport]) -> Table {
    let scale = f64::from(spec.time_scale);
    let latency = |quantile| {
        move |probe: &ProbeReport| {
            if probe.latency.is_empty() {
                f64::NAN
            } else {
                probe.latency.value_at_quantile(quantile) as f64 * 1e-3 / scale
            }
        }
    };
    Table::new("probes", "one row for each probe")
        .count("src", "sending host", probes, |probe| probe.src.0.into())
        .count("dst", "receiving host", probes, |probe| probe.dst.0.into())
        .count("sent", "packets sent", probes, |probe| probe.sent)
        .count("received", "packets that arrived", probes, |probe| probe.received)
        .number("latency_min_us", "least time from host to host; NaN when none arrived", probes, latency(0.0))
        .number("latency_p50_us", "time that half of them did not exceed", probes, latency(0.5))
        .number("latency_p99_us", "time that 99% did not exceed", probes, latency(0.99))
        .number("latency_max_us", "the longest", probes, latency(1.0))
}

/// One row for each packet that arrived.
pub(super) fn packets(spec: &Spec, probes: &[ProbeReport]) -> Table {
    let rows: Vec<(usize, &ProbeSample)> = probes
        .iter()
        .enumerate()
        .flat_map(|(index, probe)| probe.samples.iter().map(move |sample| (index, sample)))
        .collect();
    let scale = f64::from(spec.time_scale);
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
