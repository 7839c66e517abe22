//! Queries that are split and gathered over two levels, as in the study of TCP over Converged Enhanced Ethernet
//! (Anghel, Birke, Crisan and Gusat, "Cross-Layer Flow and Congestion Control for Datacenter Networks", 2011:
//! commercial workloads).
//!
//! The hosts of rack 0 are high-level aggregators. For a query one of them asks a mid-level aggregator, a random host
//! of the other racks; that one asks every other host of its rack at once; each of them replies, and when all replies
//! are there the mid-level aggregator replies. A job is a query: its time is the query's completion time.
//!
//! A connection carries what is sent one way, so a pair that asks and replies has two. With `connections = "new"` each
//! request and each reply is a connection of its own and pays for its handshake.

use super::arrivals::Arrivals;
use super::message_graph::{MOST_MESSAGES, MessageGraph, limit};
use super::{Expansion, FlowKeys, SharedKeys, Workload};
use crate::error::Problem;
use crate::expander::{Expander, HostPair};
use firstlight_net::uniform;
use firstlight_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Queries that spread over a rack and come back. It has jobs (see table `jobs` of results).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionAggregate {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// Size of a request, to an aggregator and to a worker.
    #[serde(default = "request")]
    pub request: Bytes,
    /// Size of a reply, a worker's and an aggregator's.
    #[serde(default = "reply")]
    pub reply: Bytes,
    /// How long a worker takes to answer.
    #[serde(default)]
    pub compute: Span,
    /// How many queries each host of rack 0 has.
    #[schemars(
        range(min = 1, max = 1_000_000),
        extend("x-of" = "queries", "x-without" = "with `interval`: until the run's end; else required")
    )]
    pub queries: Option<u32>,
    /// Time from an aggregator's query to its next one on average, at random.
    #[schemars(extend("x-above" = "0s", "x-without" = "a query follows when the one before is complete"))]
    pub interval: Option<Span>,
    /// How many connections queries take.
    #[serde(default)]
    pub connections: QueryConnections,
}

/// The connections of queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueryConnections {
    /// Each pair's connection, one for each direction, stays open.
    #[default]
    Persistent,
    /// One connection for each request and reply.
    New,
}

fn request() -> Bytes {
    Bytes::new(2000)
}

fn reply() -> Bytes {
    Bytes::new(20_000)
}

/// The messages of a query, and the connections that carry them.
struct Query {
    request: u64,
    reply: u64,
    compute: Span,
    /// The connections that stay open; `None` when each message has its own.
    open: Option<BTreeMap<HostPair, u32>>,
}

impl Workload for PartitionAggregate {
    fn keys(&self) -> &dyn SharedKeys {
        &self.shared
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let (racks, per_rack) = racks(expander)?;
        let starts = (0..per_rack).map(|host| self.starts(expander, host)).collect::<Result<Vec<_>, _>>()?;
        let persistent = self.connections == QueryConnections::Persistent;
        let mut query = Query {
            request: self.request.get(),
            reply: self.reply.get(),
            compute: self.compute,
            open: persistent.then(BTreeMap::new),
        };
        let sent = starts.iter().map(Vec::len).sum::<usize>() as u64 * 2 * per_rack as u64;
        limit(expander, "queries", if persistent { 0 } else { sent }, sent * 2)?;
        let mut random = expander.random("aggregators");
        let mut graph = MessageGraph::new(expander, &self.shared)?;
        for (asker, starts) in starts.into_iter().enumerate() {
            let mut last = None;
            for start in starts {
                let aggregator = per_rack + uniform(&mut random, ((racks - 1) * per_rack) as u64) as usize;
                let first = aggregator - aggregator % per_rack;
                let workers = (first..first + per_rack).filter(|host| *host != aggregator);
                let job = graph.job(query.reply * per_rack as u64);
                let asked = start.map_or(last, |start| Some(graph.wait_until(start, job)));
                last = Some(query.send(&mut graph, [asker, aggregator], workers, job, asked));
            }
        }
        graph.expansion()
    }
}

impl PartitionAggregate {
    /// When the queries of an aggregator start; `None` for a query that follows the one before.
    fn starts(&self, expander: &Expander<'_>, host: usize) -> Result<Vec<Option<Span>>, Box<Problem>> {
        let asked = self.queries.map(|queries| queries as usize);
        let Some(mean) = self.interval else {
            let queries = asked.ok_or_else(|| expander.missing("queries", "100"))?;
            return Ok(vec![None; queries]);
        };
        let start = self.shared.common.start;
        expander.starts(start, Span::ZERO)?;
        let mut arrivals = Arrivals::new(expander.random(&format!("queries{host}")), start, mean.as_ps() as f64);
        let moments = std::iter::repeat_with(|| arrivals.next()).take_while(|moment| *moment < expander.duration());
        Ok(moments.take(asked.unwrap_or(MOST_MESSAGES)).map(Some).collect())
    }
}

/// How many racks there are, and hosts in each.
fn racks(expander: &Expander<'_>) -> Result<(usize, usize), Box<Problem>> {
    match (expander.directory.racks(), expander.directory.per_rack()) {
        (Some(racks), per_rack) if racks > 1 && per_rack > 1 => Ok((racks, per_rack)),
        _ => {
            let text = "rack 0 asks the others, whose hosts ask each other: use a fabric with racks, at least two of \
                        two hosts";
            Err(expander.problem("kind", text))
        }
    }
}

impl Query {
    /// Sends the query, which depends on the messages before. Returns its last message.
    fn send(
        &mut self,
        graph: &mut MessageGraph<'_>,
        [asker, aggregator]: [usize; 2],
        workers: impl Iterator<Item = usize>,
        job: u32,
        after: Option<u32>,
    ) -> u32 {
        let request = self.message(graph, (asker, aggregator), self.request, job, after.as_slice());
        let replies: Vec<u32> = workers
            .map(|worker| {
                let mut asked = self.message(graph, (aggregator, worker), self.request, job, &[request]);
                if !self.compute.is_zero() {
                    asked = graph.wait(self.compute, job, &[asked]);
                }
                self.message(graph, (worker, aggregator), self.reply, job, &[asked])
            })
            .collect();
        self.message(graph, (aggregator, asker), self.reply, job, &replies)
    }

    fn message(&mut self, graph: &mut MessageGraph<'_>, pair: HostPair, bytes: u64, job: u32, after: &[u32]) -> u32 {
        let connection = match &mut self.open {
            Some(open) => *open.entry(pair).or_insert_with(|| graph.connection(pair)),
            None => graph.connection(pair),
        };
        graph.send(connection, bytes, job, after)
    }
}
