//! The racks of a hybrid fabric, and the state of each pair of racks: the VOQ, the schedule's state, and counters. None
//! of it depends on whether links can be paused.
//!
//! A ToR's state is contiguous: its VOQs are one row of the pairs. The schedule, which all racks follow, and the
//! measurement of one pair are global.

use super::adu_backlog::AduBacklog;
use super::core::{Core, check_range};
use super::notifications::CongestionPoints;
use super::overtakings::Overtakings;
use super::schedule::CircuitSchedule;
use super::segregation::Elephants;
use super::watched_voqs::{VoqPlace, WatchedVoqs};
use crate::config::{BuildError, HybridConfig, MeterConfig, WatchConfig};
use crate::events::EventKind;
use crate::meter::{Carrier, Meter, PairTotals};
use crate::notices::NoticeSchedule;
use crate::report::{MeterReport, PairReport, PortKind, PortReport};
use crate::series::Series;
use crate::stream::stream;
use firstlight_circuits::{Demand, RackId};
use firstlight_net::fabric::{mice_voq_name, voq_name};
use firstlight_net::{HostId, PacketId, QueueCounts, Serializer, TcpFlags, Voq};
use firstlight_units::{Bytes, Span, Time};
use rand_xoshiro::rand_core::RngCore;

/// A pair of racks: the VOQ at the source's ToR, and the pair's state in the schedule.
pub(super) struct RackPair {
    pub(super) voq: Voq,
    /// The VOQ of the packets that take the packet network only; `None` where routing is not segregated. Then `voq` is
    /// that of the elephants.
    pub(super) mice: Option<Box<Voq>>,
    /// Nights and days that keep the packet path off.
    pub(super) off: u16,
    /// Coming and present days for which the VOQ is large.
    pub(super) claims: u16,
    /// Coming and present days for which returning packets are marked.
    pub(super) marks: u16,
    overtakings: Overtakings,
    pub(super) circuit_packets: u64,
    pub(super) packet_packets: u64,
    circuit_bytes: u64,
    packet_bytes: u64,
}

/// The racks. Pairs are indexed by source * count + destination.
pub(super) struct Racks {
    pub(super) count: usize,
    /// The rack of each host.
    rack_of: Vec<u16>,
    pub(super) pairs: Vec<RackPair>,
    /// QCN's congestion points: those of the VOQs by pair, then those of the ports to hosts, then those of the packet
    /// switch's ports.
    pub(super) points: CongestionPoints,
    pub(super) schedule: CircuitSchedule,
    /// The counts by which elephants are distinguished from other flows; `None` where routing is not segregated.
    pub(super) elephants: Option<Elephants>,
    /// When hosts are notified of circuits, if they are.
    pub(super) notices: Option<NoticeSchedule>,
    meter: Option<Box<Meter>>,
    /// When the series takes its next sample.
    series_due: Option<Time>,
    pub(super) watched: Option<Box<WatchedVoqs>>,
    /// The fabric's configuration, if a control loop makes its weeks.
    pub(super) controlled: Option<Box<HybridConfig>>,
    /// Bytes that hosts have to send, if a control loop asks for them.
    pub(super) backlog: Option<Box<AduBacklog>>,
    /// Packets between hosts of one rack.
    pub(super) local: u64,
    /// Notifications that go from a ToR as a packet of its hosts would.
    pub(super) notified_by_tor: u64,
    /// Notifications that the packet switch has sent.
    pub(super) notified_by_switch: u64,
    /// Length of the week on the engine's clock.
    week: Span,
}

impl Racks {
    /// `packet` is the packet network's serialization.
    pub(super) fn new(config: &HybridConfig, packet: &Serializer) -> Self {
        let (count, hosts) = (config.racks(), config.hosts());
        let names = (0..count * count).map(move |pair| voq_name(pair / count, pair % count));
        let voq = |name: &str| {
            let seed = stream(config.seed, name, "marking").next_u64();
            Voq::new(&config.voq.discipline, packet, seed)
        };
        let rack_pair = |name: String| {
            let mice = config.tables.segregation.is_some().then(|| Box::new(voq(&mice_voq_name(&name))));
            RackPair::new(voq(&name), mice)
        };
        let points = names.clone().chain((0..hosts).map(|host| format!("host{host}.port")));
        let points = points.chain((0..count).map(|rack| format!("downlink.{rack}")));
        Racks {
            count,
            rack_of: (0..hosts).map(|host| (host / config.hosts_per_rack) as u16).collect(),
            pairs: names.map(rack_pair).collect(),
            points: CongestionPoints::new(config.interface.tables.qcn.as_ref(), config.seed, points),
            schedule: CircuitSchedule::new(config),
            elephants: config.tables.segregation.as_ref().map(Elephants::new),
            notices: NoticeSchedule::of(config),
            meter: None,
            series_due: None,
            watched: None,
            controlled: config.control.is_some().then(|| Box::new(config.clone())),
            backlog: None,
            local: 0,
            notified_by_tor: 0,
            notified_by_switch: 0,
            week: config.week.length() * u64::from(config.time_scale),
        }
    }

    #[inline]
    pub(super) fn pair(&self, src: usize, dst: usize) -> usize {
        src * self.count + dst
    }

    #[inline]
    pub(super) fn rack(&self, host: HostId) -> usize {
        usize::from(self.rack_of[host.index()])
    }

    /// The rack of each host.
    pub(super) fn of_hosts(&self) -> &[u16] {
        &self.rack_of
    }

    /// The congestion point of a ToR's port to a host.
    pub(super) fn host_point(&self, host: usize) -> usize {
        self.pairs.len() + host
    }

    /// The congestion point of the packet switch's port to a rack.
    pub(super) fn downlink_point(&self, rack: usize) -> usize {
        self.pairs.len() + self.rack_of.len() + rack
    }

    /// Takes the oldest packet of a pair's VOQ, to send it by `carrier`. Returns it with its size.
    #[inline(always)]
    pub(super) fn take(&mut self, core: &Core, pair: usize, carrier: Carrier) -> Option<(PacketId, u16)> {
        let state = &mut self.pairs[pair];
        let id = state.queue_mut(carrier).take(core.now)?;
        let packet = core.arena.get(id);
        let size = packet.size();
        let (packets, bytes) = match carrier {
            Carrier::Circuit => (&mut state.circuit_packets, &mut state.circuit_bytes),
            Carrier::Packet => (&mut state.packet_packets, &mut state.packet_bytes),
        };
        *packets += 1;
        *bytes += u64::from(size);
        state.overtakings.on_sent(carrier);
        if let Some(backlog) = &mut self.backlog {
            backlog.on_passed(pair, packet);
        }
        if let Some(watched) = &mut self.watched {
            watched.on_taken(pair, state.mice.is_some() && carrier == Carrier::Packet, packet, core);
        }
        Some((id, size))
    }

    /// A packet from `src` arrives at the ToR of its destination, which is returned with its rack.
    #[inline(always)]
    pub(super) fn on_arrival(
        &mut self,
        core: &mut Core,
        id: PacketId,
        src: usize,
        carrier: Carrier,
    ) -> (HostId, usize) {
        let packet = core.arena.get_mut(id);
        let host = packet.dst();
        let dst = self.rack(host);
        let (index, reverse) = (self.pair(src, dst), self.pair(dst, src));
        // Packets that the packet switch made itself have passed no VOQ, and were never queued there.
        if packet.queued_at() > Time::ZERO {
            self.pairs[index].overtakings.on_arrival(carrier);
        }
        if self.pairs[reverse].marks > 0
            && let Some(mut segment) = packet.tcp_mut()
        {
            segment.insert_flags(TcpFlags::ECE);
        }
        if let Some(meter) = &mut self.meter
            && meter.pair == (src, dst)
        {
            meter.on_arrival(packet, carrier, core.now);
        }
        (host, dst)
    }

    /// Bytes that wait in the VOQs.
    pub(super) fn voq_demand(&self) -> Demand {
        let mut demand = Demand::zero(self.count);
        for (pair, state) in self.pairs.iter().enumerate() {
            demand.add(rack_id(pair / self.count), rack_id(pair % self.count), state.voq.bytes().get());
        }
        demand
    }

    pub(super) fn set_meter(&mut self, core: &mut Core, config: &MeterConfig) -> Result<(), BuildError> {
        let (src, dst) = (config.pair.0.index(), config.pair.1.index());
        check_range("meter.pair", src.max(dst), 0, self.count - 1)?;
        if src == dst {
            return Err(BuildError::field("meter.pair", "a rack has no VOQ to itself: name two racks"));
        }
        let scale = core.scale;
        let series = match &config.series {
            None => None,
            Some(series) if series.every.is_zero() || series.fold == 0 => {
                let problem = "samples need a time between them and a fold of at least a week";
                return Err(BuildError::field("meter.series", problem));
            }
            Some(series) => {
                self.series_due = Some(Time::ZERO);
                self.schedule_sample(core);
                Some(Series::new(series.every * u64::from(scale), self.week * u64::from(series.fold)))
            }
        };
        self.meter = Some(Box::new(Meter::new((src, dst), series, scale)));
        Ok(())
    }

    fn metered_totals(&self, pair: (usize, usize)) -> PairTotals {
        let pair = &self.pairs[self.pair(pair.0, pair.1)];
        let QueueCounts { dropped, dropped_by_resizing, .. } = pair.counts();
        PairTotals { drops: dropped + dropped_by_resizing, overtakings: pair.overtakings.by_packet_network }
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

    /// Watches VOQs from now on.
    pub(super) fn watch(&mut self, core: &mut Core, config: &WatchConfig) -> Result<(), BuildError> {
        let places = self.voqs().map(|(name, place, _)| (name, place)).collect();
        let watched = WatchedVoqs::new(config, places, core.scale)?;
        self.watched = Some(Box::new(watched));
        self.schedule_sample(core);
        Ok(())
    }

    pub(super) fn on_sample(&mut self, core: &mut Core) {
        let (now, scale) = (core.now, core.scale);
        if self.series_due == Some(now)
            && let Some(meter) = &mut self.meter
        {
            let voq = self.pairs[meter.pair.0 * self.count + meter.pair.1].waiting();
            self.series_due = meter.series.as_mut().map(|series| series.sample(now, voq));
        }
        if let Some(watched) = &mut self.watched {
            watched.sample(&self.pairs, now, scale);
        }
        self.schedule_sample(core);
    }

    /// One event samples for the series and for watched VOQs, whichever is due first.
    fn schedule_sample(&self, core: &mut Core) {
        let watched = self.watched.as_ref().and_then(|watched| watched.due);
        core.reschedule(self.series_due.into_iter().chain(watched).min(), EventKind::Sample, 0);
    }

    /// All pairs of two racks, in order.
    fn pairs_of_two(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.count).flat_map(|src| (0..self.count).map(move |dst| (src, dst))).filter(|(src, dst)| src != dst)
    }

    /// Packets that a rack has sent over one of its lines.
    pub(super) fn sent_from(&self, src: usize, count: fn(&RackPair) -> u64) -> u64 {
        self.pairs[self.pair(src, 0)..][..self.count].iter().map(count).sum()
    }

    pub(super) fn pair_reports(&self) -> Vec<PairReport> {
        let report = |(src, dst): (usize, usize)| {
            let pair = &self.pairs[self.pair(src, dst)];
            let counts = pair.counts();
            PairReport {
                src: rack_id(src),
                dst: rack_id(dst),
                offered: counts.offered,
                dropped_full: counts.dropped,
                dropped_shrink: counts.dropped_by_resizing,
                marked: counts.marked,
                circuit_packets: pair.circuit_packets,
                packet_packets: pair.packet_packets,
                circuit_bytes: pair.circuit_bytes,
                packet_bytes: pair.packet_bytes,
                overtakings: pair.overtakings.by_packet_network,
                circuit_overtakings: pair.overtakings.by_circuit,
                peak: u64::from(counts.peak),
                held: u64::from(pair.waiting()),
            }
        };
        self.pairs_of_two().map(report).collect()
    }

    /// All VOQs between two racks, each with its name and place.
    fn voqs(&self) -> impl Iterator<Item = (String, VoqPlace, &Voq)> {
        self.pairs_of_two().flat_map(|(src, dst)| {
            let (index, name) = (self.pair(src, dst), voq_name(src, dst));
            let RackPair { voq, mice, .. } = &self.pairs[index];
            let mice = mice.as_deref().map(|mice| (mice_voq_name(&name), (index, true), mice));
            [(name, (index, false), voq)].into_iter().chain(mice)
        })
    }

    pub(super) fn voq_reports(&self) -> impl Iterator<Item = PortReport> + '_ {
        self.voqs().map(|(name, _, voq)| voq_report(voq, name))
    }
}

impl RackPair {
    fn new(voq: Voq, mice: Option<Box<Voq>>) -> Self {
        RackPair {
            voq,
            mice,
            off: 0,
            claims: 0,
            marks: 0,
            overtakings: Overtakings::default(),
            circuit_packets: 0,
            packet_packets: 0,
            circuit_bytes: 0,
            packet_bytes: 0,
        }
    }

    /// The VOQ that the packet network serves.
    #[inline]
    pub(super) fn packet_queue(&self) -> &Voq {
        self.mice.as_deref().unwrap_or(&self.voq)
    }

    /// The VOQ that this network serves.
    #[inline]
    fn queue_mut(&mut self, carrier: Carrier) -> &mut Voq {
        match (&mut self.mice, carrier) {
            (Some(mice), Carrier::Packet) => mice,
            _ => &mut self.voq,
        }
    }

    /// All VOQs of the pair.
    fn voqs(&self) -> impl Iterator<Item = &Voq> {
        [&self.voq].into_iter().chain(self.mice.as_deref())
    }

    /// Packets that wait.
    fn waiting(&self) -> u32 {
        self.voqs().map(Voq::len).sum()
    }

    /// Bytes that wait.
    pub(super) fn waiting_bytes(&self) -> Bytes {
        Bytes::new(self.voqs().map(|voq| voq.bytes().get()).sum())
    }

    /// The sum of the counters of all VOQs of the pair; the peak is that of the longest VOQ.
    fn counts(&self) -> QueueCounts {
        let mut sum = self.voq.counts();
        if let Some(mice) = &self.mice {
            let QueueCounts { offered, sent, dropped, dropped_by_resizing, marked, peak } = mice.counts();
            sum.offered += offered;
            sum.dropped += dropped;
            sum.dropped_by_resizing += dropped_by_resizing;
            sum.marked += marked;
            sum.sent += sent;
            sum.peak = sum.peak.max(peak);
        }
        sum
    }
}

/// The name of the VOQ of mice beside that of elephants, which has this name.
fn voq_report(voq: &Voq, name: String) -> PortReport {
    let counts = voq.counts();
    PortReport {
        offered: counts.offered,
        delivered: counts.sent,
        dropped: counts.dropped + counts.dropped_by_resizing,
        held: u64::from(voq.len()),
        marked: counts.marked,
        peak_queue: u64::from(counts.peak),
        ..PortReport::of(PortKind::Voq, name)
    }
}

/// A rack's number as the type of crate `circuits`.
pub(super) fn rack_id(index: usize) -> RackId {
    RackId(index as u16)
}
