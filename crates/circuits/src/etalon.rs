//! Etalon's stand-in: a week of many racks, played by the three racks of the paper's testbed.
//!
//! The published numbers of Etalon (NSDI'20, sections 4 and 5) come from three racks that stand for 25: rack 0 meets
//! rack 1 on the last of 24 days only. On the other days the switch holds the opposite cycle, so that the *reverse*
//! pair, which carries the ACKs, has a circuit on 23 days of 24. A true strobe of 25 racks does not.

use crate::{Day, Matching, Week, WeekError};
use firstlight_units::Span;

impl Week {
    /// The stand-in for a strobe of `stands_for` racks: `stands_for - 1` days of three racks. All but the last hold
    /// the cycle 0 > 2 > 1 > 0, the last one 0 > 1 > 2 > 0.
    ///
    /// # Errors
    /// When it stands for fewer than three racks, or with days of no length.
    pub fn etalon(stands_for: usize, day: Span, night: Span) -> Result<Week, WeekError> {
        if stands_for < 3 {
            return Err(WeekError::TooFewRacks { schedule: "etalon", least: 3, found: stands_for });
        }
        let entry = |shift| Day { night, day, matching: Matching::rotation(3, shift) };
        let mut days = vec![entry(2); stands_for - 2];
        days.push(entry(1));
        Week::new(days)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RackId;

    #[test]
    fn the_testbeds_week() {
        let week = Week::etalon(25, Span::from_us(180), Span::from_us(20)).unwrap();
        assert_eq!(week.length(), Span::from_us(4800));
        assert_eq!(week.time_of(RackId(0), RackId(1)), Span::from_us(180));
        assert_eq!(week.time_of(RackId(1), RackId(0)), Span::from_us(23 * 180));
        assert_eq!(week.days()[0].matching.to_string(), "0>2 1>0 2>1");
        assert_eq!(week.days()[23].matching.to_string(), "0>1 1>2 2>0");
        assert!(Week::etalon(2, Span::from_us(180), Span::ZERO).is_err());
    }
}
