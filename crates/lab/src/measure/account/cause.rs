//! The causes into which time is divided: one for each picosecond, with where it was and whose packets or which pause
//! it was.

use firstlight_sim::causes::WindowEvent;
use firstlight_transport::Wait;
use firstlight_units::Time;

/// What took the time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Cause {
    Computation,
    Application,
    Reader,
    SynLoss,
    DelayedAck,
    Stack,
    Processor,
    Pacing,
    Notice,
    InterfaceRoom,
    HostPacer,
    RateLimiter,
    InterfaceQueue,
    WindowProbe,
    Timeout,
    TailProbe,
    FastRecovery,
    Reordering,
    Serialization,
    Propagation,
    Queueing,
    PacketSwitch,
    NoCircuit,
    Night,
    DayTooShort,
    Pause,
    Unknown,
}

impl Cause {
    /// How many there are.
    pub(super) const COUNT: usize = Cause::Unknown as usize + 1;

    /// All causes, each at the place of its number.
    pub(super) const ALL: [Cause; Cause::COUNT] = [
        Cause::Computation,
        Cause::Application,
        Cause::Reader,
        Cause::SynLoss,
        Cause::DelayedAck,
        Cause::Stack,
        Cause::Processor,
        Cause::Pacing,
        Cause::Notice,
        Cause::InterfaceRoom,
        Cause::HostPacer,
        Cause::RateLimiter,
        Cause::InterfaceQueue,
        Cause::WindowProbe,
        Cause::Timeout,
        Cause::TailProbe,
        Cause::FastRecovery,
        Cause::Reordering,
        Cause::Serialization,
        Cause::Propagation,
        Cause::Queueing,
        Cause::PacketSwitch,
        Cause::NoCircuit,
        Cause::Night,
        Cause::DayTooShort,
        Cause::Pause,
        Cause::Unknown,
    ];

    /// Whether packets of several flows may be the cause, one after the other.
    pub(super) const fn is_of_packets_ahead(self) -> bool {
        matches!(self, Cause::Queueing | Cause::InterfaceQueue)
    }

    /// The cause as table `account` names it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Cause::Computation => "computation",
            Cause::Application => "application",
            Cause::Reader => "reader",
            Cause::SynLoss => "syn_loss",
            Cause::DelayedAck => "delayed_ack",
            Cause::Stack => "stack",
            Cause::Processor => "processor",
            Cause::Pacing => "pacing",
            Cause::Notice => "notice",
            Cause::InterfaceRoom => "interface_room",
            Cause::HostPacer => "host_pacer",
            Cause::RateLimiter => "rate_limiter",
            Cause::InterfaceQueue => "interface_queue",
            Cause::WindowProbe => "window_probe",
            Cause::Timeout => "rto",
            Cause::TailProbe => "tail_probe",
            Cause::FastRecovery => "fast_recovery",
            Cause::Reordering => "reordering",
            Cause::Serialization => "serialization",
            Cause::Propagation => "propagation",
            Cause::Queueing => "queueing",
            Cause::PacketSwitch => "packet_switch",
            Cause::NoCircuit => "no_circuit",
            Cause::Night => "night",
            Cause::DayTooShort => "day",
            Cause::Pause => "pause",
            Cause::Unknown => "unknown",
        }
    }
}

/// What the flow's next data waited for meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Waiting {
    /// Nothing: the last data were under way.
    Delivery,
    /// A retransmission.
    Repair,
    Handshake,
    Application,
    SendBuffer,
    ReceiveWindow,
    SmallSegment,
    Pacer,
    InterfaceRoom,
    WindowOfStart,
    WindowOfRecovery,
    WindowOfTimeout,
    WindowOfMark,
    WindowOfController,
}

impl Waiting {
    /// What data waited for that a departure has carried.
    pub(super) const fn of(wait: Wait, window: WindowEvent) -> Self {
        match wait {
            Wait::Application => Waiting::Application,
            Wait::Handshake => Waiting::Handshake,
            Wait::ReceiveWindow => Waiting::ReceiveWindow,
            Wait::SendBuffer => Waiting::SendBuffer,
            Wait::SmallSegment => Waiting::SmallSegment,
            Wait::Pacer => Waiting::Pacer,
            Wait::Interface => Waiting::InterfaceRoom,
            Wait::CongestionWindow => Waiting::of_window(window),
        }
    }

    /// Room in the congestion window that this event has set.
    pub(super) const fn of_window(window: WindowEvent) -> Self {
        match window {
            WindowEvent::Start => Waiting::WindowOfStart,
            WindowEvent::Recovery => Waiting::WindowOfRecovery,
            WindowEvent::Timeout => Waiting::WindowOfTimeout,
            WindowEvent::Mark => Waiting::WindowOfMark,
            WindowEvent::Controller => Waiting::WindowOfController,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Waiting::Delivery => "delivery",
            Waiting::Repair => "retransmission",
            Waiting::Handshake => "handshake",
            Waiting::Application => "application",
            Waiting::SendBuffer => "send_buffer",
            Waiting::ReceiveWindow => "receive_window",
            Waiting::SmallSegment => "small_segment",
            Waiting::Pacer => "pacer",
            Waiting::InterfaceRoom => "interface_room",
            Waiting::WindowOfStart => "congestion_window (slow start)",
            Waiting::WindowOfRecovery => "congestion_window (after a fast recovery)",
            Waiting::WindowOfTimeout => "congestion_window (after a timeout)",
            Waiting::WindowOfMark => "congestion_window (after a mark)",
            Waiting::WindowOfController => "congestion_window (set by the controller)",
        }
    }
}

/// Where the time went.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Where {
    /// The cause has no place of its own.
    Nowhere,
    /// The sending or receiving host.
    Host(u16),
    /// A place, by its code.
    Place(u32),
    /// A VOQ, by the racks of its pair.
    Voq(u16, u16),
    /// The VOQ of a pair's mice, where routing is segregated.
    MiceVoq(u16, u16),
}

/// Who was the cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Who {
    Nobody,
    /// Packets of this flow, ACKs included.
    Flow(u32),
    /// Datagrams.
    Datagrams,
    /// Notifications of QCN.
    Notifications,
    /// The pause whose root is this pause point.
    Root(u32),
    /// A pause in a circle of pauses.
    Circle,
    /// Pause frames on the link.
    PauseFrames,
}

/// A part of the time of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) from: Time,
    pub(super) until: Time,
    pub(super) waiting: Waiting,
    pub(super) cause: Cause,
    pub(super) place: Where,
    /// Whose packets took the time; of several flows, the one that took most of it.
    pub(super) who: Who,
    /// How many others' packets stood ahead too.
    pub(super) others: u32,
    /// The departure of the packet that was lost, where a loss is the cause.
    pub(super) lost: Option<usize>,
}
