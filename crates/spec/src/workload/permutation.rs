//! A random permutation: each host sends to one other and receives from one other.

use super::{Common, Expansion, Workload, at_once, shuffle_first};
use crate::error::Problem;
use crate::expander::{Expander, HostPair};
use crate::host_name::HostName;
use crate::tables::Connections;
use firstlight_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Each host sends to one other and receives from one other, at random.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Permutation {
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

impl Workload for Permutation {
    fn common(&self) -> &Common {
        &self.common
    }

    fn connections(&self) -> Option<&Connections> {
        Some(&self.connections)
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let hosts = senders_and_receivers(expander, self.among)?;
        let mut random = expander.random("permutation");
        let mut to = hosts.clone();
        // One shuffle in e has no host that would send to itself.
        while hosts.iter().zip(&to).any(|(src, dst)| src == dst) {
            shuffle_first(&mut random, &mut to, hosts.len());
        }
        let pairs: Vec<HostPair> = hosts.into_iter().zip(to).collect();
        at_once(expander, &self.common, &self.connections, self.jitter, self.size, &pairs)
    }
}

/// The hosts that send and receive: at least two.
pub(super) fn senders_and_receivers(expander: &Expander<'_>, among: HostName) -> Result<Vec<usize>, Box<Problem>> {
    let hosts = expander.hosts("among", among)?;
    if hosts.len() < 2 {
        return Err(expander.problem("among", "one host has nobody to send to: name a rack or \"all\""));
    }
    Ok(hosts)
}
