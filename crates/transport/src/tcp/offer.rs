//! The receive window that is offered (RFC 9293, section 3.8.6; RFC 7323), and the buffer behind it.
//!
//! The buffer counts memory: packets take more of it than their payload. What part of it is payload is not known before
//! the first packet; half is assumed. So a peer that has shown nothing yet is offered half of the buffer, in whole
//! segments, and two segments more for each packet that fits as well as it should. The window is never taken back,
//! unless the stack is told to (`tcp_shrink_window`) or no memory is left at all.
//!
//! The buffer grows by dynamic right-sizing (Fisk and Feng, "Dynamic right-sizing in TCP", LACSI 2001): it has room for
//! twice what the program reads in a round trip, more while that grows, and for what lies beyond gaps. A round trip is
//! at most the time in which a whole window arrives. The numbers are those of Linux 7.2: docs/models/tcp.md.

use super::terms::Terms;
use crate::config::Memory;
use firstlight_units::{Bytes, Span, Time};

/// The largest window that a SYN can offer.
const UNSCALED: u64 = 65_535;
/// Shares of the memory that are payload are counted in 1/256.
const WHOLE: u64 = 256;
/// Segments that are expected in the first round trip (RFC 6928).
const FIRST_SEGMENTS: u64 = 10;

/// The receive window of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// Memory of the buffer in bytes.
    buffer: u64,
    /// The most memory that the buffer will ever have.
    most: u64,
    /// Memory that packets take which the program has not read.
    held: u64,
    /// What part of the memory is payload, in 1/256.
    share: u64,
    /// The most that may be offered; it grows with what arrives.
    granted: u64,
    /// The window that was offered last.
    window: u64,
    /// Stream offset up to which it reached.
    edge: u64,
    /// Stream offset up to which the window was ever offered.
    highest: u64,
    /// The program has the connection: the buffer may grow.
    accepted: bool,
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
        let window = terms.receive_window.get();
        let most = match terms.stack.receive_memory {
            Some(memory) => memory.get(),
            None => window + window * Memory::BESIDE_PAYLOAD / u64::from(terms.mss),
        };
        let first = terms.stack.receive_buffer.get();
        // A window that is as large as it is told to be from the start has room for that much payload.
        let (buffer, share) = if terms.autotune {
            (first.min(most), WHOLE / 2)
        } else {
            (most, (window * WHOLE).div_ceil(most).min(WHOLE))
        };
        let start = (0, Time::ZERO);
        Offer {
            buffer,
            most,
            held: 0,
            share,
            granted: 0,
            window: 0,
            edge: 0,
            highest: 0,
            accepted: true,
            scale: 0,
            rtt: Span::MAX,
            round: start,
            counted: start,
            arrived: 0,
        }
    }

    /// What this end's SYN offers to a peer with segments of `mss` bytes.
    pub(crate) fn settle(&mut self, mss: u32) {
        let (mss, space) = (u64::from(mss), self.space());
        let whole = if space > mss { space / mss * mss } else { space };
        self.granted = whole.min(UNSCALED);
        self.arrived = self.granted.min(FIRST_SEGMENTS * mss);
    }

    /// By how many bits windows are shifted that are offered from now on.
    pub(crate) fn rescale(&mut self, scale: u8) {
        self.scale = scale;
    }

    /// The peer's SYN has arrived: the stream starts, with the window that this end's SYN offers.
    pub(crate) fn start(&mut self) {
        self.window = u64::from(self.unscaled());
        self.edge = 1 + self.window;
        self.highest = self.edge;
    }

    /// The program has, or has not yet, taken over the connection.
    pub(crate) fn set_accepted(&mut self, accepted: bool) {
        self.accepted = accepted;
    }

    /// The stream offset up to which the peer may send.
    pub(crate) const fn highest(&self) -> u64 {
        self.highest
    }

    /// The stream offset up to which the window is offered now.
    pub(crate) const fn edge(&self) -> u64 {
        self.edge
    }

    /// The window field of a SYN.
    pub(crate) fn unscaled(&self) -> u16 {
        self.granted.min(UNSCALED) as u16
    }

    /// Payload that the buffer holds.
    pub(crate) const fn space(&self) -> u64 {
        self.buffer * self.share / WHOLE
    }

    /// Payload that the buffer has still room for.
    const fn free(&self) -> u64 {
        self.buffer.saturating_sub(self.held) * self.share / WHOLE
    }

    /// Whether less than half of the buffer is free.
    pub(crate) const fn is_scarce(&self) -> bool {
        self.free() < self.space() / 2
    }

    /// Whether another packet may be kept at all.
    pub(crate) const fn has_memory(&self) -> bool {
        self.held <= self.buffer
    }

    /// Memory of the buffer.
    pub(crate) const fn buffer(&self) -> Bytes {
        Bytes::new(self.buffer)
    }

    /// A program says how much memory the buffer has; it does not grow any more.
    pub(crate) fn set_buffer(&mut self, bytes: Bytes) {
        self.buffer = bytes.get();
        self.most = self.buffer;
    }

    /// Packets of another size arrive: this one has so much payload, and takes so much memory.
    pub(crate) fn measure(&mut self, payload: u64, memory: u64) {
        self.share = (payload * WHOLE / memory).clamp(1, WHOLE);
    }

    /// Memory is taken by a packet that the program has not read, ...
    pub(crate) fn hold(&mut self, memory: u64) {
        self.held += memory;
    }

    /// ... and given back.
    pub(crate) fn give_back(&mut self, memory: u64) {
        self.held = self.held.saturating_sub(memory);
    }

    /// A packet with `len` bytes arrived, which takes `memory`: true when more may be offered for it.
    pub(crate) fn grow(&mut self, len: u64, memory: u64, mss: u64) -> bool {
        let room = self.space().min(self.free()).saturating_sub(self.granted);
        // A packet that takes more memory than its share does not raise the window by much.
        let fits = memory * self.share / WHOLE <= len;
        let step = if fits { (2 * mss).max(2 * len) } else { 0 };
        self.granted += room.min(step);
        room.min(step) > 0
    }

    /// Everything before `next` has arrived, and the program has read it: tunes the buffer.
    #[inline]
    pub(crate) fn tune(&mut self, next: u64, now: Time) {
        if self.buffer < self.most {
            self.resize(next, now);
        }
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
            self.make_room_for(2 * expected);
            self.arrived = self.arrived.max(arrived);
            self.counted = (next, now);
        }
    }

    /// What lies beyond a gap ends `extent` bytes beyond what has arrived in order: the buffer is to have room for it,
    /// besides twice what arrives in a round trip.
    pub(crate) fn make_room_beyond(&mut self, extent: u64) {
        if self.accepted && self.buffer < self.most {
            self.make_room_for(2 * self.arrived + extent);
        }
    }

    fn make_room_for(&mut self, payload: u64) {
        let memory = payload * WHOLE / self.share;
        self.buffer = self.buffer.max(memory.min(self.most));
    }

    /// The window that would be offered now, by a receiver of segments of `segment` bytes.
    pub(crate) fn select(&self, segment: u64) -> u64 {
        let (space, free) = (self.space(), self.free());
        let segment = segment.min(space);
        if self.is_scarce() && (free < space / 16 || free < segment) {
            return 0;
        }
        let free = free.min(self.granted);
        if self.scale > 0 {
            return free;
        }
        let stays = self.window + segment > free && self.window <= free;
        if stays { self.window } else { free / segment.max(1) * segment }
    }

    /// The window field that goes with an acknowledgement of everything before `upto`, rounded so that the edge stays
    /// where it was at least.
    pub(crate) fn field(&mut self, upto: u64, segment: u64, shrinks: bool) -> u16 {
        let unit = 1 << self.scale;
        let current = self.edge.saturating_sub(upto);
        let selected = self.select(segment);
        let window = if shrinks { selected / unit * unit } else { selected.max(current).next_multiple_of(unit) };
        self.offer(upto, window.min(u64::from(u16::MAX) << self.scale))
    }

    /// The window field of an acknowledgement where no memory is left.
    pub(crate) fn close(&mut self, upto: u64) -> u16 {
        self.offer(upto, 0)
    }

    fn offer(&mut self, upto: u64, window: u64) -> u16 {
        self.window = window;
        self.edge = upto + window;
        self.highest = self.highest.max(self.edge);
        (window >> self.scale) as u16
    }
}
