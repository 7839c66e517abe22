//! The hosts' interfaces, apart from their queues: timestamps, pacers, and QCN's rate limiters.

use super::core::Core;
use crate::causes::{Place, PlaceKind};
use crate::config::InterfaceConfig;
use crate::events::EventKind;
use crate::report::{PortKind, PortReport};
use crate::stream::stream;
use firstlight_net::interface::{Clock, Jitter, JitterQueue, Stamper};
use firstlight_net::qcn::RateLimiters;
use firstlight_net::{HostId, InterfacePacer, PacerDecision, PacketId, Serializer, SwitchPort};
use firstlight_units::{Span, Time};
use rand_xoshiro::rand_core::RngCore;

/// The stages between hosts' stacks and their links.
pub(super) struct Interfaces {
    pub(super) stampers: Vec<Stamper>,
    pacers: Vec<InterfacePacer>,
    /// The limited flows of each host, with QCN.
    pub(super) limiters: Vec<RateLimiters>,
    /// The random part of the stacks' delays.
    pub(super) jitter: Option<Jitters>,
    /// Nothing is between a host's stack and its interface, which is a FIFO whose departures are known in advance.
    pub(super) plain: bool,
    /// How long a packet takes through the sending host's stack, on the engine's clock; part of the interface's delay.
    pub(super) send_delay: Span,
    /// How long a packet takes through the receiving host's stack, on the engine's clock; part of the last link's
    /// delay.
    pub(super) receive_delay: Span,
}

/// The random part of all stacks' delays.
pub(super) struct Jitters {
    distribution: Jitter,
    scale: u64,
    /// The queues of all hosts' sending sides, then those of their receiving sides.
    queues: Vec<JitterQueue>,
}

impl Interfaces {
    pub(super) fn new(
        links: impl Iterator<Item = Serializer>,
        config: &InterfaceConfig,
        scale: u32,
        seed: u64,
    ) -> Self {
        let (mut stampers, mut pacers, mut limiters) = (vec![], vec![], vec![]);
        for (host, link) in links.enumerate() {
            let name = format!("host{host}");
            let clock = Clock::draw(&config.clock, &mut stream(seed, &name, "clock"));
            stampers.push(Stamper::new(config.stamps, clock, link, stream(seed, &name, "stamps")));
            let pacer = |config| InterfacePacer::new(config, scale, stream(seed, &name, "pacer").next_u64());
            pacers.extend(config.tables.pacer.as_ref().map(pacer));
            let limiter = |config| RateLimiters::new(config, link.rate(), scale, stream(seed, &name, "qcn"));
            limiters.extend(config.tables.qcn.as_ref().map(limiter));
        }
        let stretched = |delay: Span| delay * u64::from(scale);
        let (send_delay, receive_delay) = (stretched(config.send_delay), stretched(config.receive_delay));
        let sides = ["send jitter", "receive jitter"];
        let queues = sides.map(|side| {
            let queue = move |host| JitterQueue::new(stream(seed, &format!("host{host}"), side));
            (0..stampers.len()).map(queue)
        });
        let jitter = config.jitter.clone().map(|distribution| Jitters {
            distribution,
            scale: scale.into(),
            queues: queues.into_iter().flatten().collect(),
        });
        let plain = pacers.is_empty() && limiters.is_empty() && jitter.is_none();
        Interfaces { stampers, pacers, limiters, jitter, plain, send_delay, receive_delay }
    }

    #[inline]
    pub(super) fn hosts(&self) -> usize {
        self.stampers.len()
    }

    /// The random parts of stacks, as places.
    pub(super) fn stack_places(&self) -> impl Iterator<Item = Place> + '_ {
        let queues = self.jitter.iter().flat_map(|jitters| 0..jitters.queues.len());
        queues.map(|queue| Place::holding(PlaceKind::Stack, queue, self.stack(queue).1))
    }

    /// The side of a random part of a stack, and its name.
    fn stack(&self, queue: usize) -> (PortKind, String) {
        let side = if queue < self.hosts() { PortKind::SendStack } else { PortKind::ReceiveStack };
        (side, format!("host{}.{}", queue % self.hosts(), side.name()))
    }

    pub(super) fn stack_reports(&self) -> impl Iterator<Item = PortReport> + '_ {
        let queues = self.jitter.iter().flat_map(|jitters| jitters.queues.iter().enumerate());
        queues.map(|(index, queue)| {
            let (kind, name) = self.stack(index);
            let (offered, held) = (queue.offered(), queue.held());
            PortReport { offered, delivered: offered - held, held, ..PortReport::of(kind, name) }
        })
    }

    pub(super) fn pacer_reports(&self) -> impl Iterator<Item = PortReport> + '_ {
        self.pacers.iter().enumerate().map(|(host, pacer)| {
            let counts = pacer.counts();
            PortReport {
                offered: counts.offered,
                delivered: counts.passed + counts.released,
                held: pacer.held(),
                ..PortReport::of(PortKind::Pacer, format!("host{host}.pacer"))
            }
        })
    }
}

impl Core {
    /// A packet goes from the host to its interface, past the pacer or through it.
    #[inline(always)]
    pub(super) fn pace(&mut self, id: PacketId, host: usize) {
        if self.interfaces.plain {
            return self.enter_interface(id, host);
        }
        self.hold_back(id, host);
    }

    /// Takes a packet from a host whose interface has a send buffer, a pacer or rate limiters.
    #[inline(never)]
    fn hold_back(&mut self, id: PacketId, host: usize) {
        if let Some(buffers) = &mut self.pausable.buffers {
            buffers.take(host, self.arena.get(id).size());
        }
        if self.interfaces.jitter.is_some() {
            return self.enter_jitter(id, host);
        }
        self.pace_sent(id, host);
    }

    /// A packet enters the random part of a stack: of a sending side, or above the number of hosts of a receiving side.
    #[inline(never)]
    pub(super) fn enter_jitter(&mut self, id: PacketId, queue: usize) {
        let jitters = self.interfaces.jitter.as_mut().expect("stacks have one");
        match jitters.queues[queue].offer(id, self.now, &jitters.distribution, jitters.scale) {
            PacerDecision::Pass => self.leave_jitter(id, queue),
            PacerDecision::Held(release) => self.schedule(release, EventKind::Jitter, queue),
        }
    }

    /// A packet leaves the random part of a stack.
    pub(super) fn on_jitter(&mut self, queue: usize) {
        let jitters = self.interfaces.jitter.as_mut().expect("stacks have one");
        let (released, next) = jitters.queues[queue].release();
        self.reschedule(next, EventKind::Jitter, queue);
        self.leave_jitter(released.expect("one is due"), queue);
    }

    /// A packet has passed the random part of a stack.
    fn leave_jitter(&mut self, id: PacketId, queue: usize) {
        self.record_hop(id, PlaceKind::Stack, queue);
        match queue.checked_sub(self.hosts()) {
            None => self.pace_sent(id, queue),
            Some(host) => self.hand_over(id, HostId(host as u16)),
        }
    }

    /// A packet has passed the sending stack, and goes past the pacer or through it.
    fn pace_sent(&mut self, id: PacketId, host: usize) {
        if let Some(pacer) = self.interfaces.pacers.get_mut(host)
            && let PacerDecision::Held(release) = pacer.offer(id, self.arena.get(id), self.now)
        {
            return self.schedule(release, EventKind::Pacer, host);
        }
        self.limit(id, host);
    }

    /// Hands a packet to its host's interface, of whichever kind that is.
    pub(super) fn pass(&mut self, id: PacketId, host: usize) {
        if self.nics.is_empty() { self.enter_stack(id, host) } else { self.enter_interface(id, host) }
    }

    /// The pacer of a host releases a packet, if one is due.
    pub(super) fn on_pacer(&mut self, host: usize) {
        let released = self.interfaces.pacers[host].release(self.now);
        let next = self.interfaces.pacers[host].next();
        self.reschedule(next, EventKind::Pacer, host);
        if let Some(id) = released {
            self.record_hop(id, PlaceKind::Pacer, host);
            self.limit(id, host);
        }
    }

    #[inline(always)]
    pub(super) fn enter_interface(&mut self, id: PacketId, host: usize) {
        let (now, nic, packet) = (self.now, &mut self.nics[host], self.arena.get_mut(id));
        if packet.has_stamps() {
            let queued: Time = now + self.interfaces.send_delay;
            let starts = nic.departure().max(now) + self.interfaces.send_delay;
            packet.set_sent(self.interfaces.stampers[host].on_send(queued, starts, packet.size()));
        }
        let alone = nic.offer(id, packet, now).expect("a host's interface queues without limit");
        if alone.is_some() {
            debug_assert!(
                !self.is_scheduled(EventKind::Nic, host),
                "a source has one pending event: {host}'s interface"
            );
            self.expect(alone, EventKind::Nic, host, id);
        }
    }

    /// A packet has `arrived` at the receiving host's interface at that moment.
    #[inline(always)]
    pub(super) fn stamp_arrival(&mut self, id: PacketId, host: HostId, arrived: Time) {
        let packet = self.arena.get_mut(id);
        if packet.has_stamps() {
            packet.set_received(self.interfaces.stampers[host.index()].on_receive(arrived, packet.size()));
        }
    }

    /// A packet has passed the receiving host's interface.
    #[inline(always)]
    pub(super) fn leave_interface(&mut self, id: PacketId, host: HostId) {
        let packet = self.arena.get(id);
        if let Some(pacer) = self.interfaces.pacers.get_mut(host.index()) {
            pacer.on_receive(packet, self.now);
        }
    }
}
