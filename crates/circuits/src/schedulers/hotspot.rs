//! Hotspot: the heaviest matching of the demand is up for the whole week, as in c-Through (Wang et al., SIGCOMM'10,
//! section 3.2) and Helios (Farrington et al., SIGCOMM'10, section 4.3), which keep a configuration until they know the
//! next demand.
//!
//! The week has one day, as in both systems; for several days use Eclipse, which weighs each day against its night. A
//! pair counts with the demand that a circuit can carry in the week and not with its whole demand.

use super::Frame;
use super::circuit_time::CircuitTime;
use super::days::Days;
use super::heaviest_matching::{HeaviestMatching, matching};
use crate::{Demand, Week};

/// The week of one day.
pub(crate) fn schedule(demand: &Demand, frame: &Frame) -> Week {
    let time = CircuitTime::of(demand, frame);
    let mut days = Days::new(demand.racks(), frame);
    let mut heaviest = HeaviestMatching::new(&time);
    if heaviest.solve(u64::MAX) > 0 {
        days.push(u64::MAX, matching(heaviest.columns()));
    }
    days.finish()
}
