//! The packet network of a hybrid fabric: an uplink per rack, a switch, a downlink per rack.
//!
//! An uplink serves its rack's VOQs round robin, among those whose packet path is on and whose queue in the switch is
//! not full. A downlink serves its small per-input queues round robin. The switch never drops: packets that do not fit
//! wait at the VOQ (Etalon, NSDI'20, section 4.1: "held at the ToR VOQ, similar to PFC"). As with PFC, there is
//! headroom for packets that are on the uplink when their queue fills: at most those of one propagation delay of the
//! uplink. They do not count against the queue before they arrive. Otherwise a pair's ACKs would get only three small
//! packets per propagation delay.

use super::core::Core;
use super::hybrid::HybridFabric;
use super::link_layer::LinkLayer;
use super::lossless::PausePoint;
use super::transmitter::Transmitter;
use crate::causes::{LossPlace, PlaceKind};
use crate::events::EventKind;
use crate::meter::Carrier;
use firstlight_net::{Line, PacketId, PauseControl, Ring, RoundRobin, Sent};
use firstlight_units::{Bytes, Time};
use std::ops::ControlFlow;

/// A rack's uplink.
pub(super) struct Uplink<C> {
    pub(super) transmitter: Transmitter<C>,
    /// Destinations whose VOQ the uplink may serve.
    pub(super) turns: RoundRobin,
}

/// A rack's downlink, with the switch's queues before it.
pub(super) struct Downlink<C> {
    pub(super) transmitter: Transmitter<C>,
    /// One queue per source rack.
    inputs: Vec<Ring<PacketId>>,
    turns: RoundRobin,
    /// Packets that each input queue holds before its VOQ is held.
    limit: u32,
    /// Bytes that wait in all inputs.
    bytes: u64,
    pub(super) entered: u64,
    /// Packets for which a lossless switch had no room.
    pub(super) dropped: u64,
    pub(super) peak: u32,
}

impl<C: PauseControl> Uplink<C> {
    pub(super) fn new(line: Line, racks: usize) -> Self {
        Uplink { transmitter: Transmitter::new(line), turns: RoundRobin::new(racks) }
    }
}

impl<C: PauseControl> Downlink<C> {
    pub(super) fn new(line: Line, racks: usize, limit: u32) -> Self {
        let inputs = (0..racks).map(|_| Ring::with_capacity(4)).collect();
        let (transmitter, turns) = (Transmitter::new(line), RoundRobin::new(racks));
        Downlink { transmitter, inputs, turns, limit, bytes: 0, entered: 0, dropped: 0, peak: 0 }
    }

    #[inline]
    fn has_room(&self, src: usize) -> bool {
        self.inputs[src].len() < self.limit
    }

    /// Whether no packet waits.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Packets that wait.
    pub(super) fn waiting(&self) -> u64 {
        self.inputs.iter().map(|input| u64::from(input.len())).sum()
    }

    /// The packet whose turn is next.
    pub(super) fn next(&self) -> Option<PacketId> {
        self.inputs[self.turns.next()?].front()
    }

    #[inline]
    fn push(&mut self, src: usize, id: PacketId, size: u16) {
        let input = &mut self.inputs[src];
        input.push(id);
        self.bytes += u64::from(size);
        self.entered += 1;
        self.peak = self.peak.max(input.len());
        self.turns.set(src, true);
    }

    #[inline]
    fn pop(&mut self, src: usize) -> PacketId {
        let id = self.inputs[src].pop().expect("an input on its turn is not empty");
        self.turns.set(src, !self.inputs[src].is_empty());
        id
    }
}

impl<L: LinkLayer> HybridFabric<L> {
    /// Brings the uplink's view of a VOQ up to date.
    #[inline]
    pub(super) fn refresh(&mut self, src: usize, dst: usize) {
        let pair = &self.racks.pairs[src * self.racks.count + dst];
        let fits = self.downlinks.get(dst).is_none_or(|downlink| downlink.has_room(src));
        self.uplinks[src].turns.set(dst, pair.off == 0 && fits && !pair.packet_queue().is_empty());
    }

    /// Something may have become sendable on this uplink.
    #[inline]
    pub(super) fn wake_uplink(&mut self, core: &mut Core, src: usize) {
        if !core.is_scheduled(EventKind::UplinkFree, src) {
            let next = self.serve_uplink(core, src);
            core.schedule(next, EventKind::UplinkFree, src);
        } else if !self.uplinks[src].turns.is_empty() && self.uplinks[src].transmitter.goes_ahead(core.now) {
            self.on_uplink_free(core, src);
        }
    }

    pub(super) fn on_uplink_free(&mut self, core: &mut Core, src: usize) {
        match self.uplinks[src].transmitter.finish() {
            Some(Sent::Packet(id)) => {
                let dst = self.racks.rack(core.arena.get(id).dst());
                L::on_departure(self, core, id, PausePoint::Voq(src, dst));
            }
            Some(Sent::Pause(classes)) => L::on_pause_frame(self, core, PausePoint::Uplink(src), classes),
            None => {}
        }
        let next = self.serve_uplink(core, src);
        core.reschedule(next, EventKind::UplinkFree, src);
    }

    /// Sends if it can. Returns when to try again; `None` when nothing is sendable.
    #[inline]
    fn serve_uplink(&mut self, core: &mut Core, src: usize) -> Option<Time> {
        let now = core.now;
        let uplink = &mut self.uplinks[src];
        if let ControlFlow::Break(again) = uplink.transmitter.hold(now) {
            return again;
        }
        if uplink.turns.is_empty() {
            return None;
        }
        if uplink.transmitter.line.free_at() > now {
            return Some(uplink.transmitter.line.free_at());
        }
        let dst = uplink.turns.take_turn()?;
        let pair = self.racks.pair(src, dst);
        let (id, size) = self.racks.take(core, pair, Carrier::Packet).expect("a VOQ on its turn is not empty");
        let alone = self.uplinks[src].transmitter.send(id, size, now);
        core.schedule(alone, EventKind::Uplink, src);
        self.refresh(src, dst);
        let uplink = &mut self.uplinks[src];
        let next = (!uplink.turns.is_empty()).then(|| uplink.transmitter.line.free_at());
        uplink.transmitter.next(next)
    }

    /// A packet that had waited in a VOQ of this rack has passed the link behind it.
    pub(super) fn record_voq(&self, core: &mut Core, id: PacketId, src: usize) {
        let pair = self.racks.pair(src, self.racks.rack(core.arena.get(id).dst()));
        core.record_queue(id, LossPlace::Voq(pair as u32), || self.racks.pairs[pair].waiting_bytes());
    }

    pub(super) fn on_uplink_arrival(&mut self, core: &mut Core, src: usize) {
        let (id, next) = self.uplinks[src].transmitter.line.arrive();
        core.reschedule(next, EventKind::Uplink, src);
        if core.recorder.is_some() {
            core.record_hop(id, PlaceKind::Uplink, src);
            self.record_voq(core, id, src);
        }
        if self.downlinks.is_empty() {
            return self.on_rack_arrival(core, id, src, Carrier::Packet);
        }
        let dst = self.racks.rack(core.arena.get(id).dst());
        self.enter_downlink(core, id, src, dst, Some(PausePoint::Uplink(src)));
    }

    /// A packet that came from `src` is queued for `dst`, or one that the switch made itself.
    #[inline]
    pub(super) fn enter_downlink(
        &mut self,
        core: &mut Core,
        id: PacketId,
        src: usize,
        dst: usize,
        from: Option<PausePoint>,
    ) {
        let size = core.arena.get(id).size();
        if !L::has_room(self, from, size) {
            let downlink = &mut self.downlinks[dst];
            downlink.entered += 1;
            downlink.dropped += 1;
            return core.lose(id, EventKind::DownlinkFree, dst);
        }
        let downlink = &mut self.downlinks[dst];
        downlink.push(src, id, size);
        if !downlink.has_room(src) {
            self.refresh(src, dst);
        }
        L::on_queued(self, core, id, from, PausePoint::Downlink(dst));
        L::record_head(self, core, PausePoint::Downlink(dst));
        if !self.racks.points.is_empty() {
            let bytes = Bytes::new(self.downlinks[dst].bytes);
            self.sample_downlink(core, dst, id, bytes);
        }
        self.wake_downlink(core, dst);
        L::update_victims(self, core.now, PausePoint::Downlink(dst));
    }

    #[inline]
    pub(super) fn wake_downlink(&mut self, core: &mut Core, dst: usize) {
        if !core.is_scheduled(EventKind::DownlinkFree, dst) {
            let next = self.serve_downlink(core, dst);
            core.schedule(next, EventKind::DownlinkFree, dst);
        } else if !self.downlinks[dst].turns.is_empty() && self.downlinks[dst].transmitter.goes_ahead(core.now) {
            self.on_downlink_free(core, dst);
        }
    }

    pub(super) fn on_downlink_free(&mut self, core: &mut Core, dst: usize) {
        match self.downlinks[dst].transmitter.finish() {
            Some(Sent::Packet(id)) => {
                L::update_victims(self, core.now, PausePoint::Downlink(dst));
                L::on_departure(self, core, id, PausePoint::Downlink(dst));
            }
            Some(Sent::Pause(classes)) => L::on_pause_frame(self, core, PausePoint::Downlink(dst), classes),
            None => {}
        }
        let next = self.serve_downlink(core, dst);
        core.reschedule(next, EventKind::DownlinkFree, dst);
    }

    #[inline]
    fn serve_downlink(&mut self, core: &mut Core, dst: usize) -> Option<Time> {
        let now = core.now;
        let downlink = &mut self.downlinks[dst];
        if let ControlFlow::Break(again) = downlink.transmitter.hold(now) {
            return again;
        }
        if downlink.turns.is_empty() {
            return None;
        }
        if downlink.transmitter.line.free_at() > now {
            return Some(downlink.transmitter.line.free_at());
        }
        let src = downlink.turns.take_turn()?;
        let was_full = !downlink.has_room(src);
        let id = downlink.pop(src);
        let size = core.arena.get(id).size();
        downlink.bytes -= u64::from(size);
        let alone = downlink.transmitter.send(id, size, now);
        let next = (!downlink.turns.is_empty()).then(|| downlink.transmitter.line.free_at());
        let next = downlink.transmitter.next(next);
        core.schedule(alone, EventKind::Downlink, dst);
        if was_full {
            self.refresh(src, dst);
            self.wake_uplink(core, src);
        }
        next
    }

    pub(super) fn on_downlink_arrival(&mut self, core: &mut Core, dst: usize) {
        let (id, next) = self.downlinks[dst].transmitter.line.arrive();
        core.reschedule(next, EventKind::Downlink, dst);
        if core.recorder.is_some() {
            core.record_hop(id, PlaceKind::Downlink, dst);
            let place = LossPlace::Queue(PlaceKind::Downlink.code(dst));
            core.record_queue(id, place, || Bytes::new(self.downlinks[dst].bytes));
        }
        let src = self.racks.rack(core.arena.get(id).src());
        self.on_rack_arrival(core, id, src, Carrier::Packet);
    }
}
