//! The state machine of dependent messages: which messages wait for others, for a time, or in a connection.
//!
//! The caller carries the bytes. [`MessageEngine::poll`] at the time [`MessageEngine::next`] returns what to write;
//! [`MessageEngine::on_received`] takes what a receiver has.
//!
//! Messages that wait for a time are in one heap in the order (time, message number), which is also the order in which
//! messages of the same time are written. All other messages are found from those that they depend on. A message costs
//! memory for itself and for each of its dependencies, and work only when one of these completes.

use crate::list::Messages;
use firstlight_units::{Bytes, Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No message, or no flow.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct MessageState {
    bytes: u64,
    delay: Span,
    flow: u32,
    job: u32,
    /// Events that must happen before the message is ready: completions of other messages, and its start.
    waiting: u32,
    /// The next message written to the same flow.
    next: u32,
    /// The message whose completion made this one ready; none for its start.
    released_by: u32,
    /// When the message was ready; the clock's end while it is not.
    ready: Time,
    /// When the message was complete; the clock's end while it is not.
    complete: Time,
}

/// The report of a message. Times are on the hosts' clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageReport {
    /// When the message was ready; `None` while it is not.
    pub ready: Option<Time>,
    /// When the message was complete; `None` while it is not.
    pub complete: Option<Time>,
    /// The message whose completion made this one ready; `None` for its start.
    pub released_by: Option<u32>,
}

/// The messages that were written to a flow and are not complete, as a list through [`MessageState::next`].
#[derive(Clone, Copy, Debug)]
struct FlowMessages {
    first: u32,
    last: u32,
    /// Messages of the flow that are not complete, written or not.
    left: u32,
    /// Bytes of the flow's complete messages.
    complete: u64,
}

/// The report of a job. Times are on the hosts' clock: divide them by the time scale for the fabric's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobReport {
    /// When the job's first message was ready; `None` while none was.
    pub start: Option<Time>,
    /// When the job's last message was complete; `None` while it is not.
    pub finish: Option<Time>,
    /// Bytes of the job's messages.
    pub bytes: Bytes,
    /// How many messages the job has.
    pub messages: u32,
}

#[derive(Clone, Copy, Debug)]
struct JobState {
    report: JobReport,
    left: u32,
}

/// The state of all messages of a run.
#[derive(Debug)]
pub struct MessageEngine {
    messages: Vec<MessageState>,
    /// The messages that depend on message m are `followers[first[m]..first[m + 1]]`.
    first: Vec<u32>,
    followers: Vec<u32>,
    /// The messages of each flow; empty when there are no messages at all.
    flows: Vec<FlowMessages>,
    jobs: Vec<JobState>,
    /// Starts of messages, and ends of their delays.
    timers: BinaryHeap<Reverse<(Time, u32)>>,
    left: usize,
}

impl MessageEngine {
    /// The state of `messages` over `flows` flows before the run. Their times are multiplied by `scale`.
    ///
    /// # Panics
    /// When a message depends on one that does not exist.
    pub fn new(messages: &Messages, flows: usize, scale: u32) -> Self {
        let (list, scale) = (messages.list(), u64::from(scale));
        let empty = FlowMessages { first: NONE, last: NONE, left: 0, complete: 0 };
        let mut engine = MessageEngine {
            messages: Vec::with_capacity(list.len()),
            first: vec![],
            followers: vec![],
            flows: if list.is_empty() { vec![] } else { vec![empty; flows] },
            jobs: jobs(messages),
            timers: BinaryHeap::new(),
            left: list.len(),
        };
        for (index, config) in list.iter().enumerate() {
            let flow = config.flow.unwrap_or(NONE);
            if let Some(flow) = engine.flows.get_mut(flow as usize) {
                flow.left += 1;
            }
            let others = messages.after(index).len() as u32;
            // A message without a start is ready when the messages that it depends on are complete; a message that
            // depends on none waits for its start.
            let starts = others == 0 || config.start > Span::ZERO;
            if starts {
                engine.timers.push(Reverse((Time::ZERO + config.start * scale, index as u32)));
            }
            engine.messages.push(MessageState {
                bytes: config.bytes.get(),
                delay: config.delay * scale,
                flow,
                job: config.job,
                waiting: config.enough.unwrap_or(others) + u32::from(starts),
                next: NONE,
                released_by: NONE,
                ready: Time::MAX,
                complete: Time::MAX,
            });
        }
        (engine.first, engine.followers) = followers(messages);
        engine
    }

    /// Whether the flow has messages that are not complete.
    pub fn carries(&self, flow: usize) -> bool {
        self.flows.get(flow).is_some_and(|flow| flow.left > 0)
    }

    /// Whether all messages are complete.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// How many messages are not complete.
    pub fn left(&self) -> usize {
        self.left
    }

    /// When the next message starts or is due; `None` while all wait for others.
    pub fn next(&self) -> Option<Time> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// The next message to write at `now`: its flow and its bytes. Call it until it returns `None`. A message that was
    /// due before `now` counts from the time at which it was due: a clock of whole nanoseconds is a little late.
    pub fn poll(&mut self, now: Time) -> Option<(usize, u64)> {
        while let Some(&Reverse((at, number))) = self.timers.peek().filter(|Reverse((at, _))| *at <= now) {
            self.timers.pop();
            let message = self.messages[number as usize];
            if message.waiting > 0 {
                self.release(number, NONE, at);
            } else if message.flow == NONE {
                self.complete(number, at);
            } else {
                self.enqueue(number);
                return Some((message.flow as usize, message.bytes));
            }
        }
        None
    }

    /// Bytes that the receiver of a flow has once the earliest message in flight is complete; `u64::MAX` while none is
    /// in flight.
    pub fn goal(&self, flow: usize) -> u64 {
        let flow = &self.flows[flow];
        self.messages.get(flow.first as usize).map_or(u64::MAX, |first| flow.complete + first.bytes)
    }

    /// Completes the earliest message in flight of a flow. Returns whether it was the flow's last one; `None` when no
    /// message is in flight.
    pub fn on_complete(&mut self, flow: usize, now: Time) -> Option<bool> {
        let goal = self.carries(flow).then(|| self.goal(flow)).filter(|goal| *goal < u64::MAX)?;
        Some(self.on_received(flow, goal, now))
    }

    /// Completes the messages of a flow whose receiver has `bytes` bytes. Returns whether all of the flow's are
    /// complete.
    pub fn on_received(&mut self, flow: usize, bytes: u64, now: Time) -> bool {
        while bytes >= self.goal(flow) {
            let own = &mut self.flows[flow];
            let number = own.first;
            let message = self.messages[number as usize];
            (own.first, own.left) = (message.next, own.left - 1);
            own.complete += message.bytes;
            self.complete(number, now);
        }
        self.flows[flow].left == 0
    }

    /// The report of each job, by number.
    pub fn jobs(&self) -> Vec<JobReport> {
        self.jobs.iter().map(|job| job.report).collect()
    }

    /// The report of each message, by number.
    pub fn messages(&self) -> Vec<MessageReport> {
        let moment = |at: Time| (at < Time::MAX).then_some(at);
        let report = |message: &MessageState| MessageReport {
            ready: moment(message.ready),
            complete: moment(message.complete),
            released_by: (message.released_by != NONE).then_some(message.released_by),
        };
        self.messages.iter().map(report).collect()
    }

    fn enqueue(&mut self, number: u32) {
        let flow = &mut self.flows[self.messages[number as usize].flow as usize];
        let last = std::mem::replace(&mut flow.last, number);
        if flow.first == NONE {
            flow.first = number;
        } else {
            self.messages[last as usize].next = number;
        }
    }

    /// One of the events that a message waits for has happened: the completion of the message `by`, or its start. A
    /// message that had enough is not ready again.
    fn release(&mut self, number: u32, by: u32, now: Time) {
        let message = &mut self.messages[number as usize];
        if message.waiting != 1 {
            message.waiting = message.waiting.saturating_sub(1);
            return;
        }
        (message.waiting, message.released_by, message.ready) = (0, by, now);
        self.timers.push(Reverse((now + message.delay, number)));
        self.jobs[message.job as usize].report.start.get_or_insert(now);
    }

    fn complete(&mut self, number: u32, now: Time) {
        self.messages[number as usize].complete = now;
        let job = &mut self.jobs[self.messages[number as usize].job as usize];
        job.left -= 1;
        if job.left == 0 {
            job.report.finish = Some(now);
        }
        self.left -= 1;
        let [from, to] = [0, 1].map(|next| self.first[number as usize + next] as usize);
        for index in from..to {
            self.release(self.followers[index], number, now);
        }
    }
}

/// Where the followers of each message begin, and the followers of all messages (a counting sort).
fn followers(messages: &Messages) -> (Vec<u32>, Vec<u32>) {
    let count = messages.list().len();
    let mut first = vec![0u32; count + 1];
    for other in messages.all_after() {
        first[*other as usize + 1] += 1;
    }
    for index in 1..first.len() {
        first[index] += first[index - 1];
    }
    let (mut next, mut followers) = (first.clone(), vec![0; messages.all_after().len()]);
    for index in 0..count {
        for other in messages.after(index) {
            let place = &mut next[*other as usize];
            followers[*place as usize] = index as u32;
            *place += 1;
        }
    }
    (first, followers)
}

fn jobs(messages: &Messages) -> Vec<JobState> {
    let count = messages.list().iter().map(|message| message.job as usize + 1).max().unwrap_or(0);
    let none = JobReport { start: None, finish: None, bytes: Bytes::new(0), messages: 0 };
    let mut jobs = vec![JobState { report: none, left: 0 }; count];
    for message in messages.list() {
        let job = &mut jobs[message.job as usize];
        job.report.messages += 1;
        job.left += 1;
        job.report.bytes = Bytes::new(job.report.bytes.get().saturating_add(message.bytes.get()));
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::MessageConfig;

    fn us(n: u64) -> Time {
        Time::ZERO + Span::from_us(n)
    }

    /// Two chunks go over flow 0 and then over flow 1; a computation of 5 us follows, and is a job of its own.
    fn chain(scale: u32) -> MessageEngine {
        let on = |flow, bytes| MessageConfig { flow: Some(flow), bytes: Bytes::new(bytes), ..MessageConfig::default() };
        let mut messages = Messages::default();
        let first = messages.push(MessageConfig { start: Span::from_us(3), ..on(0, 10) }, &[]);
        let second = messages.push(on(0, 20), &[]);
        let forwarded = messages.push(on(1, 30), &[first, second]);
        let compute = MessageConfig { delay: Span::from_us(5), job: 1, ..MessageConfig::default() };
        messages.push(compute, &[forwarded]);
        MessageEngine::new(&messages, 2, scale)
    }

    #[test]
    fn messages_are_written_when_those_before_are_complete() {
        let mut engine = chain(1);
        assert_eq!((engine.next(), engine.poll(us(0)), engine.poll(us(2))), (Some(us(0)), Some((0, 20)), None));
        assert_eq!((engine.poll(us(3)), engine.goal(0), engine.goal(1)), (Some((0, 10)), 20, u64::MAX));
        assert!(!engine.on_received(0, 29, us(8)), "10 bytes of the second message are missing");
        assert_eq!((engine.next(), engine.goal(0), engine.left()), (None, 30, 3));
        assert!(engine.on_received(0, 30, us(9)));
        assert_eq!(engine.poll(us(9)), Some((1, 30)));
        assert_eq!((engine.on_complete(1, us(11)), engine.on_complete(1, us(11))), (Some(true), None));
        assert_eq!((engine.next(), engine.is_over(), engine.poll(us(20))), (Some(us(16)), false, None));
        assert!(engine.is_over());
        let job = |start, finish, bytes, messages| JobReport {
            start: Some(us(start)),
            finish: Some(us(finish)),
            bytes: Bytes::new(bytes),
            messages,
        };
        assert_eq!(engine.jobs(), [job(0, 11, 60, 3), job(11, 16, 0, 1)], "a late poll counts from the time due");
    }

    /// The third message needs any two of three, the fourth any one of two, one of which is later.
    #[test]
    fn enough_messages_make_one_ready() {
        let at = |us, flow| MessageConfig { start: Span::from_us(us), flow, ..MessageConfig::default() };
        let some = |enough| MessageConfig { enough: Some(enough), ..MessageConfig::default() };
        let mut messages = Messages::default();
        let first: Vec<u32> = [7, 2, 5].map(|us| messages.push(at(us, None), &[])).to_vec();
        let two = messages.push(some(2), &first);
        let one = messages.push(some(1), &[5, two]);
        messages.push(at(4, None), &[]);
        assert_eq!((messages.check(0), two, one), (Ok(vec![]), 3, 4));
        let mut engine = MessageEngine::new(&messages, 0, 1);
        assert_eq!((engine.poll(us(9)), engine.is_over()), (None, true));
        let found: Vec<_> =
            engine.messages()[3..5].iter().map(|one| (one.ready, one.complete, one.released_by)).collect();
        assert_eq!(found, [(Some(us(5)), Some(us(5)), Some(2)), (Some(us(4)), Some(us(4)), Some(5))]);
    }

    #[test]
    fn times_are_stretched() {
        let mut engine = chain(20);
        assert_eq!((engine.poll(us(59)), engine.next()), (Some((0, 20)), Some(us(60))));
        assert!(engine.carries(0) && engine.carries(1) && !engine.carries(2));
    }
}
