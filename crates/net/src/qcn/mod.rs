//! QCN: quantized congestion notification. Switches tell senders' interfaces how long queues are; these limit rates.
//!
//! IEEE 802.1Qau-2010 (clauses 30 to 32 of 802.1Q), and Alizadeh et al., "Data Center Transport Mechanisms: Congestion Control
//! Theory and IEEE Standardization", Allerton 2008: the [congestion point](CongestionPoint) samples a queue and computes
//! feedback, the [reaction point](ReactionPoint) slows a flow down and speeds it up again. [`RateLimiters`] are a host's
//! interface with a reaction point for each flow that was told of congestion. The equations and constants of the standard are
//! written from published descriptions and have not been compared with its own text.

mod congestion_point;
mod rate_limiters;
mod reaction_point;

pub use congestion_point::{CongestionCounts, CongestionPoint};
pub use rate_limiters::{FlowKey, LimiterCounts, RateChange, RateLimiters};
pub use reaction_point::ReactionPoint;

use crate::discipline::{DisciplineError, ensure};
use crate::interface::uniform;
use firstlight_units::{Bytes, Rate, Span};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The largest feedback: six bits.
pub const MOST_FEEDBACK: u8 = 63;

/// Parameters of both points.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QcnConfig {
    /// Q_eq: the queue that a congestion point aims at.
    pub set_point: Bytes,
    /// w: how much the queue's growth counts beside its length; 0 to 100.
    pub weight: f64,
    /// G_d: the largest feedback slows a flow down by this share; above 0, below 1.
    pub gain: f64,
    /// A queue is sampled after so many bytes, sooner while feedback is high.
    pub sample: Bytes,
    /// Bytes of a cycle of a flow's byte counter.
    pub byte_limit: Bytes,
    /// A cycle of a flow's timer.
    pub timer: Span,
    /// Cycles of fast recovery.
    pub fast_recovery: u32,
    /// What the target rate grows by in active increase,
    pub active_increase: Rate,
    /// and in hyper-active increase.
    pub hyper_increase: Rate,
    /// No flow is slower.
    pub min_rate: Rate,
    /// No feedback makes a rate a smaller part of what it was; 0 to 1.
    pub min_decrease: f64,
    /// Feedback within a flow's first cycle leaves the target rate as it is.
    pub extra_fast_recovery: bool,
}

impl Default for QcnConfig {
    /// The parameters of "Cross-Layer Flow and Congestion Control for Datacenter Networks" (slides, simulation parameters),
    /// with its smaller set point.
    fn default() -> Self {
        QcnConfig {
            set_point: Bytes::new(20_000),
            weight: 2.0,
            gain: 0.5,
            sample: Bytes::new(150_000),
            byte_limit: Bytes::new(150_000),
            timer: Span::from_ms(15),
            fast_recovery: 5,
            active_increase: Rate::from_bps(5_000_000),
            hyper_increase: Rate::from_bps(50_000_000),
            min_rate: Rate::from_bps(100_000),
            min_decrease: 0.5,
            extra_fast_recovery: true,
        }
    }
}

impl QcnConfig {
    /// # Errors
    /// When a parameter is out of its range.
    pub fn check(&self) -> Result<(), DisciplineError> {
        let bytes = |bytes: Bytes| (1..=1 << 40).contains(&bytes.get());
        let rate = |rate: Rate| (1..=1 << 50).contains(&rate.as_bps());
        ensure(bytes(self.set_point), "qcn.qeq", "is not between 1 B and 2^40 B")?;
        ensure((0.0..=100.0).contains(&self.weight), "qcn.w", "is not between 0 and 100")?;
        ensure(self.gain > 0.0 && self.gain < 1.0, "qcn.gd", "is not above 0 and below 1")?;
        ensure(bytes(self.sample), "qcn.sample", "is not between 1 B and 2^40 B")?;
        ensure(bytes(self.byte_limit), "qcn.byte_limit", "is not between 1 B and 2^40 B")?;
        ensure(self.timer >= Span::from_us(1), "qcn.timer", "is shorter than 1us")?;
        ensure((1..=1000).contains(&self.fast_recovery), "qcn.fast_recovery", "is not between 1 and 1000")?;
        ensure(rate(self.active_increase), "qcn.active_increase", "is no rate")?;
        ensure(rate(self.hyper_increase), "qcn.hyper_increase", "is no rate")?;
        ensure(rate(self.min_rate), "qcn.min_rate", "is no rate: a flow would stand still")?;
        ensure((0.0..=1.0).contains(&self.min_decrease), "qcn.min_decrease", "is not between 0 and 1")
    }
}

/// `value`, 15 % more or less by chance, and at least 1.
fn jittered(value: u64, random: &mut Xoshiro256PlusPlus) -> u64 {
    let millionths = 850_000 + uniform(random, 300_001);
    ((u128::from(value) * u128::from(millionths) / 1_000_000) as u64).max(1)
}
