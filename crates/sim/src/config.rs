//! What a fabric is made of, in the experiment's own units.
//!
//! Every span here is the fabric's own time; [`time_scale`](HybridConfig::time_scale) stretches all of them against
//! the clock that the engine and the hosts share.

use firstlight_circuits::{Frame, RackId, Scheduler, Week};
use firstlight_messages::MessageError;
use firstlight_net::interface::{ChainConfig, ClockConfig};
use firstlight_net::pfc::PfcConfig;
use firstlight_net::qcn::QcnConfig;
use firstlight_net::topology::Topology;
use firstlight_net::{Discipline, PacerConfig, PoolConfig, RedConfig};
use firstlight_units::{Bytes, Rate, Span};

/// The links between hosts and their switch.
#[derive(Clone, Debug, PartialEq)]
pub struct HostLinks {
    /// Rate of the host's interface.
    pub rate: Rate,
    /// Rate of the switch's port towards it.
    pub receive_rate: Rate,
    /// Propagation delay of one direction.
    pub delay: Span,
}

/// What is between a host's TCP and its link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterfaceConfig {
    /// How long a packet takes through the sending host's stack.
    pub send_delay: Span,
    /// How long a packet takes through the receiving host's stack.
    pub receive_delay: Span,
    /// Probability that a packet is lost on its way into the network (fault injection); 0 on a sound network.
    pub loss: f64,
    /// How true the hosts' clocks are, by which interfaces stamp packets.
    pub clock: ClockConfig,
    /// How those timestamps come about.
    pub stamps: ChainConfig,
    /// HULL's pacer, where there is one.
    pub pacer: Option<PacerConfig>,
    /// QCN: queues of switches notify the hosts' interfaces of congestion, and these limit flows.
    pub qcn: Option<QcnConfig>,
    /// What the hosts' adapters hold.
    pub adapter: AdapterConfig,
}

impl InterfaceConfig {
    /// What a receiving host's stack adds to its link's delay: nothing when its adapter holds packets before that.
    pub(crate) fn stack_on_link(&self) -> Span {
        if self.adapter.receive.is_some() { Span::ZERO } else { self.receive_delay }
    }
}

/// The buffers of a host's adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdapterConfig {
    /// Bytes of what is to be sent. While it holds as many or more, the host's stack waits; `None` for no limit.
    pub send_buffer: Option<Bytes>,
    /// How the host takes in what has arrived; `None` for at once.
    pub receive: Option<ReceiveConfig>,
}

/// The receiving side of a host's adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveConfig {
    /// The rate at which the host takes in what has arrived.
    pub drain: Rate,
    /// Bytes that wait for that; what comes beyond is lost.
    pub buffer: Bytes,
}

impl ReceiveConfig {
    /// The buffer where none is given: that of the adapters of the study of TCP over converged Ethernet.
    pub const BUFFER: Bytes = Bytes::new(512_000);
}

/// What the switches of a packet fabric do with packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SwitchConfig {
    /// What each output port does.
    pub discipline: Discipline,
    /// What it does with each traffic class, from 0 on, in strict priority; empty for one queue, with `discipline`.
    pub classes: Vec<Discipline>,
    /// A buffer that all ports of a switch share.
    pub buffer: Option<PoolConfig>,
    /// Links can be paused, those of hosts too, and switches count what comes in over each of them.
    pub pfc: Option<PfcConfig>,
}

impl SwitchConfig {
    /// What each queue of a port does, the lowest class's first.
    pub fn queues(&self) -> &[Discipline] {
        if self.classes.is_empty() { std::slice::from_ref(&self.discipline) } else { &self.classes }
    }
}

/// Which queues of a packet fabric to watch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchConfig {
    /// The ports' names.
    pub ports: Vec<String>,
    /// How often to sample their queues; `None` for never.
    pub every: Option<Span>,
}

/// Hosts and output-queued switches, joined in any way.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphConfig {
    /// Who is joined with whom.
    pub topology: Topology,
    /// The hosts' interfaces.
    pub interface: InterfaceConfig,
    /// The switches.
    pub switch: SwitchConfig,
    /// Each packet takes any of the shortest ways, by turns, instead of always its flow's.
    pub spray: bool,
    /// Stretches the fabric's times against the engine's clock; 1 for none.
    pub time_scale: u32,
    /// Seeds the fabric's random streams (loss).
    pub seed: u64,
}

/// Racks of hosts behind ToR switches, joined by a packet network and by a circuit switch.
#[derive(Clone, Debug, PartialEq)]
pub struct HybridConfig {
    /// How many racks.
    pub racks: usize,
    /// Hosts in each rack: host h of rack r is `HostId(r * hosts_per_rack + h)`.
    pub hosts_per_rack: usize,
    /// The hosts' links. The ToR's queues towards its hosts are unlimited.
    pub links: HostLinks,
    /// The hosts' interfaces.
    pub interface: InterfaceConfig,
    /// The packet network.
    pub packet: PacketConfig,
    /// The circuit switch.
    pub circuit: CircuitConfig,
    /// The schedule of the circuit switch; with `control` only that of the first week.
    pub week: Week,
    /// Makes the schedules of all later weeks, as long as the first.
    pub control: Option<ControlConfig>,
    /// The queues between them.
    pub voq: VoqConfig,
    /// Links can be paused, those of hosts too; all packets are one class, and the VOQs' capacities hold as well.
    pub pfc: Option<PfcConfig>,
    /// ECE marks on returning packets, begun this long before a day; `None` for no marks at all (reTCP needs them).
    pub marks: Option<Span>,
    /// Stretches the fabric's times against the engine's clock; 1 for none.
    pub time_scale: u32,
    /// Seeds the fabric's random streams (loss).
    pub seed: u64,
}

/// The packet network of a hybrid fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketConfig {
    /// Rate of each rack's uplink and downlink.
    pub rate: Rate,
    /// Propagation delay of each link.
    pub delay: Span,
    /// Packets that each input queue of a downlink holds before its VOQ is held; those on the uplink then find headroom.
    pub switch_queue: u32,
    /// With `false` (two racks only) the uplink ends at the other ToR: one link, no switch in between.
    pub switched: bool,
}

/// The circuit switch of a hybrid fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct CircuitConfig {
    /// Rate of a circuit.
    pub rate: Rate,
    /// Propagation delay of a circuit, from ToR to ToR.
    pub delay: Span,
}

/// The control loop of a hybrid fabric: at the start of each week demand is estimated, and the schedule computed that
/// the next week follows (Etalon, NSDI'20, section 2.1).
#[derive(Clone, Debug, PartialEq)]
pub struct ControlConfig {
    /// Whose demand the scheduler sees.
    pub demand: DemandSource,
    /// Who computes the schedule.
    pub scheduler: Scheduler,
    /// How long that takes. What is not there by the week's end comes a week later.
    pub compute: Span,
    /// How long the switch reconfigures before each day.
    pub night: Span,
    /// The shortest day.
    pub least_day: Span,
}

/// Where demand is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemandSource {
    /// In the VOQs: what waits there.
    Voq,
    /// At the hosts: what applications have written and has not yet passed the VOQ (application data units, after the
    /// slides of Etalon's first version).
    Adu,
    /// In the workload: as `Adu`, with what flows that start before the coming week's end are going to write.
    Oracle,
}

impl DemandSource {
    /// All of them.
    pub const ALL: [DemandSource; 3] = [DemandSource::Voq, DemandSource::Adu, DemandSource::Oracle];

    /// Its name in experiments.
    pub const fn name(self) -> &'static str {
        match self {
            DemandSource::Voq => "voq",
            DemandSource::Adu => "adu",
            DemandSource::Oracle => "oracle",
        }
    }
}

impl HybridConfig {
    /// What each schedule of the control loop must fit in.
    pub fn frame(&self, control: &ControlConfig) -> Frame {
        Frame {
            week: self.week.length(),
            night: control.night,
            least_day: control.least_day,
            circuit: self.circuit.rate,
            packet: self.packet.rate,
        }
    }
}

/// The VOQs of a hybrid fabric, in packets.
#[derive(Clone, Debug, PartialEq)]
pub struct VoqConfig {
    /// Capacity.
    pub small: u32,
    /// Larger capacity before and during a pair's day.
    pub resize: Option<Resize>,
    /// Mark an ECN-capable packet when the queue would exceed this with it, while small.
    pub ecn_small: Option<u32>,
    /// The same while large.
    pub ecn_large: Option<u32>,
    /// Mark, or drop, by the average queue, instead of these thresholds.
    pub red: Option<RedConfig>,
}

impl VoqConfig {
    /// Whether packets can be marked.
    pub fn marks(&self) -> bool {
        self.ecn_small.is_some() || self.ecn_large.is_some() || self.red.is_some()
    }
}

/// Dynamic VOQ resizing (Etalon, NSDI'20, section 5.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Resize {
    /// Capacity from `advance` before the day until the day's end.
    pub large: u32,
    /// How long before the day (the paper's tau).
    pub advance: Span,
}

/// What to measure of one pair of racks.
#[derive(Clone, Debug, PartialEq)]
pub struct MeterConfig {
    /// Source and destination.
    pub pair: (RackId, RackId),
    /// The folded series, if wanted.
    pub series: Option<SeriesConfig>,
}

/// Samples of sequence number and VOQ length, folded over some weeks.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesConfig {
    /// Between samples.
    pub every: Span,
    /// How many weeks make one repetition.
    pub fold: u32,
}

/// Why a fabric or a world cannot be built. `key` is the place in the experiment that is to blame.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A value out of its range.
    #[error("{key}: {problem}")]
    Value {
        /// Which setting.
        key: &'static str,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A probe that cannot be.
    #[error("probe {index}: {problem}")]
    Probe {
        /// The probe, counted from 0.
        index: usize,
        /// What is wrong.
        problem: String,
    },
    /// A message that cannot be.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A flow that cannot be.
    #[error("flow {index}: {problem}")]
    Flow {
        /// The flow, counted from 0.
        index: usize,
        /// What is wrong.
        problem: String,
    },
}
