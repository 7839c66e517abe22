//! Strobe: each rack meets each other rack once a week, by rotation (Etalon, NSDI'20, section 2.1; as in RotorNet,
//! SIGCOMM'17, section 3).
//!
//! The day of shift s connects every rack i to i + s. Shifts go from R - 1 down to 1, so that the pair of racks 0 and 1
//! has the week's last day, where the paper's figures have it.

use crate::{Day, Matching, Week, WeekError};
use firstlight_units::Span;

impl Week {
    /// The strobe of `racks` racks: `racks - 1` days.
    ///
    /// # Errors
    /// With fewer than two racks, or days of no length.
    pub fn strobe(racks: usize, day: Span, night: Span) -> Result<Week, WeekError> {
        if racks < 2 {
            return Err(WeekError::TooFewRacks { schedule: "strobe", least: 2, found: racks });
        }
        Week::new(
            (1..racks).rev().map(|shift| Day { night, day, matching: Matching::rotation(racks, shift) }).collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RackId;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_pair_meets_once_and_0_to_1_last(racks in 2usize..40) {
            let week = Week::strobe(racks, Span::from_us(180), Span::from_us(20)).unwrap();
            prop_assert_eq!(week.days().len(), racks - 1);
            for src in 0..racks as u16 {
                for dst in 0..racks as u16 {
                    let met = if src == dst { Span::ZERO } else { Span::from_us(180) };
                    prop_assert_eq!(week.time_of(RackId(src), RackId(dst)), met);
                }
            }
            let last = week.days().last().unwrap();
            prop_assert_eq!(last.matching.destination(RackId(0)), Some(RackId(1)));
        }
    }

    #[test]
    fn the_papers_week() {
        let week = Week::strobe(25, Span::from_us(180), Span::from_us(20)).unwrap();
        assert_eq!(week.length(), Span::from_us(4800));
        assert_eq!(week.day_times().last(), Some((Span::from_us(4620), Span::from_us(4800))));
        assert!(Week::strobe(1, Span::from_us(180), Span::ZERO).is_err());
    }
}
