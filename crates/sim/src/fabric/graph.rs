//! A packet fabric: hosts and output-queued switches, joined in any way; the star is its smallest.
//!
//! A switch has nothing of its own but its output ports: a packet that comes to it is queued at the port of its next
//! hop, one event per hop. Among ports that lead to equally short ways a flow has its own, by a hash (equal-cost
//! multipath, RFC 2992), or each packet takes the next one in turn (packet spraying).

use super::core::{Core, Shape, port_report, serializer};
use crate::config::{ConfigError, GraphConfig};
use crate::events::{Event, Kind};
use crate::report::{PortKind, PortReport};
use firstlight_net::topology::{Node, Routes, SwitchId, SwitchPort, Topology};
use firstlight_net::{FifoLimits, FifoPort, HostId, PacketId};
use firstlight_units::{Span, Time};

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

/// The switches.
pub(super) struct Graph {
    topology: Topology,
    /// Output ports of all switches.
    ports: Vec<FifoPort>,
    /// Where each of them leads to,
    targets: Vec<Target>,
    /// and where hosts' interfaces do.
    nics: Vec<Target>,
    routes: Routes,
    /// With packet spraying: how many packets have come.
    sprayed: Option<u64>,
}

impl Graph {
    pub(super) fn build(config: &GraphConfig) -> Result<(Core, Graph), ConfigError> {
        if config.queue == Some(0) {
            return Err(ConfigError::Value {
                key: "switch.queue",
                problem: "a queue of 0 packets drops all that wait".into(),
            });
        }
        let (topology, scale, interface) = (&config.topology, config.time_scale, &config.interface);
        let limits = FifoLimits { queue: config.queue, ecn: config.ecn };
        let rate = |rate| serializer("hosts.rate", rate, scale);
        let links = topology.nics().iter().map(|nic| Ok((rate(nic.wire.rate)?, nic.wire.delay)));
        let links = links.collect::<Result<Vec<_>, ConfigError>>()?;
        let port = |port: &firstlight_net::topology::Port| {
            let stack = if matches!(port.to, Node::Host(_)) { interface.receive_delay } else { Span::ZERO };
            let delay = (port.wire.delay + stack) * u64::from(scale);
            Ok(FifoPort::new(rate(port.wire.rate)?, delay, limits))
        };
        let ports = topology.ports().iter().map(port).collect::<Result<Vec<_>, ConfigError>>()?;
        let core = Core::new(links.into_iter(), interface, &[(Kind::Port, ports.len())], scale, config.seed)?;
        let graph = Graph {
            targets: topology.ports().iter().map(|port| Target::of(port.to)).collect(),
            nics: topology.nics().iter().map(|nic| Target::of(nic.to)).collect(),
            routes: Routes::new(topology, config.seed),
            sprayed: config.spray.then_some(0),
            topology: topology.clone(),
            ports,
        };
        Ok((core, graph))
    }

    /// A packet is at the end of a link.
    #[inline]
    fn on_arrival(&mut self, core: &mut Core, id: PacketId, target: Target) {
        let switch = match target.node() {
            Node::Host(host) => return core.exit(id, host),
            Node::Switch(switch) => switch,
        };
        let packet = core.arena.get(id);
        let key = match &mut self.sprayed {
            None => packet.flow_key(),
            Some(packets) => {
                *packets += 1;
                *packets
            }
        };
        let port = self.routes.port(switch, packet.dst, key);
        core.send(&mut self.ports, port.index(), id);
    }

    pub(super) fn port_reports(&self, now: Time) -> Vec<PortReport> {
        let report = |(i, port): (usize, &FifoPort)| match self.targets[i].node() {
            Node::Host(host) => {
                port_report(PortKind::HostPort, format!("{}.port", self.topology.name(Node::Host(host))), port, now)
            }
            Node::Switch(_) => {
                port_report(PortKind::SwitchPort, self.topology.port_name(SwitchPort(i as u32)), port, now)
            }
        };
        self.ports.iter().enumerate().map(report).collect()
    }
}

impl Shape for Graph {
    #[inline]
    fn on_event(&mut self, core: &mut Core, event: Event) {
        let index = event.index();
        let (id, target) = match event.kind() {
            Kind::Nic => (core.on_nic_arrival(index), self.nics[index]),
            Kind::Port => (core.on_port_arrival(&mut self.ports, index), self.targets[index]),
            other => unreachable!("a packet fabric has no event {other:?}"),
        };
        self.on_arrival(core, id, target);
    }
}
