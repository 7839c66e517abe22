//! A VOQ: the packets of one pair of racks, waiting at the source's ToR, under the same disciplines as a port's queue.
//!
//! A VOQ has no transmitter of its own: circuit and packet network take packets from it. No packet is in service, so
//! the waiting packets are the whole queue, in packets and in bytes. Bytes are counted as the time that they take on
//! the packet network. A VOQ has no phantom queue, which belongs to a link's exit.
//!
//! The schedule changes a VOQ's limit and its threshold for marks (Etalon, NSDI'20, section 5.1). Shrinking keeps the
//! oldest packets and drops the excess from the tail.
//!
//! RED's idle time begins when the last packet is taken. m, the packets that could have been sent since, is counted at
//! the rate of the packet network, whichever network took the last one: a circuit serves a VOQ only now and then. An
//! arrival that finds the VOQ empty counts as one packet's time at least. Otherwise the average would stand still,
//! though nothing waits, where a faster server empties the VOQ between arrivals that are less than a packet's time
//! apart.

use crate::discipline::{Discipline, Length, Policer, QueueState};
use crate::queue::{PolicedQueue, QueueCounts};
use crate::switch_port::QueueFull;
use crate::{Packet, PacketId, Serializer};
use firstlight_units::{Bytes, Time};

/// The packets of one pair of racks that wait at the source's ToR.
#[derive(Clone, Debug)]
pub struct Voq {
    queue: PolicedQueue,
    /// The serialization on the packet network.
    serializer: Serializer,
    /// When the VOQ became empty, if it is empty.
    emptied: Time,
}

impl Voq {
    /// An empty queue; bytes and RED's idle time are counted at the rate of `serializer`, and `seed` seeds RED.
    ///
    /// # Panics
    /// When [`Discipline::check`] fails.
    pub fn new(discipline: &Discipline, serializer: &Serializer, seed: u64) -> Self {
        let queue = PolicedQueue::new(Policer::new(discipline, serializer, seed));
        Voq { queue, serializer: *serializer, emptied: Time::ZERO }
    }

    /// Queues a packet.
    ///
    /// # Errors
    /// When the queue is full, or RED drops the packet, which is lost then.
    #[inline]
    pub fn offer(&mut self, id: PacketId, packet: &mut Packet, now: Time) -> Result<(), QueueFull> {
        let admitted = if self.queue.policer.sees_every_packet() {
            let state = self.state(packet.size(), now);
            self.queue.admit(id, packet, &state)?
        } else {
            self.queue.admit_waiting(id, packet)?
        };
        self.queue.push(admitted);
        Ok(())
    }

    /// The state that a packet of this size finds.
    fn state(&self, size: u16, now: Time) -> QueueState {
        let is_idle = self.is_empty() && now.saturating_since(self.emptied) >= self.queue.policer.idle_step();
        QueueState {
            now,
            waiting: self.len(),
            backlog: self.serializer.time_of(self.bytes()),
            time: self.serializer.time(size),
            at_once: false,
            empty_since: is_idle.then_some(self.emptied),
        }
    }

    /// Counts a packet that the switch refused before it was queued.
    pub fn refuse(&mut self) {
        self.queue.refuse();
    }

    /// The packet that would be taken next.
    #[inline]
    pub fn front(&self) -> Option<PacketId> {
        self.queue.front()
    }

    /// Takes the oldest packet for transmission.
    #[inline]
    pub fn take(&mut self, now: Time) -> Option<PacketId> {
        let packet = self.queue.pop()?;
        self.queue.counts.sent += 1;
        self.emptied = now;
        Some(packet.id)
    }

    /// Changes how much the queue holds and from where on it marks. Call [`Voq::drop_excess`] until it returns none.
    pub fn resize(&mut self, limit: Option<Length>, threshold: Option<Length>) {
        self.queue.policer.resize(limit, threshold, &self.serializer);
    }

    /// Drops the youngest packet if more waits than may.
    pub fn drop_excess(&mut self, now: Time) -> Option<PacketId> {
        if !self.queue.policer.is_exceeded(self.len(), self.serializer.time_of(self.bytes())) {
            return None;
        }
        let packet = self.queue.pop_back()?;
        self.queue.counts.dropped_by_resizing += 1;
        self.emptied = now;
        Some(packet.id)
    }

    /// Packets that wait.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.queue.len()
    }

    /// Bytes that wait.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }

    /// Whether no packet waits.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The counters so far.
    pub fn counts(&self) -> QueueCounts {
        self.queue.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Band, Drops, Ecn, RedConfig};
    use firstlight_units::{Rate, Span};
    use proptest::prelude::*;

    /// Packets of 1,000 bytes, each of which lasts 800 ns.
    fn red(capacity: u32, config: RedConfig) -> Voq {
        let config = RedConfig { typical_packet: Bytes::new(1000), ..config };
        voq(Discipline { queue: Some(Length::Packets(capacity)), ..Discipline::red(config) })
    }

    fn voq(discipline: Discipline) -> Voq {
        Voq::new(&discipline, &Serializer::new(Rate::from_gbps(10), 1), 11)
    }

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    /// Offers a packet. Returns whether it was queued, and whether it was marked.
    fn offer(voq: &mut Voq, size: u16, ecn: Ecn, ns: u64) -> (bool, bool) {
        let mut packet = Packet::default().with_size(size).with_ecn(ecn);
        (voq.offer(PacketId(0), &mut packet, at(ns)).is_ok(), packet.ecn() == Ecn::Ce)
    }

    /// Marks among packets of which each comes when one was taken, so that it finds so many waiting.
    fn marks(voq: &mut Voq, packets: u64) -> u64 {
        let before = voq.counts().marked;
        for _ in 0..packets {
            voq.take(at(0)).unwrap();
            assert!(offer(voq, 1000, Ecn::Ect0, 0).0);
        }
        voq.counts().marked - before
    }

    /// p_b = 0.1 * (15 - 5) / (25 - 5) = 0.05: gaps are uniform on 1..=20, their mean 10.5, their deviation 5.77. Of
    /// 105,000 packets 10,000 are marked, with a deviation of sqrt(10,000) * 5.77 / 10.5 = 55.
    #[test]
    fn a_voq_held_at_a_length_is_marked_as_the_formula_says() {
        let in_packets = Band::packets(5, 25);
        let in_bytes = Band::bytes(5000, 25_000);
        for band in [in_packets, in_bytes] {
            let mut voq = red(100, RedConfig { max_probability: 0.1, weight: 0.5, ..RedConfig::new(band) });
            (0..16).for_each(|_| assert!(offer(&mut voq, 1000, Ecn::Ect0, 0).0));
            marks(&mut voq, 100);
            let marked = marks(&mut voq, 105_000);
            assert!(marked.abs_diff(10_000) < 4 * 55, "{marked} marks with {band:?}");
        }
    }

    /// Between the thresholds nothing is certain, so the band is none: an average of `length` or more marks.
    fn marks_from(length: u32, weight: f64) -> RedConfig {
        let band = Band::packets(length, length);
        RedConfig { weight, drops: Drops::Unmarkable, ..RedConfig::new(band) }
    }

    /// A VOQ whose average is 4 when its last packet is taken, at 10 us.
    fn emptied() -> Voq {
        let mut voq = red(100, marks_from(1, 0.5));
        // Averages 0, 1/2, 5/4, 17/8, 49/16, 129/32 = 4.03.
        for _ in 0..6 {
            assert!(offer(&mut voq, 1000, Ecn::Ect0, 0).0);
        }
        while voq.take(at(10_000)).is_some() {}
        voq
    }

    #[test]
    fn idle_time_counts_in_packets_at_the_packet_network_s_rate() {
        // One step leaves 2.02, two 1.008, three 0.504: with m = 2 it is marked, with m = 3 it is not.
        for (idle, marked) in [(1600, true), (2399, true), (2400, false), (1_000_000_000, false)] {
            assert_eq!(offer(&mut emptied(), 1000, Ecn::Ect0, 10_000 + idle), (true, marked), "idle for {idle} ns");
        }
    }

    #[test]
    fn an_arrival_at_an_empty_voq_is_a_step_at_least() {
        let mut voq = emptied();
        let marks: Vec<bool> = (0..4)
            .map(|_| {
                let marked = offer(&mut voq, 64, Ecn::Ect0, 10_000).1;
                voq.take(at(10_000));
                marked
            })
            .collect();
        assert_eq!(marks, [true, true, false, false]);
    }

    /// Packets that shrinking has dropped are no longer counted.
    #[test]
    fn bytes_leave_at_both_ends() {
        let band = Band::bytes(3500, 3500);
        let config = RedConfig { weight: 1.0, drops: Drops::Unmarkable, ..RedConfig::new(band) };
        let mut voq = red(100, config);
        for size in [1000, 1500, 2000] {
            assert_eq!(offer(&mut voq, size, Ecn::Ect0, 0), (true, false));
        }
        assert_eq!(offer(&mut voq, 64, Ecn::Ect0, 0), (true, true), "4,500 bytes wait");
        voq.resize(Some(Length::Packets(2)), None);
        while voq.drop_excess(at(0)).is_some() {}
        voq.resize(Some(Length::Packets(100)), None);
        assert_eq!(offer(&mut voq, 1500, Ecn::Ect0, 0), (true, false), "2,500 bytes wait");
        assert_eq!(offer(&mut voq, 64, Ecn::Ect0, 0), (true, true), "4,000 bytes wait");
        voq.take(at(0));
        assert_eq!(offer(&mut voq, 64, Ecn::Ect0, 0), (true, false), "3,064 bytes wait");
    }

    #[test]
    fn what_red_and_a_full_voq_drop_is_counted_and_moves_the_average() {
        let mut voq = red(3, RedConfig { drops: Drops::Beyond, ..marks_from(2, 0.25) });
        // Averages 0, 1/4, 11/16; the queue is full at 1.27 and 1.70, and 2.02 is beyond the threshold.
        (0..3).for_each(|_| assert!(offer(&mut voq, 1000, Ecn::Ect0, 0).0));
        (0..2).for_each(|_| assert!(!offer(&mut voq, 1000, Ecn::Ect0, 0).0));
        voq.resize(Some(Length::Packets(9)), None);
        assert_eq!(offer(&mut voq, 1000, Ecn::Ect0, 0), (false, false));
        let counts = voq.counts();
        assert_eq!((counts.offered, counts.dropped, counts.marked), (6, 3, 0));
    }

    /// 3,000 bytes hold three packets of 1,000 bytes, and the third, with which 2,000 bytes are exceeded, is marked.
    #[test]
    fn limits_and_thresholds_in_bytes_count_what_waits() {
        let bytes = |n| Length::Bytes(Bytes::new(n));
        let mut voq = voq(Discipline { queue: Some(bytes(3000)), ecn: Some(bytes(2000)), ..Discipline::default() });
        let mut seen = || offer(&mut voq, 1000, Ecn::Ect0, 0);
        assert_eq!([seen(), seen(), seen(), seen()], [(true, false), (true, false), (true, true), (false, false)]);
        voq.resize(Some(bytes(1500)), Some(bytes(500)));
        assert_eq!([voq.drop_excess(at(0)).is_some(), voq.drop_excess(at(0)).is_some()], [true, true]);
        assert_eq!((voq.drop_excess(at(0)), voq.bytes()), (None, Bytes::new(1000)));
        assert_eq!(offer(&mut voq, 500, Ecn::Ect0, 0), (true, true));
        let counts = voq.counts();
        assert_eq!((counts.dropped, counts.dropped_by_resizing, counts.marked), (1, 2, 2));
    }

    #[derive(Clone, Debug)]
    enum VoqOp {
        Offer(Ecn),
        Take,
        Resize(u32, Option<u32>),
    }

    fn op() -> impl Strategy<Value = VoqOp> {
        let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ce)];
        prop_oneof![
            4 => ecn.prop_map(VoqOp::Offer),
            2 => Just(VoqOp::Take),
            1 => (0u32..20, prop::option::of(0u32..20)).prop_map(|(c, e)| VoqOp::Resize(c, e)),
        ]
    }

    proptest! {
        #[test]
        fn every_packet_is_accounted_for_and_order_holds(ops in prop::collection::vec(op(), 0..300)) {
            let (mut capacity, mut threshold) = (8, Some(3));
            let mut voq = voq(Discipline::packets(Some(8), Some(3)));
            let (mut next, mut model) = (0, std::collections::VecDeque::new());
            for op in ops {
                match op {
                    VoqOp::Offer(ecn) => {
                        let mut packet = Packet::default().with_ecn(ecn);
                        let fits = (model.len() as u32) < capacity;
                        prop_assert_eq!(voq.offer(PacketId(next), &mut packet, Time::ZERO).is_ok(), fits);
                        if fits {
                            model.push_back(PacketId(next));
                            let over = threshold.is_some_and(|k| model.len() as u32 > k);
                            let ce = ecn == Ecn::Ce || over && ecn != Ecn::NotEct;
                            prop_assert_eq!(packet.ecn() == Ecn::Ce, ce);
                        }
                        next += 1;
                    }
                    VoqOp::Take => prop_assert_eq!(voq.take(Time::ZERO), model.pop_front()),
                    VoqOp::Resize(packets, mark) => {
                        (capacity, threshold) = (packets, mark);
                        voq.resize(Some(Length::Packets(packets)), mark.map(Length::Packets));
                        while let Some(id) = voq.drop_excess(Time::ZERO) {
                            prop_assert_eq!(Some(id), model.pop_back());
                        }
                        prop_assert!(model.len() as u32 <= capacity);
                    }
                }
                let c = voq.counts();
                prop_assert_eq!(voq.len() as usize, model.len());
                prop_assert_eq!(c.offered, c.sent + c.dropped + c.dropped_by_resizing + u64::from(voq.len()));
            }
        }
    }
}
