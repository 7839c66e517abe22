//! Flows between random pairs whose starts are a Poisson process.
//!
//! Load is what DX (section 6.3) calls load at the edge: the payload of the flows that start in a second, divided by
//! the capacity of the senders' links in a second. With n senders of rate R and a mean size S, flows start at the rate
//! load n R / (8 S); where rates differ, n R is their sum. Headers and retransmissions come in addition.

use super::arrivals::Arrivals;
use super::{Expansion, FlowKeys, SharedKeys, Workload};
use crate::error::Problem;
use crate::expander::{Expander, HostPair, MOST_FLOWS};
use crate::host_name::HostName;
use firstlight_formats::sizes::{Cdf, NAMES};
use firstlight_formats::{cdf, nearest};
use firstlight_net::{Xoshiro256PlusPlus, uniform};
use firstlight_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flows start at random moments between random pairs, at a given load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Poisson {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// Senders: `host3`, `rack0.host3`, `rack0` or `all`.
    #[serde(default = "HostName::all")]
    pub from: HostName,
    /// Receivers, in the same form. Each pair of different hosts is as likely as any other.
    #[serde(default = "HostName::all")]
    pub to: HostName,
    /// The load at the edge: the payload of flows that start in a second, divided by the capacity of the links of all
    /// hosts in `from`. Flows start at load x hosts x `hosts.rate` / mean flow size.
    #[schemars(range(max = 2), extend("exclusiveMinimum" = 0))]
    pub load: f64,
    /// Distribution of the flow sizes: `web-search`, `data-mining`, `hadoop`, `cache-follower`, `storage`, or a file
    /// with a size and the part of the flows that are not larger (in percent or as a probability) on each line, its
    /// path relative to the experiment's.
    #[schemars(extend("x-without" = "see `size`"))]
    pub sizes: Option<String>,
    /// The unit of sizes in the file of `sizes`: `1460B` where it counts packets.
    #[schemars(extend("x-without" = "bytes"))]
    pub unit: Option<Bytes>,
    /// How much each flow sends.
    #[schemars(extend("x-without" = "see `sizes`"))]
    pub size: Option<Bytes>,
    /// How many flows: no more start.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-of" = "flows", "x-without" = "all until the run's end"))]
    pub flows: Option<u32>,
}

impl Workload for Poisson {
    fn keys(&self) -> &dyn SharedKeys {
        &self.shared
    }

    /// The flows, in the order in which they start.
    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        expander.starts(self.shared.common.start, Span::ZERO)?;
        let sizes = self.sizes(expander)?;
        let (from, to) = self.ends(expander)?;
        let rates = &expander.directory.rates;
        let carried = self.load * from.iter().map(|host| rates[*host].as_bps() as f64).sum::<f64>();
        let gap = 8.0 * sizes.mean() * 1e12 / carried;
        let asked = self.flows.map(|flows| flows as usize);

        let mut arrivals = Arrivals::new(expander.random("arrivals"), self.shared.common.start, gap);
        let starts: Vec<_> = std::iter::repeat_with(|| arrivals.next())
            .take_while(|start| *start < expander.duration())
            .take(asked.unwrap_or(MOST_FLOWS + 1))
            .collect();
        if starts.len() > MOST_FLOWS {
            let duration = expander.duration();
            let text =
                format!("more than {MOST_FLOWS} flows would start in {duration}: set flows to fewer, or lower load");
            return Err(expander.problem("load", text));
        }
        let mut random = expander.random("pairs");
        let pairs: Vec<HostPair> = starts.iter().map(|_| draw(&mut random, &from, &to)).collect();
        let mut flows = expander.between(&self.shared.connections, self.shared.common.class, &pairs)?;
        let mut random = expander.random("sizes");
        for (flow, start) in flows.iter_mut().zip(starts) {
            (flow.start, flow.size) = (start, Some(sizes.sample(&mut random)));
        }
        Ok(Expansion { flows, asked, mean_size: Some(sizes.mean()), ..Expansion::default() })
    }
}

impl Poisson {
    fn ends(&self, expander: &Expander<'_>) -> Result<(Vec<usize>, Vec<usize>), Box<Problem>> {
        let (from, to) = (expander.hosts("from", self.from)?, expander.hosts("to", self.to)?);
        if from.len() == 1 && from == to {
            return Err(expander.problem("to", "the sender would send to itself: name other hosts"));
        }
        Ok((from, to))
    }

    /// The distribution of the sizes.
    fn sizes(&self, expander: &Expander<'_>) -> Result<Cdf, Box<Problem>> {
        let built_in = self.sizes.as_deref().and_then(Cdf::built_in);
        if self.unit.is_some() && (self.sizes.is_none() || built_in.is_some()) {
            let text = "has no effect: it counts only when sizes names a file; take it out";
            return Err(expander.problem("unit", text));
        }
        match (self.size, &self.sizes, built_in) {
            (Some(_), Some(_), _) => Err(expander.problem("sizes", "size and sizes exclude each other: keep one")),
            (Some(size), None, _) => Ok(Cdf::fixed(size)),
            (None, None, _) => Err(expander.missing("sizes", "\"web-search\"")),
            (None, Some(_), Some(cdf)) => Ok(cdf.clone()),
            (None, Some(name), None) => from_file(expander, name, self.unit.unwrap_or(Bytes::new(1))),
        }
    }
}

/// Draws two different hosts.
fn draw(random: &mut Xoshiro256PlusPlus, from: &[usize], to: &[usize]) -> HostPair {
    loop {
        let mut one = |of: &[usize]| of[uniform(random, of.len() as u64) as usize];
        let pair = (one(from), one(to));
        if pair.0 != pair.1 {
            return pair;
        }
    }
}

fn from_file(expander: &Expander<'_>, name: &str, unit: Bytes) -> Result<Cdf, Box<Problem>> {
    let (path, text) = expander.read_file("sizes", name).map_err(|mut problem| {
        let near = nearest(name, NAMES.into_iter());
        let names =
            near.map_or_else(|| format!("use {}, or a file", NAMES.join(", ")), |near| format!("did you mean {near}?"));
        problem.problem = format!("'{name}' is no distribution, and {}: {names}", problem.problem);
        problem
    })?;
    cdf::read(&text, &path, unit).map_err(|error| expander.imported("sizes", error))
}
