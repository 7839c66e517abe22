//! Lossless Ethernet from its keys to its tables and warnings.

use crate::{check, integers, metric, numbers, read, result, texts};
use firstlight_lab::{Outcome, inspect};

const INCAST: &str = include_str!("../specs/lossless.toml");

fn warnings(outcome: &Outcome) -> String {
    outcome.manifest["warnings"].to_string()
}

/// The row of a port in table `pauses`.
fn row(outcome: &Outcome, name: &str) -> usize {
    texts(outcome, "pauses", "name").iter().position(|found| found == name).expect("the port is there")
}

/// CUBIC fills the queue; with PFC it loses nothing, and its senders are paused instead.
#[test]
fn an_incast_pauses_its_senders_and_loses_nothing() {
    let lossless = result(INCAST, &[]);
    assert_eq!((metric(&lossless, "dropped_packets"), metric(&lossless, "retransmits")), (0.0, 0.0));
    assert!(lossless.manifest["invalid"].as_array().unwrap().is_empty(), "{}", lossless.manifest["invalid"]);
    let state = |name| &*texts(&lossless, "pauses", "state")[row(&lossless, name)];
    assert_eq!((state("left->right"), state("host1.nic")), ("paused", "paused"));
    assert_eq!((state("host3.nic"), state("host4.nic")), ("no traffic", "not reached"));
    let paused = numbers(&lossless, "pauses", "paused_us");
    assert!((metric(&lossless, "paused_us") - paused.iter().sum::<f64>()).abs() < 1e-6);
    let causes: f64 = numbers(&lossless, "pause_causes", "paused_us").iter().sum();
    assert!((causes - metric(&lossless, "paused_us")).abs() < 1e-6);
    assert!(texts(&lossless, "pause_causes", "root").iter().any(|root| root == "host4.port"));
    // 60 kB and three packets, a pause frame, 500 ns each way and 60 quanta.
    let buffers = integers(&lossless, "pauses", "buffer_bytes");
    assert_eq!(buffers[row(&lossless, "host1.nic")], 60_000 + 4500 + 64 + 1250 + 3840);
    // The same at 40 Gb/s: 118 quanta.
    assert_eq!(buffers[row(&lossless, "left->right")], 60_000 + 4500 + 64 + 5000 + 7552);
    assert_eq!(integers(&lossless, "pauses", "peak_bytes").iter().max().map(|peak| *peak > 60_000), Some(true));
    let events = numbers(&lossless, "pause_events", "at_us");
    assert!(events.windows(2).all(|pair| pair[0] <= pair[1]) && events.len() > 10);
}

/// Off by its kind is off by its absence; on, another run.
#[test]
fn off_is_off() {
    let without = INCAST.replace("[pfc]\nxoff = \"60kB\"\n", "");
    let digest = |outcome: &Outcome| outcome.manifest["digest"].clone();
    let off = result(INCAST, &[("pfc.kind", "off")]);
    assert_eq!(digest(&off), digest(&result(&without, &[])));
    assert!(off.table("pauses").is_none());
    assert_ne!(digest(&off), digest(&result(INCAST, &[])));
    assert_eq!(digest(&result(INCAST, &[])), digest(&result(INCAST, &[("pfc.events", "0")])));
}

#[test]
fn pause_has_one_account_for_all_classes() {
    let two = format!("{INCAST}\n[[switch.classes]]\n[[switch.classes]]\n");
    let outcome = result(&two, &[("pfc.kind", "pause")]);
    assert!(texts(&outcome, "pauses", "class").iter().all(|class| class == "all"));
    let outcome = result(&two, &[("pfc.classes", "[0]")]);
    let states = texts(&outcome, "pauses", "state");
    let classes = texts(&outcome, "pauses", "class");
    assert!(states.iter().zip(classes).all(|(state, class)| (state == "off") == (class == "1")));
}

const RED: [(&str, &str); 3] = [("switch.red.min", "5"), ("switch.red.max", "10"), ("switch.red.weight", "1.0")];

/// Packets that cannot be marked pass; only RED with `drop_beyond` drops, and it is refused.
#[test]
fn red_only_marks_in_a_lossless_class() {
    let marked = |outcome: &Outcome| integers(outcome, "ports", "marked").iter().sum::<i64>();
    let ecn = result(INCAST, &[&RED[..], &[("tcp.ecn", "true")]].concat());
    assert!(marked(&ecn) > 0);
    assert_eq!((metric(&ecn, "pause_lost_packets"), metric(&ecn, "dropped_packets")), (0.0, 0.0));
    // Without ECN there is nothing to do: the same packets at the same times, with `drop_beyond` or without.
    let plain = result(INCAST, &RED);
    assert_eq!((marked(&plain), &plain.manifest["digest"]), (0, &result(INCAST, &[]).manifest["digest"]));
    let written = result(INCAST, &[&RED[..], &[("switch.red.drop_beyond", "false")]].concat());
    assert_eq!(written.manifest["digest"], plain.manifest["digest"]);
    check(
        &format!("{INCAST}[switch.red]\nmin = 5\nmax = 10\ndrop_beyond = true\n"),
        &[
            (
                "min = 5",
                "min = 6",
                "x.toml:36:15: switch.red.drop_beyond: RED drops packets of a lossless class; without this key it only \
                 marks there: take it out, name other pfc.classes, or say pfc.allow_loss = true",
            ),
            ("drop_beyond = true", "drop_beyond = false", "accepted"),
            ("xoff = \"60kB\"", "kind = \"off\"", "accepted"),
        ],
    );
}

#[test]
fn counters_of_zero_say_why() {
    let meaning = |outcome: &Outcome, metric: &str| {
        let row = texts(outcome, "summary", "metric").iter().position(|found| found == metric).expect("it is there");
        texts(outcome, "summary", "meaning")[row].to_string()
    };
    let pauses = |set: &[(&str, &str)]| meaning(&result(INCAST, set), "pauses");
    let all = "pauses of all ports and classes since the start of the run";
    assert_eq!(pauses(&[]), all);
    let calm = pauses(&[("pfc.xoff", "50MB")]);
    assert!(calm.starts_with(&format!("{all}; not reached: the ingress account of ")), "{calm}");
    assert!(calm.ends_with("B at most, and xoff is 50MB"), "{calm}");
    let two = format!("{INCAST}\n[[switch.classes]]\n[[switch.classes]]\n");
    let other = meaning(&result(&two, &[("pfc.classes", "[1]")]), "pauses");
    assert_eq!(other, format!("{all}; no packet of a lossless class came to a switch"));
    // Marks: no queue marks, no flow negotiates ECN, no queue is long, and a long queue.
    let marks = |set: &[(&str, &str)], port: &str| {
        let outcome = result(INCAST, set);
        let row = texts(&outcome, "ports", "name").iter().position(|found| found == port).expect("the port is there");
        (meaning(&outcome, "marked_packets"), texts(&outcome, "ports", "marking")[row].to_string())
    };
    let reported =
        |why: &str, state: &str| (format!("packets CE-marked since the start of the run{why}"), state.to_string());
    let (ecn, long) = (("tcp.ecn", "true"), [("switch.red.min", "100000"), ("switch.red.max", "200000")]);
    assert_eq!(marks(&[], "host4.port"), reported("; no queue marks", "off"));
    assert_eq!(marks(&RED, "host4.port"), reported("; no flow negotiates ECN", "not capable"));
    assert_eq!(marks(&RED, "host4.nic").1, "off");
    let unreached = [&long[..], &[ecn]].concat();
    assert_eq!(marks(&unreached, "host4.port"), reported("; no queue that marks was long enough", "not reached"));
    assert_eq!(marks(&unreached, "host3.port").1, "no traffic");
    assert_eq!(marks(&[&RED[..], &[ecn]].concat(), "host4.port"), reported("", "marked"));
}

#[test]
fn inspection_tells_thresholds_and_headroom() {
    let reported = inspect(&read(INCAST, &[("pfc.kind", "pause")]))["pfc"].clone();
    assert_eq!((&reported["kind"], &reported["lossless_classes"]), (&"pause".into(), &serde_json::json!([0])));
    assert_eq!((&reported["allow_loss"], &reported["largest_packet_bytes"]), (&false.into(), &1500.into()));
    let host = serde_json::json!([{
        "rate": "10Gbps", "xon_bytes": 57_000, "xoff_bytes": 60_000, "headroom_bytes": 9654, "buffer_bytes": 69_654,
        "response_us": 3.072,
    }]);
    assert_eq!(reported["links"]["host->switch"], host);
    assert_eq!(reported["links"].as_object().map(|links| links.len()), Some(2), "{reported}");
    assert_eq!(reported["circular_waits"], serde_json::json!([]));
    assert!(inspect(&read(INCAST, &[("pfc.kind", "off")]))["pfc"].is_null());
}

/// The hosts wait instead of their interfaces holding all that a pause stops.
#[test]
fn sending_buffers_are_told_before_and_after_a_run() {
    assert!(inspect(&read(INCAST, &[]))["adapter"].is_null());
    let limit = [("adapter.send_buffer", "20kB")];
    assert_eq!(inspect(&read(INCAST, &limit))["adapter"]["send_buffer_bytes"], 20_000);
    let (without, with) = (result(INCAST, &[]), result(INCAST, &limit));
    assert!(numbers(&without, "ports", "peak_bytes").iter().all(|bytes| bytes.is_nan()));
    let names = texts(&with, "ports", "name");
    let most = |name: &str| {
        let row = names.iter().position(|found| found == name).expect("the port is there");
        numbers(&with, "ports", "peak_bytes")[row]
    };
    assert!(most("host4.port").is_nan());
    assert!((20_000.0..21_500.0).contains(&most("host1.nic")), "{}", most("host1.nic"));
    assert_eq!((metric(&with, "dropped_packets"), metric(&with, "retransmits")), (0.0, 0.0));
}

#[test]
fn a_run_that_may_lose_says_how_much() {
    let lossy = [("pfc.allow_loss", "true"), ("pfc.buffer", "62kB")];
    let outcome = result(INCAST, &lossy);
    assert!(metric(&outcome, "pause_lost_packets") > 0.0);
    assert!(outcome.manifest["invalid"].as_array().unwrap().is_empty());
    // RED's drops count as well, where they are asked for.
    let red = [&RED[..], &[("pfc.allow_loss", "true"), ("switch.red.drop_beyond", "true")]].concat();
    assert!(metric(&result(INCAST, &red), "pause_lost_packets") > 0.0);
}

/// The figures of the study of TCP over converged Ethernet: its 3 kB above XOFF are no headroom.
#[test]
fn the_slides_thresholds_lack_headroom() {
    let slides = INCAST
        .replace("[links]\nrate = \"40Gbps\"\n", "")
        .replace("xoff = \"60kB\"", "xon = \"80kB\"\nxoff = \"97kB\"\nbuffer = \"100kB\"");
    check(
        &slides,
        &[
            (
                "buffer = \"100kB\"",
                "buffer = \"100000B\"",
                "x.toml:17:10: pfc.buffer: a buffer of 100kB is 6654B too small on the link left->right (and 7 links \
                 more): the buffer must hold xoff, 97kB, and the headroom, 9654B. The headroom takes three packets, a \
                 pause frame, the cable both ways and a response of 3.072us. Use a larger buffer or a smaller xoff, or \
                 say pfc.allow_loss = true",
            ),
            ("buffer = \"100kB\"", "buffer = \"106654B\"", "accepted"),
            (
                "buffer = \"100kB\"",
                "buffer = \"106653B\"",
                "x.toml:17:10: pfc.buffer: a buffer of 106653B is 1B too small on the link left->right (and 7 links \
                 more): the buffer must hold xoff, 97kB, and the headroom, 9654B. The headroom takes three packets, a \
                 pause frame, the cable both ways and a response of 3.072us. Use a larger buffer or a smaller xoff, or \
                 say pfc.allow_loss = true",
            ),
            ("buffer = \"100kB\"", "buffer = \"100kB\"\nallow_loss = true", "accepted"),
            (
                "xon = \"80kB\"",
                "xon = \"98kB\"\nallow_loss = true",
                "x.toml:15:7: pfc.xon: 98kB is above xoff, 97kB on the link left->right: use at most that",
            ),
        ],
    );
}

#[test]
fn wrong_keys() {
    check(
        INCAST,
        &[
            (
                "xoff = \"60kB\"",
                "classes = [3]",
                "x.toml:15:11: pfc.classes: there is no class 3: the last is 0; add [[switch.classes]]",
            ),
            ("xoff = \"60kB\"", "classes = [8]", "x.toml:15:11: pfc.classes: 8 is out of range: use 0 to 7"),
            (
                "[pfc]",
                "[switch]\nqueue = 100\n[pfc]",
                "x.toml:15:9: switch.queue: a queue's limit drops packets of a lossless class: take it out, name other \
                 pfc.classes, or say pfc.allow_loss = true",
            ),
            (
                "[pfc]",
                "[switch]\nbuffer = \"1MB\"\n[pfc]",
                "x.toml:15:10: switch.buffer: the shared buffer drops packets of lossless classes: take it out, name \
                 other pfc.classes, or say pfc.allow_loss = true",
            ),
            ("[pfc]", "[[switch.classes]]\nqueue = 9\n[[switch.classes]]\n[pfc]\nclasses = [1]", "accepted"),
            (
                "xoff = \"60kB\"",
                "kind = \"pause\"\nclasses = [0]",
                "x.toml:16:11: pfc.classes: has no effect: pfc.kind = \"pause\" stops all classes of a link; take it \
                 out, or use \"pfc\"",
            ),
            ("xoff = \"60kB\"", "kind = \"off\"\nclasses = [0]", "accepted"),
        ],
    );
}

/// Everybody sends two switches on in a ring of five.
#[test]
fn a_circle_is_told_before_the_run_and_a_deadlock_after() {
    let mut text =
        "duration = \"20ms\"\n[fabric]\nkind = \"graph\"\nfile = \"tests/specs/circle.txt\"\n[hosts]\nmtu = \
                    \"1500B\"\n[pfc]\n"
            .to_string();
    for host in 0..5 {
        text += &format!("[[flows]]\nfrom = \"host{host}\"\nto = \"host{}\"\ncount = 4\n", (host + 2) % 5);
    }
    let notes = inspect(&read(&text, &[]))["notes"].to_string();
    let circle = "lossless class 0 may deadlock: ports may wait for each other in a circle, s0->s1, s1->s2, s2->s3, \
                  s3->s4, s4->s0, s0->s1";
    assert!(notes.contains(circle), "{notes}");
    let waits = serde_json::json!([{"class": 0, "ports": ["s0->s1", "s1->s2", "s2->s3", "s3->s4", "s4->s0"]}]);
    assert_eq!(inspect(&read(&text, &[]))["pfc"]["circular_waits"], waits);
    let outcome = result(&text, &[]);
    assert_eq!(metric(&outcome, "deadlocks"), 1.0, "{}", warnings(&outcome));
    assert!(warnings(&outcome).contains("deadlock since 48.2504us: "), "{}", warnings(&outcome));
    // With the flows of one host turned back there is no circle.
    let open = text.replace("from = \"host0\"\nto = \"host2\"", "from = \"host0\"\nto = \"host1\"");
    let open = open.replace("from = \"host2\"\nto = \"host4\"", "from = \"host2\"\nto = \"host3\"");
    assert!(!warnings(&result(&open, &[])).contains("circle"));
}

/// A hybrid fabric: 16 hosts, of 40 Gb/s, that fill the VOQ of one pair, whose capacity their accounts are.
#[test]
fn hosts_of_a_hybrid_fabric_are_paused_instead_of_voqs_dropping() {
    let pair = include_str!("../specs/pair.toml");
    let lossless = pair.replace("[voq]\nsmall = 16", "[pfc]\nxoff = \"18kB\"");
    let (plain, paused) = (result(pair, &[]), result(&lossless, &[]));
    let dropped = |outcome| metric(outcome, "dropped_packets");
    assert!(dropped(&plain) > 0.0, "16 flows overflow 16 places");
    assert_eq!((dropped(&paused), metric(&paused, "pause_lost_packets")), (0.0, 0.0));
    assert!(paused.manifest["invalid"].as_array().unwrap().is_empty());
    let states = texts(&paused, "pauses", "state");
    let names = texts(&paused, "pauses", "name");
    let state = |name: &str| &*states[names.iter().position(|other| other == name).unwrap()];
    assert_eq!([state("host3.nic"), state("host16.nic"), state("circuit.to.1")], ["paused", "not reached", "off"]);
    assert!(texts(&paused, "pause_causes", "egress").iter().all(|egress| egress == "voq.0.1"));
    // A kind that is off is as good as no table, and asks for the capacity again.
    let with_off = pair.replace("[voq]", "[pfc]\nkind = \"off\"\n[voq]");
    assert_eq!(result(&with_off, &[]).manifest["digest"], plain.manifest["digest"]);
    let headroom = 3 * 9000 + 64 + 118 * 64;
    check(
        &lossless,
        &[
            ("xoff = \"18kB\"", "kind = \"off\"", "x.toml: voq.small: missing: write for example small = 1 in [voq]"),
            (
                "[pfc]",
                "[voq]\nsmall = 50\n[pfc]",
                "x.toml:31:9: voq.small: a VOQ's capacity drops packets of a lossless class: take it out, so that VOQs \
                 take what hosts' accounts let in, or say pfc.allow_loss = true",
            ),
            ("[pfc]", "[voq]\nsmall = 50\n[pfc]\nallow_loss = true", "accepted"),
            (
                "[pfc]",
                "[voq]\nlarge = 50\nadvance = \"1ms\"\n[pfc]",
                "x.toml:30:2: voq.small: missing: voq.large needs it; add it, or take out voq.large",
            ),
            (
                "xoff = \"18kB\"",
                "classes = [2]",
                "x.toml:31:11: pfc.classes: there is no class 2: the packets of a hybrid fabric are all of class 0",
            ),
            (
                "xoff = \"18kB\"",
                &format!("xoff = \"18kB\"\nbuffer = \"{}B\"", 18_000 + headroom),
                "x.toml:32:10: pfc.buffer: a buffer of 52616B is 8788B too small on the link uplink.0 (and 2 links \
                 more): the buffer must hold xoff, 18kB, and the headroom, 43404B. The headroom takes three packets, a \
                 pause frame, the cable both ways and a response of 3.072us. Use a larger buffer or a smaller xoff, or \
                 say pfc.allow_loss = true",
            ),
        ],
    );
}

/// RED of VOQs marks and drops; in a lossless class it only marks; `drop_beyond` is refused there.
#[test]
fn red_of_voqs_only_marks_in_a_lossless_class() {
    const BAND: [(&str, &str); 3] = [("voq.red.min", "2"), ("voq.red.max", "4"), ("voq.red.weight", "1.0")];
    let pair = include_str!("../specs/pair.toml").replace("duration = \"144ms\"", "duration = \"58ms\"");
    let lossless = pair.replace("[voq]\nsmall = 16", "[pfc]\nxoff = \"18kB\"");
    let ecn = [&BAND[..], &[("tcp.ecn", "true")]].concat();
    let marked = |outcome: &Outcome| integers(outcome, "pairs", "marked").iter().sum::<i64>();
    let dropped = |outcome: &Outcome| metric(outcome, "dropped_packets");
    // ACKs are not ECN-capable, but the VOQs that they pass are short.
    let paused = result(&lossless, &ecn);
    assert!(marked(&paused) > 0);
    assert_eq!((dropped(&paused), metric(&paused, "pause_lost_packets")), (0.0, 0.0));
    let plain = result(&lossless, &BAND);
    assert_eq!((marked(&plain), &plain.manifest["digest"]), (0, &result(&lossless, &[]).manifest["digest"]));
    // Without PFC it drops what cannot be marked, and beyond the band all.
    let early = result(&pair, &[&BAND[..], &[("voq.small", "1000")]].concat());
    assert!(dropped(&early) > 0.0 && marked(&early) == 0);
    let kind = |outcome: &Outcome| texts(outcome, "ports", "marking").join(" ");
    assert!(kind(&paused).contains("marked") && kind(&plain).contains("not capable"));
    check(
        &format!("{lossless}[voq.red]\nmin = 5\nmax = 10\ndrop_beyond = true\n"),
        &[
            (
                "min = 5",
                "min = 6",
                "x.toml:46:15: voq.red.drop_beyond: RED drops packets of a lossless class; without this key it only \
                 marks there: take it out, or say pfc.allow_loss = true",
            ),
            ("drop_beyond = true", "drop_beyond = false", "accepted"),
            ("xoff = \"18kB\"", "allow_loss = true", "accepted"),
        ],
    );
}
