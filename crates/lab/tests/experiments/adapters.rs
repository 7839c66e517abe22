//! Receive buffers of hosts' adapters, from their keys to tables and warnings.

use crate::{check, integers, metric, numbers, read, result, texts};
use firstlight_lab::{Outcome, inspect};

const INCAST: &str = include_str!("../specs/lossless.toml");
const DRAIN: (&str, &str) = ("adapter.drain", "2Gbps");

/// The row of a name in a table.
fn row(outcome: &Outcome, table: &str, name: &str) -> usize {
    texts(outcome, table, "name").iter().position(|found| found == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Hosts that take in a fifth of what their links bring.
#[test]
fn a_slow_host_pauses_its_switch_and_is_the_root_of_it() {
    let outcome = result(INCAST, &[DRAIN, ("adapter.receive_buffer", "30kB"), ("pfc.xoff", "15kB")]);
    assert_eq!((metric(&outcome, "dropped_packets"), metric(&outcome, "pause_lost_packets")), (0.0, 0.0));
    assert!(outcome.manifest["invalid"].as_array().unwrap().is_empty());
    let slow = row(&outcome, "pauses", "host4.port");
    assert_eq!(texts(&outcome, "pauses", "state")[slow], "paused");
    // Four data flows of 8 Gb/s too much for one of 2 Gb/s.
    assert!(numbers(&outcome, "pauses", "paused_us")[slow] > 3000.0);
    assert_eq!(numbers(&outcome, "pauses", "victim_us")[slow], 0.0);
    let of = |column| integers(&outcome, "pauses", column)[slow];
    assert_eq!((of("headroom_bytes"), of("xoff_bytes"), of("xon_bytes")), (9654, 20_346, 17_346));
    assert!((20_346..=30_000).contains(&of("peak_bytes")));
    let cause = row(&outcome, "pause_causes", "host4.port");
    let reported = |column| &*texts(&outcome, "pause_causes", column)[cause];
    assert_eq!((reported("switch"), reported("egress"), reported("root")), ("host4", "host4.adapter", "host4.adapter"));
    // The sender behind two switches waits for that host.
    let nic = texts(&outcome, "pause_causes", "name").iter().zip(texts(&outcome, "pause_causes", "root"));
    assert!(nic.into_iter().any(|(name, root)| name == "host1.nic" && root == "host4.adapter"));
    assert_eq!(texts(&outcome, "ports", "kind")[row(&outcome, "ports", "host4.adapter")], "adapter");
}

/// Without `[pfc]` the buffer overflows.
#[test]
fn a_slow_host_loses_what_does_not_fit() {
    let lossy = INCAST.replace("[pfc]\nxoff = \"60kB\"\n", "");
    let outcome = result(&lossy, &[DRAIN, ("adapter.receive_buffer", "30kB")]);
    let dropped = integers(&outcome, "ports", "dropped");
    let at_host = dropped[row(&outcome, "ports", "host4.adapter")];
    assert!(at_host > 0 && metric(&outcome, "retransmits") > 0.0);
    assert_eq!(metric(&outcome, "dropped_packets"), dropped.iter().sum::<i64>() as f64);
    // 20 packets of 1,500 bytes fill it; the one that the host is taking in does not wait.
    let waited = integers(&outcome, "ports", "peak_queue")[row(&outcome, "ports", "host4.adapter")];
    assert!((18..=20).contains(&waited), "{waited}");
}

/// A lone flow is as fast as the host takes it in: that is a link more.
#[test]
fn a_lone_flow_has_no_slowdown() {
    let text = "duration = \"20ms\"\n[fabric]\nkind = \"star\"\nhosts = 2\n[hosts]\nrate = \"10Gbps\"\ndelay = \
                \"1us\"\nmtu = \"1500B\"\n[adapter]\ndrain = \"3Gbps\"\n[tcp]\ntick = \"0s\"\n[[flows]]\nfrom = \
                \"host0\"\nto = \"host1\"\nsize = \"14480B\"\n";
    let slowdown = numbers(&result(text, &[]), "flows", "slowdown")[0];
    assert!((slowdown - 1.0).abs() < 1e-9, "{slowdown}");
}

#[test]
fn what_would_be_built_is_told() {
    let reported = |set: &[_]| inspect(&read(INCAST, set));
    let slow = reported(&[DRAIN]);
    let limits = serde_json::json!([{
        "rate": "10Gbps", "xon_bytes": 499_346, "xoff_bytes": 502_346, "headroom_bytes": 9654, "buffer_bytes": 512_000,
        "response_us": 3.072,
    }]);
    let adapter = serde_json::json!({"drain": "2Gbps", "receive_buffer_bytes": 512_000, "links_to_hosts": limits});
    assert_eq!((&slow["adapter"], slow["notes"].to_string().contains("drain")), (&adapter, false));
    assert_eq!(reported(&[DRAIN, ("pfc.kind", "off")])["adapter"]["links_to_hosts"], serde_json::json!([]));
    assert!(reported(&[])["adapter"].is_null());
    let fast = reported(&[("adapter.drain", "10Gbps")])["notes"].to_string();
    let note = "receive buffers never fill: adapter.drain = 10Gbps is not below the rate of any link to a host, 10Gbps \
                at most";
    assert!(fast.contains(note), "{fast}");
}

#[test]
fn buffers_that_are_too_small_are_refused() {
    let base = format!("{INCAST}\n[adapter]\ndrain = \"2Gbps\"\nreceive_buffer = \"9654B\"\n");
    let missing = |place, most: &str, name, bytes, buffer, headroom, response| {
        format!(
            "{place}: adapter.receive_buffer: {buffer} is {bytes} too small on the link {name} (and {most} links \
             more): {headroom} can arrive after the host has requested a pause (three packets, a pause frame, the \
             cable both ways and a response of {response}). Use at least {headroom}, or say pfc.allow_loss = true"
        )
    };
    check(
        &base,
        &[
            ("9654B", "9655B", "accepted"),
            ("9654B", "9653B", &missing("x.toml:36:18", "5", "host0.port", "1B", "9653B", "9654B", "3072ns")),
            ("xoff = \"60kB\"", "xoff = \"60kB\"\nallow_loss = true", "accepted"),
            ("xoff = \"60kB\"", "kind = \"off\"", "accepted"),
            (
                "9654B",
                "1499B",
                "x.toml:36:18: adapter.receive_buffer: 1499B cannot hold a packet of 1500B: use at least that",
            ),
            (
                "drain = \"2Gbps\"\n",
                "",
                "x.toml:35:18: adapter.receive_buffer: has no effect: hosts take arriving packets at once; add \
                 adapter.drain, or take this out",
            ),
        ],
    );
    let pair = include_str!("../specs/pair.toml").replace("[voq]\nsmall = 16", "[pfc]\nxoff = \"18kB\"");
    let hybrid = format!("{pair}\n[adapter]\ndrain = \"2Gbps\"\nreceive_buffer = \"34616B\"\n");
    check(
        &hybrid,
        &[
            ("34616B", "34617B", "accepted"),
            ("34616B", "34615B", &missing("x.toml:46:18", "47", "host0.port", "1B", "34615B", "34616B", "1510400ps")),
        ],
    );
}

/// Allowed losses cause a warning; elsewhere they make a run invalid.
#[test]
fn a_small_buffer_that_is_allowed_loses() {
    let set = [DRAIN, ("adapter.receive_buffer", "3kB"), ("pfc.allow_loss", "true")];
    let outcome = result(INCAST, &set);
    assert!(metric(&outcome, "pause_lost_packets") > 0.0);
    assert_eq!(metric(&outcome, "pause_lost_packets"), metric(&outcome, "dropped_packets"));
}

/// Hosts of a rack that take in slowly pause their ToR, and the pair's senders wait.
#[test]
fn slow_hosts_of_a_hybrid_fabric() {
    let pair = include_str!("../specs/pair.toml").replace("144ms", "28.8ms").replace("48ms", "9.6ms");
    let lossless = pair.replace("[voq]\nsmall = 16", "[pfc]\nxoff = \"18kB\"");
    let outcome = result(&lossless, &[("adapter.drain", "100Mbps"), ("adapter.receive_buffer", "50kB")]);
    assert_eq!((metric(&outcome, "dropped_packets"), metric(&outcome, "pause_lost_packets")), (0.0, 0.0));
    let states = texts(&outcome, "pauses", "state");
    assert_eq!(states[row(&outcome, "pauses", "host16.port")], "paused");
    let roots = texts(&outcome, "pause_causes", "root").iter().filter(|root| root.ends_with(".adapter"));
    assert!(roots.count() >= 16);
    let inspected = inspect(&read(&lossless, &[("adapter.drain", "100Mbps")]));
    assert_eq!(inspected["adapter"]["links_to_hosts"][0]["headroom_bytes"], 34_616);
}
