//! All to all: each host sends to each other.

use super::among::Among;
use super::{Expansion, SharedKeys, Workload};
use crate::error::Problem;
use crate::expander::{Expander, HostPair, MOST_FLOWS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Each host sends to each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllToAll {
    /// Who sends how much.
    #[serde(flatten)]
    pub among: Among,
}

impl Workload for AllToAll {
    fn keys(&self) -> &dyn SharedKeys {
        &self.among.shared
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let hosts = self.among.hosts(expander)?;
        let count = hosts.len() * (hosts.len() - 1);
        if count > MOST_FLOWS {
            let text = format!("{count} flows are too many: use at most {MOST_FLOWS}, of fewer hosts");
            return Err(expander.problem("among", text));
        }
        // Host i first sends to i + 1, so that a list cut off anywhere burdens all alike.
        let n = hosts.len();
        let steps = (1..n).flat_map(|step| (0..n).map(move |i| (i, (i + step) % n)));
        let pairs: Vec<HostPair> = steps.map(|(i, j)| (hosts[i], hosts[j])).collect();
        self.among.flows(expander, &pairs)
    }
}
