//! A window with its fraction, for controllers whose equations move it by parts of a packet.

use super::Window;

/// The window as a controller computes it. The endpoint's is the whole part of it, and at least 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact(f64);

impl Exact {
    /// A state without a window.
    pub(super) const fn new() -> Self {
        Exact(0.0)
    }

    const fn whole(self) -> u32 {
        // A cast saturates.
        if self.0 < 1.0 { 1 } else { self.0 as u32 }
    }

    /// The window in packets: the one that was set last or, where the endpoint has moved its own since then, that.
    pub(super) fn of(&mut self, window: &Window) -> f64 {
        if self.whole() != window.cwnd || self.0 == 0.0 {
            self.0 = f64::from(window.cwnd);
        }
        self.0
    }

    /// The value that was set last.
    pub(super) const fn last(self) -> f64 {
        self.0
    }

    /// Sets both.
    pub(super) fn set(&mut self, window: &mut Window, packets: f64) {
        self.0 = packets;
        window.cwnd = self.whole();
    }
}
