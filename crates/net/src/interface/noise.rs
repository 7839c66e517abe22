//! Random spans whose every bit is the same on every machine: integers only, no `exp`, `ln` or `cos`, which differ
//! between mathematical libraries.
//!
//! Exponential spans by von Neumann's comparison of uniform numbers (Various techniques used in connection with
//! random digits, NBS Applied Mathematics Series 12, 1951); normal ones by Karney's Algorithm N (Sampling exactly
//! from the normal distribution, ACM TOMS 42(1), 2016), which is built of the same comparisons. A uniform number is a
//! fraction of 64 bits, where theirs has as many as a comparison needs: ties and the one product are off by 2^-64.

use firstlight_units::Span;
pub use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;

/// A number in `0..below`, uniform but for a bias of `below` / 2^64.
pub fn uniform(rng: &mut Xoshiro256PlusPlus, below: u64) -> u64 {
    scaled(rng.next_u64(), below)
}

/// An exponentially distributed span. No numbers are drawn for a mean of zero.
pub fn exponential(rng: &mut Xoshiro256PlusPlus, mean: Span) -> Span {
    if mean.is_zero() {
        return Span::ZERO;
    }
    // Each round fails with probability 1/e and then stands for one more mean.
    let mut whole = Span::ZERO;
    loop {
        let first = rng.next_u64();
        if falls_evenly(rng, first) {
            return whole + Span::from_ps(scaled(first, mean.as_ps()));
        }
        whole += mean;
    }
}

/// A normally distributed difference in picoseconds with mean zero. No numbers are drawn for a deviation of zero.
pub fn normal(rng: &mut Xoshiro256PlusPlus, deviation: Span) -> i64 {
    if deviation.is_zero() {
        return 0;
    }
    loop {
        // N1 and N2: k with probability proportional to exp(-k^2 / 2).
        let k = std::iter::from_fn(|| falls_evenly(rng, 1 << 63).then_some(())).count() as u64;
        if !(0..k * k.saturating_sub(1)).all(|_| falls_evenly(rng, 1 << 63)) {
            continue;
        }
        // N3 and N4: x with probability exp(-x (2k + x) / 2), as k + 1 equal factors with exponents below 1.
        let x = rng.next_u64();
        let exponent = (((u128::from(k) << 65) + u128::from(x)) / u128::from(2 * k + 2)) as u64;
        if (0..=k).all(|_| falls_evenly(rng, scaled(x, exponent))) {
            let size = (deviation.as_ps() * k + scaled(x, deviation.as_ps())) as i64;
            return if rng.next_u64() >> 63 == 0 { size } else { -size };
        }
    }
}

/// `fraction` / 2^64 of `whole`.
fn scaled(fraction: u64, whole: u64) -> u64 {
    ((u128::from(fraction) * u128::from(whole)) >> 64) as u64
}

/// True with probability exp(-p), p being `exponent` / 2^64: a falling run of uniform numbers that begins below p ends
/// after an even number of them.
fn falls_evenly(rng: &mut Xoshiro256PlusPlus, exponent: u64) -> bool {
    let (mut least, mut even) = (exponent, true);
    loop {
        let next = rng.next_u64();
        if next >= least {
            return even;
        }
        (least, even) = (next, !even);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    const SAMPLES: usize = 200_000;

    /// How many of the samples are below each of the bounds, per thousand.
    fn shares(samples: &[i64], bounds: [i64; 4]) -> [f64; 4] {
        bounds.map(|bound| samples.iter().filter(|&&sample| sample < bound).count() as f64 * 1e3 / SAMPLES as f64)
    }

    /// Three standard errors of a share are 3.4 per thousand at most.
    fn assert_near(found: [f64; 4], expected: [f64; 4]) {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 3.4), "{found:?} is not near {expected:?}");
    }

    #[test]
    fn exponential_spans_have_the_distribution_of_the_tables() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mean = Span::from_ns(10);
        let samples: Vec<i64> = (0..SAMPLES).map(|_| exponential(&mut rng, mean).as_ps() as i64).collect();
        // 1 - exp(-x) at 0.1, 0.7, 1.5 and 3 means.
        assert_near(shares(&samples, [1_000, 7_000, 15_000, 30_000]), [95.2, 503.4, 776.9, 950.2]);
        assert_eq!(exponential(&mut rng, Span::ZERO), Span::ZERO);
    }

    #[test]
    fn normal_differences_have_the_distribution_of_the_tables() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let samples: Vec<i64> = (0..SAMPLES).map(|_| normal(&mut rng, Span::from_ns(10))).collect();
        // The normal distribution at -2, -0.5, 0 and 1.25 deviations.
        assert_near(shares(&samples, [-20_000, -5_000, 0, 12_500]), [22.8, 308.5, 500.0, 894.4]);
        let tail = samples.iter().filter(|sample| sample.abs() > 30_000).count();
        assert!((440..640).contains(&tail), "2.7 of a thousand are beyond three deviations: {tail}");
        assert_eq!(normal(&mut rng, Span::ZERO), 0);
    }

    #[test]
    fn the_samples_are_these_on_every_machine() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let spans = [(); 3].map(|()| exponential(&mut rng, Span::from_us(1)).as_ps());
        let differences = [(); 3].map(|()| normal(&mut rng, Span::from_us(1)));
        let expected = ([51_451, 1_624_517, 199_289], [-1_754_634, 69_331, 513_561], 491);
        assert_eq!((spans, differences, uniform(&mut rng, 1000)), expected);
    }
}
