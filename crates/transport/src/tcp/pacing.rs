//! Pacing: a controller may ask for a span between the packets, besides the window.
//!
//! The distance between packets is strict, but for BBR, which is paced as on Linux 7.2 (measured): packets that leave
//! later than they could have make up for it, for the next wait is that much shorter, at most by half; and the first
//! packets of a connection are not paced.
//!
//! What it holds back is all that carries data: new data, retransmissions and probes, and no ACKs. A packet that may
//! not go yet sets the time of waking, in whole nanoseconds as a kernel's high-resolution timers are, without ticks.
//! What goes out in a burst (`burst.rs`) is decided before; its packets then leave one by one. A probe or a timeout
//! that comes due while everything waits for the pacer is put off: there is nothing that could have been lost.

use super::sender::Sender;
use super::terms::Terms;
use super::timer::Purpose;
use crate::cc::CongestionControl;
use firstlight_units::{Bytes, Time};

/// Packets until a connection is paced: those that leave before its burst has this one do not wait.
const FIRST: u64 = 10;

/// When data may go out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    /// The earliest time for the next data.
    pub(crate) next: Time,
    /// When data that the pacer holds back may leave; [`Time::MAX`] when none wait.
    pub(crate) wake: Time,
    /// When the current burst began, and its bytes.
    burst: (Time, u64),
    /// Packets that have left at a pacing rate.
    sent: u32,
    /// The next packet is one of the burst.
    pub(crate) goes_on: bool,
    /// By how many nanoseconds it began later than it could have, less what its packets have made up for.
    late: u64,
}

impl Default for Pacer {
    fn default() -> Self {
        Pacer { next: Time::ZERO, wake: Time::MAX, burst: (Time::ZERO, 0), sent: 0, goes_on: false, late: 0 }
    }
}

impl Sender {
    /// A segment leaves.
    #[inline]
    pub(crate) fn pace(&mut self, len: u32, now: Time, terms: &Terms) {
        let (mss, header) = (u64::from(terms.mss), u64::from(terms.header));
        let mut wait = self.cc.pace(Bytes::new(u64::from(len) + header)).as_ps() / 1000;
        if wait == 0 {
            return;
        }
        let (began, bytes) = self.pacer.burst;
        let bytes = if began == now { bytes } else { 0 };
        let makes_up = self.cc.makes_up();
        if makes_up && bytes > 0 {
            // A burst waits for all its bytes, in whole nanoseconds.
            let mut wait_ns = |payload: u64| {
                let headers = payload.div_ceil(mss) * header;
                self.cc.pace(Bytes::new(payload + headers)).as_ps() / 1000
            };
            wait = wait_ns(bytes + u64::from(len)).saturating_sub(wait_ns(bytes));
        }
        self.pacer.sent = self.pacer.sent.saturating_add(1);
        let left = self.burst_end.saturating_sub(self.next).div_ceil(mss);
        if makes_up && u64::from(self.pacer.sent) + left < FIRST {
            return;
        }
        let pacer = &mut self.pacer;
        let ready = pacer.next.whole_ns();
        if began != now {
            pacer.late = now.whole_ns().saturating_sub(ready);
        }
        let made_up = if makes_up { pacer.late.min(wait / 2) } else { 0 };
        pacer.late -= made_up;
        pacer.next = Time::from_ns(ready.max(now.whole_ns()) + wait - made_up);
        pacer.burst = (now, bytes + u64::from(len));
    }

    /// Whether data have to wait for the pacer: it is not yet time, and no burst that began now goes on.
    #[inline]
    pub(crate) fn is_held_back(&self, now: Time) -> bool {
        let (began, bytes) = self.pacer.burst;
        self.pacer.next > now && (began != now || !self.pacer.goes_on || bytes >= self.cc.burst().get())
    }

    /// Data may not leave yet: sets the pacer's alarm if any wait.
    pub(crate) fn hold_back(&mut self) {
        let in_flight = self.board.in_flight();
        let waiting = self.has_new_data() || self.board.lost() > self.board.retransmitted();
        if self.probe_due || (waiting && in_flight < self.window.cwnd) {
            self.pacer.wake = self.pacer.next;
        }
    }

    /// The timer has expired: puts it off when what it would do, or has done, waits for the pacer.
    pub(crate) fn waits_for_pacer(&mut self, now: Time, terms: &Terms) -> bool {
        if self.pacer.next <= now {
            return false;
        }
        self.timer.at = match self.timer.purpose {
            Purpose::Probe => self.pacer.next,
            Purpose::Retransmit if self.board.in_flight() == 0 => {
                let timeout = self.timeout(terms);
                self.ticks.after(self.pacer.next, timeout)
            }
            _ => return false,
        };
        true
    }

    /// A window of one packet, with a controller that lives with so small ones (as those that see delay do): nothing
    /// follows for which its ACK should be delayed, so the packet pushes (RFC 9293, section 3.9.1.2, leaves that to the
    /// sender).
    pub(crate) fn goes_alone(&self) -> bool {
        self.window.cwnd == 1 && self.cc.wants_stamps()
    }
}
