//! The relay of dependent messages: it hands each message that is due to both ends of its flow.
//!
//! The relay and the engine each run a [`MessageEngine`] over the same messages. The relay reports every complete
//! message; the engine's own state machine then knows when jobs start and end and what flows write. Both use the same
//! times, so that they agree.

use crate::clock::{Alarm, Stopwatch};
use crate::engine_device::EngineDevice;
use crate::failure::GuestFailure;
use crate::run::RunEvents;
use firstlight_linux::{GuestMessage, Plan};
use firstlight_messages::MessageEngine;
use firstlight_units::{Span, Time};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The two ends of a flow get the bytes of each message here.
pub struct Inboxes {
    /// Messages that the sender writes.
    pub sender: Receiver<u64>,
    /// Messages that the receiver expects.
    pub receiver: Receiver<u64>,
}

/// The messages of all flows.
pub struct MessageRelay {
    messages: Mutex<MessageEngine>,
    /// The inboxes of both ends of each flow of the plan.
    boxes: Vec<[Sender<u64>; 2]>,
    /// Numbers of these flows in the experiment.
    numbers: Vec<u32>,
    stopwatch: Stopwatch,
    /// Expires when the next message starts or is due.
    alarm: Alarm,
    engine: EngineDevice,
    events: RunEvents,
}

impl MessageRelay {
    /// The relay of a plan's messages, and the inboxes of its flows.
    pub fn new(plan: &Plan, engine: &EngineDevice, events: &RunEvents) -> Result<(Self, Vec<Inboxes>), GuestFailure> {
        let ends = |_| {
            let (sender, receiver) = (channel(), channel());
            ([sender.0, receiver.0], Inboxes { sender: sender.1, receiver: receiver.1 })
        };
        let (boxes, inboxes) = plan.flows.iter().map(ends).unzip();
        let relay = MessageRelay {
            messages: Mutex::new(plan.message_engine()),
            boxes,
            numbers: plan.flows.iter().map(|flow| flow.flow).collect(),
            stopwatch: Stopwatch::new()?,
            alarm: Alarm::new()?,
            engine: engine.clone(),
            events: events.clone(),
        };
        Ok((relay, inboxes))
    }

    /// Starts the relay at the moment at which the engine's time begins.
    pub fn start(&self) -> Result<(), GuestFailure> {
        self.stopwatch.start()?;
        self.advance(&mut self.messages())
    }

    /// Hands over messages when they are due, without end.
    pub fn run(&self) -> Result<(), GuestFailure> {
        loop {
            self.alarm.wait()?;
            self.advance(&mut self.messages())?;
        }
    }

    /// Completes the earliest message in flight of a flow, and reports it. Returns whether it was the flow's last one.
    pub fn received(&self, flow: usize) -> Result<bool, GuestFailure> {
        let mut messages = self.messages();
        // Messages that are already due come before messages that depend on this one, as in the engine.
        let now = self.hand_over(&mut messages)?;
        self.engine.report(GuestMessage::MessageComplete { flow: self.numbers[flow] })?;
        let over = messages.on_complete(flow, now).expect("a received message was in flight");
        self.advance(&mut messages)?;
        Ok(over)
    }

    fn messages(&self) -> MutexGuard<'_, MessageEngine> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over the messages that are due, and sets the alarm to the next time.
    fn advance(&self, messages: &mut MessageEngine) -> Result<(), GuestFailure> {
        let now = self.hand_over(messages)?;
        let nanoseconds = |at: Time| (at - now).as_ps().div_ceil(Span::from_ns(1).as_ps());
        self.alarm.set(messages.next().map(nanoseconds))?;
        if messages.is_over() {
            self.events.messages_complete();
        }
        Ok(())
    }

    /// Hands each message that is due to both ends of its flow. Returns the time.
    fn hand_over(&self, messages: &mut MessageEngine) -> Result<Time, GuestFailure> {
        let now = Time::ZERO + Span::from_ns(self.stopwatch.elapsed()?);
        while let Some((flow, bytes)) = messages.poll(now) {
            for inbox in &self.boxes[flow] {
                // An end without an inbox has failed and has reported why.
                let _ = inbox.send(bytes);
            }
        }
        Ok(now)
    }
}
