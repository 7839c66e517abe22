//! `[chain]`: DX's experiment on its measurement chain (Lee et al., USENIX ATC'15, section 5.1, Figs. 6 to 8).

use firstlight_net::interface::{ChainConfig, Remedies, StackDelays};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// DX's measurement chain: two hosts back to back, a flow that fills the link between them, and the timestamps of one
/// stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChainTable {
    /// The stage whose timestamps are taken.
    pub stage: Stage,
    /// How many data packets are sent. The first two windows are not measured.
    #[serde(default = "packets")]
    #[schemars(range(min = 2000, max = 10_000_000), extend("x-of" = "packets"))]
    pub packets: u64,
}

fn packets() -> u64 {
    200_000
}

/// The stages of Fig. 6, from the kernel's timestamps to all remedies, in software and in hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Stage {
    /// The kernel's own timestamps, above the stack.
    #[serde(rename = "kernel")]
    Kernel,
    /// A polling driver's timestamps.
    #[serde(rename = "software")]
    Software,
    /// A polling driver's timestamps, with a token bucket at the link's rate.
    #[serde(rename = "software, token bucket")]
    SoftwareBucket,
    /// A polling driver's timestamps, with token bucket and calibration.
    #[serde(rename = "software, token bucket, calibration")]
    SoftwareCalibrated,
    /// The interface's timestamps, with a token bucket.
    #[serde(rename = "hardware, token bucket")]
    HardwareBucket,
    /// The interface's timestamps, with token bucket and calibration.
    #[serde(rename = "hardware, token bucket, calibration")]
    HardwareCalibrated,
}

impl Stage {
    /// All stages, in the order of Fig. 6.
    pub const ALL: [Stage; 6] = [
        Stage::Kernel,
        Stage::Software,
        Stage::SoftwareBucket,
        Stage::SoftwareCalibrated,
        Stage::HardwareBucket,
        Stage::HardwareCalibrated,
    ];

    /// The name of the stage, as experiments write it.
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            other => unreachable!("a stage is written as a text, not as {other:?}"),
        }
    }

    /// How the stage takes timestamps.
    pub fn chain(self) -> ChainConfig {
        match self {
            Stage::Kernel => ChainConfig::Kernel(StackDelays::default()),
            Stage::Software => ChainConfig::software(Remedies::NONE),
            Stage::SoftwareBucket => ChainConfig::software(Remedies::BUCKET),
            Stage::SoftwareCalibrated => ChainConfig::software(Remedies::ALL),
            Stage::HardwareBucket => ChainConfig::hardware(Remedies::BUCKET),
            Stage::HardwareCalibrated => ChainConfig::hardware(Remedies::ALL),
        }
    }
}
