//! A packet fabric: hosts and output-queued switches, joined in any way; the star is its smallest.
//!
//! A switch has nothing of its own but its output ports, and perhaps a buffer that these share: a packet that comes to it is
//! queued at the port of its next hop, one event per hop (two where ports have traffic classes). Among ports that lead to
//! equally short ways a flow has its own, by a hash (equal-cost multipath, RFC 2992), or each packet takes any of them
//! (packet spraying).

use super::core::{Core, Shape, port_report, serializer};
use super::notifications;
use super::watch::Watch;
use crate::config::{ConfigError, GraphConfig, SwitchConfig, WatchConfig};
use crate::events::{Event, Kind};
use crate::prefetch::prefetch;
use crate::report::{PortKind, PortReport, QueueReport};
use crate::stream::stream;
use firstlight_net::qcn::{CongestionCounts, CongestionPoint};
use firstlight_net::topology::{Node, Port, Routes, SwitchId, SwitchPort as PortId, Topology};
use firstlight_net::{ClassPort, FifoPort, HostId, PacketId, PausablePort, Pool, Serializer, SwitchPort};
use firstlight_units::{Span, Time};
use rand_xoshiro::rand_core::RngCore;
use std::ops::Range;

/// What stands at the end of a link, in one word: a switch, or a host with the highest bit set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Target(u32);

impl Target {
    const HOST: u32 = 1 << 31;

    fn of(node: Node) -> Self {
        match node {
            Node::Host(host) => Target(u32::from(host.0) | Self::HOST),
            Node::Switch(switch) => Target(u32::from(switch.0)),
        }
    }

    #[inline]
    fn node(self) -> Node {
        if self.0 & Self::HOST != 0 { Node::Host(HostId(self.0 as u16)) } else { Node::Switch(SwitchId(self.0 as u16)) }
    }
}

/// The switches, with ports of one kind.
pub(super) struct Graph<P> {
    pub(super) topology: Topology,
    /// Output ports of all switches.
    pub(super) ports: Vec<P>,
    /// Where each of them leads to,
    targets: Vec<Target>,
    /// and where hosts' interfaces do.
    nics: Vec<Target>,
    pub(super) routes: Routes,
    /// With packet spraying: how many packets have come.
    pub(super) sprayed: Option<u64>,
    /// The switches' shared buffers, each with its ports; none without them.
    buffers: Vec<(Pool, Range<usize>)>,
    /// With QCN: the congestion points of all ports, one for each class, the lowest first.
    points: Vec<CongestionPoint>,
    /// The last notification that a congestion point sent.
    pub(super) notified: Option<PacketId>,
    watches: Vec<Watch>,
    /// Between samples of the watched queues.
    every: Span,
}

/// How a port is made: from its serialization, its link's delay, what it is to do, and a seed.
type Make<P> = fn(Serializer, Span, &SwitchConfig, u64) -> P;

impl Graph<FifoPort> {
    pub(super) fn port(serializer: Serializer, delay: Span, config: &SwitchConfig, seed: u64) -> FifoPort {
        FifoPort::new(serializer, delay, &config.discipline, seed)
    }
}

impl Graph<ClassPort> {
    pub(super) fn port(serializer: Serializer, delay: Span, config: &SwitchConfig, seed: u64) -> ClassPort {
        ClassPort::new(serializer, delay, &config.classes, seed)
    }
}

impl Graph<PausablePort> {
    pub(super) fn port(serializer: Serializer, delay: Span, config: &SwitchConfig, seed: u64) -> PausablePort {
        PausablePort::pausable(serializer, delay, config.queues(), seed)
    }
}

impl<P: SwitchPort> Graph<P> {
    pub(super) fn build(config: &GraphConfig, make: Make<P>) -> Result<(Core, Graph<P>), ConfigError> {
        check(&config.switch)?;
        let (topology, scale, interface) = (&config.topology, config.time_scale, &config.interface);
        let links =
            topology.nics().iter().map(|nic| Ok((serializer("hosts.rate", nic.wire.rate, scale)?, nic.wire.delay)));
        let links = links.collect::<Result<Vec<_>, ConfigError>>()?;
        let port = |(index, port): (usize, &Port)| {
            let stack = if matches!(port.to, Node::Host(_)) { interface.stack_on_link() } else { Span::ZERO };
            let delay = (port.wire.delay + stack) * u64::from(scale);
            let seed = stream(config.seed, &topology.port_name(PortId(index as u32)), "marking").next_u64();
            Ok(make(serializer("links.rate", port.wire.rate, scale)?, delay, &config.switch, seed))
        };
        let ports = topology.ports().iter().enumerate().map(port).collect::<Result<Vec<_>, ConfigError>>()?;
        let transmitters = if config.switch.pfc.is_some() { links.len() + ports.len() } else { 0 };
        let sources = [(Kind::Port, ports.len()), (Kind::Pause, transmitters)];
        let core = Core::new(links, interface, &sources, scale, config.seed)?;
        let graph = Graph {
            targets: topology.ports().iter().map(|port| Target::of(port.to)).collect(),
            nics: topology.nics().iter().map(|nic| Target::of(nic.to)).collect(),
            routes: Routes::new(topology, config.seed),
            sprayed: config.spray.then_some(0),
            buffers: buffers(topology, &config.switch),
            points: points(config),
            notified: None,
            watches: vec![],
            every: Span::ZERO,
            topology: topology.clone(),
            ports,
        };
        Ok((core, graph))
    }

    /// A packet is at the end of a link.
    #[inline(always)]
    fn on_arrival(&mut self, core: &mut Core, id: PacketId, target: Target) {
        let switch = match target.node() {
            Node::Host(host) => return core.exit(id, host),
            Node::Switch(switch) => switch,
        };
        let port = self.route(core, id, switch);
        if self.watches.is_empty() && self.buffers.is_empty() && self.points.is_empty() {
            return core.send(&mut self.ports, port, id);
        }
        self.send_seen(core, switch, port, id);
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

    /// Queues a packet where the switch has a shared buffer or congestion points, or somebody watches. Tells whether it
    /// was taken in.
    #[inline(never)]
    pub(super) fn send_seen(&mut self, core: &mut Core, switch: SwitchId, port: usize, id: PacketId) -> bool {
        let watch = self.watches.iter_mut().find(|watch| watch.port == port);
        let ahead = watch.as_ref().map(|watch| watch.ahead(&self.ports[port], core.now));
        let packet = core.arena.get_mut(id);
        let offered = match self.buffers.get_mut(switch.index()) {
            None => self.ports[port].offer(id, packet, core.now),
            Some((pool, ports)) => pool.offer(&mut self.ports[ports.clone()], port - ports.start, id, packet, core.now),
        };
        if let (Ok(_), Some(watch), Some(ahead)) = (&offered, watch, ahead) {
            watch.on_packet(packet, ahead);
        }
        core.on_offered(offered, port, id);
        let taken = offered.is_ok();
        if taken && !self.points.is_empty() {
            self.on_queued(core, switch, port, id);
        }
        taken
    }

    /// The congestion point of a queue sees a packet that was taken in, and may notify its sender.
    fn on_queued(&mut self, core: &mut Core, switch: SwitchId, port: usize, id: PacketId) {
        let packet = core.arena.get(id);
        if packet.notification().is_some() {
            return;
        }
        let (class, queue) = self.ports[port].queue_of(packet, core.now);
        let classes = self.points.len() / self.ports.len();
        if let Some(feedback) = self.points[port * classes + class].on_queued(packet.size(), queue) {
            let id = core.notify(id, feedback);
            self.notified = Some(id);
            let port = self.route(core, id, switch);
            self.send_seen(core, switch, port, id);
        }
    }

    /// What the congestion points counted.
    pub(super) fn congestion(&self) -> impl Iterator<Item = CongestionCounts> {
        self.points.iter().map(CongestionPoint::counts)
    }

    pub(super) fn watch(&mut self, core: &mut Core, config: &WatchConfig) -> Result<(), ConfigError> {
        let fail = |problem: String| Err(ConfigError::Value { key: "measure.queues", problem });
        for name in &config.ports {
            let Some(port) = (0..self.ports.len()).find(|index| self.name(*index) == *name) else {
                return fail(format!("there is no port '{name}': ports are called {}", self.examples()));
            };
            if self.watches.iter().any(|watch| watch.port == port) {
                return fail(format!("'{name}' is there twice"));
            }
            self.watches.push(Watch::new(name.clone(), port, self.topology.ports()[port].wire.rate));
        }
        if let Some(every) = config.every.filter(|_| !self.watches.is_empty()) {
            if every.is_zero() {
                return fail("samples need a time between them".into());
            }
            self.every = every * u64::from(core.scale);
            core.reschedule(Some(Time::ZERO), Kind::Sample, 0);
        }
        Ok(())
    }

    #[cold]
    fn on_other(&mut self, core: &mut Core, event: Event) {
        match event.kind() {
            Kind::Pacer => core.on_pacer(event.index()),
            Kind::Limiter => core.on_limiter(event.index()),
            Kind::Adapter => core.on_adapter(event.index()),
            Kind::Stack => core.on_stack(event.index()),
            Kind::Sample => self.on_sample(core),
            other => unreachable!("a packet fabric has no event {other:?}"),
        }
    }

    pub(super) fn on_sample(&mut self, core: &mut Core) {
        for watch in &mut self.watches {
            watch.sample(&self.ports[watch.port], core.now, core.scale);
        }
        core.reschedule(Some(core.now + self.every), Kind::Sample, 0);
    }

    pub(super) fn reset_watches(&mut self, now: Time) {
        self.watches.iter_mut().for_each(|watch| watch.reset(now));
    }

    pub(super) fn queue_reports(&self, now: Time, scale: u32) -> Vec<QueueReport> {
        self.watches.iter().map(|watch| watch.report(now, scale)).collect()
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

    pub(super) fn port_reports(&self, now: Time) -> Vec<PortReport> {
        let report = |(index, port): (usize, &P)| {
            let to_host = matches!(self.targets[index].node(), Node::Host(_));
            let kind = if to_host { PortKind::HostPort } else { PortKind::SwitchPort };
            port_report(kind, self.name(index), port, now)
        };
        self.ports.iter().enumerate().map(report).collect()
    }
}

impl<P: SwitchPort> Shape for Graph<P> {
    #[inline]
    fn on_event(&mut self, core: &mut Core, event: Event) {
        let index = event.index();
        let (id, target) = if event.is(Kind::Port) {
            let Some(id) = core.step(&mut self.ports[index], index) else { return };
            (id, self.targets[index])
        } else if event.is(Kind::Nic) {
            let Some(id) = core.on_nic_arrival(index) else { return };
            (id, self.nics[index])
        } else {
            return self.on_other(core, event);
        };
        self.on_arrival(core, id, target);
    }

    #[inline]
    fn prefetch(&self, core: &Core, event: Event, next: bool) {
        let index = event.index();
        match event.kind() {
            Kind::Nic if core.nics.is_empty() => return,
            Kind::Nic if next => return prefetch(core.nics[index].first_slot()),
            Kind::Port if next => return prefetch(self.ports[index].first_slot()),
            Kind::Nic => prefetch(&core.nics[index]),
            Kind::Port => prefetch(&self.ports[index]),
            _ => return,
        }
        if let Some(packet) = core.arena.peek(event.packet()) {
            prefetch(packet);
        }
    }
}

fn buffers(topology: &Topology, config: &SwitchConfig) -> Vec<(Pool, Range<usize>)> {
    let switches = (0..topology.switches().len()).map(|switch| topology.ports_of(SwitchId(switch as u16)));
    let ports = switches.map(|ports| ports.start as usize..ports.end as usize);
    config.buffer.iter().flat_map(|buffer| ports.clone().map(|ports| (Pool::new(buffer, ports.len()), ports))).collect()
}

fn points(config: &GraphConfig) -> Vec<CongestionPoint> {
    let Some(qcn) = &config.interface.qcn else { return vec![] };
    let (topology, classes) = (&config.topology, config.switch.classes.len().max(1));
    let of_port = |port| {
        let name = topology.port_name(PortId(port as u32));
        (0..classes).map(move |class| notifications::point(qcn, config.seed, &format!("{name}.{class}")))
    };
    (0..topology.ports().len()).flat_map(of_port).collect()
}

fn check(config: &SwitchConfig) -> Result<(), ConfigError> {
    let problem =
        |key| move |error: firstlight_net::DisciplineError| ConfigError::Value { key, problem: error.to_string() };
    for discipline in config.queues() {
        discipline.check().map_err(problem("switch"))?;
        if discipline.limit == firstlight_net::Limit::Packets(0) {
            let problem = "a queue of 0 packets drops all that wait".into();
            return Err(ConfigError::Value { key: "switch.queue", problem });
        }
    }
    config.buffer.iter().try_for_each(|buffer| buffer.check().map_err(problem("switch.buffer")))
}
