//! TCP (RFC 9293), sans I/O.
//!
//! A [`Connection`] is driven: call [`Connection::connect`], [`Connection::write`], [`Connection::close`],
//! [`Connection::on_segment`] or [`Connection::on_timeout`] when something happens, then [`Connection::transmit`] until
//! it yields nothing (or [`Connection::has_output`] says that it would), then [`Connection::poll_timeout`] for when to
//! call `on_timeout` next. The halves are in `sender.rs` and `receiver.rs`, the program's calls in `socket.rs`, the
//! beginning in `handshake.rs` and the end in `teardown.rs`.

mod ack_policy;
mod burst;
mod circuit;
#[cfg(test)]
mod closing_tests;
mod delivery;
mod descent;
mod handshake;
mod info;
mod latency;
mod offer;
mod offer_2012;
mod pacing;
mod probe;
mod prr;
mod queue;
mod rack;
mod reader;
mod reassembly;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod sender;
mod seq;
mod small_queue;
mod socket;
mod standing;
mod state;
mod teardown;
mod terms;
#[cfg(test)]
mod tests;
mod timer;
mod without_sack;

pub use info::{CongestionState, Info};
pub use offer_2012::WINDOW_OF_2012;
pub(crate) use offer_2012::memory_of_2012;
pub(crate) use queue::LARGEST;
pub use queue::Send;
pub use reader::ReadRate;
pub use receiver::Refusals;
pub use standing::{Alarms, Standing, Wait};
pub use state::{ConnectionFailure, State};
pub use teardown::reset_for;
pub use terms::Announcement;

use crate::cc::{CcConfig, CongestionControl, EcnUse};
use crate::config::{Endpoint, TcpConfig};
use firstlight_net::{Ecn, FlowTuple, Packet, Stamps, TcpFlags, TcpHeader, TcpSegment, TcpSegmentMut};
use firstlight_units::{Span, Time};
use receiver::{Echo, Receiver};
use sender::{Outgoing, Sender};
use terms::Terms;
use timer::timestamp;

/// What a connection counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Data packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Data packets sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Loss recoveries entered without a timeout.
    pub recoveries: u64,
    /// Reductions taken back because they were spurious.
    pub undos: u64,
    /// Segments that the receiver reported as duplicates.
    pub duplicates: u64,
    /// Deliveries out of order that were no losses.
    pub reorderings: u64,
    /// SYN and SYN-ACK packets sent again.
    pub syn_retransmits: u64,
    /// The time on the host's clock at which the connection was established; `None` before.
    pub established: Option<Time>,
}

/// A packet that is to be sent besides data and acknowledgements of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    Nothing,
    /// A SYN or a SYN-ACK.
    Syn,
    /// A SYN-ACK that answers a repeated SYN; it does not accept ECN.
    SynAgain,
    /// The third packet of the handshake.
    HandshakeAck,
    /// A reset at the end of what was sent.
    Reset,
    /// A reset at this sequence number, for a peer that acknowledges what was never sent.
    Refusal(u32),
}

/// One end of a TCP connection.
#[derive(Debug)]
pub struct Connection {
    local: Endpoint,
    remote: Endpoint,
    state: State,
    due: Due,
    /// When the first SYN, or SYN-ACK, was sent.
    first_syn: Time,
    syn_retries: u32,
    /// The program has closed its socket: nobody reads what still arrives.
    orphan: bool,
    /// Why the connection has failed.
    failure: Option<ConnectionFailure>,
    /// When the last acknowledgement was sent for a segment that was not acceptable.
    last_challenge: Option<Time>,
    terms: Terms,
    sender: Sender,
    receiver: Receiver,
}

impl Connection {
    /// One end of a connection. The client's calls [`Connection::connect`]; the server's waits for its SYN.
    pub fn new(tcp: &TcpConfig, cc: &CcConfig, local: Endpoint, remote: Endpoint, isn: u32) -> Self {
        let cc = cc.build(tcp.tick);
        let terms = Terms::new(tcp, cc.wants_stamps());
        Connection {
            local,
            remote,
            state: State::Listen,
            due: Due::Nothing,
            first_syn: Time::ZERO,
            syn_retries: 0,
            orphan: false,
            failure: None,
            last_challenge: None,
            sender: Sender::new(&terms, cc, isn),
            receiver: Receiver::new(&terms),
            terms,
        }
    }

    /// A segment is about to arrive, and `more` with data do at the same instant: as the stack takes them all in before
    /// the program runs, the program reads after the last one. To be called for each segment where that may be.
    #[inline]
    pub fn expect_more(&mut self, more: bool) {
        self.receiver.expect_more(more);
    }

    /// A segment for this connection arrived.
    #[inline(always)]
    pub fn on_segment(&mut self, p: TcpSegment<'_>, now: Time) {
        if self.state != State::Established || !teardown::is_plain(p.flags()) {
            return self.on_unusual(p, now);
        }
        if !self.receiver.admits(p, &self.terms) {
            return self.challenge(p, now);
        }
        if !self.sender.is_unchanged_by(p) {
            if !self.sender.on_ack(p, now, &self.terms) {
                return self.challenge(p, now);
            }
            self.terms.bound(self.sender.peer_window);
        }
        self.receiver.on_timestamp(p, &self.terms);
        if p.is_data() && self.receiver.on_data(p, now, &self.terms, &self.sender.rtt) {
            self.on_end_of_stream(now);
        }
    }

    /// The time of [`Connection::poll_timeout`] has come. Returns whether a deadline had come, and
    /// [`Connection::transmit`] is to be called; earlier calls do nothing.
    pub fn on_timeout(&mut self, now: Time) -> bool {
        let acknowledges = self.receiver.deadline() <= now;
        if acknowledges {
            self.receiver.on_timer(now, &self.sender.rtt, &self.terms);
        }
        let expires = self.sender.timer.at <= now;
        if expires {
            match self.state {
                State::SynSent | State::SynReceived => self.on_syn_timeout(now),
                State::FinWait2 | State::TimeWait => self.finish(),
                _ => self.on_sender_timeout(now),
            }
        }
        acknowledges || expires || self.sender.wakes_at() <= now
    }

    /// When [`Connection::on_timeout`] is to be called, unless something happens before.
    #[inline]
    pub fn poll_timeout(&mut self) -> Option<Time> {
        self.sender.settle_timer(&self.terms);
        let at = self.receiver.deadline().min(self.sender.timer.at).min(self.sender.wakes_at());
        (at < Time::MAX).then_some(at)
    }

    /// False when [`Connection::transmit`] would yield nothing and need not be called; true when it may yield a packet.
    #[inline]
    pub fn has_output(&self) -> bool {
        self.receiver.wants_ack() || self.sender.has_work() || self.due != Due::Nothing
    }

    /// Writes the next packet to be put on the wire into `p`, in place; false when there is none (`p` is then
    /// undefined). Call until there is none after each other call.
    pub fn transmit(&mut self, now: Time, p: &mut Packet) -> bool {
        if self.due != Due::Nothing || self.state < State::Established {
            return self.transmit_control(now, p);
        }
        let wants_ack = self.receiver.wants_ack();
        if (!wants_ack || self.sender.has_work())
            && let Some(out) = self.sender.poll(now, &self.terms)
        {
            self.write_data(p, out, now);
            return true;
        }
        if wants_ack {
            self.write_pure_ack(p, now);
        }
        wants_ack
    }

    /// The packet that was written last is in the host's interface, and leaves it at `leaves`; [`Time::MAX`] where that
    /// is not known. To be called before the next [`Connection::transmit`].
    #[inline]
    pub fn on_queued(&mut self, leaves: Time, now: Time) {
        self.sender.small_queue.on_queued(leaves, now);
    }

    /// The oldest packet with payload of which no departure is known has left the host's interface. Returns whether
    /// [`Connection::poll_timeout`] is now: data have waited for that.
    pub fn on_left(&mut self, now: Time) -> bool {
        self.sender.small_queue.on_left(now)
    }

    /// Addresses and ports of packets from this end to the other.
    fn tuple(&self) -> FlowTuple {
        let (Endpoint { host: src, port: sport }, Endpoint { host: dst, port: dport }) = (self.local, self.remote);
        FlowTuple { src, sport, dst, dport }
    }

    /// Writes a segment without payload at stream offset `seq` into `p`.
    #[inline(always)]
    fn write_header<'a>(&self, p: &'a mut Packet, header: u16, seq: u64, now: Time) -> TcpSegmentMut<'a> {
        let tcp = TcpHeader { seq: self.sender.map.wire(seq), tsval: timestamp(now), ..TcpHeader::default() };
        let mut p = p.write_tcp(self.tuple(), header as u8, tcp);
        if self.terms.option > 0 {
            p.set_stamps(Stamps::default());
        }
        p
    }

    fn write_data(&mut self, p: &mut Packet, out: Outgoing, now: Time) {
        self.receiver.policy.on_answer(now);
        if self.terms.small_queues {
            self.sender.small_queue.on_written(self.terms.stack.memory.of(u64::from(out.len)));
        }
        let mut p = self.write_header(p, self.terms.header, out.start, now);
        p.add_payload(out.len as u16);
        p.insert_flags(out.flags);
        if self.sender.ecn && out.len > 0 {
            // RFC 3168, section 6.1.5: retransmissions are not ECN-capable; DCTCP's are.
            if !out.retransmission || self.sender.cc.ecn() == EcnUse::Precise {
                p.set_ecn(Ecn::Ect0);
            }
            if self.sender.cwr_due && !out.retransmission {
                self.sender.cwr_due = false;
                p.insert_flags(TcpFlags::CWR);
            }
        }
        self.receiver.write_ack(&mut p, now, &self.terms);
    }

    fn write_pure_ack<'a>(&mut self, p: &'a mut Packet, now: Time) -> TcpSegmentMut<'a> {
        let mut p = self.write_header(p, self.terms.header, self.sender.next.max(1), now);
        if self.sender.ecn && self.sender.cc.ecn() == EcnUse::Precise {
            p.set_ecn(Ecn::Ect0);
        }
        self.receiver.write_ack(&mut p, now, &self.terms);
        p
    }

    /// Bytes received in order, whether or not the program has read them.
    pub fn bytes_received(&self) -> u64 {
        self.receiver.bytes()
    }

    /// Bytes that the program has read; one that reads at once has read what is in order.
    #[inline]
    pub fn bytes_read(&self) -> u64 {
        self.receiver.bytes_read()
    }

    /// Bytes that the peer has acknowledged.
    pub fn bytes_acked(&self) -> u64 {
        self.sender.bytes_acked()
    }

    /// Whether the handshake is complete on this end and the connection has not ended.
    pub fn is_established(&self) -> bool {
        self.state >= State::Established
    }

    /// The state of the connection (RFC 9293, section 3.3.2).
    pub fn state(&self) -> State {
        self.state
    }

    /// Why the connection has failed; `None` while it has not.
    pub fn failure(&self) -> Option<ConnectionFailure> {
        self.failure
    }

    /// Congestion window in packets.
    pub fn cwnd(&self) -> u32 {
        self.sender.window.cwnd
    }

    /// Slow start threshold in packets; `None` before the first congestion.
    pub fn ssthresh(&self) -> Option<u32> {
        Some(self.sender.window.ssthresh).filter(|&threshold| threshold < u32::MAX)
    }

    /// Packets believed to be in the network.
    pub fn in_flight(&self) -> u32 {
        self.sender.board.in_flight()
    }

    /// Smoothed round-trip time, on the host's clock.
    pub fn srtt(&self) -> Option<Span> {
        self.sender.rtt.smoothed()
    }

    /// Smallest round-trip time, on the host's clock.
    pub fn min_rtt(&self) -> Option<Span> {
        Some(self.sender.rtt.min()).filter(|&rtt| rtt < Span::MAX)
    }

    /// What it has counted.
    pub fn stats(&self) -> &Stats {
        &self.sender.stats
    }
}
