//! A fabric: all that is between the hosts. It is stepped from outside.
//!
//! Whoever owns the clock asks [`Fabric::next`] when there is work, calls [`Fabric::run`] when that time has come,
//! takes the packets that have left with [`Fabric::poll_exit`], and hands in the hosts' packets with
//! [`Fabric::inject`]. Nothing of a host's TCP crosses this boundary, and nothing here knows which kind of host stands
//! at a port. No call recurses, blocks or starts a thread.

mod adapter;
mod announced;
mod circuit;
mod control;
mod core;
mod graph;
mod hybrid;
mod interfaces;
mod lossless;
mod notifications;
mod order;
mod packet_network;
mod pausable;
mod reports;
mod schedule;
mod send_buffer;
mod watch;

use self::core::{Core, Queue};
use crate::capture::CaptureSink;
use crate::config::{ConfigError, GraphConfig, HybridConfig, MeterConfig, WatchConfig};
use crate::report::{MeterReport, PairReport, PauseReport, PortReport, QcnReport, QueueReport, Totals};
use firstlight_net::{ClassPort, FifoPort, HostId, Packet, PacketId};
use firstlight_units::{Span, Time};
use graph::Graph;
use hybrid::Hybrid;
use lossless::{Lossless, Pausing};

/// A packet that has left the fabric. Read it with [`Fabric::packet`], then [`Fabric::release`] it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exit {
    /// The host it arrived at.
    pub host: HostId,
    /// The packet.
    pub packet: PacketId,
}

enum Kind {
    Graph(Graph<FifoPort>),
    Classes(Graph<ClassPort>),
    Lossless(Box<Lossless>),
    Hybrid(Box<Hybrid>),
}

/// A fabric of any kind.
///
/// The order of calls at one moment `t`: `run(t)`, `poll_exit()` until it is empty-handed, then any number of
/// `inject(.., t)`; `poll_sent()`, `poll_drop()` and `poll_room()` at any of these moments. All times are on the engine's clock, which the hosts share; the fabric's own spans are stretched by
/// [`Fabric::time_scale`] against it.
pub struct Fabric {
    core: Core,
    kind: Kind,
}

impl Fabric {
    /// Hosts and switches, joined in any way.
    ///
    /// # Errors
    /// When a value is out of its range.
    pub fn graph(config: &GraphConfig) -> Result<Self, ConfigError> {
        if let Some(pfc) = &config.switch.pfc {
            let (core, lossless) = Lossless::build(config, pfc)?;
            return Ok(Fabric { core, kind: Kind::Lossless(Box::new(lossless)) });
        }
        if config.switch.classes.is_empty() {
            let (core, graph) = Graph::build(config, Graph::<FifoPort>::port)?;
            return Ok(Fabric { core, kind: Kind::Graph(graph) });
        }
        let (core, graph) = Graph::build(config, Graph::<ClassPort>::port)?;
        Ok(Fabric { core, kind: Kind::Classes(graph) })
    }

    /// Racks joined by a packet network and a circuit switch.
    ///
    /// # Errors
    /// When a value is out of its range.
    pub fn hybrid(config: &HybridConfig) -> Result<Self, ConfigError> {
        let (core, hybrid) = Hybrid::build(config)?;
        Ok(Fabric { core, kind: Kind::Hybrid(Box::new(hybrid)) })
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

    /// Does all that is due up to and at `now`.
    pub fn run(&mut self, now: Time) {
        self.advance(now, false);
    }

    /// Runs up to `limit`, or to the first moment at which packets leave; all that is due at that moment is done.
    /// Tells which moment that was. The same as calling [`Fabric::run`] at every [`Fabric::next`], but faster.
    pub fn run_to_exit(&mut self, limit: Time) -> Time {
        self.advance(limit, true);
        self.core.now
    }

    #[inline]
    fn advance(&mut self, limit: Time, to_exit: bool) {
        match &mut self.kind {
            Kind::Graph(graph) => self.core.run(graph, limit, to_exit),
            Kind::Classes(graph) => self.core.run(graph, limit, to_exit),
            Kind::Lossless(lossless) => self.core.run(&mut **lossless, limit, to_exit),
            Kind::Hybrid(hybrid) if hybrid.pauses.is_some() => self.core.run(&mut Pausing(hybrid), limit, to_exit),
            Kind::Hybrid(hybrid) => self.core.run(&mut **hybrid, limit, to_exit),
        }
    }

    /// A host hands a packet to its interface, which refuses none: see [`Fabric::has_room`]. `None` when an injected fault has lost
    /// it.
    ///
    /// # Panics
    /// When the packet's destination, or the host, is none of the fabric's.
    #[inline]
    pub fn inject(&mut self, host: HostId, packet: Packet, now: Time) -> Option<PacketId> {
        self.core.inject(host, packet, now)
    }

    /// Like [`Fabric::inject`] of the packet that `write` writes in place, which saves a copy. `write` finds an old
    /// packet there and returns false when it has none to write; so does this.
    #[inline]
    pub fn inject_with(&mut self, host: HostId, now: Time, write: impl FnOnce(&mut Packet) -> bool) -> bool {
        self.core.inject_with(host, now, write)
    }

    /// The next packet that has left, in the order of leaving.
    #[inline]
    pub fn poll_exit(&mut self) -> Option<Exit> {
        self.core.exits.pop()
    }

    /// Whether the interface of `host` takes a packet: it holds less than its sending buffer, if it has one. If it does not,
    /// [`Fabric::poll_room`] tells when it does.
    #[inline]
    pub fn has_room(&mut self, host: HostId) -> bool {
        self.core.has_room(host.index())
    }

    /// The room that the interface of `host` has is somebody's whose packet is still to come: there is none for others until a
    /// packet leaves, if there is one in it.
    pub fn promise_room(&mut self, host: HostId) {
        if let Some(buffers) = &mut self.core.pausable.buffers {
            buffers.promise(host.index());
        }
    }

    /// The next host whose interface was found full and takes a packet again. A run to exits stops at that moment too.
    #[inline]
    pub fn poll_room(&mut self) -> Option<HostId> {
        self.core.rooms.pop()
    }

    /// When the last bit of the packet that `host` handed in last leaves its interface, or did; `None` where that is not known
    /// before it happens: where a pause, a pacer, a limiter of QCN or a sending buffer may be in the way.
    #[inline]
    pub fn departure(&self, host: HostId) -> Option<Time> {
        self.core.departure(host.index())
    }

    /// From now on [`Fabric::poll_sent`] tells which packets have left their hosts' interfaces, where [`Fabric::departure`]
    /// cannot; it then must be called. Call this before the run.
    pub fn keep_sent(&mut self) {
        self.core.keep_sent();
    }

    /// From now on [`Fabric::poll_sent`] tells that of all packets, and a run to exits stops at these moments too:
    /// [`Fabric::poll_room`] names their hosts. Call this before the run.
    pub fn stop_at_sent(&mut self) {
        self.core.stop_at_sent();
    }

    /// The next packet whose last bit has left its host's interface, whatever stood in its way, in the order of leaving.
    #[inline]
    pub fn poll_sent(&mut self) -> Option<PacketId> {
        self.core.pausable.sent.as_mut()?.pop()
    }

    /// From now on lost packets are told by [`Fabric::poll_drop`], which then must be called.
    pub fn keep_drops(&mut self) {
        self.core.drops.get_or_insert_with(Queue::new);
    }

    /// The next packet that was lost, to a queue or to an injected fault, in the order of losing. Its record can be read
    /// until the next packet is handed in.
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
    pub fn set_meter(&mut self, config: &MeterConfig) -> Result<(), ConfigError> {
        match &mut self.kind {
            Kind::Graph(_) | Kind::Classes(_) | Kind::Lossless(_) => {
                Err(ConfigError::Value { key: "measure.pair", problem: "there are no pairs of racks".into() })
            }
            Kind::Hybrid(hybrid) => hybrid.set_meter(&mut self.core, config),
        }
    }

    /// Watches queues from now on. Call it before the run.
    ///
    /// # Errors
    /// On a hybrid fabric, and for a port that there is not.
    pub fn watch(&mut self, config: &WatchConfig) -> Result<(), ConfigError> {
        match &mut self.kind {
            Kind::Graph(graph) => graph.watch(&mut self.core, config),
            Kind::Classes(graph) => graph.watch(&mut self.core, config),
            Kind::Lossless(lossless) => lossless.graph.watch(&mut self.core, config),
            Kind::Hybrid(_) => {
                let problem = "a hybrid fabric has VOQs: measure.pair is for these".into();
                Err(ConfigError::Value { key: "measure.queues", problem })
            }
        }
    }

    /// What was seen of the watched queues.
    pub fn queues(&self) -> Vec<QueueReport> {
        let (now, scale) = (self.core.now, self.core.scale);
        match &self.kind {
            Kind::Graph(graph) => graph.queue_reports(now, scale),
            Kind::Classes(graph) => graph.queue_reports(now, scale),
            Kind::Lossless(lossless) => lossless.graph.queue_reports(now, scale),
            Kind::Hybrid(_) => Vec::new(),
        }
    }

    /// Forgets what the meter and the watches saw, but not where the flows stand: the end of a warm-up.
    pub fn reset_meter(&mut self) {
        match &mut self.kind {
            Kind::Hybrid(hybrid) => hybrid.reset_meter(self.core.now),
            Kind::Graph(graph) => graph.reset_watches(self.core.now),
            Kind::Classes(graph) => graph.reset_watches(self.core.now),
            Kind::Lossless(lossless) => lossless.graph.reset_watches(self.core.now),
        }
    }

    /// What the meter saw, if there is one.
    pub fn meter(&self) -> Option<MeterReport> {
        match &self.kind {
            Kind::Graph(_) | Kind::Classes(_) | Kind::Lossless(_) => None,
            Kind::Hybrid(hybrid) => hybrid.meter_report(self.core.now),
        }
    }

    /// Lets `sink` see every packet at the hosts' edge from now on.
    pub fn set_capture(&mut self, sink: Box<dyn CaptureSink>) {
        self.core.capture = Some(sink);
    }

    /// Ends the capture.
    pub fn take_capture(&mut self) -> Option<Box<dyn CaptureSink>> {
        self.core.capture.take()
    }

    /// Counts of every port, link and queue.
    pub fn ports(&self) -> Vec<PortReport> {
        let mut ports: Vec<PortReport> = self.core.nic_reports().collect();
        ports.extend(match &self.kind {
            Kind::Graph(graph) => graph.port_reports(self.core.now),
            Kind::Classes(graph) => graph.port_reports(self.core.now),
            Kind::Lossless(lossless) => lossless.graph.port_reports(self.core.now),
            Kind::Hybrid(hybrid) => hybrid.port_reports(self.core.now),
        });
        ports
    }

    /// What pauses did; none where links cannot be paused.
    pub fn pauses(&self) -> Option<PauseReport> {
        match &self.kind {
            Kind::Lossless(lossless) => Some(lossless.pause_report(&self.core)),
            Kind::Hybrid(hybrid) => hybrid.pause_report(&self.core),
            Kind::Graph(_) | Kind::Classes(_) => None,
        }
    }

    /// Counts of every pair of racks; none without racks.
    pub fn pairs(&self) -> Vec<PairReport> {
        match &self.kind {
            Kind::Graph(_) | Kind::Classes(_) | Kind::Lossless(_) => Vec::new(),
            Kind::Hybrid(hybrid) => hybrid.pair_reports(),
        }
    }

    /// From now on QCN's changes of rates are kept, the first `most` of each host.
    pub fn keep_rate_changes(&mut self, most: usize) {
        self.core.interfaces.limiters.iter_mut().for_each(|limiters| limiters.keep_changes(most));
    }

    /// What QCN did; `None` without it.
    pub fn qcn(&self) -> Option<QcnReport> {
        match &self.kind {
            Kind::Graph(graph) => self.core.qcn_report(graph.congestion()),
            Kind::Classes(graph) => self.core.qcn_report(graph.congestion()),
            Kind::Lossless(lossless) => self.core.qcn_report(lossless.graph.congestion()),
            Kind::Hybrid(hybrid) => self.core.qcn_report(hybrid.congestion()),
        }
    }

    /// Counts of the whole, with the conservation identities checked.
    pub fn totals(&self) -> Totals {
        reports::totals(self)
    }

    /// Events carried out so far: what a run costs.
    pub fn events(&self) -> u64 {
        self.core.counts.events
    }

    /// One number for all that happened so far: the same spec, seed and version give the same one on any machine.
    pub fn digest(&self) -> u64 {
        self.core.digest.value()
    }
}
