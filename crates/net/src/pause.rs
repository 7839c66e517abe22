//! Pauses at a transmitter (IEEE 802.1Qbb, 802.3x), as a policy of the types that have a transmitter.
//!
//! A transmitter of a [`Pausable`] kind may not send paused classes, and asks the far end to pause: a pause frame takes
//! its place before all packets, after the frame in service. It carries the state of all classes at the moment at which
//! it begins, as the class-enable vector of 802.1Qbb does: a change that was taken back while the frame waited is never
//! sent. A pause frame occupies the transmitter and is no packet. The end of each transmission is an event of its own.
//!
//! An [`Unpausable`] transmitter does none of this, at no cost.

use crate::PacketId;
use std::fmt;

/// A transmission that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// A packet: its last bit has left the switch.
    Packet(PacketId),
    /// A pause frame: the far end is to pause just these classes, a bit each.
    Pause(u8),
}

/// How a transmitter deals with pauses: [`Pausable`], or [`Unpausable`], whose methods are the defaults.
pub trait PauseControl: Clone + Default + fmt::Debug {
    /// Whether the end of each transmission is an event of its own, before which no other transmission begins.
    const ENDS_ARE_EVENTS: bool = false;

    /// The classes of `classes`, a bit each, that may be sent.
    #[inline]
    fn unpaused(&self, classes: u8) -> u8 {
        classes
    }

    /// Whether a pause frame waits.
    #[inline]
    fn pause_frame_waits(&self) -> bool {
        false
    }

    /// Begins a pause frame at an idle transmitter, if one waits. Returns whether it has.
    #[inline]
    fn begin_pause_frame(&mut self) -> bool {
        false
    }

    /// The transmitter begins a packet.
    #[inline]
    fn begin(&mut self, _id: PacketId) {}

    /// Whether the transmitter has begun something whose end has not been seen.
    #[inline]
    fn is_serving(&self) -> bool {
        false
    }

    /// Ends the transmission in service.
    #[inline]
    fn finish(&mut self) {}

    /// The transmission that has ended, if one has. Each is returned once.
    #[inline]
    fn take_sent(&mut self) -> Option<Sent> {
        None
    }
}

/// A transmitter that cannot be paused, and sends no pause frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unpausable;

impl PauseControl for Unpausable {}

/// A transmitter on lossless Ethernet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pausable {
    paused: u8,
    /// The classes that the far end is to pause.
    requested: u8,
    /// The classes that the last pause frame has paused.
    sent_pause: u8,
    serving: Option<Sent>,
    sent: Option<Sent>,
}

impl Pausable {
    /// From now on just these classes, a bit each, may not be sent.
    pub fn pause(&mut self, classes: u8) {
        self.paused = classes;
    }

    /// The classes that may not be sent, a bit each.
    pub fn paused(&self) -> u8 {
        self.paused
    }

    /// From now on the far end is to pause just these classes.
    pub fn request_pause(&mut self, classes: u8) {
        self.requested = classes;
    }

    /// Whether a pause frame waits or is in service.
    pub fn pause_frame_pending(&self) -> bool {
        self.pause_frame_waits() || matches!(self.serving, Some(Sent::Pause(_)))
    }

    /// Whether a packet is in service.
    pub fn serves_packet(&self) -> bool {
        matches!(self.serving, Some(Sent::Packet(_)))
    }
}

impl PauseControl for Pausable {
    const ENDS_ARE_EVENTS: bool = true;

    fn unpaused(&self, classes: u8) -> u8 {
        classes & !self.paused
    }

    fn pause_frame_waits(&self) -> bool {
        self.requested != self.sent_pause
    }

    fn begin_pause_frame(&mut self) -> bool {
        let waits = self.pause_frame_waits();
        if waits {
            self.sent_pause = self.requested;
            self.serving = Some(Sent::Pause(self.sent_pause));
        }
        waits
    }

    fn begin(&mut self, id: PacketId) {
        self.serving = Some(Sent::Packet(id));
    }

    fn is_serving(&self) -> bool {
        self.serving.is_some()
    }

    fn finish(&mut self) {
        if let Some(sent) = self.serving.take() {
            self.sent = Some(sent);
        }
    }

    fn take_sent(&mut self) -> Option<Sent> {
        self.sent.take()
    }
}
