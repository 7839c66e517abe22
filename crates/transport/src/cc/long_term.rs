//! BBR's detector of policers: a token bucket on the path drops what exceeds its rate, and BBR would go on above that
//! rate (Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016).
//!
//! Linux's BBR documents it, and measurements show it: senders that lose a fifth of their packets, by a policer or
//! because several of them share a short queue, keep one rate for 48 round trips. From the first loss on the delivery
//! rate is averaged over intervals that begin and end with a loss, of 4 to 16 round trips, in which at least 50 packets
//! are lost for 256 delivered. Two intervals in a row whose rates differ by at most an eighth, or by 500 B/s, give the
//! rate of the policer, their mean. Samples from times without data to send begin the search anew.

use super::Delivery;
use firstlight_units::{Span, Time};

/// Round trips of an interval: the least, and the most.
const INTERVAL: (u32, u32) = (4, 16);
/// The least share of packets that are lost.
const LOST: (u64, u64) = (50, 256);
/// The share by which the rates of two intervals may differ.
const SAME: f64 = 1.0 / 8.0;
/// Bytes per second by which they may differ.
const SAME_BYTES: f64 = 500.0;
/// Round trips for which the rate holds.
const HOLDS: u32 = 48;
/// Times are counted in whole milliseconds.
const MS: Span = Span::from_ms(1);

/// The search for a policer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongTermRate {
    /// A packet was lost since the search began.
    searches: bool,
    /// The rate is in use.
    found: bool,
    /// Packets per second of the interval before, or of the policer; 0 without one.
    rate: f64,
    /// When the interval began, in milliseconds, and what was delivered and lost before it.
    since: (u64, u64, u64),
    /// Round trips of the interval, or for which the rate was used.
    rounds: u32,
    /// Packets found lost since the connection's start.
    lost: u64,
}

impl LongTermRate {
    /// The rate of the policer in packets per second, if one was found.
    pub(super) fn rate(&self) -> Option<f64> {
        self.found.then_some(self.rate)
    }

    /// Takes in an ACK. `begins`: a round trip begins with it; `counts`: one that counts where the policer's rate is in
    /// use. Returns whether that rate has held for long enough.
    pub(super) fn on_delivery(&mut self, delivery: &Delivery, now: Time, begins: bool, counts: bool, mss: u32) -> bool {
        self.lost += u64::from(delivery.lost);
        if self.found {
            self.rounds += u32::from(begins && counts);
            let over = self.rounds >= HOLDS;
            if over {
                self.reset(delivery.total, now);
            }
            return over;
        }
        if !self.searches {
            if delivery.lost == 0 {
                return false;
            }
            self.begin(delivery.total, now);
            self.searches = true;
        }
        self.rounds += u32::from(begins);
        if delivery.limited || self.rounds > INTERVAL.1 {
            self.reset(delivery.total, now);
        } else if self.rounds >= INTERVAL.0 && delivery.lost > 0 {
            self.end_interval(delivery.total, now, mss);
        }
        false
    }

    fn end_interval(&mut self, total: u64, now: Time, mss: u32) {
        let (since, delivered_before, lost_before) = self.since;
        let (delivered, lost) = (total - delivered_before, self.lost - lost_before);
        let ms = in_ms(now) - since;
        if delivered == 0 || lost * LOST.1 < LOST.0 * delivered || ms == 0 {
            return;
        }
        let rate = delivered as f64 * 1e3 / ms as f64;
        let difference = (rate - self.rate).abs();
        if self.rate > 0.0 && (difference <= SAME * self.rate || difference * f64::from(mss) <= SAME_BYTES) {
            (self.rate, self.found, self.rounds) = (f64::midpoint(rate, self.rate), true, 0);
        } else {
            self.rate = rate;
            self.begin(total, now);
        }
    }

    fn begin(&mut self, total: u64, now: Time) {
        self.since = (in_ms(now), total, self.lost);
        self.rounds = 0;
    }

    /// The search begins anew.
    fn reset(&mut self, total: u64, now: Time) {
        (self.searches, self.found, self.rate) = (false, false, 0.0);
        self.begin(total, now);
    }
}

fn in_ms(now: Time) -> u64 {
    (now - Time::ZERO).as_ps() / MS.as_ps()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips of 10 ms with 10 packets delivered each, of which `lost` are lost at the last ACK.
    fn after_rounds(rounds: u32, lost: u32) -> (LongTermRate, u32) {
        let (mut long_term, mut over) = (LongTermRate::default(), 0);
        for round in 1..=rounds {
            let delivery = Delivery { total: u64::from(round) * 10, lost, ..Delivery::default() };
            let now = Time::ZERO + MS * 10 * u64::from(round);
            over += u32::from(long_term.on_delivery(&delivery, now, true, true, 1448));
        }
        (long_term, over)
    }

    /// By hand: the first interval has rounds 1 to 4, the second rounds 5 to 8, and each ends with a loss. A rate of
    /// 1000 packets per second then holds for 48 round trips.
    #[test]
    fn two_intervals_of_much_loss_give_a_rate_for_48_round_trips() {
        assert_eq!(after_rounds(7, 3).0.rate(), None);
        assert_eq!(after_rounds(8, 3).0.rate(), Some(1000.0));
        assert_eq!((after_rounds(55, 3).1, after_rounds(56, 3).1), (0, 1));
        assert_eq!(after_rounds(56, 3).0.rate(), None);
    }

    /// One packet of ten is less than a fifth.
    #[test]
    fn little_loss_is_no_policer() {
        assert_eq!(after_rounds(100, 1).0.rate(), None);
    }

    #[test]
    fn rates_that_differ_and_times_without_data_are_no_policer() {
        let (mut long_term, mut total) = (LongTermRate::default(), 0);
        for round in 1..=40 {
            total += if round % 8 < 4 { 10 } else { 20 };
            let delivery = Delivery { total, lost: 8, ..Delivery::default() };
            long_term.on_delivery(&delivery, Time::ZERO + MS * 10 * round, true, true, 1448);
            assert_eq!(long_term.rate(), None, "round {round}");
        }
        let limited = Delivery { total: 10, lost: 8, limited: true, ..Delivery::default() };
        (1..=40)
            .for_each(|round| _ = long_term.on_delivery(&limited, Time::ZERO + MS * 1000 * round, true, true, 1448));
        assert_eq!(long_term.rate(), None);
    }
}
