//! Random numbers of controllers that draw, from the seed of their connection.

/// A stream of random numbers (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014:
/// SplitMix64).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Draw(u64);

impl Draw {
    /// The stream that belongs to `seed`.
    pub(super) const fn new(seed: u64) -> Self {
        Draw(seed)
    }

    /// The next number, uniform between 0 and `below - 1`.
    pub(super) fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(below)) >> 64) as u64
    }

    /// True with this probability.
    pub(super) fn happens(&mut self, probability: f64) -> bool {
        const STEPS: u64 = 1 << 53;
        (self.below(STEPS) as f64) < probability * STEPS as f64
    }
}
