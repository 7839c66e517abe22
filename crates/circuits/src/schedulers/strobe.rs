//! The strobe as a scheduler: equal days that fill the week, whatever the demand (Etalon, NSDI'20, section 2.1).

use super::{Frame, ScheduleError};
use crate::Week;
use firstlight_units::Span;

/// The strobe of equal days that fills a week; the first day takes what the division leaves.
pub(crate) fn schedule(racks: usize, frame: &Frame) -> Result<Week, ScheduleError> {
    let days = racks as u64 - 1;
    let Frame { week, night, least_day, .. } = *frame;
    let short = || {
        let room = week.as_ps() / (night + least_day).as_ps().max(1);
        ScheduleError::Strobe { racks, days: racks - 1, week, night, least_day, room }
    };
    let nights = night.saturating_mul(days);
    let light = week.as_ps().checked_sub(nights.as_ps()).filter(|left| left / days >= least_day.as_ps().max(1));
    let day = Span::from_ps(light.ok_or_else(short)? / days);
    let left = week.saturating_sub(nights + day * days);
    let strobe = Week::strobe(racks, day, night).expect("two racks or more, days of some length");
    let mut days = strobe.days().to_vec();
    days[0].day += left;
    Ok(Week::new(days).expect("a strobe's days are a week"))
}
