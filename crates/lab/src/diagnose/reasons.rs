//! Why a counter of marks, pauses or notifications is zero.

use super::experiment::may_be_marked;
use crate::run::Counters;
use firstlight_net::topology::PortId;
use firstlight_sim::{PauseReport, PausedPort, PortKind, PortReport, QcnReport};
use firstlight_spec::{Network, Spec};

/// Whether a queue of a port of this kind marks; `number` counts the ports of a packet fabric's switches.
fn marks(spec: &Spec, kind: PortKind, number: &mut u32) -> bool {
    match (&spec.network, kind) {
        (Network::Graph(graph), PortKind::HostPort | PortKind::SwitchPort) => {
            let queues = graph.switch.queues_at(PortId(*number));
            *number += 1;
            queues.iter().any(|queue| queue.marking().next().is_some())
        }
        (Network::Hybrid(hybrid), PortKind::Voq) => hybrid.voq.marks(),
        _ => false,
    }
}

/// Whether each port has marked, or why not: the values of column `marking`.
pub(crate) fn marking(spec: &Spec, ports: &[PortReport]) -> Vec<&'static str> {
    let (mut number, capable) = (0, may_be_marked(spec));
    let state = |port: &PortReport| {
        let marks = marks(spec, port.kind, &mut number);
        match port {
            PortReport { marked: 1.., .. } => "marked",
            _ if !marks => "off",
            PortReport { offered: 0, .. } => "no traffic",
            _ if !capable => "not capable",
            _ => "not reached",
        }
    };
    ports.iter().map(state).collect()
}

/// Why no queue marked a packet, if none has.
pub(crate) fn unmarked(spec: &Spec, counters: &Counters) -> Option<&'static str> {
    if counters.totals.marked > 0 {
        return None;
    }
    let states = marking(spec, &counters.ports);
    let found = |state: &str| states.contains(&state);
    Some(match () {
        () if found("not reached") => "no queue that marks was long enough",
        () if found("not capable") => "no flow negotiates ECN",
        () if found("no traffic") => "no packet came to a queue that marks",
        () => "no queue marks",
    })
}

/// Whether a port was paused, or why not: the values of column `state`.
pub(crate) fn pausing(port: &PausedPort) -> &'static str {
    match port {
        PausedPort { lossless: false, .. } => "off",
        PausedPort { pauses: 1.., .. } => "paused",
        PausedPort { packets: 0, .. } => "no traffic",
        _ => "not reached",
    }
}

/// Why no port was paused, if none was.
pub(crate) fn no_pause(report: &PauseReport) -> Option<String> {
    let lossless = || report.ports.iter().filter(|port| port.lossless);
    if lossless().any(|port| port.pauses > 0) {
        return None;
    }
    // The ingress account that came nearest to its threshold.
    let nearest = |port: &&PausedPort| (port.peak as i128) - i128::from(port.limits.xoff.get());
    Some(match lossless().filter(|port| port.packets > 0).max_by_key(nearest) {
        None => "no packet of a lossless class came to a switch".into(),
        Some(PausedPort { name, peak, limits, .. }) if *peak > limits.xoff.get() => {
            format!(
                "the ingress account of {name} exceeded xoff, {}, but no pause took effect before the end",
                limits.xoff
            )
        }
        Some(PausedPort { name, peak, limits, .. }) => {
            format!("not reached: the ingress account of {name} had {peak}B at most, and xoff is {}", limits.xoff)
        }
    })
}

/// Why no switch has sent a notification, if none has.
pub(crate) fn no_notification(spec: &Spec, qcn: &QcnReport) -> Option<String> {
    let config = spec.network.interface().tables.qcn?;
    if qcn.sent.notifications > 0 {
        return None;
    }
    Some(match qcn.sent.samples {
        0 => format!("no queue was sampled: no port forwarded as much as qcn.sample = {}", config.sample),
        samples => {
            format!("of {samples} samples, none found a queue above qcn.qeq = {} or growing fast", config.set_point)
        }
    })
}
