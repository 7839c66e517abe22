//! `[tcp]`: the TCP of the hosts.

use firstlight_transport::TcpConfig;
use firstlight_transport::cc::CcName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The hosts' TCP. Its times are of the hosts' own clocks: `time_scale` does not stretch them. Defaults are those of a
/// Linux kernel out of the box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpTable {
    /// Congestion control of flows that name none, and of programs' connections.
    #[serde(default = "cubic")]
    #[schemars(extend("x-when" = "default cc"))]
    pub cc: CcName,
    /// The endpoint's settings.
    #[serde(flatten)]
    pub tcp: TcpConfig,
}

fn cubic() -> CcName {
    CcName::CUBIC
}

impl Default for TcpTable {
    fn default() -> Self {
        TcpTable { cc: CcName::CUBIC, tcp: TcpConfig::default() }
    }
}
