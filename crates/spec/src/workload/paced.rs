//! Applications that write at a rate which changes at given times, over TCP: admissible traffic, a hotspot, recovery
//! (the congestive traffic of 802.1's data center bridging, and of the study of TCP over Converged Enhanced Ethernet).
//!
//! Each pair has one connection. In a step its application writes `write` bytes at a time, evenly spaced, the first at
//! the step's start; what the connection cannot send waits in it. A job is a step of a connection: it ends when the
//! receiver has all that was written in the step, so what it takes beyond the step's length is how long the network
//! took to catch up.

use super::message_graph::{MessageGraph, limit};
use super::{Expansion, FlowKeys, SharedKeys, Workload};
use crate::error::Problem;
use crate::expander::Expander;
use crate::host_name::HostName;
use crate::text_form::text_value;
use firstlight_units::{Bytes, RATES, Rate, SPANS, Span, names};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Applications write at given rates. It has jobs (see table `jobs` of results).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Paced {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// Senders: `host3`, `rack0.host3`, `rack0` or `all`.
    #[serde(default = "HostName::all")]
    pub from: HostName,
    /// Receivers, as for `[[flows]]`.
    #[schemars(extend("examples" = ["host0"]))]
    pub to: HostName,
    /// When each application starts to write at what rate of payload: `["0s 1Gbps", "100ms 4Gbps", "110ms off"]`. The
    /// last step goes on until the run's end.
    #[schemars(length(min = 1), extend("x-type" = "a list of steps"))]
    pub steps: Vec<PacedStep>,
    /// How much an application writes at once.
    #[serde(default = "write")]
    pub write: Bytes,
}

fn write() -> Bytes {
    Bytes::new(16 << 10)
}

/// A step of an application: when it starts, and the rate from then on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacedStep {
    start: Span,
    /// `None`: the application writes nothing.
    rate: Option<Rate>,
}

impl FromStr for PacedStep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (start, rate) = text.trim().split_once(char::is_whitespace)?;
            let rate = match rate.trim() {
                "off" => None,
                rate => Some(rate.parse::<Rate>().ok().filter(|rate| rate.as_bps() > 0)?),
            };
            Some(PacedStep { start: start.parse().ok()?, rate })
        };
        parse().ok_or_else(|| {
            format!("'{text}' is no step: write its start and its rate, for example \"100ms 4Gbps\" or \"110ms off\"")
        })
    }
}

impl fmt::Display for PacedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            Some(rate) => write!(f, "{} {rate}", self.start),
            None => write!(f, "{} off", self.start),
        }
    }
}

text_value! {
    PacedStep, format: "paced-step",
    pattern: format!(
        r"^\s*[0-9_.]+({})\s+(off|[0-9_.]+\s*({}))\s*$", names(&[SPANS], "|"), names(&[RATES], "|")
    ),
    example: "100ms 4Gbps"
}

/// A rate from one moment to another.
struct PacedSpan {
    start: Span,
    end: Span,
    rate: Rate,
}

impl Workload for Paced {
    fn keys(&self) -> &dyn SharedKeys {
        &self.shared
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let pairs = expander.pairs(self.from, self.to)?;
        let write = self.write;
        let steps = self.steps(expander)?;
        let writes: u64 = steps.iter().map(|step| step.writes(write)).fold(0, u64::saturating_add);
        limit(expander, "write", pairs.len() as u64, writes.saturating_mul(pairs.len() as u64))?;
        let mut graph = MessageGraph::new(expander, &self.shared)?;
        for pair in pairs {
            let connection = graph.connection(pair);
            for step in &steps {
                let job = graph.job(step.writes(write) * write.get());
                for nth in 0..step.writes(write) {
                    graph.send_at(connection, write.get(), job, step.start + step.moment(write, nth));
                }
            }
        }
        graph.expansion()
    }
}

impl Paced {
    /// The steps that write something: each ends where the next one starts, the last one with the run.
    fn steps(&self, expander: &Expander<'_>) -> Result<Vec<PacedSpan>, Box<Problem>> {
        let ends = self.steps.iter().skip(1).map(|step| step.start).chain([expander.duration()]);
        let mut steps = vec![];
        for (step, end) in self.steps.iter().zip(ends) {
            let start = step.start;
            if start >= end {
                let text = format!(
                    "'{step}' does not end after it starts, at {end}: write growing times before the run's end"
                );
                return Err(expander.problem("steps", text));
            }
            steps.extend(step.rate.map(|rate| PacedSpan { start, end, rate }));
        }
        if steps.is_empty() {
            return Err(expander.problem("steps", "no step writes anything: write for example [\"0s 1Gbps\"]"));
        }
        Ok(steps)
    }
}

impl PacedSpan {
    /// When, after the start, a write is due.
    fn moment(&self, write: Bytes, nth: u64) -> Span {
        let ps = u128::from(write.get()) * 8 * u128::from(nth) * 1_000_000_000_000 / u128::from(self.rate.as_bps());
        Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// How many writes fall into the step: those before its end, one at least.
    fn writes(&self, write: Bytes) -> u64 {
        let length = u128::from((self.end - self.start).as_ps());
        let bits = u128::from(write.get()) * 8 * 1_000_000_000_000;
        u64::try_from((length * u128::from(self.rate.as_bps())).div_ceil(bits)).unwrap_or(u64::MAX).max(1)
    }
}
