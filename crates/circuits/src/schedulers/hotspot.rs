//! Hotspot: the heaviest matching of the demand is up for the whole week, as in c-Through (Wang et al., SIGCOMM'10,
//! section 3.2) and Helios (Farrington et al., SIGCOMM'10, section 4.3), which keep a configuration until they know the
//! next demand.
//!
//! One day, since that is what both systems do: whoever wants several takes Eclipse, which weighs each against its night.
//! A pair counts with what a circuit carries of it in the week and not with all that it has.

use super::Frame;
use super::circuit_time::{CircuitTime, circuits};
use super::days::Days;
use super::heaviest_matching::{FREE, HeaviestMatching};
use crate::{Demand, Week};

/// The week of one day.
pub(crate) fn schedule(demand: &Demand, frame: &Frame) -> Week {
    let racks = demand.racks();
    let time = CircuitTime::of(demand, frame);
    let mut days = Days::new(racks, frame);
    let columns = HeaviestMatching::new(&time).solve(u64::MAX);
    let pairs: Vec<_> = columns.into_iter().enumerate().filter(|(_, column)| *column != FREE).collect();
    if !pairs.is_empty() {
        days.push(u64::MAX, circuits(racks, pairs.into_iter()));
    }
    days.finish()
}
