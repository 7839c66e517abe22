//! Reads a kernel's frame into the fabric's packet record: Ethernet, IPv4 (RFC 791) or IPv6 (RFC 8200), TCP (RFC 9293)
//! with timestamps (RFC 7323), SACK (RFC 2018) and timestamps of the interfaces (`linux/kernel/firstlight_stamps.h`),
//! UDP (RFC 768) and ICMP (RFC 792, RFC 4443). Extension headers of IPv6 are a protocol of their own.
//!
//! Only headers are read. Checksums are not: a kernel leaves them to its interface. A packet that is not TCP keeps what
//! its record has places for: UDP's ports, with the header's last four bytes as `seq`; ICMP's eight bytes as `seq` and
//! `ack`; of any other protocol, and of all fragments but the first, nothing but the IP header. Of DSCP the record
//! keeps the upper three bits, as the traffic class (RFC 2474, section 4.2.2); the others decide nothing on these
//! fabrics.

use firstlight_linux::ipv4_of;
use firstlight_net::{Ecn, FlowTuple, HostId, Packet, SackBlock, Stamps, TcpFlags, TcpHeader, TcpSegmentMut};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Bytes of Ethernet before the IP header; links of the fabric do not count them.
const ETHERNET: usize = 14;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Bytes of IPv6's header.
const IPV6_HEADER: usize = 40;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// The TCP option with timestamps of the interfaces: a kind for experiments (RFC 4727).
const STAMPS: u8 = 253;
/// The part of a datagram that a fragment carries, in units of 8 bytes.
const FRAGMENT_OFFSET: u32 = 0x1fff;

/// Why a frame does not enter the fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The frame does not carry IP but, for example, ARP.
    NotIp,
    /// The headers are cut short or contradict each other.
    Malformed,
    /// The destination is an address that no host of the kernel has: broadcast, multicast, a simulated host.
    Elsewhere,
}

/// The addresses of a kernel's hosts.
#[derive(Clone, Debug, Default)]
pub struct HostAddresses(Vec<(u32, HostId)>);

impl HostAddresses {
    /// The addresses of these hosts.
    pub fn new(hosts: impl IntoIterator<Item = (Ipv4Addr, HostId)>) -> Self {
        let mut all: Vec<_> = hosts.into_iter().map(|(address, host)| (address.to_bits(), host)).collect();
        all.sort_unstable();
        HostAddresses(all)
    }

    #[inline]
    pub(crate) fn host(&self, address: u32) -> Option<HostId> {
        self.0.binary_search_by_key(&address, |entry| entry.0).ok().map(|at| self.0[at].1)
    }
}

/// Reads the headers of a frame of `length` bytes that `from` sends; they must lie in `frame` as a whole.
///
/// # Errors
/// When the frame holds no packet for one of `addresses`.
#[inline]
pub fn read_frame(frame: &[u8], length: usize, from: HostId, addresses: &HostAddresses) -> Result<Packet, Refusal> {
    match half(frame, 12).ok_or(Refusal::Malformed)? {
        IPV4 => {}
        IPV6 => return read_ipv6(&frame[ETHERNET..], length, from, addresses),
        _ => return Err(Refusal::NotIp),
    }
    let ip = &frame[ETHERNET..];
    if ip.len() < 20 || ip[0] >> 4 != 4 {
        return Err(Refusal::Malformed);
    }
    let header = usize::from(ip[0] & 15) * 4;
    let size = u16::from_be_bytes([ip[2], ip[3]]);
    let transport = ip.get(header..).ok_or(Refusal::Malformed)?;
    if header < 20 || usize::from(size) < header || length < ETHERNET + usize::from(size) {
        return Err(Refusal::Malformed);
    }
    let dst = word(ip, 16).and_then(|address| addresses.host(address)).ok_or(Refusal::Elsewhere)?;
    let hosts = FlowTuple { src: from, dst, ..FlowTuple::default() };
    let fragment = u32::from_be_bytes([ip[4], ip[5], ip[6], ip[7]]);
    let packet = match ip[9] {
        TCP if fragment & FRAGMENT_OFFSET == 0 => tcp(hosts, size, header, transport).ok_or(Refusal::Malformed)?,
        protocol => other(hosts, size, header as u8, protocol, transport, fragment),
    };
    // The upper three bits of DSCP (RFC 2474, section 4.2.2).
    Ok(packet.with_ecn(Ecn::from_bits(ip[1])).with_class(ip[1] >> 5))
}

/// Reads the headers of an IPv6 packet in a frame of `length` bytes.
fn read_ipv6(ip: &[u8], length: usize, from: HostId, addresses: &HostAddresses) -> Result<Packet, Refusal> {
    let (header, transport) = ip.split_at_checked(IPV6_HEADER).ok_or(Refusal::Malformed)?;
    let size = IPV6_HEADER + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let size = u16::try_from(size).map_err(|_| Refusal::Malformed)?;
    if header[0] >> 4 != 6 || length < ETHERNET + usize::from(size) {
        return Err(Refusal::Malformed);
    }
    let address: [u8; 16] = header[24..].try_into().expect("an address has 16 bytes");
    let dst = ipv4_of(Ipv6Addr::from(address))
        .and_then(|address| addresses.host(address.to_bits()))
        .ok_or(Refusal::Elsewhere)?;
    let hosts = FlowTuple { src: from, dst, ..FlowTuple::default() };
    let packet = match header[6] {
        TCP => tcp(hosts, size, IPV6_HEADER, transport).ok_or(Refusal::Malformed)?,
        protocol => other(hosts, size, IPV6_HEADER as u8, protocol, transport, 0),
    };
    let class = header[0] << 4 | header[1] >> 4;
    Ok(packet.with_ipv6().with_ecn(Ecn::from_bits(class)).with_class(class >> 5))
}

#[inline]
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Reads a TCP header; `None` when it is cut short or contradicts the packet's size.
#[inline]
fn tcp(hosts: FlowTuple, size: u16, header: usize, bytes: &[u8]) -> Option<Packet> {
    let (fixed, _) = bytes.split_at_checked(20)?;
    let length = usize::from(fixed[12] >> 4) * 4;
    let header = header + length;
    if length < 20 || header > usize::from(size) {
        return None;
    }
    let tuple = FlowTuple { sport: half(fixed, 0)?, dport: half(fixed, 2)?, ..hosts };
    let (seq, ack, window) = (word(fixed, 4)?, word(fixed, 8)?, half(fixed, 14)?);
    let tcp = TcpHeader { seq, ack, window, flags: TcpFlags(fixed[13]), ..TcpHeader::default() };
    let mut packet = Packet::new_tcp(tuple, header as u8, size - header as u16, tcp);
    options(packet.tcp_mut()?, bytes.get(20..length)?);
    Some(packet)
}

/// Reads timestamps, SACK blocks, and what a SYN announces. A broken option ends the list, as at receivers.
#[inline]
fn options(mut segment: TcpSegmentMut<'_>, mut bytes: &[u8]) {
    let (mut largest, mut scale, mut blocks) = (0, 0, &[][..]);
    while let [kind, rest @ ..] = bytes {
        if *kind == 1 {
            bytes = rest;
            continue;
        }
        let Some(length) = rest.first().map(|length| usize::from(*length)).filter(|length| *length >= 2) else { break };
        let Some(value) = bytes.get(2..length) else { break };
        match (kind, value.len()) {
            (0, _) => break,
            (2, 2) => largest = half(value, 0).unwrap_or_default(),
            (3, 1) => scale = value[0],
            (5, 8..) if blocks.is_empty() => blocks = value,
            (&STAMPS, 12) => segment.set_stamps(echoed(value)),
            (8, 8) => {
                segment.set_tsval(word(value, 0).unwrap_or_default());
                segment.set_tsecr(word(value, 4).unwrap_or_default());
            }
            _ => {}
        }
        bytes = &bytes[length..];
    }
    sack(&mut segment, blocks);
    if largest > 0 {
        segment.announce(largest, scale);
    }
}

/// Reads the stamps that a packet echoes. Its own timestamps are the fabric's to write.
fn echoed(value: &[u8]) -> Stamps {
    let [echo_sent, echo_received] = [4, 8].map(|at| word(value, at).unwrap_or_default());
    Stamps { echo_sent, echo_received, ..Stamps::default() }
}

/// Reads as many SACK blocks as the record has room for: three, and one beside timestamps of the interfaces. A packet
/// without any timestamps can have a fourth.
#[inline]
fn sack(segment: &mut TcpSegmentMut<'_>, value: &[u8]) {
    let room = if segment.tcp().is_some_and(|segment| segment.has_stamps()) { 1 } else { 3 };
    for block in value.chunks_exact(8).take(room) {
        let [start, end] = [0, 4].map(|at| word(block, at).unwrap_or_default());
        segment.push_sack(SackBlock { start, end });
    }
}

/// The record of a packet that is not TCP, or of a later fragment.
fn other(hosts: FlowTuple, size: u16, header: u8, protocol: u8, bytes: &[u8], fragment: u32) -> Packet {
    let (mut tuple, mut words) = (hosts, [0; 2]);
    let read = match (fragment & FRAGMENT_OFFSET == 0, protocol, bytes) {
        (true, UDP, &[a, b, c, d, e, f, g, h, ..]) => {
            (tuple.sport, tuple.dport) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            words[0] = u32::from_be_bytes([e, f, g, h]);
            8
        }
        (true, ICMP | ICMPV6, &[a, b, c, d, e, f, g, h, ..]) => {
            words = [u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])];
            8
        }
        _ => 0,
    };
    let header = (u16::from(header) + read).min(size) as u8;
    Packet::new_datagram(tuple, size, header, protocol, words, fragment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketBuilder, PacketBuilderStep, TcpOptionElement as Opt, ip_number};
    use proptest::prelude::*;

    const HOST: HostId = HostId(17);

    fn addresses() -> HostAddresses {
        let hosts = (0..40).map(|n| (Ipv4Addr::new(10, 0, n / 16, n % 16 + 1), HostId(n.into())));
        HostAddresses::new(hosts)
    }

    /// IPv4 from 10.0.0.1 to the 18th host.
    fn ip() -> PacketBuilderStep<etherparse::IpHeaders> {
        PacketBuilder::ethernet2([2; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 1, 2], 64)
    }

    fn parse(frame: &[u8]) -> Result<Packet, Refusal> {
        read_frame(&frame[..frame.len().min(134)], frame.len(), HostId(0), &addresses())
    }

    #[test]
    fn a_segment_with_sack() {
        let options = [Opt::Noop, Opt::Noop, Opt::Timestamp(77, 66), Opt::Noop, Opt::Noop];
        let sack = Opt::SelectiveAcknowledgement((1, 2), [Some((3, 4)), None, None]);
        let builder = ip().tcp(10_001, 10_002, 5, 300).ack(9).psh().ece().options(&[&options[..], &[sack]].concat());
        let mut frame = vec![];
        builder.unwrap().write(&mut frame, &[0; 1000]).unwrap();
        frame[15] |= 0xbb; // expedited forwarding, CE
        let packet = parse(&frame).unwrap();
        assert_eq!((packet.size(), packet.header(), packet.payload()), (1072, 72, 1000));
        assert_eq!((packet.src(), packet.dst(), packet.sport(), packet.dport()), (HostId(0), HOST, 10_001, 10_002));
        let segment = packet.tcp().unwrap();
        assert_eq!((segment.seq(), segment.ack(), segment.window(), packet.ecn()), (5, 9, 300, Ecn::Ce));
        assert_eq!(segment.flags(), TcpFlags::ACK | TcpFlags::PSH | TcpFlags::ECE);
        assert_eq!((segment.tsval(), segment.tsecr(), packet.protocol(), packet.class()), (77, 66, 6, 5));
        assert!(segment.sack_blocks().eq([SackBlock { start: 1, end: 2 }, SackBlock { start: 3, end: 4 }]));
    }

    /// The layout is that of simulated packets in a capture (`firstlight_formats`), and of the kernel's option.
    #[test]
    fn timestamps_of_the_interfaces_are_read() {
        let stamps = [1, 1, 253, 14, 10, 11, 12, 13, 1, 2, 3, 4, 5, 6, 7, 8];
        let sack = [1, 1, 5, 10, 0, 0, 0, 7, 0, 0, 0, 8];
        let timestamp = [1, 1, 8, 10, 0, 0, 0, 3, 0, 0, 0, 2];
        for options in [[&timestamp[..], &stamps, &sack].concat(), [&sack[..], &stamps, &timestamp].concat()] {
            let mut frame = vec![];
            ip().tcp(1, 2, 3, 4).options_raw(&options).unwrap().write(&mut frame, &[0; 1432]).unwrap();
            let packet = parse(&frame).unwrap();
            assert_eq!((packet.header(), packet.payload(), packet.has_stamps()), (80, 1432, true));
            let echoed = Stamps { echo_sent: 0x0102_0304, echo_received: 0x0506_0708, ..Stamps::default() };
            assert_eq!(packet.stamps(), echoed, "its own are the fabric's to write");
            assert!(packet.tcp().unwrap().sack_blocks().eq([SackBlock { start: 7, end: 8 }]));
        }
        // Two blocks, where an end sends no timestamps: the record has room for one.
        let sacks = [1, 1, 5, 18, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 10];
        let mut frame = vec![];
        ip().tcp(1, 2, 3, 4).options_raw(&[&sacks[..], &stamps].concat()).unwrap().write(&mut frame, &[]).unwrap();
        assert_eq!(parse(&frame).unwrap().tcp().unwrap().sacks(), 1);
    }

    #[test]
    fn a_syn_announces_segment_and_scale() {
        let options = [Opt::MaximumSegmentSize(8960), Opt::SelectiveAcknowledgementPermitted, Opt::Timestamp(7, 0)];
        let builder = ip().tcp(1, 2, 3, 4).syn().options(&[&options[..], &[Opt::Noop, Opt::WindowScale(9)]].concat());
        let mut frame = vec![];
        builder.unwrap().write(&mut frame, &[]).unwrap();
        let packet = parse(&frame).unwrap();
        let segment = packet.tcp().unwrap();
        assert_eq!((segment.announced(), segment.sacks(), packet.header()), (Some((8960, 9)), 0, 60));
    }

    #[test]
    fn other_protocols_keep_their_number() {
        let mut udp = vec![];
        ip().udp(53, 54).write(&mut udp, &[0; 100]).unwrap();
        let packet = parse(&udp).unwrap();
        assert_eq!((packet.protocol(), packet.sport(), packet.dport(), packet.payload()), (17, 53, 54, 100));
        udp[15] = 7 << 5;
        assert_eq!([packet.class(), parse(&udp).unwrap().class()], [0, 7]);
        let mut icmp = vec![];
        ip().icmpv4_echo_request(7, 8).write(&mut icmp, &[0; 56]).unwrap();
        let packet = parse(&icmp).unwrap();
        let [kind, echo] = packet.datagram().unwrap().words();
        assert_eq!((packet.protocol(), echo, packet.payload(), kind >> 16), (1, 7 << 16 | 8, 56, 0x800));
        let mut bare = vec![];
        ip().write(&mut bare, ip_number::SCTP, &[0; 30]).unwrap();
        let packet = parse(&bare).unwrap();
        assert_eq!((packet.protocol(), packet.sport(), packet.payload()), (132, 0, 30));
    }

    #[test]
    fn packets_of_ipv6() {
        let address = |n: u32| firstlight_linux::ipv6_of(Ipv4Addr::from_bits(n)).octets();
        let ip = || PacketBuilder::ethernet2([2; 6], [2; 6]).ipv6(address(0x0a00_0001), address(0x0a00_0102), 64);
        let mut frame = vec![];
        ip().tcp(1, 2, 3, 4).ack(9).options(&[Opt::Timestamp(77, 66)]).unwrap().write(&mut frame, &[0; 100]).unwrap();
        (frame[14], frame[15]) = (0x6b, 0xb0); // expedited forwarding, CE
        let packet = parse(&frame).unwrap();
        assert_eq!((packet.size(), packet.header(), packet.payload(), packet.is_ipv6()), (172, 72, 100, true));
        assert_eq!((packet.src(), packet.dst(), packet.sport(), packet.dport()), (HostId(0), HOST, 1, 2));
        assert_eq!((packet.class(), packet.ecn(), packet.tcp().unwrap().tsval()), (5, Ecn::Ce, 77));
        let mut udp = vec![];
        ip().udp(53, 54).write(&mut udp, &[0; 10]).unwrap();
        let packet = parse(&udp).unwrap();
        assert_eq!((packet.protocol(), packet.sport(), packet.header(), packet.payload()), (17, 53, 48, 10));
        let mut echo = vec![];
        ip().icmpv6_echo_request(7, 8).write(&mut echo, &[0; 56]).unwrap();
        let packet = parse(&echo).unwrap();
        assert_eq!((packet.protocol(), packet.datagram().unwrap().words()[1]), (58, 7 << 16 | 8));
        let wrong = |at: usize, byte: u8| {
            let mut frame = frame.clone();
            frame[at] = byte;
            parse(&frame)
        };
        assert_eq!([wrong(38, 0xfe), wrong(53, 99)], [Err(Refusal::Elsewhere); 2]);
        assert_eq!([wrong(14, 0x45), wrong(18, 9)], [Err(Refusal::Malformed); 2], "version 4, a longer packet");
        (0..74).for_each(|cut| {
            assert_eq!(read_frame(&frame[..cut], frame.len(), HostId(0), &addresses()), Err(Refusal::Malformed))
        });
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let mut frame = vec![];
        ip().udp(53, 54).write(&mut frame, &[0; 100]).unwrap();
        frame[21] = 9;
        let packet = parse(&frame).unwrap();
        let fragment = packet.datagram().unwrap().fragment();
        assert_eq!((packet.protocol(), packet.sport(), packet.header(), fragment & 0xff), (17, 0, 20, 9));
    }

    #[test]
    fn what_is_no_packet_for_a_host_is_refused() {
        let mut frame = vec![];
        ip().tcp(1, 2, 3, 4).write(&mut frame, &[0; 10]).unwrap();
        let with = |at: usize, byte: u8| {
            let mut frame = frame.clone();
            frame[at] = byte;
            parse(&frame)
        };
        assert!(with(14, 0x45).is_ok());
        assert_eq!(with(13, 6), Err(Refusal::NotIp), "ARP");
        assert_eq!(with(33, 99), Err(Refusal::Elsewhere));
        assert_eq!(with(14, 0x65), Err(Refusal::Malformed), "version 6");
        assert_eq!(with(14, 0x44), Err(Refusal::Malformed), "an IP header of 16 bytes");
        assert_eq!(with(17, 255), Err(Refusal::Malformed), "longer than the frame");
        assert_eq!(with(46, 0xf0), Err(Refusal::Malformed), "a TCP header longer than the packet");
        assert_eq!(with(47, 0).map(|packet| (packet.protocol(), packet.tcp().is_some())), Ok((6, true)), "no flags");
        (0..54)
            .for_each(|cut| assert!(read_frame(&frame[..cut], frame.len(), HostId(0), &addresses()).is_err(), "{cut}"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_bytes_are_read_or_refused(
            mut frame in prop::collection::vec(any::<u8>(), 0..140), length in 0usize..70_000, valid in any::<bool>(),
        ) {
            if valid && frame.len() > 46 {
                frame[12..15].copy_from_slice(&[8, 0, 0x45]);
                (frame[23], frame[46]) = (6, frame[46] | 0x50);
                frame[30..34].copy_from_slice(&[10, 0, 1, 2]);
            }
            if let Ok(packet) = read_frame(&frame, length, HostId(0), &addresses()) {
                prop_assert!(u16::from(packet.header()) <= packet.size() && usize::from(packet.size()) + 14 <= length);
                prop_assert!(packet.tcp().is_none_or(|segment| segment.sack_blocks().len() <= 3));
                prop_assert!(packet.header() >= 20);
                prop_assert_eq!(packet.dst(), HOST);
            }
        }

        #[test]
        fn options_agree_with_another_reader(
            bytes in prop::collection::vec(prop_oneof![Just(1u8), Just(8), Just(10), any::<u8>()], 0..40),
        ) {
            let options = &bytes[..bytes.len() / 4 * 4];
            let Ok(builder) = ip().tcp(1, 2, 3, 4).options_raw(options) else { return Ok(()) };
            let mut frame = vec![];
            builder.write(&mut frame, &[]).unwrap();
            let packet = parse(&frame).unwrap();
            // The reader of crate etherparse stops at options that it does not know.
            let known: Result<Vec<_>, _> = etherparse::TcpOptionsIterator::from_slice(options).collect();
            let Ok(known) = known else { return Ok(()) };
            let mut stamps = known.into_iter().filter_map(|option| match option {
                Opt::Timestamp(a, b) => Some((a, b)),
                _ => None,
            });
            if let Some(last) = stamps.next_back() {
                let segment = packet.tcp().unwrap();
                prop_assert_eq!((segment.tsval(), segment.tsecr()), last);
            }
        }
    }
}
