//! H-TCP: the increase grows with the time since the last congestion (Leith and Shorten, "H-TCP: TCP for high-speed and
//! long-distance networks", PFLDnet 2004; draft-leith-tcp-htcp-06).
//!
//! With D the seconds since the last congestion, f(D) = 1 up to 1 s and 1 + 10 (D - 1) + (D - 1)^2 / 4 beyond, scaled
//! by the smallest RTT / 100 ms (between 1/10 and 2); alpha = 2 (1 - beta) f packets per round trip. At congestion the
//! window becomes beta cwnd, with beta = RTTmin / RTTmax between 0.5 and 0.8 (adaptive backoff), or 0.5 where the
//! throughput before this congestion differs from that before the last one by more than 20 % (bandwidth switch).
//!
//! Measured on Linux 7.2, and done here:
//! - Round-trip times are counted in started ticks, and beta in whole 128ths. Beta is 0.5 where the smallest RTT is not
//!   above 10 ms, and until two congestions in a row have found the same throughput.
//! - f is rounded down to whole packets, but at least 1: with an RTT of 20 ms, 2.5 s after a congestion, it is 3 and
//!   not 0.2 x 16.6.
//! - The window grows with the ACK that follows the one that completes its credit; neither that ACK nor what is left
//!   over counts towards the next packet. A window of 10 packets thus needs 12 where every second packet is
//!   acknowledged.

use super::round::{Round, in_ticks};
use super::{Ack, CongestionControl, ControllerConfig, Start, Window};
use firstlight_units::{Span, Time};

/// The time after a congestion for which the increase is TCP's, in seconds.
const LOW_SPEED: f64 = 1.0;
/// The round-trip time to which the increase is scaled, in seconds, and the bounds of that scaling.
const REFERENCE_RTT: f64 = 0.1;
const SCALING: (f64, f64) = (0.1, 2.0);
/// Bounds of beta.
const BETA: (f64, f64) = (0.5, 0.8);
/// With a smaller round-trip time there is no adaptive backoff.
const ADAPTIVE_FROM: Span = Span::from_ms(10);
/// The fraction in which beta is counted.
const BETA_STEPS: f64 = 128.0;
/// A change of throughput by this share switches the adaptive backoff off once.
const SWITCH: f64 = 0.2;

/// H-TCP (Leith and Shorten, 2004).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct HtcpConfig {}

impl ControllerConfig for HtcpConfig {
    const LINUX: Option<&'static str> = Some("htcp");
}

/// The state of H-TCP.
#[derive(Clone, Debug)]
pub struct Htcp {
    tick: Span,
    now: Time,
    /// When the last congestion was.
    congestion: Time,
    min_rtt: Span,
    max_rtt: Span,
    beta: f64,
    round: Round,
    /// When the current round trip began, and the packets that it has delivered.
    round_start: Time,
    delivered: u32,
    /// Throughput of the last round trip, in packets per second.
    throughput: f64,
    /// Throughput at the last congestion.
    congested_throughput: f64,
    /// The throughput at the last congestion was that at the one before.
    steady: bool,
    /// The packets that the next ACK adds to the credit: those that the last ACK has acknowledged while nothing was out
    /// of order.
    acked: u32,
}

impl Htcp {
    /// A controller for one connection on a host whose clock has this tick.
    pub fn new(_config: HtcpConfig, tick: Span) -> Self {
        Htcp {
            tick,
            now: Time::ZERO,
            congestion: Time::ZERO,
            min_rtt: Span::MAX,
            max_rtt: Span::ZERO,
            beta: BETA.0,
            round: Round::default(),
            round_start: Time::ZERO,
            delivered: 0,
            throughput: 0.0,
            congested_throughput: 0.0,
            steady: false,
            acked: 1,
        }
    }

    /// Packets per round trip by which the window grows.
    fn alpha(&self) -> f64 {
        let since = (self.now.saturating_since(self.congestion).as_secs_f64() - LOW_SPEED).max(0.0);
        let f = 1.0 + 10.0 * since + since * since / 4.0;
        let rtt = if self.min_rtt < Span::MAX { in_ticks(self.min_rtt, self.tick) } else { Span::ZERO };
        let scaling = (rtt.as_secs_f64() / REFERENCE_RTT).clamp(SCALING.0, SCALING.1);
        2.0 * (1.0 - self.beta) * (f * scaling + 1e-9).floor().max(1.0)
    }

    /// Adaptive backoff and its bandwidth switch.
    fn find_beta(&mut self) {
        let before = std::mem::replace(&mut self.congested_throughput, self.throughput);
        let steady = (self.throughput - before).abs() <= SWITCH * before;
        let adaptive = steady && self.steady && self.min_rtt > ADAPTIVE_FROM && self.max_rtt >= self.min_rtt;
        self.steady = steady;
        self.beta = BETA.0;
        if adaptive {
            let [min, max] = [self.min_rtt, self.max_rtt].map(|rtt| in_ticks(rtt, self.tick).as_secs_f64());
            let ratio = min / max;
            self.beta = (ratio.clamp(BETA.0, BETA.1) * BETA_STEPS).floor() / BETA_STEPS;
        }
    }

    fn measure(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.min_rtt = self.min_rtt.min(rtt);
            self.max_rtt = self.max_rtt.max(rtt);
        }
        self.delivered += ack.delivered;
        if self.round.ends(ack) {
            let seconds = ack.now.saturating_since(self.round_start).as_secs_f64();
            self.throughput = f64::from(self.delivered) / seconds.max(1e-12);
            self.round_start = ack.now;
            self.delivered = 0;
        }
    }
}

impl CongestionControl for Htcp {
    fn on_established(&mut self, _window: &mut Window, start: &Start) {
        self.congestion = start.now;
        self.round_start = start.now;
    }

    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        self.now = ack.now;
        if ack.open {
            self.acked = ack.advanced;
        }
        if !ack.reducing {
            self.measure(ack);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        if window.in_slow_start() {
            window.slow_start(ack.delivered);
            return;
        }
        let acked = std::mem::replace(&mut self.acked, 1);
        if f64::from(window.credit) * self.alpha() >= f64::from(window.cwnd) {
            window.cwnd += 1;
            window.credit = 0;
        } else {
            window.credit += acked;
        }
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        self.find_beta();
        self.congestion = self.now;
        ((f64::from(window.cwnd) * self.beta) as u32).max(window.floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: f64, rtt: Span) -> f64 {
        let mut htcp = Htcp::new(HtcpConfig {}, Span::from_ms(4));
        htcp.now += Span::from_ps((seconds * 1e12) as u64);
        htcp.min_rtt = rtt;
        htcp.alpha()
    }

    /// The draft's f(D) by hand, with beta = 0.5, at an RTT of 100 ms: 1 + 10 + 0.25 after 2 s, 1 + 40 + 4 after 5 s.
    #[test]
    fn increase_grows_with_time_since_congestion() {
        let rtt = Span::from_ms(100);
        assert_eq!([0.5, 1.0, 2.0, 5.0].map(|seconds| after(seconds, rtt)), [1.0, 1.0, 11.0, 45.0]);
        assert_eq!(after(2.0, Span::from_ms(200)), 22.0, "twice as much at twice the RTT");
        assert_eq!(after(2.0, Span::from_us(100)), 1.0, "a tenth of 11.25");
        // Measured on Linux: 3 packets at 20 ms, 2.55 s after a congestion.
        assert_eq!(after(2.55, Span::from_ms(20)), 3.0);
    }

    /// Before any ACK was seen with nothing out of order, each counts for a packet: of six a window of five grows.
    #[test]
    fn first_acks_count_for_a_packet() {
        let (mut htcp, mut window) =
            (Htcp::new(HtcpConfig {}, Span::ZERO), Window { cwnd: 5, ssthresh: 5, ..Window::new(1) });
        let mut grown = || {
            htcp.grow(&mut window, &Ack { delivered: 1, ..Ack::default() });
            window.cwnd
        };
        assert_eq!([(); 6].map(|()| grown()), [5, 5, 5, 5, 5, 6]);
    }

    /// Three congestions at the same throughput: the third one backs off by RTTmin / RTTmax = 20 / 36 in ticks of 4 ms,
    /// that is 71/128.
    #[test]
    fn backoff_adapts_to_a_steady_throughput() {
        let mut htcp = Htcp::new(HtcpConfig {}, Span::from_ms(4));
        let window = Window { cwnd: 272, ssthresh: 2, ..Window::new(1) };
        (htcp.min_rtt, htcp.max_rtt, htcp.throughput) = (Span::from_ms(20), Span::from_ms(33), 8000.0);
        let seen = [(); 3].map(|()| htcp.ssthresh(&window, false));
        assert_eq!(seen, [136, 136, 150]);
        htcp.throughput = 9700.0;
        assert_eq!(htcp.ssthresh(&window, false), 136, "the throughput has changed by more than a fifth");
    }
}
