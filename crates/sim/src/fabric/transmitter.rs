//! A transmitter of a hybrid fabric's uplinks, downlinks and circuits: a line, and its pauses.
//!
//! Where links can be paused the end of each transmission is an event. Elsewhere there is one only if a packet waits,
//! and a packet that comes at the very moment of the end goes at once; so it does where links can be paused, lest
//! thresholds that are never reached change anything.

use firstlight_net::pfc::PAUSE_FRAME;
use firstlight_net::{Line, PacketId, PauseControl, Sent};
use firstlight_units::Time;
use std::ops::ControlFlow;

/// The transmitter.
#[derive(Clone)]
pub(super) struct Transmitter<C> {
    pub(super) line: Line,
    pub(super) control: C,
    /// No other packet waited when the packet in service began.
    began_last: bool,
}

impl<C: PauseControl> Transmitter<C> {
    pub(super) fn new(line: Line) -> Self {
        Transmitter { line, control: C::default(), began_last: false }
    }

    /// Whether no packet may begin because of pauses: then when to try again, if at all. Begins a pause frame if one
    /// waits.
    #[inline]
    pub(super) fn hold(&mut self, now: Time) -> ControlFlow<Option<Time>> {
        if !C::ENDS_ARE_EVENTS {
            return ControlFlow::Continue(());
        }
        if !self.control.is_serving() && self.control.begin_pause_frame() {
            self.line.hold(PAUSE_FRAME, now);
        }
        if self.control.is_serving() {
            ControlFlow::Break(Some(self.line.free_at()))
        } else if self.control.unpaused(1) == 0 {
            ControlFlow::Break(None)
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Sends a packet, perhaps the last that waits. Returns its arrival when no other is in flight: the caller then
    /// schedules it.
    #[inline]
    pub(super) fn send(&mut self, id: PacketId, size: u16, now: Time) -> Option<Time> {
        self.control.begin(id);
        self.line.send(id, size, now)
    }

    /// When to serve again, after a packet was sent. `next` is when the next packet may begin, if one waits; it decides
    /// where the end of a transmission is no event.
    #[inline]
    pub(super) fn next(&mut self, next: Option<Time>) -> Option<Time> {
        if !C::ENDS_ARE_EVENTS {
            return next;
        }
        self.began_last = next.is_none();
        Some(self.line.free_at())
    }

    /// Ends the transmission in service, if there is one.
    #[inline]
    pub(super) fn finish(&mut self) -> Option<Sent> {
        self.control.finish();
        self.control.take_sent()
    }

    /// Notifies that a packet arrived that may be sent, while an event is pending. Returns whether the packet leaves
    /// now, before the event that ends the last transmission.
    #[inline]
    pub(super) fn goes_ahead(&mut self, now: Time) -> bool {
        C::ENDS_ARE_EVENTS && std::mem::take(&mut self.began_last) && self.line.free_at() <= now
    }
}
