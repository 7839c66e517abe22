//! What is told of pauses on a hybrid fabric at the end.

use super::ledger::{CIRCLE, Cause, Entry, Toll};
use super::places::Place;
use super::racks::Pauses;
use super::report::own;
use crate::fabric::core::Core;
use crate::fabric::hybrid::Hybrid;
use crate::report::{PauseCause, PauseEvent, PauseReport, PausedPort};
use firstlight_net::pfc::PfcLimits;
use firstlight_units::Time;

impl Hybrid {
    /// All that is known of pauses until now; none when links cannot be paused.
    pub(in crate::fabric) fn pause_report(&self, core: &Core) -> Option<PauseReport> {
        let pauses = self.pauses.as_deref()?;
        Some(PauseReport {
            ports: pauses.places.inward().map(|place| self.paused_link(core, pauses, place)).collect(),
            causes: pauses
                .ledger
                .tolls(core.now)
                .map(|(from, _, cause, toll)| pauses.cause(core, from, cause, toll))
                .collect(),
            events: pauses.ledger.entries.iter().map(|entry| pauses.event(core, entry)).collect(),
            unrecorded: pauses.ledger.unrecorded,
            lost: pauses.lost,
            deadlocks: vec![],
        })
    }

    fn paused_link(&self, core: &Core, pauses: &Pauses, place: Place) -> PausedPort {
        let number = pauses.of(place);
        let toll = pauses.ledger.toll(number, 0, core.now);
        let never = matches!(place, Place::Circuit(_));
        let packets = match place {
            Place::Nic(host) => core.pausable.ports[host].counts(0).sent,
            Place::Uplink(rack) => self.uplinks[rack].line.sent(),
            Place::Downlink(rack) => self.downlinks[rack].line.sent(),
            Place::Circuit(dst) => (0..self.racks).map(|src| self.pairs[self.pair(src, dst)].circuit_packets).sum(),
            Place::HostPort(host) => pauses.ports[host].counts(0).sent,
            Place::Voq(..) | Place::Adapter(_) => unreachable!("they lead into no switch"),
        };
        PausedPort {
            name: place.name(),
            class: pauses.class(),
            lossless: pauses.config.has(0) && !never,
            packets,
            pauses: toll.pauses,
            paused: own(core, toll.time),
            victim: Some(own(core, pauses.victims.time(number, core.now))),
            peak: pauses.accounts.get(number, 0).peak,
            limits: if never { PfcLimits::default() } else { *pauses.accounts.limits(number) },
        }
    }
}

impl Pauses {
    fn name(&self, number: usize) -> String {
        self.places.place(number).name()
    }

    /// The class as it is told: none for all together.
    fn class(&self) -> Option<u8> {
        (!self.config.whole_link).then_some(0)
    }

    fn cause(&self, core: &Core, from: usize, cause: Cause, toll: Toll) -> PauseCause {
        PauseCause {
            name: self.name(from),
            class: self.class(),
            switch: self.places.switch(self.places.place(from)),
            egress: self.name(cause.egress),
            root: (cause.root != CIRCLE).then(|| self.name(cause.root)),
            pauses: toll.pauses,
            paused: own(core, toll.time),
        }
    }

    fn event(&self, core: &Core, entry: &Entry) -> PauseEvent {
        let (name, class) = (self.name(entry.transmitter), self.class());
        PauseEvent { at: own(core, entry.at - Time::ZERO), name, class, paused: entry.paused }
    }
}
