//! NewReno: additive increase, multiplicative decrease (RFC 5681, section 3.1; RFC 6582).
//!
//! Loss recovery itself is the endpoint's and uses SACK; what is left of NewReno here is how the window moves.

use super::{Ack, CongestionControl, ControllerConfig, Window};
use firstlight_units::Span;

/// NewReno has no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct NewRenoConfig {}

impl ControllerConfig for NewRenoConfig {
    const LINUX: Option<&'static str> = Some("reno");
    const TAKES_MIN_WINDOW: bool = true;
}

/// The state of NewReno: none but the window.
#[derive(Clone, Debug)]
pub struct NewReno {}

impl NewReno {
    /// A controller for one connection.
    pub fn new(_config: NewRenoConfig, _tick: Span) -> Self {
        NewReno {}
    }
}

impl CongestionControl for NewReno {
    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        let mut acked = ack.delivered;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
        }
        if acked > 0 {
            window.additive_increase(window.cwnd, acked);
        }
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        (window.cwnd / 2).max(window.floor)
    }
}
