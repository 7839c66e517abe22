//! The heaviest matching of a demand of which a day of some length can serve a part: the Hungarian method with shortest
//! augmenting paths (Kuhn, 1955; Edmonds and Karp, 1972; Jonker and Volgenant, 1987), over the pairs with demand.
//!
//! Rows and columns have prices, none below zero, that for no pair add up to less than its weight; so no matching is
//! heavier than all prices together. A pair whose prices are its weight is tight. A matching by tight pairs that leaves
//! out only what has no price reaches the bound.
//!
//! A path ends at the nearest free column, so nothing further away is looked at. Over the pairs alone Eclipse took 20
//! to 50 ms for 256 racks where it took 0.5 s with the dense `kuhn_munkres` of `pathfinding` 4.16.

use super::circuit_time::{CircuitTime, circuits};
use crate::Matching;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(crate) const FREE: usize = usize::MAX;

/// A demand by its pairs, and what the search for a matching leaves: prices, the matching, and the tree of paths from a
/// root.
pub(crate) struct HeaviestMatching {
    /// Columns and picoseconds above zero, by row; where each row's begin, and the end of the last.
    pairs: Vec<(usize, u64)>,
    starts: Vec<usize>,
    /// The largest of each row and of each column.
    row_largest: Vec<u64>,
    column_largest: Vec<u64>,
    /// Length of the day: no pair can be served for longer.
    length: u64,
    row_price: Vec<i64>,
    column_price: Vec<i64>,
    column_of: Vec<usize>,
    row_of: Vec<usize>,
    /// By column: the sum of slacks on the path to it, unless the column is free, and the row before it.
    distance: Vec<i64>,
    parent: Vec<usize>,
    /// Matched columns that paths reach, nearest first; older distances stay in it.
    open: BinaryHeap<Reverse<(i64, usize)>>,
    reached: Vec<usize>,
}

/// The configuration of the switch for the column of each row, or [`FREE`].
pub(crate) fn matching(columns: &[usize]) -> Matching {
    circuits(columns.len(), columns.iter().copied().enumerate().filter(|(_, column)| *column != FREE))
}

/// How a path ends.
enum PathEnd {
    /// The path ends at a free column.
    Column(usize),
    /// The path ends at a row that stays idle.
    Row(usize),
}

impl HeaviestMatching {
    /// A search for matchings of this demand.
    pub fn new(time: &CircuitTime) -> Self {
        let racks = time.racks();
        let (mut pairs, mut starts) = (Vec::new(), vec![0]);
        for row in 0..racks {
            pairs.extend(time.row(row).iter().copied().enumerate().filter(|(_, ps)| *ps > 0));
            starts.push(pairs.len());
        }
        let mut heaviest = HeaviestMatching {
            pairs,
            starts,
            row_largest: vec![0; racks],
            column_largest: vec![0; racks],
            length: 0,
            row_price: vec![0; racks],
            column_price: vec![0; racks],
            column_of: vec![FREE; racks],
            row_of: vec![FREE; racks],
            distance: vec![i64::MAX; racks],
            parent: vec![FREE; racks],
            open: BinaryHeap::new(),
            reached: Vec::new(),
        };
        heaviest.measure();
        heaviest
    }

    fn racks(&self) -> usize {
        self.row_largest.len()
    }

    /// Notes the largest of each row and column.
    fn measure(&mut self) {
        self.row_largest.fill(0);
        self.column_largest.fill(0);
        for (row, bounds) in self.starts.windows(2).enumerate() {
            for &(column, ps) in &self.pairs[bounds[0]..bounds[1]] {
                self.row_largest[row] = ps.max(self.row_largest[row]);
                self.column_largest[column] = ps.max(self.column_largest[column]);
            }
        }
    }

    /// Subtracts `length` from the pair of each row with its column, down to zero at most. Returns the pairs' values
    /// from before.
    pub fn take(&mut self, columns: &[usize], length: u64) -> Vec<u64> {
        let mut taken = Vec::with_capacity(columns.len());
        let mut kept = 0;
        for (row, chosen) in columns.iter().enumerate() {
            let pairs = std::mem::replace(&mut self.starts[row], kept)..self.starts[row + 1];
            for at in pairs {
                let (column, mut ps) = self.pairs[at];
                if column == *chosen {
                    taken.push(ps);
                    ps = ps.saturating_sub(length);
                }
                if ps > 0 {
                    self.pairs[kept] = (column, ps);
                    kept += 1;
                }
            }
        }
        self.starts[columns.len()] = kept;
        self.pairs.truncate(kept);
        self.measure();
        taken
    }

    /// An upper bound of what a matching serves in a day of `length`: the sum of the largest entries of all rows, or of
    /// all columns.
    pub fn bound(&self, length: u64) -> u64 {
        let sum = |largest: &[u64]| largest.iter().map(|ps| length.min(*ps)).sum::<u64>();
        sum(&self.row_largest).min(sum(&self.column_largest))
    }

    /// How much the matching that serves most in a day of `length` serves. [`Self::columns`] are its.
    pub fn solve(&mut self, length: u64) -> u64 {
        self.start(length);
        for root in 0..self.racks() {
            if self.column_of[root] == FREE && self.row_price[root] > 0 {
                self.augment(root);
            }
        }
        self.row_price.iter().chain(&self.column_price).sum::<i64>() as u64
    }

    /// The matching found last: the column of each row, or [`FREE`].
    pub fn columns(&self) -> &[usize] {
        &self.column_of
    }

    /// Each row's price is its largest weight; rows take columns of that weight that are free.
    fn start(&mut self, length: u64) {
        self.length = length;
        self.column_price.fill(0);
        self.column_of.fill(FREE);
        self.row_of.fill(FREE);
        for row in 0..self.racks() {
            let price = length.min(self.row_largest[row]);
            self.row_price[row] = price as i64;
            let tight = |(column, ps): &&(usize, u64)| *ps >= price && self.row_of[*column] == FREE;
            if let Some(&(column, _)) = self.pairs[self.starts[row]..self.starts[row + 1]].iter().find(tight) {
                self.column_of[row] = column;
                self.row_of[column] = row;
            }
        }
    }

    /// Matches `root`, or leaves it or another row idle, whichever costs least.
    fn augment(&mut self, root: usize) {
        match self.shortest(root) {
            PathEnd::Column(column) => self.flip(column),
            PathEnd::Row(row) => {
                let column = std::mem::replace(&mut self.column_of[row], FREE);
                self.flip(column);
            }
        }
    }

    /// Where the shortest path from `root` ends; prices become such that the path there is tight.
    fn shortest(&mut self, root: usize) -> PathEnd {
        let (mut row, mut base) = (root, 0);
        let (mut idle, mut free) = ((i64::MAX, root), (i64::MAX, FREE));
        loop {
            idle = idle.min((base + self.row_price[row], row));
            free = self.relax(row, base, idle.0, free);
            let shortest = idle.0.min(free.0);
            let nearest = if base < shortest { self.nearest() } else { None };
            let Some((distance, column)) = nearest.filter(|(distance, _)| *distance < shortest) else {
                self.reprice(root, shortest);
                return if free.0 < idle.0 { PathEnd::Column(free.1) } else { PathEnd::Row(idle.1) };
            };
            (base, row) = (distance, self.row_of[column]);
        }
    }

    /// Paths by way of `row`, which is `base` away, if they are shorter than `idle` and than that to the nearest free
    /// column. Returned is what the latter is then; of equal ones the first column is the nearest.
    fn relax(&mut self, row: usize, base: i64, idle: i64, mut free: (i64, usize)) -> (i64, usize) {
        let price = base + self.row_price[row];
        for &(column, ps) in &self.pairs[self.starts[row]..self.starts[row + 1]] {
            let distance = price + self.column_price[column] - ps.min(self.length) as i64;
            if distance >= idle || distance > free.0 {
                continue;
            }
            if self.row_of[column] == FREE {
                if (distance, column) < free {
                    free = (distance, column);
                    self.parent[column] = row;
                }
            } else if distance < free.0.min(self.distance[column]) {
                if self.distance[column] == i64::MAX {
                    self.reached.push(column);
                }
                self.distance[column] = distance;
                self.parent[column] = row;
                self.open.push(Reverse((distance, column)));
            }
        }
        free
    }

    /// The nearest of the open columns, which is taken from them.
    fn nearest(&mut self) -> Option<(i64, usize)> {
        while let Some(Reverse((distance, column))) = self.open.pop() {
            if distance == self.distance[column] {
                return Some((distance, column));
            }
        }
        None
    }

    /// Shifts prices along the tree, so that a path of `length` from `root` becomes tight; then forgets the tree.
    fn reprice(&mut self, root: usize, length: i64) {
        self.row_price[root] -= length;
        for column in self.reached.drain(..) {
            let by = length - self.distance[column];
            if by > 0 {
                self.column_price[column] += by;
                self.row_price[self.row_of[column]] -= by;
            }
            self.distance[column] = i64::MAX;
        }
        self.open.clear();
    }

    /// Gives `column` to the row that reached it, this row's column to the row that reached that, and so on.
    fn flip(&mut self, mut column: usize) {
        while column != FREE {
            let row = self.parent[column];
            self.row_of[column] = row;
            column = std::mem::replace(&mut self.column_of[row], column);
        }
    }
}
