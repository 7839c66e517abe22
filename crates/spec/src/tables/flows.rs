//! `[[flows]]`: hosts that send to hosts.

use crate::error::Problem;
use crate::expander::{Expander, Flow, HostPair, MOST_FLOWS};
use crate::host_kind::HostKind;
use crate::host_name::HostName;
use firstlight_transport::ReadRate;
use firstlight_transport::cc::CcName;
use firstlight_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flows from hosts to hosts; at least one entry, unless there is a workload or a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowsTable {
    /// Senders: `host3`, `rack0.host3`, `rack0` (each of its hosts) or `all`. Hosts are counted from 0, `host3` over
    /// the whole fabric.
    pub from: HostName,
    /// Receivers, in the same form. Rack to rack: each host to its counterpart. Rack or `all` to a host: an incast.
    pub to: HostName,
    /// Hosts and congestion control.
    #[serde(flatten)]
    pub connections: Connections,
    /// How much each flow sends.
    #[schemars(extend("x-without" = "without `total` too: sends until the end"))]
    pub size: Option<Bytes>,
    /// How much the flows of this entry send together, in equal shares; instead of `size`.
    #[schemars(extend("x-without" = "see `size`"))]
    pub total: Option<Bytes>,
    /// When the flows start.
    #[serde(default)]
    pub start: Span,
    /// Each flow starts at random within this span after `start`.
    #[serde(default)]
    pub jitter: Span,
    /// How many flows for each pair of hosts.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10_000), extend("x-of" = "flows"))]
    pub count: u32,
    /// Traffic class of the packets, in both directions.
    #[schemars(
        range(min = 0, max = 7),
        extend("x-without" = "that of `hosts.classes` for its congestion control, else 0")
    )]
    pub class: Option<u8>,
    /// The rate at which the receiving program works on what it has read, before it reads again. What arrives meanwhile
    /// fills the receive buffer. A flow is complete when the program has read its last byte.
    #[schemars(extend("x-without" = "the program reads what has arrived at once"))]
    pub read_rate: Option<Rate>,
    /// How much this program takes at most with one call.
    #[schemars(extend("x-above" = "0B", "x-most" = "1073741824B", "x-without" = "with `read_rate`: 65536B"))]
    pub read_size: Option<Bytes>,
}

/// The keys of connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// The kind of both ends' hosts: whose TCP they run.
    #[schemars(extend("x-without" = "`hosts.kind`"))]
    pub hosts: Option<HostKind>,
    /// Congestion control.
    #[schemars(extend("x-without" = "`tcp.cc`, or the sending Linux host's own"))]
    pub cc: Option<CcName>,
}

const READ_SIZE: Bytes = Bytes::new(64 << 10);

fn one() -> u32 {
    1
}

impl FlowsTable {
    /// The flows of the entry.
    pub(crate) fn expand(&self, expander: &Expander<'_>) -> Result<Vec<Flow>, Box<Problem>> {
        let pairs = expander.pairs(self.from, self.to)?;
        let per_pair = self.count as usize;
        let share = self.share(expander, pairs.len() * per_pair)?;
        expander.starts(self.start, self.jitter)?;
        let repeated = pairs.iter().flat_map(|pair| std::iter::repeat_n(*pair, per_pair));
        let each: Vec<HostPair> = repeated.take(MOST_FLOWS + 1).collect();
        let mut flows = expander.between(&self.connections, self.class, &each)?;
        let reads = self.reads(expander)?;
        for (nth, flow) in flows.iter_mut().enumerate() {
            flow.size = share.map(|(size, longer)| Bytes::new(size + u64::from((nth as u64) < longer)));
            (flow.start, flow.jitter, flow.reads) = (self.start, self.jitter, reads);
        }
        Ok(flows)
    }

    /// How fast the receiving programs read.
    fn reads(&self, expander: &Expander<'_>) -> Result<Option<ReadRate>, Box<Problem>> {
        if self.read_rate.is_none() && self.read_size.is_some() {
            return Err(expander.problem("read_size", "has no effect without read_rate: add that, or take this out"));
        }
        let size = self.read_size.unwrap_or(READ_SIZE);
        Ok(self.read_rate.map(|rate| ReadRate { size, rate }))
    }

    /// Bytes for each of `count` flows, and how many of the first ones send one byte more.
    fn share(&self, expander: &Expander<'_>, count: usize) -> Result<Option<(u64, u64)>, Box<Problem>> {
        match (self.size, self.total) {
            (Some(_), Some(_)) => Err(expander.problem("total", "size and total exclude each other: keep one")),
            (Some(size), None) => Ok(Some((size.get(), 0))),
            (None, Some(total)) if total.get() < count as u64 => {
                Err(expander
                    .problem("total", format!("{total} is too little for {count} flows: use at least {count}B")))
            }
            (None, Some(total)) => Ok(Some((total.get() / count as u64, total.get() % count as u64))),
            (None, None) => Ok(None),
        }
    }
}
