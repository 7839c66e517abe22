//! The calendar: what the schedule has the fabric do, in time order, week after week.
//!
//! Two kinds of operation come before their day and may reach back across the week's border: enlarging the VOQs of
//! the coming matching, and marking the returning ACKs of its pairs (Etalon, NSDI'20, sections 5.1 and 5.2). What
//! should have come before the start of the run comes at its start.

use crate::Week;
use firstlight_units::{Span, Time};

/// What is to be done. At one instant operations come in this order: a VOQ or mark that a coming day claims is not
/// taken away by a day that ends at the same moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Action {
    /// The VOQs of the coming matching become large.
    Enlarge,
    /// The ACKs of the coming matching's pairs are marked from now on.
    Mark,
    /// The day ends: circuits go down, VOQs become small, marks stop, packet paths come up.
    DayEnds,
    /// The switch begins to reconfigure: the coming matching's packet paths go down.
    NightBegins,
    /// The matching is up.
    DayBegins,
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// When it is due.
    pub at: Time,
    /// What is to be done.
    pub action: Action,
    /// Whose matching: the day's index in the week.
    pub day: usize,
}

/// One kind of operation: when it is due in the first week, how far it has come.
#[derive(Clone, Debug)]
struct Cursor {
    action: Action,
    /// Due times in picoseconds from the start of the week; before it when negative.
    offsets: Vec<i128>,
    day: usize,
    week: u64,
}

/// Produces the operations of a week for ever, in time order.
#[derive(Clone, Debug)]
pub struct Calendar {
    length: Span,
    cursors: Vec<Cursor>,
}

impl Calendar {
    /// The calendar of `week`, with VOQs enlarged and marks begun so long before a day (`None`: never).
    pub fn new(week: &Week, enlarge: Option<Span>, mark: Option<Span>) -> Self {
        let times: Vec<(i128, i128)> =
            week.day_times().map(|(begins, ends)| (i128::from(begins.as_ps()), i128::from(ends.as_ps()))).collect();
        let nights: Vec<i128> = week.days().iter().map(|day| i128::from(day.night.as_ps())).collect();
        let cursor = |action, offsets| Cursor { action, offsets, day: 0, week: 0 };
        let before = |span: Span| times.iter().map(|(begins, _)| begins - i128::from(span.as_ps())).collect();
        let mut cursors = vec![
            cursor(Action::DayEnds, times.iter().map(|(_, ends)| *ends).collect()),
            cursor(Action::NightBegins, times.iter().zip(nights).map(|((begins, _), night)| begins - night).collect()),
            cursor(Action::DayBegins, times.iter().map(|(begins, _)| *begins).collect()),
        ];
        cursors.extend(enlarge.map(|advance| cursor(Action::Enlarge, before(advance))));
        cursors.extend(mark.map(|advance| cursor(Action::Mark, before(advance))));
        Calendar { length: week.length(), cursors }
    }

    /// The next operation.
    pub fn peek(&self) -> Operation {
        self.cursors
            .iter()
            .map(|c| c.operation(self.length))
            .min_by_key(|op| (op.at, op.action))
            .expect("three or more")
    }

    /// Takes the next operation. Times never decrease from one to the next.
    pub fn pop(&mut self) -> Operation {
        let next = self.peek();
        let cursor = self.cursors.iter_mut().find(|c| c.action == next.action).expect("it was just found");
        cursor.advance();
        next
    }
}

impl Cursor {
    fn operation(&self, week: Span) -> Operation {
        let ps = self.offsets[self.day] + i128::from(self.week) * i128::from(week.as_ps());
        let at = Time::from_ps(u64::try_from(ps.max(0)).unwrap_or(u64::MAX));
        Operation { at, action: self.action, day: self.day }
    }

    fn advance(&mut self) {
        self.day += 1;
        if self.day == self.offsets.len() {
            self.day = 0;
            self.week += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut calendar = Calendar::new(&week, None, None);
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
        let mut calendar = Calendar::new(&week, Some(us(250)), Some(us(20)));
        let expected = [
            (0, Enlarge, 0), // due at -230
            (0, Enlarge, 1), // due at -30
            (0, Mark, 0),
            (0, NightBegins, 0),
            (20, DayBegins, 0),
            (170, Enlarge, 0), // for 420, next week
            (200, Mark, 1),
            (200, DayEnds, 0),
            (200, NightBegins, 1),
            (220, DayBegins, 1),
            (370, Enlarge, 1),
            (400, Mark, 0),
            (400, DayEnds, 1),
        ];
        assert_eq!(first(&mut calendar, 13), expected);
    }

    proptest! {
        #[test]
        fn time_order_and_every_operation_once_a_week(
            racks in 2usize..9, day in 1u64..300, night in 0u64..50, enlarge in 0u64..500, mark in 0u64..500,
        ) {
            let week = Week::strobe(racks, us(day), us(night)).unwrap();
            let limit = week.length().as_ps() / 1_000_000;
            let advance = |n: u64| Some(us(n.min(limit)));
            let mut calendar = Calendar::new(&week, advance(enlarge), advance(mark));
            let mut last = Time::ZERO;
            let mut claims = vec![0i32; racks - 1];
            for _ in 0..racks * 20 {
                let op = calendar.pop();
                prop_assert!(op.at >= last);
                last = op.at;
                match op.action {
                    Action::Enlarge => claims[op.day] += 1,
                    Action::DayEnds => claims[op.day] -= 1,
                    Action::DayBegins => prop_assert!(claims[op.day] > 0, "large before its day begins"),
                    _ => {}
                }
                // A claim lasts at most a week and a day, and a new one may come the moment it ends.
                prop_assert!((0..=3).contains(&claims[op.day]));
            }
        }
    }
}
