//! Vegas: the window keeps a few packets in the queue (Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance
//! on a Global Internet", IEEE JSAC 13(8), 1995, section III).
//!
//! Once per round trip: expected = cwnd / BaseRTT, actual = cwnd / RTT, diff = (expected - actual) BaseRTT = cwnd (1 -
//! BaseRTT / RTT), the packets of this flow that wait somewhere. Below alpha the window grows by one packet, above beta
//! it shrinks by one. Slow start doubles the window every other round trip, stands still in between for a valid
//! comparison, and ends when diff exceeds gamma.
//!
//! Deviations: the paper counts what was sent in the round trip of one distinguished segment; here that is the window
//! (which moves only while it is what limits). RTT is the smallest of the round and not that of one segment, so that
//! one delayed ACK is not taken for a queue. Loss is Reno's: the paper's own timeouts on duplicate ACKs are what RACK
//! does today.

use super::{Ack, CongestionControl, ControllerConfig, ModuleParameter, NewReno, NewRenoConfig, Window};
use firstlight_units::Span;

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
    /// The smallest round-trip time of all,
    base: Span,
    /// and of this round.
    rtt: Span,
    /// The round ends when this stream offset is acknowledged.
    round_end: u64,
    /// Slow start: this round doubles the window.
    doubling: bool,
    /// The window is to grow by a packet.
    raise: bool,
    reno: NewReno,
}

impl Vegas {
    /// A controller for one connection.
    pub fn new(config: VegasConfig, tick: Span) -> Self {
        let reno = NewReno::new(NewRenoConfig {}, tick);
        Vegas { config, base: Span::MAX, rtt: Span::MAX, round_end: 0, doubling: true, raise: false, reno }
    }

    /// Packets of this flow that wait in queues.
    fn diff(&self, cwnd: u32) -> f64 {
        let waiting = (self.rtt - self.base).as_ps() as f64 / self.rtt.as_ps().max(1) as f64;
        f64::from(cwnd) * waiting
    }

    fn end_round(&mut self, window: &mut Window) {
        self.raise = false;
        if self.rtt == Span::MAX {
            return;
        }
        let diff = self.diff(window.cwnd);
        self.rtt = Span::MAX;
        if window.in_slow_start() {
            self.doubling = !self.doubling;
            if diff > f64::from(self.config.gamma) {
                window.ssthresh = window.cwnd.max(window.floor);
            }
        } else if diff < f64::from(self.config.alpha) {
            self.raise = true;
        } else if diff > f64::from(self.config.beta) && window.cwnd > window.floor {
            window.cwnd -= 1;
            // Below an old threshold slow start would begin again.
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
    }
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.base = self.base.min(rtt);
            self.rtt = self.rtt.min(rtt);
        }
        if ack.una > self.round_end {
            self.round_end = ack.next;
            self.end_round(window);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        if window.in_slow_start() {
            if self.doubling {
                window.slow_start(ack.delivered);
            }
        } else if std::mem::take(&mut self.raise) {
            window.cwnd += 1;
        }
    }

    fn ssthresh(&mut self, window: &Window, marked: bool) -> u32 {
        self.raise = false;
        // What this round measured was before.
        self.rtt = Span::MAX;
        self.reno.ssthresh(window, marked)
    }

    fn on_timeout(&mut self, _window: &mut Window) {
        self.doubling = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of ACKs for each packet of the window.
    fn round(vegas: &mut Vegas, window: &mut Window, rtt_us: u64) -> u32 {
        let una = vegas.round_end + 1;
        let next = una + u64::from(window.cwnd) - 1;
        let rtt = Some(Span::from_us(rtt_us));
        for i in 0..u64::from(window.cwnd) {
            let (una, next) = (una + i, next + i + 1);
            let ack = Ack { delivered: 1, rtt, srtt: rtt, una, next, ..Ack::default() };
            vegas.on_ack(window, &ack);
            vegas.grow(window, &ack);
        }
        window.cwnd
    }

    /// A base of 100 us and a window of 20: diff is 20 (1 - 100 / RTT).
    #[test]
    fn keeps_between_alpha_and_beta() {
        let mut vegas = Vegas::new(VegasConfig::default(), Span::ZERO);
        let mut window = Window { cwnd: 20, ssthresh: 10, ..Window::new(1) };
        let mut after = |rtt_us| round(&mut vegas, &mut window, rtt_us);
        // The first ACK of a round ends the one before, so that the smaller of the two counts.
        assert_eq!(after(100), 21, "nothing waits");
        assert_eq!(after(112), 22, "still nothing");
        assert_eq!(after(115), 22, "22 (1 - 100/112) = 2.4");
        assert_eq!(after(130), 22, "22 (1 - 100/115) = 2.9");
        assert_eq!(after(130), 21, "22 (1 - 100/130) = 5.1");
        assert_eq!(after(130), 20, "21 (1 - 100/130) = 4.8");
        assert_eq!(after(100), 21, "nothing waits");
    }

    #[test]
    fn slow_start_does_not_begin_again() {
        let mut vegas = Vegas::new(VegasConfig::default(), Span::ZERO);
        let mut window = Window { cwnd: 40, ssthresh: 40, ..Window::new(1) };
        assert_eq!([100, 200, 200, 200].map(|rtt_us| round(&mut vegas, &mut window, rtt_us))[1..], [42, 41, 40]);
        assert!(!window.in_slow_start());
    }

    #[test]
    fn slow_start_doubles_every_other_round() {
        let mut vegas = Vegas::new(VegasConfig::default(), Span::ZERO);
        let mut window = Window::new(10);
        let seen: Vec<u32> = (0..5).map(|_| round(&mut vegas, &mut window, 100)).collect();
        assert_eq!(seen, [10, 20, 20, 40, 40]);
        // 40 (1 - 100 / 102) = 0.8 is not yet a packet, 40 (1 - 100 / 105) = 1.9 is.
        assert_eq!(round(&mut vegas, &mut window, 100), 80);
        window.cwnd = 40;
        round(&mut vegas, &mut window, 102);
        round(&mut vegas, &mut window, 102);
        assert!(window.in_slow_start());
        window.cwnd = 40;
        round(&mut vegas, &mut window, 105);
        round(&mut vegas, &mut window, 105);
        assert_eq!((window.in_slow_start(), window.ssthresh), (false, 40));
    }
}
