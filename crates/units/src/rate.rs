//! Link rates and amounts of data.

use crate::Span;
use std::fmt;
use std::ops::{Add, AddAssign};

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// An amount of data in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

const PS_PER_BYTE_AT_1_BPS: u128 = 8 * 1_000_000_000_000;

impl Rate {
    /// A rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Rate(bps)
    }

    /// A rate of `gbps` 10^9 bits per second.
    pub const fn from_gbps(gbps: u64) -> Self {
        Rate(gbps * 1_000_000_000)
    }

    /// The rate in bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// How long `bytes` last on a link of this rate, rounded up to the next picosecond.
    ///
    /// # Panics
    /// When the rate is zero or the result exceeds [`Span::MAX`].
    pub fn tx_time(self, bytes: Bytes) -> Span {
        assert!(self.0 > 0, "a link of zero rate never sends");
        let ps = (u128::from(bytes.0) * PS_PER_BYTE_AT_1_BPS).div_ceil(u128::from(self.0));
        Span::from_ps(u64::try_from(ps).expect("a serialization time fits in 213 days"))
    }

    /// Time to transmit `bytes`, as [`Rate::tx_time`]; [`Span::MAX`] where that would exceed it.
    ///
    /// # Panics
    /// When the rate is zero.
    pub fn saturating_tx_time(self, bytes: Bytes) -> Span {
        assert!(self.0 > 0, "a link of zero rate never sends");
        let ps = (u128::from(bytes.0) * PS_PER_BYTE_AT_1_BPS).div_ceil(u128::from(self.0));
        Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// How many whole bytes pass in `span`.
    pub fn bytes_in(self, span: Span) -> Bytes {
        let bytes = u128::from(span.as_ps()) * u128::from(self.0) / PS_PER_BYTE_AT_1_BPS;
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl Bytes {
    /// A size of `n` bytes.
    pub const fn new(n: u64) -> Self {
        Bytes(n)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl fmt::Display for Rate {
    /// The largest unit that leaves no fraction: `80Gbps`, `500Mbps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::parse::write_exact(f, self.0, crate::parse::RATES, "bps")
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Bytes {
    /// The largest decimal unit that leaves no fraction: `9000B`, `25GB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::parse::write_exact(f, self.0, crate::parse::BYTES, "B")
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
