//! TCP (RFC 9293), sans I/O.
//!
//! A [`Connection`] is driven: call [`Connection::connect`], [`Connection::write`], [`Connection::on_segment`] or
//! [`Connection::on_timeout`] when something happens, then [`Connection::transmit`] until it yields nothing (or
//! [`Connection::has_output`] says that it would), then [`Connection::poll_timeout`] for when to call `on_timeout`
//! next. The halves are in `sender.rs` and `receiver.rs`.

mod burst;
mod latency;
mod offer;
mod pacing;
mod prr;
mod rack;
mod reassembly;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod sender;
mod seq;
#[cfg(test)]
mod tests;
mod timer;

use crate::cc::{CcConfig, CongestionControl, EcnUse};
use crate::config::{Endpoint, HEADER, LATENCY_OPTION, SYN_HEADER, TcpConfig};
use firstlight_net::{Ecn, FlowTuple, Packet, Stamps, TcpFlags, TcpHeader, TcpSegment, TcpSegmentMut};
use firstlight_units::{Span, Time};
use receiver::{Echo, Receiver};
use sender::{Outgoing, Sender};
use timer::{Purpose, Timer, timestamp};

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
    /// Duplicates reported by the receiver.
    pub duplicates: u64,
    /// Deliveries out of order that were no losses.
    pub reorderings: u64,
    /// SYN and SYN-ACK packets sent again.
    pub syn_retransmits: u64,
    /// The time on the host's clock at which the connection was established; `None` before.
    pub established: Option<Time>,
}

/// Where the handshake stands (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// A client before `connect`, or a server that waits.
    Closed,
    SynSent,
    SynReceived,
    Established,
}

/// One end of a TCP connection.
#[derive(Clone, Debug)]
pub struct Connection {
    local: Endpoint,
    remote: Endpoint,
    state: State,
    /// A packet of the handshake is due.
    syn_due: bool,
    syn_sent: Time,
    syn_retries: u32,
    /// Its MTU is without the option for timestamps of the interfaces, where packets carry it,
    config: TcpConfig,
    /// which takes so many bytes.
    option: u16,
    sender: Sender,
    receiver: Receiver,
}

impl Connection {
    /// One end of a connection. The client's calls [`Connection::connect`]; the server's waits for its SYN.
    pub fn new(tcp: &TcpConfig, cc: &CcConfig, local: Endpoint, remote: Endpoint, isn: u32) -> Self {
        let cc = cc.build(tcp.tick);
        let option = if cc.wants_stamps() { LATENCY_OPTION } else { 0 };
        let config = TcpConfig { mtu: tcp.mtu - option, ..*tcp };
        Connection {
            local,
            remote,
            state: State::Closed,
            syn_due: false,
            syn_sent: Time::ZERO,
            syn_retries: 0,
            config,
            option,
            sender: Sender::new(&config, cc, isn),
            receiver: Receiver::new(&config, option > 0),
        }
    }

    /// Starts the handshake.
    pub fn connect(&mut self, now: Time) {
        if self.state == State::Closed {
            self.state = State::SynSent;
            self.send_syn(now);
        }
    }

    /// The application hands over `bytes`; `u64::MAX` never ends. `now` matters after an idle time (RFC 5681, 4.1).
    pub fn write(&mut self, bytes: u64, now: Time) {
        self.sender.write(bytes, now, &self.config);
    }

    /// The application has nothing more than what was sent so far. Tells how many bytes that are.
    pub fn end_write(&mut self) -> u64 {
        self.sender.end_write()
    }

    /// A segment for this connection arrived.
    pub fn on_segment(&mut self, p: TcpSegment<'_>, now: Time) {
        if self.state != State::Established || p.flags().has(TcpFlags::SYN) {
            self.on_handshake(p, now);
            if self.state != State::Established || p.flags().has(TcpFlags::SYN) {
                return;
            }
        }
        if p.flags().has(TcpFlags::ACK) {
            self.sender.on_ack(p, now, &self.config);
        }
        if p.is_data() {
            self.receiver.on_data(p, now, &self.config, &self.sender.rtt);
        }
    }

    /// The time of [`Connection::poll_timeout`] has come. Earlier calls do nothing.
    pub fn on_timeout(&mut self, now: Time) {
        if self.receiver.deadline() <= now {
            self.receiver.ack_now();
        }
        if self.sender.timer.at > now {
            return;
        }
        if self.state == State::Established {
            self.sender.on_timer(now, &self.config);
        } else {
            self.syn_retries += 1;
            self.sender.stats.syn_retransmits += 1;
            self.send_syn(now);
        }
    }

    /// When [`Connection::on_timeout`] is to be called, unless something happens before.
    #[inline]
    pub fn poll_timeout(&mut self) -> Option<Time> {
        self.sender.settle_timer(&self.config);
        let at = self.receiver.deadline().min(self.sender.timer.at).min(self.sender.pacer.wake);
        (at < Time::MAX).then_some(at)
    }

    /// False when [`Connection::transmit`] would yield nothing and need not be called; true when it may yield a packet.
    #[inline]
    pub fn has_output(&self) -> bool {
        self.receiver.wants_ack() || self.sender.has_work() || self.syn_due || self.state != State::Established
    }

    /// Writes the next packet to be put on the wire into `p`, in place; false when there is none (`p` is then
    /// undefined). Call until there is none after each other call.
    pub fn transmit(&mut self, now: Time, p: &mut Packet) -> bool {
        if self.state != State::Established || self.syn_due {
            return self.transmit_handshake(now, p);
        }
        if self.sender.has_work()
            && let Some(out) = self.sender.poll(now, &self.config)
        {
            self.write_data(p, out, now);
            return true;
        }
        if !self.receiver.wants_ack() {
            return false;
        }
        self.write_pure_ack(p, now);
        true
    }

    /// Bytes received in order and handed to the application.
    pub fn bytes_received(&self) -> u64 {
        self.receiver.bytes()
    }

    /// Bytes that the peer has acknowledged.
    pub fn bytes_acked(&self) -> u64 {
        self.sender.una.saturating_sub(1)
    }

    /// True once the handshake is complete on this end.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
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

    /// Writes a segment without payload at stream offset `seq` into `p`.
    #[inline(always)]
    fn write_header<'a>(&self, p: &'a mut Packet, header: u16, seq: u64, now: Time) -> TcpSegmentMut<'a> {
        let (Endpoint { host: src, port: sport }, Endpoint { host: dst, port: dport }) = (self.local, self.remote);
        let tcp = TcpHeader { seq: self.sender.map.wire(seq), tsval: timestamp(now), ..TcpHeader::default() };
        let header = (header + self.option) as u8;
        let mut p = p.write_tcp(FlowTuple { src, sport, dst, dport }, header, tcp);
        if self.option > 0 {
            p.set_stamps(Stamps::default());
        }
        p
    }

    fn write_data(&mut self, p: &mut Packet, out: Outgoing, now: Time) {
        let mut p = self.write_header(p, HEADER, out.start, now);
        p.add_payload(out.len as u16);
        if out.push {
            p.insert_flags(TcpFlags::PSH);
        }
        if self.sender.ecn {
            // RFC 3168, section 6.1.5: retransmissions are not ECN-capable; DCTCP's are.
            if !out.retransmission || self.sender.cc.ecn() == EcnUse::Precise {
                p.set_ecn(Ecn::Ect0);
            }
            if self.sender.cwr_due && !out.retransmission {
                self.sender.cwr_due = false;
                p.insert_flags(TcpFlags::CWR);
            }
        }
        self.receiver.write_ack(&mut p);
    }

    #[inline]
    fn write_pure_ack(&mut self, p: &mut Packet, now: Time) {
        let mut p = self.write_header(p, HEADER, self.sender.next, now);
        if self.sender.ecn && self.sender.cc.ecn() == EcnUse::Precise {
            p.set_ecn(Ecn::Ect0);
        }
        self.receiver.write_ack(&mut p);
    }

    fn wants_ecn(&self) -> bool {
        match self.sender.cc.ecn() {
            EcnUse::Precise => true,
            EcnUse::Classic => self.config.ecn,
            EcnUse::OwnMeaning => false,
        }
    }

    fn send_syn(&mut self, now: Time) {
        self.syn_due = true;
        self.syn_sent = now;
        let timeout = self.config.rto_initial.saturating_mul(1 << self.syn_retries.min(16)).min(self.config.rto_max);
        self.sender.timer = Timer { purpose: Purpose::Retransmit, at: now + timeout };
    }

    /// RFC 9293, section 3.10.7, and RFC 3168, section 6.1.1, for ECN.
    #[cold]
    fn on_handshake(&mut self, p: TcpSegment<'_>, now: Time) {
        let is_syn = p.flags().has(TcpFlags::SYN);
        match self.state {
            State::Closed | State::SynReceived if is_syn => {
                let offered = p.flags().has(TcpFlags::ECE | TcpFlags::CWR);
                self.receiver.start(p.seq(), p.tsval());
                self.agree_on_ecn(offered);
                self.sender.on_first_window(p.window());
                if self.state == State::Closed {
                    self.state = State::SynReceived;
                    self.send_syn(now);
                } else {
                    self.syn_due = true;
                }
            }
            State::SynSent if is_syn && p.flags().has(TcpFlags::ACK) => {
                self.receiver.start(p.seq(), p.tsval());
                self.agree_on_ecn(p.flags().has(TcpFlags::ECE));
                self.establish(now);
                self.sender.on_first_window(p.window());
                // The third packet of the handshake carries no data, even where there are some.
                self.syn_due = true;
            }
            State::SynReceived if p.flags().has(TcpFlags::ACK) => self.establish(now),
            // A SYN-ACK again: our ACK was lost.
            State::Established => self.receiver.ack_now(),
            _ => {}
        }
    }

    fn agree_on_ecn(&mut self, peer: bool) {
        self.sender.ecn = peer && self.wants_ecn();
        self.receiver.echo = match (self.sender.ecn, self.sender.cc.ecn()) {
            (false, _) => Echo::Off,
            (true, EcnUse::Precise) => Echo::Precise,
            (true, _) => Echo::Classic,
        };
    }

    fn establish(&mut self, now: Time) {
        self.state = State::Established;
        self.sender.stats.established = Some(now);
        self.syn_due = false;
        self.sender.una = 1;
        self.sender.next = 1;
        self.sender.timer = Timer::IDLE;
        if self.syn_retries == 0 {
            let rtt = now.saturating_since(self.syn_sent);
            self.sender.rtt.on_sample(rtt, &self.config);
            self.sender.rtt.on_min_sample(rtt);
        }
    }

    #[cold]
    fn transmit_handshake(&mut self, now: Time, p: &mut Packet) -> bool {
        if !std::mem::take(&mut self.syn_due) {
            return false;
        }
        if self.state == State::Established {
            self.write_pure_ack(p, now);
            return true;
        }
        let mut p = self.write_header(p, SYN_HEADER, 0, now);
        p.insert_flags(TcpFlags::SYN);
        if self.state == State::SynReceived {
            self.receiver.write_ack(&mut p);
            if self.sender.ecn {
                p.insert_flags(TcpFlags::ECE);
            }
        } else if self.wants_ecn() {
            p.insert_flags(TcpFlags::ECE | TcpFlags::CWR);
        }
        // The window of a SYN is never scaled (RFC 7323, section 2.2).
        p.set_window(self.receiver.first_window());
        true
    }
}
