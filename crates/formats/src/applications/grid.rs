//! Ranks on a torus, the last coordinate the fastest.

use super::schedule::RankMessage;
use super::{RequestPart, WrongRequest};

/// A torus of ranks.
pub struct Grid {
    /// Length of the torus in each dimension, in ranks.
    pub sides: Vec<u32>,
}

impl Grid {
    /// How many ranks the torus has.
    pub fn ranks(&self) -> u32 {
        self.sides.iter().product()
    }

    /// The coordinates of a rank.
    pub fn place(&self, mut rank: u32) -> Vec<u32> {
        let mut place: Vec<u32> = self
            .sides
            .iter()
            .rev()
            .map(|side| {
                let at = rank % side;
                rank /= side;
                at
            })
            .collect();
        place.reverse();
        place
    }

    /// The rank `step` further along an axis, around the edge.
    pub fn neighbour(&self, rank: u32, axis: usize, step: i32) -> u32 {
        let mut place = self.place(rank);
        place[axis] = (place[axis] as i32 + step).rem_euclid(self.sides[axis] as i32) as u32;
        self.sides.iter().zip(place).fold(0, |rank, (side, at)| rank * side + at)
    }

    /// Every rank's message to its neighbour.
    pub fn shifts(&self, axis: usize, step: i32, bytes: u64) -> impl Iterator<Item = RankMessage> {
        (0..self.ranks()).map(move |rank| (rank, self.neighbour(rank, axis, step), bytes))
    }
}

/// Sides of a grid of `ranks` ranks, as equal as they can be, the longest first.
pub fn sides_of(ranks: u32, dimensions: usize) -> Vec<u32> {
    let mut sides = vec![1; dimensions];
    let mut factors = vec![];
    let (mut factor, mut left) = (2, ranks);
    while left > 1 {
        while left % factor > 0 {
            factor += 1;
        }
        factors.push(factor);
        left /= factor;
    }
    for factor in factors.into_iter().rev() {
        *sides.iter_mut().min().expect("a grid has a dimension") *= factor;
    }
    sides.sort_unstable_by(|a, b| b.cmp(a));
    sides
}

/// An error unless `ranks` is a power of two, from 2 on, as the application `name` needs.
pub fn power_of_two(name: &str, ranks: u32) -> Result<(), WrongRequest> {
    if ranks > 1 && ranks.is_power_of_two() {
        return Ok(());
    }
    let problem = format!("{name} runs on a power of two ranks, not on {ranks}: write 2, 4, 8 or so");
    Err(WrongRequest::new(RequestPart::Ranks, problem))
}

/// The side of a square of `ranks` ranks; an error where there is none.
pub fn side_of(name: &str, ranks: u32) -> Result<u32, WrongRequest> {
    let side = ranks.isqrt();
    if side > 1 && side * side == ranks {
        return Ok(side);
    }
    let problem = format!("{name} runs on a square of ranks, not on {ranks}: write 4, 9, 16 or so");
    Err(WrongRequest::new(RequestPart::Ranks, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_as_equal_as_they_can_be() {
        assert_eq!(sides_of(16, 2), [4, 4]);
        assert_eq!(sides_of(16, 3), [4, 2, 2]);
        assert_eq!(sides_of(12, 2), [4, 3]);
        assert_eq!(sides_of(1, 2), [1, 1]);
    }

    #[test]
    fn neighbours_are_around_the_edge() {
        let grid = Grid { sides: vec![2, 3] };
        assert_eq!(grid.place(5), [1, 2]);
        assert_eq!(grid.neighbour(5, 1, 1), 3);
        assert_eq!(grid.neighbour(0, 0, -1), 3);
    }
}
