//! How a connection ends: FIN and the states to CLOSED (RFC 9293, section 3.6), resets (section 3.5.2), and the
//! acknowledgements that answer segments which are not acceptable (section 3.10.7.4; RFC 5961).
//!
//! As in Linux a program that closes while it has data to read resets the connection (RFC 2525, section 2.17), and
//! what arrives for a closed socket is answered by a reset. TIME-WAIT, and FIN-WAIT-2 of a closed socket, last 60 s.

use super::state::{ConnectionFailure, State};
use super::timer::{Purpose, Timer};
use super::{Connection, Due};
use firstlight_net::{Packet, TcpFlags, TcpHeader, TcpSegment};
use firstlight_units::{Span, Time};

/// IPv4 and TCP header of a reset, which carries no options.
pub(super) const RESET_HEADER: u16 = 40;
/// How long a connection stays in TIME-WAIT, and in FIN-WAIT-2 when its socket is closed.
const LINGER: Span = Span::from_secs(60);
/// The urgent flag, which has no other name in the simulator.
const URGENT: u8 = 0x20;

/// Whether nothing but ACK and what goes with any segment is set.
#[inline]
pub(super) const fn is_plain(flags: TcpFlags) -> bool {
    let control = TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0 | URGENT;
    flags.0 & (control | TcpFlags::ACK.0) == TcpFlags::ACK.0
}

/// The reset that answers `p` where no connection takes it (RFC 9293, section 3.10.7.1); none for a reset.
pub fn reset_for(p: &Packet) -> Option<Packet> {
    let p = p.tcp().filter(|p| !p.flags().has(TcpFlags::RST))?;
    let tcp = if p.flags().has(TcpFlags::ACK) {
        TcpHeader { seq: p.ack(), flags: TcpFlags::RST, ..TcpHeader::default() }
    } else {
        let control = u32::from(p.flags().has(TcpFlags::SYN)) + u32::from(p.flags().has(TcpFlags::FIN));
        let ack = p.seq().wrapping_add(p.payload()).wrapping_add(control);
        TcpHeader { ack, flags: TcpFlags::RST | TcpFlags::ACK, ..TcpHeader::default() }
    };
    Some(Packet::new_tcp(p.tuple().reversed(), RESET_HEADER as u8, 0, tcp))
}

impl Connection {
    /// The program has nothing more to send, and still reads: a FIN follows the data that it has handed over.
    pub fn shutdown(&mut self, now: Time) {
        let next = match self.state {
            State::Listen | State::SynSent => return self.finish(),
            State::SynReceived => State::SynReceived,
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            _ => return,
        };
        self.state = next;
        self.sender.end_stream(now);
    }

    /// The program closes its socket: a FIN follows the data that it has handed over, or a reset goes out at once when
    /// there are data that it has not read.
    pub fn close(&mut self, now: Time) {
        self.orphan = true;
        if self.receiver.unread() > 0 {
            return self.abort();
        }
        if self.state == State::FinWait2 {
            self.linger(now);
        }
        self.shutdown(now);
    }

    /// Aborts the connection. The peer gets a reset if its SYN has arrived.
    pub fn abort(&mut self) {
        let resets = self.state >= State::SynReceived && self.state != State::TimeWait;
        self.finish();
        if resets {
            self.due = Due::Reset;
        }
    }

    /// The connection has failed.
    pub(super) fn fail(&mut self, why: ConnectionFailure) {
        self.failure = Some(why);
        self.finish();
    }

    /// The connection is over: nothing is sent any more and no timer runs.
    pub(super) fn finish(&mut self) {
        self.state = State::Closed;
        self.due = Due::Nothing;
        self.sender.abandon();
        self.receiver.abandon();
    }

    /// Waits for late packets, then the connection is over.
    fn linger(&mut self, now: Time) {
        self.sender.timer = Timer { purpose: Purpose::Linger, at: now + LINGER };
        self.sender.arm_from = Time::MAX;
    }

    /// A packet that is not an ordinary segment of an established connection.
    #[cold]
    pub(super) fn on_unusual(&mut self, p: TcpSegment<'_>, now: Time) {
        match self.state {
            State::Closed => {}
            State::Listen | State::SynSent | State::SynReceived => self.on_handshake(p, now),
            State::TimeWait => self.on_late_packet(p, now),
            _ => self.on_any_segment(p, now),
        }
    }

    /// A segment after the handshake (RFC 9293, section 3.10.7.4).
    pub(super) fn on_any_segment(&mut self, p: TcpSegment<'_>, now: Time) {
        if p.flags().has(TcpFlags::RST) {
            return self.on_reset(p, now);
        }
        if p.flags().has(TcpFlags::SYN) || !self.receiver.admits(p, &self.terms) {
            return self.challenge(p, now);
        }
        if !p.flags().has(TcpFlags::ACK) {
            return;
        }
        if !self.sender.on_ack(p, now, &self.terms) {
            return self.challenge(p, now);
        }
        self.receiver.on_timestamp(p, &self.terms);
        if self.sender.is_fin_acked() {
            self.on_fin_acked(now);
        }
        if self.orphan && self.state >= State::FinWait1 && self.receiver.is_new(p) {
            // Nobody will read it.
            self.fail(ConnectionFailure::Reset);
            self.due = Due::Refusal(p.ack());
            return;
        }
        let carries = p.is_data() || p.flags().has(TcpFlags::FIN);
        if carries && self.state != State::Closed && self.receiver.on_data(p, now, &self.terms, &self.sender.rtt) {
            self.on_end_of_stream(now);
        }
    }

    /// RFC 5961, section 3.2: a reset ends the connection only at exactly the expected sequence number.
    pub(super) fn on_reset(&mut self, p: TcpSegment<'_>, now: Time) {
        if self.receiver.is_next(p) {
            self.fail(ConnectionFailure::Reset);
        } else if self.receiver.is_in_window(p) {
            self.challenge(p, now);
        }
    }

    /// Acknowledges what was received so far, in answer to a segment that is not acceptable; not too often for
    /// segments without data, as such acknowledgements could answer each other for ever.
    #[cold]
    pub(super) fn challenge(&mut self, p: TcpSegment<'_>, now: Time) {
        let limit = self.terms.stack.challenge_interval;
        if !p.is_data() {
            if self.last_challenge.is_some_and(|last| now.saturating_since(last) < limit) {
                return;
            }
            self.last_challenge = Some(now);
        }
        if self.state == State::SynReceived {
            self.due = Due::HandshakeAck;
        } else {
            self.receiver.on_unacceptable(p, &self.terms);
        }
    }

    /// The peer's FIN and everything before it have arrived.
    #[cold]
    pub(super) fn on_end_of_stream(&mut self, now: Time) {
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => {
                self.state = State::TimeWait;
                self.linger(now);
            }
            _ => {}
        }
        if self.state != State::CloseWait {
            self.receiver.ack_now();
        }
    }

    fn on_fin_acked(&mut self, now: Time) {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.orphan {
                    self.linger(now);
                }
            }
            State::Closing => {
                self.state = State::TimeWait;
                self.linger(now);
            }
            State::LastAck => self.finish(),
            _ => {}
        }
    }

    /// A packet in TIME-WAIT: the peer has missed the acknowledgement of its FIN.
    fn on_late_packet(&mut self, p: TcpSegment<'_>, now: Time) {
        if p.flags().has(TcpFlags::RST) {
            if self.receiver.is_next(p) {
                self.finish();
            }
        } else if p.is_data() || p.flags().0 & (TcpFlags::SYN.0 | TcpFlags::FIN.0) != 0 {
            self.receiver.ack_now();
            self.linger(now);
        }
    }

    /// The sender's timer expired. A program may have said for how long it waits for acknowledgements (RFC 5482).
    pub(super) fn on_sender_timeout(&mut self, now: Time) {
        if self.sender.has_given_up(now) {
            return self.fail(ConnectionFailure::TimedOut);
        }
        self.sender.on_timer(now, &self.terms);
    }
}
