//! Round-trip time estimation and the retransmission timeout (RFC 6298).
//!
//! RTO = max(SRTT + max(4 RTTVAR, `rto_variance`), `rto_min`), at most `rto_max`. The term `rto_variance` stands where
//! RFC 6298 has its clock's granularity G; Linux has one number for both floors, and so have we by default.
//! BSD adds its allowance for the variance of stacks (200 ms) instead of taking the larger: RTO = max(SRTT + 4 RTTVAR +
//! allowance, floor).
//!
//! As in Linux (Sarolahti and Kuznetsov, "Congestion Control in Linux TCP", USENIX 2002) the variance term is the
//! largest deviation of a round trip. Once in each round trip it may fall, by a quarter of what it exceeds that trip's
//! largest deviation. A sample far below the smoothed round-trip time changes the deviation by an eighth of the usual
//! amount.

use super::timer::timestamp;
use crate::config::TcpConfig;
use firstlight_units::{Span, Time};

/// Unit of the smoothed round-trip time: an eighth of a microsecond, as in Linux.
const EIGHTH: Span = Span::from_ns(125);

/// A round trip in whole microseconds of the host's clock, as Linux measures it.
pub(crate) fn since(sent: Time, now: Time) -> Span {
    Span::from_us((now.whole_us() - sent.whole_us()).max(1))
}

/// Echoes older than this are ignored, as in Linux; in milliseconds.
const OLDEST_ECHO: u32 = i32::MAX as u32 / 1000;
/// The timeout of data where a SYN was sent again and its round trip is not known (RFC 6298, section 5.7).
const FALLBACK: Span = Span::from_secs(3);

/// The round trip that the echo of a timestamp shows, in whole milliseconds (RFC 7323, section 4.1), at least one.
/// `None` where no timestamp is echoed, or one that is too old or was never sent.
pub(crate) fn echoed(tsecr: u32, now: Time) -> Option<Span> {
    let elapsed = timestamp(now).wrapping_sub(tsecr);
    (tsecr != 0 && elapsed < OLDEST_ECHO).then(|| Span::from_ms(elapsed.max(1).into()))
}

/// Smoothed round-trip time, its variance, the minimum, and the timeout that follows from them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    /// Smoothed round-trip time, in eighths of a microsecond; 0 before the first sample.
    smoothed: u64,
    /// Four times the mean deviation, in microseconds.
    deviation: u64,
    /// The largest deviation of this round trip, in microseconds, four times as well.
    largest: u64,
    /// What the timeout adds to the smoothed round-trip time, in microseconds.
    variance: u64,
    /// This round trip ends when something beyond this stream offset is acknowledged.
    round_end: u64,
    min: Span,
    rto: Span,
}

impl RttEstimator {
    pub(crate) const fn new(rto_initial: Span) -> Self {
        RttEstimator {
            smoothed: 0,
            deviation: 0,
            largest: 0,
            variance: 0,
            round_end: 0,
            min: Span::MAX,
            rto: rto_initial,
        }
    }

    /// A sample from a segment that was sent once (Karn's rule is the caller's), when everything before `una` is
    /// acknowledged and everything before `next` was sent.
    pub(crate) fn on_sample(&mut self, rtt: Span, una: u64, next: u64, config: &TcpConfig) {
        let sample = rtt.as_ps() / Span::from_us(1).as_ps();
        let floor = config.rto_variance.unwrap_or(config.rto_min).as_ps() / Span::from_us(1).as_ps();
        if self.smoothed == 0 {
            self.smoothed = sample * 8;
            self.deviation = sample * 2;
            self.largest = self.deviation.max(floor);
            self.variance = self.largest;
            self.round_end = next;
        } else {
            self.deviate(sample);
            self.smoothed = self.smoothed - self.smoothed / 8 + sample;
            self.largest = self.largest.max(self.deviation);
            self.variance = self.variance.max(self.largest);
            if una > self.round_end {
                self.variance -= (self.variance - self.largest) / 4;
                self.largest = floor;
                self.round_end = next;
            }
        }
        self.rto = Span::from_us(self.smoothed / 8 + self.variance).max(config.rto_min).min(config.rto_max);
    }

    /// Moves the mean deviation by a quarter of its distance to this sample's error; by a 32nd where the sample is
    /// below the smoothed round-trip time and its error exceeds the mean deviation.
    fn deviate(&mut self, sample: u64) {
        let (smoothed, quarter) = (self.smoothed / 8, self.deviation / 4);
        let error = smoothed.abs_diff(sample);
        if error <= quarter {
            self.deviation -= quarter - error;
        } else if sample < smoothed {
            self.deviation += (error - quarter) / 8;
        } else {
            self.deviation += error - quarter;
        }
    }

    /// The handshake gave no sample.
    pub(crate) fn fall_back(&mut self, config: &TcpConfig) {
        self.rto = FALLBACK.max(config.rto_min).min(config.rto_max);
    }

    /// Remembers the smallest round-trip time seen.
    pub(crate) fn on_min_sample(&mut self, rtt: Span) {
        self.min = self.min.min(rtt);
    }

    pub(crate) fn smoothed(&self) -> Option<Span> {
        (self.smoothed > 0).then(|| EIGHTH * self.smoothed)
    }

    /// The smallest sample; [`Span::MAX`] before the first.
    pub(crate) const fn min(&self) -> Span {
        self.min
    }

    /// The timeout, before back-off.
    pub(crate) const fn rto(&self) -> Span {
        self.rto
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sample_and_steady_state_by_hand() {
        let (mut rtt, config) = (RttEstimator::new(Span::from_secs(1)), TcpConfig::default());
        assert_eq!(rtt.rto(), Span::from_secs(1));
        rtt.on_sample(Span::from_ms(100), 1, 1, &config);
        // SRTT = R, RTTVAR = R/2: 100 + max(4 * 50, 200) ms.
        assert_eq!(rtt.rto(), Span::from_ms(300));
        rtt.on_sample(Span::from_ms(180), 2, 2, &config);
        // RTTVAR = (3 * 50 + 80) / 4 = 57.5 ms, SRTT = (7 * 100 + 180) / 8 = 110 ms.
        assert_eq!(rtt.rto(), Span::from_ms(340));
    }

    #[test]
    fn floor_stands_under_the_variance() {
        assert_eq!(steady(Span::from_us(150), &TcpConfig::default()), Span::from_us(200_150));
    }

    /// The first two samples are of one round trip, in which the variance does not fall.
    #[test]
    fn variance_falls_once_in_a_round_trip() {
        let config = TcpConfig { rto_min: Span::from_ms(1), ..TcpConfig::default() };
        let mut rtt = RttEstimator::new(Span::from_secs(1));
        rtt.on_sample(Span::from_ms(80), 1, 10, &config);
        assert_eq!(rtt.rto(), Span::from_ms(80 + 160));
        // The deviation: 160 ms, less a quarter of it, and 40 of the error.
        rtt.on_sample(Span::from_ms(40), 5, 20, &config);
        assert_eq!(rtt.rto(), Span::from_ms(75 + 160));
        // 64 is more than a quarter of 160: an eighth of the rest is added.
        rtt.on_sample(Span::from_ms(11), 12, 20, &config);
        assert_eq!(rtt.rto(), Span::from_ms(67 + 163));
        // Without an error three quarters are left, and the variance goes a quarter of the way to that.
        rtt.on_sample(Span::from_ms(67), 25, 30, &config);
        assert_eq!(rtt.rto(), Span::from_us(67_000 + 163_000 - (163_000 - 163_000 / 4 * 3) / 4));
    }

    /// The timeout after many equal round trips, whose variance has decayed.
    fn steady(round_trip: Span, config: &TcpConfig) -> Span {
        let mut rtt = RttEstimator::new(Span::from_secs(1));
        (1..100).for_each(|i| rtt.on_sample(round_trip, i, i, config));
        rtt.rto()
    }

    #[test]
    fn each_floor_stands_for_itself() {
        let of = |min, variance, us| {
            let (rto_min, rto_variance) = (Span::from_ms(min), Some(Span::from_ms(variance)));
            steady(Span::from_us(us), &TcpConfig { rto_min, rto_variance, ..TcpConfig::default() })
        };
        assert_eq!(of(2, 20, 150), Span::from_us(20_150), "the variance's is the larger");
        assert_eq!(of(30, 20, 150), Span::from_ms(30), "the timeout's is");
        // The variance falls by whole quarters of what it has above its floor: 3 us are left.
        assert_eq!(of(30, 20, 12_000), Span::from_us(32_003), "neither holds back a longer round trip");
        assert_eq!(of(2, 0, 150), Span::from_ms(2), "no allowance");
    }
}
