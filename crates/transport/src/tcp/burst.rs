//! In what bursts new data go out.
//!
//! A host with segmentation offload hands data down in large pieces, which are cut into packets last of all. So the
//! packets of a bulk flow leave in bursts of up to 64 KiB, and the last packet of a burst has PSH; a lone packet has
//! none. A burst is at most half of the congestion window, so that there are two of them. Where the round trip is long,
//! a burst is also at most what the sender would send in a millisecond. A sender with room for part of a burst waits
//! for the next ACK, unless that part is a good share of the window or the next ACK is far. Linux documents the terms
//! (ip-sysctl: `tcp_tso_win_divisor`, `tcp_tso_rtt_log`, `tcp_min_tso_segs`, `tcp_pacing_ss_ratio`); how they play
//! together is measured, and tested by Linux's own scripts: docs/models/tcp.md.
//!
//! Part of a segment waits as Nagle's algorithm says (RFC 9293, section 3.7.4) in Minshall's variant, which looks only
//! at small segments in flight. What the receiver's window allows is RFC 9293's (section 3.8.6.2.1).

use super::info::Limited;
use super::queue::{Attempt, Chunk, LARGEST};
use super::sender::{Phase, Sender};
use super::terms::Terms;
use crate::cc::CongestionControl;
use firstlight_units::{Span, Time};

/// Each such span of the smallest round trip halves the bursts of a sender that is slow besides: ...
const HALVING: u64 = 512;
/// ... a burst may always hold what the sender would send in 1/1024 s.
const PER_SECOND: u64 = 1024;
/// A sender that has not sent for so long does not wait for more room.
const QUIET: Span = Span::from_ms(1);
/// An ACK that is expected in so long, or in more than half a round trip, is not waited for.
const FAR: Span = Span::from_ms(1);

impl Sender {
    /// Decides what of the new data goes out now, given that the congestion window has `room` packets; false: none.
    pub(crate) fn plan_burst(&mut self, room: u32, now: Time, terms: &Terms) -> bool {
        let attempt = self.queue.attempt;
        if attempt == Attempt::None {
            return false;
        }
        let window = self.window_end.saturating_sub(self.next);
        let mss = u64::from(terms.mss);
        let most = self.burst_size(terms);
        let quota = most.min(u64::from(room.min((self.window.cwnd / 2).max(1))) * mss);
        self.queue.fill_head(self.next + quota);
        let Some((chunk, last)) = self.queue.head() else {
            // Nothing is left but the FIN.
            return self.fin && self.next < self.written && window > 0 && self.begin_burst(1, now);
        };
        let len = chunk.end - self.next;
        if len.min(mss) > window {
            self.limits.set(Limited::ByWindow, now);
            return false;
        }
        let burst = if len <= mss {
            if last && self.holds_back(len < mss, attempt) { 0 } else { len }
        } else {
            if attempt != Attempt::One && self.waits_for_room(chunk, last, room, most, now, terms) {
                // For an ACK, or for more data.
                self.queue.attempt = Attempt::None;
                return false;
            }
            self.part_of(len, last, quota, window, mss, attempt)
        };
        if attempt == Attempt::One {
            self.queue.attempt = Attempt::None;
        }
        burst > 0 && !self.waits_for_interface(burst, now, terms) && self.begin_burst(burst, now)
    }

    /// How much of a chunk of several segments goes out: at most `most` bytes, within the peer's window.
    fn part_of(&self, len: u64, last: bool, most: u64, window: u64, mss: u64, attempt: Attempt) -> u64 {
        if most <= window && !last {
            return most.min(len);
        }
        let usable = len.min(window);
        if most <= usable {
            return most;
        }
        // Part of a segment at the end of the data, or of the peer's window.
        let part = usable % mss;
        if self.holds_back(part > 0, attempt) { usable - part } else { usable }
    }

    /// Nagle's algorithm, and a program that says that more will follow: whether part of a segment waits.
    fn holds_back(&self, part: bool, attempt: Attempt) -> bool {
        if !part || self.closes || matches!(attempt, Attempt::Pushed | Attempt::One) {
            return false;
        }
        let nagle = !self.nodelay || (self.flushes && self.queue.backlog() > 0);
        let small_in_flight = !self.board.is_empty() && self.small_end > self.una;
        self.corked || attempt == Attempt::Corked || (nagle && small_in_flight)
    }

    pub(crate) fn begin_burst(&mut self, len: u64, now: Time) -> bool {
        self.limits.set(Limited::Busy, now);
        self.burst_start = self.next;
        self.burst_end = self.next + len;
        self.burst_pushes = self.queue.on_burst(self.burst_end);
        true
    }

    /// Whether a sender with room for part of a burst waits for more.
    fn waits_for_room(&mut self, chunk: Chunk, last: bool, room: u32, most: u64, now: Time, terms: &Terms) -> bool {
        let mss = u64::from(terms.mss);
        let (room, window) = (u64::from(room) * mss, self.window_end - self.next);
        let len = chunk.end - self.next;
        let usable = room.min(window);
        if self.phase >= Phase::Recovery || usable >= most || (!last && usable >= len) {
            return false;
        }
        let quiet = self.last_sent + QUIET;
        // Compared first without divisions, which decides in most cases.
        if now > quiet && now.whole_ns() > quiet.whole_ns() {
            return false;
        }
        let whole = (u64::from(self.window.cwnd) * mss).min(self.window_end - self.una);
        // The ACK of the oldest packet in flight may be too far to wait for it.
        let far = |srtt: Span| self.board.front().is_none_or(|oldest| oldest.sent + srtt > now + FAR.min(srtt / 2));
        if whole < (usable + 1) * terms.stack.burst_share || self.rtt.smoothed().is_none_or(far) {
            return false;
        }
        if room < window {
            if room <= len {
                self.validate_window(true);
                return true;
            }
        } else if window <= len {
            self.limits.set(Limited::ByWindow, now);
            return true;
        }
        // More data may come, unless the chunk takes none.
        !(chunk.closed || (last && self.fin))
    }

    /// The most payload of a burst, whatever the windows say.
    pub(crate) fn burst_size(&self, terms: &Terms) -> u64 {
        let mss = u64::from(terms.mss);
        if !terms.bursts {
            return mss;
        }
        let mut bytes = LARGEST;
        let distance = self.rtt.min().as_ps() / (HALVING * Span::from_us(1).as_ps());
        if distance > 0 {
            bytes = bytes.min(self.bytes_per_ms(terms) + (LARGEST >> distance.min(63)));
        }
        (bytes / mss).max(u64::from(terms.stack.least_burst)) * mss
    }

    /// What the sender would send in 1/1024 s: at the controller's rate if it sets one; else its window at the last
    /// ACK, and what that may grow by, in each round trip.
    pub(crate) fn bytes_per_ms(&self, terms: &Terms) -> u64 {
        if let Some(packets) = self.cc.packets_per_second() {
            return (packets * f64::from(terms.mss)) as u64 / PER_SECOND;
        }
        let eighths = self.rtt.smoothed().map_or(8, |srtt| (srtt.as_ps() / 125_000).max(1));
        let (window, percent) = self.rate;
        (u64::from(window) * u64::from(terms.mss)).saturating_mul(u64::from(percent) * 80_000) / eighths / PER_SECOND
    }

    /// An ACK has changed the window: what the sender would send is worked out anew, and then not before the next ACK.
    pub(crate) fn note_rate(&mut self) {
        let percent = if self.window.cwnd < self.window.ssthresh / 2 { 200 } else { 120 };
        self.rate = (self.window.cwnd.max(self.board.len()), percent);
    }
}
