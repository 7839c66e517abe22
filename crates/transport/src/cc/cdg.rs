//! CDG: the gradient of the delay is a sign of congestion (Hayes and Armitage, "Revisiting TCP Congestion Control using
//! Delay Gradients", IFIP Networking 2011, section 3).
//!
//! Each round trip has a smallest and a largest RTT. The gradient g of either is its growth since the round before,
//! averaged over a = 8 rounds.
//! - With the probability 1 - exp(-g / G), G = 3 ms, the window backs off to beta = 0.7 of it (equations 1 to 3).
//! - A loss halves the shadow window. It grows as Reno's and ignores the gradient, so that flows that react to losses
//!   alone do not starve this one (equation 5).
//! - If b = 5 backoffs in a row have not made the gradient negative, they do not help: the next 5 are left out.
//!
//! Deviations, measured on Linux 7.2 (`/sys/module/tcp_cdg`: beta 724/1024, window 8, no loss tolerance, shadow
//! window):
//! - Slow start ends by HyStart.
//! - The window never rises at a loss: 271 packets stay 271 where the shadow window is above 542.
//! - There is one draw per round, by the gradient of the smallest RTT if it is positive, else by that of the largest. A
//!   path of 20 ms and 100 Mb/s had 46 backoffs in 60 s, with a mean of 30 rounds of a rising queue between them. 1 /
//!   (1 - exp(-0.12 ms / G)) is 25, and the average lags by some rounds.

use super::draw::Draw;
use super::hystart::HyStart;
use super::round::Round;
use super::{Ack, CongestionControl, ControllerConfig, NewReno, NewRenoConfig, Start, Window};
use firstlight_units::Span;

/// The window's factor at a backoff.
const BETA: f64 = 724.0 / 1024.0;
/// The gradient per round at which the probability of a backoff is 1 - 1/e, in seconds: G.
const SCALE: f64 = 3e-3;
/// Rounds over which gradients are averaged, a.
const AVERAGED: usize = 8;
/// Backoffs without effect, in a row, after which as many are left out.
const INEFFECTIVE: u32 = 5;

/// CAIA delay gradient (Hayes and Armitage, 2011).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct CdgConfig {}

impl ControllerConfig for CdgConfig {
    const LINUX: Option<&'static str> = Some("cdg");
}

/// An RTT per round and the average of its changes.
#[derive(Clone, Copy, Debug, Default)]
struct Gradient {
    last: Option<f64>,
    changes: [f64; AVERAGED],
    next: usize,
}

impl Gradient {
    /// Takes in the next round's RTT in seconds and returns the average change per round.
    fn add(&mut self, rtt: f64) -> f64 {
        if let Some(last) = self.last.replace(rtt) {
            self.changes[self.next] = rtt - last;
            self.next = (self.next + 1) % AVERAGED;
        }
        self.changes.iter().sum::<f64>() / AVERAGED as f64
    }
}

/// The state of CDG.
#[derive(Clone, Debug)]
pub struct Cdg {
    round: Round,
    /// Smallest and largest RTT of this round; the smallest is [`Span::MAX`] before the first sample.
    rtt: (Span, Span),
    smallest: Gradient,
    largest: Gradient,
    /// Backoffs since the gradient was last negative.
    in_vain: u32,
    /// A backoff is due, or begins.
    backs_off: bool,
    /// The last round trip ended with a backoff, whose effect cannot be seen yet.
    just_backed_off: bool,
    /// The window that ignores gradients.
    shadow: f64,
    draw: Draw,
    hystart: HyStart,
    reno: NewReno,
}

/// Equation 2: the probability of a backoff at this average gradient in seconds per round.
fn probability(gradient: f64) -> f64 {
    1.0 - libm::exp(-gradient.max(0.0) / SCALE)
}

impl Cdg {
    /// A controller for one connection.
    pub fn new(_config: CdgConfig, tick: Span) -> Self {
        Cdg {
            round: Round::default(),
            rtt: (Span::MAX, Span::ZERO),
            smallest: Gradient::default(),
            largest: Gradient::default(),
            in_vain: 0,
            backs_off: false,
            just_backed_off: false,
            shadow: 0.0,
            draw: Draw::default(),
            hystart: HyStart::new(),
            reno: NewReno::new(NewRenoConfig {}, tick),
        }
    }

    fn end_round(&mut self, may_back_off: bool) {
        let (smallest, largest) = std::mem::replace(&mut self.rtt, (Span::MAX, Span::ZERO));
        if smallest == Span::MAX {
            return;
        }
        let smallest = self.smallest.add(smallest.as_secs_f64());
        let largest = self.largest.add(largest.as_secs_f64());
        if smallest < 0.0 || largest < 0.0 {
            self.in_vain = 0;
        }
        let gradient = if smallest > 0.0 { smallest } else { largest };
        if std::mem::take(&mut self.just_backed_off) || !may_back_off || !self.draw.happens(probability(gradient)) {
            return;
        }
        self.in_vain = self.in_vain % (2 * INEFFECTIVE) + 1;
        self.backs_off = self.in_vain <= INEFFECTIVE;
    }
}

impl CongestionControl for Cdg {
    fn on_established(&mut self, _window: &mut Window, start: &Start) {
        self.draw = Draw::new(start.seed);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt = (self.rtt.0.min(rtt), self.rtt.1.max(rtt));
        }
        let slow_start = window.in_slow_start();
        if slow_start {
            self.hystart.on_ack(window, ack, true);
        }
        if self.round.ends(ack) {
            self.end_round(!slow_start && ack.open && window.cwnd > window.floor);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        self.shadow += f64::from(ack.delivered) / f64::from(window.cwnd);
        self.reno.grow(window, ack);
    }

    fn backs_off(&mut self) -> bool {
        self.backs_off
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        let cwnd = f64::from(window.cwnd);
        let shadow = self.shadow.max(cwnd);
        if std::mem::take(&mut self.backs_off) {
            self.just_backed_off = true;
            self.shadow = shadow;
            return ((cwnd * BETA) as u32).max(window.floor);
        }
        self.shadow = shadow / 2.0;
        (self.shadow.min(cwnd) as u32).max(window.floor)
    }

    fn on_timeout(&mut self, _window: &mut Window) {
        self.hystart.reset();
        (self.smallest, self.largest) = (Gradient::default(), Gradient::default());
        self.in_vain = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equation 2 by hand: a gradient of G has the probability 1 - 1/e, a falling delay none.
    #[test]
    fn probability_follows_equation_2() {
        assert!((probability(3e-3) - 0.632).abs() < 1e-3);
        assert!((probability(0.12e-3) - 0.0392).abs() < 1e-4);
        assert_eq!(probability(-1e-3), 0.0);
    }

    #[test]
    fn gradient_is_the_average_change_of_eight_rounds() {
        let mut gradient = Gradient::default();
        let averages: Vec<f64> = (0..12).map(|round| gradient.add(f64::from(round))).collect();
        assert_eq!(averages, [0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.0, 1.0, 1.0]);
    }

    /// Rounds of a window whose delay rises by 0.12 ms each until a backoff: 25 on average, and some for the average's
    /// lag.
    #[test]
    fn backoffs_are_as_far_apart_as_their_probability_says() {
        let window = Window { cwnd: 200, ssthresh: 2, ..Window::new(1) };
        let mut rounds = 0;
        for seed in 0..1000 {
            let mut cdg = Cdg::new(CdgConfig {}, Span::ZERO);
            cdg.draw = Draw::new(seed);
            while !cdg.backs_off() {
                rounds += 1;
                cdg.rtt = (Span::from_us(20_000 + 120 * rounds), Span::from_us(20_000 + 120 * rounds));
                cdg.end_round(true);
            }
            assert_eq!(cdg.ssthresh(&window, true), 141, "0.707 of 200");
            assert_eq!(cdg.ssthresh(&Window { cwnd: 180, ..window }, false), 100, "half of the shadow window");
        }
        assert!((27_000..33_000).contains(&rounds), "{rounds} in 1000 trials");
    }

    #[test]
    fn backoffs_in_vain_are_left_out() {
        let mut cdg = Cdg::new(CdgConfig {}, Span::ZERO);
        let due: Vec<bool> = (0..30)
            .map(|second| {
                cdg.rtt = (Span::from_secs(second + 1), Span::from_secs(second + 1));
                cdg.end_round(true);
                std::mem::take(&mut cdg.backs_off)
            })
            .collect();
        // The first round has no gradient; the others, of an eighth of a second and more, are certain to draw a
        // backoff.
        let expected = [[false; 1].as_slice(), &[true; 5], &[false; 5], &[true; 5], &[false; 5]].concat();
        assert_eq!(due[..21], expected);
    }
}
