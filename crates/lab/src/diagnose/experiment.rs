//! Warnings on an experiment before it runs.

use super::lossless::circles;
use super::thresholds::out_of_reach;
use firstlight_linux::Sysctl;
use firstlight_sim::{HybridConfig, SwitchConfig};
use firstlight_spec::{Flow, Network, Spec};
use firstlight_transport::cc::EcnUse;
use std::collections::BTreeMap;

/// Weeks after which the start of the run has no effect on results.
const WARM_WEEKS: u64 = 3;
/// A measurement of fewer weeks depends on the part of a week that it includes.
const MANY_WEEKS: u64 = 100;

/// Warnings on an experiment before it runs.
pub fn of_spec(spec: &Spec) -> Vec<String> {
    let mut notes = spec.notes.clone();
    unused_controllers(spec, &mut notes);
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
        if let Some((src, dst)) = spec.pair
            && hybrid.control.is_none()
            && hybrid.week.time_of(src, dst).is_zero()
        {
            notes.push(format!(
                "the measured pair {src}->{dst} has no circuit: the schedule has no day for it; \
                choose another measure.pair"
            ));
        }
    }
    notes
}

fn uses(spec: &Spec, control: &str) -> bool {
    spec.flows.iter().any(|flow: &Flow| flow.cc.name() == control)
}

/// The name of a congestion control of some flow that uses ECN so.
fn with_ecn(spec: &Spec, ecn: EcnUse) -> Option<&'static str> {
    let controls: BTreeMap<_, _> = spec.flows.iter().map(|flow| (flow.cc.name(), &flow.cc)).collect();
    controls.into_iter().find(|(_, control)| control.ecn() == ecn).map(|(name, _)| name)
}

/// Warns of the user's own congestion controls that no flow has.
fn unused_controllers(spec: &Spec, notes: &mut Vec<String>) {
    for own in spec.own.iter().filter(|own| !uses(spec, own.name())) {
        notes.push(format!(
            "no flow uses the congestion control {name}: name it, for example with --set tcp.cc={name} or by cc of a \
             flow, or take it out",
            name = own.name()
        ));
    }
}

/// Whether any packet may be ECN-capable.
pub(crate) fn may_be_marked(spec: &Spec) -> bool {
    negotiates_ecn(spec) || with_ecn(spec, EcnUse::Precise).is_some()
}

/// Whether connections may negotiate ECN whatever their congestion control.
fn negotiates_ecn(spec: &Spec) -> bool {
    let set = |sysctl: &Sysctl| sysctl.name == "net.ipv4.tcp_ecn" && sysctl.value != "0";
    let linux = spec.linux.iter().flat_map(|linux| &linux.hosts).any(|host| host.sysctls.iter().any(set));
    linux || spec.tables.tcp.tcp.ecn
}

fn ecn(spec: &Spec, notes: &mut Vec<String>) {
    let voq = match &spec.network {
        Network::Graph(graph) => return switch_ecn(spec, &graph.switch, notes),
        Network::Hybrid(hybrid) => &hybrid.voq,
    };
    if let Some(name) = with_ecn(spec, EcnUse::Precise).filter(|_| !voq.marks()) {
        notes.push(format!("{name} flows never see a mark: VOQs have no ECN threshold; set voq.ecn_small"));
    }
    if voq.marks() && !voq.discipline.has_dropping_table() && !may_be_marked(spec) {
        notes.push("the ECN threshold never marks a packet: no flow negotiates ECN; use dctcp or set tcp.ecn".into());
    }
}

/// Warns of hosts that receive as fast as any link delivers.
fn adapter(spec: &Spec, notes: &mut Vec<String>) {
    let Some(receive) = spec.network.interface().adapter.receive else { return };
    let rates = spec.network.links_to_hosts().into_iter().map(|(forward, _)| forward.rate);
    let Some(fastest) = rates.max().filter(|fastest| receive.drain >= *fastest) else { return };
    notes.push(format!(
        "receive buffers never fill: adapter.drain = {} is not below the rate of any link to a host, {fastest} at most",
        receive.drain
    ));
}

/// Warns of traffic classes that switches queue together.
fn classes(spec: &Spec, switch: &SwitchConfig, notes: &mut Vec<String>) {
    let highest = spec.flows.iter().map(|flow| flow.class).chain(spec.probes.iter().map(|probe| probe.class)).max();
    let (highest, queues) = (usize::from(highest.unwrap_or(0)), switch.classes.len());
    if highest > 0 && queues == 0 {
        notes.push(
            "flows have traffic classes, but switches have one queue for all of them: add [[switch.classes]]".into(),
        );
    } else if queues > 0 && highest >= queues {
        let last = queues - 1;
        notes.push(format!(
            "there is no [[switch.classes]] for class {highest}: its packets are queued as class {last}"
        ));
    }
}

/// Does the same as `ecn` for the queues of a packet fabric.
fn switch_ecn(spec: &Spec, switch: &SwitchConfig, notes: &mut Vec<String>) {
    let any = switch.disciplines().any(|queue| queue.marking().next().is_some());
    let drops = switch.disciplines().any(|queue| queue.has_dropping_table());
    if let Some(name) = with_ecn(spec, EcnUse::Precise).filter(|_| !any) {
        notes.push(format!("{name} flows never see a mark: queues of switches have no ECN threshold; set switch.ecn"));
    }
    if any && !drops && !may_be_marked(spec) {
        notes.push("the ECN threshold never marks a packet: no flow negotiates ECN; use dctcp or set tcp.ecn".into());
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
                notes.push(format!(
                    "workload {name} has no flow: its file has none, or the first would start after the run's end"
                ));
            }
            _ => {}
        }
    }
}

fn marks(spec: &Spec, hybrid: &HybridConfig, notes: &mut Vec<String>) {
    let heeding = with_ecn(spec, EcnUse::OwnMeaning);
    if let Some(name) = heeding.filter(|_| hybrid.marks.is_none() && hybrid.notices.is_none()) {
        notes.push(format!("{name} flows get no signal of circuits: add [marks]"));
    }
    if hybrid.marks.is_some() && heeding.is_none() {
        notes.push("no flow uses the ECE marks of [marks]: use retcp, or remove [marks]".into());
    }
    if hybrid.notices.is_some() && heeding.is_none() {
        notes.push("no flow uses the notices of [marks]: use retcp, or remove [marks]".into());
    }
    if hybrid.marks.is_some() && spec.tables.tcp.tcp.ecn {
        notes.push(
            "congestion controls other than retcp take the ECE marks of [marks] for congestion: remove \
            tcp.ecn or [marks]"
                .into(),
        );
    }
}

fn weeks(spec: &Spec, hybrid: &HybridConfig, notes: &mut Vec<String>) {
    let week = hybrid.week.length();
    let bulk = spec.flows.iter().any(|flow| flow.size.is_none());
    if bulk && spec.tables.warmup < week * WARM_WEEKS {
        let (warmup, least) = (spec.tables.warmup, week * WARM_WEEKS);
        notes.push(format!(
            "the results include the start of the run: warmup = {warmup} is shorter than {WARM_WEEKS} weeks, {least}"
        ));
    }
    let measured = spec.measured();
    let whole = measured.as_ps().is_multiple_of(week.as_ps());
    if bulk && !whole && measured < week * MANY_WEEKS {
        notes.push(format!(
            "utilization is wrong by up to one day: the measured time, {measured}, is not a whole number of \
             weeks, {week}"
        ));
    }
    if spec.tables.measure.series.is_some() {
        let fold = week * u64::from(spec.tables.measure.fold);
        if measured < fold {
            notes.push(format!(
                "table series stays empty: the measured time, {measured}, is shorter than one fold, {fold}"
            ));
        }
    }
}
