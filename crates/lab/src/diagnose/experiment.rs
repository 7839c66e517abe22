//! What can be said of an experiment before it runs.

use super::lossless::circles;
use super::thresholds::out_of_reach;
use crate::spec::{Flow, Network, Spec};
use firstlight_linux::Sysctl;
use firstlight_net::Marking;
use firstlight_sim::{HybridConfig, SwitchConfig};

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
