//! What a program does with its connection, beside opening and closing it.

use super::Connection;
use super::queue::{Attempt, Send};
use super::reader::ReadRate;
use super::receiver::Refusals;
use super::state::{ConnectionFailure, State};
use firstlight_units::{Bytes, Span, Time};

/// Bytes that a program hands over with one call.
const LONG_CALL: u64 = 1 << 24;
/// Bytes that a program hands over with one call if it is to stop at some time.
const SHORT_CALL: u64 = 1 << 16;

impl Connection {
    /// The program hands over `bytes`; `u64::MAX` never ends. What the buffer has no room for follows when it has.
    /// `now` matters after an idle time (RFC 5681, section 4.1).
    pub fn write(&mut self, bytes: u64, now: Time) {
        self.sender.write(bytes, Send::default(), Some(LONG_CALL), now, &self.terms);
    }

    /// The program hands over `bytes`, its last ones: small segments wait as Nagle's algorithm says until the buffer
    /// has taken all, and no longer (`TCP_NODELAY` after the write). A program that is to stop makes short calls, each
    /// of which pushes its data.
    pub fn write_all(&mut self, bytes: u64, stops: bool, now: Time) {
        self.sender.flushes = true;
        let call = if stops { SHORT_CALL } else { LONG_CALL };
        self.sender.write(bytes, Send::default(), Some(call), now, &self.terms);
    }

    /// The program hands over `bytes`; `how` has the flags of its call.
    pub fn send(&mut self, bytes: u64, how: Send, now: Time) {
        self.sender.write(bytes, how, None, now, &self.terms);
    }

    /// Bytes of writes for which the buffer has had no room yet.
    pub fn unbuffered(&self) -> u64 {
        self.sender.queue.backlog()
    }

    /// The program takes back what the buffer has no room for; returns how many bytes that are.
    pub fn take_back(&mut self) -> u64 {
        self.sender.take_back()
    }

    /// The program has nothing more than what the buffer has taken. Returns how many bytes that are in all.
    pub fn end_write(&mut self) -> u64 {
        self.sender.end_write()
    }

    /// Small segments go out at once, or wait as Nagle's algorithm says (RFC 9293, section 3.7.4).
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.sender.nodelay = nodelay;
        if nodelay {
            self.sender.queue.attempt = Attempt::Pushed;
        }
    }

    /// Parts of segments wait until they are whole, but for at most a timeout.
    pub fn set_cork(&mut self, corked: bool) {
        self.sender.corked = corked;
        if !corked {
            self.sender.queue.attempt = Attempt::Pushed;
        }
    }

    /// The memory of the buffer for what is not acknowledged, in bytes; it is not tuned any more.
    pub fn set_send_buffer(&mut self, bytes: Bytes) {
        self.sender.queue.set_limit(bytes);
    }

    /// The memory of the buffer for what is not acknowledged, in bytes.
    pub fn send_buffer(&self) -> Bytes {
        Bytes::new(self.sender.queue.limit())
    }

    /// How much may be unsent in the buffer before a write waits.
    pub fn set_unsent_limit(&mut self, bytes: Bytes) {
        self.sender.queue.unsent_limit = Some(bytes.get());
    }

    /// From now on the program reads only by [`Connection::read`]. By default it reads everything at once.
    pub fn read_by_calls(&mut self) {
        self.receiver.read_by_calls(None);
    }

    /// From now on the program reads at a rate.
    pub fn read_at(&mut self, rate: ReadRate) {
        self.receiver.read_by_calls(Some(rate));
    }

    /// Whether a program that reads at a rate reads `now`.
    pub fn is_reading(&self, now: Time) -> bool {
        self.receiver.is_reading(now)
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

    /// The memory of the buffer for what arrives, in bytes; it is not tuned any more.
    pub fn set_receive_buffer(&mut self, bytes: Bytes) {
        self.receiver.offer.set_buffer(bytes);
    }

    /// The memory of the buffer for what arrives, in bytes.
    pub fn receive_buffer(&self) -> Bytes {
        self.receiver.offer.buffer()
    }

    /// Whether the program has taken over the connection (`accept`): before, the buffer does not grow. By default it
    /// has.
    pub fn set_accepted(&mut self, accepted: bool) {
        self.receiver.offer.set_accepted(accepted);
    }

    /// Why the connection has failed; the first call takes the reason, later calls find none.
    pub fn take_failure(&mut self) -> Option<ConnectionFailure> {
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
