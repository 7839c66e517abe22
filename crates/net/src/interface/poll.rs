//! Polling loops: a packet is timestamped, and passed on, in the first round of the loop that finds it.
//!
//! Source: DX, section 2, "Burst reduction", and section 4.1. The loop's intervals are exponential, the distribution of
//! which nothing but the mean is known, and the mean follows from the text: no more than 10 packets are taken in one
//! round, which "is enough to saturate 99.99 % of the link capacity". On a link whose packets take the time d, the link
//! idles for the part of an interval T that exceeds 10 d, so that 10^-4 = E[max(T - 10 d, 0)] / E[T] = exp(-10 d / m),
//! and m = 10 d / ln 10^4 = 1.086 d: 1.303 us at 10 Gb/s. A loop on the same processor takes the same time at 1 Gb/s.
//!
//! A host's two directions have a loop each. The rounds of a loop are memoryless, so only the round that finds a packet
//! is drawn, and no empty round. The cost is one random number per packet, however long the link is idle.

use super::noise::{Xoshiro256PlusPlus, exponential};
use firstlight_units::{Span, Time};

/// How the loops of a host run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PollConfig {
    /// Mean time from one round to the next.
    pub interval: Span,
    /// Time that the loop spends on one packet: stamps of one batch are this far apart.
    pub packet: Span,
    /// How many packets the token bucket lets go in one round at most.
    pub most: u32,
}

impl Default for PollConfig {
    /// The interval that follows from the paper, its 10 packets per round, and 67 ns per packet: a core that polls
    /// can keep up with the smallest frames at 10 Gb/s, 14.88 million per second, which is what such drivers are
    /// measured by.
    fn default() -> Self {
        PollConfig { interval: Span::from_ps(1_303_000), packet: Span::from_ns(67), most: 10 }
    }
}

/// The loop that takes packets in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiveLoop {
    next: Time,
}

impl ReceiveLoop {
    /// The first round at or after `arrives`: all packets until then are one batch.
    #[inline]
    pub(super) fn round(&mut self, arrives: Time, config: &PollConfig, rng: &mut Xoshiro256PlusPlus) -> Time {
        if arrives > self.next {
            self.next = arrives + exponential(rng, config.interval);
        }
        self.next
    }
}

/// The loop that drains the token bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendLoop {
    /// The last round that is known, and until when there was none after it.
    last: Time,
    known: Time,
}

impl SendLoop {
    /// The last round at or before `starts`: in this round the loop gave the interface the packet that is sent at
    /// `starts`.
    #[inline]
    pub(super) fn round(&mut self, starts: Time, config: &PollConfig, rng: &mut Xoshiro256PlusPlus) -> Time {
        if starts > self.known {
            let ago = exponential(rng, config.interval);
            if ago < starts - self.known {
                self.last = starts - ago;
            }
            self.known = starts;
        }
        self.last
    }
}

/// Keeps packets of one batch as far apart as the loop takes for each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    free: Time,
}

impl Turns {
    /// When the driver takes a packet that is there at `at`.
    #[inline]
    pub(super) fn take(&mut self, at: Time, config: &PollConfig) -> Time {
        let turn = at.max(self.free);
        self.free = turn + config.packet;
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    const PACKET: Span = Span::from_ns(1_200);

    /// Packets back to back, and their rounds.
    fn line(mut round: impl FnMut(Time, &PollConfig, &mut Xoshiro256PlusPlus) -> Time) -> Vec<(Time, Time)> {
        let (config, mut rng) = (PollConfig::default(), Xoshiro256PlusPlus::seed_from_u64(1));
        (1..=100_000).map(|n| Time::ZERO + PACKET * n).map(|at| (at, round(at, &config, &mut rng))).collect()
    }

    /// Rounds without memory: one that takes at least one of two neighbours takes both with probability 1 - exp(-d/m).
    fn assert_batches(rounds: &[(Time, Time)]) {
        let same = rounds.windows(2).filter(|pair| pair[0].1 == pair[1].1).count() as f64 / rounds.len() as f64;
        let expected = (-PACKET.as_us_f64() / PollConfig::default().interval.as_us_f64()).exp();
        assert!((same - expected).abs() < 0.005, "{same} of neighbours share a round, not {expected}");
        assert!(rounds.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    }

    #[test]
    fn the_line_idles_one_in_ten_thousand_with_ten_packets_per_round() {
        let PollConfig { interval, most, .. } = PollConfig::default();
        let idle = (-(PACKET.as_us_f64() * f64::from(most)) / interval.as_us_f64()).exp();
        assert!((idle - 1e-4).abs() < 1e-6, "{idle}");
    }

    #[test]
    fn packets_wait_for_the_next_round() {
        let mut polls = ReceiveLoop::default();
        let rounds = line(|at, config, rng| polls.round(at, config, rng));
        assert!(rounds.iter().all(|(at, round)| round >= at));
        let mean = rounds.iter().map(|(at, round)| *round - *at).sum::<Span>().as_us_f64() / rounds.len() as f64;
        assert!((mean - 1.303).abs() < 0.02, "{mean}");
        assert_batches(&rounds);
    }

    #[test]
    fn packets_were_let_go_by_the_round_before() {
        let mut polls = SendLoop::default();
        let rounds = line(|at, config, rng| polls.round(at, config, rng));
        assert!(rounds.iter().all(|(at, round)| round <= at));
        let mean = rounds.iter().map(|(at, round)| *at - *round).sum::<Span>().as_us_f64() / rounds.len() as f64;
        assert!((mean - 1.303).abs() < 0.02, "{mean}");
        assert_batches(&rounds);
    }
}
