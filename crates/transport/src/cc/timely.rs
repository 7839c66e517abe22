//! TIMELY: a rate that follows the gradient of the round-trip time (Mittal et al., "TIMELY: RTT-based Congestion
//! Control for the Datacenter", SIGCOMM 2015, section 4 and algorithm 1).
//!
//! Data leave in segments of 16 to 64 KB. A segment is one burst, and the rate decides the time between two bursts. A
//! complete segment gives an RTT. The differences of consecutive RTTs are averaged: rtt_diff = (1 - alpha) rtt_diff +
//! alpha (RTT - previous RTT), and gradient = rtt_diff / minRTT.
//! - Below T_low the rate grows by delta.
//! - Above T_high it becomes rate (1 - beta (1 - T_high / RTT)).
//! - In between, with a gradient of zero or less, it grows by N delta; N is 1, and 5 from the fifth such segment in a
//!   row on.
//! - In between, with a positive gradient, it becomes rate (1 - beta gradient).
//!
//! RTT is that of the packet that completes the segment, between the interfaces and by their timestamps. The paper's
//! values are delta = 10 Mb/s, beta = 0.8, T_low = 50 us and T_high = 500 us. It has none for alpha and minRTT: 0.875
//! and 20 us, a constant, are those of "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY" (CoNEXT 2016,
//! table 2).
//!
//! Where the paper is silent, or TCP differs: the rate starts at the line's rate and stays between delta and that. The
//! paper divides the start by the flows of a host, which no endpoint knows. The paper's network loses nothing and has
//! no window. Here the window grows as in slow start without an end, and only limits what a flow can have in flight.
//! Loss halves the rate.

use super::{Ack, CongestionControl, ControllerConfig, Window};
use firstlight_units::{Bytes, Rate, Span};

/// Completions in a row without a positive gradient after which the rate grows fast.
const PATIENCE: u32 = 5;
/// Steps of delta by which the rate grows while it grows fast.
const FAST: f64 = 5.0;

/// The least threshold that a loss leaves to the endpoint, in packets. It bounds nothing: the rate does.
const THRESHOLD: u32 = 2;

/// The largest rate where no link is known.
const LINE_RATE: Rate = Rate::from_gbps(10);

/// TIMELY (SIGCOMM'15). Its times and rates are of the hosts' own clocks: `time_scale` does not stretch them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct TimelyConfig {
    /// The first rate, and the largest one.
    #[cfg_attr(feature = "spec", schemars(extend("x-without" = "`hosts.rate`, by the hosts' clocks")))]
    pub line_rate: Option<Rate>,
    /// Additive step of the rate (delta), and the smallest rate.
    pub step: Rate,
    /// Factor of decreases.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 1)))]
    pub beta: f64,
    /// Weight of the newest difference between round-trip times.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 1)))]
    pub alpha: f64,
    /// Below this round-trip time the rate always grows.
    pub t_low: Span,
    /// Above this round-trip time the rate always shrinks.
    pub t_high: Span,
    /// The round-trip time to which the gradient is relative.
    #[cfg_attr(feature = "spec", schemars(extend("x-above" = "0s")))]
    pub min_rtt: Span,
    /// How much is sent at once.
    #[cfg_attr(feature = "spec", schemars(extend("x-most" = "1048576B")))]
    pub segment: Bytes,
}

impl Default for TimelyConfig {
    fn default() -> Self {
        TimelyConfig {
            line_rate: None,
            step: Rate::from_bps(10_000_000),
            beta: 0.8,
            alpha: 0.875,
            t_low: Span::from_us(50),
            t_high: Span::from_us(500),
            min_rtt: Span::from_us(20),
            segment: Bytes::new(16_000),
        }
    }
}

impl ControllerConfig for TimelyConfig {
    const LINUX: Option<&'static str> = None;
    const HAS_OWN_FLOOR: bool = true;

    fn on_link(self, rate: Rate, _mtu: Bytes) -> Self {
        TimelyConfig { line_rate: self.line_rate.or(Some(rate)), ..self }
    }
}

/// The state of TIMELY.
#[derive(Clone, Debug)]
pub struct Timely {
    config: TimelyConfig,
    /// The largest rate in bits per second.
    line: f64,
    /// The rate in bits per second.
    rate: f64,
    previous: Option<Span>,
    /// The averaged difference in picoseconds.
    difference: f64,
    /// Completions in a row with a gradient that is not positive.
    calm: u32,
    /// The newest RTT since the last completion.
    rtt: Option<Span>,
    /// A segment is complete when this stream offset is acknowledged.
    segment_end: u64,
    /// Bytes of the segment that is going out.
    sent: Bytes,
}

impl Timely {
    /// A controller for one connection.
    pub fn new(config: TimelyConfig, _tick: Span) -> Self {
        let line = config.line_rate.unwrap_or(LINE_RATE).as_bps() as f64;
        Timely {
            config,
            line,
            rate: line,
            previous: None,
            difference: 0.0,
            calm: 0,
            rtt: None,
            segment_end: 0,
            sent: Bytes::new(0),
        }
    }

    fn bounded(&self, rate: f64) -> f64 {
        rate.max(self.step()).min(self.line)
    }

    fn step(&self) -> f64 {
        self.config.step.as_bps() as f64
    }

    /// Algorithm 1.
    fn on_completion(&mut self, rtt: Span) {
        let TimelyConfig { beta, alpha, t_low, t_high, min_rtt, .. } = self.config;
        let ps = |span: Span| span.as_ps() as f64;
        let previous = self.previous.replace(rtt).unwrap_or(rtt);
        self.difference = (1.0 - alpha) * self.difference + alpha * (ps(rtt) - ps(previous));
        let gradient = self.difference / ps(min_rtt);
        let rate = if rtt < t_low {
            self.rate + self.step()
        } else if rtt > t_high {
            self.calm = 0;
            self.rate * (1.0 - beta * (1.0 - ps(t_high) / ps(rtt)))
        } else if gradient <= 0.0 {
            self.calm += 1;
            self.rate + if self.calm >= PATIENCE { FAST } else { 1.0 } * self.step()
        } else {
            self.calm = 0;
            self.rate * (1.0 - beta * gradient)
        };
        self.rate = self.bounded(rate);
    }
}

impl CongestionControl for Timely {
    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        if let Some(latency) = ack.latency {
            self.rtt = Some(latency.rtt);
        }
        if ack.una >= self.segment_end
            && let Some(rtt) = self.rtt.take()
        {
            self.segment_end = ack.una + self.config.segment.get();
            self.on_completion(rtt);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        window.cwnd = window.cwnd.saturating_add(ack.delivered);
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        self.rate = self.bounded(self.rate / 2.0);
        self.calm = 0;
        window.cwnd.max(THRESHOLD)
    }

    fn wants_stamps(&self) -> bool {
        true
    }

    fn pace(&mut self, bytes: Bytes) -> Span {
        self.sent += bytes;
        if self.sent < self.config.segment {
            return Span::ZERO;
        }
        let segment = std::mem::take(&mut self.sent);
        Rate::from_bps(self.rate as u64).tx_time(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gbps(timely: &Timely) -> f64 {
        timely.rate / 1e9
    }

    #[test]
    fn algorithm_1_by_hand() {
        let mut timely = Timely::new(TimelyConfig::default(), Span::ZERO);
        timely.rate = 5e9;
        let mut rate_after = |us| {
            timely.on_completion(Span::from_us(us));
            (gbps(&timely) * 1e6).round() / 1e6
        };
        assert_eq!(rate_after(40), 5.01, "below T_low");
        // The difference is 0.875 * 60 = 52.5 us, the gradient 2.625, the decrease more than all.
        assert_eq!(rate_after(100), 0.01, "not below a step");
        // 0.125 * 52.5 = 6.5625 us, gradient 0.328: stays at the floor. Then 0.125 * 6.5625 - 0.875 * 10 < 0, five
        // times.
        assert_eq!(rate_after(100), 0.01);
        assert_eq!([90, 90, 90, 90, 90].map(&mut rate_after), [0.02, 0.03, 0.04, 0.05, 0.1], "the fifth counts five");
        assert_eq!(rate_after(90), 0.15);
        // T_high: 0.15 (1 - 0.8 (1 - 500 / 1000)) = 0.09.
        assert_eq!(rate_after(1000), 0.09);
    }

    /// A gradient of 0.1: 0.875 * 16 / 7 us of difference to 20 us.
    #[test]
    fn a_gradient_by_hand() {
        let mut timely = Timely::new(TimelyConfig::default(), Span::ZERO);
        timely.on_completion(Span::from_ns(70_000));
        assert_eq!(gbps(&timely), 10.0, "no more than the line");
        timely.on_completion(Span::from_ps(70_000_000 + 16_000_000 / 7));
        assert!((gbps(&timely) - 10.0 * (1.0 - 0.8 * 0.1)).abs() < 1e-6, "{}", gbps(&timely));
    }

    #[test]
    fn segments_are_spaced_by_the_rate() {
        let mut timely = Timely::new(TimelyConfig::default(), Span::ZERO);
        timely.rate = 1e9;
        let packet = Bytes::new(1500);
        let waits: Vec<Span> = (0..22).map(|_| timely.pace(packet)).collect();
        assert!(waits.iter().enumerate().all(|(i, wait)| wait.is_zero() != (i + 1).is_multiple_of(11)), "{waits:?}");
        // 11 packets of 1500 B at 1 Gb/s.
        assert_eq!(waits[10], Span::from_us(132));
    }
}
