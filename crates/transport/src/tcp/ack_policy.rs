//! When data are acknowledged (RFC 9293, section 3.8.6.3; RFC 5681, section 4.2).
//!
//! At once: what is more than a segment, where the window that would be offered does not move back; anything out of
//! order and what fills a gap; the first packets of a connection and those after a duplicate or a silence (quick
//! acknowledgements); and a segment that seems to be the end of what a program has written, when the program that reads
//! has read it. All else waits for the interval at which data arrive, 40 ms at least. A program that answers what it
//! reads acknowledges with its answers: quick acknowledgements are off then.
//!
//! ACKs that would only report more of what lies beyond a gap are held back for a third of a round trip after the first
//! three, as long as the SACK option has room for all that they would say (Linux's SACK compression; ip-sysctl,
//! `tcp_comp_sack_*`), and no longer than until a timer expires that was set for an earlier delayed ACK.

use super::rtt::RttEstimator;
use super::terms::{DEFAULT_SEGMENT, Terms};
use super::timer::Ticks;
use firstlight_units::{Span, Time};

/// ACKs for out-of-order data that go out at once for each gap: what fast retransmit needs.
const UNCOMPRESSED: u32 = 3;
/// The most ACKs that are held back.
const MOST_COMPRESSED: u32 = 44;
/// ACKs are held back for this part of the round-trip time, in percent, ...
const COMPRESSION_PERCENT: u64 = 33;
/// ... and no longer than this.
const LONGEST_COMPRESSION: Span = Span::from_ms(1);
/// The slack of the timer that ends the holding back.
const COMPRESSION_SLACK: Span = Span::from_us(10);
/// The longest delay of an ACK, where data arrive slowly, in least delays (Linux: 200 ms).
const LONGEST_DELAY: u64 = 5;

/// ACKs that are being held back.
#[derive(Clone, Copy, Debug)]
struct Compression {
    /// Stream offset at which the gap begins.
    gap: u64,
    /// ACKs that went out for this gap.
    sent: u32,
    /// ACKs that wait.
    held: u32,
    /// When the ACKs that wait go out; [`Time::MAX`] when none waits.
    until: Time,
}

/// When to acknowledge.
#[derive(Clone, Debug)]
pub(crate) struct AckPolicy {
    /// An acknowledgement is due at once.
    pub(crate) now: bool,
    /// When a delayed acknowledgement is due; [`Time::MAX`] when none is.
    deadline: Time,
    /// When the timer of delayed acknowledgements expires, which is not stopped when one has gone out.
    timer: Time,
    /// Something is to be acknowledged.
    scheduled: bool,
    /// Acknowledgements that still go out at once.
    quick: u32,
    /// The program answers what it reads.
    answers: bool,
    /// The interval at which data arrive, and so the delay; `None` before the first data.
    interval: Option<Span>,
    /// Segments that seem to be the end of a write, since the last ACK: none, one, or more.
    ends: u8,
    /// The size of the peer's segments.
    pub(crate) segment: u32,
    /// The size of the last segment if that was smaller, or 0.
    last_size: u32,
    last_arrival: Time,
    compression: Compression,
    ticks: Ticks,
}

impl AckPolicy {
    pub(crate) fn new(terms: &Terms) -> Self {
        AckPolicy {
            now: false,
            deadline: Time::MAX,
            timer: Time::ZERO,
            scheduled: false,
            quick: 0,
            answers: terms.interactive,
            interval: None,
            last_size: 0,
            ends: 0,
            segment: DEFAULT_SEGMENT.min(terms.whole),
            last_arrival: Time::ZERO,
            compression: Compression { gap: 0, sent: 0, held: 0, until: Time::MAX },
            ticks: Ticks::new(terms.tick),
        }
    }

    /// The connection begins.
    pub(crate) fn start(&mut self, now: Time) {
        self.last_arrival = now;
    }

    /// When [`AckPolicy::on_timer`] is to be called; [`Time::MAX`] for never.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.deadline.min(self.compression.until)
    }

    /// When data arrived last; [`Time::ZERO`] before the first.
    pub(crate) const fn last_arrival(&self) -> Time {
        self.last_arrival
    }

    /// How long an ACK waits at present.
    pub(crate) fn interval(&self) -> Span {
        self.interval.unwrap_or(Span::ZERO)
    }

    /// What has arrived is to be acknowledged.
    pub(crate) fn schedule(&mut self) {
        self.scheduled = true;
    }

    /// A delayed acknowledgement is not due any more.
    pub(crate) fn cancel_delay(&mut self) {
        self.deadline = Time::MAX;
    }

    /// No acknowledgement is due.
    pub(crate) fn cancel(&mut self) {
        self.now = false;
        self.deadline = Time::MAX;
        self.compression.until = Time::MAX;
    }

    /// A segment of `len` bytes arrived; returns whether it is larger than those before. Two small segments of one size
    /// in a row show that the peer has small segments; any other small one, and a full one with PSH, counts as the end
    /// of a write.
    #[inline]
    pub(crate) fn measure(&mut self, len: u32, pushed: bool) -> bool {
        if len >= self.segment {
            let larger = len > self.segment;
            self.segment = len;
            self.last_size = 0;
            self.ends = self.ends.max(u8::from(pushed));
            return larger;
        }
        let last = std::mem::replace(&mut self.last_size, len);
        if len == last && len >= DEFAULT_SEGMENT {
            self.segment = len;
        } else {
            self.ends = (self.ends + 1).min(2);
        }
        false
    }

    /// Data arrived in order. The window decides how many quick acknowledgements follow.
    #[inline]
    pub(crate) fn on_data(&mut self, now: Time, window: u64, rtt: &RttEstimator, terms: &Terms) {
        self.scheduled = true;
        let least = terms.delayed_ack;
        let gap = now.saturating_since(self.last_arrival);
        let gap = if gap + terms.tick <= least / 2 { gap } else { self.ticks.between(self.last_arrival, now) };
        self.last_arrival = now;
        let Some(interval) = self.interval else {
            self.start_quick(window, terms);
            self.interval = Some(least);
            return;
        };
        if gap <= least / 2 {
            if interval != least {
                self.interval = Some(self.ticks.half(interval) + least / 2);
            }
        } else if gap < interval {
            self.interval = Some((self.ticks.half(interval) + gap).min(self.ticks.whole(rtt.rto())));
        } else if gap > self.ticks.whole(rtt.rto()) {
            // The sender has fallen silent and starts again.
            self.start_quick(window, terms);
        }
    }

    /// The next packets are acknowledged at once: as many as make up half a window, between 2 and `quick_acks`.
    pub(crate) fn start_quick(&mut self, window: u64, terms: &Terms) {
        let half = (window / (2 * u64::from(self.segment))).max(2).min(u64::from(terms.quick_acks)) as u32;
        self.quick = self.quick.max(half);
    }

    /// Quick acknowledgements begin, whatever the program does: the peer needs to know.
    pub(crate) fn force_quick(&mut self, window: u64, terms: &Terms) {
        self.start_quick(window, terms);
        self.answers = false;
        self.interval = Some(terms.delayed_ack);
    }

    /// A mark or a retransmission arrived: the sender's window may be very small, so that it waits for ACKs.
    pub(crate) fn need_acks_soon(&mut self, terms: &Terms) {
        self.quick = self.quick.max(2.min(terms.quick_acks));
        self.answers = false;
        self.interval = Some(terms.delayed_ack);
    }

    /// The window has grown: an acknowledgement reports it soon.
    pub(crate) fn on_growth(&mut self) {
        self.quick |= 1;
    }

    /// The peer's stream has ended: only the program's own FIN is still to come.
    pub(crate) fn on_end(&mut self) {
        self.answers = true;
        self.scheduled = true;
    }

    /// Little memory is left: the peer is not to be hurried.
    pub(crate) fn slow_down(&mut self) {
        self.quick = 0;
    }

    /// Whether acknowledgements go out at once.
    pub(crate) const fn is_quick(&self) -> bool {
        self.quick > 0 && !self.answers
    }

    /// Whether the end of a write may have arrived, so that the ACK goes out when the program has read it.
    pub(crate) const fn is_end_of_write(&self) -> bool {
        self.ends == 2 || (self.ends == 1 && !self.answers)
    }

    /// Whether an acknowledgement is to be sent sooner or later.
    pub(crate) const fn is_scheduled(&self) -> bool {
        self.scheduled
    }

    /// An ACK is due, but not at once.
    pub(crate) fn delay(&mut self, now: Time, rtt: &RttEstimator, terms: &Terms) {
        self.scheduled = true;
        if terms.delayed_ack.is_zero() && !terms.tick.is_zero() {
            // A kernel's timer would wait for its tick; its route says `quickack 1`.
            self.now = true;
            return;
        }
        let mut delay = self.interval();
        if delay > terms.delayed_ack {
            let most = terms.delayed_ack * LONGEST_DELAY;
            delay = delay.min(rtt.smoothed().map_or(most, |srtt| srtt.clamp(terms.delayed_ack, most)));
        }
        let delay = delay.min(self.longest(terms));
        if self.deadline < Time::MAX {
            // A quarter of the delay, in whole ticks.
            let part = delay.as_ps() / 4;
            let soon = Span::from_ps(part - part.checked_rem(terms.tick.as_ps()).unwrap_or(0));
            if self.deadline <= self.ticks.after(now, soon) {
                // It would be due soon anyway.
                self.now = true;
                return;
            }
        }
        self.deadline = self.deadline.min(self.ticks.after(now, delay));
        self.timer = self.deadline;
    }

    /// The longest delay of an ACK where the least timeout is set to be shorter: a tick less than that, as the peer is
    /// taken to have the same, and a tick at least.
    fn longest(&self, terms: &Terms) -> Span {
        let is_short = terms.rto_min < terms.delayed_ack * LONGEST_DELAY && !terms.tick.is_zero();
        if is_short { self.ticks.whole(terms.rto_min).max(terms.tick * 2) - terms.tick } else { Span::MAX }
    }

    /// A timer has expired.
    pub(crate) fn on_timer(&mut self, now: Time, rtt: &RttEstimator, terms: &Terms) {
        if self.deadline <= now {
            // The program has not answered in time, or data are slower than was thought.
            self.interval = Some(if std::mem::replace(&mut self.answers, terms.interactive) {
                terms.delayed_ack
            } else {
                (self.interval() * 2).min(rtt.rto())
            });
        }
        self.now = true;
    }

    /// Whether ACKs are being held back.
    pub(crate) fn holds_acks(&self) -> bool {
        self.compression.held > 0
    }

    /// When the ACKs that are held back go out by themselves; [`Time::MAX`] when there are none.
    pub(crate) fn held_until(&self) -> Time {
        self.compression.until
    }

    /// More lies beyond the gap that begins at `gap`: acknowledge now or with what follows.
    /// `round_trip` is what the receiver takes for the round trip, or 0 where it knows none: then the timer's slack is
    /// all.
    pub(crate) fn compress(&mut self, gap: u64, now: Time, round_trip: Span) {
        let c = &mut self.compression;
        if c.held >= MOST_COMPRESSED {
            self.now = true;
            return;
        }
        if c.gap != gap {
            *c = Compression { gap, sent: 0, held: 0, until: Time::MAX };
        }
        if c.sent < UNCOMPRESSED {
            c.sent += 1;
            self.now = true;
            return;
        }
        c.held += 1;
        if c.until == Time::MAX {
            let part = (round_trip.saturating_mul(COMPRESSION_PERCENT) / 100).min(LONGEST_COMPRESSION);
            // In whole nanoseconds, from what a clock of nanoseconds shows.
            let part = Span::from_ns(part.as_ps() / Span::from_ns(1).as_ps());
            c.until = Time::from_ns(now.whole_ns()) + part + COMPRESSION_SLACK;
            if self.timer > now {
                c.until = c.until.min(self.timer);
            }
        }
    }

    /// An acknowledgement goes out, of something `new` or not.
    #[inline]
    pub(crate) fn on_sent(&mut self, terms: &Terms) {
        self.now = false;
        self.deadline = Time::MAX;
        self.compression.held = 0;
        self.compression.until = Time::MAX;
        self.ends = 0;
        if std::mem::take(&mut self.scheduled) && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.interval = Some(terms.delayed_ack);
            }
        }
    }

    /// Data go out: an answer, if they follow what arrived within the interval.
    #[inline]
    pub(crate) fn on_answer(&mut self, now: Time) {
        if now.saturating_since(self.last_arrival) < self.interval() {
            self.answers = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TcpConfig;

    /// The timer of a delayed ACK that has gone out sends what is held back.
    #[test]
    fn a_timer_that_was_set_ends_the_holding_back() {
        let config = TcpConfig { tick: Span::from_ms(4), ..TcpConfig::default() };
        let (terms, rtt) = (Terms::new(&config, false), RttEstimator::new(config.rto_initial));
        let mut policy = AckPolicy::new(&terms);
        let at = |us| Time::ZERO + Span::from_us(us);
        policy.interval = Some(config.delayed_ack);
        policy.delay(at(100), &rtt, &terms);
        let timer = policy.deadline();
        policy.on_sent(&terms);
        assert_eq!((timer, policy.deadline()), (at(44_000), Time::MAX));
        for (now, until) in [(43_500, timer), (44_500, at(45_510))] {
            policy.compression.gap += 1;
            (0..=UNCOMPRESSED).for_each(|_| policy.compress(1, at(now), Span::from_ms(9)));
            assert_eq!(policy.held_until(), until);
            policy.on_sent(&terms);
        }
    }

    /// A silence is counted in whole ticks: 36.3 ms over ten ticks of 4 ms are as long as the longest delay of an ACK.
    #[test]
    fn a_silence_of_ten_ticks_is_one_of_40_ms() {
        let config = TcpConfig { tick: Span::from_ms(4), ..TcpConfig::default() };
        let (terms, rtt) = (Terms::new(&config, false), RttEstimator::new(Span::from_ms(12)));
        let at = |us| Time::ZERO + Span::from_us(us);
        for (last, now, quick) in [(71_900, 108_200, true), (72_100, 107_900, false)] {
            let mut policy = AckPolicy::new(&terms);
            policy.on_data(at(last), 100_000, &rtt, &terms);
            policy.quick = 0;
            policy.on_data(at(now), 100_000, &rtt, &terms);
            assert_eq!(policy.is_quick(), quick, "{last} to {now} us");
        }
    }

    /// Three ACKs for a gap go out at once, 44 are held back for a third of a round trip and the timer's slack, or for
    /// a millisecond and the slack; the next one goes out.
    #[test]
    fn acks_for_a_gap_are_held_back() {
        for (round_trip, wait) in [(0, 10), (300, 109), (4000, 1010)] {
            let mut policy = AckPolicy::new(&Terms::new(&TcpConfig::default(), false));
            let now = Time::ZERO + Span::from_ms(5);
            let mut compress = |now| {
                policy.now = false;
                policy.compress(1, now, Span::from_us(round_trip));
                (policy.now, policy.holds_acks(), policy.compression.until)
            };
            for _ in 0..3 {
                assert_eq!(compress(now), (true, false, Time::MAX));
            }
            for _ in 0..44 {
                assert_eq!(compress(now), (false, true, now + Span::from_us(wait)));
            }
            assert!(compress(now).0);
        }
    }
}
