//! How the window falls to the threshold while a reduction lasts: by proportional rate reduction (RFC 6937), or at once
//! (RFC 5681 and 6582).

use super::sender::{Phase, Sender};
use super::terms::Terms;
use crate::cc::CongestionControl;

impl Sender {
    /// The sender is in this phase now.
    pub(crate) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.cc.on_state(phase == Phase::Open, self.next);
    }

    /// Begins a reduction: asks the controller for the threshold and starts the count.
    pub(crate) fn begin_reduction(&mut self, phase: Phase, marked: bool) {
        self.phase_end = self.next;
        self.probe_end = None;
        self.window.credit = 0;
        self.prior_cwnd = self.window.cwnd;
        self.prr_delivered = 0;
        self.prr_out = 0;
        self.window.ssthresh = self.cc.ssthresh(&self.window, marked);
        self.enter(phase);
        if self.marks_mean_congestion() {
            self.cwr_due = true;
        }
    }

    /// An ACK during the reduction reported `delivered` packets; `safe` when it advanced and nothing new was lost
    /// (section 3.1: the proportional part above the threshold, slow start's pace or the conservative bound below).
    pub(crate) fn reduce(&mut self, delivered: u32, safe: bool, terms: &Terms) {
        if delivered == 0 || self.prior_cwnd == 0 {
            return;
        }
        if !terms.prr {
            return self.reduce_at_once();
        }
        self.prr_delivered += delivered;
        let in_flight = self.board.in_flight();
        let ssthresh = self.window.ssthresh;
        let quota = if in_flight > ssthresh {
            let due = (u64::from(ssthresh) * u64::from(self.prr_delivered)).div_ceil(u64::from(self.prior_cwnd));
            (due as u32).saturating_sub(self.prr_out)
        } else {
            let bound = self.prr_delivered.saturating_sub(self.prr_out).max(delivered) + u32::from(safe);
            bound.min(ssthresh - in_flight)
        };
        // The first retransmission goes out at once.
        let first = u32::from(self.prr_out == 0);
        self.window.cwnd = in_flight + quota.max(first);
    }

    /// The window is the threshold, and what was found lost and not yet retransmitted goes out whatever the window says
    /// (RFC 6582, section 3.2, steps 2 and 3).
    fn reduce_at_once(&mut self) {
        let due = u32::from(self.board.lost() > self.board.retransmitted());
        self.window.cwnd = self.window.ssthresh.max(self.board.in_flight() + due);
    }

    /// The reduction is over: the window is the threshold.
    pub(crate) fn end_reduction(&mut self) {
        if self.window.ssthresh < u32::MAX && (self.phase == Phase::Reduced || self.undo_from.is_some()) {
            self.window.cwnd = self.window.ssthresh;
            self.cc.on_reduced(&mut self.window);
        }
    }
}
