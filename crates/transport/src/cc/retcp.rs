//! reTCP: TCP for reconfigurable datacenter networks (Mukerjee et al., "Adapting TCP for Reconfigurable Datacenter
//! Networks", NSDI 2020, section 5.3).
//!
//! The switch sets ECN-Echo on ACKs while a circuit is up (or about to come up) for the data's direction. reTCP is an
//! edge detector on that bit: it multiplies the window by alpha when marks begin and by beta when they end, and is
//! NewReno otherwise. ECN is not negotiated: the bit means only this. The paper leaves open what happens to the slow
//! start threshold; here it stays, so that a raised window goes on in congestion avoidance. During a reduction the
//! window is the endpoint's: there the factor goes to the threshold, which is the window that the reduction ends with.
//!
//! Where hosts are notified of circuits directly, the paper's alternative design, notices take the place of the marks.

use super::{Ack, CongestionControl, ControllerConfig, EcnUse, ModuleParameter, NewReno, NewRenoConfig, Window};
use firstlight_units::Span;

/// Largest factor that the kernel's module takes, in percent.
const MOST_PERCENT: f64 = 10_000.0;

/// reTCP (Etalon, NSDI'20, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct ReTcpConfig {
    /// The factor of the window when a circuit is announced.
    #[cfg_attr(feature = "spec", schemars(range(min = 1, max = 1000)))]
    pub alpha: f64,
    /// The factor of the window when the circuit ends.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 1)))]
    pub beta: f64,
}

impl Default for ReTcpConfig {
    fn default() -> Self {
        ReTcpConfig { alpha: 2.0, beta: 0.5 }
    }
}

impl ControllerConfig for ReTcpConfig {
    const LINUX: Option<&'static str> = Some("retcp");
    const MODULE: Option<&'static str> = Some("retcp.ko");
    /// A circuit's marks come as ECN-Echo, which a kernel heeds only where ECN was negotiated, a lost SYN or not.
    const SYSCTLS: &'static [(&'static str, &'static str)] =
        &[("net.ipv4.tcp_ecn", "1"), ("net.ipv4.tcp_ecn_fallback", "0")];

    fn parameters(&self) -> Vec<ModuleParameter> {
        let percent = |key, factor: f64| {
            let percent = factor * 100.0;
            let value = if percent > MOST_PERCENT {
                Err(format!("a Linux host takes at most {}", MOST_PERCENT / 100.0))
            } else if (percent - percent.round()).abs() > 1e-9 {
                Err(format!("a Linux host takes whole hundredths, not {factor}"))
            } else {
                Ok(percent.round() as u32)
            };
            ModuleParameter { key, module: "retcp", name: key, value }
        };
        vec![percent("alpha", self.alpha), percent("beta", self.beta)]
    }
}

/// The state of reTCP.
#[derive(Clone, Debug)]
pub struct ReTcp {
    config: ReTcpConfig,
    reno: NewReno,
    circuit: bool,
    /// Notices, and not marks, announce circuits.
    notified: bool,
}

impl ReTcp {
    /// A controller for one connection.
    pub fn new(config: ReTcpConfig, tick: Span) -> Self {
        ReTcp { config, reno: NewReno::new(NewRenoConfig {}, tick), circuit: false, notified: false }
    }

    /// A circuit is announced, or is over, if that is new.
    fn on_edge(&mut self, window: &mut Window, up: bool, reducing: bool) {
        if up == self.circuit {
            return;
        }
        self.circuit = up;
        let factor = if up { self.config.alpha } else { self.config.beta };
        let floor = window.floor;
        let moved = if reducing { &mut window.ssthresh } else { &mut window.cwnd };
        // A float-to-integer cast saturates, so that no alpha overflows the window.
        *moved = ((f64::from(*moved) * factor) as u32).max(floor);
    }
}

impl CongestionControl for ReTcp {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if !self.notified {
            self.on_edge(window, ack.ece, ack.reducing);
        }
    }

    fn on_circuit(&mut self, window: &mut Window, up: bool, reducing: bool) {
        self.notified = true;
        self.on_edge(window, up, reducing);
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

    /// A notice has the effect of a mark's edge, and ACKs without marks take nothing back.
    #[test]
    fn notices_take_the_place_of_marks() {
        let mut retcp = ReTcp::new(ReTcpConfig::default(), Span::from_ms(4));
        let mut window = Window { cwnd: 8, ssthresh: 5, ..Window::new(1) };
        retcp.on_circuit(&mut window, true, false);
        retcp.on_ack(&mut window, &Ack { delivered: 1, ..Ack::default() });
        retcp.on_circuit(&mut window, true, false);
        assert_eq!((window.cwnd, window.ssthresh), (16, 5));
        retcp.on_circuit(&mut window, false, true);
        assert_eq!((window.cwnd, window.ssthresh), (16, 2));
    }

    /// An edge that falls into a reduction is not lost: it moves the window that the reduction ends with.
    #[test]
    fn a_reduction_takes_the_factor_into_its_end() {
        let mut retcp = ReTcp::new(ReTcpConfig::default(), Span::from_ms(4));
        let mut window = Window { cwnd: 7, ssthresh: 5, ..Window::new(1) };
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
