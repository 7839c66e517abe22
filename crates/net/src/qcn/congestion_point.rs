//! QCN's congestion point: samples one queue and computes the feedback for a sampled packet's sender.
//!
//! IEEE 802.1Qau-2010, 30.2.1; Allerton 2008, section III-A. At each sample
//!
//! ```text
//! F_b = -((q - Q_eq) + w (q - q_old))
//! ```
//!
//! with q the queue now and q_old that at the last sample. A negative F_b is congestion: its amount is cut off at Q_eq
//! (2 w + 1) and quantized to six bits, rounded down. The next sample comes after `sample` bytes if feedback is below
//! 8, half of them if it is below 16, a third below 24, and so on to an eighth (the standard's table says the same, to
//! 0.5 KB); each interval is 15 % longer or shorter by chance. A public queue discipline for Linux with QCN (a
//! `sch_fifo.c` of Linux 2.6 with Ethernet type 0xA9A9) has that table: 150, 75, 50, 37.5, 30, 25, 21.5 and 18.5 KiB
//! for feedback from 0, 8, 16, and so on.
//!
//! Choices: q counts all bytes not yet sent, the sampled packet's included. Packets that are dropped are not counted.
//! Feedback that is quantized to zero says nothing and is not sent.

use super::{MOST_FEEDBACK, QcnConfig, jittered};
use firstlight_units::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// Counters of a congestion point since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CongestionCounts {
    /// Times that the queue was sampled.
    pub samples: u64,
    /// Times that feedback was sent.
    pub notifications: u64,
    /// The sum of that feedback, each 1 to 63.
    pub feedback: u64,
}

/// The congestion point of one queue.
#[derive(Clone, Debug)]
pub struct CongestionPoint {
    set_point: f64,
    weight: f64,
    sample: u64,
    /// The queue at the last sample (q_old of the standard).
    old: f64,
    /// Bytes until the next sample.
    left: u64,
    random: Xoshiro256PlusPlus,
    counts: CongestionCounts,
}

impl CongestionPoint {
    /// The congestion point of an empty queue; `seed` seeds the intervals' jitter.
    pub fn new(config: &QcnConfig, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let sample = config.sample.get();
        CongestionPoint {
            set_point: config.set_point.get() as f64,
            weight: config.weight,
            sample,
            old: 0.0,
            left: jittered(sample, &mut random),
            random,
            counts: CongestionCounts::default(),
        }
    }

    /// A packet of `size` bytes has been queued, with which the queue holds `queue`. Returns the feedback, 1 to 63,
    /// that its sender is to get.
    #[inline]
    pub fn on_queued(&mut self, size: u16, queue: Bytes) -> Option<u8> {
        if let Some(left @ 1..) = self.left.checked_sub(u64::from(size)) {
            self.left = left;
            return None;
        }
        self.sample(queue)
    }

    fn sample(&mut self, queue: Bytes) -> Option<u8> {
        let queue = queue.get() as f64;
        let feedback = self.quantized(queue);
        self.old = queue;
        self.left = jittered(self.sample / (1 + u64::from(feedback) / 8), &mut self.random);
        self.counts.samples += 1;
        self.counts.notifications += u64::from(feedback > 0);
        self.counts.feedback += u64::from(feedback);
        (feedback > 0).then_some(feedback)
    }

    /// -F_b in 63 steps; 0 without congestion.
    fn quantized(&self, queue: f64) -> u8 {
        let excess = (queue - self.set_point) + self.weight * (queue - self.old);
        let most = self.set_point * (2.0 * self.weight + 1.0);
        (excess.clamp(0.0, most) * f64::from(MOST_FEEDBACK) / most) as u8
    }

    /// The counters so far.
    pub fn counts(&self) -> CongestionCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn point() -> CongestionPoint {
        CongestionPoint::new(&QcnConfig::default(), 1)
    }

    /// Q_eq = 20 KB and w = 2: feedback is 63 at 100 KB of excess, a step is 1,587.3 bytes.
    #[test]
    fn feedback_by_hand() {
        let mut point = point();
        let mut sample = |queue| point.sample(Bytes::new(queue)).unwrap_or(0);
        // (10 - 20) + 2 * 10 = 10 KB: 6.3 steps.
        assert_eq!(sample(10_000), 6);
        // (20 - 20) + 2 * 10 = 20 KB: 12.6 steps.
        assert_eq!(sample(20_000), 12);
        // Just the set point, and standing still.
        assert_eq!(sample(20_000), 0);
        // (30 - 20) + 2 * 10 = 30 KB: 18.9 steps; then it shrinks: (22 - 20) - 16.
        assert_eq!((sample(30_000), sample(22_000)), (18, 0));
        // (30 - 20) + 2 * 8 = 26 KB: 16.38 steps; then 1,500 bytes of excess are less than a step, 1,600 are more.
        assert_eq!((sample(30_000), sample(22_000), sample(20_500), sample(21_166)), (16, 0, 0, 1));
        // Beyond any measure.
        assert_eq!(sample(10_000_000), 63);
        let counts = CongestionCounts { samples: 10, notifications: 6, feedback: 6 + 12 + 18 + 16 + 1 + 63 };
        assert_eq!(point.counts(), counts);
    }

    /// Exactly Q_eq (2 w + 1) is the largest feedback, a byte less is not.
    #[test]
    fn feedback_is_cut_off_where_the_standard_says() {
        let at = |queue| CongestionPoint { old: 80_000.0, ..point() }.sample(Bytes::new(queue));
        // (q - 20,000) + 2 (q - 80,000) = 100,000 at 93,333.3 bytes.
        assert_eq!((at(93_333), at(93_334)), (Some(62), Some(63)));
    }

    /// Bytes between samples at a constant queue, which w = 0 makes constant feedback.
    fn intervals(queue: u64) -> Vec<u64> {
        let mut point = CongestionPoint::new(&QcnConfig { weight: 0.0, ..QcnConfig::default() }, 7);
        let (mut intervals, mut bytes, mut samples) = (vec![], 0, 0);
        while intervals.len() < 2000 {
            bytes += 10;
            point.on_queued(10, Bytes::new(queue));
            if point.counts().samples > samples {
                samples = point.counts().samples;
                intervals.push(std::mem::take(&mut bytes));
            }
        }
        intervals.split_off(1)
    }

    #[test]
    fn intervals_shrink_with_feedback_and_are_jittered() {
        // Without congestion; 8, 16 and 63 steps of 20,000 / 63 bytes above the set point.
        for (queue, mean) in [(1000, 150_000), (22_540, 75_000), (25_080, 50_000), (99_000, 18_750)] {
            let intervals = intervals(queue);
            let (least, most) = (intervals.iter().min().unwrap(), intervals.iter().max().unwrap());
            let sum: u64 = intervals.iter().sum();
            let found = sum / intervals.len() as u64;
            // The mean of 2,000 uniform numbers is off by 0.2 % of it in one standard deviation.
            assert!(found.abs_diff(mean) <= mean / 100, "{found} bytes in the mean at {queue}, not {mean}");
            assert!(*least >= mean * 85 / 100 && *least <= mean * 86 / 100, "{least} of {mean}");
            assert!(*most <= mean * 115 / 100 + 10 && *most >= mean * 114 / 100, "{most} of {mean}");
        }
    }

    proptest! {
        #[test]
        fn feedback_grows_with_the_queue_and_only_congestion_has_any(
            old in 0u64..200_000, queue in 0u64..200_000, more in 0u64..10_000, weight in 0.0..10.0f64,
        ) {
            let config = QcnConfig { weight, ..QcnConfig::default() };
            let point = CongestionPoint { old: old as f64, ..CongestionPoint::new(&config, 1) };
            let (one, other) = (point.quantized(queue as f64), point.quantized((queue + more) as f64));
            prop_assert!(one <= other && other <= MOST_FEEDBACK);
            if queue <= 20_000 && queue <= old {
                prop_assert_eq!(one, 0);
            }
        }
    }
}
