//! A world's messages: written to their flows' connections when they are due, complete when their receivers have them.

use super::World;
use crate::config::BuildError;
use crate::events::EventKind;
use crate::flow::FlowConfig;
use firstlight_messages::{JobReport, MessageReport, Messages};
use firstlight_units::{Bytes, Span, Time};

/// Checks a world's messages, and the flows that carry them.
pub(super) fn check(messages: &Messages, flows: &[FlowConfig]) -> Result<(), BuildError> {
    let bytes = messages.check(flows.len())?;
    let mut carriers = flows.iter().zip(bytes).enumerate().filter(|(_, (_, bytes))| *bytes > 0);
    carriers.try_for_each(|(index, (flow, bytes))| {
        check_carrier(flow, bytes).map_err(|problem| BuildError::Flow { index, problem })
    })
}

/// Checks a flow whose messages have `bytes` bytes.
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
    /// The reports of the jobs of messages, by number.
    pub fn jobs(&self) -> Vec<JobReport> {
        self.messages.jobs()
    }

    /// The report of each message, by number.
    pub fn messages(&self) -> Vec<MessageReport> {
        self.messages.messages()
    }

    /// Starts the messages that are due.
    pub(super) fn on_messages(&mut self) {
        while let Some((flow, bytes)) = self.messages.poll(self.now) {
            self.write(flow, bytes);
        }
        self.timers.set(self.messages.next(), EventKind::Message, 0);
    }

    /// A message is written to its flow. External hosts write by themselves: here the write is only recorded.
    fn write(&mut self, number: usize, bytes: u64) {
        let [sender, receiver] = self.endpoints.of_flows[number];
        let external = self.flows[number].config.external;
        if self.flows[number].start == Time::MAX {
            self.flows[number].start = self.now;
            if !external {
                self.open(number);
            }
        }
        if self.control.as_ref().is_some_and(|control| control.records_messages()) {
            self.record_write(number, Some(bytes));
        }
        if external {
            return;
        }
        let goal = self.messages.goal(number);
        let open = "both ends have a connection until all messages are acknowledged";
        self.connections.get_mut(sender).expect(open).connection.write(bytes, self.now);
        self.connections.get_mut(receiver).expect(open).goal = goal;
        if let Some(causes) = self.fabric.causes() {
            causes.on_program(sender);
        }
        if let Some(deadline) = self.transmit(sender) {
            self.timers.set_if_earlier(deadline, EventKind::Timer, sender);
        }
    }

    /// The receiver of a flow with messages has all of the earliest message that is under way, if not more.
    pub(super) fn on_received(&mut self, endpoint: usize, number: usize) {
        let flow_end = self.connections.get_mut(endpoint).expect("an end at its goal has a connection");
        let over = self.messages.on_received(number, flow_end.connection.bytes_received(), self.now);
        flow_end.goal = self.messages.goal(number);
        self.after_message(number, over);
    }

    /// The earliest message under way of a flow between external hosts is complete now. Returns false when there is
    /// none.
    ///
    /// # Panics
    /// When the flow is simulated, or there is no such flow.
    pub fn complete_message(&mut self, flow: usize) -> bool {
        assert!(self.flows[flow].config.external, "the world itself sees when a simulated flow's message is complete");
        if self.follows {
            self.follow_delivery(flow);
        }
        let over = self.messages.on_complete(flow, self.now);
        if let Some(over) = over {
            self.after_message(flow, over);
        }
        over.is_some()
    }

    fn after_message(&mut self, number: usize, over: bool) {
        self.timers.set(self.messages.next(), EventKind::Message, 0);
        if over {
            self.flows[number].finish = Some(self.now);
            self.unfinished -= 1;
        }
    }
}
