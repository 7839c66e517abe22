//! Background: each host sends so much to a random other host, over TCP, or, with a rate, as datagrams at that rate.

use super::super::error::Problem;
use super::super::flows::{Pair, Table};
use super::Made;
use super::patterns::required;
use super::probe::{Probe, datagrams};
use firstlight_sim::uniform;

/// The flows, or the datagrams.
pub(super) fn expand(table: &Table<'_>, probes: &mut Vec<Probe>) -> Result<Made, Box<Problem>> {
    required(table, "size", "\"1MB\"")?;
    let pairs = pairs(table)?;
    let (start, jitter) = table.start()?;
    let size = table.values.size(&table.path("size"));
    if table.values.has(&table.path("rate")) {
        let tcp = ["cc", "hosts", "jitter"].into_iter().find(|key| table.values.has(&table.path(key)));
        if let Some(key) = tcp {
            return Err(table.problem(key, "has no effect on datagrams: take it out, or take out rate"));
        }
        probes.extend(datagrams(table, &pairs, Some(size))?);
        return Ok(Made::default());
    }
    if let Some(key) = ["packet", "send_buffer"].into_iter().find(|key| table.values.has(&table.path(key))) {
        return Err(table.problem(key, "has no effect on TCP: take it out, or add rate for datagrams"));
    }
    let mut flows = table.between(&pairs)?;
    for flow in &mut flows {
        (flow.start, flow.jitter, flow.size) = (start, jitter, Some(size));
    }
    Ok(Made { flows, ..Made::default() })
}

/// Each sender with a receiver, all others being as likely.
fn pairs(table: &Table<'_>) -> Result<Vec<Pair>, Box<Problem>> {
    let from = table.hosts("from")?;
    let to = if table.values.has(&table.path("to")) { table.hosts("to")? } else { (0..table.shape.hosts).collect() };
    let mut random = table.random("destinations");
    let mut draw = |src: usize| {
        let others: Vec<usize> = to.iter().copied().filter(|dst| *dst != src).collect();
        if others.is_empty() {
            return Err(table.problem("to", "a sender would send to itself: name other hosts"));
        }
        Ok((src, others[uniform(&mut random, others.len() as u64) as usize]))
    };
    from.into_iter().map(&mut draw).collect()
}
