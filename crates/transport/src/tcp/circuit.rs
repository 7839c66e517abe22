//! Circuits of a reconfigurable network, of which the host is notified directly.

use super::Connection;
use crate::cc::CongestionControl;

impl Connection {
    /// A circuit for this end's data is announced (`up`), or has gone down. Call [`Connection::transmit`] afterwards.
    pub fn on_circuit(&mut self, up: bool) {
        let reducing = self.sender.in_reduction();
        self.sender.cc.on_circuit(&mut self.sender.window, up, reducing);
    }
}
