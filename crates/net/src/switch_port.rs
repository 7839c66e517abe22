//! The interface between the engine and a switch's port of any kind.

use crate::{Packet, PacketId, Serializer};
use firstlight_units::{Bytes, Span, Time};

/// The port does not take a packet: its queue is full, or its discipline drops early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueFull;

/// A queue or several, a transmitter and a link: one source of events.
///
/// The order of calls: [`SwitchPort::step`] at the time that was returned last, and [`SwitchPort::offer`] at any moment
/// up to it, all in the order of time. At every moment `offered = delivered + dropped + held`.
pub trait SwitchPort: Sized {
    /// A packet arrives at `now`. `Some(t)`: the port must now be stepped at `t`, which is earlier than it was to be.
    ///
    /// # Errors
    /// When the packet is dropped.
    fn offer(&mut self, id: PacketId, packet: &mut Packet, now: Time) -> Result<Option<Time>, QueueFull>;

    /// Does what is due at `now`: which packet arrives at the far end, if any, and when the port is to be stepped next.
    /// `mark` sets CE in the record of a packet, which is still in the port.
    fn step(&mut self, now: Time, mark: impl FnMut(PacketId)) -> (Option<PacketId>, Option<Time>);

    /// The packet that arrives next, where that is known; any number else. Only prefetching depends on it.
    fn first(&self) -> PacketId {
        PacketId::default()
    }

    /// The memory that stepping the port reads first.
    fn first_slot(&self) -> &impl Sized {
        self
    }

    /// How long packets last on its link, and from there to the far end.
    fn link(&self) -> (Serializer, Span);

    /// Counts a packet that the switch dropped before the port's own discipline saw it.
    fn refuse(&mut self, packet: &Packet);

    /// Packets that wait at `now`, the one in service not counted.
    fn waiting_at(&self, now: Time) -> u32;

    /// Bytes not yet sent at `now`, the rest of the packet in service counted; the last byte counts whole.
    fn backlog(&self, now: Time) -> Bytes;

    /// The number of the queue that a packet belongs to, and the bytes of it that are not yet sent at `now`.
    #[inline]
    fn queue_of(&self, _packet: &Packet, now: Time) -> (usize, Bytes) {
        (0, self.backlog(now))
    }

    /// Packets offered to the port.
    fn offered(&self) -> u64;

    /// Packets that arrived at the far end.
    fn delivered(&self) -> u64;

    /// Packets dropped.
    fn dropped(&self) -> u64;

    /// Packets that this port marked; those that arrived marked do not count.
    fn marked(&self) -> u64;

    /// Packets waiting, in service or in flight.
    fn held(&self) -> u64;

    /// Most packets that ever waited.
    fn peak(&self) -> u64;
}
