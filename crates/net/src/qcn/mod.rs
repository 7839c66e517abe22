//! QCN: quantized congestion notification. Switches notify senders' interfaces of queue lengths, and these limit rates.
//!
//! IEEE 802.1Qau-2010 (clauses 30 to 32 of 802.1Q), and Alizadeh et al., "Data Center Transport Mechanisms: Congestion
//! Control Theory and IEEE Standardization", Allerton 2008: the [congestion point](CongestionPoint) samples a queue and
//! computes feedback, the [reaction point](ReactionPoint) slows a flow down and speeds it up again. [`RateLimiters`]
//! are a host's interface with a reaction point for each flow that was notified. The equations and constants
//! of the standard are written from published descriptions and have not been compared with its own text.

mod congestion_point;
mod rate_limiters;
mod reaction_point;

pub use congestion_point::{CongestionCounts, CongestionPoint};
pub use rate_limiters::{FlowKey, LimiterCounts, RateChange, RateLimiters};
pub use reaction_point::ReactionPoint;

use crate::interface::uniform;
use firstlight_units::{Bytes, Rate, Span};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The largest feedback: six bits.
pub const MOST_FEEDBACK: u8 = 63;

/// QCN (IEEE 802.1Qau): switches' queues, or VOQs, notify senders' interfaces of congestion, and these limit flows. The
/// table's presence turns it on.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct QcnConfig {
    /// Q_eq: the queue at which switches aim, in bytes not yet sent.
    #[cfg_attr(feature = "spec", serde(rename = "qeq"), schemars(extend("x-most" = "1099511627776B")))]
    pub set_point: Bytes,
    /// w: how much the growth of a queue counts beside its length.
    #[cfg_attr(feature = "spec", serde(rename = "w"), schemars(range(min = 0, max = 100)))]
    pub weight: f64,
    /// G_d: the largest feedback takes this share of a flow's rate.
    #[cfg_attr(feature = "spec", serde(rename = "gd"), schemars(range(min = 0.001, max = 0.999)))]
    pub gain: f64,
    /// A queue is sampled after this number of bytes, up to eight times sooner while feedback is high.
    #[cfg_attr(feature = "spec", schemars(extend("x-most" = "1099511627776B")))]
    pub sample: Bytes,
    /// Bytes in a cycle of the byte counter of a limited flow.
    #[cfg_attr(feature = "spec", schemars(extend("x-most" = "1099511627776B")))]
    pub byte_limit: Bytes,
    /// Duration of a cycle of the timer of a limited flow.
    #[cfg_attr(feature = "spec", schemars(extend("x-least" = "1us")))]
    pub timer: Span,
    /// Cycles of either counter in which the rate returns half the way to what it was. Later cycles are half as long.
    #[cfg_attr(feature = "spec", schemars(range(min = 1, max = 1000), extend("x-of" = "cycles")))]
    pub fast_recovery: u32,
    /// The rate that each later cycle adds to the target rate.
    pub active_increase: Rate,
    /// The rate that each cycle adds to the target rate when both counters are past fast recovery, times the number of
    /// cycles since then.
    pub hyper_increase: Rate,
    /// No flow is made slower than this.
    pub min_rate: Rate,
    /// No feedback makes a rate less than this share of what it was.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 1)))]
    pub min_decrease: f64,
    /// Feedback that arrives before the byte counter has ended a cycle leaves the target rate as it is.
    pub extra_fast_recovery: bool,
}

impl Default for QcnConfig {
    /// The parameters of "Cross-Layer Flow and Congestion Control for Datacenter Networks" (slides, simulation
    /// parameters), with its smaller set point.
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

/// `value`, 15 % more or less by chance, and at least 1.
fn jittered(value: u64, random: &mut Xoshiro256PlusPlus) -> u64 {
    let millionths = 850_000 + uniform(random, 300_001);
    ((u128::from(value) * u128::from(millionths) / 1_000_000) as u64).max(1)
}
