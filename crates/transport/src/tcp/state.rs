//! The states of a connection (RFC 9293, section 3.3.2).

/// The state of a connection. The order is that of a connection's life: from [`State::Established`] on the handshake is
/// complete.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// The connection has ended.
    Closed,
    /// The connection waits for [`crate::Connection::connect`] or for the peer's SYN.
    Listen,
    /// The SYN was sent.
    SynSent,
    /// The SYN-ACK was sent.
    SynReceived,
    /// Data flow both ways.
    Established,
    /// The peer has sent all that it had.
    CloseWait,
    /// This end has closed, or will once all is sent; the peer may still send.
    FinWait1,
    /// The peer has acknowledged this end's FIN.
    FinWait2,
    /// Both ends have closed, this end first or at the same time; its FIN is not acknowledged.
    Closing,
    /// The peer closed first, then this end, whose FIN is not acknowledged.
    LastAck,
    /// Both ends have closed; late packets are still answered.
    TimeWait,
}

impl State {
    /// Whether the program may still hand over data.
    pub const fn may_write(self) -> bool {
        !matches!(
            self,
            State::Closed | State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck | State::TimeWait
        )
    }
}

/// Why a connection has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionFailure {
    /// The peer refused the connection (a reset in answer to the SYN).
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer did not answer for too long.
    TimedOut,
}
