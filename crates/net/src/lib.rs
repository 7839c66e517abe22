//! Packets, and the pieces that carry them: queues, ports, links.

mod packet;

pub use packet::{Ecn, HostId, Packet, SackBlock, TcpFlags};
