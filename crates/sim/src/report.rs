//! Reports of a fabric, as plain records. Their times are the fabric's own (divided by the time scale).

use crate::conserve::Imbalance;
use firstlight_circuits::RackId;
use firstlight_net::qcn::{CongestionCounts, FlowKey};
use firstlight_net::{Framing, HostId};
use firstlight_units::{Bytes, Rate, Span};

/// The kind of element that a [`PortReport`] describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortKind {
    /// A host's interface, into the network.
    HostNic,
    /// The random part of a sending host's stack.
    SendStack,
    /// The random part of a receiving host's stack.
    ReceiveStack,
    /// The pacer before a host's interface.
    Pacer,
    /// The rate limiters of QCN before a host's interface.
    Limiter,
    /// A host's adapter, where arrived packets wait for the host.
    Adapter,
    /// A switch's port to a host.
    HostPort,
    /// A switch's port to another switch.
    SwitchPort,
    /// A VOQ of a ToR.
    Voq,
    /// A rack's uplink into the packet network.
    Uplink,
    /// A downlink of the packet switch, its input queues included.
    Downlink,
    /// A rack's port of the circuit switch.
    Circuit,
}

impl PortKind {
    /// The kind's name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            PortKind::HostNic => "nic",
            PortKind::SendStack => "send_stack",
            PortKind::ReceiveStack => "receive_stack",
            PortKind::Pacer => "pacer",
            PortKind::Limiter => "limiter",
            PortKind::Adapter => "adapter",
            PortKind::HostPort => "host_port",
            PortKind::SwitchPort => "switch_port",
            PortKind::Voq => "voq",
            PortKind::Uplink => "uplink",
            PortKind::Downlink => "downlink",
            PortKind::Circuit => "circuit",
        }
    }
}

/// Packets of one port, link or queue since the start of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortReport {
    /// `host3.nic`, `host3.adapter`, `host3.port`, `tor0->agg1`, `voq.0.1`, `uplink.0`, `downlink.1`, `circuit.0`.
    pub name: String,
    /// The kind of element.
    pub kind: PortKind,
    /// Packets offered to the port.
    pub offered: u64,
    /// Packets that left at the far end.
    pub delivered: u64,
    /// Packets lost at this port.
    pub dropped: u64,
    /// Packets inside: waiting, in service, in flight.
    pub held: u64,
    /// Packets CE-marked at this port.
    pub marked: u64,
    /// Most packets that ever waited.
    pub peak_queue: u64,
    /// The most bytes that a host's interface and the stages before it held at one time, where that is limited.
    pub peak_bytes: Option<u64>,
    /// Transmissions begun: packet-hops.
    pub hops: u64,
}

impl PortReport {
    /// The report of an element that has counted nothing.
    pub(crate) fn of(kind: PortKind, name: String) -> Self {
        PortReport {
            name,
            kind,
            offered: 0,
            delivered: 0,
            dropped: 0,
            held: 0,
            marked: 0,
            peak_queue: 0,
            peak_bytes: None,
            hops: 0,
        }
    }
}

/// A circuit of one day of a control loop. Its times count from the start of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CircuitReport {
    /// The week, counted from 0.
    pub week: u64,
    /// The day, counted from 0 in its week.
    pub day: usize,
    /// When the circuit was connected.
    pub begins: Span,
    /// When the circuit was disconnected.
    pub ends: Span,
    /// The rack that sent.
    pub src: RackId,
    /// The rack that received.
    pub dst: RackId,
    /// The pair's estimated demand in bytes, when the week was made.
    pub demand: u64,
    /// Bytes sent over it, headers included.
    pub carried: u64,
}

/// Packets of one pair of racks since the start of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PairReport {
    /// Source rack.
    pub src: RackId,
    /// Destination rack.
    pub dst: RackId,
    /// Packets offered to the VOQ.
    pub offered: u64,
    /// Dropped because the VOQ was full, or by RED.
    pub dropped_full: u64,
    /// Dropped from the tail when the VOQ became small.
    pub dropped_shrink: u64,
    /// CE-marked at the VOQ.
    pub marked: u64,
    /// Sent over the circuit.
    pub circuit_packets: u64,
    /// Sent over the packet network.
    pub packet_packets: u64,
    /// Bytes sent over the circuit, headers included.
    pub circuit_bytes: u64,
    /// Bytes sent over the packet network, headers included.
    pub packet_bytes: u64,
    /// Packets that arrived over the packet network before an earlier one of the circuit.
    pub overtakings: u64,
    /// Packets that arrived over the circuit before an earlier one of the packet network.
    pub circuit_overtakings: u64,
    /// Most packets that ever waited in the VOQ.
    pub peak: u64,
    /// Packets waiting in the VOQ now.
    pub held: u64,
}

/// The whole fabric's counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Totals {
    /// Packets handed in by hosts.
    pub injected: u64,
    /// Notifications of congestion sent by switches (QCN).
    pub notified: u64,
    /// Notifications of congestion received by hosts' interfaces, where they end.
    pub taken_in: u64,
    /// Packets handed out to hosts.
    pub exited: u64,
    /// Packets lost to full queues or to a VOQ's shrinking.
    pub dropped: u64,
    /// Packets lost to injected faults.
    pub lost: u64,
    /// Packets inside the fabric.
    pub held: u64,
    /// Packets CE-marked.
    pub marked: u64,
    /// Transmissions over a link: packet-hops.
    pub hops: u64,
    /// Events carried out.
    pub events: u64,
    /// Every identity that does not hold: empty on a valid run.
    pub imbalances: Vec<Imbalance>,
}

/// QCN's counters since the start of the run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QcnReport {
    /// The sum of all congestion points' counters.
    pub sent: CongestionCounts,
    /// Notifications that arrived at their hosts' interfaces.
    pub received: u64,
    /// The sum of their feedback, each 1 to 63.
    pub feedback: u64,
    /// Times that a flow became limited.
    pub limited: u64,
    /// How long flows were limited, summed over all flows.
    pub limited_time: Span,
    /// Changes of rates, also those that were not kept.
    pub changes: u64,
    /// The changes that were kept, in the order of time.
    pub kept: Vec<RateSample>,
}

/// A limited flow's rates from some moment on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// The time since the start of the run.
    pub at: Span,
    /// The sending host.
    pub host: HostId,
    /// The flow.
    pub flow: FlowKey,
    /// The flow's rate.
    pub current: Rate,
    /// The rate that QCN raises the flow's rate to.
    pub target: Rate,
}

/// The record of a watched queue since [`crate::Fabric::reset_meter`].
#[derive(Clone, Debug)]
pub struct QueueReport {
    /// The port's name.
    pub name: String,
    /// The rate of the port's link; `None` of a VOQ, which two networks serve.
    pub rate: Option<Rate>,
    /// The framing that its link adds to each packet.
    pub framing: Framing,
    /// How long the queue was watched.
    pub elapsed: Span,
    /// Packets that were queued; of a VOQ those that left it.
    pub packets: u64,
    /// IP bytes of these packets.
    pub bytes: Bytes,
    /// How long each packet waited until its first bit was sent, in nanoseconds, to three digits. With strict
    /// priorities it is the time that sending all unsent packets would have taken.
    pub waits: hdrhistogram::Histogram<u64>,
    /// The queue over time; empty unless samples were asked for.
    pub samples: Vec<QueueSample>,
}

/// A queue at some moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueSample {
    /// The time since the start of the run.
    pub at: Span,
    /// Packets that wait, the one in service not counted.
    pub packets: u32,
    /// Bytes not yet sent, the rest of the packet in service counted.
    pub bytes: Bytes,
}

/// The pauses of a lossless fabric since the start of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseReport {
    /// Every transmitter that leads to a switch, by class.
    pub ports: Vec<PausedPort>,
    /// The pauses by their causes.
    pub causes: Vec<PauseCause>,
    /// Beginnings and ends of pauses, in order.
    pub events: Vec<PauseEvent>,
    /// Beginnings and ends beyond the most that are kept.
    pub unrecorded: u64,
    /// Packets of lossless classes that were lost.
    pub lost: u64,
    /// Circles of ports that can never resume, at most one for each class.
    pub deadlocks: Vec<DeadlockReport>,
}

/// The pauses of a class of a transmitter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PausedPort {
    /// The transmitter's name: `host3.nic`, `tor0->agg1`.
    pub name: String,
    /// The class; none for all together.
    pub class: Option<u8>,
    /// Whether the class can be paused at all.
    pub lossless: bool,
    /// Packets that the transmitter has begun to send.
    pub packets: u64,
    /// How often the class was paused.
    pub pauses: u64,
    /// How long the class was stopped: from the effect of each pause, or the end of the frame in service then, to its
    /// end.
    pub paused: Span,
    /// How much of this time the first packet was bound for an idle port of the next switch; none where that is not
    /// known.
    pub victim: Option<Span>,
    /// Most bytes that the link's account at the next switch ever held.
    pub peak: u64,
    /// The thresholds of the link's account.
    pub limits: firstlight_net::pfc::PfcLimits,
}

/// Pauses for one cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseCause {
    /// The transmitter that was paused.
    pub name: String,
    /// The class; none for all together.
    pub class: Option<u8>,
    /// The switch that paused it.
    pub switch: String,
    /// The egress for which the account held most.
    pub egress: String,
    /// The last egress of the chain of those that waited for each other; none for a circle.
    pub root: Option<String>,
    /// How many pauses there were.
    pub pauses: u64,
    /// How long the pauses lasted.
    pub paused: Span,
}

/// A pause takes effect or ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseEvent {
    /// The time since the start of the run.
    pub at: Span,
    /// The transmitter that is paused.
    pub name: String,
    /// The class; none for all together.
    pub class: Option<u8>,
    /// Whether the pause begins.
    pub paused: bool,
}

/// Ports that wait for each other without end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadlockReport {
    /// The class of the paused packets; none for all together.
    pub class: Option<u8>,
    /// The circle, each waiting for the next.
    pub ports: Vec<String>,
    /// When the last port of the circle was stopped.
    pub since: Span,
    /// The number of ports that can never resume, including those behind the circle.
    pub stopped: usize,
}

/// The meter's record of its pair since [`crate::Fabric::reset_meter`].
#[derive(Clone, Debug)]
pub struct MeterReport {
    /// How long the meter measured.
    pub elapsed: Span,
    /// Data packets that arrived over the circuit.
    pub circuit: NetworkReport,
    /// Data packets that arrived over the packet network.
    pub packet: NetworkReport,
    /// Packets of the pair that were dropped at its VOQ, ACKs included.
    pub voq_drops: u64,
    /// Packets of the pair that arrived over the packet network before an earlier one of the circuit.
    pub overtakings: u64,
    /// The folded series, if one was asked for.
    pub series: Option<SeriesReport>,
}

/// Data packets of the measured pair over one of the two networks.
#[derive(Clone, Debug)]
pub struct NetworkReport {
    /// Packets that arrived.
    pub packets: u64,
    /// Payload in bytes, retransmissions included.
    pub payload: u64,
    /// From arrival at the VOQ to arrival at the destination's ToR, in nanoseconds, to three digits.
    pub latency: hdrhistogram::Histogram<u64>,
    /// The longest latency, exactly.
    pub longest: Span,
}

/// The measured pair against the time since the fold's start, averaged over repetitions.
#[derive(Clone, PartialEq, Debug)]
pub struct SeriesReport {
    /// The time between two samples; the first is at the fold's start.
    pub every: Span,
    /// Whole folds averaged.
    pub repetitions: u64,
    /// Mean over flows of the in-order bytes that have arrived at the destination's ToR since the fold's start.
    pub sequence: Vec<f64>,
    /// Packets in the VOQ.
    pub voq: Vec<f64>,
}
