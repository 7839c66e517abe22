//! Table `summary`: one row for each metric of the run. A metric that does not apply has no row.
//!
//! Circuit utilization (Etalon, NSDI'20, section 4): payload that the measured pair got over the circuit,
//! retransmissions included, divided by what its circuit could carry in its days, over the measured time. Latency: see
//! `latency`.

use super::flows::completion;
use super::jobs::{Jobs, slowdowns};
use super::{numbers, queues};
use crate::diagnose::{no_notification, no_pause, unmarked};
use crate::quantile::{histogram_quantile_us, quantile};
use crate::run::Counters;
use crate::table::{Column, Table};
use firstlight_sim::{
    HybridConfig, MeterReport, NetworkReport, PairReport, PauseReport, PausedPort, PortKind, QcnReport, QueueReport,
};
use firstlight_spec::{Network, Spec};
use firstlight_units::Span;

/// The quantiles of latency.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

/// One metric.
struct SummaryRow {
    metric: String,
    unit: &'static str,
    value: f64,
    meaning: String,
}

/// The rows of the summary.
struct Rows(Vec<SummaryRow>);

impl Rows {
    fn add(&mut self, metric: impl Into<String>, unit: &'static str, value: f64, meaning: impl Into<String>) {
        self.0.push(SummaryRow { metric: metric.into(), unit, value, meaning: meaning.into() });
    }
}

/// The summary.
pub(super) fn table(spec: &Spec, counters: &Counters) -> Table {
    let mut rows = Rows(vec![]);
    if let (Network::Hybrid(hybrid), Some(meter)) = (&spec.network, &counters.meter) {
        pair(&mut rows, spec, hybrid, counters, meter);
    }
    if let Network::Hybrid(hybrid) = &spec.network {
        circuits(&mut rows, hybrid, counters);
    }
    rows.add("goodput_gbps", "Gb/s", goodput(counters), "in-order payload that all receivers got in the measured time");
    completions(&mut rows, spec, counters);
    jobs(&mut rows, spec, counters);
    if let Some(queue) = counters.queues.first() {
        watched(&mut rows, queue);
    }
    fabric(&mut rows, spec, counters);
    if let Some(report) = &counters.pauses {
        pauses(&mut rows, report);
    }
    if let Some(report) = &counters.qcn {
        qcn(&mut rows, spec, report);
    }
    let Rows(rows) = rows;
    Table::new(super::SUMMARY, "one row for each metric")
        .text("metric", "name", &rows, |row| row.metric.clone())
        .text("unit", "unit of the value", &rows, |row| row.unit.into())
        .with("value", "value", numbers(rows.iter().map(|row| row.value)))
        .text("meaning", "meaning of the metric", &rows, |row| row.meaning.clone())
}

/// The value of a metric in a summary.
pub fn metric(summary: &Table, name: &str) -> Option<f64> {
    let (Some(Column::Text(names)), Some(Column::Number(values))) = (summary.column("metric"), summary.column("value"))
    else {
        return None;
    };
    names.iter().position(|metric| metric == name).map(|row| values[row])
}

fn pair(rows: &mut Rows, spec: &Spec, hybrid: &HybridConfig, counters: &Counters, meter: &MeterReport) {
    if let Some(utilization) = utilization(spec, hybrid, counters, meter) {
        rows.add(
            "circuit_utilization_pct",
            "%",
            utilization * 100.0,
            "share of the circuit's capacity that the pair's payload took, retransmissions included",
        );
    }
    let mut all = meter.circuit.latency.clone();
    all.add(&meter.packet.latency).expect("a histogram that resizes takes every value");
    let longest = meter.circuit.longest.max(meter.packet.longest);
    let networks = [
        ("all", &all, longest),
        ("circuit", &meter.circuit.latency, meter.circuit.longest),
        ("packet", &meter.packet.latency, meter.packet.longest),
    ];
    for (network, histogram, longest) in networks {
        if histogram.is_empty() {
            continue;
        }
        let packets = match network {
            "all" => "the pair's data packets".to_string(),
            _ => format!("the pair's data packets over the {network} network").replace("circuit network", "circuit"),
        };
        rows.add(format!("mean_{network}_us"), "us", histogram.mean() * 1e-3, format!("mean latency of {packets}"));
        for (name, part) in QUANTILES {
            rows.add(
                format!("{name}_{network}_us"),
                "us",
                histogram_quantile_us(histogram, part).min(longest.as_us_f64()),
                format!("latency that {}% of {packets} do not exceed", part * 100.0),
            );
        }
        rows.add(format!("max_{network}_us"), "us", longest.as_us_f64(), format!("longest latency of {packets}"));
    }
    rows.add(
        "circuit_packets",
        "packets",
        meter.circuit.packets as f64,
        "the pair's data packets that arrived over the circuit",
    );
    rows.add(
        "packet_packets",
        "packets",
        meter.packet.packets as f64,
        "the pair's data packets that arrived over the packet network",
    );
    rows.add(
        "circuit_goodput_gbps",
        "Gb/s",
        rate(&meter.circuit, meter.elapsed),
        "the pair's payload over the circuit, retransmissions included",
    );
    rows.add(
        "packet_goodput_gbps",
        "Gb/s",
        rate(&meter.packet, meter.elapsed),
        "the pair's payload over the packet network, retransmissions included",
    );
    rows.add(
        "overtakings",
        "packets",
        meter.overtakings as f64,
        "the pair's packets that arrived over the packet network before an earlier one of the circuit",
    );
    rows.add("voq_drops", "packets", meter.voq_drops as f64, "the pair's packets that its VOQ dropped, ACKs included");
}

/// Payload over a network in Gb/s.
fn rate(network: &NetworkReport, elapsed: Span) -> f64 {
    if elapsed.is_zero() { 0.0 } else { network.payload as f64 * 8e-9 / elapsed.as_secs_f64() }
}

/// The part of its circuit's capacity that the measured pair used; `None` when the pair has no day.
fn utilization(spec: &Spec, hybrid: &HybridConfig, counters: &Counters, meter: &MeterReport) -> Option<f64> {
    let (src, dst) = spec.pair?;
    let up = match hybrid.control {
        None => {
            let share = hybrid.week.time_of(src, dst).as_secs_f64() / hybrid.week.length().as_secs_f64();
            share * meter.elapsed.as_secs_f64()
        }
        Some(_) => {
            let own = counters.circuits.iter().filter(|circuit| (circuit.src, circuit.dst) == (src, dst));
            own.map(|circuit| circuit.ends.saturating_sub(circuit.begins.max(spec.tables.warmup)).as_secs_f64()).sum()
        }
    };
    let capacity = hybrid.circuit.rate.as_bps() as f64 * up;
    (capacity > 0.0).then(|| meter.circuit.payload as f64 * 8.0 / capacity)
}

/// Bytes over both networks between racks, and the days of a control loop, since the start of the run.
fn circuits(rows: &mut Rows, hybrid: &HybridConfig, counters: &Counters) {
    let sum = |of: fn(&PairReport) -> u64| counters.pairs.iter().map(of).sum::<u64>() as f64;
    let (circuit, packet) = (sum(|pair| pair.circuit_bytes), sum(|pair| pair.packet_bytes));
    rows.add("circuit_bytes", "bytes", circuit, "sent over circuits by all pairs, headers included");
    rows.add("packet_bytes", "bytes", packet, "sent over the packet network by all pairs, headers included");
    if circuit + packet > 0.0 {
        rows.add("circuit_share_pct", "%", 100.0 * circuit / (circuit + packet), "the circuits' part of both");
    }
    let Some(last) = counters.circuits.last().filter(|_| hybrid.control.is_some()) else { return };
    let weeks = last.week as f64 + 1.0;
    let mut days: Vec<_> = counters.circuits.iter().map(|circuit| (circuit.week, circuit.day)).collect();
    days.dedup();
    rows.add(
        "days_per_week",
        "days",
        days.len() as f64 / weeks,
        "matchings with a circuit, in a week of the control loop",
    );
    let up: f64 = counters.circuits.iter().map(|c| (c.ends.saturating_sub(c.begins)).as_secs_f64()).sum();
    let time = weeks * hybrid.week.length().as_secs_f64() * hybrid.racks() as f64;
    rows.add("circuit_up_pct", "%", 100.0 * up / time, "part of the time in which a rack's circuit was up");
}

/// In-order payload that all receivers got in the measured time, in Gb/s.
fn goodput(counters: &Counters) -> f64 {
    let pairs = counters.flows.iter().zip(&counters.warm);
    let bytes: u64 = pairs.map(|(end, warm)| end.bytes_received.saturating_sub(warm.bytes_received)).sum();
    if counters.measured.is_zero() { 0.0 } else { bytes as f64 * 8e-9 / counters.measured.as_secs_f64() }
}

/// The first watched queue; a VOQ has no link of its own to use.
fn watched(rows: &mut Rows, queue: &QueueReport) {
    let name = &queue.name;
    if queue.rate.is_some() {
        rows.add(
            "queue_utilization_pct",
            "%",
            queues::utilization(queue) * 100.0,
            format!("share of its link's capacity that {name} accepted"),
        );
    }
    rows.add("queue_wait_mean_us", "us", queues::mean_wait_us(queue), format!("mean wait of packets at {name}"));
    for (metric, part) in [("queue_wait_p50_us", 0.5), ("queue_wait_p99_us", 0.99)] {
        let text = format!("wait that {}% of packets at {name} do not exceed", part * 100.0);
        rows.add(metric, "us", histogram_quantile_us(&queue.waits, part), text);
    }
    if queue.samples.is_empty() {
        return;
    }
    let mut lengths: Vec<u32> = queue.samples.iter().map(|sample| sample.packets).collect();
    lengths.sort_unstable();
    let mean = lengths.iter().map(|length| f64::from(*length)).sum::<f64>() / lengths.len() as f64;
    rows.add("queue_mean_packets", "packets", mean, format!("mean of the samples of the queue at {name}"));
    for (metric, part) in [("queue_p50_packets", 0.5), ("queue_p99_packets", 0.99), ("queue_max_packets", 1.0)] {
        let text = format!("packets that {}% of these samples do not exceed", part * 100.0);
        rows.add(metric, "packets", quantile(&lengths, part).map_or(f64::NAN, f64::from), text);
    }
}

/// A quantile of ascending times in us; NaN without times.
fn quantile_us(ascending: &[Span], part: f64) -> f64 {
    quantile(ascending, part).map_or(f64::NAN, Span::as_us_f64)
}

/// Completion times of sized flows.
fn completions(rows: &mut Rows, spec: &Spec, counters: &Counters) {
    let timed =
        || counters.flows.iter().zip(&spec.flows).filter(|(_, flow)| flow.is_timed()).map(|(reported, _)| reported);
    let mut times: Vec<Span> = timed().filter_map(|flow| completion(spec, flow)).collect();
    times.sort_unstable();
    let Some(longest) = times.last() else { return };
    let mean = times.iter().map(|time| time.as_us_f64()).sum::<f64>() / times.len() as f64;
    rows.add("fct_mean_us", "us", mean, "mean completion time of the sized flows that completed");
    for (name, part) in [("fct_p50_us", 0.5), ("fct_p99_us", 0.99)] {
        let text = format!("completion time that {}% of them do not exceed", part * 100.0);
        rows.add(name, "us", quantile_us(&times, part), text);
    }
    rows.add("fct_max_us", "us", longest.as_us_f64(), "longest completion time");
    let last = timed().filter_map(|flow| flow.finish).max().map_or(Span::ZERO, |at| spec.own_time(at));
    rows.add("fct_last_s", "s", last.as_secs_f64(), "when the last of them completed, from the start of the run");
    rows.add("flows_complete", "flows", times.len() as f64, "how many completed");
}

/// Durations and slowdowns of jobs.
fn jobs(rows: &mut Rows, spec: &Spec, counters: &Counters) {
    let Some(Jobs { times, gbps }) = Jobs::complete(spec, counters) else { return };
    let mean = times.iter().map(|time| time.as_us_f64()).sum::<f64>() / times.len() as f64;
    rows.add("job_mean_us", "us", mean, "mean time of the jobs that completed");
    for (name, part) in [("job_p50_us", 0.5), ("job_p99_us", 0.99), ("job_max_us", 1.0)] {
        let text = format!("time that {}% of them do not exceed", part * 100.0);
        rows.add(name, "us", quantile_us(&times, part), text);
    }
    let slowdowns: Vec<f64> = slowdowns(spec, counters).into_iter().filter(|value| value.is_finite()).collect();
    if !slowdowns.is_empty() {
        let mean = slowdowns.iter().sum::<f64>() / slowdowns.len() as f64;
        rows.add(
            "job_slowdown_mean",
            "",
            mean,
            "mean of their times over the least that their messages take without any other",
        );
    }
    rows.add("jobs_complete", "jobs", times.len() as f64, "how many completed");
    rows.add("jobs_gbps", "Gb/s", gbps, "their sizes over the time from the first one's start to the last one's end");
}

/// Pauses on a lossless fabric.
fn pauses(rows: &mut Rows, report: &PauseReport) {
    let sum = |of: fn(&PausedPort) -> f64| report.ports.iter().map(of).sum::<f64>();
    let why = no_pause(report).map_or(String::new(), |why| format!("; {why}"));
    let all = format!("pauses of all ports and classes since the start of the run{why}");
    rows.add("pauses", "pauses", sum(|port| port.pauses as f64), all);
    rows.add(
        "paused_us",
        "us",
        sum(|port| port.paused.as_us_f64()),
        "how long these ports and classes were stopped, added up",
    );
    if report.ports.iter().all(|port| port.victim.is_some()) {
        let victim = sum(|port| port.victim.map_or(0.0, Span::as_us_f64));
        rows.add(
            "pause_victim_us",
            "us",
            victim,
            "how much of this the first packet was bound for an idle port of the next switch",
        );
    }
    rows.add("pause_lost_packets", "packets", report.lost as f64, "packets of lossless classes that were lost");
    rows.add(
        "deadlocks",
        "classes",
        report.deadlocks.len() as f64,
        "classes in which ports wait for each other for ever",
    );
}

/// QCN since the start of the run.
fn qcn(rows: &mut Rows, spec: &Spec, report: &QcnReport) {
    let why = no_notification(spec, report).map_or(String::new(), |why| format!("; {why}"));
    let sent = format!("congestion notifications that switches sent since the start of the run{why}");
    rows.add("qcn_notifications_sent", "packets", report.sent.notifications as f64, sent);
    rows.add(
        "qcn_notifications_received",
        "packets",
        report.received as f64,
        "notifications that reached a host's interface; the others were dropped, or in flight at the end",
    );
    if report.sent.notifications > 0 {
        let mean = report.sent.feedback as f64 / report.sent.notifications as f64;
        rows.add("qcn_feedback_mean", "of 63", mean, "mean feedback of those that were sent");
    }
    let none = if report.limited == 0 { "; no notification came to a host" } else { "" };
    let limited = format!("times that a flow came to be limited; a flow's data and its ACKs count apart{none}");
    rows.add("qcn_limited_flows", "flows", report.limited as f64, limited);
    rows.add(
        "qcn_limited_s",
        "s",
        report.limited_time.as_secs_f64(),
        "for how long flows were limited, the sum over all flows",
    );
}

/// Counts of the whole fabric since the start of the run.
fn fabric(rows: &mut Rows, spec: &Spec, counters: &Counters) {
    let contended = match spec.network {
        Network::Graph(_) => [PortKind::HostPort, PortKind::SwitchPort],
        Network::Hybrid(_) => [PortKind::Voq; 2],
    };
    let peaks = counters.ports.iter().filter(|port| contended.contains(&port.kind)).map(|port| port.peak_queue);
    rows.add(
        "queue_peak_packets",
        "packets",
        peaks.max().unwrap_or(0) as f64,
        "most packets that waited in any VOQ, or on a packet fabric at any port of a switch, since the start of the \
         run",
    );
    rows.add(
        "dropped_packets",
        "packets",
        counters.totals.dropped as f64,
        "packets dropped by full or shrinking queues since the start of the run",
    );
    rows.add(
        "lost_packets",
        "packets",
        counters.totals.lost as f64,
        "packets lost to hosts.loss since the start of the run",
    );
    let why = unmarked(spec, counters).map_or(String::new(), |why| format!("; {why}"));
    let marked = format!("packets CE-marked since the start of the run{why}");
    rows.add("marked_packets", "packets", counters.totals.marked as f64, marked);
    let sum = |of: fn(&firstlight_sim::FlowReport) -> u64| counters.flows.iter().map(of).sum::<u64>() as f64;
    rows.add(
        "retransmits",
        "packets",
        sum(|flow| flow.sender.retransmits),
        "data packets sent again since the start of the run",
    );
    rows.add(
        "timeouts",
        "timeouts",
        sum(|flow| flow.sender.timeouts),
        "retransmission timeouts since the start of the run",
    );
}
