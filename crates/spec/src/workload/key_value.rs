//! Bulk reads from a parallel store, as in "Attaining the Promise and Avoiding the Pitfalls of TCP in the Datacenter"
//! (Judd, NSDI 2015, section 2): its key-value store supports bulk reads and so has a high fan-in; a read from its
//! distributed file system has "the file system's read-ahead limit" of blocks at once.
//!
//! Each client reads again and again. For a read it asks random servers, each for one value: all at once, or at most
//! `read_ahead` at once, so that the next request follows a reply. A request is one write, or a header and the rest
//! (section 4). Connections stay open, one for each direction of a pair of hosts. A job is a read. The paper's text
//! states no sizes and no rates.

use super::message_graph::{MessageGraph, limit};
use super::{Expansion, FlowKeys, SharedKeys, Workload, after, shuffle_first};
use crate::error::Problem;
use crate::expander::{Expander, HostPair};
use crate::host_name::HostName;
use firstlight_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Clients read many values at once from the servers of a store. It has jobs (see table `jobs` of results).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeyValue {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// The clients: `host3`, `rack0.host3`, `rack0` or `all`.
    #[serde(default = "HostName::all")]
    pub from: HostName,
    /// The servers, in the same form.
    #[serde(default = "HostName::all")]
    pub to: HostName,
    /// How many reads each client makes, one after the other.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-of" = "reads"))]
    pub reads: u32,
    /// How many values a read has, each from another server as far as there are so many.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-of" = "values"))]
    pub values: u32,
    /// Size of a value.
    pub size: Bytes,
    /// Size of a request.
    #[serde(default = "request")]
    pub request: Bytes,
    /// This part of a request is written by itself, before the rest. With `nagle` the rest waits until this part is
    /// acknowledged.
    #[schemars(extend("x-above" = "0B", "x-without" = "a request is written at once"))]
    pub header: Option<Bytes>,
    /// The value of `tcp.nagle` for the connections of this workload.
    #[schemars(extend("x-without" = "that of `tcp.nagle`"))]
    pub nagle: Option<bool>,
    /// The value of `tcp.interactive` for the connections of this workload.
    #[schemars(extend("x-without" = "that of `tcp.interactive`"))]
    pub interactive: Option<bool>,
    /// The least time from the start of a read to that of the next one.
    #[schemars(extend("x-above" = "0s", "x-without" = "a read follows the one before at once"))]
    pub interval: Option<Span>,
    /// How many values are asked for at once.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-of" = "values", "x-without" = "all"))]
    pub read_ahead: Option<u32>,
}

fn request() -> Bytes {
    Bytes::new(100)
}

impl Workload for KeyValue {
    fn keys(&self) -> &dyn SharedKeys {
        &self.shared
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let (clients, servers) = (expander.hosts("from", self.from)?, expander.hosts("to", self.to)?);
        if clients == servers && clients.len() == 1 {
            return Err(
                expander.problem("to", "the only server is on the client's host, so nothing is sent: name others")
            );
        }
        let read = u64::from(self.reads) * u64::from(self.values);
        for (key, size) in [("size", self.size), ("request", self.request)] {
            if size.get().checked_mul(read).is_none() {
                let text = format!("{read} times {size} are more than can be counted: use less");
                return Err(expander.problem(key, text));
            }
        }
        if let Some(header) = self.header.filter(|header| *header >= self.request) {
            let text = format!("a request of {} has no {header} before its rest: use less", self.request);
            return Err(expander.problem("header", text));
        }
        let start = self.shared.common.start;
        let last = after(start, self.interval.unwrap_or_default(), u64::from(self.reads - 1));
        if self.interval.is_some() && last >= expander.duration() {
            let text = format!("read {} starts at {last}, after the run's end: use less, or fewer reads", self.reads);
            return Err(expander.problem("interval", text));
        }
        let pairs = clients.len() as u64 * servers.len() as u64;
        let writes = 3 + u64::from(self.header.is_some());
        limit(expander, "reads", 2 * pairs, writes * clients.len() as u64 * read)?;
        let mut random = expander.random("servers");
        let mut graph = MessageGraph::new(expander, &self.shared)?;
        let mut open = OpenConnections(BTreeMap::new());
        for client in clients {
            let mut others: Vec<usize> = servers.iter().copied().filter(|server| *server != client).collect();
            let mut before = None;
            for nth in 0..if others.is_empty() { 0 } else { self.reads } {
                let count = others.len();
                shuffle_first(&mut random, &mut others, count);
                let start = self.interval.map_or(Span::ZERO, |each| after(start, each, u64::from(nth)));
                before = Some(self.read(&mut graph, &mut open, client, &others, (before, start)));
            }
        }
        let mut expansion = graph.expansion()?;
        for flow in &mut expansion.flows {
            flow.nagle = self.nagle.unwrap_or(flow.nagle);
            flow.interactive = self.interactive.unwrap_or(flow.interactive);
        }
        Ok(expansion)
    }
}

impl KeyValue {
    /// One read, which follows the end of the one before and a moment of the run. Returns its own end.
    fn read(
        &self,
        graph: &mut MessageGraph<'_>,
        open: &mut OpenConnections,
        client: usize,
        servers: &[usize],
        (before, start): (Option<u32>, Span),
    ) -> u32 {
        let values = self.values as usize;
        let job = graph.job(self.size.get() * u64::from(self.values));
        let mut replies: Vec<u32> = Vec::with_capacity(values);
        for (nth, &server) in servers.iter().cycle().take(values).enumerate() {
            let ahead = self.read_ahead.and_then(|most| nth.checked_sub(most as usize)).map(|nth| replies[nth]);
            let asks = open.get(graph, (client, server));
            let asked = self.ask(graph, asks, job, start, ahead.or(before).as_slice());
            let answers = open.get(graph, (server, client));
            replies.push(graph.send(answers, self.size.get(), job, &asked));
        }
        graph.wait(Span::ZERO, job, &replies)
    }

    /// A request: its writes, which follow others.
    fn ask(&self, graph: &mut MessageGraph<'_>, flow: u32, job: u32, start: Span, after: &[u32]) -> Vec<u32> {
        let header = self.header.map(Bytes::get);
        let rest = self.request.get() - header.unwrap_or(0);
        let writes = header.into_iter().chain([rest]);
        writes.map(|bytes| graph.send_from(flow, bytes, job, start, after)).collect()
    }
}

/// The connections that stay open, by sender and receiver.
struct OpenConnections(BTreeMap<HostPair, u32>);

impl OpenConnections {
    fn get(&mut self, graph: &mut MessageGraph<'_>, pair: HostPair) -> u32 {
        *self.0.entry(pair).or_insert_with(|| graph.connection(pair))
    }
}
