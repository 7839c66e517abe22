//! Warnings on lossless links: ports that may wait for each other in a circle, deadlocks, and losses.

use crate::run::Counters;
use firstlight_net::topology::{Routes, circular_wait};
use firstlight_sim::GraphConfig;
use firstlight_spec::Spec;

/// Ports that may wait for each other in a circle.
pub(crate) struct CircularWait {
    /// The lossless class; `None` with PAUSE, which stops all classes.
    pub(crate) class: Option<u8>,
    /// Names of the ports: each waits for the next one, and the last one for the first.
    pub(crate) ports: Vec<String>,
}

/// Circles of ports that may wait for each other, given the paths of all flows and probes.
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

pub(super) fn circles(spec: &Spec, graph: &GraphConfig, notes: &mut Vec<String>) {
    notes.extend(circular_waits(spec, graph).into_iter().map(|CircularWait { class, ports }| {
        format!(
            "{} may deadlock: ports may wait for each other in a circle, {}",
            class_text(class),
            circle_text(ports.into_iter()),
        )
    }));
}

fn class_text(class: Option<u8>) -> String {
    class.map_or_else(|| "lossless Ethernet".into(), |class| format!("lossless class {class}"))
}

/// The ports of a circle as a list, with the first one again at the end.
fn circle_text(ports: impl Iterator<Item = String>) -> String {
    let mut ports: Vec<String> = ports.collect();
    ports.extend(ports.first().cloned());
    ports.join(", ")
}

/// The warning on losses of lossless classes. Without `pfc.allow_loss` no queue has a limit, so that a loss is a defect
/// of the engine.
pub(super) fn loss(lost: u64, allowed: bool) -> Option<String> {
    let text = || format!("{lost} packets of lossless classes were lost, although pfc.allow_loss is not set");
    (lost > 0 && !allowed).then(text)
}

/// Warns of deadlocks and of events that were not recorded.
pub(super) fn pauses(counters: &Counters, notes: &mut Vec<String>) {
    let Some(report) = &counters.pauses else { return };
    for dead in &report.deadlocks {
        notes.push(format!(
            "deadlock since {}us: ports of {} wait for each other in a circle, {}; {} ports can never send again",
            dead.since.as_us_f64(),
            class_text(dead.class),
            circle_text(dead.ports.iter().cloned()),
            dead.stopped,
        ));
    }
    if report.unrecorded > 0 {
        notes.push(format!(
            "table pause_events has only the first {} of {} events: raise pfc.events",
            report.events.len(),
            report.events.len() as u64 + report.unrecorded
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_that_is_not_allowed_makes_a_run_invalid() {
        let text = "3 packets of lossless classes were lost, although pfc.allow_loss is not set";
        assert_eq!(
            [(0, false), (3, true), (3, false)].map(|(lost, allowed)| loss(lost, allowed)),
            [None, None, Some(text.into())]
        );
    }
}
