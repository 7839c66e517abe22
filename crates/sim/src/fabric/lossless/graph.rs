//! Where pauses act on a packet fabric: at the ports of switches and at hosts' interfaces, class by class.
//!
//! Pause points are numbered as `Topology::transmitters` does; hosts' adapters come after all of them.

use super::{LOCAL, Lossless, LosslessFabric, PointConfig, act_on_port};
use crate::config::{BuildError, GraphConfig};
use crate::events::{EventKind, PendingEvent};
use crate::fabric::adapter;
use crate::fabric::core::Core;
use crate::fabric::graph::GraphFabric;
use crate::fabric::switching::Switching;
use crate::report::PauseReport;
use firstlight_net::pfc::PfcConfig;
use firstlight_net::topology::{Nic, Node, Topology};
use firstlight_net::{Discipline, HostId, PacketId, PausablePort, Sent, Serializer, SwitchPort};
use firstlight_units::Time;
use std::ops::Range;

/// A packet fabric whose links can be paused.
pub(in crate::fabric) type LosslessGraph = GraphFabric<PausablePort, Lossless>;

impl LosslessGraph {
    pub(in crate::fabric) fn with_pfc(config: &GraphConfig, pfc: &PfcConfig) -> Result<(Core, Self), BuildError> {
        let (topology, classes) = (&config.topology, config.switch.queues().len());
        GraphFabric::build(config, |core| {
            let queues = vec![Discipline::default(); classes];
            let nic = |nic: &Nic| {
                let link = Serializer::new(nic.wire.rate, config.time_scale).framed(config.interface.framing);
                PausablePort::new(link, nic.wire.delay * u64::from(config.time_scale), &queues, 0)
            };
            core.make_pausable(topology.nics().iter().map(nic).collect());
            Lossless::with(pfc, classes, points(config, pfc))
        })
    }

    fn port<'a>(&'a self, core: &'a Core, point: usize) -> &'a PausablePort {
        self.ports.get(point).unwrap_or_else(|| &core.pausable.ports[point - self.ports.len()])
    }

    fn with_port(&mut self, core: &mut Core, point: usize, act: impl FnOnce(&mut PausablePort, Time) -> Option<Time>) {
        match point.checked_sub(self.ports.len()) {
            None => act_on_port(core, &mut self.ports, EventKind::Port, point, act),
            Some(host) => act_on_port(core, &mut self.ports, EventKind::Nic, host, act),
        }
    }

    /// The result of a transmitter's event.
    fn on_step(&mut self, core: &mut Core, point: usize, arrived: Option<PacketId>, sent: Option<Sent>) {
        match sent {
            Some(Sent::Packet(id)) if point < self.ports.len() => {
                self.update_victims(core.now, point);
                let class = self.class_at(core, point, id);
                self.on_departure(core, id, class, point);
            }
            Some(Sent::Pause(classes)) => self.on_pause_frame(core, point, classes),
            _ => {}
        }
        if let Some(id) = arrived {
            self.on_link_end(core, point, id);
        }
    }

    /// A packet is at the end of a transmitter's link.
    fn on_link_end(&mut self, core: &mut Core, from: usize, id: PacketId) {
        let switch = match self.topology.target_of(from) {
            Node::Host(host) => return self.on_host_arrival(core, from, id, host),
            Node::Switch(switch) => switch,
        };
        let port = self.route(core, id, switch);
        let class = self.class_at(core, port, id);
        if !self.link_layer.has_room(from, class, core.arena.get(id).size()) {
            self.ports[port].refuse(core.arena.get(id));
            return core.lose(id, EventKind::Port, port);
        }
        let first = self.ports[port].paused() & (1 << class) != 0 && self.ports[port].head(class).is_none();
        let queued = self.send_inspected(core, switch, port, id);
        if let Some(notification) = self.notified.take() {
            self.link_layer.set_ingress(notification, LOCAL);
        }
        if !queued {
            return self.link_layer.record_loss(class);
        }
        if first {
            self.record_heads(core, port, core.now);
        }
        self.update_victims(core.now, port);
        self.on_queued(core, id, class, Some(from), port);
    }
}

impl LosslessFabric for LosslessGraph {
    fn lossless(&self) -> &Lossless {
        &self.link_layer
    }

    fn lossless_mut(&mut self) -> &mut Lossless {
        &mut self.link_layer
    }

    fn nic(&self, host: usize) -> usize {
        self.topology.nic_transmitter(HostId(host as u16))
    }

    fn adapter(&self, host: usize) -> usize {
        self.topology.transmitters() + host
    }

    fn class_at(&self, core: &Core, point: usize, id: PacketId) -> usize {
        self.port(core, point).class_of(core.arena.get(id))
    }

    fn request_pause(&mut self, core: &mut Core, point: usize, classes: u8) {
        self.with_port(core, point, |port, now| port.request_pause(classes, now));
    }

    fn pause(&mut self, core: &mut Core, point: usize, classes: u8) {
        self.with_port(core, point, |port, now| port.pause(classes, now));
    }

    fn pause_frame_pending(&self, core: &Core, point: usize) -> bool {
        self.port(core, point).pause_frame_pending()
    }

    fn served(&self, core: &Core, point: usize, priority: usize) -> Time {
        let port = self.port(core, point);
        let classes = self.link_layer.classes_of(priority, port.classes());
        classes.map(|class| port.served(class)).max().expect("a port has a class")
    }

    fn next_egress(&self, core: &Core, point: usize, priority: usize) -> Option<usize> {
        let Node::Switch(next) = self.topology.target_of(point) else { return None };
        if !self.knows_egresses() {
            return None;
        }
        let port = self.port(core, point);
        let class = if self.link_layer.config.whole_link { port.first_class()? } else { priority };
        let packet = core.arena.get(port.head(class)?);
        Some(self.routes.port(next, packet.dst(), || packet.flow_key()).index())
    }

    fn is_idle(&self, _now: Time, egress: usize) -> bool {
        self.ports[egress].is_idle()
    }

    fn waits_from(&self, now: Time, _stops: Time) -> Time {
        now
    }

    fn name(&self, point: usize) -> String {
        match point.checked_sub(self.topology.transmitters()) {
            None => self.topology.transmitter_name(point),
            Some(host) => adapter::name(host),
        }
    }

    fn switch_name(&self, point: usize) -> String {
        self.topology.name(self.topology.target_of(point)).into()
    }

    fn packets(&self, core: &Core, point: usize, priority: usize) -> u64 {
        let port = self.port(core, point);
        self.link_layer.classes_of(priority, port.classes()).map(|class| port.counts(class).sent).sum()
    }

    fn inward(&self, core: &Core) -> Vec<usize> {
        let buffered = !core.adapters.is_empty();
        let inward = |from: &usize| buffered || matches!(self.topology.target_of(*from), Node::Switch(_));
        (0..self.topology.transmitters()).filter(inward).collect()
    }

    /// With packet spraying each packet takes any path.
    fn knows_egresses(&self) -> bool {
        self.sprayed.is_none()
    }
}

impl Switching for LosslessGraph {
    fn on_event(&mut self, core: &mut Core, event: PendingEvent) {
        self.record_stopped_nics(core);
        let index = event.index();
        match event.kind() {
            EventKind::Nic => {
                let (arrived, sent) = core.step_nic(index);
                self.on_step(core, self.ports.len() + index, arrived, sent);
            }
            EventKind::Port => {
                let arrived = core.step(&mut self.ports[index], index);
                let sent = self.ports[index].take_sent();
                self.on_step(core, index, arrived, sent);
            }
            EventKind::Pause => self.on_pause_effect(core, index),
            EventKind::Adapter => self.on_adapter(core, index),
            _ => self.on_other(core, event),
        }
    }

    fn pause_report(&self, core: &Core) -> Option<PauseReport> {
        Some(super::report::pause_report(self, core))
    }

    fn pause_points(&self) -> (Vec<String>, bool) {
        super::report::pause_points(self)
    }
}

/// The transmitters of both directions of all links, and the hosts' adapters.
fn points(config: &GraphConfig, pfc: &PfcConfig) -> Vec<PointConfig> {
    let (topology, scale) = (&config.topology, u64::from(config.time_scale));
    let of_adapters = config.interface.adapter.receive.map(|receive| pfc.at_adapter(receive.buffer));
    let link = |(point, reverse): (usize, usize)| {
        let to_host = matches!(topology.target_of(point), Node::Host(_));
        let pfc = of_adapters.as_ref().filter(|_| to_host).unwrap_or(pfc);
        let limits = pfc.limits(topology.wire_of(point), topology.wire_of(reverse));
        PointConfig {
            reverse: Some(reverse),
            latency: (topology.wire_of(reverse).delay + limits.response) * scale,
            limits,
            egresses: egresses(topology, point),
        }
    };
    let links = topology.reverses().into_iter().enumerate().map(link);
    links.chain((0..topology.hosts()).map(|_| PointConfig::root())).collect()
}

/// The ports of the switch that a transmitter sends to, or the host's adapter.
pub(super) fn egresses(topology: &Topology, from: usize) -> Range<usize> {
    match topology.target_of(from) {
        Node::Host(host) => {
            let adapter = topology.transmitters() + host.index();
            adapter..adapter + 1
        }
        Node::Switch(switch) => {
            let ports = topology.ports_of(switch);
            ports.start as usize..ports.end as usize
        }
    }
}
