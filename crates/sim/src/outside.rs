//! Hosts that are not simulated, as a world sees them.

use firstlight_net::{HostId, Packet, PacketId};

/// Gets the packets of hosts outside: those that [`World::inject`](crate::World::inject) has handed in.
pub trait Outside {
    /// Whether there is such a host: what a world does for them alone costs nothing when there is none.
    const PRESENT: bool;

    /// A packet has arrived at its host; true when it is one from outside. Its record is gone afterwards.
    fn on_exit(&mut self, id: PacketId, packet: &Packet, host: HostId) -> bool;

    /// A packet is lost, from outside or not.
    fn on_drop(&mut self, id: PacketId);
}

/// No host is outside.
pub(crate) struct Nobody;

impl Outside for Nobody {
    const PRESENT: bool = false;

    #[inline]
    fn on_exit(&mut self, _: PacketId, _: &Packet, _: HostId) -> bool {
        false
    }

    fn on_drop(&mut self, _: PacketId) {}
}
