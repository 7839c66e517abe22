//! Which traffic class a port serves next, as a policy of the port.
//!
//! - [`StrictPriority`]: the highest class that may send.
//! - [`Weighted`]: classes share the link by their weights, with start-time fair queueing (Goyal, Vin and Cheng,
//!   SIGCOMM'96, section 2). A class has a start tag. The class with the least tag is served, the higher class where
//!   tags are equal; its tag then grows by the packet's size over the class's weight. The virtual time is the tag of
//!   the class served last. A class that had nothing to send, or was paused, continues at the virtual time: it
//!   accumulates no credit. Switches use deficit round robin (DWRR), which has the same shares and serves more packets
//!   of a class in a row.

use super::CLASSES;
use std::fmt;

/// The order in which classes are served.
pub trait ClassOrder: Clone + fmt::Debug {
    /// An order of classes with these weights, class 0's first; none for strict priorities.
    fn new(weights: &[u32]) -> Self;

    /// The class that is served next, of those that may send, a bit each.
    fn next(&self, ready: u8) -> Option<usize>;

    /// The port begins a packet of this class and size.
    #[inline]
    fn begin(&mut self, _class: usize, _size: u16) {}
}

/// The highest class that may send is served first.
#[derive(Clone, Copy, Debug, Default)]
pub struct StrictPriority;

impl ClassOrder for StrictPriority {
    fn new(_weights: &[u32]) -> Self {
        StrictPriority
    }

    #[inline]
    fn next(&self, ready: u8) -> Option<usize> {
        ready.checked_ilog2().map(|class| class as usize)
    }
}

/// The classes share the link by their weights.
#[derive(Clone, Debug)]
pub struct Weighted {
    weights: [u64; CLASSES],
    /// Start tags, in 2^-20 bytes per weight.
    tags: [u64; CLASSES],
    /// The virtual time.
    now: u64,
}

impl ClassOrder for Weighted {
    fn new(weights: &[u32]) -> Self {
        let mut all = [1; CLASSES];
        all.iter_mut().zip(weights).for_each(|(own, weight)| *own = u64::from(*weight));
        Weighted { weights: all, tags: [0; CLASSES], now: 0 }
    }

    #[inline]
    fn next(&self, ready: u8) -> Option<usize> {
        let classes = (0..CLASSES).rev().filter(|class| ready & (1 << class) != 0);
        classes.min_by_key(|class| self.tags[*class].max(self.now))
    }

    #[inline]
    fn begin(&mut self, class: usize, size: u16) {
        self.now = self.tags[class].max(self.now);
        self.tags[class] = self.now + (u64::from(size) << 20) / self.weights[class];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_idle_class_saves_up_nothing() {
        let mut order = Weighted::new(&[1, 1]);
        (0..100).for_each(|_| order.begin(0, 1500));
        // Class 1 comes after 100 packets of class 0, and gets about every other packet, not the next 100.
        let served: Vec<_> = (0..6)
            .map(|_| {
                let class = order.next(0b11).unwrap();
                order.begin(class, 1500);
                class
            })
            .collect();
        assert_eq!(served, [1, 1, 0, 1, 0, 1]);
    }

    proptest! {
        /// Over any time in which all have packets, bytes over weights differ by a packet each at most (theorem 1).
        #[test]
        fn backlogged_classes_share_by_weight(
            weights in prop::collection::vec(1u32..100, 2..=CLASSES), sizes in prop::collection::vec(40u16..9000, 200),
        ) {
            let mut order = Weighted::new(&weights);
            let mut sent = vec![0.0; weights.len()];
            let ready = ((1u32 << weights.len()) - 1) as u8;
            for size in sizes {
                let class = order.next(ready).unwrap();
                order.begin(class, size);
                sent[class] += f64::from(size) / f64::from(weights[class]);
                for (a, of_a) in sent.iter().zip(&weights) {
                    for (b, of_b) in sent.iter().zip(&weights) {
                        let most = 9000.0 / f64::from(*of_a) + 9000.0 / f64::from(*of_b);
                        prop_assert!((a - b).abs() <= most + 0.01, "{sent:?} of {weights:?}");
                    }
                }
            }
        }
    }
}
