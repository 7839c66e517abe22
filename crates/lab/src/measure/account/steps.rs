//! The parts of the time of a walk, one by one.

use super::cause::{Cause, Step, Waiting, Where, Who};
use firstlight_units::Time;
use std::collections::BTreeMap;

/// Parts of the time, which are found from the last to the first. Those of one cause that follow each other are one; a
/// wait in a queue is one, whoever's packets stood ahead.
#[derive(Debug)]
pub(super) struct Steps {
    /// All parts but the open one, the last first. Each ends where the one after it in time begins.
    all: Vec<KeptStep>,
    /// When the last part ends.
    end: Time,
    names: Vec<StepName>,
    numbers: BTreeMap<StepName, u32>,
    /// The part that was found last, if it may go on.
    open: Option<Step>,
    /// Whose packets the open part has waited for, and how long.
    ahead: Vec<(Who, u64)>,
}

/// What parts have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct StepName {
    pub(super) waiting: Waiting,
    pub(super) cause: Cause,
    pub(super) place: Where,
    pub(super) who: Who,
}

/// A part, of which there can be many.
#[derive(Clone, Copy, Debug)]
struct KeptStep {
    from: Time,
    /// The number of its name.
    name: u32,
    others: u32,
    /// The departure of the packet that was lost; [`NOTHING_LOST`] for none.
    lost: u32,
}

const NOTHING_LOST: u32 = u32::MAX;

/// A part as it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) from: Time,
    pub(super) until: Time,
    /// The part's name, as a number in [`Steps::names`].
    pub(super) name: usize,
    pub(super) others: u32,
    pub(super) lost: Option<usize>,
}

impl Steps {
    pub(super) fn new() -> Self {
        Steps { all: vec![], end: Time::ZERO, names: vec![], numbers: BTreeMap::new(), open: None, ahead: vec![] }
    }

    /// Adds a part, which takes so much of the experiment's time.
    pub(super) fn add(&mut self, step: Step, time: u64) {
        match &mut self.open {
            Some(open) if open.goes_on(&step) => open.from = step.from,
            _ => {
                self.settle();
                self.open = Some(step);
            }
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
        self.keep(step);
    }

    /// Closes the part that was found last.
    pub(super) fn settle(&mut self) {
        let Some(mut step) = self.open.take() else { return };
        let most = self.ahead.iter().max_by_key(|(who, time)| (*time, std::cmp::Reverse(*who)));
        if let Some((who, _)) = most {
            (step.who, step.others) = (*who, self.ahead.len() as u32 - 1);
        }
        self.ahead.clear();
        self.keep(step);
    }

    fn keep(&mut self, step: Step) {
        let Step { from, until, waiting, cause, place, who, others, lost } = step;
        match self.all.last() {
            Some(after) => debug_assert_eq!(after.from, until, "parts follow each other without a gap"),
            None => self.end = until,
        }
        let name = self.number(StepName { waiting, cause, place, who });
        let lost = lost.map_or(NOTHING_LOST, |lost| lost as u32);
        self.all.push(KeptStep { from, name, others, lost });
    }

    /// The number of a name.
    fn number(&mut self, name: StepName) -> u32 {
        let number = *self.numbers.entry(name).or_insert(self.names.len() as u32);
        if number as usize == self.names.len() {
            self.names.push(name);
        }
        number
    }

    /// The names of all parts.
    pub(super) fn names(&self) -> &[StepName] {
        &self.names
    }

    /// How many parts there are, once they are settled.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// All parts in the order of time, once they are settled.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        (0..self.all.len()).rev().map(|index| {
            let KeptStep { from, name, others, lost } = self.all[index];
            let until = index.checked_sub(1).map_or(self.end, |after| self.all[after].from);
            let lost = (lost != NOTHING_LOST).then_some(lost as usize);
            Part { from, until, name: name as usize, others, lost }
        })
    }
}

impl Step {
    /// Whether a part that was before this one is one with it.
    fn goes_on(&self, before: &Step) -> bool {
        let name = |step: &Step| (step.waiting, step.cause, step.place, step.lost);
        let same_who = before.cause.is_of_packets_ahead() || self.who == before.who;
        same_who && name(self) == name(before) && self.from == before.until
    }
}
