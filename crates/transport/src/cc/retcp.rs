//! reTCP: TCP for reconfigurable datacenter networks (Mukerjee et al., "Adapting TCP for Reconfigurable Datacenter
//! Networks", NSDI 2020, section 5.3).
//!
//! The switch sets ECN-Echo on ACKs while a circuit is up (or about to come up) for the data's direction. reTCP is an
//! edge detector on that bit: it multiplies the window by alpha when marks begin and by beta when they end, and is
//! NewReno otherwise. ECN is not negotiated: the bit means only this. The paper leaves open what happens to the slow
//! start threshold; here it stays, so that a raised window goes on in congestion avoidance. During a reduction the window is
//! the endpoint's: there the factor goes to the threshold, which is the window that the reduction ends with.

use super::{Ack, CongestionControl, EcnUse, MIN_SSTHRESH, NewReno, NewRenoConfig, Window};
use firstlight_units::Span;

/// Parameters of reTCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReTcpConfig {
    /// The window's factor when a circuit is announced; at least 1.
    pub alpha: f64,
    /// The window's factor when it ends; between 0 and 1.
    pub beta: f64,
}

impl Default for ReTcpConfig {
    fn default() -> Self {
        ReTcpConfig { alpha: 2.0, beta: 0.5 }
    }
}

/// The state of reTCP.
#[derive(Clone, Debug)]
pub struct ReTcp {
    config: ReTcpConfig,
    reno: NewReno,
    circuit: bool,
}

impl ReTcp {
    /// A controller for one connection.
    pub fn new(config: ReTcpConfig, tick: Span) -> Self {
        ReTcp { config, reno: NewReno::new(NewRenoConfig {}, tick), circuit: false }
    }
}

impl CongestionControl for ReTcp {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.ece == self.circuit {
            return;
        }
        self.circuit = ack.ece;
        let factor = if ack.ece { self.config.alpha } else { self.config.beta };
        let moved = if ack.reducing { &mut window.ssthresh } else { &mut window.cwnd };
        // A float-to-integer cast saturates, so that no alpha overflows the window.
        *moved = ((f64::from(*moved) * factor) as u32).max(MIN_SSTHRESH);
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        self.reno.grow(window, ack);
    }

    fn ssthresh(&mut self, window: &Window, marked: bool) -> u32 {
        self.reno.ssthresh(window, marked)
    }

    fn ecn(&self) -> EcnUse {
        EcnUse::OwnMeaning
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An edge that falls into a reduction is not lost: it moves the window that the reduction ends with.
    #[test]
    fn a_reduction_takes_the_factor_into_its_end() {
        let mut retcp = ReTcp::new(ReTcpConfig::default(), Span::from_ms(4));
        let mut window = Window { cwnd: 7, ssthresh: 5, credit: 0 };
        let mut edge = |ece, reducing| {
            let ack = Ack { delivered: 1, ece, reducing, ..Ack::default() };
            retcp.on_ack(&mut window, &ack);
            (window.cwnd, window.ssthresh)
        };
        assert_eq!(edge(true, true), (7, 10));
        assert_eq!(edge(true, true), (7, 10));
        assert_eq!(edge(false, true), (7, 5));
        assert_eq!(edge(true, false), (14, 5));
        assert_eq!(edge(false, true), (14, 2));
    }
}
