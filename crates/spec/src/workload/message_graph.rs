//! The messages of a workload in the making, with its connections and jobs.

use super::{Common, Expansion};
use crate::error::Problem;
use crate::expander::{Expander, HostPair, MOST_FLOWS, TrafficEntry};
use crate::host_kind::HostKind;
use crate::tables::Connections;
use firstlight_messages::{MessageConfig, Messages};
use firstlight_units::{Bytes, Span};

/// The most messages of one experiment.
pub(super) const MOST_MESSAGES: usize = 10_000_000;

/// Messages that are complete together: a file that is written, a reducer that has its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The workload that the job belongs to.
    pub entry: TrafficEntry,
    /// Whose hosts its messages are between.
    pub hosts: HostKind,
    /// What the job is about: the file's size, the reducer's input. Its messages may have more, or less.
    pub size: Bytes,
}

/// The messages that a workload has so far.
pub(super) struct MessageGraph<'a> {
    expander: &'a Expander<'a>,
    common: &'a Common,
    connections: &'a Connections,
    pairs: Vec<HostPair>,
    /// Bytes and messages of each connection.
    carried: Vec<(u64, u32)>,
    messages: Messages,
    jobs: Vec<Job>,
}

impl<'a> MessageGraph<'a> {
    /// An empty graph. A message that depends on none starts with the workload.
    pub fn new(
        expander: &'a Expander<'a>,
        common: &'a Common,
        connections: &'a Connections,
    ) -> Result<Self, Box<Problem>> {
        expander.starts(common.start, Span::ZERO)?;
        let (pairs, carried, messages, jobs) = (vec![], vec![], Messages::default(), vec![]);
        Ok(MessageGraph { expander, common, connections, pairs, carried, messages, jobs })
    }

    /// A job about so many bytes.
    pub fn job(&mut self, size: u64) -> u32 {
        let (entry, hosts) = (self.expander.entry, self.expander.host_kind(self.connections));
        self.jobs.push(Job { entry, hosts, size: Bytes::new(size) });
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
        let start = if after.is_empty() { self.common.start } else { Span::ZERO };
        self.carry(flow, bytes, start, job, after)
    }

    /// A message of a job that is written at a moment of the run.
    pub fn send_at(&mut self, flow: u32, bytes: u64, job: u32, start: Span) -> u32 {
        self.carry(flow, bytes, start, job, &[])
    }

    /// A computation of a job, which depends on others; zero: the point where they meet.
    pub fn wait(&mut self, delay: Span, job: u32, after: &[u32]) -> u32 {
        let start = if after.is_empty() { self.common.start } else { Span::ZERO };
        self.messages.push(MessageConfig { start, delay, job, ..MessageConfig::default() }, after)
    }

    /// A moment of the run, for messages that depend on it.
    pub fn wait_until(&mut self, start: Span, job: u32) -> u32 {
        self.messages.push(MessageConfig { start, job, ..MessageConfig::default() }, &[])
    }

    fn carry(&mut self, flow: u32, bytes: u64, start: Span, job: u32, after: &[u32]) -> u32 {
        let carried = &mut self.carried[flow as usize];
        *carried = (carried.0 + bytes, carried.1 + 1);
        let (flow, bytes) = (Some(flow), Bytes::new(bytes));
        self.messages.push(MessageConfig { flow, bytes, start, delay: Span::ZERO, job }, after)
    }

    /// The flows, messages and jobs of the workload.
    pub fn expansion(self) -> Result<Expansion, Box<Problem>> {
        let mut flows = self.expander.between(self.connections, self.common.class, &self.pairs)?;
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
    let text = format!("it makes {count} {what}, and {most} are the most: use less work, or larger pieces");
    Err(expander.problem(key, text))
}
