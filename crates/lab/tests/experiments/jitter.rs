//! `hosts.jitter`: what it adds to each packet, that nothing overtakes, and what it changes where flows lock each other
//! out.

use super::{integers, numbers, reported, result};

const PROBES: &str = "duration = \"20ms\"\n[fabric]\nkind = \"star\"\nhosts = 2\n[hosts]\nrate = \"10Gbps\"\ndelay = \
                      \"1us\"\n[[workload]]\nkind = \"probe\"\nfrom = \"host0\"\nto = \"host1\"\ninterval = \"100us\"\n\
                      packet = \"1000B\"\ncount = 100\n[measure]\nprobes = true\n";

#[test]
fn both_stacks_add_a_delay_of_the_distribution() {
    let set = [("hosts.jitter.kind", "uniform"), ("hosts.jitter.most", "4us")];
    let plain = numbers(&result(PROBES, &[]), "probe_packets", "latency_us")[0];
    let outcome = result(PROBES, &set);
    let added: Vec<f64> =
        numbers(&outcome, "probe_packets", "latency_us").iter().map(|latency| latency - plain).collect();
    assert!(added.iter().all(|us| (-1e-9..=8.0).contains(us)), "{added:?}");
    // Two uniform delays have a mean of 4 us and a deviation of 1.63: of a hundred means, none is 0.6 off.
    let mean = added.iter().sum::<f64>() / added.len() as f64;
    assert!((mean - 4.0).abs() < 0.6, "{mean}");
    assert!(added.iter().any(|us| *us > 4.0), "{added:?}");
    let other = result(PROBES, &[set[0], set[1], ("seed", "2")]);
    assert_ne!(outcome.manifest["digest"], other.manifest["digest"]);
    assert_eq!(outcome.manifest["digest"], result(PROBES, &set).manifest["digest"]);
}

/// Bulk flows of one sender each over every kind of fabric; what has an interface that holds packets back too.
#[test]
fn packets_stay_in_order_on_every_fabric() {
    const STAR: &str = "[fabric]\nkind = \"star\"\nhosts = 3\n";
    const RACKS: &str = "[fabric]\nkind = \"hybrid\"\nracks = 2\nhosts_per_rack = 2\n[packet]\nrate = \"5Gbps\"\ndelay \
                         = \"5us\"\n[circuit]\nrate = \"40Gbps\"\ndelay = \"20us\"\n[schedule]\nkind = \"strobe\"\nday \
                         = \"90us\"\nnight = \"15us\"\n";
    let stages =
        ["", "[pacer]\n", "[pfc]\nxoff = \"60kB\"\n", "[adapter]\nsend_buffer = \"40kB\"\ndrain = \"9Gbps\"\n"];
    for (fabric, stage) in [STAR, RACKS].iter().flat_map(|fabric| stages.map(|stage| (fabric, stage))) {
        let voq = if fabric == &RACKS && !stage.starts_with("[pfc]") { "[voq]\nsmall = 64\n" } else { "" };
        let table = format!("{stage}{voq}");
        let text = format!(
            "duration = \"50ms\"\n{fabric}[hosts]\nrate = \"10Gbps\"\njitter = {{ kind = \"exponential\", mean = \
             \"3us\" }}\n{table}[[flows]]\nfrom = \"host0\"\nto = \"host2\"\nsize = \"3MB\"\n"
        );
        let outcome = result(&text, &[]);
        assert!(numbers(&outcome, "flows", "fct_us")[0] > 0.0, "{text}");
        let out_of_order = integers(&outcome, "flows", "retransmits")[0];
        assert!(out_of_order == 0 || fabric == &RACKS, "{out_of_order} retransmits:\n{text}");
    }
}

/// The phase effect: without noise one of the senders has nearly everything.
#[test]
fn equal_flows_lock_each_other_out_without_jitter_alone() {
    let text = "duration = \"2s\"\n[fabric]\nkind = \"star\"\nhosts = 20\n[hosts]\nrate = \"10Gbps\"\ndelay = \"5us\"\n\
                mtu = \"1500B\"\n[switch]\nqueue = 100\n[tcp]\ncc = \"cubic\"\n[[flows]]\nfrom = \"all\"\nto = \
                \"host0\"\n";
    let shares = |outcome: &firstlight_lab::Outcome| {
        let bytes: Vec<f64> = integers(outcome, "flows", "bytes_received").iter().map(|bytes| *bytes as f64).collect();
        let sum: f64 = bytes.iter().sum();
        sum * sum / (bytes.len() as f64 * bytes.iter().map(|bytes| bytes * bytes).sum::<f64>())
    };
    let warns = |outcome: &firstlight_lab::Outcome| outcome.manifest["warnings"].to_string().contains("phase effect");
    let locked = result(text, &[]);
    let noisy = result(text, &[("hosts.jitter.kind", "exponential"), ("hosts.jitter.mean", "2us")]);
    assert!(shares(&locked) < 0.5 && warns(&locked), "{} {}", shares(&locked), locked.manifest["warnings"]);
    assert!(shares(&noisy) > 0.8 && !warns(&noisy), "{} {}", shares(&noisy), noisy.manifest["warnings"]);
}

#[test]
fn wrong_distributions_are_named() {
    let jitter =
        |line: &str| reported(super::STAR, "rate = \"10Gbps\"\n", &format!("rate = \"10Gbps\"\njitter = {line}\n"));
    assert_eq!(
        jitter("{ kind = \"normal\" }"),
        "x.toml:9:19: hosts.jitter.kind: 'normal' is not one of uniform, exponential, log_normal, file: did you mean \
         \"log_normal\"?"
    );
    assert_eq!(
        jitter("{ kind = \"exponential\" }"),
        "x.toml:9:1: hosts.jitter.mean: missing: write for example mean = \"180us\" in [hosts.jitter]"
    );
    assert!(jitter("{ kind = \"uniform\", most = \"0us\" }").contains("hosts.jitter.most: must be longer than zero"));
    assert!(
        jitter("{ kind = \"file\", file = \"none.txt\" }").contains("none.txt"),
        "{}",
        jitter("{ kind = \"file\", file = \"none.txt\" }")
    );
}
