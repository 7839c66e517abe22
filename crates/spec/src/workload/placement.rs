//! The placement of a block's replicas in HDFS.
//!
//! `random` is the default of HDFS: the first replica on the writer's host, the second in a random other rack, the
//! third on another host of that rack ("The Hadoop Distributed File System", MSST 2010, section III.C, with the racks
//! of the second and third as in releases since). `rehdfs` is that of Etalon's first version (its slides, "reHDFS"):
//! the second rack is a function of the writer's, so that each rack needs one circuit; it may change from time to time,
//! here after so many blocks of a writer.

use crate::error::Problem;
use crate::expander::Expander;
use firstlight_net::{Xoshiro256PlusPlus, uniform};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the replicas of a block are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PlacementKeys {
    /// Replicas of each block, the first one on the writer's host.
    #[schemars(range(min = 2, max = 3), extend("x-of" = "replicas"))]
    pub replication: u32,
    /// The rack of the second and third replica.
    pub placement: PlacementRule,
    /// With `rehdfs`: how many racks further the replicas are.
    #[schemars(range(min = 1, max = 65_535), extend("x-of" = "racks", "x-without" = "1"))]
    pub shift: Option<u32>,
    /// With `rehdfs`: a writer's `shift` grows by 1 after this number of blocks.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-of" = "blocks", "x-without" = "it stays"))]
    pub rotate: Option<u32>,
}

/// How the rack of replicas is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlacementRule {
    /// A random other rack, as HDFS has it.
    #[default]
    Random,
    /// A function of the writer's rack, see `shift`.
    Rehdfs,
}

impl Default for PlacementKeys {
    fn default() -> Self {
        PlacementKeys { replication: 3, placement: PlacementRule::Random, shift: None, rotate: None }
    }
}

/// Chooses hosts for replicas.
pub(super) struct Placement {
    random: Xoshiro256PlusPlus,
    racks: usize,
    per_rack: usize,
    replication: usize,
    shift: Option<Shift>,
}

/// How many racks further the second replica is.
struct Shift {
    first: usize,
    rotate: Option<usize>,
}

impl Placement {
    /// The placement that a workload's keys describe.
    pub fn of(keys: &PlacementKeys, expander: &Expander<'_>) -> Result<Self, Box<Problem>> {
        let racks = expander.directory.racks().unwrap_or(1);
        if racks < 2 {
            return Err(expander.problem("kind", "replicas go to another rack: use a fabric with at least two racks"));
        }
        let (per_rack, replication) = (expander.directory.per_rack(), keys.replication as usize);
        if replication > 2 && per_rack < 2 {
            let text = "the third replica goes to another host of the second one's rack, which has one: use 2";
            return Err(expander.problem("replication", text));
        }
        let reconfigurable = keys.placement == PlacementRule::Rehdfs;
        for (key, given) in [("shift", keys.shift), ("rotate", keys.rotate)] {
            if !reconfigurable && given.is_some() {
                let text = "has no effect: random placement has no shift; take it out, or use placement = \"rehdfs\"";
                return Err(expander.problem(key, text));
            }
        }
        let first = keys.shift.unwrap_or(1) as usize;
        if first >= racks {
            let text = format!("the fabric has {racks} racks: use at most {}", racks - 1);
            return Err(expander.problem("shift", text));
        }
        let shift = Shift { first, rotate: keys.rotate.map(|blocks| blocks as usize) };
        let (random, shift) = (expander.random("placement"), reconfigurable.then_some(shift));
        Ok(Placement { random, racks, per_rack, replication, shift })
    }

    /// The hosts of a block's replicas, the writer's own first; `block` counts those of the writer.
    pub fn hosts(&mut self, writer: usize, block: usize) -> Vec<usize> {
        let own = writer / self.per_rack;
        let others = self.racks - 1;
        let further = match &self.shift {
            Some(Shift { first, rotate }) => (first - 1 + rotate.map_or(0, |blocks| block / blocks)) % others,
            None => uniform(&mut self.random, others as u64) as usize,
        };
        let rack = (own + 1 + further) % self.racks;
        let second = uniform(&mut self.random, self.per_rack as u64) as usize;
        let mut hosts = vec![writer, rack * self.per_rack + second];
        if self.replication > 2 {
            let step = 1 + uniform(&mut self.random, self.per_rack as u64 - 1) as usize;
            hosts.push(rack * self.per_rack + (second + step) % self.per_rack);
        }
        hosts
    }
}
