//! Random streams: a fixed hash of (seed, name, purpose), so that one more user of randomness changes no other stream.

pub use crate::interface::uniform;
pub use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// The stream of `name` for `purpose` (FNV-1a over both, mixed with the seed; xoshiro256++).
pub fn stream(seed: u64, name: &str, purpose: &str) -> Xoshiro256PlusPlus {
    let bytes = name.bytes().chain([0]).chain(purpose.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
    Xoshiro256PlusPlus::seed_from_u64(hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::RngCore;

    #[test]
    fn streams_are_fixed_and_apart() {
        let first = |seed, name, purpose| stream(seed, name, purpose).next_u64();
        assert_eq!(first(1, "flow0", "jitter"), first(1, "flow0", "jitter"));
        let all = [
            first(1, "flow0", "jitter"),
            first(2, "flow0", "jitter"),
            first(1, "flow1", "jitter"),
            first(1, "flow0", "isn"),
            first(1, "flow0j", "itter"),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
    }

    #[test]
    fn numbers_spread_over_their_range() {
        let mut rng = stream(7, "test", "uniform");
        let mut counts = [0u32; 10];
        (0..10_000).for_each(|_| counts[uniform(&mut rng, 10) as usize] += 1);
        assert!(counts.iter().all(|n| (800..1200).contains(n)), "{counts:?}");
    }
}
