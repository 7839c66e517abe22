//! Round robin over the candidates that have something to send and may send it.

/// A set of candidates and the one that was served last.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    words: Box<[u64]>,
    ready: u32,
    last: u32,
}

impl RoundRobin {
    /// `n` candidates, none ready.
    pub fn new(n: usize) -> Self {
        RoundRobin { words: vec![0; n.div_ceil(64).max(1)].into(), ready: 0, last: n.saturating_sub(1) as u32 }
    }

    /// Says whether candidate `i` is ready.
    #[inline]
    pub fn set(&mut self, i: usize, ready: bool) {
        let (word, bit) = (&mut self.words[i / 64], i % 64);
        let was = *word >> bit & 1;
        *word = *word & !(1 << bit) | u64::from(ready) << bit;
        self.ready = self.ready + u32::from(ready) - was as u32;
    }

    /// True when no candidate is ready.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.ready == 0
    }

    /// The next ready candidate after the one served last; it counts as served.
    #[inline]
    pub fn take_turn(&mut self) -> Option<usize> {
        let next = self.next()?;
        self.last = next as u32;
        Some(next)
    }

    /// The one whose turn is next, without serving it.
    #[inline]
    pub fn next(&self) -> Option<usize> {
        if self.ready == 0 {
            return None;
        }
        let start = self.last as usize + 1;
        self.first_from(start).or_else(|| self.first_from(0))
    }

    #[inline]
    fn first_from(&self, start: usize) -> Option<usize> {
        let mut mask = u64::MAX << (start % 64);
        for (i, word) in self.words.iter().enumerate().skip(start / 64) {
            let left = word & mask;
            if left != 0 {
                return Some(i * 64 + left.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn serves_the_next_ready_one(
            n in 1usize..200, steps in prop::collection::vec((any::<u16>(), any::<bool>()), 1..100),
        ) {
            let mut turns = RoundRobin::new(n);
            let mut ready = vec![false; n];
            let mut last = n - 1;
            for (i, on) in steps {
                let i = i as usize % n;
                turns.set(i, on);
                ready[i] = on;
                let peeked = turns.next();
                let expected = (1..=n).map(|k| (last + k) % n).find(|k| ready[*k]);
                prop_assert_eq!(turns.is_empty(), expected.is_none());
                prop_assert_eq!((peeked, turns.take_turn()), (expected, expected));
                last = expected.unwrap_or(last);
            }
        }
    }
}
