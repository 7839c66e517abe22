//! Packets, the pieces that carry them (queues, ports, links), and how those are put together ([`topology`]).
//!
//! Everything here is pure: `now` is an argument, packets are known by their number, and whoever holds the records and
//! the clock (the engine in `sim`) schedules the one event that each piece asks for.

mod class_port;
mod direction;
mod discipline;
pub mod fabric;
pub mod interface;
mod line;
mod pacer;
mod packet;
mod pause;
pub mod pfc;
mod port;
pub mod qcn;
mod queue;
mod random;
mod ring;
mod round_robin;
mod serialize;
mod shared_buffer;
mod switch_port;
pub mod topology;
mod voq;

pub use class_port::{CLASSES, ClassOrder, ClassPort, PausablePort, StrictPriority, Weighted};
pub use direction::Direction;
pub use discipline::*;
pub use line::Line;
pub use pacer::{InterfacePacer, PacerConfig, PacerCounts, PacerDecision};
pub use packet::{
    CongestionNotification, Datagram, Ecn, FlowTuple, HostId, Packet, PacketKind, ProbeDatagram, SackBlock, Stamps,
    TcpFlags, TcpHeader, TcpSegment, TcpSegmentMut,
};
pub use pause::{Pausable, PauseControl, Sent, Unpausable};
pub use port::FifoPort;
pub use queue::QueueCounts;
pub use random::{Xoshiro256PlusPlus, stream, uniform};
pub use ring::Ring;
pub use round_robin::RoundRobin;
pub use serialize::{Framing, Serializer};
pub use shared_buffer::{SharedBuffer, SharedBufferConfig};
pub use switch_port::{QueueFull, SwitchPort};
pub use voq::Voq;

/// A packet's place in the arena that holds its record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PacketId(pub u32);

impl PacketId {
    /// The number as an index into per-packet tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
