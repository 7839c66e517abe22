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
use super::lossless::Place;
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
    /// Packets for which a lossless switch had no room.
    pub(super) dropped: u64,
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
        Downlink { line, inputs, turns: RoundRobin::new(racks), places, entered: 0, dropped: 0, peak: 0 }
    }

    #[inline]
    fn has_room(&self, src: usize) -> bool {
        self.inputs[src].len() < self.places
    }

    /// Whether no packet waits.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// The packet whose turn is next.
    pub(super) fn next(&self) -> Option<PacketId> {
        self.inputs[self.turns.next()?].front()
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
    pub(super) fn wake_uplink<const P: bool>(&mut self, core: &mut Core, src: usize) {
        if !core.is_scheduled(Kind::UplinkFree, src) {
            let next = self.serve_uplink::<P>(core, src);
            core.schedule(next, Kind::UplinkFree, src);
        } else if P && !self.uplinks[src].turns.is_empty() {
            let free = self.uplinks[src].line.free_at() <= core.now;
            if self.is_overdue(Kind::UplinkFree, src, free) {
                self.on_uplink_free::<P>(core, src);
            }
        }
    }

    pub(super) fn on_uplink_free<const P: bool>(&mut self, core: &mut Core, src: usize) {
        if P {
            self.finish_uplink(core, src);
        }
        let next = self.serve_uplink::<P>(core, src);
        core.reschedule(next, Kind::UplinkFree, src);
    }

    /// Sends if it can. Tells when to try again; `None` when nothing is sendable.
    #[inline]
    fn serve_uplink<const P: bool>(&mut self, core: &mut Core, src: usize) -> Option<Time> {
        let now = core.now;
        if P && let Some(free) = self.hold_uplink(now, src) {
            return free;
        }
        let uplink = &mut self.uplinks[src];
        if uplink.turns.is_empty() {
            return None;
        }
        if uplink.line.free_at() > now {
            return Some(uplink.line.free_at());
        }
        let dst = uplink.turns.take_turn()?;
        let pair = &mut self.pairs[src * self.racks + dst];
        let id = pair.voq.take(now).expect("a VOQ on its turn is not empty");
        let size = core.arena.get(id).size();
        pair.packet_packets += 1;
        pair.packet_bytes += u64::from(size);
        pair.order.on_sent(Network::Packet);
        self.on_passed(core, id, src * self.racks + dst);
        let uplink = &mut self.uplinks[src];
        let alone = uplink.line.send(id, size, now);
        core.schedule(alone, Kind::Uplink, src);
        self.refresh(src, dst);
        if P {
            self.begin(Kind::UplinkFree, src, id, self.uplinks[src].turns.is_empty());
        }
        let uplink = &self.uplinks[src];
        (P || !uplink.turns.is_empty()).then(|| uplink.line.free_at())
    }

    pub(super) fn on_uplink_arrival<const P: bool>(&mut self, core: &mut Core, src: usize) {
        let (id, next) = self.uplinks[src].line.arrive();
        core.reschedule(next, Kind::Uplink, src);
        if self.downlinks.is_empty() {
            return self.on_rack_arrival::<P>(core, id, src, Network::Packet);
        }
        let dst = self.rack(core.arena.get(id).dst());
        self.enter_downlink::<P>(core, id, src, dst, Some(Place::Uplink(src)));
    }

    /// A packet that came from `src` is queued for `dst`, or one that the switch made itself.
    #[inline]
    pub(super) fn enter_downlink<const P: bool>(
        &mut self,
        core: &mut Core,
        id: PacketId,
        src: usize,
        dst: usize,
        from: Option<Place>,
    ) {
        if P && from.is_some_and(|from| !self.has_room(from, core.arena.get(id).size())) {
            let downlink = &mut self.downlinks[dst];
            downlink.entered += 1;
            downlink.dropped += 1;
            return core.lose(id, Kind::DownlinkFree, dst);
        }
        let downlink = &mut self.downlinks[dst];
        let input = &mut downlink.inputs[src];
        input.push(id);
        downlink.entered += 1;
        downlink.peak = downlink.peak.max(input.len());
        downlink.turns.set(src, true);
        if !downlink.has_room(src) {
            self.refresh(src, dst);
        }
        if P {
            self.hold(core, id, from, Place::Downlink(dst));
            self.note_head(core, Place::Downlink(dst), core.now);
        }
        if !self.points.is_empty() {
            self.on_queued_at_switch::<P>(core, dst, id);
        }
        self.wake_downlink::<P>(core, dst);
        if P {
            self.downlink_changed(core.now, dst);
        }
    }

    #[inline]
    pub(super) fn wake_downlink<const P: bool>(&mut self, core: &mut Core, dst: usize) {
        if !core.is_scheduled(Kind::DownlinkFree, dst) {
            let next = self.serve_downlink::<P>(core, dst);
            core.schedule(next, Kind::DownlinkFree, dst);
        } else if P && !self.downlinks[dst].turns.is_empty() {
            let free = self.downlinks[dst].line.free_at() <= core.now;
            if self.is_overdue(Kind::DownlinkFree, dst, free) {
                self.on_downlink_free::<P>(core, dst);
            }
        }
    }

    pub(super) fn on_downlink_free<const P: bool>(&mut self, core: &mut Core, dst: usize) {
        if P {
            self.finish_downlink(core, dst);
        }
        let next = self.serve_downlink::<P>(core, dst);
        core.reschedule(next, Kind::DownlinkFree, dst);
    }

    #[inline]
    fn serve_downlink<const P: bool>(&mut self, core: &mut Core, dst: usize) -> Option<Time> {
        let now = core.now;
        if P && let Some(free) = self.hold_downlink(now, dst) {
            return free;
        }
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
        if let Some(point) = self.points.downlinks.get_mut(dst) {
            point.on_gone(core.arena.get(id));
        }
        let alone = downlink.line.send(id, core.arena.get(id).size(), now);
        let next = (P || !downlink.turns.is_empty()).then(|| downlink.line.free_at());
        core.schedule(alone, Kind::Downlink, dst);
        if P {
            self.begin(Kind::DownlinkFree, dst, id, self.downlinks[dst].turns.is_empty());
        }
        if was_full {
            self.refresh(src, dst);
            self.wake_uplink::<P>(core, src);
        }
        next
    }

    pub(super) fn on_downlink_arrival<const P: bool>(&mut self, core: &mut Core, dst: usize) {
        let (id, next) = self.downlinks[dst].line.arrive();
        core.reschedule(next, Kind::Downlink, dst);
        let src = self.rack(core.arena.get(id).src());
        self.on_rack_arrival::<P>(core, id, src, Network::Packet);
    }
}
