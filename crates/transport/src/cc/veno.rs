//! Veno: a loss with a short queue is taken for a random one (Fu and Liew, "TCP Veno: TCP Enhancement for Transmission
//! Over Wireless Access Networks", IEEE JSAC 21(2), 2003, section II).
//!
//! N = cwnd (RTT - BaseRTT) / RTT is the number of packets of the flow that wait in queues, as in Vegas. Where N < beta
//! = 3 the path is not congested: the window grows as in Reno, and a loss takes a fifth of it. Otherwise it grows by
//! one packet in two round trips, and a loss takes half.
//!
//! Deviations, as measured on Linux:
//! - The paper smooths the RTT. Here it is the smallest since the last ACK that could raise the window. On a path of 20
//!   ms that carries bursts, whose smallest RTT per round stays at the base, windows above 139 packets grow at half the
//!   pace in many rounds.
//! - Where there is no RTT yet, the whole window counts as waiting.
//! - N is rounded up to halves of a packet.
//! - BaseRTT is forgotten when nothing is in flight.
//! - The window grows as in Reno until the connection has three samples, that of its handshake included, and while
//!   something is lost or out of order.

use super::round::RoundRtt;
use super::{Ack, CongestionControl, ControllerConfig, NewReno, NewRenoConfig, Start, Window};
use firstlight_units::{Span, Time};

/// Packets in queues from which on a path counts as congested.
const BETA: f64 = 3.0;
/// Samples of the connection from which on N is known.
const ENOUGH: u32 = 3;

/// TCP Veno (Fu and Liew, 2003).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct VenoConfig {}

impl ControllerConfig for VenoConfig {
    const LINUX: Option<&'static str> = Some("veno");
}

/// The state of Veno.
#[derive(Clone, Debug)]
pub struct Veno {
    rtt: RoundRtt,
    /// Samples of the connection.
    samples: u32,
    /// Packets that wait in queues, at the last ACK that could raise the window.
    waiting: f64,
    /// The next packet of growth is the one that a congested path admits in two round trips.
    due: bool,
    reno: NewReno,
}

impl Veno {
    /// A controller for one connection.
    pub fn new(_config: VenoConfig, tick: Span) -> Self {
        let reno = NewReno::new(NewRenoConfig {}, tick);
        Veno { rtt: RoundRtt::default(), samples: 0, waiting: 0.0, due: true, reno }
    }

    /// N in started halves of a packet.
    fn waiting_in_halves(&self, cwnd: u32, rtt: Span) -> f64 {
        let [base, rtt] = [self.rtt.base, rtt].map(|time| u128::from(time.as_ps()));
        let halves = 2 * u64::from(cwnd) - (2 * u128::from(cwnd) * base.min(rtt) / rtt) as u64;
        halves as f64 / 2.0
    }

    /// Half of Reno's increase: of two windows that are acknowledged, one makes the window grow.
    fn grow_slowly(&mut self, window: &mut Window, acked: u32) {
        if window.credit < window.cwnd {
            window.credit += acked;
            return;
        }
        window.credit = 0;
        window.cwnd += u32::from(self.due);
        self.due = !self.due;
    }
}

impl CongestionControl for Veno {
    fn on_established(&mut self, _window: &mut Window, start: &Start) {
        if let Some(srtt) = start.srtt {
            self.rtt.add(srtt);
            self.samples = 1;
        }
    }

    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        self.rtt.on_ack(ack);
        self.samples += u32::from(ack.rtt.is_some());
    }

    fn on_resume(&mut self, _now: Time, _last_sent: Time, next: u64) {
        self.rtt.on_resume(next);
        self.due = true;
    }

    fn on_state(&mut self, open: bool, next: u64) {
        self.rtt.on_state(open, next);
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        let rtt = std::mem::replace(&mut self.rtt.min, Span::MAX);
        if !self.rtt.counts || self.samples < ENOUGH {
            return self.reno.grow(window, ack);
        }
        self.waiting = self.waiting_in_halves(window.cwnd, rtt);
        if self.waiting < BETA {
            return self.reno.grow(window, ack);
        }
        let left = if window.in_slow_start() { window.slow_start(ack.delivered) } else { ack.delivered };
        if left > 0 {
            self.grow_slowly(window, left);
        }
    }

    fn ssthresh(&mut self, window: &Window, marked: bool) -> u32 {
        if self.waiting < BETA {
            return (window.cwnd * 4 / 5).max(window.floor);
        }
        self.reno.ssthresh(window, marked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn veno(queueing_us: u64, cwnd: u32) -> (Veno, Window) {
        let (mut veno, mut window) =
            (Veno::new(VenoConfig {}, Span::ZERO), Window { cwnd, ssthresh: 2, ..Window::new(1) });
        let mut ack = |us: u64| {
            let rtt = Some(Span::from_us(us));
            let ack = Ack { delivered: 1, rtt, srtt: rtt, open: true, ..Ack::default() };
            veno.on_ack(&mut window, &ack);
            veno.grow(&mut window, &ack);
        };
        ack(100);
        (0..3 * cwnd).for_each(|_| ack(100 + queueing_us));
        (veno, window)
    }

    /// Section II by hand: with a base of 100 us and 20 packets, N = 20 (1 - 100 / RTT).
    #[test]
    fn backlog_decides_growth_and_decrease() {
        let (mut calm, window) = veno(10, 20);
        assert_eq!(window.cwnd, 22, "N = 1.8: a packet per window of ACKs");
        assert_eq!(calm.ssthresh(&window, false), 17, "four fifths");
        let (mut congested, window) = veno(20, 20);
        assert_eq!(window.cwnd, 21, "N = 3.3: a packet per two windows of ACKs");
        assert_eq!(congested.ssthresh(&window, false), 10, "half");
    }
}
