//! What has arrived: the in-order point, and the intervals beyond it (RFC 9293, section 3.4; RFC 2018; RFC 2883).

use super::descent::Descent;
use super::seq::SeqMap;
use crate::config::Memory;
use firstlight_net::{SackBlock, TcpSegmentMut};
use std::collections::VecDeque;

/// Stream offsets `start..end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interval {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// What a packet takes in the receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct BufferedPacket {
    /// The memory that the packet takes, in bytes.
    pub(crate) memory: u64,
    /// The pieces of pages that the packet has.
    pub(crate) pieces: u32,
    /// The packet joins the one before it.
    pub(crate) joins: bool,
}

/// Packets beyond a gap that have joined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunBeyondGap {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) memory: u64,
    pub(crate) pieces: u32,
    /// The run's node in [`Reassembly::tree`].
    node: u32,
}

/// The data that had waited behind a packet which fills a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Behind {
    /// The memory that the data take, in bytes.
    pub(crate) memory: u64,
    /// How many runs of the data join what is before them.
    pub(crate) joints: u32,
    /// The bytes that join the packet itself.
    pub(crate) first_len: u64,
}

/// Intervals that a receiver remembers for its reports, one more than a SACK option with timestamps has room for (RFC
/// 2018, section 4, asks for three at least).
const REMEMBERED: usize = 4;

/// What a segment did to the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// The segment continued the stream.
    InOrder {
        /// The segment filled a gap or part of one: later data were in the buffer.
        filled_gap: bool,
        /// The later data that are in order now.
        behind: Behind,
    },
    /// The segment lies beyond a gap.
    OutOfOrder,
    /// All bytes of the segment had arrived before, in order or beyond a gap.
    Duplicate {
        /// The segment lies beyond a gap.
        beyond: bool,
    },
}

impl Arrival {
    /// Whether the segment lies beyond a gap.
    pub(crate) fn is_beyond(self) -> bool {
        matches!(self, Arrival::OutOfOrder | Arrival::Duplicate { beyond: true })
    }
}

/// The receiving side of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Reassembly {
    /// The next stream offset expected in order.
    next: u64,
    /// Intervals that have arrived beyond `next`, disjoint, by offset.
    beyond: Vec<Interval>,
    /// Packets that have arrived beyond `next`, by offset.
    runs: VecDeque<RunBeyondGap>,
    /// The tree that `runs` are in.
    tree: Descent,
    /// Intervals that SACK reports, the most recently changed first (RFC 2018, section 4). An interval that changes
    /// joins those which are remembered here, not all that has arrived.
    reported: Vec<(u64, u64)>,
    /// The last duplicate, to be reported once (RFC 2883).
    duplicate: Option<(u64, u64)>,
    /// Blocks that a SACK option has room for.
    blocks: u8,
}

impl Reassembly {
    pub(crate) const fn new(next: u64, blocks: u8) -> Self {
        Reassembly {
            next,
            beyond: Vec::new(),
            runs: VecDeque::new(),
            tree: Descent::new(),
            reported: Vec::new(),
            duplicate: None,
            blocks,
        }
    }

    /// The next stream offset expected in order.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// True when something lies beyond a gap.
    pub(crate) fn has_gap(&self) -> bool {
        !self.beyond.is_empty()
    }

    /// The stream has ended: there is nothing to report any more.
    pub(crate) fn forget_reports(&mut self) {
        self.beyond.clear();
        self.runs.clear();
        self.tree.clear();
        self.reported.clear();
        self.duplicate = None;
    }

    /// Where the last of what lies beyond gaps ends.
    pub(crate) fn highest(&self) -> u64 {
        self.beyond.last().map_or(self.next, |i| i.end)
    }

    /// What lies beyond gaps.
    pub(crate) fn runs(&self) -> impl Iterator<Item = RunBeyondGap> + use<'_> {
        self.runs.iter().copied()
    }

    /// The pieces of what lies beyond a gap, ends at `start` and has joined.
    pub(crate) fn pieces_before(&self, start: u64) -> Option<u32> {
        let before = self.runs.partition_point(|run| run.start < start).checked_sub(1)?;
        Some(self.runs[before]).filter(|run| run.end == start).map(|run| run.pieces)
    }

    /// Takes in the segment `start..end`, which is `kept` so if it lies beyond a gap: then it is yet to be reported.
    #[inline]
    pub(crate) fn insert(&mut self, start: u64, end: u64, kept: BufferedPacket) -> Arrival {
        if start == self.next && end > start && !self.has_gap() {
            self.next = end;
            return Arrival::InOrder { filled_gap: false, behind: Behind::default() };
        }
        self.insert_beside_others(start, end, kept)
    }

    /// Takes in a segment that repeats some of what has arrived, or where something lies beyond a gap.
    #[inline(never)]
    fn insert_beside_others(&mut self, start: u64, end: u64, kept: BufferedPacket) -> Arrival {
        if start <= self.next && end > self.next {
            if start < self.next {
                self.note_duplicate(start, self.next);
            }
            self.next = end;
            let filled_gap = !self.beyond.is_empty();
            let behind = if filled_gap { self.absorb(end, kept.pieces) } else { Behind::default() };
            return Arrival::InOrder { filled_gap, behind };
        }
        if end <= self.next {
            self.duplicate = Some((start, end));
            return Arrival::Duplicate { beyond: false };
        }
        let kept = BufferedPacket { joins: kept.joins && self.joins_first(start), ..kept };
        let is_new = self.insert_beyond(Interval { start, end }, kept.joins);
        if is_new {
            self.keep(start, end, kept);
        }
        if is_new { Arrival::OutOfOrder } else { Arrival::Duplicate { beyond: true } }
    }

    /// Whether what starts at `start` joins the run before it, and is not first compared with one that starts there.
    fn joins_first(&self, start: u64) -> bool {
        let at = self.runs.partition_point(|run| run.start < start);
        let repeats = self.runs.get(at).is_some_and(|after| after.start == start);
        !repeats || self.tree.meets_before_next(self.runs[at - 1].node)
    }

    /// Whether `segment` is kept: some of it is new, or it `joins` the run before it. That it repeats others is not
    /// noted then.
    fn insert_beyond(&mut self, segment: Interval, joins: bool) -> bool {
        let from = self.beyond.partition_point(|i| i.end < segment.start);
        let upto = self.beyond.partition_point(|i| i.start <= segment.end);
        let mut merged = segment;
        for i in from..upto {
            let i = self.beyond[i];
            if i.start <= segment.start && segment.end <= i.end {
                if joins {
                    return true;
                }
                self.duplicate = Some((segment.start, segment.end));
                return false;
            }
            let [start, end] = [i.start.max(segment.start), i.end.min(segment.end)];
            if start < end && !joins {
                self.note_duplicate(start, end);
            }
            merged = Interval { start: merged.start.min(i.start), end: merged.end.max(i.end) };
        }
        self.beyond.splice(from..upto, [merged]);
        true
    }

    /// Keeps `start..end`.
    fn keep(&mut self, start: u64, end: u64, kept: BufferedPacket) {
        let at = self.runs.partition_point(|run| run.start < start);
        if kept.joins {
            let run = &mut self.runs[at - 1];
            *run = RunBeyondGap { end, memory: run.memory + kept.memory, pieces: run.pieces + kept.pieces, ..*run };
        } else {
            let neighbour = |at: usize| self.runs.get(at).map(|run| run.node);
            let node = self.tree.insert(at.checked_sub(1).and_then(neighbour), neighbour(at));
            self.runs.insert(at, RunBeyondGap { start, end, memory: kept.memory, pieces: kept.pieces, node });
        }
    }

    /// Where `start..end` stands among what is reported, if it touches any of that.
    fn reported_at(&self, start: u64, end: u64) -> Option<usize> {
        self.reported.iter().position(|&(from, to)| start <= to && from <= end)
    }

    /// Whether the report of `start..end` pushes out what the option could still say: it neither extends one of the
    /// latest intervals nor is one of these (two of them, where the option has room for three).
    pub(crate) fn crowds(&self, start: u64, end: u64) -> bool {
        let latest = usize::from(self.blocks).saturating_sub(1).max(1);
        self.reported_at(start, end).unwrap_or(self.reported.len()) >= latest
    }

    /// An interval that `start..end` touches is reported with it, at the place where it is.
    pub(crate) fn extend_report(&mut self, start: u64, end: u64) {
        if let Some(i) = self.reported_at(start, end) {
            let (from, to) = self.reported[i];
            self.reported[i] = (from.min(start), to.max(end));
        }
    }

    /// `start..end` has arrived beyond a gap: it is reported first, with what is remembered and touches it.
    pub(crate) fn report(&mut self, start: u64, end: u64) {
        match self.reported_at(start, end) {
            Some(i) => {
                let (from, to) = self.reported.remove(i);
                let mut first = (from.min(start), to.max(end));
                self.reported.retain(|&(from, to)| {
                    let touches = first.0 <= to && from <= first.1;
                    if touches {
                        first = (first.0.min(from), first.1.max(to));
                    }
                    !touches
                });
                self.reported.insert(0, first);
            }
            None => {
                self.reported.truncate(REMEMBERED - 1);
                self.reported.insert(0, (start, end));
            }
        }
    }

    /// A duplicate is not reported.
    pub(crate) fn forget_duplicate(&mut self) {
        self.duplicate = None;
    }

    /// Part of a segment had arrived before. One report has room for one interval: the first, and what touches it.
    fn note_duplicate(&mut self, start: u64, end: u64) {
        match &mut self.duplicate {
            None => self.duplicate = Some((start, end)),
            Some((from, to)) if start <= *to && *from <= end => {
                [*from, *to] = [start.min(*from), end.max(*to)];
            }
            Some(_) => {}
        }
    }

    /// Moves the in-order point over the intervals that it has reached, now that a segment that ends at `upto` is
    /// there and has so many pieces. Runs join as long as they have few pieces together.
    fn absorb(&mut self, upto: u64, mut pieces: u32) -> Behind {
        let mut reached = 0;
        while let Some(&i) = self.beyond.get(reached).filter(|i| i.start <= self.next) {
            if i.start < upto {
                self.note_duplicate(i.start, i.end.min(upto));
            }
            self.next = self.next.max(i.end);
            reached += 1;
        }
        self.beyond.drain(..reached);
        self.reported.retain(|&(start, _)| start > self.next);
        let (mut behind, mut is_first) = (Behind::default(), true);
        while let Some(run) = self.runs.front().copied().filter(|run| run.start < self.next) {
            self.runs.pop_front();
            self.tree.remove_first(run.node);
            behind.memory += run.memory;
            let joins = pieces + run.pieces <= Memory::MOST_PIECES;
            is_first &= joins;
            pieces = if joins { pieces + run.pieces } else { run.pieces };
            behind.joints += u32::from(joins);
            behind.first_len += if is_first { run.end.saturating_sub(upto.max(run.start)) } else { 0 };
        }
        behind
    }

    /// Whether an ACK has something to report.
    pub(crate) const fn reports(&self) -> bool {
        self.duplicate.is_some() || !self.reported.is_empty()
    }

    /// The blocks of a SACK option: a duplicate first (RFC 2883), then the most recent intervals.
    pub(crate) fn take_report(&mut self, map: SeqMap) -> Report {
        let mut report = Report::default();
        let blocks = self.duplicate.take().into_iter().chain(self.reported.iter().copied());
        for (start, end) in blocks.take(usize::from(self.blocks)) {
            report.blocks[report.count] = SackBlock { start: map.wire(start), end: map.wire(end) };
            report.count += 1;
        }
        report
    }
}

/// What a SACK option says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Report {
    blocks: [SackBlock; REMEMBERED],
    count: usize,
}

impl Report {
    /// Writes the option. Returns its length in bytes, padding included.
    pub(crate) fn write(&self, segment: &mut TcpSegmentMut<'_>) -> u8 {
        if self.count == 0 {
            return 0;
        }
        for &block in &self.blocks[..self.count] {
            segment.push_sack(block);
        }
        4 + 8 * self.count as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_net::Packet;
    use proptest::prelude::*;

    fn kept(memory: u64) -> BufferedPacket {
        BufferedPacket { memory, pieces: 1, joins: false }
    }

    /// Takes in a segment and reports it.
    fn insert(stream: &mut Reassembly, start: u64, end: u64, kept: BufferedPacket) -> Arrival {
        let arrival = stream.insert(start, end, kept);
        if arrival.is_beyond() {
            stream.report(start, end);
        }
        arrival
    }

    #[test]
    fn reports_the_latest_first_and_duplicates_once() {
        let map = SeqMap::new(0);
        let mut stream = Reassembly::new(1, 3);
        assert_eq!(
            insert(&mut stream, 1, 11, kept(0)),
            Arrival::InOrder { filled_gap: false, behind: Behind::default() }
        );
        assert_eq!(insert(&mut stream, 21, 31, kept(2)), Arrival::OutOfOrder);
        assert_eq!(insert(&mut stream, 41, 51, kept(7)), Arrival::OutOfOrder);
        assert_eq!(insert(&mut stream, 31, 36, kept(3)), Arrival::OutOfOrder);
        assert_eq!(insert(&mut stream, 1, 11, kept(0)), Arrival::Duplicate { beyond: false });
        let mut packet = Packet::default();
        assert_eq!(stream.take_report(map).write(&mut packet.tcp_mut().unwrap()), 28);
        let block = |start, end| SackBlock { start, end };
        assert!(packet.tcp().unwrap().sack_blocks().eq([block(1, 11), block(21, 36), block(41, 51)]));
        let mut packet = Packet::default();
        assert_eq!(stream.take_report(map).write(&mut packet.tcp_mut().unwrap()), 20);
        assert_eq!(insert(&mut stream, 61, 71, kept(0)), Arrival::OutOfOrder);
        let behind = Behind { memory: 5, joints: 2, first_len: 15 };
        assert_eq!(insert(&mut stream, 11, 21, kept(0)), Arrival::InOrder { filled_gap: true, behind });
        assert_eq!(stream.next(), 36);
    }

    /// What changes joins what is remembered, four intervals, and not all that has arrived. What is remembered no
    /// longer is not reported, and a duplicate beyond a gap is reported first.
    #[test]
    fn remembers_four_intervals() {
        let map = SeqMap::new(0);
        let mut stream = Reassembly::new(1, 3);
        let report = |stream: &mut Reassembly| {
            let mut packet = Packet::default();
            stream.take_report(map).write(&mut packet.tcp_mut().unwrap());
            packet.tcp().unwrap().sack_blocks().map(|block| (block.start, block.end)).collect::<Vec<_>>()
        };
        for start in [11, 31, 51, 71, 91] {
            assert_eq!(stream.crowds(start, start + 10), start >= 51);
            insert(&mut stream, start, start + 10, kept(0));
        }
        assert_eq!(report(&mut stream), [(91, 101), (71, 81), (51, 61)]);
        let mut extended = stream.clone();
        extended.extend_report(61, 63);
        assert_eq!(report(&mut extended), [(91, 101), (71, 81), (51, 63)], "at its place");
        insert(&mut stream, 21, 26, kept(0));
        assert_eq!(report(&mut stream), [(21, 26), (91, 101), (71, 81)], "11..21 is forgotten, though it is there");
        assert_eq!(insert(&mut stream, 53, 55, kept(0)), Arrival::Duplicate { beyond: true });
        assert_eq!(report(&mut stream), [(53, 55), (51, 61), (21, 26)]);
        assert_eq!(stream.highest(), 101);
        assert_eq!(insert(&mut stream, 54, 56, kept(0)), Arrival::Duplicate { beyond: true });
        stream.forget_duplicate();
        assert_eq!(report(&mut stream), [(51, 61), (21, 26), (91, 101)]);
    }

    /// Packets join the run before them, whichever interval is the first in the order of reports. When the gap is
    /// filled, runs join what is before them, as long as they have 17 pieces together.
    #[test]
    fn runs_have_the_pieces_of_packets_that_have_joined() {
        let mut stream = Reassembly::new(1, 3);
        for (start, memory, pieces, joins) in [
            (11, 9, 2, false),
            (41, 9, 2, false),
            (21, 5, 2, true),
            (31, 5, 2, true),
            (51, 9, 9, false),
            (61, 9, 8, false),
        ] {
            insert(&mut stream, start, start + 10, BufferedPacket { memory, pieces, joins });
        }
        assert_eq!([41, 51, 61, 71].map(|start| stream.pieces_before(start)), [Some(6), Some(2), Some(9), Some(8)]);
        // 1 + 6 + 2, and 9 + 8.
        let behind = Behind { memory: 46, joints: 3, first_len: 40 };
        assert_eq!(insert(&mut stream, 1, 11, kept(0)), Arrival::InOrder { filled_gap: true, behind });
        assert!(stream.runs.is_empty());
    }

    proptest! {
        /// Whatever the order and overlap, the in-order point and the intervals are those of a plain set of bytes.
        #[test]
        fn agrees_with_a_set(segments in prop::collection::vec((1u64..200, 1u64..30), 1..60)) {
            let mut stream = Reassembly::new(1, 3);
            let mut have = [false; 300];
            for (start, len) in segments {
                insert(&mut stream, start, start + len, kept(0));
                have[start as usize..(start + len) as usize].fill(true);
                let next = (1..300).find(|&i| !have[i]).unwrap();
                prop_assert_eq!(stream.next(), next as u64);
                let beyond: Vec<u64> = stream.beyond.iter().flat_map(|i| i.start..i.end).collect();
                let expected: Vec<u64> = (next..300).filter(|&i| have[i]).map(|i| i as u64).collect();
                prop_assert_eq!(beyond, expected);
            }
        }
    }
}
