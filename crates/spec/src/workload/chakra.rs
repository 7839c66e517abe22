//! Replay of a training job or another distributed program from its Chakra execution traces, one of each rank
//! (`firstlight_formats::chakra` has the format and the collective operations).
//!
//! Nodes run as the operations of [`super::goal`] do: a send is over for its rank when it begins, a receive when its
//! message is complete, and computations of a rank that do not depend on each other overlap. A job is the whole
//! program.

use super::goal::Replay;
use super::ranks::RankKeys;
use super::{Expansion, FlowKeys, SharedKeys, Workload};
use crate::error::Problem;
use crate::expander::Expander;
use firstlight_formats::chakra::collectives::CollectiveAlgorithm;
use firstlight_formats::chakra::{self, RankTrace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A distributed program from its Chakra execution traces. It has one job (see table `jobs` of results).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chakra {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// The traces, without the end of their names: `llama` stands for `llama.0.et`, `llama.1.et` and so on, the trace
    /// of each rank; the path is relative to the experiment's.
    #[schemars(extend("examples" = ["llama"]))]
    pub traces: String,
    /// How collective operations become messages.
    #[serde(default)]
    pub collectives: CollectiveRule,
    /// The hosts of the ranks.
    #[serde(flatten)]
    pub ranks_on: RankKeys,
}

/// How collective operations become messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CollectiveRule {
    /// Each rank sends to the next one only.
    #[default]
    Ring,
    /// Binomial trees.
    Tree,
    /// Recursive halving and doubling.
    HalvingDoubling,
}

impl From<CollectiveRule> for CollectiveAlgorithm {
    fn from(rule: CollectiveRule) -> Self {
        match rule {
            CollectiveRule::Ring => CollectiveAlgorithm::Ring,
            CollectiveRule::Tree => CollectiveAlgorithm::Tree,
            CollectiveRule::HalvingDoubling => CollectiveAlgorithm::HalvingDoubling,
        }
    }
}

impl Workload for Chakra {
    fn keys(&self) -> &dyn SharedKeys {
        &self.shared
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let hosts = self.ranks_on.hosts(expander)?;
        let ranks = expander.count_files(&format!("{}.", self.traces), ".et").max(1);
        if ranks > hosts.len() {
            let text = format!(
                "there are {ranks} traces for {} hosts: use a larger fabric, or more hosts in among",
                hosts.len()
            );
            return Err(expander.problem("traces", text));
        }
        let mut traces = vec![];
        for rank in 0..ranks {
            let (name, bytes) = expander.read_bytes("traces", &format!("{}.{rank}.et", self.traces))?;
            traces.push(RankTrace { name, bytes });
        }
        let schedule =
            chakra::read(&traces, self.collectives.into()).map_err(|error| expander.imported("traces", error))?;
        let name = |rank: u32| traces[rank as usize].name.as_str();
        Replay { expander, keys: &self.shared, key: "traces", name: &name }.expansion(&schedule, &hosts)
    }
}
