//! What has arrived: the in-order point, and the intervals beyond it (RFC 9293, section 3.4; RFC 2018; RFC 2883).

use super::seq::SeqMap;
use firstlight_net::{SackBlock, TcpSegmentMut};

/// Stream offsets `start..end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interval {
    pub(crate) start: u64,
    pub(crate) end: u64,
    kept: Kept,
}

/// How what lies beyond a gap is kept: in runs of packets that have joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Kept {
    /// Its memory.
    memory: u64,
    /// The pieces of the first run; 0 for a packet that joins the one before it.
    first: u32,
    /// The pieces of the last run.
    last: u32,
    /// There is more than one run.
    several: bool,
}

impl Kept {
    /// A packet that takes so much memory and has so many pieces.
    pub(crate) fn alone(memory: u64, pieces: u32) -> Kept {
        Kept { memory, first: pieces, last: pieces, several: false }
    }

    /// A packet that takes so much memory and joins others, which makes a run of so many pieces.
    pub(crate) fn joined(memory: u64, pieces: u32) -> Kept {
        Kept { memory, first: 0, last: pieces, several: false }
    }

    /// The memory that is taken.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    /// The pieces of the first run.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// This, and what follows it.
    fn then(self, next: Kept) -> Kept {
        let joins = next.first == 0;
        Kept {
            memory: self.memory + next.memory,
            first: if joins && !self.several { next.last } else { self.first },
            last: next.last,
            several: self.several || next.several || !joins,
        }
    }
}

/// What a segment did to the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// It continued the stream.
    InOrder {
        /// It filled (part of) a gap: there were later data waiting for it.
        filled_gap: bool,
        /// How those of them are kept that are in order now.
        behind: Kept,
    },
    /// It lies beyond a gap.
    OutOfOrder {
        /// It neither extended one of the latest intervals nor is one of these (two of them, where the option has room
        /// for three): the next SACK option will leave out what this one could still report.
        crowded: bool,
    },
    /// All of it had arrived before.
    Duplicate,
}

/// The receiving side of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Reassembly {
    /// The next stream offset expected in order.
    next: u64,
    /// What lies beyond it, disjoint, the most recently changed first (the order in which RFC 2018 reports it).
    beyond: Vec<Interval>,
    /// The last duplicate, to be reported once (RFC 2883).
    duplicate: Option<Interval>,
    /// Blocks that a SACK option has room for.
    blocks: u8,
}

impl Reassembly {
    pub(crate) const fn new(next: u64, blocks: u8) -> Self {
        Reassembly { next, beyond: Vec::new(), duplicate: None, blocks }
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
        self.duplicate = None;
    }

    /// Where the last of what lies beyond gaps ends.
    pub(crate) fn highest(&self) -> u64 {
        self.beyond.iter().map(|i| i.end).max().unwrap_or(self.next)
    }

    /// The pieces of the last run of what lies beyond a gap and ends at `start`.
    pub(crate) fn pieces_before(&self, start: u64) -> Option<u32> {
        self.beyond.iter().find(|i| i.end == start).map(|i| i.kept.last)
    }

    /// Takes in the segment `start..end`, which is `kept` so if it lies beyond a gap.
    pub(crate) fn insert(&mut self, start: u64, end: u64, kept: Kept) -> Arrival {
        if start <= self.next && end > self.next {
            if start < self.next {
                self.note_duplicate(start, self.next);
            }
            self.next = end;
            let filled_gap = !self.beyond.is_empty();
            let behind = if filled_gap { self.absorb(end) } else { Kept::default() };
            return Arrival::InOrder { filled_gap, behind };
        }
        let segment = Interval { start, end, kept };
        if end <= self.next || self.beyond.iter().any(|i| i.start <= start && end <= i.end) {
            self.duplicate = Some(segment);
            return Arrival::Duplicate;
        }
        self.insert_beyond(segment)
    }

    fn insert_beyond(&mut self, segment: Interval) -> Arrival {
        let Interval { start, end, .. } = segment;
        let latest = usize::from(self.blocks).saturating_sub(1).max(1);
        let extends = self.beyond.iter().take(latest).any(|i| i.end == start || i.start == end);
        let crowded = !extends && self.beyond.len() >= latest;
        for i in 0..self.beyond.len() {
            let Interval { start: from, end: to, .. } = self.beyond[i];
            if from.max(start) < to.min(end) {
                self.note_duplicate(from.max(start), to.min(end));
            }
        }
        let mut merged = segment;
        for before in [true, false] {
            self.beyond.retain(|i| {
                let touches = i.start <= merged.end && merged.start <= i.end && (i.start < start) == before;
                if touches {
                    let kept = if before { i.kept.then(merged.kept) } else { merged.kept.then(i.kept) };
                    merged = Interval { start: merged.start.min(i.start), end: merged.end.max(i.end), kept };
                }
                !touches
            });
        }
        self.beyond.insert(0, merged);
        Arrival::OutOfOrder { crowded }
    }

    /// Part of a segment had arrived before. One report has room for one interval: the first, and what touches it.
    fn note_duplicate(&mut self, start: u64, end: u64) {
        match &mut self.duplicate {
            None => self.duplicate = Some(Interval { start, end, kept: Kept::default() }),
            Some(i) if start <= i.end && i.start <= end => {
                *i = Interval { start: start.min(i.start), end: end.max(i.end), kept: i.kept };
            }
            Some(_) => {}
        }
    }

    /// Moves the in-order point over the intervals that it has reached, now that a segment that ends at `upto` is
    /// there. Returns how they are kept.
    fn absorb(&mut self, upto: u64) -> Kept {
        let mut kept = None;
        while let Some(i) = self.first_reached() {
            let reached = self.beyond.remove(i);
            if reached.start < upto {
                self.note_duplicate(reached.start, reached.end.min(upto));
            }
            self.next = self.next.max(reached.end);
            kept = Some(kept.map_or(reached.kept, |before: Kept| before.then(reached.kept)));
        }
        kept.unwrap_or_default()
    }

    fn first_reached(&self) -> Option<usize> {
        let reached = self.beyond.iter().enumerate().filter(|(_, i)| i.start <= self.next);
        reached.min_by_key(|(_, i)| i.start).map(|(index, _)| index)
    }

    /// Writes the SACK option: a duplicate first (RFC 2883), then the most recent intervals. Returns its length in
    /// bytes, padding included.
    pub(crate) fn write_sack(&mut self, segment: &mut TcpSegmentMut<'_>, map: SeqMap) -> u8 {
        if self.blocks == 0 || (self.beyond.is_empty() && self.duplicate.is_none()) {
            return 0;
        }
        let wire = |i: Interval| SackBlock { start: map.wire(i.start), end: map.wire(i.end) };
        let blocks = self.duplicate.take().into_iter().chain(self.beyond.iter().copied());
        let mut length = 4;
        for interval in blocks.take(usize::from(self.blocks)) {
            segment.push_sack(wire(interval));
            length += 8;
        }
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_net::Packet;
    use proptest::prelude::*;

    fn kept(memory: u64) -> Kept {
        Kept::alone(memory, 1)
    }

    #[test]
    fn reports_the_latest_first_and_duplicates_once() {
        let map = SeqMap::new(0);
        let mut stream = Reassembly::new(1, 3);
        assert_eq!(stream.insert(1, 11, kept(0)), Arrival::InOrder { filled_gap: false, behind: Kept::default() });
        assert_eq!(stream.insert(21, 31, kept(2)), Arrival::OutOfOrder { crowded: false });
        assert_eq!(stream.insert(41, 51, kept(7)), Arrival::OutOfOrder { crowded: false });
        assert_eq!(stream.insert(31, 36, kept(3)), Arrival::OutOfOrder { crowded: false });
        assert_eq!(stream.insert(1, 11, kept(0)), Arrival::Duplicate);
        let mut packet = Packet::default();
        assert_eq!(stream.write_sack(&mut packet.tcp_mut().unwrap(), map), 28);
        let block = |start, end| SackBlock { start, end };
        assert!(packet.tcp().unwrap().sack_blocks().eq([block(1, 11), block(21, 36), block(41, 51)]));
        let mut packet = Packet::default();
        assert_eq!(stream.write_sack(&mut packet.tcp_mut().unwrap(), map), 20);
        assert_eq!(stream.insert(61, 71, kept(0)), Arrival::OutOfOrder { crowded: true });
        assert_eq!(
            stream.insert(11, 21, kept(0)),
            Arrival::InOrder { filled_gap: true, behind: kept(2).then(kept(3)) }
        );
        assert_eq!(stream.next(), 36);
    }

    /// Packets join the run before them, whichever interval is the first in the order of reports.
    #[test]
    fn runs_have_the_pieces_of_packets_that_have_joined() {
        let mut stream = Reassembly::new(1, 3);
        for (start, kept) in [
            (11, Kept::alone(9, 2)),
            (41, Kept::alone(9, 2)),
            (21, Kept::joined(5, 4)),
            (31, Kept::joined(5, 6)),
            (51, Kept::alone(9, 3)),
        ] {
            stream.insert(start, start + 10, kept);
        }
        assert_eq!(stream.pieces_before(61), Some(3));
        let behind = Kept { memory: 37, first: 6, last: 3, several: true };
        assert_eq!(stream.insert(1, 11, kept(0)), Arrival::InOrder { filled_gap: true, behind });
    }

    proptest! {
        /// Whatever the order and overlap, the in-order point and the intervals are those of a plain set of bytes.
        #[test]
        fn agrees_with_a_set(segments in prop::collection::vec((1u64..200, 1u64..30), 1..60)) {
            let mut stream = Reassembly::new(1, 3);
            let mut have = [false; 300];
            for (start, len) in segments {
                stream.insert(start, start + len, kept(0));
                have[start as usize..(start + len) as usize].fill(true);
                let next = (1..300).find(|&i| !have[i]).unwrap();
                prop_assert_eq!(stream.next(), next as u64);
                let mut sorted = stream.beyond.clone();
                sorted.sort_by_key(|i| i.start);
                let beyond: Vec<u64> = sorted.iter().flat_map(|i| i.start..i.end).collect();
                let expected: Vec<u64> = (next..300).filter(|&i| have[i]).map(|i| i as u64).collect();
                prop_assert_eq!(beyond, expected);
            }
        }
    }
}
