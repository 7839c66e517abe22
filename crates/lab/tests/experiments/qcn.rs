//! QCN from file to tables: flows of TCP that it limits, what it reports, and why it sent nothing.

use crate::{check, integers, metric, numbers, read, result};
use firstlight_lab::{Outcome, inspect};

const QCN: &str = include_str!("../specs/qcn.toml");
const UNTOLD: &[(&str, &str)] = &[("measure.rate_limiters", "false")];

fn warnings(outcome: &Outcome) -> Vec<&str> {
    outcome.manifest["warnings"].as_array().expect("a list").iter().filter_map(|warning| warning.as_str()).collect()
}

/// Seven flows of 2 MB into 10 Gb/s last 11.2 ms at least. As on Linux hosts all are limited with this seed; with
/// others one waits for a timeout of 200 ms on both kinds of hosts, and needs no limiter.
#[test]
fn an_incast_is_limited_and_told() {
    let outcome = result(QCN, &[("duration", "300ms"), ("seed", "2")]);
    let (sent, received) = (metric(&outcome, "qcn_notifications_sent"), metric(&outcome, "qcn_notifications_received"));
    assert!(sent >= 20.0 && sent - received <= 3.0, "{sent} sent, {received} received");
    assert!((1.0..=63.0).contains(&metric(&outcome, "qcn_feedback_mean")));
    assert!(metric(&outcome, "qcn_limited_flows") >= 7.0);
    let seconds = metric(&outcome, "qcn_limited_s");
    assert!(seconds > 0.03 && seconds < 7.0 * 0.3 + 1e-9, "{seconds} s of seven flows");
    let (current, target) =
        (numbers(&outcome, "rate_limiters", "current_mbps"), numbers(&outcome, "rate_limiters", "target_mbps"));
    assert!(current.iter().zip(target).all(|(current, target)| *current >= 0.1 && current <= target && *target <= 1e4));
    assert!(numbers(&outcome, "rate_limiters", "time_us").is_sorted());
    // The hosts are those of the flows, each of which has a row.
    let (flow, host) = (integers(&outcome, "rate_limiters", "flow"), integers(&outcome, "rate_limiters", "host"));
    let src = integers(&outcome, "flows", "src");
    assert!(flow.iter().zip(host).all(|(flow, host)| src[*flow as usize] == *host));
    let (to, dst) = (integers(&outcome, "rate_limiters", "to"), integers(&outcome, "flows", "dst"));
    assert!(flow.iter().zip(to).all(|(flow, to)| dst[*flow as usize] == *to));
    assert_eq!(flow.iter().collect::<std::collections::BTreeSet<_>>().len(), 7);
    let counts = &outcome.manifest["conservation"];
    let count = |name: &str| counts[name].as_u64().expect("a count");
    assert_eq!(count("offered"), count("delivered") + count("dropped") + count("lost") + count("held"));
    assert!(warnings(&outcome).is_empty(), "{:?}", warnings(&outcome));
}

/// A short queue, without a limit of its own: QCN keeps it at its set point where TCP alone would fill it.
#[test]
fn long_flows_leave_the_queue_at_its_set_point() {
    let text =
        QCN.replace("[[workload]]\nkind = \"incast\"", "[[flows]]\nfrom = \"all\"").replace("size = \"2MB\"", "");
    let set = [
        ("switch.queue", "10MB"),
        ("duration", "100ms"),
        ("warmup", "50ms"),
        ("measure.queues", "[\"host7.port\"]"),
        ("measure.queue_samples", "10us"),
    ];
    let outcome = result(&text, &set);
    // 66 kB are 44 packets.
    let mean = metric(&outcome, "queue_mean_packets");
    assert!((30.0..62.0).contains(&mean), "{mean} packets");
    assert!(metric(&outcome, "queue_utilization_pct") > 97.0);
}

#[test]
fn silence_says_why() {
    let calm = result(QCN, &[("qcn.qeq", "100MB"), ("switch.queue", "1GB")]);
    assert_eq!(metric(&calm, "qcn_notifications_sent"), 0.0);
    assert!(calm.metric("qcn_feedback_mean").is_none());
    let reported = warnings(&calm);
    assert!(reported.len() == 1 && reported[0].contains("found a queue above qcn.qeq = 100MB"), "{reported:?}");
    let idle = result(QCN, &[("qcn.sample", "1GB")]);
    let why = "[qcn] sent no notification: no queue was sampled: no port forwarded as much as qcn.sample = 1GB";
    assert!(warnings(&idle).contains(&why), "{:?}", warnings(&idle));
    let full = result(QCN, &[("qcn.qeq", "100kB")]);
    assert!(
        warnings(&full)[0].contains("qcn.qeq = 100kB is never exceeded: the queue holds 100kB"),
        "{:?}",
        warnings(&full)
    );
}

/// Off, nothing is left of it; on without congestion, no packet is moved.
#[test]
fn off_is_off() {
    let plain = QCN.replace("[qcn]\nqeq = \"66kB\"\n", "").replace("rate_limiters = true", "");
    let digest = |outcome: &Outcome| outcome.manifest["digest"].clone();
    let off = result(&plain, &[]);
    assert!(off.metric("qcn_notifications_sent").is_none() && off.table("rate_limiters").is_none());
    assert!(read(&plain, &[]).network.interface().tables.qcn.is_none());
    assert_eq!(digest(&off), digest(&result(QCN, &[("qcn.sample", "1GB")])));
    assert_ne!(digest(&off), digest(&result(QCN, &[])));
    assert_eq!(digest(&result(QCN, &[])), digest(&result(QCN, UNTOLD)));
}

#[test]
fn inspection_tells_points_and_parameters() {
    let reported = inspect(&read(QCN, &[("qcn.qeq", "30kB"), ("qcn.timer", "1ms")]))["qcn"].clone();
    let keys = ["congestion_points", "qeq_bytes", "timer_us", "fast_recovery", "min_rate"];
    let values: Vec<_> = keys.iter().map(|key| reported[key].clone()).collect();
    assert_eq!(serde_json::json!(values), serde_json::json!([8, 30_000, 1000.0, 5, "100kbps"]));
    // A port has a point for each of its classes.
    let one = QCN.replace("[switch]\nqueue = \"100kB\"\n", "");
    let classes = format!("{one}\n[[switch.classes]]\n[[switch.classes]]\n");
    assert_eq!(inspect(&read(&classes, &[]))["qcn"]["congestion_points"], 16);
    let hybrid = inspect(&read(include_str!("../specs/pair.toml"), &[("qcn.qeq", "30kB")]))["qcn"].clone();
    let reported = serde_json::json!([hybrid["congestion_points"], hybrid["at"]]);
    assert_eq!(reported, serde_json::json!([6, "each VOQ"]));
}

#[test]
fn a_least_rate_that_limits_nobody_is_refused() {
    let text = |least| {
        format!(
            "x.toml:17:12: qcn.min_rate: {least} must be below the rate of the hosts' links (10Gbps): \
             use less"
        )
    };
    check(
        QCN,
        &[
            ("[qcn]", "[qcn]\nmin_rate = \"10Gbps\"", &text("10Gbps")),
            ("[qcn]", "[qcn]\nmin_rate = \"20Gbps\"", &text("20Gbps")),
            ("[qcn]", "[qcn]\nmin_rate = \"9999Mbps\"", "accepted"),
        ],
    );
}
