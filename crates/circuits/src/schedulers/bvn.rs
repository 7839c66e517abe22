//! Birkhoff-von Neumann: the demand is stuffed to equal sums and split into perfect matchings; the longest of them
//! that fit make the week (Birkhoff, 1946; for switches Chang, Chen and Huang, INFOCOM 2000).
//!
//! The split does not look for long matchings and knows nothing of nights. It is what better schedulers are measured
//! against.

use super::Frame;
use super::circuit_time::CircuitTime;
use super::days::Days;
use super::slices::{Slice, Slices};
use super::stuffing::stuff;
use crate::{Demand, Week};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The week of the longest matchings.
pub(crate) fn schedule(demand: &Demand, frame: &Frame) -> Week {
    let mut days = Days::new(demand.racks(), frame);
    for slice in longest(Slices::any(stuff(&CircuitTime::of(demand, frame))), frame) {
        if days.room().is_none() {
            break;
        }
        days.push(slice.length, slice.matching());
    }
    days.finish()
}

/// The slices that can have a place in the week, longest first, those of equal length in the order found. No others are
/// kept: there may be as many as the square of the racks.
pub(super) fn longest(slices: Slices, frame: &Frame) -> impl Iterator<Item = Slice> {
    let cost = |length: u64| u128::from(frame.night.as_ps()) + u128::from(length.max(frame.least_day.as_ps()));
    let mut kept = BTreeMap::new();
    let mut total = 0;
    for (order, slice) in slices.enumerate() {
        total += cost(slice.length);
        kept.insert((Reverse(slice.length), order), slice);
        while let Some(last) = kept.last_entry() {
            let without = total - cost(last.get().length);
            if without < u128::from(frame.week.as_ps()) {
                break;
            }
            last.remove();
            total = without;
        }
    }
    kept.into_values()
}
