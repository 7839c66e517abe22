//! A world's messages: written to their flows' connections when they are due, complete when their receivers have them.

use super::World;
use crate::events::Kind;
use crate::message::JobReport;
use firstlight_units::Time;

impl World {
    /// What became of the jobs of messages, by number.
    pub fn jobs(&self) -> Vec<JobReport> {
        self.exchange.jobs()
    }

    /// Messages are due.
    pub(super) fn on_messages(&mut self) {
        while let Some((flow, bytes)) = self.exchange.poll(self.now) {
            self.write(flow, bytes);
        }
        self.timers.set(self.exchange.next(), Kind::Message, 0);
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
        let goal = self.exchange.goal(number);
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
        let over = self.exchange.on_received(number, live.connection.bytes_received(), self.now);
        live.goal = self.exchange.goal(number);
        self.after_message(number, over);
    }

    /// The earliest message on its way of a flow with ends outside is complete now; false when there is none.
    ///
    /// # Panics
    /// When the flow is simulated, or there is no such flow.
    pub fn complete_message(&mut self, flow: usize) -> bool {
        assert!(self.flows[flow].config.outside, "a simulated flow's messages are seen here");
        let over = self.exchange.on_complete(flow, self.now);
        if let Some(over) = over {
            self.after_message(flow, over);
        }
        over.is_some()
    }

    fn after_message(&mut self, number: usize, over: bool) {
        self.timers.set(self.exchange.next(), Kind::Message, 0);
        if over {
            self.flows[number].finish = Some(self.now);
            self.unfinished -= 1;
        }
    }
}
