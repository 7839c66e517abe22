//! RED: random early detection on the average queue.
//!
//! Floyd & Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN 1(4), 1993: the average
//! and its correction for idle times (sections 4 and 11: after m packets' time of idleness it is multiplied by
//! (1 - w)^m), the probability p_b, and the spreading p_a = p_b / (1 - count p_b) (section 7). Gentle: beyond max_th the
//! probability rises from max_p to 1 at twice max_th (Floyd, "Recommendations on using the gentle variant of RED", 2000).
//! With ECN a packet is marked where it would be dropped, but beyond the upper threshold (twice max_th when gentle) it is
//! dropped all the same, as RFC 3168, section 7, recommends. [`Drops`] has two other ways: to mark it there too, and to drop
//! nothing at all, as switches do in classes that may not lose: what cannot be marked is queued like any other (Linux calls this
//! RED's ECN nodrop mode, and Mellanox's switches congestion control by ECN alone).
//!
//! Choices: `count` is the number of packets since the last mark that were not marked, as section 7 defines it, so the
//! gap between marks is uniform on 1..=1/p_b; the pseudo-code of Fig. 2 is one ahead after a mark. m is rounded down. In
//! bytes, p_b does not depend on the packet's size (RFC 7567, section 4.4, advises against it). The average is updated by
//! every packet that comes, dropped or not.

use crate::discipline::{DisciplineError, QueueState, Verdict, ensure};
use crate::{Ecn, Serializer};
use firstlight_units::{Bytes, Span};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// The two thresholds of the average queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Band {
    /// In packets that wait.
    Packets {
        /// No marks up to here.
        min: u32,
        /// The upper threshold.
        max: u32,
    },
    /// In bytes that are not yet sent.
    Bytes {
        /// No marks up to here.
        min: Bytes,
        /// The upper threshold.
        max: Bytes,
    },
}

/// Which of the packets that RED chooses are dropped; the others are marked if they can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Drops {
    /// Those that are not ECN-capable, and all beyond the upper threshold.
    #[default]
    Beyond,
    /// Those that are not ECN-capable.
    Unmarkable,
    /// None.
    Nothing,
}

/// Parameters of RED.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedConfig {
    /// min_th and max_th; where they are equal there is only below and beyond.
    pub band: Band,
    /// max_p: the probability p_b where the average reaches max_th; above 0, at most 1.
    pub max_probability: f64,
    /// w_q: the weight of the present queue in the average; above 0, at most 1 (1 for the instantaneous queue).
    pub weight: f64,
    /// The packet whose transmission time counts as one step while the queue is idle.
    pub typical_packet: Bytes,
    /// The gentle variant.
    pub gentle: bool,
    /// What is dropped.
    pub drops: Drops,
}

impl RedConfig {
    /// The paper's weight 0.002 and max_p 0.02 (sections 6 and 11 and its simulations) with this band, not gentle,
    /// dropping beyond it; idle times in packets of 1,500 bytes.
    pub fn new(band: Band) -> Self {
        let typical_packet = Bytes::new(1500);
        RedConfig { band, max_probability: 0.02, weight: 0.002, typical_packet, gentle: false, drops: Drops::Beyond }
    }

    /// # Errors
    /// When a parameter is out of its range.
    pub fn check(&self) -> Result<(), DisciplineError> {
        let ordered = match self.band {
            Band::Packets { min, max } => min <= max,
            Band::Bytes { min, max } => min <= max,
        };
        let share = |value: f64| value > 0.0 && value <= 1.0;
        ensure(ordered, "red.max", "is below red.min: use at least that")?;
        ensure(
            share(self.max_probability),
            "red.max_probability",
            "is not above 0 and at most 1: use for example 0.02",
        )?;
        ensure(share(self.weight), "red.weight", "is not above 0 and at most 1: use for example 0.002")?;
        ensure(self.typical_packet.get() > 0, "red.typical_packet", "is no packet: it needs at least a byte")
    }
}

/// RED on one queue. Lengths are packets, or picoseconds of transmission.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    average: f64,
    /// Packets since the last mark, if any was in the band.
    count: u32,
    min: f64,
    max: f64,
    max_probability: f64,
    weight: f64,
    typical: Span,
    in_bytes: bool,
    gentle: bool,
    drops: Drops,
    random: Xoshiro256PlusPlus,
}

impl Red {
    pub(crate) fn new(config: &RedConfig, serializer: &Serializer, seed: u64) -> Self {
        let time = |bytes| serializer.time_of(bytes).as_ps() as f64;
        let (in_bytes, min, max) = match config.band {
            Band::Packets { min, max } => (false, f64::from(min), f64::from(max)),
            Band::Bytes { min, max } => (true, time(min), time(max)),
        };
        Red {
            average: 0.0,
            count: 0,
            min,
            max,
            max_probability: config.max_probability,
            weight: config.weight,
            typical: serializer.time_of(config.typical_packet),
            in_bytes,
            gentle: config.gentle,
            drops: config.drops,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// How long the packet lasts that is one step of idle time.
    pub(crate) fn idle_step(&self) -> Span {
        self.typical
    }

    /// Brings the average up to date for a packet that comes.
    pub(crate) fn on_arrival(&mut self, state: &QueueState) {
        if let Some(since) = state.empty_since {
            let steps = state.now.saturating_since(since).as_ps() / self.typical.as_ps();
            self.average *= power(1.0 - self.weight, steps);
        } else {
            let queue = if self.in_bytes { state.backlog.as_ps() as f64 } else { f64::from(state.waiting) };
            self.average += self.weight * (queue - self.average);
        }
    }

    /// What becomes of a packet that the queue has room for.
    pub(crate) fn judge(&mut self, ecn: Ecn) -> Verdict {
        let Some(probability) = self.probability() else {
            self.count = 0;
            return if self.drops == Drops::Beyond { Verdict::Drop } else { self.chosen(ecn) };
        };
        if probability == 0.0 {
            self.count = 0;
            return Verdict::Pass;
        }
        let left = 1.0 - f64::from(self.count) * probability;
        self.count += 1;
        // p_a = p_b / (1 - count p_b), and 1 where that is above 1 or has no meaning.
        if self.uniform() * left >= probability {
            return Verdict::Pass;
        }
        self.count = 0;
        self.chosen(ecn)
    }

    /// What becomes of a packet that is to be marked if it can be.
    fn chosen(&self, ecn: Ecn) -> Verdict {
        match (ecn, self.drops) {
            (Ecn::NotEct, Drops::Nothing) => Verdict::Pass,
            (Ecn::NotEct, _) => Verdict::Drop,
            _ => Verdict::Mark,
        }
    }

    /// p_b; `None` beyond the upper threshold.
    fn probability(&self) -> Option<f64> {
        let (average, p) = (self.average, self.max_probability);
        if average < self.min {
            Some(0.0)
        } else if average < self.max {
            Some(p * (average - self.min) / (self.max - self.min))
        } else if self.gentle && average < 2.0 * self.max {
            Some(p + (1.0 - p) * (average - self.max) / self.max)
        } else {
            None
        }
    }

    /// Uniform in 0..1.
    fn uniform(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// `base` to the power of `n` by squaring: the same bits on every machine.
fn power(mut base: f64, mut n: u64) -> f64 {
    let mut product = 1.0;
    while n > 0 && product > 0.0 {
        if n % 2 == 1 {
            product *= base;
        }
        base *= base;
        n /= 2;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_units::{Rate, Time};

    const BAND: Band = Band::Packets { min: 5, max: 15 };

    fn red(config: RedConfig) -> Red {
        config.check().unwrap();
        Red::new(&config, &Serializer::new(Rate::from_gbps(10), 1), 7)
    }

    fn found(waiting: u32, backlog_ns: u64) -> QueueState {
        let backlog = Span::from_ns(backlog_ns);
        QueueState { now: Time::ZERO, waiting, backlog, time: Span::from_ns(1200), at_once: false, empty_since: None }
    }

    #[test]
    fn the_average_by_hand() {
        let mut red = red(RedConfig { weight: 0.25, ..RedConfig::new(BAND) });
        red.on_arrival(&found(8, 0));
        assert_eq!(red.average, 2.0);
        red.on_arrival(&found(4, 0));
        assert_eq!(red.average, 2.5);
        // Idle for two and a half packets of 1.2 us: two steps.
        let now = Time::ZERO + Span::from_ns(10_000);
        red.on_arrival(&QueueState { now, empty_since: Some(now - Span::from_ns(3000)), ..found(0, 0) });
        assert_eq!(red.average, 2.5 * 0.75 * 0.75);
    }

    #[test]
    fn bytes_are_counted_as_time() {
        let band = Band::Bytes { min: Bytes::new(3000), max: Bytes::new(9000) };
        let mut red = red(RedConfig { weight: 1.0, max_probability: 0.3, ..RedConfig::new(band) });
        // 6,000 bytes last 4.8 us at 10 Gb/s: half the band.
        red.on_arrival(&found(99, 4800));
        assert_eq!(red.probability(), Some(0.15));
        red.on_arrival(&found(0, 7200));
        assert_eq!(red.probability(), None);
    }

    /// Gaps between marks are uniform on 1..=n for p_b = 1/n.
    #[test]
    fn marks_are_spread_evenly() {
        let mut red = red(RedConfig { weight: 1.0, max_probability: 0.2, ..RedConfig::new(BAND) });
        red.on_arrival(&found(10, 0));
        assert_eq!(red.probability(), Some(0.1));
        let (mut gap, mut gaps) = (0, [0u32; 10]);
        let packets = 110_000;
        for _ in 0..packets {
            gap += 1;
            if red.judge(Ecn::Ect0) == Verdict::Mark {
                gaps[gap - 1] += 1;
                gap = 0;
            }
        }
        // The mean gap is 5.5, so 20,000 marks, 2,000 of each gap: standard deviations 74 and 42.
        let marks: u32 = gaps.iter().sum();
        assert!(marks.abs_diff(20_000) < 4 * 74, "{marks} marks");
        assert!(gaps.iter().all(|n| n.abs_diff(2000) < 4 * 42), "{gaps:?}");
    }

    #[test]
    fn beyond_the_band() {
        let at = |average: u32, config: RedConfig| {
            let mut red = red(RedConfig { weight: 1.0, max_probability: 0.2, ..config });
            red.on_arrival(&found(average, 0));
            (red.probability(), red.judge(Ecn::Ect0), red.judge(Ecn::NotEct))
        };
        let plain = RedConfig::new(BAND);
        let gentle = RedConfig { gentle: true, ..plain };
        assert_eq!(at(4, plain), (Some(0.0), Verdict::Pass, Verdict::Pass));
        assert_eq!(at(15, plain), (None, Verdict::Drop, Verdict::Drop));
        assert_eq!(at(15, RedConfig { drops: Drops::Unmarkable, ..plain }), (None, Verdict::Mark, Verdict::Drop));
        assert_eq!(at(15, RedConfig { drops: Drops::Nothing, ..plain }), (None, Verdict::Mark, Verdict::Pass));
        // Four fifths of the way from 15 to 30.
        assert_eq!(at(27, gentle).0, Some(0.2 + 0.8 * 0.8));
        assert_eq!(at(30, gentle), (None, Verdict::Drop, Verdict::Drop));
    }

    #[test]
    fn a_packet_without_ecn_is_dropped_where_others_are_marked() {
        let verdicts = |drops, ecn| {
            let mut red = red(RedConfig { weight: 1.0, max_probability: 0.5, drops, ..RedConfig::new(BAND) });
            red.on_arrival(&found(14, 0));
            (0..50).map(|_| red.judge(ecn)).collect::<Vec<_>>()
        };
        let marked = verdicts(Drops::Nothing, Ecn::Ect0);
        let as_dropped: Vec<_> = marked.iter().map(|v| if *v == Verdict::Mark { Verdict::Drop } else { *v }).collect();
        assert_eq!(verdicts(Drops::Unmarkable, Ecn::NotEct), as_dropped);
        assert!(as_dropped.contains(&Verdict::Drop) && as_dropped.contains(&Verdict::Pass));
        assert!(verdicts(Drops::Nothing, Ecn::NotEct).iter().all(|verdict| *verdict == Verdict::Pass));
    }

    #[test]
    fn wrong_parameters_are_told() {
        let error = |config: RedConfig| config.check().unwrap_err().parameter;
        let right = RedConfig::new(BAND);
        assert_eq!(error(RedConfig::new(Band::Packets { min: 2, max: 1 })), "red.max");
        assert_eq!(error(RedConfig { weight: 0.0, ..right }), "red.weight");
        assert_eq!(error(RedConfig { max_probability: f64::NAN, ..right }), "red.max_probability");
        assert_eq!(error(RedConfig { typical_packet: Bytes::new(0), ..right }), "red.typical_packet");
    }
}
