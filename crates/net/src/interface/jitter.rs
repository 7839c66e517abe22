//! The random part of the time that a packet takes through a host's stack.
//!
//! Each packet draws a delay, for each direction. No packet overtakes another of its host and direction: a packet whose
//! own delay is over waits for those before it. Hosts without any noise act in step, and where identical flows meet at
//! a queue that drops, one may get everything: the phase effect of S. Floyd and V. Jacobson, "Traffic Phase Effects in
//! Packet-Switched Gateways", ACM CCR 21(2), 1991. The random processing time that their section 5 adds at each source
//! is such a delay.
//!
//! All spans are whole picoseconds and the same on every machine: `libm` computes the log-normal ones without the
//! machine's own library.

use super::noise::{Xoshiro256PlusPlus, exponential, normal, uniform};
use crate::{PacerDecision, PacketId, Ring};
use firstlight_units::{Span, Time};

/// The number of parts that all packets have in a [`Jitter::Table`].
pub const ALL_PACKETS: u64 = 1_000_000_000_000;

/// The distribution of a stack's random delay.
#[derive(Clone, Debug, PartialEq)]
pub enum Jitter {
    /// Evenly from nothing to this.
    Uniform(Span),
    /// Exponential, with this mean.
    Exponential(Span),
    /// Delays are log-normal.
    LogNormal {
        /// The mean.
        mean: Span,
        /// The standard deviation.
        deviation: Span,
    },
    /// A cumulative distribution: delays, ascending, and how many of [`ALL_PACKETS`] have one that is not longer.
    /// Between two points delays are spread evenly.
    Table(Vec<(Span, u64)>),
}

impl Jitter {
    /// Draws a delay.
    pub fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> Span {
        match self {
            Jitter::Uniform(most) => Span::from_ps(uniform(rng, most.as_ps() + 1)),
            Jitter::Exponential(mean) => exponential(rng, *mean),
            Jitter::LogNormal { mean, deviation } => log_normal(rng, *mean, *deviation),
            Jitter::Table(points) => at(points, uniform(rng, ALL_PACKETS)),
        }
    }
}

/// A log-normal span: the normal distribution of its logarithm has the deviation s with s^2 = ln(1 + d^2 / m^2), and
/// the mean ln(m) - s^2 / 2.
fn log_normal(rng: &mut Xoshiro256PlusPlus, mean: Span, deviation: Span) -> Span {
    const UNIT: u64 = 1 << 40;
    let (mean, part) = (mean.as_ps() as f64, deviation.as_ps() as f64 / mean.as_ps() as f64);
    let variance = libm::log1p(part * part);
    let drawn = normal(rng, Span::from_ps(UNIT)) as f64 / UNIT as f64;
    Span::from_ps((mean * libm::exp(variance.sqrt() * drawn - variance / 2.0)) as u64)
}

/// The delay below which `part` of all packets are.
fn at(points: &[(Span, u64)], part: u64) -> Span {
    let piece = points.partition_point(|&(_, below)| below <= part).min(points.len() - 1);
    let (most, below) = points[piece];
    let Some(&(least, before)) = piece.checked_sub(1).map(|piece| &points[piece]) else { return most };
    let within = u128::from((most - least).as_ps()) * u128::from(part.saturating_sub(before));
    least + Span::from_ps((within / u128::from(below - before)) as u64)
}

/// The packets that one host's stack delays at random, in one direction.
#[derive(Clone, Debug)]
pub struct JitterQueue {
    held: Ring<(PacketId, Time)>,
    /// When the packet that arrived last leaves, or left.
    last: Time,
    offered: u64,
    random: Xoshiro256PlusPlus,
}

impl JitterQueue {
    /// An empty queue, which draws from this stream.
    pub fn new(random: Xoshiro256PlusPlus) -> Self {
        JitterQueue { held: Ring::with_capacity(16), last: Time::ZERO, offered: 0, random }
    }

    /// A packet comes. If it is held, [`JitterQueue::release`] must be called when the decision says, later than now.
    pub fn offer(&mut self, id: PacketId, now: Time, jitter: &Jitter, scale: u64) -> PacerDecision {
        self.last = self.last.max(now + jitter.draw(&mut self.random) * scale);
        self.offered += 1;
        if self.held.is_empty() && self.last == now {
            return PacerDecision::Pass;
        }
        self.held.push((id, self.last));
        PacerDecision::Held((self.held.len() == 1).then_some(self.last))
    }

    /// Takes the packet that leaves now. Returns it and the time at which the next packet leaves.
    pub fn release(&mut self) -> (Option<PacketId>, Option<Time>) {
        let out = self.held.pop().map(|(id, _)| id);
        (out, self.held.front().map(|(_, at)| at))
    }

    /// How many packets have come.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// How many packets wait.
    pub fn held(&self) -> u64 {
        self.held.len().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    const SAMPLES: u32 = 100_000;

    fn sampled(jitter: &Jitter) -> Vec<u64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut all: Vec<u64> = (0..SAMPLES).map(|_| jitter.draw(&mut rng).as_ps()).collect();
        all.sort_unstable();
        all
    }

    /// The mean, and the quantiles 0.1, 0.5, 0.9, in ns.
    fn shape(jitter: &Jitter) -> [f64; 4] {
        let all = sampled(jitter);
        let quantile = |part: usize| all[all.len() * part / 10] as f64 / 1e3;
        [all.iter().sum::<u64>() as f64 / 1e3 / f64::from(SAMPLES), quantile(1), quantile(5), quantile(9)]
    }

    fn assert_near(found: [f64; 4], expected: [f64; 4]) {
        assert!(
            found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 0.04 * b),
            "{found:?} is not near {expected:?}"
        );
    }

    #[test]
    fn delays_have_their_distributions() {
        let us = Span::from_us;
        assert_near(shape(&Jitter::Uniform(us(10))), [5000.0, 1000.0, 5000.0, 9000.0]);
        assert_near(shape(&Jitter::Exponential(us(10))), [10_000.0, 1053.6, 6931.5, 23_025.9]);
        // s^2 = ln 2: the median is m / sqrt(2), and the other two a factor of exp(1.28155 s) = 2.9066 from it.
        let log_normal = Jitter::LogNormal { mean: us(10), deviation: us(10) };
        assert_near(shape(&log_normal), [10_000.0, 2432.8, 7071.1, 20_553.0]);
        // A fifth at 1 us exactly, then evenly to 5 us.
        let table = Jitter::Table(vec![(us(1), ALL_PACKETS / 5), (us(5), ALL_PACKETS)]);
        assert_near(shape(&table), [2600.0, 1000.0, 2500.0, 4500.0]);
    }

    #[test]
    fn delays_are_these_on_every_machine() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let log_normal = Jitter::LogNormal { mean: Span::from_us(10), deviation: Span::from_us(5) };
        let drawn = [(); 3].map(|()| log_normal.draw(&mut rng).as_ps());
        assert_eq!(drawn, [5_938_476, 12_013_406, 12_774_975]);
    }

    #[test]
    fn none_overtakes_another() {
        let jitter = Jitter::Exponential(Span::from_us(5));
        let mut queue = JitterQueue::new(Xoshiro256PlusPlus::seed_from_u64(1));
        let mut due = None;
        for id in 0..100 {
            let decision = queue.offer(PacketId(id), Time::ZERO, &jitter, 1);
            let PacerDecision::Held(event) = decision else { panic!("{id} is held") };
            assert_eq!(event.is_some(), id == 0);
            due = due.or(event);
        }
        let mut at = Time::ZERO;
        for id in 0..100 {
            let now = due.expect("one is held");
            assert!(now >= at);
            at = now;
            let (out, next) = queue.release();
            assert_eq!(out, Some(PacketId(id)));
            due = next;
        }
        assert_eq!((due, queue.held()), (None, 0));
    }
}
