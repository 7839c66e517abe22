//! How long a packet lasts on a link.

use firstlight_units::{Bytes, Rate, Span};

/// What a link carries with each IP packet (IEEE 802.3, clauses 3.1 and 4.4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "spec",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case")
)]
pub enum Framing {
    /// Nothing: a packet lasts as long as its IP bytes.
    #[default]
    Ip,
    /// 38 bytes: a header of 14, a checksum of 4, a preamble of 8 and a gap of 12.
    Ethernet,
}

impl Framing {
    /// Bytes of an Ethernet frame around its IP packet: header and checksum.
    const FRAME: u16 = 14 + 4;
    /// Bytes of a link between two Ethernet frames: preamble and gap.
    const BETWEEN: u16 = 8 + 12;

    /// The name in experiments.
    pub const fn name(self) -> &'static str {
        match self {
            Framing::Ip => "ip",
            Framing::Ethernet => "ethernet",
        }
    }

    /// Bytes that each packet lasts on a link beyond its IP bytes.
    pub const fn overhead(self) -> u16 {
        match self {
            Framing::Ip => 0,
            Framing::Ethernet => Framing::FRAME + Framing::BETWEEN,
        }
    }

    /// Bytes of a link that an IP packet of this size takes.
    pub const fn on_link(self, packet: Bytes) -> Bytes {
        Bytes::new(packet.get().saturating_add(self.overhead() as u64))
    }

    /// Bytes of a link that a whole Ethernet frame takes, its header and checksum counted in `frame`.
    pub const fn frame_on_link(self, frame: u16) -> u16 {
        match self {
            Framing::Ip => frame,
            Framing::Ethernet => frame + Framing::BETWEEN,
        }
    }
}

/// Serialization times of one link, exact: rounded up to the picosecond as [`Rate::tx_time`] does, then stretched.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Serializer {
    /// Picoseconds per byte, stretched, where that is a whole number; otherwise 0. Its low byte is the overhead of each
    /// packet in bytes: a port reads one word for both.
    packed: u64,
    rate: Rate,
    scale: u32,
    framing: Framing,
}

impl Serializer {
    /// Bits of `packed` that hold the overhead.
    const OVERHEAD_BITS: u32 = 8;

    /// Serialization at `rate`, every time stretched `scale`-fold.
    ///
    /// # Panics
    /// When the rate is zero.
    pub fn new(rate: Rate, scale: u32) -> Self {
        assert!(rate.as_bps() > 0, "a link of zero rate never sends");
        Serializer { packed: 0, rate, scale, framing: Framing::Ip }.framed(Framing::Ip)
    }

    /// This link with another framing of its packets.
    #[must_use]
    pub fn framed(self, framing: Framing) -> Self {
        let byte = 8_000_000_000_000;
        let whole = byte % self.rate.as_bps() == 0;
        let per_byte = byte / self.rate.as_bps() * u64::from(self.scale);
        // Times per byte that leave no room for the overhead are computed as those that are no whole number.
        let packed = if whole && per_byte >> (u64::BITS - Self::OVERHEAD_BITS) == 0 {
            per_byte << Self::OVERHEAD_BITS | u64::from(framing.overhead())
        } else {
            0
        };
        Serializer { packed, framing, ..self }
    }

    /// The rate, not stretched.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The framing that the link adds to each packet.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    #[inline]
    fn per_byte(&self) -> u64 {
        self.packed >> Self::OVERHEAD_BITS
    }

    /// How long a link takes for an IP packet of `bytes` bytes, with its framing.
    #[inline]
    pub fn time(&self, bytes: u16) -> Span {
        if self.packed != 0 {
            let overhead = self.packed & ((1 << Self::OVERHEAD_BITS) - 1);
            Span::from_ps(self.per_byte() * (u64::from(bytes) + overhead))
        } else {
            self.time_rounded(bytes)
        }
    }

    #[cold]
    fn time_rounded(&self, bytes: u16) -> Span {
        self.time_of(self.framing.on_link(Bytes::new(u64::from(bytes))))
    }

    /// How long a link takes for an Ethernet frame of `bytes` bytes that carries no IP packet, such as a pause frame.
    pub fn frame_time(&self, bytes: u16) -> Span {
        self.time_of(Bytes::new(u64::from(self.framing.frame_on_link(bytes))))
    }

    /// How long any amount of data lasts, sent in one piece without framing; [`Span::MAX`] for what the clock does not
    /// hold.
    pub fn time_of(&self, bytes: Bytes) -> Span {
        self.rate.saturating_tx_time(bytes).saturating_mul(u64::from(self.scale))
    }

    /// How many bytes of the link last for `span`, framing counted, the last one counted whole (or one too many, where
    /// a byte lasts no whole number of picoseconds and `span` was rounded up).
    #[inline]
    pub fn bytes_in(&self, span: Span) -> Bytes {
        if self.packed != 0 { Bytes::new(span.as_ps().div_ceil(self.per_byte())) } else { self.bytes_rounded(span) }
    }

    #[cold]
    fn bytes_rounded(&self, span: Span) -> Bytes {
        let bits = u128::from(span.as_ps()) * u128::from(self.rate.as_bps());
        Bytes::new(bits.div_ceil(8_000_000_000_000 * u128::from(self.scale)) as u64)
    }

    /// This link at `share` of its rate, to the bit per second, with its stretch.
    ///
    /// # Panics
    /// When nothing is left of the rate.
    pub fn slowed(&self, share: f64) -> Self {
        let rate = Rate::from_bps((self.rate.as_bps() as f64 * share).round() as u64);
        Serializer::new(rate, self.scale).framed(self.framing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_papers_packets() {
        assert_eq!(Serializer::new(Rate::from_gbps(10), 1).time(9000), Span::from_ns(7200));
        assert_eq!(Serializer::new(Rate::from_gbps(80), 1).time(9000), Span::from_ns(900));
        assert_eq!(Serializer::new(Rate::from_gbps(80), 20).time(9000), Span::from_us(18));
    }

    /// 1,500 bytes and 38 at 10 Gb/s, 0.8 ns each; 46 bytes are the least that a frame of 64 holds.
    #[test]
    fn ethernet_takes_38_bytes_more() {
        let ip = Serializer::new(Rate::from_gbps(10), 1);
        let ethernet = ip.framed(Framing::Ethernet);
        assert_eq!([ip.time(1500), ethernet.time(1500)], [1_200_000, 1_230_400].map(Span::from_ps));
        assert_eq!([ip.frame_time(64), ethernet.frame_time(64)], [51_200, 67_200].map(Span::from_ps));
        assert_eq!(ethernet.frame_time(64), ethernet.time(46));
        assert_eq!(
            (ethernet.bytes_in(ethernet.time(1500)), ip.framed(Framing::Ip).time(1)),
            (Bytes::new(1538), ip.time(1))
        );
    }

    #[test]
    fn more_than_the_clock_holds_is_its_end() {
        let of = |bps, scale, bytes| Serializer::new(Rate::from_bps(bps), scale).time_of(Bytes::new(bytes));
        assert_eq!([of(1, 1, 1 << 60), of(1_000_000_000, 1000, 1 << 50)], [Span::MAX; 2]);
    }

    proptest! {
        #[test]
        fn agrees_with_the_rate(
            bps in 1_000_000u64..1 << 40, bytes in any::<u16>(), scale in 1u32..50, round in any::<bool>(),
        ) {
            let rate = Rate::from_bps(if round { bps / 1_000_000 * 1_000_000 } else { bps });
            let expected = rate.tx_time(Bytes::new(u64::from(bytes))) * u64::from(scale);
            let framed = rate.tx_time(Bytes::new(u64::from(bytes) + 38)) * u64::from(scale);
            prop_assert_eq!(Serializer::new(rate, scale).framed(Framing::Ethernet).time(bytes), framed);
            let serializer = Serializer::new(rate, scale);
            prop_assert_eq!(serializer.time(bytes), expected);
            prop_assert_eq!(serializer.time_of(Bytes::new(bytes.into())), expected);
            let back = serializer.bytes_in(expected).get() - u64::from(bytes);
            prop_assert!(back <= u64::from(serializer.packed == 0));
            let before = expected.saturating_sub(Span::from_ps(u64::from(scale)));
            prop_assert_eq!(serializer.bytes_in(before).get(), u64::from(bytes));
        }
    }
}
