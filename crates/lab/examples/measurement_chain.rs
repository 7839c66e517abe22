//! The stages of DX's measurement chain, Figs. 6 to 8, as a table:
//! `cargo run --release -p firstlight-lab --example measurement_chain`.

use firstlight_lab::chain::{ChainReport, MeasurementChain, Spread, measurement_chain};
use firstlight_net::interface::{ChainConfig, ClockConfig, DmaConfig, PollConfig, Remedies, StackConfig};
use firstlight_units::{Bytes, Span};

const PACKETS: u64 = 200_000;

fn below(gaps: &[i64]) -> f64 {
    gaps.iter().filter(|&&gap| gap < 1_200).count() as f64 * 100.0 / gaps.len() as f64
}

fn row(name: &str, report: &ChainReport) {
    let rtt = Spread::of(&report.rtt_ns).expect("packets were answered");
    let [min, lower, median, upper, max] =
        [rtt.min, rtt.lower_quartile, rtt.median, rtt.upper_quartile, rtt.max].map(|ns| ns as f64 / 1e3);
    println!(
        "{name:36} {:8.2} {min:8.2} {lower:8.2} {median:8.2} {upper:8.2} {max:8.2} {:6.1} {:6.1} {:7.4} {:6.2} {:6.2}",
        rtt.deviation / 1e3,
        below(&report.tx_gaps_ns),
        below(&report.rx_gaps_ns),
        report.busy,
        Spread::of(&report.tx_gaps_ns).unwrap().deviation / 1e3,
        Spread::of(&report.rx_gaps_ns).unwrap().deviation / 1e3,
    );
}

fn main() {
    println!(
        "{:36} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6} {:>7} {:>6} {:>6}",
        "RTT in us", "std", "min", "q1", "median", "q3", "max", "tx<%", "rx<%", "busy", "tx std", "rx std"
    );
    let bare = Remedies { token_bucket: false, calibration: true };
    let slow_bus = DmaConfig { jitter: Span::from_ns(1_040), ..DmaConfig::default() };
    let (poll, remedies) = (PollConfig::default(), Remedies::ALL);
    let stages = [
        ("kernel", ChainConfig::Kernel(StackConfig::default())),
        ("software", ChainConfig::software(Remedies::NONE)),
        ("software, bucket", ChainConfig::software(Remedies::BUCKET)),
        ("software, bucket, calibration", ChainConfig::software(Remedies::ALL)),
        ("software, calibration", ChainConfig::software(bare)),
        ("hardware", ChainConfig::hardware(Remedies::NONE)),
        ("hardware, bucket", ChainConfig::hardware(Remedies::BUCKET)),
        ("hardware, bucket, calibration", ChainConfig::hardware(Remedies::ALL)),
        ("hardware, all, DMA of a Xeon E3", ChainConfig::Hardware { poll, dma: slow_bus, remedies }),
        ("ideal", ChainConfig::Ideal),
    ];
    for (name, chain) in stages {
        row(name, &measurement_chain(&MeasurementChain::back_to_back(chain), PACKETS, 1));
    }
    for (name, chain) in &stages[2..9] {
        let config = MeasurementChain { clocks: ClockConfig::TRUE, ..MeasurementChain::back_to_back(*chain) };
        row(&format!("{name}, true clocks"), &measurement_chain(&config, PACKETS, 1));
    }
    for window in [256, 1024] {
        for (name, chain) in &stages[..3] {
            let config =
                MeasurementChain { window: Bytes::new(window << 10), ..MeasurementChain::back_to_back(*chain) };
            row(&format!("{name}, window of {window} KiB"), &measurement_chain(&config, PACKETS, 1));
        }
    }
}
