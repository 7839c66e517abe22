//! A fabric: all that is between the hosts. It is stepped from outside.
//!
//! The driver, which owns the clock, asks [`Fabric::next`] when there is work, calls [`Fabric::run`] when that time has
//! come, takes the packets that have left with [`Fabric::poll_exit`], and hands in the hosts' packets with
//! [`Fabric::inject`]. Nothing of a host's TCP crosses this boundary, and the fabric does not depend on which kind of
//! host stands at a port. No call recurses, blocks or starts a thread.
//!
//! A fabric is a [`Core`], which is the same in all of them, and one [`FabricKind`]: a graph of switches, or racks that
//! a hybrid network joins, each with lossy or lossless links. The kind is called once for each run up to a moment; the
//! events in between are carried out without dynamic dispatch.
//!
//! What belongs to one switch or host and what is global is said in the modules that have it: `core`, `graph`,
//! `hybrid`, `lossless`, `notifications`.

mod adapter;
mod adu_backlog;
mod circuit;
mod control;
mod core;
mod graph;
mod hybrid;
mod interfaces;
mod link_layer;
mod lossless;
mod notifications;
mod overtakings;
mod packet_network;
mod pausable;
mod racks;
mod reports;
mod schedule;
mod segregation;
mod send_buffer;
mod switching;
mod transmitter;
mod watched_queue;
mod watched_voqs;

use self::core::{Core, Outbox};
use crate::capture::CaptureSink;
use crate::causes::{CauseLog, CauseReport, Place};
use crate::config::{BuildError, GraphConfig, HybridConfig, MeterConfig, WatchConfig};
use crate::notices::NoticeSchedule;
use crate::recorder::Recorder;
use crate::report::{MeterReport, PairReport, PauseReport, PortReport, QcnReport, QueueReport, Totals};
use crate::timeline::TimelineSink;
use firstlight_net::{ClassPort, FifoPort, HostId, Packet, PacketId, Unpausable, Weighted};
use firstlight_units::{Span, Time};
use graph::GraphFabric;
use hybrid::HybridFabric;
use link_layer::Lossy;
use lossless::{LosslessGraph, LosslessRacks};
use switching::FabricKind;

/// A packet that has left the fabric. Read it with [`Fabric::packet`], then [`Fabric::release`] it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exit {
    /// The host that the packet arrived at.
    pub host: HostId,
    /// The packet.
    pub packet: PacketId,
}

/// A fabric of any kind.
///
/// The order of calls at one moment `t`: `run(t)`, `poll_exit()` until it returns none, then any number of
/// `inject(.., t)`; `poll_sent()`, `poll_drop()` and `poll_room()` at any of these moments. All times are on the
/// engine's clock, which the hosts share; the fabric's own spans are stretched by [`Fabric::time_scale`] against it.
pub struct Fabric {
    core: Core,
    kind: Box<dyn FabricKind>,
}

impl Fabric {
    /// Hosts and switches, joined in any way.
    ///
    /// # Errors
    /// When a value is out of its range.
    pub fn graph(config: &GraphConfig) -> Result<Self, BuildError> {
        if let Some(pfc) = &config.switch.pfc {
            return Ok(Self::of(LosslessGraph::with_pfc(config, pfc)?));
        }
        if config.switch.classes.is_empty() {
            return Ok(Self::of(GraphFabric::<FifoPort>::build(config, |_| Lossy)?));
        }
        if !config.switch.weights.is_empty() {
            return Ok(Self::of(GraphFabric::<ClassPort<Unpausable, Weighted>>::build(config, |_| Lossy)?));
        }
        Ok(Self::of(GraphFabric::<ClassPort>::build(config, |_| Lossy)?))
    }

    /// Racks joined by a packet network and a circuit switch.
    ///
    /// # Errors
    /// When a value is out of its range.
    pub fn hybrid(config: &HybridConfig) -> Result<Self, BuildError> {
        if config.pfc.is_some() {
            return Ok(Self::of(HybridFabric::<LosslessRacks>::build(config)?));
        }
        Ok(Self::of(HybridFabric::<Lossy>::build(config)?))
    }

    fn of((core, kind): (Core, impl FabricKind + 'static)) -> Self {
        Fabric { core, kind: Box::new(kind) }
    }

    /// How many hosts there are: `HostId(0)` to `HostId(hosts - 1)`.
    pub fn hosts(&self) -> usize {
        self.core.hosts()
    }

    /// How much longer a span of the fabric lasts on the engine's clock.
    pub fn time_scale(&self) -> u32 {
        self.core.scale
    }

    /// The moment that is `span` of the fabric's own time after the start.
    pub fn at(&self, span: Span) -> Time {
        Time::ZERO + span * u64::from(self.core.scale)
    }

    /// How far the fabric has been run.
    pub fn now(&self) -> Time {
        self.core.now
    }

    /// When there is work next; `None` while nothing moves.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        self.core.events.next()
    }

    /// Carries out all events up to and at `now`.
    pub fn run(&mut self, now: Time) {
        self.kind.run(&mut self.core, now, false);
    }

    /// Runs up to `limit`, or to the first moment at which packets leave; all events of that moment are carried out.
    /// Returns that moment. Calling [`Fabric::run`] at every [`Fabric::next`] has the same result and takes longer.
    pub fn run_to_exit(&mut self, limit: Time) -> Time {
        self.kind.run(&mut self.core, limit, true);
        self.core.now
    }

    /// A host hands a packet to its interface, which refuses none (see [`Fabric::has_room`]). `None` when an injected
    /// fault has lost the packet.
    ///
    /// # Panics
    /// When the packet's destination, or the host, is none of the fabric's.
    #[inline]
    pub fn inject(&mut self, host: HostId, packet: Packet, now: Time) -> Option<PacketId> {
        self.core.inject(host, packet, now)
    }

    /// Injects the packet that `write` writes in place, which saves a copy. The record that `write` is given holds an
    /// old packet. `write` returns whether it has written a packet, and this function returns the same.
    #[inline]
    pub fn inject_with(&mut self, host: HostId, now: Time, write: impl FnOnce(&mut Packet) -> bool) -> bool {
        self.core.inject_with(host, now, write)
    }

    /// The next packet that has left, in the order of leaving.
    #[inline]
    pub fn poll_exit(&mut self) -> Option<Exit> {
        self.core.exits.pop()
    }

    /// The packet that [`Fabric::poll_exit`] returns next.
    #[inline]
    pub fn upcoming_exit(&self) -> Option<&Exit> {
        self.core.exits.front()
    }

    /// Whether the interface of `host` has room for a packet: it holds less than its send buffer, if it has one. If it
    /// has no room, [`Fabric::poll_room`] returns the host once it has.
    #[inline]
    pub fn has_room(&mut self, host: HostId) -> bool {
        self.core.has_room(host.index())
    }

    /// Reserves the room that the interface of `host` has for a sender whose packet is still to come: there is none for
    /// others until a packet leaves, if the interface holds one.
    pub fn promise_room(&mut self, host: HostId) {
        if let Some(buffers) = &mut self.core.pausable.buffers {
            buffers.promise(host.index());
        }
    }

    /// The next host whose interface was found full and has room again. A run to exits stops at that moment too.
    #[inline]
    pub fn poll_room(&mut self) -> Option<HostId> {
        self.core.rooms.pop()
    }

    /// The time, past or future, at which the last bit of the packet that `host` injected last leaves its interface;
    /// `None` where that is not known in advance, because a pause, a pacer, a rate limiter of QCN or a send buffer may
    /// hold packets back. A packet that is lost to an injected fault leaves at once. Call this before another host
    /// injects a packet.
    #[inline]
    pub fn departure(&self, host: HostId) -> Option<Time> {
        self.core.departure(host.index())
    }

    /// From now on [`Fabric::poll_sent`] returns the packets that have left their hosts' interfaces, where
    /// [`Fabric::departure`] does not know; it then must be called. Call this before the run.
    pub fn keep_sent(&mut self) {
        self.core.keep_sent();
    }

    /// From now on [`Fabric::poll_sent`] returns all packets that have left their hosts' interfaces, and a run to exits
    /// stops at these moments too: [`Fabric::poll_room`] names their hosts. Call this before the run.
    pub fn stop_at_sent(&mut self) {
        self.core.stop_at_sent();
    }

    /// From now on [`Fabric::poll_left`] returns the senders of segments that have left their hosts' interfaces, where
    /// [`Fabric::departure`] does not know; a run to exits stops at these moments too. Call this before the run.
    pub fn keep_left(&mut self) {
        self.core.keep_left();
    }

    /// The host and the port from which the next segment with payload was sent that has left its host's interface.
    #[inline]
    pub fn poll_left(&mut self) -> Option<(HostId, u16)> {
        self.core.pausable.left.as_mut()?.pop()
    }

    /// The next packet whose last bit has left its host's interface, in the order of leaving.
    #[inline]
    pub fn poll_sent(&mut self) -> Option<PacketId> {
        self.core.pausable.sent.as_mut()?.pop()
    }

    /// From now on [`Fabric::poll_drop`] returns lost packets, and must be called.
    pub fn keep_drops(&mut self) {
        self.core.drops.get_or_insert_with(Outbox::new);
    }

    /// The next packet that was lost, to a queue or to an injected fault, in the order of losing. Its record can be
    /// read until the next packet is handed in.
    #[inline]
    pub fn poll_drop(&mut self) -> Option<PacketId> {
        let id = self.core.drops.as_mut()?.pop()?;
        self.core.arena.release(id);
        Some(id)
    }

    /// The record of a packet inside the fabric, or of one that has left and is not yet released.
    #[inline]
    pub fn packet(&self, id: PacketId) -> &Packet {
        self.core.arena.get(id)
    }

    /// Gives back the record of a packet that has left.
    #[inline]
    pub fn release(&mut self, id: PacketId) {
        self.core.counts.released += 1;
        self.core.arena.release(id);
    }

    /// Measures a pair of racks from now on. Call it before the run.
    ///
    /// # Errors
    /// On a fabric without racks, or for a pair that it does not have.
    pub fn set_meter(&mut self, config: &MeterConfig) -> Result<(), BuildError> {
        match self.kind.racks_mut() {
            None => Err(BuildError::field("meter.pair", "there are no pairs of racks: watch queues instead")),
            Some(racks) => racks.set_meter(&mut self.core, config),
        }
    }

    /// Watches queues from now on. Call it before the run.
    ///
    /// # Errors
    /// On a hybrid fabric, and for a port that does not exist.
    pub fn watch(&mut self, config: &WatchConfig) -> Result<(), BuildError> {
        self.kind.watch(&mut self.core, config)
    }

    /// The reports of the watched queues.
    pub fn queues(&self) -> Vec<QueueReport> {
        self.kind.queue_reports(self.core.now, self.core.scale)
    }

    /// Forgets what the meter and the watched queues have recorded, but not where the flows stand: the end of a
    /// warm-up.
    pub fn reset_meter(&mut self) {
        self.kind.reset_measurements(self.core.now);
    }

    /// The meter's report, if there is a meter.
    pub fn meter(&self) -> Option<MeterReport> {
        self.kind.racks()?.meter_report(self.core.now)
    }

    /// Lets `sink` see every packet at the hosts' edge from now on.
    pub fn set_capture(&mut self, sink: Box<dyn CaptureSink>) {
        self.core.capture = Some(sink);
    }

    /// Ends the capture.
    pub fn take_capture(&mut self) -> Option<Box<dyn CaptureSink>> {
        self.core.capture.take()
    }

    /// From now on it is recorded why packets leave when they do. Call this before the run.
    pub fn keep_causes(&mut self) {
        self.core.recorder.get_or_insert_default().causes.get_or_insert_with(CauseLog::new);
    }

    /// Reports changes over time to `sink` from now on.
    pub fn set_timeline(&mut self, sink: Box<dyn TimelineSink>) {
        self.core.recorder.get_or_insert_default().timeline = Some(sink);
    }

    /// Ends the timeline.
    pub fn take_timeline(&mut self) -> Option<Box<dyn TimelineSink>> {
        self.core.recorder.as_mut()?.timeline.take()
    }

    /// All places that packets pass.
    pub fn places(&self) -> Vec<Place> {
        self.core.places().chain(self.kind.places(&self.core)).collect()
    }

    /// Names of pause points; none where links cannot be paused.
    pub fn pause_points(&self) -> Vec<String> {
        self.kind.points().0
    }

    /// What was recorded, if anything; recording ends.
    pub fn take_causes(&mut self) -> Option<CauseReport> {
        let causes = self.core.recorder.as_mut()?.causes.take()?;
        let segregated = self.kind.racks().is_some_and(|racks| racks.elephants.is_some());
        Some(causes.into_report(self.kind.points(), self.places(), self.racks_of_hosts(), segregated))
    }

    /// When hosts are notified of circuits, if they are.
    pub(crate) fn notice_schedule(&self) -> Option<&NoticeSchedule> {
        self.kind.racks()?.notices.as_ref()
    }

    /// The rack of each host; none without racks.
    pub(crate) fn racks_of_hosts(&self) -> Vec<u16> {
        self.kind.racks().map_or(vec![], |racks| racks.of_hosts().to_vec())
    }

    /// The records, while they are kept.
    #[inline]
    pub(crate) fn causes(&mut self) -> Option<&mut CauseLog> {
        self.core.recorder.as_deref_mut()?.causes.as_mut()
    }

    /// The recorder, if there is one.
    #[inline]
    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.core.recorder.as_deref_mut()
    }

    /// Counts of every port, link and queue.
    pub fn ports(&self) -> Vec<PortReport> {
        let mut ports: Vec<PortReport> = self.core.nic_reports().collect();
        ports.extend(self.kind.port_reports(self.core.now));
        ports
    }

    /// The report of pauses; none where links cannot be paused.
    pub fn pauses(&self) -> Option<PauseReport> {
        self.kind.pauses(&self.core)
    }

    /// Counts of every pair of racks; none without racks.
    pub fn pairs(&self) -> Vec<PairReport> {
        self.kind.racks().map_or(vec![], |racks| racks.pair_reports())
    }

    /// From now on QCN's changes of rates are kept, the first `most` of each host.
    pub fn keep_rate_changes(&mut self, most: usize) {
        self.core.interfaces.limiters.iter_mut().for_each(|limiters| limiters.keep_changes(most));
    }

    /// QCN's report; `None` without QCN.
    pub fn qcn(&self) -> Option<QcnReport> {
        self.core.qcn_report(self.kind.congestion_points())
    }

    /// Counts of the whole, with the conservation identities checked.
    pub fn totals(&self) -> Totals {
        reports::totals(self)
    }

    /// Events carried out so far: what a run costs.
    pub fn events(&self) -> u64 {
        self.core.counts.events
    }

    /// The digest of all exits and drops so far: the same spec, seed and version give the same number on any machine.
    pub fn digest(&self) -> u64 {
        self.core.digest.value()
    }
}
