//! A VOQ: the packets of one pair of racks, waiting at the source's ToR.
//!
//! Tail drop and threshold marking, both counted in packets, and a capacity that the schedule changes (Etalon,
//! NSDI'20, section 5.1). Shrinking keeps the oldest packets and drops the excess from the tail. RED takes the place of
//! the threshold where it is asked for (`voq_red.rs`).

use crate::discipline::Verdict;
use crate::voq_red::VoqRed;
use crate::{Ecn, Packet, PacketId, RedConfig, Ring, Serializer};
use firstlight_units::Time;

/// Capacity and marking threshold, in packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VoqLimits {
    /// Drop beyond this many.
    pub capacity: u32,
    /// Mark beyond this many; `None` for no marks.
    pub ecn: Option<u32>,
}

/// What happened to a VOQ's packets since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VoqCounts {
    /// Packets that came.
    pub offered: u64,
    /// Packets taken for transmission.
    pub taken: u64,
    /// Dropped because the queue was full, or by RED.
    pub dropped_full: u64,
    /// Dropped because the queue shrank.
    pub dropped_shrink: u64,
    /// CE-marked.
    pub marked: u64,
    /// Most packets that ever waited.
    pub peak: u32,
}

/// The queue.
#[derive(Clone, Debug)]
pub struct Voq {
    packets: Ring<PacketId>,
    limits: VoqLimits,
    counts: VoqCounts,
    red: Option<Box<VoqRed>>,
}

impl Voq {
    /// An empty queue.
    pub fn new(limits: VoqLimits) -> Self {
        Voq { packets: Ring::with_capacity(16), limits, counts: VoqCounts::default(), red: None }
    }

    /// The same with RED, whose idle times are counted in packets at the rate of `serializer`.
    #[must_use]
    pub fn with_red(self, config: &RedConfig, serializer: &Serializer, seed: u64) -> Self {
        Voq { red: Some(Box::new(VoqRed::new(config, serializer, seed))), ..self }
    }

    /// Queues a packet; false when the queue is full, or RED drops it, and the packet is lost.
    #[inline]
    #[must_use]
    pub fn offer(&mut self, id: PacketId, packet: &mut Packet, now: Time) -> bool {
        self.counts.offered += 1;
        let verdict = self.judge(packet, now);
        if verdict == Verdict::Drop {
            self.counts.dropped_full += 1;
            return false;
        }
        self.packets.push(id);
        self.counts.peak = self.counts.peak.max(self.len());
        if verdict == Verdict::Mark {
            self.counts.marked += u64::from(packet.mark());
        }
        true
    }

    #[inline]
    fn judge(&mut self, packet: &Packet, now: Time) -> Verdict {
        let (waiting, VoqLimits { capacity, ecn }) = (self.len(), self.limits);
        let full = waiting >= capacity;
        match &mut self.red {
            Some(red) => red.on_arrival(packet, full, now),
            None if full => Verdict::Drop,
            None if ecn.is_some_and(|threshold| waiting >= threshold) && packet.ecn() != Ecn::NotEct => Verdict::Mark,
            None => Verdict::Pass,
        }
    }

    /// Counts a packet that came, and that somebody else dropped.
    pub fn refuse(&mut self) {
        self.counts.offered += 1;
        self.counts.dropped_full += 1;
    }

    /// The packet that would be taken next.
    #[inline]
    pub fn front(&self) -> Option<PacketId> {
        self.packets.front()
    }

    /// Those that wait, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = PacketId> + '_ {
        self.packets.iter()
    }

    /// Takes the oldest packet.
    #[inline]
    pub fn take(&mut self, now: Time) -> Option<PacketId> {
        let id = self.packets.pop()?;
        self.counts.taken += 1;
        if let Some(red) = &mut self.red {
            red.on_taken(now);
        }
        Some(id)
    }

    /// Changes the limits. Call [`Voq::drop_excess`] until it is empty-handed.
    pub fn set_limits(&mut self, limits: VoqLimits) {
        self.limits = limits;
    }

    /// Drops the youngest packet if more wait than may.
    pub fn drop_excess(&mut self, now: Time) -> Option<PacketId> {
        if self.len() <= self.limits.capacity {
            return None;
        }
        self.counts.dropped_shrink += 1;
        if let Some(red) = &mut self.red {
            red.on_dropped(now);
        }
        self.packets.pop_back()
    }

    /// Packets waiting.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.packets.len()
    }

    /// True when none waits.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The limits in force.
    pub fn limits(&self) -> VoqLimits {
        self.limits
    }

    /// What happened so far.
    pub fn counts(&self) -> VoqCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Op {
        Offer(Ecn),
        Take,
        Resize(u32, Option<u32>),
    }

    fn op() -> impl Strategy<Value = Op> {
        let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ce)];
        prop_oneof![
            4 => ecn.prop_map(Op::Offer),
            2 => Just(Op::Take),
            1 => (0u32..20, prop::option::of(0u32..20)).prop_map(|(c, e)| Op::Resize(c, e)),
        ]
    }

    proptest! {
        #[test]
        fn every_packet_is_accounted_for_and_order_holds(ops in prop::collection::vec(op(), 0..300)) {
            let mut voq = Voq::new(VoqLimits { capacity: 8, ecn: Some(3) });
            let (mut next, mut model) = (0, std::collections::VecDeque::new());
            for op in ops {
                match op {
                    Op::Offer(ecn) => {
                        let mut packet = Packet::default().with_ecn(ecn);
                        let limits = voq.limits();
                        let fits = (model.len() as u32) < limits.capacity;
                        prop_assert_eq!(voq.offer(PacketId(next), &mut packet, Time::ZERO), fits);
                        if fits {
                            model.push_back(PacketId(next));
                            let over = limits.ecn.is_some_and(|k| model.len() as u32 > k);
                            let ce = ecn == Ecn::Ce || over && ecn != Ecn::NotEct;
                            prop_assert_eq!(packet.ecn() == Ecn::Ce, ce);
                        }
                        next += 1;
                    }
                    Op::Take => prop_assert_eq!(voq.take(Time::ZERO), model.pop_front()),
                    Op::Resize(capacity, ecn) => {
                        voq.set_limits(VoqLimits { capacity, ecn });
                        while let Some(id) = voq.drop_excess(Time::ZERO) {
                            prop_assert_eq!(Some(id), model.pop_back());
                        }
                        prop_assert!(model.len() as u32 <= capacity);
                    }
                }
                let c = voq.counts();
                prop_assert_eq!(voq.len() as usize, model.len());
                prop_assert_eq!(c.offered, c.taken + c.dropped_full + c.dropped_shrink + u64::from(voq.len()));
            }
        }
    }
}
