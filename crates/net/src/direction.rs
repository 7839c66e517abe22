//! The direction of a packet at a host.

/// Direction of a packet, seen from the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The host handed the packet to its interface.
    Sent,
    /// The packet arrived at the host.
    Received,
}
