//! Round-trip time estimation and the retransmission timeout (RFC 6298).
//!
//! RTO = max(SRTT + max(4 RTTVAR, `rto_variance`), `rto_min`), at most `rto_max`. The term `rto_variance` stands where
//! RFC 6298 has its clock's granularity G; Linux has one number for both floors, and so have we unless told otherwise.
//! BSD adds its allowance for the variance of stacks (200 ms) instead of taking the larger: RTO = max(SRTT + 4 RTTVAR +
//! allowance, floor).

use crate::config::TcpConfig;
use firstlight_units::{Span, Time};

/// The smoothed round-trip time is in eighths of a microsecond, as in Linux.
const EIGHTH: Span = Span::from_ns(125);

/// A round trip in whole microseconds of the host's clock, as Linux measures it.
pub(crate) fn since(sent: Time, now: Time) -> Span {
    Span::from_us((now.whole_us() - sent.whole_us()).max(1))
}

/// A span in whole units.
fn whole(span: Span, unit: Span) -> Span {
    unit * (span.as_ps() / unit.as_ps())
}

/// Smoothed round-trip time, its variance, the minimum, and the timeout that follows from them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    smoothed: Option<Span>,
    variance: Span,
    min: Span,
    rto: Span,
}

impl RttEstimator {
    pub(crate) const fn new(rto_initial: Span) -> Self {
        RttEstimator { smoothed: None, variance: Span::ZERO, min: Span::MAX, rto: rto_initial }
    }

    /// A sample from a segment that was sent once (Karn's rule is the caller's).
    pub(crate) fn on_sample(&mut self, rtt: Span, config: &TcpConfig) {
        let (smoothed, variance) = match self.smoothed {
            None => (rtt, rtt / 2),
            Some(srtt) => {
                let error = srtt.saturating_sub(rtt) + rtt.saturating_sub(srtt);
                (srtt - whole(srtt / 8, EIGHTH) + whole(rtt / 8, EIGHTH), (self.variance * 3 + error) / 4)
            }
        };
        self.smoothed = Some(smoothed);
        self.variance = variance;
        let floor = config.rto_variance.unwrap_or(config.rto_min);
        self.rto = (smoothed + (variance * 4).max(floor)).max(config.rto_min).min(config.rto_max);
    }

    /// Remembers the smallest round-trip time seen.
    pub(crate) fn on_min_sample(&mut self, rtt: Span) {
        self.min = self.min.min(rtt);
    }

    pub(crate) const fn smoothed(&self) -> Option<Span> {
        self.smoothed
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
        rtt.on_sample(Span::from_ms(100), &config);
        // SRTT = R, RTTVAR = R/2: 100 + max(4 * 50, 200) ms.
        assert_eq!(rtt.rto(), Span::from_ms(300));
        rtt.on_sample(Span::from_ms(180), &config);
        // RTTVAR = (3 * 50 + 80) / 4 = 57.5 ms, SRTT = (7 * 100 + 180) / 8 = 110 ms.
        assert_eq!(rtt.rto(), Span::from_ms(340));
    }

    #[test]
    fn floor_stands_under_the_variance() {
        assert_eq!(steady(Span::from_us(150), &TcpConfig::default()), Span::from_us(200_150));
    }

    /// The timeout after many equal round trips, whose variance has decayed.
    fn steady(round_trip: Span, config: &TcpConfig) -> Span {
        let mut rtt = RttEstimator::new(Span::from_secs(1));
        (0..100).for_each(|_| rtt.on_sample(round_trip, config));
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
        assert_eq!(of(30, 20, 12_000), Span::from_ms(32), "neither holds back a longer round trip");
        assert_eq!(of(2, 0, 150), Span::from_ms(2), "no allowance");
    }
}
