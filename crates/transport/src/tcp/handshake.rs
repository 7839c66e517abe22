//! How a connection begins: three packets (RFC 9293, section 3.5), what their SYNs announce, and ECN's negotiation
//! (RFC 3168, section 6.1.1).

use super::rtt;
use super::state::{ConnectionFailure, State};
use super::teardown::RESET_HEADER;
use super::terms::{Announcement, LARGEST_SCALE};
use super::timer::{Purpose, Timer, timestamp};
use super::{Connection, Due, Echo};
use crate::cc::{CongestionControl, EcnUse, Start};
use crate::config::EctSyn;
use firstlight_net::{Ecn, Packet, TcpFlags, TcpHeader, TcpSegment};
use firstlight_units::{Bytes, Time};

/// Timeouts of a SYN after the first that are as long as it (`tcp_syn_linear_timeouts`).
const EVEN_TIMEOUTS: u32 = 4;

impl Connection {
    /// Starts the handshake.
    pub fn connect(&mut self, now: Time) {
        if self.state == State::Listen {
            self.state = State::SynSent;
            self.send_syn(now);
        }
    }

    fn wants_ecn(&self) -> bool {
        match self.sender.cc.ecn() {
            EcnUse::Precise => true,
            EcnUse::Classic => self.terms.ecn,
            EcnUse::OwnMeaning => false,
        }
    }

    /// The first timeouts of a SYN are not backed off; those of a SYN-ACK are.
    fn send_syn(&mut self, now: Time) {
        self.due = Due::Syn;
        if self.syn_retries == 0 {
            self.first_syn = now;
        }
        let even = if self.state == State::SynSent { EVEN_TIMEOUTS } else { 0 };
        let backoff = self.syn_retries.saturating_sub(even).min(16);
        let timeout = self.terms.rto_initial.saturating_mul(1 << backoff).min(self.terms.rto_max);
        self.sender.timer = Timer { purpose: Purpose::Retransmit, at: self.sender.ticks.after(now, timeout) };
    }

    /// The SYN, or the SYN-ACK, was not answered in time.
    pub(super) fn on_syn_timeout(&mut self, now: Time) {
        self.syn_retries += 1;
        self.sender.stats.syn_retransmits += 1;
        // As in Linux, for which this is a loss: the first data carry CWR.
        self.sender.cwr_due |= self.state == State::SynSent;
        self.send_syn(now);
    }

    /// A packet before the handshake is complete (RFC 9293, section 3.10.7, SYN-SENT and SYN-RECEIVED).
    pub(super) fn on_handshake(&mut self, p: TcpSegment<'_>, now: Time) {
        match self.state {
            State::Listen if p.flags().has(TcpFlags::SYN) => {
                self.take_in_syn(p, p.flags().has(TcpFlags::ECE | TcpFlags::CWR));
                self.state = State::SynReceived;
                self.send_syn(now);
            }
            State::SynSent => self.on_answer_to_syn(p, now),
            State::SynReceived => self.on_answer_to_syn_ack(p, now),
            _ => {}
        }
    }

    fn on_answer_to_syn(&mut self, p: TcpSegment<'_>, now: Time) {
        let acknowledged = p.flags().has(TcpFlags::ACK);
        if acknowledged && p.ack() != self.sender.map.wire(1) {
            if !p.flags().has(TcpFlags::RST) {
                self.due = Due::Refusal(p.ack());
            }
        } else if p.flags().has(TcpFlags::RST) {
            if acknowledged {
                self.fail(ConnectionFailure::Refused);
            }
        } else if p.flags().has(TcpFlags::SYN) {
            let ecn = acknowledged && p.flags().has(TcpFlags::ECE);
            self.take_in_syn(p, ecn);
            if acknowledged {
                self.establish(p, now);
                // The third packet of the handshake carries no data, even where there are some.
                self.due = Due::HandshakeAck;
            } else {
                // Both ends have called (RFC 9293, section 3.5, figure 7).
                self.state = State::SynReceived;
                self.send_syn(now);
            }
        }
    }

    fn on_answer_to_syn_ack(&mut self, p: TcpSegment<'_>, now: Time) {
        if p.flags().has(TcpFlags::SYN) && self.receiver.is_first(p.seq()) && !p.flags().has(TcpFlags::ACK) {
            self.due = Due::SynAgain;
            return;
        }
        if p.flags().has(TcpFlags::RST) {
            return self.on_reset(p, now);
        }
        if !self.receiver.admits(p, &self.terms) {
            return self.challenge(p, now);
        }
        if !p.flags().has(TcpFlags::ACK) || (p.flags().has(TcpFlags::SYN) && !self.receiver.is_first(p.seq())) {
            return;
        }
        if p.ack() != self.sender.map.wire(1) {
            self.due = Due::Refusal(p.ack());
            return;
        }
        self.establish(p, now);
        if !p.flags().has(TcpFlags::SYN) {
            self.on_segment(p, now);
        }
    }

    /// The peer's SYN: its stream starts, and its announcement settles the terms.
    fn take_in_syn(&mut self, p: TcpSegment<'_>, ecn: bool) {
        let announcement = Announcement::read(p);
        if let Some(peer) = &announcement {
            self.terms.agree(peer);
            self.sender.window_scale = peer.scale.unwrap_or(0).min(LARGEST_SCALE);
        }
        self.receiver.start(p, self.state == State::Listen, &self.terms);
        self.agree_on_ecn(ecn);
        self.sender.on_first_window(p.window());
    }

    fn agree_on_ecn(&mut self, peer: bool) {
        self.sender.ecn = peer && self.wants_ecn();
        self.receiver.echo = match (self.sender.ecn, self.sender.cc.ecn()) {
            (false, _) => Echo::Off,
            (true, EcnUse::Precise) => Echo::Precise,
            (true, _) => Echo::Classic,
        };
    }

    fn establish(&mut self, p: TcpSegment<'_>, now: Time) {
        if self.state == State::SynSent && self.syn_retries > 0 {
            // Linux takes the window for one packet after the timeout, and works the rate out before it begins with
            // ten.
            self.sender.rate = (1, 200);
        }
        self.state = State::Established;
        self.sender.stats.established = Some(now);
        self.due = Due::Nothing;
        self.sender.una = 1;
        self.sender.next = 1;
        self.sender.timer = Timer::IDLE;
        self.sender.arm_from = now;
        self.sender.filled(now);
        self.terms.bound(self.sender.peer_window);
        self.sender.enlarge_buffer(&self.terms);
        self.receiver.establish(now, &self.terms);
        let rtt = match self.syn_retries {
            0 => Some(rtt::since(self.first_syn, now)),
            _ => rtt::echoed(p.tsecr(), now),
        };
        match rtt {
            Some(rtt) => {
                self.sender.rtt.on_sample(rtt, 1, 1, &self.terms);
                self.sender.rtt.on_min_sample(rtt);
            }
            None => self.sender.rtt.fall_back(&self.terms),
        }
        // RFC 6928, section 2: after more than one timeout the first window is one packet. As in Linux not where the
        // peer echoes the first SYN's timestamp: then the timeouts were needless.
        if self.syn_retries > 1 && p.tsecr() != timestamp(self.first_syn) {
            self.sender.window.cwnd = 1;
        }
        let (srtt, packet) =
            (self.sender.rtt.smoothed(), Bytes::new(u64::from(self.terms.mss) + u64::from(self.terms.header)));
        let seed = u64::from(self.sender.map.wire(0));
        self.sender.cc.on_established(&mut self.sender.window, &Start { now, srtt, packet, seed });
        if self.sender.fin {
            self.state = State::FinWait1;
        }
    }

    /// Writes a packet that is neither data nor an acknowledgement of data.
    #[cold]
    pub(super) fn transmit_control(&mut self, now: Time, p: &mut Packet) -> bool {
        match std::mem::replace(&mut self.due, Due::Nothing) {
            Due::Nothing => return false,
            Due::Syn => self.write_syn(p, now, true),
            Due::SynAgain => self.write_syn(p, now, false),
            Due::HandshakeAck => {
                self.write_pure_ack(p, now);
            }
            Due::Reset => {
                self.write_pure_ack(p, now).insert_flags(TcpFlags::RST);
            }
            Due::Refusal(at) => {
                let tcp = TcpHeader { seq: at, flags: TcpFlags::RST, ..TcpHeader::default() };
                p.write_tcp(self.tuple(), RESET_HEADER as u8, tcp);
            }
        }
        true
    }

    fn write_syn(&mut self, p: &mut Packet, now: Time, ecn: bool) {
        let ect = self.is_ecn_capable_syn();
        let mut p = self.write_header(p, self.terms.syn_header(), 0, now);
        self.terms.announcement().write(&mut p);
        p.insert_flags(TcpFlags::SYN);
        if self.state == State::SynReceived {
            self.receiver.write_ack(&mut p, now, &self.terms);
            if self.sender.ecn && ecn {
                p.insert_flags(TcpFlags::ECE);
            }
        } else if self.wants_ecn() && self.syn_retries == 0 {
            // RFC 3168, section 6.1.1.1: a SYN that is sent again does not ask for ECN.
            p.insert_flags(TcpFlags::ECE | TcpFlags::CWR);
        }
        if ect {
            p.set_ecn(Ecn::Ect0);
        }
        // The window of a SYN is never scaled (RFC 7323, section 2.2).
        self.receiver.offer.start();
        p.set_window(self.receiver.offer.unscaled());
    }

    /// Whether the SYN, or the SYN-ACK, is ECN-capable.
    fn is_ecn_capable_syn(&self) -> bool {
        match self.terms.ect_syn {
            // As in Linux the SYN-ACK is ECN-capable also where the peer does not ask for ECN.
            Some(EctSyn::Both) => self.wants_ecn(),
            Some(EctSyn::SynAck) => self.state == State::SynReceived && self.sender.ecn,
            _ => false,
        }
    }
}
