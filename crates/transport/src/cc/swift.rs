//! Swift: the window keeps the fabric's delay at a target (Kumar et al., "Swift: Delay is Simple and Effective for
//! Congestion Control in the Datacenter", SIGCOMM 2020, section 3 and algorithm 1).
//!
//! The delay is the round trip between the interfaces, from their timestamps. Below the target the window grows by ai /
//! cwnd for each packet acknowledged, or by ai if the window is below one packet. Above the target, at most once per
//! round trip, it becomes cwnd max(1 - beta (delay - target) / delay, 1 - max_mdf). A fast recovery and a timeout cost
//! max_mdf; repeated timeouts lead to the least window. With a window below one packet one packet is in flight, and the
//! next one waits for RTT / cwnd.
//!
//! Flows with small windows have a higher target (section 3.5): base + max(0, min(a / sqrt(cwnd) + b, fs_range)), with
//! a = fs_range / (1 / sqrt(fs_min_cwnd) - 1 / sqrt(fs_max_cwnd)) and b = -a / sqrt(fs_max_cwnd). The target's part for
//! the path's hops is in the base, since an endpoint here does not know its path.
//!
//! Left out is the window for the end host's delay: hosts take no time here beside what the interfaces model.
//!
//! The paper's algorithm is not for TCP. Here:
//! - The window grows only while it limits the sender.
//! - After a timeout the endpoint begins with one packet and returns to the algorithm's window as in slow start. There
//!   is no other slow start.
//! - Five timeouts in a row lead to the least window; the paper has no number.
//! - A loss counts as being at the time of the last ACK.

use super::exact::Exact;
use super::{Ack, CongestionControl, ControllerConfig, Window};
use firstlight_units::{Bytes, Span, Time};

/// The least window in packets.
const LEAST: f64 = 0.001;
/// Timeouts in a row that lead there.
const RESET_AFTER: u32 = 5;
/// The least threshold that a loss leaves to the endpoint, in packets. The window falls below it at the next ACK.
const THRESHOLD: u32 = 2;

/// Swift (SIGCOMM'20). Its times are of the hosts' own clocks: `time_scale` does not stretch them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct SwiftConfig {
    /// Target of the round-trip time in the fabric for a large window. Give more than the empty path takes, hops
    /// included: windows fall below a packet otherwise.
    #[cfg_attr(feature = "spec", schemars(extend("x-above" = "0s")))]
    pub base_target: Span,
    /// The most by which the target grows for small windows.
    pub fs_range: Span,
    /// The window in packets at which the target has grown by all of `swift.fs_range`.
    #[cfg_attr(feature = "spec", schemars(range(min = 0.001, max = 1)))]
    pub fs_min_cwnd: f64,
    /// The window in packets below which the target grows.
    #[cfg_attr(feature = "spec", schemars(range(min = 2, max = 1_000_000)))]
    pub fs_max_cwnd: f64,
    /// Additive increase of the window in packets per round trip.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 100)))]
    pub ai: f64,
    /// Factor of decreases.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 1)))]
    pub beta: f64,
    /// Largest share of the window that one decrease takes.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 1)))]
    pub max_mdf: f64,
}

impl Default for SwiftConfig {
    fn default() -> Self {
        SwiftConfig {
            base_target: Span::from_us(25),
            fs_range: Span::from_us(100),
            fs_min_cwnd: 0.1,
            fs_max_cwnd: 100.0,
            ai: 1.0,
            beta: 0.8,
            max_mdf: 0.5,
        }
    }
}

impl ControllerConfig for SwiftConfig {
    const LINUX: Option<&'static str> = None;
    const HAS_OWN_FLOOR: bool = true;
}

/// The state of Swift.
#[derive(Clone, Debug)]
pub struct Swift {
    config: SwiftConfig,
    exact: Exact,
    rtt: Span,
    /// The last delay was below the target.
    below: bool,
    now: Time,
    decreased: Option<Time>,
    /// Timeouts since an ACK came.
    timeouts: u32,
    /// The window that the last loss left, and whether that was a decrease.
    left: (f64, bool),
    /// After a timeout: the window to come back to.
    regrow: Option<f64>,
    /// After a loss: a window that is smaller than the endpoint can fall to.
    small: Option<f64>,
}

impl Swift {
    /// A controller for one connection.
    pub fn new(config: SwiftConfig, _tick: Span) -> Self {
        Swift {
            config,
            exact: Exact::new(),
            rtt: Span::ZERO,
            below: false,
            now: Time::ZERO,
            decreased: None,
            timeouts: 0,
            left: (0.0, false),
            regrow: None,
            small: None,
        }
    }

    /// The target delay in picoseconds (section 3.5).
    fn target(&self, cwnd: f64) -> f64 {
        let SwiftConfig { base_target, fs_range, fs_min_cwnd, fs_max_cwnd, .. } = self.config;
        let range = fs_range.as_ps() as f64;
        let a = range / (1.0 / fs_min_cwnd.sqrt() - 1.0 / fs_max_cwnd.sqrt());
        let b = -a / fs_max_cwnd.sqrt();
        base_target.as_ps() as f64 + (a / cwnd.sqrt() + b).min(range).max(0.0)
    }

    fn can_decrease(&self) -> bool {
        self.decreased.is_none_or(|at| self.now.saturating_since(at) >= self.rtt)
    }

    /// The window less the largest decrease.
    fn cut(&self, cwnd: f64) -> f64 {
        (cwnd * (1.0 - self.config.max_mdf)).max(LEAST)
    }

    /// A delay that is not below the target.
    fn decrease(&mut self, window: &mut Window, cwnd: f64, delay: f64, target: f64) {
        let SwiftConfig { beta, max_mdf, .. } = self.config;
        let factor = (1.0 - beta * (delay - target) / delay.max(1.0)).max(1.0 - max_mdf);
        if factor < 1.0 {
            self.exact.set(window, (cwnd * factor).max(LEAST));
            self.decreased = Some(self.now);
            self.regrow = None;
        }
    }

    /// The window that a loss left, where that is too small for the endpoint's threshold.
    fn keep_small(&mut self, window: &mut Window) {
        if let Some(small) = self.small
            && window.cwnd <= THRESHOLD
        {
            self.exact.set(window, small);
        }
    }
}

impl CongestionControl for Swift {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.now = ack.now;
        self.timeouts = 0;
        self.keep_small(window);
        if window.ssthresh == u32::MAX {
            window.ssthresh = window.cwnd.max(THRESHOLD);
        }
        let Some(latency) = ack.latency else { return };
        self.rtt = ack.rtt.unwrap_or(latency.rtt);
        let cwnd = self.exact.of(window);
        let (delay, target) = (latency.rtt.as_ps() as f64, self.target(cwnd));
        self.below = delay < target;
        if !self.below && self.can_decrease() {
            self.decrease(window, cwnd, delay, target);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        self.keep_small(window);
        self.small = None;
        let (cwnd, acked) = (self.exact.of(window), f64::from(ack.delivered));
        if let Some(goal) = self.regrow {
            self.exact.set(window, (cwnd + acked).min(goal).max(cwnd));
            self.regrow = Some(goal).filter(|&goal| cwnd + acked < goal);
        } else if self.below {
            let increase = self.config.ai * acked / cwnd.max(1.0);
            self.exact.set(window, cwnd + increase);
        }
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        let mut cwnd = self.exact.of(window);
        let cut = self.can_decrease();
        if cut {
            cwnd = self.cut(cwnd);
            self.decreased = Some(self.now);
        }
        self.left = (cwnd, cut);
        self.regrow = None;
        self.small = (cwnd < f64::from(THRESHOLD)).then_some(cwnd);
        (cwnd as u32).clamp(THRESHOLD, window.cwnd.max(THRESHOLD))
    }

    fn on_timeout(&mut self, _window: &mut Window) {
        // A timeout is longer than any round trip, whatever the last ACK's time says.
        let (cwnd, cut) = self.left;
        let cwnd = if cut { cwnd } else { self.cut(cwnd) };
        self.small = (cwnd < f64::from(THRESHOLD)).then_some(cwnd);
        self.regrow = Some(cwnd).filter(|_| self.small.is_none());
        self.on_timeout_in_reduction();
    }

    fn on_timeout_in_reduction(&mut self) {
        self.timeouts += 1;
        if self.timeouts >= RESET_AFTER {
            self.small = Some(LEAST);
            self.regrow = None;
        }
    }

    fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        self.small = None;
        self.regrow = None;
        window.cwnd.max(prior_cwnd)
    }

    fn wants_stamps(&self) -> bool {
        true
    }

    fn pace(&mut self, _bytes: Bytes) -> Span {
        let cwnd = self.small.unwrap_or_else(|| self.exact.last());
        if cwnd >= 1.0 || cwnd <= 0.0 {
            return Span::ZERO;
        }
        Span::from_ps((self.rtt.as_ps() as f64 / cwnd) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Latency;

    fn swift() -> Swift {
        Swift::new(SwiftConfig::default(), Span::ZERO)
    }

    fn ack(swift: &mut Swift, window: &mut Window, us: u64, delay_us: u64) {
        let delay = Span::from_us(delay_us);
        let (now, latency) = (Time::ZERO + Span::from_us(us), Some(Latency { one_way: 0, rtt: delay }));
        let (una, next) = (us, us + 10);
        let ack = Ack { now, delivered: 1, rtt: Some(delay), srtt: Some(delay), latency, una, next, ..Ack::default() };
        swift.on_ack(window, &ack);
        swift.grow(window, &ack);
    }

    /// a = 100 / (1 / sqrt(0.1) - 1 / sqrt(100)) = 32.655 us, b = -3.2655 us.
    #[test]
    fn targets_by_hand() {
        let us = |cwnd| swift().target(cwnd) / 1e6;
        assert!((us(100.0) - 25.0).abs() < 1e-6 && (us(400.0) - 25.0).abs() < 1e-6, "{} {}", us(100.0), us(400.0));
        assert!((us(0.1) - 125.0).abs() < 1e-6 && (us(0.01) - 125.0).abs() < 1e-6, "{} {}", us(0.1), us(0.01));
        assert!((us(1.0) - 54.390).abs() < 1e-3, "{}", us(1.0));
        assert!((us(4.0) - 38.062).abs() < 1e-3, "{}", us(4.0));
    }

    /// With a window of 4 the target is 38.06 us: at 50 us 4 (1 - 0.8 * 11.94 / 50) = 3.236; not again within 50 us; at
    /// 500 us the half, 500 us later; and below the target an ACK adds 1 / cwnd.
    #[test]
    fn decreases_and_increases_by_hand() {
        let (mut swift, mut window) = (swift(), Window::new(4));
        ack(&mut swift, &mut window, 100, 50);
        assert!((swift.exact.last() - 3.236).abs() < 1e-3, "{}", swift.exact.last());
        assert_eq!(window.cwnd, 3);
        ack(&mut swift, &mut window, 149, 50);
        assert_eq!(window.cwnd, 3);
        ack(&mut swift, &mut window, 601, 500);
        assert!((swift.exact.last() - 1.618).abs() < 1e-3, "{}", swift.exact.last());
        ack(&mut swift, &mut window, 1_200, 20);
        assert!((swift.exact.last() - 1.618 - 1.0 / 1.618).abs() < 1e-3, "{}", swift.exact.last());
        assert_eq!((window.cwnd, swift.pace(Bytes::new(1500))), (2, Span::ZERO));
    }

    #[test]
    fn below_a_packet_it_paces() {
        let (mut swift, mut window) = (swift(), Window::new(1));
        ack(&mut swift, &mut window, 1_000, 1_000);
        assert_eq!((window.cwnd, swift.exact.last()), (1, 0.5));
        assert_eq!(swift.pace(Bytes::new(1500)), Span::from_us(2_000));
        // A loss leaves a quarter, though the endpoint's threshold is 2, and a fifth timeout the least.
        swift.now += Span::from_us(1_000);
        assert_eq!(swift.ssthresh(&window, false), THRESHOLD);
        assert_eq!(swift.pace(Bytes::new(1500)), Span::from_us(4_000));
        window.cwnd = 2;
        ack(&mut swift, &mut window, 2_001, 1_000);
        assert_eq!(
            (window.cwnd, swift.exact.last()),
            (1, 0.25),
            "at the target's top: the delay cannot decrease it again"
        );
        swift.on_timeout(&mut window);
        (0..4).for_each(|_| swift.on_timeout_in_reduction());
        assert_eq!(swift.pace(Bytes::new(1500)), Span::from_us(1_000_000));
        ack(&mut swift, &mut window, 10_000, 20);
        assert!((swift.exact.last() - 1.001).abs() < 1e-9, "{}", swift.exact.last());
    }

    #[test]
    fn a_timeout_comes_back_to_the_half() {
        let (mut swift, mut window) = (swift(), Window::new(20));
        ack(&mut swift, &mut window, 1_000, 20);
        swift.ssthresh(&window, false);
        swift.on_timeout(&mut window);
        window.cwnd = 1;
        let half = f64::midpoint(20.0, 0.05);
        (0..9).for_each(|i| ack(&mut swift, &mut window, 2_000 + i, 20));
        assert_eq!(window.cwnd, 10);
        ack(&mut swift, &mut window, 3_000, 20);
        assert!((swift.exact.last() - half - 1.0 / half).abs() < 0.11, "{}", swift.exact.last());
    }
}
