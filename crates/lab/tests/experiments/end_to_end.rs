//! Experiments from their files to their results.

use crate::{STAR, Set, integers, metric, numbers, read, result, texts};
use firstlight_lab::{Column, Files, LabError, Outcome, run};
use std::ops::ControlFlow;

const PAIR: &str = include_str!("../specs/pair.toml");
const INCAST: &str = include_str!("../specs/incast.toml");

fn warnings(outcome: &Outcome) -> Vec<String> {
    let list = outcome.manifest["warnings"].as_array().expect("a list");
    list.iter().map(|warning| warning.as_str().expect("a text").to_string()).collect()
}

/// A full static VOQ of q packets: q serializations of 7.2 us on the packet network, its own and the downlink's, and
/// 10 us of propagation: 7.2 (q + 2) + 10 = 7.2 q + 24.4 us.
#[test]
fn the_99th_percentile_of_a_full_static_voq_is_its_length() {
    for queue in [8u32, 16, 64] {
        let outcome = result(PAIR, &[("voq.small", &queue.to_string())]);
        let (p99, expected) = (metric(&outcome, "p99_packet_us"), 7.2 * f64::from(queue) + 24.4);
        assert!((p99 / expected - 1.0).abs() < 0.02, "{queue} packets: {p99} us instead of {expected}");
    }
}

#[test]
fn a_large_static_voq_fills_the_circuit() {
    let outcome = result(PAIR, &[("voq.small", "128")]);
    let utilization = metric(&outcome, "circuit_utilization_pct");
    assert!((97.0..=100.0).contains(&utilization), "{utilization} %");
    // The day ends with the circuit in service: 200 packets of 900 ns in 180 us, payload 8948 of 9000 bytes.
    let most = 20.0 * 200.0;
    assert!(metric(&outcome, "circuit_packets") <= most);
}

#[test]
fn utilization_and_goodput_agree_with_the_counts() {
    let outcome = result(PAIR, &[]);
    let (packets, seconds) = (metric(&outcome, "circuit_packets"), 0.096);
    // 3 Gb/s is what the circuit can carry: 80 Gb/s for 180 of 4800 us.
    let expected = packets * 8948.0 * 8.0 / seconds / 3e9 * 100.0;
    assert!((metric(&outcome, "circuit_utilization_pct") - expected).abs() < 1e-6);
    let networks = metric(&outcome, "circuit_goodput_gbps") + metric(&outcome, "packet_goodput_gbps");
    let goodput = metric(&outcome, "goodput_gbps");
    assert!(goodput <= networks * 1.01 && goodput > networks * 0.9, "{goodput} of {networks} Gb/s");
    let histogram: i64 = integers(&outcome, "latency", "packets").iter().sum();
    let counted = packets + metric(&outcome, "packet_packets");
    assert_eq!(histogram as f64, counted);
}

#[test]
fn the_tables_have_what_they_promise() {
    let outcome = result(PAIR, &[]);
    let names: Vec<&str> = outcome.tables.iter().map(|table| table.name).collect();
    assert_eq!(names, ["summary", "flows", "ports", "pairs", "week", "latency", "series"]);
    assert_eq!(integers(&outcome, "flows", "id").len(), 16);
    assert_eq!(numbers(&outcome, "week", "start_us").first(), Some(&20.0));
    assert_eq!(numbers(&outcome, "week", "end_us").last(), Some(&4800.0));
    // Three weeks of 4800 us, a sample every 20.
    let times = numbers(&outcome, "series", "time_us");
    assert_eq!((times.len(), times[1]), (720, 20.0));
    let Some(Column::Flag(day)) = outcome.table("series").and_then(|table| table.column("day")) else { panic!() };
    // The pair's day is the last of the week, t = 4620 to 4800 us: 9 samples in each of three weeks.
    let days: Vec<usize> = (0..720).filter(|&index| day[index]).collect();
    assert_eq!((days.len(), days[0], days[8]), (27, 231, 239));
}

/// One fold covers the run, so the series and the samples of the pair's VOQ are the same numbers.
#[test]
fn voqs_are_watched_beside_the_series() {
    let set: Set<'_> = &[("duration", "24ms"), ("warmup", "0s"), ("measure.series", "20us"), ("measure.fold", "5")];
    let watched = [set, &[("measure.queues", "[\"voq.0.*\"]"), ("measure.queue_samples", "20us")]].concat();
    let (plain, outcome) = (result(PAIR, set), result(PAIR, &watched));
    assert_eq!(plain.manifest["digest"], outcome.manifest["digest"]);
    let pair = outcome.manifest["spec"]["measure"]["pair"].clone();
    let voq = format!("voq.{}.{}", pair[0], pair[1]);
    let names = texts(&outcome, "queue_samples", "name");
    let of_pair = |column| -> Vec<f64> {
        let values = numbers(&outcome, "queue_samples", column);
        (0..values.len()).filter(|row| names[*row] == voq).map(|row| values[row]).collect()
    };
    let lengths: Vec<f64> = (0..names.len())
        .filter(|row| names[*row] == voq)
        .map(|row| integers(&outcome, "queue_samples", "packets")[row] as f64)
        .collect();
    assert_eq!(of_pair("time_us")[..1200], *numbers(&outcome, "series", "time_us"));
    assert_eq!(lengths[..1200], *numbers(&outcome, "series", "voq_packets"));
    assert!(lengths.iter().any(|length| *length > 5.0));
    let watched = texts(&outcome, "queues", "name");
    assert_eq!(watched, ["voq.0.1", "voq.0.2"]);
    let (row, port) = (
        watched.iter().position(|name| *name == voq).expect("the pair's VOQ is rack 0's"),
        texts(&outcome, "ports", "name").iter().position(|name| *name == voq).expect("a VOQ is a port"),
    );
    assert_eq!(integers(&outcome, "queues", "packets")[row], integers(&outcome, "ports", "delivered")[port]);
    assert!(outcome.metric("queue_utilization_pct").is_none());
}

/// Two packets of 9000 B come 7.2 us apart to their VOQ, which the packet network serves at 10 Gb/s: none waits. Over a
/// packet network of 5 Gb/s the second one waits for half of the first.
#[test]
fn packets_wait_in_a_watched_voq() {
    let set: Set<'_> = &[("measure.queues", "[\"voq.0.1\"]")];
    let text = format!("{}{}", super::account::RACKS, super::account::flow(0, 1, 2 * 8948, "0s"));
    let waits = |rate| result(&text, &[set, &[("packet.rate", rate)]].concat());
    assert_eq!(numbers(&waits("10Gbps"), "queues", "wait_max_us"), [0.0]);
    let longest = numbers(&waits("5Gbps"), "queues", "wait_max_us")[0];
    assert!((longest - 7.2).abs() < 0.01, "{longest}");
}

/// Where routing is segregated a pair has two VOQs, each with its own packets.
#[test]
fn the_voqs_of_mice_are_watched_beside_those_of_elephants() {
    let set: Set<'_> = &[("segregation.elephant", "20kB"), ("measure.queues", "[\"*\"]"), ("warmup", "0s")];
    let text = format!("{}{}", super::account::RACKS, super::account::flow(0, 1, 200_000, "0s"));
    let outcome = result(&text, set);
    let (ports, delivered) = (texts(&outcome, "ports", "name"), integers(&outcome, "ports", "delivered"));
    let (watched, packets) = (texts(&outcome, "queues", "name"), integers(&outcome, "queues", "packets"));
    assert_eq!(watched.len(), 2 * 3 * 2);
    for (name, packets) in watched.iter().zip(packets) {
        let port = ports.iter().position(|port| port == name).expect("a VOQ is a port");
        assert_eq!(delivered[port], *packets, "{name}");
    }
    let of = |name: &str| packets[watched.iter().position(|watched| watched == name).expect("it is watched")];
    assert!(of("voq.0.1.mice") > 0 && of("voq.0.1") > 10);
}

#[test]
fn one_digest_for_one_experiment() {
    let digest = |set| result(PAIR, set).manifest["digest"].as_str().expect("a text").to_string();
    let first = digest(&[]);
    assert_eq!(first.len(), 16);
    assert_eq!(first, digest(&[]), "a repeat");
    assert_ne!(first, digest(&[("seed", "2")]), "another seed");
    // Measuring something else, or not measuring at all, is no other run.
    assert_eq!(first, digest(&[("warmup", "24ms"), ("measure.series", "7us")]));
    assert_eq!(first, digest(&[("measure.pair", "[2, 0]")]));
}

#[test]
fn results_stay_in_the_experiments_own_time() {
    let set: Set<'_> = &[("voq.small", "16"), ("duration", "57600us"), ("warmup", "14400us")];
    let scaled = [set, &[("time_scale", "20")]].concat();
    let outcome = result(PAIR, &scaled);
    assert_eq!(outcome.manifest["measured_us"], 43_200.0);
    let p99 = metric(&outcome, "p99_packet_us");
    assert!((p99 / 139.6 - 1.0).abs() < 0.02, "{p99} us");
    // An ACK takes the circuit (30 us) or the packet network (10 us) back, a packet at least the latter.
    let rtts = numbers(&outcome, "flows", "min_rtt_us");
    assert!(rtts.iter().all(|rtt| (40.0..100.0).contains(rtt)), "{rtts:?}");
}

#[test]
fn an_incast_completes_and_ends_the_run() {
    let outcome = result(INCAST, &[]);
    assert_eq!(outcome.manifest["finished"], true);
    assert_eq!(integers(&outcome, "flows", "bytes_received"), [1_000_000; 20]);
    // 20 MB of payload in segments of 1448 bytes at 10 Gb/s cannot take less, and takes little more.
    let least = 20.0 * (691.0 * 52.0 + 1e6) * 8.0 / 10e9;
    let last = metric(&outcome, "fct_last_s");
    assert!(last > least && last < least * 1.1, "{last} s of at least {least}");
    assert!((outcome.manifest["elapsed_us"].as_f64().expect("a number") * 1e-6 - last).abs() < 1e-9);
    let mut times = numbers(&outcome, "flows", "fct_us").to_vec();
    times.sort_by(f64::total_cmp);
    let quantiles = [metric(&outcome, "fct_p50_us"), metric(&outcome, "fct_p99_us"), metric(&outcome, "fct_max_us")];
    assert_eq!(quantiles, [times[9], times[19], times[19]]);
    assert!((metric(&outcome, "fct_mean_us") - times.iter().sum::<f64>() / 20.0).abs() < 1e-6);
    assert!(metric(&outcome, "marked_packets") > 0.0);
    assert!(outcome.metric("circuit_utilization_pct").is_none() && outcome.table("pairs").is_none());
}

#[test]
fn warnings_say_why_results_may_mislead() {
    let said = |text: &str, set: Set<'_>, part: &str| {
        let found = warnings(&result(text, set));
        assert!(found.iter().any(|warning| warning.contains(part)), "'{part}' is not among {found:?}");
    };
    assert_eq!(warnings(&result(PAIR, &[])), Vec::<String>::new());
    said(PAIR, &[("warmup", "4800us")], "warmup = 4800us is shorter than 3 weeks, 14400us");
    said(PAIR, &[("duration", "145ms")], "is not a whole number of weeks");
    said(PAIR, &[("measure.pair", "[2, 0]")], "the measured pair 2->0 had no data traffic");
    said(PAIR, &[("tcp.cc", "retcp")], "retcp flows get no signal of circuits: add [marks]");
    said(PAIR, &[("marks.advance", "0s")], "no flow uses the ECE marks of [marks]");
    said(PAIR, &[("tcp.cc", "dctcp")], "dctcp flows never see a mark: VOQs have no ECN threshold");
    said(PAIR, &[("voq.ecn_small", "10")], "no flow negotiates ECN");
    said(PAIR, &[("tcp.cc", "dctcp"), ("voq.ecn_small", "16")], "voq.ecn_small = 16 is never exceeded");
    said(PAIR, &[("tcp.receive_window", "20kB")], "flows ended with a congestion window at least as large");
    said(PAIR, &[("hosts.loss", "0.999")], "16 of 16 flows never had data acknowledged");
    said(PAIR, &[("flows.0.size", "1GB")], "16 of 16 flows of a given size were not complete");
    said(INCAST, &[("warmup", "40ms")], "nothing was measured");
}

/// A threshold of just what the queue holds causes a warning; one below it does not.
#[test]
fn thresholds_that_a_queue_never_reaches_are_told() {
    let said = |text: &str, set: Set<'_>| {
        let found =
            warnings(&result(text, &[set, &[("duration", "1ms"), ("warmup", "0s"), ("tcp.ecn", "true")]].concat()));
        found.into_iter().filter(|text| text.contains("is never exceeded")).collect::<Vec<_>>()
    };
    let red = |min: &'static str, more: Set<'static>| {
        said(PAIR, &[&[("voq.red.min", min), ("voq.red.max", "1GB")], more].concat())
    };
    let packets = |min: &'static str, more: Set<'static>| {
        said(PAIR, &[&[("voq.red.min", min), ("voq.red.max", "90")], more].concat())
    };
    assert_eq!(packets("16", &[]), ["voq.red.min = 16 is never exceeded: the queue holds 16 packets"]);
    assert_eq!(packets("15", &[]), Vec::<String>::new());
    let resized: Set<'_> = &[("voq.large", "50"), ("voq.advance", "10us")];
    assert_eq!(packets("16", resized), Vec::<String>::new(), "a large VOQ reaches it");
    assert_eq!(packets("50", resized), ["voq.red.min = 50 is never exceeded: the queue holds 50 packets"]);
    assert_eq!(red("153kB", &[]), ["voq.red.min = 153kB is never exceeded: the queue holds 16 packets of 9000 bytes"]);
    assert_eq!(red("152999B", &[]), Vec::<String>::new());
    let both = [("voq.ecn_large", "50"), ("voq.ecn_small", "15")];
    assert_eq!(
        said(PAIR, &[resized, &both].concat()),
        ["voq.ecn_large = 50 is never exceeded: the queue holds 50 packets"]
    );

    let star = |set: Set<'_>| said(STAR, &[&[("flows.0.from", "host1")], set].concat());
    let reported = |key: &str, holds: &str| [format!("{key} is never exceeded: the queue holds {holds}")];
    assert_eq!(star(&[("switch.queue", "100kB"), ("switch.ecn", "100kB")]), reported("switch.ecn = 100kB", "100kB"));
    assert_eq!(star(&[("switch.queue", "100kB"), ("switch.ecn", "99kB")]), Vec::<String>::new());
    assert_eq!(star(&[("switch.queue", "30"), ("switch.ecn", "30")]), reported("switch.ecn = 30", "30 packets"));
    let band = [("switch.red.min", "100kB"), ("switch.red.max", "300kB")];
    let star_red = |queue: &'static str| star(&[&band[..], &[("switch.queue", queue)]].concat());
    assert_eq!(star_red("100kB"), reported("switch.red.min = 100kB", "100kB"));
    assert_eq!(star_red("101kB"), Vec::<String>::new());
    // Ten wait and one is in service: 99 kB.
    assert_eq!(star_red("10"), reported("switch.red.min = 100kB", "10 packets of 9000 bytes"));
    assert_eq!(star_red("11"), Vec::<String>::new());
}

#[test]
fn a_run_can_be_watched_and_stopped() {
    let spec = read(PAIR, &[]);
    let mut seen = vec![];
    run(&spec, &[], &Files::default(), &mut |done| {
        seen.push(done.part);
        ControlFlow::Continue(())
    })
    .expect("a run that nobody stops ends");
    assert!(seen.is_sorted() && seen.len() > 20 && seen.last() == Some(&1.0), "{seen:?}");
    let stopped = run(&spec, &[], &Files::default(), &mut |done| {
        if done.part > 0.1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(LabError::Cancelled)));
}

#[test]
fn a_run_that_its_flows_end_has_done_as_much_as_they() {
    let spec = read(INCAST, &[("duration", "100s")]);
    let mut seen = vec![];
    let outcome = run(&spec, &[], &Files::default(), &mut |done| {
        seen.push(done.part);
        ControlFlow::Continue(())
    });
    outcome.expect("a run that nobody stops ends");
    assert!(seen.is_sorted() && seen.last() == Some(&1.0), "{seen:?}");
}

#[test]
fn the_manifest_holds_the_evidence() {
    let outcome = result(PAIR, &[("voq.small", "8")]);
    let manifest = &outcome.manifest;
    let count =
        |path: &str| manifest.pointer(path).and_then(serde_json::Value::as_u64).unwrap_or_else(|| panic!("{path}"));
    let parts = ["delivered", "dropped", "lost", "held"].map(|part| count(&format!("/conservation/{part}")));
    assert_eq!(count("/conservation/offered"), parts.iter().sum::<u64>());
    assert_eq!(manifest["spec"]["voq"]["small"], 8);
    assert_eq!(manifest["overrides"]["voq.small"], "8");
    assert_eq!(manifest["spec"]["tcp"]["rto_min"], "200ms");
    assert!(manifest["version"].as_str().expect("a text").starts_with(env!("CARGO_PKG_VERSION")));
    let hops: i64 = integers(&outcome, "ports", "packet_hops").iter().sum();
    assert_eq!(count("/counts/packet_hops"), hops as u64);
}
