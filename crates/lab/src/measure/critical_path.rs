//! The least time of a job: the longest path through its messages on an otherwise empty network.
//!
//! Each message takes the time that the empty fabric gives it on an open connection: all of its segments back to back,
//! stored and forwarded, headers included, through the stacks of both hosts. Each computation takes its own time.
//! Messages do not wait for each other's links, for windows or for handshakes. Messages of other jobs that a job
//! depends on are complete at its start. The least time of a job of flows is that of its slowest flow, with its
//! handshake.

use super::ideal::Ideal;
use firstlight_spec::Spec;
use firstlight_units::Span;
use std::collections::BTreeMap;

/// The least time of each job; `None` where the time of a message is not a single number.
pub(super) fn least_times(spec: &Spec) -> Vec<Option<Span>> {
    let ideal = Ideal::of(spec);
    let list = spec.messages.list();
    let mut starts: Vec<Option<Span>> = vec![None; spec.jobs.len()];
    let mut least: Vec<Option<Span>> = vec![Some(Span::ZERO); spec.jobs.len()];
    let mut known = BTreeMap::new();
    let mut done: Vec<Span> = Vec::with_capacity(list.len());
    for (index, message) in list.iter().enumerate() {
        let job = message.job as usize;
        // A job's first message is the first to start.
        let begin = *starts[job].get_or_insert(message.start);
        let after = spec.messages.after(index);
        if after.iter().any(|other| *other as usize >= index) {
            // The first of them, and so the least time, are known only after the run.
            least[job] = None;
        }
        let own = |other: &u32| list[*other as usize].job == message.job;
        let ends = |other: &u32| if own(other) { done.get(*other as usize).copied() } else { Some(Span::ZERO) };
        let ready = if let Some(enough) = message.enough {
            let mut ends: Vec<Span> = after.iter().filter_map(ends).collect();
            ends.sort_unstable();
            ends[enough as usize - 1]
        } else {
            after.iter().filter(|other| own(other)).map(|other| done[*other as usize]).max().unwrap_or_default()
        };
        let ready = ready.max(message.start.saturating_sub(begin));
        let transfer = message.flow.map_or(Some(Span::ZERO), |flow| {
            let ends = &spec.flows[flow as usize];
            *known
                .entry((ends.src.0, ends.dst.0, message.bytes.get()))
                .or_insert_with(|| ideal.transfer(ends.src, ends.dst, message.bytes))
        });
        done.push(ready + message.delay + transfer.unwrap_or_default());
        least[job] = least[job].zip(transfer).map(|(least, _)| least.max(done[index]));
    }
    for (least, job) in least.iter_mut().zip(&spec.jobs).filter(|(_, job)| !job.flows.is_empty()) {
        let own = spec.flows[job.flows.clone()].iter();
        let times = own.map(|flow| ideal.completion(flow.src, flow.dst, flow.size?)).collect::<Option<Vec<_>>>();
        *least = times.and_then(|times| times.into_iter().max());
    }
    least
}
