//! Quantities with their units: time, rate and bytes.
//!
//! Time is an unsigned count of picoseconds (as in csg-htsim): at 100 Gb/s a byte lasts 80 ps, so that every
//! serialization time of today's link rates is a whole number. `u64` picoseconds reach 213 days. No float decides
//! an event's time.

mod parse;
mod rate;
#[cfg(feature = "spec")]
mod schema;
mod setting;
mod time;

pub use parse::{BINARY_BYTES, BYTES, RATES, SPANS, UnitError, Units, names};
pub use rate::{Bytes, Rate};
pub use setting::SettingError;
pub use time::{Span, Time};
