//! Why each packet left when it did: the records from which the time of a flow is divided into causes after the run.
//!
//! A packet leaves its host at a [`Departure`], which names what released the packet: the arrival of another packet, a
//! timer, a write, room in the interface. At the end of each link it passes it makes a [`Hop`]; a queue that drops it
//! makes a [`Loss`]. Each record names the one before it, so that a walk back from any of them finds everything that
//! the packet has waited for. How long it waited in a queue, and behind whose packets, follows from the hops of all
//! packets over the same link: a rate is constant, so a hop's moment gives the moments at which its service began and
//! ended.
//!
//! Simulated connections say themselves what has released a packet. Of external hosts in virtual time the moments of
//! arrivals, writes and departures say it ([`observed`]); the rest is the same.
//!
//! Nothing is recorded, and nothing kept, unless [`crate::Fabric::keep_causes`] was called before the run. Then a hop
//! costs 16 bytes and a departure 32.

mod hops;
mod log;
mod observed;
mod place;
mod spare;

pub use hops::HopLog;
pub use log::{CauseLog, CauseReport};
pub use place::{Place, PlaceKind};

use firstlight_circuits::Action;
use firstlight_net::HostId;
use firstlight_transport::{Alarms, Wait};
use firstlight_units::Time;

/// A reference to a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordId(u32);

/// What a reference refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record {
    /// A reference to nothing: the beginning.
    None,
    /// The hop of this number.
    Hop(usize),
    /// The departure of this number.
    Departure(usize),
}

impl RecordId {
    /// No record.
    pub const NONE: RecordId = RecordId(u32::MAX);
    const DEPARTURE: u32 = 1 << 31;

    fn hop(number: usize) -> Self {
        assert!(number < Self::DEPARTURE as usize, "a run makes at most 2^31 hops while causes are kept");
        RecordId(number as u32)
    }

    fn departure(number: usize) -> Self {
        assert!(number < Self::DEPARTURE as usize - 1, "a run makes at most 2^31 departures while causes are kept");
        RecordId(number as u32 | Self::DEPARTURE)
    }

    /// What it refers to.
    pub const fn record(self) -> Record {
        match self.0 {
            u32::MAX => Record::None,
            number if number & Self::DEPARTURE != 0 => Record::Departure((number & !Self::DEPARTURE) as usize),
            number => Record::Hop(number as usize),
        }
    }
}

/// A packet has come to the end of a link, or of what holds packets back before one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// When the packet came to the end.
    pub at: Time,
    /// The packet's hop before, or its departure.
    pub before: RecordId,
    /// The number of the packet's departure.
    pub departure: u32,
}

/// What released a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Trigger {
    /// The program: it has connected, written or ended.
    #[default]
    Program,
    /// The arrival of a packet.
    Arrival,
    /// A timer of the connection: see [`Departure::alarms`].
    Timer,
    /// Room in the host's interface.
    Room,
    /// A processor of an external host, which has worked since the arrival of a packet.
    Processor,
    /// A notice of a circuit.
    Notice,
    /// The packet is of no simulated host's connection.
    Other,
}

/// What a departure was of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum DepartureKind {
    /// Data of a connection.
    Data,
    /// A SYN or a SYN-ACK.
    Syn,
    /// Another segment without data.
    Ack,
    /// A datagram.
    Datagram,
    /// A notification of QCN, which a switch made.
    Notification,
    /// No packet: a connection began to wait for room in its host's interface.
    Nothing,
}

/// The event that has set a congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum WindowEvent {
    /// The start: the window has only grown since.
    #[default]
    Start,
    /// A loss that was recovered without a timeout.
    Recovery,
    /// A retransmission timeout.
    Timeout,
    /// A congestion mark.
    Mark,
    /// The controller by its own measure, such as delay; or an idle time.
    Controller,
}

/// A packet has left its host's stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// When the packet left.
    pub at: Time,
    /// What released it: the last hop of a packet that arrived; a departure of the same connection that a timer or a
    /// write came after; the departure of nothing since when it waited for room; or nothing.
    pub cause: RecordId,
    /// TCP's sequence number.
    pub seq: u32,
    /// The sending host.
    pub src: HostId,
    /// The receiving host.
    pub dst: HostId,
    /// The sender's port.
    pub sport: u16,
    /// IP length in bytes.
    pub size: u16,
    /// Payload bytes.
    pub payload: u16,
    /// What kind of event released it.
    pub trigger: Trigger,
    /// The timers that had expired.
    pub alarms: Alarms,
    /// What it was.
    pub sent: DepartureKind,
    /// What the connection's data waited for before.
    pub wait: Wait,
    /// What had set the congestion window.
    pub window: WindowEvent,
    /// Segments were known to be lost before, and were not sent again.
    pub repairs: bool,
}

/// A packet was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loss {
    /// When the packet was lost.
    pub at: Time,
    /// The packet's last hop, or its departure.
    pub before: RecordId,
    /// Where the packet was lost.
    pub place: LossPlace,
}

/// A queue, and where else a packet can be lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LossPlace {
    /// In its host's interface, by an injected fault.
    Injected,
    /// At a queue before this place: [`Place::code`].
    Queue(u32),
    /// At a VOQ, by the number of its pair of racks.
    Voq(u32),
    /// At the VOQ of mice, where routing is segregated.
    MiceVoq(u32),
}

/// The receiver of a flow has all bytes of the flow, or of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// When the last bytes arrived.
    pub at: Time,
    /// The flow.
    pub flow: u32,
    /// The last hop of the packet that completed the bytes.
    pub hop: RecordId,
    /// Bytes that the receiver has in order.
    pub bytes: u64,
}

/// A change of a pair of racks by the schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathChange {
    /// When the change happened.
    pub at: Time,
    /// Source rack.
    pub src: u16,
    /// Destination rack.
    pub dst: u16,
    /// What changes.
    pub change: Change,
}

impl PathChange {
    /// What the schedule changes by an action, if it is about the pair's path.
    pub(crate) fn of(action: Action, at: Time, src: usize, dst: usize) -> Option<Self> {
        let change = match action {
            Action::NightBegins => Change::Night,
            Action::DayBegins => Change::Day,
            Action::DayEnds => Change::End,
            Action::Enlarge | Action::Mark | Action::Shrink => return None,
        };
        Some(PathChange { at, src: src as u16, dst: dst as u16, change })
    }
}

/// What the schedule changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// The night before the pair's day begins: its packet path goes off.
    Night,
    /// The pair's day begins.
    Day,
    /// The pair's day ends: its packet path comes back.
    End,
}

/// A pause that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paused {
    /// When the transmitter stopped.
    pub from: Time,
    /// When the pause ended.
    pub until: Time,
    /// The transmitter, by its number among pause points.
    pub transmitter: usize,
    /// The class.
    pub priority: usize,
    /// The egress at the end of the chain of pauses, by its number; none in a circle.
    pub root: Option<usize>,
}
