//! In what portions new data go out.
//!
//! A host hands its data down in large pieces, which are cut into packets last of all: a piece holds up to 64 KiB, and a
//! sender that could send only part of one waits for another ACK, unless that part is a good share of its window. So
//! the packets of a bulk flow leave in bursts, seven at a time where they are jumbo frames, and not one by one as the
//! ACKs come. Linux documents the terms (ip-sysctl: `tcp_tso_win_divisor`, `tcp_tso_rtt_log`, `tcp_min_tso_segs`,
//! `tcp_pacing_ss_ratio`); how they play together is measured on Linux 7.2: docs/models/tcp.md. What the receiver's window
//! allows is RFC 9293's (section 3.8.6.2.1). Without bursts a piece is a packet, as simulators of TCP have it.

use super::sender::{Phase, Sender};
use super::terms::Terms;
use firstlight_units::{Span, Time};

/// A piece is one IP packet to the host: so many bytes of payload at most,
const LARGEST: u64 = 65_475;
/// and so many packets at least.
const LEAST: u64 = 2;
/// Part of a piece goes out where it is at least this share of the window.
const SHARE: u64 = 3;
/// Each such span of the smallest round trip halves the pieces of a sender that is slow besides:
const HALVING: u64 = 512;
/// a piece may always hold what it would send in 1/1024 s.
const PER_SECOND: u64 = 1024;

impl Sender {
    /// Decides what of the new data goes out now, given that the window has `room` packets; false: none.
    pub(crate) fn plan_burst(&mut self, room: u32, now: Time, terms: &Terms) -> bool {
        let mss = u64::from(terms.mss);
        let left = self.written - self.next;
        let (room, window) = (u64::from(room) * mss, self.send_end() - self.next);
        let usable = room.min(window).min(left);
        if self.piece_end <= self.next {
            self.piece = self.piece_size(terms);
            self.piece_end = self.next.saturating_add(self.piece);
        }
        let whole = usable >= (self.piece_end - self.next).min(left);
        if usable < mss.min(left) || !(whole || self.may_split(usable, now, mss)) {
            self.limited |= room <= window;
            return false;
        }
        let mut burst = usable.min(self.piece);
        if whole && burst < left {
            // Only a split may end with part of a segment, where the peer's window does.
            burst -= burst % mss;
        }
        self.burst_start = self.next;
        self.burst_end = self.next + burst;
        if self.burst_end > self.piece_end {
            // What is left of a piece is filled up from the next one.
            self.piece = self.piece_size(terms);
            self.piece_end += self.piece;
        }
        true
    }

    /// Whether part of a piece may go out without the rest.
    fn may_split(&self, usable: u64, now: Time, mss: u64) -> bool {
        let window = (u64::from(self.window.cwnd) * mss).min(self.send_end() - self.una);
        // Where the oldest packet in flight is young, the ACK to wait for is far.
        let young = |srtt: Span| self.board.front().is_none_or(|oldest| now.saturating_since(oldest.sent) < srtt / 2);
        SHARE * usable >= window || self.phase >= Phase::Recovery || self.rtt.smoothed().is_none_or(young)
    }

    /// Bytes of a whole piece.
    fn piece_size(&self, terms: &Terms) -> u64 {
        let mss = u64::from(terms.mss);
        if !terms.bursts {
            return mss;
        }
        let mut bytes = LARGEST.min(self.peer_window / 2);
        let distance = self.rtt.min().as_ps() / (HALVING * Span::from_us(1).as_ps());
        if distance > 0 {
            let srtt = self.rtt.smoothed().map_or(1, |srtt| (srtt.as_ps() / 1_000_000).max(1));
            let percent = if self.window.in_slow_start() { 200 } else { 120 };
            let per_second = u64::from(self.window.cwnd) * mss * percent / 100 * 1_000_000 / srtt;
            bytes = bytes.min(per_second / PER_SECOND + (LARGEST >> distance.min(63)));
        }
        (bytes / mss).max(LEAST) * mss
    }
}
