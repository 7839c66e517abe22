//! The sending half: what is in flight, what may be sent next, and the timer.

use super::delivery::DeliveryRate;
use super::info::{Limited, Limits};
use super::pacing::Pacer;
use super::queue::{Attempt, SendQueue};
use super::rtt::{self, RttEstimator};
use super::scoreboard::{Mark, Scoreboard, Segment};
use super::seq::SeqMap;
use super::small_queue::SmallQueue;
use super::terms::Terms;
use super::timer::{Purpose, Ticks, Timer, timestamp};
use super::{Stats, rack::Rack};
use crate::cc::{CongestionControl, Controller, EcnUse, Window};
use firstlight_net::TcpFlags;
use firstlight_units::{Span, Time};

/// The sender's congestion state, in Linux's well-known terms.
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
    /// PSH, where the receiver is to hand over what it has, and FIN.
    pub(crate) flags: TcpFlags,
}

impl Outgoing {
    /// `units` of the stream from `start`; the last of these is the FIN if there is one.
    fn new(start: u64, units: u32, retransmission: bool, marks: Mark, push: bool) -> Self {
        let fin = marks.has(Mark::FIN);
        let len = units - u32::from(fin);
        let mut flags = TcpFlags::default();
        if (push || marks.has(Mark::PUSH)) && len > 0 {
            flags.insert(TcpFlags::PSH);
        }
        if fin {
            flags.insert(TcpFlags::FIN);
        }
        Outgoing { start, len, retransmission, flags }
    }
}

/// The sending half of a connection. `recovery.rs` reacts to ACKs, `rack.rs` finds losses, `prr.rs` moves the window.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) map: SeqMap,
    /// Everything before is acknowledged.
    pub(crate) una: u64,
    /// The next stream offset to send.
    pub(crate) next: u64,
    /// Stream offset after what the program has written, and after the FIN if it has closed.
    pub(crate) written: u64,
    /// The last unit of the stream is a FIN.
    pub(crate) fin: bool,
    /// The program has closed: a FIN follows when everything is handed over.
    pub(crate) closes: bool,
    pub(crate) queue: SendQueue,
    /// Where the peer's receive window ends.
    pub(crate) window_end: u64,
    /// The window field of the last ACK.
    pub(crate) last_window: u16,
    /// The largest window that the peer has offered.
    pub(crate) peer_window: u64,
    /// The window that the rate of bursts comes from, and the percentage of it that is sent in a round trip.
    pub(crate) rate: (u32, u8),
    /// By how many bits the peer shifts its window field.
    pub(crate) window_scale: u8,
    /// Stream offset at which the present burst begins.
    pub(crate) burst_start: u64,
    /// Stream offset at which the present burst ends.
    pub(crate) burst_end: u64,
    /// The present burst ends with PSH.
    pub(crate) burst_pushes: bool,
    /// End of the last segment that was retransmitted since an ACK arrived.
    pub(crate) copied_upto: u64,
    /// Small segments go out at once (`TCP_NODELAY`).
    pub(crate) nodelay: bool,
    /// Small segments wait while the program is still handing over.
    pub(crate) flushes: bool,
    /// Parts of segments wait until they are whole (`TCP_CORK`).
    pub(crate) corked: bool,
    /// End of the last small segment that was sent.
    pub(crate) small_end: u64,
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
    /// End of the data that were in flight when the present phase began.
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
    /// Retransmissions since `undo_from` that are not known to have been needless; `None` when this is unknown.
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
    /// When the window was last full or reduced, or an ACK could last raise it.
    pub(crate) filled_at: Time,
    /// The most packets in flight since the window was last full or reduced.
    pub(crate) used: u32,
    /// The data that were sent last have not filled the window: see [`Sender::decay_unused`].
    pub(crate) usage_due: bool,
    /// At the last ACK the controller has set the window itself, and answers for it.
    pub(crate) window_is_set: bool,
    /// ECN negotiated.
    pub(crate) ecn: bool,
    /// CWR is due on the next new data.
    pub(crate) cwr_due: bool,
    pub(crate) last_sent: Time,
    pub(crate) pacer: Pacer,
    pub(crate) small_queue: SmallQueue,
    /// How long data may stay unacknowledged; `None`: for ever.
    pub(crate) user_timeout: Option<Span>,
    /// Probes of a closed window that went out since an ACK arrived.
    pub(crate) window_probes: u32,
    /// When the timer first expired since an ACK last advanced.
    pub(crate) silent_since: Option<Time>,
    pub(crate) limits: Limits,
    /// The estimator of delivery rates, if the controller uses them.
    pub(crate) delivery_rate: Option<Box<DeliveryRate>>,
    pub(crate) stats: Stats,
}

impl Sender {
    pub(crate) fn new(terms: &Terms, cc: Controller, isn: u32) -> Self {
        Sender {
            map: SeqMap::new(isn),
            una: 0,
            next: 0,
            written: 1,
            fin: false,
            closes: false,
            queue: SendQueue::new(terms),
            delivery_rate: cc.wants_delivery().then(Box::default),
            window_end: 0,
            last_window: 0,
            peer_window: 0,
            rate: (terms.initial_window.min(terms.window_cap()), 200),
            window_scale: terms.scale(),
            burst_start: 0,
            burst_end: 0,
            burst_pushes: false,
            copied_upto: 0,
            nodelay: !terms.nagle,
            flushes: false,
            corked: false,
            small_end: 0,
            board: Scoreboard::default(),
            window: Window { floor: terms.min_window, ..Window::new(terms.initial_window.min(terms.window_cap())) },
            cc,
            rtt: RttEstimator::new(terms.rto_initial),
            rack: Rack::default(),
            timer: Timer::IDLE,
            arm_from: Time::MAX,
            ticks: Ticks::new(terms.tick),
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
            filled_at: Time::ZERO,
            used: 0,
            usage_due: false,
            window_is_set: false,
            ecn: false,
            cwr_due: false,
            last_sent: Time::ZERO,
            pacer: Pacer::default(),
            small_queue: SmallQueue::new(),
            user_timeout: None,
            window_probes: 0,
            silent_since: None,
            limits: Limits::new(),
            stats: Stats::default(),
        }
    }

    /// RFC 5681, section 4.1, and RFC 2861, section 3: after an idle time the window is halved for each timeout that
    /// has passed, down to the initial window. Both times are in whole ticks. As measured of Linux, a window stays that
    /// the controller sets itself, as BBR does.
    #[inline(never)]
    pub(crate) fn restart_after_idle(&mut self, now: Time, terms: &Terms) {
        let applies = terms.stack.restart_after_idle && !self.window_is_set;
        if !applies || !self.board.is_empty() || self.next <= 1 {
            return;
        }
        let timeout = self.ticks.whole(self.rtt.rto());
        let mut idle = self.ticks.between(self.last_sent, now);
        if idle <= timeout {
            return;
        }
        self.window.ssthresh = self.current_ssthresh();
        let least = self.window.cwnd.min(terms.initial_window);
        while idle > timeout && self.window.cwnd > least {
            self.window.cwnd /= 2;
            idle = idle.saturating_sub(timeout);
        }
        self.window.cwnd = self.window.cwnd.max(least);
        self.filled(now);
    }

    /// Bytes that the peer has acknowledged.
    pub(crate) fn bytes_acked(&self) -> u64 {
        self.una.saturating_sub(1) - u64::from(self.is_fin_acked())
    }

    /// Whether the peer has acknowledged the FIN.
    pub(crate) fn is_fin_acked(&self) -> bool {
        self.fin && self.una == self.written
    }

    /// Nothing is sent any more.
    pub(crate) fn abandon(&mut self) {
        self.board = Scoreboard::default();
        self.queue.abandon(self.next);
        self.written = self.next;
        self.timer = Timer::IDLE;
        self.arm_from = Time::MAX;
        self.probe_due = false;
        self.pacer = Pacer::default();
        self.small_queue = SmallQueue::new();
    }

    /// Whether the peer has not acknowledged anything for longer than the program wants to wait.
    pub(crate) fn has_given_up(&mut self, now: Time) -> bool {
        let since = *self.silent_since.get_or_insert(now);
        self.user_timeout.is_some_and(|timeout| now.saturating_since(since) >= timeout)
    }

    /// The window of a SYN.
    pub(crate) fn on_first_window(&mut self, window: u16) {
        self.peer_window = u64::from(window);
        self.window_end = 1 + self.peer_window;
        self.note_rate();
    }

    /// How ECN-Echo is to be understood.
    pub(crate) fn marks_mean_congestion(&self) -> bool {
        self.ecn && self.cc.ecn() != EcnUse::OwnMeaning
    }

    /// Whether [`Sender::poll`] may yield a segment or change anything: not where all is sent and acknowledged, nor
    /// where the window is full and known to be what limits us.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        let done = self.next == self.written && self.board.is_empty();
        let full = self.limited && self.usage_end == self.next && self.board.in_flight() >= self.window.cwnd;
        !(done || full) || self.probe_due || self.waits_to_send() || self.queue.may_write()
    }

    /// Whether data wait for the pacer or for the interface.
    #[inline]
    fn waits_to_send(&self) -> bool {
        self.pacer.wake < Time::MAX || self.small_queue.waits
    }

    /// When data that wait for the pacer or for the interface may go out; [`Time::MAX`] where none do, or where that is
    /// not known.
    #[inline]
    pub(crate) fn wakes_at(&self) -> Time {
        self.pacer.wake.min(self.small_queue.wake)
    }

    /// The next segment that may be sent, if any. Where there is none the program may go on handing over data.
    pub(crate) fn poll(&mut self, now: Time, terms: &Terms) -> Option<Outgoing> {
        loop {
            let next = self.next_segment(now, terms);
            if next.is_some() || !(self.queue.writes() || self.gets_room(now, terms)) || !self.fill(now, terms) {
                return next;
            }
        }
    }

    /// Whether the program can go on because an ACK has freed memory or the buffer has become larger.
    fn gets_room(&mut self, now: Time, terms: &Terms) -> bool {
        if !self.queue.waits() {
            return false;
        }
        if self.queue.has_news() {
            self.look_for_room(terms);
        }
        let has_window = self.board.in_flight() < self.window.cwnd;
        if has_window && !self.queue.writes() && self.next >= self.written {
            self.limits.set(Limited::ByBuffer, now);
        }
        self.queue.writes()
    }

    /// Makes the buffer larger where the window has room, and wakes a writer that waits if there is room for it now. As
    /// in Linux that is done after each burst that an ACK releases, and at the end.
    fn look_for_room(&mut self, terms: &Terms) {
        if self.board.in_flight() < self.window.cwnd {
            self.enlarge_buffer(terms);
        }
        self.try_to_wake(terms);
    }

    fn next_segment(&mut self, now: Time, terms: &Terms) -> Option<Outgoing> {
        self.pacer.wake = Time::MAX;
        // As in Linux, when a packet has left the interface copies go first, also while F-RTO waits for an ACK.
        let woken = self.small_queue.waits && self.small_queue.wake <= now;
        if woken {
            self.new_data_first = false;
            if self.queue.attempt == Attempt::None {
                // A packet has left the interface: whatever the program has asked for, it does not hold any more.
                self.queue.attempt = Attempt::Usual;
            }
        }
        if self.small_queue.waits && self.queue.attempt != Attempt::None {
            self.small_queue.end_wait();
        }
        if self.is_held_back(now) {
            self.hold_back();
            return None;
        }
        if std::mem::take(&mut self.probe_due) {
            return self.send_probe(now, terms);
        }
        let in_flight = self.board.in_flight();
        if in_flight >= self.window.cwnd {
            if self.next < self.written {
                self.validate_window(true);
            }
            return None;
        }
        let room = self.window.cwnd - in_flight;
        if self.new_data_first {
            if let Some(sent) = self.send_new(room, now, terms) {
                return Some(sent);
            }
            self.new_data_first = false;
            if self.next > self.phase_end {
                return None;
            }
            self.frto = false;
        }
        if self.phase >= Phase::Recovery
            && (woken || !(self.frto && self.next > self.phase_end))
            && let Some(i) = self.board.next_lost()
            && !self.copy_waits_for_interface(i, now, terms)
        {
            return Some(self.retransmit(i, now, terms));
        }
        let sent = self.send_new(room, now, terms);
        if sent.is_none() && self.next == self.written {
            self.record_idle();
        }
        sent
    }

    pub(crate) fn has_new_data(&self) -> bool {
        self.next < self.written && self.next < self.send_end()
    }

    /// Up to where the peer's window lets new data go out.
    pub(crate) fn send_end(&self) -> u64 {
        self.window_end.max(self.next)
    }

    /// New data, where the window has room for so many packets.
    #[inline]
    pub(crate) fn send_new(&mut self, room: u32, now: Time, terms: &Terms) -> Option<Outgoing> {
        if self.next < self.written { self.cut(room, now, terms) } else { None }
    }

    /// Cuts a segment off the new data, if a burst goes on or one may begin.
    fn cut(&mut self, room: u32, now: Time, terms: &Terms) -> Option<Outgoing> {
        if self.next >= self.burst_end && !self.plan_burst(room, now, terms) {
            return None;
        }
        let start = self.next;
        let mut len = u64::from(terms.mss).min(self.burst_end - start);
        let mut marks = Mark::default();
        if start + len == self.burst_end {
            marks = self.end_burst(start, len, terms);
            len += u64::from(marks.has(Mark::FIN) && self.queue.end > start);
        }
        self.board.push(Segment { start, sent: now, len: len as u32, marks });
        self.record_sent(self.board.len() as usize - 1, now, terms);
        self.next += len;
        if self.in_reduction() {
            self.prr_out += 1;
        }
        self.after_send(len as u32, start, now, terms);
        self.validate_window(self.board.in_flight() >= self.window.cwnd);
        if self.is_limited() {
            self.filled(now);
        } else {
            self.usage_due = true;
        }
        let arms = match self.timer.purpose {
            Purpose::Idle | Purpose::Probe | Purpose::WindowProbe => true,
            Purpose::Reorder => self.probes_tail(terms),
            Purpose::Retransmit | Purpose::Linger => false,
        };
        if arms {
            self.arm_from = now;
        }
        // As in Linux a burst ends with a push; a lone packet does not, unless the program has pushed what is in it.
        self.pacer.goes_on = self.next < self.burst_end;
        let ends = !self.pacer.goes_on && start > self.burst_start;
        if self.next >= self.burst_end && self.queue.looks_for_room() {
            self.look_for_room(terms);
        }
        Some(Outgoing::new(start, len as u32, false, marks, ends || self.goes_alone()))
    }

    /// Marks of the last segment of a burst, which it keeps when it is SACKed, lost or retransmitted.
    fn end_burst(&mut self, start: u64, len: u64, terms: &Terms) -> Mark {
        if start >= self.queue.end {
            return Mark::FIN;
        }
        let mut marks = if self.burst_pushes { Mark::BURST_END.and(Mark::PUSH) } else { Mark::BURST_END };
        if self.fin && self.burst_end >= self.queue.end {
            marks = marks.and(Mark::FIN);
        }
        if len < u64::from(terms.mss) {
            self.small_end = start + len;
        }
        marks
    }

    pub(crate) fn retransmit(&mut self, i: usize, now: Time, terms: &Terms) -> Outgoing {
        self.board.mark_retransmitted(i, now);
        self.record_sent(i, now, terms);
        if self.first_retransmit_ts == 0 {
            self.first_retransmit_ts = timestamp(now);
        }
        self.undo_retransmits = Some(self.undo_retransmits.unwrap_or(0) + 1);
        if self.in_reduction() {
            self.prr_out += 1;
        }
        self.stats.retransmits += 1;
        self.after_send(self.board.get(i).len, self.next, now, terms);
        if i == 0 && self.timer.purpose != Purpose::Reorder {
            self.arm_retransmit(now, terms);
        }
        let push = self.copied_burst_ends(i, terms) || self.goes_alone();
        let segment = self.board.get(i);
        self.copied_upto = segment.end();
        self.pacer.goes_on = !segment.marks.has(Mark::BURST_END);
        Outgoing::new(segment.start, segment.len, true, segment.marks, push)
    }

    /// Whether segment `i`, which is sent again, is the last of several of its burst that are sent again together:
    /// these are a burst of their own from now on, which ends with a push and is no larger than one of new data.
    fn copied_burst_ends(&mut self, i: usize, terms: &Terms) -> bool {
        let begins = i == 0 || self.copied_upto != self.board.get(i).start;
        if begins {
            self.divide_burst(i);
        }
        let begins = begins || self.board.get(i - 1).marks.has(Mark::BURST_END);
        let copied = (i + 1 - self.board.burst(i).0) as u64;
        let full = copied * u64::from(terms.mss) >= self.burst_size(terms);
        if !full && self.board.in_flight() < self.window.cwnd && self.board.next_lost() == Some(i + 1) {
            return !begins && self.board.get(i).marks.has(Mark::BURST_END);
        }
        self.divide_burst(i + 1);
        !begins
    }

    /// A burst ends before segment `i`, if that is one that waits for an acknowledgement.
    pub(crate) fn divide_burst(&mut self, i: usize) {
        if 0 < i && i < self.board.len() as usize && self.board.end_burst(i - 1) {
            self.queue.divide();
        }
    }

    /// `len` bytes were sent, or sent again; new data started at `next` before.
    #[inline(always)]
    fn after_send(&mut self, len: u32, next: u64, now: Time, terms: &Terms) {
        if self.board.in_flight() == 1 {
            self.cc.on_resume(now, self.last_sent, next);
        }
        self.last_sent = now;
        self.pace(len, now, terms);
        self.stats.packets_sent += 1;
    }

    /// Validates the congestion window as Linux does (RFC 7661 describes the problem): a window that was `full` once
    /// limits the data of this round trip.
    #[inline]
    pub(crate) fn validate_window(&mut self, full: bool) {
        let out = self.board.len();
        if self.una >= self.usage_end || full || (!self.limited && out > self.usage_max) {
            self.limited = full;
            self.usage_end = self.next;
            if !full {
                self.usage_max = out;
            }
        }
    }

    /// The window is full, or was reduced.
    pub(crate) fn filled(&mut self, now: Time) {
        (self.filled_at, self.used, self.usage_due) = (now, 0, false);
    }

    /// RFC 2861, section 3: a window that the program has not filled for a timeout becomes the mean of itself and of
    /// what was used of it. As measured of Linux at least the initial window counts as used, the time is in whole
    /// ticks, and a window stays that the controller sets itself.
    #[cold]
    fn decay_unused(&mut self, terms: &Terms) {
        self.usage_due = false;
        self.used = self.used.max(self.board.len());
        let unfilled = self.ticks.between(self.filled_at, self.last_sent);
        if !terms.stack.restart_after_idle || self.window_is_set || unfilled < self.ticks.whole(self.rtt.rto()) {
            return;
        }
        let used = self.used.max(terms.initial_window);
        if self.phase == Phase::Open && used < self.window.cwnd {
            self.window.ssthresh = self.current_ssthresh();
            self.window.cwnd = u32::midpoint(self.window.cwnd, used);
        }
        self.filled(self.last_sent);
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
    pub(crate) fn settle_timer(&mut self, terms: &Terms) {
        if self.usage_due {
            self.decay_unused(terms);
        }
        if self.arm_from < Time::MAX {
            self.arm(self.arm_from, terms);
        }
    }

    /// Whether a probe may be due before the retransmission timeout is.
    fn probes_tail(&self, terms: &Terms) -> bool {
        terms.tail_loss_probe && terms.sack && self.phase != Phase::Disorder && self.phase < Phase::Recovery
    }

    /// Arms the timer after data was sent or acknowledged: a probe where one helps, else the retransmission timeout.
    fn arm(&mut self, now: Time, terms: &Terms) {
        self.arm_from = Time::MAX;
        if self.board.is_empty() {
            return self.arm_window_probe(now, terms);
        }
        if !self.probes_tail(terms) {
            return self.resume_timeout(now, terms);
        }
        let in_whole_us = |span: Span| Span::from_us(span.as_ps() / Span::from_us(1).as_ps());
        let timeout = match self.rtt.smoothed() {
            // RFC 8985, section 7.2: a lone packet's ACK may be delayed.
            Some(srtt) if self.board.len() == 1 => in_whole_us(srtt * 2) + terms.rto_min,
            Some(srtt) => in_whole_us(srtt * 2) + terms.timer_slack(),
            None => terms.rto_initial,
        };
        let timeout = timeout.min(self.timeout(terms));
        self.timer = Timer { purpose: Purpose::Probe, at: self.ticks.after(now, timeout) };
    }

    /// Arms the retransmission timeout, counted from `now`, or, if the timer was to expire sooner for a probe or for
    /// RACK, from when the oldest segment was sent.
    pub(crate) fn resume_timeout(&mut self, now: Time, terms: &Terms) {
        let sooner = matches!(self.timer.purpose, Purpose::Probe | Purpose::Reorder);
        match self.board.front() {
            Some(oldest) if sooner => {
                let timeout = self.ticks.whole(self.timeout(terms));
                let left = timeout.saturating_sub(rtt::since(oldest.sent, now)).max(Span::from_us(1));
                self.arm_timeout(now, left);
            }
            _ => self.arm_retransmit(now, terms),
        }
    }

    /// Arms the retransmission timeout, counted from `now`.
    pub(crate) fn arm_retransmit(&mut self, now: Time, terms: &Terms) {
        self.arm_timeout(now, self.timeout(terms));
    }

    fn arm_timeout(&mut self, now: Time, timeout: Span) {
        self.arm_from = Time::MAX;
        self.timer = if self.board.is_empty() {
            Timer::IDLE
        } else {
            Timer { purpose: Purpose::Retransmit, at: self.ticks.after(now, timeout) }
        };
    }

    /// The timeout with its back-off (RFC 6298, section 5.5), which doubles whole ticks.
    pub(crate) fn timeout(&self, terms: &Terms) -> Span {
        let rto = self.rtt.rto();
        if self.backoff == 0 {
            return rto.min(terms.rto_max);
        }
        self.ticks.whole(rto).saturating_mul(1 << self.backoff.min(16)).min(terms.rto_max)
    }
}
