//! What a program can ask of its connection, in the terms of Linux's `tcp_info`.

use super::Connection;
use super::sender::Phase;
use firstlight_units::{Span, Time};

/// What a connection waits for while it has data, the strongest reason counting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Limited {
    /// The connection has no data to send.
    Idle,
    /// Data are under way.
    Busy,
    /// The peer's window holds data back.
    ByWindow,
    /// The send buffer holds the program back.
    ByBuffer,
}

/// How long a connection has been limited by what.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    current: Limited,
    since: Time,
    spans: [Span; 4],
}

impl Limits {
    pub(crate) const fn new() -> Self {
        Limits { current: Limited::Idle, since: Time::ZERO, spans: [Span::ZERO; 4] }
    }

    /// From now on `limited` is what the connection waits for.
    #[inline]
    pub(crate) fn set(&mut self, limited: Limited, now: Time) {
        if self.current != limited {
            self.spans[self.current as usize] += now.saturating_since(self.since);
            self.since = now;
            self.current = limited;
        }
    }

    pub(crate) const fn current(&self) -> Limited {
        self.current
    }

    fn span(&self, limited: Limited, now: Time) -> Span {
        let current = if self.current == limited { now.saturating_since(self.since) } else { Span::ZERO };
        self.spans[limited as usize] + current
    }
}

/// How a connection stands with congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CongestionState {
    /// All is well.
    Open,
    /// Something is out of order.
    Disorder,
    /// The window is being reduced for a mark.
    Reduced,
    /// Loss is being repaired.
    Recovery,
    /// The retransmission timer has expired.
    Loss,
}

/// A connection's state of affairs. Counts are of packets, unless they say bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// How it stands with congestion.
    pub congestion: CongestionState,
    /// Congestion window.
    pub cwnd: u32,
    /// Slow start threshold; `None` before the first congestion.
    pub ssthresh: Option<u32>,
    /// Sent and not acknowledged cumulatively.
    pub unacked: u32,
    /// Segments in flight that are known to have arrived out of order.
    pub sacked: u32,
    /// Segments in flight that are taken for lost.
    pub lost: u32,
    /// Segments in flight that were retransmitted and are under way.
    pub retransmitted: u32,
    /// The largest reordering that counts as such.
    pub reordering: u32,
    /// Deliveries out of order that were no losses.
    pub reorderings: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// Smallest round-trip time.
    pub min_rtt: Option<Span>,
    /// Payload bytes of a full segment that it sends.
    pub mss: u32,
    /// Payload bytes of the peer's segments.
    pub peer_mss: u32,
    /// Largest segment that it takes, in bytes.
    pub own_mss: u32,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Time since data arrived last.
    pub since_data: Span,
    /// Probes of a closed window since an ACK arrived.
    pub probes: u32,
    /// Times the timeout was backed off.
    pub backoff: u32,
    /// How long data were unacknowledged or unsent.
    pub busy: Span,
    /// How long the peer's window held data back.
    pub limited_by_window: Span,
    /// How long the send buffer held the program back.
    pub limited_by_buffer: Span,
}

impl Connection {
    /// How the connection stands.
    pub fn info(&self, now: Time) -> Info {
        let (sender, board) = (&self.sender, &self.sender.board);
        let limited = |limited| sender.limits.span(limited, now);
        let (window, buffer) = (limited(Limited::ByWindow), limited(Limited::ByBuffer));
        Info {
            congestion: congestion(sender.phase),
            cwnd: self.cwnd(),
            ssthresh: self.ssthresh(),
            unacked: board.len(),
            sacked: board.sacked() + board.duplicates,
            lost: board.lost(),
            retransmitted: board.retransmitted(),
            reordering: sender.rack.reordering,
            reorderings: sender.stats.reorderings,
            srtt: self.srtt(),
            min_rtt: self.min_rtt(),
            mss: self.terms.mss,
            peer_mss: self.receiver.policy.segment,
            own_mss: u32::from(self.terms.announcement().segment),
            bytes_received: self.bytes_received(),
            since_data: now.saturating_since(self.receiver.policy.last_arrival()),
            probes: sender.window_probes,
            backoff: sender.backoff,
            busy: limited(Limited::Busy) + window + buffer,
            limited_by_window: window,
            limited_by_buffer: buffer,
        }
    }
}

pub(super) fn congestion(phase: Phase) -> CongestionState {
    match phase {
        Phase::Open => CongestionState::Open,
        Phase::Disorder => CongestionState::Disorder,
        Phase::Reduced => CongestionState::Reduced,
        Phase::Recovery => CongestionState::Recovery,
        Phase::Loss => CongestionState::Loss,
    }
}
