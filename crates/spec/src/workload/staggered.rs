//! Staggered flows: they start one after another, and stop.

use super::{Expansion, FlowKeys, SharedKeys, Workload, after};
use crate::error::Problem;
use crate::expander::{Expander, HostPair};
use crate::host_name::HostName;
use firstlight_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flows start one after another, and stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Staggered {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// Senders: `host3`, `rack0.host3`, `rack0` or `all`.
    #[serde(default = "HostName::all")]
    pub from: HostName,
    /// Receivers, as for `[[flows]]`.
    #[schemars(extend("examples" = ["host0"]))]
    pub to: HostName,
    /// Time from one flow's start to the next one's.
    #[schemars(extend("x-above" = "0s"))]
    pub interval: Span,
    /// How long each flow sends; then it stops.
    #[schemars(extend("x-above" = "0s", "x-without" = "until the run's end"))]
    pub hold: Option<Span>,
    /// How many flows: pair after pair, beginning again at the first.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-of" = "flows", "x-without" = "one for each pair"))]
    pub flows: Option<u32>,
}

impl Workload for Staggered {
    fn keys(&self) -> &dyn SharedKeys {
        &self.shared
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let pairs = expander.pairs(self.from, self.to)?;
        let start = self.shared.common.start;
        expander.starts(start, Span::ZERO)?;
        let count = self.flows.map_or(pairs.len(), |flows| flows as usize);
        let last = after(start, self.interval, count as u64 - 1);
        if last >= expander.duration() {
            let text = format!(
                "the last of {count} flows would start at {last}, after the run's end: use fewer, or a longer duration"
            );
            return Err(expander.problem(if self.flows.is_some() { "flows" } else { "interval" }, text));
        }
        let each: Vec<HostPair> = pairs.iter().copied().cycle().take(count).collect();
        let mut flows = expander.between(&self.shared.connections, self.shared.common.class, &each)?;
        for (nth, flow) in flows.iter_mut().enumerate() {
            flow.start = after(start, self.interval, nth as u64);
            flow.stop = self.hold.map(|hold| after(flow.start, hold, 1));
        }
        Ok(Expansion { flows, ..Expansion::default() })
    }
}
