//! YeAH: Scalable TCP's increase while the queue is short, Reno's with decongestion while it is not (Baiocchi,
//! Castellani and Vacirca, "YeAH-TCP: Yet Another Highspeed TCP", PFLDnet 2007).
//!
//! Per round trip, from its smallest RTT: Q = (RTT - RTTbase) cwnd / RTT, packets of the flow that wait in queues, and
//! L = (RTT - RTTbase) / RTTbase (section 2).
//! - Fast mode, Q < Q_max = 80 and L < 1/phi = 1/8: Scalable TCP's increase.
//! - Slow mode: Reno's increase. Where Q > Q_max the window falls by Q, at most by half, and not below the window that
//!   a competing Reno flow is estimated to have (precautionary decongestion).
//! - A loss costs Q packets, at least an eighth and at most half of the window, or half of the window after rho = 16
//!   round trips in slow mode.
//! - The estimate of Reno's window grows by a packet per round trip in slow mode and halves at a loss. After zeta = 50
//!   round trips in fast mode there is none; the next slow mode begins with half of the window.
//!
//! Linux has these parameters (measured: 255 packets fall to 174 at Q = 81; then to 189 and 246 where the estimate
//! bounds the fall; 461, 404, 354, 310 packets after losses in fast mode, half of 271 after 27 round trips in slow
//! mode).

use super::round::RoundRtt;
use super::scalable::PER_PACKET;
use super::{Ack, CongestionControl, ControllerConfig, Window};
use firstlight_units::{Span, Time};

/// The longest queue in packets, Q_max.
const MAX_QUEUE: u32 = 80;
/// The inverse of the largest L in fast mode, phi.
const PHI: u64 = 8;
/// The inverse of the least share of the window that a loss in fast mode costs.
const DELTA: u32 = 8;
/// Round trips in slow mode from which on other flows are taken to be Reno's, rho.
const RHO: u32 = 16;
/// Round trips in fast mode from which on no flow is taken to be Reno's, zeta.
const ZETA: u32 = 50;
/// Samples that make a round trip's smallest RTT.
const ENOUGH: u32 = 3;

/// YeAH-TCP (Baiocchi, Castellani and Vacirca, 2007).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct YeahConfig {}

impl ControllerConfig for YeahConfig {
    const LINUX: Option<&'static str> = Some("yeah");
}

/// The state of YeAH.
#[derive(Clone, Debug)]
pub struct Yeah {
    rtt: RoundRtt,
    /// Packets that wait in queues, at the end of the last round trip: Q.
    queue: u32,
    /// Round trips in slow mode since the last one in fast mode; 0 in fast mode.
    slow: u32,
    /// Round trips in fast mode.
    fast: u32,
    /// The window that a Reno flow would have; 2 packets where there is no estimate.
    reno: u32,
}

impl Yeah {
    /// A controller for one connection.
    pub fn new(_config: YeahConfig, _tick: Span) -> Self {
        Yeah { rtt: RoundRtt::default(), queue: 0, slow: 0, fast: 0, reno: 2 }
    }

    fn end_round(&mut self, window: &mut Window) {
        let [min, base] = [self.rtt.min, self.rtt.base].map(Span::as_ps);
        self.queue = (u128::from(window.cwnd) * u128::from(min - base) / u128::from(min)) as u32;
        if self.queue > MAX_QUEUE || (min - base) * PHI > base {
            self.slow_round(window);
        } else {
            self.fast_round(window.floor);
        }
    }

    fn slow_round(&mut self, window: &mut Window) {
        if self.queue > MAX_QUEUE && window.cwnd > self.reno {
            window.cwnd = (window.cwnd - self.queue.min(window.cwnd / 2)).max(self.reno);
            window.ssthresh = window.cwnd;
        }
        self.slow += 1;
        self.reno = if self.reno <= window.floor { (window.cwnd / 2).max(window.floor) } else { self.reno + 1 };
    }

    fn fast_round(&mut self, least: u32) {
        self.slow = 0;
        self.fast += 1;
        if self.fast > ZETA {
            (self.fast, self.reno) = (0, least);
        }
    }
}

impl CongestionControl for Yeah {
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
        let mut acked = ack.delivered;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
        }
        if acked > 0 {
            let per = if self.slow > 0 { window.cwnd } else { window.cwnd.min(PER_PACKET) };
            window.additive_increase(per, acked);
        }
        if self.rtt.ends(ack) {
            if self.rtt.samples >= ENOUGH {
                self.end_round(window);
            }
            self.rtt.begin(ack.next);
        }
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        let half = (window.cwnd / 2).max(window.floor);
        let decrease = if self.slow < RHO { self.queue.min(half).max(window.cwnd / DELTA) } else { half };
        self.fast = 0;
        self.reno = (self.reno / 2).max(window.floor);
        window.cwnd.saturating_sub(decrease).max(window.floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round trip in which every packet of the window is acknowledged.
    fn round(yeah: &mut Yeah, window: &mut Window, rtt_us: u64) {
        let (una, rtt) = (yeah.rtt.end() + 1, Some(Span::from_us(rtt_us)));
        let packets = u64::from(window.cwnd);
        for i in 0..packets {
            let ack =
                Ack { delivered: 1, rtt, srtt: rtt, una: una + i, next: una + packets, open: true, ..Ack::default() };
            yeah.on_ack(window, &ack);
            yeah.grow(window, &ack);
        }
    }

    /// Section 2 by hand. A base of 10 ms: at 11 ms L is 0.1, at 12 ms 0.2; 500 packets at 12 ms leave 83 in the queue.
    #[test]
    fn queue_decides_the_mode() {
        let (mut yeah, mut window) =
            (Yeah::new(YeahConfig {}, Span::ZERO), Window { cwnd: 200, ssthresh: 2, ..Window::new(1) });
        (0..3).for_each(|_| round(&mut yeah, &mut window, 10_000));
        assert_eq!(window.cwnd, 206, "Scalable TCP: a packet for each 100");
        assert_eq!(yeah.ssthresh(&window, false), 206 - 25, "an eighth");
        (0..3).for_each(|_| round(&mut yeah, &mut window, 12_000));
        assert_eq!(window.cwnd, 210, "the rounds after the first one at 12 ms are slow");
        assert_eq!(yeah.reno, 105, "half of the window, and a round more");
        assert_eq!(yeah.ssthresh(&window, false), 210 - 34, "the queue's length");
    }

    #[test]
    fn long_queue_is_drained_before_it_overflows() {
        let (mut yeah, mut window) =
            (Yeah::new(YeahConfig {}, Span::ZERO), Window { cwnd: 500, ssthresh: 2, ..Window::new(1) });
        (0..2).for_each(|_| round(&mut yeah, &mut window, 10_000));
        round(&mut yeah, &mut window, 12_000);
        let before = window.cwnd;
        round(&mut yeah, &mut window, 12_000);
        assert_eq!(window.ssthresh, before - before / 6);
    }
}
