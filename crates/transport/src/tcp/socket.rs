//! What a program does with its connection, beside opening and closing it.

use super::Connection;
use super::receiver::Refusals;
use super::state::{Failure, State};
use firstlight_units::{Bytes, Span, Time};

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
    pub fn read(&mut self, bytes: u64, now: Time) -> u64 {
        self.receiver.read(bytes, now)
    }

    /// Bytes that have arrived in order and were not read.
    pub fn readable(&self) -> u64 {
        self.receiver.unread()
    }

    /// Whether the peer has sent all that it had, and it has arrived.
    pub fn is_at_end(&self) -> bool {
        self.receiver.has_ended() || self.state == State::Closed
    }

    /// The memory of the buffer for what arrives, in bytes; it is not tuned any more.
    pub fn set_receive_buffer(&mut self, bytes: Bytes) {
        self.receiver.offer.set_buffer(bytes);
    }

    /// The memory of the buffer for what arrives, in bytes.
    pub fn receive_buffer(&self) -> Bytes {
        self.receiver.offer.buffer()
    }

    /// Whether the program has taken over the connection (`accept`): before, the buffer does not grow. By default it has.
    pub fn set_accepted(&mut self, accepted: bool) {
        self.receiver.offer.set_accepted(accepted);
    }

    /// Why the connection has failed; this is told once.
    pub fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// What was not taken in.
    pub fn refusals(&self) -> Refusals {
        self.receiver.refusals
    }

    /// How long data may stay unacknowledged before the connection is given up (RFC 5482); `None`: for ever.
    pub fn set_user_timeout(&mut self, timeout: Option<Span>) {
        self.sender.user_timeout = timeout;
    }
}
