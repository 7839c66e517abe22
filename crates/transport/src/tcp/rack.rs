//! RACK: a packet is lost when one sent sufficiently later has been delivered (RFC 8985, section 6).
//!
//! As in Linux all times are in whole microseconds of the host's clock: packets sent within one were sent together, and
//! on paths shorter than 4 us the reordering window is empty.

use super::scoreboard::{Mark, Segment};
use super::sender::{Phase, Sender};
use super::terms::Terms;
use super::timer::{Purpose, Timer};
use firstlight_units::{Span, Time};

/// Microseconds of the host's clock between two moments.
fn elapsed(sent: Time, now: Time) -> u64 {
    now.whole_us().saturating_sub(sent.whole_us())
}

/// Duplicate acknowledgements that make loss certain while no reordering was seen (RFC 8985: DupThresh).
pub(crate) const DUP_THRESHOLD: u32 = 3;
/// Recoveries for which a widened reordering window is kept (RFC 8985: reo_wnd_persist).
const KEEP_WIDENED: u32 = 16;

/// RACK's state (section 5.3).
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// When the most recently sent of the delivered packets was sent, in microseconds, and where it ended.
    sent: u64,
    end: u64,
    /// The round-trip time of the packet that was delivered last, in microseconds.
    rtt: u64,
    /// Highest stream offset that was delivered.
    highest: u64,
    /// Highest stream offset that was delivered before the present ACK.
    highest_before: u64,
    /// The lowest offset that the present ACK reports after later ones were delivered; [`u64::MAX`] for none.
    late: u64,
    /// Something was delivered since losses were looked for.
    advanced: bool,
    pub(crate) reordering_seen: bool,
    /// Packets by which delivery has been out of order, at most.
    pub(crate) reordering: u32,
    /// Quarters of the smallest RTT that the reordering window spans.
    widen: u32,
    keep: u32,
    duplicate_seen: bool,
    /// Widen only once per round trip: not before something is delivered that was sent after this.
    widened: Time,
    /// When the newest packet that the present ACK reports was sent; `None` if the ACK reports none.
    newest: Option<Time>,
}

impl Default for Rack {
    fn default() -> Self {
        Rack {
            sent: 0,
            end: 0,
            rtt: 0,
            highest: 0,
            highest_before: 0,
            late: u64::MAX,
            advanced: false,
            reordering_seen: false,
            reordering: DUP_THRESHOLD,
            widen: 1,
            keep: 0,
            duplicate_seen: false,
            widened: Time::ZERO,
            newest: None,
        }
    }
}

impl Sender {
    /// Section 6.2, steps 1 to 3: a segment was delivered, cumulatively or by SACK.
    #[inline(never)]
    pub(crate) fn rack_delivered(&mut self, segment: &Segment, now: Time) {
        let retransmitted = segment.marks.has(Mark::EVER_RETRANSMITTED);
        let rtt = elapsed(segment.sent, now);
        self.rack.newest = self.rack.newest.max(Some(segment.sent));
        if retransmitted {
            // The ACK may be for the original, so a time below the smallest round trip is not taken. (Echoed timestamps
            // are compared for cumulative ACKs only: an ACK of a packet out of order echoes an earlier one's.)
            if Span::from_us(rtt) < self.rtt.min() {
                return;
            }
        } else if segment.start < self.rack.highest_before {
            self.rack.late = self.rack.late.min(segment.start);
        }
        self.rack.highest = self.rack.highest.max(segment.end());
        // As in Linux the round trip is that of whatever was delivered last, also when it was sent before.
        self.rack.rtt = rtt;
        self.rack.advanced = true;
        if (segment.sent.whole_us(), segment.end()) > (self.rack.sent, self.rack.end) {
            self.rack.sent = segment.sent.whole_us();
            self.rack.end = segment.end();
        }
    }

    /// An ACK arrives.
    #[inline]
    pub(crate) fn rack_begin_ack(&mut self) {
        self.rack.highest_before = self.rack.highest;
        self.rack.late = u64::MAX;
        self.rack.newest = None;
    }

    /// A DSACK reports needless copies of what earlier ACKs have reported but not acknowledged: originals came late.
    /// Returns where the first of these starts; [`u64::MAX`] if there is none.
    #[cold]
    pub(crate) fn rack_found_needless(&self, (start, end): (u64, u64)) -> u64 {
        let first = self.board.index_from(start);
        let came_late = |s: &&Segment| s.marks.has(Mark::SACKED) && s.marks.has(Mark::EVER_RETRANSMITTED);
        self.board.iter().skip(first).take_while(|s| s.end() <= end).find(came_late).map_or(u64::MAX, |s| s.start)
    }

    /// What starts at `start` came after what was sent later, if that was delivered.
    pub(crate) fn rack_came_late(&mut self, start: u64) {
        if start < self.rack.highest {
            self.rack.late = self.rack.late.min(start);
        }
    }

    /// An ACK reported data that were sent before those of earlier reports: later packets have overtaken them.
    #[cold]
    fn note_reordering(&mut self, mss: u32) {
        self.rack.reordering_seen = true;
        let packets = (self.rack.highest - self.rack.late).div_ceil(u64::from(mss)).min(300) as u32;
        self.rack.reordering = self.rack.reordering.max(packets);
        self.stats.reorderings += 1;
    }

    /// All segments that the present ACK reports have been handled.
    #[inline]
    pub(crate) fn rack_end_ack(&mut self, mss: u32) {
        if self.rack.late < u64::MAX {
            self.note_reordering(mss);
        }
    }

    /// A DSACK reports a needless retransmission that was no probe: the window was too narrow (section 6.2, step 4).
    /// As in Linux, a DSACK counts only on a path that has reordered packets.
    pub(crate) fn rack_saw_duplicate(&mut self) {
        self.rack.duplicate_seen |= self.rack.reordering_seen;
    }

    /// A reduction turned out spurious through duplicates: keep the widened window for one recovery more.
    pub(crate) fn rack_keep_widened(&mut self) {
        self.rack.keep = (self.rack.keep + 1).min(KEEP_WIDENED);
    }

    /// A recovery ended: one less to keep the widened window for.
    pub(crate) fn rack_recovery_ended(&mut self) {
        if self.rack.keep > 0 {
            self.rack.keep -= 1;
        }
    }

    /// Section 6.2, step 4: adapts the reordering window, at an ACK that reports something new. A duplicate says
    /// nothing of a window that was widened after the packets were sent that this ACK reports (expected of Linux, not
    /// shown by a packet yet).
    pub(crate) fn rack_adapt(&mut self, now: Time) {
        let Some(newest) = self.rack.newest else { return };
        if std::mem::take(&mut self.rack.duplicate_seen) && newest >= self.rack.widened {
            self.rack.widen = (self.rack.widen + 1).min(255);
            self.rack.widened = now;
            self.rack.keep = KEEP_WIDENED;
        } else if self.rack.keep == 0 {
            self.rack.widen = 1;
        }
    }

    /// The reordering window, in microseconds.
    fn reordering_window(&self) -> u64 {
        if !self.rack.reordering_seen && (self.phase >= Phase::Recovery || self.board.sacked() >= self.rack.reordering)
        {
            return 0;
        }
        let us = Span::from_us(1).as_ps();
        let quarter = if self.rtt.min() == Span::MAX { 0 } else { self.rtt.min().as_ps() / us / 4 };
        let smoothed = self.rtt.smoothed().map_or(0, |smoothed| smoothed.as_ps() / us);
        (quarter * u64::from(self.rack.widen)).min(smoothed)
    }

    /// How much longer a packet sent at `sent` may take before it counts as lost; zero: it is lost.
    pub(crate) fn rack_patience(&self, segment: &Segment, now: Time) -> Span {
        let window = self.rack.rtt + self.reordering_window();
        Span::from_us(window.saturating_sub(elapsed(segment.sent, now)))
    }

    /// When the first segment was sent that is newer than the newest one delivered, though of the same microsecond;
    /// [`Time::MAX`] where there is none. Linux goes through its segments in the order of their sending and stops at
    /// this one, so what was sent after it is not looked at.
    fn first_newer(&self) -> Time {
        let is_newer =
            |s: &&Segment| s.sent.whole_us() == self.rack.sent && s.end() >= self.rack.end && s.is_under_way();
        self.board.iter().filter(is_newer).map(|s| s.sent).min().unwrap_or(Time::MAX)
    }

    /// An ACK arrived: section 6.2, step 5, if anything was delivered since the last time.
    pub(crate) fn rack_detect_by_ack(&mut self, now: Time, terms: &Terms) -> (u32, bool) {
        if std::mem::take(&mut self.rack.advanced) { self.rack_detect(now, terms) } else { (0, false) }
    }

    /// Section 6.2, step 5: marks what is lost and arms the timer for what may be. Returns how many were marked,
    /// and whether the timer was armed.
    pub(crate) fn rack_detect(&mut self, now: Time, terms: &Terms) -> (u32, bool) {
        let mut marked = 0;
        let mut wait = Span::ZERO;
        let mut stop = None;
        for i in 0..self.board.len() as usize {
            let segment = *self.board.get(i);
            if (segment.sent.whole_us(), segment.end()) >= (self.rack.sent, self.rack.end) {
                // Original transmissions are in order of their sending; a retransmission may come before older ones.
                if !segment.marks.has(Mark::EVER_RETRANSMITTED) {
                    break;
                }
                continue;
            }
            if !segment.is_under_way() {
                continue;
            }
            let same = segment.sent.whole_us() == self.rack.sent;
            if same && segment.sent > *stop.get_or_insert_with(|| self.first_newer()) {
                continue;
            }
            let patience = self.rack_patience(&segment, now);
            if patience.is_zero() {
                self.board.mark_lost(i);
                marked += 1;
            } else {
                wait = wait.max(patience);
            }
        }
        if !wait.is_zero() {
            let at = self.ticks.after(now, wait + terms.timer_slack());
            self.timer = Timer { purpose: Purpose::Reorder, at };
        }
        (marked, !wait.is_zero())
    }
}
