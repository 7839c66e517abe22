//! The days of a week that is being made: the time that is left for further days, and its division at the end.

use super::Frame;
use crate::{Day, Matching, Week};
use firstlight_units::Span;

/// Days so far. Times are in picoseconds.
pub(crate) struct Days {
    racks: usize,
    night: u64,
    least: u64,
    left: u64,
    days: Vec<Day>,
}

impl Days {
    /// A week without a day, in a frame that has room for one.
    pub fn new(racks: usize, frame: &Frame) -> Self {
        let (night, least) = (frame.night.as_ps(), frame.least_day.as_ps().max(1));
        Days { racks, night, least, left: frame.week.as_ps(), days: Vec::new() }
    }

    /// The shortest day and the longest one that still fits; nothing when no day fits.
    pub fn room(&self) -> Option<(u64, u64)> {
        let longest = self.left.checked_sub(self.night)?;
        (longest >= self.least).then_some((self.least, longest))
    }

    /// Adds a day of `length`, no shorter than the shortest and no longer than fits. A matching that is there already
    /// has its day prolonged and needs no second night.
    ///
    /// # Panics
    /// When there is no room.
    pub fn push(&mut self, length: u64, matching: Matching) {
        let (least, longest) = self.room().expect("asked for before a day is added");
        let length = length.clamp(least, longest);
        match self.days.iter_mut().find(|day| day.matching == matching) {
            Some(day) => {
                day.day += Span::from_ps(length);
                self.left -= length;
            }
            None => {
                self.days.push(Day { night: Span::from_ps(self.night), day: Span::from_ps(length), matching });
                self.left -= self.night + length;
            }
        }
    }

    /// Time of the nights and days so far.
    pub fn filled(&self) -> u64 {
        self.days.iter().map(|day| (day.night + day.day).as_ps()).sum()
    }

    /// The week. The time that is left is divided among the days in proportion to their lengths, since the known demand
    /// may be only a part of the demand. A week without days is idle.
    pub fn finish(mut self) -> Week {
        if self.days.is_empty() {
            self.push(u64::MAX, Matching::new(self.racks, &[]).expect("an idle switch is a matching"));
        }
        let lit: u64 = self.days.iter().map(|day| day.day.as_ps()).sum();
        let (mut before, mut given) = (0, 0);
        for day in &mut self.days {
            before += day.day.as_ps();
            let share = u128::from(self.left) * u128::from(before) / u128::from(lit);
            day.day += Span::from_ps(share as u64 - given);
            given = share as u64;
        }
        Week::new(self.days).expect("days that last, all of as many racks")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_units::Rate;

    fn days() -> Days {
        let frame = Frame {
            week: Span::from_ps(100),
            night: Span::from_ps(10),
            least_day: Span::from_ps(20),
            circuit: Rate::from_gbps(80),
            packet: Rate::from_gbps(10),
        };
        Days::new(3, &frame)
    }

    #[test]
    fn a_week_is_filled_exactly() {
        let mut days = days();
        days.push(5, Matching::rotation(3, 1));
        assert_eq!(days.room(), Some((20, 60)));
        days.push(35, Matching::rotation(3, 2));
        assert_eq!(days.room(), None);
        let lengths: Vec<_> = days.finish().days().iter().map(|day| day.day.as_ps()).collect();
        // 25 left, for 20 and 35.
        assert_eq!(lengths, [29, 51]);
    }

    #[test]
    fn a_matching_has_one_day() {
        let mut days = days();
        days.push(20, Matching::rotation(3, 1));
        days.push(30, Matching::rotation(3, 1));
        assert_eq!(days.room(), Some((20, 30)));
        assert_eq!(days.finish().days().len(), 1);
    }

    #[test]
    fn a_week_without_days_is_idle() {
        let week = days().finish();
        assert_eq!((week.days().len(), week.days()[0].day), (1, Span::from_ps(90)));
        assert_eq!(week.days()[0].matching.to_string(), "idle");
    }
}
