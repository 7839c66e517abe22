//! A host's interface as a source of latency measurements: its clock, and the stages between a packet's bits on the
//! link and their timestamp.
//!
//! Source: DX (Lee et al., Accurate latency-based congestion feedback for datacenters, USENIX ATC'15), sections 2,
//! 4.1 and 5.1. A [`Stamper`] gives the four timestamps of Fig. 2: t1 and t3 when a data packet and its ACK leave, t2
//! and t4 when they arrive. Of these a transport forms the one-way delay t2 - t1, from which queueing follows by
//! subtracting the least one that was seen, and the RTT (t4 - t1) - (t3 - t2); both as wrapping differences. The RTT
//! too is touched by drift, though not summed up: t3 - t2 is by the other clock, off by up to 80 ns per ms that the
//! ACK was held back.
//!
//! t1 and t3 are of a packet's first bit, t2 and t4 of its last. On hosts back to back t2 - t1 is then the packet's
//! time on the link plus the propagation delay: constant for packets of one size, and shorter for shorter packets, by
//! their difference on each link on the way. Stamps of the first bit at both ends (IEEE 1588) would leave out the
//! last link only, for switches store packets before they send them on. So a transport that compares delays, with a
//! base or with a minimum, must compare packets of one size: a SYN's RTT is no base for full segments.

mod calibration;
mod chain;
mod clock;
mod dma;
mod jitter;
mod noise;
mod poll;
mod stack;
mod stamper;

pub use chain::{ChainConfig, Remedies};
pub use clock::{Clock, ClockConfig};
pub use dma::DmaConfig;
pub use jitter::{ALL_PACKETS, Jitter, JitterQueue};
pub use noise::{Xoshiro256PlusPlus, uniform};
pub use poll::PollConfig;
pub use stack::{Stack, StackDelays};
pub use stamper::Stamper;
