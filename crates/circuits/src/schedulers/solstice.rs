//! Solstice (Liu et al., "Scheduling techniques for hybrid circuit/packet networks", CoNEXT'15, section 4): QuickStuff,
//! then BigSlice, until the packet network can serve what is left.
//!
//! As Etalon has it (NSDI'20, section 4.2), the schedule serves as much as it can within a week and not all of it in
//! unbounded time: it ends with the week at the latest. When it ends before, the days share the rest. A slice that
//! would serve nothing but stuffing gets no day, and one below the least day is prolonged to it.

use super::Frame;
use super::circuit_time::CircuitTime;
use super::days::Days;
use super::slices::Slices;
use super::stuffing::stuff;
use crate::{Demand, Week};

/// The week of long slices.
pub(crate) fn schedule(demand: &Demand, frame: &Frame) -> Week {
    let mut left = CircuitTime::of(demand, frame);
    let mut days = Days::new(demand.racks(), frame);
    for slice in Slices::long_first(stuff(&left)) {
        let Some((least, longest)) = days.room() else { break };
        let length = slice.length.clamp(least, longest);
        let served = slice.pairs().fold(0, |served, (row, column)| served + left.take(row, column, length));
        if served > 0 {
            days.push(length, slice.matching());
            if packets_suffice(&left, frame, days.filled()) {
                break;
            }
        }
    }
    days.finish()
}

/// Whether the packet network can carry all of it in that time, in picoseconds: no rack sends or receives more than its
/// link does.
fn packets_suffice(left: &CircuitTime, frame: &Frame, time: u64) -> bool {
    let carried = u128::from(frame.packet.as_bps()) * u128::from(time);
    let fits = |sum: &u64| u128::from(*sum) * u128::from(frame.circuit.as_bps()) <= carried;
    left.row_sums().iter().all(fits) && left.column_sums().iter().all(fits)
}
