//! How long a packet lasts on a link.

use firstlight_units::{Bytes, Rate, Span};

/// Serialization times of one link, exact: rounded up to the picosecond as [`Rate::tx_time`] does, then stretched.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Serializer {
    /// Picoseconds per byte, stretched, where that is a whole number; otherwise 0.
    per_byte: u64,
    rate: Rate,
    scale: u32,
}

impl Serializer {
    /// Serialization at `rate`, every time stretched `scale`-fold.
    ///
    /// # Panics
    /// When the rate is zero.
    pub fn new(rate: Rate, scale: u32) -> Self {
        assert!(rate.as_bps() > 0, "a link of zero rate never sends");
        let per_byte = 8_000_000_000_000;
        let whole = per_byte % rate.as_bps() == 0;
        let per_byte = if whole { per_byte / rate.as_bps() * u64::from(scale) } else { 0 };
        Serializer { per_byte, rate, scale }
    }

    /// The rate, not stretched.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// How long `bytes` last.
    #[inline]
    pub fn time(&self, bytes: u16) -> Span {
        if self.per_byte != 0 { Span::from_ps(self.per_byte * u64::from(bytes)) } else { self.time_rounded(bytes) }
    }

    #[cold]
    fn time_rounded(&self, bytes: u16) -> Span {
        self.time_of(Bytes::new(u64::from(bytes)))
    }

    /// How long any amount of data lasts, sent in one piece; [`Span::MAX`] for what the clock does not hold.
    pub fn time_of(&self, bytes: Bytes) -> Span {
        self.rate.saturating_tx_time(bytes).saturating_mul(u64::from(self.scale))
    }

    /// How many bytes last for `span`, the last one counted whole (or one too many, where a byte lasts no whole number
    /// of picoseconds and `span` was rounded up).
    #[inline]
    pub fn bytes_in(&self, span: Span) -> Bytes {
        if self.per_byte != 0 { Bytes::new(span.as_ps().div_ceil(self.per_byte)) } else { self.bytes_rounded(span) }
    }

    #[cold]
    fn bytes_rounded(&self, span: Span) -> Bytes {
        let bits = u128::from(span.as_ps()) * u128::from(self.rate.as_bps());
        Bytes::new(bits.div_ceil(8_000_000_000_000 * u128::from(self.scale)) as u64)
    }

    /// The same stretch at `share` of the rate, to the bit per second.
    ///
    /// # Panics
    /// When nothing is left of the rate.
    pub fn slowed(&self, share: f64) -> Self {
        Serializer::new(Rate::from_bps((self.rate.as_bps() as f64 * share).round() as u64), self.scale)
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

    #[test]
    fn more_than_the_clock_holds_is_its_end() {
        let of = |bps, scale, bytes| Serializer::new(Rate::from_bps(bps), scale).time_of(Bytes::new(bytes));
        assert_eq!([of(1, 1, 1 << 60), of(1_000_000_000, 1000, 1 << 50)], [Span::MAX; 2]);
    }

    proptest! {
        #[test]
        fn agrees_with_the_rate(bps in 1_000_000u64..1 << 40, bytes in any::<u16>(), scale in 1u32..50, round in any::<bool>()) {
            let rate = Rate::from_bps(if round { bps / 1_000_000 * 1_000_000 } else { bps });
            let expected = rate.tx_time(Bytes::new(u64::from(bytes))) * u64::from(scale);
            let serializer = Serializer::new(rate, scale);
            prop_assert_eq!(serializer.time(bytes), expected);
            prop_assert_eq!(serializer.time_of(Bytes::new(bytes.into())), expected);
            let back = serializer.bytes_in(expected).get() - u64::from(bytes);
            prop_assert!(back <= u64::from(serializer.per_byte == 0));
            let before = expected.saturating_sub(Span::from_ps(u64::from(scale)));
            prop_assert_eq!(serializer.bytes_in(before).get(), u64::from(bytes));
        }
    }
}
