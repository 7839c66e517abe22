//! Every kind of wrong input, each with the whole message that a user gets.
//!
//! A case is the sound experiment with some of its text replaced, or with overrides laid over it.

use crate::{STAR, check, kinds, reported, reported_at, unit_error};
use firstlight_spec::{OverrideValue, Request, Spec};
use firstlight_transport::{CcConfig, TcpConfig, WINDOW_OF_2012};
use firstlight_units::{Rate, Span};

const PAIR: &str = "\
duration = \"2s\"
warmup = \"200ms\"

[fabric]
kind = \"hybrid\"
racks = 3
hosts_per_rack = 16

[hosts]
rate = \"40Gbps\"

[packet]
rate = \"10Gbps\"
delay = \"5us\"

[circuit]
rate = \"80Gbps\"
delay = \"30us\"

[schedule]
kind = \"strobe\"
day = \"180us\"
night = \"20us\"

[voq]
small = 16

[[flows]]
from = \"rack0\"
to = \"rack1\"
";

#[test]
#[rustfmt::skip]
fn the_experiments_themselves_are_sound() {
    assert!(Spec::read(PAIR, "x.toml", &[]).is_ok());
    assert!(Spec::read(STAR, "x.toml", &[]).is_ok());
}

#[test]
#[rustfmt::skip]
fn what_is_not_toml() {
    check(PAIR, &[
        ("[fabric]", "[fabric", "x.toml:4:8: this is not TOML: unclosed table, expected `]`"),
        ("racks = 3", "racks = 3\nracks = 4", "x.toml:7:1: this is not TOML: duplicate key"),
        ("racks = 3", "racks = 99999999999999999999",
         "x.toml:6:9: fabric.racks: the number 99999999999999999999 is too large"),
    ]);
}

#[test]
#[rustfmt::skip]
fn unknown_keys_and_tables() {
    check(PAIR, &[
        ("small = 16", "smal = 16", "x.toml:26:1: voq.smal: unknown key: did you mean voq.small?"),
        ("[voq]", "[vok]", "x.toml:25:2: vok: unknown key: did you mean voq?"),
        ("small = 16", "small = 16\nrto_min = \"1ms\"",
         "x.toml:27:1: voq.rto_min: unknown key: did you mean tcp.rto_min?"),
        ("duration", "cc", "x.toml:1:1: cc: unknown key: did you mean tcp.cc?"),
        ("[circuit]", "[circuit]\nzzz = 1", "x.toml:17:1: circuit.zzz: unknown key: [circuit] has rate, delay"),
        ("from =", "form =", "x.toml:29:1: flows.0.form: unknown key: did you mean flows.0.from?"),
        ("duration", "durration", "x.toml:1:1: durration: unknown key: did you mean duration?"),
        ("", "[voq.small]\n", "x.toml:31:6: this is not TOML: duplicate key"),
    ]);
}

#[test]
#[rustfmt::skip]
fn all_unknown_keys_are_reported_together() {
    let expected = "x.toml:6:1: fabric.rack: unknown key: did you mean fabric.racks?\n\
                    x.toml:7:1: fabric.hosts_per_rac: unknown key: did you mean fabric.hosts_per_rack?";
    assert_eq!(reported(PAIR, "racks = 3\nhosts_per_rack", "rack = 3\nhosts_per_rac"), expected);
}

#[test]
#[rustfmt::skip]
fn wrong_types_and_units() {
    check(PAIR, &[
        ("\"2s\"", "\"2\"", &format!("x.toml:1:12: duration: {}", unit_error::<Span>("2"))),
        ("\"2s\"", "2",
         "x.toml:1:12: duration: expected a time, found the number 2, which has no unit: write for example \"180us\""),
        ("\"2s\"", "\"2min\"", &format!("x.toml:1:12: duration: {}", unit_error::<Span>("2min"))),
        ("\"2s\"", "\"2Gbps\"", &format!("x.toml:1:12: duration: {}", unit_error::<Span>("2Gbps"))),
        ("\"2s\"", "\"-2s\"", "x.toml:1:12: duration: '-2s' is not a time: write for example \"180us\""),
        ("\"2s\"", "true", "x.toml:1:12: duration: expected a time, found true: write for example \"180us\""),
        ("\"2s\"", "1979-05-27",
         "x.toml:1:12: duration: expected a time, found the date 1979-05-27: write for example \"180us\""),
        ("\"40Gbps\"", "\"40GB\"", &format!("x.toml:10:8: hosts.rate: {}", unit_error::<Rate>("40GB"))),
        ("\"40Gbps\"", "\"fast\"", "x.toml:10:8: hosts.rate: 'fast' is not a rate: write for example \"10Gbps\""),
        ("racks = 3", "racks = \"3\"",
         "x.toml:6:9: fabric.racks: expected a whole number of racks, found the text \"3\": write for example 2"),
        ("racks = 3", "racks = 3.5",
         "x.toml:6:9: fabric.racks: expected a whole number of racks, found the number 3.5: write for example 2"),
        ("kind = \"hybrid\"", "kind = \"hybird\"", &format!("x.toml:5:8: fabric.kind: 'hybird' is not one \
         of {}: did you mean \"hybrid\"?", kinds("fabric", "kind").join(", "))),
        ("from = \"rack0\"", "from = \"rack\"",
         "x.toml:29:8: flows.0.from: 'rack' names no hosts: write \"rack0\", \"host3\", \"rack0.host3\" or \"all\""),
        ("from = \"rack0\"", "from = \"rack-1\"",
         "x.toml:29:8: flows.0.from: 'rack-1' names no hosts: write \"rack0\", \"host3\", \"rack0.host3\" or \"all\""),
        ("", "[measure]\npair = [0]\n", "x.toml:32:8: measure.pair: expected a pair of racks, source and \
                                         destination, found a list: write for example [0, 1]"),
        ("", "[tcp]\nfrto = 1\n",
         "x.toml:32:8: tcp.frto: expected true or false, found the number 1: write for example true"),
        ("[voq]\nsmall = 16", "[[voq]]\nsmall = 16", "x.toml:25:1: voq: expected a table, found a list: write [voq]"),
        ("[[flows]]", "[flows]", "x.toml:28:1: flows: expected a list of tables, found a table: write [[flows]]"),
    ]);
}

#[test]
#[rustfmt::skip]
fn values_out_of_range() {
    check(PAIR, &[
        ("racks = 3", "racks = 1", "x.toml:6:9: fabric.racks: 1 racks is out of range: use 2 to 4096"),
        ("racks = 3", "racks = -3", "x.toml:6:9: fabric.racks: -3 racks is out of range: use 2 to 4096"),
        ("hosts_per_rack = 16", "hosts_per_rack = 0",
         "x.toml:7:18: fabric.hosts_per_rack: 0 hosts is out of range: use 1 to 65535"),
        ("hosts_per_rack = 16", "hosts_per_rack = 30_000",
         "x.toml:7:18: fabric.hosts_per_rack: 90000 hosts in all are too many: use at most 65535"),
        ("\"40Gbps\"", "\"0Gbps\"",
         "x.toml:10:8: hosts.rate: a link of zero rate never sends: write for example \"10Gbps\""),
        ("\"2s\"", "\"0s\"", "x.toml:1:12: duration: must be longer than zero"),
        ("\"40Gbps\"", "\"40Gbps\"\nmtu = \"99B\"", "x.toml:11:7: hosts.mtu: 99B is out of range: use 100B to 65535B"),
        ("\"40Gbps\"", "\"40Gbps\"\nmtu = \"64KiB\"",
         "x.toml:11:7: hosts.mtu: 64KiB is out of range: use 100B to 65535B"),
        ("\"40Gbps\"", "\"40Gbps\"\nloss = 1.5", "x.toml:11:8: hosts.loss: 1.5 is out of range: use 0 to 1"),
        ("\"40Gbps\"", "\"40Gbps\"\nloss = nan", "x.toml:11:8: hosts.loss: NaN is out of range: use 0 to 1"),
        ("small = 16", "small = 0", "x.toml:26:9: voq.small: 0 packets is out of range: use 1 to 16777216"),
        ("", "[retcp]\nalpha = 0.5\n", "x.toml:32:9: retcp.alpha: 0.5 is out of range: use 1 to 1000"),
    ]);
}

#[test]
#[rustfmt::skip]
fn values_that_do_not_fit_each_other() {
    check(PAIR, &[
        ("\"40Gbps\"", "\"40Gbps\"\nloss = 1.0", "x.toml:11:8: hosts.loss: at 1 no packet arrives: use less than 1"),
        ("", "[tcp]\nreceive_window = \"8947B\"\n",
         "x.toml:32:18: tcp.receive_window: a receive window of 8947B holds no segment of 8948 B: use at least that"),
        ("", "[measure]\nseries = \"1ns\"\n",
         "x.toml:32:10: measure.series: 1ns makes more than 1000000 samples in a fold of 1200us: use at least 1200ps"),
        ("", "[tcp]\nrto_max = \"999ms\"\n",
         "x.toml:32:11: tcp.rto_max: 999ms is too short: use at least rto_min and rto_initial, here 1s"),
        ("\"200ms\"", "\"2s\"", "x.toml:2:10: warmup: 2s leaves nothing to measure of a duration of 2s: use less"),
        ("\"180us\"", "\"899ns\"",
         "x.toml:22:7: schedule.day: 899ns is shorter than one packet: 9kB at 80Gbps take 900ns"),
        ("small = 16", "small = 16\nlarge = 50",
         "x.toml:27:9: voq.large: has no effect without voq.advance: add for example advance = \"600us\""),
        ("small = 16", "small = 16\nadvance = \"1us\"",
         "x.toml:27:11: voq.advance: has no effect without voq.large: add for example large = 50"),
        ("small = 16", "small = 16\nlarge = 50\nadvance = \"400us\"", "accepted"),
        ("small = 16", "small = 16\nlinger = \"10us\"",
         "x.toml:27:10: voq.linger: has no effect: it counts only when voq.large is given, but it is not; take it out"),
        ("small = 16", "small = 16\nlarge = 50\nadvance = \"1us\"\nlinger = \"401us\"",
         "x.toml:29:10: voq.linger: 401us is longer than the week, 400us: use at most that"),
        ("small = 16", "small = 16\nlarge = 50\nadvance = \"401us\"",
         "x.toml:28:11: voq.advance: 401us is longer than the week, 400us: use at most that"),
        ("small = 16", "small = 16\nlarge = 8\nadvance = \"40us\"",
         "x.toml:27:9: voq.large: 8 packets are fewer than voq.small = 16: use at least 16"),
        ("", "[marks]\nadvance = \"1ms\"\n",
         "x.toml:32:11: marks.advance: 1ms is longer than the week, 400us: use at most that"),
        ("", "[measure]\npair = [1, 1]\n",
         "x.toml:32:8: measure.pair: [1, 1] is one rack, not a pair: write for example [0, 1]"),
        ("", "[measure]\npair = [0, 3]\n",
         "x.toml:32:8: measure.pair: there is no rack 3: the fabric has racks 0 to 2"),
        ("delay = \"5us\"", "delay = \"5us\"\nswitched = false",
         "x.toml:15:12: packet.switched: a network without a switch joins two racks, not 3: use fabric.racks = 2 or \
          take it out"),
        ("kind = \"strobe\"", "kind = \"etalon\"\nstands_for = 2",
         "x.toml:22:14: schedule.stands_for: 2 racks is out of range: use 3 to 65535"),
    ]);
}

#[test]
#[rustfmt::skip]
fn etalon_and_listed_weeks() {
    let etalon = PAIR.replace("kind = \"strobe\"", "kind = \"etalon\"\nstands_for = 25");
    check(
        &etalon,
        &[(
            "racks = 3",
            "racks = 4",
            "x.toml:6:9: fabric.racks: the etalon schedule is of 3 racks that stand for more, not of 4: use racks = 3",
        )],
    );
    let listed = PAIR
        .replace("kind = \"strobe\"", "kind = \"list\"")
        .replace("[voq]", "[[schedule.days]]\nmatching = [[0, 1]]\n\n[voq]");
    check(&listed, &[
        ("[[0, 1]]", "[]", "accepted"),
        ("[[0, 1]]", "[[0, 1], [1, 0]]\nday = \"1ms\"",
         "x.toml:22:7: schedule.day: has no effect: it counts only when a day has no length of its own, but each of \
          schedule.days has its own; take it out"),
        ("[[0, 1]]", "[0, 1]", "x.toml:26:12: schedule.days.0.matching: expected a pair of racks, source and \
                                destination, found the number 0: write for example [0, 1]"),
        ("[[0, 1]]", "[[0, 0]]", "x.toml:26:12: schedule.days.0.matching: rack 0 is matched with itself"),
        ("[[0, 1]]", "[[0, 1], [0, 2]]",
         "x.toml:26:12: schedule.days.0.matching: rack 0 sends to two racks, 1 and 2: a matching allows one"),
        ("[[0, 1]]", "[[0, 1], [2, 1]]",
         "x.toml:26:12: schedule.days.0.matching: rack 1 receives from two racks, 0 and 2: a matching allows one"),
        ("[[0, 1]]", "[[0, 9]]",
         "x.toml:26:12: schedule.days.0.matching: rack 9 does not exist: the fabric has racks 0 to 2"),
        ("[[schedule.days]]\nmatching = [[0, 1]]", "",
         "x.toml:20:2: schedule.days: no day: add [[schedule.days]] with matching and day"),
    ]);
}

#[test]
#[rustfmt::skip]
fn flows_that_cannot_be() {
    check(PAIR, &[
        ("[[flows]]\nfrom = \"rack0\"\nto = \"rack1\"\n", "",
         "x.toml: flows: no flow, so nothing would happen: add [[flows]] with from = \"rack0\" and to = \"rack1\""),
        ("to = \"rack1\"", "to = \"rack0\"",
         "x.toml:30:6: flows.0.to: rack0 would send to itself: name another rack or a host"),
        ("from = \"rack0\"\nto = \"rack1\"", "from = \"host3\"\nto = \"rack0.host3\"",
         "x.toml:30:6: flows.0.to: rack0.host3 would send to itself: name another host"),
        ("to = \"rack1\"", "to = \"rack3\"",
         "x.toml:30:6: flows.0.to: there is no rack3: the fabric has rack0 to rack2"),
        ("to = \"rack1\"", "to = \"host48\"",
         "x.toml:30:6: flows.0.to: there is no host48: the fabric has host0 to host47"),
        ("to = \"rack1\"", "to = \"rack1.host16\"",
         "x.toml:30:6: flows.0.to: there is no rack1.host16: the rack has host0 to host15"),
        ("to = \"rack1\"", "to = \"all\"",
         "x.toml:30:6: flows.0.to: rack0 to all is not a pattern: use a rack to a rack, or a host at one end"),
        ("", "size = \"1MB\"\ntotal = \"1GB\"\n",
         "x.toml:32:9: flows.0.total: size and total exclude each other: keep one"),
        ("", "total = \"15B\"\n", "x.toml:31:9: flows.0.total: 15B is too little for 16 flows: use at least 16B"),
        ("", "size = \"0B\"\n", "x.toml:31:8: flows.0.size: 0B is out of range: use 1B to 1152921504606846976B"),
        ("", "start = \"2s\"\n", "x.toml:31:9: flows.0.start: the flow may start after the run's end: start + jitter \
                                  must be less than duration, 2s"),
        ("", "jitter = \"2s\"\n", "x.toml:31:10: flows.0.jitter: the flow may start after the run's end: start + \
                                   jitter must be less than duration, 2s"),
        ("", "count = 0\n", "x.toml:31:9: flows.0.count: 0 flows is out of range: use 1 to 10000"),
        ("", "cc = \"bbr\"\n", "accepted"),
        ("", "cc = \"bbrr\"\n", &format!("x.toml:31:6: flows.0.cc: 'bbrr' is not one of {}, reno: did you mean \
         \"bbr\"?", CcConfig::NAMES.join(", "))),
        ("", "[tcp]\ncc = \"veno\"\n", "accepted"),
        ("", "cc = \"reno\"\n", "accepted"),
    ]);
    let crowd = PAIR.replace("to = \"rack1\"", "to = \"rack1.host0\"\ncount = 4000");
    assert_eq!(reported(&crowd, "rack1.host0", "rack1.host1"),
        "x.toml:28:1: flows.0: host17 has more than 50000 connections, all that its ports allow");
}

#[test]
#[rustfmt::skip]
fn ece_has_one_meaning() {
    let ece = "the receivers of marked packets set ECE, which retcp takes for a circuit: take it out, or use no retcp";
    check(PAIR, &[
        ("small = 16", "small = 16\necn_small = 10\n[tcp]\ncc = \"retcp\"",
         &format!("x.toml:27:13: voq.ecn_small: {ece}")),
        ("small = 16", "small = 16\nlarge = 50\nadvance = \"300us\"\necn_large = 31\n[tcp]\ncc = \"retcp\"",
         &format!("x.toml:29:13: voq.ecn_large: {ece}")),
        ("small = 16", "small = 16\n[voq.red]\nmin = 4\nmax = 12\n[tcp]\ncc = \"retcp\"",
         &format!("x.toml:27:6: voq.red: {ece}")),
        ("small = 16", "small = 16\necn_small = 10\n[marks]", "accepted"),
    ]);
    check(STAR, &[("", "cc = \"retcp\"\n[switch]\necn = 9\n", &format!("x.toml:15:7: switch.ecn: {ece}"))]);
}

#[test]
#[rustfmt::skip]
fn notices_of_circuits() {
    let notices = "[marks]\ncarrier = \"notices\"";
    let linux = format!("rate = \"40Gbps\"\nkind = \"linux\"\n{notices}");
    let computed = format!("{notices}\n[schedule]\nkind = \"solstice\"\nweek = \"2ms\"");
    check(PAIR, &[
        ("small = 16", &format!("small = 16\n{notices}\ndelay = \"3us\""), "accepted"),
        ("small = 16", "small = 16\n[marks]\ndelay = \"3us\"",
         "x.toml:28:9: marks.delay: has no effect: marks take as long as ACKs; take it out, or write carrier = \
          \"notices\""),
        ("small = 16", &format!("small = 16\n{notices}\nadvance = \"500us\""),
         "x.toml:29:11: marks.advance: 500us is longer than the week, 400us: use at most that"),
        ("rate = \"40Gbps\"", &linux, "x.toml:13:11: marks.carrier: a kernel gets no notices, and this experiment \
                                       has Linux hosts: write carrier = \"acks\""),
        ("[schedule]\nkind = \"strobe\"\nday = \"180us\"", &computed,
         "x.toml:21:11: marks.carrier: notices are of a schedule that is not computed: write carrier = \"acks\""),
    ]);
}

#[test]
#[rustfmt::skip]
fn segregated_routing() {
    let not_with = |other: &str| format!("segregation: is not modelled together with {other}: take out one of them");
    check(PAIR, &[
        ("small = 16", "small = 16\n[segregation]\nelephant = \"1B\"", "accepted"),
        ("small = 16", "small = 16\n[segregation]\nelephant = \"0B\"",
         "x.toml:28:12: segregation.elephant: 0B is out of range: use 1B to 1152921504606846976B"),
        ("small = 16", "small = 16\n[segregation]",
         "x.toml:27:2: segregation.elephant: missing: write for example elephant = \"9000B\" in [segregation]"),
        ("small = 16", "small = 16\n[segregation]\nelephant = \"1MB\"\n[qcn]", &format!("x.toml:27:2: {}",
         not_with("[qcn]"))),
        ("small = 16", "[segregation]\nelephant = \"1MB\"\n[pfc]", &format!("x.toml:26:2: {}", not_with("[pfc]"))),
    ]);
}

#[test]
#[rustfmt::skip]
fn red_of_voqs() {
    let both = "min and max must be both in packets or both in data: write for example min = 20 and max = 60";
    let missing = |key: &str| format!("x.toml:27:6: voq.red.{key}: missing: write for example {key} = 100 in \
                                       [voq.red]");
    let way = |threshold: &str| format!("x.toml:27:6: voq.red: there is {threshold} already, and a queue marks in \
                                         one way: take one of them out");
    check(PAIR, &[
        ("small = 16", "small = 16\n[voq.red]\nmin = 4\nmax = 12", "accepted"),
        ("small = 16", "small = 16\nred = { min = \"36kB\", max = \"108kB\", gentle = true, drop_beyond = false }",
         "accepted"),
        ("small = 16", "ecn_small = 9\nsmall = 16\n[voq.red]\nmin = 4\nmax = 12", &way("voq.ecn_small").replace(":27:",
         ":28:")),
        ("small = 16", "small = 16\nlarge = 50\nadvance = \"1us\"\necn_large = 31\n[voq.red]\nmin = 4\nmax = 12",
         &way("voq.ecn_large").replace(":27:", ":30:")),
        ("small = 16", "small = 16\n[voq.red]", &format!("{}\n{}", missing("min"), missing("max"))),
        ("small = 16", "small = 16\n[voq.red]\nmin = 4\nmax = \"108kB\"", &format!("x.toml:29:7: voq.red.max: {both}")),
        ("small = 16", "small = 16\n[voq.red]\nmin = 4\nmax = 3",
         "x.toml:29:7: voq.red.max: 3 packets is below min, 4 packets: use at least that"),
        ("small = 16", "small = 16\n[voq.red]\nmin = 4\nmax = 12\nprobability = 0.0",
         "x.toml:30:15: voq.red.probability: 0 is out of range: use more than 0, at most 1"),
        ("small = 16", "small = 16\n[voq.red]\nmin = 4\nmax = 12\nweigth = 0.1",
         "x.toml:30:1: voq.red.weigth: unknown key: did you mean voq.red.weight?"),
    ]);
    check(STAR, &[("", "[voq.red]\nmin = 4\nmax = 12\n",
        "x.toml:13:2: voq: has no effect: it counts only when fabric.kind = \"hybrid\", but it is \"star\"; take it \
         out")]);
}

#[test]
#[rustfmt::skip]
fn keys_without_effect() {
    let only = |when: &str, found: &str| format!("has no effect: it counts only when {when}, but {found}; take it out");
    let uses = only("a flow uses retcp", "the flows use cubic");
    let star = only("fabric.kind = \"star\"", "it is \"hybrid\"");
    let packet = only("fabric.kind is not \"hybrid\"", "it is \"hybrid\"");
    let etalon = only("schedule.kind = \"etalon\"", "it is \"strobe\"");
    let own = only("a flow names no cc of its own", "every flow names its own");
    let cubic = only("a flow uses cubic", "the flows use retcp");
    check(PAIR, &[
        ("", "[retcp]\nalpha = 2\n", &format!("x.toml:31:2: retcp: {uses}")),
        ("", "[retcp]\n", &format!("x.toml:31:2: retcp: {uses}")),
        ("", "[switch]\nqueue = 9\necn = 3\n", &format!("x.toml:31:2: switch: {packet}")),
        ("racks = 3", "racks = 3\nhosts = 9", &format!("x.toml:7:9: fabric.hosts: {star}")),
        ("night", "stands_for = 25\nnight", &format!("x.toml:23:14: schedule.stands_for: {etalon}")),
        ("small = 16", "small = 16\necn_large = 31", &format!("x.toml:27:13: voq.ecn_large: {}",
         only("voq.large is given", "it is not"))),
        ("", "[measure]\nfold = 2\n", &format!( "x.toml:32:8: measure.fold: {}", only("measure.series is given",
         "it is not") )),
        ("", "cc = \"retcp\"\n[tcp]\ncc = \"dctcp\"\n", &format!("x.toml:33:6: tcp.cc: {own}")),
        ("", "cc = \"retcp\"\n[cubic]\nbeta = 0.7\n", &format!("x.toml:32:2: cubic: {cubic}")),
        ("", "[[schedule.days]]\nmatching = []\n", &format!( "x.toml:31:1: schedule.days.0: {}",
         only("schedule.kind = \"list\"", "it is \"strobe\"") )),
        ("", "[sweep]\n\"voq.small\" = [4]\n",
         "x.toml:31:2: sweep: a plain run takes no [sweep]: use `firstlight sweep`"),
    ]);
    let hybrid = only("fabric.kind = \"hybrid\"", "it is \"star\"");
    check(STAR, &[
        ("", "[voq]\nsmall = 3\n", &format!("x.toml:13:2: voq: {hybrid}")),
        ("", "[marks]\n", &format!("x.toml:13:2: marks: {hybrid}")),
        ("", "[segregation]\nelephant = \"1MB\"\n", &format!("x.toml:13:2: segregation: {hybrid}")),
        ("", "[measure]\npair = [0, 1]\n", &format!("x.toml:14:8: measure.pair: {hybrid}")),
        ("from = \"all\"", "from = \"rack0\"",
         "x.toml:11:8: flows.0.from: the fabric has no racks: write host0 to host2 or all"),
    ]);
}

#[test]
#[rustfmt::skip]
fn missing_keys() {
    check(PAIR, &[
        ("duration = \"2s\"\n", "", "x.toml: duration: missing: write for example duration = \"180us\" at the top"),
        ("kind = \"hybrid\"\n", "",
         "x.toml:4:2: fabric.kind: missing: write for example kind = \"hybrid\" in [fabric]"),
        ("small = 16\n", "", "x.toml:25:2: voq.small: missing: write for example small = 1 in [voq]"),
        ("from = \"rack0\"\n", "",
         "x.toml:28:1: flows.0.from: missing: write for example from = \"rack0\" in [[flows]]"),
        ("[hosts]\nrate = \"40Gbps\"\n", "",
         "x.toml: hosts.rate: missing: write for example rate = \"10Gbps\" in [hosts]"),
        ("day = \"180us\"\n", "",
         "x.toml:20:2: schedule.day: missing: write for example day = \"180us\" in [schedule]"),
    ]);
    let both = "x.toml:12:2: packet.rate: missing: write for example rate = \"10Gbps\" in [packet]\n\
                x.toml:12:2: packet.delay: missing: write for example delay = \"180us\" in [packet]";
    assert_eq!(reported(PAIR, "[packet]\nrate = \"10Gbps\"\ndelay = \"5us\"", "[packet]"), both);
    let fabric = "x.toml: fabric: missing: write for example [fabric] with kind = \"hybrid\"";
    assert_eq!(reported(STAR, "[fabric]\nkind = \"star\"\nhosts = 3\n", ""), fabric);
}

#[test]
#[rustfmt::skip]
fn what_would_leave_the_clock() {
    check(PAIR, &[
        ("\"2s\"", "\"99999999999s\"", "x.toml:1:12: duration: '99999999999s' is too large"),
        ("\"2s\"", "\"8640001s\"",
         "x.toml:1:12: duration: 8640001s is too long for the engine's clock: use at most 100 days"),
        ("\"2s\"", "\"500000s\"\ntime_scale = 20", "x.toml:1:12: duration: 500000s times time_scale = 20 is too long \
                                                    for the engine's clock: use at most 100 days"),
        ("\"5us\"", "\"864001s\"",
         "x.toml:14:9: packet.delay: 864001s is too long for the engine's clock: use at most 10 days"),
        ("\"10Gbps\"", "\"71999bps\"", "x.toml:13:8: packet.rate: at 71999bps one packet of 9kB takes longer than \
                                        1s, time_scale included: use at least 72000bps"),
        ("\"2s\"", "\"2s\"\ntime_scale = 0", "x.toml:2:14: time_scale: 0 is out of range: use 1 to 1000000"),
    ]);
}

#[test]
#[rustfmt::skip]
fn overrides_say_where_they_come_from() {
    let text = |key: &str, value: OverrideValue| match Spec::read(PAIR, "x.toml", &[(key.into(), value)]) {
        Ok(_) => "accepted".into(),
        Err(error) => error.to_string(),
    };
    let typed = |key: &str, value: &str| text(key, OverrideValue::Text(value.into()));
    assert_eq!(typed("voq.small", "50"), "accepted");
    assert_eq!(typed("voq.small", "5.5"), "x.toml, from --set voq.small: voq.small: expected a whole number of \
                                           packets, found the number 5.5: write for example 1");
    assert_eq!(typed("voq.larg", "50"), "x.toml, from --set voq.larg: voq.larg: unknown key: did you mean voq.large?");
    assert_eq!(typed("duration", "5"), format!("x.toml, from --set duration: duration: {}", unit_error::<Span>("5")));
    assert_eq!(typed("seed", "18446744073709551616"),
        "x.toml, from --set seed: seed: the number 18446744073709551616 is too large");
    assert_eq!(text("duration", OverrideValue::Integer(5)),
        "x.toml, from --set duration: duration: expected a time, found the number 5, which has no unit: write for \
         example \"180us\"");
    assert_eq!(typed("measure.pair", "[1, 0]"), "accepted");
    assert_eq!(typed("flows.0.cc", "retcp"), "accepted");
    assert_eq!(typed("flows.3.cc", "retcp"),
        "x.toml, from --set flows.3.cc: flows.3.cc: flows has 1 entry: write flows.0");
    assert_eq!(typed("flows.cc", "retcp"),
        "x.toml, from --set flows.cc: flows.cc: flows has 1 entry: write flows.0");
    assert_eq!(typed("voq.small.x", "1"),
        "x.toml, from --set voq.small.x: voq.small.x: voq.small is the number 16, with nothing below it");
    assert_eq!(typed("marks.advance", "100us"), "accepted");
    assert_eq!(typed("retcp.alpha", "3"), "x.toml, from --set retcp.alpha: retcp: has no effect: it counts only when \
                                           a flow uses retcp, but the flows use cubic; take it out");
    assert_eq!(text("hosts.rate", OverrideValue::Remove),
        "x.toml:9:2: hosts.rate: missing: write for example rate = \"10Gbps\" in [hosts]");
    assert_eq!(typed("", "1"), "x.toml, from --set : an empty name: write a key like voq.large");
}

#[test]
#[rustfmt::skip]
fn a_sweep_is_checked_where_it_is_allowed() {
    let read = |sweep: &str| Request::read(&format!("{PAIR}[sweep]\n{sweep}\n"), "x.toml", &[], true);
    let message = |sweep: &str| read(sweep).unwrap_err().to_string();
    let Request::Network(spec) = read("\"voq.small\" = [4, 8]\ntcp.cc = [\"cubic\", \"retcp\"]").unwrap() else {
        panic!("an experiment on a network")
    };
    let keys: Vec<&str> = spec.sweep.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["voq.small", "tcp.cc"]);
    assert_eq!(message("\"voq.smal\" = [4]"), "x.toml:32:1: sweep.voq.smal: unknown key: did you mean voq.small?");
    assert_eq!(message("\"voq.small\" = 4"),
        "x.toml:32:15: sweep.voq.small: expected a list of values, found the number 4: write for example [1]");
    assert_eq!(message("\"voq.small\" = []"),
        "x.toml:32:15: sweep.voq.small: expected a list of values, found a list: write for example [1]");
    assert_eq!(message("\"voq.small\" = [4, \"x\"]"),
        "x.toml:32:19: sweep.voq.small: expected a whole number of packets, found the text \"x\": write for example 1");
}

/// A star with one workload of a kind.
fn workload(kind: &str, keys: &str) -> String {
    reported(STAR, "", &format!("[[workload]]\nkind = \"{kind}\"\n{keys}\n"))
}

#[test]
#[rustfmt::skip]
fn workloads_that_cannot_be() {
    let size = "size = \"1kB\"\n";
    let poisson = |keys: &str| workload("poisson", keys);
    assert_eq!(poisson(&format!("load = 0.01\n{size}")), "accepted");
    assert_eq!(poisson(size), "x.toml:13:1: workload.0.load: missing: write for example load = 0.5 in [[workload]]");
    assert_eq!(poisson("load = 0.5"),
        "x.toml:13:1: workload.0.sizes: missing: write for example sizes = \"web-search\" in [[workload]]");
    assert_eq!(poisson(&format!("load = 0\n{size}")),
        "x.toml:15:8: workload.0.load: 0 is out of range: use more than 0, at most 2");
    assert_eq!(poisson(&format!("load = 3\n{size}")),
        "x.toml:15:8: workload.0.load: 3 is out of range: use more than 0, at most 2");
    assert_eq!(poisson(&format!("load = 1\nsizes = \"hadoop\"\n{size}")),
        "x.toml:16:9: workload.0.sizes: size and sizes exclude each other: keep one");
    assert_eq!(poisson("load = 1\nsizes = \"hadop\""),
        "x.toml:16:9: workload.0.sizes: 'hadop' is no distribution, and cannot read hadop: No such file or directory \
         (os error 2): did you mean hadoop?");
    assert_eq!(poisson("load = 1\nsizes = \"none.txt\""),
        "x.toml:16:9: workload.0.sizes: 'none.txt' is no distribution, and cannot read none.txt: No such file or \
         directory (os error 2): use web-search, data-mining, hadoop, cache-follower, storage, or a file");
    assert_eq!(poisson("load = 1\nsizes = \"hadoop\"\nunit = \"1460B\""),
        "x.toml:17:8: workload.0.unit: has no effect: it counts only when sizes names a file; take it out");
    assert_eq!(poisson("load = 1\nsize = \"1B\""),
        "x.toml:15:8: workload.0.load: more than 1000000 flows would start in 1s: set flows to fewer, or lower load");
    let reads = |keys: &str| workload("key_value", &format!("to = \"host0\"\nreads = 3\nvalues = 1\n{size}{keys}"));
    assert_eq!(reads("header = \"99B\"\ninterval = \"499ms\""), "accepted");
    assert_eq!(reads("header = \"100B\""),
        "x.toml:19:10: workload.0.header: a request of 100B has no 100B before its rest: use less");
    assert_eq!(reads("interval = \"500ms\""),
        "x.toml:19:12: workload.0.interval: read 3 starts at 1s, after the run's end: use less, or fewer reads");
    assert_eq!(poisson(&format!("load = 1\n{size}from = \"host1\"\nto = \"host1\"")),
        "x.toml:18:6: workload.0.to: the sender would send to itself: name other hosts");
    assert_eq!(poisson(&format!("load = 1\n{size}from = \"host3\"")),
        "x.toml:17:8: workload.0.from: there is no host3: the fabric has host0 to host2");
    assert_eq!(poisson(&format!("load = 1\n{size}start = \"1s\"")),
        "x.toml:17:9: workload.0.start: the flow may start after the run's end: start + jitter must be less than \
         duration, 1s");
    assert_eq!(poisson(&format!("load = 1\n{size}class = 8")),
        "x.toml:17:9: workload.0.class: 8 is out of range: use 0 to 7");
    assert_eq!(poisson(&format!("load = 0.1\n{size}hosts = \"linux\"\nflows = 1\nclass = 1")), "accepted");
    assert_eq!(poisson(&format!("load = 0.1\n{size}name = \"flows\"")),
        "x.toml:17:8: workload.0.name: there is a 'flows' already: name each workload by a name of its own");
    assert_eq!(workload("permutation", "among = \"host1\""),
        "x.toml:15:9: workload.0.among: one host has no other host to send to: name a rack or \"all\"");
    let many = STAR.replace("hosts = 3", "hosts = 2000");
    assert_eq!(reported(&many, "", "[[workload]]\nkind = \"all_to_all\"\n"),
        "x.toml:13:1: workload.0.among: 3998000 flows are too many: use at most 1000000, of fewer hosts");
    assert_eq!(workload("posson", ""), format!("x.toml:14:8: workload.0.kind: 'posson' is not one of {}: did you mean \
                                                \"poisson\"?", kinds("workload", "kind").join(", ")));
    assert_eq!(reported(STAR, "", "[[workload]]\nload = 1\n"),
        "x.toml:13:1: workload.0.kind: missing: write for example kind = \"poisson\" in [[workload]]");
    assert_eq!(workload("file", ""),
        "x.toml:13:1: workload.0.file: missing: write for example file = \"flows.txt\" in [[workload]]");
}

#[test]
#[rustfmt::skip]
fn incasts_staggered_flows_and_probes_that_cannot_be() {
    let incast = |keys: &str| workload("incast", keys);
    assert_eq!(incast(""), "x.toml:13:1: workload.0.to: missing: write for example to = \"host0\" in [[workload]]");
    assert_eq!(incast("to = \"all\""), "x.toml:15:6: workload.0.to: all is not one host: write for example \"host0\"");
    assert_eq!(incast("to = \"host0\"\nfrom = \"host0\""),
        "x.toml:15:6: workload.0.to: host0 would send to itself: name another host");
    assert_eq!(incast("to = \"host0\"\nsenders = 3"),
        "x.toml:16:11: workload.0.senders: only 2 hosts of `from` can send: use at most 2");
    assert_eq!(incast("to = \"host0\"\nrandom = true"),
        "x.toml:16:10: workload.0.random: has no effect: every host of `from` sends anyway; give fewer \
         senders, or take it out");
    assert_eq!(incast("to = \"host0\"\nrounds = 3"),
        "x.toml:16:10: workload.0.rounds: has no effect without period: add for example period = \"10ms\"");
    assert_eq!(incast("to = \"host0\"\nperiod = \"1us\""),
        "x.toml:16:10: workload.0.period: 1000000 rounds of 2 flows are too many: use at most 1000000 flows");
    let staggered = |keys: &str| workload("staggered", &format!("to = \"host0\"\n{keys}"));
    assert_eq!(staggered("interval = \"100ms\""), "accepted");
    assert_eq!(staggered(""),
        "x.toml:13:1: workload.0.interval: missing: write for example interval = \"180us\" in [[workload]]");
    assert_eq!(staggered("interval = \"1s\""), "x.toml:16:12: workload.0.interval: the last of 2 flows would start \
                                                at 1s, after the run's end: use fewer, or a longer duration");
    assert_eq!(staggered("interval = \"1ms\"\nflows = 1001"),
        "x.toml:17:9: workload.0.flows: the last of 1001 flows would start at 1s, after the run's end: use fewer, or \
         a longer duration");
    assert_eq!(staggered("interval = \"1ms\"\nhosts = \"linux\"\nhold = \"1ms\""), "accepted");
    let probe = |keys: &str| workload("probe", &format!("to = \"host0\"\n{keys}"));
    assert_eq!(probe("interval = \"1ms\""), "accepted");
    assert_eq!(probe(""),
        "x.toml:13:1: workload.0.interval: missing: write for example interval = \"1ms\" in [[workload]]");
    assert_eq!(probe("interval = \"1ms\"\nrate = \"1Mbps\""),
        "x.toml:17:8: workload.0.rate: interval and rate exclude each other: keep one");
    assert_eq!(probe("rate = \"11Gbps\""), "x.toml:16:8: workload.0.rate: the host's link of 10Gbps does not carry \
                                            it: 64B take 51200ps, and come every 46546ps");
    assert_eq!(probe("interval = \"1ms\"\npacket = \"9001B\""),
        "x.toml:17:10: workload.0.packet: 9001B are more than hosts.mtu = 9kB: use at most that");
}

/// To look for each place from the file's start would take minutes here.
#[test]
fn of_very_many_problems_the_first_are_told() {
    let many = |text: &dyn Fn(usize) -> String| (0..20_000).map(text).collect::<String>();
    let tables = |text: &str| many(&|_| text.into());
    for (text, first) in [
        (many(&|i| format!("k{i} = 0\n")), "x.toml:1:1: k0: unknown key"),
        (format!("voq = {{ {}}}\n", many(&|i| format!("k{i} = 0, "))), "x.toml:1:9: voq.k0: unknown key"),
    ] {
        let said = reported_at("x.toml", &format!("{text}{STAR}"));
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with(first), "{:.300}", lines[0]);
        assert_eq!((lines.len(), lines[100]), (101, "more problems follow: correct these first"));
    }
    let flows = reported(STAR, "", &tables("[[flows]]\nfrom = \"x\"\nto = \"host0\"\n"));
    assert_eq!(flows.lines().count(), 101);
    assert_eq!(
        flows.lines().nth(1).map(|line| line.starts_with("x.toml:17:8: flows.2.from")),
        Some(true),
        "{flows:.400}"
    );
}

/// A terminal shows what it is, not what it pretends to be.
#[test]
fn marks_that_turn_the_direction_of_writing_are_escaped() {
    let said = reported(STAR, "", "\"\u{202e}\u{200b}x\" = 1\n");
    assert!(said.starts_with(r"x.toml:13:1: flows.0.\u{202e}\u{200b}x: unknown key"), "{said:.300}");
}

#[test]
fn ways_of_tuning_a_buffer() {
    let on = |value: &str| reported(STAR, "", &format!("[tcp]\nautotune = {value}\n"));
    assert_eq!([on("true"), on("false"), on("\"2012\"")], ["accepted"; 3]);
    let named = "x.toml:14:12: tcp.autotune: '2013' is not one of 2012: did you mean \"2012\"?";
    assert_eq!(on("\"2013\""), named);
    let number =
        "x.toml:14:12: tcp.autotune: expected true, false or \"2012\", found the number 2012: write for example true";
    assert_eq!(on("2012"), number);
    let overridden = |value: &str| {
        let set = [("tcp.autotune".to_string(), OverrideValue::Text(value.into()))];
        Spec::read(STAR, "x.toml", &set)
            .map(|spec| spec.tables.tcp.tcp.receive_window)
            .map_err(|error| error.to_string())
    };
    assert_eq!(overridden("2012"), Ok(WINDOW_OF_2012));
    assert_eq!(overridden("true"), Ok(TcpConfig::default().receive_window));
    assert!(overridden("2013").is_err());
    let linux = "to = \"host0\"\nhosts = \"linux\"\n[tcp]\nautotune = \"2012\"\n";
    let kernel = "x.toml:15:12: tcp.autotune: a Linux kernel has no such setting: it tunes buffers as those of today \
                  do; take it out";
    assert_eq!(reported(STAR, "to = \"host0\"\n", linux), kernel);
}

#[test]
fn bounds_of_the_window() {
    for keys in ["min_window = 1", "max_window = 2", "min_window = 1\nmax_window = 1"] {
        assert_eq!(reported(STAR, "", &format!("[tcp]\n{keys}\n")), "accepted");
        assert_eq!(
            reported(STAR, "to = \"host0\"\n", &format!("to = \"host0\"\nhosts = \"linux\"\n[tcp]\n{keys}\n")),
            "accepted"
        );
    }
    let range = "x.toml:14:14: tcp.min_window: 0 packets is out of range: use 1 to 2";
    assert_eq!(reported(STAR, "", "[tcp]\nmin_window = 0\n"), range);
    let cap = "x.toml:14:14: tcp.max_window: a cap below the window's floor, tcp.min_window: use at least 2";
    assert_eq!(reported(STAR, "", "[tcp]\nmax_window = 1\n"), cap);
    let vegas = "x.toml:16:14: tcp.min_window: a Linux kernel has no such setting: the least window of its vegas \
                 is a constant, that of newreno, cubic, dctcp can be set; take it out";
    let linux = "to = \"host0\"\nhosts = \"linux\"\n[tcp]\ncc = \"vegas\"\nmin_window = 1\n";
    assert_eq!(reported(STAR, "to = \"host0\"\n", linux), vegas);
    let least = |cc: &str, rest: &str| reported(STAR, "", &format!("[tcp]\ncc = \"{cc}\"\nmin_window = 1\n{rest}"));
    let own = |who: &str| format!("x.toml:15:14: tcp.min_window: has no effect: {who} own; take it out");
    for cc in ["bbr", "swift", "timely"] {
        assert_eq!(least(cc, ""), own(&format!("{cc} has a floor of its")));
    }
    let and = |cc: &str| format!("[[workload]]\nkind = \"permutation\"\ncc = \"{cc}\"\n");
    assert_eq!(least("swift", &and("bbr")), own("bbr, swift have floors of their"));
    assert_eq!(least("bbr", &and("cubic")), "accepted");
    let on_linux = |cc: &str| {
        let keys = format!("to = \"host0\"\nhosts = \"linux\"\n[tcp]\ncc = \"{cc}\"\nmin_window = 1\n");
        reported(STAR, "to = \"host0\"\n", &keys)
    };
    assert_eq!(on_linux("bbr"), own("bbr has a floor of its").replace("15:14", "16:14"));
    for cc in ["newreno", "reno", "cubic", "dctcp"] {
        assert_eq!(on_linux(cc), "accepted");
    }
    let paced = |least: u8| {
        reported(STAR, "", &format!("[tcp]\ncc = \"dctcp\"\nmin_window = {least}\n[dctcp]\npaced_floor = 0.1\n"))
    };
    assert_eq!(paced(1), "accepted");
    let idle =
        "x.toml:17:15: dctcp.paced_floor: has no effect: the window stays at tcp.min_window, here 2; set that to 1";
    assert_eq!(paced(2), idle);
}

#[test]
#[rustfmt::skip]
fn ecn_capable_syns_need_ecn_and_a_host_that_sends_them() {
    let idle = "x.toml:14:11: tcp.ect_syn: has no effect: no connection negotiates ECN; use dctcp, set tcp.ecn = \
                true, or take it out";
    let linux = "x.toml:15:11: tcp.ect_syn: a Linux kernel sets ECT on SYNs of dctcp alone, not of cubic: let all \
                 that negotiate ECN use dctcp, or write \"none\"";
    let on = |hosts: &str, tcp: &str|
        reported(STAR, "to = \"host0\"\n", &format!("to = \"host0\"\n{hosts}[tcp]\n{tcp}"));
    assert_eq!(on("", "ect_syn = \"both\"\n"), idle);
    assert_eq!(on("", "ect_syn = \"both\"\necn = true\n"), "accepted");
    assert_eq!(on("", "ect_syn = \"syn_ack\"\ncc = \"dctcp\"\n"), "accepted");
    assert_eq!(on("hosts = \"linux\"\n", "ect_syn = \"both\"\necn = true\n"), linux);
    assert_eq!(on("hosts = \"linux\"\n", "ect_syn = \"none\"\necn = true\n"), "accepted");
    assert_eq!(on("hosts = \"linux\"\n", "ect_syn = \"both\"\ncc = \"dctcp\"\n"), "accepted");
}

#[test]
#[rustfmt::skip]
fn keys_of_other_workloads() {
    let only = |kinds: &str, kind: &str| format!("has no effect: it counts only when kind = {kinds}, but this one's \
                                                  is \"{kind}\"; take it out");
    let with = |key: &str| format!("\"{}\"", kinds("workload", key).join("\" or \""));
    assert_eq!(workload("permutation", "load = 0.5"), format!("x.toml:15:8: workload.0.load: {}", only("\"poisson\"",
        "permutation")));
    assert_eq!(workload("all_to_all", "to = \"host1\""), format!("x.toml:15:6: workload.0.to: {}", only(&with("to"),
        "all_to_all")));
    assert_eq!(workload("probe", "to = \"host0\"\ninterval = \"1s\"\ncc = \"cubic\""),
        format!("x.toml:17:6: workload.0.cc: {}", only(&with("cc"), "probe")));
    // A workload's controller counts as a flow's does, a probe has none.
    let dctcp = "[[workload]]\nkind = \"permutation\"\ncc = \"dctcp\"\n[dctcp]\ng = 0.1\n";
    assert_eq!(reported(STAR, "", dctcp), "accepted");
    let alone = STAR.replace("[[flows]]\nfrom = \"all\"\nto = \"host0\"\n", "");
    let own = "x.toml:14:6: tcp.cc: has no effect: it counts only when a flow names no cc of its own, but every flow \
               names its own; take it out";
    let probe = "[tcp]\ncc = \"cubic\"\n[[workload]]\nkind = \"probe\"\nto = \"host0\"\ninterval = \"1ms\"\n";
    assert_eq!(reported(&alone, "", probe).replace("x.toml:11:6", "x.toml:14:6"), own);
    assert_eq!(reported(&alone, "", "[[workload]]\nkind = \"permutation\"\n"), "accepted");
    assert_eq!(reported(STAR, "", "[measure]\nfct_groups = [\"1MB\", \"1kB\"]\n"),
        "x.toml:14:14: measure.fct_groups: 1kB is not larger than what is before it: write sizes that grow, from \
         above 0B");
    assert!(reported(STAR, "",
        "[measure]\nfct_groups = [\"1MB\", \"1MB\"]\n").contains("1MB is not larger than what is before it"));
    assert_eq!(reported(STAR, "", "[measure]\nfct_groups = [\"0B\"]\n"),
        "x.toml:14:14: measure.fct_groups: 0B is out of range: use 1B to 1152921504606846976B");
    assert_eq!(reported(STAR, "", "[measure]\nfct_groups = [3]\n"),
        "x.toml:14:14: measure.fct_groups: expected a size, found the number 3, which has no unit: write for example \
         \"10kB\"");
}
