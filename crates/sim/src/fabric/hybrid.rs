//! The hybrid fabric of Etalon (NSDI'20, section 2): racks whose ToRs reach each other over a packet network and over
//! a circuit switch that realizes one matching at a time.
//!
//! A ToR keeps one VOQ per destination rack. A pair of racks uses the circuit or the packet network, never both, unless
//! routing is segregated (`segregation.rs`). Its packet path is off from the night before its day to the day's end.
//! Neither network reorders a pair's packets, but where a pair changes from one to the other, packets can overtake
//! (`overtakings.rs`).
//!
//! Of a ToR are its VOQs, its uplink, its port of the circuit switch and its ports to the hosts, each in a row of its
//! own; of the packet switch the downlinks. Global are the schedule and what is measured ([`Racks`]).

use super::circuit::CircuitPort;
use super::core::{Core, HostLink, port_report, serializer};
use super::link_layer::LinkLayer;
use super::lossless::PausePoint;
use super::notifications::CongestionPoints;
use super::packet_network::{Downlink, Uplink};
use super::racks::Racks;
use super::reports::PacketSums;
use super::switching::{FabricKind, Switching};
use crate::causes::{Place, PlaceKind};
use crate::config::{BuildError, HostLinks, HybridConfig, WatchConfig};
use crate::conserve::Violations;
use crate::events::{EventKind, PendingEvent};
use crate::meter::Carrier;
use crate::report::{PauseReport, PortKind, PortReport, QueueReport};
use firstlight_net::{Line, PacketId, Serializer, SwitchPort};
use firstlight_units::{Span, Time};

/// The fabric, with links of one kind.
pub(super) struct HybridFabric<L: LinkLayer> {
    pub(super) racks: Racks,
    /// The ToRs' ports to the hosts.
    pub(super) host_ports: Vec<L::HostPort>,
    pub(super) uplinks: Vec<Uplink<L::Pausing>>,
    /// The packet switch's ports; none when the uplinks end at the other ToR.
    pub(super) downlinks: Vec<Downlink<L::Pausing>>,
    pub(super) circuits: Vec<CircuitPort<L::Pausing>>,
    pub(super) link_layer: L,
}

impl<L: LinkLayer> HybridFabric<L> {
    pub(super) fn build(config: &HybridConfig) -> Result<(Core, HybridFabric<L>), BuildError> {
        let (racks, hosts, scale) = (config.racks(), config.hosts(), config.time_scale);
        assert!(config.packet.switched || racks == 2, "a line without a switch joins two racks, not {racks}");
        let HostLinks { rate, receive_rate, delay } = config.links;
        let framing = config.interface.framing;
        let links: Vec<HostLink> = vec![(serializer("links.rate", rate, scale)?.framed(framing), delay); hosts];
        let mut core = Core::new(links, &config.interface, &sources::<L>(config, hosts), scale, config.seed)?;
        let stretched = |span: Span| span * u64::from(scale);
        let receiving = serializer("links.receive_rate", receive_rate, scale)?.framed(framing);
        let to_host = |_| L::host_port(receiving, stretched(delay + config.interface.stack_on_link()));
        let packet = serializer("packet.rate", config.packet.rate, scale)?;
        let circuit = serializer("circuit.rate", config.circuit.rate, scale)?;
        let line = |serializer: Serializer, delay: Span| move |_| Line::new(serializer.framed(framing), delay);
        let packet_line = line(packet, stretched(config.packet.delay));
        let circuit_line = line(circuit, stretched(config.circuit.delay));
        let downlinks = if config.packet.switched { racks } else { 0 };
        let hybrid = HybridFabric {
            link_layer: L::new(config, &mut core),
            racks: Racks::new(config, &packet),
            host_ports: (0..hosts).map(to_host).collect(),
            uplinks: (0..racks).map(packet_line).map(|line| Uplink::new(line, racks)).collect(),
            downlinks: (0..downlinks)
                .map(packet_line)
                .map(|line| Downlink::new(line, racks, config.packet.switch_queue))
                .collect(),
            circuits: (0..racks).map(circuit_line).map(CircuitPort::new).collect(),
        };
        core.schedule(Some(hybrid.racks.schedule.next_due()), EventKind::Calendar, 0);
        Ok((core, hybrid))
    }

    /// A packet arrives at its ToR from a host of the rack.
    #[inline]
    pub(super) fn on_host_packet(&mut self, core: &mut Core, id: PacketId) {
        let from = PausePoint::Nic(core.arena.get(id).src().index());
        self.enter_tor(core, id, Some(from));
    }

    /// A ToR has a packet of one of its hosts, or a packet that the ToR itself has made in a host's name.
    #[inline]
    pub(super) fn enter_tor(&mut self, core: &mut Core, id: PacketId, from: Option<PausePoint>) {
        let now = core.now;
        let packet = core.arena.get(id);
        let (src, dst) = (self.racks.rack(packet.src()), self.racks.rack(packet.dst()));
        if src == dst {
            self.racks.local += 1;
            let host = packet.dst().index();
            return self.send_to_host(core, host, id, from);
        }
        let index = self.racks.pair(src, dst);
        if self.segregate(core, id, src, dst) {
            return;
        }
        let packet = core.arena.get_mut(id);
        if !L::has_room(self, from, packet.size()) {
            self.racks.pairs[index].voq.refuse();
            return core.lose(id, EventKind::UplinkFree, index);
        }
        packet.set_queued_at(now);
        if self.racks.pairs[index].voq.offer(id, packet, now).is_err() {
            L::record_loss(self);
            return core.lose(id, EventKind::UplinkFree, index);
        }
        L::on_queued(self, core, id, from, PausePoint::Voq(src, dst));
        if !self.racks.points.is_empty() {
            self.sample_voq(core, index, id);
        }
        if self.circuits[src].is_up_to(dst) {
            return self.wake_circuit(core, src);
        }
        if self.racks.pairs[index].voq.len() == 1 {
            self.refresh(src, dst);
        }
        self.wake_uplink(core, src);
        L::record_head(self, core, PausePoint::Uplink(src));
    }

    /// A packet goes to a host of its rack. It arrived at the ToR from there, or the ToR itself made it.
    #[inline]
    pub(super) fn send_to_host(&mut self, core: &mut Core, host: usize, id: PacketId, from: Option<PausePoint>) {
        if L::has_room(self, from, core.arena.get(id).size()) {
            core.send(&mut self.host_ports, host, id);
            L::update_victims(self, core.now, PausePoint::HostPort(host));
            L::on_queued(self, core, id, from, PausePoint::HostPort(host));
        } else {
            self.host_ports[host].refuse(core.arena.get(id));
            core.lose(id, EventKind::Port, host);
        }
        if !self.racks.points.is_empty() {
            self.sample_host_port(core, host, id);
        }
    }

    /// A packet from `src` arrives at the destination's ToR.
    #[inline(never)]
    pub(super) fn on_rack_arrival(&mut self, core: &mut Core, id: PacketId, src: usize, carrier: Carrier) {
        let (host, dst) = self.racks.on_arrival(core, id, src, carrier);
        let from = match carrier {
            Carrier::Circuit => PausePoint::Circuit(dst),
            Carrier::Packet if self.downlinks.is_empty() => PausePoint::Uplink(src),
            Carrier::Packet => PausePoint::Downlink(dst),
        };
        self.send_to_host(core, host.index(), id, Some(from));
    }
}

impl<L: LinkLayer> Switching for HybridFabric<L> {
    #[inline]
    fn on_event(&mut self, core: &mut Core, event: PendingEvent) {
        L::before_event(self, core);
        let (kind, index) = (event.kind(), event.index());
        match kind {
            EventKind::Nic => L::on_nic(self, core, index),
            EventKind::Port => L::on_host_port(self, core, index),
            EventKind::UplinkFree => self.on_uplink_free(core, index),
            EventKind::Uplink => self.on_uplink_arrival(core, index),
            EventKind::DownlinkFree => self.on_downlink_free(core, index),
            EventKind::Downlink => self.on_downlink_arrival(core, index),
            EventKind::CircuitFree => self.on_circuit_free(core, index),
            EventKind::Circuit => self.on_circuit_arrival(core, index),
            EventKind::Calendar => self.on_calendar(core),
            EventKind::Sample => self.racks.on_sample(core),
            EventKind::Pacer => core.on_pacer(index),
            EventKind::Jitter => core.on_jitter(index),
            EventKind::Limiter => core.on_limiter(index),
            EventKind::Adapter => L::on_adapter(self, core, index),
            EventKind::Stack => core.on_stack(index),
            EventKind::Pause => L::on_pause_effect(self, core, index),
            EventKind::Timer
            | EventKind::Stop
            | EventKind::Probe
            | EventKind::Control
            | EventKind::Message
            | EventKind::Notice => {
                unreachable!("timers are the hosts'")
            }
        }
        L::after_event(self, core, kind);
    }

    fn pause_report(&self, core: &Core) -> Option<PauseReport> {
        L::pause_report(self, core)
    }

    fn pause_points(&self) -> (Vec<String>, bool) {
        L::point_names(self)
    }
}

impl<L: LinkLayer> FabricKind for HybridFabric<L> {
    fn run(&mut self, core: &mut Core, limit: Time, to_exit: bool) {
        core.run(self, limit, to_exit);
    }

    fn port_reports(&self, now: Time) -> Vec<PortReport> {
        let to_host = |(i, port)| port_report(PortKind::HostPort, format!("host{i}.port"), port, now);
        let mut reports: Vec<PortReport> = self.host_ports.iter().enumerate().map(to_host).collect();
        reports.extend(self.racks.voq_reports());
        for (src, uplink) in self.uplinks.iter().enumerate() {
            let offered = self.racks.sent_from(src, |pair| pair.packet_packets);
            let name = format!("uplink.{src}");
            reports.push(line_report(PortKind::Uplink, name, offered, &uplink.transmitter.line));
        }
        for (dst, downlink) in self.downlinks.iter().enumerate() {
            let name = format!("downlink.{dst}");
            let line = line_report(PortKind::Downlink, name, downlink.entered, &downlink.transmitter.line);
            let (held, peak_queue) = (line.held + downlink.waiting(), u64::from(downlink.peak));
            reports.push(PortReport { held, peak_queue, dropped: downlink.dropped, ..line });
        }
        for (src, circuit) in self.circuits.iter().enumerate() {
            let offered = self.racks.sent_from(src, |pair| pair.circuit_packets);
            let name = format!("circuit.{src}");
            reports.push(line_report(PortKind::Circuit, name, offered, &circuit.transmitter.line));
        }
        reports
    }

    fn places(&self, core: &Core) -> Vec<Place> {
        let to_host = |(host, port): (usize, &L::HostPort)| {
            let ((link, delay), stack) = (port.link(), core.stack_behind_ports());
            let place = Place::link(PlaceKind::Port, host, format!("host{host}.port"), link, delay - stack);
            Place { stack_after: stack, ..place }
        };
        let line = |kind, name: &'static str| {
            move |(rack, line): (usize, &Line)| {
                let (link, delay) = line.link();
                Place::link(kind, rack, format!("{name}.{rack}"), link, delay)
            }
        };
        let uplinks = self.uplinks.iter().map(|uplink| &uplink.transmitter.line);
        let downlinks = self.downlinks.iter().map(|downlink| &downlink.transmitter.line);
        let circuits = self.circuits.iter().map(|circuit| &circuit.transmitter.line);
        let mut places: Vec<Place> = self.host_ports.iter().enumerate().map(to_host).collect();
        places.extend(uplinks.enumerate().map(line(PlaceKind::Uplink, "uplink")));
        places.extend(downlinks.enumerate().map(line(PlaceKind::Downlink, "downlink")));
        places.extend(circuits.enumerate().map(line(PlaceKind::Circuit, "circuit")));
        places
    }

    fn points(&self) -> (Vec<String>, bool) {
        self.pause_points()
    }

    fn last_hop(&self) -> PortKind {
        PortKind::HostPort
    }

    fn check_switches(&self, sums: &PacketSums<'_>, violations: &mut Violations) {
        use PortKind::{Circuit, Downlink, HostNic, HostPort, Uplink, Voq};
        let Racks { local, notified_by_tor, notified_by_switch, .. } = self.racks;
        let (offered, delivered) = (|kinds: &[_]| sums.offered(kinds), |kinds: &[_]| sums.delivered(kinds));
        let from_hosts = delivered(&[HostNic]) + notified_by_tor;
        violations.check("tor", "from hosts and made for them = VOQs + local", from_hosts, offered(&[Voq]) + local);
        violations.check("tor", "VOQs = uplinks + circuits", delivered(&[Voq]), offered(&[Uplink, Circuit]));
        let last = if self.downlinks.is_empty() { Uplink } else { Downlink };
        let arrived = delivered(&[last, Circuit]) + sums.notified() - notified_by_tor - notified_by_switch;
        violations.check("tor", "to hosts = arrived + local + notifications", offered(&[HostPort]), arrived + local);
        if last == Downlink {
            let arrived = delivered(&[Uplink]) + notified_by_switch;
            violations.check("packet switch", "in = out", arrived, offered(&[Downlink]));
        }
    }

    fn congestion_points(&self) -> &CongestionPoints {
        &self.racks.points
    }

    fn pauses(&self, core: &Core) -> Option<PauseReport> {
        self.pause_report(core)
    }

    fn watch(&mut self, core: &mut Core, config: &WatchConfig) -> Result<(), BuildError> {
        self.racks.watch(core, config)
    }

    fn queue_reports(&self, now: Time, scale: u32) -> Vec<QueueReport> {
        self.racks.watched.as_ref().map_or(vec![], |watched| watched.reports(now, scale))
    }

    fn reset_measurements(&mut self, now: Time) {
        self.racks.reset_meter(now);
        self.racks.watched.iter_mut().for_each(|watched| watched.reset(now));
    }

    fn racks(&self) -> Option<&Racks> {
        Some(&self.racks)
    }

    fn racks_mut(&mut self) -> Option<&mut Racks> {
        Some(&mut self.racks)
    }
}

fn line_report(kind: PortKind, name: String, offered: u64, line: &Line) -> PortReport {
    let (delivered, held, hops) = (line.arrived(), line.held(), line.sent());
    PortReport { offered, delivered, held, hops, ..PortReport::of(kind, name) }
}

/// The sources of events that are a hybrid fabric's own.
fn sources<L: LinkLayer>(config: &HybridConfig, hosts: usize) -> Vec<(EventKind, usize)> {
    use EventKind::{Calendar, Circuit, CircuitFree, Downlink, DownlinkFree, Pause, Port, Uplink, UplinkFree};
    let mut sources = vec![(Port, hosts), (Calendar, 1), (Pause, L::pause_points(config))];
    let of_racks = [UplinkFree, Uplink, DownlinkFree, Downlink, CircuitFree, Circuit];
    sources.extend(of_racks.map(|kind| (kind, config.racks())));
    sources
}
