//! Eclipse (Venkatakrishnan et al., "Costly circuits, submodular schedules and approximate Caratheodory theorems",
//! SIGMETRICS'16, section 4): the day that serves most for each unit of its time, night included, then the one that
//! serves most of what is left, until the week is full.
//!
//! What a set of days serves is submodular, hence the guarantee: no schedule of the week serves more than 1 / (1 - 1/e^(1-x))
//! times as much, where x is the part of the week that one night and the largest entry take: nothing is promised for
//! entries as long as the week. On 3,000 demands of three and four racks with such entries 78 % of the best was the least.
//!
//! A day is worth looking at only if it ends when some pair is done. Among these lengths the paper bisects, as if what is
//! served for the time had a single peak; it may have several. What is served never falls as days get longer, and never
//! rises more than in proportion. That bounds what is between two lengths, and a part of the range is left out when its
//! bound is at most 1/16 better than the best day found.

use super::Frame;
use super::circuit_time::{CircuitTime, circuits};
use super::days::Days;
use super::heaviest_matching::{FREE, HeaviestMatching};
use crate::{Demand, Week};

/// The week of the days that serve most for their time.
pub(crate) fn schedule(demand: &Demand, frame: &Frame) -> Week {
    let racks = demand.racks();
    let mut left = CircuitTime::of(demand, frame);
    let mut days = Days::new(racks, frame);
    while let Some((least, longest)) = days.room() {
        let heaviest = HeaviestMatching::new(&left);
        let search = Search { left: &left, night: frame.night.as_ps(), heaviest, best: None };
        let Some(Best { length, pairs, .. }) = search.among(&lengths(&left, least, longest)) else { break };
        for &(row, column) in &pairs {
            left.take(row, column, length);
        }
        days.push(length, circuits(racks, pairs.into_iter()));
    }
    days.finish()
}

/// When some pair is done, in increasing order; the shortest and the longest day stand for what is beyond them.
fn lengths(left: &CircuitTime, least: u64, longest: u64) -> Vec<u64> {
    let mut lengths: Vec<u64> = left.entries().map(|(_, _, ps)| ps.clamp(least, longest)).collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// The best day so far; times in picoseconds.
struct Best {
    served: u64,
    /// Of day and night.
    cost: u64,
    length: u64,
    pairs: Vec<(usize, usize)>,
}

/// The search for the best length of one day.
struct Search<'a> {
    left: &'a CircuitTime,
    night: u64,
    heaviest: HeaviestMatching,
    best: Option<Best>,
}

impl Search<'_> {
    /// The best day of one of these lengths. A range is known by its ends and by what days of these serve at most.
    fn among(mut self, lengths: &[u64]) -> Option<Best> {
        let last = lengths.len().checked_sub(1)?;
        let mut ranges = vec![((0, self.most(lengths[0])), (last, self.most(lengths[last])))];
        while let Some((low, high)) = ranges.pop() {
            if high.0 - low.0 < 2 || !self.may_hold_better(lengths, low, high) {
                continue;
            }
            let middle = low.0.midpoint(high.0);
            let middle = (middle, self.most(lengths[middle]));
            ranges.push((middle, high));
            ranges.push((low, middle));
        }
        self.best
    }

    /// Whether a length between these two may beat the best. None serves more than the longer one, nor more than the
    /// shorter one in proportion; most for its time would be one where these two meet.
    fn may_hold_better(&self, lengths: &[u64], low: (usize, u64), high: (usize, u64)) -> bool {
        let (shortest, longest) = (lengths[low.0 + 1].into(), lengths[high.0 - 1].into());
        let meet = u128::from(high.1) * u128::from(lengths[low.0]) / u128::from(low.1);
        self.may_beat_best(high.1, meet.clamp(shortest, longest) as u64 + self.night)
    }

    /// Whether a day that serves so much for its cost would be better than the best by more than 1/16.
    fn may_beat_best(&self, served: u64, cost: u64) -> bool {
        let clearly = |best: &Best| is_more(served - served / 16, cost, best.served, best.cost);
        self.best.as_ref().is_none_or(clearly)
    }

    /// What a day of this length serves at most. It is found exactly, and the day kept, where it may be the best.
    fn most(&mut self, length: u64) -> u64 {
        let cost = length + self.night;
        let bound = self.heaviest.bound(length);
        if !self.may_beat_best(bound, cost) {
            return bound;
        }
        let columns = self.heaviest.solve(length);
        let pairs: Vec<_> = columns.into_iter().enumerate().filter(|(_, column)| *column != FREE).collect();
        let served = pairs.iter().map(|(row, column)| self.left.get(*row, *column).min(length)).sum();
        if self.best.as_ref().is_none_or(|best| is_more(served, cost, best.served, best.cost)) {
            self.best = Some(Best { served, cost, length, pairs });
        }
        served
    }
}

/// Whether the first two numbers have a larger ratio than the others.
fn is_more(served: u64, cost: u64, than: u64, its_cost: u64) -> bool {
    u128::from(served) * u128::from(its_cost) > u128::from(than) * u128::from(cost)
}

#[cfg(test)]
mod tests {
    use super::super::suite::{demands, permutations, time};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_other_day_serves_clearly_more_for_its_time(
            demand in demands(4), night in 0u64..50_000_000, least in 1u64..50_000_000
        ) {
            let left = time(&demand);
            let lengths = lengths(&left, least, 4_000_000_000);
            let heaviest = HeaviestMatching::new(&left);
            let Some(best) = (Search { left: &left, night, heaviest, best: None }).among(&lengths) else {
                prop_assert_eq!(left.largest(), 0);
                return Ok(());
            };
            let served = |order: &[usize], length: u64| -> u64 {
                order.iter().enumerate().map(|(row, column)| left.get(row, *column).min(length)).sum()
            };
            prop_assert_eq!(best.cost, best.length + night);
            prop_assert_eq!(best.served, best.pairs.iter().map(|(r, c)| left.get(*r, *c).min(best.length)).sum::<u64>());
            let orders = permutations(left.racks());
            for length in lengths {
                let most = orders.iter().map(|order| served(order, length)).max().unwrap();
                prop_assert!(
                    !is_more(most - most / 16, length + night, best.served, best.cost),
                    "{most} in {length} where {} in {} was chosen", best.served, best.length
                );
            }
        }
    }
}
