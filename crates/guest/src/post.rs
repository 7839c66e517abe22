//! The post of all messages: it tells the ends of flows what to send and what to take, when that is due.
//!
//! It decides by the same books as the engine ([`MessageEngine`]), which hears of each message that is complete and notes for
//! itself what follows: when jobs start and end, what flows write. Both count the same moments, so their books agree.

use crate::clock::{Alarm, Watch};
use crate::engine::Engine;
use crate::failure::Failure;
use crate::run::Events;
use firstlight_linux::{Message, Plan};
use firstlight_messages::MessageEngine;
use firstlight_units::{Span, Time};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bytes of one message after another, for the sender of a flow and for its receiver.
pub struct Inboxes {
    pub sender: Receiver<u64>,
    pub receiver: Receiver<u64>,
}

/// The post.
pub struct Post {
    messages: Mutex<MessageEngine>,
    /// To both ends of each flow of the plan.
    boxes: Vec<[Sender<u64>; 2]>,
    /// The numbers of these flows in the experiment.
    numbers: Vec<u32>,
    watch: Watch,
    /// Goes off when the next message starts, or is due.
    alarm: Alarm,
    engine: Engine,
    events: Events,
}

impl Post {
    /// The post of a plan, and the inboxes of its flows.
    pub fn new(plan: &Plan, engine: &Engine, events: &Events) -> Result<(Self, Vec<Inboxes>), Failure> {
        let ends = |_| {
            let (sender, receiver) = (channel(), channel());
            ([sender.0, receiver.0], Inboxes { sender: sender.1, receiver: receiver.1 })
        };
        let (boxes, inboxes) = plan.flows.iter().map(ends).unzip();
        let post = Post {
            messages: Mutex::new(plan.message_engine()),
            boxes,
            numbers: plan.flows.iter().map(|flow| flow.flow).collect(),
            watch: Watch::new()?,
            alarm: Alarm::new()?,
            engine: engine.clone(),
            events: events.clone(),
        };
        Ok((post, inboxes))
    }

    /// The engine's time begins now.
    pub fn open(&self) -> Result<(), Failure> {
        self.watch.start()?;
        self.go_on(&mut self.messages())
    }

    /// Deals out what comes due.
    pub fn keep_time(&self) -> Result<(), Failure> {
        loop {
            self.alarm.wait()?;
            self.go_on(&mut self.messages())?;
        }
    }

    /// The receiver of a flow has the earliest message on its way; true when it was the flow's last one.
    pub fn received(&self, flow: usize) -> Result<bool, Failure> {
        let mut messages = self.messages();
        // What is due by now goes before what follows from this message, as in the engine.
        let now = self.deal_out(&mut messages)?;
        self.engine.tell(Message::MessageComplete { flow: self.numbers[flow] })?;
        let over = messages.on_complete(flow, now).expect("what comes was sent before");
        self.go_on(&mut messages)?;
        Ok(over)
    }

    fn messages(&self) -> MutexGuard<'_, MessageEngine> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn go_on(&self, messages: &mut MessageEngine) -> Result<(), Failure> {
        let now = self.deal_out(messages)?;
        let nanoseconds = |at: Time| (at - now).as_ps().div_ceil(Span::from_ns(1).as_ps());
        self.alarm.set(messages.next().map(nanoseconds))?;
        if messages.is_over() {
            self.events.messages_complete();
        }
        Ok(())
    }

    /// Tells both ends of each message that is due; returns the time.
    fn deal_out(&self, messages: &mut MessageEngine) -> Result<Time, Failure> {
        let now = Time::ZERO + Span::from_ns(self.watch.elapsed()?);
        while let Some((flow, bytes)) = messages.poll(now) {
            for inbox in &self.boxes[flow] {
                // An end that failed has told why.
                let _ = inbox.send(bytes);
            }
        }
        Ok(now)
    }
}
