//! Hosts' interfaces that can be paused, on lossless Ethernet, or of which the moment is needed at which a packet has
//! left.
//!
//! When a packet leaves such an interface is not known when the packet is queued. So the stack's delay, which other
//! interfaces add to their link's, is a stage of its own before the queue (a pause reaches the transmitter, not the
//! stack), and a packet is stamped when it has left.

use super::core::{Core, Outbox, port_report};
use super::send_buffer::SendBuffers;
use crate::causes::{LossPlace, PlaceKind};
use crate::events::EventKind;
use crate::report::{PortKind, PortReport};
use firstlight_net::{HostId, PacketId, PausablePort, Ring, Sent, SwitchPort};
use firstlight_units::Time;

/// The interfaces; none where departures are known in advance, or not needed.
#[derive(Default)]
pub(super) struct PausableNics {
    pub(super) ports: Vec<PausablePort>,
    /// Packets in each host's stack, with the moments at which they leave it.
    stacks: Vec<Ring<(Time, PacketId)>>,
    /// When each packet was queued.
    queued: Vec<Time>,
    /// Packets given to a paused queue since the last event: when, and at which hosts.
    pub(super) stopped: Vec<(Time, usize)>,
    /// How much the interfaces hold, where there is a limit.
    pub(super) buffers: Option<SendBuffers>,
    /// Packets that have left, if the driver asks for them.
    pub(super) sent: Option<Outbox<PacketId>>,
    /// Whether a run to exits stops when a packet has left.
    pub(super) stops: bool,
    /// The endpoints whose segments have left, if the driver asks for them.
    pub(super) left: Option<Outbox<(HostId, u16)>>,
}

impl PausableNics {
    pub(super) fn reports(&self, now: Time) -> impl Iterator<Item = PortReport> + '_ {
        self.ports.iter().enumerate().map(move |(host, port)| {
            let report = port_report(PortKind::HostNic, format!("host{host}.nic"), port, now);
            let in_stack = u64::from(self.stacks[host].len());
            let peak_bytes = self.buffers.as_ref().map(|buffers| buffers.peak(host));
            PortReport { offered: report.offered + in_stack, held: report.held + in_stack, peak_bytes, ..report }
        })
    }
}

impl Core {
    /// Replaces the interfaces by such that can be paused.
    pub(super) fn make_pausable(&mut self, ports: Vec<PausablePort>) {
        let stacks = ports.iter().map(|_| Ring::with_capacity(4)).collect();
        let before = std::mem::take(&mut self.pausable);
        self.pausable = PausableNics { ports, stacks, queued: vec![], stopped: vec![], ..before };
        self.nics = vec![];
        self.interfaces.plain = false;
    }

    /// A packet comes from the host.
    pub(super) fn enter_stack(&mut self, id: PacketId, host: usize) {
        let delay = self.interfaces.send_delay;
        if delay.is_zero() {
            return self.queue(id, host);
        }
        let (stack, out) = (&mut self.pausable.stacks[host], self.now + delay);
        let alone = stack.is_empty();
        stack.push((out, id));
        if alone {
            self.schedule(Some(out), EventKind::Stack, host);
        }
    }

    /// A packet leaves the stack of a host.
    pub(super) fn on_stack(&mut self, host: usize) {
        let stack = &mut self.pausable.stacks[host];
        let (_, id) = stack.pop().expect("an event is pending only while a packet is in the stack");
        let next = stack.front().map(|(out, _)| out);
        self.reschedule(next, EventKind::Stack, host);
        self.queue(id, host);
    }

    fn queue(&mut self, id: PacketId, host: usize) {
        let (now, nics) = (self.now, &mut self.pausable);
        if nics.queued.len() <= id.index() {
            nics.queued.resize(id.index() + 1, Time::ZERO);
        }
        nics.queued[id.index()] = now;
        let (port, packet) = (&mut nics.ports[host], self.arena.get_mut(id));
        if port.paused() != 0 {
            nics.stopped.push((now, host));
        }
        let event = port.offer(id, packet, now).expect("a host's interface queues without limit");
        if event.is_some() {
            self.expect(event, EventKind::Nic, host, id);
        }
    }

    /// Carries out the events of a host's interface that are due. Returns the packet that arrives at the switch, and
    /// the transmission that has ended.
    #[inline(never)]
    pub(super) fn step_nic(&mut self, host: usize) -> (Option<PacketId>, Option<Sent>) {
        let port = &mut self.pausable.ports[host];
        let (id, next) = port.step(self.now, |_| {});
        let sent = port.take_sent();
        self.expect(next, EventKind::Nic, host, PacketId::default());
        if let (Some(id), Some(recorder)) = (id, &mut self.recorder) {
            recorder.hop(id, PlaceKind::Nic, host, self.now);
            let (place, nic) = (LossPlace::Queue(PlaceKind::Nic.code(host)), &self.pausable.ports[host]);
            recorder.queue(place, self.arena.get(id), || nic.backlog(self.now), self.now);
        }
        if let Some(Sent::Packet(id)) = sent {
            self.stamp(id, host);
            self.on_sent(id, host);
        }
        (id, sent)
    }

    /// A packet has left the interface of its host.
    fn stamp(&mut self, id: PacketId, host: usize) {
        let (packet, queued) = (self.arena.get_mut(id), self.pausable.queued[id.index()]);
        if packet.has_stamps() {
            let starts = self.now - self.pausable.ports[host].serializer().time(packet.size());
            packet.set_sent(self.interfaces.stampers[host].on_send(queued, starts, packet.size()));
        }
    }
}
