//! Wrong packet fabrics: switches, interfaces, shapes and files of networks, each with the whole message that a user
//! gets.
//!
//! A case is the sound experiment with some of its text replaced, or with text behind it.

use crate::{STAR, kinds, reported, reported_at, unit_error};
use firstlight_units::{Bytes, Rate};

/// Cases of text behind the star.
fn check(cases: &[(&str, &str)]) {
    check_in("", cases);
}

/// Cases: a text that replaces `from` in the star, and the error.
fn check_in(from: &str, cases: &[(&str, &str)]) {
    crate::check(STAR, &cases.iter().map(|(to, expected)| (from, *to, *expected)).collect::<Vec<_>>());
}

#[test]
#[rustfmt::skip]
fn queues_in_packets_or_in_data() {
    check(&[
        ("[switch]\nqueue = 9", "accepted"),
        ("[switch]\nqueue = \"9kB\"\necn = 5", "accepted"),
        ("[switch]\nqueue = 0", "x.toml:14:9: switch.queue: 0 packets is out of range: use 1 to 16777216, or a size"),
        ("[switch]\nqueue = \"0B\"", "x.toml:14:9: switch.queue: 0B is out of range: use 1B to 1152921504606846976B, \
         or a whole number of packets"),
        ("[switch]\nqueue = \"9\"", &format!("x.toml:14:9: switch.queue: {}, or a whole number of packets",
                                                   unit_error::<Bytes>("9"))),
        ("[switch]\nqueue = true",
         "x.toml:14:9: switch.queue: expected a number of packets or a size, found true: write for example 100"),
        ("[switch]\necn = 0", "x.toml:14:7: switch.ecn: 0 packets is out of range: use 1 to 16777216, or a size"),
        ("[switch]\necn = 9\ndrop_non_ect = 0.5", "accepted"),
        ("[switch]\necn = 9\ndrop_non_ect = 1.5", "x.toml:15:16: switch.drop_non_ect: 1.5 is out of range: use 0 to 1"),
        ("[switch]\ndrop_non_ect = 1.0", "x.toml:14:16: switch.drop_non_ect: has no effect: it counts only when \
                                          switch.ecn is given, but it is not; take it out"),
        ("[switch]\necn = 9\ndrop_non_ect = 1.0\n[pfc]",
         "x.toml:15:16: switch.drop_non_ect: this drops packets of a lossless class: take it out, name other \
          pfc.classes, or say pfc.allow_loss = true"),
    ]);
}

#[test]
#[rustfmt::skip]
fn a_queue_marks_in_one_way() {
    let both = "min and max must be both in packets or both in data: write for example min = 20 and max = 60";
    let missing = |key: &str| format!("x.toml:13:9: switch.red.{key}: missing: write for example {key} = 100 in \
                                       [switch.red]");
    check(&[
        ("[switch]\necn = 9\n[switch.red]\nmin = 3\nmax = 5",
         "x.toml:15:9: switch.red: there is ecn already, and a queue marks in one way: take one of them out"),
        ("[switch]\necn = 9\n[switch.phantom]",
         "x.toml:15:9: switch.phantom: there is ecn already, and a queue marks in one way: take one of them out"),
        ("[switch.red]\nmin = 1\nmax = 2\n[switch.phantom]",
         "x.toml:16:9: switch.phantom: there is red already, and a queue marks in one way: take one of them out"),
        ("[switch.red]\nmin = 3\nmax = 5", "accepted"),
        ("[switch.red]\nmin = \"3kB\"\nmax = \"5kB\"", "accepted"),
        ("[switch.red]", &format!("{}\n{}", missing("min"), missing("max"))),
        ("[switch.red]\nmin = 3", &missing("max")),
        ("[switch.red]\nmin = 3\nmax = \"5kB\"", &format!("x.toml:15:7: switch.red.max: {both}")),
        ("[switch.red]\nmin = 5\nmax = 3",
         "x.toml:15:7: switch.red.max: 3 packets is below min, 5 packets: use at least that"),
        ("[switch.red]\nmin = 3\nmax = 5\nprobability = 0.0",
         "x.toml:16:15: switch.red.probability: 0 is out of range: use more than 0, at most 1"),
        ("[switch.red]\nmin = 3\nmax = 5\nweight = 0.0",
         "x.toml:16:10: switch.red.weight: 0 is out of range: use more than 0, at most 1"),
        ("[switch.phantom]", "accepted"),
        ("[switch.phantom]\ndrain = 0.001", "x.toml:14:9: switch.phantom.drain: 0.001 is out of range: use 0.01 to 1"),
        ("[switch.phantom]\nthreshold = \"0B\"",
         "x.toml:14:13: switch.phantom.threshold: 0B is out of range: use 1B to 1152921504606846976B"),
    ]);
}

#[test]
#[rustfmt::skip]
fn classes_of_congestion_controls() {
    let (two, cubic) = ("[[switch.classes]]\n[[switch.classes]]\n", "[[hosts.classes]]\ncc = \"cubic\"\nclass = 1\n");
    let with = |more: &str| format!("{two}{more}");
    check(&[
        (&with(cubic), "accepted"),
        (cubic, "x.toml:15:9: hosts.classes.0.class: has no effect: switches have one queue for all classes; add \
                 [[switch.classes]], or take it out"),
        (&with(&cubic.replace('1', "2")), "x.toml:17:9: hosts.classes.0.class: no queue of [[switch.classes]] takes \
                                           class 2: there are classes 0 to 1; use one of these, or add a table"),
        (&with(&cubic.replace('1', "8")), "x.toml:17:9: hosts.classes.0.class: 8 is out of range: use 0 to 7"),
        (&with(&cubic.repeat(2)),
         "x.toml:19:6: hosts.classes.1.cc: cubic has a class already, that of hosts.classes.0: keep one of the two"),
        (&with(&cubic.replace("cubic", "dctcp")),
         "x.toml:16:6: hosts.classes.0.cc: has no effect: no connection uses dctcp but cubic; take it out"),
        (&with(&format!("{}[tcp]\ncc = \"reno\"", cubic.replace("cubic", "newreno"))), "accepted"),
        (&with("[[hosts.classes]]\ncc = \"cubic\""),
         "x.toml:15:1: hosts.classes.0.class: missing: write for example class = 1 in [[hosts.classes]]"),
    ]);
}

#[test]
#[rustfmt::skip]
fn classes_and_the_shared_buffer() {
    let nine = "[[switch.classes]]\n".repeat(9);
    let hold = |size: &str, alpha: &str| format!("x.toml:14:10: switch.buffer: {size} with alpha = {alpha} is \
                                                  too small for one packet (9kB) at any port: use more");
    check(&[
        (&nine, "x.toml:21:1: switch.classes.8: 9 classes are too many: a packet's class is 0 to 7"),
        (&nine[19..], "accepted"),
        ("[switch]\nqueue = 3\n[[switch.classes]]\nqueue = 4",
         "x.toml:14:9: switch.queue: has no effect: it counts only when there are no [[switch.classes]], but each of \
          them has its own; take it out"),
        ("[switch.red]\nmin = 1\nmax = 2\n[[switch.classes]]",
         "x.toml:13:9: switch.red: has no effect: it counts only when there are no [[switch.classes]], but each of \
          them has its own; take it out"),
        ("[[switch.classes]]\necn = 1\n[switch.classes.red]\nmin = 1\nmax = 2",
         "x.toml:15:17: switch.classes.0.red: there is ecn already, and a queue marks in one way: take one of them \
          out"),
        ("[[switch.classes]]\n[switch.classes.red]\nmin = 2\nmax = 1",
         "x.toml:16:7: switch.classes.0.red.max: 1 packets is below min, 2 packets: use at least that"),
        ("[[switch.classes]]\nbuffer = \"1MB\"",
         "x.toml:14:1: switch.classes.0.buffer: unknown key: did you mean switch.buffer?"),
        ("[[switch.classes]]\nweight = 3\n[[switch.classes]]\nweight = 1", "accepted"),
        ("[[switch.classes]]\nweight = 0",
         "x.toml:14:10: switch.classes.0.weight: 0 is out of range: use 1 to 1000000"),
        ("[[switch.classes]]\n[[switch.classes]]\nweight = 1",
         "x.toml:15:10: switch.classes.1.weight: class 0 has strict priority, since it has no weight: give each of \
          [[switch.classes]] a weight, or none"),
        ("[[switch.classes]]\nweight = 1\n[pfc]", "x.toml:14:10: switch.classes.0.weight: classes of lossless \
                                                   Ethernet have strict priorities: take the weights out, or [pfc]"),
        ("[switch]\nalpha = 2.0", "x.toml:14:9: switch.alpha: has no effect: it counts only when switch.buffer is \
                                   given, but it is not; take it out"),
        ("[switch]\nbuffer = \"1MB\"\nalpha = 2", "accepted"),
        ("[switch]\nbuffer = \"1MB\"\nalpha = 0.0",
         "x.toml:15:9: switch.alpha: 0 is out of range: use 0.0000152587890625 to 65536"),
        ("[switch]\nbuffer = \"9kB\"", "accepted"),
        ("[switch]\nbuffer = \"8999B\"", &hold("8999B", "1")),
        ("[switch]\nbuffer = \"10kB\"\nalpha = 0.5", &hold("10kB", "0.5")),
    ]);
}

#[test]
#[rustfmt::skip]
fn disciplines_of_some_ports() {
    check(&[
        ("[switch]\necn = 5\n[[switch.ports]]\non = \"host0.port\"\nqueue = 9", "accepted"),
        ("[[switch.ports]]\non = \"switch\"\n[switch.ports.red]\nmin = 3\nmax = 5", "accepted"),
        ("[[switch.ports]]\nqueue = 9",
         "x.toml:13:1: switch.ports.0.on: missing: write for example on = \"spine\" in [[switch.ports]]"),
        ("[[switch.ports]]\non = \"spine\"", "x.toml:14:6: switch.ports.0.on: there is no tier and no switch 'spine' \
                                              (tiers: switch), and there is no port 'spine': ports are called \
                                              host0.port"),
        ("[[switch.ports]]\non = \"host3.port\"", "x.toml:14:6: switch.ports.0.on: there is no tier and no switch \
                                                   'host3.port' (tiers: switch), and there is no port 'host3.port': \
                                                   did you mean host2.port?"),
        ("[[switch.ports]]\non = \"switch\"\necn = 3\n[switch.ports.phantom]",
         "x.toml:16:15: switch.ports.0.phantom: there is ecn already, and a queue marks in one way: take one of them \
          out"),
        ("[pfc]\n[[switch.ports]]\non = \"switch\"\nqueue = 3",
         "x.toml:16:9: switch.ports.0.queue: a queue's limit drops packets of a lossless class: take it out, name \
          other pfc.classes, or say pfc.allow_loss = true"),
    ]);
}

#[test]
#[rustfmt::skip]
fn marks_of_switches_are_none_for_retcp() {
    let ece = "the receivers of marked packets set ECE, which retcp takes for a circuit: take it out, or use no retcp";
    check(&[
        ("cc = \"retcp\"\n[switch.red]\nmin = 1\nmax = 2", &format!("x.toml:14:9: switch.red: {ece}")),
        ("cc = \"retcp\"\n[switch.phantom]", &format!("x.toml:14:9: switch.phantom: {ece}")),
        ("cc = \"retcp\"\n[[switch.classes]]\n[[switch.classes]]\necn = 3",
         &format!("x.toml:16:7: switch.classes.1.ecn: {ece}")),
        ("cc = \"retcp\"\n[switch]\nqueue = 3", "accepted"),
    ]);
}

#[test]
#[rustfmt::skip]
fn quantized_congestion_notification() {
    let idle =
        "measure.rate_limiters: has no effect: it counts only when there is a [qcn], but there is none; take it out";
    check(&[
        ("[qcn]", "accepted"),
        ("[qcn]\nqeq = \"66kB\"\nw = 2.0\ngd = 0.5\nsample = \"150kB\"\nbyte_limit = \"150kB\"\ntimer = \"15ms\"\n\
          fast_recovery = 5\nactive_increase = \"5Mbps\"\nhyper_increase = \"50Mbps\"\nmin_rate = \"100kbps\"\n\
          min_decrease = 0.5\nextra_fast_recovery = true\n[measure]\nrate_limiters = true", "accepted"),
        ("[qcn]\nqeq = \"0B\"", "x.toml:14:7: qcn.qeq: 0B is out of range: use 1B to 1099511627776B"),
        ("[qcn]\ngd = 1.0", "x.toml:14:6: qcn.gd: 1 is out of range: use 0.001 to 0.999"),
        ("[qcn]\ntimer = \"10ns\"", "x.toml:14:9: qcn.timer: 10ns is out of range: use at least 1us"),
        ("[qcn]\ntimer = \"0s\"", "x.toml:14:9: qcn.timer: 0s is out of range: use at least 1us"),
        ("[qcn]\nfast_recovery = 0", "x.toml:14:17: qcn.fast_recovery: 0 cycles is out of range: use 1 to 1000"),
        ("[qcn]\nsmaple = \"1kB\"", "x.toml:14:1: qcn.smaple: unknown key: did you mean qcn.sample?"),
        ("[measure]\nrate_limiters = true", &format!("x.toml:14:17: {idle}")),
    ]);
}

/// Parameters of the study of TCP over CEE.
#[test]
#[rustfmt::skip]
fn the_red_of_the_cee_study() {
    check(&[
        ("[switch]\nqueue = \"100kB\"\n[switch.red]\nmin = \"25.6kB\"\nmax = \"76.8kB\"\nweight = 0.002\nprobability \
          = 0.02", "accepted"),
    ]);
}

#[test]
#[rustfmt::skip]
fn timestamps_and_the_pacer() {
    let only = |kinds: &str, kind: &str| format!("has no effect: it counts only when stamps.kind = {kinds}, but it \
                                                  is \"{kind}\"; take it out");
    let driver = "\"software\" or \"hardware\"";
    check(&[
        ("[stamps]\ndeviation = \"1us\"", &format!("x.toml:14:13: stamps.deviation: {}", only("\"gaussian\"",
         "ideal"))),
        ("[stamps]\nkind = \"gaussian\"",
         "x.toml:13:2: stamps.deviation: missing: write for example deviation = \"180us\" in [stamps]"),
        ("[stamps]\nkind = \"gaussian\"\ndeviation = \"0s\"",
         "x.toml:15:13: stamps.deviation: must be longer than zero"),
        ("[stamps]\ntoken_bucket = true", &format!("x.toml:14:16: stamps.token_bucket: {}", only(driver, "ideal"))),
        ("[stamps]\nkind = \"kernel\"\ncalibration = false", &format!("x.toml:15:15: stamps.calibration: {}",
         only(driver, "kernel"))),
        ("[stamps]\nkind = \"hardware\"\ncalibration = false\ntoken_bucket = false", "accepted"),
        ("[pacer]", "accepted"),
        ("[pacer]\nperiod = \"0s\"", "x.toml:14:10: pacer.period: must be longer than zero"),
        ("[pacer]\nchance = 2.0", "x.toml:14:10: pacer.chance: 2 is out of range: use 0 to 1"),
        ("[pacer]\nwieght = 0.1", "x.toml:14:1: pacer.wieght: unknown key: did you mean pacer.weight?"),
    ]);
}

#[test]
#[rustfmt::skip]
fn what_is_measured() {
    check(&[
        ("[measure]\nqueues = [\"host0.port\"]\nqueue_samples = \"1us\"", "accepted"),
        ("[measure]\nqueues = [\"host9.port\"]",
         "x.toml:14:10: measure.queues: there is no port 'host9.port': did you mean host2.port?"),
        ("[measure]\nqueues = [\"left->right\"]",
         "x.toml:14:10: measure.queues: there is no port 'left->right': ports are called host0.port"),
        ("[measure]\nqueues = [\"host0.port\", \"host1.port\", \"host0.port\"]",
         "x.toml:14:10: measure.queues: 'host0.port' is listed twice: name it once"),
        ("[measure]\nqueues = []",
         "x.toml:14:10: measure.queues: an empty list watches nothing: name ports, or take it out"),
        ("[measure]\nqueues = \"host0.port\"", "x.toml:14:10: measure.queues: expected a list of texts, found the \
                                                text \"host0.port\": write for example [\"host2.port\"]"),
        ("[measure]\nqueues = [3]",
         "x.toml:14:10: measure.queues: expected a text, found the number 3: write for example \"host2.port\""),
        ("[measure]\nqueue_samples = \"1us\"", "x.toml:14:17: measure.queue_samples: has no effect: it counts only \
                                                when measure.queues is given, but it is not; take it out"),
        ("[measure]\nqueues = [\"host0.port\"]\nqueue_samples = \"0s\"",
         "x.toml:15:17: measure.queue_samples: must be longer than zero"),
        ("[measure]\nqueues = [\"host0.port\"]\nqueue_samples = \"1ns\"",
         "x.toml:15:17: measure.queue_samples: 1ns makes too many samples of 1 queues in 1s: use at most 50000000"),
        ("[measure]\nthroughput = \"1ns\"", "x.toml:14:14: measure.throughput: 1ns makes too many intervals of 1s \
                                             for 2 flows: use at most 25000000 of them"),
        ("[measure]\nprobes = true", "x.toml:14:10: measure.probes: has no effect: it counts only when there is a \
                                      probe, or UDP, but there is none; take it out"),
    ]);
    let between = "kind = \"dumbbell\"\nleft = 1\nright = 2\n[measure]\nqueues = [\"nowhere\"]";
    assert_eq!(reported(STAR, "kind = \"star\"\nhosts = 3", between),
        "x.toml:8:10: measure.queues: there is no port 'nowhere': ports are called host0.port, left->right");
}

#[test]
#[rustfmt::skip]
fn shapes() {
    let only = |kinds: &[&str], kind: &str| {
        let kinds = kinds.iter().map(|kind| format!("\"{kind}\"")).collect::<Vec<_>>().join(" or ");
        format!("has no effect: it counts only when fabric.kind = {kinds}, but it is \"{kind}\"; take it out")
    };
    let no_tier = |what: &str, kind: &str| format!("has no effect: it counts only when the fabric's kind has {what}, \
                                                    but it is \"{kind}\"; take it out");
    let dx = "kind = \"three_tier\"\nracks = 32\nhosts_per_rack = 6\n";
    let counts = |aggregations: u32, cores: u32,
        more: &str| format!("{dx}aggregations = {aggregations}\ncores = {cores}\n{more}");
    let given = "so the number of uplinks must be given: set that of a ToR switch and, where it is not one link to \
                 each core switch of its share, that of an aggregation switch";
    check_in("kind = \"star\"\nhosts = 3", &[
        ("kind = \"star\"", "x.toml:3:2: fabric.hosts: missing: write for example hosts = 2 in [fabric]"),
        ("kind = \"star\"\nhosts = 3\nspray = true", &format!("x.toml:6:9: fabric.spray: {}",
         only(&kinds("fabric", "spray"), "star"))),
        ("kind = \"star\"\nhosts = 3\n[links]\nrate = \"1Gbps\"", &format!("x.toml:6:2: links: {}",
         no_tier("links between switches", "star"))),
        ("kind = \"dumbbell\"\nleft = 2", "x.toml:3:2: fabric.right: missing: write for example right = 1 in [fabric]"),
        ("kind = \"dumbbell\"\nleft = 2\nright = 1\nhosts = 3", &format!("x.toml:7:9: fabric.hosts: {}", only(&["star"],
         "dumbbell"))),
        ("kind = \"dumbbell\"\nleft = 2\nright = 1\n[links]\ncore_rate = \"1Gbps\"",
         &format!("x.toml:8:13: links.core_rate: {}", no_tier("core switches", "dumbbell"))),
        ("kind = \"dumbbell\"\nleft = 2\nright = 1\n[links]\nrate = \"71999bps\"",
         "x.toml:8:8: links.rate: at 71999bps one packet of 9kB takes longer than 1s, time_scale included: use at \
          least 72000bps"),
        ("kind = \"dumbbell\"\nleft = 2\nright = 1\n[links]\ndelay = \"864001s\"",
         "x.toml:8:9: links.delay: 864001s is too long for the engine's clock: use at most 10 days"),
        ("kind = \"leaf_spine\"\nracks = 2\nhosts_per_rack = 2",
         "x.toml:3:2: fabric.spines: missing: write for example spines = 1 in [fabric]"),
        ("kind = \"leaf_spine\"\nracks = 4096\nhosts_per_rack = 200\nspines = 2",
         "x.toml:3:2: fabric: 819200 hosts are too many: use at most 65535"),
        ("kind = \"fat_tree\"", "x.toml:3:2: fabric.k: missing: write for example k = 2 in [fabric]"),
        ("kind = \"fat_tree\"\nk = 3",
         "x.toml:5:5: fabric.k: a fat tree of 3-port switches does not exist: k must be even and at least 2"),
        ("kind = \"fat_tree\"\nk = 64", "x.toml:5:5: fabric.k: 64 ports is out of range: use 2 to 62"),
        ("kind = \"fat_tree\"\nk = 4\nracks = 3", &format!("x.toml:6:9: fabric.racks: {}", only(&["hybrid",
         "leaf_spine", "three_tier"], "fat_tree"))),
        (&counts(16, 8, ""), "accepted"),
        (&counts(15, 8, ""), &format!("x.toml:3:2: fabric: 192 servers, 32 ToR, 15 aggregation and 8 core switches \
                                       cannot all have the same number of ports, {given}")),
        (&counts(16, 7, ""), &format!("x.toml:3:2: fabric: 192 servers, 32 ToR, 16 aggregation and 7 core switches \
                                       cannot all have the same number of ports, {given}")),
        (&counts(16, 8, "tor_uplinks = 3"), "x.toml:3:2: fabric: 16 aggregation switches cannot be spread evenly \
                                             over 3 uplinks of a ToR switch: use a multiple of 3"),
        (&counts(16, 8, "tor_uplinks = 2\naggregation_uplinks = 3"),
         "x.toml:3:2: fabric: 6 uplinks of a pod cannot be spread evenly over 8 core switches: use a multiple of 8"),
    ]);
}

/// The errors of a graph in a file of that text, with more text behind the experiment.
fn told_of_file(name: &str, network: &str, more: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(name), network).expect("a file");
    let graph = STAR.replace("kind = \"star\"\nhosts = 3", &format!("kind = \"graph\"\nfile = \"{name}\""));
    let text = graph.replace("[hosts]\nrate = \"10Gbps\"\n", "") + more;
    let path = folder.path().join("x.toml");
    reported_at(path.to_str().expect("a text"), &text).replace(&format!("{}/", folder.path().display()), "")
}

#[test]
#[rustfmt::skip]
fn networks_from_files() {
    let of = |network: &str| told_of_file("net.txt", network, "");
    let sound = "switch s\nhost a s 10Gbps 1us\nhost b s 1Gbps 1us\n";
    assert_eq!(of(sound), "accepted");
    assert_eq!(of(""), "net.txt:1:1: fabric.file: a network needs at least 2 hosts, and this one has 0");
    assert_eq!(of(&sound.replace("b s", "b t")),
        "net.txt:3:8: fabric.file: there is no switch t above: add a line \"switch t\" before");
    assert_eq!(of(&sound.replace("1Gbps", "1GB")), format!("net.txt:3:10: fabric.file: {}", unit_error::<Rate>("1GB")));
    assert_eq!(of(&sound.replace("1Gbps", "71999bps")),
        "x.toml:5:8: fabric.file: net.txt has a link of 71999bps: at 71999bps one packet of 9kB takes longer than \
         1s, time_scale included: use at least 72000bps");
    let missing = reported(STAR, "kind = \"star\"\nhosts = 3\n\n[hosts]\nrate = \"10Gbps\"",
        "kind = \"graph\"\nfile = \"none.txt\"");
    assert_eq!(missing, "x.toml:5:8: fabric.file: cannot read none.txt: No such file or directory (os error 2)");
    assert_eq!(reported(STAR, "kind = \"star\"\nhosts = 3", "kind = \"graph\""),
        "x.toml:3:2: fabric.file: missing: write for example file = \"my-experiment\" in [fabric]");
    let regular = "it counts only when fabric.kind is not \"graph\", but it is \"graph\"; take it out";
    assert_eq!(told_of_file("net.txt", sound, "[hosts]\nrate = \"1Gbps\"\n"),
        format!("x.toml:12:8: hosts.rate: has no effect: {regular}"));
    assert_eq!(told_of_file("net.txt", sound, "[hosts]\ndelay = \"1us\"\n"),
        format!("x.toml:12:9: hosts.delay: has no effect: {regular}"));
    let format = reported(STAR, "kind = \"star\"\nhosts = 3", "kind = \"graph\"\nfile = \"x\"\nformat = \"ns2\"");
    assert_eq!(format, "x.toml:6:10: fabric.format: 'ns2' is not one of list, htsim, ns3: did you mean \"ns3\"?");
}
