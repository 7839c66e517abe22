//! Eclipse (Venkatakrishnan et al., "Costly circuits, submodular schedules and approximate Caratheodory theorems",
//! SIGMETRICS'16, section 4): the day that serves most for each unit of its time, night included, then the one that
//! serves most of what is left, until the week is full.
//!
//! The demand that a set of days serves is a submodular function, hence the guarantee: no schedule of the week serves
//! more than 1 / (1 - 1/e^(1-x)) times as much, where x is the part of the week that one night and the largest entry
//! take: nothing is promised for entries as long as the week. On 3,000 demands of three and four racks with such
//! entries 78 % of the best was the least.
//!
//! A day is worth looking at only if it ends when some pair is done. Among these lengths the paper bisects, as if what
//! is served for the time had a single peak; it may have several. What is served never falls as days get longer, and
//! never rises more than in proportion. That bounds what is between two lengths, and a part of the range is left out
//! when its bound is at most 1/16 better than the best day found. Mostly the first day between the ends is so much
//! better than all bounds that the ends, of which the longest day is the dearest to find, need not be found at all.

use super::Frame;
use super::circuit_time::CircuitTime;
use super::days::Days;
use super::heaviest_matching::{HeaviestMatching, matching};
use crate::{Demand, Week};

/// The week of the days that serve most for their time.
pub(crate) fn schedule(demand: &Demand, frame: &Frame) -> Week {
    let left = CircuitTime::of(demand, frame);
    let mut days = Days::new(demand.racks(), frame);
    let mut entries = entries(&left);
    let mut heaviest = HeaviestMatching::new(&left);
    while let Some((least, longest)) = days.room() {
        let lengths = lengths(&entries, least, longest);
        let search = Search::new(&lengths, frame.night.as_ps(), &mut heaviest);
        let Some(Best { length, columns, .. }) = search.run() else { break };
        shorten(&mut entries, heaviest.take(&columns, length), length);
        days.push(length, matching(&columns));
    }
    days.finish()
}

/// The entries above zero in increasing order.
fn entries(left: &CircuitTime) -> Vec<u64> {
    let mut entries: Vec<u64> = left.entries().map(|(_, _, ps)| ps).collect();
    entries.sort_unstable();
    entries
}

/// When some pair is done, in increasing order; the shortest and the longest day stand for what is beyond them.
fn lengths(entries: &[u64], least: u64, longest: u64) -> Vec<u64> {
    let mut lengths: Vec<u64> = entries.iter().map(|ps| (*ps).clamp(least, longest)).collect();
    lengths.dedup();
    lengths
}

/// Takes `length` from some of the entries, which stay in increasing order.
fn shorten(entries: &mut Vec<u64>, mut some: Vec<u64>, length: u64) {
    some.sort_unstable();
    let mut taken = some.iter().copied().peekable();
    entries.retain(|ps| taken.next_if_eq(ps).is_none());
    entries.extend(some.iter().map(|ps| ps.saturating_sub(length)).filter(|ps| *ps > 0));
    entries.sort();
}

/// A day and the circuit time that it serves, in picoseconds.
struct Best {
    served: u64,
    /// Length of day and night.
    cost: u64,
    length: u64,
    columns: Vec<usize>,
}

/// The place of a length among the others, and what days of it serve at most.
type ServedDays = (usize, u64);

/// The search for the best length of one day.
struct Search<'a> {
    lengths: &'a [u64],
    night: u64,
    heaviest: &'a mut HeaviestMatching,
    best: Option<Best>,
    /// The day of middle length, which is found once.
    middle: Option<Best>,
}

impl<'a> Search<'a> {
    fn new(lengths: &'a [u64], night: u64, heaviest: &'a mut HeaviestMatching) -> Self {
        Search { lengths, night, heaviest, best: None, middle: None }
    }

    /// The best day of one of the lengths. Mostly it is that of middle length, and bounds alone show that the search
    /// from both ends would find no other.
    fn run(mut self) -> Option<Best> {
        if self.lengths.len() > 2 && self.middle_is_best() {
            return self.best;
        }
        self.middle = self.best.take();
        self.bisect()
    }

    /// The best day, by bisection.
    fn bisect(mut self) -> Option<Best> {
        let last = self.lengths.len().checked_sub(1)?;
        let (low, high) = (self.most(0, true)?, self.most(last, true)?);
        self.explore(low, high, true)?;
        self.best
    }

    /// Whether bounds show that the search from both ends would choose the day of middle length, which becomes the
    /// best. That search looks at it first between the ends, and takes it if it is clearly better than these.
    fn middle_is_best(&mut self) -> bool {
        let last = self.lengths.len() - 1;
        let middle = self.solve(last / 2);
        let found = (last / 2, middle.served);
        let ends = [0, last].map(|at| (at, self.heaviest.bound(self.lengths[at])));
        let far = |&(at, bound): &ServedDays| is_clearly_more(middle.served, middle.cost, bound, self.cost(at));
        let far = ends.iter().all(far);
        self.best = Some(middle);
        far && self.explore(ends[0], found, false).is_some() && self.explore(found, ends[1], false).is_some()
    }

    /// Looks for better days between two lengths. Nothing when one would have to be found that may not be `solved`.
    fn explore(&mut self, low: ServedDays, high: ServedDays, solved: bool) -> Option<()> {
        let mut ranges = vec![(low, high)];
        while let Some((low, high)) = ranges.pop() {
            if high.0 - low.0 >= 2 && self.may_hold_better(low, high) {
                let middle = self.most(low.0.midpoint(high.0), solved)?;
                ranges.push((middle, high));
                ranges.push((low, middle));
            }
        }
        Some(())
    }

    /// Whether a length between these two may beat the best. None serves more than the longer one, nor more than the
    /// shorter one in proportion; most for its time would be one where these two meet.
    fn may_hold_better(&self, low: ServedDays, high: ServedDays) -> bool {
        let (shortest, longest) = (self.lengths[low.0 + 1].into(), self.lengths[high.0 - 1].into());
        let meet = u128::from(high.1) * u128::from(self.lengths[low.0]) / u128::from(low.1);
        self.may_beat_best(high.1, meet.clamp(shortest, longest) as u64 + self.night)
    }

    /// Whether a day that serves `served` at this `cost` would be better than the best by more than 1/16.
    fn may_beat_best(&self, served: u64, cost: u64) -> bool {
        self.best.as_ref().is_none_or(|best| is_clearly_more(served, cost, best.served, best.cost))
    }

    /// The most that a day of this length serves. Where this day may be the best, its value is computed exactly and the
    /// day is kept.
    fn most(&mut self, at: usize, solved: bool) -> Option<ServedDays> {
        let bound = self.heaviest.bound(self.lengths[at]);
        if !self.may_beat_best(bound, self.cost(at)) {
            return Some((at, bound));
        }
        if !solved {
            return None;
        }
        let day = self.middle.take_if(|middle| middle.length == self.lengths[at]).unwrap_or_else(|| self.solve(at));
        let served = day.served;
        if self.best.as_ref().is_none_or(|best| is_more(served, day.cost, best.served, best.cost)) {
            self.best = Some(day);
        }
        Some((at, served))
    }

    /// The day of this length that serves most.
    fn solve(&mut self, at: usize) -> Best {
        let length = self.lengths[at];
        let served = self.heaviest.solve(length);
        Best { served, cost: self.cost(at), length, columns: self.heaviest.columns().to_vec() }
    }

    fn cost(&self, at: usize) -> u64 {
        self.lengths[at] + self.night
    }
}

/// Whether the first two numbers have a ratio larger than the others by more than 1/16.
fn is_clearly_more(served: u64, cost: u64, than: u64, its_cost: u64) -> bool {
    is_more(served - served / 16, cost, than, its_cost)
}

/// Whether the first two numbers have a larger ratio than the others.
fn is_more(served: u64, cost: u64, than: u64, its_cost: u64) -> bool {
    u128::from(served) * u128::from(its_cost) > u128::from(than) * u128::from(cost)
}

#[cfg(test)]
mod tests {
    use super::super::heaviest_matching::FREE;
    use super::super::suite::{demands, permutations, time};
    use super::*;
    use proptest::prelude::*;

    /// When pairs are done in days of some length up to 4 ms.
    fn lengths_of(left: &CircuitTime, least: u64) -> Vec<u64> {
        lengths(&entries(left), least, 4_000_000_000)
    }

    proptest! {
        #[test]
        fn no_other_day_serves_clearly_more_for_its_time(
            demand in demands(4), night in 0u64..50_000_000, least in 1u64..50_000_000
        ) {
            let left = time(&demand);
            let lengths = lengths_of(&left, least);
            let Some(best) = Search::new(&lengths, night, &mut HeaviestMatching::new(&left)).run() else {
                prop_assert_eq!(left.largest(), 0);
                return Ok(());
            };
            let served = |order: &[usize], length: u64| -> u64 {
                let pairs = order.iter().enumerate().filter(|(_, column)| **column != FREE);
                pairs.map(|(row, column)| left.get(row, *column).min(length)).sum()
            };
            prop_assert_eq!(best.cost, best.length + night);
            prop_assert_eq!(best.served, served(&best.columns, best.length));
            let orders = permutations(left.racks());
            for length in lengths {
                let most = orders.iter().map(|order| served(order, length)).max().unwrap();
                prop_assert!(
                    !is_clearly_more(most, length + night, best.served, best.cost),
                    "{most} in {length} where {} in {} was chosen", best.served, best.length
                );
            }
        }

        #[test]
        fn the_middle_first_finds_what_both_ends_find(
            demand in demands(8), night in 0u64..50_000_000, least in 1u64..50_000_000
        ) {
            let left = time(&demand);
            let lengths = lengths_of(&left, least);
            let mut heaviest = HeaviestMatching::new(&left);
            let day = |best: Best| (best.length, best.columns);
            let both = Search::new(&lengths, night, &mut heaviest).bisect().map(day);
            prop_assert_eq!(Search::new(&lengths, night, &mut heaviest).run().map(day), both);
        }

        #[test]
        fn shortened_entries_stay_in_order(
            all in prop::collection::vec((1u64..9, any::<bool>()), 0..40), length in 1u64..9,
        ) {
            let of = |chosen: bool| all.iter().filter(move |(_, some)| *some == chosen).map(|(ps, _)| *ps);
            let mut entries: Vec<u64> = all.iter().map(|(ps, _)| *ps).collect();
            entries.sort_unstable();
            shorten(&mut entries, of(true).collect(), length);
            let left = of(true).map(|ps| ps.saturating_sub(length)).filter(|ps| *ps > 0);
            let mut expected: Vec<u64> = of(false).chain(left).collect();
            expected.sort_unstable();
            prop_assert_eq!(entries, expected);
        }
    }
}
