//! `[[flows]]`: hosts that send to hosts.

use crate::error::Problem;
use crate::expander::{Expander, Flow, HostPair, MOST_FLOWS};
use crate::host_kind::HostKind;
use crate::host_name::HostName;
use firstlight_transport::cc::CcName;
use firstlight_units::{Bytes, Span};
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
        for (nth, flow) in flows.iter_mut().enumerate() {
            flow.size = share.map(|(size, longer)| Bytes::new(size + u64::from((nth as u64) < longer)));
            (flow.start, flow.jitter) = (self.start, self.jitter);
        }
        Ok(flows)
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
