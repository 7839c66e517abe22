//! The heaviest matching of a demand of which a day of some length can serve a part: the Hungarian method with shortest
//! augmenting paths (Kuhn, 1955; Edmonds and Karp, 1972; Jonker and Volgenant, 1987).
//!
//! Prices of rows and columns that nowhere add up to less than the pair's weight bound every matching from above. A pair
//! whose prices are its weight is tight; a matching of all rows by tight pairs reaches the bound. Prices and the pairs
//! that stay tight serve as the start for the next length or demand.

use super::circuit_time::CircuitTime;

const FREE: usize = usize::MAX;

/// Prices in picoseconds and the matching, of a demand for a length of day.
pub(crate) struct HeaviestMatching {
    row_price: Vec<i64>,
    column_price: Vec<i64>,
    column_of: Vec<usize>,
    row_of: Vec<usize>,
    distance: Vec<i64>,
    parent: Vec<usize>,
    open: Vec<usize>,
    closed: Vec<usize>,
}

/// What a pair can be served of in a day of `length`, and what its prices are above that.
fn slack(time: &CircuitTime, length: u64, row: usize, column: usize, prices: i64) -> i64 {
    prices - time.get(row, column).min(length) as i64
}

impl HeaviestMatching {
    /// Nothing known yet of as many rows as columns.
    pub fn new(size: usize) -> Self {
        HeaviestMatching {
            row_price: vec![0; size],
            column_price: vec![0; size],
            column_of: vec![FREE; size],
            row_of: vec![FREE; size],
            distance: vec![0; size],
            parent: vec![FREE; size],
            open: Vec::with_capacity(size),
            closed: Vec::with_capacity(size),
        }
    }

    /// Sets each row's price to the least that the columns' allow; says what no matching of `time`, of each pair `length`
    /// at most, is above.
    pub fn bound(&mut self, time: &CircuitTime, length: u64) -> u64 {
        for (row, price) in self.row_price.iter_mut().enumerate() {
            let weights = time.row(row).iter().map(|ps| (*ps).min(length) as i64);
            let least = weights.zip(&self.column_price).map(|(weight, column)| weight - column).max();
            *price = least.expect("two racks or more");
        }
        let sum: i64 = self.row_price.iter().chain(&self.column_price).sum();
        sum as u64
    }

    /// Finds the heaviest matching, to be called after [`Self::bound`] with the same arguments; says what it weighs.
    pub fn solve(&mut self, time: &CircuitTime, length: u64) -> u64 {
        self.keep_tight(time, length);
        for root in 0..self.column_of.len() {
            if self.column_of[root] == FREE {
                let column = self.search(time, length, root);
                self.flip(column);
            }
        }
        self.pairs().map(|(row, column)| time.get(row, column).min(length)).sum()
    }

    /// The pairs of the matching: all rows with all columns, some of them with nothing to serve.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.column_of.iter().copied().enumerate()
    }

    /// Frees what is no longer tight, and matches free rows with free columns where the pair is.
    fn keep_tight(&mut self, time: &CircuitTime, length: u64) {
        let size = self.column_of.len();
        let tight = |row: usize, column: usize, prices: i64| slack(time, length, row, column, prices) == 0;
        for row in 0..size {
            let column = self.column_of[row];
            if column != FREE && !tight(row, column, self.row_price[row] + self.column_price[column]) {
                self.column_of[row] = FREE;
                self.row_of[column] = FREE;
            }
        }
        for row in (0..size).filter(|row| self.column_of[*row] == FREE).collect::<Vec<_>>() {
            let price = self.row_price[row];
            let free = |column: &usize| self.row_of[*column] == FREE;
            let found = (0..size).filter(free).find(|column| tight(row, *column, price + self.column_price[*column]));
            if let Some(column) = found {
                self.column_of[row] = column;
                self.row_of[column] = row;
            }
        }
    }

    /// The free column nearest to `root`, over paths whose length is the sum of slacks; prices become such that the path
    /// there is tight.
    fn search(&mut self, time: &CircuitTime, length: u64, root: usize) -> usize {
        self.distance.fill(i64::MAX);
        self.open.clear();
        self.open.extend(0..self.row_of.len());
        self.closed.clear();
        let (mut row, mut base) = (root, 0);
        loop {
            let at = self.relax(time, length, row, base);
            let column = self.open.swap_remove(at);
            base = self.distance[column];
            if self.row_of[column] == FREE {
                self.reprice(root, base);
                return column;
            }
            self.closed.push(column);
            row = self.row_of[column];
        }
    }

    /// Paths by way of `row`, which is `base` away; says where the nearest open column stands, a free one if it can be.
    fn relax(&mut self, time: &CircuitTime, length: u64, row: usize, base: i64) -> usize {
        let weights = time.row(row);
        let price = base + self.row_price[row];
        let mut nearest = (i64::MAX, true, 0);
        for (at, &column) in self.open.iter().enumerate() {
            let distance = price + self.column_price[column] - weights[column].min(length) as i64;
            if distance < self.distance[column] {
                self.distance[column] = distance;
                self.parent[column] = row;
            }
            let distance = self.distance[column];
            if distance <= nearest.0 {
                nearest = nearest.min((distance, self.row_of[column] != FREE, at));
            }
        }
        nearest.2
    }

    /// Shifts prices along the tree of closed columns, so that a path of length `most` from `root` becomes tight.
    fn reprice(&mut self, root: usize, most: i64) {
        self.row_price[root] -= most;
        for &column in &self.closed {
            let by = most - self.distance[column];
            self.column_price[column] += by;
            self.row_price[self.row_of[column]] -= by;
        }
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
