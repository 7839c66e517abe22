//! HighSpeed TCP: additive increase and multiplicative decrease that depend on the window (RFC 3649).
//!
//! Up to 38 packets it is TCP's. Above, the increase is a(w) packets per round trip and the decrease b(w) (section 5):
//! b(w) = (0.1 - 0.5) (log w - log 38) / (log 83000 - log 38) + 0.5, p(w) = 0.078 / w^1.2, a(w) = w^2 p(w) 2 b(w) / (2
//! - b(w)). Appendix B tabulates both for whole a(w): the window at which a(w) reaches 1, 2, ... 73, and b(w) there.
//!
//! Linux uses the table, and so does this (computed here from the equations). A window between two rows has the values
//! of the next row (measured: 268 packets fall to 168, which is b(347) = 0.37). Linux counts ACKs and not packets in
//! congestion avoidance (measured: 268 packets grow by one in 0.46 windows acknowledged where a(w) = 4 and the receiver
//! acknowledges every second packet), which this does too.

use super::{Ack, CongestionControl, ControllerConfig, Window};
use firstlight_units::Span;

/// Section 5: Low_Window, up to which TCP's own response function holds.
const LOW_WINDOW: f64 = 38.0;
/// Section 5: High_Window, and the decrease there.
const HIGH_WINDOW: f64 = 83_000.0;
const HIGH_DECREASE: f64 = 0.1;

/// HighSpeed TCP (RFC 3649).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct HighSpeedConfig {}

impl ControllerConfig for HighSpeedConfig {
    const LINUX: Option<&'static str> = Some("highspeed");
}

/// The state of HighSpeed TCP.
#[derive(Clone, Debug)]
pub struct HighSpeed {
    /// The row of the table that holds for the window.
    row: Row,
}

/// A row of appendix B's table, for windows from the row before (exclusive) to its own.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// The window of the row before.
    above: f64,
    /// The window of this row.
    upto: f64,
    /// a(w): packets per round trip.
    increase: u32,
    /// b(w): share of the window that congestion costs.
    decrease: f64,
}

/// Section 5: b(w).
fn decrease(w: f64) -> f64 {
    let position = (libm::log(w) - libm::log(LOW_WINDOW)) / (libm::log(HIGH_WINDOW) - libm::log(LOW_WINDOW));
    (HIGH_DECREASE - 0.5) * position + 0.5
}

/// Section 5: a(w).
fn increase(w: f64) -> f64 {
    let p = 0.078 / libm::pow(w, 1.2);
    let b = decrease(w);
    w * w * p * 2.0 * b / (2.0 - b)
}

/// The window at which a(w) is `packets`; that of the first row is the low window.
fn window_of(packets: u32) -> f64 {
    if packets <= 1 {
        return LOW_WINDOW;
    }
    let (mut low, mut high) = (LOW_WINDOW, 2.0 * HIGH_WINDOW);
    while high - low > 0.5 {
        let middle = f64::midpoint(low, high);
        if increase(middle) < f64::from(packets) { low = middle } else { high = middle }
    }
    high.round()
}

impl Row {
    const FIRST: Row = Row { above: 0.0, upto: LOW_WINDOW, increase: 1, decrease: 0.5 };

    /// The row for windows up to `cwnd`; the last one has the largest decrease that section 5 defines.
    fn of(cwnd: u32) -> Row {
        let w = f64::from(cwnd);
        if w <= LOW_WINDOW {
            return Row::FIRST;
        }
        let packets = (increase(w.min(HIGH_WINDOW)).ceil() as u32).max(2);
        let packets = if w > window_of(packets) { packets + 1 } else { packets };
        let upto = window_of(packets);
        let last = w >= HIGH_WINDOW;
        Row {
            above: window_of(packets - 1),
            upto: if last { f64::INFINITY } else { upto },
            increase: packets,
            decrease: decrease(upto.min(HIGH_WINDOW)),
        }
    }
}

impl HighSpeed {
    /// A controller for one connection.
    pub fn new(_config: HighSpeedConfig, _tick: Span) -> Self {
        HighSpeed { row: Row::FIRST }
    }
}

impl CongestionControl for HighSpeed {
    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        if window.in_slow_start() {
            window.slow_start(ack.delivered);
            return;
        }
        let w = f64::from(window.cwnd);
        if w <= self.row.above || w > self.row.upto {
            self.row = Row::of(window.cwnd);
        }
        window.credit += self.row.increase;
        if window.credit >= window.cwnd {
            window.credit -= window.cwnd;
            window.cwnd += 1;
        }
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        let lost = f64::from(window.cwnd) * self.row.decrease;
        (window.cwnd - lost as u32).max(window.floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of RFC 3649, appendix B, which was computed with rounded numbers: to a packet or 0.4 % of the window.
    #[test]
    fn agrees_with_the_table_of_appendix_b() {
        let rows = [(38, 1, 0.50), (118, 2, 0.44), (221, 3, 0.41), (347, 4, 0.38), (495, 5, 0.37), (663, 6, 0.35)];
        let more = [(1058, 8, 0.33), (1529, 10, 0.31), (10661, 30, 0.21), (83_981, 71, 0.10)];
        for (w, a, b) in rows.into_iter().chain(more) {
            let window = window_of(a);
            assert!((window - f64::from(w)).abs() <= (f64::from(w) / 250.0).max(1.0), "a({window}) = {a}, not a({w})");
            let row = Row::of(window as u32 - 1);
            assert_eq!((row.increase, row.upto.min(window)), (a, window));
            assert!((row.decrease - b).abs() < 0.011, "b({w}) = {b}, not {}", row.decrease);
        }
    }

    /// Section 5's response function: at a loss rate of 10^-7 the window is 83,000 packets.
    #[test]
    fn reaches_the_high_window_of_section_5() {
        assert!((0.078 / libm::pow(HIGH_WINDOW, 1.2) - 1e-7).abs() < 3e-9);
        assert!((decrease(HIGH_WINDOW) - 0.1).abs() < 1e-12);
    }
}
