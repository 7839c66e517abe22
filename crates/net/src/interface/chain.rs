//! DX's measurement chain, stage by stage: where timestamps are taken, and the remedies against their errors.

use super::{DmaConfig, PollConfig, StackDelays};
use firstlight_units::Span;

/// How a host's timestamps come about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ChainConfig {
    /// The clock's reading when the packet's first bit leaves and its last bit arrives, as ideal hardware would take
    /// it.
    #[default]
    Ideal,
    /// Ideal, with normal noise on each arrival's stamp, as DX's simulations have it (section 5.3, Fig. 11). Every
    /// one-way delay is off by this deviation then, an RTT by its root-two-fold.
    Gaussian {
        /// Standard deviation.
        deviation: Span,
    },
    /// The kernel's TCP stamps, above the host's stack and its queue for the interface (Fig. 1 and 8).
    Kernel(StackDelays),
    /// A polling driver stamps, right before it pushes a packet to the interface and right after it got one.
    Software {
        /// How the driver polls.
        poll: PollConfig,
        /// What is done against errors.
        remedies: Remedies,
    },
    /// The interface stamps when a packet's DMA is complete; a polling driver still decides when it is pushed.
    Hardware {
        /// How the driver polls.
        poll: PollConfig,
        /// How packets cross the bus.
        dma: DmaConfig,
        /// What is done against errors.
        remedies: Remedies,
    },
}

/// What is done against errors of timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct Remedies {
    /// Packets wait in a token bucket at the link's rate, and not in the interface where they have a timestamp already.
    #[cfg_attr(feature = "spec", serde(default = "Remedies::on"))]
    pub token_bucket: bool,
    /// Timestamps nearer than the link allows are moved apart.
    #[cfg_attr(feature = "spec", serde(default = "Remedies::on"))]
    pub calibration: bool,
}

#[cfg(feature = "spec")]
impl Remedies {
    /// The default of each key.
    fn on() -> bool {
        true
    }
}

impl Remedies {
    /// No remedy.
    pub const NONE: Remedies = Remedies { token_bucket: false, calibration: false };
    /// The token bucket alone.
    pub const BUCKET: Remedies = Remedies { token_bucket: true, calibration: false };
    /// All known remedies.
    pub const ALL: Remedies = Remedies { token_bucket: true, calibration: true };
}

impl ChainConfig {
    /// The driver's stamps, with these remedies.
    pub fn software(remedies: Remedies) -> Self {
        ChainConfig::Software { poll: PollConfig::default(), remedies }
    }

    /// The hardware's stamps, with these remedies.
    pub fn hardware(remedies: Remedies) -> Self {
        ChainConfig::Hardware { poll: PollConfig::default(), dma: DmaConfig::default(), remedies }
    }

    /// What is done against errors, where there is a driver to do it.
    pub fn remedies(&self) -> Remedies {
        match self {
            ChainConfig::Software { remedies, .. } | ChainConfig::Hardware { remedies, .. } => *remedies,
            _ => Remedies::NONE,
        }
    }
}
