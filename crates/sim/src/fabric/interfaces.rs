//! The hosts' interfaces, apart from their queues: timestamps, pacers, and the place of QCN's rate limiters.

use super::core::Core;
use crate::config::{ConfigError, InterfaceConfig};
use crate::events::Kind;
use crate::report::{PortKind, PortReport};
use crate::stream::stream;
use firstlight_net::interface::{Clock, Stamper};
use firstlight_net::qcn::RateLimiters;
use firstlight_net::{HostId, Pace, Pacer, PacketId, Serializer};
use firstlight_units::{Bytes, Span, Time};
use rand_xoshiro::rand_core::RngCore;

/// What stands between the hosts and their links.
pub(super) struct Interfaces {
    pub(super) stampers: Vec<Stamper>,
    pacers: Vec<Pacer>,
    /// With QCN: each host's limited flows.
    pub(super) limiters: Vec<RateLimiters>,
    /// Nothing is between a host's stack and its interface, which is a plain FIFO.
    pub(super) plain: bool,
    /// How long the hosts' stacks take, on the engine's clock; the links' delays have it in them.
    pub(super) send_delay: Span,
    pub(super) receive_delay: Span,
}

impl Interfaces {
    pub(super) fn new(
        links: impl Iterator<Item = Serializer>,
        config: &InterfaceConfig,
        scale: u32,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        if let Some(pacer) = &config.pacer {
            let problem = |error: firstlight_net::DisciplineError| error.to_string();
            pacer.check().map_err(|error| ConfigError::Value { key: "pacer", problem: problem(error) })?;
        }
        if config.adapter.send_buffer == Some(Bytes::new(0)) {
            let problem = "an interface that holds nothing sends nothing: one byte means a packet at a time".into();
            return Err(ConfigError::Value { key: "adapter.send_buffer", problem });
        }
        if let Some(qcn) = &config.qcn {
            qcn.check().map_err(|error| ConfigError::Value { key: "qcn", problem: error.to_string() })?;
        }
        let (mut stampers, mut pacers, mut limiters) = (vec![], vec![], vec![]);
        for (host, link) in links.enumerate() {
            let name = format!("host{host}");
            let clock = Clock::draw(&config.clock, &mut stream(seed, &name, "clock"));
            stampers.push(Stamper::new(config.stamps, clock, link, stream(seed, &name, "stamps")));
            let pacer = |config| Pacer::new(config, scale, stream(seed, &name, "pacer").next_u64());
            pacers.extend(config.pacer.as_ref().map(pacer));
            let limiter = |config| RateLimiters::new(config, link.rate(), scale, stream(seed, &name, "qcn"));
            limiters.extend(config.qcn.as_ref().map(limiter));
        }
        let stretched = |delay: Span| delay * u64::from(scale);
        let (send_delay, receive_delay) = (stretched(config.send_delay), stretched(config.receive_delay));
        let plain = pacers.is_empty() && limiters.is_empty();
        Ok(Interfaces { stampers, pacers, limiters, plain, send_delay, receive_delay })
    }

    #[inline]
    pub(super) fn hosts(&self) -> usize {
        self.stampers.len()
    }

    pub(super) fn pacer_reports(&self) -> impl Iterator<Item = PortReport> + '_ {
        self.pacers.iter().enumerate().map(|(host, pacer)| {
            let counts = pacer.counts();
            PortReport {
                name: format!("host{host}.pacer"),
                kind: PortKind::Pacer,
                offered: counts.offered,
                delivered: counts.passed + counts.released,
                dropped: 0,
                held: pacer.held(),
                marked: 0,
                peak_queue: 0,
                peak_bytes: None,
                hops: 0,
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

    /// The same where something stands in its way.
    #[inline(never)]
    fn hold_back(&mut self, id: PacketId, host: usize) {
        if let Some(buffers) = &mut self.pausable.buffers {
            buffers.take(host, self.arena.get(id).size());
        }
        if let Some(pacer) = self.interfaces.pacers.get_mut(host)
            && let Pace::Held(release) = pacer.offer(id, self.arena.get(id), self.now)
        {
            return self.schedule(release, Kind::Pacer, host);
        }
        self.limit(id, host);
    }

    /// A packet goes on to its host's interface, of whichever kind.
    pub(super) fn pass(&mut self, id: PacketId, host: usize) {
        if self.nics.is_empty() { self.enter_stack(id, host) } else { self.enter_interface(id, host) }
    }

    /// The pacer of a host lets a packet go, if it is time for one.
    pub(super) fn on_pacer(&mut self, host: usize) {
        let released = self.interfaces.pacers[host].release(self.now);
        let next = self.interfaces.pacers[host].next();
        self.reschedule(next, Kind::Pacer, host);
        if let Some(id) = released {
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
            debug_assert!(!self.is_scheduled(Kind::Nic, host), "a source has one pending event: {host}'s interface");
            self.expect(alone, Kind::Nic, host, id);
        }
    }

    /// A packet arrived at the receiving host's interface then.
    #[inline(always)]
    pub(super) fn stamp_arrival(&mut self, id: PacketId, host: HostId, arrived: Time) {
        let packet = self.arena.get_mut(id);
        if packet.has_stamps() {
            packet.set_received(self.interfaces.stampers[host.index()].on_receive(arrived, packet.size()));
        }
    }

    /// A packet has come through the receiving host's interface.
    #[inline(always)]
    pub(super) fn leave_interface(&mut self, id: PacketId, host: HostId) {
        let packet = self.arena.get(id);
        if let Some(pacer) = self.interfaces.pacers.get_mut(host.index()) {
            pacer.on_receive(packet, self.now);
        }
    }
}
