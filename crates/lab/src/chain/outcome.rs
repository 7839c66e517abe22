//! The result of an experiment on the measurement chain: the series of timestamps, and statistics of each stage.

use super::{ChainReport, MeasurementChain, Spread, measurement_chain};
use crate::measure;
use crate::outcome::{Outcome, columns, overrides_json};
use crate::table::{Column, Table};
use firstlight_spec::{ChainSpec, Overrides};
use firstlight_version::version;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The serialization of a packet of 1500 bytes at 10 Gb/s.
const LINK_NS: i64 = 1200;

/// Runs an experiment on the chain. `overrides` are those it was read with, for the manifest.
pub fn run(spec: &ChainSpec, overrides: &Overrides) -> Outcome {
    let config = MeasurementChain {
        receive_offload: spec.chain.receive_offload,
        second_flow: spec.chain.second_flow,
        ..MeasurementChain::back_to_back(spec.chain.chain())
    };
    let report = measurement_chain(&config, spec.chain.packets, spec.seed);
    let tables = tables(&report);
    let manifest = json!({
        "name": spec.name,
        "version": version(),
        "seed": spec.seed,
        "digest": digest(&report),
        "warnings": [],
        "columns": columns(&tables),
        "overrides": overrides_json(overrides),
        "spec": spec.resolved,
    });
    Outcome { manifest, tables }
}

/// A hash of all series.
fn digest(report: &ChainReport) -> String {
    let mut hash = Sha256::new();
    let ChainReport { rtt_ns, one_way_ns, tx_gaps_ns, rx_gaps_ns, second_flow_waits_ns, .. } = report;
    for series in [rtt_ns, one_way_ns, tx_gaps_ns, rx_gaps_ns, second_flow_waits_ns] {
        series.iter().for_each(|value| hash.update(value.to_le_bytes()));
    }
    let bytes = hash.finalize();
    bytes[..8].iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes all");
        text
    })
}

fn tables(report: &ChainReport) -> Vec<Table> {
    let us = |ns: &i64| *ns as f64 / 1e3;
    let rtts = Table::new("chain_rtts", "one row for each ACK").number(
        "rtt_us",
        "RTT of each ACK by the stamps: (t4 - t1) - (t3 - t2)",
        &report.rtt_ns,
        us,
    );
    let gaps = Table::new("chain_gaps", "one row for each data packet after the first")
        .number("tx_us", "gaps between the stamps of data packets sent one after the other", &report.tx_gaps_ns, us)
        .number(
            "rx_us",
            "gaps between the stamps of data packets received one after the other",
            &report.rx_gaps_ns,
            us,
        );
    vec![summary(report), rtts, gaps]
}

/// Table `summary` of the series.
pub(super) fn summary(report: &ChainReport) -> Table {
    let rtt = Spread::of(&report.rtt_ns).expect("a run is longer than the windows that are left out");
    let us = |ns: i64| ns as f64 / 1e3;
    let below = |gaps: &[i64]| 100.0 * (gaps.iter().filter(|gap| **gap < LINK_NS).count() as f64 / gaps.len() as f64);
    let mut rows = vec![
        ("rtt_deviation_us", "us", rtt.deviation / 1e3, "standard deviation of the RTT"),
        ("rtt_min_us", "us", us(rtt.min), "the least RTT"),
        ("rtt_max_us", "us", us(rtt.max), "the largest RTT"),
        ("rtt_range_us", "us", us(rtt.max - rtt.min), "the largest less the least RTT"),
        ("rtt_middle_us", "us", us(rtt.upper_quartile - rtt.lower_quartile), "width of the middle half of the RTTs"),
        ("tx_gaps_below_pct", "%", below(&report.tx_gaps_ns), "gaps between stamps of sent packets below 1.2 us"),
        ("rx_gaps_below_pct", "%", below(&report.rx_gaps_ns), "gaps between stamps of received packets below 1.2 us"),
        ("busy_pct", "%", 100.0 * report.busy, "the part of the time in which the link carried data"),
    ];
    if let Some(delays) = Spread::of(&report.delivered_ns) {
        let packets = report.one_way_ns.len() as f64 / delays.count as f64;
        rows.push(("packets_per_ack", "packets", packets, "data packets for each ACK"));
        let meaning = "standard deviation of the one-way delays that ACKs bring";
        rows.push(("delivered_deviation_us", "us", delays.deviation / 1e3, meaning));
    }
    if let Some(waits) = Spread::of(&report.second_flow_waits_ns) {
        rows.push(("second_flow_wait_mean_us", "us", waits.mean / 1e3, "mean wait of the second flow for the link"));
        rows.push(("second_flow_wait_max_us", "us", us(waits.max), "longest wait of the second flow for the link"));
    }
    Table::new(measure::SUMMARY, "one row for each metric")
        .text("metric", "name", &rows, |row| row.0.into())
        .text("unit", "unit of the value", &rows, |row| row.1.into())
        .with("value", "value", Column::Number(rows.iter().map(|row| row.2).collect()))
        .text("meaning", "meaning of the metric", &rows, |row| row.3.into())
}
