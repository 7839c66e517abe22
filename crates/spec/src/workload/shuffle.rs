//! The shuffle of MapReduce: every reducer fetches a part of every mapper's output (Dean and Ghemawat, OSDI 2004).
//!
//! A reducer has so many fetchers (Hadoop's `mapreduce.reduce.shuffle.parallelcopies`); each one takes the next mapper
//! in its turn when it has the output of the one before, over a connection of its own. The order of the mappers is
//! random for each reducer. What lies on the reducer's own host takes no network. A job is a reducer.

use super::message_graph::{MessageGraph, limit};
use super::{Expansion, FlowKeys, SharedKeys, Workload, shuffle_first};
use crate::error::Problem;
use crate::expander::Expander;
use crate::host_name::HostName;
use firstlight_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MapReduce's shuffle: every reducer fetches from every mapper. It has jobs (see table `jobs` of results).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shuffle {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// The mappers: `host3`, `rack0.host3`, `rack0` or `all`.
    #[serde(default = "HostName::all")]
    pub from: HostName,
    /// The reducers, in the same form.
    #[serde(default = "HostName::all")]
    pub to: HostName,
    /// How much a reducer fetches from a mapper.
    pub size: Bytes,
    /// From how many mappers a reducer fetches at once (Hadoop's `mapreduce.reduce.shuffle.parallelcopies`).
    #[serde(default = "parallel")]
    #[schemars(range(min = 1, max = 1_000_000), extend("x-of" = "mappers"))]
    pub parallel: u32,
}

fn parallel() -> u32 {
    5
}

impl Workload for Shuffle {
    fn keys(&self) -> &dyn SharedKeys {
        &self.shared
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let (mappers, reducers) = (expander.hosts("from", self.from)?, expander.hosts("to", self.to)?);
        if mappers == reducers && mappers.len() == 1 {
            let text = "the only mapper is on the reducer's host, so nothing is sent: name others";
            return Err(expander.problem("to", text));
        }
        let (size, parallel) = (self.size.get(), self.parallel as usize);
        let count = mappers.len() as u64 * reducers.len() as u64;
        limit(expander, "from", count, count)?;
        let mut random = expander.random("order");
        let mut graph = MessageGraph::new(expander, &self.shared)?;
        for reducer in reducers {
            let mut order: Vec<usize> = mappers.iter().copied().filter(|mapper| *mapper != reducer).collect();
            if order.is_empty() {
                continue;
            }
            let all = order.len();
            shuffle_first(&mut random, &mut order, all);
            let job = graph.job(size.saturating_mul(all as u64));
            let mut sent = vec![];
            for (nth, mapper) in order.into_iter().enumerate() {
                let connection = graph.connection((mapper, reducer));
                let before = nth.checked_sub(parallel).map(|before| sent[before]);
                sent.push(graph.send(connection, size, job, before.as_slice()));
            }
        }
        graph.expansion()
    }
}
