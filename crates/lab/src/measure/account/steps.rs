//! The parts of the time of a walk, one by one.

use super::cause::{Step, Who};

/// Parts of the time, which are found from the last to the first. Those of one cause that follow each other are one; a
/// wait in a queue is one, whoever's packets stood ahead.
#[derive(Debug, Default)]
pub(super) struct Steps {
    all: Vec<Step>,
    /// Whose packets the part that was found last has waited for, and how long, while it may go on.
    ahead: Vec<(Who, u64)>,
    /// The part that was found last may go on.
    is_open: bool,
}

impl Steps {
    /// Adds a part, which takes so much of the experiment's time.
    pub(super) fn add(&mut self, step: Step, time: u64) {
        if !self.goes_on(&step) {
            self.settle();
            self.all.push(step);
            self.is_open = true;
        } else if let Some(after) = self.all.last_mut() {
            after.from = step.from;
        }
        if step.cause.is_of_packets_ahead() {
            match self.ahead.iter_mut().find(|(who, _)| *who == step.who) {
                Some((_, all)) => *all += time,
                None => self.ahead.push((step.who, time)),
            }
        }
    }

    /// Adds a whole wait.
    pub(super) fn add_whole(&mut self, step: Step) {
        self.settle();
        self.all.push(step);
    }

    /// Whether a part is one with that found last.
    fn goes_on(&self, step: &Step) -> bool {
        let name = |step: &Step| (step.waiting, step.cause, step.place, step.lost);
        let is_same = |after: &Step| {
            let same_who = step.cause.is_of_packets_ahead() || after.who == step.who;
            same_who && name(after) == name(step) && after.from == step.until
        };
        self.is_open && self.all.last().is_some_and(is_same)
    }

    /// Closes the part that was found last.
    fn settle(&mut self) {
        let most = self.ahead.iter().max_by_key(|(who, time)| (*time, std::cmp::Reverse(*who)));
        if let (Some((who, _)), Some(step)) = (most, self.all.last_mut()) {
            (step.who, step.others) = (*who, self.ahead.len() as u32 - 1);
        }
        self.ahead.clear();
        self.is_open = false;
    }

    /// All parts, the last first.
    pub(super) fn into_all(mut self) -> Vec<Step> {
        self.settle();
        self.all
    }
}
