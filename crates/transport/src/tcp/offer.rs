//! The receive window that is offered (RFC 9293, section 3.8.6; RFC 7323), and how it grows.
//!
//! Two things bound it. A sender that has shown nothing yet is offered half of what the buffer holds, for how much memory
//! its packets take besides their payload is not known, and two segments more for each that it delivers in order. And the
//! buffer grows by dynamic right-sizing (Fisk and Feng, "Dynamic right-sizing in TCP", LACSI 2001): it has room for twice
//! what arrives in a round trip, more while that grows, where a round trip is at most the time in which a whole window arrives. The application
//! reads at once. The numbers are those of Linux 7.2: docs/models/tcp.md.

use super::terms::Terms;
use firstlight_units::{Span, Time};

/// The buffer that is tuned, at first.
const UNTUNED: u64 = 128 << 10;
/// What each packet takes of it besides its payload.
const BESIDE_PAYLOAD: u64 = 890;
/// A SYN can offer no more.
const UNSCALED: u64 = 65_535;

/// The receive window of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// Payload that the buffer holds.
    space: u64,
    /// The most payload that the buffer will ever hold.
    limit: u64,
    /// How much of the space may be offered.
    granted: u64,
    /// The stream offset up to which the window was offered; it is never taken back.
    edge: u64,
    /// The stream offset up to which the peer may send: the edge, rounded up as the window field is.
    advertised: u64,
    scale: u8,
    /// The time in which a whole window arrives: the receiver's measure of a round trip.
    rtt: Span,
    /// A window has arrived when this offset has, begun then.
    round: (u64, Time),
    /// What arrived in a round trip is counted from this offset, since then.
    counted: (u64, Time),
    /// The most that has arrived in a round trip.
    arrived: u64,
}

impl Offer {
    pub(crate) fn new(terms: &Terms) -> Self {
        let (limit, mss) = (terms.receive_window.get(), u64::from(terms.mss));
        let buffer = limit + limit * BESIDE_PAYLOAD / mss;
        let buffer = if terms.autotune { UNTUNED.min(buffer) } else { buffer };
        let half = if buffer / 2 > UNSCALED + 1 { buffer / 2 } else { (buffer / 2 / mss).max(1) * mss };
        let space = limit.min(buffer * mss / (mss + BESIDE_PAYLOAD));
        let (granted, scale) = (half.min(space), terms.scale());
        let start = (0, Time::ZERO);
        let edge = 0;
        Offer {
            space,
            limit,
            granted,
            edge,
            advertised: edge,
            scale,
            rtt: Span::MAX,
            round: start,
            counted: start,
            arrived: granted,
        }
    }

    /// The peer's SYN has arrived: the stream starts, with the window that this end's SYN offers.
    pub(crate) fn start(&mut self, terms: &Terms) {
        self.scale = terms.scale();
        self.edge = 1 + u64::from(self.unscaled());
        self.advertised = self.edge;
    }

    /// The stream offset up to which the peer may send.
    pub(crate) const fn limit_of_peer(&self) -> u64 {
        self.advertised
    }

    /// The window field of a SYN.
    pub(crate) fn unscaled(&self) -> u16 {
        self.granted.min(UNSCALED) as u16
    }

    /// Bytes that may be offered.
    pub(crate) const fn granted(&self) -> u64 {
        self.granted
    }

    /// `len` bytes arrived in order, and now everything before `next` has; true when more may be offered for it.
    pub(crate) fn on_progress(&mut self, next: u64, len: u64, now: Time) -> bool {
        if self.space < self.limit {
            self.resize(next, now);
        }
        let before = self.granted;
        self.granted = self.space.min(before + 2 * len);
        self.granted > before
    }

    fn resize(&mut self, next: u64, now: Time) {
        if next >= self.round.0 {
            if self.round.0 > 0 {
                self.rtt = self.rtt.min(now.saturating_since(self.round.1));
            } else {
                self.counted = (1, now);
            }
            self.round = (next + self.granted, now);
        }
        if now.saturating_since(self.counted.1) >= self.rtt {
            let arrived = next - self.counted.0;
            // A sender that speeds up goes on to do so.
            let expected = arrived.max(arrived * arrived / self.arrived).min(2 * arrived);
            self.space = self.limit.min(self.space.max(2 * expected));
            self.arrived = self.arrived.max(arrived);
            self.counted = (next, now);
        }
    }

    /// The window field that goes with an acknowledgement of everything before `upto`, of which the program has not read
    /// `unread` bytes: rounded up, so that the edge stays.
    pub(crate) fn field(&mut self, upto: u64, unread: u64) -> u16 {
        self.edge = self.edge.max(upto + self.granted.saturating_sub(unread));
        let unit = 1 << self.scale;
        let field = ((self.edge - upto + unit - 1) >> self.scale).min(u64::from(u16::MAX));
        self.advertised = self.advertised.max(upto + (field << self.scale));
        field as u16
    }
}
