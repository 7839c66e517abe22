//! The circuit switch's side of a hybrid fabric: demand, schedulers, matchings, schedules, and the calendar that plays
//! them.
//!
//! Everything here is pure: time and demand go in, weeks and operations come out. The fabric that carries them out is
//! in `sim`.

mod calendar;
mod demand;
mod etalon;
mod matching;
pub mod schedulers;
mod strobe;
mod week;

pub use calendar::{Action, Calendar, Operation};
pub use demand::{Demand, DemandError};
pub use matching::{Matching, MatchingError, RackId};
pub use schedulers::{Frame, ScheduleError, Scheduler};
pub use week::{Day, Week, WeekError};
