//! Filters of BBR: the largest bandwidth of ten round trips, and what ACKs bring above it.

use super::Ack;
use firstlight_units::{Span, Time};

/// Round trips for which a largest value holds.
const ROUNDS: usize = 10;
/// Round trips after which values of aggregation begin to be forgotten.
const EPOCH: u32 = 5;
/// The longest time of aggregation that the window allows for, in seconds.
const LONGEST: f64 = 0.1;

/// Packets per second.
pub(super) fn per_second(packets: u64, interval: Span) -> f64 {
    packets as f64 / interval.as_secs_f64()
}

/// The largest of the values of ten round trips, one for each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxFilter {
    values: [f64; ROUNDS],
    round: u64,
    max: f64,
}

impl MaxFilter {
    /// Takes in a value of round trip `round`, which is not before those of earlier values.
    pub(super) fn add(&mut self, value: f64, round: u64) {
        let slot = |round: u64| (round % ROUNDS as u64) as usize;
        for passed in (self.round + 1..=round).take(ROUNDS) {
            self.values[slot(passed)] = 0.0;
        }
        self.round = round;
        self.values[slot(round)] = self.values[slot(round)].max(value);
        self.max = self.values.iter().copied().fold(0.0, f64::max);
    }

    /// The largest value, 0 before the first.
    pub(super) const fn max(&self) -> f64 {
        self.max
    }
}

/// How many packets ACKs bring above the whole packets that the bandwidth explains: the largest number of the last 5 to
/// 10 round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    since: Time,
    delivered: f64,
    best: [f64; 2],
    rounds: u32,
}

impl Aggregation {
    /// Takes in an ACK.
    pub(super) fn on_ack(&mut self, ack: &Ack, cwnd: u32, bandwidth: f64, round_begins: bool) {
        self.rounds += u32::from(round_begins);
        if self.rounds >= EPOCH {
            self.rounds = 0;
            self.best = [0.0, self.best[0]];
        }
        let expected = (bandwidth * ack.now.saturating_since(self.since).as_secs_f64()).floor();
        let expected = if self.delivered <= expected {
            (self.since, self.delivered) = (ack.now, 0.0);
            0.0
        } else {
            expected
        };
        self.delivered += f64::from(ack.delivered);
        self.best[0] = self.best[0].max((self.delivered - expected).min(f64::from(cwnd)));
    }

    /// The packets that the window has more because of such ACKs.
    pub(super) fn extra(&self, bandwidth: f64) -> u32 {
        self.best[0].max(self.best[1]).min(bandwidth * LONGEST) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the literal definition, with several values in a round trip and round trips without any.
        #[test]
        fn largest_of_ten_rounds(steps in prop::collection::vec((0u64..14, 1u32..1000), 1..200)) {
            let (mut filter, mut round, mut seen) = (MaxFilter::default(), 0, vec![]);
            for (step, value) in steps {
                round += step / 2;
                seen.push((round, f64::from(value)));
                filter.add(f64::from(value), round);
                let recent = seen.iter().filter(|(at, _)| at + (ROUNDS as u64) > round);
                let largest = recent.map(|&(_, value)| value).fold(0.0, f64::max);
                prop_assert_eq!(filter.max(), largest);
            }
        }
    }

    #[test]
    fn burst_of_acks_is_counted_above_the_bandwidth() {
        let (mut aggregation, bandwidth) = (Aggregation::default(), 1000.0);
        // 20 packets each 10 ms, all at once, on a path that delivers 10 in this time.
        let mut now = Time::ZERO + Span::from_ms(1);
        for _ in 0..10 {
            now += Span::from_ms(20);
            (0..20)
                .for_each(|_| aggregation.on_ack(&Ack { now, delivered: 1, ..Ack::default() }, 100, bandwidth, false));
        }
        assert_eq!(aggregation.extra(bandwidth), 20);
    }
}
