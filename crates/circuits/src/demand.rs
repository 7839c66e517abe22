//! Demand: how many bytes each rack has to send to each other rack. Estimators produce it and schedulers use it.

use crate::RackId;

/// Why rows of numbers are not a demand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DemandError {
    /// Too few racks, or more than a [`RackId`] can number.
    #[error("a demand is of 2 to 4096 racks, not of {found}")]
    Racks {
        /// How many rows there are.
        found: usize,
    },
    /// A row with too many or too few columns.
    #[error("row {row} has {found} columns where {expected} are needed: one for each row")]
    NotSquare {
        /// The row, counted from 0.
        row: usize,
        /// How many columns the row has.
        found: usize,
        /// The number of rows.
        expected: usize,
    },
    /// A rack has demand for itself.
    #[error("rack {rack} has {bytes} bytes for itself: what stays in a rack needs no circuit, write 0")]
    Itself {
        /// The rack that would send to itself.
        rack: RackId,
        /// How many bytes the rack would send to itself.
        bytes: u64,
    },
}

/// Bytes from each rack (row) to each rack (column); none from a rack to itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Demand {
    racks: usize,
    bytes: Vec<u64>,
}

impl Demand {
    /// A demand of nothing between `racks` racks.
    pub fn zero(racks: usize) -> Self {
        Demand { racks, bytes: vec![0; racks * racks] }
    }

    /// The demand of these rows: `rows[source][destination]` in bytes.
    ///
    /// # Errors
    /// When the rows are not square, too few or too many, or their diagonal is not zero.
    pub fn from_rows(rows: &[Vec<u64>]) -> Result<Self, DemandError> {
        let racks = rows.len();
        if !(2..=4096).contains(&racks) {
            return Err(DemandError::Racks { found: racks });
        }
        let mut demand = Demand::zero(racks);
        for (row, columns) in rows.iter().enumerate() {
            if columns.len() != racks {
                return Err(DemandError::NotSquare { row, found: columns.len(), expected: racks });
            }
            if columns[row] > 0 {
                return Err(DemandError::Itself { rack: RackId(row as u16), bytes: columns[row] });
            }
            demand.bytes[row * racks..][..racks].copy_from_slice(columns);
        }
        Ok(demand)
    }

    /// How many racks there are.
    pub const fn racks(&self) -> usize {
        self.racks
    }

    /// The demand from `src` to `dst`, in bytes.
    pub fn get(&self, src: RackId, dst: RackId) -> u64 {
        self.bytes[src.index() * self.racks + dst.index()]
    }

    /// Adds to the demand of `src` for `dst`. Bytes within one rack do not count. The sum saturates at the largest
    /// number.
    pub fn add(&mut self, src: RackId, dst: RackId, bytes: u64) {
        if src != dst {
            let entry = &mut self.bytes[src.index() * self.racks + dst.index()];
            *entry = entry.saturating_add(bytes);
        }
    }

    /// The pairs with demand, and how much, by source and then destination.
    pub fn pairs(&self) -> impl Iterator<Item = (RackId, RackId, u64)> + '_ {
        let rack = |index: usize| RackId(index as u16);
        self.bytes
            .iter()
            .enumerate()
            .filter(|(_, bytes)| **bytes > 0)
            .map(move |(at, bytes)| (rack(at / self.racks), rack(at % self.racks), *bytes))
    }

    /// Bytes of all pairs.
    pub fn total(&self) -> u128 {
        self.bytes.iter().map(|bytes| u128::from(*bytes)).sum()
    }

    /// The rows: `[source][destination]`.
    pub fn rows(&self) -> impl Iterator<Item = &[u64]> {
        self.bytes.chunks(self.racks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_a_demand_or_are_refused_by_place() {
        let demand = Demand::from_rows(&[vec![0, 5], vec![7, 0]]).unwrap();
        assert_eq!(demand.get(RackId(1), RackId(0)), 7);
        assert_eq!(demand.pairs().collect::<Vec<_>>(), [(RackId(0), RackId(1), 5), (RackId(1), RackId(0), 7)]);
        let text = |rows: &[Vec<u64>]| Demand::from_rows(rows).unwrap_err().to_string();
        assert_eq!(text(&[vec![0, 1], vec![1]]), "row 1 has 1 columns where 2 are needed: one for each row");
        assert_eq!(
            text(&[vec![0, 1], vec![1, 2]]),
            "rack 1 has 2 bytes for itself: what stays in a rack needs no circuit, write 0"
        );
        assert_eq!(text(&[vec![0]]), "a demand is of 2 to 4096 racks, not of 1");
    }

    #[test]
    fn what_stays_in_a_rack_does_not_count() {
        let mut demand = Demand::zero(3);
        demand.add(RackId(1), RackId(1), 9);
        demand.add(RackId(1), RackId(2), u64::MAX);
        demand.add(RackId(1), RackId(2), 1);
        assert_eq!(demand.total(), u128::from(u64::MAX));
    }
}
