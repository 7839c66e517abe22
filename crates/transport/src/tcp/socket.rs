//! What a program does with its connection, beside opening and closing it.

use super::Connection;
use super::state::State;
use firstlight_units::{Span, Time};

impl Connection {
    /// The program hands over `bytes`; `u64::MAX` never ends. `now` matters after an idle time (RFC 5681, section 4.1).
    pub fn write(&mut self, bytes: u64, now: Time) {
        self.sender.write(bytes, now, &self.terms);
    }

    /// The program has nothing more than what was sent so far. Returns how many bytes that are.
    pub fn end_write(&mut self) -> u64 {
        self.sender.end_write()
    }

    /// From now on the program reads only by [`Connection::read`]. By default it reads everything at once.
    pub fn read_by_calls(&mut self) {
        self.receiver.read_by_calls();
    }

    /// The program reads at most `bytes`; returns how many there were.
    pub fn read(&mut self, bytes: u64) -> u64 {
        self.receiver.read(bytes)
    }

    /// Bytes that have arrived in order and were not read.
    pub fn readable(&self) -> u64 {
        self.receiver.unread()
    }

    /// Whether the peer has sent all that it had, and it has arrived.
    pub fn is_at_end(&self) -> bool {
        self.receiver.has_ended() || self.state == State::Closed
    }

    /// How long data may stay unacknowledged before the connection is given up (RFC 5482); `None`: for ever.
    pub fn set_user_timeout(&mut self, timeout: Option<Span>) {
        self.sender.user_timeout = timeout;
    }
}
