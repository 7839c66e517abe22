//! A program that reads by calls, and what the receive buffer holds for it.
//!
//! A program that reads at a rate takes what there is, up to so many bytes with one call, and works on them before
//! it reads again. Meanwhile what arrives fills the receive buffer, and the window closes (RFC 9293, section 3.8.6).

use super::reassembly::{BufferedPacket, RunBeyondGap};
use crate::config::Memory;
use firstlight_units::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;

/// How fast a program reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadRate {
    /// Bytes that one call takes at most; not zero.
    pub size: Bytes,
    /// The rate at which the program works on what it has read; not zero.
    pub rate: Rate,
}

impl ReadRate {
    /// How long the program works on `bytes` that it has read, in whole nanoseconds: programs sleep for as long.
    pub fn work(&self, bytes: u64) -> Span {
        Span::from_ns(self.rate.saturating_tx_time(Bytes::new(bytes)).ceil_ns())
    }
}

/// Packets in the receive buffer that are in order and have joined: the stack frees them together.
#[derive(Clone, Copy, Debug)]
struct UnreadRun {
    /// Stream offset at which the packets end.
    end: u64,
    memory: u64,
    /// The pieces of pages that the packets have.
    pieces: u32,
}

/// A program that reads by calls, and what it has not read. It sleeps for whole nanoseconds of its host's clock.
#[derive(Clone, Debug)]
pub(crate) struct ReadingProgram {
    rate: Option<ReadRate>,
    /// Since when the program has worked on what it has read.
    since: Time,
    /// When the program will have worked on what it has read.
    free: Time,
    /// When the program reads next by itself; [`Time::MAX`] while it waits for data, and without a rate.
    pub(crate) due: Time,
    /// When a packet arrived or left last: the buffer is tuned by this time.
    pub(crate) last_packet: Time,
    runs: VecDeque<UnreadRun>,
}

impl ReadingProgram {
    /// A program that reads at `rate`; without one, it reads when the connection's owner calls for it.
    pub(crate) fn new(rate: Option<ReadRate>) -> Self {
        ReadingProgram {
            rate,
            since: Time::ZERO,
            free: Time::ZERO,
            due: Time::MAX,
            last_packet: Time::ZERO,
            runs: VecDeque::new(),
        }
    }

    /// Whether a packet with so many pieces joins what has arrived before it.
    pub(crate) fn joins(&self, pieces: u32) -> bool {
        self.runs.back().is_some_and(|last| last.pieces + pieces <= Memory::MOST_PIECES)
    }

    /// A packet has arrived in order, ends at `end` and is kept so.
    pub(crate) fn on_data(&mut self, end: u64, kept: BufferedPacket, now: Time) {
        let BufferedPacket { memory, pieces, joins } = kept;
        match self.runs.back_mut().filter(|_| joins) {
            Some(last) => *last = UnreadRun { end, memory: last.memory + memory, pieces: last.pieces + pieces },
            None => self.runs.push_back(UnreadRun { end, memory, pieces }),
        }
        if self.rate.is_some() {
            self.due = self.due.min(self.free.max(now));
        }
    }

    /// What had waited behind the packet is in order now. Returns what of its memory is free: `saved` where it joins.
    pub(crate) fn on_behind(&mut self, run: RunBeyondGap, saved: u64) -> u64 {
        let RunBeyondGap { end, memory, pieces, .. } = run;
        let joins = self.joins(pieces);
        let saved = if joins { saved.min(memory) } else { 0 };
        match self.runs.back_mut().filter(|_| joins) {
            Some(last) => *last = UnreadRun { end, memory: last.memory + memory - saved, pieces: last.pieces + pieces },
            None => self.runs.push_back(UnreadRun { end, memory, pieces }),
        }
        saved
    }

    /// The program takes what lies before `upto`. Returns where the first packets end of which it has taken a part, and
    /// the memory that is free now.
    pub(crate) fn take(&mut self, upto: u64) -> (u64, u64) {
        let first = self.runs.front().map_or(upto, |run| run.end.min(upto));
        let mut freed = 0;
        while let Some(run) = self.runs.front().filter(|run| run.end <= upto) {
            freed += run.memory;
            self.runs.pop_front();
        }
        (first, freed)
    }

    /// The bytes that the program asks for with one call, if it reads within the nanosecond that ends `now`.
    pub(crate) fn asks_for(&self, now: Time) -> Option<u64> {
        self.rate.filter(|_| self.due <= Time::from_ns(now.whole_ns())).map(|rate| rate.size.get())
    }

    /// Whether the program, if it wakes in the same nanosecond in which a packet arrives, runs before that is taken in:
    /// the hosts' kernel had set its timer before it knew of the packet.
    pub(crate) fn is_first(&self) -> bool {
        self.since < self.last_packet
    }

    /// The program has read `bytes` and has left more, or nothing.
    pub(crate) fn on_read(&mut self, bytes: u64, now: Time) {
        let now = Time::from_ns(now.whole_ns());
        self.since = now;
        self.free = now + self.rate.map_or(Span::ZERO, |rate| rate.work(bytes));
        self.due = if self.runs.is_empty() { Time::MAX } else { self.free };
    }
}

#[cfg(test)]
mod tests {
    use super::super::reassembly::Reassembly;
    use super::*;

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    fn arrive(reader: &mut ReadingProgram, end: u64, now: Time) {
        let kept = BufferedPacket { memory: 2000, pieces: 9, joins: reader.joins(9) };
        reader.on_data(end, kept, now);
    }

    /// 1000 bytes at 3 Gb/s are 2666.7 ns of work.
    #[test]
    fn a_program_reads_again_when_it_has_worked_on_what_it_has_read() {
        let mut reader = ReadingProgram::new(Some(ReadRate { size: Bytes::new(1000), rate: Rate::from_gbps(3) }));
        assert_eq!((reader.due, reader.asks_for(at(10))), (Time::MAX, None));
        arrive(&mut reader, 1301, at(10));
        assert_eq!((reader.due, reader.asks_for(at(10))), (at(10), Some(1000)));
        assert_eq!(reader.take(1001), (1001, 0));
        reader.on_read(1000, at(10));
        assert_eq!(reader.due, at(2677));
        assert_eq!(reader.take(1301), (1301, 2000));
        reader.on_read(300, at(2677));
        assert_eq!(reader.due, Time::MAX);
        arrive(&mut reader, 1500, at(3000));
        assert_eq!(reader.due, at(3477), "still at work");
    }

    /// Of three packets with nine pieces each none joins another; smaller ones do.
    #[test]
    fn packets_that_have_joined_are_freed_together() {
        let mut reader = ReadingProgram::new(None);
        [101, 201, 301].into_iter().for_each(|end| arrive(&mut reader, end, at(1)));
        assert!(reader.joins(8) && !reader.joins(9));
        reader.on_data(401, BufferedPacket { memory: 100, pieces: 8, joins: true }, at(1));
        assert_eq!(reader.due, Time::MAX, "without a rate");
        assert_eq!(reader.take(250), (101, 4000));
        assert_eq!(reader.take(400), (400, 0));
        assert_eq!(reader.take(401), (401, 2100));
    }

    /// Packets that had waited join what is before them as long as they have few pieces together.
    #[test]
    fn what_had_waited_behind_a_gap_joins_and_frees_memory() {
        let mut stream = Reassembly::new(1, 3);
        for (start, pieces) in [(101, 9), (201, 9)] {
            stream.insert(start, start + 100, BufferedPacket { memory: 500, pieces, joins: false });
        }
        let mut reader = ReadingProgram::new(None);
        reader.on_data(101, BufferedPacket { memory: 100, pieces: 1, joins: false }, at(1));
        assert_eq!(stream.runs().map(|run| reader.on_behind(run, 30)).collect::<Vec<_>>(), [30, 0]);
        assert_eq!(reader.take(150), (150, 0));
        assert_eq!(reader.take(250), (201, 570));
        assert_eq!(reader.take(301), (301, 500));
    }
}
