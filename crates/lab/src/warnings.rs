//! "Check before you trust": what is legal and yet may mean that a result is not what it seems.

use crate::linux::{Ended, LinuxCounters};
use crate::measure::silence;
use crate::run::Counters;
use crate::spec::{Flow, HostKind, Linux, Network, Spec};
use crate::thresholds::out_of_reach;
use firstlight_linux::{Frames, Sysctl};
use firstlight_net::Marking;
use firstlight_net::topology::{Routes, circular_wait};
use firstlight_sim::{GraphConfig, HybridConfig, MeterReport, QcnReport, SwitchConfig};
use firstlight_units::Span;

/// A start is forgotten after so many weeks.
const WARM_WEEKS: u64 = 3;
/// A part of a week matters in a measurement of fewer weeks than this.
const MANY_WEEKS: u64 = 100;

/// What can be said before the run.
pub fn of_spec(spec: &Spec) -> Vec<String> {
    let mut notes = spec.notes.clone();
    ecn(spec, &mut notes);
    notes.extend(out_of_reach(spec));
    workloads(spec, &mut notes);
    adapter(spec, &mut notes);
    if let Network::Graph(graph) = &spec.network {
        classes(spec, &graph.switch, &mut notes);
        circles(spec, graph, &mut notes);
    }
    if let Network::Hybrid(hybrid) = &spec.network {
        marks(spec, hybrid, &mut notes);
        weeks(spec, hybrid, &mut notes);
        if let Some((src, dst)) = spec.measure.pair
            && hybrid.control.is_none()
            && hybrid.week.time_of(src, dst).is_zero()
        {
            notes.push(format!("the schedule has no day for the measured pair {src}->{dst}: it has no circuit"));
        }
    }
    notes
}

fn uses(spec: &Spec, control: &str) -> bool {
    spec.flows.iter().any(|flow: &Flow| flow.cc.name() == control)
}

/// Whether any packet may be ECN-capable.
pub(crate) fn may_be_marked(spec: &Spec) -> bool {
    uses(spec, "dctcp") || negotiates_ecn(spec)
}

/// Whether connections may negotiate ECN whatever their congestion control.
fn negotiates_ecn(spec: &Spec) -> bool {
    let told = |sysctl: &Sysctl| sysctl.name == "net.ipv4.tcp_ecn" && sysctl.value != "0";
    let linux = spec.linux.iter().flat_map(|linux| &linux.hosts).any(|host| host.sysctls.iter().any(told));
    linux || spec.tcp.ecn
}

fn ecn(spec: &Spec, notes: &mut Vec<String>) {
    let voq = match &spec.network {
        Network::Graph(graph) => return switch_ecn(spec, &graph.switch, notes),
        Network::Hybrid(hybrid) => &hybrid.voq,
    };
    let dctcp = uses(spec, "dctcp");
    if dctcp && !voq.marks() {
        notes.push("DCTCP flows and no ECN threshold (voq.ecn_small): nothing is ever marked".into());
    }
    if voq.marks() && voq.red.is_none() && !dctcp && !negotiates_ecn(spec) {
        notes.push("an ECN threshold, and no flow that negotiates ECN: nothing is ever marked".into());
    }
}

/// Hosts that take in as fast as anything comes.
fn adapter(spec: &Spec, notes: &mut Vec<String>) {
    let Some(receive) = spec.network.interface().adapter.receive else { return };
    let rates = spec.network.links_to_hosts().into_iter().map(|(there, _)| there.rate);
    let Some(fastest) = rates.max().filter(|fastest| receive.drain >= *fastest) else { return };
    notes.push(format!(
        "adapter.drain = {} is not below the rate of any link to a host ({fastest} at most): receive buffers never fill",
        receive.drain
    ));
}

/// Traffic classes that switches do not tell apart.
fn classes(spec: &Spec, switch: &SwitchConfig, notes: &mut Vec<String>) {
    let highest = spec.flows.iter().map(|flow| flow.class).chain(spec.probes.iter().map(|probe| probe.class)).max();
    let (highest, queues) = (usize::from(highest.unwrap_or(0)), switch.classes.len());
    if highest > 0 && queues == 0 {
        notes.push("flows have traffic classes, and the switches one queue for all: add [[switch.classes]]".into());
    } else if queues > 0 && highest >= queues {
        let last = queues - 1;
        notes.push(format!(
            "there is no [[switch.classes]] for class {highest}: its packets are queued as class {last}"
        ));
    }
}

/// Ports that may wait for each other in a circle.
pub(crate) struct CircularWait {
    /// The lossless class; all of them with PAUSE.
    pub(crate) class: Option<u8>,
    /// Each waits for the next, and the last for the first.
    pub(crate) ports: Vec<String>,
}

/// Lossless links that may wait for each other in a circle, with the flows and probes that there are.
pub(crate) fn circular_waits(spec: &Spec, graph: &GraphConfig) -> Vec<CircularWait> {
    let Some(pfc) = &graph.switch.pfc else { return vec![] };
    let routes = Routes::new(&graph.topology, graph.seed);
    let last = graph.switch.queues().len() - 1;
    let flows = spec.flows.iter().flat_map(|flow| [(flow.class, flow.src, flow.dst), (flow.class, flow.dst, flow.src)]);
    let probes = spec.probes.iter().map(|probe| (probe.class, probe.src, probe.dst));
    let all: Vec<_> = flows.chain(probes).map(|(class, src, dst)| (usize::from(class).min(last), src, dst)).collect();
    let classes = if pfc.whole_link { 0..1 } else { 0..last + 1 };
    let wait = |class: usize| {
        let of_class = all.iter().filter(|entry| pfc.whole_link || entry.0 == class).map(|(_, src, dst)| (*src, *dst));
        let circle = circular_wait(&graph.topology, &routes, of_class)?;
        let ports = circle.into_iter().map(|port| graph.topology.port_name(port)).collect();
        Some(CircularWait { class: (!pfc.whole_link).then_some(class as u8), ports })
    };
    classes.filter(|class| pfc.has(*class)).filter_map(wait).collect()
}

fn circles(spec: &Spec, graph: &GraphConfig, notes: &mut Vec<String>) {
    notes.extend(circular_waits(spec, graph).into_iter().map(|CircularWait { class, ports }| {
        format!(
            "{} may stop for ever: ports may wait for each other in a circle, {}",
            class_text(class),
            circle_text(ports.into_iter()),
        )
    }));
}

fn class_text(class: Option<u8>) -> String {
    class.map_or_else(|| "lossless Ethernet".into(), |class| format!("lossless class {class}"))
}

/// The ports, and the first again.
fn circle_text(ports: impl Iterator<Item = String>) -> String {
    let mut ports: Vec<String> = ports.collect();
    ports.extend(ports.first().cloned());
    ports.join(", ")
}

/// As `ecn`, for the queues of a packet fabric.
fn switch_ecn(spec: &Spec, switch: &SwitchConfig, notes: &mut Vec<String>) {
    let queues = if switch.classes.is_empty() { std::slice::from_ref(&switch.discipline) } else { &switch.classes[..] };
    let any = queues.iter().any(|queue| queue.marking != Marking::None);
    let red = queues.iter().any(|queue| matches!(queue.marking, Marking::Red(_)));
    let dctcp = uses(spec, "dctcp");
    if dctcp && !any {
        notes.push("DCTCP flows and no ECN threshold (switch.ecn): nothing is ever marked".into());
    }
    if any && !red && !dctcp && !negotiates_ecn(spec) {
        notes.push("an ECN threshold, and no flow that negotiates ECN: nothing is ever marked".into());
    }
}

fn workloads(spec: &Spec, notes: &mut Vec<String>) {
    for workload in &spec.workloads {
        let (name, flows) = (&workload.name, workload.flows);
        match workload.asked {
            Some(asked) if flows < asked => notes.push(format!(
                "workload {name} has {flows} flows instead of {asked}: the others would start after the run's end, or \
                 its file has no more"
            )),
            _ if flows == 0 && spec.probes.iter().all(|probe| spec.workload_name(probe.entry) != name) => {
                notes.push(format!("workload {name} has no flow: the first would start after the run's end"));
            }
            _ => {}
        }
    }
}

fn marks(spec: &Spec, hybrid: &HybridConfig, notes: &mut Vec<String>) {
    let retcp = uses(spec, "retcp");
    if retcp && hybrid.marks.is_none() {
        notes.push("reTCP flows and no [marks]: they never learn of a circuit".into());
    }
    if hybrid.marks.is_some() && !retcp {
        notes.push("[marks], and no reTCP flow that would use the ECE marks".into());
    }
    if hybrid.marks.is_some() && spec.tcp.ecn {
        notes.push("[marks] with tcp.ecn: the other controllers take a circuit's ECE marks for congestion".into());
    }
}

fn weeks(spec: &Spec, hybrid: &HybridConfig, notes: &mut Vec<String>) {
    let week = hybrid.week.length();
    let bulk = spec.flows.iter().any(|flow| flow.size.is_none());
    if bulk && spec.warmup < week * WARM_WEEKS {
        let (warmup, least) = (spec.warmup, week * WARM_WEEKS);
        notes.push(format!(
            "a warm-up of {warmup} is shorter than {WARM_WEEKS} weeks ({least}): the start is in the figures"
        ));
    }
    let measured = spec.measured();
    let whole = measured.as_ps().is_multiple_of(week.as_ps());
    if bulk && !whole && measured < week * MANY_WEEKS {
        notes.push(format!(
            "the measured {measured} is not a whole number of weeks ({week}): utilization is off by up to a day"
        ));
    }
    if let Some(series) = &spec.measure.series {
        let fold = week * u64::from(series.fold);
        if measured < fold {
            notes.push(format!(
                "the measured {measured} is shorter than one fold of the series ({fold}): it stays empty"
            ));
        }
    }
}

/// What the run has shown.
pub fn of_run(spec: &Spec, counters: &Counters) -> Vec<String> {
    let mut notes = of_spec(spec);
    if let (Some(meter), Network::Hybrid(hybrid)) = (&counters.meter, &spec.network) {
        pair(spec, hybrid, meter, &mut notes);
    }
    flows(spec, counters, &mut notes);
    if let Some(report) = &counters.qcn {
        qcn(spec, report, &mut notes);
    }
    if counters.measured.is_zero() {
        notes.push("every flow was complete before the warm-up ended: nothing was measured".into());
    }
    if let (Some(hosts), Some(told)) = (&spec.linux, &counters.linux) {
        linux(hosts, told, &mut notes);
    }
    pauses(counters, &mut notes);
    notes.extend(invalid(spec, counters));
    if counters.strays > 0 {
        notes.push(format!("{} packets came to a port where nobody listens", counters.strays));
    }
    notes
}

/// Why a run's figures are not what the experiment asked for; nothing on a sound run.
pub fn invalid(spec: &Spec, counters: &Counters) -> Vec<String> {
    let lost = counters.pauses.as_ref().map_or(0, |report| report.lost);
    loss(lost, spec.allow_loss).into_iter().collect()
}

/// What is wrong with losses of lossless classes. No limit is there that could cause one unless `pfc.allow_loss` is set, so this
/// would be the engine's own fault.
fn loss(lost: u64, allowed: bool) -> Option<String> {
    let text = || format!("{lost} packets of lossless classes were lost, and pfc.allow_loss does not allow it");
    (lost > 0 && !allowed).then(text)
}

/// What pauses did that one should know of.
fn pauses(counters: &Counters, notes: &mut Vec<String>) {
    let Some(report) = &counters.pauses else { return };
    for dead in &report.deadlocks {
        notes.push(format!(
            "deadlock since {}us: {} stands still, {}; {} ports can never go on",
            dead.since.as_us_f64(),
            class_text(dead.class),
            circle_text(dead.ports.iter().cloned()),
            dead.stopped,
        ));
    }
    if report.unrecorded > 0 {
        notes.push(format!(
            "table pause_events has the first {} of {} events: see pfc.events",
            report.events.len(),
            report.events.len() as u64 + report.unrecorded
        ));
    }
}

fn pair(spec: &Spec, hybrid: &HybridConfig, meter: &MeterReport, notes: &mut Vec<String>) {
    let Some((src, dst)) = spec.measure.pair else { return };
    if meter.circuit.packets + meter.packet.packets == 0 {
        notes.push(format!("the measured pair {src}->{dst} had no data traffic"));
    } else if meter.circuit.packets == 0 && !hybrid.week.time_of(src, dst).is_zero() {
        notes.push(format!("no packet of the measured pair {src}->{dst} used its circuit"));
    }
}

/// QCN that was silent, or whose changes were too many to be kept.
fn qcn(spec: &Spec, report: &QcnReport, notes: &mut Vec<String>) {
    if let Some(why) = silence(spec, report) {
        notes.push(format!("[qcn], and no notification: {why}"));
    }
    let (kept, changes) = (report.kept.len() as u64, report.changes);
    if spec.measure.rate_limiters && kept < changes {
        notes.push(format!("table rate_limiters has {kept} of {changes} changes: the first of each host"));
    }
}

fn flows(spec: &Spec, counters: &Counters, notes: &mut Vec<String>) {
    let rows = &counters.flows;
    let begun = |start: Span| start < counters.elapsed;
    let silent = rows.iter().filter(|flow| flow.bytes_acked == 0 && begun(spec.own_time(flow.start)));
    say(notes, silent.count(), rows.len(), "never had data acknowledged");
    let lost_syns = rows.iter().filter(|flow| flow.sender.syn_retransmits + flow.receiver.syn_retransmits > 0);
    say(notes, lost_syns.count(), rows.len(), "had to repeat a SYN or SYN-ACK");
    let window = spec.tcp.receive_window.get();
    let simulated = rows.iter().zip(&spec.flows).filter(|(_, flow)| flow.hosts == HostKind::Simulated);
    let limited = simulated.filter(|(row, _)| u64::from(row.cwnd) * u64::from(spec.tcp.mss()) >= window);
    say(notes, limited.count(), rows.len(), "ended with a congestion window at least as large as tcp.receive_window");
    let sized = rows.iter().filter(|flow| flow.size.is_some()).count();
    let waiting = counters.jobs.iter().filter(|job| job.finish.is_none()).count();
    if waiting > 0 {
        notes.push(format!("{waiting} of {} jobs were not complete at the end, and have no time", counters.jobs.len()));
    }
    say(notes, counters.unfinished, sized, "of a given size were not complete at the end, and have no completion time");
}

/// Programs that did not do their work, and frames that the fabric does not know.
fn linux(hosts: &Linux, told: &LinuxCounters, notes: &mut Vec<String>) {
    for (index, program) in hosts.programs.iter().enumerate() {
        let (name, host) = (&program.name, program.on.0);
        match told.ended.get(index).copied().flatten() {
            Some(Ended { code, .. }) if code != 0 => {
                notes.push(format!("program {name} on host{host} ended with exit code {code}: see its output"));
            }
            None if !program.server => notes.push(format!("program {name} on host{host} had not ended at the end")),
            _ => {}
        }
    }
    let Frames { malformed, elsewhere, .. } = told.frames;
    if malformed > 0 {
        notes.push(format!("{malformed} frames of Linux hosts had broken headers and were dropped"));
    }
    if elsewhere > 0 {
        notes.push(format!(
            "{elsewhere} packets of Linux hosts were for an address that none of them has (broadcast, multicast, a \
             simulated host) and were dropped"
        ));
    }
}

fn say(notes: &mut Vec<String>, some: usize, all: usize, what: &str) {
    if some > 0 {
        notes.push(format!("{some} of {all} flows {what}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_that_is_not_allowed_makes_a_run_invalid() {
        let text = "3 packets of lossless classes were lost, and pfc.allow_loss does not allow it";
        assert_eq!(
            [(0, false), (3, true), (3, false)].map(|(lost, allowed)| loss(lost, allowed)),
            [None, None, Some(text.into())]
        );
    }
}
