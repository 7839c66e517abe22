//! The receiving side of hosts' adapters: packets that have arrived wait there until the host has fetched them over its
//! bus.
//!
//! A host fetches one packet after the other, in the order of their arrival, at the rate of its bus. A packet counts
//! from the arrival of its last bit until that bit has been fetched; then the packet passes the host's stack, and
//! leaves the fabric. A packet that finds no room is lost. Packets of lossless classes take none of this room: they
//! have accounts, as at a switch, and these pause the link before the buffer is full (`lossless`). QCN's notifications
//! end in the interface, before the buffer.
//!
//! Source: the adapters of Anghel, Birke, Crisan and Gusat, "Cross-Layer Flow and Congestion Control for Datacenter
//! Networks", 2011, which have buffers. What a slow host does to a lossless network is the "slow-receiver symptom" of
//! C. Guo et al., "RDMA over Commodity Ethernet at Scale", SIGCOMM'16.

use super::core::{Core, port_report, serializer};
use crate::causes::{Place, PlaceKind};
use crate::config::{BuildError, InterfaceConfig};
use crate::events::EventKind;
use crate::report::{PortKind, PortReport};
use firstlight_net::{Discipline, HostId, PacketId, PausablePort, Sent, SwitchPort};
use firstlight_units::{Span, Time};

/// The adapters; none when hosts fetch packets at once.
#[derive(Default)]
pub(super) struct Adapters {
    /// The bus of each host, and behind it the stack: ports that are never paused.
    buses: Vec<PausablePort>,
    /// Bytes that each has room for, of packets without an account.
    room: Vec<u64>,
}

/// The name of a host's adapter.
pub(super) fn name(host: usize) -> String {
    format!("host{host}.adapter")
}

impl Adapters {
    pub(super) fn new(config: &InterfaceConfig, hosts: usize, scale: u32) -> Result<Self, BuildError> {
        let Some(receive) = &config.adapter.receive else { return Ok(Adapters::default()) };
        let bus = serializer("interface.adapter.receive.drain", receive.drain, scale)?;
        let stack = config.receive_delay * u64::from(scale);
        let bus = PausablePort::new(bus, stack, &[Discipline::default()], 0);
        Ok(Adapters { buses: vec![bus; hosts], room: vec![receive.buffer.get(); hosts] })
    }

    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.buses.is_empty()
    }

    /// The buses.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let bus = |(host, bus): (usize, &PausablePort)| {
            Place::link(PlaceKind::Adapter, host, name(host), *bus.serializer(), Span::ZERO)
        };
        self.buses.iter().enumerate().map(bus)
    }

    /// The adapters' counters. A bus is no link of the network: its transmissions are no hops.
    pub(super) fn reports(&self, now: Time) -> impl Iterator<Item = PortReport> + '_ {
        let report = move |(host, bus)| port_report(PortKind::Adapter, name(host), bus, now);
        self.buses.iter().enumerate().map(report).map(|report| PortReport { hops: 0, ..report })
    }
}

impl Core {
    /// Whether a packet that arrives at its host is held in the adapter.
    pub(super) fn is_buffered(&self, id: PacketId) -> bool {
        !self.adapters.is_empty() && self.arena.get(id).notification().is_none()
    }

    /// A packet without an account arrives at its host's adapter.
    #[inline(never)]
    pub(super) fn enter_adapter(&mut self, id: PacketId, host: HostId) {
        let room = &mut self.adapters.room[host.index()];
        match room.checked_sub(self.arena.get(id).size().into()) {
            Some(left) => *room = left,
            None => return self.refuse_at_adapter(id, host),
        }
        self.fill_adapter(id, host);
    }

    /// A packet that fits arrives at its host's adapter.
    pub(super) fn fill_adapter(&mut self, id: PacketId, host: HostId) {
        self.stamp_arrival(id, host, self.now);
        let bus = &mut self.adapters.buses[host.index()];
        let event = bus.offer(id, self.arena.get_mut(id), self.now).expect("a bus queues without limit");
        if event.is_some() {
            self.expect(event, EventKind::Adapter, host.index(), id);
        }
    }

    /// A packet that does not fit arrives at its host's adapter, and is lost.
    #[cold]
    pub(super) fn refuse_at_adapter(&mut self, id: PacketId, host: HostId) {
        self.adapters.buses[host.index()].refuse(self.arena.get(id));
        self.lose(id, EventKind::Adapter, host.index());
    }

    /// Carries out the events of a host's adapter that are due, where no packet has an account.
    pub(super) fn on_adapter(&mut self, host: usize) {
        if let Some(id) = self.step_adapter(host) {
            self.make_room(id, host);
        }
    }

    /// A host has fetched a packet without an account.
    pub(super) fn make_room(&mut self, id: PacketId, host: usize) {
        self.adapters.room[host] += u64::from(self.arena.get(id).size());
    }

    /// Carries out the events of a host's adapter that are due. Returns the packet that has left the buffer, if one
    /// has; another packet may have passed the stack and left the fabric.
    pub(super) fn step_adapter(&mut self, host: usize) -> Option<PacketId> {
        let bus = &mut self.adapters.buses[host];
        let (out, next) = bus.step(self.now, |_| {});
        let fetched = bus.take_sent();
        self.expect(next, EventKind::Adapter, host, PacketId::default());
        if let Some(id) = out {
            self.record_hop(id, PlaceKind::Adapter, host);
            self.leave(id, HostId(host as u16));
        }
        fetched.map(|sent| match sent {
            Sent::Packet(id) => id,
            Sent::Pause(_) => unreachable!("a bus sends no pause frames"),
        })
    }
}
