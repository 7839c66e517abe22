//! What every fabric has: the events, the packets, the hosts' links and the way out.

use super::Exit;
use super::adapter::Adapters;
use super::interfaces::Interfaces;
use super::pausable::PausableNics;
use super::send_buffer::SendBuffers;
use crate::arena::Arena;
use crate::capture::CaptureSink;
use crate::config::{ConfigError, InterfaceConfig};
use crate::digest::{Digest, End};
use crate::events::{Event, Events, Kind};
use crate::report::{PortKind, PortReport};
use crate::stream::{Chance, stream};
use firstlight_net::{Direction, Discipline, FifoPort, HostId, Packet, PacketId, QueueFull, Serializer, SwitchPort};
use firstlight_units::{Rate, Span, Time};

/// The part that is the same in every fabric.
pub(crate) struct Core {
    pub(super) events: Events,
    pub(super) arena: Arena,
    /// Hosts' interfaces, into the network,
    pub(super) nics: Vec<FifoPort>,
    /// or, instead of these, such as can be paused.
    pub(super) pausable: PausableNics,
    pub(super) interfaces: Interfaces,
    /// What holds packets that have arrived, until their hosts take them in.
    pub(super) adapters: Adapters,
    pub(super) exits: Queue<Exit>,
    /// Hosts whose interfaces have room again, where somebody waits for that.
    pub(super) rooms: Queue<HostId>,
    /// Packets that were lost and wait to be taken, when somebody wants to know of them.
    pub(super) drops: Option<Queue<PacketId>>,
    pub(super) capture: Option<Box<dyn CaptureSink>>,
    pub(super) now: Time,
    pub(super) scale: u32,
    pub(super) digest: Digest,
    pub(super) counts: Counts,
    loss: Option<Chance>,
    last: Event,
}

/// Packets of the whole fabric since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) injected: u64,
    /// Notifications of congestion that switches have sent,
    pub(super) notified: u64,
    /// and those that have come to their hosts' interfaces, where they end.
    pub(super) taken_in: u64,
    pub(super) exited: u64,
    pub(super) dropped: u64,
    pub(super) lost: u64,
    pub(super) released: u64,
    pub(super) events: u64,
}

/// What waits to be taken, in order.
#[derive(Debug)]
pub(super) struct Queue<T> {
    queue: Vec<T>,
    taken: usize,
}

impl<T: Copy> Queue<T> {
    pub(super) fn new() -> Self {
        Queue { queue: Vec::new(), taken: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        self.queue.push(item);
    }

    /// How many wait.
    pub(super) fn len(&self) -> u64 {
        (self.queue.len() - self.taken) as u64
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let item = *self.queue.get(self.taken)?;
        self.taken += 1;
        if self.taken == self.queue.len() {
            self.queue.clear();
            self.taken = 0;
        }
        Some(item)
    }
}

/// Packets come to a switch from a host's interface, and everything that follows.
pub(super) trait Shape {
    /// Carries out one event.
    fn on_event(&mut self, core: &mut Core, event: Event);

    /// Asks for the memory that an event needs which comes soon, and for more if it comes next.
    fn prefetch(&self, _core: &Core, _event: Event, _next: bool) {}
}

/// What events need is asked for when they are the first of so many parts of the event set (as powers of four),
const SOON: u32 = 2;
/// and what is found by that, when they are the first of so many.
const NEXT: u32 = 1;
/// A fabric with so many sources of events stays in the cache by itself.
const FEW: usize = 512;

/// A host's link, one direction: serialization, and propagation, which is not stretched yet.
pub(super) type HostLink = (Serializer, Span);

impl Core {
    /// `sources` are the events of the fabric's own.
    pub(super) fn new(
        links: Vec<HostLink>,
        config: &InterfaceConfig,
        sources: &[(Kind, usize)],
        scale: u32,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        let hosts = links.len();
        check_range("hosts", hosts, 1, 1 << 16)?;
        check_range("time_scale", scale as usize, 1, 1_000_000)?;
        if !(0.0..1.0).contains(&config.loss) {
            let problem = format!("{} is not a probability below 1", config.loss);
            return Err(ConfigError::Value { key: "hosts.loss", problem });
        }
        let pacers = if config.pacer.is_some() { hosts } else { 0 };
        let limiters = if config.qcn.is_some() { hosts } else { 0 };
        let mut all = vec![(Kind::Nic, hosts), (Kind::Sample, 1), (Kind::Pacer, pacers), (Kind::Limiter, limiters)];
        all.push((Kind::Adapter, if config.adapter.receive.is_some() { hosts } else { 0 }));
        all.push((Kind::Stack, if config.send_delay.is_zero() { 0 } else { hosts }));
        all.extend_from_slice(sources);
        let stretched = |delay: Span| (delay + config.send_delay) * u64::from(scale);
        let nic = |(serializer, delay)| FifoPort::new(serializer, stretched(delay), &Discipline::default(), 0);
        let mut core = Core {
            events: Events::new(&all),
            arena: Arena::default(),
            interfaces: Interfaces::new(links.iter().map(|link| link.0), config, scale, seed)?,
            adapters: Adapters::new(config, hosts, scale)?,
            nics: links.into_iter().map(nic).collect(),
            pausable: PausableNics::default(),
            exits: Queue::new(),
            rooms: Queue::new(),
            drops: None,
            capture: None,
            now: Time::ZERO,
            scale,
            digest: Digest::new(),
            counts: Counts::default(),
            loss: Chance::new(stream(seed, "hosts", "loss"), config.loss),
            last: Event::new(Time::ZERO, Kind::Calendar, 0),
        };
        if let Some(limit) = config.adapter.send_buffer {
            core.make_exact();
            core.pausable.buffers = Some(SendBuffers::new(limit, hosts));
        }
        Ok(core)
    }

    /// How many hosts there are.
    #[inline]
    pub(super) fn hosts(&self) -> usize {
        self.interfaces.hosts()
    }

    /// Carries out what is due until `limit`; with `to_exit` only until packets have left, the rest of that instant
    /// included.
    #[inline]
    pub(super) fn run<S: Shape>(&mut self, shape: &mut S, limit: Time, to_exit: bool) {
        let ahead = self.events.sources() > FEW;
        loop {
            // Packets that have left, and room, stop the run, once all that is due at their moment is done.
            let until = if to_exit && self.is_awaited() { self.now } else { limit };
            let Some(event) = self.events.due(until) else { break };
            debug_assert!(event >= self.last, "events come in their order: {event:?} after {:?}", self.last);
            if cfg!(debug_assertions) {
                self.last = event;
            }
            self.now = event.at();
            self.counts.events += 1;
            shape.on_event(self, event);
            if ahead {
                shape.prefetch(self, self.events.upcoming(event, SOON), false);
                shape.prefetch(self, self.events.upcoming(event, NEXT), true);
            }
        }
        if !self.is_awaited() || !to_exit {
            self.now = self.now.max(limit);
        }
    }

    /// Whether something is to be taken by those who stand at the edge.
    #[inline]
    fn is_awaited(&self) -> bool {
        !(self.exits.is_empty() && self.rooms.is_empty())
    }

    /// A source that waits for nothing has work at `at`, if at all.
    #[inline]
    pub(super) fn schedule(&mut self, at: Option<Time>, kind: Kind, index: usize) {
        if at.is_some() {
            debug_assert!(!self.is_scheduled(kind, index), "a source has one pending event: {kind:?} {index}");
            self.reschedule(at, kind, index);
        }
    }

    /// The source of the present event has work next at `at`; `None` for nothing to wait for.
    #[inline]
    pub(super) fn reschedule(&mut self, at: Option<Time>, kind: Kind, index: usize) {
        debug_assert!(at.is_none_or(|at| at >= self.now), "an event of the past: {kind:?} {index}");
        self.events.set(at, kind, index);
    }

    /// Likewise, of work that is about a packet.
    #[inline]
    pub(super) fn expect(&mut self, at: Option<Time>, kind: Kind, index: usize, packet: PacketId) {
        debug_assert!(at.is_none_or(|at| at >= self.now), "an event of the past: {kind:?} {index}");
        self.events.set_about(at, kind, index, packet);
    }

    /// Whether a source has a pending event; the one that is being carried out counts until it is rescheduled.
    #[inline]
    pub(super) fn is_scheduled(&self, kind: Kind, index: usize) -> bool {
        self.events.is_pending(kind, index)
    }

    /// Takes in the packet that `write` writes in place, if it writes one.
    #[inline]
    pub(super) fn inject_with(&mut self, host: HostId, now: Time, write: impl FnOnce(&mut Packet) -> bool) -> bool {
        let id = self.arena.spare();
        let written = write(self.arena.get_mut(id));
        if written {
            self.arena.take(id);
            self.enter(host, id, now);
        }
        written
    }

    #[inline]
    pub(super) fn inject(&mut self, host: HostId, packet: Packet, now: Time) -> Option<PacketId> {
        let id = self.arena.spare();
        self.arena.take(id);
        *self.arena.get_mut(id) = packet;
        self.enter(host, id, now)
    }

    /// A host's packet enters its interface, or is lost to an injected fault.
    #[inline(always)]
    fn enter(&mut self, host: HostId, id: PacketId, now: Time) -> Option<PacketId> {
        let packet = self.arena.get(id);
        assert!(packet.dst().index() < self.hosts(), "{:?} is no host of this fabric", packet.dst());
        debug_assert!(
            now >= self.now && self.events.next().is_none_or(|at| at >= now),
            "run the fabric up to {now} before injecting"
        );
        debug_assert_eq!(packet.src(), host, "a host sends in its own name");
        self.now = now;
        self.counts.injected += 1;
        if let Some(sink) = &mut self.capture {
            sink.packet(packet, now, host, Direction::Sent);
        }
        if self.loss.as_mut().is_some_and(Chance::happens) {
            self.counts.lost += 1;
            self.discard(id, Kind::Nic, host.index());
            return None;
        }
        self.pace(id, host.index());
        Some(id)
    }

    /// The packet that a host's interface brings to the switch now, if any.
    #[inline(always)]
    pub(super) fn on_nic_arrival(&mut self, host: usize) -> Option<PacketId> {
        let Some(nic) = self.nics.get_mut(host) else { return self.step_nic(host).0 };
        let (id, next) = nic.arrive();
        let first = nic.first();
        self.expect(next, Kind::Nic, host, first);
        Some(id)
    }

    /// Queues a packet at an output port of a switch.
    #[inline(always)]
    pub(super) fn send(&mut self, ports: &mut [impl SwitchPort], index: usize, id: PacketId) {
        let offered = ports[index].offer(id, self.arena.get_mut(id), self.now);
        self.on_offered(offered, index, id);
    }

    /// A packet was offered to an output port of a switch.
    #[inline(always)]
    pub(super) fn on_offered(&mut self, offered: Result<Option<Time>, QueueFull>, index: usize, id: PacketId) {
        match offered {
            Ok(None) => {}
            // It may bring forward what was to come.
            Ok(event) => self.expect(event, Kind::Port, index, id),
            Err(QueueFull) => self.lose(id, Kind::Port, index),
        }
    }

    /// What an output port of a switch does now: the packet that it brings to the other end of its link, if any.
    #[inline(always)]
    pub(super) fn step(&mut self, port: &mut impl SwitchPort, index: usize) -> Option<PacketId> {
        let arena = &mut self.arena;
        let (id, next) = port.step(self.now, |id| _ = arena.get_mut(id).mark());
        self.expect(next, Kind::Port, index, port.first());
        id
    }

    /// A packet arrives at its host: out of the fabric, unless an adapter is in its way.
    #[inline(always)]
    pub(super) fn exit(&mut self, id: PacketId, host: HostId) {
        if let Some(notification) = self.arena.get(id).notification() {
            let feedback = notification.feedback();
            return self.take_in(id, host, feedback);
        }
        if !self.adapters.is_empty() {
            return self.enter_adapter(id, host);
        }
        self.stamp_arrival(id, host, self.now - self.interfaces.receive_delay);
        self.leave(id, host);
    }

    /// A packet has come through its host's stack.
    #[inline(always)]
    pub(super) fn leave(&mut self, id: PacketId, host: HostId) {
        self.leave_interface(id, host);
        let packet = self.arena.get(id);
        self.digest.packet(packet, self.now, End::Exit);
        self.counts.exited += 1;
        if let Some(sink) = &mut self.capture {
            sink.packet(packet, self.now, host, Direction::Received);
        }
        self.exits.push(Exit { host, packet: id });
    }

    /// A queue of this kind and index has dropped a packet.
    #[cold]
    pub(super) fn lose(&mut self, id: PacketId, kind: Kind, index: usize) {
        self.counts.dropped += 1;
        self.discard(id, kind, index);
    }

    /// Every packet that does not reach its host ends here.
    fn discard(&mut self, id: PacketId, kind: Kind, index: usize) {
        self.digest.packet(self.arena.get(id), self.now, End::Drop((kind as usize) << 32 | index));
        match &mut self.drops {
            Some(drops) => drops.push(id),
            None => self.arena.release(id),
        }
    }

    pub(super) fn nic_reports(&self) -> impl Iterator<Item = PortReport> + '_ {
        let report = |(i, nic)| port_report(PortKind::HostNic, format!("host{i}.nic"), nic, self.now);
        let nics = self.nics.iter().enumerate().map(report);
        nics.chain(self.pausable.reports(self.now))
            .chain(self.interfaces.pacer_reports())
            .chain(self.interfaces.limiter_reports())
            .chain(self.adapters.reports(self.now))
    }
}

/// What a port counted until `now`.
pub(super) fn port_report(kind: PortKind, name: String, port: &impl SwitchPort, now: Time) -> PortReport {
    PortReport {
        name,
        kind,
        offered: port.offered(),
        delivered: port.delivered(),
        dropped: port.dropped(),
        held: port.held(),
        marked: port.marked(),
        peak_queue: port.peak(),
        peak_bytes: None,
        hops: port.offered() - port.dropped() - u64::from(port.waiting_at(now)),
    }
}

/// A serializer for the rate that the setting `key` gives.
pub(super) fn serializer(key: &'static str, rate: Rate, scale: u32) -> Result<Serializer, ConfigError> {
    if rate.as_bps() == 0 {
        return Err(ConfigError::Value { key, problem: "a link of zero rate never sends".into() });
    }
    Ok(Serializer::new(rate, scale))
}

/// An error unless `value` of the setting `key` is in `least..=most`.
pub(super) fn check_range(key: &'static str, value: usize, least: usize, most: usize) -> Result<(), ConfigError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::Value { key, problem: format!("{value} is not between {least} and {most}") })
}
