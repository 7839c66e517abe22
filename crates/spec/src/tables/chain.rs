//! `[chain]`: DX's experiment on its measurement chain (Lee et al., USENIX ATC'15, section 5.1, Figs. 6 to 8).

use firstlight_net::interface::{ChainConfig, DmaConfig, Remedies, StackDelays};
use firstlight_units::Span;
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
    /// Mean of what a packet's DMA takes longer than the shortest one; exponential.
    #[schemars(extend("x-without" = "40 ns, that of a Xeon E5"))]
    pub bus_jitter: Option<Span>,
    /// The receiving driver joins the packets that TCP gets at once (LRO). TCP answers them with one ACK, which brings
    /// the mean of their one-way delays.
    #[serde(default)]
    pub receive_offload: bool,
    /// Single packets of a second flow, one each 100 us, leave the sending host too. This is the queue in which they
    /// wait for the link.
    #[schemars(extend("x-without" = "no second flow"))]
    pub second_flow: Option<HostQueue>,
}

/// How the flows of a host wait for its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostQueue {
    /// All flows in one queue, in the order of their packets.
    Shared,
    /// Each flow in a queue of its own; the flows take turns.
    PerFlow,
}

impl ChainTable {
    /// How the timestamps are taken.
    pub fn chain(&self) -> ChainConfig {
        match self.stage.chain() {
            ChainConfig::Hardware { poll, dma, remedies } => {
                let dma = DmaConfig { jitter: self.bus_jitter.unwrap_or(dma.jitter), ..dma };
                ChainConfig::Hardware { poll, dma, remedies }
            }
            other => other,
        }
    }
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
