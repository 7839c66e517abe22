//! Timestamps of the interface's hardware: taken when the packet's DMA is complete, not when it is on the wire.
//!
//! Source: DX, section 2, "Error calibration": the interface "timestamps packets when it completes the DMA". A packet
//! that is sent is fetched from memory when the driver has pushed it, so that a batch is fetched, and stamped, at the
//! speed of the bus, which is several times that of the link; a packet that is received is written to memory as it
//! arrives. What varies is how long a transaction takes to begin.

use super::noise::{Xoshiro256PlusPlus, exponential};
use firstlight_units::{Bytes, Rate, Span, Time};

/// The bus between the interface and memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DmaConfig {
    /// Rate at which packets cross it.
    pub rate: Rate,
    /// Mean of what a transaction takes longer than the shortest one; exponential.
    pub jitter: Span,
}

impl Default for DmaConfig {
    /// PCIe 3.0 with eight lanes, on which the paper's 40 GbE cards sit: about 50 Gb/s for data. The jitter is that of
    /// DMA reads on a Xeon E5, whose median is some 30 ns over the least: half of an exponential distribution is below
    /// 0.69 of its mean. Both after Neugebauer et al., Understanding PCIe performance for end host networking
    /// (SIGCOMM'18), sections 3 and 6.
    fn default() -> Self {
        DmaConfig { rate: Rate::from_gbps(50), jitter: Span::from_ns(40) }
    }
}

/// One direction of the bus: transactions end in their order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dma {
    free: Time,
}

impl Dma {
    /// When the DMA of a packet is complete, if it can begin at `at`.
    #[inline]
    pub(super) fn complete(&mut self, at: Time, size: u16, config: &DmaConfig, rng: &mut Xoshiro256PlusPlus) -> Time {
        let begins = self.free.max(at + exponential(rng, config.jitter));
        self.free = begins + config.rate.tx_time(Bytes::new(u64::from(size)));
        self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn a_batch_crosses_at_the_speed_of_the_bus() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let config = DmaConfig { jitter: Span::ZERO, ..DmaConfig::default() };
        let mut bus = Dma::default();
        let mut complete = |us, size| bus.complete(Time::ZERO + Span::from_us(us), size, &config, &mut rng);
        let times = [complete(1, 1500), complete(1, 1500), complete(1, 50), complete(9, 1500)];
        assert_eq!(times.map(|at| at.as_ps() / 1_000), [1_240, 1_480, 1_488, 9_240]);
    }
}
