//! What is told of pauses at the end.

use super::ledger::{CIRCLE, Cause};
use super::{Lossless, deadlock};
use crate::fabric::core::Core;
use crate::report::{DeadlockReport, PauseCause, PauseEvent, PauseReport, PausedPort};
use firstlight_net::topology::Node;
use firstlight_units::{Span, Time};

impl Lossless {
    /// The table of pauses, by transmitter and class; with it all the rest.
    pub(in crate::fabric) fn pause_report(&self, core: &Core) -> PauseReport {
        let topology = &self.graph.topology;
        let span = |span: Span| Span::from_ps(span.as_ps() / u64::from(core.scale));
        let at = |time: Time| Span::from_ps(time.as_ps() / u64::from(core.scale));
        let name = |transmitter| topology.transmitter_name(transmitter);
        let class = |priority: usize| (!self.config.whole_link).then_some(priority as u8);
        let switches = (0..self.links.len()).filter(|from| matches!(topology.target_of(*from), Node::Switch(_)));
        let all = switches.flat_map(|from| (0..self.accounts.priorities()).map(move |priority| (from, priority)));
        let port = |(from, priority)| {
            let toll = self.ledger.toll(from, priority, core.now);
            let victim = self.victims.time(from * self.accounts.priorities() + priority, core.now);
            PausedPort {
                name: name(from),
                class: class(priority),
                lossless: self.config.has(priority),
                packets: self.packets(core, from, priority),
                pauses: toll.pauses,
                paused: span(toll.time),
                victim: self.graph.sprayed.is_none().then_some(span(victim)),
                peak: self.accounts.get(from, priority).peak,
                limits: *self.accounts.limits(from),
            }
        };
        let cause =
            |(from, priority, Cause { egress, root }, toll): (usize, usize, Cause, super::ledger::Toll)| PauseCause {
                name: name(from),
                class: class(priority),
                switch: topology.name(topology.target_of(from)).into(),
                egress: name(egress),
                root: (root != CIRCLE).then(|| name(root)),
                pauses: toll.pauses,
                paused: span(toll.time),
            };
        let event = |entry: &super::ledger::Entry| PauseEvent {
            at: at(entry.at),
            name: name(entry.transmitter),
            class: class(entry.priority),
            paused: entry.paused,
        };
        let dead = |priority| deadlock::find(&self.accounts, &self.ledger, &self.resting(core, priority), priority);
        let deadlock = |circle: deadlock::Circle| DeadlockReport {
            class: class(circle.priority),
            ports: circle.transmitters.iter().map(|transmitter| name(*transmitter)).collect(),
            since: at(circle.since),
            stopped: circle.stopped,
        };
        PauseReport {
            ports: all.map(port).collect(),
            causes: self.ledger.tolls(core.now).map(cause).collect(),
            events: self.ledger.entries.iter().map(event).collect(),
            unrecorded: self.ledger.unrecorded,
            lost: self.lost,
            deadlocks: (0..self.accounts.priorities()).filter_map(dead).map(deadlock).collect(),
        }
    }

    /// Which transmitters are paused, have nothing of the class in service, and hear of no change.
    fn resting(&self, core: &Core, priority: usize) -> Vec<bool> {
        let rests = |from: usize| {
            let stopped = self.ledger.since(from, priority).is_some_and(|since| since <= core.now);
            let link = &self.links[from];
            let told = link.frames.is_empty() && !self.port(core, link.back).is_telling();
            stopped && told && self.accounts.paused(from) & (1 << priority) != 0
        };
        (0..self.links.len()).map(rests).collect()
    }

    /// Packets of a class that a transmitter has begun to send.
    fn packets(&self, core: &Core, transmitter: usize, priority: usize) -> u64 {
        let port = self.port(core, transmitter);
        let classes = if self.config.whole_link { 0..port.classes() } else { priority..priority + 1 };
        classes.map(|class| port.counts(class).sent).sum()
    }
}
