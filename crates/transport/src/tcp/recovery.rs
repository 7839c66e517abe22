//! What an ACK or a timer does to the sender: acknowledgement, loss recovery and its undoing.
//!
//! Recovery is entered when RACK finds a loss (RFC 8985) and repairs under proportional rate reduction; a timeout falls
//! back to slow start under the suspicion of F-RTO (RFC 5682); both are undone when duplicates (RFC 2883) or timestamps
//! (Eifel, RFC 3522) show that they were needless. The phases and their transitions are those that Linux is known for.

use super::info::Limited;
use super::latency;
use super::queue::Attempt;
use super::rtt;
use super::scoreboard::{Mark, Scoreboard};
use super::sender::{Phase, Sender};
use super::terms::Terms;
use super::timer::{Purpose, is_before, timestamp};
use crate::cc::{Ack, CongestionControl};
use firstlight_net::{TcpFlags, TcpSegment};
use firstlight_units::{Span, Time};

/// What one ACK reports.
#[derive(Default)]
struct News {
    /// The ACK acknowledged new data cumulatively.
    advanced: bool,
    /// Packets newly known to be delivered.
    delivered: u32,
    /// Packets acknowledged cumulatively.
    packets: u32,
    /// Packets found lost.
    lost: u32,
    /// SACK reported some of the delivered packets.
    sacked: bool,
    /// A DSACK reported a duplicate.
    duplicate: bool,
    /// The ACK is a duplicate acknowledgement of a peer without SACK.
    repeated: bool,
    /// A packet that was sent once and before this phase was delivered.
    original: bool,
    /// The ACK acknowledged a packet that had been retransmitted.
    retransmitted: bool,
    /// When the newly acknowledged packets were sent; only packets that were sent once and not SACKed before.
    acked_sent: Extent,
    /// When the newly SACKed packets were sent; only packets that were sent once.
    sacked_sent: Extent,
    /// The ACK echoes congestion.
    marked: bool,
    /// The timer is to be armed anew.
    arm: bool,
}

/// When the oldest and the newest of some packets were sent.
#[derive(Clone, Copy)]
struct Extent {
    oldest: Time,
    newest: Time,
}

impl Default for Extent {
    /// The extent of no packets.
    fn default() -> Self {
        Extent { oldest: Time::MAX, newest: Time::ZERO }
    }
}

impl Extent {
    fn add(&mut self, sent: Time) {
        self.oldest = self.oldest.min(sent);
        self.newest = self.newest.max(sent);
    }

    fn is_empty(self) -> bool {
        self.oldest > self.newest
    }
}

/// Whether a timestamp is echoed, and older than another.
fn is_older(tsecr: u32, other: u32) -> bool {
    tsecr != 0 && is_before(tsecr, other)
}

impl Sender {
    /// Whether a packet with data changes nothing for the sender: nothing is in flight, and the packet acknowledges and
    /// offers no more and no less than the packets before it.
    #[inline]
    pub(crate) fn is_unchanged_by(&self, p: TcpSegment<'_>) -> bool {
        let offered = u64::from(p.window()) << self.window_scale;
        p.is_data()
            && p.sacks() == 0
            && self.board.is_empty()
            && p.ack() == self.map.wire(self.una)
            && self.una + offered == self.window_end
            && offered <= self.peer_window
            && self.timer.purpose != Purpose::WindowProbe
            && self.arm_from == Time::MAX
    }

    /// An ACK arrived. False when it acknowledges what was never sent (RFC 5961,
    /// section 5.2): then nothing has changed.
    pub(crate) fn on_ack(&mut self, p: TcpSegment<'_>, now: Time, terms: &Terms) -> bool {
        self.settle_timer(terms);
        let ack = self.map.offset(p.ack(), self.una);
        if ack > self.next || ack + self.peer_window.min(self.una) < self.una {
            return false;
        }
        let edge = self.window_end;
        if ack >= self.una {
            self.on_window(ack, u64::from(p.window()) << self.window_scale);
        }
        let moved = self.window_end != edge;
        if moved && self.next < self.written {
            self.restart_after_idle(now, terms);
        }
        if self.timer.purpose == Purpose::WindowProbe {
            self.on_probe_reply(now);
        }
        if ack == self.una && p.is_data() && p.sacks() == 0 && self.board.is_empty() {
            // The peer's data acknowledge nothing new where nothing is in flight: they have reported the window alone.
            return true;
        }
        let prior_una = self.una;
        let prior_flight = self.board.in_flight();
        let ece = p.flags().has(TcpFlags::ECE);
        let mut news = News { marked: ece && self.marks_mean_congestion(), ..News::default() };
        self.rack_begin_ack();
        if p.sacks() > 0 && terms.sack {
            self.on_sack(p, ack, terms.mss, now, &mut news);
        }
        if ack > self.una {
            self.on_cumulative(ack, p.tsecr(), now, &mut news);
            if !terms.sack {
                news.delivered = self.forget_duplicates(news.delivered);
            }
        } else if !terms.sack && ack == self.una && !p.is_data() && !moved && !self.board.is_empty() {
            news.delivered += self.on_duplicate_ack();
            news.repeated = true;
        }
        self.rack_end_ack(terms.mss);
        if ack < prior_una {
            // Late. Linux 7.2 takes in what it has by SACK and repairs what that shows to be lost, but counts nothing
            // of it: the window stays, and the controller does not see it.
            if p.sacks() > 0 {
                self.react(&mut news, prior_una, p.tsecr(), now, terms);
            }
            if let Some(rate) = &mut self.delivery_rate {
                rate.forget(news.delivered);
            }
            self.queue.attempt = Attempt::Usual;
            self.wake_writer();
            return true;
        }
        let rtt = self.sample_rtt(&news, p.tsecr(), now, terms);
        let latency = if p.has_stamps() { latency::measured(&p) } else { None };
        let mut report = Ack {
            now,
            delivered: news.delivered,
            advanced: news.packets,
            rtt,
            srtt: self.rtt.smoothed(),
            latency,
            ece,
            reducing: self.in_reduction(),
            open: self.phase == Phase::Open,
            predicted: news.advanced && p.sacks() == 0 && p.window() == self.last_window,
            una: self.una,
            next: self.next,
            mss: terms.mss,
            timestamps: [p.tsval(), p.tsecr()],
        };
        self.last_window = p.window();
        self.cc.on_ack(&mut self.window, &report);
        news.marked |= self.cc.backs_off();
        if self.probe_end.is_some() {
            self.on_probe_answer(ack, &news);
        }
        self.new_data_first = false;
        if self.phase != Phase::Open || news.marked || p.sacks() > 0 || news.repeated {
            self.rack_adapt(now);
            self.react(&mut news, prior_una, p.tsecr(), now, terms);
        }
        if news.arm {
            self.arm_from = now;
        }
        self.window_is_set = self.delivery_rate.is_some() && self.report_delivery(&report, prior_flight, news.lost);
        if self.window_is_set {
            // No other rule changes it.
        } else if self.in_reduction() {
            self.reduce(news.delivered, news.advanced && news.lost == 0, terms);
        } else if news.delivered > 0 && self.may_raise(&news) {
            self.filled_at = now;
            report.open = self.phase == Phase::Open;
            if self.is_limited() {
                self.cc.grow(&mut self.window, &report);
            } else {
                self.cc.on_unfilled(&mut self.window, &report);
            }
        }
        self.window.cwnd = self.window.cwnd.min(terms.window_cap());
        self.note_rate();
        self.copied_upto = 0;
        self.queue.attempt = Attempt::Usual;
        self.wake_writer();
        if self.board.is_empty() && self.next == self.written {
            self.limits.set(Limited::Idle, now);
        }
        true
    }

    /// The peer offers `offered` bytes beyond `ack`. An edge that moves back by less than the unit of the window field
    /// is rounding.
    fn on_window(&mut self, ack: u64, offered: u64) {
        self.peer_window = self.peer_window.max(offered);
        let end = ack + offered;
        if end + (1 << self.window_scale) > self.window_end {
            self.window_end = self.window_end.max(end);
        } else if ack > self.una {
            self.window_end = end;
        }
    }

    fn may_raise(&self, news: &News) -> bool {
        news.advanced || news.sacked && self.rack.reordering > super::rack::DUP_THRESHOLD
    }

    /// Removes what `ack` covers. Where it echoes a timestamp older than a copy, the original had arrived (RFC 8985,
    /// section 6.2, step 2).
    #[inline(never)]
    fn on_cumulative(&mut self, ack: u64, tsecr: u32, now: Time, news: &mut News) {
        while let Some(&segment) = self.board.front() {
            if segment.end() > ack {
                if segment.start < ack {
                    self.board.trim_front(ack);
                    self.queue.release(ack - segment.start, false);
                }
                break;
            }
            self.board.pop();
            let marks = segment.marks;
            self.queue.release(u64::from(segment.len) - u64::from(marks.has(Mark::FIN)), marks.has(Mark::BURST_END));
            news.packets += 1;
            let sacked = segment.marks.has(Mark::SACKED);
            if segment.marks.has(Mark::EVER_RETRANSMITTED) {
                news.retransmitted = true;
            } else if !sacked {
                news.acked_sent.add(segment.sent);
                news.original |= segment.end() <= self.phase_end;
            }
            if let Some(rate) = &mut self.delivery_rate {
                rate.on_popped(!sacked, now);
            }
            if !sacked {
                news.delivered += 1;
                if !segment.marks.has(Mark::RETRANSMITTED) || !is_older(tsecr, timestamp(segment.sent)) {
                    self.rack_delivered(&segment, now);
                }
            }
        }
        self.una = ack;
        self.retries = 0;
        self.silent_since = None;
        news.advanced = true;
        news.arm = true;
    }

    /// Takes in the SACK blocks (RFC 2018) and finds duplicates reported in the first (RFC 2883, section 4).
    #[inline(never)]
    fn on_sack(&mut self, p: TcpSegment<'_>, ack: u64, mss: u32, now: Time, news: &mut News) {
        let at = |wire| self.map.offset(wire, self.una);
        let mut blocks = [(0, 0); 3];
        for (block, wire) in blocks.iter_mut().zip(p.sack_blocks()) {
            *block = (at(wire.start), at(wire.end));
        }
        let blocks = &mut blocks[..p.sacks() as usize];
        let first = blocks[0];
        let within = |outer: (u64, u64)| outer.0 <= first.0 && first.1 <= outer.1;
        let duplicate = first.1 <= ack || blocks.get(1).is_some_and(|&second| within(second));
        let duplicate = duplicate && self.on_duplicate(first, mss, news);
        let needless = if duplicate && first.1 > self.una { self.rack_found_needless(first) } else { u64::MAX };
        // As in Linux, in their order.
        let blocks = &mut blocks[usize::from(duplicate)..];
        blocks.sort_unstable();
        for &mut (start, end) in blocks {
            if start < end && end <= self.next && start >= self.una {
                self.sack_range(start, end, now, news);
            }
        }
        self.rack_came_late(needless);
    }

    /// A needless copy counts as delivered. As in Linux a report counts for nothing where it is empty, larger than the
    /// peer's largest window, or of more copies than were sent. Returns whether it counts.
    fn on_duplicate(&mut self, (start, end): (u64, u64), mss: u32, news: &mut News) -> bool {
        let bytes = end.saturating_sub(start);
        if bytes == 0 || bytes > self.peer_window {
            return false;
        }
        let copies = bytes.div_ceil(mss.into());
        self.stats.duplicates += copies;
        if self.stats.duplicates > self.stats.retransmits {
            return false;
        }
        // At most `retransmits` in all.
        let copies = copies as u32;
        news.duplicate = true;
        news.delivered += copies;
        if self.probe_end != Some(end) {
            self.rack_saw_duplicate();
        }
        if self.undo_from.is_some_and(|from| end > from)
            && let Some(left) = &mut self.undo_retransmits
        {
            *left = left.saturating_sub(copies);
        }
        true
    }

    fn sack_range(&mut self, start: u64, end: u64, now: Time, news: &mut News) {
        let len = self.board.len() as usize;
        let mut i = self.board.index_from(start);
        while i < len && self.board.get(i).end() <= end {
            let first = i;
            let mut ends = self.board.get(i).marks.has(Mark::SACKED);
            if ends {
                i += 1;
                continue;
            }
            // What is reported of one burst.
            while !ends {
                let segment = *self.board.get(i);
                self.board.mark_sacked(i);
                if let Some(rate) = &mut self.delivery_rate {
                    rate.on_delivered(i, now);
                }
                self.rack_delivered(&segment, now);
                news.delivered += 1;
                news.sacked = true;
                if !segment.marks.has(Mark::EVER_RETRANSMITTED) {
                    news.sacked_sent.add(segment.sent);
                    news.original |= segment.end() <= self.phase_end;
                }
                i += 1;
                ends = segment.marks.has(Mark::BURST_END) || i == len || self.board.get(i).end() > end;
            }
            self.keep_reported_together(first, i);
        }
        // What was sent after the oldest segment's last transmission says nothing of that one: leave its timer alone.
        if let Some(front) = self.board.front().filter(|_| !news.sacked_sent.is_empty()) {
            news.arm |= news.sacked_sent.newest < front.sent;
        }
    }

    /// Segments from `first` to before `after`, of one burst, are reported. The sender keeps what is reported apart
    /// from what is not, and together as far as the pieces of pages allow that: it adds them to what is reported before
    /// them, and then what is reported after them.
    fn keep_reported_together(&mut self, first: usize, after: usize) {
        let reported = |board: &Scoreboard, i: usize| i < board.len() as usize && board.get(i).marks.has(Mark::SACKED);
        self.divide_burst(first);
        self.divide_burst(after);
        if first > 0 && reported(&self.board, first - 1) && self.board.join_bursts(first - 1) {
            self.queue.join();
            if reported(&self.board, after) && self.board.join_bursts(after - 1) {
                self.queue.join();
            }
        }
    }

    /// Feeds the estimator; returns the round-trip time of the newest packet acknowledged.
    fn sample_rtt(&mut self, news: &News, tsecr: u32, now: Time, terms: &Terms) -> Option<Span> {
        let sacked = news.sacked_sent;
        let acked = if news.retransmitted { Extent::default() } else { news.acked_sent };
        let measured = |sent| Some(rtt::since(sent, now));
        let [oldest, newest] = match (acked.is_empty(), sacked.is_empty()) {
            (false, false) => [measured(acked.oldest), measured(sacked.newest)],
            (false, true) => [measured(acked.oldest), measured(acked.newest)],
            (true, false) => [measured(sacked.oldest), measured(sacked.newest)],
            // A retransmitted packet's echo still gives the time.
            (true, true) if news.advanced => [rtt::echoed(tsecr, now); 2],
            (true, true) => [None; 2],
        };
        if let Some(newest) = newest {
            self.rtt.on_min_sample(newest);
        }
        if let Some(sample) = oldest {
            self.rtt.on_sample(sample, self.una, self.next, terms);
            self.backoff = 0;
        }
        newest
    }

    /// RFC 8985, section 7.4: did the probe repair a loss?
    fn on_probe_answer(&mut self, ack: u64, news: &News) {
        let Some(end) = self.probe_end.filter(|&end| ack >= end) else { return };
        if !self.probe_was_copy || news.duplicate {
            self.probe_end = None;
        } else if ack > end {
            // The copy filled a hole that nobody else noticed: one reduction, at once.
            self.prior_ssthresh = None;
            self.begin_reduction(Phase::Reduced, false);
            self.end_reduction();
            self.keep_open();
        } else if !news.advanced && !news.sacked {
            self.probe_end = None;
        }
    }

    /// Something is unusual: moves between the phases.
    fn react(&mut self, news: &mut News, prior_una: u64, tsecr: u32, now: Time, terms: &Terms) {
        if news.marked {
            self.prior_ssthresh = None;
        }
        if self.una >= self.phase_end {
            match self.phase {
                // One more than the phase's data, so that CWR has reached the receiver.
                Phase::Reduced if self.una > self.phase_end => {
                    self.end_reduction();
                    self.enter(Phase::Open);
                }
                Phase::Recovery if terms.sack || self.una > self.phase_end => {
                    self.board.duplicates = 0;
                    self.leave_recovery(tsecr);
                    self.end_reduction();
                }
                Phase::Recovery => self.board.duplicates = 0,
                _ => {}
            }
        }
        match self.phase {
            Phase::Recovery => {
                if news.advanced && self.undo_from.is_some() && self.copy_was_needless(tsecr) {
                    self.undo(true);
                    self.keep_open();
                    return;
                }
                if self.undo_by_duplicates() {
                    self.keep_open();
                }
            }
            Phase::Loss => {
                self.after_timeout(news, tsecr, terms);
                // A copy that is lost as well begins a recovery.
                if self.phase == Phase::Loss && !self.detect(news, now, terms) {
                    return;
                }
            }
            Phase::Open | Phase::Disorder => {
                self.undo_by_duplicates();
            }
            Phase::Reduced => {}
        }
        self.detect(news, now, terms);
        if self.phase == Phase::Recovery {
            return;
        }
        if self.board.lost() > 0 {
            self.enter_recovery(news.marked);
        } else if news.marked && self.phase < Phase::Reduced {
            self.undo_from = None;
            self.begin_reduction(Phase::Reduced, true);
        } else if self.phase != Phase::Reduced {
            self.keep_open();
        }
        debug_assert!(self.una >= prior_una);
    }

    /// Finds what is lost. Returns whether copies are among it, of a peer that reports what it has.
    fn detect(&mut self, news: &mut News, now: Time, terms: &Terms) -> bool {
        if !terms.sack {
            news.lost += self.detect_without_sack(news.advanced);
            return false;
        }
        let copies = self.board.retransmitted();
        let (lost, armed) = self.rack_detect_by_ack(now, terms);
        news.lost += lost;
        news.arm &= !armed;
        self.board.retransmitted() < copies
    }

    fn keep_open(&mut self) {
        let board = &self.board;
        let quiet = board.sacked() + board.duplicates + board.lost() + board.retransmitted() == 0;
        let phase = if quiet { Phase::Open } else { Phase::Disorder };
        if self.phase != phase {
            self.enter(phase);
            self.phase_end = self.next;
        }
    }

    fn enter_recovery(&mut self, marked: bool) {
        self.stats.recoveries += 1;
        self.prior_ssthresh = None;
        self.watch_for_undo();
        if self.in_reduction() {
            // It ends where the reduction ends.
            self.enter(Phase::Recovery);
        } else {
            if !marked {
                self.prior_ssthresh = Some(self.current_ssthresh());
            }
            self.begin_reduction(Phase::Recovery, marked);
        }
        self.cc.on_recovery(&mut self.window);
    }

    /// The threshold that an undo would go back to.
    pub(crate) fn current_ssthresh(&self) -> u32 {
        let cwnd = self.window.cwnd;
        if self.in_reduction() { self.window.ssthresh } else { self.window.ssthresh.max(cwnd / 2 + cwnd / 4) }
    }

    fn watch_for_undo(&mut self) {
        self.undo_from = Some(self.una);
        let under_way = self.board.retransmitted();
        self.undo_retransmits = (under_way > 0).then_some(under_way);
        if under_way == 0 {
            self.first_retransmit_ts = 0;
        }
    }

    /// The echoed timestamp is older than the first retransmission: the original had arrived (Eifel). As in Linux the
    /// same is concluded where nothing was sent again yet.
    fn copy_was_needless(&self, tsecr: u32) -> bool {
        self.first_retransmit_ts == 0 || is_older(tsecr, self.first_retransmit_ts)
    }

    fn may_undo(&self, tsecr: u32) -> bool {
        self.undo_from.is_some() && (self.undo_retransmits == Some(0) || self.copy_was_needless(tsecr))
    }

    /// The reduction was needless: go back.
    fn undo(&mut self, nothing_lost: bool) {
        if nothing_lost {
            self.board.unmark_lost();
        }
        if let Some(prior) = self.prior_ssthresh {
            self.window.cwnd = self.cc.undo(&self.window, self.prior_cwnd);
            self.window.ssthresh = self.window.ssthresh.max(prior);
            self.cwr_due = false;
        }
        self.undo_from = None;
        self.stats.undos += 1;
    }

    fn undo_by_duplicates(&mut self) -> bool {
        let all_needless = self.undo_from.is_some() && self.undo_retransmits == Some(0);
        if all_needless {
            self.rack_keep_widened();
            self.undo(false);
        }
        all_needless
    }

    /// Everything of the phase is acknowledged.
    fn leave_recovery(&mut self, tsecr: u32) {
        if self.may_undo(tsecr) {
            self.undo(false);
        } else {
            self.rack_recovery_ended();
        }
        self.frto = false;
        self.enter(Phase::Open);
    }

    /// An ACK after a timeout (RFC 5682, section 3.1, steps 2 and 3).
    fn after_timeout(&mut self, news: &News, tsecr: u32, terms: &Terms) {
        let recovered = self.una >= self.phase_end;
        if news.advanced && self.may_undo(tsecr) {
            return self.leave_loss_by_undo();
        }
        if self.frto {
            if news.original {
                return self.leave_loss_by_undo();
            }
            if self.next > self.phase_end {
                if news.sacked || !news.advanced {
                    self.frto = false;
                }
            } else if news.advanced && !recovered {
                self.phase_end = self.next;
                self.new_data_first = true;
                return;
            }
        }
        if recovered && (terms.sack || self.una > self.phase_end) {
            self.leave_recovery(tsecr);
        }
    }

    fn leave_loss_by_undo(&mut self) {
        self.undo(true);
        self.retries = 0;
        self.frto = false;
        self.enter(Phase::Open);
    }

    /// The timer expired.
    pub(crate) fn on_timer(&mut self, now: Time, terms: &Terms) {
        if self.waits_for_pacer(now, terms) {
            return;
        }
        match self.timer.purpose {
            Purpose::Idle | Purpose::Linger => {}
            Purpose::Probe | Purpose::WindowProbe => self.probe_due = true,
            Purpose::Retransmit => self.on_retransmission_timeout(now, terms),
            Purpose::Reorder => self.on_reordering_timeout(now, terms),
        }
    }

    /// RFC 8985, section 6.3: what waited for the reordering window is lost.
    fn on_reordering_timeout(&mut self, now: Time, terms: &Terms) {
        if self.rack_detect(now, terms).0 > 0 && self.phase != Phase::Recovery {
            self.enter_recovery(false);
            self.reduce(1, false, terms);
        }
        self.resume_timeout(now, terms);
    }

    /// RFC 6298, section 5.4 to 5.7, with RFC 8985's section 6.3: what was sent recently is not yet lost.
    fn on_retransmission_timeout(&mut self, now: Time, terms: &Terms) {
        self.stats.timeouts += 1;
        let fresh = self.phase < Phase::Recovery;
        if self.board.front().is_some_and(|s| s.marks.has(Mark::SACKED)) {
            self.board.unmark_sacked();
        }
        self.board.duplicates = 0;
        for i in 0..self.board.len() as usize {
            let segment = *self.board.get(i);
            let recent = i > 0 && !self.rack_patience(&segment, now).is_zero();
            if !segment.marks.has(Mark::SACKED) && !recent {
                self.board.mark_lost(i);
            }
        }
        if self.phase <= Phase::Disorder
            || self.una >= self.phase_end
            || (self.phase == Phase::Loss && self.retries == 0)
        {
            self.prior_ssthresh = Some(self.current_ssthresh());
            self.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.cc.ssthresh(&self.window, false);
            self.cc.on_timeout(&mut self.window);
            self.watch_for_undo();
        } else {
            self.cc.on_timeout_in_reduction();
        }
        if self.phase <= Phase::Disorder && self.board.sacked() >= super::rack::DUP_THRESHOLD {
            self.rack.reordering = super::rack::DUP_THRESHOLD;
        }
        self.window.cwnd = self.board.in_flight() + 1;
        self.window.credit = 0;
        self.enter(Phase::Loss);
        self.phase_end = self.next;
        self.probe_end = None;
        self.new_data_first = false;
        self.cwr_due |= self.marks_mean_congestion();
        self.frto = terms.frto && (fresh || self.retries > 0);
        self.retries += 1;
        self.backoff += 1;
        self.arm_retransmit(now, terms);
    }
}
