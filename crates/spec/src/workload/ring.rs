//! A ring of big flows among small ones: every rack sends much to the next one, or to the next two, and little to all
//! others (the demand by which the slides of Etalon's first version show that VOQs are a poor estimate: B, s, s, ...).
//!
//! A pair of racks at distance d uses host d - 1 of both, then the next one, so that flows are spread over the hosts of
//! a rack. Where a fabric has no racks, its hosts make the ring. A job is a round.

use super::rounds::Rounds;
use super::{Expansion, FlowKeys, Job, SharedKeys, Workload};
use crate::error::Problem;
use crate::expander::{Expander, HostPair, MOST_FLOWS};
use firstlight_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Each rack sends big flows to the next one and small ones to all others; where a fabric has no racks, each host. Each
/// round is a job (see table `jobs` of results).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RingWorkload {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// Size of a flow to the next rack.
    pub big: Bytes,
    /// Size of a flow to any other rack.
    #[schemars(extend("x-without" = "there are none"))]
    pub small: Option<Bytes>,
    /// 2: the flows to the rack after the next one are big too.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 2), extend("x-of" = "rings"))]
    pub rings: u32,
    /// Flows from a rack to a rack in each round.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000), extend("x-of" = "flows"))]
    pub per_pair: u32,
    /// Each flow starts at random within this span after its time.
    #[serde(default)]
    pub jitter: Span,
    /// When the ring happens again.
    #[serde(flatten)]
    pub rounds: Rounds,
}

fn one() -> u32 {
    1
}

impl Workload for RingWorkload {
    fn keys(&self) -> &dyn SharedKeys {
        &self.shared
    }

    /// The flows: of each round, of each distance, from each rack.
    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let start = self.shared.common.start;
        expander.starts(start, self.jitter)?;
        let (rounds, asked) = (self.rounds.starts(expander, start, self.jitter)?, self.rounds.asked());
        let (units, hosts) = expander.directory.units();
        let rings = self.rings as usize;
        if units <= rings {
            let text =
                format!("{units} racks or hosts make no ring of distance {rings}: use fewer rings or a larger fabric");
            return Err(expander.problem("rings", text));
        }
        let size = |distance: usize| if distance <= rings { Some(self.big) } else { self.small };
        let sent: Vec<(usize, Bytes)> = (1..units).filter_map(|distance| Some((distance, size(distance)?))).collect();
        let parallel = self.per_pair as usize;
        let in_round = sent.len() * units * parallel;
        if rounds.len().saturating_mul(in_round) > MOST_FLOWS {
            let text =
                format!("{} rounds of {in_round} flows are too many: use at most {MOST_FLOWS} flows", rounds.len());
            return Err(expander.problem(if asked.is_some() { "rounds" } else { "per_pair" }, text));
        }
        let (mut pairs, mut carried): (Vec<HostPair>, Vec<_>) = (vec![], vec![]);
        for (round, start) in rounds.iter().enumerate() {
            for (distance, size) in &sent {
                for turn in (0..parallel).map(|nth| distance - 1 + nth * (units - 1) + round) {
                    let host = |unit: usize| unit % units * hosts + turn % hosts;
                    pairs.extend((0..units).map(|from| (host(from), host(from + distance))));
                    carried.extend(std::iter::repeat_n((*start, *size), units));
                }
            }
        }
        let mut flows = expander.between(&self.shared.connections, self.shared.common.class, &pairs)?;
        for (flow, (start, size)) in flows.iter_mut().zip(carried) {
            (flow.start, flow.size, flow.jitter) = (start, Some(size), self.jitter);
        }
        let jobs = Job::of_flows(expander, &self.shared.connections, &flows, in_round);
        Ok(Expansion { flows, jobs, asked: asked.map(|rounds| rounds * in_round), ..Expansion::default() })
    }
}
