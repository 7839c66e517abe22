//! Connections, messages and jobs of a workload in the making.

use super::super::error::Problem;
use super::super::flows::{Entry, MOST, Pair, Table};
use super::super::hosts::HostKind;
use super::Made;
use firstlight_messages::{MessageConfig, Messages};
use firstlight_units::{Bytes, Span};

/// Messages of one experiment.
pub(super) const MOST_MESSAGES: usize = 10_000_000;

/// Something that is done when all of its messages are complete: a file that is written, a reducer that has its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The workload that it is of.
    pub entry: Entry,
    /// Whose hosts its messages are between.
    pub hosts: HostKind,
    /// What it is about: the file's size, the reducer's input. Its messages may have more, or less.
    pub size: Bytes,
}

/// What a workload of messages has so far.
pub(super) struct Work<'a> {
    table: &'a Table<'a>,
    hosts: HostKind,
    start: Span,
    pairs: Vec<Pair>,
    /// Bytes and messages of each connection.
    carried: Vec<(u64, u32)>,
    messages: Messages,
    jobs: Vec<Job>,
}

impl<'a> Work<'a> {
    /// Nothing yet; what comes after nothing starts with the table.
    pub fn new(table: &'a Table<'a>) -> Result<Self, Box<Problem>> {
        let (start, _) = table.start()?;
        let hosts = table.values.host_kind_of(&table.entry.to_string());
        Ok(Work { table, hosts, start, pairs: vec![], carried: vec![], messages: Messages::default(), jobs: vec![] })
    }

    /// A job about so many bytes.
    pub fn job(&mut self, size: u64) -> u32 {
        self.jobs.push(Job { entry: self.table.entry, hosts: self.hosts, size: Bytes::new(size) });
        (self.jobs.len() - 1) as u32
    }

    /// A connection, which is opened by its first message.
    pub fn connection(&mut self, pair: Pair) -> u32 {
        self.pairs.push(pair);
        self.carried.push((0, 0));
        (self.pairs.len() - 1) as u32
    }

    /// A message of a job on a connection, after others.
    pub fn send(&mut self, flow: u32, bytes: u64, job: u32, after: &[u32]) -> u32 {
        let start = if after.is_empty() { self.start } else { Span::ZERO };
        self.carry(flow, bytes, start, job, after)
    }

    /// A message of a job that is written at a moment of the run.
    pub fn send_at(&mut self, flow: u32, bytes: u64, job: u32, start: Span) -> u32 {
        self.carry(flow, bytes, start, job, &[])
    }

    /// A computation of a job, after others; zero: the point where they meet.
    pub fn wait(&mut self, delay: Span, job: u32, after: &[u32]) -> u32 {
        let start = if after.is_empty() { self.start } else { Span::ZERO };
        self.messages.push(MessageConfig { start, delay, job, ..MessageConfig::default() }, after)
    }

    /// A moment of the run, for what comes after it.
    pub fn wait_until(&mut self, start: Span, job: u32) -> u32 {
        self.messages.push(MessageConfig { start, job, ..MessageConfig::default() }, &[])
    }

    fn carry(&mut self, flow: u32, bytes: u64, start: Span, job: u32, after: &[u32]) -> u32 {
        let carried = &mut self.carried[flow as usize];
        *carried = (carried.0 + bytes, carried.1 + 1);
        let (flow, bytes) = (Some(flow), Bytes::new(bytes));
        self.messages.push(MessageConfig { flow, bytes, start, delay: Span::ZERO, job }, after)
    }

    /// The workload.
    pub fn made(self) -> Result<Made, Box<Problem>> {
        let mut flows = self.table.between(&self.pairs)?;
        for (flow, (bytes, messages)) in flows.iter_mut().zip(self.carried) {
            (flow.size, flow.messages) = (Some(Bytes::new(bytes)), messages);
        }
        Ok(Made { flows, messages: self.messages, jobs: self.jobs, ..Made::default() })
    }
}

/// Refuses more connections or messages than an experiment may have, and says which key is to blame.
pub(super) fn limit(table: &Table<'_>, key: &str, flows: u64, messages: u64) -> Result<(), Box<Problem>> {
    let (most, count, what) = if flows > MOST as u64 {
        (MOST, flows, "connections")
    } else if messages > MOST_MESSAGES as u64 {
        (MOST_MESSAGES, messages, "messages")
    } else {
        return Ok(());
    };
    Err(table
        .problem(key, format!("it makes {count} {what}, and {most} are the most: use less work, or larger pieces")))
}
