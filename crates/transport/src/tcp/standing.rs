//! What a connection waits for, and which of its timers have expired: for whoever records why packets left when they
//! did.

use super::Connection;
use super::info::{CongestionState, Limited, congestion};
use super::state::State;
use super::timer::Purpose;
use firstlight_units::Time;

/// What the next data of a connection wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Wait {
    /// The program: nothing that was written is unsent.
    #[default]
    Application,
    /// The handshake.
    Handshake,
    /// Room in the congestion window, for a packet or for a burst.
    CongestionWindow,
    /// Room in the receive window.
    ReceiveWindow,
    /// Room in the send buffer.
    SendBuffer,
    /// More data or an ACK, so that a small segment becomes whole (Nagle's algorithm, or a corked socket).
    SmallSegment,
    /// The pacer.
    Pacer,
    /// Packets before them to leave the host's interface (TCP small queues).
    Interface,
}

/// How a connection stands once it has sent all that it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// What the next data wait for.
    pub wait: Wait,
    /// How it stands with congestion.
    pub congestion: CongestionState,
    /// Congestion window in packets.
    pub cwnd: u32,
    /// Slow start threshold in packets; `None` before the first congestion.
    pub ssthresh: Option<u32>,
    /// Packets believed to be in the network.
    pub in_flight: u32,
    /// Segments are known to be lost and were not sent again.
    pub repairs: bool,
}

/// Timers of a connection that have expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Alarms(u8);

impl Alarms {
    /// No timer has expired.
    pub const NONE: Alarms = Alarms(0);
    /// A delayed or compressed ACK is due.
    pub const ACK: Alarms = Alarms(1);
    /// The pacer releases data.
    pub const PACER: Alarms = Alarms(2);
    /// The retransmission timeout.
    pub const RETRANSMISSION: Alarms = Alarms(4);
    /// A tail loss probe is due.
    pub const TAIL_PROBE: Alarms = Alarms(8);
    /// RACK's reordering window has ended.
    pub const REORDERING: Alarms = Alarms(16);
    /// A probe of a closed window is due.
    pub const WINDOW_PROBE: Alarms = Alarms(32);
    /// A SYN or a SYN-ACK is to be sent again.
    pub const SYN: Alarms = Alarms(64);
    /// A packet has left the interface, for which data waited.
    pub const INTERFACE: Alarms = Alarms(128);

    /// Whether one of these has expired.
    pub const fn has(self, alarms: Alarms) -> bool {
        self.0 & alarms.0 != 0
    }

    const fn and(self, expired: bool, alarm: Alarms) -> Alarms {
        Alarms(self.0 | if expired { alarm.0 } else { 0 })
    }
}

impl Connection {
    /// How the connection stands, after [`Connection::transmit`] has yielded nothing more.
    pub fn standing(&self) -> Standing {
        Standing {
            wait: self.wait(),
            congestion: congestion(self.sender.phase),
            cwnd: self.cwnd(),
            ssthresh: self.ssthresh(),
            in_flight: self.in_flight(),
            repairs: self.sender.board.lost() > self.sender.board.retransmitted(),
        }
    }

    fn wait(&self) -> Wait {
        let sender = &self.sender;
        if self.state < State::Established {
            return Wait::Handshake;
        }
        if sender.pacer.wake < Time::MAX {
            return Wait::Pacer;
        }
        if sender.small_queue.waits {
            return Wait::Interface;
        }
        let unsent = sender.written - sender.next;
        if unsent == 0 && sender.board.lost() == sender.board.retransmitted() {
            return if sender.queue.backlog() > 0 { Wait::SendBuffer } else { Wait::Application };
        }
        let mss = u64::from(self.terms.mss);
        if sender.board.in_flight() >= sender.window.cwnd {
            Wait::CongestionWindow
        } else if unsent.min(mss) > sender.send_end() - sender.next || sender.limits.current() == Limited::ByWindow {
            Wait::ReceiveWindow
        } else if unsent < mss {
            Wait::SmallSegment
        } else {
            Wait::CongestionWindow
        }
    }

    /// Which timers have expired, before [`Connection::on_timeout`] is called.
    pub fn alarms(&self, now: Time) -> Alarms {
        let alarms = Alarms::NONE
            .and(self.receiver.policy.deadline() <= now, Alarms::ACK)
            .and(self.sender.pacer.wake <= now, Alarms::PACER)
            .and(self.sender.small_queue.wake <= now, Alarms::INTERFACE);
        if self.sender.timer.at > now {
            return alarms;
        }
        let purpose = match self.sender.timer.purpose {
            _ if matches!(self.state, State::SynSent | State::SynReceived) => Alarms::SYN,
            Purpose::Retransmit => Alarms::RETRANSMISSION,
            Purpose::Probe => Alarms::TAIL_PROBE,
            Purpose::Reorder => Alarms::REORDERING,
            Purpose::WindowProbe => Alarms::WINDOW_PROBE,
            Purpose::Idle | Purpose::Linger => return alarms,
        };
        alarms.and(true, purpose)
    }
}
