//! RED: random early detection on the average queue.
//!
//! Floyd & Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN 1(4), 1993: the average
//! and its correction for idle times (sections 4 and 11: after m packets' time of idleness it is multiplied by (1 -
//! w)^m), the probability p_b, and the spreading p_a = p_b / (1 - count p_b) (section 7). Gentle: beyond max_th the
//! probability rises from max_p to 1 at twice max_th (Floyd, "Recommendations on using the gentle variant of RED",
//! 2000). With ECN a packet is marked where it would be dropped, but beyond the upper threshold (twice max_th when
//! gentle) it is dropped all the same, as RFC 3168, section 7, recommends. [`Drops`] has two other ways: to mark it
//! there too, and to drop nothing at all, as switches do in classes that may not lose: what cannot be marked is queued
//! like any other (Linux calls this RED's ECN nodrop mode, and Mellanox's switches congestion control by ECN alone).
//!
//! Choices: `count` is the number of packets since the last mark that were not marked, as section 7 defines it, so the
//! gap between marks is uniform on 1..=1/p_b; the pseudo-code of Fig. 2 is one ahead after a mark. m is rounded down.
//! In bytes, p_b does not depend on the packet's size (RFC 7567, section 4.4, advises against it). The average is
//! updated by every packet that comes, dropped or not.

use crate::discipline::{Aqm, AqmConfig, Length, QueueState, Verdict};
use crate::{Ecn, Serializer};
use firstlight_units::{Bytes, SettingError, Span};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// The two thresholds of the average queue, both in packets that wait or both in bytes that are not yet sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct Band {
    /// No packet is marked while the average queue is below this.
    pub min: Length,
    /// Where the average queue reaches this, packets are marked with the full `probability`.
    pub max: Length,
}

impl Band {
    /// Thresholds in packets.
    pub const fn packets(min: u32, max: u32) -> Self {
        Band { min: Length::Packets(min), max: Length::Packets(max) }
    }

    /// Thresholds in bytes.
    pub const fn bytes(min: u64, max: u64) -> Self {
        Band { min: Length::Bytes(Bytes::new(min)), max: Length::Bytes(Bytes::new(max)) }
    }
}

/// Which of the packets that RED chooses are dropped; the others are marked if they can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Drops {
    /// RED drops packets that are not ECN-capable, and all beyond the upper threshold.
    #[default]
    Beyond,
    /// RED drops packets that are not ECN-capable.
    Unmarkable,
    /// RED drops no packets.
    Nothing,
}

/// RED on the average length of the queue (Floyd and Jacobson, 1993), instead of a threshold. The table's presence
/// turns it on.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct RedConfig {
    /// min_th and max_th; where they are equal there is only below and beyond.
    #[cfg_attr(feature = "spec", serde(flatten))]
    pub band: Band,
    /// max_p: probability of a mark (or drop, without ECN) where the average reaches `max`.
    #[cfg_attr(
        feature = "spec",
        serde(rename = "probability", default = "RedConfig::default_probability"),
        schemars(range(max = 1), extend("exclusiveMinimum" = 0))
    )]
    pub max_probability: f64,
    /// w_q: weight of the present queue in the average; 1 for the present queue alone.
    #[cfg_attr(
        feature = "spec",
        serde(default = "RedConfig::default_weight"),
        schemars(range(max = 1), extend("exclusiveMinimum" = 0))
    )]
    pub weight: f64,
    /// The packet whose transmission time is one step of the average's decay while the queue is idle.
    #[cfg_attr(feature = "spec", serde(skip, default = "RedConfig::default_packet"))]
    pub typical_packet: Bytes,
    /// Beyond `max` the probability rises to 1 at twice that (the gentle variant).
    #[cfg_attr(feature = "spec", serde(default))]
    pub gentle: bool,
    /// Beyond the upper threshold ECN-capable packets are dropped as well. In a lossless class (`[pfc]`) RED only
    /// marks, and passes what cannot be marked, unless `true` is written.
    #[cfg_attr(
        feature = "spec",
        serde(default, rename = "drop_beyond", with = "drop_beyond"),
        schemars(with = "bool", extend("default" = true))
    )]
    pub drops: Drops,
}

/// [`Drops`] as a key: `true` for [`Drops::Beyond`]. No value of the key means [`Drops::Nothing`], which is written as
/// `false`.
#[cfg(feature = "spec")]
mod drop_beyond {
    use super::Drops;
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(drops: &Drops, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(*drops == Drops::Beyond)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Drops, D::Error> {
        Ok(if bool::deserialize(deserializer)? { Drops::Beyond } else { Drops::Unmarkable })
    }
}

impl RedConfig {
    /// The paper's weight 0.002 and max_p 0.02 (sections 6 and 11 and its simulations) with this band, not gentle,
    /// dropping beyond it; idle times in packets of 1,500 bytes.
    pub const fn new(band: Band) -> Self {
        RedConfig {
            band,
            max_probability: Self::default_probability(),
            weight: Self::default_weight(),
            typical_packet: Self::default_packet(),
            gentle: false,
            drops: Drops::Beyond,
        }
    }

    const fn default_probability() -> f64 {
        0.02
    }

    const fn default_weight() -> f64 {
        0.002
    }

    const fn default_packet() -> Bytes {
        Bytes::new(1500)
    }
}

impl AqmConfig for RedConfig {
    const DROPS: bool = true;
    const DROP_KEY: Option<&'static str> = Some("drop_beyond");

    /// Fails when one threshold is in packets and the other in bytes, or the upper one is below the lower one.
    fn check(&self) -> Result<(), SettingError> {
        let Band { min, max } = self.band;
        let ordered = match (min, max) {
            (Length::Packets(min), Length::Packets(max)) => min <= max,
            (Length::Bytes(min), Length::Bytes(max)) => min <= max,
            _ => {
                let problem =
                    "min and max must be both in packets or both in data: write for example min = 20 and max = 60";
                return Err(SettingError::new("max", problem));
            }
        };
        SettingError::unless(ordered, "max", format!("{max} is below min, {min}: use at least that"))
    }

    fn loses(&self) -> Option<&'static str> {
        (self.drops == Drops::Beyond)
            .then_some("RED drops packets of a lossless class; without this key it only marks there")
    }

    fn threshold(&self) -> Option<(&'static str, Length)> {
        Some(("min", self.band.min))
    }

    /// In a lossless class RED drops beyond the band only where that is written.
    fn fill_in(&mut self, packet: Bytes, lossless: bool, given: &dyn Fn(&str) -> bool) {
        self.typical_packet = packet;
        if lossless && !(self.drops == Drops::Beyond && given("drop_beyond")) {
            self.drops = Drops::Nothing;
        }
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
        let length = |length| match length {
            Length::Packets(packets) => f64::from(packets),
            Length::Bytes(bytes) => serializer.time_of(bytes).as_ps() as f64,
        };
        Red {
            average: 0.0,
            count: 0,
            min: length(config.band.min),
            max: length(config.band.max),
            max_probability: config.max_probability,
            weight: config.weight,
            typical: serializer.time_of(config.typical_packet),
            in_bytes: matches!(config.band.min, Length::Bytes(_)),
            gentle: config.gentle,
            drops: config.drops,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// The decision on a packet that is to be marked if it can be.
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

    /// A random number, uniform between 0 and 1.
    fn uniform(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl Aqm for Red {
    /// One step of idle time: the transmission time of a typical packet.
    fn idle_step(&self) -> Span {
        self.typical
    }

    /// Brings the average up to date for a packet that comes.
    fn on_arrival(&mut self, state: &QueueState) {
        if let Some(since) = state.empty_since {
            let steps = state.now.saturating_since(since).as_ps() / self.typical.as_ps();
            self.average *= power(1.0 - self.weight, steps);
        } else {
            let queue = if self.in_bytes { state.backlog.as_ps() as f64 } else { f64::from(state.waiting) };
            self.average += self.weight * (queue - self.average);
        }
    }

    /// The decision on a packet that the queue has room for.
    fn judge(&mut self, ecn: Ecn) -> Option<Verdict> {
        let Some(probability) = self.probability() else {
            self.count = 0;
            return Some(if self.drops == Drops::Beyond { Verdict::Drop } else { self.chosen(ecn) });
        };
        if probability == 0.0 {
            self.count = 0;
            return Some(Verdict::Pass);
        }
        let left = 1.0 - f64::from(self.count) * probability;
        self.count += 1;
        // p_a = p_b / (1 - count p_b), and 1 where that is above 1 or has no meaning.
        if self.uniform() * left >= probability {
            return Some(Verdict::Pass);
        }
        self.count = 0;
        Some(self.chosen(ecn))
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

    const BAND: Band = Band::packets(5, 15);

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
        let mut red = red(RedConfig { weight: 1.0, max_probability: 0.3, ..RedConfig::new(Band::bytes(3000, 9000)) });
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
            if red.judge(Ecn::Ect0) == Some(Verdict::Mark) {
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
            (red.probability(), red.judge(Ecn::Ect0).unwrap(), red.judge(Ecn::NotEct).unwrap())
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
            (0..50).map(|_| red.judge(ecn).unwrap()).collect::<Vec<_>>()
        };
        let marked = verdicts(Drops::Nothing, Ecn::Ect0);
        let as_dropped: Vec<_> = marked.iter().map(|v| if *v == Verdict::Mark { Verdict::Drop } else { *v }).collect();
        assert_eq!(verdicts(Drops::Unmarkable, Ecn::NotEct), as_dropped);
        assert!(as_dropped.contains(&Verdict::Drop) && as_dropped.contains(&Verdict::Pass));
        assert!(verdicts(Drops::Nothing, Ecn::NotEct).iter().all(|verdict| *verdict == Verdict::Pass));
    }

    #[test]
    fn thresholds_that_do_not_fit_each_other_are_refused() {
        let error = |band| RedConfig::new(band).check().unwrap_err().to_string();
        assert_eq!(error(Band::packets(2, 1)), "max: 1 packets is below min, 2 packets: use at least that");
        let mixed = Band { max: Length::Bytes(Bytes::new(9)), ..Band::packets(2, 1) };
        assert!(error(mixed).starts_with("max: min and max must be both in packets or both in data"));
        assert_eq!(RedConfig::new(Band::bytes(1, 1)).check(), Ok(()));
    }
}
