//! A stuffed demand in slices: perfect matchings with the time for which each is up, which sum to the demand.
//!
//! By Birkhoff's theorem a matrix of equal sums has a perfect matching among its entries above zero; take its smallest
//! entry from all of them, and the sums are equal again. BigSlice of Solstice (Liu et al., CoNEXT'15, section 4.2)
//! looks among the entries of at least a threshold, a power of two that is halved when there is no such matching, so
//! that long slices come first.

use super::circuit_time::{CircuitTime, circuits};
use super::perfect_matching::PerfectMatching;
use crate::Matching;

/// A perfect matching, a rack's own column for an idle one, and its time in picoseconds.
pub(crate) struct Slice {
    /// How long the matching is up.
    pub length: u64,
    /// The column of each row.
    pub columns: Vec<usize>,
}

impl Slice {
    /// The matrix' rows and columns.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.columns.iter().copied().enumerate()
    }

    /// The configuration of the switch.
    pub fn matching(&self) -> Matching {
        circuits(self.columns.len(), self.pairs())
    }
}

/// The slices, in the order in which they are found.
pub(crate) struct Slices {
    left: CircuitTime,
    threshold: u64,
    large: PerfectMatching,
}

impl Slices {
    /// Any perfect matchings (Birkhoff and von Neumann).
    pub fn any(stuffed: CircuitTime) -> Self {
        Self::new(stuffed, 1)
    }

    /// Long slices first (BigSlice).
    pub fn long_first(stuffed: CircuitTime) -> Self {
        let threshold = stuffed.largest().checked_ilog2().map_or(1, |log| 1 << log);
        Self::new(stuffed, threshold)
    }

    fn new(stuffed: CircuitTime, threshold: u64) -> Self {
        let large = PerfectMatching::new(stuffed.racks());
        let mut slices = Slices { left: stuffed, threshold, large };
        slices.admit();
        slices
    }

    /// Makes edges of all entries that reach the threshold.
    fn admit(&mut self) {
        for (row, column, ps) in self.left.entries() {
            if ps >= self.threshold {
                self.large.insert(row, column);
            }
        }
    }

    /// Takes from each pair the smallest entry of all.
    fn take(&mut self, columns: Vec<usize>) -> Slice {
        let length = columns.iter().enumerate().map(|(row, column)| self.left.get(row, *column)).min();
        let slice = Slice { length: length.expect("two racks or more"), columns };
        for (row, column) in slice.pairs() {
            self.left.take(row, column, slice.length);
            if self.left.get(row, column) < self.threshold {
                self.large.remove(row, column);
            }
        }
        slice
    }
}

impl Iterator for Slices {
    type Item = Slice;

    fn next(&mut self) -> Option<Slice> {
        while self.threshold > 0 {
            if let Some(columns) = self.large.complete().map(<[usize]>::to_vec) {
                return Some(self.take(columns));
            }
            self.threshold /= 2;
            if self.threshold > 0 {
                self.admit();
            }
        }
        None
    }
}
