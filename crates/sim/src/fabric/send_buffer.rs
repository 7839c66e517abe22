//! The sending buffers of hosts' interfaces, and the moments at which packets have left these.
//!
//! A buffer holds all that stands between a host's stack and the wire: what a pacer or QCN's limiters hold back, what is on its
//! way through the stack, the interface's queue, and the packet in service until its last bit has left. Whoever sends asks
//! before each packet; what is handed in is never refused, so a buffer holds less than its limit and one packet. Most hosts
//! do so: the driver's ring is full, and the stack waits.
//!
//! Of an interface that is a plain FIFO, the departure is known when a packet is handed in. Wherever something may stand in the
//! way it is an event, which interfaces that can be paused have.

use super::core::{Core, Queue};
use firstlight_net::{Discipline, HostId, PacketId, PausablePort};
use firstlight_units::{Bytes, Time};

/// The buffers of all hosts.
pub(super) struct SendBuffers {
    limit: u64,
    hosts: Vec<Held>,
}

/// What a host's interface holds.
#[derive(Clone, Copy, Default)]
struct Held {
    bytes: u64,
    /// The most that it ever held.
    peak: u64,
    /// Somebody found it full, and wants to know when it is no more.
    asked: bool,
    /// The room that there is belongs to somebody whose packet is still to come.
    promised: bool,
}

impl SendBuffers {
    pub(super) fn new(limit: Bytes, hosts: usize) -> Self {
        SendBuffers { limit: limit.get(), hosts: vec![Held::default(); hosts] }
    }

    /// A host hands in a packet.
    pub(super) fn take(&mut self, host: usize, size: u16) {
        let held = &mut self.hosts[host];
        held.bytes += u64::from(size);
        held.peak = held.peak.max(held.bytes);
    }

    /// A packet has left. Tells whether there is room again for somebody who has asked.
    fn give(&mut self, host: usize, size: u16) -> bool {
        let held = &mut self.hosts[host];
        held.bytes -= u64::from(size);
        held.promised = false;
        held.bytes < self.limit && std::mem::take(&mut held.asked)
    }

    fn has_room(&mut self, host: usize) -> bool {
        let held = &mut self.hosts[host];
        let full = held.promised || held.bytes >= self.limit;
        held.asked |= full;
        !full
    }

    /// Nobody else has room until a packet leaves, if one is there that will.
    pub(super) fn promise(&mut self, host: usize) {
        let held = &mut self.hosts[host];
        held.promised = held.bytes > 0;
    }

    /// The most bytes that a host's interface ever held.
    pub(super) fn peak(&self, host: usize) -> u64 {
        self.hosts[host].peak
    }
}

impl Core {
    /// Lets the end of each transmission of the hosts' interfaces be an event, where it is none yet.
    pub(super) fn make_exact(&mut self) {
        let stack = self.interfaces.send_delay;
        let port = |nic: &firstlight_net::FifoPort| {
            PausablePort::pausable(*nic.serializer(), nic.delay() - stack, &[Discipline::default()], 0)
        };
        let ports: Vec<_> = self.nics.iter().map(port).collect();
        if !ports.is_empty() {
            self.make_pausable(ports);
        }
    }

    /// From now on it is told which packets have left, of interfaces of which it is not known before.
    pub(super) fn keep_sent(&mut self) {
        if !self.interfaces.plain {
            self.make_exact();
            self.pausable.sent.get_or_insert_with(Queue::new);
        }
    }

    /// The same of all interfaces; and somebody has something to do at these moments.
    pub(super) fn stop_at_sent(&mut self) {
        self.make_exact();
        self.keep_sent();
        self.pausable.stops = true;
    }

    /// When what a host has handed in has left its interface; none where that is not known before.
    pub(super) fn departure(&self, host: usize) -> Option<Time> {
        let nic = self.nics.get(host).filter(|_| self.interfaces.plain)?;
        Some(nic.departure() + self.interfaces.send_delay)
    }

    /// Whether a host's interface takes a packet. If not, the host is in `rooms` once it does.
    #[inline]
    pub(super) fn has_room(&mut self, host: usize) -> bool {
        self.pausable.buffers.as_mut().is_none_or(|buffers| buffers.has_room(host))
    }

    /// A packet's last bit has left its host's interface.
    pub(super) fn on_sent(&mut self, id: PacketId, host: usize) {
        if let Some(sent) = &mut self.pausable.sent {
            sent.push(id);
        }
        let size = self.arena.get(id).size();
        let room = self.pausable.buffers.as_mut().is_some_and(|buffers| buffers.give(host, size));
        if room || self.pausable.stops {
            self.rooms.push(HostId(host as u16));
        }
    }
}
