//! The time of a walk by waiting, cause, place and others, added up while it goes on.

use super::cause::{Cause, Step, Waiting, Where, Who};
use super::index::own_time;
use super::service_log::{Served, ServiceLog};
use super::steps::Steps;
use firstlight_units::Time;
use std::collections::BTreeMap;

/// The time of all steps of one name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Sum {
    pub(super) waiting: Waiting,
    pub(super) cause: Cause,
    pub(super) place: Where,
    pub(super) who: Who,
    /// The time, in picoseconds of the experiment's clock.
    pub(super) time: i64,
}

impl Sum {
    fn name(&self) -> (Waiting, Cause, Where, Who) {
        (self.waiting, self.cause, self.place, self.who)
    }
}

/// What sums have in common but for the cause, and who it was.
type Head = (Waiting, Where);

/// The sums of one head.
#[derive(Debug)]
struct Group<'a> {
    head: Head,
    /// Times that are nobody's, by cause.
    nobody: [u64; Cause::COUNT],
    others: BTreeMap<(Cause, Who), u64>,
    /// Times behind packets that passed a place, by owner as the place's log numbers them.
    log: Option<(Cause, &'a ServiceLog, Vec<u64>)>,
}

/// Sums of a walk, and each part where these are wanted.
pub(super) struct Sums<'a> {
    time_scale: u64,
    groups: Vec<Group<'a>>,
    numbers: BTreeMap<Head, usize>,
    /// The group that was found last.
    last: usize,
    steps: Option<Steps>,
    /// Memory for the sums of a wait.
    ahead: Vec<u64>,
}

impl<'a> Sums<'a> {
    pub(super) fn new(time_scale: u32) -> Self {
        let time_scale = u64::from(time_scale);
        let (groups, numbers, ahead) = (vec![], BTreeMap::new(), vec![]);
        Sums { time_scale, groups, numbers, last: 0, steps: None, ahead }
    }

    /// Sums that keep each part, if these are wanted.
    pub(super) fn with_steps(time_scale: u32, wanted: bool) -> Self {
        Sums { steps: wanted.then(Steps::new), ..Sums::new(time_scale) }
    }

    /// A moment in the experiment's own time.
    fn own(&self, at: Time) -> u64 {
        own_time(at, self.time_scale)
    }

    #[inline]
    fn group(&mut self, head: Head) -> &mut Group<'a> {
        if self.groups.get(self.last).is_none_or(|group| group.head != head) {
            self.last = self.find(head);
        }
        &mut self.groups[self.last]
    }

    fn find(&mut self, head: Head) -> usize {
        let next = self.groups.len();
        let number = *self.numbers.entry(head).or_insert(next);
        if number == next {
            self.groups.push(Group { head, nobody: [0; Cause::COUNT], others: BTreeMap::new(), log: None });
        }
        number
    }

    /// Adds a part.
    pub(super) fn add(&mut self, step: Step) {
        let time = self.own(step.until) - self.own(step.from);
        let group = self.group((step.waiting, step.place));
        match step.who {
            Who::Nobody => group.nobody[step.cause as usize] += time,
            who => *group.others.entry((step.cause, who)).or_default() += time,
        }
        if let Some(steps) = &mut self.steps {
            steps.add(step, time);
        }
    }

    /// Adds a wait in which a place served without a gap; `step` says everything but whose packets it served.
    pub(super) fn add_served(&mut self, step: Step, log: &'a ServiceLog, served: Served) {
        let mut ahead = std::mem::take(&mut self.ahead);
        let is_kept = self.steps.is_some();
        let group = self.group((step.waiting, step.place));
        let (_, _, sums) = group.log.get_or_insert_with(|| (step.cause, log, vec![0; log.whos().len()]));
        if !is_kept {
            log.add(served, sums);
            return;
        }
        ahead.clear();
        ahead.resize(sums.len(), 0);
        log.add(served, &mut ahead);
        sums.iter_mut().zip(&ahead).for_each(|(sum, time)| *sum += time);
        let (who, others) = log.most(&ahead);
        if let Some(steps) = &mut self.steps {
            steps.add_whole(Step { who, others, ..step });
        }
        self.ahead = ahead;
    }

    /// All sums in the order of their names, and the parts, if they are kept.
    pub(super) fn into_sorted(self) -> (Vec<Sum>, Option<Steps>) {
        let mut all = vec![];
        for Group { head: (waiting, place), nobody, others, log } in self.groups {
            let of = |(cause, who, time): (Cause, Who, u64)| Sum { waiting, cause, place, who, time: time as i64 };
            let alone = Cause::ALL.into_iter().map(|cause| (cause, Who::Nobody, nobody[cause as usize]));
            let together = others.into_iter().map(|((cause, who), time)| (cause, who, time));
            let ahead = log
                .iter()
                .flat_map(|(cause, log, sums)| log.whos().iter().zip(sums).map(|(who, time)| (*cause, *who, *time)));
            all.extend(alone.chain(together).chain(ahead).filter(|(.., time)| *time > 0).map(of));
        }
        all.sort_unstable();
        all.dedup_by(|again, sum| {
            let is_same = again.name() == sum.name();
            sum.time += if is_same { again.time } else { 0 };
            is_same
        });
        let mut steps = self.steps;
        steps.iter_mut().for_each(Steps::settle);
        (all, steps)
    }
}
