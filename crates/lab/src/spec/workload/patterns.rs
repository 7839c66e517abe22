//! Workloads whose flows follow a pattern: permutation, all to all, incast, staggered.

use super::super::error::Problem;
use super::super::flows::{MOST, Pair, Table};
use super::super::hosts::HostKind;
use super::super::value::Hosts;
use super::{Made, after};
use firstlight_sim::{Xoshiro256PlusPlus, uniform};
use firstlight_units::Span;

/// Each host sends to one other and receives from one other; all such permutations are equally likely.
pub(super) fn permutation(table: &Table<'_>) -> Result<Made, Box<Problem>> {
    let hosts = among(table)?;
    let mut random = table.random("permutation");
    let mut to = hosts.clone();
    // One shuffle in e has no host that would send to itself.
    while hosts.iter().zip(&to).any(|(src, dst)| src == dst) {
        shuffle(&mut random, &mut to, hosts.len());
    }
    at_once(table, &hosts.into_iter().zip(to).collect::<Vec<_>>())
}

/// Each host sends to each other.
pub(super) fn all_to_all(table: &Table<'_>) -> Result<Made, Box<Problem>> {
    let hosts = among(table)?;
    let count = hosts.len() * (hosts.len() - 1);
    if count > MOST {
        return Err(table.problem("among", format!("{count} flows are too many: use at most {MOST}, of fewer hosts")));
    }
    // Host i first sends to i + 1, so that a list cut off anywhere burdens all alike.
    let n = hosts.len();
    let steps = (1..n).flat_map(|step| (0..n).map(move |i| (i, (i + step) % n)));
    let pairs: Vec<Pair> = steps.map(|(i, j)| (hosts[i], hosts[j])).collect();
    at_once(table, &pairs)
}

/// Many hosts send to one at the same time, once or again and again.
pub(super) fn incast(table: &Table<'_>) -> Result<Made, Box<Problem>> {
    let values = table.values;
    let (start, jitter) = table.start()?;
    let (candidates, to) = incast_ends(table)?;
    let senders = values.integer_opt(&table.path("senders")).map_or(candidates.len(), |senders| senders as usize);
    if senders > candidates.len() {
        let text = format!("from has {} other hosts: use at most so many", candidates.len());
        return Err(table.problem("senders", text));
    }
    let drawn = values.flag(&table.path("random"));
    if drawn && senders == candidates.len() {
        return Err(table.problem("random", "has no effect: all of from send; give fewer senders, or take it out"));
    }
    let (rounds, asked) = rounds(table, start, jitter)?;
    if (rounds.len()).saturating_mul(senders) > MOST {
        let text = format!("{} rounds of {senders} flows are too many: use at most {MOST} flows", rounds.len());
        return Err(table.problem(if asked.is_some() { "rounds" } else { "period" }, text));
    }
    let mut random = table.random("senders");
    let mut pairs = vec![];
    for _ in &rounds {
        let mut from = candidates.clone();
        if drawn {
            shuffle(&mut random, &mut from, senders);
        }
        pairs.extend(from[..senders].iter().map(|&src| (src, to)));
    }
    let mut flows = table.between(&pairs)?;
    for (nth, flow) in flows.iter_mut().enumerate() {
        (flow.start, flow.jitter) = (rounds[nth / senders], jitter);
        flow.size = values.size_opt(&table.path("size"));
    }
    Ok(Made { flows, asked: asked.map(|rounds| rounds * senders), ..Made::default() })
}

/// Who may send, and the one who receives.
fn incast_ends(table: &Table<'_>) -> Result<(Vec<usize>, usize), Box<Problem>> {
    required(table, "to", "\"host0\"")?;
    let name = table.values.hosts(&table.path("to"));
    let to = table.hosts("to")?;
    if !matches!(name, Hosts::Host(_) | Hosts::RackHost(..)) {
        return Err(table.problem("to", format!("{name} is not one host: write for example \"host0\"")));
    }
    let from: Vec<usize> = table.hosts("from")?.into_iter().filter(|&host| host != to[0]).collect();
    if from.is_empty() {
        return Err(table.problem("to", format!("{name} would send to itself: name another host")));
    }
    Ok((from, to[0]))
}

/// When an incast happens, before the run's end, and how often it was to.
pub(super) fn rounds(table: &Table<'_>, start: Span, jitter: Span) -> Result<(Vec<Span>, Option<usize>), Box<Problem>> {
    let asked = table.values.integer_opt(&table.path("rounds")).map(|rounds| rounds as usize);
    let Some(period) = table.values.span_opt(&table.path("period")) else {
        if asked.is_some() {
            let text = "has no effect without period: add for example period = \"10ms\"";
            return Err(table.problem("rounds", text));
        }
        return Ok((vec![start], None));
    };
    let rounds = (0..).map(|round| after(start, period, round));
    let rounds = rounds.take_while(|round| after(*round, jitter, 1) < table.duration());
    Ok((rounds.take(asked.unwrap_or(MOST + 1)).collect(), asked))
}

/// Flows start one after another, and stop.
pub(super) fn staggered(table: &Table<'_>) -> Result<Made, Box<Problem>> {
    let values = table.values;
    required(table, "to", "\"host0\"")?;
    required(table, "interval", "\"1s\"")?;
    let pairs = table.pairs()?;
    let (start, _) = table.start()?;
    let interval = values.span(&table.path("interval"));
    let hold = values.span_opt(&table.path("hold"));
    if hold.is_some() && values.host_kind_of(&table.entry.to_string()) == HostKind::Linux {
        let text = "flows of Linux hosts cannot be stopped: take it out, or use hosts = \"simulated\"";
        return Err(table.problem("hold", text));
    }
    let count = values.integer_opt(&table.path("flows")).map_or(pairs.len(), |flows| flows as usize);
    let last = after(start, interval, count as u64 - 1);
    if last >= table.duration() {
        let text = format!(
            "the last of {count} flows would start at {last}, after the run's end: use fewer, or a longer duration"
        );
        return Err(table.problem(if values.has(&table.path("flows")) { "flows" } else { "interval" }, text));
    }
    let each: Vec<Pair> = pairs.iter().copied().cycle().take(count).collect();
    let mut flows = table.between(&each)?;
    for (nth, flow) in flows.iter_mut().enumerate() {
        flow.start = after(start, interval, nth as u64);
        flow.stop = hold.map(|hold| after(flow.start, hold, 1));
    }
    Ok(Made { flows, ..Made::default() })
}

/// Flows that all start at the table's time and send its size.
fn at_once(table: &Table<'_>, pairs: &[Pair]) -> Result<Made, Box<Problem>> {
    let (start, jitter) = table.start()?;
    let mut flows = table.between(pairs)?;
    for flow in &mut flows {
        (flow.start, flow.jitter, flow.size) = (start, jitter, table.values.size_opt(&table.path("size")));
    }
    Ok(Made { flows, ..Made::default() })
}

/// At least two hosts.
fn among(table: &Table<'_>) -> Result<Vec<usize>, Box<Problem>> {
    let hosts = table.hosts("among")?;
    if hosts.len() < 2 {
        return Err(table.problem("among", "one host has nobody to send to: name a rack or \"all\""));
    }
    Ok(hosts)
}

pub(super) fn required(table: &Table<'_>, key: &str, example: &str) -> Result<(), Box<Problem>> {
    if table.values.has(&table.path(key)) { Ok(()) } else { Err(table.missing(key, example)) }
}

/// Puts `first` random ones of the items at their head, in random order (Fisher and Yates; Durstenfeld 1964).
pub(super) fn shuffle<T>(random: &mut Xoshiro256PlusPlus, items: &mut [T], first: usize) {
    for at in 0..first.min(items.len()) {
        let other = at + uniform(random, (items.len() - at) as u64) as usize;
        items.swap(at, other);
    }
}
