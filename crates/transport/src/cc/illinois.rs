//! Illinois: queueing delay sets by how much the window grows and shrinks, loss when (Liu, Basar and Srikant,
//! "TCP-Illinois: A loss- and delay-based congestion control algorithm for high-speed networks", Performance Evaluation
//! 65, 2008).
//!
//! With the average queueing delay d of a round trip, its maximum d_m, and d_i = eta_i d_m (eta = 0.01, 0.1, 0.8),
//! section 3.2:
//! - alpha(d) = 10 for d <= d_1, else kappa_1 / (kappa_2 + d), which falls to 0.3 at d_m: packets per round trip;
//! - beta(d) = 1/8 for d <= d_2, 1/2 for d >= d_3, and a straight line in between: the share that a loss costs;
//! - windows below 15 packets have alpha = 1 and beta = 1/2;
//! - alpha goes back to 10 only after theta = 5 round trips with d <= d_1.
//!
//! Measured on Linux 7.2, which has these parameters, and done here:
//! - Delays are counted in microseconds, alpha in whole 128ths and beta in whole 64ths, all rounded down: 11 packets
//!   fall to 6; 244 packets grow by one in 601 packets acknowledged at d = 8.4 ms and d_m = 11.9 ms.
//! - A round trip ends with an ACK that may let the window grow, so that a recovery belongs to one.
//! - What an ACK acknowledges counts for growth, whether it was reported by SACK before or not: the ACK that ends a
//!   recovery may raise the window at once.
//! - The five round trips with an empty queue need not be in a row.
//! - A timeout sets alpha and beta back to those of small windows.

use super::round::Round;
use super::{Ack, CongestionControl, ControllerConfig, Window};
use firstlight_units::{Span, Time};

/// Alpha and beta are counted in such fractions.
const ALPHA_STEPS: u64 = 128;
const BETA_STEPS: u64 = 64;
/// Bounds of alpha in packets per round trip, 0.3 and 10, and of beta, 1/8 and 1/2.
const ALPHA: (u64, u64) = (3 * ALPHA_STEPS / 10, 10 * ALPHA_STEPS);
const BETA: (u64, u64) = (BETA_STEPS / 8, BETA_STEPS / 2);
/// Windows below this many packets grow and shrink as in Reno.
const SMALL_WINDOW: u32 = 15;
/// Round trips with an empty queue until alpha is at its maximum again.
const THETA: u32 = 5;

/// TCP-Illinois (Liu, Basar and Srikant, 2008).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct IllinoisConfig {}

impl ControllerConfig for IllinoisConfig {
    const LINUX: Option<&'static str> = Some("illinois");
}

/// The state of Illinois.
#[derive(Clone, Debug)]
pub struct Illinois {
    /// The increase alpha, in 128ths of a packet.
    alpha: u64,
    /// The decrease beta, in 64ths of the window.
    beta: u64,
    /// The connection's smallest and largest round-trip time in microseconds.
    min_rtt: u64,
    max_rtt: u64,
    round: Round,
    /// Sum of the round's samples of the round-trip time in microseconds, and their number.
    sum: u64,
    samples: u64,
    /// Round trips with an empty queue since alpha left its maximum.
    empty: u32,
    /// Alpha is below its maximum until enough round trips have had an empty queue.
    queued: bool,
    /// The next stream offset to be sent, as of the last ACK.
    next: u64,
}

/// Section 3.2: alpha for an average queueing delay `d` above `d_1`, with a largest of `d_m`, as the fraction that
/// kappa_1 and kappa_2 come to.
fn alpha(d: u64, d_m: u64, d_1: u64) -> u64 {
    let span = d_m - d_1;
    span * ALPHA.1 / (span + (d - d_1) * (ALPHA.1 - ALPHA.0) / ALPHA.0).max(1)
}

/// Section 3.2: beta for an average queueing delay `d`, with a largest of `d_m`.
fn beta(d: u64, d_m: u64) -> u64 {
    let (d_2, d_3) = (d_m / 10, 8 * d_m / 10);
    if d <= d_2 {
        BETA.0
    } else if d >= d_3 || d_3 <= d_2 {
        BETA.1
    } else {
        BETA.0 + (BETA.1 - BETA.0) * (d - d_2) / (d_3 - d_2)
    }
}

impl Illinois {
    /// A controller for one connection.
    pub fn new(_config: IllinoisConfig, _tick: Span) -> Self {
        Illinois {
            alpha: ALPHA.1,
            beta: BETA.1,
            min_rtt: u64::MAX,
            max_rtt: 0,
            round: Round::default(),
            sum: 0,
            samples: 0,
            empty: 0,
            queued: false,
            next: 0,
        }
    }

    fn end_round(&mut self, cwnd: u32) {
        if cwnd < SMALL_WINDOW {
            (self.alpha, self.beta) = (ALPHA_STEPS, BETA.1);
        } else if let Some(mean) = self.sum.checked_div(self.samples) {
            let d = mean.saturating_sub(self.min_rtt);
            let d_m = self.max_rtt - self.min_rtt;
            self.find_alpha(d, d_m);
            self.beta = beta(d, d_m);
        }
        (self.sum, self.samples) = (0, 0);
    }

    fn find_alpha(&mut self, d: u64, d_m: u64) {
        let d_1 = d_m / 100;
        if d > d_1 {
            self.queued = true;
            self.alpha = alpha(d, d_m, d_1);
        } else if self.queued {
            self.empty += 1;
            if self.empty >= THETA {
                (self.queued, self.empty) = (false, 0);
                self.alpha = ALPHA.1;
            }
        } else {
            self.alpha = ALPHA.1;
        }
    }
}

impl CongestionControl for Illinois {
    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        self.next = ack.next;
        if let Some(rtt) = ack.rtt {
            let rtt = (Time::ZERO + rtt).whole_us();
            self.min_rtt = self.min_rtt.min(rtt);
            self.max_rtt = self.max_rtt.max(rtt);
            self.sum += rtt;
            self.samples += 1;
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        if self.round.ends(ack) {
            self.end_round(window.cwnd);
        }
        if window.in_slow_start() {
            window.slow_start(ack.delivered);
            return;
        }
        window.credit += ack.advanced;
        let whole = (u64::from(window.credit) * self.alpha / ALPHA_STEPS) as u32 / window.cwnd;
        if whole > 0 {
            window.cwnd += whole;
            window.credit = 0;
        }
    }

    fn on_unfilled(&mut self, window: &mut Window, ack: &Ack) {
        if self.round.ends(ack) {
            self.end_round(window.cwnd);
        }
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        let lost = (u64::from(window.cwnd) * self.beta / BETA_STEPS) as u32;
        (window.cwnd - lost).max(window.floor)
    }

    fn on_timeout(&mut self, _window: &mut Window) {
        self.on_timeout_in_reduction();
    }

    fn on_timeout_in_reduction(&mut self) {
        (self.alpha, self.beta) = (ALPHA_STEPS, BETA.1);
        (self.queued, self.empty, self.sum, self.samples) = (false, 0, 0, 0);
        self.round.begin(self.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The curves' ends and middles by hand: alpha is 10 at d_1 and nearly 0.3 at d_m; beta is 5/16 halfway.
    #[test]
    fn curves_have_the_values_of_section_3_2() {
        assert_eq!([120, 12_000].map(|d| alpha(d, 12_000, 120)), [1280, 38]);
        assert_eq!([0, 1200, 5400, 9600, 12_000].map(|d| beta(d, 12_000)), [8, 8, 20, 32, 32]);
        // Measured on Linux: 0.41 of a packet.
        assert_eq!(alpha(8400, 11_900, 119), 53);
    }

    /// Measured on Linux: the ACK that ends a recovery of 6 packets raises the window, for SACK had reported six.
    #[test]
    fn what_sack_has_reported_counts() {
        let mut illinois = Illinois::new(IllinoisConfig {}, Span::ZERO);
        let mut window = Window { cwnd: 6, ssthresh: 6, ..Window::new(1) };
        illinois.alpha = ALPHA_STEPS;
        illinois.grow(&mut window, &Ack { delivered: 1, advanced: 7, ..Ack::default() });
        assert_eq!((window.cwnd, window.credit), (7, 0));
    }
}
