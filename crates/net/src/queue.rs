//! Packets that wait in their order, and the policer that judges those that come: the queue of a port's traffic class,
//! and that of a pair of racks.

use crate::discipline::{Policer, QueueState, Verdict};
use crate::switch_port::QueueFull;
use crate::{Ecn, Packet, PacketId, Ring};
use firstlight_units::Bytes;

/// A waiting packet: its number, and the fields of its record that its transmission needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueuedPacket {
    pub(crate) id: PacketId,
    pub(crate) size: u16,
    pub(crate) ecn: Ecn,
}

/// Counters of a queue's packets since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueCounts {
    /// Packets offered to the queue.
    pub offered: u64,
    /// Packets that a transmitter took.
    pub sent: u64,
    /// Packets that the discipline dropped, or the switch refused.
    pub dropped: u64,
    /// Packets dropped because the queue's limit became smaller.
    pub dropped_by_resizing: u64,
    /// Packets that the discipline marked.
    pub marked: u64,
    /// Most packets that ever waited.
    pub peak: u32,
}

/// The queue.
#[derive(Clone, Debug)]
pub(crate) struct PolicedQueue {
    packets: Ring<QueuedPacket>,
    /// Bytes that wait.
    bytes: u64,
    pub(crate) policer: Policer,
    pub(crate) counts: QueueCounts,
}

impl PolicedQueue {
    /// An empty queue.
    pub(crate) fn new(policer: Policer) -> Self {
        PolicedQueue { packets: Ring::with_capacity(16), bytes: 0, policer, counts: QueueCounts::default() }
    }

    /// Judges a packet that comes. One that is not dropped is to be pushed, or to be sent at once.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        id: PacketId,
        packet: &mut Packet,
        state: &QueueState,
    ) -> Result<QueuedPacket, QueueFull> {
        let verdict = self.policer.admit(packet.ecn(), state);
        self.carry_out(verdict, id, packet)
    }

    /// Admits a packet that will wait in any case, where the policer needs nothing but the number of those that
    /// wait.
    #[inline]
    pub(crate) fn admit_waiting(&mut self, id: PacketId, packet: &mut Packet) -> Result<QueuedPacket, QueueFull> {
        let verdict = self.policer.admit_waiting(packet.ecn(), self.len());
        self.carry_out(verdict, id, packet)
    }

    #[inline]
    fn carry_out(&mut self, verdict: Verdict, id: PacketId, packet: &mut Packet) -> Result<QueuedPacket, QueueFull> {
        self.counts.offered += 1;
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark => self.counts.marked += u64::from(packet.mark()),
            Verdict::Drop => {
                self.counts.dropped += 1;
                return Err(QueueFull);
            }
        }
        Ok(QueuedPacket { id, size: packet.size(), ecn: packet.ecn() })
    }

    /// Counts a packet that the switch refused before it was queued.
    pub(crate) fn refuse(&mut self) {
        self.counts.offered += 1;
        self.counts.dropped += 1;
    }

    /// Lets an admitted packet wait.
    #[inline]
    pub(crate) fn push(&mut self, packet: QueuedPacket) {
        self.packets.push(packet);
        self.bytes += u64::from(packet.size);
        self.counts.peak = self.counts.peak.max(self.len());
    }

    /// Takes the oldest packet that waits.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<QueuedPacket> {
        let packet = self.packets.pop()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// Takes the youngest packet that waits.
    pub(crate) fn pop_back(&mut self) -> Option<QueuedPacket> {
        let packet = self.packets.pop_back()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// The oldest packet that waits.
    #[inline]
    pub(crate) fn front(&self) -> Option<PacketId> {
        self.packets.front().map(|packet| packet.id)
    }

    /// Bytes that wait.
    #[inline]
    pub(crate) fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }

    /// Packets that wait.
    #[inline]
    pub(crate) const fn len(&self) -> u32 {
        self.packets.len()
    }

    /// Whether no packet waits.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}
