//! From the engine's packet record to the bytes of an IPv4 and a TCP header.
//!
//! The record carries what the engine needs; the rest is filled in as Linux would. Options: timestamps (RFC 7323) behind
//! two NOPs, SACK blocks (RFC 2018) behind two more, and on a SYN the largest segment, SACK-permitted, timestamps and the
//! window scale, which the endpoints take from their configuration. Payload is not simulated: it counts as zeros in the
//! checksum, which is right for them, and is not in the capture.

use super::address::address;
use etherparse::TcpOptionElement as TcpOption;
use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader};
use firstlight_net::{Packet, SackBlock, TcpFlags};

/// Payload for checksums.
static ZEROS: [u8; 65_536] = [0; 65_536];
const TIME_TO_LIVE: u8 = 64;

/// What the record does not carry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    pub hosts_per_rack: usize,
    /// Largest segment as a SYN announces it.
    pub mss: u16,
    pub window_scale: u8,
}

impl Wire {
    /// Appends both headers to `bytes`; tells the packet's length on the wire.
    pub fn write(&self, packet: &Packet, bytes: &mut Vec<u8>) -> u32 {
        let mut tcp = self.tcp(packet);
        let payload = &ZEROS[..packet.payload() as usize];
        let length = tcp.header_len() + payload.len();
        let (src, dst) = (address(packet.src, self.hosts_per_rack), address(packet.dst, self.hosts_per_rack));
        let length = u16::try_from(length).unwrap_or(u16::MAX - Ipv4Header::MIN_LEN as u16);
        let mut ip =
            Ipv4Header::new(length, TIME_TO_LIVE, IpNumber::TCP, src, dst).expect("a packet has 16 bits of length");
        ip.ecn = IpEcn::try_new(packet.ecn as u8).expect("ECN has two bits");
        ip.header_checksum = ip.calc_header_checksum();
        tcp.checksum = tcp.calc_checksum_ipv4(&ip, payload).expect("a packet has 16 bits of length");
        bytes.extend_from_slice(&ip.to_bytes());
        bytes.extend_from_slice(&tcp.to_bytes());
        u32::from(ip.total_len)
    }

    fn tcp(&self, packet: &Packet) -> TcpHeader {
        let mut tcp = TcpHeader::new(packet.sport, packet.dport, packet.seq, packet.window);
        let flags = packet.flags;
        tcp.acknowledgment_number = packet.ack;
        tcp.fin = flags.has(TcpFlags::FIN);
        tcp.syn = flags.has(TcpFlags::SYN);
        tcp.psh = flags.has(TcpFlags::PSH);
        tcp.ack = flags.has(TcpFlags::ACK);
        tcp.ece = flags.has(TcpFlags::ECE);
        tcp.cwr = flags.has(TcpFlags::CWR);
        let options = if tcp.syn { self.syn_options(packet) } else { options(packet) };
        tcp.set_options(&options).expect("all options fit in 40 bytes");
        tcp
    }

    fn syn_options(&self, packet: &Packet) -> Vec<TcpOption> {
        vec![
            TcpOption::MaximumSegmentSize(self.mss),
            TcpOption::SelectiveAcknowledgementPermitted,
            TcpOption::Timestamp(packet.tsval, packet.tsecr),
            TcpOption::Noop,
            TcpOption::WindowScale(self.window_scale),
        ]
    }
}

fn options(packet: &Packet) -> Vec<TcpOption> {
    let mut options = vec![TcpOption::Noop, TcpOption::Noop, TcpOption::Timestamp(packet.tsval, packet.tsecr)];
    let edges = |block: &SackBlock| (block.start, block.end);
    if let Some((first, rest)) = packet.sack_blocks().split_first() {
        let more = [rest.first().map(edges), rest.get(1).map(edges), None];
        options.extend([TcpOption::Noop, TcpOption::Noop, TcpOption::SelectiveAcknowledgement(edges(first), more)]);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{SlicedPacket, TransportSlice};
    use firstlight_net::{Ecn, HostId};

    const WIRE: Wire = Wire { hosts_per_rack: 16, mss: 8960, window_scale: 7 };

    fn written(packet: &Packet) -> (Vec<u8>, u32) {
        let mut bytes = vec![];
        let length = WIRE.write(packet, &mut bytes);
        (bytes, length)
    }

    #[test]
    fn a_data_packet_reads_back() {
        let (flags, ecn) = (TcpFlags::ACK | TcpFlags::CWR | TcpFlags::PSH, Ecn::Ce);
        let (src, dst) = (HostId(1), HostId(17));
        let packet = Packet {
            size: 9000,
            header: 52,
            src,
            dst,
            sport: 10_001,
            dport: 10_002,
            seq: 7,
            ack: 9,
            window: 512,
            flags,
            ecn,
            tsval: 3,
            tsecr: 2,
            ..Packet::default()
        };
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
    fn sack_blocks_are_as_long_as_the_record_says() {
        let block = |start| SackBlock { start, end: start + 1 };
        for sacks in 1..=3u8 {
            let header = 52 + 4 + 8 * sacks;
            let sack = [block(10), block(20), block(30)];
            let flags = TcpFlags::ACK | TcpFlags::ECE;
            let packet = Packet { size: header.into(), header, sacks, sack, flags, ..Packet::default() };
            let (bytes, length) = written(&packet);
            assert_eq!((bytes.len(), length), (header.into(), header.into()));
            let Some(TransportSlice::Tcp(tcp)) = SlicedPacket::from_ip(&bytes).unwrap().transport else { panic!() };
            assert!(tcp.ece());
            let more = [(sacks > 1).then_some((20, 21)), (sacks > 2).then_some((30, 31)), None];
            let last = tcp.options_iterator().last().unwrap().unwrap();
            assert_eq!(last, TcpOption::SelectiveAcknowledgement((10, 11), more));
        }
    }

    #[test]
    fn a_syn_announces_what_the_endpoint_uses() {
        let packet = Packet { size: 60, header: 60, flags: TcpFlags::SYN, ..Packet::default() };
        let (bytes, length) = written(&packet);
        assert_eq!((bytes.len(), length), (60, 60));
        let (tcp, _) = TcpHeader::from_slice(&bytes[20..]).unwrap();
        let options: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
        assert_eq!(options[0], TcpOption::MaximumSegmentSize(8960));
        assert_eq!(options[4], TcpOption::WindowScale(7));
    }
}
