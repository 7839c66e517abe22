//! The stages of DX's measurement chain, Figs. 6 to 8, as a table:
//! `cargo run --release -p firstlight-lab --example measurement_chain`.
//!
//! Deviations are the mean over the seeds, with the least and the largest; the rest is of the first seed.

use firstlight_lab::chain::{ChainReport, MeasurementChain, Spread, measurement_chain};
use firstlight_net::interface::{ChainConfig, ClockConfig, DmaConfig, PollConfig, Remedies};
use firstlight_spec::{HostQueue, Stage};
use firstlight_units::{Bytes, Span};

const PACKETS: u64 = 200_000;
const SEEDS: u64 = 8;

fn below(gaps: &[i64]) -> f64 {
    gaps.iter().filter(|&&gap| gap < 1_200).count() as f64 * 100.0 / gaps.len() as f64
}

fn row(name: &str, config: &MeasurementChain) {
    let report = measurement_chain(config, PACKETS, 1);
    let rtt = |report: &[i64]| Spread::of(report).expect("packets were answered");
    let deviations: Vec<f64> =
        (1..=SEEDS).map(|seed| rtt(&measurement_chain(config, PACKETS, seed).rtt_ns).deviation / 1e3).collect();
    let mean = deviations.iter().sum::<f64>() / SEEDS as f64;
    let (least, largest) = deviations.iter().fold((f64::MAX, 0f64), |(a, b), &d| (a.min(d), b.max(d)));
    let Spread { min, lower_quartile, median, upper_quartile, max, .. } = rtt(&report.rtt_ns);
    print!("{name:45} {mean:7.2} {least:7.2} {largest:7.2} |");
    [min, lower_quartile, median, upper_quartile, max].iter().for_each(|&ns| print!(" {:7.2}", ns as f64 / 1e3));
    println!(" | {:5.1} {:5.1} {:7.4}", below(&report.tx_gaps_ns), below(&report.rx_gaps_ns), report.busy);
}

/// The mean over the seeds of a number of a report.
fn mean(config: &MeasurementChain, number: impl Fn(&ChainReport) -> f64) -> f64 {
    (1..=SEEDS).map(|seed| number(&measurement_chain(config, PACKETS, seed))).sum::<f64>() / SEEDS as f64
}

/// What receive offload and a queue for each flow bring, means over the seeds.
fn hosts() {
    let deviation_us = |series: &[i64]| Spread::of(series).expect("packets were answered").deviation / 1e3;
    println!("\n{:45} packets for each ACK; deviation of the delays that ACKs bring, of the RTT, us", "");
    let [software, hardware] = [ChainConfig::software(Remedies::ALL), ChainConfig::hardware(Remedies::ALL)];
    for (name, chain) in [("software", software), ("hardware", hardware)] {
        for (offload, receive_offload) in [("", false), (", receive offload", true)] {
            let config = MeasurementChain { receive_offload, ..MeasurementChain::back_to_back(chain) };
            let packets = mean(&config, |report| report.one_way_ns.len() as f64 / report.delivered_ns.len() as f64);
            let delays = mean(&config, |report| deviation_us(&report.delivered_ns));
            let rtt = mean(&config, |report| deviation_us(&report.rtt_ns));
            println!("{:45} {packets:7.2} {delays:7.2} {rtt:7.2}", format!("{name}{offload}"));
        }
    }
    println!("\n{:45} wait of a second flow's packets, us: mean, longest", "");
    for (name, queue) in [("one queue", HostQueue::Shared), ("a queue for each flow", HostQueue::PerFlow)] {
        let config = MeasurementChain { second_flow: Some(queue), ..MeasurementChain::back_to_back(hardware) };
        let waits = |report: &ChainReport| Spread::of(&report.second_flow_waits_ns).expect("there is a second flow");
        let (average, longest) =
            (mean(&config, |report| waits(report).mean / 1e3), mean(&config, |report| waits(report).max as f64 / 1e3));
        println!("{name:45} {average:7.2} {longest:7.2}");
    }
}

fn main() {
    println!(
        "{:45} {:>23} | {:>39} | gaps too small, %; busy",
        "", "deviation of RTT, us", "RTT, us: min, quartiles, max"
    );
    for stage in Stage::ALL {
        row(&stage.name(), &MeasurementChain::back_to_back(stage.chain()));
    }
    println!();
    let jitter = Span::from_ns(1_040);
    let (poll, dma, remedies) = (PollConfig::default(), DmaConfig { jitter, ..DmaConfig::default() }, Remedies::ALL);
    row("hardware, no remedy", &MeasurementChain::back_to_back(ChainConfig::hardware(Remedies::NONE)));
    row("hardware, all, on a slow bus", &MeasurementChain::back_to_back(ChainConfig::Hardware { poll, dma, remedies }));
    row("ideal", &MeasurementChain::back_to_back(ChainConfig::Ideal));
    let exact = |chain| MeasurementChain { clocks: ClockConfig::TRUE, ..MeasurementChain::back_to_back(chain) };
    for stage in Stage::ALL {
        row(&format!("{}, true clocks", stage.name()), &exact(stage.chain()));
    }
    for window in [256, 1024] {
        let config =
            |chain| MeasurementChain { window: Bytes::new(window << 10), ..MeasurementChain::back_to_back(chain) };
        for stage in &Stage::ALL[..3] {
            row(&format!("{}, {window} KiB", stage.name()), &config(stage.chain()));
        }
    }
    hosts();
}
