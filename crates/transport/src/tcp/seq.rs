//! Sequence numbers: 64 bits inside, 32 on the wire (RFC 9293, section 3.4).
//!
//! Inside, a stream's SYN is at 0 and its first byte at 1, and numbers never wrap. The wire carries the low 32 bits,
//! shifted by the initial sequence number.

/// Maps one direction's stream offsets to wire sequence numbers and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeqMap {
    initial: u32,
}

impl SeqMap {
    pub(crate) const fn new(initial: u32) -> Self {
        SeqMap { initial }
    }

    /// The wire number of stream offset `offset`.
    pub(crate) const fn wire(self, offset: u64) -> u32 {
        self.initial.wrapping_add(offset as u32)
    }

    /// The stream offset nearest to `near` that the wire number stands for; an offset before the stream's start
    /// comes out as 0.
    pub(crate) fn offset(self, wire: u32, near: u64) -> u64 {
        let distance = wire.wrapping_sub(self.wire(near)) as i32;
        (near as i64 + i64::from(distance)).max(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wraps_on_the_wire_and_not_inside() {
        let map = SeqMap::new(u32::MAX - 1);
        assert_eq!(map.wire(1), u32::MAX);
        assert_eq!(map.wire(2), 0);
        assert_eq!(map.offset(0, 1), 2);
        assert_eq!(map.offset(u32::MAX, 5), 1);
    }

    proptest! {
        #[test]
        fn round_trip(initial: u32, near in 0u64..1 << 50, ahead in -(1i64 << 31)..(1i64 << 31)) {
            let map = SeqMap::new(initial);
            let Some(offset) = near.checked_add_signed(ahead) else { return Ok(()) };
            prop_assert_eq!(map.offset(map.wire(offset), near), offset);
        }
    }
}
