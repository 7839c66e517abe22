//! The sending half: what is in flight, what may be sent next, and the timer.

use super::pacing::Pacer;
use super::rtt::RttEstimator;
use super::scoreboard::{Mark, Scoreboard, Segment};
use super::seq::SeqMap;
use super::timer::{Purpose, Ticks, Timer, timestamp};
use super::{Stats, rack::Rack};
use crate::cc::{CongestionControl, Controller, EcnUse, Window};
use crate::config::TcpConfig;
use firstlight_units::{Span, Time};

/// Where the sender stands with congestion, in Linux's well-known terms.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Phase {
    /// All is well.
    Open,
    /// Something is out of order; it may be nothing.
    Disorder,
    /// The window is being reduced for a mark, nothing is lost.
    Reduced,
    /// Loss was detected; lost packets are being repaired.
    Recovery,
    /// The retransmission timer expired.
    Loss,
}

/// A segment to be put on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) start: u64,
    pub(crate) len: u32,
    pub(crate) retransmission: bool,
    /// The receiver is to hand over what it has.
    pub(crate) push: bool,
}

/// The sending half of a connection. `recovery.rs` reacts to ACKs, `rack.rs` finds losses, `prr.rs` moves the window.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) map: SeqMap,
    /// Everything before is acknowledged.
    pub(crate) una: u64,
    /// The next stream offset to send.
    pub(crate) next: u64,
    /// Where what the application has written ends.
    pub(crate) written: u64,
    /// Where the peer's receive window ends.
    pub(crate) window_end: u64,
    /// How far beyond `una` the stack holds data.
    buffer: u64,
    /// The largest window that the peer has offered.
    pub(crate) peer_window: u64,
    /// By how many bits the peer shifts it.
    pub(crate) window_scale: u8,
    // New data: what goes out at once, and how they are cut into pieces.
    pub(crate) burst_start: u64,
    pub(crate) burst_end: u64,
    pub(crate) piece: u64,
    pub(crate) piece_end: u64,
    pub(crate) board: Scoreboard,
    pub(crate) window: Window,
    pub(crate) cc: Controller,
    pub(crate) rtt: RttEstimator,
    pub(crate) rack: Rack,
    pub(crate) timer: Timer,
    /// The timer is still to be armed, from then; [`Time::MAX`]: it is as it should be.
    pub(crate) arm_from: Time,
    pub(crate) ticks: Ticks,
    pub(crate) phase: Phase,
    /// What was in flight when this phase began ends here.
    pub(crate) phase_end: u64,
    /// Timeouts since an ACK last advanced.
    pub(crate) retries: u32,
    /// Times the timeout was backed off.
    pub(crate) backoff: u32,
    // Reduction and undo.
    pub(crate) prior_cwnd: u32,
    pub(crate) prior_ssthresh: Option<u32>,
    pub(crate) prr_delivered: u32,
    pub(crate) prr_out: u32,
    pub(crate) undo_from: Option<u64>,
    /// Retransmissions since then that are not known to have been needless; `None` when that cannot be told.
    pub(crate) undo_retransmits: Option<u32>,
    pub(crate) first_retransmit_ts: u32,
    // Tail loss probe.
    pub(crate) probe_end: Option<u64>,
    pub(crate) probe_was_copy: bool,
    /// F-RTO: a timeout is under suspicion of being spurious.
    pub(crate) frto: bool,
    /// F-RTO's step 2: send new data before any retransmission.
    pub(crate) new_data_first: bool,
    /// A probe is due.
    pub(crate) probe_due: bool,
    // Is the window what limits us?
    pub(crate) limited: bool,
    pub(crate) usage_end: u64,
    pub(crate) usage_max: u32,
    /// ECN negotiated.
    pub(crate) ecn: bool,
    /// CWR is due on the next new data.
    pub(crate) cwr_due: bool,
    pub(crate) last_sent: Time,
    pub(crate) pacer: Pacer,
    pub(crate) stats: Stats,
}

impl Sender {
    pub(crate) fn new(config: &TcpConfig, cc: Controller, isn: u32) -> Self {
        Sender {
            map: SeqMap::new(isn),
            una: 0,
            next: 0,
            written: 1,
            window_end: 0,
            buffer: config.send_room(),
            peer_window: 0,
            window_scale: config.window_scale(),
            burst_start: 0,
            burst_end: 0,
            piece: 0,
            piece_end: 0,
            board: Scoreboard::default(),
            window: Window::new(config.initial_window),
            cc,
            rtt: RttEstimator::new(config.rto_initial),
            rack: Rack::default(),
            timer: Timer::IDLE,
            arm_from: Time::MAX,
            ticks: Ticks::new(config.tick),
            phase: Phase::Open,
            phase_end: 0,
            retries: 0,
            backoff: 0,
            prior_cwnd: 0,
            prior_ssthresh: None,
            prr_delivered: 0,
            prr_out: 0,
            undo_from: None,
            undo_retransmits: None,
            first_retransmit_ts: 0,
            probe_end: None,
            probe_was_copy: false,
            frto: false,
            new_data_first: false,
            probe_due: false,
            limited: false,
            usage_end: 0,
            usage_max: 0,
            ecn: false,
            cwr_due: false,
            last_sent: Time::ZERO,
            pacer: Pacer::default(),
            stats: Stats::default(),
        }
    }

    /// The application hands over bytes.
    pub(crate) fn write(&mut self, bytes: u64, now: Time, config: &TcpConfig) {
        // RFC 5681, section 4.1: after an idle time longer than the timeout the window starts again.
        if self.board.is_empty() && self.next > 1 && now.saturating_since(self.last_sent) > self.rtt.rto() {
            self.window.cwnd = self.window.cwnd.min(config.initial_window);
        }
        self.written = self.written.saturating_add(bytes);
    }

    /// Nothing more is written than what was sent; tells how many bytes that are.
    pub(crate) fn end_write(&mut self) -> u64 {
        self.written = self.next.max(1);
        self.written - 1
    }

    /// The window of a SYN.
    pub(crate) fn on_first_window(&mut self, window: u16) {
        self.peer_window = u64::from(window);
        self.window_end = 1 + self.peer_window;
    }

    /// How ECN-Echo is to be understood.
    pub(crate) fn marks_mean_congestion(&self) -> bool {
        self.ecn && self.cc.ecn() != EcnUse::OwnMeaning
    }

    /// Whether [`Sender::poll`] may yield a segment or change anything: not where all is sent and acknowledged, nor where the
    /// window is full and known to be what limits us.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        let done = self.next == self.written && self.board.is_empty();
        let full = self.limited && self.board.in_flight() >= self.window.cwnd;
        !(done || full) || self.probe_due || self.pacer.wake < Time::MAX
    }

    /// The next segment that may be sent, if any.
    pub(crate) fn poll(&mut self, now: Time, config: &TcpConfig) -> Option<Outgoing> {
        self.pacer.wake = Time::MAX;
        if self.pacer.next > now {
            self.hold_back();
            return None;
        }
        if std::mem::take(&mut self.probe_due) && !self.board.is_empty() {
            return self.send_probe(now, config);
        }
        let in_flight = self.board.in_flight();
        if in_flight >= self.window.cwnd {
            self.limited |= self.has_new_data() || self.board.lost() > self.board.retransmitted();
            return None;
        }
        let room = self.window.cwnd - in_flight;
        if self.new_data_first {
            if let Some(sent) = self.send_new(room, now, config) {
                return Some(sent);
            }
            self.new_data_first = false;
            if self.next > self.phase_end {
                return None;
            }
            self.frto = false;
        }
        if self.phase >= Phase::Recovery
            && !(self.frto && self.next > self.phase_end)
            && let Some(i) = self.board.next_lost()
        {
            return Some(self.retransmit(i, now, config));
        }
        self.send_new(room, now, config)
    }

    pub(crate) fn has_new_data(&self) -> bool {
        self.next < self.written && self.next < self.send_end()
    }

    /// Up to where new data may go out: the peer's window ends, or the stack has no more.
    pub(crate) fn send_end(&self) -> u64 {
        self.window_end.min(self.una.saturating_add(self.buffer)).max(self.next)
    }

    /// New data, where the window has room for so many packets.
    #[inline]
    fn send_new(&mut self, room: u32, now: Time, config: &TcpConfig) -> Option<Outgoing> {
        if self.has_new_data() { self.cut(room, now, config) } else { None }
    }

    /// Cuts a segment off the new data, if a burst goes on or one may begin.
    fn cut(&mut self, room: u32, now: Time, config: &TcpConfig) -> Option<Outgoing> {
        if self.next >= self.burst_end && !self.plan_burst(room, now, config) {
            return None;
        }
        let len = u64::from(config.mss()).min(self.burst_end - self.next);
        let start = self.next;
        self.board.push(Segment { start, sent: now, len: len as u32, marks: Mark::default() });
        self.next += len;
        if self.in_reduction() {
            self.prr_out += 1;
        }
        self.after_send(len as u32, now);
        if matches!(self.timer.purpose, Purpose::Idle | Purpose::Probe) {
            self.arm_from = now;
        }
        // As Linux does it: a burst ends with a push, a lone packet does not.
        let burst_ends = self.next == self.burst_end && start > self.burst_start;
        let push = burst_ends || self.next == self.written || self.goes_alone();
        Some(Outgoing { start, len: len as u32, retransmission: false, push })
    }

    fn retransmit(&mut self, i: usize, now: Time, config: &TcpConfig) -> Outgoing {
        self.board.mark_retransmitted(i, now);
        if self.first_retransmit_ts == 0 {
            self.first_retransmit_ts = timestamp(now);
        }
        self.undo_retransmits = Some(self.undo_retransmits.unwrap_or(0) + 1);
        if self.in_reduction() {
            self.prr_out += 1;
        }
        self.stats.retransmits += 1;
        self.after_send(self.board.get(i).len, now);
        if i == 0 && self.timer.purpose != Purpose::Reorder {
            self.arm_retransmit(now, config);
        }
        let segment = self.board.get(i);
        let push = segment.end() == self.written || self.goes_alone();
        Outgoing { start: segment.start, len: segment.len, retransmission: true, push }
    }

    /// RFC 8985, section 7.3: a probe is new data if there are any, else the last segment again. Of nothing in flight there is none:
    /// what it was due for may have been acknowledged while it had to wait.
    fn send_probe(&mut self, now: Time, config: &TcpConfig) -> Option<Outgoing> {
        if self.probe_end.is_some() {
            self.arm_retransmit(now, config);
            return None;
        }
        self.stats.probes += 1;
        let new = self.send_new(1, now, config);
        self.probe_was_copy = new.is_none();
        let sent = new.unwrap_or_else(|| self.retransmit(self.board.len() as usize - 1, now, config));
        self.probe_end = Some(self.next);
        self.arm_retransmit(now, config);
        Some(sent)
    }

    #[inline]
    fn after_send(&mut self, len: u32, now: Time) {
        self.last_sent = now;
        self.pace(len, now);
        self.stats.packets_sent += 1;
        let in_flight = self.board.in_flight();
        // As Linux validates its window: once limited by it, limited for this window of data.
        let full = in_flight >= self.window.cwnd;
        if self.una >= self.usage_end || in_flight > self.usage_max || full {
            if self.una >= self.usage_end {
                self.limited = false;
            }
            self.usage_end = self.next;
            self.usage_max = in_flight;
        }
        self.limited |= full;
    }

    /// Whether the window limits the sending rate, so that it may grow.
    pub(crate) fn is_limited(&self) -> bool {
        self.limited || (self.window.in_slow_start() && self.window.cwnd < 2 * self.usage_max)
    }

    pub(crate) fn in_reduction(&self) -> bool {
        matches!(self.phase, Phase::Reduced | Phase::Recovery)
    }

    /// Arms the timer if data were sent or acknowledged: once for all that happened at that moment.
    #[inline]
    pub(crate) fn settle_timer(&mut self, config: &TcpConfig) {
        if self.arm_from < Time::MAX {
            self.arm(self.arm_from, config);
        }
    }

    /// Arms the timer after data was sent or acknowledged: a probe where one helps, else the retransmission timeout.
    fn arm(&mut self, now: Time, config: &TcpConfig) {
        self.arm_from = Time::MAX;
        if self.board.is_empty() {
            self.timer = Timer::IDLE;
            return;
        }
        let probe = config.tail_loss_probe && self.phase != Phase::Disorder && self.phase < Phase::Recovery;
        if !probe || self.probe_end.is_some() {
            return self.arm_retransmit(now, config);
        }
        let timeout = match self.rtt.smoothed() {
            // RFC 8985, section 7.2: a lone packet's ACK may be delayed.
            Some(srtt) if self.board.len() == 1 => srtt * 2 + config.rto_min,
            Some(srtt) => srtt * 2 + config.timer_slack(),
            None => config.rto_initial,
        };
        let timeout = timeout.min(self.timeout(config));
        self.timer = Timer { purpose: Purpose::Probe, at: self.ticks.after(now, timeout) };
    }

    /// Arms the retransmission timeout, counted from `now`.
    pub(crate) fn arm_retransmit(&mut self, now: Time, config: &TcpConfig) {
        self.arm_from = Time::MAX;
        let timeout = self.timeout(config);
        self.timer = if self.board.is_empty() {
            Timer::IDLE
        } else {
            Timer { purpose: Purpose::Retransmit, at: self.ticks.after(now, timeout) }
        };
    }

    /// The timeout with its back-off (RFC 6298, section 5.5).
    pub(crate) fn timeout(&self, config: &TcpConfig) -> Span {
        self.rtt.rto().saturating_mul(1 << self.backoff.min(16)).min(config.rto_max)
    }
}
