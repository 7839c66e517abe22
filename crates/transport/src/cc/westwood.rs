//! Westwood+: after a loss the window is what the measured bandwidth can fill without a queue (Grieco and Mascolo,
//! "Performance Evaluation and Comparison of Westwood+, New Reno, and Vegas TCP Congestion Control", ACM CCR 34(2),
//! 2004, section 2).
//!
//! A duplicate ACK counts for one packet, and the cumulative one after it for what these have not counted, at least one
//! (AckedCount; Mascolo et al., "TCP Westwood: Bandwidth Estimation for Enhanced Transport over Wireless Links",
//! MobiCom 2001, section 2.3).
//!
//! Each round trip gives a sample b of the bandwidth, packets delivered by time; the estimate is B <- 7/8 B + 1/8 b. At
//! congestion the threshold becomes B RTTmin, at least 2 packets; the window grows as in Reno.
//!
//! Measured on Linux 7.2, and done here:
//! - A sample takes at least 50 ms, as long as the longest round trips that its authors had. On paths of 100 us it
//!   covers hundreds of round trips.
//! - AckedCount is the paper's to the letter, in bytes: an ACK of at most one packet counts for what it acknowledges,
//!   and nothing is deducted for it. An ACK that header prediction takes counts for all that it acknowledges. The first
//!   ACK of data counts as a duplicate, or for nothing where header prediction takes it.
//! - Samples pass a filter twice, each with a gain of 1/8, so that the estimate lags: a slow start of 230 ms to 527
//!   packets on a path of 167 ended with a threshold of 13.
//! - While lost packets are repaired the threshold is Reno's, half the window. It becomes B RTTmin at the end of the
//!   recovery, and so does the window.
//! - A timeout takes B RTTmin at once, and the smallest RTT is then measured anew.
//! - RTTmin is counted in started ticks. On a path of 100 us with ticks of 4 ms, B RTTmin is forty times what fits: of
//!   16 flows on a hybrid fabric every third packet is dropped.

use super::round::{in_ticks, part_of_tick, tick_of};
use super::{Ack, CongestionControl, ControllerConfig, NewReno, NewRenoConfig, Start, Window};
use firstlight_units::{Span, Time};

/// The shortest time over which bandwidth is measured.
const LEAST_SAMPLE: Span = Span::from_ms(50);
/// Gain of each of the two filters.
const GAIN: f64 = 1.0 / 8.0;

/// TCP Westwood+ (Grieco and Mascolo, 2004).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct WestwoodConfig {}

impl ControllerConfig for WestwoodConfig {
    const LINUX: Option<&'static str> = Some("westwood");
}

/// The state of Westwood+.
#[derive(Clone, Debug)]
pub struct Westwood {
    /// Bytes per second after one filter and after both; `None` before the first sample.
    bandwidth: Option<(f64, f64)>,
    /// The current sample: its start and its bytes.
    since: Time,
    delivered: u64,
    /// The stream offset that the last ACK acknowledged; `None` before the first of data.
    una: Option<u64>,
    /// Bytes that duplicate ACKs have counted and no cumulative one has.
    accounted: u64,
    /// Bytes of a packet.
    mss: u32,
    rtt: Span,
    min_rtt: Span,
    /// The smallest round-trip time is to be measured anew.
    renew: bool,
    tick: Span,
    reno: NewReno,
}

impl Westwood {
    /// A controller for one connection.
    pub fn new(_config: WestwoodConfig, tick: Span) -> Self {
        Westwood {
            bandwidth: None,
            since: Time::ZERO,
            delivered: 0,
            una: None,
            accounted: 0,
            mss: 1,
            rtt: Span::ZERO,
            min_rtt: Span::MAX,
            renew: false,
            tick,
            reno: NewReno::new(NewRenoConfig {}, tick),
        }
    }

    /// B RTTmin in whole packets.
    fn bandwidth_delay(&self, window: &Window) -> u32 {
        let Some((_, bandwidth)) = self.bandwidth else { return window.floor };
        ((bandwidth * in_ticks(self.min_rtt, self.tick).as_secs_f64() / f64::from(self.mss)) as u32).max(window.floor)
    }

    /// The bytes that an ACK counts for, by AckedCount.
    fn count(&mut self, ack: &Ack) -> u64 {
        if self.una.is_none() && ack.advanced == 0 {
            return 0;
        }
        let packet = u64::from(ack.mss);
        let bytes = ack.una - self.una.replace(ack.una).unwrap_or(ack.una);
        match bytes {
            _ if ack.predicted => return bytes,
            0 => self.accounted += packet,
            _ if bytes <= packet => return bytes,
            _ if self.accounted < bytes => return bytes - std::mem::take(&mut self.accounted),
            _ => self.accounted -= bytes,
        }
        packet
    }

    fn end_sample(&mut self, now: Time) {
        let sample = self.delivered as f64 / now.saturating_since(self.since).as_secs_f64();
        self.bandwidth = Some(match self.bandwidth {
            None => (sample, sample),
            Some((once, twice)) => {
                let once = once + GAIN * (sample - once);
                (once, twice + GAIN * (once - twice))
            }
        });
        self.since = now;
        self.delivered = 0;
    }
}

impl CongestionControl for Westwood {
    fn on_established(&mut self, _window: &mut Window, start: &Start) {
        self.since = tick_of(start.now, self.tick);
        self.rtt = start.srtt.unwrap_or(Span::ZERO);
        self.min_rtt = start.srtt.unwrap_or(Span::MAX);
    }

    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt = rtt;
            self.min_rtt = if std::mem::take(&mut self.renew) { rtt } else { self.min_rtt.min(rtt) };
        }
        let now = tick_of(ack.now, self.tick);
        let least = in_ticks(self.rtt, self.tick).max(LEAST_SAMPLE - part_of_tick(LEAST_SAMPLE, self.tick));
        if now.saturating_since(self.since) > least {
            self.end_sample(now);
        }
        self.mss = ack.mss;
        self.delivered += self.count(ack);
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        self.reno.grow(window, ack);
    }

    fn ssthresh(&mut self, window: &Window, marked: bool) -> u32 {
        self.reno.ssthresh(window, marked)
    }

    fn on_reduced(&mut self, window: &mut Window) {
        window.ssthresh = self.bandwidth_delay(window);
        window.cwnd = window.ssthresh;
    }

    fn on_timeout(&mut self, window: &mut Window) {
        window.ssthresh = self.bandwidth_delay(window);
        self.renew = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AckedCount by hand, in packets of 10 bytes.
    #[test]
    fn counts_what_duplicates_have_not_counted() {
        let mut westwood = Westwood::new(WestwoodConfig {}, Span::ZERO);
        let mut una = 1;
        let mut count = |bytes: u64, predicted| {
            una += bytes;
            westwood.count(&Ack { advanced: bytes.div_ceil(10) as u32, una, mss: 10, predicted, ..Ack::default() })
        };
        assert_eq!([0, 20].map(|bytes| count(bytes, false)), [0, 10], "the first ACK of data counts as a duplicate");
        assert_eq!([0, 4, 44].map(|bytes| count(bytes, false)), [10, 4, 24], "up to a packet deducts nothing");
        assert_eq!([0, 0, 0, 20].map(|bytes| count(bytes, false)), [10; 4], "all was counted before");
        assert_eq!([count(20, true), count(30, false)], [20, 20], "a predicted ACK deducts nothing");
    }
}
