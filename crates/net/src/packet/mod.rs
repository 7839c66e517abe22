//! A packet as the fabric and the hosts see it: one cache line, no pointers, no payload.
//!
//! The record has two parts. What every packet has (sizes, hosts, ports, ECN, traffic class) is read and written on
//! [`Packet`] itself. The rest depends on the packet's [`PacketKind`], and is reached through a
//! view over the same bytes: [`TcpSegment`], [`Datagram`], [`ProbeDatagram`] or [`CongestionNotification`].
//!
//! The fields are those of IPv4 (RFC 791) or IPv6 (RFC 8200), TCP (RFC 9293) with timestamps (RFC 7323) and SACK
//! (RFC 2018), and ECN (RFC 3168). A packet of a real kernel is parsed into the same record once, at the fabric's edge.

mod datagram;
mod ip;
mod notification;
mod segment;

pub use datagram::{Datagram, ProbeDatagram};
pub use ip::{Ecn, FlowTuple, HostId, Stamps};
pub use notification::CongestionNotification;
pub use segment::{SackBlock, TcpFlags, TcpHeader, TcpSegment, TcpSegmentMut};

use firstlight_units::{Bytes, Time};

/// The kind of a packet, which decides the view of its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum PacketKind {
    /// A segment of TCP: [`TcpSegment`].
    #[default]
    Tcp,
    /// A packet of another protocol, which a real host has sent: [`Datagram`].
    Datagram,
    /// A probe's datagram: [`ProbeDatagram`].
    Probe,
    /// A notification of QCN: [`CongestionNotification`].
    Notification,
}

/// The words of a record's body. Their meaning depends on the packet's kind.
const WORDS: usize = 10;
/// The first of the four words that hold the timestamps of the interfaces, where a packet carries these.
const STAMPS: usize = 6;

/// One packet. Exactly one cache line: a hop touches one line of memory.
///
/// [`Packet::default`] is a segment of TCP without any bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C, align(64))]
pub struct Packet {
    /// When the packet arrived at the queue that its latency is counted from.
    queued_at: Time,
    size: u16,
    header: u8,
    attributes: Attributes,
    src: HostId,
    dst: HostId,
    sport: u16,
    dport: u16,
    kind: KindBits,
    /// TCP's flags; 0 for other kinds.
    flags: TcpFlags,
    /// TCP's window, or a datagram's protocol number.
    half: u16,
    words: [u32; WORDS],
}

const _: () = assert!(size_of::<Packet>() == 64, "a packet is one cache line");

/// The kind in bits 0 and 1, in bit 2 whether the IP header is of version 6.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct KindBits(u8);

impl KindBits {
    const KIND: u8 = 0x03;
    const IPV6: u8 = 0x04;
}

/// ECN in bits 0 and 1, the number of SACK blocks in bits 2 and 3, in bit 4 whether the packet carries timestamps of
/// the interfaces, the traffic class in bits 5 to 7.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Attributes(u8);

impl Attributes {
    const ECN: u8 = 0x03;
    const SACKS: u8 = 0x0c;
    const STAMPED: u8 = 0x10;
    const CLASS: u8 = 0xe0;
}

impl Packet {
    /// A packet of this kind and size, without any other content.
    fn new(kind: PacketKind, tuple: FlowTuple, size: u16, header: u8) -> Packet {
        let FlowTuple { src, sport, dst, dport } = tuple;
        Packet { kind: KindBits(kind as u8), src, sport, dst, dport, size, header, ..Packet::default() }
    }

    /// The packet's kind.
    #[inline]
    pub const fn kind(&self) -> PacketKind {
        match self.kind.0 & KindBits::KIND {
            0 => PacketKind::Tcp,
            1 => PacketKind::Datagram,
            2 => PacketKind::Probe,
            _ => PacketKind::Notification,
        }
    }

    /// Whether the packet has an IP header of version 6.
    #[inline]
    pub const fn is_ipv6(&self) -> bool {
        self.kind.0 & KindBits::IPV6 != 0
    }

    /// The packet with an IP header of version 6; sizes and headers stay what they are.
    #[must_use]
    pub const fn with_ipv6(mut self) -> Packet {
        self.kind.0 |= KindBits::IPV6;
        self
    }

    /// IP length in bytes: what links serialize.
    #[inline]
    pub const fn size(&self) -> u16 {
        self.size
    }

    /// The packet with another IP length.
    #[must_use]
    pub const fn with_size(mut self, size: u16) -> Packet {
        self.size = size;
        self
    }

    /// IP length, as a quantity.
    #[inline]
    pub const fn bytes(&self) -> Bytes {
        Bytes::new(self.size as u64)
    }

    /// How many bytes are headers of IP and of what it carries, options included.
    #[inline]
    pub const fn header(&self) -> u8 {
        self.header
    }

    /// Payload bytes.
    #[inline]
    pub const fn payload(&self) -> u32 {
        self.size as u32 - self.header as u32
    }

    /// Whether the packet carries payload.
    #[inline]
    pub const fn is_data(&self) -> bool {
        self.size > self.header as u16
    }

    /// The sending host.
    #[inline]
    pub const fn src(&self) -> HostId {
        self.src
    }

    /// The receiving host.
    #[inline]
    pub const fn dst(&self) -> HostId {
        self.dst
    }

    /// The sender's port; 0 where the protocol has none.
    #[inline]
    pub const fn sport(&self) -> u16 {
        self.sport
    }

    /// The receiver's port; 0 where the protocol has none.
    #[inline]
    pub const fn dport(&self) -> u16 {
        self.dport
    }

    /// Hosts and ports of the packet's flow.
    #[inline]
    pub const fn tuple(&self) -> FlowTuple {
        FlowTuple { src: self.src, sport: self.sport, dst: self.dst, dport: self.dport }
    }

    /// The packet as one of another flow.
    #[must_use]
    pub const fn with_tuple(mut self, tuple: FlowTuple) -> Packet {
        let FlowTuple { src, sport, dst, dport } = tuple;
        (self.src, self.sport, self.dst, self.dport) = (src, sport, dst, dport);
        self
    }

    /// A number that is the same for all packets of one direction of a flow: hosts and ports.
    #[inline]
    pub const fn flow_key(&self) -> u64 {
        (self.src.0 as u64) << 48 | (self.dst.0 as u64) << 32 | (self.sport as u64) << 16 | self.dport as u64
    }

    /// The ECN field of the IP header.
    #[inline]
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.attributes.0 & Attributes::ECN)
    }

    /// Sets the ECN field.
    #[inline]
    pub const fn set_ecn(&mut self, ecn: Ecn) {
        self.attributes.0 = self.attributes.0 & !Attributes::ECN | ecn as u8;
    }

    /// The packet with this ECN field.
    #[must_use]
    pub const fn with_ecn(mut self, ecn: Ecn) -> Packet {
        self.set_ecn(ecn);
        self
    }

    /// Sets CE (congestion experienced). Returns whether CE was not set before.
    #[inline]
    pub const fn mark(&mut self) -> bool {
        let new = !matches!(self.ecn(), Ecn::Ce);
        self.set_ecn(Ecn::Ce);
        new
    }

    /// The traffic class, 0 to 7: the upper three bits of the DSCP field (RFC 2474, class selectors).
    #[inline]
    pub const fn class(&self) -> u8 {
        self.attributes.0 >> 5
    }

    /// Sets the traffic class.
    ///
    /// # Panics
    /// When it is above 7.
    pub fn set_class(&mut self, class: u8) {
        assert!(class < 8, "traffic classes are 0 to 7, and {class} is none");
        self.attributes.0 = self.attributes.0 & !Attributes::CLASS | class << 5;
    }

    /// The packet with this traffic class.
    ///
    /// # Panics
    /// When it is above 7.
    #[must_use]
    pub fn with_class(mut self, class: u8) -> Packet {
        self.set_class(class);
        self
    }

    /// When the packet arrived at the queue that its latency is counted from: set by the fabric.
    #[inline]
    pub const fn queued_at(&self) -> Time {
        self.queued_at
    }

    /// Sets the moment that the packet's latency is counted from.
    #[inline]
    pub const fn set_queued_at(&mut self, now: Time) {
        self.queued_at = now;
    }

    /// Whether the packet carries timestamps of the interfaces.
    #[inline]
    pub const fn has_stamps(&self) -> bool {
        self.attributes.0 & Attributes::STAMPED != 0
    }

    /// The timestamps of the interfaces; meaningful only with [`Packet::has_stamps`].
    #[inline]
    pub const fn stamps(&self) -> Stamps {
        let [.., echo_sent, echo_received, sent, received] = self.words;
        Stamps { echo_sent, echo_received, sent, received }
    }

    /// Puts timestamps of the interfaces in, which take the room of two SACK blocks.
    ///
    /// # Panics
    /// When the packet has more than one SACK block.
    pub fn set_stamps(&mut self, stamps: Stamps) {
        assert!(self.sacks() <= 1, "timestamps leave room for one SACK block");
        self.attributes.0 |= Attributes::STAMPED;
        let Stamps { echo_sent, echo_received, sent, received } = stamps;
        self.words[STAMPS..].copy_from_slice(&[echo_sent, echo_received, sent, received]);
    }

    /// Writes when the packet left its sender's interface. The packet must carry timestamps.
    #[inline]
    pub const fn set_sent(&mut self, clock: u32) {
        self.words[STAMPS + 2] = clock;
    }

    /// Writes when the packet arrived at its receiver's interface. The packet must carry timestamps.
    #[inline]
    pub const fn set_received(&mut self, clock: u32) {
        self.words[STAMPS + 3] = clock;
    }

    const fn sacks(&self) -> u8 {
        (self.attributes.0 & Attributes::SACKS) >> 2
    }

    /// The protocol number of the IP header: 6 for TCP, 17 for UDP, 1 for ICMP. A notification is no IP packet, and has
    /// a number for experiments (RFC 3692).
    pub const fn protocol(&self) -> u8 {
        match self.kind() {
            PacketKind::Tcp => 6,
            PacketKind::Datagram => self.half as u8,
            PacketKind::Probe => 17,
            PacketKind::Notification => 253,
        }
    }

    /// The view of a segment of TCP; `None` for any other packet.
    #[inline]
    pub const fn tcp(&self) -> Option<TcpSegment<'_>> {
        if matches!(self.kind(), PacketKind::Tcp) { Some(TcpSegment(self)) } else { None }
    }

    /// The view of a segment of TCP, to change it; `None` for any other packet.
    #[inline]
    pub const fn tcp_mut(&mut self) -> Option<TcpSegmentMut<'_>> {
        if matches!(self.kind(), PacketKind::Tcp) { Some(TcpSegmentMut(self)) } else { None }
    }

    /// The view of a packet of another protocol than TCP, from a real host; `None` for any other packet.
    pub const fn datagram(&self) -> Option<Datagram<'_>> {
        if matches!(self.kind(), PacketKind::Datagram) { Some(Datagram(self)) } else { None }
    }

    /// The view of a probe's datagram; `None` for any other packet.
    #[inline]
    pub const fn probe(&self) -> Option<ProbeDatagram<'_>> {
        if matches!(self.kind(), PacketKind::Probe) { Some(ProbeDatagram(self)) } else { None }
    }

    /// The view of QCN's notification; `None` for any other packet.
    #[inline]
    pub const fn notification(&self) -> Option<CongestionNotification<'_>> {
        if matches!(self.kind(), PacketKind::Notification) { Some(CongestionNotification(self)) } else { None }
    }

    /// The part of the packet that the digest covers, in three words: hosts and ports; the first two words of the body
    /// (sequence and acknowledgement number, of a segment); size, TCP's flags and ECN.
    #[inline]
    pub const fn digest_words(&self) -> [u64; 3] {
        let numbers = (self.words[0] as u64) << 32 | self.words[1] as u64;
        let rest = (self.size as u64) << 16 | (self.flags.0 as u64) << 8 | self.ecn() as u64;
        [self.flow_key(), numbers, rest]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stamps_class_and_ecn_share_the_record() {
        let block = |n| SackBlock { start: n, end: n + 1 };
        let stamps = Stamps { echo_sent: 1, echo_received: 2, sent: u32::MAX, received: 0 };
        let mut packet = Packet::default();
        assert_eq!((packet.sacks(), packet.has_stamps(), packet.class(), packet.ecn()), (0, false, 0, Ecn::NotEct));
        packet.tcp_mut().unwrap().push_sack(block(7));
        packet.set_class(5);
        packet.set_stamps(stamps);
        packet.set_class(6);
        assert_eq!([packet.mark(), packet.mark()], [true, false]);
        packet.set_sent(8);
        packet.set_received(9);
        let stamps = Stamps { sent: 8, received: 9, ..stamps };
        assert_eq!((packet.stamps(), packet.class(), packet.ecn()), (stamps, 6, Ecn::Ce));
        assert!(packet.tcp().unwrap().sack_blocks().eq([block(7)]));
        assert_eq!(packet.with_ecn(Ecn::Ect1).ecn(), Ecn::Ect1);
    }

    #[test]
    fn each_packet_has_the_view_of_its_kind_alone() {
        let tuple = FlowTuple { src: HostId(1), sport: 3, dst: HostId(2), dport: 4 };
        let segment = Packet::new_tcp(tuple, 40, 60, TcpHeader::default());
        let all = [
            (segment, 6),
            (Packet::new_datagram(tuple, 100, 28, 17, [0; 2], 0), 17),
            (Packet::new_probe(HostId(1), HostId(2), 100, 5, Time::ZERO), 17),
            (Packet::new_notification(&segment, 9), 253),
        ];
        for (packet, protocol) in all {
            let views = [
                packet.tcp().is_some(),
                packet.datagram().is_some(),
                packet.probe().is_some(),
                packet.notification().is_some(),
            ];
            let own = std::array::from_fn(|kind| kind == packet.kind() as usize);
            assert_eq!((packet.is_ipv6(), packet.with_ipv6().is_ipv6()), (false, true));
            assert_eq!(packet.with_ipv6().kind(), packet.kind());
            assert_eq!((views, packet.protocol()), (own, protocol));
        }
    }

    #[test]
    #[should_panic(expected = "has room for 1 SACK blocks")]
    fn stamps_take_the_room_of_blocks() {
        let mut packet = Packet::default();
        packet.set_stamps(Stamps::default());
        let mut segment = packet.tcp_mut().unwrap();
        segment.push_sack(SackBlock::default());
        segment.push_sack(SackBlock::default());
    }
}
