//! Calibration of timestamps: two consecutive timestamps are at least a transmission delay apart.
//!
//! Source: DX, section 2, "Error calibration" and Fig. 4. Where the stamps of two packets are closer than the link's
//! capacity allows, the later stamp is moved to one transmission delay after the former. The former may itself have
//! been moved. So the packets of a batch, which share one stamp, are evenly spaced afterwards.
//!
//! The paper describes this for packets in one batch. Here it applies to each packet and the one before it, in one
//! batch or not, because the paper's Fig. 7 has no sample below the transmission delay.
//!
//! A sender stamps *first* bits: two of them are apart by the former packet's transmission delay. A receiver stamps
//! *last* bits: two of them are apart by the later packet's. With packets of one size, as in the paper's measurements,
//! both are the same.
//!
//! Calibration reads the host's clock and takes the link's rate as exact. Suppose that the line is never idle and the
//! clock is slow by 40 ns per ms: then the gaps between its readings are too small by as much. Calibrated stamps run
//! ahead of the clock until the first gap on the line, by no more than the drift. A stamp that is late by an outlier
//! delays the stamps after it until gaps have made up for it.

use firstlight_units::Span;

/// The last stamp of one direction and the least distance of the next one, in picoseconds of the host's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spacing {
    last: Option<i128>,
    sent: Span,
}

impl Spacing {
    /// Corrects the stamp of the first bit of a packet that the link carries for `lasts`.
    #[inline]
    pub(super) fn sending(&mut self, stamp: i128, lasts: Span) -> i128 {
        let gap = std::mem::replace(&mut self.sent, lasts);
        self.after(stamp, gap)
    }

    /// Corrects the stamp of the last bit of such a packet.
    #[inline]
    pub(super) fn receiving(&mut self, stamp: i128, lasts: Span) -> i128 {
        self.after(stamp, lasts)
    }

    fn after(&mut self, stamp: i128, gap: Span) -> i128 {
        let least = self.last.map_or(stamp, |last| last + i128::from(gap.as_ps()));
        let stamp = stamp.max(least);
        self.last = Some(stamp);
        stamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_batch_under_one_stamp_is_spaced_by_its_packets() {
        let sizes = [1_200, 1_200, 42, 1_200].map(Span::from_ns);
        let mut line = Spacing::default();
        assert_eq!(sizes.map(|lasts| line.sending(5_000_000, lasts)), [5_000_000, 6_200_000, 7_400_000, 7_442_000]);
        let mut line = Spacing::default();
        assert_eq!(sizes.map(|lasts| line.receiving(5_000_000, lasts)), [5_000_000, 6_200_000, 6_242_000, 7_442_000]);
    }

    proptest! {
        /// Good spacing is left alone, compressed spacing becomes exact, and nothing is ever nearer than the link
        /// allows.
        #[test]
        fn only_gaps_that_cannot_be_are_corrected(
            packets in prop::collection::vec((0u64..3_000, 40u64..1_300), 1..60),
        ) {
            let (mut out, mut into) = (Spacing::default(), Spacing::default());
            let (mut busy, mut early) = (0i128, 0i128);
            for (idle, lasts) in packets {
                let (lasts, idle) = (Span::from_ps(lasts), i128::from(idle));
                // On a true line, and once more with stamps that are too near by the line's own gaps.
                let starts = busy + idle;
                prop_assert_eq!(out.sending(starts, lasts), starts);
                busy = starts + i128::from(lasts.as_ps());
                let due = early + i128::from(lasts.as_ps());
                let corrected = into.receiving(due - idle, lasts);
                prop_assert!(corrected >= due - idle);
                prop_assert!(early == 0 || corrected == due, "{corrected} where the line allows {due}");
                early = corrected;
            }
        }
    }
}
