//! Marks that a fabric writes into packets: congestion experienced (RFC 3168), and ECN-Echo for circuits.
//!
//! Checksums are updated by the difference (RFC 1624, equation 3). A TCP checksum that the kernel has left to the
//! interface stays: its field holds the sum of the pseudo header, which does not contain the flags.

const TCP: u8 = 6;
/// Offsets in an IPv4 header.
const TOS: usize = 1;
const PROTOCOL: usize = 9;
const IP_CHECKSUM: usize = 10;
/// Offsets in a TCP header.
const FLAGS: usize = 12;
const TCP_CHECKSUM: usize = 16;

const CE: u8 = 3;
const ECE: u8 = 0x40;

/// Marks an IPv4 packet as having experienced congestion.
pub fn set_ce(ip: &mut [u8]) {
    let before = word(ip, 0);
    ip[TOS] |= CE;
    follow(ip, IP_CHECKSUM, before, word(ip, 0));
}

/// Sets ECN-Echo in a TCP segment, and leaves other packets unchanged. `left` says that the checksum is left to the
/// interface.
pub fn set_ece(ip: &mut [u8], left: bool) {
    let header = usize::from(ip[0] & 15) * 4;
    if ip[PROTOCOL] != TCP || ip.len() < header + 20 {
        return;
    }
    let tcp = &mut ip[header..];
    let before = word(tcp, FLAGS);
    tcp[FLAGS + 1] |= ECE;
    let after = word(tcp, FLAGS);
    if !left {
        follow(tcp, TCP_CHECKSUM, before, after);
    }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Lets a checksum follow a change of one word.
fn follow(bytes: &mut [u8], at: usize, before: u16, after: u16) {
    let sum = u32::from(!word(bytes, at)) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    bytes[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{Ipv4HeaderSlice, PacketBuilder, TcpSlice};
    use proptest::prelude::*;

    fn segment(payload: &[u8], port: u16, sequence: u32) -> Vec<u8> {
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 1, 2], 64).tcp(port, 80, sequence, 1000);
        let mut bytes = vec![];
        builder.write(&mut bytes, payload).unwrap();
        bytes
    }

    fn are_true(bytes: &[u8]) -> bool {
        let ip = Ipv4HeaderSlice::from_slice(bytes).unwrap();
        let tcp = TcpSlice::from_slice(&bytes[20..]).unwrap();
        ip.header_checksum() == ip.to_header().calc_header_checksum()
            && tcp.checksum() == tcp.calc_checksum_ipv4(ip.source(), ip.destination()).unwrap()
    }

    proptest! {
        #[test]
        fn checksums_follow_marks(payload in prop::collection::vec(any::<u8>(), 0..100), port: u16, sequence: u32) {
            let mut bytes = segment(&payload, port, sequence);
            set_ce(&mut bytes);
            set_ece(&mut bytes, false);
            prop_assert!(are_true(&bytes));
            prop_assert_eq!((bytes[1] & 3, bytes[33] & 0x40), (3, 0x40));
            let marked = bytes.clone();
            set_ce(&mut bytes);
            set_ece(&mut bytes, false);
            prop_assert_eq!(bytes, marked, "a mark that is there stays");
        }
    }

    #[test]
    fn a_checksum_that_is_left_to_the_interface_stays() {
        let mut bytes = segment(b"x", 1, 2);
        let before = word(&bytes, 20 + TCP_CHECKSUM);
        set_ece(&mut bytes, true);
        assert_eq!((word(&bytes, 20 + TCP_CHECKSUM), bytes[33] & ECE), (before, ECE));
    }

    #[test]
    fn what_is_no_tcp_has_no_echo() {
        let mut bytes = vec![];
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 1, 2], 64).udp(1, 2).write(&mut bytes, &[0; 30]).unwrap();
        let before = bytes.clone();
        set_ece(&mut bytes, false);
        assert_eq!(bytes, before);
    }
}
