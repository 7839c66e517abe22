//! Scalable TCP: a loss event costs an eighth of the window, and every ACK adds a hundredth of a packet (Kelly,
//! "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", ACM CCR 33(2), 2003, section 4).
//!
//! cwnd <- cwnd + a for each packet acknowledged, cwnd <- cwnd (1 - b) at congestion, a = 0.01 and b = 1/8. Below the
//! legacy window the algorithm is TCP's.
//!
//! Deviation: the paper's legacy window is 16 packets. Here it is 1/a = 100, where both rules give the same increase,
//! as in Linux (measured: one packet more per window of packets acknowledged below 100, per 100 packets acknowledged
//! above).

use super::{Ack, CongestionControl, ControllerConfig, Window};
use firstlight_units::Span;

/// Packets acknowledged for each packet of growth, 1/a.
pub(super) const PER_PACKET: u32 = 100;
/// The share of the window that congestion costs, 1/b.
const DECREASE: u32 = 8;

/// Scalable TCP (Kelly, 2003).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct ScalableConfig {}

impl ControllerConfig for ScalableConfig {
    const LINUX: Option<&'static str> = Some("scalable");
}

/// The state of Scalable TCP: none but the window.
#[derive(Clone, Debug)]
pub struct Scalable {}

impl Scalable {
    /// A controller for one connection.
    pub fn new(_config: ScalableConfig, _tick: Span) -> Self {
        Scalable {}
    }
}

impl CongestionControl for Scalable {
    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        let mut acked = ack.delivered;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
        }
        if acked > 0 {
            window.additive_increase(window.cwnd.min(PER_PACKET), acked);
        }
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        (window.cwnd - window.cwnd / DECREASE).max(window.floor)
    }
}
