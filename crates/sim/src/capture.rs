//! Captures packets at the hosts' edge of the fabric.

use firstlight_net::{Direction, HostId, Packet};
use firstlight_units::Time;

/// Sees every packet at the hosts' edge. A sink cannot change the run.
pub trait CaptureSink: Send {
    /// `packet` passed the edge of `host` at `at`, on the engine's clock (divide by the time scale for the fabric's).
    fn packet(&mut self, packet: &Packet, at: Time, host: HostId, direction: Direction);
}
