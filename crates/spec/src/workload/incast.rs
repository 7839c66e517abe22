//! Incast: many hosts send to one at the same time, once or again and again. A job is a round.

use super::rounds::Rounds;
use super::{Expansion, FlowKeys, Job, SharedKeys, Workload, shuffle_first};
use crate::error::Problem;
use crate::expander::{Expander, MOST_FLOWS};
use crate::host_name::HostName;
use firstlight_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Many hosts send to one, at once. With a `size`, each round is a job (see table `jobs` of results).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Incast {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// Senders: `host3`, `rack0.host3`, `rack0` or `all`.
    #[serde(default = "HostName::all")]
    pub from: HostName,
    /// The one receiver: `host3` or `rack0.host3`.
    #[schemars(extend("examples" = ["host0"]))]
    pub to: HostName,
    /// How many of `from` send at once.
    #[schemars(range(min = 1, max = 65_535), extend("x-of" = "hosts", "x-without" = "all of them"))]
    pub senders: Option<u32>,
    /// The senders are drawn anew each time. `false`: always the first of `from`.
    #[serde(default)]
    pub random: bool,
    /// How much each flow sends.
    #[schemars(extend("x-without" = "it sends until the end"))]
    pub size: Option<Bytes>,
    /// Each flow starts at random within this span after its time.
    #[serde(default)]
    pub jitter: Span,
    /// When the incast happens again.
    #[serde(flatten)]
    pub rounds: Rounds,
}

impl Workload for Incast {
    fn keys(&self) -> &dyn SharedKeys {
        &self.shared
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        expander.starts(self.shared.common.start, self.jitter)?;
        let (candidates, to) = self.ends(expander)?;
        let senders = self.senders.map_or(candidates.len(), |senders| senders as usize);
        if senders > candidates.len() {
            let text = format!("only {0} hosts of `from` can send: use at most {0}", candidates.len());
            return Err(expander.problem("senders", text));
        }
        if self.random && senders == candidates.len() {
            let text = "has no effect: every host of `from` sends anyway; give fewer senders, or take it out";
            return Err(expander.problem("random", text));
        }
        let rounds = self.rounds.starts(expander, self.shared.common.start, self.jitter)?;
        let asked = self.rounds.asked();
        if (rounds.len()).saturating_mul(senders) > MOST_FLOWS {
            let text =
                format!("{} rounds of {senders} flows are too many: use at most {MOST_FLOWS} flows", rounds.len());
            return Err(expander.problem(if asked.is_some() { "rounds" } else { "period" }, text));
        }
        let mut random = expander.random("senders");
        let mut pairs = vec![];
        for _ in &rounds {
            let mut from = candidates.clone();
            if self.random {
                shuffle_first(&mut random, &mut from, senders);
            }
            pairs.extend(from[..senders].iter().map(|&src| (src, to)));
        }
        let mut flows = expander.between(&self.shared.connections, self.shared.common.class, &pairs)?;
        for (nth, flow) in flows.iter_mut().enumerate() {
            (flow.start, flow.jitter, flow.size) = (rounds[nth / senders], self.jitter, self.size);
        }
        let jobs = Job::of_flows(expander, &self.shared.connections, &flows, senders);
        Ok(Expansion { flows, jobs, asked: asked.map(|rounds| rounds * senders), ..Expansion::default() })
    }
}

impl Incast {
    /// The hosts that may send, and the one that receives.
    fn ends(&self, expander: &Expander<'_>) -> Result<(Vec<usize>, usize), Box<Problem>> {
        let name = self.to;
        let to = expander.hosts("to", name)?;
        if !name.is_single() {
            return Err(expander.problem("to", format!("{name} is not one host: write for example \"host0\"")));
        }
        let from: Vec<usize> = expander.hosts("from", self.from)?.into_iter().filter(|&host| host != to[0]).collect();
        if from.is_empty() {
            return Err(expander.problem("to", format!("{name} would send to itself: name another host")));
        }
        Ok((from, to[0]))
    }
}
