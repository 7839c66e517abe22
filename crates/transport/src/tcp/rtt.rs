//! Round-trip time estimation and the retransmission timeout (RFC 6298).
//!
//! As Linux does, the floor stands under the variance term and not under the timeout: RTO = SRTT + max(4 RTTVAR, floor).

use firstlight_units::Span;

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
    pub(crate) fn on_sample(&mut self, rtt: Span, rto_min: Span, rto_max: Span) {
        let (smoothed, variance) = match self.smoothed {
            None => (rtt, rtt / 2),
            Some(srtt) => {
                let error = srtt.saturating_sub(rtt) + rtt.saturating_sub(srtt);
                ((srtt * 7 + rtt) / 8, (self.variance * 3 + error) / 4)
            }
        };
        self.smoothed = Some(smoothed);
        self.variance = variance;
        self.rto = (smoothed + (variance * 4).max(rto_min)).min(rto_max);
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

    const MIN: Span = Span::from_ms(200);
    const MAX: Span = Span::from_secs(120);

    #[test]
    fn first_sample_and_steady_state_by_hand() {
        let mut rtt = RttEstimator::new(Span::from_secs(1));
        assert_eq!(rtt.rto(), Span::from_secs(1));
        rtt.on_sample(Span::from_ms(100), MIN, MAX);
        // SRTT = R, RTTVAR = R/2: 100 + max(4 * 50, 200) ms.
        assert_eq!(rtt.rto(), Span::from_ms(300));
        rtt.on_sample(Span::from_ms(180), MIN, MAX);
        // RTTVAR = (3 * 50 + 80) / 4 = 57.5 ms, SRTT = (7 * 100 + 180) / 8 = 110 ms.
        assert_eq!(rtt.rto(), Span::from_ms(340));
    }

    #[test]
    fn floor_stands_under_the_variance() {
        let mut rtt = RttEstimator::new(Span::from_secs(1));
        for _ in 0..100 {
            rtt.on_sample(Span::from_us(150), MIN, MAX);
        }
        assert_eq!(rtt.rto(), MIN + Span::from_us(150));
    }
}
