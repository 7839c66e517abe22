//! RED on the average length of a VOQ (`red.rs` has the algorithm and its source).
//!
//! A VOQ is measured by what waits in it, in packets or in bytes: what a circuit or an uplink has begun to send is gone.
//!
//! The idle time begins when the last packet is taken. m, the packets that could have been sent since, is counted at the
//! rate of the packet network, whoever took the last one: a circuit serves a VOQ only now and then. An arrival that finds
//! the VOQ empty counts as one at least: else the average would stand still, though nothing waits, where a faster server
//! empties the VOQ between arrivals that are less than a packet's time apart.

use crate::discipline::{Found, Verdict};
use crate::red::{Red, RedConfig};
use crate::{Packet, Ring, Serializer};
use firstlight_units::{Bytes, Span, Time};

/// RED at work on one VOQ.
#[derive(Clone, Debug)]
pub(crate) struct VoqRed {
    red: Red,
    /// Of the packet network.
    serializer: Serializer,
    typical: Span,
    sizes: Ring<u16>,
    bytes: Bytes,
    /// Since when nothing waits, if nothing does.
    empty_since: Option<Time>,
}

impl VoqRed {
    pub(crate) fn new(config: &RedConfig, serializer: &Serializer, seed: u64) -> Self {
        VoqRed {
            red: Red::new(config, serializer, seed),
            serializer: *serializer,
            typical: serializer.time_of(config.typical_packet),
            sizes: Ring::with_capacity(16),
            bytes: Bytes::new(0),
            empty_since: Some(Time::ZERO),
        }
    }

    /// Judges a packet that comes; one that is not dropped is queued.
    pub(crate) fn on_arrival(&mut self, packet: &Packet, full: bool, now: Time) -> Verdict {
        let is_idle = |since: &Time| now.saturating_since(*since) >= self.typical;
        self.red.on_arrival(&Found {
            now,
            waiting: self.sizes.len(),
            backlog: self.serializer.time_of(self.bytes),
            time: Span::ZERO,
            at_once: false,
            empty_since: self.empty_since.filter(is_idle),
        });
        let verdict = if full { Verdict::Drop } else { self.red.judge(packet.ecn()) };
        if verdict != Verdict::Drop {
            self.sizes.push(packet.size());
            self.bytes += Bytes::new(u64::from(packet.size()));
            self.empty_since = None;
        }
        verdict
    }

    /// The oldest packet is taken.
    pub(crate) fn on_taken(&mut self, now: Time) {
        let size = self.sizes.pop();
        self.forget(size, now);
    }

    /// The youngest packet is dropped.
    pub(crate) fn on_dropped(&mut self, now: Time) {
        let size = self.sizes.pop_back();
        self.forget(size, now);
    }

    fn forget(&mut self, size: Option<u16>, now: Time) {
        let size = size.expect("RED knows all packets of its VOQ");
        self.bytes = Bytes::new(self.bytes.get() - u64::from(size));
        if self.sizes.is_empty() {
            self.empty_since = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Band, Drops, Ecn, Packet, PacketId, RedConfig, Serializer, Voq, VoqLimits};
    use firstlight_units::{Bytes, Rate, Span, Time};

    /// Packets of 1,000 bytes, each of which lasts 800 ns.
    fn voq(capacity: u32, config: RedConfig) -> Voq {
        let serializer = Serializer::new(Rate::from_gbps(10), 1);
        let config = RedConfig { typical_packet: Bytes::new(1000), ..config };
        Voq::new(VoqLimits { capacity, ecn: None }).with_red(&config, &serializer, 11)
    }

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    /// Whether the packet was queued, and whether it was marked.
    fn offer(voq: &mut Voq, size: u16, ecn: Ecn, ns: u64) -> (bool, bool) {
        let mut packet = Packet::default().with_size(size).with_ecn(ecn);
        (voq.offer(PacketId(0), &mut packet, at(ns)), packet.ecn() == Ecn::Ce)
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

    /// p_b = 0.1 * (15 - 5) / (25 - 5) = 0.05: gaps are uniform on 1..=20, their mean 10.5, their deviation 5.77. Of 105,000
    /// packets 10,000 are marked, with a deviation of sqrt(10,000) * 5.77 / 10.5 = 55.
    #[test]
    fn a_voq_held_at_a_length_is_marked_as_the_formula_says() {
        let in_packets = Band::Packets { min: 5, max: 25 };
        let in_bytes = Band::Bytes { min: Bytes::new(5000), max: Bytes::new(25_000) };
        for band in [in_packets, in_bytes] {
            let mut voq = voq(100, RedConfig { max_probability: 0.1, weight: 0.5, ..RedConfig::new(band) });
            (0..16).for_each(|_| assert!(offer(&mut voq, 1000, Ecn::Ect0, 0).0));
            marks(&mut voq, 100);
            let marked = marks(&mut voq, 105_000);
            assert!(marked.abs_diff(10_000) < 4 * 55, "{marked} marks with {band:?}");
        }
    }

    /// Between the thresholds nothing is certain, so the band is none: an average of `length` or more marks.
    fn marks_from(length: u32, weight: f64) -> RedConfig {
        let band = Band::Packets { min: length, max: length };
        RedConfig { weight, drops: Drops::Unmarkable, ..RedConfig::new(band) }
    }

    /// A VOQ whose average is 4 when its last packet is taken, at 10 us.
    fn emptied() -> Voq {
        let mut voq = voq(100, marks_from(1, 0.5));
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

    /// What shrinking drops is no longer counted.
    #[test]
    fn bytes_leave_at_both_ends() {
        let band = Band::Bytes { min: Bytes::new(3500), max: Bytes::new(3500) };
        let config = RedConfig { weight: 1.0, drops: Drops::Unmarkable, ..RedConfig::new(band) };
        let mut voq = voq(100, config);
        for size in [1000, 1500, 2000] {
            assert_eq!(offer(&mut voq, size, Ecn::Ect0, 0), (true, false));
        }
        assert_eq!(offer(&mut voq, 64, Ecn::Ect0, 0), (true, true), "4,500 bytes wait");
        voq.set_limits(VoqLimits { capacity: 2, ecn: None });
        while voq.drop_excess(at(0)).is_some() {}
        voq.set_limits(VoqLimits { capacity: 100, ecn: None });
        assert_eq!(offer(&mut voq, 1500, Ecn::Ect0, 0), (true, false), "2,500 bytes wait");
        assert_eq!(offer(&mut voq, 64, Ecn::Ect0, 0), (true, true), "4,000 bytes wait");
        voq.take(at(0));
        assert_eq!(offer(&mut voq, 64, Ecn::Ect0, 0), (true, false), "3,064 bytes wait");
    }

    #[test]
    fn what_red_and_a_full_voq_drop_is_counted_and_moves_the_average() {
        let mut voq = voq(3, RedConfig { drops: Drops::Beyond, ..marks_from(2, 0.25) });
        // Averages 0, 1/4, 11/16; the queue is full at 1.27 and 1.70, and 2.02 is beyond the threshold.
        (0..3).for_each(|_| assert!(offer(&mut voq, 1000, Ecn::Ect0, 0).0));
        (0..2).for_each(|_| assert!(!offer(&mut voq, 1000, Ecn::Ect0, 0).0));
        voq.set_limits(VoqLimits { capacity: 9, ecn: None });
        assert_eq!(offer(&mut voq, 1000, Ecn::Ect0, 0), (false, false));
        let counts = voq.counts();
        assert_eq!((counts.offered, counts.dropped_full, counts.marked), (6, 3, 0));
    }
}
