//! What the IP header and the ports say: hosts, flows, ECN; and the timestamps that interfaces write.

/// A host, and the fabric's port at which the host stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct HostId(pub u16);

impl HostId {
    /// The host as an index into per-host tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One direction of a flow: sending and receiving host, each with its port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct FlowTuple {
    /// The host that sends.
    pub src: HostId,
    /// The sender's port.
    pub sport: u16,
    /// The host that receives.
    pub dst: HostId,
    /// The receiver's port.
    pub dport: u16,
}

impl FlowTuple {
    /// The other direction of the flow.
    #[must_use]
    pub const fn reversed(self) -> FlowTuple {
        FlowTuple { src: self.dst, sport: self.dport, dst: self.src, dport: self.sport }
    }
}

/// The ECN field of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: dropped where others are marked.
    #[default]
    NotEct = 0,
    /// ECN-capable, ECT(1).
    Ect1 = 1,
    /// ECN-capable, ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// The field's value of the lower two bits.
    #[inline]
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

/// Timestamps of the hosts' network interfaces, in nanoseconds of each host's own clock, modulo 2^32: what DX's TCP
/// option carries (`sent` of a data packet is its t1, `received` its t2; on the ACK these are echoed, and its own are
/// t3 and t4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamps {
    /// On an ACK: when the acknowledged data packet left its sender's interface.
    pub echo_sent: u32,
    /// On an ACK: when the acknowledged data packet arrived at the interface of the ACK's sender.
    pub echo_received: u32,
    /// When this packet left its sender's interface: written by the fabric.
    pub sent: u32,
    /// When this packet arrived at its receiver's interface: written by the fabric.
    pub received: u32,
}
