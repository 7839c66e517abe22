//! The hybrid fabric of Etalon (NSDI'20, section 2): racks whose ToRs reach each other over a packet network and over
//! a circuit switch that realizes one matching at a time.
//!
//! A ToR keeps one VOQ per destination rack. Routing is not segregated: a pair of racks uses the circuit or the packet
//! network, never both. Its packet path is off from the night before its day to the day's end. Neither network
//! reorders a pair's packets, but where a pair changes from one to the other, packets can overtake; `order.rs` counts.

use super::announced::Announced;
use super::circuit::CircuitPort;
use super::core::{Core, Shape, check_range, serializer};
use super::lossless::{Pauses, Place};
use super::notifications::Points;
use super::order::Order;
use super::packet_network::{Downlink, Uplink};
use super::schedule::Schedule;
use crate::config::{ConfigError, HostLinks, HybridConfig, MeterConfig, VoqConfig};
use crate::events::{Event, Kind};
use crate::meter::{Meter, Network, PairTotals};
use crate::report::MeterReport;
use crate::series::Series;
use crate::stream::stream;
use firstlight_circuits::Demand;
use firstlight_net::{Discipline, FifoPort, HostId, Line, PacketId, RedConfig, Serializer, TcpFlags, Voq, VoqLimits};
use firstlight_units::{Span, Time};
use rand_xoshiro::rand_core::RngCore;

/// A pair of racks: the VOQ at the source's ToR, and what the schedule says about it.
pub(super) struct Pair {
    pub(super) voq: Voq,
    /// Nights and days that keep the packet path off.
    pub(super) off: u16,
    /// Coming and present days that want the VOQ large.
    pub(super) claims: u16,
    /// Coming and present days that want returning packets marked.
    pub(super) marks: u16,
    pub(super) order: Order,
    pub(super) circuit_packets: u64,
    pub(super) packet_packets: u64,
    pub(super) circuit_bytes: u64,
    pub(super) packet_bytes: u64,
}

/// The racks and all that joins them. Pairs are indexed by source * racks + destination.
pub(super) struct Hybrid {
    pub(super) racks: usize,
    /// The ToRs' ports to the hosts; none when links can be paused, which have others.
    pub(super) host_ports: Vec<FifoPort>,
    /// What is needed to pause links, if they can be.
    pub(super) pauses: Option<Box<Pauses>>,
    /// The rack of each host.
    rack_of: Vec<u16>,
    pub(super) pairs: Vec<Pair>,
    /// QCN's congestion points.
    pub(super) points: Points,
    pub(super) uplinks: Vec<Uplink>,
    /// None when the uplinks end at the other ToR.
    pub(super) downlinks: Vec<Downlink>,
    pub(super) circuits: Vec<CircuitPort>,
    pub(super) schedule: Schedule,
    pub(super) meter: Option<Box<Meter>>,
    /// What it was built of, when a control loop makes its weeks.
    pub(super) controlled: Option<Box<HybridConfig>>,
    /// What hosts have said that they have to send, when somebody asks for it.
    pub(super) announced: Option<Box<Announced>>,
    /// Packets between hosts of one rack.
    pub(super) local: u64,
    /// Length of the week on the engine's clock.
    week: Span,
}

impl Hybrid {
    pub(super) fn build(config: &HybridConfig) -> Result<(Core, Hybrid), ConfigError> {
        check(config)?;
        let (racks, scale) = (config.racks, config.time_scale);
        let hosts = racks * config.hosts_per_rack;
        let HostLinks { rate, receive_rate, delay } = config.links;
        let sending = serializer("hosts.rate", rate, scale)?;
        let links = vec![(sending, delay); hosts];
        let mut core = Core::new(links, &config.interface, &sources(config, hosts), scale, config.seed)?;
        let stretched = |span: Span| span * u64::from(scale);
        let receiving = serializer("hosts.receive_rate", receive_rate, scale)?;
        let to_host =
            FifoPort::new(receiving, stretched(delay + config.interface.stack_on_link()), &Discipline::default(), 0);
        let packet = serializer("packet.rate", config.packet.rate, scale)?;
        let voqs = voqs(config, &packet);
        let packet = Line::new(packet, stretched(config.packet.delay));
        let circuit = serializer("circuit.rate", config.circuit.rate, scale)?;
        let circuit = Line::new(circuit, stretched(config.circuit.delay));
        let downlinks = if config.packet.switched { racks } else { 0 };
        let pauses = Pauses::build(config, &mut core);
        let hybrid = Hybrid {
            racks,
            host_ports: vec![to_host; if pauses.is_some() { 0 } else { hosts }],
            pauses,
            rack_of: (0..hosts).map(|host| (host / config.hosts_per_rack) as u16).collect(),
            pairs: voqs.map(Pair::new).collect(),
            points: Points::new(config),
            uplinks: (0..racks).map(|_| Uplink::new(packet.clone(), racks)).collect(),
            downlinks: (0..downlinks)
                .map(|_| Downlink::new(packet.clone(), racks, config.packet.switch_queue))
                .collect(),
            circuits: (0..racks).map(|_| CircuitPort::new(circuit.clone())).collect(),
            schedule: Schedule::new(config),
            meter: None,
            controlled: config.control.is_some().then(|| Box::new(config.clone())),
            announced: None,
            local: 0,
            week: stretched(config.week.length()),
        };
        core.schedule(Some(hybrid.schedule.next_due()), Kind::Calendar, 0);
        Ok((core, hybrid))
    }

    #[inline]
    pub(super) fn pair(&self, src: usize, dst: usize) -> usize {
        src * self.racks + dst
    }

    #[inline]
    pub(super) fn rack(&self, host: HostId) -> usize {
        usize::from(self.rack_of[host.index()])
    }

    /// A packet arrives at its ToR from a host of the rack.
    #[inline]
    pub(super) fn on_host_packet<const P: bool>(&mut self, core: &mut Core, id: PacketId) {
        let from = Some(Place::Nic(core.arena.get(id).src().index()));
        self.enter_tor::<P>(core, id, from);
    }

    /// A packet of one of its hosts is at a ToR, or one that was made there in a host's name.
    #[inline]
    pub(super) fn enter_tor<const P: bool>(&mut self, core: &mut Core, id: PacketId, from: Option<Place>) {
        let now = core.now;
        let packet = core.arena.get_mut(id);
        let (src, dst) = (self.rack(packet.src()), self.rack(packet.dst()));
        if src == dst {
            self.local += 1;
            let host = packet.dst().index();
            return self.send_to_host::<P>(core, host, id, from);
        }
        let index = self.pair(src, dst);
        if P && from.is_some_and(|from| !self.has_room(from, packet.size())) {
            self.pairs[index].voq.refuse();
            return core.lose(id, Kind::UplinkFree, index);
        }
        let pair = &mut self.pairs[index];
        packet.set_queued_at(now);
        if !pair.voq.offer(id, packet, now) {
            if P {
                self.note_loss();
            }
            return core.lose(id, Kind::UplinkFree, index);
        }
        if P {
            self.hold(core, id, from, Place::Voq(src, dst));
        }
        if !self.points.is_empty() {
            self.on_queued::<P>(core, index, id);
        }
        if self.circuits[src].is_up_to(dst) {
            return self.wake_circuit::<P>(core, src);
        }
        if self.pairs[index].voq.len() == 1 {
            self.refresh(src, dst);
        }
        self.wake_uplink::<P>(core, src);
        if P {
            self.note_head(core, Place::Uplink(src), now);
        }
    }

    /// A packet goes to a host of its rack. It came to the ToR from there, or was made here.
    #[inline]
    pub(super) fn send_to_host<const P: bool>(
        &mut self,
        core: &mut Core,
        host: usize,
        id: PacketId,
        from: Option<Place>,
    ) {
        if P {
            self.send_pausable(core, host, id, from);
        } else {
            core.send(&mut self.host_ports, host, id);
        }
        if !self.points.is_empty() {
            self.on_queued_for_host::<P>(core, host, id);
        }
    }

    /// A packet from `src` arrives at the destination's ToR.
    #[inline]
    pub(super) fn on_rack_arrival<const P: bool>(
        &mut self,
        core: &mut Core,
        id: PacketId,
        src: usize,
        network: Network,
    ) {
        let packet = core.arena.get_mut(id);
        let dst = self.rack(packet.dst());
        let (index, back) = (self.pair(src, dst), self.pair(dst, src));
        // What the packet switch made itself has passed no VOQ, and has no stamp.
        if packet.queued_at() > Time::ZERO {
            self.pairs[index].order.on_arrival(network);
        }
        if self.pairs[back].marks > 0
            && let Some(mut segment) = packet.tcp_mut()
        {
            segment.insert_flags(TcpFlags::ECE);
        }
        if let Some(meter) = &mut self.meter
            && meter.pair == (src, dst)
        {
            meter.on_arrival(packet, network, core.now);
        }
        let host = packet.dst().index();
        let from = match network {
            Network::Circuit => Place::Circuit(dst),
            Network::Packet if self.downlinks.is_empty() => Place::Uplink(src),
            Network::Packet => Place::Downlink(dst),
        };
        self.send_to_host::<P>(core, host, id, Some(from));
    }

    pub(super) fn set_meter(&mut self, core: &mut Core, config: &MeterConfig) -> Result<(), ConfigError> {
        let (src, dst) = (config.pair.0.index(), config.pair.1.index());
        check_range("measure.pair", src.max(dst), 0, self.racks - 1)?;
        if src == dst {
            return Err(ConfigError::Value { key: "measure.pair", problem: "a rack has no VOQ to itself".into() });
        }
        let scale = core.scale;
        let series = match &config.series {
            None => None,
            Some(series) if series.every.is_zero() || series.fold == 0 => {
                let problem = "samples need a time between them and a fold of at least a week".into();
                return Err(ConfigError::Value { key: "measure.series", problem });
            }
            Some(series) => {
                core.reschedule(Some(Time::ZERO), Kind::Sample, 0);
                Some(Series::new(series.every * u64::from(scale), self.week * u64::from(series.fold)))
            }
        };
        self.meter = Some(Box::new(Meter::new((src, dst), series, scale)));
        Ok(())
    }

    fn metered_totals(&self, pair: (usize, usize)) -> PairTotals {
        let pair = &self.pairs[self.pair(pair.0, pair.1)];
        let counts = pair.voq.counts();
        PairTotals { drops: counts.dropped_full + counts.dropped_shrink, overtakings: pair.order.packet_overtakings }
    }

    pub(super) fn reset_meter(&mut self, now: Time) {
        if let Some(pair) = self.meter.as_ref().map(|meter| meter.pair) {
            let totals = self.metered_totals(pair);
            self.meter.iter_mut().for_each(|meter| meter.reset(now, totals));
        }
    }

    pub(super) fn meter_report(&self, now: Time) -> Option<MeterReport> {
        self.meter.as_ref().map(|meter| meter.report(now, self.metered_totals(meter.pair)))
    }

    fn on_sample(&mut self, core: &mut Core) {
        let Some(meter) = self.meter.as_mut() else { return };
        let voq = self.pairs[meter.pair.0 * self.racks + meter.pair.1].voq.len();
        let next = meter.series.as_mut().map(|series| series.sample(core.now, voq));
        core.reschedule(next, Kind::Sample, 0);
    }
}

impl Shape for Hybrid {
    #[inline]
    fn on_event(&mut self, core: &mut Core, event: Event) {
        self.on::<false>(core, event);
    }
}

impl Hybrid {
    /// Carries out one event, where links can be paused (`P`) or not.
    #[inline]
    pub(super) fn on<const P: bool>(&mut self, core: &mut Core, event: Event) {
        let (kind, index) = (event.kind(), event.index());
        match kind {
            Kind::Nic => {
                if let Some(id) = core.on_nic_arrival(index) {
                    self.on_host_packet::<P>(core, id);
                }
            }
            Kind::Port => {
                if let Some(id) = core.step(&mut self.host_ports[index], index) {
                    core.exit(id, HostId(index as u16));
                }
            }
            Kind::UplinkFree => self.on_uplink_free::<P>(core, index),
            Kind::Uplink => self.on_uplink_arrival::<P>(core, index),
            Kind::DownlinkFree => self.on_downlink_free::<P>(core, index),
            Kind::Downlink => self.on_downlink_arrival::<P>(core, index),
            Kind::CircuitFree => self.on_circuit_free::<P>(core, index),
            Kind::Circuit => self.on_circuit_arrival::<P>(core, index),
            Kind::Calendar => self.on_calendar::<P>(core),
            Kind::Sample => self.on_sample(core),
            Kind::Pacer => core.on_pacer(index),
            Kind::Limiter => core.on_limiter(index),
            Kind::Adapter => core.on_adapter(index),
            Kind::Stack => core.on_stack(index),
            Kind::Timer | Kind::Stop | Kind::Probe | Kind::Control | Kind::Message | Kind::Pause => {
                unreachable!("timers are the hosts'")
            }
        }
    }
}

/// The sources of events that are a hybrid fabric's own.
fn sources(config: &HybridConfig, hosts: usize) -> Vec<(Kind, usize)> {
    let of_racks =
        [Kind::UplinkFree, Kind::Uplink, Kind::DownlinkFree, Kind::Downlink, Kind::CircuitFree, Kind::Circuit];
    let mut sources = vec![(Kind::Port, hosts), (Kind::Calendar, 1)];
    sources.extend(of_racks.map(|kind| (kind, config.racks)));
    sources.push((Kind::Pause, Pauses::count_links(config)));
    sources
}

impl Pair {
    fn new(voq: Voq) -> Self {
        Pair {
            voq,
            off: 0,
            claims: 0,
            marks: 0,
            order: Order::default(),
            circuit_packets: 0,
            packet_packets: 0,
            circuit_bytes: 0,
            packet_bytes: 0,
        }
    }
}

/// The VOQs of all pairs of racks; `packet` is the packet network's serialization.
fn voqs(config: &HybridConfig, packet: &Serializer) -> impl Iterator<Item = Voq> {
    let voq = |pair: usize| {
        let voq = Voq::new(small(&config.voq));
        let Some(red) = &config.voq.red else { return voq };
        let name = format!("voq.{}.{}", pair / config.racks, pair % config.racks);
        voq.with_red(red, packet, stream(config.seed, &name, "marking").next_u64())
    };
    (0..config.racks * config.racks).map(voq)
}

/// The limits of a VOQ that no day claims.
pub(super) fn small(config: &VoqConfig) -> VoqLimits {
    VoqLimits { capacity: config.small, ecn: config.ecn_small }
}

fn check(config: &HybridConfig) -> Result<(), ConfigError> {
    let fail = |key, problem: String| Err(ConfigError::Value { key, problem });
    check_range("fabric.racks", config.racks, 2, 1 << 12)?;
    check_range("fabric.hosts_per_rack", config.hosts_per_rack, 1, 1 << 16)?;
    check_range("fabric.hosts_per_rack", config.racks * config.hosts_per_rack, 1, 1 << 16)?;
    check_range("packet.switch_queue", config.packet.switch_queue as usize, 1, 1 << 20)?;
    let most_packets = if config.pfc.is_some() { u32::MAX as usize } else { 1 << 24 };
    check_range("voq.small", config.voq.small as usize, 1, most_packets)?;
    if config.week.racks() != config.racks {
        return fail("schedule", format!("it is of {} racks, the fabric has {}", config.week.racks(), config.racks));
    }
    if let Some(control) = &config.control
        && let Err(problem) = control.scheduler.schedule(&Demand::zero(config.racks), &config.frame(control))
    {
        return fail("schedule.week", problem.to_string());
    }
    if !config.packet.switched && config.racks != 2 {
        return fail("packet.switched", format!("a line without a switch joins 2 racks, not {}", config.racks));
    }
    let week = config.week.length();
    if let Some(Err(error)) = config.voq.red.as_ref().map(RedConfig::check) {
        return fail("voq.red", error.to_string());
    }
    if let Some(resize) = &config.voq.resize {
        check_range("voq.large", resize.large as usize, config.voq.small as usize, 1 << 24)?;
        if resize.advance > week {
            return fail("voq.advance", format!("{} is longer than the week of {week}", resize.advance));
        }
    }
    match config.marks {
        Some(advance) if advance > week => {
            fail("marks.advance", format!("{advance} is longer than the week of {week}"))
        }
        _ => Ok(()),
    }
}
