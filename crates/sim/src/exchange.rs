//! The messages of a world on their way: which wait for others, for a moment, in a connection.
//!
//! Whoever carries the bytes calls: a world does, and so does the program that has the flows of Linux hosts, by the same
//! books. [`Exchange::poll`] at [`Exchange::next`] tells what is to be written, [`Exchange::on_received`] hears what came.
//!
//! What waits for a moment is in one heap in the order (time, message), which is the order in which messages of one moment
//! are written; all others are found from what they wait for. A message costs memory for itself and for each that it comes
//! after, and work only when one of those completes.

use crate::message::{JobReport, Messages};
use firstlight_units::{Bytes, Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No message, or no flow.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Message {
    bytes: u64,
    delay: Span,
    flow: u32,
    job: u32,
    /// So many events must come before it is ready: messages, and its start.
    waiting: u32,
    /// The next one written to its flow.
    next: u32,
}

/// What was written to a flow and is not complete.
#[derive(Clone, Copy, Debug)]
struct Queue {
    first: u32,
    last: u32,
    /// Messages of the flow that are not complete, written or not.
    left: u32,
    /// Bytes of those that are.
    complete: u64,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    report: JobReport,
    left: u32,
}

/// All messages, of a world or of a kernel's hosts.
#[derive(Debug)]
pub struct Exchange {
    messages: Vec<Message>,
    /// Who waits for a message: `followers[first[m]..first[m + 1]]`.
    first: Vec<u32>,
    followers: Vec<u32>,
    /// By flow; empty when there are no messages at all.
    queues: Vec<Queue>,
    jobs: Vec<Job>,
    /// Starts, and the ends of delays.
    moments: BinaryHeap<Reverse<(Time, u32)>>,
    left: usize,
}

impl Exchange {
    /// Those messages over so many flows; times are stretched by `scale`.
    ///
    /// # Panics
    /// When a message comes after one that there is not.
    pub fn new(messages: &Messages, flows: usize, scale: u32) -> Self {
        let scale = u64::from(scale);
        let empty = Queue { first: NONE, last: NONE, left: 0, complete: 0 };
        let mut exchange = Exchange {
            messages: Vec::with_capacity(messages.list.len()),
            first: vec![],
            followers: vec![],
            queues: if messages.list.is_empty() { vec![] } else { vec![empty; flows] },
            jobs: jobs(messages),
            moments: BinaryHeap::new(),
            left: messages.list.len(),
        };
        for (index, config) in messages.list.iter().enumerate() {
            let flow = config.flow.unwrap_or(NONE);
            if let Some(queue) = exchange.queues.get_mut(flow as usize) {
                queue.left += 1;
            }
            let others = messages.after(index).len() as u32;
            // One without a start is ready with what it comes after; one that comes after nothing has its start.
            let starts = others == 0 || config.start > Span::ZERO;
            if starts {
                exchange.moments.push(Reverse((Time::ZERO + config.start * scale, index as u32)));
            }
            exchange.messages.push(Message {
                bytes: config.bytes.get(),
                delay: config.delay * scale,
                flow,
                job: config.job,
                waiting: others + u32::from(starts),
                next: NONE,
            });
        }
        (exchange.first, exchange.followers) = followers(messages);
        exchange
    }

    /// Whether the flow has messages that are not complete.
    pub fn carries(&self, flow: usize) -> bool {
        self.queues.get(flow).is_some_and(|queue| queue.left > 0)
    }

    /// Whether all messages are complete.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Messages that are not complete.
    pub fn left(&self) -> usize {
        self.left
    }

    /// The next moment at which one starts, or is due.
    pub fn next(&self) -> Option<Time> {
        self.moments.peek().map(|Reverse((at, _))| *at)
    }

    /// The next message that is to be written by `now`: its flow and its bytes. Call until there is none. What was due
    /// before `now` counts as done at its own moment: a clock of whole nanoseconds comes a little late.
    pub fn poll(&mut self, now: Time) -> Option<(usize, u64)> {
        while let Some(&Reverse((at, number))) = self.moments.peek().filter(|Reverse((at, _))| *at <= now) {
            self.moments.pop();
            let message = self.messages[number as usize];
            if message.waiting > 0 {
                self.release(number, at);
            } else if message.flow == NONE {
                self.complete(number, at);
            } else {
                self.enqueue(number);
                return Some((message.flow as usize, message.bytes));
            }
        }
        None
    }

    /// How many bytes of a flow its receiver has when the earliest message on its way is complete; `u64::MAX` while
    /// there is none.
    pub fn goal(&self, flow: usize) -> u64 {
        let queue = &self.queues[flow];
        self.messages.get(queue.first as usize).map_or(u64::MAX, |first| queue.complete + first.bytes)
    }

    /// The earliest message on its way in a flow is complete; `None` when there is none, else whether that is all of the
    /// flow.
    pub fn on_complete(&mut self, flow: usize, now: Time) -> Option<bool> {
        let goal = self.carries(flow).then(|| self.goal(flow)).filter(|goal| *goal < u64::MAX)?;
        Some(self.on_received(flow, goal, now))
    }

    /// The receiver of a flow has so many bytes; true when that is all of the flow.
    pub fn on_received(&mut self, flow: usize, bytes: u64, now: Time) -> bool {
        while bytes >= self.goal(flow) {
            let queue = &mut self.queues[flow];
            let number = queue.first;
            let message = self.messages[number as usize];
            (queue.first, queue.left) = (message.next, queue.left - 1);
            queue.complete += message.bytes;
            self.complete(number, now);
        }
        self.queues[flow].left == 0
    }

    /// What became of the jobs.
    pub fn jobs(&self) -> Vec<JobReport> {
        self.jobs.iter().map(|job| job.report).collect()
    }

    fn enqueue(&mut self, number: u32) {
        let queue = &mut self.queues[self.messages[number as usize].flow as usize];
        let last = std::mem::replace(&mut queue.last, number);
        if queue.first == NONE {
            queue.first = number;
        } else {
            self.messages[last as usize].next = number;
        }
    }

    /// One of the events has come that a message waits for.
    fn release(&mut self, number: u32, now: Time) {
        let message = &mut self.messages[number as usize];
        message.waiting -= 1;
        if message.waiting > 0 {
            return;
        }
        self.moments.push(Reverse((now + message.delay, number)));
        self.jobs[message.job as usize].report.start.get_or_insert(now);
    }

    fn complete(&mut self, number: u32, now: Time) {
        let job = &mut self.jobs[self.messages[number as usize].job as usize];
        job.left -= 1;
        if job.left == 0 {
            job.report.finish = Some(now);
        }
        self.left -= 1;
        let [from, to] = [0, 1].map(|next| self.first[number as usize + next] as usize);
        for index in from..to {
            self.release(self.followers[index], now);
        }
    }
}

/// Who waits for each message, and where those of each begin (a counting sort).
fn followers(messages: &Messages) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0u32; messages.list.len() + 1];
    for other in &messages.after {
        first[*other as usize + 1] += 1;
    }
    for index in 1..first.len() {
        first[index] += first[index - 1];
    }
    let (mut next, mut followers) = (first.clone(), vec![0; messages.after.len()]);
    for index in 0..messages.list.len() {
        for other in messages.after(index) {
            let place = &mut next[*other as usize];
            followers[*place as usize] = index as u32;
            *place += 1;
        }
    }
    (first, followers)
}

fn jobs(messages: &Messages) -> Vec<Job> {
    let count = messages.list.iter().map(|message| message.job as usize + 1).max().unwrap_or(0);
    let none = JobReport { start: None, finish: None, bytes: Bytes::new(0), messages: 0 };
    let mut jobs = vec![Job { report: none, left: 0 }; count];
    for message in &messages.list {
        let job = &mut jobs[message.job as usize];
        job.report.messages += 1;
        job.left += 1;
        job.report.bytes = Bytes::new(job.report.bytes.get().saturating_add(message.bytes.get()));
    }
    jobs
}
