//! Where packets can be watched: at the hosts' edge of the fabric.

use firstlight_net::{HostId, Packet};
use firstlight_units::Time;

/// Which way a packet went, seen from the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The host handed it to its interface.
    Sent,
    /// It arrived at the host.
    Received,
}

/// Sees every packet at the hosts' edge. A sink cannot change the run.
pub trait CaptureSink: Send {
    /// `packet` passed the edge of `host` at `at`, on the engine's clock (divide by the time scale for the fabric's).
    fn packet(&mut self, packet: &Packet, at: Time, host: HostId, direction: Direction);
}
