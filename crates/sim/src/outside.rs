//! Hosts that are not simulated, as a world sees them.

use firstlight_net::{HostId, Packet, PacketId};

/// Gets the packets of hosts outside: those that [`World::inject`](crate::World::inject) has handed in.
pub trait Outside {
    /// Whether there is such a host: what a world does for them alone costs nothing when there is none.
    const PRESENT: bool;

    /// A packet has arrived at its host; true when it is one from outside. Its record is gone afterwards.
    fn on_exit(&mut self, id: PacketId, packet: &Packet, host: HostId) -> bool;

    /// A packet's last bit has left its host's interface, from outside or not; told only where
    /// [`Fabric::departure`](crate::Fabric::departure) cannot.
    fn on_sent(&mut self, id: PacketId);

    /// It is the turn of a host that has found its interface full ([`World::ask_room`](crate::World::ask_room)).
    fn on_room(&mut self, host: HostId);

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

    fn on_sent(&mut self, _: PacketId) {}

    fn on_room(&mut self, _: HostId) {}

    fn on_drop(&mut self, _: PacketId) {}
}
