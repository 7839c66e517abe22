//! What a fabric counted, as plain records. Times in them are the fabric's own (divided by the time scale).

use crate::conserve::Imbalance;
use firstlight_circuits::RackId;
use firstlight_net::HostId;
use firstlight_net::qcn::{CongestionCounts, FlowKey};
use firstlight_units::{Bytes, Rate, Span};

/// What kind of element a [`PortReport`] is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortKind {
    /// A host's interface, into the network.
    HostNic,
    /// What paces a host's packets before its interface.
    Pacer,
    /// Where packets of limited flows wait before their host's interface (QCN).
    Limiter,
    /// A host's adapter, where arrived packets wait for the host.
    Adapter,
    /// A switch's port towards a host.
    HostPort,
    /// A switch's port towards another switch.
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
    /// As written in tables.
    pub const fn name(self) -> &'static str {
        match self {
            PortKind::HostNic => "nic",
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
    /// What it is.
    pub kind: PortKind,
    /// Packets that came.
    pub offered: u64,
    /// Packets that left at the far end.
    pub delivered: u64,
    /// Packets lost here.
    pub dropped: u64,
    /// Packets inside: waiting, in service, in flight.
    pub held: u64,
    /// Packets CE-marked here.
    pub marked: u64,
    /// Most packets that ever waited.
    pub peak_queue: u64,
    /// Most bytes that a host's interface ever held with all that waits before it, where that is limited.
    pub peak_bytes: Option<u64>,
    /// Transmissions begun: packet-hops.
    pub hops: u64,
}

/// A circuit of one day of a control loop. Its times count from the start of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CircuitReport {
    /// The week, counted from 0.
    pub week: u64,
    /// The day, counted from 0 in its week.
    pub day: usize,
    /// When it came up.
    pub begins: Span,
    /// When it went down.
    pub ends: Span,
    /// The rack that sent.
    pub src: RackId,
    /// The rack that received.
    pub dst: RackId,
    /// Bytes that the pair was thought to have when the week was made.
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
    /// Packets that came to the VOQ.
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
    /// Packets that came over the packet network before an earlier one of the circuit.
    pub overtakings: u64,
    /// Packets that came over the circuit before an earlier one of the packet network.
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
    /// Notifications of congestion sent by switches (QCN),
    pub notified: u64,
    /// and taken in by hosts' interfaces.
    pub taken_in: u64,
    /// Packets handed out to hosts.
    pub exited: u64,
    /// Packets lost to full queues or to a VOQ's shrinking.
    pub dropped: u64,
    /// Packets lost to injected faults.
    pub lost: u64,
    /// Packets inside.
    pub held: u64,
    /// Packets CE-marked.
    pub marked: u64,
    /// Transmissions over a link: packet-hops.
    pub hops: u64,
    /// Events carried out.
    pub events: u64,
    /// Every identity that does not hold: empty on a sound run.
    pub imbalances: Vec<Imbalance>,
}

/// What QCN did since the start of the run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QcnReport {
    /// What all congestion points counted.
    pub sent: CongestionCounts,
    /// Notifications that came to their hosts' interfaces.
    pub received: u64,
    /// The sum of their feedback, each 1 to 63.
    pub feedback: u64,
    /// Times that a flow became limited.
    pub limited: u64,
    /// For how long flows were limited, the sum of all.
    pub limited_time: Span,
    /// Changes of rates, also those that were not kept.
    pub changes: u64,
    /// Those that were kept, in the order of time.
    pub kept: Vec<RateSample>,
}

/// A limited flow's rates from some moment on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// When, since the start of the run.
    pub at: Span,
    /// The sending host.
    pub host: HostId,
    /// The flow.
    pub flow: FlowKey,
    /// Its rate,
    pub current: Rate,
    /// and what that is on its way to.
    pub target: Rate,
}

/// What was seen of a watched port since [`crate::Fabric::reset_meter`].
#[derive(Clone, Debug)]
pub struct QueueReport {
    /// The port's name.
    pub name: String,
    /// Its link's rate.
    pub rate: Rate,
    /// How long it was watched.
    pub elapsed: Span,
    /// Packets that it took in.
    pub packets: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// How long each of them waited until its first bit was sent, in nanoseconds, to three digits: with strict priorities, how
    /// long all that was unsent would last.
    pub waits: hdrhistogram::Histogram<u64>,
    /// The queue over time, when that was asked for.
    pub samples: Vec<QueueSample>,
}

/// A queue at some moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueSample {
    /// When, since the start of the run.
    pub at: Span,
    /// Packets that wait, the one in service not counted.
    pub packets: u32,
    /// Bytes not yet sent, the rest of the packet in service counted.
    pub bytes: Bytes,
}

/// What pauses did on a lossless fabric, since the start of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseReport {
    /// Every transmitter that leads to a switch, by class.
    pub ports: Vec<PausedPort>,
    /// Who was paused by whom.
    pub causes: Vec<PauseCause>,
    /// Beginnings and ends, in order.
    pub events: Vec<PauseEvent>,
    /// Such beyond the most that are kept.
    pub unrecorded: u64,
    /// Packets of lossless classes that were lost.
    pub lost: u64,
    /// Circles of ports that can never go on, one of each class that has one.
    pub deadlocks: Vec<DeadlockReport>,
}

/// A class of a transmitter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PausedPort {
    /// `host3.nic`, `tor0->agg1`.
    pub name: String,
    /// The class; none for all together.
    pub class: Option<u8>,
    /// Whether it can be paused at all.
    pub lossless: bool,
    /// Packets that it has begun to send.
    pub packets: u64,
    /// How often it was paused.
    pub pauses: u64,
    /// How long it was stopped: from the effect of each pause, or the end of the frame in service then, to its end.
    pub paused: Span,
    /// How much of this its first packet was bound for an idle port of the next switch; none where that is not known.
    pub victim: Option<Span>,
    /// Most bytes that its account at the next switch ever held.
    pub peak: u64,
    /// What holds for that account.
    pub limits: firstlight_net::pfc::PfcLimits,
}

/// Pauses for one cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseCause {
    /// Who was paused.
    pub name: String,
    /// Its class; none for all together.
    pub class: Option<u8>,
    /// The switch that paused it.
    pub switch: String,
    /// The port for which the account held most.
    pub egress: String,
    /// The last port of the chain of those that waited for each other; none for a circle.
    pub root: Option<String>,
    /// How often.
    pub pauses: u64,
    /// How long.
    pub paused: Span,
}

/// A pause takes effect or ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseEvent {
    /// When, since the start of the run.
    pub at: Span,
    /// Whose.
    pub name: String,
    /// Its class; none for all together.
    pub class: Option<u8>,
    /// Whether it begins.
    pub paused: bool,
}

/// Ports that wait for each other for ever.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadlockReport {
    /// Their class; none for all together.
    pub class: Option<u8>,
    /// The circle, each waiting for the next.
    pub ports: Vec<String>,
    /// Since when the last of them has stood still.
    pub since: Span,
    /// How many ports can never go on, those behind the circle included.
    pub stopped: usize,
}

/// What the meter saw of its pair since [`crate::Fabric::reset_meter`].
#[derive(Clone, Debug)]
pub struct MeterReport {
    /// How long it measured.
    pub elapsed: Span,
    /// Data packets that came over the circuit.
    pub circuit: NetworkReport,
    /// Data packets that came over the packet network.
    pub packet: NetworkReport,
    /// Packets of the pair that were dropped at its VOQ, ACKs included.
    pub voq_drops: u64,
    /// Packets of the pair that came over the packet network before an earlier one of the circuit.
    pub overtakings: u64,
    /// The folded series, when it was asked for.
    pub series: Option<SeriesReport>,
}

/// Data packets of the measured pair over one of the two networks.
#[derive(Clone, Debug)]
pub struct NetworkReport {
    /// How many arrived.
    pub packets: u64,
    /// Their payload in bytes, retransmissions included.
    pub payload: u64,
    /// From arrival at the VOQ to arrival at the destination's ToR, in nanoseconds, to three digits.
    pub latency: hdrhistogram::Histogram<u64>,
    /// The longest latency, exactly.
    pub longest: Span,
}

/// The measured pair over the time since the fold's start, averaged over repetitions.
#[derive(Clone, PartialEq, Debug)]
pub struct SeriesReport {
    /// Between samples; the first is at the fold's start.
    pub every: Span,
    /// Whole folds averaged.
    pub repetitions: u64,
    /// Mean over flows of the in-order bytes that have arrived at the destination's ToR since the fold's start.
    pub sequence: Vec<f64>,
    /// Packets in the VOQ.
    pub voq: Vec<f64>,
}
