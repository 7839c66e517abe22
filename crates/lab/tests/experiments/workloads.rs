//! Workloads: what a table expands to, that what is random has the distribution that it should, and what is measured.

use crate::{numbers, read, reported_at, result};
use firstlight_lab::spec::{Flow, TrafficEntry};
use firstlight_lab::{Column, Spec, inspect};
use firstlight_units::{Bytes, Rate, Span};
use proptest::prelude::*;
use std::collections::BTreeMap;

const ALL: &str = include_str!("../specs/workloads.toml");

/// A star with one workload.
fn star(hosts: usize, duration: &str, workload: &str) -> String {
    format!(
        "duration = \"{duration}\"\n[fabric]\nkind = \"star\"\nhosts = {hosts}\n[hosts]\nrate = \"10Gbps\"\ndelay = \
         \"1us\"\nmtu = \"1500B\"\n[[workload]]\n{workload}\n"
    )
}

fn of(spec: &Spec, workload: usize) -> Vec<&Flow> {
    spec.flows.iter().filter(|flow| flow.entry == TrafficEntry::Workload(workload)).collect()
}

fn ends(flows: &[&Flow]) -> Vec<(u16, u16)> {
    flows.iter().map(|flow| (flow.src.0, flow.dst.0)).collect()
}

#[test]
fn each_kind_comes_to_its_flows() {
    let spec = read(ALL, &[]);
    let names: Vec<_> = spec.workloads.iter().map(|w| (w.name.as_str(), w.kind.as_str(), w.flows, w.asked)).collect();
    let expected = [
        ("workload.0", "poisson", 40, Some(40)),
        ("shuffle", "permutation", 6, None),
        ("workload.2", "all_to_all", 30, None),
        ("workload.3", "incast", 9, Some(9)),
        ("workload.4", "staggered", 2, None),
        ("workload.5", "probe", 0, None),
        ("workload.6", "file", 3, None),
    ];
    assert_eq!(names, expected);
    assert!(of(&spec, 0).iter().all(|flow| flow.class == 2 && flow.size.is_some()));
    let shuffle = of(&spec, 1);
    assert!(shuffle.iter().all(|f| f.size == Some(Bytes::new(100_000)) && f.jitter == Span::from_us(10)));
    assert!(of(&spec, 2).iter().all(|flow| flow.cc.name() == "newreno"));
    let incast = of(&spec, 3);
    let starts: Vec<_> = incast.iter().map(|flow| flow.start).collect();
    let round = |k: u64| Span::from_ms(4 * k);
    assert_eq!(starts, [0, 0, 0, 1, 1, 1, 2, 2, 2].map(round));
    assert!(incast.iter().all(|flow| flow.dst.0 == 0 && flow.src.0 != 0));
    let staggered = of(&spec, 4);
    let times: Vec<_> = staggered.iter().map(|flow| (flow.start, flow.stop, flow.size)).collect();
    let ms = Span::from_ms;
    assert_eq!(times, [(ms(0), Some(ms(5)), None), (ms(3), Some(ms(8)), None)]);
    assert_eq!(ends(&staggered), [(0, 5), (1, 5)]);
    let [probe] = spec.probes.as_slice() else { panic!("one probe") };
    assert_eq!((probe.src.0, probe.dst.0, probe.packet, probe.count), (1, 0, Bytes::new(64), Some(10)));
    assert_eq!(probe.interval, Span::from_us(512));
    let listed = of(&spec, 6);
    assert_eq!(ends(&listed), [(2, 1), (3, 1), (0, 5)]);
    assert_eq!(listed[1].start, Span::from_us(1100) + Span::from_ns(1));
    assert_eq!(listed.iter().map(|flow| flow.class).collect::<Vec<_>>(), [3, 0, 1]);
    let seen = inspect(&spec);
    assert_eq!(seen["workloads"][0]["mean_size_bytes"], 120_420.75);
    assert_eq!(seen["probes"][0]["interval_us"], 512.0);
    assert!(seen["spec"]["workload"][5].get("packet").is_none(), "64B where it is not given");
    assert!(seen["spec"]["workload"][5].get("load").is_none() && seen["spec"]["workload"][1].get("from").is_none());
}

#[test]
fn files_of_the_other_forms() {
    let matrix = read(&star(6, "1ms", "kind = \"file\"\nfile = \"tests/specs/matrix.cm\""), &[]);
    let flows = of(&matrix, 0);
    assert_eq!(ends(&flows), [(0, 1), (1, 2), (2, 3), (3, 0)]);
    assert_eq!((flows[1].start, flows[1].size, flows[3].size), (Span::from_us(1), Some(Bytes::new(20_000)), None));
    let sized = "kind = \"poisson\"\nload = 0.5\nflows = 500\nsizes = \"tests/specs/sizes.txt\"\nunit = \"1460B\"";
    let sizes = read(&star(6, "1s", sized), &[]);
    assert_eq!(sizes.workloads[0].mean_size, Some(12.5 * 1460.0));
    assert!(sizes.flows.iter().all(|flow| (14_600..=29_200).contains(&flow.size.unwrap().get())));
    let first = read(&star(6, "1ms", "kind = \"file\"\nfile = \"tests/specs/flows.txt\"\nflows = 2\nclass = 5"), &[]);
    assert_eq!(first.flows.iter().map(|flow| flow.class).collect::<Vec<_>>(), [5, 5]);
}

#[test]
fn a_seed_decides_and_one_more_workload_changes_no_other() {
    let starts = |spec: &Spec| of(spec, 0).iter().map(|f| (f.start, f.src, f.dst, f.size)).collect::<Vec<_>>();
    let spec = read(ALL, &[]);
    assert_eq!(starts(&spec), starts(&read(ALL, &[])));
    assert_ne!(starts(&spec), starts(&read(ALL, &[("seed", "2")])));
    let more = format!("{ALL}\n[[workload]]\nkind = \"poisson\"\nload = 0.5\nsize = \"1kB\"\nflows = 7\n");
    assert_eq!(starts(&spec), starts(&read(&more, &[])));
    let twice = read(
        &star(4, "1s", &["kind = \"poisson\"\nload = 0.1\nsize = \"1kB\"\nflows = 9"; 2].join("\n[[workload]]\n")),
        &[],
    );
    let moments = |workload| of(&twice, workload).iter().map(|flow| flow.start).collect::<Vec<_>>();
    assert_ne!(moments(0), moments(1), "two of a kind are independent");
}

/// Flows start at load x hosts x rate / mean size: of n flows the time has mean n and deviation sqrt(n), in gaps.
#[test]
fn a_poisson_workload_offers_its_load() {
    for (load, sizes, hosts) in [(0.15, "web-search", 192usize), (0.6, "storage", 16), (1.5, "data-mining", 2)] {
        let text = format!("kind = \"poisson\"\nload = {load}\nsizes = \"{sizes}\"\nflows = 20000");
        let spec = read(&star(hosts, "1000s", &text), &[]);
        let (last, mean) = (spec.flows[19_999].start.as_secs_f64(), spec.workloads[0].mean_size.unwrap());
        let found = 20_000.0 * mean * 8.0 / (last * hosts as f64 * 10e9);
        assert!((found / load - 1.0).abs() < 4.0 / 20_000f64.sqrt(), "{sizes}: {found} instead of {load}");
    }
    // The number of flows that start before the end of the run has a Poisson distribution, here of mean 15000.
    let cut = read(&star(4, "10ms", "kind = \"poisson\"\nload = 0.3\nsize = \"1kB\""), &[]);
    assert!((cut.flows.len() as f64 - 15_000.0).abs() < 4.0 * 15_000f64.sqrt(), "{}", cut.flows.len());
    assert!(cut.flows.iter().all(|flow| flow.start < Span::from_ms(10)));
}

/// Chi squared over the 30 ordered pairs of 6 hosts, 29 degrees of freedom: 58.3 is exceeded once in a thousand.
#[test]
fn every_pair_is_as_likely_as_any_other() {
    let spec = read(&star(6, "1000s", "kind = \"poisson\"\nload = 0.5\nsize = \"1kB\"\nflows = 30000"), &[]);
    let mut counts: BTreeMap<(u16, u16), f64> = BTreeMap::new();
    spec.flows.iter().for_each(|flow| *counts.entry((flow.src.0, flow.dst.0)).or_default() += 1.0);
    let chi: f64 = counts.values().map(|n| (n - 1000.0) * (n - 1000.0) / 1000.0).sum();
    assert!(counts.len() == 30 && chi < 58.3, "{chi} over {counts:?}");
}

#[test]
fn senders_of_an_incast_are_drawn_anew_or_the_first() {
    let text = "kind = \"incast\"\nto = \"host2\"\nsenders = 2\nperiod = \"1ms\"\nsize = \"1kB\"";
    let fixed = read(&star(6, "5ms", text), &[]);
    assert_eq!(ends(&of(&fixed, 0)), [(0, 2), (1, 2)].repeat(5));
    let drawn = read(&star(6, "1s", &format!("{text}\nrandom = true")), &[]);
    let mut counts = [0u32; 6];
    for round in of(&drawn, 0).chunks(2) {
        assert_ne!(round[0].src, round[1].src);
        round.iter().for_each(|flow| counts[flow.src.index()] += 1);
    }
    // 2000 draws over 5 hosts, two of them different: deviation sqrt(1000 * 0.4 * 0.6) = 15.5.
    assert!(counts[2] == 0 && [0, 1, 3, 4, 5].iter().all(|&h| (338..=462).contains(&counts[h])), "{counts:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_permutation_has_no_fixed_point(hosts in 2usize..40, seed in 0u32..1000) {
        let spec = read(&star(hosts, "1ms", "kind = \"permutation\""), &[("seed", &seed.to_string())]);
        let mut to: Vec<_> = spec.flows.iter().map(|flow| flow.dst.index()).collect();
        prop_assert!(spec.flows.iter().all(|flow| flow.src != flow.dst));
        to.sort_unstable();
        prop_assert_eq!(to, (0..hosts).collect::<Vec<_>>());
    }
}

/// All nine derangements of four hosts come equally often: 8 degrees of freedom, 26.1 is exceeded once in a thousand.
#[test]
fn derangements_are_equally_likely() {
    let mut counts: BTreeMap<Vec<u16>, f64> = BTreeMap::new();
    for seed in 0..1800 {
        let spec = read(&star(4, "1ms", "kind = \"permutation\""), &[("seed", &seed.to_string())]);
        *counts.entry(spec.flows.iter().map(|flow| flow.dst.0).collect()).or_default() += 1.0;
    }
    let chi: f64 = counts.values().map(|n| (n - 200.0) * (n - 200.0) / 200.0).sum();
    assert!(counts.len() == 9 && chi < 26.1, "{chi} over {counts:?}");
}

/// A flow alone whose window is not its limit takes the least time that there is, to the picosecond. Beyond the 64 KiB
/// that a SYN can offer, its sender cuts a segment where the window ends: that is one header more, and a shorter last
/// packet.
#[test]
fn a_lone_flow_has_slowdown_one() {
    for size in ["1B", "1448B", "1449B", "50kB", "100kB", "1MB"] {
        for receive in ["10Gbps", "4Gbps", "25Gbps"] {
            let flow = "kind = \"incast\"\nto = \"host1\"\nstart = \"3us\"\nsize = \"SIZE\"".replace("SIZE", size);
            let text = star(2, "10s", &flow).replace("delay", &format!("receive_rate = \"{receive}\"\ndelay"));
            let slowdown =
                numbers(&result(&format!("{text}[tcp]\ninitial_window = 1000\n"), &[]), "flows", "slowdown")[0];
            let allowed = if matches!(size, "100kB" | "1MB") { 1e-3 } else { 1e-9 };
            assert!((slowdown - 1.0).abs() < allowed, "{size} to {receive}: {slowdown}");
        }
    }
    let far = star(2, "1s", "kind = \"incast\"\nto = \"host1\"\nsize = \"100kB\"").replace("1us", "20us");
    let limited = result(&far, &[]);
    assert!(numbers(&limited, "flows", "slowdown")[0] > 1.1, "ten packets do not fill the round trip");
}

#[test]
fn completion_times_by_workload_and_size() {
    let two = "kind = \"permutation\"\nsize = \"9999B\"\nname = \"small\"\n[[workload]]\nkind = \"permutation\"\nsize \
               = \"10kB\"\nstart = \"1ms\"\n[[flows]]\nfrom = \"host0\"\nto = \"host1\"\nsize = \"10MB\"\nstart = \
               \"2ms\"";
    let outcome = result(&star(8, "1s", two), &[]);
    let text = |table: &str, column: &str| match outcome.table(table).and_then(|table| table.column(column)) {
        Some(Column::Text(values)) => values.clone(),
        other => panic!("{table}.{column} is {other:?}"),
    };
    assert_eq!(text("fct", "workload"), ["flows", "flows", "small", "small", "workload.1", "workload.1"]);
    assert_eq!(text("fct", "group"), ["all", "from 10MB", "all", "0B to 10kB", "all", "10kB to 100kB"]);
    assert_eq!(text("flows", "workload")[..2], ["flows", "small"]);
    assert_eq!(text("flows", "entry")[8..10], ["workload.0", "workload.1"]);
    let times = numbers(&outcome, "flows", "fct_us")[1..9].to_vec();
    let mean = times.iter().sum::<f64>() / 8.0;
    let deviation = (times.iter().map(|t| (t - mean) * (t - mean)).sum::<f64>() / 7.0).sqrt();
    let row = |column| numbers(&outcome, "fct", column)[2];
    assert!((row("mean_us") - mean).abs() < 1e-9);
    assert!((row("mean_high_us") - mean - 1.96 * deviation / 8f64.sqrt()).abs() < 1e-9);
    assert!((row("mean_us") * 2.0 - row("mean_high_us") - row("mean_low_us")).abs() < 1e-9);
    assert_eq!(row("p99_us"), times.iter().copied().fold(0.0, f64::max));
    assert!(row("p99_high_us").is_nan() && row("slowdown_mean") >= 1.0);
    let regrouped = result(&star(8, "1s", two), &[("measure.fct_groups", "[]")]);
    assert_eq!(numbers(&regrouped, "fct", "mean_us").len(), 6, "all, and from 0");
}

#[test]
fn a_workload_that_is_cut_short_is_said() {
    let text = star(4, "1ms", "kind = \"poisson\"\nload = 0.3\nsize = \"10kB\"\nflows = 100000");
    let notes = inspect(&read(&text, &[]))["notes"].to_string();
    assert!(notes.contains("flows instead of 100000"), "{notes}");
    let far = star(4, "1ms", "kind = \"poisson\"\nload = 0.000001\nsize = \"1GB\"");
    assert!(inspect(&read(&far, &[]))["notes"].to_string().contains("has no flow"));
}

/// The files of a run besides its text: their names in the experiment, and their paths.
#[test]
fn files_that_were_read_are_told() {
    let more = "kind = \"file\"\nfile = \"specs/flows.txt\"\n[[workload]]\nkind = \"poisson\"\nload = 0.1\nsizes = \
                \"specs/sizes.txt\"\n[[workload]]\nkind = \"poisson\"\nload = 0.1\nsizes = \"hadoop\"";
    let spec = Spec::read(&star(6, "1ms", more), "tests/x.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let expected = ["flows", "sizes"].map(|name| (format!("specs/{name}.txt"), format!("tests/specs/{name}.txt")));
    assert_eq!(spec.inputs, expected.into());
    let network = read(
        "duration = \"1ms\"\n[fabric]\nkind = \"graph\"\nfile = \"tests/specs/topology.txt\"\nformat = \"ns3\"\n\
                        [[flows]]\nfrom = \"host0\"\nto = \"host1\"",
        &[],
    );
    assert_eq!(inspect(&network)["inputs"].to_string(), "{\"tests/specs/topology.txt\":\"tests/specs/topology.txt\"}");
    assert!(
        inspect(&read(&star(2, "1ms", "kind = \"permutation\""), &[]))["inputs"]
            .as_object()
            .is_some_and(|inputs| inputs.is_empty())
    );
}

#[test]
fn a_wrong_file_is_named_at_its_place() {
    let file = |line: &str| star(2, "1ms", &format!("kind = \"file\"\nfile = \"{line}\""));
    assert_eq!(
        reported_at("x.toml", &file("tests/specs/flows.txt")),
        "tests/specs/flows.txt:2:1: workload.0.file: expected the sending host, found '2': write a whole number from 0 \
         to 1"
    );
    assert!(
        reported_at("x.toml", &file("none.txt")).starts_with("x.toml:11:8: workload.0.file: cannot read none.txt: ")
    );
    let late = star(6, "100us", "kind = \"file\"\nfile = \"tests/specs/flows.txt\"");
    let expected = "tests/specs/flows.txt:2:17: workload.0.file: the flow would start at 100us, after the run's end: \
                    use a longer duration, or fewer flows";
    assert_eq!(reported_at("x.toml", &late), expected);
}

#[test]
fn the_hosts_link_decides_what_a_load_is() {
    let text = star(4, "1000s", "kind = \"poisson\"\nload = 0.3\nsize = \"10kB\"\nflows = 10");
    let last = |rate: &str| read(&text, &[("hosts.rate", rate)]).flows[9].start.as_ps() as f64;
    assert_eq!(Rate::from_gbps(40).as_bps(), 4 * Rate::from_gbps(10).as_bps());
    assert!((last("10Gbps") / last("40Gbps") - 4.0).abs() < 1e-6);
}

/// Racks of hosts.
fn racks(racks: usize, hosts: usize, duration: &str, workload: &str) -> String {
    format!(
        "duration = \"{duration}\"\n[fabric]\nkind = \"leaf_spine\"\nracks = {racks}\nhosts_per_rack = {hosts}\nspines \
         = 1\n[hosts]\nrate = \"10Gbps\"\n[links]\nrate = \"10Gbps\"\n[[workload]]\n{workload}\n"
    )
}

#[test]
fn a_ring_of_big_flows_among_small_ones() {
    let text = "kind = \"ring\"\nbig = \"1MB\"\nsmall = \"10kB\"";
    let big = |spec: &Spec| -> Vec<(u16, u16)> {
        let (big, small): (Vec<&Flow>, Vec<&Flow>) =
            spec.flows.iter().partition(|f| f.size == Some(Bytes::new(1_000_000)));
        assert!(small.iter().all(|flow| flow.size == Some(Bytes::new(10_000))));
        big.iter().map(|flow| (flow.src.0 / 3, flow.dst.0 / 3)).collect()
    };
    let one = read(&racks(4, 3, "1s", text), &[]);
    assert_eq!((one.flows.len(), big(&one)), (12, vec![(0, 1), (1, 2), (2, 3), (3, 0)]));
    let mut pairs: Vec<_> = one.flows.iter().map(|flow| (flow.src.0 / 3, flow.dst.0 / 3)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    assert!(pairs.len() == 12 && pairs.iter().all(|(src, dst)| src != dst), "every pair of racks once");
    // Three other racks, three hosts: each host sends once and receives once.
    for end in [|flow: &Flow| flow.src.0, |flow: &Flow| flow.dst.0] {
        let mut hosts: Vec<u16> = one.flows.iter().map(end).collect();
        hosts.sort_unstable();
        assert_eq!(hosts, (0..12).collect::<Vec<_>>());
    }
    let two = read(&racks(5, 3, "1s", &format!("{text}\nrings = 2")), &[]);
    let next = |distance: u16| (0..5).map(move |rack| (rack, (rack + distance) % 5));
    assert_eq!((two.flows.len(), big(&two)), (20, next(1).chain(next(2)).collect()));
    let lone = read(&racks(4, 3, "1s", "kind = \"ring\"\nbig = \"1MB\""), &[]);
    assert_eq!(lone.flows.len(), 4);
    // Hosts make the ring where there are no racks.
    assert_eq!(ends(&of(&read(&star(3, "1s", "kind = \"ring\"\nbig = \"1MB\""), &[]), 0)), [(0, 1), (1, 2), (2, 0)]);
}

#[test]
fn a_ring_comes_in_rounds_of_several_flows() {
    let text =
        "kind = \"ring\"\nbig = \"1MB\"\nsmall = \"10kB\"\nper_pair = 2\nperiod = \"3ms\"\nrounds = 5\nstart = \"1ms\"";
    let spec = read(&racks(3, 2, "10ms", text), &[]);
    let starts: Vec<Span> = spec.flows.iter().map(|flow| flow.start).collect();
    assert_eq!(starts, [1, 4, 7].map(|ms| [Span::from_ms(ms); 12]).concat());
    assert_eq!((spec.workloads[0].flows, spec.workloads[0].asked), (36, Some(60)), "two rounds are too late");
    let wrong = |text: &str| reported_at("x.toml", &racks(2, 2, "10ms", text));
    assert!(wrong("kind = \"ring\"\nbig = \"1MB\"\nrings = 2").ends_with(
        "workload.0.rings: 2 racks or hosts make no ring of distance 2: use fewer rings or a larger fabric"
    ));
    assert!(wrong("kind = \"ring\"").contains("workload.0.big: missing: write for example big = "));
    let many = "kind = \"ring\"\nbig = \"1MB\"\nper_pair = 1000000";
    assert!(wrong(many).contains("workload.0.per_pair: 1 rounds of 2000000 flows are too many"), "{}", wrong(many));
}

/// The matrix 0 0 0.5 / 0.25 0 0 / 0 2 0, in units of 800 Mb/s: 100 B a microsecond.
#[test]
fn a_demand_matrix_adds_up() {
    let text =
        "kind = \"demand\"\nfile = \"tests/specs/demand.csv\"\nrate = \"800Mbps\"\nsize = \"1kB\"\nstart = \"1ms\"";
    let spec = read(&racks(3, 2, "11ms", text), &[]);
    let mut sent: BTreeMap<(u16, u16), Vec<&Flow>> = BTreeMap::new();
    spec.flows.iter().for_each(|flow| sent.entry((flow.src.0 / 2, flow.dst.0 / 2)).or_default().push(flow));
    // 1 kB each 20, 40 and 5 us, for 10 ms.
    let expected = [((0, 2), 500, 20), ((1, 0), 250, 40), ((2, 1), 2000, 5)];
    assert_eq!(
        sent.iter().map(|(pair, flows)| (*pair, flows.len())).collect::<Vec<_>>(),
        expected.map(|(p, n, _)| (p, n))
    );
    for (pair, _, gap) in expected {
        let flows = &sent[&pair];
        assert!(flows[0].start >= Span::from_ms(1) && flows[0].start < Span::from_ms(1) + Span::from_us(gap));
        assert!(flows.windows(2).all(|pair| pair[1].start - pair[0].start == Span::from_us(gap)));
        assert!(flows.windows(2).all(|pair| pair[0].src != pair[1].src && pair[0].dst != pair[1].dst), "by turns");
    }
    assert!(sent[&(0, 2)][0].start != sent[&(1, 0)][0].start);
    // On a star of three hosts the same is of hosts; of four it is too small.
    assert_eq!(read(&star(3, "11ms", text), &[]).flows.len(), 2750);
    let expected = "tests/specs/demand.csv:1:7: workload.0.file: the row has 3 entries: the fabric has 4 receivers";
    assert_eq!(reported_at("x.toml", &star(4, "11ms", text)), expected);
    let fast = reported_at("x.toml", &star(3, "11ms", &text.replace("800Mbps", "8Tbps")));
    assert!(fast.contains("workload.0.size: more than 1000000 flows would start"), "{fast}");
    assert!(reported_at("x.toml", &star(3, "11ms", "kind = \"demand\"")).contains("workload.0.file: missing"));
}
