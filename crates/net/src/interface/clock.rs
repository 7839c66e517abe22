//! A host's clock: it differs from the true time by an offset, and runs a little too fast or too slow.
//!
//! Source: DX (USENIX ATC'15), section 2, "One-way queuing delay": clocks are not synchronized, and a standard clock
//! drifts 40 ns per ms. That number is a bound on one clock: quartz is specified by how far it may be from its
//! nominal frequency. So each host has a drift of its own, uniform within the bound on both sides, and two hosts'
//! clocks run apart by twice the bound at worst, by a third of that worst case on average. The drift stays what it
//! is: over the milliseconds that a delay is compared with its base, temperature and ageing change it by parts per
//! billion.

use super::noise::{Xoshiro256PlusPlus, uniform};
use firstlight_units::{Span, Time};

const PS_PER_NS: i64 = 1_000;
const BILLION: i64 = 1_000_000_000;

/// The ranges that hosts' clocks are drawn from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockConfig {
    /// Offset at the start of the run, at most so far to either side.
    pub offset: Span,
    /// Drift in parts per billion, at most so fast or so slow; below a billion. 1 ns per ms is 1,000.
    pub drift: u32,
}

impl Default for ClockConfig {
    /// A second, which is far more than the range of the delays that are measured, and the paper's 40 ns per ms.
    fn default() -> Self {
        ClockConfig { offset: Span::from_secs(1), drift: 40_000 }
    }
}

impl ClockConfig {
    /// Clocks that show the true time.
    pub const TRUE: ClockConfig = ClockConfig { offset: Span::ZERO, drift: 0 };
}

/// A clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// The clock's reading at the start of the run, in picoseconds.
    offset: i64,
    /// How much it gains, in parts per billion.
    drift: i32,
}

impl Clock {
    /// A clock that shows `offset` picoseconds at the start and gains `drift` parts per billion.
    ///
    /// # Panics
    /// When a drift of a billion or more would stop it or turn it back.
    pub const fn new(offset: i64, drift: i32) -> Self {
        assert!(drift.unsigned_abs() < BILLION as u32, "a clock goes forward");
        Clock { offset, drift }
    }

    /// A clock of one host.
    ///
    /// # Panics
    /// When the bound on the drift is a billion or more, or that on the offset 53 days.
    pub fn draw(config: &ClockConfig, rng: &mut Xoshiro256PlusPlus) -> Self {
        let mut within = |bound: u64| {
            let bound =
                i64::try_from(bound).ok().filter(|bound| *bound < i64::MAX / 2).expect("an offset below 53 days");
            uniform(rng, 2 * bound as u64 + 1) as i64 - bound
        };
        let offset = within(config.offset.as_ps());
        Clock::new(offset, within(u64::from(config.drift)) as i32)
    }

    /// The clock's reading in picoseconds at a true time in picoseconds, which may be before the start.
    #[inline]
    pub(super) const fn local(&self, true_ps: i128) -> i128 {
        true_ps + self.offset as i128 + floored(true_ps * self.drift as i128, BILLION)
    }

    /// The clock's reading at a true time, in whole nanoseconds modulo 2^32 (4.29 s).
    #[inline]
    pub const fn read(&self, at: Time) -> u32 {
        nanoseconds(self.local(at.as_ps() as i128))
    }
}

/// Picoseconds as the field of a packet holds them: whole nanoseconds modulo 2^32.
#[inline]
pub(super) const fn nanoseconds(ps: i128) -> u32 {
    floored(ps, PS_PER_NS) as u32
}

/// A quotient rounded down; quick where 64 bits will do, which at 40 ns per ms is for the first minutes of a run.
#[inline]
const fn floored(value: i128, by: i64) -> i128 {
    let short = value as i64;
    if short as i128 == value { short.div_euclid(by) as i128 } else { value.div_euclid(by as i128) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_xoshiro::rand_core::SeedableRng;

    const fn ns(ns: u64) -> Time {
        Time::from_ps(ns * 1_000)
    }

    #[test]
    fn readings_by_hand() {
        // 40 ns per ms, fast and slow, to the nanosecond.
        assert_eq!(Clock::new(0, 40_000).read(ns(1_000_000)), 1_000_040);
        assert_eq!(Clock::new(0, 40_000).read(Time::from_ps(999_999_999)), 1_000_039);
        assert_eq!(Clock::new(0, -40_000).read(ns(1_000_000)), 999_960);
        assert_eq!(Clock::new(0, -40_000).read(Time::from_ps(1_000_000_001)), 999_960);
        assert_eq!(Clock::new(0, -40_000).read(Time::from_ps(999_999_999)), 999_959);
        // An offset of 1.5 ns is floored together with the time, also below zero.
        assert_eq!(Clock::new(1_500, 0).read(Time::from_ps(499)), 1);
        assert_eq!(Clock::new(1_500, 0).read(Time::from_ps(500)), 2);
        assert_eq!(Clock::new(-1, 0).read(Time::ZERO), u32::MAX);
        assert_eq!(Clock::new(-1, 0).read(Time::from_ps(1)), 0);
    }

    #[test]
    fn readings_wrap_after_two_to_the_32_nanoseconds() {
        let clock = Clock::default();
        assert_eq!(clock.read(ns((1 << 32) - 1)), u32::MAX);
        assert_eq!(clock.read(ns(1 << 32)), 0);
        // The largest time there is, and the fastest clock.
        assert_eq!(clock.read(Time::MAX), (u64::MAX / 1_000) as u32);
        let gained = u128::from(u64::MAX) + u128::from(u64::MAX) * 999_999_999 / 1_000_000_000;
        assert_eq!(Clock::new(0, 999_999_999).read(Time::MAX), (gained / 1_000) as u32);
        let lost = u128::from(u64::MAX) - (u128::from(u64::MAX) * 40_000).div_ceil(1_000_000_000);
        assert_eq!(Clock::new(0, -40_000).local(i128::from(u64::MAX)), lost as i128);
    }

    #[test]
    fn hosts_have_clocks_of_their_own_within_the_bounds() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let config = ClockConfig { offset: Span::from_ps(3), drift: 2 };
        let clocks: Vec<Clock> = (0..1000).map(|_| Clock::draw(&config, &mut rng)).collect();
        let (offsets, drifts) = (clocks.iter().map(|c| c.offset), clocks.iter().map(|c| i64::from(c.drift)));
        assert_eq!((offsets.clone().min(), offsets.max()), (Some(-3), Some(3)));
        assert_eq!((drifts.clone().min(), drifts.max()), (Some(-2), Some(2)));
        assert_eq!(Clock::draw(&ClockConfig::TRUE, &mut rng), Clock::default());
        let draw = |seed| Clock::draw(&ClockConfig::default(), &mut Xoshiro256PlusPlus::seed_from_u64(seed));
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    proptest! {
        /// A queueing delay is the difference of two skewed one-way delays. Its error is the drift of both clocks since
        /// the base was taken, and two roundings of each clock.
        #[test]
        fn queueing_is_measured_through_clocks_that_drift(
            offsets in prop::array::uniform2(-10_000_000_000_000i64..10_000_000_000_000),
            drifts in prop::array::uniform2(-40_000i32..=40_000),
            base_at in 0u64..1 << 44, later in 0u64..10_000_000_000,
            path in 1u64..1_000_000_000, queue in 0u64..1_000_000_000,
        ) {
            let [a, b] = [0, 1].map(|host| Clock::new(offsets[host], drifts[host]));
            let one_way = |sent: u64, delay: u64| {
                b.read(Time::from_ps(sent + delay)).wrapping_sub(a.read(Time::from_ps(sent)))
            };
            let (base, sample) = (one_way(base_at, path), one_way(base_at + later, path + queue));
            let measured = i64::from(sample.wrapping_sub(base) as i32) * 1_000;
            let error = i128::from(measured - queue as i64).abs();
            let apart = i128::from(drifts[0].abs() + drifts[1].abs());
            let bound = i128::from(later + queue) * apart / i128::from(BILLION) + 2 * i128::from(PS_PER_NS);
            prop_assert!(error <= bound, "{error} ps is more than {bound}");
        }
    }
}
