//! What is recorded of a run while it goes on: why packets leave when they do, and what changes over time.

use crate::causes::{CauseLog, LossPlace, PathChange, Paused, PlaceKind};
use crate::timeline::TimelineSink;
use firstlight_circuits::Action;
use firstlight_net::{Packet, PacketId};
use firstlight_transport::Standing;
use firstlight_units::{Bytes, Time};

/// What records the events of packets.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) causes: Option<CauseLog>,
    pub(crate) timeline: Option<Box<dyn TimelineSink>>,
}

impl Recorder {
    /// A packet has come to the end of a place.
    #[inline]
    pub(crate) fn hop(&mut self, packet: PacketId, kind: PlaceKind, index: usize, at: Time) {
        if let Some(causes) = &mut self.causes {
            causes.hop(packet, kind, index, at);
        }
    }

    /// A packet has passed the link behind a queue, which holds this number of bytes now.
    pub(crate) fn queue(&mut self, place: LossPlace, packet: &Packet, bytes: impl FnOnce() -> Bytes, at: Time) {
        if let Some(timeline) = &mut self.timeline {
            timeline.queue(place, packet, bytes(), at);
        }
    }

    /// A packet has left its host's stack.
    #[inline]
    pub(crate) fn departure(&mut self, id: PacketId, packet: &Packet, at: Time) {
        if let Some(causes) = &mut self.causes {
            causes.departure(id, packet, at);
        }
    }

    /// A switch has made a notification.
    pub(crate) fn notification(&mut self, id: PacketId, packet: &Packet, at: Time) {
        if let Some(causes) = &mut self.causes {
            causes.on_notification(id, packet, at);
        }
    }

    /// A packet was lost.
    pub(crate) fn loss(&mut self, id: PacketId, packet: &Packet, place: LossPlace, at: Time) {
        if let Some(causes) = &mut self.causes {
            causes.loss(id, place, at);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.loss(place, packet, at);
        }
    }

    /// The schedule does something to a pair of racks.
    pub(crate) fn operation(&mut self, action: Action, at: Time, src: usize, dst: usize) {
        let Some(change) = PathChange::of(action, at, src, dst) else { return };
        if let Some(causes) = &mut self.causes {
            causes.changes.push(change);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.path(&change);
        }
    }

    /// A class of a transmitter stops for a pause.
    pub(crate) fn pause_begins(&mut self, transmitter: usize, priority: usize, at: Time) {
        if let Some(timeline) = &mut self.timeline {
            timeline.pause(transmitter, priority, true, at);
        }
    }

    /// A pause has ended.
    pub(crate) fn pause_ends(&mut self, paused: Paused) {
        if let Some(causes) = &mut self.causes {
            causes.paused.push(paused);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.pause(paused.transmitter, paused.priority, false, paused.until);
        }
    }

    /// An endpoint has sent what it may. `flow`: the flow whose sender it is.
    #[inline]
    pub(crate) fn settle(&mut self, endpoint: usize, flow: Option<u32>, standing: Standing, at: Time) {
        if let Some(causes) = &mut self.causes {
            causes.settle(endpoint, standing);
        }
        if let (Some(timeline), Some(flow)) = (&mut self.timeline, flow) {
            timeline.sender(flow as usize, &standing, at);
        }
    }
}
