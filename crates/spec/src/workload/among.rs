//! Keys of workloads in which the same hosts send and receive, all at the same time.

use super::{Expansion, FlowKeys, at_once};
use crate::error::Problem;
use crate::expander::{Expander, HostPair};
use crate::host_name::HostName;
use firstlight_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts that send to each other, all at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Among {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// The hosts that send and receive: `rack0`, `all`.
    #[serde(default = "HostName::all")]
    pub among: HostName,
    /// How much each flow sends.
    #[schemars(extend("x-without" = "it sends until the end"))]
    pub size: Option<Bytes>,
    /// Each flow starts at random within this span after its time.
    #[serde(default)]
    pub jitter: Span,
}

impl Among {
    /// The hosts that send and receive: at least two.
    pub(super) fn hosts(&self, expander: &Expander<'_>) -> Result<Vec<usize>, Box<Problem>> {
        let hosts = expander.hosts("among", self.among)?;
        if hosts.len() < 2 {
            return Err(expander.problem("among", "one host has no other host to send to: name a rack or \"all\""));
        }
        Ok(hosts)
    }

    /// A flow for each pair.
    pub(super) fn flows(&self, expander: &Expander<'_>, pairs: &[HostPair]) -> Result<Expansion, Box<Problem>> {
        at_once(expander, &self.shared, self.jitter, self.size, pairs)
    }
}
