//! A world's messages: written to their flows' connections when they are due, complete when their receivers have them.

use super::World;
use crate::config::ConfigError;
use crate::events::Kind;
use crate::flow::FlowConfig;
use firstlight_messages::{JobReport, Messages};
use firstlight_units::{Bytes, Span, Time};

/// Checks a world's messages, and the flows that carry them.
pub(super) fn check(messages: &Messages, flows: &[FlowConfig]) -> Result<(), ConfigError> {
    let bytes = messages.check(flows.len())?;
    let mut carriers = flows.iter().zip(bytes).enumerate().filter(|(_, (_, bytes))| *bytes > 0);
    carriers.try_for_each(|(index, (flow, bytes))| {
        check_carrier(flow, bytes).map_err(|problem| ConfigError::Flow { index, problem })
    })
}

/// Checks a flow whose messages have so many bytes.
fn check_carrier(flow: &FlowConfig, bytes: u64) -> Result<(), String> {
    if flow.size != Some(Bytes::new(bytes)) {
        return Err(format!("its size is not that of its messages, {bytes} B"));
    }
    if flow.start != Span::ZERO || flow.jitter != Span::ZERO {
        return Err("it has a start and messages, which decide when it connects: keep one".into());
    }
    Ok(())
}

impl World {
    /// What became of the jobs of messages, by number.
    pub fn jobs(&self) -> Vec<JobReport> {
        self.messages.jobs()
    }

    /// Messages are due.
    pub(super) fn on_messages(&mut self) {
        while let Some((flow, bytes)) = self.messages.poll(self.now) {
            self.write(flow, bytes);
        }
        self.timers.set(self.messages.next(), Kind::Message, 0);
    }

    /// Who has the ends of a flow outside writes by itself: here it is only noted.
    fn write(&mut self, number: usize, bytes: u64) {
        let [sender, receiver] = self.places.ends[number];
        let outside = self.flows[number].config.outside;
        if self.flows[number].start == Time::MAX {
            self.flows[number].start = self.now;
            if !outside {
                self.open(number);
            }
        }
        if self.control.as_ref().is_some_and(|control| control.hears_messages()) {
            self.tell_write(number, Some(bytes));
        }
        if outside {
            return;
        }
        let goal = self.messages.goal(number);
        let there = "the ends are there until all messages are acknowledged";
        self.ends.get_mut(sender).expect(there).connection.write(bytes, self.now);
        self.ends.get_mut(receiver).expect(there).goal = goal;
        if let Some(deadline) = self.transmit(sender) {
            self.timers.set_if_earlier(deadline, Kind::Timer, sender);
        }
    }

    /// The receiver of a flow with messages has all of the earliest one on its way, if not more.
    pub(super) fn on_received(&mut self, place: usize, number: usize) {
        let live = self.ends.get_mut(place).expect("an end at its goal is there");
        let over = self.messages.on_received(number, live.connection.bytes_received(), self.now);
        live.goal = self.messages.goal(number);
        self.after_message(number, over);
    }

    /// The earliest message on its way of a flow with ends outside is complete now; false when there is none.
    ///
    /// # Panics
    /// When the flow is simulated, or there is no such flow.
    pub fn complete_message(&mut self, flow: usize) -> bool {
        assert!(self.flows[flow].config.outside, "a simulated flow's messages are seen here");
        let over = self.messages.on_complete(flow, self.now);
        if let Some(over) = over {
            self.after_message(flow, over);
        }
        over.is_some()
    }

    fn after_message(&mut self, number: usize, over: bool) {
        self.timers.set(self.messages.next(), Kind::Message, 0);
        if over {
            self.flows[number].finish = Some(self.now);
            self.unfinished -= 1;
        }
    }
}
