//! Vegas: the window keeps a few packets in the queue (Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance
//! on a Global Internet", IEEE JSAC 13(8), 1995, section III).
//!
//! Once per round trip expected = cwnd / BaseRTT and actual = cwnd / RTT. Their difference gives the number of packets
//! of this flow that wait in queues. Below alpha the window grows by one packet, above beta it shrinks by one. Slow
//! start ends when more than gamma wait.
//!
//! Deviations, as measured on Linux:
//! - The packets that wait are (expected - actual) RTT = cwnd (RTT / BaseRTT - 1). That is more than the paper's
//!   (expected - actual) BaseRTT where the queue is long.
//! - Slow start doubles the window in every round trip, not in every other one. It ends with one packet more than
//!   BaseRTT asks for.
//! - RTT is the smallest of the round. A round of two samples or fewer grows as Reno does, and so does a connection
//!   that has lost something.
//! - BaseRTT is forgotten whenever nothing is in flight.
//! - The window also grows where the program does not fill it, unless it grows as Reno does.
//! - Loss is Reno's.

use super::round::RoundRtt;
use super::{Ack, CongestionControl, ControllerConfig, ModuleParameter, NewReno, NewRenoConfig, Window};
use firstlight_units::{Span, Time};

/// TCP Vegas (Brakmo and Peterson, 1995).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct VegasConfig {
    /// The window grows while fewer packets of the flow wait in queues.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 16_777_216), extend("x-of" = "packets")))]
    pub alpha: u32,
    /// The window shrinks while more packets of the flow wait in queues.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 16_777_216), extend("x-of" = "packets")))]
    pub beta: u32,
    /// Slow start ends when more packets of the flow wait in queues.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 16_777_216), extend("x-of" = "packets")))]
    pub gamma: u32,
}

impl Default for VegasConfig {
    fn default() -> Self {
        VegasConfig { alpha: 2, beta: 4, gamma: 1 }
    }
}

impl ControllerConfig for VegasConfig {
    const LINUX: Option<&'static str> = Some("vegas");

    fn parameters(&self) -> Vec<ModuleParameter> {
        [("alpha", self.alpha), ("beta", self.beta), ("gamma", self.gamma)]
            .map(|(key, packets)| ModuleParameter::new("tcp_vegas", key, packets))
            .to_vec()
    }
}

/// The state of Vegas.
#[derive(Clone, Debug)]
pub struct Vegas {
    config: VegasConfig,
    rtt: RoundRtt,
    reno: NewReno,
}

/// Samples of a round that are too few to be compared.
const FEW: u32 = 2;

impl Vegas {
    /// A controller for one connection.
    pub fn new(config: VegasConfig, tick: Span) -> Self {
        let reno = NewReno::new(NewRenoConfig {}, tick);
        Vegas { config, rtt: RoundRtt::default(), reno }
    }

    /// The window that leaves nothing waiting, and how many packets wait.
    fn compare(&self, cwnd: u32) -> (u32, u64) {
        let [base, rtt] = [self.rtt.base, self.rtt.min].map(|time| time.as_ps().max(1));
        let target = u128::from(cwnd) * u128::from(base) / u128::from(rtt);
        let waiting = u128::from(cwnd) * u128::from(rtt - base) / u128::from(base);
        (target as u32, waiting.min(u64::MAX.into()) as u64)
    }

    fn end_round(&mut self, window: &mut Window, ack: &Ack) {
        if self.rtt.samples <= FEW {
            self.reno.grow(window, ack);
            return self.rtt.begin(ack.next);
        }
        let (target, waiting) = self.compare(window.cwnd);
        let slow_start = window.in_slow_start();
        if slow_start && waiting > self.config.gamma.into() {
            window.cwnd = window.cwnd.min(target + 1);
            window.ssthresh = window.ssthresh.min(window.cwnd - 1);
        } else if slow_start {
            window.slow_start(ack.delivered);
        } else if waiting > self.config.beta.into() {
            window.cwnd -= 1;
            // Below an old threshold slow start would begin again.
            window.ssthresh = window.ssthresh.min(window.cwnd.saturating_sub(1));
        } else if waiting < self.config.alpha.into() {
            window.cwnd += 1;
        }
        window.cwnd = window.cwnd.max(window.floor);
        window.ssthresh = window.ssthresh.max(window.cwnd / 2 + window.cwnd / 4).max(window.floor);
        self.rtt.begin(ack.next);
    }
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        self.rtt.on_ack(ack);
    }

    fn on_resume(&mut self, _now: Time, _last_sent: Time, next: u64) {
        self.rtt.on_resume(next);
    }

    fn on_state(&mut self, open: bool, next: u64) {
        self.rtt.on_state(open, next);
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        if !self.rtt.counts {
            self.reno.grow(window, ack);
        } else if self.rtt.ends(ack) {
            self.end_round(window, ack);
        } else if window.in_slow_start() {
            window.slow_start(ack.delivered);
        }
    }

    fn on_unfilled(&mut self, window: &mut Window, ack: &Ack) {
        if self.rtt.counts {
            self.grow(window, ack);
        }
    }

    fn ssthresh(&mut self, window: &Window, marked: bool) -> u32 {
        self.reno.ssthresh(window, marked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of ACKs for each packet of the window.
    fn round(vegas: &mut Vegas, window: &mut Window, rtt_us: u64) -> u32 {
        let una = vegas.rtt.end() + 1;
        let next = una + u64::from(window.cwnd) - 1;
        let rtt = Some(Span::from_us(rtt_us));
        for i in 0..u64::from(window.cwnd) {
            let (una, next) = (una + i, next + i + 1);
            let ack = Ack { delivered: 1, rtt, srtt: rtt, una, next, open: true, ..Ack::default() };
            vegas.on_ack(window, &ack);
            vegas.grow(window, &ack);
        }
        window.cwnd
    }

    /// Times are taken one microsecond longer: a base of 100 us, and 20 (RTT / 100 - 1) packets wait.
    #[test]
    fn keeps_between_alpha_and_beta() {
        let mut vegas = Vegas::new(VegasConfig::default(), Span::ZERO);
        let mut window = Window { cwnd: 20, ssthresh: 10, ..Window::new(1) };
        let mut after = |rtt_us| round(&mut vegas, &mut window, rtt_us);
        // The first ACK of a round ends the one before, so that the smaller of the two counts.
        assert_eq!(after(99), 20, "one sample: as Reno");
        assert_eq!(after(109), 21, "nothing waits");
        assert_eq!(after(111), 21, "21 (110 / 100 - 1) = 2.1");
        assert_eq!(after(130), 21, "21 (112 / 100 - 1) = 2.5");
        assert_eq!(after(130), 20, "21 (131 / 100 - 1) = 6.5");
        assert_eq!(after(99), 21, "nothing waits in the ACK that ends the round");
    }

    /// The paper's comparison would find 20 (1 - 100 / 125) = 4 packets and leave the window; Linux finds 5.
    #[test]
    fn counts_what_waits_as_linux_does() {
        let mut vegas = Vegas::new(VegasConfig::default(), Span::ZERO);
        let mut window = Window { cwnd: 19, ssthresh: 10, ..Window::new(1) };
        assert_eq!([99, 124, 124].map(|rtt_us| round(&mut vegas, &mut window, rtt_us)), [19, 20, 19]);
    }

    #[test]
    fn slow_start_does_not_begin_again() {
        let mut vegas = Vegas::new(VegasConfig::default(), Span::ZERO);
        let mut window = Window { cwnd: 40, ssthresh: 40, ..Window::new(1) };
        assert_eq!([100, 200, 200, 200].map(|rtt_us| round(&mut vegas, &mut window, rtt_us))[1..], [41, 40, 39]);
        assert!(!window.in_slow_start());
    }

    /// Slow start doubles the window and ends with one packet more than a base of 100 us asks for: 40 (100 / 105) + 1.
    #[test]
    fn slow_start_ends_where_packets_wait() {
        let mut vegas = Vegas::new(VegasConfig::default(), Span::ZERO);
        let mut window = Window::new(10);
        assert_eq!([99, 99].map(|rtt_us| round(&mut vegas, &mut window, rtt_us)), [20, 40]);
        round(&mut vegas, &mut window, 104);
        window.cwnd = 40;
        let ends =
            Ack { delivered: 1, una: vegas.rtt.end() + 1, next: vegas.rtt.end() + 2, open: true, ..Ack::default() };
        vegas.grow(&mut window, &ends);
        assert_eq!((window.cwnd, window.ssthresh), (39, 38));
    }

    /// What was the least round trip is forgotten when nothing is in flight.
    #[test]
    fn the_base_is_forgotten_when_nothing_is_in_flight() {
        let mut vegas = Vegas::new(VegasConfig::default(), Span::ZERO);
        let mut window = Window { cwnd: 20, ssthresh: 10, ..Window::new(1) };
        round(&mut vegas, &mut window, 99);
        vegas.on_resume(Time::ZERO, Time::ZERO, vegas.rtt.end());
        assert_eq!([199, 199, 199].map(|rtt_us| round(&mut vegas, &mut window, rtt_us)), [20, 21, 22]);
    }
}
