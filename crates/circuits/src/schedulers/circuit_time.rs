//! Demand as circuit time: for how long a circuit would have to be up to carry what each pair has, in picoseconds.
//!
//! No entry is more than a circuit carries in the week, so that an endless flow weighs as much as a flow that fills the
//! week. Nor is it more than 2^61 ps over the number of racks (9 minutes for 4096 racks, 10 hours for 64), so that no
//! sum over racks overflows.

use super::Frame;
use crate::{Demand, RackId};
use firstlight_units::Bytes;

/// A square matrix of circuit time: sources are rows, destinations are columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CircuitTime {
    racks: usize,
    ps: Vec<u64>,
}

impl CircuitTime {
    /// The circuit time that this demand needs in a week.
    pub fn of(demand: &Demand, frame: &Frame) -> Self {
        let racks = demand.racks();
        let most = (1 << 61) / racks as u64;
        let week = frame.circuit.bytes_in(frame.week.saturating_sub(frame.night));
        let mut time = CircuitTime { racks, ps: vec![0; racks * racks] };
        for (src, dst, bytes) in demand.pairs() {
            let bytes = bytes.min(week.get());
            if bytes > 0 {
                time.ps[src.index() * racks + dst.index()] = frame.circuit.tx_time(Bytes::new(bytes)).as_ps().min(most);
            }
        }
        time
    }

    /// How many racks there are.
    pub fn racks(&self) -> usize {
        self.racks
    }

    /// The entry of `row` for `column`.
    pub fn get(&self, row: usize, column: usize) -> u64 {
        self.ps[row * self.racks + column]
    }

    /// The entries of `row`, one for each column.
    pub fn row(&self, row: usize) -> &[u64] {
        &self.ps[row * self.racks..][..self.racks]
    }

    /// Adds `ps` picoseconds to an entry.
    pub fn add(&mut self, row: usize, column: usize, ps: u64) {
        self.ps[row * self.racks + column] += ps;
    }

    /// Subtracts `ps` from an entry, down to zero at most. Returns the amount that was subtracted.
    pub fn take(&mut self, row: usize, column: usize, ps: u64) -> u64 {
        let entry = &mut self.ps[row * self.racks + column];
        let taken = ps.min(*entry);
        *entry -= taken;
        taken
    }

    /// The sum of each row: the circuit time that each rack needs to send.
    pub fn row_sums(&self) -> Vec<u64> {
        self.ps.chunks(self.racks).map(|row| row.iter().sum()).collect()
    }

    /// The sum of each column: the circuit time that each rack needs to receive.
    pub fn column_sums(&self) -> Vec<u64> {
        let mut sums = vec![0; self.racks];
        for row in self.ps.chunks(self.racks) {
            for (sum, ps) in sums.iter_mut().zip(row) {
                *sum += ps;
            }
        }
        sums
    }

    /// The largest entry.
    pub fn largest(&self) -> u64 {
        self.ps.iter().copied().max().unwrap_or(0)
    }

    /// The entries above zero, by row and then column.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        self.ps.iter().enumerate().filter(|(_, ps)| **ps > 0).map(|(at, ps)| (at / self.racks, at % self.racks, *ps))
    }
}

/// The matching of these rows and columns. A rack for itself is an idle rack.
pub(crate) fn circuits(racks: usize, pairs: impl Iterator<Item = (usize, usize)>) -> crate::Matching {
    let pairs: Vec<_> = pairs.filter(|(a, b)| a != b).map(|(a, b)| (RackId(a as u16), RackId(b as u16))).collect();
    crate::Matching::new(racks, &pairs).expect("no row and no column comes twice")
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_units::{Rate, Span};

    #[test]
    fn a_pair_asks_for_no_more_than_the_week() {
        let frame = Frame {
            week: Span::from_us(100),
            night: Span::from_us(20),
            least_day: Span::from_us(1),
            circuit: Rate::from_gbps(80),
            packet: Rate::from_gbps(10),
        };
        let mut demand = Demand::zero(3);
        demand.add(RackId(0), RackId(1), 10_000);
        demand.add(RackId(0), RackId(2), u64::MAX);
        let time = CircuitTime::of(&demand, &frame);
        assert_eq!(time.row(0), [0, 1_000_000, 80_000_000]);
        let dark = Frame { circuit: Rate::from_bps(0), ..frame };
        assert_eq!(CircuitTime::of(&demand, &dark).largest(), 0);
        let year = Frame { week: Span::MAX, ..frame };
        assert_eq!(CircuitTime::of(&demand, &year).get(0, 2), (1 << 61) / 3);
    }
}
