//! Where HDFS puts the replicas of a block.
//!
//! `random` is the default of HDFS: the first replica on the writer's host, the second in a random other rack, the third
//! on another host of that rack ("The Hadoop Distributed File System", MSST 2010, section III.C, with the racks of the second
//! and third as in releases since). `rehdfs` is that of Etalon's first version (its slides, "reHDFS"): the second rack is a
//! function of the writer's, so that each rack needs one circuit; it may change from time to time, here after so many
//! blocks of a writer.

use super::super::error::Problem;
use super::super::flows::Table;
use firstlight_sim::{Xoshiro256PlusPlus, uniform};

/// Names of placements.
pub(super) const NAMES: &[&str] = &["random", "rehdfs"];

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
    /// That of a table.
    pub fn of(table: &Table<'_>) -> Result<Self, Box<Problem>> {
        let values = table.values;
        let racks = table.shape.racks().unwrap_or(1);
        if racks < 2 {
            return Err(table.problem("kind", "replicas go to another rack: use a fabric with at least two racks"));
        }
        let (per_rack, replication) = (table.shape.per_rack(), values.integer(&table.path("replication")) as usize);
        if replication > 2 && per_rack < 2 {
            let text = "the third replica goes to another host of the second one's rack, which has one: use 2";
            return Err(table.problem("replication", text));
        }
        let reconfigurable = values.text(&table.path("placement")) == "rehdfs";
        let shift = Shift {
            first: values.integer_opt(&table.path("shift")).unwrap_or(1) as usize,
            rotate: values.integer_opt(&table.path("rotate")).map(|blocks| blocks as usize),
        };
        for key in ["shift", "rotate"] {
            if !reconfigurable && values.has(&table.path(key)) {
                let text = "has no effect: random placement has no shift; take it out, or use placement = \"rehdfs\"";
                return Err(table.problem(key, text));
            }
        }
        if shift.first >= racks {
            let text = format!("the fabric has {racks} racks: use at most {}", racks - 1);
            return Err(table.problem("shift", text));
        }
        let (random, shift) = (table.random("placement"), reconfigurable.then_some(shift));
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
