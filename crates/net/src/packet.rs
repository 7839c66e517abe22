//! A packet as the fabric and the hosts see it: one cache line, no pointers, no payload.
//!
//! The header fields are those of IPv4 (RFC 791), TCP (RFC 9293) with timestamps (RFC 7323) and SACK (RFC 2018),
//! and ECN (RFC 3168). A real kernel's packet is parsed into the same record once, at the fabric's edge.

use firstlight_units::{Bytes, Time};

/// A host, and the fabric's port that it stands at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct HostId(pub u16);

impl HostId {
    /// As an index into per-host tables.
    pub const fn index(self) -> usize {
        self.0 as usize
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

/// TCP header flags, in the wire's bit positions.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: TcpFlags = TcpFlags(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: TcpFlags = TcpFlags(0x02);
    /// The connection is broken off.
    pub const RST: TcpFlags = TcpFlags(0x04);
    /// Push: the sender's application has written up to here.
    pub const PSH: TcpFlags = TcpFlags(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: TcpFlags = TcpFlags(0x10);
    /// ECN-Echo.
    pub const ECE: TcpFlags = TcpFlags(0x40);
    /// Congestion window reduced.
    pub const CWR: TcpFlags = TcpFlags(0x80);

    /// True when all of `flags` are set.
    pub const fn has(self, flags: TcpFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Sets `flags`.
    pub const fn insert(&mut self, flags: TcpFlags) {
        self.0 |= flags.0;
    }
}

impl std::ops::BitOr for TcpFlags {
    type Output = TcpFlags;
    fn bitor(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }
}

impl std::fmt::Debug for TcpFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = [
            (Self::SYN, 'S'),
            (Self::FIN, 'F'),
            (Self::RST, 'R'),
            (Self::PSH, 'P'),
            (Self::ACK, '.'),
            (Self::ECE, 'E'),
            (Self::CWR, 'W'),
        ];
        names.iter().filter(|(flag, _)| self.has(*flag)).try_for_each(|(_, c)| write!(f, "{c}"))
    }
}

/// A SACK block: sequence numbers `start..end` have arrived (RFC 2018).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start: u32,
    /// The sequence number after its last.
    pub end: u32,
}

/// What else a packet carries, in one byte: how many SACK blocks, whether it is a notification of congestion
/// ([`Packet::feedback`]), whether its timestamps of the network interfaces are there ([`Packet::stamps`]), and its traffic class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extras(u8);

impl Extras {
    const SACKS: u8 = 0x03;
    const NOTIFICATION: u8 = 0x04;
    const STAMPED: u8 = 0x08;
    const CLASS: u32 = 4;

    /// So many SACK blocks, and nothing else.
    ///
    /// # Panics
    /// When there are more than the three that a packet holds.
    pub const fn sacks(blocks: u8) -> Self {
        assert!(blocks <= Self::SACKS, "a packet holds three SACK blocks");
        Extras(blocks)
    }
}

/// Timestamps of the hosts' network interfaces, in nanoseconds of each host's own clock, modulo 2^32: what DX's TCP option
/// carries (`sent` of a data packet is its t1, `received` its t2; on the ACK these are echoed, and its own are t3 and t4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamps {
    /// On an ACK: when the data packet that it answers left its sender's interface.
    pub echo_sent: u32,
    /// On an ACK: when that packet came to the interface of the ACK's sender.
    pub echo_received: u32,
    /// When this packet left its sender's interface: written by the fabric.
    pub sent: u32,
    /// When it came to its receiver's: written by the fabric.
    pub received: u32,
}

/// Protocol number of TCP in the IP header,
const TCP: u8 = 6;
/// and one that nobody has: a notification of congestion is no IP packet (RFC 3692).
const NO_PROTOCOL: u16 = 253;

/// One packet. Exactly one cache line: a hop touches one line of memory.
///
/// The fields are TCP's. A packet of another protocol, which real hosts send, has no TCP flags, and its protocol number
/// in place of the window: [`Packet::protocol`] tells. `sport` and `dport` are its ports if it has any, `seq` and `ack`
/// the words of its header that hold no ports (`firstlight-uml` says which), `tsval` is the IP header's second word.
///
/// A packet with timestamps of the interfaces holds them in place of the second and the third SACK block, as the TCP option
/// takes their room. On a SYN, which carries no SACK blocks, `sack[0]` can hold what its sender announces: [`Packet::announced`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C, align(64))]
pub struct Packet {
    /// The fabric's own stamp: when the packet entered the queue that its latency is counted from.
    pub stamp: Time,
    /// IP length in bytes: what links serialize.
    pub size: u16,
    /// How much of `size` is IP and TCP header, or of that packet's protocol, options included.
    pub header: u8,
    /// How many of `sack` are valid, and what else there is.
    pub extras: Extras,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Sender's TCP port.
    pub sport: u16,
    /// Receiver's TCP port.
    pub dport: u16,
    /// Sequence number of the first payload byte.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Receive window as it stands in the header, before scaling.
    pub window: u16,
    /// TCP flags.
    pub flags: TcpFlags,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Timestamp value (RFC 7323).
    pub tsval: u32,
    /// Timestamp echo reply (RFC 7323).
    pub tsecr: u32,
    /// SACK blocks, most recent first.
    pub sack: [SackBlock; 3],
}

const _: () = assert!(size_of::<Packet>() == 64, "a packet is one cache line");

impl Packet {
    /// Bytes that links serialize.
    pub const fn bytes(&self) -> Bytes {
        Bytes::new(self.size as u64)
    }

    /// Payload bytes.
    pub const fn payload(&self) -> u32 {
        self.size as u32 - self.header as u32
    }

    /// True for a packet that carries payload.
    pub const fn is_data(&self) -> bool {
        self.size > self.header as u16
    }

    /// Protocol number of the IP header: 6 for TCP, 17 for UDP, 1 for ICMP.
    pub const fn protocol(&self) -> u8 {
        if self.flags.0 == 0 && self.window != 0 { self.window as u8 } else { TCP }
    }

    /// True for a packet of TCP.
    pub const fn is_tcp(&self) -> bool {
        self.protocol() == TCP
    }

    /// The largest segment and the window scale that a SYN of a real host announces.
    pub fn announced(&self) -> Option<(u16, u8)> {
        let SackBlock { start: segment, end: scale } = self.sack[0];
        (self.flags.has(TcpFlags::SYN) && self.sacks() == 0 && segment > 0).then_some((segment as u16, scale as u8))
    }

    /// How many SACK blocks are valid.
    pub const fn sacks(&self) -> u8 {
        self.extras.0 & Extras::SACKS
    }

    /// The valid SACK blocks.
    pub fn sack_blocks(&self) -> &[SackBlock] {
        &self.sack[..self.sacks() as usize]
    }

    /// Adds a SACK block.
    ///
    /// # Panics
    /// When there is no room: three fit, one beside timestamps.
    pub fn push_sack(&mut self, block: SackBlock) {
        let room = if self.has_stamps() { 1 } else { 3 };
        assert!(self.sacks() < room, "a packet holds {room} SACK blocks");
        self.sack[self.sacks() as usize] = block;
        self.extras.0 += 1;
    }

    /// Whether it carries timestamps of the interfaces.
    #[inline]
    pub const fn has_stamps(&self) -> bool {
        self.extras.0 & Extras::STAMPED != 0
    }

    /// The timestamps; meaningful with [`Packet::has_stamps`] only.
    pub const fn stamps(&self) -> Stamps {
        let [_, echo, own] = self.sack;
        Stamps { echo_sent: echo.start, echo_received: echo.end, sent: own.start, received: own.end }
    }

    /// Puts timestamps in.
    ///
    /// # Panics
    /// When there is more than one SACK block.
    pub fn set_stamps(&mut self, stamps: Stamps) {
        assert!(self.sacks() <= 1, "timestamps leave room for one SACK block");
        self.extras.0 |= Extras::STAMPED;
        self.sack[1] = SackBlock { start: stamps.echo_sent, end: stamps.echo_received };
        self.sack[2] = SackBlock { start: stamps.sent, end: stamps.received };
    }

    /// Writes when it left its sender's interface. It must have room for timestamps.
    #[inline]
    pub const fn set_sent(&mut self, clock: u32) {
        self.sack[2].start = clock;
    }

    /// Writes when it came to its receiver's interface. It must have room for timestamps.
    #[inline]
    pub const fn set_received(&mut self, clock: u32) {
        self.sack[2].end = clock;
    }

    /// Its traffic class, 0 to 7: the upper three bits of the DSCP field (RFC 2474, class selectors).
    #[inline]
    pub const fn class(&self) -> u8 {
        self.extras.0 >> Extras::CLASS & 7
    }

    /// Sets the traffic class.
    ///
    /// # Panics
    /// When it is above 7.
    pub fn set_class(&mut self, class: u8) {
        assert!(class < 8, "there are traffic classes 0 to 7, and no {class}");
        self.extras.0 = self.extras.0 & !(7 << Extras::CLASS) | class << Extras::CLASS;
    }

    /// QCN's notification to the sender of `packet`, from the switch where that is: 64 bytes of the highest class. It has its
    /// flow's ends turned round.
    pub fn notification(packet: &Packet, feedback: u8) -> Packet {
        Packet {
            size: 64,
            header: 64,
            extras: Extras(Extras::NOTIFICATION | 7 << Extras::CLASS),
            src: packet.dst,
            dst: packet.src,
            sport: packet.dport,
            dport: packet.sport,
            seq: feedback.into(),
            window: NO_PROTOCOL,
            ..Packet::default()
        }
    }

    /// The feedback of QCN's notification; `None` for any other packet.
    #[inline]
    pub const fn feedback(&self) -> Option<u8> {
        if self.extras.0 & Extras::NOTIFICATION != 0 { Some(self.seq as u8) } else { None }
    }

    /// A number that is the same for all packets of one direction of a flow: addresses and ports.
    #[inline]
    pub const fn flow_key(&self) -> u64 {
        (self.src.0 as u64) << 48 | (self.dst.0 as u64) << 32 | (self.sport as u64) << 16 | self.dport as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stamps_and_class_share_the_record() {
        let block = |n| SackBlock { start: n, end: n + 1 };
        let stamps = Stamps { echo_sent: 1, echo_received: 2, sent: u32::MAX, received: 0 };
        let mut packet = Packet::default();
        assert_eq!((packet.sacks(), packet.has_stamps(), packet.class()), (0, false, 0));
        packet.push_sack(block(7));
        packet.set_class(5);
        packet.set_stamps(stamps);
        packet.set_class(6);
        packet.set_sent(8);
        packet.set_received(9);
        let stamps = Stamps { sent: 8, received: 9, ..stamps };
        assert_eq!((packet.sack_blocks(), packet.stamps(), packet.class()), (&[block(7)][..], stamps, 6));
        assert_eq!(Packet { extras: Extras::sacks(3), ..Packet::default() }.sacks(), 3);
    }

    #[test]
    fn a_notification_goes_back_to_the_sender() {
        let packet = Packet { src: HostId(1), dst: HostId(2), sport: 3, dport: 4, size: 1500, ..Packet::default() };
        let back = Packet::notification(&packet, 63);
        assert_eq!((back.src, back.dst, back.sport, back.dport), (HostId(2), HostId(1), 4, 3));
        assert_eq!(
            (back.feedback(), back.class(), back.size, back.is_data(), back.is_tcp()),
            (Some(63), 7, 64, false, false)
        );
        assert_eq!((packet.feedback(), back.sacks(), back.has_stamps()), (None, 0, false));
    }

    #[test]
    #[should_panic(expected = "holds 1 SACK blocks")]
    fn stamps_take_the_room_of_blocks() {
        let mut packet = Packet::default();
        packet.set_stamps(Stamps::default());
        packet.push_sack(SackBlock::default());
        packet.push_sack(SackBlock::default());
    }
}
