//! The circuit switch's side of a hybrid fabric: matchings, schedules, and the calendar that plays them.
//!
//! Everything here is pure: time goes in, operations come out. The fabric that carries them out is in `sim`.

mod calendar;
mod etalon;
mod matching;
mod strobe;
mod week;

pub use calendar::{Action, Calendar, Operation};
pub use matching::{Matching, MatchingError, RackId};
pub use week::{Day, Week, WeekError};
