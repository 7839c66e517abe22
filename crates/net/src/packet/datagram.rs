//! The views of packets that are not TCP: those of real hosts, and the datagrams of probes.

use super::{FlowTuple, HostId, Packet, PacketKind, Stamps};
use firstlight_units::Time;

/// The words of the record that hold the parts of a real host's packet.
const FIRST: usize = 0;
const SECOND: usize = 1;
const FRAGMENT: usize = 2;

/// A packet of another protocol than TCP, which a real host has sent.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a>(pub(super) &'a Packet);

impl Datagram<'_> {
    /// The eight bytes of the protocol's header, without ports: of UDP length and checksum, then zero; of ICMP all
    /// eight bytes; zero for any other protocol.
    pub const fn words(&self) -> [u32; 2] {
        [self.0.words[FIRST], self.0.words[SECOND]]
    }

    /// The second word of the IP header: identification, flags and fragment offset.
    pub const fn fragment(&self) -> u32 {
        self.0.words[FRAGMENT]
    }
}

/// The words of the record that hold the parts of a probe's datagram.
const NUMBER: usize = 0;
const SENT_HIGH: usize = 2;
const SENT_LOW: usize = 3;

/// A probe's datagram: UDP, with timestamps of the interfaces. A simulated program has sent it, or one of a real host.
#[derive(Clone, Copy, Debug)]
pub struct ProbeDatagram<'a>(pub(super) &'a Packet);

impl ProbeDatagram<'_> {
    /// Bytes of the IP and the UDP header.
    pub const HEADER: u8 = 28;
    /// The discard service: the port that such datagrams are sent from and to.
    pub const PORT: u16 = 9;
    /// The first port that real hosts send such datagrams from: each of their programs has a port of its own.
    pub const FIRST_EXTERNAL: u16 = 1024;
    /// Most programs of real hosts that send such datagrams. Their ports lie below those of connections.
    pub const MOST_EXTERNAL: usize = 8192;

    /// Timestamps of the interfaces.
    pub const fn stamps(&self) -> Stamps {
        self.0.stamps()
    }

    /// The number of the program that sent it.
    pub const fn number(&self) -> usize {
        self.0.words[NUMBER] as usize
    }

    /// When the program sent the datagram.
    pub const fn sent(&self) -> Time {
        Time::from_ps((self.0.words[SENT_HIGH] as u64) << 32 | self.0.words[SENT_LOW] as u64)
    }
}

impl Packet {
    /// A real host's packet of this IP protocol; see [`Datagram`] for `words` and `fragment`.
    pub fn new_datagram(
        tuple: FlowTuple,
        size: u16,
        header: u8,
        protocol: u8,
        words: [u32; 2],
        fragment: u32,
    ) -> Packet {
        let mut packet = Packet::new(PacketKind::Datagram, tuple, size, header);
        packet.half = protocol.into();
        [packet.words[FIRST], packet.words[SECOND]] = words;
        packet.words[FRAGMENT] = fragment;
        packet
    }

    /// A datagram of `size` bytes, IP header included, that program `number` sends at `now`.
    pub fn new_probe(src: HostId, dst: HostId, size: u16, number: usize, now: Time) -> Packet {
        let tuple = FlowTuple { src, sport: ProbeDatagram::PORT, dst, dport: ProbeDatagram::PORT };
        let mut packet = Packet::new(PacketKind::Probe, tuple, size, ProbeDatagram::HEADER);
        packet.words[NUMBER] = number as u32;
        packet.words[SENT_HIGH] = (now.as_ps() >> 32) as u32;
        packet.words[SENT_LOW] = now.as_ps() as u32;
        packet.set_stamps(Stamps::default());
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_says_who_sent_it_and_when() {
        let sent = Time::from_ps(0x0001_0203_0405_0607);
        let packet = Packet::new_probe(HostId(1), HostId(2), 100, 70_000, sent);
        let probe = packet.probe().unwrap();
        assert_eq!((probe.number(), probe.sent()), (70_000, sent));
        assert_eq!((packet.payload(), packet.has_stamps(), packet.dport()), (72, true, 9));
    }

    #[test]
    fn a_datagram_keeps_its_header() {
        let packet = Packet::new_datagram(FlowTuple::default(), 84, 28, 1, [7, 8], 9);
        let datagram = packet.datagram().unwrap();
        assert_eq!((datagram.words(), datagram.fragment(), packet.protocol(), packet.payload()), ([7, 8], 9, 1, 56));
    }
}
