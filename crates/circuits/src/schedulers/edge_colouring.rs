//! Edge colouring: the pairs with demand are split into matchings, as few as the largest number of partners that a rack
//! has (Koenig, 1916).
//!
//! Pairs are coloured by falling demand with the first colour that both racks have left, so that large ones are
//! together; where they have none in common, two colours change places along a path. The source is the theorem's usual
//! proof. Days are then as long as their largest pair needs. When that is more than the week, what a day has above the
//! least one is cut in proportion, and so many of the matchings with most demand get a day as together serve most: each
//! costs a night.

use super::Frame;
use super::circuit_time::{CircuitTime, circuits};
use super::days::Days;
use crate::{Demand, Week};
use std::cmp::Reverse;

const NONE: usize = usize::MAX;

/// The week of the colours.
pub(crate) fn schedule(demand: &Demand, frame: &Frame) -> Week {
    let racks = demand.racks();
    let time = CircuitTime::of(demand, frame);
    let colours = by_demand(&time, colours(&time));
    let mut days = Days::new(racks, frame);
    let chosen = (1..=colours.len()).map_while(|count| lengths(&time, &colours[..count], frame));
    let best = chosen.enumerate().max_by_key(|(count, lengths)| (served(&time, &colours, lengths), Reverse(*count)));
    for (pairs, length) in colours.iter().zip(best.map(|(_, lengths)| lengths).unwrap_or_default()) {
        days.push(length, circuits(racks, pairs.iter().copied()));
    }
    days.finish()
}

/// Rows and columns of a matching.
pub(super) type Pairs = Vec<(usize, usize)>;

/// Which column each row has in each colour, and the reverse.
struct Colouring {
    colours: usize,
    column_of: Vec<usize>,
    row_of: Vec<usize>,
}

impl Colouring {
    /// The first colour that a rack has left; `of` is one of the tables.
    fn first_left(&self, of: &[usize], rack: usize) -> usize {
        let left = of[rack * self.colours..][..self.colours].iter().position(|partner| *partner == NONE);
        left.expect("a rack has no more partners than there are colours")
    }

    /// The first colour that both racks have left.
    fn first_common(&self, row: usize, column: usize) -> Option<usize> {
        let left = |colour: &usize| {
            self.column_of[row * self.colours + colour] == NONE && self.row_of[column * self.colours + colour] == NONE
        };
        (0..self.colours).find(left)
    }

    fn set(&mut self, row: usize, column: usize, colour: usize) {
        self.column_of[row * self.colours + colour] = column;
        self.row_of[column * self.colours + colour] = row;
    }

    /// Colours a pair.
    fn colour(&mut self, row: usize, column: usize) {
        let colour = self.first_common(row, column).unwrap_or_else(|| {
            let (of_row, of_column) = (self.first_left(&self.column_of, row), self.first_left(&self.row_of, column));
            self.exchange(column, of_row, of_column);
            of_row
        });
        self.set(row, column, colour);
    }

    /// Exchanges two colours along the path that leaves `column` by the first of them, which it then has left. The path
    /// does not come to a row that lacks the first one: it comes to rows by it.
    fn exchange(&mut self, column: usize, first: usize, second: usize) {
        let mut path = Vec::new();
        let (mut column, mut row) = (column, self.row_of[column * self.colours + first]);
        while row != NONE {
            path.push((row, column, second));
            column = self.column_of[row * self.colours + second];
            if column == NONE {
                break;
            }
            path.push((row, column, first));
            row = self.row_of[column * self.colours + first];
        }
        for &(row, column, _) in &path {
            for colour in [first, second] {
                self.column_of[row * self.colours + colour] = NONE;
                self.row_of[column * self.colours + colour] = NONE;
            }
        }
        for (row, column, colour) in path {
            self.set(row, column, colour);
        }
    }
}

/// The pairs with demand, by colour.
pub(super) fn colours(time: &CircuitTime) -> Vec<Pairs> {
    let racks = time.racks();
    let (mut rows, mut columns) = (vec![0; racks], vec![0; racks]);
    let mut entries: Vec<_> = time.entries().collect();
    for &(row, column, _) in &entries {
        rows[row] += 1;
        columns[column] += 1;
    }
    let colours = rows.into_iter().chain(columns).max().unwrap_or(0);
    let none = vec![NONE; racks * colours];
    let mut colouring = Colouring { colours, column_of: none.clone(), row_of: none };
    entries.sort_by_key(|(_, _, ps)| Reverse(*ps));
    for (row, column, _) in entries {
        colouring.colour(row, column);
    }
    let column = |row: usize, colour: usize| Some(colouring.column_of[row * colours + colour]).filter(|c| *c != NONE);
    let pairs = |colour| (0..racks).filter_map(|row| column(row, colour).map(|column| (row, column))).collect();
    (0..colours).map(pairs).collect()
}

/// The colours in order of the demand that they serve, the highest first.
fn by_demand(time: &CircuitTime, mut colours: Vec<Pairs>) -> Vec<Pairs> {
    let demand = |pairs: &Pairs| pairs.iter().map(|(row, column)| time.get(*row, *column)).sum::<u64>();
    colours.sort_by_key(|pairs| Reverse(demand(pairs)));
    colours
}

/// How long each of these days is, if all of them fit.
fn lengths(time: &CircuitTime, colours: &[Pairs], frame: &Frame) -> Option<Vec<u64>> {
    let least = frame.least_day.as_ps().max(1);
    let each = u128::from(frame.night.as_ps()) + u128::from(least);
    let room = u128::from(frame.week.as_ps()).checked_sub(each * colours.len() as u128)?;
    let largest = |pairs: &Pairs| pairs.iter().map(|(row, column)| time.get(*row, *column)).max().unwrap_or(0);
    let above: Vec<u128> = colours.iter().map(|pairs| u128::from(largest(pairs).saturating_sub(least))).collect();
    let wanted = above.iter().sum::<u128>().max(1);
    Some(above.into_iter().map(|above| least + (above * room.min(wanted) / wanted) as u64).collect())
}

/// The circuit time that days of these lengths serve; each pair has one colour.
fn served(time: &CircuitTime, colours: &[Pairs], lengths: &[u64]) -> u64 {
    let day = |(pairs, length): (&Pairs, &u64)| {
        pairs.iter().map(|(row, column)| time.get(*row, *column).min(*length)).sum::<u64>()
    };
    colours.iter().zip(lengths).map(day).sum()
}
