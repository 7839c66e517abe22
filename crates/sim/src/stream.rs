//! Random streams, and events of one probability.

pub use firstlight_net::{Xoshiro256PlusPlus, stream, uniform};
use rand_xoshiro::rand_core::RngCore;

/// Decides events of one probability.
#[derive(Clone, Debug)]
pub(crate) struct Chance {
    stream: Xoshiro256PlusPlus,
    below: u64,
}

impl Chance {
    /// A generator of chances; `None` for a probability of zero.
    pub(crate) fn new(stream: Xoshiro256PlusPlus, probability: f64) -> Option<Self> {
        (probability > 0.0).then(|| Chance { stream, below: (probability * 2f64.powi(64)) as u64 })
    }

    pub(crate) fn happens(&mut self) -> bool {
        self.stream.next_u64() < self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_has_its_probability() {
        let mut chance = Chance::new(stream(7, "test", "chance"), 0.25).unwrap();
        let hits = (0..10_000).filter(|_| chance.happens()).count();
        assert!((2300..2700).contains(&hits), "{hits}");
        assert!(Chance::new(stream(7, "test", "chance"), 0.0).is_none());
    }
}
