//! Stuffing: a demand enlarged until all racks send and receive the same, so that it splits into perfect matchings
//! (Birkhoff, 1946).
//!
//! QuickStuff of Solstice (Liu et al., CoNEXT'15, section 4.1): entries above zero grow first, which keeps the number
//! of entries, and so of matchings, low; then those that are zero. Of these the diagonal comes first, since a rack that
//! is its own partner is an idle one; the paper leaves the order open.

use super::circuit_time::CircuitTime;

/// The smallest sums that all rows and columns can have, given to all of them; no entry shrinks.
pub(crate) fn stuff(time: &CircuitTime) -> CircuitTime {
    let racks = time.racks();
    let mut stuffed = time.clone();
    let (mut rows, mut columns) = (time.row_sums(), time.column_sums());
    let most = rows.iter().chain(&columns).copied().max().unwrap_or(0);
    let mut grow = |row: usize, column: usize| {
        let by = most - rows[row].max(columns[column]);
        stuffed.add(row, column, by);
        rows[row] += by;
        columns[column] += by;
    };
    time.entries().for_each(|(row, column, _)| grow(row, column));
    (0..racks).for_each(|rack| grow(rack, rack));
    for row in 0..racks {
        (0..racks).for_each(|column| grow(row, column));
    }
    stuffed
}
