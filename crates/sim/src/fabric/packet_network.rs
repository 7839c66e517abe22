//! The packet network of a hybrid fabric: an uplink per rack, a switch, a downlink per rack.
//!
//! An uplink serves its rack's VOQs round robin, among those whose packet path is on and whose queue in the switch is not
//! full. A downlink serves its small per-input queues round robin. The switch never drops: what does not fit waits at
//! the VOQ (Etalon, NSDI'20, section 4.1: "held at the ToR VOQ, similar to PFC"). As with PFC, packets that are on the
//! uplink when their queue fills find headroom: at most the uplink's propagation delay of them. They do not count
//! against the queue before they arrive, or else three small packets per propagation delay would be all that a pair's
//! ACKs get.

use super::core::Core;
use super::hybrid::Hybrid;
use crate::events::Kind;
use crate::meter::Network;
use firstlight_net::{Line, PacketId, Ring, RoundRobin};
use firstlight_units::Time;

/// A rack's uplink.
pub(super) struct Uplink {
    pub(super) line: Line,
    /// Destinations whose VOQ it may serve.
    pub(super) turns: RoundRobin,
}

/// A rack's downlink, with the switch's queues before it.
pub(super) struct Downlink {
    pub(super) line: Line,
    /// One queue per source rack.
    pub(super) inputs: Vec<Ring<PacketId>>,
    turns: RoundRobin,
    /// Packets that each input queue holds before its VOQ is held.
    places: u32,
    pub(super) entered: u64,
    pub(super) peak: u32,
}

impl Uplink {
    pub(super) fn new(line: Line, racks: usize) -> Self {
        Uplink { line, turns: RoundRobin::new(racks) }
    }
}

impl Downlink {
    pub(super) fn new(line: Line, racks: usize, places: u32) -> Self {
        let inputs = (0..racks).map(|_| Ring::with_capacity(4)).collect();
        Downlink { line, inputs, turns: RoundRobin::new(racks), places, entered: 0, peak: 0 }
    }

    #[inline]
    fn has_room(&self, src: usize) -> bool {
        self.inputs[src].len() < self.places
    }
}

impl Hybrid {
    /// Brings the uplink's view of a VOQ up to date.
    #[inline]
    pub(super) fn refresh(&mut self, src: usize, dst: usize) {
        let pair = &self.pairs[src * self.racks + dst];
        let fits = self.downlinks.get(dst).is_none_or(|downlink| downlink.has_room(src));
        self.uplinks[src].turns.set(dst, pair.off == 0 && fits && !pair.voq.is_empty());
    }

    /// Something may have become sendable on this uplink.
    #[inline]
    pub(super) fn wake_uplink(&mut self, core: &mut Core, src: usize) {
        if !core.is_scheduled(Kind::UplinkFree, src) {
            let next = self.serve_uplink(core, src);
            core.schedule(next, Kind::UplinkFree, src);
        }
    }

    pub(super) fn on_uplink_free(&mut self, core: &mut Core, src: usize) {
        let next = self.serve_uplink(core, src);
        core.reschedule(next, Kind::UplinkFree, src);
    }

    /// Sends if it can. Tells when to try again; `None` when nothing is sendable.
    #[inline]
    fn serve_uplink(&mut self, core: &mut Core, src: usize) -> Option<Time> {
        let now = core.now;
        let uplink = &mut self.uplinks[src];
        if uplink.turns.is_empty() {
            return None;
        }
        if uplink.line.free_at() > now {
            return Some(uplink.line.free_at());
        }
        let dst = uplink.turns.take_turn()?;
        let pair = &mut self.pairs[src * self.racks + dst];
        let id = pair.voq.take().expect("a VOQ on its turn is not empty");
        let size = core.arena.get(id).size;
        pair.packet_packets += 1;
        pair.packet_bytes += u64::from(size);
        pair.order.on_sent(Network::Packet);
        self.on_passed(core, id, src * self.racks + dst);
        let uplink = &mut self.uplinks[src];
        let alone = uplink.line.send(id, size, now);
        core.schedule(alone, Kind::Uplink, src);
        self.refresh(src, dst);
        let uplink = &self.uplinks[src];
        (!uplink.turns.is_empty()).then(|| uplink.line.free_at())
    }

    pub(super) fn on_uplink_arrival(&mut self, core: &mut Core, src: usize) {
        let (id, next) = self.uplinks[src].line.arrive();
        core.reschedule(next, Kind::Uplink, src);
        if self.downlinks.is_empty() {
            return self.on_rack_arrival(core, id, src, Network::Packet);
        }
        let dst = self.rack(core.arena.get(id).dst);
        let downlink = &mut self.downlinks[dst];
        let input = &mut downlink.inputs[src];
        input.push(id);
        downlink.entered += 1;
        downlink.peak = downlink.peak.max(input.len());
        downlink.turns.set(src, true);
        if !downlink.has_room(src) {
            self.refresh(src, dst);
        }
        self.wake_downlink(core, dst);
    }

    #[inline]
    fn wake_downlink(&mut self, core: &mut Core, dst: usize) {
        if !core.is_scheduled(Kind::DownlinkFree, dst) {
            let next = self.serve_downlink(core, dst);
            core.schedule(next, Kind::DownlinkFree, dst);
        }
    }

    pub(super) fn on_downlink_free(&mut self, core: &mut Core, dst: usize) {
        let next = self.serve_downlink(core, dst);
        core.reschedule(next, Kind::DownlinkFree, dst);
    }

    #[inline]
    fn serve_downlink(&mut self, core: &mut Core, dst: usize) -> Option<Time> {
        let now = core.now;
        let downlink = &mut self.downlinks[dst];
        if downlink.turns.is_empty() {
            return None;
        }
        if downlink.line.free_at() > now {
            return Some(downlink.line.free_at());
        }
        let src = downlink.turns.take_turn()?;
        let was_full = !downlink.has_room(src);
        let id = downlink.inputs[src].pop().expect("an input on its turn is not empty");
        downlink.turns.set(src, !downlink.inputs[src].is_empty());
        let alone = downlink.line.send(id, core.arena.get(id).size, now);
        let next = (!downlink.turns.is_empty()).then(|| downlink.line.free_at());
        core.schedule(alone, Kind::Downlink, dst);
        if was_full {
            self.refresh(src, dst);
            self.wake_uplink(core, src);
        }
        next
    }

    pub(super) fn on_downlink_arrival(&mut self, core: &mut Core, dst: usize) {
        let (id, next) = self.downlinks[dst].line.arrive();
        core.reschedule(next, Kind::Downlink, dst);
        let src = self.rack(core.arena.get(id).src);
        self.on_rack_arrival(core, id, src, Network::Packet);
    }
}
