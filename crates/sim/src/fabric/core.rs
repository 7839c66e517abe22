//! The part that all fabrics share: the events, the packets, the hosts' interfaces and adapters, and the packets that
//! leave.
//!
//! A host has its interface (queue, stamper, pacer, rate limiters) and its adapter's buffers. All other state is
//! global: the event set, the arena of packet records, the digest, the counts, and the packets that wait for the
//! driver. A run that is divided by switches would have one of each per part: counts add up, packets that leave and
//! drops merge in the order of time, and a link between parts carries records from one arena to the other.

use super::Exit;
use super::adapter::Adapters;
use super::interfaces::Interfaces;
use super::pausable::PausableNics;
use super::send_buffer::SendBuffers;
use super::switching::Switching;
use crate::arena::Arena;
use crate::capture::CaptureSink;
use crate::causes::{LossPlace, Place, PlaceKind};
use crate::config::{BuildError, InterfaceConfig};
use crate::digest::{Digest, PacketEnd};
use crate::events::{EventKind, EventSet, PendingEvent};
use crate::recorder::Recorder;
use crate::report::{PortKind, PortReport};
use crate::stream::{Chance, stream};
use firstlight_net::{Direction, Discipline, FifoPort, HostId, Packet, PacketId, QueueFull, Serializer, SwitchPort};
use firstlight_units::{Bytes, Rate, Span, Time};

/// The part that is the same in every fabric.
pub(crate) struct Core {
    pub(super) events: EventSet,
    pub(super) arena: Arena,
    /// Hosts' interfaces, into the network; none where `pausable` has them.
    pub(super) nics: Vec<FifoPort>,
    /// Hosts' interfaces that can be paused, or of which the end of each transmission is an event.
    pub(super) pausable: PausableNics,
    pub(super) interfaces: Interfaces,
    /// Hosts' adapters, which hold packets that have arrived.
    pub(super) adapters: Adapters,
    pub(super) exits: Outbox<Exit>,
    /// Hosts whose interfaces have room again and for whose room a sender waits.
    pub(super) rooms: Outbox<HostId>,
    /// Lost packets, if the driver asks for them.
    pub(super) drops: Option<Outbox<PacketId>>,
    pub(super) capture: Option<Box<dyn CaptureSink>>,
    /// Why packets leave when they do and what changes over time, if that is recorded.
    pub(super) recorder: Option<Box<Recorder>>,
    pub(super) now: Time,
    /// Up to when events are carried out in the present run.
    until: Time,
    /// The present run ends when packets have left.
    to_exit: bool,
    pub(super) scale: u32,
    pub(super) digest: Digest,
    pub(super) counts: FabricCounts,
    /// Each host's chance that a packet it sends is lost (injected fault); empty where nothing is lost.
    loss: Vec<Chance>,
    /// An injected fault has lost the packet that was injected last.
    pub(super) last_is_lost: bool,
    last: PendingEvent,
}

/// Packets of the whole fabric since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FabricCounts {
    pub(super) injected: u64,
    /// Notifications of congestion that switches have sent.
    pub(super) notified: u64,
    /// Notifications that have come to their hosts' interfaces, where they end.
    pub(super) notifications_received: u64,
    pub(super) exited: u64,
    pub(super) dropped: u64,
    pub(super) lost: u64,
    pub(super) released: u64,
    pub(super) events: u64,
}

/// A queue of items for the driver, in order.
#[derive(Debug)]
pub(super) struct Outbox<T> {
    items: Vec<T>,
    taken: usize,
}

impl<T: Copy> Outbox<T> {
    pub(super) fn new() -> Self {
        Outbox { items: Vec::new(), taken: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// How many items wait.
    pub(super) fn len(&self) -> u64 {
        (self.items.len() - self.taken) as u64
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&T> {
        self.items.get(self.taken)
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let item = *self.items.get(self.taken)?;
        self.taken += 1;
        if self.taken == self.items.len() {
            self.items.clear();
            self.taken = 0;
        }
        Some(item)
    }
}

/// The memory of an event is prefetched when the event is the first of this part of the event set, as a power of four.
const SOON: u32 = 2;
/// What that memory refers to is prefetched when the event is the first of this part of the event set.
const NEXT: u32 = 1;
/// A fabric with at most this number of event sources stays in the cache without prefetching.
const FEW: usize = 512;

/// A host's link, one direction: serialization, and propagation, which is not stretched yet.
pub(super) type HostLink = (Serializer, Span);

impl Core {
    /// `links` are the hosts' links, `sources` the events of the fabric's own.
    pub(super) fn new(
        links: Vec<HostLink>,
        config: &InterfaceConfig,
        sources: &[(EventKind, usize)],
        scale: u32,
        seed: u64,
    ) -> Result<Self, BuildError> {
        let hosts = links.len();
        check_range("hosts", hosts, 1, 1 << 16)?;
        check_range("time_scale", scale as usize, 1, 1_000_000)?;
        if !(0.0..1.0).contains(&config.loss) {
            let problem = format!("{} is not a probability below 1", config.loss);
            return Err(BuildError::field("interface.loss", problem));
        }
        let pacers = if config.tables.pacer.is_some() { hosts } else { 0 };
        let limiters = if config.tables.qcn.is_some() { hosts } else { 0 };
        let mut all = vec![
            (EventKind::Nic, hosts),
            (EventKind::Sample, 1),
            (EventKind::Pacer, pacers),
            (EventKind::Limiter, limiters),
        ];
        all.push((EventKind::Jitter, if config.jitter.is_some() { 2 * hosts } else { 0 }));
        all.push((EventKind::Adapter, if config.adapter.receive.is_some() { hosts } else { 0 }));
        all.push((EventKind::Stack, if config.send_delay.is_zero() { 0 } else { hosts }));
        all.extend_from_slice(sources);
        let stretched = |delay: Span| (delay + config.send_delay) * u64::from(scale);
        let nic = |(serializer, delay)| FifoPort::new(serializer, stretched(delay), &Discipline::default(), 0);
        let chance = |host| Chance::new(stream(seed, &format!("host{host}"), "loss"), config.loss);
        let mut core = Core {
            events: EventSet::new(&all),
            arena: Arena::default(),
            interfaces: Interfaces::new(links.iter().map(|link| link.0), config, scale, seed),
            adapters: Adapters::new(config, hosts, scale)?,
            nics: links.into_iter().map(nic).collect(),
            pausable: PausableNics::default(),
            exits: Outbox::new(),
            rooms: Outbox::new(),
            drops: None,
            capture: None,
            recorder: None,
            now: Time::ZERO,
            until: Time::ZERO,
            to_exit: false,
            scale,
            digest: Digest::new(),
            counts: FabricCounts::default(),
            loss: (0..hosts).map_while(chance).collect(),
            last_is_lost: false,
            last: PendingEvent::new(Time::ZERO, EventKind::Calendar, 0),
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

    /// Carries out the events that are due until `limit`. With `to_exit` it stops after the first moment at which
    /// packets have left; all events of that moment are carried out.
    #[inline(always)]
    pub(super) fn run<S: Switching>(&mut self, fabric: &mut S, limit: Time, to_exit: bool) {
        let ahead = self.events.sources() > FEW;
        self.to_exit = to_exit;
        self.until = if to_exit && self.is_awaited() { self.now } else { limit };
        while let Some(event) = self.events.due(self.until) {
            debug_assert!(event >= self.last, "events come in their order: {event:?} after {:?}", self.last);
            if cfg!(debug_assertions) {
                self.last = event;
            }
            self.now = event.at();
            self.counts.events += 1;
            fabric.on_event(self, event);
            if ahead {
                fabric.prefetch(self, self.events.upcoming(event, SOON), false);
                fabric.prefetch(self, self.events.upcoming(event, NEXT), true);
            }
        }
        if !(to_exit && self.is_awaited()) {
            self.now = self.now.max(limit);
        }
    }

    /// Whether a run to exits has to end, because the driver has items to take.
    fn is_awaited(&self) -> bool {
        let left = self.pausable.left.as_ref().is_some_and(|left| !left.is_empty());
        left || !(self.exits.is_empty() && self.rooms.is_empty())
    }

    /// A packet has left, or an interface has room: a run to exits ends after all events of this moment.
    #[inline]
    pub(super) fn end_run(&mut self) {
        if self.to_exit {
            self.until = self.now;
        }
    }

    /// A source without a pending event has work at `at`, if at all.
    #[inline]
    pub(super) fn schedule(&mut self, at: Option<Time>, kind: EventKind, index: usize) {
        if at.is_some() {
            debug_assert!(!self.is_scheduled(kind, index), "a source has one pending event: {kind:?} {index}");
            self.reschedule(at, kind, index);
        }
    }

    /// The source of the present event has work next at `at`; `None` for nothing to wait for.
    #[inline]
    pub(super) fn reschedule(&mut self, at: Option<Time>, kind: EventKind, index: usize) {
        debug_assert!(at.is_none_or(|at| at >= self.now), "an event of the past: {kind:?} {index}");
        self.events.set(at, kind, index);
    }

    /// Sets the next event of a source, whose work concerns a packet.
    #[inline]
    pub(super) fn expect(&mut self, at: Option<Time>, kind: EventKind, index: usize, packet: PacketId) {
        debug_assert!(at.is_none_or(|at| at >= self.now), "an event of the past: {kind:?} {index}");
        self.events.set_about(at, kind, index, packet);
    }

    /// Whether a source has a pending event; the one that is being carried out counts until it is rescheduled.
    #[inline]
    pub(super) fn is_scheduled(&self, kind: EventKind, index: usize) -> bool {
        self.events.is_pending(kind, index)
    }

    /// Injects the packet that `write` writes into a free record, if it writes one.
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
        if let Some(recorder) = &mut self.recorder {
            recorder.departure(id, packet, now);
        }
        self.last_is_lost = self.loss.get_mut(host.index()).is_some_and(Chance::happens);
        if self.last_is_lost {
            self.counts.lost += 1;
            self.discard(id, (EventKind::Nic, host.index()), LossPlace::Injected);
            return None;
        }
        self.pace(id, host.index());
        Some(id)
    }

    /// The packet that arrives at the switch from a host's interface now, if any.
    #[inline(always)]
    pub(super) fn on_nic_arrival(&mut self, host: usize) -> Option<PacketId> {
        let Some(nic) = self.nics.get_mut(host) else { return self.step_nic(host).0 };
        let (id, next) = nic.arrive();
        let first = nic.first();
        self.expect(next, EventKind::Nic, host, first);
        if self.recorder.is_some() {
            self.record_departure(id, host);
        }
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
            // The event may come earlier than the one that was pending.
            Ok(event) => self.expect(event, EventKind::Port, index, id),
            Err(QueueFull) => self.lose(id, EventKind::Port, index),
        }
    }

    /// Carries out the events of a switch's output port that are due. Returns the packet that arrives at the other end
    /// of its link, if one does.
    #[inline(always)]
    pub(super) fn step(&mut self, port: &mut impl SwitchPort, index: usize) -> Option<PacketId> {
        let arena = &mut self.arena;
        let (id, next) = port.step(self.now, |id| _ = arena.get_mut(id).mark());
        self.expect(next, EventKind::Port, index, port.first());
        if let Some(id) = id
            && self.recorder.is_some()
        {
            self.record_passage(id, port, index);
        }
        id
    }

    /// Records that a packet has passed the link of a host's interface. Not inlined: the hot path records nothing.
    #[cold]
    fn record_departure(&mut self, id: PacketId, host: usize) {
        if let Some(recorder) = &mut self.recorder {
            recorder.hop(id, PlaceKind::Nic, host, self.now);
            let (place, nic) = (LossPlace::Queue(PlaceKind::Nic.code(host)), &self.nics[host]);
            recorder.queue(place, self.arena.get(id), || nic.backlog(self.now), self.now);
        }
    }

    /// Records that a packet has passed the link of a switch's output port. Not inlined, for the same reason.
    #[cold]
    fn record_passage(&mut self, id: PacketId, port: &impl SwitchPort, index: usize) {
        self.record_hop(id, PlaceKind::Port, index);
        let (place, now) = (LossPlace::Queue(PlaceKind::Port.code(index)), self.now);
        self.record_queue(id, place, || port.backlog(now));
    }

    /// Records that a packet has left a place where it can wait, such as a port.
    #[inline(always)]
    pub(super) fn record_hop(&mut self, id: PacketId, kind: PlaceKind, index: usize) {
        if let Some(recorder) = &mut self.recorder {
            recorder.hop(id, kind, index, self.now);
        }
    }

    /// A packet has passed the link behind a queue, which holds `bytes` now.
    pub(super) fn record_queue(&mut self, id: PacketId, place: LossPlace, bytes: impl FnOnce() -> Bytes) {
        if let Some(recorder) = &mut self.recorder {
            recorder.queue(place, self.arena.get(id), bytes, self.now);
        }
    }

    /// A packet arrives at its host. It leaves the fabric, unless it must pass an adapter before.
    #[inline(always)]
    pub(super) fn exit(&mut self, id: PacketId, host: HostId) {
        if self.arena.get(id).notification().is_some() {
            return self.receive_notification(id, host);
        }
        if !self.adapters.is_empty() {
            return self.enter_adapter(id, host);
        }
        self.stamp_arrival(id, host, self.now - self.interfaces.receive_delay);
        self.leave(id, host);
    }

    /// A packet has passed its host's stack, but for its random part.
    #[inline(always)]
    pub(super) fn leave(&mut self, id: PacketId, host: HostId) {
        if self.interfaces.jitter.is_some() {
            return self.enter_jitter(id, self.hosts() + host.index());
        }
        self.hand_over(id, host);
    }

    /// A packet has passed its host's stack, and leaves the fabric.
    #[inline(always)]
    pub(super) fn hand_over(&mut self, id: PacketId, host: HostId) {
        self.leave_interface(id, host);
        let packet = self.arena.get(id);
        self.digest.packet(packet, self.now, PacketEnd::Exit);
        self.counts.exited += 1;
        if let Some(sink) = &mut self.capture {
            sink.packet(packet, self.now, host, Direction::Received);
        }
        self.exits.push(Exit { host, packet: id });
        self.end_run();
    }

    /// A queue of this kind and index has dropped a packet.
    #[cold]
    pub(super) fn lose(&mut self, id: PacketId, kind: EventKind, index: usize) {
        self.lose_at(id, (kind, index), loss_place(kind, index));
    }

    /// The queue at `place`, whose events are of this kind and index, has dropped a packet.
    #[cold]
    pub(super) fn lose_at(&mut self, id: PacketId, events: (EventKind, usize), place: LossPlace) {
        self.counts.dropped += 1;
        self.discard(id, events, place);
    }

    /// Every packet that does not reach its host ends here.
    fn discard(&mut self, id: PacketId, (kind, index): (EventKind, usize), place: LossPlace) {
        self.digest.packet(self.arena.get(id), self.now, PacketEnd::Drop((kind as usize) << 32 | index));
        if let Some(recorder) = &mut self.recorder {
            recorder.loss(id, self.arena.get(id), place, self.now);
        }
        match &mut self.drops {
            Some(drops) => drops.push(id),
            None => self.arena.release(id),
        }
    }

    /// A span of the engine's clock in the fabric's own time.
    pub(super) fn own(&self, span: Span) -> Span {
        Span::from_ps(span.as_ps() / u64::from(self.scale))
    }

    /// The places of hosts; ports to them have the receiving stacks unless adapters do.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let Interfaces { send_delay, receive_delay, plain, .. } = self.interfaces;
        let fifos = self.nics.iter().map(move |nic| (*nic.serializer(), nic.delay() - send_delay));
        let pausable = self.pausable.ports.iter().map(SwitchPort::link);
        let nics = fifos.chain(pausable).enumerate().map(move |(host, (link, delay))| Place {
            stack_before: send_delay,
            ..Place::link(PlaceKind::Nic, host, format!("host{host}.nic"), link, delay)
        });
        let holding = move |kind, name: &'static str| {
            let hosts = if plain { 0 } else { self.hosts() };
            (0..hosts).map(move |host| Place::holding(kind, host, format!("host{host}.{name}")))
        };
        nics.chain(self.adapters.places().map(move |place| Place { stack_after: receive_delay, ..place }))
            .chain(self.interfaces.stack_places())
            .chain(holding(PlaceKind::Pacer, "pacer"))
            .chain(holding(PlaceKind::Limiter, "limiter"))
    }

    /// The stack behind ports that lead to hosts.
    pub(super) fn stack_behind_ports(&self) -> Span {
        if self.adapters.is_empty() { self.interfaces.receive_delay } else { Span::ZERO }
    }

    pub(super) fn nic_reports(&self) -> impl Iterator<Item = PortReport> + '_ {
        let report = |(i, nic)| port_report(PortKind::HostNic, format!("host{i}.nic"), nic, self.now);
        let nics = self.nics.iter().enumerate().map(report);
        nics.chain(self.pausable.reports(self.now))
            .chain(self.interfaces.stack_reports())
            .chain(self.interfaces.pacer_reports())
            .chain(self.interfaces.limiter_reports())
            .chain(self.adapters.reports(self.now))
    }
}

/// Where a packet was lost for which the queue of such events has no room.
fn loss_place(kind: EventKind, index: usize) -> LossPlace {
    match kind {
        EventKind::UplinkFree => LossPlace::Voq(index as u32),
        EventKind::DownlinkFree => LossPlace::Queue(PlaceKind::Downlink.code(index)),
        EventKind::Adapter => LossPlace::Queue(PlaceKind::Adapter.code(index)),
        _ => LossPlace::Queue(PlaceKind::Port.code(index)),
    }
}

/// A port's counters at `now`.
pub(super) fn port_report(kind: PortKind, name: String, port: &impl SwitchPort, now: Time) -> PortReport {
    PortReport {
        offered: port.offered(),
        delivered: port.delivered(),
        dropped: port.dropped(),
        held: port.held(),
        marked: port.marked(),
        peak_queue: port.peak(),
        hops: port.offered() - port.dropped() - u64::from(port.waiting_at(now)),
        ..PortReport::of(kind, name)
    }
}

/// A serializer for the rate that this field of a configuration gives.
pub(super) fn serializer(field: &'static str, rate: Rate, scale: u32) -> Result<Serializer, BuildError> {
    if rate.as_bps() == 0 {
        return Err(BuildError::field(field, "a link of zero rate never sends"));
    }
    Ok(Serializer::new(rate, scale))
}

/// An error unless the `value` of this field of a configuration is in `least..=most`.
pub(super) fn check_range(field: &'static str, value: usize, least: usize, most: usize) -> Result<(), BuildError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(BuildError::field(field, format!("{value} is not between {least} and {most}")))
}
