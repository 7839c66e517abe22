//! The shuffle of MapReduce: every reducer fetches a part of every mapper's output (Dean and Ghemawat, OSDI 2004).
//!
//! A reducer has so many fetchers (Hadoop's `mapreduce.reduce.shuffle.parallelcopies`); each one takes the next mapper in its
//! turn when it has the output of the one before, over a connection of its own. The order of the mappers is random for
//! each reducer. What lies on the reducer's own host takes no network. A job is a reducer.

use super::super::error::Problem;
use super::super::flows::Table;
use super::Made;
use super::patterns::{required, shuffle};
use super::work::{Work, limit};

/// The connections and messages.
pub(super) fn expand(table: &Table<'_>) -> Result<Made, Box<Problem>> {
    required(table, "size", "\"1MB\"")?;
    let values = table.values;
    let mappers = table.hosts("from")?;
    let reducers = if values.has(&table.path("to")) { table.hosts("to")? } else { (0..table.shape.hosts).collect() };
    if mappers == reducers && mappers.len() == 1 {
        return Err(table.problem("to", "the only mapper is on the reducer's host, so nothing is sent: name others"));
    }
    let size = values.size(&table.path("size")).get();
    let parallel = values.integer(&table.path("parallel")) as usize;
    let count = mappers.len() as u64 * reducers.len() as u64;
    limit(table, "from", count, count)?;
    let mut random = table.random("order");
    let mut work = Work::new(table)?;
    for reducer in reducers {
        let mut order: Vec<usize> = mappers.iter().copied().filter(|mapper| *mapper != reducer).collect();
        if order.is_empty() {
            continue;
        }
        let all = order.len();
        shuffle(&mut random, &mut order, all);
        let job = work.job(size.saturating_mul(all as u64));
        let mut sent = vec![];
        for (nth, mapper) in order.into_iter().enumerate() {
            let connection = work.connection((mapper, reducer));
            let before = nth.checked_sub(parallel).map(|before| sent[before]);
            sent.push(work.send(connection, size, job, before.as_slice()));
        }
    }
    work.made()
}
