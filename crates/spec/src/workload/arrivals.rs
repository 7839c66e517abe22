//! Moments of a Poisson process, the same ones on every machine.
//!
//! The time to the next event is exponential. It is drawn by von Neumann's method (J. von Neumann, "Various techniques
//! used in connection with random digits", 1951), which compares uniform numbers and needs no logarithm: draw U0, and
//! go on while the numbers fall, U0 > U1 > ...; a run whose length is odd (which has probability exp(-U0)) gives U0,
//! any other adds 1 to the result and begins anew.

use firstlight_net::{Xoshiro256PlusPlus, uniform};
use firstlight_units::Span;

/// A mean gap is kept in parts of a picosecond, and a uniform number in parts of 1.
const FRACTION: u32 = 32;
const ONE: u32 = 31;

/// Moments that come at a mean rate, independently of each other.
pub(super) struct Arrivals {
    random: Xoshiro256PlusPlus,
    /// The mean gap in 2^-32 ps.
    gap: u128,
    now: u128,
}

impl Arrivals {
    /// Arrivals after `start`, on average every `gap` picoseconds.
    pub fn new(random: Xoshiro256PlusPlus, start: Span, gap: f64) -> Self {
        let gap = (gap.clamp(0.0, 2f64.powi(63)) * 2f64.powi(FRACTION as i32)) as u128;
        Arrivals { random, gap, now: u128::from(start.as_ps()) << FRACTION }
    }

    /// From one to the next.
    pub fn gap(&mut self) -> Span {
        let before = Span::from_ps(u64::try_from(self.now >> FRACTION).unwrap_or(u64::MAX));
        self.next() - before
    }

    /// The next arrival.
    pub fn next(&mut self) -> Span {
        let (whole, part) = exponential(&mut self.random);
        self.now = self.now.saturating_add(u128::from(whole) * self.gap + ((u128::from(part) * self.gap) >> ONE));
        Span::from_ps(u64::try_from(self.now >> FRACTION).unwrap_or(u64::MAX))
    }
}

/// An exponential number of mean 1: its whole part, and the rest in 2^-31.
fn exponential(random: &mut Xoshiro256PlusPlus) -> (u64, u64) {
    for whole in 0.. {
        let first = uniform(random, 1 << ONE);
        let (mut last, mut run) = (first, 1u32);
        loop {
            let next = uniform(random, 1 << ONE);
            if next >= last {
                break;
            }
            (last, run) = (next, run + 1);
        }
        if run % 2 == 1 {
            return (whole, first);
        }
    }
    unreachable!("two runs in three end at once")
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_net::stream;

    /// Against the distribution 1 - exp(-x), by Kolmogorov and Smirnov: 1.95 / sqrt(n) is exceeded once in a thousand.
    #[test]
    fn gaps_are_exponential() {
        const DRAWS: usize = 100_000;
        let mut random = stream(1, "test", "exponential");
        let mut gaps: Vec<f64> = (0..DRAWS)
            .map(|_| exponential(&mut random))
            .map(|(whole, part)| whole as f64 + part as f64 / 2f64.powi(ONE as i32))
            .collect();
        gaps.sort_by(f64::total_cmp);
        let distance = |(k, x): (usize, &f64)| (1.0 - (-x).exp() - (k as f64 + 0.5) / DRAWS as f64).abs();
        let largest = gaps.iter().enumerate().map(distance).fold(0.0, f64::max);
        assert!(largest < 1.95 / (DRAWS as f64).sqrt(), "{largest}");
    }

    #[test]
    fn moments_do_not_drift() {
        let mut arrivals = Arrivals::new(stream(1, "test", "arrivals"), Span::from_us(1), 0.75);
        let last = (0..1_000_000).map(|_| arrivals.next()).last().unwrap();
        let mean = (last - Span::from_us(1)).as_ps() as f64 / 1e6;
        assert!((mean / 0.75 - 1.0).abs() < 0.005, "gaps below a picosecond count: {mean}");
    }
}
