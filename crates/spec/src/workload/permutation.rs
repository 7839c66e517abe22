//! A random permutation: each host sends to one other and receives from one other.

use super::among::Among;
use super::{Expansion, SharedKeys, Workload, shuffle_first};
use crate::error::Problem;
use crate::expander::{Expander, HostPair};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Each host sends to one other and receives from one other, at random.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Permutation {
    /// Who sends how much.
    #[serde(flatten)]
    pub among: Among,
}

impl Workload for Permutation {
    fn keys(&self) -> &dyn SharedKeys {
        &self.among.shared
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let hosts = self.among.hosts(expander)?;
        let mut random = expander.random("permutation");
        let mut to = hosts.clone();
        // One shuffle in e has no host that would send to itself.
        while hosts.iter().zip(&to).any(|(src, dst)| src == dst) {
            shuffle_first(&mut random, &mut to, hosts.len());
        }
        let pairs: Vec<HostPair> = hosts.into_iter().zip(to).collect();
        self.among.flows(expander, &pairs)
    }
}
