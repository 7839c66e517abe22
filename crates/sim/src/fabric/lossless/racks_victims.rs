//! Head-of-line blocking on a hybrid fabric: where the first packets of paused links are bound, and whether that stands idle.
//!
//! A VOQ stands idle when it holds nothing and what came could leave at once: over a circuit that is up and sends nothing, or, while the
//! packet path is on, over an uplink that sends nothing. In a pair's night nothing could leave, so nobody is a victim.
//! An uplink's first packet is that of the VOQ whose turn is next; when the schedule takes that VOQ's path away, another's.

use super::places::Place;
use crate::fabric::core::Core;
use crate::fabric::hybrid::Hybrid;
use firstlight_net::PacketId;
use firstlight_units::Time;

impl Hybrid {
    /// Notes where the first packet of a paused link goes next.
    pub(in crate::fabric) fn note_head(&mut self, core: &Core, place: Place, now: Time) {
        let Some(pauses) = self.pauses.as_deref() else { return };
        let number = pauses.of(place);
        // The frame in service is nobody's victim.
        let Some(stopped) = pauses.ledger.since(number, 0) else { return };
        let Some(egress) = self.next_of(core, place) else { return };
        let idle = self.is_idle(egress, now);
        let pauses = self.pauses.as_deref_mut().expect("they are there");
        let egress = pauses.of(egress);
        pauses.victims.begin(number, egress, idle, now.max(stopped));
    }

    /// Where the first packet of a link is bound for.
    fn next_of(&self, core: &Core, place: Place) -> Option<Place> {
        let at_tor = |id: PacketId| {
            let packet = core.arena.get(id);
            let (src, dst) = (self.rack(packet.src()), self.rack(packet.dst()));
            if src == dst { Place::HostPort(packet.dst().index()) } else { Place::Voq(src, dst) }
        };
        match place {
            Place::Nic(host) => core.pausable.ports[host].head(0).map(at_tor),
            Place::Uplink(rack) => {
                let dst = self.uplinks[rack].turns.next()?;
                let head = self.pairs[self.pair(rack, dst)].voq.front()?;
                Some(if self.downlinks.is_empty() { self.host_of(core, head) } else { Place::Downlink(dst) })
            }
            Place::Downlink(rack) => self.downlinks[rack].next().map(|head| self.host_of(core, head)),
            _ => None,
        }
    }

    fn host_of(&self, core: &Core, id: PacketId) -> Place {
        Place::HostPort(core.arena.get(id).dst().index())
    }

    /// Whether a packet that came to a place would leave at once.
    fn is_idle(&self, place: Place, now: Time) -> bool {
        let pauses = self.pauses.as_deref().expect("only links that can be paused get here");
        match place {
            Place::HostPort(host) => pauses.ports[host].is_idle(),
            Place::Downlink(rack) => !pauses.downlinks[rack].serves_packet() && self.downlinks[rack].is_empty(),
            Place::Voq(src, dst) => {
                let pair = &self.pairs[self.pair(src, dst)];
                let circuit = &self.circuits[src];
                let by_circuit = circuit.is_up_to(dst) && circuit.line.free_at() <= now;
                let by_packet = pair.off == 0 && !pauses.uplinks[src].serves_packet();
                pair.voq.is_empty() && (by_circuit || by_packet)
            }
            _ => false,
        }
    }

    /// A downlink may have become idle or busy.
    pub(in crate::fabric) fn downlink_changed(&mut self, now: Time, rack: usize) {
        let idle = self.is_idle(Place::Downlink(rack), now);
        let pauses = self.pauses.as_deref_mut().expect("they are there");
        let place = pauses.of(Place::Downlink(rack));
        pauses.victims.change(place, idle, now);
    }

    /// VOQs that paused hosts wait for may have become idle or busy.
    pub(super) fn look_at_voqs(&mut self, core: &Core) {
        let awaited = |hybrid: &Self, index| {
            let pauses = hybrid.pauses.as_deref().expect("only links that can be paused get here");
            pauses.victims.awaited(index).map(|number| (number, pauses.places.place(number)))
        };
        let mut index = 0;
        while let Some((number, place)) = awaited(self, index) {
            index += 1;
            if matches!(place, Place::Voq(..)) {
                let idle = self.is_idle(place, core.now);
                let pauses = self.pauses.as_deref_mut().expect("they are there");
                pauses.victims.change(number, idle, core.now);
            }
        }
    }

    /// The schedule has turned paths on or off: paused uplinks may have other first packets.
    pub(in crate::fabric) fn look_at_uplinks(&mut self, core: &Core) {
        for rack in 0..self.racks {
            let pauses = self.pauses.as_deref_mut().expect("only links that can be paused get here");
            let number = pauses.of(Place::Uplink(rack));
            if pauses.ledger.since(number, 0).is_some() {
                pauses.victims.end(number, core.now);
                self.note_head(core, Place::Uplink(rack), core.now);
            }
        }
    }
}
