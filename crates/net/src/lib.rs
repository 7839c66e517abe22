//! Packets, the pieces that carry them (queues, ports, links), and how those are put together ([`topology`]).
//!
//! Everything here is pure: `now` is an argument, packets are known by their number, and whoever holds the records and
//! the clock (the engine in `sim`) schedules the one event that each piece asks for.

pub mod interface;
mod line;
mod packet;
mod port;
mod queue;
mod ring;
mod round_robin;
mod serialize;
pub mod topology;

pub use line::Line;
pub use packet::{Ecn, Extras, HostId, Packet, SackBlock, Stamps, TcpFlags};
pub use port::{FifoLimits, FifoPort, QueueFull};
pub use queue::{Voq, VoqCounts, VoqLimits};
pub use ring::Ring;
pub use round_robin::RoundRobin;
pub use serialize::Serializer;

/// A packet's place in the arena that holds its record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PacketId(pub u32);

impl PacketId {
    /// As an index into per-packet tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
