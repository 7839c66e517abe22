//! One number for a whole run: the same spec, seed and version give the same one on any machine.
//!
//! Every packet that leaves the fabric or is lost in it is mixed in, with its time and place. Mixing is a folded
//! 64 x 64 -> 128 bit multiplication (as in wyhash): not cryptographic, but every bit counts.

use firstlight_net::Packet;
use firstlight_units::Time;

/// Where a packet met its end, for the digest.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// Handed to its host.
    Exit,
    /// Lost at a queue of this index.
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
    pub(crate) fn packet(&mut self, p: &Packet, at: Time, end: End) {
        let place = match end {
            End::Exit => 0,
            End::Drop(queue) => queue as u64 + 1,
        };
        let ends = u64::from(p.src.0) << 48 | u64::from(p.dst.0) << 32 | u64::from(p.sport) << 16 | u64::from(p.dport);
        let numbers = u64::from(p.seq) << 32 | u64::from(p.ack);
        let rest = u64::from(p.size) << 16 | u64::from(p.flags.0) << 8 | p.ecn as u64;
        // Packet fields first, apart from the state: only one multiplication waits for the one before it.
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
    use firstlight_net::{Ecn, HostId, TcpFlags};

    #[test]
    fn every_field_counts_and_so_does_order() {
        let base = Packet { size: 1500, src: HostId(1), dst: HostId(2), sport: 3, dport: 4, ..Packet::default() };
        let changes: [fn(&mut Packet); 9] = [
            |p| p.size += 1,
            |p| p.src.0 += 1,
            |p| p.dst.0 += 1,
            |p| p.sport += 1,
            |p| p.dport += 1,
            |p| p.seq += 1,
            |p| p.ack += 1,
            |p| p.flags = TcpFlags::ECE,
            |p| p.ecn = Ecn::Ce,
        ];
        let of = |packets: &[Packet], at: u64, end: End| {
            let mut digest = Digest::new();
            packets.iter().for_each(|p| digest.packet(p, Time::from_ps(at), end));
            digest.value()
        };
        let mut seen = vec![of(&[base], 0, End::Exit), of(&[base], 1, End::Exit), of(&[base], 0, End::Drop(0))];
        for change in changes {
            let mut other = base;
            change(&mut other);
            seen.push(of(&[other], 0, End::Exit));
            seen.push(of(&[other, base], 0, End::Exit));
            seen.push(of(&[base, other], 0, End::Exit));
        }
        let n = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), n);
    }
}
