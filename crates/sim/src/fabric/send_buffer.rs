//! The send buffers of hosts' interfaces, and the moments at which packets have left these.
//!
//! A buffer holds all packets between a host's stack and the wire: those that a pacer or QCN's limiters hold back,
//! those in the stack, the interface's queue, and the packet in service until its last bit has left. A sender asks
//! before each packet; an injected packet is never refused, so a buffer holds less than its limit and one packet. Most
//! hosts do so: when the driver's ring is full, the stack waits.
//!
//! The departure from an interface that is a plain FIFO is known when a packet is injected. Wherever a packet may be
//! held back, the departure is an event, which interfaces that can be paused have.

use super::core::{Core, Outbox};
use firstlight_net::{Discipline, HostId, PacketId, PausablePort};
use firstlight_units::{Bytes, Time};

/// The buffers of all hosts.
pub(super) struct SendBuffers {
    limit: u64,
    hosts: Vec<BufferUse>,
}

/// How much a host's interface holds.
#[derive(Clone, Copy, Default)]
struct BufferUse {
    bytes: u64,
    /// The most bytes that the interface ever used.
    peak: u64,
    /// A sender has found the buffer full, and is to be notified when there is room.
    awaited: bool,
    /// The room that there is belongs to a sender whose packet is still to come.
    promised: bool,
}

impl SendBuffers {
    pub(super) fn new(limit: Bytes, hosts: usize) -> Self {
        SendBuffers { limit: limit.get(), hosts: vec![BufferUse::default(); hosts] }
    }

    /// A packet of a host enters.
    pub(super) fn take(&mut self, host: usize, size: u16) {
        let used = &mut self.hosts[host];
        used.bytes += u64::from(size);
        used.peak = used.peak.max(used.bytes);
    }

    /// A packet has left. Returns whether there is room again, for which a sender waits.
    fn give(&mut self, host: usize, size: u16) -> bool {
        let used = &mut self.hosts[host];
        used.bytes -= u64::from(size);
        used.promised = false;
        used.bytes < self.limit && std::mem::take(&mut used.awaited)
    }

    fn has_room(&mut self, host: usize) -> bool {
        let used = &mut self.hosts[host];
        let full = used.promised || used.bytes >= self.limit;
        used.awaited |= full;
        !full
    }

    /// Reserves the free room. If the buffer holds a packet, other senders get no room until a packet leaves.
    pub(super) fn promise(&mut self, host: usize) {
        let used = &mut self.hosts[host];
        used.promised = used.bytes > 0;
    }

    /// The most bytes that a host's interface ever used.
    pub(super) fn peak(&self, host: usize) -> u64 {
        self.hosts[host].peak
    }
}

impl Core {
    /// Lets the end of each transmission of the hosts' interfaces be an event, where it is none yet.
    pub(super) fn make_exact(&mut self) {
        let stack = self.interfaces.send_delay;
        let port = |nic: &firstlight_net::FifoPort| {
            PausablePort::new(*nic.serializer(), nic.delay() - stack, &[Discipline::default()], 0)
        };
        let ports: Vec<_> = self.nics.iter().map(port).collect();
        if !ports.is_empty() {
            self.make_pausable(ports);
        }
    }

    /// From now on packets that have left are kept, where departures are not known in advance.
    pub(super) fn keep_sent(&mut self) {
        if !self.interfaces.plain {
            self.make_exact();
            self.pausable.sent.get_or_insert_with(Outbox::new);
        }
    }

    /// From now on packets that have left are kept, of all interfaces, and end a run to exits.
    pub(super) fn stop_at_sent(&mut self) {
        self.make_exact();
        self.keep_sent();
        self.pausable.stops = true;
    }

    /// Keeps, from now on, the senders of segments that have left, where departures are not known in advance. Each ends
    /// a run to exits.
    pub(super) fn keep_left(&mut self) {
        if !self.interfaces.plain {
            self.make_exact();
            self.pausable.left.get_or_insert_with(Outbox::new);
        }
    }

    /// When the last packet that a host has injected leaves its interface; `None` where that is not known in advance. A
    /// packet that is lost to an injected fault leaves at once.
    pub(super) fn departure(&self, host: usize) -> Option<Time> {
        if self.last_is_lost {
            return Some(self.now);
        }
        let nic = self.nics.get(host).filter(|_| self.interfaces.plain)?;
        Some(nic.departure() + self.interfaces.send_delay)
    }

    /// Whether a host's interface has room for a packet. If not, the host is in `rooms` once it has.
    #[inline]
    pub(super) fn has_room(&mut self, host: usize) -> bool {
        self.pausable.buffers.as_mut().is_none_or(|buffers| buffers.has_room(host))
    }

    /// A packet has left its host's interface.
    fn on_left(&mut self, id: PacketId, host: usize) {
        if let Some(left) = &mut self.pausable.left
            && let Some(segment) = self.arena.get(id).tcp()
            && segment.payload() > 0
        {
            left.push((HostId(host as u16), segment.sport()));
            self.end_run();
        }
    }

    /// A packet's last bit has left its host's interface.
    pub(super) fn on_sent(&mut self, id: PacketId, host: usize) {
        if let Some(sent) = &mut self.pausable.sent {
            sent.push(id);
        }
        self.on_left(id, host);
        let size = self.arena.get(id).size();
        let room = self.pausable.buffers.as_mut().is_some_and(|buffers| buffers.give(host, size));
        if room || self.pausable.stops {
            self.rooms.push(HostId(host as u16));
            self.end_run();
        }
    }
}
