//! `[stamps]`: timestamps of the hosts' interfaces.

use firstlight_net::interface::{ChainConfig, Remedies, StackDelays};
use firstlight_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Timestamps that the hosts' interfaces take for delay-based congestion control, and of probes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schemars(extend("x-default-kind" = "ideal"))]
pub enum StampsTable {
    /// Timestamps are taken as the bits pass.
    #[default]
    Ideal,
    /// Timestamps have normal noise.
    Gaussian {
        /// Standard deviation of the noise on each arrival's timestamp.
        #[schemars(extend("x-above" = "0s"))]
        deviation: Span,
    },
    /// Timestamps are taken above the host's stack.
    Kernel,
    /// Timestamps are taken by a polling driver.
    Software(Remedies),
    /// Timestamps are taken when the DMA of a packet is complete.
    Hardware(Remedies),
}

impl StampsTable {
    /// The chain that the timestamps come from.
    pub(crate) fn chain(&self) -> ChainConfig {
        match *self {
            StampsTable::Ideal => ChainConfig::Ideal,
            StampsTable::Gaussian { deviation } => ChainConfig::Gaussian { deviation },
            StampsTable::Kernel => ChainConfig::Kernel(StackDelays::default()),
            StampsTable::Software(remedies) => ChainConfig::software(remedies),
            StampsTable::Hardware(remedies) => ChainConfig::hardware(remedies),
        }
    }
}
