//! The messages of a workload in the making, with its connections and jobs.

use super::{Expansion, FlowKeys};
use crate::error::Problem;
use crate::expander::{Expander, Flow, HostPair, MOST_FLOWS, TrafficEntry};
use crate::host_kind::HostKind;
use crate::tables::Connections;
use firstlight_messages::{MessageConfig, Messages};
use firstlight_units::{Bytes, Span};
use std::ops::Range;

/// The most messages of one experiment.
pub(super) const MOST_MESSAGES: usize = 10_000_000;

/// Messages or flows that are complete together: a file that is written, a reducer that has its input, a round of an
/// incast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The workload that the job belongs to.
    pub entry: TrafficEntry,
    /// The kind of the hosts between which the messages pass.
    pub hosts: HostKind,
    /// What the job is about: the file's size, the reducer's input. Its messages may have more, or less.
    pub size: Bytes,
    /// The flows of a job of flows; none for a job of messages.
    pub flows: Range<usize>,
}

impl Job {
    /// A job of messages about `size` bytes.
    pub(super) fn of_messages(expander: &Expander<'_>, connections: &Connections, size: u64) -> Job {
        let (entry, hosts) = (expander.entry, expander.host_kind(connections));
        Job { entry, hosts, size: Bytes::new(size), flows: 0..0 }
    }

    /// The jobs of flows that are as many in each, in order; none if they send until the end.
    pub(super) fn of_flows(
        expander: &Expander<'_>,
        connections: &Connections,
        flows: &[Flow],
        in_each: usize,
    ) -> Vec<Job> {
        let job = |(number, flows): (usize, &[Flow])| {
            let size = flows.iter().try_fold(0u64, |sum, flow| Some(sum.saturating_add(flow.size?.get())))?;
            let first = number * in_each;
            Some(Job {
                entry: expander.entry,
                hosts: expander.host_kind(connections),
                size: Bytes::new(size),
                flows: first..first + flows.len(),
            })
        };
        flows.chunks(in_each).enumerate().filter_map(job).collect()
    }

    /// This job in a list where `flows` flows of other entries come first.
    pub(super) fn after(self, flows: usize) -> Job {
        let own = self.flows.clone();
        let flows = if own.is_empty() { own } else { own.start + flows..own.end + flows };
        Job { flows, ..self }
    }
}

/// The messages that a workload has so far.
pub(super) struct MessageGraph<'a> {
    expander: &'a Expander<'a>,
    keys: &'a FlowKeys,
    pairs: Vec<HostPair>,
    /// Bytes and messages of each connection.
    carried: Vec<(u64, u32)>,
    messages: Messages,
    jobs: Vec<Job>,
}

impl<'a> MessageGraph<'a> {
    /// An empty graph. A message that depends on none starts with the workload.
    pub fn new(expander: &'a Expander<'a>, keys: &'a FlowKeys) -> Result<Self, Box<Problem>> {
        expander.starts(keys.common.start, Span::ZERO)?;
        let (pairs, carried, messages, jobs) = (vec![], vec![], Messages::default(), vec![]);
        Ok(MessageGraph { expander, keys, pairs, carried, messages, jobs })
    }

    /// A job about `size` bytes.
    pub fn job(&mut self, size: u64) -> u32 {
        self.jobs.push(Job::of_messages(self.expander, &self.keys.connections, size));
        (self.jobs.len() - 1) as u32
    }

    /// A connection, which is opened by its first message.
    pub fn connection(&mut self, pair: HostPair) -> u32 {
        self.pairs.push(pair);
        self.carried.push((0, 0));
        (self.pairs.len() - 1) as u32
    }

    /// A message of a job on a connection, which depends on others.
    pub fn send(&mut self, flow: u32, bytes: u64, job: u32, after: &[u32]) -> u32 {
        self.send_from(flow, bytes, job, Span::ZERO, after)
    }

    /// A message of a job that is written after those in `after`, and not before a moment of the run.
    pub fn send_from(&mut self, flow: u32, bytes: u64, job: u32, start: Span, after: &[u32]) -> u32 {
        let start = if after.is_empty() { self.keys.common.start } else { start };
        self.carry(flow, bytes, start, job, after)
    }

    /// A message of a job that is written at a moment of the run.
    pub fn send_at(&mut self, flow: u32, bytes: u64, job: u32, start: Span) -> u32 {
        self.carry(flow, bytes, start, job, &[])
    }

    /// A computation of a job, which depends on others; zero: the point where they meet.
    pub fn wait(&mut self, delay: Span, job: u32, after: &[u32]) -> u32 {
        let start = if after.is_empty() { self.keys.common.start } else { Span::ZERO };
        self.messages.push(MessageConfig { start, delay, job, ..MessageConfig::default() }, after)
    }

    /// A moment of the run, for messages that depend on it.
    pub fn wait_until(&mut self, start: Span, job: u32) -> u32 {
        self.messages.push(MessageConfig { start, job, ..MessageConfig::default() }, &[])
    }

    /// The point at which `enough` of the messages in `after` are complete, whichever come first. These messages may be
    /// added later.
    pub fn enough(&mut self, enough: u32, job: u32, after: &[u32]) -> u32 {
        self.messages.push(MessageConfig { job, enough: Some(enough), ..MessageConfig::default() }, after)
    }

    fn carry(&mut self, flow: u32, bytes: u64, start: Span, job: u32, after: &[u32]) -> u32 {
        let carried = &mut self.carried[flow as usize];
        *carried = (carried.0 + bytes, carried.1 + 1);
        let (flow, bytes) = (Some(flow), Bytes::new(bytes));
        self.messages.push(MessageConfig { flow, bytes, start, job, ..MessageConfig::default() }, after)
    }

    /// The flows, messages and jobs of the workload.
    pub fn expansion(self) -> Result<Expansion, Box<Problem>> {
        let mut flows = self.expander.between(&self.keys.connections, self.keys.common.class, &self.pairs)?;
        for (flow, (bytes, messages)) in flows.iter_mut().zip(self.carried) {
            (flow.size, flow.messages) = (Some(Bytes::new(bytes)), messages);
        }
        Ok(Expansion { flows, messages: self.messages, jobs: self.jobs, ..Expansion::default() })
    }
}

/// Refuses more connections or messages than an experiment may have, and says which key is to blame.
pub(super) fn limit(expander: &Expander<'_>, key: &str, flows: u64, messages: u64) -> Result<(), Box<Problem>> {
    let (most, count, what) = if flows > MOST_FLOWS as u64 {
        (MOST_FLOWS, flows, "connections")
    } else if messages > MOST_MESSAGES as u64 {
        (MOST_MESSAGES, messages, "messages")
    } else {
        return Ok(());
    };
    let text = format!("{count} {what} are too many: at most {most}; use less work or larger pieces");
    Err(expander.problem(key, text))
}

/// Numbers `0..count` in an order in which each comes after all that it waits for, or after `enough` of them (Kahn,
/// CACM 5(11), 1962); or one that can never come.
pub(super) fn order<'a>(
    count: u32,
    after: impl Fn(u32) -> &'a [u32],
    enough: impl Fn(u32) -> Option<u32>,
) -> Result<Vec<u32>, u32> {
    let mut waiting: Vec<u32> = (0..count).map(|own| enough(own).unwrap_or(after(own).len() as u32)).collect();
    let mut followers = vec![vec![]; count as usize];
    for own in 0..count {
        after(own).iter().for_each(|other| followers[*other as usize].push(own));
    }
    let mut order: Vec<u32> = (0..count).filter(|own| waiting[*own as usize] == 0).collect();
    let mut next = 0;
    while let Some(&own) = order.get(next) {
        next += 1;
        for &follower in &followers[own as usize] {
            let left = &mut waiting[follower as usize];
            if *left == 1 {
                order.push(follower);
            }
            *left = left.saturating_sub(1);
        }
    }
    match waiting.iter().position(|left| *left > 0) {
        Some(stuck) => Err(stuck as u32),
        None => Ok(order),
    }
}
