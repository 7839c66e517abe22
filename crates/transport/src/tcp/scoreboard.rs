//! The segments in flight and what is known of each (RFC 6675's scoreboard, one record per segment).

use crate::config::Memory;
use firstlight_units::Time;
use std::collections::VecDeque;

/// What is known of a segment in flight. A segment can be lost and retransmitted at once: then a copy is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mark(u8);

impl Mark {
    pub(crate) const SACKED: Mark = Mark(1);
    pub(crate) const LOST: Mark = Mark(2);
    /// A retransmission is under way.
    pub(crate) const RETRANSMITTED: Mark = Mark(4);
    /// The segment was retransmitted at some time.
    pub(crate) const EVER_RETRANSMITTED: Mark = Mark(8);
    /// The segment's last unit is the FIN.
    pub(crate) const FIN: Mark = Mark(16);
    /// The segment's packet has PSH.
    pub(crate) const PUSH: Mark = Mark(32);
    /// The segment was the last of a burst.
    pub(crate) const BURST_END: Mark = Mark(64);
    /// Marks that a segment keeps when it is SACKed, lost or retransmitted.
    const LASTING: u8 = Self::EVER_RETRANSMITTED.0 | Self::FIN.0 | Self::PUSH.0 | Self::BURST_END.0;

    pub(crate) const fn and(self, mark: Mark) -> Mark {
        Mark(self.0 | mark.0)
    }

    pub(crate) const fn has(self, mark: Mark) -> bool {
        self.0 & mark.0 != 0
    }
}

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// The segment's first stream offset.
    pub(crate) start: u64,
    /// When the segment was last sent.
    pub(crate) sent: Time,
    /// Units of the stream: payload bytes, and the FIN.
    pub(crate) len: u32,
    pub(crate) marks: Mark,
}

impl Segment {
    pub(crate) const fn end(&self) -> u64 {
        self.start + self.len as u64
    }

    /// Whether the segment is neither SACKed, nor lost without a copy under way.
    pub(crate) const fn is_under_way(&self) -> bool {
        !self.marks.has(Mark::SACKED) && (!self.marks.has(Mark::LOST) || self.marks.has(Mark::RETRANSMITTED))
    }
}

/// The segments in flight, in stream order without gaps, with counts by mark.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    segments: VecDeque<Segment>,
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    /// Segments under way, and copies: neither reported, nor lost without a copy.
    under_way: u32,
    /// No segment before this index is lost and not retransmitted.
    first_lost: usize,
    /// Without SACK: how many segments have arrived beyond the first missing one, by duplicate acknowledgements.
    pub(crate) duplicates: u32,
}

impl Scoreboard {
    pub(crate) fn len(&self) -> u32 {
        self.segments.len() as u32
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(crate) const fn sacked(&self) -> u32 {
        self.sacked
    }

    pub(crate) const fn lost(&self) -> u32 {
        self.lost
    }

    pub(crate) const fn retransmitted(&self) -> u32 {
        self.retransmitted
    }

    /// Packets believed to be in the network (RFC 6675's pipe).
    pub(crate) fn in_flight(&self) -> u32 {
        self.under_way.saturating_sub(self.duplicates)
    }

    pub(crate) fn front(&self) -> Option<&Segment> {
        self.segments.front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter()
    }

    pub(crate) fn get(&self, i: usize) -> &Segment {
        &self.segments[i]
    }

    pub(crate) fn push(&mut self, segment: Segment) {
        self.segments.push_back(segment);
        self.under_way += 1;
    }

    /// Removes the first segment: it is acknowledged.
    pub(crate) fn pop(&mut self) -> Option<Segment> {
        let segment = self.segments.pop_front()?;
        self.count(segment.marks, -1);
        self.under_way -= 1;
        self.first_lost = self.first_lost.saturating_sub(1);
        Some(segment)
    }

    fn count(&mut self, marks: Mark, by: i32) {
        if marks.0 & !Mark::LASTING == 0 {
            return;
        }
        let under_way = &mut self.under_way;
        let mut add = |count: &mut u32, mark, sign: i32| {
            if marks.has(mark) {
                *count = count.wrapping_add_signed(by);
                *under_way = under_way.wrapping_add_signed(sign * by);
            }
        };
        add(&mut self.sacked, Mark::SACKED, -1);
        add(&mut self.lost, Mark::LOST, -1);
        add(&mut self.retransmitted, Mark::RETRANSMITTED, 1);
    }

    fn set(&mut self, i: usize, marks: Mark) {
        let old = self.segments[i].marks;
        self.count(old, -1);
        self.count(marks, 1);
        self.segments[i].marks = marks;
    }

    /// The index of the segment that starts at `offset` or, if none does, of the first that starts after it.
    pub(crate) fn index_from(&self, offset: u64) -> usize {
        self.segments.partition_point(|s| s.start < offset)
    }

    /// A burst ends with the segment from now on. Returns false where it did before.
    pub(crate) fn end_burst(&mut self, i: usize) -> bool {
        let marks = self.segments[i].marks;
        self.segments[i].marks = marks.and(Mark::BURST_END);
        !marks.has(Mark::BURST_END)
    }

    /// The first and the last segment of the burst that segment `i` is of.
    pub(crate) fn burst(&self, i: usize) -> (usize, usize) {
        let ends = |&i: &usize| self.segments[i].marks.has(Mark::BURST_END);
        let first = (0..i).rev().find(ends).map_or(0, |before| before + 1);
        (first, (i..self.segments.len()).find(ends).unwrap_or(self.segments.len() - 1))
    }

    /// The burst that ends with the segment goes on with the next one, if both have few pieces together. Returns
    /// whether it does.
    pub(crate) fn join_bursts(&mut self, i: usize) -> bool {
        let (first, last) = (self.burst(i).0, self.burst(i + 1).1);
        let [start, end] = [self.segments[first].start, self.segments[last].end()];
        let joins =
            self.segments[i].marks.has(Mark::BURST_END) && Memory::pieces(start, end - start) <= Memory::MOST_PIECES;
        if joins {
            self.segments[i].marks = Mark(self.segments[i].marks.0 & !Mark::BURST_END.0);
        }
        joins
    }

    /// The segment has arrived: it is neither lost nor on its way.
    pub(crate) fn mark_sacked(&mut self, i: usize) {
        let lasting = self.segments[i].marks.0 & Mark::LASTING;
        self.set(i, Mark(lasting | Mark::SACKED.0));
    }

    /// The segment, or its latest copy, is lost.
    pub(crate) fn mark_lost(&mut self, i: usize) {
        let marks = self.segments[i].marks;
        self.set(i, Mark((marks.0 | Mark::LOST.0) & !Mark::RETRANSMITTED.0));
        self.first_lost = self.first_lost.min(i);
    }

    /// A copy of the segment was sent.
    pub(crate) fn mark_retransmitted(&mut self, i: usize, now: Time) {
        let marks = self.segments[i].marks;
        self.set(i, Mark(marks.0 | Mark::RETRANSMITTED.0 | Mark::EVER_RETRANSMITTED.0));
        self.segments[i].sent = now;
    }

    /// No segment is lost after all: all marks of loss are removed.
    pub(crate) fn unmark_lost(&mut self) {
        for i in 0..self.segments.len() {
            let marks = self.segments[i].marks;
            self.set(i, Mark(marks.0 & !Mark::LOST.0));
        }
    }

    /// The peer has taken back what it had reported (RFC 2018, section 8).
    pub(crate) fn unmark_sacked(&mut self) {
        for i in 0..self.segments.len() {
            let marks = self.segments[i].marks;
            self.set(i, Mark(marks.0 & !Mark::SACKED.0));
        }
    }

    /// The first segment that is lost and has no copy under way.
    pub(crate) fn next_lost(&mut self) -> Option<usize> {
        if self.lost == 0 {
            return None;
        }
        let to_send = |s: &Segment| s.marks.has(Mark::LOST) && !s.marks.has(Mark::RETRANSMITTED);
        let found = (self.first_lost..self.segments.len()).find(|&i| to_send(&self.segments[i]));
        self.first_lost = found.unwrap_or(self.segments.len());
        found
    }

    /// The first part of the segment is acknowledged.
    pub(crate) fn trim_front(&mut self, upto: u64) {
        if let Some(front) = self.segments.front_mut() {
            front.len -= (upto - front.start) as u32;
            front.start = upto;
        }
    }

    /// Recounts everything; the counts that are kept must agree.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let count = |mark| self.segments.iter().filter(|s| s.marks.has(mark)).count() as u32;
        assert_eq!((self.sacked, self.lost), (count(Mark::SACKED), count(Mark::LOST)), "scoreboard counts");
        assert_eq!(self.retransmitted, count(Mark::RETRANSMITTED), "retransmitted count");
        assert_eq!(self.under_way, self.len() - self.sacked - self.lost + self.retransmitted, "under way");
        assert!(self.segments.iter().zip(self.segments.iter().skip(1)).all(|(a, b)| a.end() == b.start), "no gaps");
        assert!(!self.segments.iter().any(|s| s.marks.has(Mark::SACKED) && s.marks.has(Mark::LOST)), "sacked and lost");
    }
}
