//! All to all: each host sends to each other.

use super::permutation::senders_and_receivers;
use super::{Common, Expansion, Workload, at_once};
use crate::error::Problem;
use crate::expander::{Expander, HostPair, MOST_FLOWS};
use crate::host_name::HostName;
use crate::tables::Connections;
use firstlight_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Each host sends to each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllToAll {
    /// Keys that every workload has.
    #[serde(flatten)]
    pub common: Common,
    /// Hosts and congestion control.
    #[serde(flatten)]
    pub connections: Connections,
    /// Which hosts send and receive: `rack0`, `all`.
    #[serde(default = "HostName::all")]
    pub among: HostName,
    /// How much each flow sends.
    #[schemars(extend("x-without" = "it sends until the end"))]
    pub size: Option<Bytes>,
    /// Each flow starts at random within this span after its time.
    #[serde(default)]
    pub jitter: Span,
}

impl Workload for AllToAll {
    fn common(&self) -> &Common {
        &self.common
    }

    fn connections(&self) -> Option<&Connections> {
        Some(&self.connections)
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let hosts = senders_and_receivers(expander, self.among)?;
        let count = hosts.len() * (hosts.len() - 1);
        if count > MOST_FLOWS {
            let text = format!("{count} flows are too many: use at most {MOST_FLOWS}, of fewer hosts");
            return Err(expander.problem("among", text));
        }
        // Host i first sends to i + 1, so that a list cut off anywhere burdens all alike.
        let n = hosts.len();
        let steps = (1..n).flat_map(|step| (0..n).map(move |i| (i, (i + step) % n)));
        let pairs: Vec<HostPair> = steps.map(|(i, j)| (hosts[i], hosts[j])).collect();
        at_once(expander, &self.common, &self.connections, self.jitter, self.size, &pairs)
    }
}
