//! Reading and writing quantities as users type them: `80Gbps`, `180us`, `1.5ms`, `9000B`, `64KiB`.
//!
//! A number is a decimal with an optional fraction; it must come out as a whole number of the base unit
//! (picoseconds, bits per second, bytes), so nothing is rounded behind the user's back.

use crate::{Bytes, Rate, Span};
use std::fmt;
use std::str::FromStr;

/// Unit names with their value in the base unit, largest first.
pub type Units = &'static [(&'static str, u64)];

/// Units of times.
pub const SPANS: Units =
    &[("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)];
/// Units of rates.
pub const RATES: Units =
    &[("Tbps", 1_000_000_000_000), ("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("kbps", 1_000), ("bps", 1)];
/// Units of sizes.
pub const BYTES: Units =
    &[("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)];
/// Units of sizes that are read, and never written.
pub const BINARY_BYTES: Units = &[("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// The names of units, joined by `between`.
pub fn names(units: &[Units], between: &str) -> String {
    units.iter().copied().flatten().map(|(name, _)| *name).collect::<Vec<_>>().join(between)
}

/// The reason why a text is no quantity. The message says what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The number has no unit behind it.
    #[error("'{text}' has no unit: add one of {known}, as in \"{example}\"")]
    NoUnit {
        /// What was written.
        text: String,
        /// The units that exist.
        known: String,
        /// What would be right.
        example: &'static str,
    },
    /// The unit is not one of this quantity's.
    #[error("'{unit}' is not a unit of {quantity}: use {known}")]
    UnknownUnit {
        /// The unit found.
        unit: String,
        /// time, rate or size.
        quantity: &'static str,
        /// The units that exist.
        known: String,
    },
    /// The text before the unit is not a plain decimal number.
    #[error("'{text}' is not a {quantity}: write for example \"{example}\"")]
    NotANumber {
        /// What was written.
        text: String,
        /// time, rate or size.
        quantity: &'static str,
        /// What would be right.
        example: &'static str,
    },
    /// The value is finer than the base unit.
    #[error("'{text}' is not a whole number of {base}")]
    TooFine {
        /// What was written.
        text: String,
        /// The base unit.
        base: &'static str,
    },
    /// The value does not fit in 64 bits of the base unit.
    #[error("'{text}' is too large")]
    TooLarge {
        /// What was written.
        text: String,
    },
}

struct Quantity {
    name: &'static str,
    example: &'static str,
    base: &'static str,
    units: &'static [Units],
}

impl Quantity {
    /// The units that exist, for messages.
    fn known(&self) -> String {
        names(self.units, ", ")
    }

    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let text = text.trim();
        let split = text.find(char::is_alphabetic).unwrap_or(text.len());
        let (number, unit) = (text[..split].trim_end(), &text[split..]);
        let not_a_number = || UnitError::NotANumber { text: text.into(), quantity: self.name, example: self.example };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit() || b == b'_');
        if whole.is_empty() || !digits(whole) || !digits(fraction) || number.ends_with('.') {
            return Err(not_a_number());
        }
        if unit.is_empty() {
            return Err(UnitError::NoUnit { text: text.into(), known: self.known(), example: self.example });
        }
        let Some(&(_, size)) = self.units.iter().copied().flatten().find(|(name, _)| *name == unit) else {
            return Err(UnitError::UnknownUnit { unit: unit.into(), quantity: self.name, known: self.known() });
        };
        let plain = |s: &str| s.replace('_', "");
        let too_large = || UnitError::TooLarge { text: text.into() };
        let whole: u128 = plain(whole).parse().map_err(|_| too_large())?;
        let fraction = plain(fraction);
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > 18 {
            return Err(UnitError::TooFine { text: text.into(), base: self.base });
        }
        let tens = 10u128.pow(fraction.len() as u32);
        let parts = if fraction.is_empty() { 0 } else { fraction.parse::<u128>().map_err(|_| not_a_number())? };
        let scaled =
            whole.checked_mul(tens).and_then(|w| (w + parts).checked_mul(u128::from(size))).ok_or_else(too_large)?;
        if scaled % tens != 0 {
            return Err(UnitError::TooFine { text: text.into(), base: self.base });
        }
        u64::try_from(scaled / tens).map_err(|_| too_large())
    }
}

impl FromStr for Span {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        Quantity { name: "time", example: "180us", base: "picoseconds", units: &[SPANS] }.parse(text).map(Span::from_ps)
    }
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        Quantity { name: "rate", example: "10Gbps", base: "bits per second", units: &[RATES] }
            .parse(text)
            .map(Rate::from_bps)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        Quantity { name: "size", example: "9000B", base: "bytes", units: &[BYTES, BINARY_BYTES] }
            .parse(text)
            .map(Bytes::new)
    }
}

/// Writes `value` in the largest unit that leaves no fraction; zero in `zero`'s unit.
pub(crate) fn write_exact(f: &mut fmt::Formatter<'_>, value: u64, units: Units, zero: &str) -> fmt::Result {
    match units.iter().find(|(_, size)| value != 0 && value.is_multiple_of(*size)) {
        Some((name, size)) => f.pad(&format!("{}{name}", value / size)),
        None => f.pad(&format!("0{zero}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_as_users_write_them() {
        assert_eq!("180us".parse(), Ok(Span::from_us(180)));
        assert_eq!("1.5ms".parse(), Ok(Span::from_us(1500)));
        assert_eq!(" 0.25 ns ".parse(), Ok(Span::from_ps(250)));
        assert_eq!("80Gbps".parse(), Ok(Rate::from_gbps(80)));
        assert_eq!("9_000B".parse(), Ok(Bytes::new(9000)));
        assert_eq!("64KiB".parse(), Ok(Bytes::new(65536)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let text = |r: Result<Span, UnitError>| r.unwrap_err().to_string();
        assert_eq!(text("180".parse()), "'180' has no unit: add one of s, ms, us, ns, ps, as in \"180us\"");
        assert_eq!(text("5µs".parse()), "'µs' is not a unit of time: use s, ms, us, ns, ps");
        assert_eq!(text("180min".parse()), "'min' is not a unit of time: use s, ms, us, ns, ps");
        assert_eq!(text("-3us".parse()), "'-3us' is not a time: write for example \"180us\"");
        assert_eq!(text("0.1ps".parse()), "'0.1ps' is not a whole number of picoseconds");
        assert_eq!(text("99999999999s".parse()), "'99999999999s' is too large");
        assert_eq!(
            "10gbps".parse::<Rate>().unwrap_err().to_string(),
            "'gbps' is not a unit of rate: use Tbps, Gbps, Mbps, kbps, bps"
        );
    }

    #[test]
    fn serialization_is_exact_or_rounded_up() {
        assert_eq!(Rate::from_gbps(10).tx_time(Bytes::new(9000)), Span::from_ns(7200));
        assert_eq!(Rate::from_gbps(80).tx_time(Bytes::new(9000)), Span::from_ns(900));
        assert_eq!(Rate::from_bps(3).tx_time(Bytes::new(1)), Span::from_ps(2_666_666_666_667));
    }

    proptest! {
        #[test]
        fn printing_and_reading_agree(n in any::<u64>()) {
            prop_assert_eq!(Span::from_ps(n).to_string().parse(), Ok(Span::from_ps(n)));
            prop_assert_eq!(Rate::from_bps(n).to_string().parse(), Ok(Rate::from_bps(n)));
            prop_assert_eq!(Bytes::new(n).to_string().parse(), Ok(Bytes::new(n)));
        }

        #[test]
        fn bytes_in_inverts_tx_time(bytes in 0u64..1 << 30, bps in 1_000u64..1 << 40) {
            let rate = Rate::from_bps(bps);
            let span = rate.tx_time(Bytes::new(bytes));
            prop_assert!(rate.bytes_in(span) >= Bytes::new(bytes));
            if span > Span::ZERO {
                prop_assert!(rate.bytes_in(span - Span::from_ps(1)) < Bytes::new(bytes));
            }
        }
    }
}
