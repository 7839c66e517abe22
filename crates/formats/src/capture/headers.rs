//! Writes the engine's packet record as the bytes of an IPv4 or IPv6 header, and of a TCP header.
//!
//! The record has what the engine needs; the rest is written as Linux would write it. The options of a TCP header, as
//! far as its length has room (the packet of a real host may have other options there):
//!
//! - timestamps (RFC 7323) after two NOPs, and SACK blocks (RFC 2018) after two more;
//! - on a SYN the maximum segment size, SACK-permitted, timestamps and the window scale, which simulated endpoints take
//!   from their configuration;
//! - timestamps of the interfaces, as DX lays them out: an option of 14 bytes after two NOPs, of kind 253 for
//!   experiments (RFC 4727) without the identifier of RFC 6994, for which DX has no room; then t1 (on an ACK t3), and
//!   the echoed t1 and t2. A capture at the sender sees the packet before its interface, so that the first of them is
//!   zero.
//!
//! The traffic class is the upper three bits of DSCP. Payload is not simulated: it counts as zeros in the checksum and
//! is not in the capture.
//!
//! Of packets that are not TCP, the headers of UDP and ICMP are written; of other protocols, only the IP header. A
//! kernel leaves the checksum of UDP to its interface: it is written as absent.

use super::address::Addresses;
use etherparse::{IpDscp, IpEcn, IpFragOffset, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, TcpHeader, UdpHeader};
use firstlight_net::{Packet, Stamps, TcpFlags, TcpSegment};

/// Payload for checksums.
static ZEROS: [u8; 65_536] = [0; 65_536];
/// Kinds of TCP options: no operation, and one for experiments.
const NOP: u8 = 1;
const EXPERIMENT: u8 = 253;
const TIME_TO_LIVE: u8 = 64;

/// The data that headers need beside the packet record.
#[derive(Clone, Debug)]
pub(super) struct HeaderFormat {
    pub addresses: Addresses,
    /// The first bytes of IPv6 addresses; zeros where there are none.
    pub ipv6: [u8; 12],
    /// Maximum segment size that a SYN announces.
    pub mss: u16,
    pub window_scale: u8,
}

impl HeaderFormat {
    /// Appends both headers to `bytes`; returns the packet's length on the link.
    pub fn write(&self, packet: &Packet, bytes: &mut Vec<u8>) -> u32 {
        let Some(segment) = packet.tcp() else {
            return if packet.is_ipv6() { self.other_ipv6(packet, bytes) } else { self.other(packet, bytes) };
        };
        let mut tcp = self.tcp(segment);
        let payload = &ZEROS[..packet.payload() as usize];
        let length = tcp.header_len() + payload.len();
        if packet.is_ipv6() {
            let ip = self.ipv6(packet, length);
            tcp.checksum = tcp.calc_checksum_ipv6(&ip, payload).expect("a packet has 16 bits of length");
            bytes.extend_from_slice(&ip.to_bytes());
            bytes.extend_from_slice(&tcp.to_bytes());
            return (Ipv6Header::LEN + length) as u32;
        }
        let ip = self.ip(packet, length);
        tcp.checksum = tcp.calc_checksum_ipv4(&ip, payload).expect("a packet has 16 bits of length");
        bytes.extend_from_slice(&ip.to_bytes());
        bytes.extend_from_slice(&tcp.to_bytes());
        u32::from(ip.total_len)
    }

    /// The IPv6 header of a packet that has `length` bytes behind it.
    fn ipv6(&self, packet: &Packet, length: usize) -> Ipv6Header {
        let address = |host| {
            let mut address = [0; 16];
            address[..12].copy_from_slice(&self.ipv6);
            address[12..].copy_from_slice(&self.addresses.of(host));
            address
        };
        Ipv6Header {
            traffic_class: packet.class() << 5 | packet.ecn() as u8,
            flow_label: Ipv6FlowLabel::ZERO,
            payload_length: u16::try_from(length).unwrap_or(u16::MAX),
            next_header: IpNumber(packet.protocol()),
            hop_limit: TIME_TO_LIVE,
            source: address(packet.src()),
            destination: address(packet.dst()),
        }
    }

    /// Appends the headers of an IPv6 packet that is not TCP; returns its length on the link.
    fn other_ipv6(&self, packet: &Packet, bytes: &mut Vec<u8>) -> u32 {
        let length = usize::from(packet.size()).saturating_sub(Ipv6Header::LEN);
        bytes.extend_from_slice(&self.ipv6(packet, length).to_bytes());
        transport(packet, usize::from(packet.header()).saturating_sub(Ipv6Header::LEN), bytes);
        (Ipv6Header::LEN + length) as u32
    }

    /// The IP header of a packet whose header and payload behind it are `length` bytes.
    fn ip(&self, packet: &Packet, length: usize) -> Ipv4Header {
        let (src, dst) = (self.addresses.of(packet.src()), self.addresses.of(packet.dst()));
        let length = u16::try_from(length).unwrap_or(u16::MAX - Ipv4Header::MIN_LEN as u16);
        let protocol = IpNumber(packet.protocol());
        let mut ip = Ipv4Header::new(length, TIME_TO_LIVE, protocol, src, dst).expect("a packet has 16 bits of length");
        ip.ecn = IpEcn::try_new(packet.ecn() as u8).expect("ECN has two bits");
        ip.dscp = IpDscp::try_new(packet.class() << 3).expect("a class has three bits");
        ip.header_checksum = ip.calc_header_checksum();
        ip
    }

    /// Appends the headers of a packet that is not TCP; returns its length on the link.
    fn other(&self, packet: &Packet, bytes: &mut Vec<u8>) -> u32 {
        let mut ip = self.ip(packet, usize::from(packet.size()).saturating_sub(Ipv4Header::MIN_LEN));
        // A simulated program's datagram is never a fragment.
        let second = packet.datagram().map_or(0x4000, |datagram| datagram.fragment());
        let (fragment, offset) = (second as u16, (second as u16) & 0x1fff);
        ip.identification = (second >> 16) as u16;
        ip.dont_fragment = fragment & 0x4000 != 0;
        ip.more_fragments = fragment & 0x2000 != 0;
        ip.fragment_offset = IpFragOffset::try_new(offset).expect("an offset has 13 bits");
        ip.header_checksum = ip.calc_header_checksum();
        bytes.extend_from_slice(&ip.to_bytes());
        transport(packet, usize::from(packet.header()).saturating_sub(Ipv4Header::MIN_LEN), bytes);
        u32::from(ip.total_len)
    }

    fn tcp(&self, segment: TcpSegment<'_>) -> TcpHeader {
        let mut tcp = TcpHeader::new(segment.sport(), segment.dport(), segment.seq(), segment.window());
        let flags = segment.flags();
        tcp.acknowledgment_number = segment.ack();
        tcp.fin = flags.has(TcpFlags::FIN);
        tcp.syn = flags.has(TcpFlags::SYN);
        tcp.psh = flags.has(TcpFlags::PSH);
        tcp.ack = flags.has(TcpFlags::ACK);
        tcp.ece = flags.has(TcpFlags::ECE);
        tcp.cwr = flags.has(TcpFlags::CWR);
        tcp.rst = flags.has(TcpFlags::RST);
        let ip = if segment.is_ipv6() { Ipv6Header::LEN } else { Ipv4Header::MIN_LEN };
        let room = usize::from(segment.header()).saturating_sub(ip + TcpHeader::MIN_LEN);
        let options = if tcp.syn { self.syn_options(segment, room) } else { options(segment, room) };
        tcp.set_options_raw(&options).expect("they fit in the header's room");
        tcp
    }

    fn syn_options(&self, segment: TcpSegment<'_>, room: usize) -> Vec<u8> {
        let (mss, scale) = segment.announced().unwrap_or((self.mss, self.window_scale));
        let [high, low] = mss.to_be_bytes();
        let sack_permitted = [4, 2];
        let all = [
            vec![2, 4, high, low],
            vec![NOP, 3, 3, scale],
            [&sack_permitted, &timestamps(segment)[..]].concat(),
            interfaces(segment),
        ];
        fill(&all, room)
    }
}

fn options(segment: TcpSegment<'_>, room: usize) -> Vec<u8> {
    let (sack, interfaces) = (sack(segment), interfaces(segment));
    // SACK blocks and interface timestamps get their room before TCP timestamps.
    let left = room.saturating_sub(sack.len() + interfaces.len());
    let stamps = if left >= 12 { [&[NOP, NOP], &timestamps(segment)[..]].concat() } else { vec![] };
    fill(&[stamps, interfaces, sack], room)
}

/// The timestamps option (RFC 7323).
fn timestamps(segment: TcpSegment<'_>) -> Vec<u8> {
    [&[8, 10], &segment.tsval().to_be_bytes()[..], &segment.tsecr().to_be_bytes()].concat()
}

/// The SACK option (RFC 2018); empty without blocks.
fn sack(segment: TcpSegment<'_>) -> Vec<u8> {
    if segment.sacks() == 0 {
        return vec![];
    }
    let edges = segment.sack_blocks().flat_map(|block| [block.start, block.end]).flat_map(u32::to_be_bytes);
    [NOP, NOP, 5, 2 + 8 * segment.sacks()].into_iter().chain(edges).collect()
}

/// DX's option with timestamps of the interfaces; empty without them.
fn interfaces(segment: TcpSegment<'_>) -> Vec<u8> {
    if !segment.has_stamps() {
        return vec![];
    }
    let Stamps { sent, echo_sent, echo_received, .. } = segment.stamps();
    let stamps = [sent, echo_sent, echo_received].into_iter().flat_map(u32::to_be_bytes);
    [NOP, NOP, EXPERIMENT, 14].into_iter().chain(stamps).collect()
}

/// The groups that fit in `room`, padded with NOPs.
fn fill(groups: &[Vec<u8>], room: usize) -> Vec<u8> {
    let mut options = vec![];
    for group in groups {
        if options.len() + group.len() <= room {
            options.extend_from_slice(group);
        }
    }
    options.resize(room, NOP);
    options
}

/// Appends the header of a protocol that is not TCP, of so many bytes.
fn transport(packet: &Packet, length: usize, bytes: &mut Vec<u8>) {
    let words = match packet.datagram() {
        Some(datagram) => datagram.words(),
        None => [u32::from(packet.size() - Ipv4Header::MIN_LEN as u16) << 16, 0],
    };
    match IpNumber(packet.protocol()) {
        IpNumber::UDP if length >= UdpHeader::LEN => {
            let udp = UdpHeader {
                source_port: packet.sport(),
                destination_port: packet.dport(),
                length: (words[0] >> 16) as u16,
                checksum: 0,
            };
            bytes.extend_from_slice(&udp.to_bytes());
        }
        IpNumber::ICMP | IpNumber::IPV6_ICMP if length >= 8 => {
            bytes.extend(words.into_iter().flat_map(u32::to_be_bytes));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::TcpOptionElement as TcpOption;
    use etherparse::{SlicedPacket, TransportSlice};
    use firstlight_net::{Ecn, FlowTuple, HostId, SackBlock, TcpHeader as Fields};
    use firstlight_units::Time;

    const IPV6: [u8; 12] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const ADDRESSES: Addresses = Addresses { hosts_per_rack: 16, hosts: 65_535, further: vec![] };
    const FORMAT: HeaderFormat = HeaderFormat { addresses: ADDRESSES, ipv6: IPV6, mss: 8960, window_scale: 7 };

    fn written(packet: &Packet) -> (Vec<u8>, u32) {
        let mut bytes = vec![];
        let length = FORMAT.write(packet, &mut bytes);
        (bytes, length)
    }

    fn segment(header: u8, payload: u16, flags: TcpFlags) -> Packet {
        Packet::new_tcp(FlowTuple::default(), header, payload, Fields { flags, ..Fields::default() })
    }

    #[test]
    fn a_data_packet_reads_back() {
        let (flags, ecn) = (TcpFlags::ACK | TcpFlags::CWR | TcpFlags::PSH, Ecn::Ce);
        let (src, dst) = (HostId(1), HostId(17));
        let tuple = FlowTuple { src, sport: 10_001, dst, dport: 10_002 };
        let fields = Fields { seq: 7, ack: 9, window: 512, flags, tsval: 3, tsecr: 2 };
        let packet = Packet::new_tcp(tuple, 52, 8948, fields).with_ecn(ecn);
        let (bytes, length) = written(&packet);
        assert_eq!((bytes.len(), length), (52, 9000));
        let ip = Ipv4Header::from_slice(&bytes).unwrap().0;
        assert_eq!((ip.source, ip.destination), ([10, 0, 0, 2], [10, 0, 1, 2]));
        assert_eq!((ip.ecn.value(), ip.total_len), (3, 9000));
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        let (tcp, _) = TcpHeader::from_slice(&bytes[20..]).unwrap();
        assert_eq!((tcp.sequence_number, tcp.acknowledgment_number, tcp.window_size), (7, 9, 512));
        assert!(tcp.cwr && tcp.psh && tcp.ack && !tcp.ece && !tcp.syn);
        assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, &[0; 8948]).unwrap());
        let options: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
        assert_eq!(options, [TcpOption::Noop, TcpOption::Noop, TcpOption::Timestamp(3, 2)]);
    }

    #[test]
    fn packets_of_ipv6_read_back() {
        let tuple = FlowTuple { src: HostId(1), sport: 10_001, dst: HostId(17), dport: 10_002 };
        let fields = Fields { seq: 7, flags: TcpFlags::ACK, ..Fields::default() };
        let packet = Packet::new_tcp(tuple, 72, 1000, fields).with_ipv6().with_ecn(Ecn::Ce).with_class(5);
        let (bytes, length) = written(&packet);
        assert_eq!((bytes.len(), length), (72, 1072));
        let (ip, rest) = Ipv6Header::from_slice(&bytes).unwrap();
        assert_eq!((ip.traffic_class, ip.payload_length), (5 << 5 | 3, 1032));
        assert_eq!((&ip.source[..12], &ip.source[12..]), (&IPV6[..], &[10, 0, 0, 2][..]));
        assert_eq!(ip.destination[12..], [10, 0, 1, 2]);
        let (tcp, _) = TcpHeader::from_slice(rest).unwrap();
        assert_eq!(tcp.checksum, tcp.calc_checksum_ipv6(&ip, &[0; 1000]).unwrap());
        let echo = Packet::new_datagram(tuple, 104, 48, 58, [7, 8], 0).with_ipv6();
        let (bytes, length) = written(&echo);
        assert_eq!((bytes.len(), length, bytes[6]), (48, 104, 58));
        assert_eq!(bytes[40..], [0, 0, 0, 7, 0, 0, 0, 8]);
    }

    #[test]
    fn sack_blocks_fill_the_length_of_the_record() {
        let block = |start| SackBlock { start, end: start + 1 };
        for sacks in 1..=3u8 {
            let header = 52 + 4 + 8 * sacks;
            let mut packet = segment(header, 0, TcpFlags::ACK | TcpFlags::ECE);
            let blocks = [block(10), block(20), block(30)];
            blocks[..sacks.into()].iter().for_each(|block| packet.tcp_mut().unwrap().push_sack(*block));
            let (bytes, length) = written(&packet);
            assert_eq!((bytes.len(), length), (header.into(), header.into()));
            let Some(TransportSlice::Tcp(tcp)) = SlicedPacket::from_ip(&bytes).unwrap().transport else { panic!() };
            assert!(tcp.ece());
            let more = [(sacks > 1).then_some((20, 21)), (sacks > 2).then_some((30, 31)), None];
            let last = tcp.options_iterator().last().unwrap().unwrap();
            assert_eq!(last, TcpOption::SelectiveAcknowledgement((10, 11), more));
        }
    }

    /// DX's option of 14 bytes, RFC 7323's timestamps and one SACK block fill all 40 bytes of options.
    #[test]
    fn timestamps_of_the_interfaces_and_the_class() {
        let fields = Fields { flags: TcpFlags::ACK, tsval: 3, tsecr: 2, ..Fields::default() };
        let mut packet = Packet::new_tcp(FlowTuple::default(), 68, 8932, fields).with_class(5);
        packet.set_stamps(Stamps {
            echo_sent: 0x0102_0304,
            echo_received: 0x0506_0708,
            sent: 0x0a0b_0c0d,
            received: 9,
        });
        let own = [1, 1, 253, 14, 10, 11, 12, 13, 1, 2, 3, 4, 5, 6, 7, 8];
        let stamps = [1, 1, 8, 10, 0, 0, 0, 3, 0, 0, 0, 2];
        let (bytes, length) = written(&packet);
        assert_eq!((bytes.len(), length), (68, 9000));
        assert_eq!(bytes[40..], [&stamps[..], &own].concat());
        let ip = Ipv4Header::from_slice(&bytes).unwrap().0;
        assert_eq!((ip.dscp.value(), ip.ecn.value()), (5 << 3, 0));
        let mut segment = packet.tcp_mut().unwrap();
        segment.push_sack(SackBlock { start: 7, end: 8 });
        segment.add_options(12);
        let (bytes, _) = written(&packet);
        assert_eq!(bytes[40..], [&stamps[..], &own, &[1, 1, 5, 10, 0, 0, 0, 7, 0, 0, 0, 8]].concat());
        // A SYN has no SACK blocks, and has room for all other options.
        let mut syn = self::segment(76, 0, TcpFlags::SYN);
        syn.set_stamps(Stamps::default());
        let (bytes, length) = written(&syn);
        assert_eq!((bytes.len(), length), (76, 76));
        assert_eq!(bytes[60..64], [1, 1, 253, 14]);
    }

    #[test]
    fn a_probe_is_a_datagram() {
        let probe = Packet::new_probe(HostId(0), HostId(1), 64, 5, Time::from_ps(0x2fff_0000_0007));
        let (bytes, length) = written(&probe);
        assert_eq!((bytes.len(), length), (28, 64));
        let ip = Ipv4Header::from_slice(&bytes).unwrap().0;
        assert_eq!((ip.dont_fragment, ip.more_fragments, ip.fragment_offset.value()), (true, false, 0));
        assert_eq!(UdpHeader::from_slice(&bytes[20..]).unwrap().0.length, 44);
    }

    #[test]
    fn a_syn_announces_the_options_of_its_endpoint() {
        let mut packet = segment(60, 0, TcpFlags::SYN);
        let (bytes, length) = written(&packet);
        assert_eq!((bytes.len(), length), (60, 60));
        let (tcp, _) = TcpHeader::from_slice(&bytes[20..]).unwrap();
        let options: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
        assert_eq!(options[0], TcpOption::MaximumSegmentSize(8960));
        assert_eq!(options[2], TcpOption::WindowScale(7));
        assert_eq!(options.last(), Some(&TcpOption::Timestamp(0, 0)));
        // The record of a real host's SYN has what that SYN announces.
        packet.tcp_mut().unwrap().announce(1460, 9);
        let (bytes, _) = written(&packet);
        let (tcp, _) = TcpHeader::from_slice(&bytes[20..]).unwrap();
        let options: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
        assert_eq!((&options[0], &options[2]), (&TcpOption::MaximumSegmentSize(1460), &TcpOption::WindowScale(9)));
    }

    #[test]
    fn headers_have_the_length_of_the_record() {
        let block = |start| SackBlock { start, end: start + 1 };
        for (header, sacks) in [(40u8, 0u8), (44, 0), (52, 0), (52, 1), (56, 0), (60, 2), (76, 3), (80, 3)] {
            for flags in [TcpFlags::ACK, TcpFlags::SYN, TcpFlags::RST] {
                let mut packet = segment(header, 100, flags);
                (0..sacks).for_each(|_| packet.tcp_mut().unwrap().push_sack(block(1)));
                let (bytes, length) = written(&packet);
                assert_eq!((bytes.len(), length), (header.into(), u32::from(header) + 100), "{packet:?}");
                let (tcp, rest) = TcpHeader::from_slice(&bytes[20..]).unwrap();
                assert!(rest.is_empty() && tcp.options_iterator().all(|option| option.is_ok()));
                let with = |is: fn(&TcpOption) -> bool| tcp.options_iterator().flatten().any(|option| is(&option));
                let sack = with(|option| matches!(option, TcpOption::SelectiveAcknowledgement(..)));
                assert!(tcp.syn || sack == (sacks > 0), "{packet:?}");
                assert!(!tcp.rst || flags == TcpFlags::RST);
            }
        }
    }

    #[test]
    fn other_protocols_have_their_own_headers() {
        let (src, dst) = (HostId(1), HostId(17));
        let tuple = FlowTuple { src, sport: 53, dst, dport: 54 };
        let packet = |size, header, protocol, words, fragment| {
            written(&Packet::new_datagram(tuple, size, header, protocol, words, fragment))
        };
        let (bytes, length) = packet(1028, 28, 17, [1008 << 16 | 7, 0], 0x1234_4000);
        assert_eq!((bytes.len(), length), (28, 1028));
        let ip = Ipv4Header::from_slice(&bytes).unwrap().0;
        assert_eq!((ip.protocol, ip.identification, ip.dont_fragment), (IpNumber::UDP, 0x1234, true));
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        let udp = UdpHeader::from_slice(&bytes[20..]).unwrap().0;
        assert_eq!((udp.source_port, udp.destination_port, udp.length, udp.checksum), (53, 54, 1008, 0));
        let (bytes, _) = packet(1028, 28, 1, [0x0800_abcd, 7 << 16 | 8], 0);
        assert_eq!(bytes[20..], [8, 0, 0xab, 0xcd, 0, 7, 0, 8]);
        let (bytes, length) = packet(50, 20, 132, [0; 2], 0);
        assert_eq!((bytes.len(), length), (20, 50));
        // A later fragment has no UDP header.
        let (bytes, _) = packet(1028, 20, 17, [0; 2], 9);
        assert_eq!((bytes.len(), Ipv4Header::from_slice(&bytes).unwrap().0.fragment_offset.value()), (20, 9));
    }
}
