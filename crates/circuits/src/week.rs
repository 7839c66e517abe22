//! A week: one pass of the circuit switch's schedule, repeated for ever.
//!
//! Each entry is a night (the switch reconfigures, nothing crosses it) followed by the day of its matching
//! (Etalon, NSDI'20, section 2.1). Every day has its night, whether or not the matching changes.

use crate::{Matching, RackId};
use firstlight_units::Span;

/// One entry of the schedule: a night, then the day of a matching.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Day {
    /// How long the switch reconfigures before the day.
    pub night: Span,
    /// How long the matching is up.
    pub day: Span,
    /// The matching: which rack sends to which.
    pub matching: Matching,
}

/// Why a list of days is not a week.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeekError {
    /// The week has no day.
    #[error("a week needs at least one day")]
    Empty,
    /// A day that lasts no time.
    #[error("day {index} lasts no time")]
    NoTime {
        /// The day, counted from 0.
        index: usize,
    },
    /// A day of a fabric with another number of racks.
    #[error("day {index} is a matching of {found} racks; day 0 has {expected}")]
    Racks {
        /// The day, counted from 0.
        index: usize,
        /// How many racks the day's matching has.
        found: usize,
        /// The racks of the first day.
        expected: usize,
    },
    /// Too few racks for a schedule.
    #[error("a {schedule} schedule needs at least {least} racks, not {found}")]
    TooFewRacks {
        /// The schedule's name.
        schedule: &'static str,
        /// How many it needs.
        least: usize,
        /// How many were given.
        found: usize,
    },
}

/// One pass of the schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Week {
    days: Vec<Day>,
    length: Span,
}

impl Week {
    /// The week of these days, in this order: the schedule that a user writes down.
    ///
    /// # Errors
    /// When there is no day, one of no length, or when the days differ in their number of racks.
    pub fn new(days: Vec<Day>) -> Result<Self, WeekError> {
        let expected = days.first().ok_or(WeekError::Empty)?.matching.racks();
        for (index, day) in days.iter().enumerate() {
            let found = day.matching.racks();
            if found != expected {
                return Err(WeekError::Racks { index, found, expected });
            }
            if day.day.is_zero() {
                return Err(WeekError::NoTime { index });
            }
        }
        let length = days.iter().map(|day| day.night + day.day).sum();
        Ok(Week { days, length })
    }

    /// A week in which the circuit switch does nothing: one day, no circuit, no night.
    ///
    /// # Panics
    /// When it lasts no time.
    pub fn idle(racks: usize, length: Span) -> Self {
        let matching = Matching::new(racks, &[]).expect("no pairs are a matching");
        Week::new(vec![Day { night: Span::ZERO, day: length, matching }]).expect("a week lasts some time")
    }

    /// Nights and days in their order.
    pub fn days(&self) -> &[Day] {
        &self.days
    }

    /// The week's length, from the first night to the end of the last day.
    pub fn length(&self) -> Span {
        self.length
    }

    /// How many racks the switch has.
    pub fn racks(&self) -> usize {
        self.days[0].matching.racks()
    }

    /// When each day begins and ends, counted from the start of the week.
    pub fn day_times(&self) -> impl Iterator<Item = (Span, Span)> + '_ {
        self.days.iter().scan(Span::ZERO, |at, day| {
            let begins = *at + day.night;
            *at = begins + day.day;
            Some((begins, *at))
        })
    }

    /// How long `src` has a circuit to `dst` in a week.
    pub fn time_of(&self, src: RackId, dst: RackId) -> Span {
        self.days.iter().filter(|day| day.matching.destination(src) == Some(dst)).map(|day| day.day).sum()
    }

    /// This week with every span `k` times as long.
    pub fn scaled(&self, k: u32) -> Week {
        let k = u64::from(k);
        let scaled = |day: &Day| Day { night: day.night * k, day: day.day * k, matching: day.matching.clone() };
        Week { days: self.days.iter().map(scaled).collect(), length: self.length * k }
    }
}
