//! The folded series: how far the measured pair's flows have come, and how long its VOQ is, against the time since the
//! start of a fold of some weeks; averaged over folds (the axes of Etalon's Figs. 2, 9 and 11).

use crate::report::SeriesReport;
use firstlight_net::{FlowTuple, Packet, TcpFlags, TcpSegment};
use firstlight_units::{Span, Time};
use std::collections::BTreeMap;

/// The in-order stream of one flow, reassembled from the packets that pass.
#[derive(Clone, Debug, Default)]
struct SeenStream {
    /// In-order bytes so far; wrapped to 32 bits it is `next - first`.
    next: u64,
    first: u32,
    /// Out-of-order intervals, start to end.
    pending: BTreeMap<u64, u64>,
}

impl SeenStream {
    /// How many bytes the segment brings into order.
    fn add(&mut self, segment: TcpSegment<'_>) -> u64 {
        let offset = segment.seq().wrapping_sub(self.first).wrapping_sub(self.next as u32) as i32;
        let end = self.next as i64 + i64::from(offset) + i64::from(segment.payload());
        let (start, end) = (self.next.saturating_add_signed(i64::from(offset)), end.max(0) as u64);
        if end <= self.next {
            return 0;
        }
        if start > self.next {
            let longest = self.pending.entry(start).or_insert(end);
            *longest = end.max(*longest);
            return 0;
        }
        let before = self.next;
        self.next = end;
        while let Some(entry) = self.pending.first_entry().filter(|entry| *entry.key() <= self.next) {
            self.next = self.next.max(entry.remove());
        }
        self.next - before
    }
}

/// Takes the samples.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    every: Span,
    fold: Span,
    flows: BTreeMap<FlowTuple, SeenStream>,
    /// In-order bytes of all flows.
    total: u64,
    /// `total` when the present fold began; `None` until the first fold after a reset begins.
    base: Option<u64>,
    began: Time,
    /// The present fold.
    current: Vec<(f64, u32)>,
    /// Sums over whole folds.
    sums: Vec<(f64, u64)>,
    repetitions: u64,
}

impl Series {
    /// Takes a sample `every` span of engine time, in folds of length `fold`.
    pub(crate) fn new(every: Span, fold: Span) -> Self {
        let samples = fold.as_ps().div_ceil(every.as_ps()) as usize;
        Series {
            every,
            fold,
            flows: BTreeMap::new(),
            total: 0,
            base: None,
            began: Time::ZERO,
            current: Vec::with_capacity(samples),
            sums: vec![(0.0, 0); samples],
            repetitions: 0,
        }
    }

    /// A packet of the measured pair arrived at the destination's ToR.
    pub(crate) fn on_arrival(&mut self, packet: &Packet) {
        let Some(segment) = packet.tcp() else { return };
        let syn = segment.flags().has(TcpFlags::SYN);
        if !syn && !segment.is_data() {
            return;
        }
        let first = segment.seq().wrapping_add(u32::from(syn));
        let flow = self.flows.entry(segment.tuple()).or_insert_with(|| SeenStream { first, ..SeenStream::default() });
        if !syn {
            self.total += flow.add(segment);
        }
    }

    /// Takes a sample and returns when the next one is due.
    pub(crate) fn sample(&mut self, now: Time, voq: u32) -> Time {
        if now >= self.began + self.fold || now == Time::ZERO {
            self.finish_fold();
            self.began = now;
            self.base = Some(self.total);
        }
        if let Some(base) = self.base {
            let flows = self.flows.len().max(1) as f64;
            self.current.push(((self.total - base) as f64 / flows, voq));
        }
        (now + self.every).min(self.began + self.fold)
    }

    fn finish_fold(&mut self) {
        if self.current.len() == self.sums.len() {
            for (sum, (sequence, voq)) in self.sums.iter_mut().zip(&self.current) {
                *sum = (sum.0 + sequence, sum.1 + u64::from(*voq));
            }
            self.repetitions += 1;
        }
        self.current.clear();
    }

    /// Discards all samples. The next whole fold counts again, or the present fold if it begins now.
    pub(crate) fn reset(&mut self, now: Time) {
        self.sums.fill((0.0, 0));
        self.repetitions = 0;
        if now != self.began {
            self.current.clear();
            self.base = None;
        }
    }

    /// The averages at `now`; a fold that ends at this moment counts.
    pub(crate) fn report(&self, now: Time, scale: u32) -> SeriesReport {
        let mut done = self.clone();
        if now >= self.began + self.fold {
            done.finish_fold();
        }
        let mean = |sum: f64| if done.repetitions == 0 { f64::NAN } else { sum / done.repetitions as f64 };
        SeriesReport {
            every: self.every / u64::from(scale),
            repetitions: done.repetitions,
            sequence: done.sums.iter().map(|sum| mean(sum.0)).collect(),
            voq: done.sums.iter().map(|sum| mean(sum.1 as f64)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_net::TcpHeader;
    use proptest::prelude::*;

    fn data(seq: u32, payload: u16) -> Packet {
        Packet::new_tcp(FlowTuple::default(), 52, payload, TcpHeader { seq, ..TcpHeader::default() })
    }

    fn add(flow: &mut SeenStream, seq: u32, payload: u16) -> u64 {
        flow.add(data(seq, payload).tcp().expect("it is a segment"))
    }

    #[test]
    fn counts_bytes_in_order_across_the_wrap() {
        let mut flow = SeenStream { first: u32::MAX - 99, ..SeenStream::default() };
        assert_eq!(add(&mut flow, u32::MAX - 99, 100), 100);
        assert_eq!(add(&mut flow, 100, 100), 0);
        assert_eq!(add(&mut flow, u32::MAX - 99, 100), 0, "a repetition");
        assert_eq!(add(&mut flow, 0, 100), 200, "fills the hole");
    }

    #[test]
    fn folds_are_averaged_and_a_broken_one_is_left_out() {
        let us = |n| Time::ZERO + Span::from_us(n);
        let mut series = Series::new(Span::from_us(4), Span::from_us(10));
        let mut due = Time::ZERO;
        for step in 0..40u32 {
            if due == us(u64::from(step)) {
                due = series.sample(due, step);
            }
            if step == 13 {
                series.reset(us(13));
            }
            series.on_arrival(&data(step * 100, 100));
        }
        // Samples at 0 4 8 | 10 14 18 | 20 24 28 | 30 34 38 |; the folds from 20 on count, each byte rate the same.
        let report = series.report(us(40), 1);
        assert_eq!(report.repetitions, 2);
        assert_eq!(report.sequence, [0.0, 400.0, 800.0]);
        assert_eq!(report.voq, [25.0, 29.0, 33.0]);
        assert_eq!(series.report(us(39), 1).repetitions, 1);
        // A reset at the moment a fold begins keeps that fold.
        series.sample(us(40), 0);
        series.reset(us(40));
        (44..50).step_by(4).for_each(|t| _ = series.sample(us(t), 0));
        assert_eq!(series.report(us(50), 1).repetitions, 1);
    }

    proptest! {
        #[test]
        fn any_order_of_arrival_counts_the_bytes_in_order(
            pieces in prop::collection::vec((0u32..60, 1u16..30), 1..80), first in any::<u32>(),
        ) {
            let mut flow = SeenStream { first, ..SeenStream::default() };
            let (mut seen, mut sum) = ([false; 90], 0);
            for (start, len) in pieces {
                sum += add(&mut flow, first.wrapping_add(start), len);
                seen[start as usize..][..usize::from(len)].fill(true);
                let in_order = seen.iter().take_while(|byte| **byte).count() as u64;
                prop_assert_eq!((sum, flow.next), (in_order, in_order));
            }
        }
    }
}
