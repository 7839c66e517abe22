use super::*;
use firstlight_net::interface::{PollConfig, Remedies};
use firstlight_spec::Stage;

const PACKETS: u64 = 20_000;

/// Stacks that take no time, so that only the burst itself is in the queue.
fn still(chain: ChainConfig) -> MeasurementChain {
    let stack = StackDelays { least: Span::ZERO, send: Span::ZERO, receive: Span::ZERO };
    MeasurementChain { stack, clocks: ClockConfig::TRUE, ..MeasurementChain::back_to_back(chain) }
}

fn deviation_us(chain: ChainConfig) -> f64 {
    let config = MeasurementChain::back_to_back(chain);
    let report = measurement_chain(&config, PACKETS, 1);
    assert!(report.busy > 0.98, "the link is full: {}", report.busy);
    Spread::of(&report.rtt_ns).unwrap().deviation / 1e3
}

#[test]
fn an_ideal_rtt_is_the_time_on_the_links() {
    let report = measurement_chain(&still(ChainConfig::Ideal), PACKETS, 1);
    // 1500 and 68 bytes at 10 Gb/s are 1200 and 54.4 ns, and twice 25 ns of cable; each stamp is floored to a
    // nanosecond.
    assert!(report.rtt_ns.iter().all(|rtt| (1_303..=1_306).contains(rtt)));
    assert!(report.one_way_ns.iter().all(|&delay| (1_225..=1_226).contains(&delay)));
    assert!(report.tx_gaps_ns.iter().chain(&report.rx_gaps_ns).all(|&gap| (1_199..=1_201).contains(&gap)));
    // The RTT is one clock's time less the other's for the turn-around: 80 ns per ms of that, which takes 0.4 ms at
    // most.
    let report = measurement_chain(&MeasurementChain::back_to_back(ChainConfig::Ideal), PACKETS, 1);
    assert!(report.rtt_ns.iter().all(|rtt| (1_270..=1_340).contains(rtt)), "{:?}", Spread::of(&report.rtt_ns));
}

#[test]
fn a_window_without_noise_shows_each_packets_place_in_its_burst() {
    let poll = PollConfig { interval: Span::ZERO, packet: Span::ZERO, most: 10 };
    for chain in [ChainConfig::Software { poll, remedies: Remedies::NONE }, ChainConfig::Kernel(StackDelays::default())]
    {
        let report = measurement_chain(&still(chain), PACKETS, 1);
        let Spread { min, max, .. } = Spread::of(&report.one_way_ns).unwrap();
        // 43 packets are one burst; the k-th of them waits for k others in the queue.
        assert!((max - min - 42 * 1_200).abs() <= 1_201, "{min} {max}");
    }
    for remedies in [Remedies::BUCKET, Remedies::ALL, Remedies { token_bucket: false, calibration: true }] {
        let report = measurement_chain(&still(ChainConfig::Software { poll, remedies }), PACKETS, 1);
        assert!(report.one_way_ns.iter().all(|&delay| (1_225..=1_226).contains(&delay)), "{remedies:?}");
    }
}

#[test]
fn each_stage_takes_its_error_away() {
    let [kernel, bare, bucket, software, card, calibrated] = Stage::ALL.map(|stage| deviation_us(stage.chain()));
    assert!(kernel > bare && bare > 10.0 * bucket, "the burst is the driver's largest error: {bare} {bucket}");
    // Three waits for a round of a loop, of 1.303 us each: before t1, t2 and t4. An ACK's t3 seldom waits.
    assert!((bucket - 1.303 * 3f64.sqrt()).abs() < 0.1, "{bucket}");
    // Calibration corrects the timestamps of sent packets. An arrival's timestamp that is late by an outlier stays late
    // while the link is full.
    assert!(software < 1.5 * bucket, "{software} {bucket}");
    assert!(calibrated < 0.5 * card && card < bucket, "{calibrated} {card}");
}

#[test]
fn calibrated_gaps_are_those_that_the_link_allows() {
    for chain in [ChainConfig::software(Remedies::ALL), ChainConfig::hardware(Remedies::ALL)] {
        let report = measurement_chain(&MeasurementChain::back_to_back(chain), PACKETS, 1);
        assert!(report.tx_gaps_ns.iter().chain(&report.rx_gaps_ns).all(|&gap| gap >= 1_200), "{chain:?}");
    }
    let raw = ChainConfig::hardware(Remedies::BUCKET);
    let report = measurement_chain(&MeasurementChain::back_to_back(raw), PACKETS, 1);
    let below = |gaps: &[i64]| gaps.iter().filter(|&&gap| gap < 1_200).count() as f64 / gaps.len() as f64;
    let (tx, rx) = (below(&report.tx_gaps_ns), below(&report.rx_gaps_ns));
    assert!((0.5..0.8).contains(&tx) && rx > 0.3, "{tx} {rx}");
    let [tx, rx] = [&report.tx_gaps_ns, &report.rx_gaps_ns].map(|gaps| Spread::of(gaps).unwrap());
    let middle = |gaps: Spread| gaps.upper_quartile - gaps.lower_quartile;
    assert!(middle(tx) > 5 * middle(rx), "sending is more variable: {tx:?} {rx:?}");
}

#[test]
fn receive_offload_answers_batches_with_the_mean_of_their_delays() {
    let with = |receive_offload, chain| {
        let config = MeasurementChain { receive_offload, ..MeasurementChain::back_to_back(chain) };
        measurement_chain(&config, PACKETS, 1)
    };
    let [alone, joined] = [false, true].map(|offload| with(offload, ChainConfig::software(Remedies::BUCKET)));
    let deviation = |report: &ChainReport| Spread::of(&report.delivered_ns).unwrap().deviation;
    assert_eq!(alone.delivered_ns.len(), alone.one_way_ns.len() / 2, "an ACK for every other packet");
    assert!(joined.delivered_ns.len() < alone.delivered_ns.len() / 5, "a stack's wait is 40 us, 33 packets");
    assert!(deviation(&joined) < 0.6 * deviation(&alone), "{} {}", deviation(&joined), deviation(&alone));
    // Stacks that take no time make batches of one packet each: the mean is the packet's own.
    let config = MeasurementChain { receive_offload: true, ..still(ChainConfig::Ideal) };
    let report = measurement_chain(&config, PACKETS, 1);
    assert_eq!(report.delivered_ns, report.one_way_ns[..report.one_way_ns.len() - 1]);
}

#[test]
fn a_flow_with_a_queue_of_its_own_waits_for_one_packet_at_most() {
    let [shared, own] = [HostQueue::Shared, HostQueue::PerFlow].map(|queue| {
        let chain = ChainConfig::software(Remedies::ALL);
        let config = MeasurementChain { second_flow: Some(queue), ..MeasurementChain::back_to_back(chain) };
        Spread::of(&measurement_chain(&config, PACKETS, 1).second_flow_waits_ns).unwrap()
    });
    // 100 us are 83 packets and a third, so that a packet waits for one of three parts of another.
    assert!(own.max <= 1_200 && own.max > 900, "{own:?}");
    assert!(shared.mean > 50_000.0, "behind bursts of 64 KB, eight of which are a window: {shared:?}");
}

#[test]
fn a_seed_gives_the_same_series_again() {
    let run = |seed| {
        let config = MeasurementChain::back_to_back(ChainConfig::software(Remedies::ALL));
        measurement_chain(&config, 2_000, seed)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).rtt_ns, run(2).rtt_ns);
}

#[test]
fn spread_by_hand() {
    let spread = Spread::of(&[4, 1, 3, 2]).unwrap();
    assert_eq!((spread.count, spread.min, spread.max), (4, 1, 4));
    assert_eq!((spread.lower_quartile, spread.median, spread.upper_quartile), (1, 2, 3));
    assert_eq!((spread.mean, spread.deviation), (2.5, 1.25f64.sqrt()));
    assert_eq!(Spread::of(&[]), None);
}

#[test]
fn a_summary_by_hand() {
    let report = ChainReport {
        rtt_ns: vec![1000, 2000, 3000, 6000],
        tx_gaps_ns: vec![1199, 1200],
        rx_gaps_ns: vec![1, 1],
        busy: 0.5,
        ..ChainReport::default()
    };
    let summary = outcome::summary(&report);
    let found = |metric: &str| crate::measure::metric(&summary, metric).unwrap();
    assert_eq!(found("rtt_deviation_us"), 3.5f64.sqrt());
    assert_eq!(["rtt_min_us", "rtt_max_us", "rtt_range_us", "rtt_middle_us"].map(found), [1.0, 6.0, 5.0, 2.0]);
    assert_eq!(["tx_gaps_below_pct", "rx_gaps_below_pct", "busy_pct"].map(found), [50.0, 100.0, 50.0]);
}
