//! What is told of pauses at the end.

use super::deadlock::{self, Circle};
use super::ledger::{CIRCLE, Cause, Entry, Toll};
use super::{Link, Lossless};
use crate::fabric::adapter;
use crate::fabric::core::Core;
use crate::report::{DeadlockReport, PauseCause, PauseEvent, PauseReport, PausedPort};
use firstlight_net::topology::Node;
use firstlight_units::{Span, Time};

impl Lossless {
    /// All that is known of pauses until now.
    pub(in crate::fabric) fn pause_report(&self, core: &Core) -> PauseReport {
        let priorities = self.accounts.priorities();
        let buffers = !core.adapters.is_empty();
        let inward = |from: &usize| buffers || matches!(self.graph.topology.target_of(*from), Node::Switch(_));
        let all = (0..self.links.len()).filter(inward).flat_map(|from| (0..priorities).map(move |class| (from, class)));
        let tolls = self.ledger.tolls(core.now);
        let dead = |priority| deadlock::find(&self.accounts, &self.ledger, &self.resting(core, priority), priority);
        PauseReport {
            ports: all.map(|(from, priority)| self.paused_port(core, from, priority)).collect(),
            causes: tolls.map(|(from, class, cause, toll)| self.cause_report(core, from, class, cause, toll)).collect(),
            events: self.ledger.entries.iter().map(|entry| self.event_report(core, entry)).collect(),
            unrecorded: self.ledger.unrecorded,
            lost: self.lost,
            deadlocks: (0..priorities).filter_map(dead).map(|circle| self.deadlock_report(core, &circle)).collect(),
        }
    }

    fn paused_port(&self, core: &Core, from: usize, priority: usize) -> PausedPort {
        let toll = self.ledger.toll(from, priority, core.now);
        let victim = || own(core, self.victims.time(from * self.accounts.priorities() + priority, core.now));
        PausedPort {
            name: self.name(from),
            class: self.class(priority),
            lossless: self.config.has(priority),
            packets: self.packets(core, from, priority),
            pauses: toll.pauses,
            paused: own(core, toll.time),
            victim: self.graph.sprayed.is_none().then(victim),
            peak: self.accounts.get(from, priority).peak,
            limits: *self.accounts.limits(from),
        }
    }

    fn cause_report(&self, core: &Core, from: usize, priority: usize, cause: Cause, toll: Toll) -> PauseCause {
        let topology = &self.graph.topology;
        PauseCause {
            name: self.name(from),
            class: self.class(priority),
            switch: topology.name(topology.target_of(from)).into(),
            egress: self.name(cause.egress),
            root: (cause.root != CIRCLE).then(|| self.name(cause.root)),
            pauses: toll.pauses,
            paused: own(core, toll.time),
        }
    }

    fn event_report(&self, core: &Core, entry: &Entry) -> PauseEvent {
        let (name, class) = (self.name(entry.transmitter), self.class(entry.priority));
        PauseEvent { at: own(core, entry.at - Time::ZERO), name, class, paused: entry.paused }
    }

    fn deadlock_report(&self, core: &Core, circle: &Circle) -> DeadlockReport {
        DeadlockReport {
            class: self.class(circle.priority),
            ports: circle.transmitters.iter().map(|transmitter| self.name(*transmitter)).collect(),
            since: own(core, circle.since - Time::ZERO),
            stopped: circle.stopped,
        }
    }

    fn name(&self, transmitter: usize) -> String {
        match transmitter.checked_sub(self.links.len()) {
            None => self.graph.topology.transmitter_name(transmitter),
            Some(host) => adapter::name(host),
        }
    }

    /// The class as it is told: none for all together.
    fn class(&self, priority: usize) -> Option<u8> {
        (!self.config.whole_link).then_some(priority as u8)
    }

    /// Which transmitters are paused, have nothing of the class in service, and hear of no change. Adapters are never paused.
    fn resting(&self, core: &Core, priority: usize) -> Vec<bool> {
        let rests = |from: usize| {
            let stopped = self.ledger.since(from, priority).is_some_and(|since| since <= core.now);
            let Link { frames, back, .. } = &self.links[from];
            let told = frames.is_empty() && !self.port(core, *back).is_telling();
            stopped && told && self.accounts.paused(from) & (1 << priority) != 0
        };
        (0..self.links.len()).map(rests).chain(std::iter::repeat_n(false, core.hosts())).collect()
    }

    /// Packets of a class that a transmitter has begun to send.
    fn packets(&self, core: &Core, transmitter: usize, priority: usize) -> u64 {
        let port = self.port(core, transmitter);
        let classes = if self.config.whole_link { 0..port.classes() } else { priority..priority + 1 };
        classes.map(|class| port.counts(class).sent).sum()
    }
}

/// A span of the engine's clock in the fabric's own time.
pub(super) fn own(core: &Core, span: Span) -> Span {
    Span::from_ps(span.as_ps() / u64::from(core.scale))
}
