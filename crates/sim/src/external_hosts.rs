//! External hosts: hosts that are not simulated, as a world sees them.

use firstlight_net::{HostId, Packet, PacketId};

/// Receives the packets of external hosts: those that [`World::inject`](crate::World::inject) has handed in.
pub trait ExternalHosts {
    /// Whether there are external hosts. A world's work for them costs nothing where there are none.
    const PRESENT: bool;

    /// A packet has arrived at its host. Returns whether that host is external; the packet's record is released then.
    fn on_exit(&mut self, id: PacketId, packet: &Packet, host: HostId) -> bool;

    /// A packet's last bit has left its host's interface, of an external host or not; called only where
    /// [`Fabric::departure`](crate::Fabric::departure) does not know.
    fn on_sent(&mut self, id: PacketId);

    /// A host that has found its interface full has its turn ([`World::ask_room`](crate::World::ask_room)).
    fn on_room(&mut self, host: HostId);

    /// A packet is lost, of an external host or not.
    fn on_drop(&mut self, id: PacketId);

    /// Whether the hosts may act upon an event of this moment, so that [`World::run`](crate::World::run) ends at it.
    fn acts(&self) -> bool;
}

/// No host is external.
pub(crate) struct NoExternalHosts;

impl ExternalHosts for NoExternalHosts {
    const PRESENT: bool = false;

    #[inline]
    fn on_exit(&mut self, _: PacketId, _: &Packet, _: HostId) -> bool {
        false
    }

    fn on_sent(&mut self, _: PacketId) {}

    fn on_room(&mut self, _: HostId) {}

    fn on_drop(&mut self, _: PacketId) {}

    #[inline]
    fn acts(&self) -> bool {
        false
    }
}
