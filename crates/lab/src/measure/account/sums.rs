//! The time of a walk by waiting, cause, place and others, added up while it goes on.

use super::cause::{Cause, Step, Waiting, Where, Who};
use super::index::own_time;
use super::line::{Line, Served};
use super::walk::Parts;
use firstlight_units::Time;
use std::collections::BTreeMap;

/// The time of all steps of one name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Sum {
    pub(super) waiting: Waiting,
    pub(super) cause: Cause,
    pub(super) place: Where,
    pub(super) who: Who,
    /// In the experiment's own picoseconds.
    pub(super) time: i64,
}

/// What sums have in common but for who was the cause.
type Head = (Waiting, Cause, Where);

/// The sums of one head.
#[derive(Debug)]
struct Group<'a> {
    head: Head,
    /// Of nobody.
    nobody: u64,
    others: BTreeMap<Who, u64>,
    /// Of whose packets passed a place, as its line numbers them.
    line: Option<(&'a Line, Vec<u64>)>,
}

/// How many groups are found without a search.
const RECENT: usize = 256;

/// Sums of a walk.
pub(super) struct Sums<'a> {
    time_scale: u64,
    groups: Vec<Group<'a>>,
    numbers: BTreeMap<Head, usize>,
    /// Groups by a hash of their heads: those that were found last.
    recent: [u32; RECENT],
}

impl<'a> Sums<'a> {
    pub(super) fn new(time_scale: u32) -> Self {
        let time_scale = u64::from(time_scale);
        Sums { time_scale, groups: vec![], numbers: BTreeMap::new(), recent: [0; RECENT] }
    }

    /// A moment in the experiment's own time.
    fn own(&self, at: Time) -> u64 {
        own_time(at, self.time_scale)
    }

    fn group(&mut self, head: Head) -> &mut Group<'a> {
        let (waiting, cause, place) = head;
        let place = match place {
            Where::Nowhere => 1,
            Where::Host(host) => usize::from(host) * 5 + 2,
            Where::Place(code) => code as usize * 7 + (code >> 24) as usize,
            Where::Voq(src, dst) => usize::from(src) * 11 + usize::from(dst) * 13,
        };
        let hash = (place + cause as usize * 17 + waiting as usize * 29) % RECENT;
        let recent = self.recent[hash] as usize;
        if self.groups.get(recent).is_some_and(|group| group.head == head) {
            return &mut self.groups[recent];
        }
        let next = self.groups.len();
        let number = *self.numbers.entry(head).or_insert(next);
        if number == next {
            self.groups.push(Group { head, nobody: 0, others: BTreeMap::new(), line: None });
        }
        self.recent[hash] = number as u32;
        &mut self.groups[number]
    }

    /// All sums, in the order of their names.
    pub(super) fn into_sorted(self) -> Vec<Sum> {
        let mut all = vec![];
        for Group { head: (waiting, cause, place), nobody, mut others, line } in self.groups {
            if let Some((line, sums)) = line {
                for (who, time) in line.whos().iter().zip(sums) {
                    *others.entry(*who).or_default() += time;
                }
            }
            others.insert(Who::Nobody, nobody);
            let of = |(who, time): (Who, u64)| Sum { waiting, cause, place, who, time: time as i64 };
            all.extend(others.into_iter().filter(|(_, time)| *time > 0).map(of));
        }
        all.sort_unstable();
        all
    }
}

impl<'a> Parts<'a> for Sums<'a> {
    const IN_SUM: bool = true;
    const TOGETHER: usize = 64;

    fn add(&mut self, step: Step) {
        let time = self.own(step.until) - self.own(step.from);
        let group = self.group((step.waiting, step.cause, step.place));
        match step.who {
            Who::Nobody => group.nobody += time,
            who => *group.others.entry(who).or_default() += time,
        }
    }

    fn add_served(&mut self, head: Head, line: &'a Line, served: Served) {
        let group = self.group(head);
        let (line, sums) = group.line.get_or_insert_with(|| (line, vec![0; line.whos().len()]));
        line.add(served, sums);
    }
}
