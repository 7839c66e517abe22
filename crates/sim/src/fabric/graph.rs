//! A packet fabric: hosts and output-queued switches, joined in any way; the star is the smallest.
//!
//! A switch has its output ports, and perhaps a buffer that these share and congestion points: a packet that comes to
//! the switch is queued at the port of its next hop, one event per hop (two where ports have traffic classes). Among
//! ports that lead to equally short paths a flow has its own, by a hash (equal-cost multipath, RFC 2992), or each
//! packet takes any of them (packet spraying).
//!
//! A switch's ports, congestion points and buffer are contiguous, by the switch's number. Global are the routes, which
//! never change, the watched queues, and with packet spraying the number of packets that have come to any switch.

use super::core::{Core, port_report, serializer};
use super::link_layer::Lossy;
use super::notifications::CongestionPoints;
use super::reports::PacketSums;
use super::switching::{FabricKind, Switching};
use super::watched_queue::WatchedQueue;
use crate::causes::{Place, PlaceKind};
use crate::config::{BuildError, GraphConfig, SwitchConfig, WatchConfig};
use crate::conserve::Violations;
use crate::events::{EventKind, PendingEvent};
use crate::prefetch::prefetch;
use crate::report::{PauseReport, PortKind, PortReport, QueueReport};
use crate::stream::stream;
use firstlight_net::topology::{Node, Port, PortId, Routes, SwitchId, Topology};
use firstlight_net::{
    ClassOrder, ClassPort, Discipline, FifoPort, HostId, PacketId, PauseControl, Serializer, SharedBuffer, SwitchPort,
};
use firstlight_units::{Span, Time};
use rand_xoshiro::rand_core::RngCore;
use std::collections::BTreeMap;
use std::ops::Range;

/// The node at the end of a link, in one word: a switch, or a host with the highest bit set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LinkEnd(u32);

impl LinkEnd {
    const HOST: u32 = 1 << 31;

    fn of(node: Node) -> Self {
        match node {
            Node::Host(host) => LinkEnd(u32::from(host.0) | Self::HOST),
            Node::Switch(switch) => LinkEnd(u32::from(switch.0)),
        }
    }

    #[inline]
    fn node(self) -> Node {
        if self.0 & Self::HOST != 0 { Node::Host(HostId(self.0 as u16)) } else { Node::Switch(SwitchId(self.0 as u16)) }
    }
}

/// The fabric, with ports and links of one kind.
pub(super) struct GraphFabric<P, L = Lossy> {
    pub(super) topology: Topology,
    /// Output ports of all switches.
    pub(super) ports: Vec<P>,
    /// The node that each port leads to.
    targets: Vec<LinkEnd>,
    /// The node that each host's interface leads to.
    nics: Vec<LinkEnd>,
    pub(super) routes: Routes,
    /// How many packets have arrived, with packet spraying.
    pub(super) sprayed: Option<u64>,
    /// The switches' shared buffers, each with its ports; none without them.
    buffers: Vec<(SharedBuffer, Range<usize>)>,
    /// The congestion points of all ports, one for each class, the lowest first.
    points: CongestionPoints,
    /// Classes of each port.
    classes: usize,
    /// The last notification that a congestion point sent.
    pub(super) notified: Option<PacketId>,
    watched: Vec<WatchedQueue>,
    /// The number of the watched queue at each port; `u32::MAX` for none. Empty while no port is watched.
    watched_at: Vec<u32>,
    /// Between samples of the watched queues.
    every: Span,
    pub(super) link_layer: L,
}

/// A port that can be made from its serialization, its link's delay, what each of its queues is to do, the weights of
/// these, and a seed.
pub(super) trait GraphPort: SwitchPort + Send {
    fn new(serializer: Serializer, delay: Span, queues: &[Discipline], weights: &[u32], seed: u64) -> Self;
}

impl GraphPort for FifoPort {
    fn new(serializer: Serializer, delay: Span, queues: &[Discipline], _weights: &[u32], seed: u64) -> Self {
        FifoPort::new(serializer, delay, &queues[0], seed)
    }
}

impl<C: PauseControl + Send, O: ClassOrder + Send> GraphPort for ClassPort<C, O> {
    fn new(serializer: Serializer, delay: Span, queues: &[Discipline], weights: &[u32], seed: u64) -> Self {
        ClassPort::with_weights(serializer, delay, queues, weights, seed)
    }
}

impl<P: GraphPort, L> GraphFabric<P, L> {
    /// Builds the fabric; `link_layer` makes the link layer.
    pub(super) fn build(
        config: &GraphConfig,
        link_layer: impl FnOnce(&mut Core) -> L,
    ) -> Result<(Core, GraphFabric<P, L>), BuildError> {
        let (topology, scale, interface) = (&config.topology, config.time_scale, &config.interface);
        let links = topology.nics().iter().map(|nic| {
            Ok((serializer("topology.nics", nic.wire.rate, scale)?.framed(interface.framing), nic.wire.delay))
        });
        let links = links.collect::<Result<Vec<_>, BuildError>>()?;
        let port = |(index, port): (usize, &Port)| {
            let stack = if matches!(port.to, Node::Host(_)) { interface.stack_on_link() } else { Span::ZERO };
            let delay = (port.wire.delay + stack) * u64::from(scale);
            let seed = stream(config.seed, &topology.port_name(PortId(index as u32)), "marking").next_u64();
            let serializer = serializer("topology.ports", port.wire.rate, scale)?.framed(interface.framing);
            let queues = config.switch.queues_at(PortId(index as u32));
            Ok(GraphPort::new(serializer, delay, &queues, &config.switch.weights, seed))
        };
        let ports = topology.ports().iter().enumerate().map(port).collect::<Result<Vec<_>, BuildError>>()?;
        let pause_points = if config.switch.pfc.is_some() { topology.transmitters() } else { 0 };
        let sources = [(EventKind::Port, ports.len()), (EventKind::Pause, pause_points)];
        let mut core = Core::new(links, interface, &sources, scale, config.seed)?;
        let graph = GraphFabric {
            targets: topology.ports().iter().map(|port| LinkEnd::of(port.to)).collect(),
            nics: topology.nics().iter().map(|nic| LinkEnd::of(nic.to)).collect(),
            routes: Routes::new(topology, config.seed),
            sprayed: config.spray.then_some(0),
            buffers: buffers(topology, &config.switch),
            points: points(config),
            classes: config.switch.queues().len(),
            notified: None,
            watched: vec![],
            watched_at: vec![],
            every: Span::ZERO,
            link_layer: link_layer(&mut core),
            topology: topology.clone(),
            ports,
        };
        Ok((core, graph))
    }

    /// A packet is at the end of a link.
    #[inline(always)]
    fn on_arrival(&mut self, core: &mut Core, id: PacketId, target: LinkEnd) {
        let switch = match target.node() {
            Node::Host(host) => return core.exit(id, host),
            Node::Switch(switch) => switch,
        };
        let port = self.route(core, id, switch);
        if self.watched.is_empty() && self.buffers.is_empty() && self.points.is_empty() {
            return core.send(&mut self.ports, port, id);
        }
        self.send_inspected(core, switch, port, id);
    }

    /// The port that a packet takes next.
    #[inline(always)]
    pub(super) fn route(&mut self, core: &Core, id: PacketId, switch: SwitchId) -> usize {
        let packet = core.arena.get(id);
        let port = match &mut self.sprayed {
            None => self.routes.port(switch, packet.dst(), || packet.flow_key()),
            Some(packets) => {
                *packets += 1;
                self.routes.port(switch, packet.dst(), || *packets)
            }
        };
        port.index()
    }

    /// Queues a packet where the switch has a shared buffer or congestion points, or the queue may be watched. Returns
    /// whether the packet was queued.
    #[inline(never)]
    pub(super) fn send_inspected(&mut self, core: &mut Core, switch: SwitchId, port: usize, id: PacketId) -> bool {
        let watched = self.watched_at.get(port).and_then(|index| self.watched.get_mut(*index as usize));
        let ahead = watched.as_ref().map(|watched| watched.ahead(&self.ports[port], core.now));
        let packet = core.arena.get_mut(id);
        let offered = match self.buffers.get_mut(switch.index()) {
            None => self.ports[port].offer(id, packet, core.now),
            Some((buffer, ports)) => {
                buffer.offer(&mut self.ports[ports.clone()], port - ports.start, id, packet, core.now)
            }
        };
        if let (Ok(_), Some(watched), Some(ahead)) = (&offered, watched, ahead) {
            watched.on_packet(packet, ahead);
        }
        core.on_offered(offered, port, id);
        let queued = offered.is_ok();
        if queued && !self.points.is_empty() {
            self.sample(core, switch, port, id);
        }
        queued
    }

    /// The congestion point of a queue sees a packet that was queued, and may notify its sender.
    fn sample(&mut self, core: &mut Core, switch: SwitchId, port: usize, id: PacketId) {
        let (class, queue) = self.ports[port].queue_of(core.arena.get(id), core.now);
        let point = port * self.classes + class;
        if let Some(notification) = self.points.sample(core, point, id, queue) {
            self.notified = Some(notification);
            let port = self.route(core, notification, switch);
            self.send_inspected(core, switch, port, notification);
        }
    }

    #[cold]
    pub(super) fn on_other(&mut self, core: &mut Core, event: PendingEvent) {
        match event.kind() {
            EventKind::Pacer => core.on_pacer(event.index()),
            EventKind::Jitter => core.on_jitter(event.index()),
            EventKind::Limiter => core.on_limiter(event.index()),
            EventKind::Adapter => core.on_adapter(event.index()),
            EventKind::Stack => core.on_stack(event.index()),
            EventKind::Sample => self.on_sample(core),
            other => unreachable!("a packet fabric has no event {other:?}"),
        }
    }

    pub(super) fn on_sample(&mut self, core: &mut Core) {
        for watched in &mut self.watched {
            let port = &self.ports[watched.port];
            watched.sample(port.waiting_at(core.now), port.backlog(core.now), core.now, core.scale);
        }
        core.reschedule(Some(core.now + self.every), EventKind::Sample, 0);
    }

    fn name(&self, port: usize) -> String {
        self.topology.queue_name(PortId(port as u32))
    }

    /// Some ports' names: the first, and the first between switches.
    fn examples(&self) -> String {
        let between = (0..self.ports.len()).find(|port| matches!(self.targets[*port].node(), Node::Switch(_)));
        let names = std::iter::once(0).chain(between).map(|port| self.name(port));
        names.collect::<Vec<_>>().join(", ")
    }
}

impl<P: GraphPort> Switching for GraphFabric<P> {
    #[inline]
    fn on_event(&mut self, core: &mut Core, event: PendingEvent) {
        let index = event.index();
        let (id, target) = if event.is(EventKind::Port) {
            let Some(id) = core.step(&mut self.ports[index], index) else { return };
            (id, self.targets[index])
        } else if event.is(EventKind::Nic) {
            let Some(id) = core.on_nic_arrival(index) else { return };
            (id, self.nics[index])
        } else {
            return self.on_other(core, event);
        };
        self.on_arrival(core, id, target);
    }

    #[inline]
    fn prefetch(&self, core: &Core, event: PendingEvent, next: bool) {
        let index = event.index();
        match event.kind() {
            EventKind::Nic if core.nics.is_empty() => return,
            EventKind::Nic if next => return prefetch(core.nics[index].first_slot()),
            EventKind::Port if next => return prefetch(self.ports[index].first_slot()),
            EventKind::Nic => prefetch(&core.nics[index]),
            EventKind::Port => prefetch(&self.ports[index]),
            _ => return,
        }
        if let Some(packet) = core.arena.peek(event.packet()) {
            prefetch(packet);
        }
    }
}

impl<P: GraphPort, L: Send> FabricKind for GraphFabric<P, L>
where
    GraphFabric<P, L>: Switching,
{
    fn run(&mut self, core: &mut Core, limit: Time, to_exit: bool) {
        core.run(self, limit, to_exit);
    }

    fn port_reports(&self, now: Time) -> Vec<PortReport> {
        let report = |(index, port): (usize, &P)| {
            let to_host = matches!(self.targets[index].node(), Node::Host(_));
            let kind = if to_host { PortKind::HostPort } else { PortKind::SwitchPort };
            port_report(kind, self.name(index), port, now)
        };
        self.ports.iter().enumerate().map(report).collect()
    }

    fn places(&self, core: &Core) -> Vec<Place> {
        let place = |(index, port): (usize, &P)| {
            let to_host = matches!(self.targets[index].node(), Node::Host(_));
            let stack = if to_host { core.stack_behind_ports() } else { Span::ZERO };
            let (link, delay) = port.link();
            let place = Place::link(PlaceKind::Port, index, self.name(index), link, delay - stack);
            Place { stack_after: stack, ..place }
        };
        self.ports.iter().enumerate().map(place).collect()
    }

    fn points(&self) -> (Vec<String>, bool) {
        self.pause_points()
    }

    /// The kind of the port that leads to a host: in a network of two hosts and one link, an interface.
    fn last_hop(&self) -> PortKind {
        if self.topology.switches().is_empty() { PortKind::HostNic } else { PortKind::HostPort }
    }

    /// Each packet that a switch receives goes to one of its ports, and all ports except those to hosts lead to a
    /// switch.
    fn check_switches(&self, sums: &PacketSums<'_>, violations: &mut Violations) {
        use PortKind::{HostNic, HostPort, SwitchPort};
        if !self.topology.switches().is_empty() {
            let (come, gone) = (sums.delivered(&[HostNic, SwitchPort]), sums.offered(&[HostPort, SwitchPort]));
            violations.check("switches", "in + notifications = out", come + sums.notified(), gone);
        }
    }

    fn congestion_points(&self) -> &CongestionPoints {
        &self.points
    }

    fn pauses(&self, core: &Core) -> Option<PauseReport> {
        self.pause_report(core)
    }

    fn watch(&mut self, core: &mut Core, config: &WatchConfig) -> Result<(), BuildError> {
        let fail = |problem: String| Err(BuildError::field("watch.ports", problem));
        let numbers: BTreeMap<String, usize> = (0..self.ports.len()).map(|port| (self.name(port), port)).collect();
        self.watched_at.resize(self.ports.len(), u32::MAX);
        for name in &config.ports {
            let Some(&port) = numbers.get(name) else {
                return fail(format!("there is no port '{name}': ports are called {}", self.examples()));
            };
            if std::mem::replace(&mut self.watched_at[port], self.watched.len() as u32) < u32::MAX {
                return fail(format!("'{name}' is there twice"));
            }
            self.watched.push(WatchedQueue::new(name.clone(), port, Some(&self.ports[port].link().0)));
        }
        if let Some(every) = config.every.filter(|_| !self.watched.is_empty()) {
            if every.is_zero() {
                return Err(BuildError::field("watch.every", "samples need a time between them"));
            }
            self.every = every * u64::from(core.scale);
            core.reschedule(Some(Time::ZERO), EventKind::Sample, 0);
        }
        Ok(())
    }

    fn queue_reports(&self, now: Time, scale: u32) -> Vec<QueueReport> {
        self.watched.iter().map(|watched| watched.report(now, scale)).collect()
    }

    fn reset_measurements(&mut self, now: Time) {
        self.watched.iter_mut().for_each(|watched| watched.reset(now));
    }
}

fn buffers(topology: &Topology, config: &SwitchConfig) -> Vec<(SharedBuffer, Range<usize>)> {
    let Some(buffer) = &config.buffer else { return vec![] };
    let switches = (0..topology.switches().len()).map(|switch| topology.ports_of(SwitchId(switch as u16)));
    let ports = switches.map(|ports| ports.start as usize..ports.end as usize);
    ports.map(|ports| (SharedBuffer::new(buffer, ports.len()), ports)).collect()
}

fn points(config: &GraphConfig) -> CongestionPoints {
    let (topology, classes) = (&config.topology, config.switch.queues().len());
    let of_port = |port| {
        let name = topology.port_name(PortId(port as u32));
        (0..classes).map(move |class| format!("{name}.{class}"))
    };
    let queues = (0..topology.ports().len()).flat_map(of_port);
    CongestionPoints::new(config.interface.tables.qcn.as_ref(), config.seed, queues)
}
