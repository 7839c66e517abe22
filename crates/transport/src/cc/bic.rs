//! BIC: binary search for the window at which packets were last lost (Xu, Harfoush and Rhee, "Binary Increase
//! Congestion Control (BIC) for Fast Long-Distance Networks", INFOCOM 2004, section III).
//!
//! W is the last maximum of the window. Below W the window grows per round trip by a share of the distance to W (binary
//! search increase), but by at most S_max (additive increase), and slowly close to W. Above W it looks for a new
//! maximum, slowly at first. Congestion leaves beta cwnd. W is then the window before, or cwnd (1 + beta) / 2 if the
//! window had not come back to W (fast convergence). Windows of up to 14 packets are Reno's.
//!
//! The paper does not say how windows grow close to W and above it, and its constants are not Linux's. The parameters
//! here are Linux's (`/sys/module/tcp_bic`: beta 819/1024, S_max 16 packets, low window 14, smooth part 20). The
//! increase per round trip, with one packet for each ACK, was measured on Linux 7.2:
//! - below W: (W - cwnd) / 4 in whole packets, at most 16; where that is 1 or less: 4/20 of a packet;
//! - from W on: 4/20 of a packet up to W + 4, then (cwnd - W) / 3, from W + 48 on 16.
//!
//! Each is multiplied by the average number of packets that an ACK acknowledges (weight of the newest ACK: 1/16), which
//! is meant to make up for delayed ACKs. Since the increase counts packets, delayed ACKs double it instead. All numbers
//! are whole, the average in 16ths. The increase is computed anew when the window has changed, and every 1/32 s.

use super::{Ack, CongestionControl, ControllerConfig, Window};
use firstlight_units::{Span, Time};

/// The factor of a window at congestion.
const BETA: f64 = 819.0 / 1024.0;
/// Up to this window BIC is Reno.
const LOW_WINDOW: u32 = 14;
/// The largest increase in packets per round trip, S_max.
const S_MAX: u32 = 16;
/// The divisor of the binary search.
const B: u32 = 4;
/// Round trips in which the window grows by B packets close to W.
const SMOOTH: u32 = 20;
/// The newest ACK is one of so many in the average of packets per ACK.
const ACKS: u32 = 16;

/// BIC (Xu, Harfoush and Rhee, 2004).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct BicConfig {}

impl ControllerConfig for BicConfig {
    const LINUX: Option<&'static str> = Some("bic");
}

/// The state of BIC.
#[derive(Clone, Debug)]
pub struct Bic {
    /// The last maximum, W; 0 when there was none.
    last_max: u32,
    /// Average number of packets that an ACK acknowledges, in 16ths.
    average: u32,
    /// The window for which the increase was found, and the host's tick.
    found: (u32, u64),
    /// Packets acknowledged for each packet of growth.
    per: u32,
    tick: Span,
}

impl Bic {
    /// A controller for one connection on a host whose clock has this tick.
    pub fn new(_config: BicConfig, tick: Span) -> Self {
        let average = 2 * ACKS;
        Bic { last_max: 0, average, found: (0, 0), per: 1, tick }
    }

    /// Packets acknowledged for each packet of growth, if ACKs acknowledge one each.
    fn per_packet(&self, cwnd: u32) -> u32 {
        let close = cwnd * SMOOTH / B;
        if cwnd < self.last_max {
            let step = (self.last_max - cwnd) / B;
            return if step <= 1 { close } else { cwnd / step.min(S_MAX) };
        }
        let above = cwnd - self.last_max;
        if above < B {
            close
        } else if above < S_MAX * (B - 1) {
            cwnd * (B - 1) / above
        } else {
            cwnd / S_MAX
        }
    }

    /// Finds the increase anew where the window has changed, or after 1/32 s.
    fn find_increase(&mut self, cwnd: u32, now: Time) {
        let tick = self.tick.as_ps().max(1);
        let now = now.as_ps() / tick;
        if self.found.0 == cwnd && now - self.found.1 <= Span::from_ms(1000).as_ps() / tick / 32 {
            return;
        }
        self.found = (cwnd, now);
        self.per = if cwnd <= LOW_WINDOW { cwnd } else { (self.per_packet(cwnd) * ACKS / self.average).max(1) };
    }
}

impl CongestionControl for Bic {
    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        if ack.open {
            self.average = self.average + ack.advanced - self.average / ACKS;
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        let mut acked = ack.delivered;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
        }
        if acked > 0 {
            self.find_increase(window.cwnd, ack.now);
            window.additive_increase(self.per, acked);
        }
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        let cwnd = f64::from(window.cwnd);
        let converging = window.cwnd < self.last_max;
        self.last_max = if converging { (cwnd * (1.0 + BETA) / 2.0) as u32 } else { window.cwnd };
        if window.cwnd <= LOW_WINDOW {
            return (window.cwnd / 2).max(window.floor);
        }
        ((cwnd * BETA) as u32).max(window.floor)
    }

    fn on_timeout(&mut self, _window: &mut Window) {
        self.on_timeout_in_reduction();
    }

    fn on_timeout_in_reduction(&mut self) {
        (self.last_max, self.average, self.found) = (0, 2 * ACKS, (0, 0));
    }
}
