//! A world's hosts whose interfaces are full: who waits, and who goes when there is room.

use super::World;
use crate::events::Kind;
use crate::lines::Waiter;
use crate::outside::Outside;
use firstlight_net::HostId;

impl World {
    /// Whether the interface of a host outside takes more. If it does not, [`Outside::on_room`] tells when the host's turn
    /// comes: one packet, after which it asks again. A packet that is handed in all the same is not refused.
    pub fn ask_room(&mut self, host: HostId) -> bool {
        let room = self.fabric.has_room(host);
        if !room {
            self.lines.join(host, Waiter::Outside);
        }
        room
    }

    /// The interface of a host takes packets again: those who wait have their turns.
    #[cold]
    pub(super) fn on_room<O: Outside>(&mut self, host: HostId, outside: &mut O) {
        while !self.lines.is_empty(host)
            && self.fabric.has_room(host)
            && let Some(waiter) = self.lines.next(host)
        {
            match waiter {
                Waiter::End(place) => self.take_turn(host, place),
                Waiter::Probe(index) => self.on_probe(index),
                Waiter::Outside => {
                    outside.on_room(host);
                    self.fabric.promise_room(host);
                }
            }
        }
    }

    /// A connection sends a packet, if it still has one, and waits again if it has more.
    fn take_turn(&mut self, host: HostId, place: usize) {
        let Some(live) = self.ends.get_mut(place) else { return };
        live.waits = live.send_one(&mut self.fabric, self.now);
        if live.waits {
            self.lines.join(host, Waiter::End(place));
        }
        if let Some(deadline) = live.deadline(self.now) {
            self.timers.set_if_earlier(deadline, Kind::Timer, place);
        }
    }

    /// A probe sends a datagram, or waits for room. Then it is late, and so may those be that follow: each takes its turn.
    pub(super) fn on_probe(&mut self, index: usize) {
        let probe = &mut self.probes[index];
        let host = probe.host();
        if !probe.has_room() {
            return self.timers.set(None, Kind::Probe, index);
        }
        if !self.fabric.has_room(host) {
            self.timers.set(None, Kind::Probe, index);
            return self.lines.join(host, Waiter::Probe(index));
        }
        if self.fabric.inject(host, probe.datagram(index, self.now), self.now).is_some() {
            probe.on_taken();
        }
        let next = probe.on_sent(self.now);
        if next.is_some_and(|next| next <= self.now) {
            return self.lines.join(host, Waiter::Probe(index));
        }
        self.timers.set(next, Kind::Probe, index);
    }

    /// Packets have left their hosts' interfaces. Sources whose sockets were full go to the ends of their lines.
    #[inline(never)]
    pub(super) fn on_sent<O: Outside>(&mut self, outside: &mut O) {
        while let Some(id) = self.fabric.poll_sent() {
            let index = self.fabric.packet(id).probe().map(|datagram| datagram.number());
            if let Some(index) = index.filter(|index| self.probes[*index].on_left()) {
                self.lines.join(self.probes[index].host(), Waiter::Probe(index));
            }
            outside.on_sent(id);
        }
    }
}
