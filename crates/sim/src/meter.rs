//! Measures one pair of racks: latency and payload per network, overtakings, the folded series.
//!
//! Latency counts from arrival at the ToR's VOQ to arrival at the destination's ToR, data packets only, in the fabric's
//! own time: Etalon's definition.

use crate::report::{MeterReport, NetworkReport};
use crate::series::Series;
use firstlight_net::Packet;
use firstlight_units::{Span, Time};
use hdrhistogram::Histogram;

/// The network that carries a packet between racks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carrier {
    /// The circuit switch.
    Circuit,
    /// The packet network.
    Packet,
}

#[derive(Clone, Debug)]
struct Tally {
    packets: u64,
    payload: u64,
    latency: Histogram<u64>,
    longest: Span,
}

impl Tally {
    fn new() -> Self {
        let latency = Histogram::new(3).expect("three digits are a legal precision");
        Tally { packets: 0, payload: 0, latency, longest: Span::ZERO }
    }

    fn add(&mut self, packet: &Packet, latency: Span, scale: u64) {
        self.packets += 1;
        self.payload += u64::from(packet.payload());
        self.longest = self.longest.max(latency);
        self.latency.record(latency.as_ps() / scale / 1000).expect("the histogram grows as needed");
    }

    fn report(&self, scale: u64) -> NetworkReport {
        NetworkReport {
            packets: self.packets,
            payload: self.payload,
            latency: self.latency.clone(),
            longest: self.longest / scale,
        }
    }
}

/// Counters of the pair at the last reset, to be subtracted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PairTotals {
    pub(crate) drops: u64,
    pub(crate) overtakings: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// Source and destination as rack indices.
    pub(crate) pair: (usize, usize),
    pub(crate) series: Option<Series>,
    scale: u32,
    since: Time,
    before: PairTotals,
    circuit: Tally,
    packet: Tally,
}

impl Meter {
    pub(crate) fn new(pair: (usize, usize), series: Option<Series>, scale: u32) -> Self {
        let (since, before) = (Time::ZERO, PairTotals::default());
        Meter { pair, series, scale, since, before, circuit: Tally::new(), packet: Tally::new() }
    }

    /// A packet of the pair arrived at the destination's ToR.
    pub(crate) fn on_arrival(&mut self, packet: &Packet, carrier: Carrier, now: Time) {
        if let Some(series) = &mut self.series {
            series.on_arrival(packet);
        }
        if packet.is_data() {
            let latency = now - packet.queued_at();
            let tally = match carrier {
                Carrier::Circuit => &mut self.circuit,
                Carrier::Packet => &mut self.packet,
            };
            tally.add(packet, latency, u64::from(self.scale));
        }
    }

    pub(crate) fn reset(&mut self, now: Time, totals: PairTotals) {
        self.since = now;
        self.before = totals;
        self.circuit = Tally::new();
        self.packet = Tally::new();
        if let Some(series) = &mut self.series {
            series.reset(now);
        }
    }

    pub(crate) fn report(&self, now: Time, totals: PairTotals) -> MeterReport {
        let scale = u64::from(self.scale);
        MeterReport {
            elapsed: (now - self.since) / scale,
            circuit: self.circuit.report(scale),
            packet: self.packet.report(scale),
            voq_drops: totals.drops - self.before.drops,
            overtakings: totals.overtakings - self.before.overtakings,
            series: self.series.as_ref().map(|series| series.report(now, self.scale)),
        }
    }
}
