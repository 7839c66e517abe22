//! The digest of a run: the same spec, seed and version give the same number on any machine.
//!
//! Every packet that leaves the fabric or is lost in it is mixed in, with its time and place, in the order of events.
//! Mixing is a folded 64 x 64 -> 128 bit multiplication (as in wyhash): not cryptographic, but every bit counts. A run
//! that is divided by switches would record packets with their times, and mix them in when all parts have passed that
//! time.

use firstlight_net::Packet;
use firstlight_units::Time;

/// How a packet left the fabric.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PacketEnd {
    /// The packet was delivered to its host.
    Exit,
    /// The packet was lost at the queue of this number.
    Drop(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest(u64);

const K0: u64 = 0xa076_1d64_78bd_642f;
const K1: u64 = 0xe703_7ed1_a0b4_28db;

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Digest {
    pub(crate) fn new() -> Self {
        Digest(K0)
    }

    #[inline]
    pub(crate) fn packet(&mut self, p: &Packet, at: Time, end: PacketEnd) {
        let place = match end {
            PacketEnd::Exit => 0,
            PacketEnd::Drop(queue) => queue as u64 + 1,
        };
        let [ends, numbers, rest] = p.digest_words();
        // The packet's fields are mixed first, without the state, so that only one multiplication depends on the packet
        // before.
        let fields = fold(ends ^ K1, numbers ^ K0).wrapping_add(fold(rest ^ K0, (at.as_ps() ^ K1).wrapping_add(place)));
        self.0 = fold(self.0 ^ fields, K1);
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_net::{Ecn, FlowTuple, HostId, TcpFlags, TcpHeader};

    #[test]
    fn every_field_counts_and_so_does_order() {
        let tuple = FlowTuple { src: HostId(1), sport: 3, dst: HostId(2), dport: 4 };
        let tcp = TcpHeader::default();
        let base = Packet::new_tcp(tuple, 52, 1448, tcp);
        let of_tuple = |tuple| Packet::new_tcp(tuple, 52, 1448, tcp);
        let of_header = |tcp| Packet::new_tcp(tuple, 52, 1448, tcp);
        let others = [
            base.with_size(1501),
            base.with_ecn(Ecn::Ce),
            of_tuple(FlowTuple { src: HostId(2), ..tuple }),
            of_tuple(FlowTuple { dst: HostId(3), ..tuple }),
            of_tuple(FlowTuple { sport: 4, ..tuple }),
            of_tuple(FlowTuple { dport: 5, ..tuple }),
            of_header(TcpHeader { seq: 1, ..tcp }),
            of_header(TcpHeader { ack: 1, ..tcp }),
            of_header(TcpHeader { flags: TcpFlags::ECE, ..tcp }),
        ];
        let of = |packets: &[Packet], at: u64, end: PacketEnd| {
            let mut digest = Digest::new();
            packets.iter().for_each(|p| digest.packet(p, Time::from_ps(at), end));
            digest.value()
        };
        let mut seen =
            vec![of(&[base], 0, PacketEnd::Exit), of(&[base], 1, PacketEnd::Exit), of(&[base], 0, PacketEnd::Drop(0))];
        for other in others {
            seen.push(of(&[other], 0, PacketEnd::Exit));
            seen.push(of(&[other, base], 0, PacketEnd::Exit));
            seen.push(of(&[base, other], 0, PacketEnd::Exit));
        }
        let n = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), n);
    }
}
