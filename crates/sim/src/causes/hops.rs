//! Hops, kept so that those over one place can be read in order without sorting them.
//!
//! A place takes blocks of numbers, one after the other, and gives them to its hops in the order of time.

use super::{Hop, PlaceKind, RecordId};
use firstlight_units::Time;

/// Hops in a block: a port that passes one packet wastes 1 kB at most.
const BLOCK: usize = 64;

/// Hops in what a processor reads from memory at once.
const HOPS_PER_CACHE_LINE: usize = 64 / size_of::<Hop>();

/// Hops of all places.
#[derive(Clone, Debug, Default)]
pub struct HopLog {
    hops: Vec<Hop>,
    blocks: Vec<Block>,
    /// Hops of each place, by the place's kind and number.
    places: [Vec<PlaceHops>; PlaceKind::COUNT],
}

/// A block of hops over one place.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// The place: [`super::Place::code`].
    place: u32,
    /// The block's number among those of the place.
    order: u32,
}

/// Hops over one place.
#[derive(Clone, Debug, Default)]
struct PlaceHops {
    /// The number of the next hop; a multiple of [`BLOCK`] if that needs another block.
    next: usize,
    /// Numbers of its blocks, in the order of time.
    blocks: Vec<u32>,
}

impl PlaceHops {
    /// How many hops it has.
    fn count(&self) -> usize {
        let in_last = self.next % BLOCK;
        self.blocks.len() * BLOCK - if in_last == 0 { 0 } else { BLOCK - in_last }
    }
}

impl HopLog {
    /// No hops, whose memory is to be this.
    pub(super) fn new(hops: Vec<Hop>) -> Self {
        HopLog { hops, ..HopLog::default() }
    }

    /// The memory of the hops.
    pub(super) fn into_memory(self) -> Vec<Hop> {
        self.hops
    }

    /// Adds a hop over a place, later than all others there. Returns its number.
    #[inline]
    pub(super) fn push(&mut self, kind: PlaceKind, index: usize, hop: Hop) -> usize {
        let places = &mut self.places[kind as usize];
        let number = match places.get(index) {
            Some(place) if place.next % BLOCK != 0 => place.next,
            _ => self.block(kind, index),
        };
        self.hops[number] = hop;
        self.places[kind as usize][index].next = number + 1;
        number
    }

    /// Gives a place another block. Returns the number of its first hop.
    #[cold]
    fn block(&mut self, kind: PlaceKind, index: usize) -> usize {
        let first = self.hops.len();
        self.hops.resize(first + BLOCK, Hop { at: Time::ZERO, before: RecordId::NONE, departure: 0 });
        let places = &mut self.places[kind as usize];
        if places.len() <= index {
            places.resize_with(index + 1, PlaceHops::default);
        }
        let blocks = &mut places[index].blocks;
        self.blocks.push(Block { place: kind.code(index), order: blocks.len() as u32 });
        blocks.push((first / BLOCK) as u32);
        first
    }

    /// The hop of a number.
    #[inline]
    pub fn get(&self, number: usize) -> &Hop {
        &self.hops[number]
    }

    /// Reads the hops between two moments in the order in which they lie in memory, which brings them into the
    /// processor's cache.
    pub fn read_through(&self, from: Time, until: Time) {
        // Of each place a block may have begun before.
        let open: usize = self.places.iter().map(Vec::len).sum();
        let began = |moment: Time| {
            let mut numbers = (0, self.blocks.len());
            while numbers.0 < numbers.1 {
                let middle = usize::midpoint(numbers.0, numbers.1);
                if self.hops[middle * BLOCK].at < moment { numbers.0 = middle + 1 } else { numbers.1 = middle }
            }
            numbers.0.saturating_sub(open)
        };
        let hops = &self.hops[began(from) * BLOCK..began(until) * BLOCK];
        std::hint::black_box(hops.iter().step_by(HOPS_PER_CACHE_LINE).map(|hop| hop.at.as_ps()).sum::<u64>());
    }

    /// The place of a hop: [`super::Place::code`].
    #[inline]
    pub fn place(&self, number: usize) -> u32 {
        self.blocks[number / BLOCK].place
    }

    /// The hops over a place after a moment, in the order of time.
    pub fn after(&self, place: u32, moment: Time) -> impl Iterator<Item = usize> + '_ {
        let hops = self.over(place);
        let blocks = hops.map_or(&[][..], |hops| &hops.blocks);
        let is_later = move |number: usize| self.hops[number].at > moment;
        // The block that may have the last hop up to the moment.
        let block = blocks.partition_point(|block| !is_later(*block as usize * BLOCK)).saturating_sub(1);
        let all = block * BLOCK..hops.map_or(0, PlaceHops::count);
        all.map(|order| numbered(blocks, order)).skip_while(move |number| !is_later(*number))
    }

    /// The hops over the place of a hop that were before it, the latest first.
    pub fn before(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        let blocks = self.over(self.place(number)).map_or(&[][..], |hops| &hops.blocks);
        (0..self.order(number)).rev().map(|order| numbered(blocks, order))
    }

    /// The hops over a place, in the order of time.
    pub fn all(&self, place: u32) -> impl ExactSizeIterator<Item = usize> + '_ {
        let hops = self.over(place);
        let blocks = hops.map_or(&[][..], |hops| &hops.blocks);
        (0..hops.map_or(0, PlaceHops::count)).map(|order| numbered(blocks, order))
    }

    /// How many hops over the place of a hop were before it.
    #[inline]
    pub fn order(&self, number: usize) -> usize {
        self.blocks[number / BLOCK].order as usize * BLOCK + number % BLOCK
    }

    fn over(&self, place: u32) -> Option<&PlaceHops> {
        let (kind, index) = PlaceKind::of_code(place);
        self.places[kind].get(index)
    }
}

/// The number of a hop by its order among those of a place with these blocks.
fn numbered(blocks: &[u32], order: usize) -> usize {
    blocks[order / BLOCK] as usize * BLOCK + order % BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hops over three places, the second of which has one in five; two at a time happen at one moment.
    #[test]
    fn hops_over_a_place_are_found_in_their_order() {
        let (mut log, mut naive) = (HopLog::default(), [vec![], vec![], vec![]]);
        for number in 0..10 * BLOCK {
            let index = if number % 5 == 0 { 1 } else { 2 * (number % 2) };
            let at = Time::from_ps(number as u64 / 2);
            let hop = log.push(PlaceKind::Port, index, Hop { at, before: RecordId::NONE, departure: number as u32 });
            naive[index].push((at, hop));
        }
        for (index, hops) in naive.iter().enumerate() {
            let place = PlaceKind::Port.code(index);
            assert!(hops.iter().all(|(at, hop)| log.place(*hop) == place && log.get(*hop).at == *at));
            let all: Vec<usize> = hops.iter().map(|(_, hop)| *hop).collect();
            assert_eq!(log.all(place).collect::<Vec<_>>(), all);
            for moment in (0..6 * BLOCK as u64).map(Time::from_ps) {
                let later: Vec<usize> = hops.iter().filter(|(at, _)| *at > moment).map(|(_, hop)| *hop).collect();
                assert_eq!(log.after(place, moment).collect::<Vec<_>>(), later, "{index} {moment:?}");
            }
            for (order, (_, hop)) in hops.iter().enumerate() {
                let earlier: Vec<usize> = hops[..order].iter().rev().map(|(_, hop)| *hop).collect();
                assert_eq!(log.before(*hop).collect::<Vec<_>>(), earlier);
                assert_eq!(log.order(*hop), order);
            }
        }
        assert_eq!(log.after(PlaceKind::Nic.code(0), Time::ZERO).count(), 0, "a place without hops");
    }
}
