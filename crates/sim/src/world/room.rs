//! A world's hosts whose interfaces are full: senders wait, and have turns when there is room.

use super::World;
use crate::events::EventKind;
use crate::external_hosts::ExternalHosts;
use crate::wait_queues::Waiter;
use firstlight_net::HostId;

impl World {
    /// Whether the interface of an external host has room. If it has none, [`ExternalHosts::on_room`] is called when
    /// the host's turn comes. The host may then send one packet, and calls this function again. A packet that a host
    /// sends without room is not refused.
    pub fn ask_room(&mut self, host: HostId) -> bool {
        let room = self.fabric.has_room(host);
        if !room {
            self.wait_queues.push(host, Waiter::ExternalHost);
        }
        room
    }

    /// The interface of a host has room again: senders that wait have their turns.
    #[cold]
    pub(super) fn on_room<X: ExternalHosts>(&mut self, host: HostId, external: &mut X) {
        while !self.wait_queues.is_empty(host)
            && self.fabric.has_room(host)
            && let Some(waiter) = self.wait_queues.pop(host)
        {
            match waiter {
                Waiter::Endpoint(endpoint) => self.take_turn(host, endpoint),
                Waiter::Probe(index) => self.on_probe(index),
                Waiter::ExternalHost => {
                    if self.follows {
                        self.follow_room(host);
                    }
                    external.on_room(host);
                    self.fabric.promise_room(host);
                }
            }
        }
    }

    /// A connection sends a packet, if it still has one, and waits again if it has more.
    fn take_turn(&mut self, host: HostId, endpoint: usize) {
        let Some(flow_end) = self.connections.get_mut(endpoint) else { return };
        if let Some(causes) = self.fabric.causes() {
            causes.on_turn(endpoint);
        }
        flow_end.waits = flow_end.send_one(&mut self.fabric, self.now);
        if flow_end.waits {
            self.wait_queues.push(host, Waiter::Endpoint(endpoint));
        }
        if let Some(recorder) = self.fabric.recorder() {
            flow_end.settle(endpoint, recorder, self.now);
        }
        if let Some(deadline) = flow_end.deadline(self.now) {
            self.timers.set_if_earlier(deadline, EventKind::Timer, endpoint);
        }
    }

    /// A probe sends a datagram, or waits for room. Then the datagram is late, and the next ones may be: each waits for
    /// a turn.
    pub(super) fn on_probe(&mut self, index: usize) {
        let probe = &mut self.probes[index];
        let host = probe.host();
        if !probe.has_room() {
            return self.timers.set(None, EventKind::Probe, index);
        }
        if !self.fabric.has_room(host) {
            self.timers.set(None, EventKind::Probe, index);
            return self.wait_queues.push(host, Waiter::Probe(index));
        }
        if let Some(causes) = self.fabric.causes() {
            causes.on_other();
        }
        if self.fabric.inject(host, probe.datagram(index, self.now), self.now).is_some() {
            probe.on_taken();
        }
        let next = probe.on_sent(self.now);
        if next.is_some_and(|next| next <= self.now) {
            return self.wait_queues.push(host, Waiter::Probe(index));
        }
        self.timers.set(next, EventKind::Probe, index);
    }

    /// A segment with payload has left its host's interface: its sender goes on, if it has waited for that.
    #[inline(never)]
    pub(super) fn on_left(&mut self, host: HostId, port: u16) {
        let Some(endpoint) = self.endpoints.at(host, port) else { return };
        let Some(flow_end) = self.connections.get_mut(endpoint) else { return };
        if flow_end.connection.on_left(self.now) {
            self.timers.set_if_earlier(self.now, EventKind::Timer, endpoint);
        }
    }

    /// Packets have left their hosts' interfaces. Probes whose sockets were full go to the ends of their hosts' wait
    /// queues.
    #[inline(never)]
    pub(super) fn on_sent<X: ExternalHosts>(&mut self, external: &mut X) {
        while let Some(id) = self.fabric.poll_sent() {
            let index = self.fabric.packet(id).probe().map(|datagram| datagram.number());
            if let Some(index) = index.filter(|index| self.probes[*index].on_left()) {
                self.wait_queues.push(self.probes[index].host(), Waiter::Probe(index));
            }
            if self.follows {
                self.follow_sent(id);
            }
            external.on_sent(id);
        }
    }
}
