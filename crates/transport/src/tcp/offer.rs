//! The receive window that is offered (RFC 9293, section 3.8.6; RFC 7323), and the buffer behind it.
//!
//! The buffer counts memory: packets take more of it than their payload. What part of it is payload is not known before
//! the first packet; half is assumed. So a peer that has shown nothing yet is offered half of the buffer, in whole
//! segments, and two segments more for each packet that fits as well as it should. When the handshake is complete, room
//! for one segment stays free. A packet takes memory until the program has read it, which is after its acknowledgement
//! if that goes out at once. The window is never taken back, unless a sysctl allows it (`tcp_shrink_window`) or no
//! memory is left at all.
//!
//! The buffer grows by dynamic right-sizing (Fisk and Feng, "Dynamic right-sizing in TCP", LACSI 2001): it has room for
//! twice what the program reads in a round trip, and for what lies beyond gaps. If round trips take a millisecond or
//! more, a buffer gets more room while what is read grows; below that it gets little more (`tcp_rcvbuf_low_rtt` in
//! Linux's ip-sysctl). A round trip is at most the time in which a whole window arrives; echoed timestamps measure it
//! too. The numbers are those of Linux 7.2: docs/models/tcp.md.

use super::offer_2012::{self, Tuning2012};
use super::terms::Terms;
use crate::autotune::Autotune;
use firstlight_units::{Bytes, Span, Time};

/// The largest window that a SYN can offer.
const UNSCALED: u64 = 65_535;
/// Shares of the memory that are payload are counted in 1/256.
const WHOLE: u64 = 256;
/// Segments that are expected in the first round trip (RFC 6928).
const FIRST_SEGMENTS: u64 = 10;
/// Shorter round trips let the buffer grow slowly (`tcp_rcvbuf_low_rtt`), in microseconds.
const SHORT_ROUND_TRIP: u64 = 1000;

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
    /// The most that may be offered; it grows with what arrives, ...
    granted: u64,
    /// ... up to what the buffer holds, less a segment before the first packet of full size.
    ceiling: u64,
    /// The window that was offered last.
    window: u64,
    /// Stream offset up to which it reached.
    edge: u64,
    /// Stream offset up to which the window was ever offered.
    highest: u64,
    /// The program has the connection: the buffer may grow.
    accepted: bool,
    scale: u8,
    /// The receiver's measure of a round trip, in eighths of a microsecond; 0 before the first.
    rtt: u64,
    /// A window has arrived when this offset has, begun at this microsecond.
    round: (u64, u64),
    /// What the program reads in a round trip is counted from this offset, since this microsecond.
    counted: (u64, u64),
    /// The most that the program has read in a round trip.
    arrived: u64,
    /// The timestamp that the last sample of a round trip was made from.
    echoed: u32,
    /// How the buffer is tuned instead, where kernels of 2012 are asked for.
    of_2012: Option<Box<Tuning2012>>,
}

impl Offer {
    pub(crate) fn new(terms: &Terms) -> Self {
        let most = terms.receive_memory();
        let first = terms.stack.receive_buffer.get();
        let (buffer, share) = match terms.autotune {
            Autotune::On => (first.min(most), WHOLE / 2),
            Autotune::Off => (most, WHOLE / 2),
            Autotune::Year2012 => (offer_2012::FIRST.min(most), offer_2012::SHARE),
        };
        Offer {
            buffer,
            most,
            held: 0,
            share,
            granted: 0,
            ceiling: u64::MAX,
            window: 0,
            edge: 0,
            highest: 0,
            accepted: true,
            scale: 0,
            rtt: 0,
            round: (0, 0),
            counted: (0, 0),
            arrived: 0,
            echoed: 0,
            of_2012: (terms.autotune == Autotune::Year2012).then(|| Box::new(Tuning2012::new(terms.tick))),
        }
    }

    /// What this end's SYN offers to a peer with segments of `mss` bytes.
    pub(crate) fn settle(&mut self, mss: u32) {
        let (mss, space) = (u64::from(mss), self.space());
        self.granted = if space > mss { space / mss * mss } else { space };
    }

    /// By how many bits windows are shifted that are offered from now on.
    pub(crate) fn rescale(&mut self, scale: u8) {
        self.scale = scale;
        self.granted = self.granted.min(UNSCALED << scale);
    }

    /// The peer's SYN has arrived: the stream starts. The window is what is granted, also where the unscaled field of
    /// this end's SYN shows less.
    pub(crate) fn start(&mut self) {
        self.window = self.granted.min(UNSCALED << self.scale);
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

    /// More memory is taken than the buffer has. If it may not grow, the window begins anew with two segments of `mss`
    /// bytes, as the kernel's script `tcp_rcv_wnd_shrink_nomem` shows.
    pub(crate) fn begin_anew(&mut self, mss: u64) {
        if self.buffer >= self.most {
            self.granted = self.ceiling.min(2 * mss);
        }
    }

    /// Whether the program has read everything, and nothing lies beyond a gap.
    pub(crate) const fn is_empty(&self) -> bool {
        self.held == 0
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
        if self.of_2012.is_none() {
            let share = (payload * WHOLE / memory).clamp(1, WHOLE);
            if share != self.share {
                self.share = share;
                self.ceiling = self.space();
                self.arrived = self.arrived.min(self.ceiling);
            }
        }
    }

    /// Memory is taken by a packet that the program has not read, ...
    pub(crate) fn hold(&mut self, memory: u64) {
        self.held += memory;
    }

    /// ... and given back.
    pub(crate) fn give_back(&mut self, memory: u64) {
        self.held = self.held.saturating_sub(memory);
    }

    /// A packet with `len` bytes arrived, which takes `memory`: true when more may be offered for it, by two segments
    /// of `mss` bytes, or of `segment`, the size that arrives, if it takes more memory than its share.
    pub(crate) fn grow(&mut self, len: u64, memory: u64, mss: u64, segment: u64) -> bool {
        let room = self.ceiling.min(self.free()).saturating_sub(self.granted);
        let step = match memory * self.share / WHOLE {
            _ if room == 0 => 0,
            memory if memory <= len => 2 * mss.max(len),
            memory if self.is_worth_its_memory(len, memory) => 2 * segment.max(len),
            _ => 0,
        };
        self.granted += room.min(step);
        step > 0
    }

    /// Whether the window may grow for a packet with `len` bytes that takes the place of `memory` bytes: as long as the
    /// window is a small part of what it can become, half for each time that the memory has to be halved.
    fn is_worth_its_memory(&self, len: u64, mut memory: u64) -> bool {
        let mut most = self.most * self.share / WHOLE;
        while memory > len {
            (memory, most) = (memory / 2, most / 2);
            if self.granted > most {
                return false;
            }
        }
        true
    }

    /// The handshake is complete at `now`: room for one segment of `mss` bytes stays free.
    pub(crate) fn establish(&mut self, mss: u32, now: Time) {
        let mss = u64::from(mss);
        self.ceiling = self.space().saturating_sub(mss).max(2 * mss);
        self.granted = self.granted.min(self.ceiling);
        self.arrived = self.granted.min(FIRST_SEGMENTS * mss);
        self.counted = (1, now.whole_us());
        if let Some(tuning) = &mut self.of_2012 {
            tuning.establish(now);
        }
    }

    /// Data have arrived: everything before `next` has. The time in which a whole window arrives is at least a round
    /// trip.
    #[inline]
    pub(crate) fn on_arrival(&mut self, next: u64, now: Time) {
        if next >= self.round.0 {
            if let Some(tuning) = &mut self.of_2012 {
                tuning.on_arrival(next, self.window, now);
            }
            let now = now.whole_us();
            if self.round.0 > 0 {
                let sample = 8 * (now - self.round.1).max(1);
                self.rtt = if self.rtt == 0 { sample } else { self.rtt.min(sample) };
            }
            self.round = (next + self.window, now);
        }
    }

    /// What is known of the round trip; 0 before the first sample, and the longest where nothing is measured.
    pub(crate) fn round_trip(&self) -> Span {
        if self.of_2012.is_some() { Span::MAX } else { Span::from_ns(125 * self.rtt) }
    }

    /// A segment echoes `timestamp`, in milliseconds of this host's clock; a full one is the first to do so `now`: the
    /// round trip took as long, if it took any time by that clock. Longer samples count for an eighth, and not at all
    /// if the program is `slow`. `now` is asked for a new timestamp only.
    #[inline]
    pub(crate) fn on_echo(&mut self, timestamp: u32, now: impl FnOnce() -> Option<u32>, slow: bool) {
        if let Some(tuning) = &mut self.of_2012 {
            if let Some(now) = now() {
                tuning.on_echo(now.wrapping_sub(timestamp));
            }
            return;
        }
        if timestamp == self.echoed {
            return;
        }
        self.echoed = timestamp;
        let Some(now) = now() else { return };
        let sample = 8 * 1000 * u64::from(now.wrapping_sub(timestamp));
        let longer = self.rtt > 0 && sample > self.rtt;
        if longer && !slow {
            self.rtt += sample / 8 - self.rtt / 8;
        } else if sample > 0 && !longer {
            self.rtt = sample;
        }
    }

    /// The program has read everything before `next`, `left` bytes that are in order are still to be read, and what
    /// lies beyond a gap ends `extent` bytes beyond these: tunes the buffer.
    #[inline]
    pub(crate) fn tune(&mut self, next: u64, left: u64, extent: u64, now: Time) {
        if self.buffer >= self.most {
            return;
        }
        match &mut self.of_2012 {
            None => self.resize(next, left, extent, now.whole_us()),
            Some(tuning) => {
                if let Some(payload) = tuning.on_read(next, now) {
                    self.enlarge(payload * WHOLE / self.share);
                }
            }
        }
    }

    fn resize(&mut self, next: u64, left: u64, extent: u64, now: u64) {
        if self.rtt == 0 || now - self.counted.1 < self.rtt / 8 {
            return;
        }
        let read = (next - self.counted.0).saturating_sub(left);
        if read > self.arrived {
            let before = std::mem::replace(&mut self.arrived, read);
            self.make_room(before, extent);
        }
        self.counted = (next, now);
    }

    /// What lies beyond a gap ends `extent` bytes beyond what has arrived in order: the buffer is to have room for it,
    /// besides what arrives in a round trip.
    pub(crate) fn make_room_beyond(&mut self, extent: u64) {
        if self.accepted && self.buffer < self.most && self.of_2012.is_none() {
            self.make_room(self.arrived, extent);
        }
    }

    /// The buffer is to hold twice what the program reads in a round trip, where it read `before` in an earlier one,
    /// and `extent` bytes.
    fn make_room(&mut self, before: u64, extent: u64) {
        let twice = 2 * self.arrived;
        let rtt = self.rtt / 8;
        let growth = if rtt < SHORT_ROUND_TRIP {
            twice * rtt / SHORT_ROUND_TRIP
        } else {
            // A sender that speeds up goes on to do so.
            2 * twice * (self.arrived - before) / before
        };
        let memory = (twice + growth + extent) * WHOLE / self.share;
        self.enlarge(memory);
    }

    /// The buffer is to have so much memory, if it may.
    fn enlarge(&mut self, memory: u64) {
        let memory = memory.min(self.most);
        if memory > self.buffer {
            self.buffer = memory;
            self.ceiling = self.space();
        }
    }

    /// The window that would be offered now, by a receiver of segments of `segment` bytes; in whole units of its field.
    pub(crate) fn select(&self, segment: u64) -> u64 {
        self.in_whole_units(self.affordable(segment))
    }

    /// A window in whole units of its field, not less than it is.
    const fn in_whole_units(&self, window: u64) -> u64 {
        let part = (1 << self.scale) - 1;
        (window + part) & !part
    }

    /// The window for which there is room.
    fn affordable(&self, segment: u64) -> u64 {
        let (space, mut free) = (self.space(), self.free());
        let segment = segment.min(space);
        if self.is_scarce() {
            // The rounding of the window field is not to add to it.
            free = free >> self.scale << self.scale;
            if free < space / 16 || free < segment {
                return 0;
            }
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
        let current = self.edge.saturating_sub(upto);
        let window = if shrinks {
            self.affordable(segment) >> self.scale << self.scale
        } else {
            self.in_whole_units(self.affordable(segment).max(current))
        };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Memory;
    use crate::config::TcpConfig;

    fn offer() -> Offer {
        let config = TcpConfig { mtu: 9000, ..TcpConfig::default() };
        let mut offer = Offer::new(&Terms::new(&config, false));
        offer.settle(8948);
        offer.start();
        offer.establish(8948, Time::ZERO);
        offer
    }

    /// The window does not grow before a packet has shown how much memory packets take, and what a round trip brings is
    /// no more than the buffer holds then. As measured: 64 KiB less a segment, and after a packet of 630 bytes 56,320.
    #[test]
    fn the_first_packet_of_another_size_opens_the_window() {
        let mut offer = offer();
        assert_eq!((offer.granted, offer.grow(242, 242, 8948, 8948), offer.granted), (56_588, false, 56_588));
        offer.measure(630, 630 + Memory::BESIDE_PAYLOAD);
        assert_eq!((offer.ceiling, offer.arrived), (56_320, 56_320));
        offer.measure(8948, 8948 + Memory::BESIDE_PAYLOAD);
        assert!(offer.grow(8948, 8948, 8948, 8948));
        assert_eq!((offer.granted, offer.arrived), (56_588 + 2 * 8948, 56_320));
    }

    /// A packet that takes more memory than its share lets the window grow by the segments that arrive, not by the
    /// largest ones.
    #[test]
    fn small_packets_let_the_window_grow_by_less() {
        let mut offer = offer();
        offer.measure(557, 557 + Memory::BESIDE_PAYLOAD);
        offer.granted = 10_000;
        assert!(offer.grow(557, 557 + Memory::BESIDE_PAYLOAD + 300, 8948, 557));
        assert_eq!(offer.granted, 10_000 + 2 * 557);
    }

    /// Where less than half of the buffer is free, the window is rounded down to the unit of its field, else up.
    #[test]
    fn scarce_memory_rounds_the_window_down() {
        let mut offer = offer();
        offer.rescale(7);
        offer.measure(8948, 8948 + Memory::BESIDE_PAYLOAD);
        offer.granted = 100_000;
        assert_eq!((offer.space(), offer.select(8948)), (119_808, 100_096));
        offer.hold(70_000);
        assert_eq!((offer.free(), offer.select(8948)), (55_823, 55_808));
    }

    /// The first packet that echoes a timestamp makes the sample, if it is a full one.
    #[test]
    fn a_timestamp_is_looked_at_once() {
        let mut offer = offer();
        offer.on_echo(5, || None, false);
        offer.on_echo(5, || Some(15), false);
        assert_eq!(offer.rtt, 0);
        offer.on_echo(6, || Some(16), false);
        assert_eq!(offer.round_trip(), Span::from_ms(10));
    }
}
