//! Segregated routing: elephant flows take circuits only, all other packets the packet network only. It is the routing
//! of Helios and c-Through as Etalon (NSDI'20, sections 2 and 7) describes it: "segregating traffic into mice and
//! elephant flows and routing them exclusively over the packet and circuit networks, respectively".
//!
//! A pair of racks has two VOQs then: that of the elephants, which only circuits serve and which the schedule resizes,
//! and that of all other packets, which only the uplink serves, by day and by night.
//!
//! How elephants are found is our choice, since the paper does not say it: the source's ToR counts the payload of each
//! direction of a connection. Packets without payload, such as pure ACKs, always take the packet network. The counts
//! belong to the ToRs, whose flows are distinct, and stand in one map.

use super::core::Core;
use super::hybrid::HybridFabric;
use super::link_layer::LinkLayer;
use crate::causes::LossPlace;
use crate::config::SegregationConfig;
use crate::events::EventKind;
use firstlight_net::{Packet, PacketId, TcpFlags};
use std::collections::BTreeMap;

/// The counts by which elephants are distinguished from other flows.
pub(super) struct Elephants {
    /// Payload beyond which a flow is an elephant.
    threshold: u64,
    /// Payload that each direction of a connection has brought to its ToR, by the packets' key.
    sent: BTreeMap<u64, u64>,
}

impl Elephants {
    pub(super) fn new(config: &SegregationConfig) -> Self {
        Elephants { threshold: config.elephant.get(), sent: BTreeMap::new() }
    }

    /// Counts a packet that has come to its source's ToR. Returns whether it takes circuits.
    fn count(&mut self, packet: &Packet) -> bool {
        if packet.tcp().is_some_and(|segment| segment.flags().has(TcpFlags::SYN)) {
            // Another connection may have had the same ports before.
            self.sent.remove(&packet.flow_key());
        }
        if !packet.is_data() {
            return false;
        }
        let sent = self.sent.entry(packet.flow_key()).or_default();
        *sent += u64::from(packet.payload());
        *sent > self.threshold
    }
}

impl<L: LinkLayer> HybridFabric<L> {
    /// Queues a packet for the packet network if it is no elephant's. Returns whether that was so; without segregated
    /// routing it never is.
    #[inline]
    pub(super) fn segregate(&mut self, core: &mut Core, id: PacketId, src: usize, dst: usize) -> bool {
        let Some(elephants) = &mut self.racks.elephants else { return false };
        let mouse = !elephants.count(core.arena.get(id));
        if mouse {
            self.enter_mice_voq(core, id, src, dst);
        }
        mouse
    }

    fn enter_mice_voq(&mut self, core: &mut Core, id: PacketId, src: usize, dst: usize) {
        let (now, index) = (core.now, self.racks.pair(src, dst));
        let packet = core.arena.get_mut(id);
        packet.set_queued_at(now);
        let voq =
            self.racks.pairs[index].mice.as_mut().expect("each pair has a VOQ for mice where routing is segregated");
        if voq.offer(id, packet, now).is_err() {
            return core.lose_at(id, (EventKind::UplinkFree, index), LossPlace::MiceVoq(index as u32));
        }
        if voq.len() == 1 {
            self.refresh(src, dst);
        }
        self.wake_uplink(core, src);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_net::{FlowTuple, HostId, TcpHeader};
    use firstlight_units::Bytes;

    fn packet(sport: u16, payload: u16, flags: TcpFlags) -> Packet {
        let tuple = FlowTuple { src: HostId(1), sport, dst: HostId(2), dport: 9 };
        let mut packet = Packet::new_tcp(tuple, 52, 0, TcpHeader::default()).with_size(52 + payload);
        packet.tcp_mut().expect("it is a segment").insert_flags(flags);
        packet
    }

    #[test]
    fn a_flow_is_an_elephant_beyond_the_threshold() {
        let mut elephants = Elephants::new(&SegregationConfig { elephant: Bytes::new(2000) });
        let mut count = |sport, payload, flags| elephants.count(&packet(sport, payload, flags));
        let data = TcpFlags::ACK;
        assert!(!count(1, 1000, data));
        assert!(!count(1, 1000, data), "2000 B do not exceed 2000 B");
        assert!(!count(2, 1000, data), "flows are counted apart");
        assert!(count(1, 1, data));
        assert!(!count(1, 0, data), "a packet without payload is never an elephant's");
        assert!(count(1, 1000, data), "an elephant stays one");
        assert!(!count(1, 0, TcpFlags::SYN));
        assert!(!count(1, 1000, data), "a new connection is counted anew");
    }
}
