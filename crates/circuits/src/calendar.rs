//! The calendar: the operations of the schedule on the fabric, in time order, week after week.
//!
//! Two kinds of operation come before their day and may reach back across the week's border: enlarging the VOQs of the
//! coming matching, and marking the returning ACKs of its pairs (Etalon, NSDI'20, sections 5.1 and 5.2). An operation
//! that is due before the start of the run comes at the start. An operation that is due before its week is planned
//! comes when the week is planned.

use crate::{Day, Week};
use firstlight_units::{Span, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// An operation of the schedule. Simultaneous operations come in this order, so that a day that ends takes away no VOQ
/// size or mark that a coming day claims at the same moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Action {
    /// The VOQs of the coming matching become large.
    Enlarge,
    /// The ACKs of the coming matching's pairs are marked from now on.
    Mark,
    /// The day ends: circuits go down, marks stop, packet paths come up.
    DayEnds,
    /// The VOQs of a matching that has been up become small.
    Shrink,
    /// The switch begins to reconfigure: the coming matching's packet paths go down.
    NightBegins,
    /// The matching is up.
    DayBegins,
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// When the operation is due.
    pub at: Time,
    /// The operation.
    pub action: Action,
    /// The week, counted from the start of the run.
    pub week: u64,
    /// The index, in that week, of the day whose matching is used.
    pub day: usize,
}

/// One week of the run.
#[derive(Clone, Debug)]
struct Planned {
    week: Arc<Week>,
    /// When each day begins and ends, in picoseconds from the week's start.
    days: Arc<[(u64, u64)]>,
    starts: Time,
    /// When this week's schedule became known; nothing is done for the week before that.
    known: Time,
}

/// The progress of one kind of operation.
#[derive(Clone, Debug)]
struct Cursor {
    action: Action,
    /// How long before its day it is due; of [`Action::Shrink`], how long after.
    distance: Span,
    week: u64,
    day: usize,
}

/// Produces the operations of all weeks in time order, without an end.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// Consecutive weeks that still have operations.
    weeks: VecDeque<Planned>,
    /// The number of the first of them.
    first: u64,
    cursors: Vec<Cursor>,
    /// Whether one week repeats for ever, so that no later week needs to be planned.
    repeats: bool,
}

impl Calendar {
    /// The calendar of `week`, repeated for ever, with VOQs enlarged `enlarge` and marks begun `mark` before a day
    /// (`None`: never). VOQs shrink when the day ends.
    ///
    /// # Panics
    /// When an operation would be more than a week away from its day; so does [`Calendar::shrinking`].
    pub fn new(week: Week, enlarge: Option<Span>, mark: Option<Span>) -> Self {
        let cursor = |action, distance| Cursor { action, distance, week: 0, day: 0 };
        let mut cursors =
            [Action::DayEnds, Action::NightBegins, Action::DayBegins].map(|action| cursor(action, Span::ZERO)).to_vec();
        cursors.extend(enlarge.map(|advance| cursor(Action::Enlarge, advance)));
        cursors.extend(enlarge.map(|_| cursor(Action::Shrink, Span::ZERO)));
        cursors.extend(mark.map(|advance| cursor(Action::Mark, advance)));
        let weeks = VecDeque::from([Planned::new(week, Time::ZERO, Time::ZERO)]);
        Calendar { weeks, first: 0, cursors, repeats: true }.within_a_week()
    }

    /// The calendar of weeks that are planned one by one: first `week`, then the weeks that [`Calendar::plan`] adds.
    /// Where no week has been planned by the end of the one before, that one repeats.
    pub fn planned(week: Week, enlarge: Option<Span>, mark: Option<Span>) -> Self {
        Calendar { repeats: false, ..Calendar::new(week, enlarge, mark) }
    }

    /// This calendar, but VOQs shrink `linger` after the end of their day.
    pub fn shrinking(mut self, linger: Span) -> Self {
        for cursor in self.cursors.iter_mut().filter(|cursor| cursor.action == Action::Shrink) {
            cursor.distance = linger;
        }
        self.within_a_week()
    }

    /// This calendar. A cursor holds all weeks from the present one to its own, which must be few.
    fn within_a_week(self) -> Self {
        let week = self.last().week.length();
        for Cursor { action, distance, .. } in &self.cursors {
            assert!(*distance <= week, "{action:?} is {distance} from its day, more than the week of {week}");
        }
        self
    }

    /// Plans the week after the last planned one, and returns its number. Actions for it that were due before `now` are
    /// due now.
    ///
    /// # Panics
    /// On a calendar that repeats its week.
    pub fn plan(&mut self, week: Week, now: Time) -> u64 {
        assert!(!self.repeats, "a week that repeats for ever has no other one after it");
        let starts = self.last().ends();
        self.weeks.push_back(Planned::new(week, starts, now));
        self.first + self.weeks.len() as u64 - 1
    }

    /// When the next operation is due.
    pub fn next_due(&self) -> Time {
        let next = self.cursors.iter().filter_map(|cursor| self.operation(cursor)).map(|op| op.at).min();
        // Without a plan, the week after the last one is known when the last one is over.
        next.map_or(self.last().ends(), |at| if self.repeats { at } else { at.min(self.last().ends()) })
    }

    /// Takes the next operation. Times never decrease from one to the next.
    pub fn pop(&mut self) -> Operation {
        let passed = self.cursors.iter().map(|cursor| cursor.week).min().expect("three or more");
        while self.first < passed {
            self.weeks.pop_front();
            self.first += 1;
        }
        if self.next_due() >= self.last().ends() {
            self.repeat_last();
        }
        let all = self.cursors.iter().enumerate();
        let operations = all.filter_map(|(index, cursor)| self.operation(cursor).map(|operation| (operation, index)));
        let (next, index) = operations.min_by_key(|(op, _)| (op.at, op.action)).expect("the last week is not over");
        self.advance(index);
        next
    }

    /// The day that an operation belongs to. The operation was taken last, or its day is not over.
    pub fn day(&self, operation: &Operation) -> &Day {
        &self.planned_week(operation.week).expect("its week is not over").week.days()[operation.day]
    }

    /// When the week of an operation begins.
    pub fn starts(&self, operation: &Operation) -> Time {
        self.planned_week(operation.week).expect("its week is not over").starts
    }

    fn last(&self) -> &Planned {
        self.weeks.back().expect("the present week is planned")
    }

    fn planned_week(&self, number: u64) -> Option<&Planned> {
        self.weeks.get(number.checked_sub(self.first)? as usize)
    }

    /// The next operation of a cursor; `None` while its week is not planned.
    fn operation(&self, cursor: &Cursor) -> Option<Operation> {
        let planned = self.planned_week(cursor.week)?;
        let (begins, ends) = planned.days[cursor.day];
        let from_start = match cursor.action {
            Action::DayEnds => ends,
            Action::Shrink => ends.saturating_add(cursor.distance.as_ps()),
            Action::NightBegins => begins - planned.week.days()[cursor.day].night.as_ps(),
            Action::DayBegins | Action::Enlarge | Action::Mark => begins,
        };
        let advance = if cursor.action == Action::Shrink { 0 } else { cursor.distance.as_ps() };
        let due = (planned.starts.as_ps().saturating_add(from_start)).saturating_sub(advance);
        let at = Time::from_ps(due).max(planned.known);
        Some(Operation { at, action: cursor.action, week: cursor.week, day: cursor.day })
    }

    fn advance(&mut self, index: usize) {
        let (week, day) = (self.cursors[index].week, self.cursors[index].day + 1);
        let days = self.planned_week(week).expect("it was just used").days.len();
        let cursor = &mut self.cursors[index];
        (cursor.week, cursor.day) = if day < days { (week, day) } else { (week + 1, 0) };
        let beyond = cursor.week == self.first + self.weeks.len() as u64;
        if beyond && self.repeats {
            self.repeat_last();
        }
    }

    fn repeat_last(&mut self) {
        let last = self.last();
        let known = if self.repeats { Time::ZERO } else { last.ends() };
        let next = Planned { starts: last.ends(), known, ..last.clone() };
        self.weeks.push_back(next);
    }
}

impl Planned {
    fn new(week: Week, starts: Time, known: Time) -> Self {
        let days = week.day_times().map(|(begins, ends)| (begins.as_ps(), ends.as_ps())).collect();
        Planned { week: Arc::new(week), days, starts, known }
    }

    fn ends(&self) -> Time {
        Time::from_ps(self.starts.as_ps().saturating_add(self.week.length().as_ps()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matching;
    use proptest::prelude::*;

    fn us(n: u64) -> Span {
        Span::from_us(n)
    }

    fn first(calendar: &mut Calendar, n: usize) -> Vec<(u64, Action, usize)> {
        (0..n).map(|_| calendar.pop()).map(|op| (op.at.as_ps() / 1_000_000, op.action, op.day)).collect()
    }

    #[test]
    fn nights_and_days_alternate() {
        use Action::*;
        let week = Week::strobe(3, us(180), us(20)).unwrap();
        let mut calendar = Calendar::new(week.clone(), None, None);
        let expected = [
            (0, NightBegins, 0),
            (20, DayBegins, 0),
            (200, DayEnds, 0),
            (200, NightBegins, 1),
            (220, DayBegins, 1),
            (400, DayEnds, 1),
            (400, NightBegins, 0),
        ];
        assert_eq!(first(&mut calendar, 7), expected);
    }

    #[test]
    fn advances_reach_back_across_the_week() {
        use Action::*;
        let week = Week::strobe(3, us(180), us(20)).unwrap();
        let mut calendar = Calendar::new(week.clone(), Some(us(250)), Some(us(20)));
        let expected = [
            (0, Enlarge, 0), // due at -230
            (0, Enlarge, 1), // due at -30
            (0, Mark, 0),
            (0, NightBegins, 0),
            (20, DayBegins, 0),
            (170, Enlarge, 0), // for 420, next week
            (200, Mark, 1),
            (200, DayEnds, 0),
            (200, Shrink, 0),
            (200, NightBegins, 1),
            (220, DayBegins, 1),
            (370, Enlarge, 1),
            (400, Mark, 0),
            (400, DayEnds, 1),
        ];
        assert_eq!(first(&mut calendar, 14), expected);
    }

    #[test]
    fn voqs_may_shrink_after_the_day_in_the_next_week_too() {
        use Action::*;
        let week = Week::strobe(3, us(180), us(20)).unwrap();
        let mut calendar = Calendar::new(week, Some(us(20)), None).shrinking(us(250));
        let shrinks = first(&mut calendar, 25).into_iter().filter(|(_, action, _)| *action == Shrink);
        assert_eq!(shrinks.collect::<Vec<_>>(), [(450, Shrink, 0), (650, Shrink, 1), (850, Shrink, 0)]);
    }

    #[test]
    fn a_planned_week_reaches_back_to_when_it_was_planned() {
        use Action::*;
        let night = us(20);
        let swap = |shift| Matching::rotation(3, shift);
        let week = |days: &[(u64, usize)]| {
            Week::new(days.iter().map(|&(day, shift)| Day { night, day: us(day), matching: swap(shift) }).collect())
        };
        let mut calendar = Calendar::planned(week(&[(380, 1)]).unwrap(), Some(us(300)), None);
        assert_eq!(first(&mut calendar, 3), [(0, Enlarge, 0), (0, NightBegins, 0), (20, DayBegins, 0)]);
        // Due at 120, known at 150; the second day's at 300.
        calendar.plan(week(&[(180, 2), (180, 1)]).unwrap(), Time::ZERO + us(150));
        let expected = [(150, Enlarge, 0), (320, Enlarge, 1), (400, DayEnds, 0), (400, Shrink, 0)];
        assert_eq!(first(&mut calendar, 4), expected);
        let operation = calendar.pop();
        assert_eq!((operation.week, operation.day, operation.action), (1, 0, NightBegins));
        assert_eq!(calendar.day(&operation).matching, swap(2));
        assert_eq!(calendar.starts(&operation), Time::ZERO + us(400));
        // Nothing planned: the same once more, as is known at 800 only.
        let rest =
            [(420, DayBegins, 0), (600, DayEnds, 0), (600, Shrink, 0), (600, NightBegins, 1), (620, DayBegins, 1)];
        assert_eq!(first(&mut calendar, 5), rest);
        let again = [(800, Enlarge, 0), (800, Enlarge, 1), (800, DayEnds, 1), (800, Shrink, 1), (800, NightBegins, 0)];
        assert_eq!(first(&mut calendar, 5), again);
    }

    proptest! {
        #[test]
        fn time_order_and_every_operation_once_a_week(
            racks in 2usize..9, day in 1u64..300, night in 0u64..50, enlarge in 0u64..500, mark in 0u64..500,
            linger in 0u64..500,
        ) {
            let week = Week::strobe(racks, us(day), us(night)).unwrap();
            let limit = week.length().as_ps() / 1_000_000;
            let advance = |n: u64| Some(us(n.min(limit)));
            let mut calendar = Calendar::new(week.clone(), advance(enlarge), advance(mark))
                .shrinking(us(linger.min(limit)));
            let mut last = Time::ZERO;
            let mut claims = vec![0i32; racks - 1];
            for _ in 0..racks * 20 {
                let op = calendar.pop();
                prop_assert!(op.at >= last);
                last = op.at;
                match op.action {
                    Action::Enlarge => claims[op.day] += 1,
                    Action::Shrink => claims[op.day] -= 1,
                    Action::DayBegins => prop_assert!(claims[op.day] > 0, "large before its day begins"),
                    _ => {}
                }
                // A claim lasts at most two weeks and a day, and a new one may come the moment it ends.
                prop_assert!((0..=4).contains(&claims[op.day]));
            }
        }

        #[test]
        fn planned_weeks_of_any_kind_keep_time_and_pair_their_operations(
            plans in prop::collection::vec((1usize..5, 0u64..1000, any::<bool>()), 1..8), enlarge in 0u64..1000,
        ) {
            let of = |days: usize| {
                let length = 1000 / days as u64;
                let last = 1000 - length * (days as u64 - 1);
                let day = |nth: usize| Day {
                    night: us(20),
                    day: us(if nth + 1 == days { last } else { length } - 20),
                    matching: Matching::rotation(5, nth % 4 + 1),
                };
                Week::new((0..days).map(day).collect()).unwrap()
            };
            let mut calendar = Calendar::planned(of(1), Some(us(enlarge)), Some(us(0)));
            let (mut last, mut known) = (Time::ZERO, vec![Time::ZERO]);
            let mut open = std::collections::BTreeMap::new();
            let mut plans = plans.into_iter().enumerate();
            let mut next = plans.next();
            for _ in 0..200 {
                let week = known.len() as u64 - 1;
                if let Some((_, (days, at, done))) = next {
                    let at = Time::ZERO + us(week * 1000 + at);
                    if calendar.next_due() >= at && last <= at {
                        if done {
                            calendar.plan(of(days), at);
                            known.push(at);
                        }
                        next = plans.next();
                    }
                }
                let op = calendar.pop();
                if op.week as usize == known.len() {
                    known.push(Time::ZERO + us(op.week * 1000));
                }
                prop_assert!(op.at >= last && op.at >= known[op.week as usize], "{:?}", op);
                last = op.at;
                let begins = calendar.starts(&op);
                prop_assert_eq!(begins, Time::ZERO + us(op.week * 1000));
                let key = (op.week, op.day);
                match op.action {
                    Action::Enlarge => prop_assert!(open.insert(key, false).is_none()),
                    Action::DayBegins => prop_assert_eq!(open.insert(key, true), Some(false)),
                    Action::DayEnds => prop_assert_eq!(open.remove(&key), Some(true)),
                    _ => {}
                }
            }
        }
    }
}
