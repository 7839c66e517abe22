//! Where pauses act on a hybrid fabric: a ToR pauses its hosts and the packet switch's downlinks; the packet switch
//! pauses ToRs.
//!
//! All packets are one class, as a VOQ has one queue. Packets from a host's link wait at the ToR in any of its VOQs, or
//! for a host of the rack. A pause of an uplink stops the rack's VOQs together, but not its circuit.
//!
//! Circuits are never paused: a pause frame would have to come back over the circuit switch, and a matching that joins
//! S to D rarely joins D to S. Nothing waits behind a circuit but the receiving ToR's ports to its hosts. Packets that
//! came by circuits have an account there as well, without a limit, so that its peak is reported.
//!
//! No circle of waiting is possible: hosts wait for ToRs, ToRs for the packet switch, this for ToRs' ports to hosts,
//! these perhaps for hosts' adapters, and hosts process everything.
//!
//! **Head-of-line blocking.** A VOQ is idle when it holds nothing and what came could leave at once: over a circuit
//! that is up and sends nothing, or, while the packet path is on, over an uplink that sends nothing. In a pair's night
//! nothing could leave, so no queue is a victim. An uplink's first packet is that of the VOQ whose turn is next; when
//! the schedule takes that VOQ's path away, another's.

use super::pause_points::{PausePoint, PausePoints};
use super::{Lossless, LosslessFabric, PointConfig, act_on_port};
use crate::config::HybridConfig;
use crate::events::EventKind;
use crate::fabric::core::Core;
use crate::fabric::hybrid::HybridFabric;
use crate::fabric::link_layer::LinkLayer;
use crate::report::PauseReport;
use firstlight_net::pfc::PfcLimits;
use firstlight_net::topology::Wire;
use firstlight_net::{Discipline, HostId, PacketId, Pausable, PausablePort, Sent, Serializer};
use firstlight_units::{Bytes, Span, Time};

/// The link layer of a lossless hybrid fabric.
pub(in crate::fabric) struct LosslessRacks {
    state: Lossless,
    points: PausePoints,
}

/// The class of all packets.
const CLASS: usize = 0;

impl HybridFabric<LosslessRacks> {
    fn number(&self, point: PausePoint) -> usize {
        self.link_layer.points.number(point)
    }

    fn with_host_port(
        &mut self,
        core: &mut Core,
        point: PausePoint,
        act: impl FnOnce(&mut PausablePort, Time) -> Option<Time>,
    ) {
        match point {
            PausePoint::Nic(host) => act_on_port(core, &mut self.host_ports, EventKind::Nic, host, act),
            PausePoint::HostPort(host) => act_on_port(core, &mut self.host_ports, EventKind::Port, host, act),
            other => unreachable!("{other:?} is no port"),
        }
    }

    fn port<'a>(&'a self, core: &'a Core, point: PausePoint) -> Option<&'a PausablePort> {
        match point {
            PausePoint::Nic(host) => Some(&core.pausable.ports[host]),
            PausePoint::HostPort(host) => Some(&self.host_ports[host]),
            _ => None,
        }
    }

    /// Lets `act` change the pauses of an uplink or a downlink, which then goes on.
    fn with_line(&mut self, core: &mut Core, point: PausePoint, act: impl FnOnce(&mut Pausable)) {
        match point {
            PausePoint::Uplink(rack) => {
                act(&mut self.uplinks[rack].transmitter.control);
                self.wake_uplink(core, rack);
            }
            PausePoint::Downlink(rack) => {
                act(&mut self.downlinks[rack].transmitter.control);
                self.wake_downlink(core, rack);
            }
            other => unreachable!("{other:?} is no link that can be paused"),
        }
    }

    /// The pause point to which the first packet of a pausable link goes next.
    fn next_point(&self, core: &Core, point: PausePoint) -> Option<PausePoint> {
        let to_host = |id: PacketId| PausePoint::HostPort(core.arena.get(id).dst().index());
        let at_tor = |id: PacketId| {
            let packet = core.arena.get(id);
            let (src, dst) = (self.racks.rack(packet.src()), self.racks.rack(packet.dst()));
            if src == dst { to_host(id) } else { PausePoint::Voq(src, dst) }
        };
        match point {
            PausePoint::Nic(host) => core.pausable.ports[host].head(CLASS).map(at_tor),
            PausePoint::Uplink(rack) => {
                let dst = self.uplinks[rack].turns.next()?;
                let head = self.racks.pairs[self.racks.pair(rack, dst)].voq.front()?;
                Some(if self.downlinks.is_empty() { to_host(head) } else { PausePoint::Downlink(dst) })
            }
            PausePoint::Downlink(rack) => self.downlinks[rack].next().map(to_host),
            _ => None,
        }
    }

    /// VOQs that first packets of paused hosts are bound for may have become idle or busy.
    fn update_voqs(&mut self, now: Time) {
        let mut index = 0;
        while let Some(egress) = self.link_layer.state.victims.awaited(index) {
            index += 1;
            if matches!(self.link_layer.points.point(egress), PausePoint::Voq(..)) {
                self.update_victims(now, egress);
            }
        }
    }
}

impl LosslessFabric for HybridFabric<LosslessRacks> {
    fn lossless(&self) -> &Lossless {
        &self.link_layer.state
    }

    fn lossless_mut(&mut self) -> &mut Lossless {
        &mut self.link_layer.state
    }

    fn nic(&self, host: usize) -> usize {
        self.number(PausePoint::Nic(host))
    }

    fn adapter(&self, host: usize) -> usize {
        self.number(PausePoint::Adapter(host))
    }

    fn class_at(&self, _core: &Core, _point: usize, _id: PacketId) -> usize {
        CLASS
    }

    fn request_pause(&mut self, core: &mut Core, point: usize, classes: u8) {
        match self.link_layer.points.point(point) {
            port @ (PausePoint::Nic(_) | PausePoint::HostPort(_)) => {
                self.with_host_port(core, port, |port, now| port.request_pause(classes, now));
            }
            line => self.with_line(core, line, |control| control.request_pause(classes)),
        }
    }

    fn pause(&mut self, core: &mut Core, point: usize, classes: u8) {
        match self.link_layer.points.point(point) {
            port @ (PausePoint::Nic(_) | PausePoint::HostPort(_)) => {
                self.with_host_port(core, port, |port, now| port.pause(classes, now));
            }
            line => self.with_line(core, line, |control| control.pause(classes)),
        }
    }

    fn pause_frame_pending(&self, core: &Core, point: usize) -> bool {
        match self.link_layer.points.point(point) {
            PausePoint::Uplink(rack) => self.uplinks[rack].transmitter.control.pause_frame_pending(),
            PausePoint::Downlink(rack) => self.downlinks[rack].transmitter.control.pause_frame_pending(),
            other => self.port(core, other).is_some_and(PausablePort::pause_frame_pending),
        }
    }

    fn served(&self, core: &Core, point: usize, _priority: usize) -> Time {
        let transmitter = match self.link_layer.points.point(point) {
            PausePoint::Uplink(rack) => &self.uplinks[rack].transmitter,
            PausePoint::Downlink(rack) => &self.downlinks[rack].transmitter,
            other => return self.port(core, other).expect("all else that is paused is a port").served(CLASS),
        };
        if transmitter.control.serves_packet() { transmitter.line.free_at() } else { core.now }
    }

    fn next_egress(&self, core: &Core, point: usize, _priority: usize) -> Option<usize> {
        let next = self.next_point(core, self.link_layer.points.point(point))?;
        Some(self.number(next))
    }

    fn is_idle(&self, now: Time, egress: usize) -> bool {
        match self.link_layer.points.point(egress) {
            PausePoint::HostPort(host) => self.host_ports[host].is_idle(),
            PausePoint::Downlink(rack) => {
                let downlink = &self.downlinks[rack];
                !downlink.transmitter.control.serves_packet() && downlink.is_empty()
            }
            PausePoint::Voq(src, dst) => {
                let pair = &self.racks.pairs[self.racks.pair(src, dst)];
                let circuit = &self.circuits[src];
                let by_circuit = circuit.is_up_to(dst) && circuit.transmitter.line.free_at() <= now;
                let by_packet = pair.off == 0 && !self.uplinks[src].transmitter.control.serves_packet();
                pair.voq.is_empty() && (by_circuit || by_packet)
            }
            _ => false,
        }
    }

    /// A VOQ's packets wait for the uplink while their packet path is on.
    fn transmitter_of(&self, egress: usize) -> usize {
        match self.link_layer.points.point(egress) {
            PausePoint::Voq(src, dst) if self.racks.pairs[self.racks.pair(src, dst)].off == 0 => {
                self.number(PausePoint::Uplink(src))
            }
            _ => egress,
        }
    }

    fn name(&self, point: usize) -> String {
        self.link_layer.points.point(point).name()
    }

    fn switch_name(&self, point: usize) -> String {
        self.link_layer.points.switch(self.link_layer.points.point(point))
    }

    fn packets(&self, core: &Core, point: usize, _priority: usize) -> u64 {
        match self.link_layer.points.point(point) {
            PausePoint::Uplink(rack) => self.uplinks[rack].transmitter.line.sent(),
            PausePoint::Downlink(rack) => self.downlinks[rack].transmitter.line.sent(),
            PausePoint::Circuit(dst) => {
                let sent = |src| self.racks.pairs[self.racks.pair(src, dst)].circuit_packets;
                (0..self.racks.count).map(sent).sum()
            }
            other => self.port(core, other).expect("all other links begin at a port").counts(CLASS).sent,
        }
    }

    fn inward(&self, _core: &Core) -> Vec<usize> {
        self.link_layer.points.inward().map(|point| self.number(point)).collect()
    }
}

impl LinkLayer for LosslessRacks {
    type Pausing = Pausable;
    type HostPort = PausablePort;

    fn new(config: &HybridConfig, core: &mut Core) -> Self {
        let pfc = config.pfc.as_ref().expect("a lossless fabric has PFC");
        assert!(config.tables.segregation.is_none(), "the VOQs of mice have no account of PFC");
        let nic =
            Self::host_port(Serializer::new(config.links.rate, config.time_scale).framed(config.interface.framing), {
                config.links.delay * u64::from(config.time_scale)
            });
        core.make_pausable(vec![nic; config.hosts()]);
        let points = PausePoints::new(config);
        let of_points = (0..points.count()).map(|number| point_config(config, &points, number)).collect();
        LosslessRacks { state: Lossless::with(pfc, 1, of_points), points }
    }

    fn host_port(serializer: Serializer, delay: Span) -> PausablePort {
        PausablePort::new(serializer, delay, &[Discipline::default()], 0)
    }

    fn pause_points(config: &HybridConfig) -> usize {
        PausePoints::new(config).count()
    }

    fn before_event(fabric: &mut HybridFabric<Self>, core: &mut Core) {
        fabric.record_stopped_nics(core);
    }

    fn after_event(fabric: &mut HybridFabric<Self>, core: &mut Core, kind: EventKind) {
        if !matches!(kind, EventKind::Port | EventKind::Circuit | EventKind::Stack | EventKind::Adapter) {
            fabric.update_voqs(core.now);
        }
    }

    fn on_nic(fabric: &mut HybridFabric<Self>, core: &mut Core, host: usize) {
        let (arrived, sent) = core.step_nic(host);
        if let Some(Sent::Pause(classes)) = sent {
            Self::on_pause_frame(fabric, core, PausePoint::Nic(host), classes);
        }
        if let Some(id) = arrived {
            fabric.on_host_packet(core, id);
        }
    }

    fn on_host_port(fabric: &mut HybridFabric<Self>, core: &mut Core, host: usize) {
        let (point, port) = (PausePoint::HostPort(host), &mut fabric.host_ports[host]);
        let arrived = core.step(port, host);
        match port.take_sent() {
            Some(Sent::Packet(id)) => {
                Self::update_victims(fabric, core.now, point);
                Self::on_departure(fabric, core, id, point);
            }
            Some(Sent::Pause(classes)) => Self::on_pause_frame(fabric, core, point, classes),
            None => {}
        }
        if let Some(id) = arrived {
            fabric.on_host_arrival(core, fabric.number(point), id, HostId(host as u16));
        }
    }

    fn on_adapter(fabric: &mut HybridFabric<Self>, core: &mut Core, host: usize) {
        fabric.on_adapter(core, host);
    }

    fn on_pause_effect(fabric: &mut HybridFabric<Self>, core: &mut Core, point: usize) {
        fabric.on_pause_effect(core, point);
    }

    fn on_pause_frame(fabric: &mut HybridFabric<Self>, core: &mut Core, sender: PausePoint, classes: u8) {
        fabric.on_pause_frame(core, fabric.number(sender), classes);
    }

    fn has_room(fabric: &mut HybridFabric<Self>, from: Option<PausePoint>, size: u16) -> bool {
        let LosslessRacks { state, points } = &mut fabric.link_layer;
        from.is_none_or(|from| state.has_room(points.number(from), CLASS, size))
    }

    fn record_loss(fabric: &mut HybridFabric<Self>) {
        fabric.link_layer.state.record_loss(CLASS);
    }

    fn on_queued(
        fabric: &mut HybridFabric<Self>,
        core: &mut Core,
        id: PacketId,
        from: Option<PausePoint>,
        egress: PausePoint,
    ) {
        let from = from.map(|from| fabric.number(from));
        fabric.on_queued(core, id, CLASS, from, fabric.number(egress));
    }

    fn on_departure(fabric: &mut HybridFabric<Self>, core: &mut Core, id: PacketId, egress: PausePoint) {
        fabric.on_departure(core, id, CLASS, fabric.number(egress));
    }

    fn record_head(fabric: &mut HybridFabric<Self>, core: &Core, point: PausePoint) {
        fabric.record_heads(core, fabric.number(point), core.now);
    }

    fn update_victims(fabric: &mut HybridFabric<Self>, now: Time, egress: PausePoint) {
        fabric.update_victims(now, fabric.number(egress));
    }

    /// Paused uplinks may have other first packets.
    fn on_paths_changed(fabric: &mut HybridFabric<Self>, core: &Core) {
        for rack in 0..fabric.racks.count {
            let point = fabric.number(PausePoint::Uplink(rack));
            let state = &mut fabric.link_layer.state;
            if state.log.since(point, CLASS).is_some() {
                state.victims.end(point, core.now);
                fabric.record_heads(core, point, core.now);
            }
        }
    }

    fn point_names(fabric: &HybridFabric<Self>) -> (Vec<String>, bool) {
        super::report::pause_points(fabric)
    }

    fn pause_report(fabric: &HybridFabric<Self>, core: &Core) -> Option<PauseReport> {
        Some(super::report::pause_report(fabric, core))
    }
}

fn point_config(config: &HybridConfig, points: &PausePoints, number: usize) -> PointConfig {
    let point = points.point(number);
    let limits = limits(config, point);
    let delay = points.reverse(point).map_or(Span::ZERO, |reverse| wire(config, reverse).delay);
    PointConfig {
        reverse: points.reverse(point).map(|reverse| points.number(reverse)),
        latency: (delay + limits.response) * u64::from(config.time_scale),
        limits,
        egresses: points.egresses(number),
    }
}

/// The wire of a link that can be paused.
fn wire(config: &HybridConfig, point: PausePoint) -> Wire {
    let links = &config.links;
    match point {
        PausePoint::Nic(_) => Wire { rate: links.rate, delay: links.delay },
        PausePoint::HostPort(_) => Wire { rate: links.receive_rate, delay: links.delay },
        _ => Wire { rate: config.packet.rate, delay: config.packet.delay },
    }
}

/// The limits of a link's account at the switch, or adapter, that the link leads to.
fn limits(config: &HybridConfig, point: PausePoint) -> PfcLimits {
    let pfc = config.pfc.as_ref().expect("a lossless fabric has PFC");
    let (to_host, from_host) = (wire(config, PausePoint::HostPort(0)), wire(config, PausePoint::Nic(0)));
    let (packet, unlimited) = (wire(config, point), Bytes::new(u64::MAX));
    match point {
        PausePoint::Nic(_) => pfc.limits(from_host, to_host),
        PausePoint::Uplink(_) | PausePoint::Downlink(_) => pfc.limits(packet, packet),
        PausePoint::Circuit(_) => {
            PfcLimits { xon: unlimited, xoff: unlimited, buffer: unlimited, ..PfcLimits::default() }
        }
        PausePoint::HostPort(_) => config
            .interface
            .adapter
            .receive
            .map_or(PfcLimits::default(), |receive| pfc.at_adapter(receive.buffer).limits(to_host, from_host)),
        PausePoint::Voq(..) | PausePoint::Adapter(_) => PfcLimits::default(),
    }
}
