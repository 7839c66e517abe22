//! Hybla: windows grow as fast in time on long paths as on one of 25 ms (Caini and Firrincieli, "TCP Hybla: a TCP
//! enhancement for heterogeneous networks", International Journal of Satellite Communications and Networking 22, 2004).
//!
//! With rho = RTT / RTT0, at least 1, each ACK adds 2^rho - 1 packets in slow start and rho^2 / cwnd in congestion
//! avoidance (section 4). Congestion halves the window.
//!
//! Measured on Linux 7.2, and done here:
//! - rho is that of the smallest smoothed RTT, in whole eighths: at 60 ms it is 19/8.
//! - The connection starts with rho packets instead of ten: 1 at an RTT of 20 ms, 4 at 100 ms.
//! - ACKs are counted, as in the paper, and not packets. Where the receiver acknowledges every second packet, that is
//!   half of Reno's increase in congestion avoidance.
//! - In congestion avoidance an ACK adds whole 128ths of a packet, and 1 / cwnd where these are none: at 60 ms 2/128 up
//!   to a window of 361 packets, then 1/128.
//! - ACKs that find packets out of order grow the window as in Reno, and their packets are counted with the others.

use super::newreno::{NewReno, NewRenoConfig};
use super::{Ack, CongestionControl, ControllerConfig, ModuleParameter, Start, Window};
use firstlight_units::Span;

/// The fraction of a packet in which windows grow in congestion avoidance.
const STEPS: f64 = 128.0;
/// The fraction in which rho is counted.
const EIGHTHS: f64 = 8.0;

/// TCP Hybla (Caini and Firrincieli, 2004).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct HyblaConfig {
    /// Connections with a longer round-trip time grow as fast as one with this, on the host's clock.
    #[cfg_attr(feature = "spec", schemars(extend("x-above" = "0s")))]
    pub rtt0: Span,
}

impl Default for HyblaConfig {
    fn default() -> Self {
        HyblaConfig { rtt0: Span::from_ms(25) }
    }
}

impl ControllerConfig for HyblaConfig {
    const LINUX: Option<&'static str> = Some("hybla");

    fn parameters(&self) -> Vec<ModuleParameter> {
        const MS: u64 = 1_000_000_000;
        let value = match self.rtt0.as_ps() {
            ps if ps % MS == 0 => u32::try_from(ps / MS).map_err(|_| "a Linux host takes at most 2^32 - 1 ms".into()),
            _ => Err("a Linux host takes whole milliseconds: write for example \"25ms\"".into()),
        };
        vec![ModuleParameter { value, ..ModuleParameter::new("tcp_hybla", "rtt0", 0u32) }]
    }
}

/// The state of Hybla.
#[derive(Clone, Debug)]
pub struct Hybla {
    rtt0: f64,
    /// Smallest smoothed round-trip time.
    base: Span,
    /// Normalized round-trip time, at least 1.
    rho: f64,
    /// Fractions of a packet that the window has still to grow.
    fraction: f64,
    reno: NewReno,
}

impl Hybla {
    /// A controller for one connection.
    pub fn new(config: HyblaConfig, tick: Span) -> Self {
        let reno = NewReno::new(NewRenoConfig {}, tick);
        Hybla { rtt0: config.rtt0.as_secs_f64(), base: Span::MAX, rho: 1.0, fraction: 0.0, reno }
    }

    fn measure(&mut self, srtt: Option<Span>) {
        if let Some(srtt) = srtt.filter(|&srtt| srtt < self.base) {
            self.base = srtt;
            self.rho = ((EIGHTHS * srtt.as_secs_f64() / self.rtt0).floor() / EIGHTHS).max(1.0);
        }
    }
}

impl CongestionControl for Hybla {
    fn on_established(&mut self, window: &mut Window, start: &Start) {
        self.measure(start.srtt);
        window.cwnd = self.rho as u32;
    }

    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        self.measure(ack.srtt);
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        if !ack.open {
            self.reno.grow(window, ack);
            return;
        }
        let slow_start = window.in_slow_start();
        let increase = if slow_start {
            libm::exp2(self.rho) - 1.0
        } else {
            window.credit += 1;
            (STEPS * self.rho * self.rho / f64::from(window.cwnd)).floor() / STEPS
        };
        self.fraction += increase;
        let mut whole = self.fraction.floor();
        self.fraction -= whole;
        if increase == 0.0 && window.credit >= window.cwnd {
            whole = 1.0;
        }
        if whole > 0.0 {
            window.cwnd = window.cwnd.saturating_add(whole as u32);
            window.credit = 0;
        }
        if slow_start {
            window.cwnd = window.cwnd.min(window.ssthresh);
        }
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        (window.cwnd / 2).max(window.floor)
    }
}
