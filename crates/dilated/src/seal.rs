//! Sealed datagrams between two machines of a run: each is numbered and authenticated by HMAC-SHA-256 (RFC 2104).
//!
//! A datagram is the number of the machine, the datagram's own number, the payload and the code of all of these. Each
//! direction of each machine in each run has a key of its own, so that nothing from elsewhere or earlier is taken.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Bytes before the payload: the machine's number and the datagram's.
pub const HEAD: usize = 9;
/// Bytes after the payload.
pub const CODE: usize = 32;
/// The longest datagram of UDP over IPv4.
pub const LONGEST: usize = 65_507;
/// How far datagrams may overtake each other.
const WINDOW: u64 = 1024;

/// Seals datagrams for one direction.
pub struct Sealer {
    mac: Hmac<Sha256>,
    machine: u8,
    next: u64,
}

impl Sealer {
    pub fn new(key: &[u8], machine: u8) -> Self {
        Sealer { mac: keyed(key), machine, next: 1 }
    }

    /// Seals the payload that `fill` writes into `datagram`.
    pub fn seal(&mut self, datagram: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
        datagram.clear();
        datagram.push(self.machine);
        datagram.extend(self.next.to_le_bytes());
        self.next += 1;
        fill(datagram);
        let mut mac = self.mac.clone();
        mac.update(datagram);
        datagram.extend(mac.finalize().into_bytes());
    }
}

/// Opens datagrams of one direction: those with the right code, each once.
pub struct Opener {
    mac: Hmac<Sha256>,
    machine: u8,
    /// The highest number seen.
    highest: u64,
    /// Which of the last [`WINDOW`] numbers were seen, by their remainder.
    seen: [bool; WINDOW as usize],
    /// Datagrams that were not taken.
    pub refused: u64,
}

impl Opener {
    pub fn new(key: &[u8], machine: u8) -> Self {
        Opener { mac: keyed(key), machine, highest: 0, seen: [false; WINDOW as usize], refused: 0 }
    }

    /// The payload; none when the datagram is foreign, changed, or was here before.
    pub fn open<'d>(&mut self, datagram: &'d [u8]) -> Option<&'d [u8]> {
        let payload = self.check(datagram);
        self.refused += u64::from(payload.is_none());
        payload
    }

    fn check<'d>(&mut self, datagram: &'d [u8]) -> Option<&'d [u8]> {
        let (body, code) = datagram.split_at_checked(datagram.len().checked_sub(CODE)?)?;
        let (head, payload) = body.split_at_checked(HEAD)?;
        if head[0] != self.machine {
            return None;
        }
        let mut mac = self.mac.clone();
        mac.update(body);
        mac.verify_slice(code).ok()?;
        let number = u64::from_le_bytes(head[1..].try_into().expect("eight bytes"));
        self.is_new(number).then_some(payload)
    }

    fn is_new(&mut self, number: u64) -> bool {
        if number.saturating_add(WINDOW) <= self.highest {
            return false;
        }
        let forgotten = (self.highest + 1).max(number.saturating_sub(WINDOW - 1))..=number;
        forgotten.for_each(|number| self.seen[(number % WINDOW) as usize] = false);
        self.highest = self.highest.max(number);
        !std::mem::replace(&mut self.seen[(number % WINDOW) as usize], true)
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("a key of any length will do")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sealed(sealer: &mut Sealer, payload: &[u8]) -> Vec<u8> {
        let mut datagram = vec![];
        sealer.seal(&mut datagram, |into| into.extend(payload));
        datagram
    }

    #[test]
    fn each_datagram_is_taken_once() {
        let (mut sealer, mut opener) = (Sealer::new(b"key", 3), Opener::new(b"key", 3));
        let first = sealed(&mut sealer, b"one");
        let second = sealed(&mut sealer, b"");
        assert_eq!(opener.open(&second), Some(&b""[..]), "they may overtake each other");
        assert_eq!(opener.open(&first), Some(&b"one"[..]));
        assert_eq!((opener.open(&first), opener.open(&second), opener.refused), (None, None, 2));
    }

    #[test]
    fn datagrams_of_others_are_not_taken() {
        let datagram = sealed(&mut Sealer::new(b"key", 3), b"one");
        assert_eq!(Opener::new(b"kez", 3).open(&datagram), None, "of another run, or the other direction");
        assert_eq!(Opener::new(b"key", 4).open(&datagram), None, "of another machine");
        for length in 0..datagram.len() {
            assert_eq!(Opener::new(b"key", 3).open(&datagram[..length]), None);
        }
    }

    #[test]
    fn what_is_older_than_the_window_is_not_taken() {
        let (mut sealer, mut opener) = (Sealer::new(b"key", 0), Opener::new(b"key", 0));
        let all: Vec<Vec<u8>> = (0..=WINDOW).map(|_| sealed(&mut sealer, b"x")).collect();
        assert!(opener.open(&all[WINDOW as usize]).is_some());
        assert!(opener.open(&all[0]).is_none());
        assert!(all[1..WINDOW as usize].iter().all(|datagram| opener.open(datagram).is_some()));
    }

    proptest! {
        #[test]
        fn a_changed_datagram_is_not_taken(place in 0usize..44, bit in 0u8..8) {
            let mut datagram = sealed(&mut Sealer::new(b"key", 1), b"one");
            prop_assert_eq!(datagram.len(), 44);
            datagram[place] ^= 1 << bit;
            prop_assert_eq!(Opener::new(b"key", 1).open(&datagram), None);
        }

        #[test]
        fn every_number_is_taken_once_in_any_order(numbers in prop::collection::vec(1u64..3000, 1..200)) {
            let mut opener = Opener::new(b"key", 0);
            let mut taken = std::collections::BTreeSet::new();
            let mut highest = 0;
            for number in numbers {
                let old = number + WINDOW <= highest;
                prop_assert_eq!(opener.is_new(number), !old && taken.insert(number));
                highest = highest.max(number);
            }
        }
    }
}
