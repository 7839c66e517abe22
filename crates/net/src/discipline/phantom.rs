//! The phantom queue of HULL: marks that show utilization before there is a queue.
//!
//! Alizadeh et al., "Less is More: Trading a little Bandwidth for Ultra-Low Latency in the Data Center", NSDI'12,
//! section 3: a counter of bytes at the link's exit, grown by each packet that leaves, drained at gamma times the
//! link's rate, marks the packets that leave while it is above a threshold. It holds no packets. The constants given as
//! HULL's are quoted at second hand: they have not been compared with the paper's own text.
//!
//! The counter is compared before the packet's own bytes are added: otherwise a threshold of 1 kB would mark every
//! full-sized packet. The state is the moment at which the counter will have drained. The bytes are the time left until
//! that moment at the slower rate, so that rounding errors do not accumulate. The counter changes in the order of
//! departures. A FIFO port knows a packet's departure when the packet arrives, and computes the counter then.

use crate::Serializer;
use crate::discipline::{Aqm, AqmConfig};
use firstlight_units::{Bytes, Span, Time};

/// HULL's phantom queue (NSDI'12), instead of a threshold. The table's presence turns it on.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct PhantomConfig {
    /// gamma: the share of the link's rate at which the phantom queue drains.
    #[cfg_attr(feature = "spec", schemars(range(min = 0.01, max = 1)))]
    pub drain: f64,
    /// Mark packets that leave while the phantom queue is above this.
    pub threshold: Bytes,
}

impl Default for PhantomConfig {
    fn default() -> Self {
        PhantomConfig::HULL_10G
    }
}

impl PhantomConfig {
    /// HULL at 10 Gb/s.
    pub const HULL_10G: PhantomConfig = PhantomConfig { drain: 0.95, threshold: Bytes::new(6000) };
}

impl AqmConfig for PhantomConfig {}

/// A phantom queue at a link's exit.
#[derive(Clone, Debug)]
pub(crate) struct Phantom {
    /// When the counter becomes zero, or became zero.
    empty: Time,
    /// The serializer of the slower link.
    serializer: Serializer,
    threshold: Span,
}

impl Phantom {
    pub(crate) fn new(config: &PhantomConfig, serializer: &Serializer, _seed: u64) -> Self {
        let serializer = serializer.slowed(config.drain);
        Phantom { empty: Time::ZERO, serializer, threshold: serializer.time_of(config.threshold) }
    }
}

impl Aqm for Phantom {
    /// Whether the counter is above the threshold, so that the packet is to be marked.
    fn depart(&mut self, size: u16, departure: Time) -> bool {
        let above = self.empty.saturating_since(departure) > self.threshold;
        self.empty = self.empty.max(departure) + self.serializer.time(size);
        above
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{Policer, Verdict};
    use crate::{Discipline, Ecn};
    use firstlight_units::Rate;

    /// Marks among `packets` of 1,000 bytes that leave every `gap_ns` at 10 Gb/s, and the first marked one.
    fn marks(config: PhantomConfig, gap_ns: u64, packets: u64) -> (u64, Option<u64>) {
        let mut phantom = Phantom::new(&config, &Serializer::new(Rate::from_gbps(10), 1), 0);
        let at = |n: u64| Time::ZERO + Span::from_ns(n * gap_ns);
        let marked: Vec<u64> = (0..packets).filter(|n| phantom.depart(1000, at(*n))).collect();
        (marked.len() as u64, marked.first().copied())
    }

    /// At a load rho above gamma the n-th packet finds n (1 - gamma / rho) packets, and all are marked once that
    /// exceeds the threshold; below gamma there is nothing to find.
    #[test]
    fn marks_all_above_the_drain_rate_and_none_below() {
        let config = PhantomConfig { drain: 0.8, threshold: Bytes::new(6000) };
        // 800 ns per packet is the full rate: n * 0.2 * 1000 > 6000 from n = 31 on.
        assert_eq!(marks(config, 800, 1000), (1000 - 31, Some(31)));
        // rho = 0.9, so 888.9 ns; in whole ns 0.899888: n * (1 - 0.8 / rho) > 6 from n = 55 on.
        assert_eq!(marks(config, 889, 1000), (1000 - 55, Some(55)));
        // rho = 0.8 exactly: every packet finds the counter just drained.
        assert_eq!(marks(config, 1000, 1000), (0, None));
        assert_eq!(marks(config, 1600, 1000), (0, None));
    }

    /// Bursts of 50 packets at the full rate, with pauses in which the counter drains: the same packets of each burst.
    #[test]
    fn marks_the_tail_of_each_burst() {
        let config = PhantomConfig { drain: 0.8, threshold: Bytes::new(6000) };
        let mut phantom = Phantom::new(&config, &Serializer::new(Rate::from_gbps(10), 1), 0);
        let mut marked = 0;
        for burst in 0..20 {
            let start = Time::ZERO + Span::from_us(burst * 60);
            for n in 0..50 {
                marked += u32::from(phantom.depart(1000, start + Span::from_ns(n * 800)));
            }
        }
        assert_eq!(marked, 20 * (50 - 31));
    }

    #[test]
    fn packets_without_ecn_fill_it_but_are_not_marked() {
        let serializer = Serializer::new(Rate::from_gbps(10), 1);
        let mut policer = Policer::new(&Discipline::phantom(PhantomConfig::HULL_10G), &serializer, 0);
        for _ in 0..10 {
            assert_eq!(policer.depart(Ecn::NotEct, 1500, Time::ZERO), Verdict::Pass);
        }
        assert_eq!(policer.depart(Ecn::Ect1, 1500, Time::ZERO), Verdict::Mark);
    }
}
