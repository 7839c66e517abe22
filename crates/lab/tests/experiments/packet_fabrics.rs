//! Packet fabrics from their files to their results.

use crate::{integers, metric, numbers, read, reported_at, result};
use firstlight_lab::spec::Network;
use firstlight_lab::{Spec, inspect};

/// The keys of each kind of fabric, and how many hosts it has.
const KINDS: [(&str, usize); 6] = [
    ("kind = \"star\"\nhosts = 3", 3),
    ("kind = \"dumbbell\"\nleft = 2\nright = 3", 5),
    ("kind = \"leaf_spine\"\nracks = 3\nhosts_per_rack = 2\nspines = 2", 6),
    ("kind = \"fat_tree\"\nk = 4", 16),
    ("kind = \"three_tier\"\nracks = 32\nhosts_per_rack = 6\naggregations = 16\ncores = 8", 192),
    ("kind = \"graph\"\nfile = \"tests/specs/topology.txt\"\nformat = \"ns3\"", 4),
];

/// An experiment on a fabric, with links of 10 Gb/s to hosts and of 40 Gb/s between switches, each of 1 us.
fn on(fabric: &str, more: &str) -> String {
    let file = fabric.contains("graph");
    let links = if fabric.contains("star") || file { "" } else { "[links]\nrate = \"40Gbps\"\n" };
    let hosts = if file { "" } else { "rate = \"10Gbps\"\ndelay = \"1us\"\n" };
    format!(
        "duration = \"20ms\"\n[fabric]\n{fabric}\n[hosts]\n{hosts}mtu = \"1500B\"\n{links}[tcp]\ntick = \"0s\"\n\
         {more}\n"
    )
}

/// Hosts whose stacks take longer than a packet does on its way.
const STACKS: [(&str, &str); 2] = [("hosts.send_delay", "3us"), ("hosts.receive_delay", "50us")];

/// Ten segments are the initial window: the flow never waits for anything.
#[test]
fn a_lone_flow_takes_the_ideal_time_on_each_fabric() {
    for (fabric, hosts) in KINDS {
        for (from, to) in [(0, hosts - 1), (hosts - 1, 0), (1, 0)] {
            let flow =
                format!("[[flows]]\nfrom = \"host{from}\"\nto = \"host{to}\"\nsize = \"14480B\"\nstart = \"50us\"");
            for set in [&[][..], &[("fabric.spray", "true")], &STACKS] {
                let set = if hosts == 3 && set == [("fabric.spray", "true")] { &[] } else { set };
                let outcome = result(&on(fabric, &flow), set);
                let slowdown = numbers(&outcome, "flows", "slowdown")[0];
                assert!((slowdown - 1.0).abs() < 1e-9, "{fabric}, {from} to {to}: {slowdown}");
            }
        }
    }
}

/// By hand, on the leaf-spine: SYN and SYN-ACK of 60 B over two links of 10 Gb/s, two of 40 Gb/s and 4 us each, then 52
/// B and ten packets of 1500 B on the first link, the last of which crosses three more.
#[test]
fn the_ideal_time_by_hand() {
    let flow = "[[flows]]\nfrom = \"host0\"\nto = \"host5\"\nsize = \"14480B\"";
    let outcome = result(&on(KINDS[2].0, flow), &[]);
    let handshake = 2.0 * (2.0 * 0.048 + 2.0 * 0.012 + 4.0);
    let data = (52.0 + 15_000.0) * 0.8e-3 + 2.0 * 0.3 + 1.2 + 4.0;
    assert!((numbers(&outcome, "flows", "fct_us")[0] - handshake - data).abs() < 1e-6);
    assert!((numbers(&outcome, "flows", "established_us")[0] - handshake).abs() < 1e-6);
    // Three packets in turn wait for both stacks: it takes that much longer, and is no slower for it.
    let behind_stacks = result(&on(KINDS[2].0, flow), &STACKS);
    let time = numbers(&behind_stacks, "flows", "fct_us")[0];
    assert!((time - handshake - data - 3.0 * 53.0).abs() < 1e-6, "{time}");
    assert!((numbers(&behind_stacks, "flows", "slowdown")[0] - 1.0).abs() < 1e-9);
}

/// By hand, as above: each packet takes 38 bytes more of each link, and a bus that is no link takes none.
#[test]
fn ethernet_framing_takes_38_bytes_of_each_link() {
    let flow = "[[flows]]\nfrom = \"host0\"\nto = \"host5\"\nsize = \"14480B\"\n[measure]\nqueues = [\"host5.port\"]";
    let text = on(KINDS[2].0, flow);
    for more in ["", "[pfc]", "[[switch.classes]]\n[[switch.classes]]"] {
        let outcome = result(&format!("{text}{more}"), &[("hosts.framing", "ethernet")]);
        let handshake = 2.0 * (2.0 * 0.8e-3 * 98.0 + 2.0 * 0.2e-3 * 98.0 + 4.0);
        let data = (90.0 + 15_380.0) * 0.8e-3 + 2.0 * 0.2e-3 * 1538.0 + 0.8e-3 * 1538.0 + 4.0;
        let time = numbers(&outcome, "flows", "fct_us")[0];
        assert!((time - handshake - data).abs() < 1e-6, "{more}: {time}, not {}", handshake + data);
        assert!((numbers(&outcome, "flows", "slowdown")[0] - 1.0).abs() < 1e-9, "{more}");
        // SYN, ACK, ten segments, FIN and the last ACK: 14 packets of 60 + 12 * 52 + 14,480 + 52 bytes or so.
        let (packets, bytes) = (integers(&outcome, "queues", "packets")[0], integers(&outcome, "queues", "bytes")[0]);
        let elapsed = outcome.manifest["elapsed_us"].as_f64().expect("a time");
        let part = (bytes + 38 * packets) as f64 * 0.8e-3 / elapsed;
        assert!((numbers(&outcome, "queues", "utilization")[0] - part).abs() < 1e-12);
    }
    let bus = ("adapter.drain", "5Gbps");
    let [plain, framed] = ["ip", "ethernet"].map(|framing| {
        let outcome = result(&text, &[("hosts.framing", framing), bus, ("duration", "1ms")]);
        assert!((numbers(&outcome, "flows", "slowdown")[0] - 1.0).abs() < 1e-9, "{framing}");
        numbers(&outcome, "flows", "established_us")[0]
    });
    assert!((framed - plain - 2.0 * 38.0 * (2.0 * 0.8e-3 + 2.0 * 0.2e-3)).abs() < 1e-6, "the bus carries no frames");
    let reported = inspect(&read(&text, &[("hosts.framing", "ethernet")]));
    assert_eq!(
        (&reported["framing"]["kind"], &reported["framing"]["bytes_per_packet"]),
        (&"ethernet".into(), &38.into())
    );
    assert_eq!(reported["bdp"]["host0->last"]["packet_us"].as_f64(), Some(1.2304));
    assert_eq!(
        reported_at("x.toml", &text.replace("[hosts]", "[hosts]\nframing = \"vlan\"")),
        "x.toml:8:11: hosts.framing: 'vlan' is not one of ip, ethernet"
    );
}

/// Without circuits a SYN takes four links: the host's, the uplink, the downlink, and the switch's to the host.
#[test]
fn ethernet_framing_takes_38_bytes_of_each_link_between_racks() {
    let text = "duration = \"1ms\"\n[fabric]\nkind = \"hybrid\"\nracks = 2\nhosts_per_rack = 1\n[hosts]\n\
                rate = \"10Gbps\"\nmtu = \"1500B\"\n[packet]\nrate = \"10Gbps\"\ndelay = \"5us\"\n[circuit]\n\
                rate = \"80Gbps\"\ndelay = \"30us\"\n[schedule]\nkind = \"list\"\nday = \"400us\"\nnight = \"1us\"\n\
                [[schedule.days]]\nmatching = []\n[tcp]\ntick = \"0s\"\n[[flows]]\nfrom = \"host0\"\n\
                to = \"host1\"\nsize = \"1kB\"\n";
    for more in ["[pfc]", "[voq]\nsmall = 16"] {
        let established = |framing: &str| {
            let outcome = result(&format!("{text}{more}"), &[("hosts.framing", framing)]);
            numbers(&outcome, "flows", "established_us")[0]
        };
        let by_hand = 2.0 * 4.0 * 60.0 * 0.8e-3 + 4.0 * 5.0;
        assert!((established("ip") - by_hand).abs() < 1e-6, "{more}: {}", established("ip"));
        let framed = by_hand + 2.0 * 4.0 * 38.0 * 0.8e-3;
        assert!((established("ethernet") - framed).abs() < 1e-6, "{more}: {}", established("ethernet"));
    }
}

#[test]
fn a_connection_without_an_answer_is_never_established() {
    let flow = "[[flows]]\nfrom = \"host0\"\nto = \"host1\"\nsize = \"1kB\"\nstart = \"9us\"";
    let outcome = result(&on(KINDS[0].0, flow), &[("duration", "10us")]);
    assert!(numbers(&outcome, "flows", "established_us")[0].is_nan());
}

#[test]
fn inspection_tells_the_shape() {
    for (fabric, hosts) in KINDS {
        let reported = inspect(&read(&on(fabric, "[[flows]]\nfrom = \"host0\"\nto = \"host1\""), &[]));
        assert_eq!(
            (reported["hosts"].as_u64(), reported["fabric"]["hosts"].as_u64()),
            (Some(hosts as u64), Some(hosts as u64))
        );
    }
    let watched =
        "[[flows]]\nfrom = \"host0\"\nto = \"rack2\"\n[measure]\nqueues = [\"leaf0->spine1\"]\nqueue_samples = \"5us\"";
    let reported = inspect(&read(&on(KINDS[2].0, watched), &[]));
    assert_eq!(
        (reported["fabric"]["switches"]["leaf"].as_u64(), reported["fabric"]["links"].as_u64()),
        (Some(3), Some(12))
    );
    assert_eq!(reported["rates"]["leaf->spine"][0]["rate"], "40Gbps");
    assert_eq!(reported["bdp"]["host0->last"]["bytes"].as_u64(), Some(10_000), "8 us at 10 Gb/s");
    assert_eq!(
        (&reported["measure"]["queues"][0], &reported["measure"]["queue_samples_us"]),
        (&"leaf0->spine1".into(), &5.0.into())
    );
}

/// The file's nodes 0 and 3 are switches: its hosts 1, 2, 4 and 5 are host0 to host3.
#[test]
fn lists_of_flows_use_the_numbers_of_the_networks_file() {
    let listed = on(KINDS[5].0, "[[workload]]\nkind = \"file\"\nfile = \"tests/specs/tree-flows.txt\"");
    let spec = read(&listed, &[]);
    let ends: Vec<_> = spec.flows.iter().map(|flow| (flow.src.0, flow.dst.0)).collect();
    assert_eq!(ends, [(0, 2), (3, 1)]);
    assert!(
        spec.notes.iter().any(|note| note.contains("Lists of flows are read with the file's numbers")),
        "{:?}",
        spec.notes
    );
    let folder = tempfile::tempdir().expect("a folder");
    for (list, expected) in [
        (
            "1\n1 3 3 100 9 0\n",
            "2:3: workload.0.file: expected the receiving host, found '3', which is no host of the network's file: use \
             one of its hosts",
        ),
        (
            "1\n0 1 3 100 9 0\n",
            "2:1: workload.0.file: expected the sending host, found '0': write a whole number from 1 to 5",
        ),
    ] {
        let path = folder.path().join("flows.txt");
        std::fs::write(&path, list).expect("a file");
        let text = listed.replace("tests/specs/tree-flows.txt", path.to_str().expect("a text"));
        let error = reported_at("x.toml", &text);
        assert!(error.ends_with(expected), "{error}");
    }
}

/// The last host's link is a tenth of the others'.
#[test]
fn load_and_parameters_follow_each_hosts_own_rate() {
    let poisson = |from: &str| {
        let workload =
            format!("[[workload]]\nkind = \"poisson\"\nload = 0.5\nsize = \"1kB\"\nfrom = \"{from}\"\ncc = \"dx\"");
        read(&on(KINDS[5].0, &workload), &[])
    };
    let (fast, slow) = (poisson("host0").flows.len() as f64, poisson("host3").flows.len() as f64);
    // 0.5 x 10 Gb/s / 8 kb in 20 ms.
    assert!((fast / 12_500.0 - 1.0).abs() < 0.05 && (slow / 1250.0 - 1.0).abs() < 0.15, "{fast} {slow}");
    let headroom = |spec: &Spec| format!("{:?}", spec.flows[0].cc);
    assert_ne!(headroom(&poisson("host0")), headroom(&poisson("host3")), "a packet's time at the sender's rate");
    let Network::Graph(graph) = poisson("host0").network else { panic!("a packet fabric") };
    assert_eq!(graph.topology.hosts(), 4);
}

#[test]
fn probes_tell_the_empty_path() {
    let probe = "[[workload]]\nkind = \"probe\"\nfrom = \"host0\"\nto = \"host2\"\ninterval = \"100us\"\npacket = \
                 \"1000B\"\ncount = 50\n[measure]\nprobes = true";
    let set = [("hosts.clock_drift_ppm", "0"), ("hosts.send_delay", "3us"), ("hosts.receive_delay", "5us")];
    let outcome = result(&on(KINDS[0].0, probe), &set);
    assert_eq!((integers(&outcome, "probes", "sent")[0], integers(&outcome, "probes", "received")[0]), (50, 50));
    let latencies = numbers(&outcome, "probe_packets", "latency_us");
    // Twice 0.8 us and 1 us, and the stacks.
    assert!(latencies.len() == 50 && latencies.iter().all(|us| (us - 11.6).abs() < 1e-9), "{latencies:?}");
    let (sent, received) = (
        integers(&outcome, "probe_packets", "sent_clock_ns"),
        integers(&outcome, "probe_packets", "received_clock_ns"),
    );
    let differences: Vec<u32> = received.iter().zip(sent).map(|(b, a)| (*b as u32).wrapping_sub(*a as u32)).collect();
    assert!(differences.iter().all(|ns| ns.abs_diff(differences[0]) <= 1), "clocks stand off: {differences:?}");
    assert_eq!(numbers(&outcome, "probe_packets", "sent_us")[..3], [0.0, 100.0, 200.0]);
    assert_eq!(outcome.manifest["elapsed_us"], 20_000.0);
}

#[test]
fn staggered_flows_stop_and_throughput_adds_up() {
    let staggered = "[[workload]]\nkind = \"staggered\"\nto = \"host4\"\nflows = 3\ninterval = \"4ms\"\nhold = \
                     \"8ms\"\n[switch]\nqueue = 100\n[measure]\nthroughput = \"1ms\"\nqueues = [\"host4.port\"]\n\
                     queue_samples = \"100us\"";
    let outcome = result(&on(KINDS[1].0, staggered), &[]);
    let received = integers(&outcome, "flows", "bytes_received");
    let (time, flow) = (numbers(&outcome, "throughput", "time_us"), integers(&outcome, "throughput", "flow"));
    let rate = numbers(&outcome, "throughput", "goodput_gbps");
    for id in 0..3i64 {
        let own = || (0..flow.len()).filter(|row| flow[*row] == id);
        let bytes: f64 = own().map(|row| rate[row] * 1e9 * 1e-3 / 8.0).sum();
        assert!((bytes - received[id as usize] as f64).abs() < 1.0, "flow {id}: {bytes} of {received:?}");
        let (start, stop) = (4e3 * id as f64, 4e3 * id as f64 + 8e3);
        // The bytes in the send buffer at the stop arrive later.
        assert!(
            own().all(|row| time[row] >= start && time[row] <= stop + 4e3),
            "flow {id}: {:?}",
            own().map(|row| time[row]).next_back()
        );
        assert!(own().count() >= 8, "flow {id}");
    }
    assert!(metric(&outcome, "queue_utilization_pct") <= 100.0 + 1e-9);
    let samples = numbers(&outcome, "queue_samples", "time_us");
    assert_eq!((samples.len(), samples[1]), (201, 100.0));
}

#[test]
fn a_higher_class_goes_first() {
    let flow = |from: u32, class: u32| {
        format!("[[flows]]\nfrom = \"host{from}\"\nto = \"host0\"\nsize = \"5MB\"\nclass = {class}\n")
    };
    let text = on(KINDS[0].0, &(flow(1, 0) + &flow(2, 1)));
    let times = |classes: &str| {
        let outcome = result(&format!("{text}{classes}"), &[("duration", "2s")]);
        assert_eq!(metric(&outcome, "flows_complete"), 2.0);
        (numbers(&outcome, "flows", "slowdown").to_vec(), outcome.manifest["warnings"].to_string())
    };
    let (strict, warnings) = times("[[switch.classes]]\nqueue = 100\n[[switch.classes]]\nqueue = 100\n");
    assert!(strict[1] < 1.1 && strict[0] > 1.8, "{strict:?}");
    assert_eq!(warnings, "[]");
    let (shared, warnings) = times("[switch]\nqueue = 100\n");
    assert!(shared[1] > 1.3, "without classes they share: {shared:?}");
    assert!(warnings.contains("flows have traffic classes, but switches have one queue for all of them"), "{warnings}");
    let (_, warnings) = times("[[switch.classes]]\n");
    assert!(warnings.contains("no [[switch.classes]] for class 1: its packets are queued as class 0"), "{warnings}");
}

/// One port alone may hold alpha / (1 + alpha) of the buffer.
#[test]
fn a_shared_buffer_is_full_and_no_fuller() {
    let incast = on("kind = \"star\"\nhosts = 9", "[[flows]]\nfrom = \"all\"\nto = \"host0\"\nsize = \"200kB\"\n");
    let run = |switch: &str| {
        let outcome = result(&format!("{incast}{switch}"), &[("duration", "2s")]);
        let peak = integers(&outcome, "ports", "peak_queue").iter().max().copied().unwrap_or(0);
        assert_eq!(integers(&outcome, "flows", "bytes_received"), [200_000; 8]);
        (metric(&outcome, "dropped_packets"), metric(&outcome, "queue_peak_packets"), peak)
    };
    assert_eq!(run("").0, 0.0);
    // A packet is taken in while with it the port holds at most alpha (45 kB - what it held before): 23,250 or 41,333
    // bytes, of which the last one waits behind 15 or 27 whole packets at most.
    for (alpha, most) in [(1, 15.0), (8, 27.0)] {
        let (dropped, peak, _) = run(&format!("[switch]\nbuffer = \"45kB\"\nalpha = {alpha}\n"));
        assert!(
            dropped > 0.0 && peak <= most && peak >= most - 1.0,
            "alpha {alpha}: {dropped} dropped, at most {peak}"
        );
    }
}
