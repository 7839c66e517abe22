//! The configuration of a fabric, in the experiment's own units.
//!
//! Every span here is the fabric's own time; [`time_scale`](HybridConfig::time_scale) stretches all of them against
//! the clock that the engine and the hosts share.

use crate::interface::{ChainConfig, ClockConfig, Jitter};
use crate::pfc::PfcConfig;
use crate::qcn::QcnConfig;
use crate::topology::{PortId, Topology};
use crate::{Discipline, Framing, Length, PacerConfig, SharedBufferConfig};
use firstlight_circuits::{Frame, Scheduler, Week};
use firstlight_units::{Bytes, Rate, Span};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The links between hosts and their switch.
#[derive(Clone, Debug, PartialEq)]
pub struct HostLinks {
    /// Rate of the host's interface.
    pub rate: Rate,
    /// Rate of the switch's port to the host.
    pub receive_rate: Rate,
    /// Propagation delay of one direction.
    pub delay: Span,
}

/// The host's interface: all that is between a host's TCP and its link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterfaceConfig {
    /// The framing that each link adds to an IP packet.
    pub framing: Framing,
    /// How long a packet takes through the sending host's stack.
    pub send_delay: Span,
    /// How long a packet takes through the receiving host's stack.
    pub receive_delay: Span,
    /// The random delay of each packet in either stack, beside the constant delays; `None` for none.
    pub jitter: Option<Jitter>,
    /// Probability that a packet is lost as it enters the interface (fault injection); 0 for no faults.
    pub loss: f64,
    /// How accurate the hosts' clocks are, by which interfaces stamp packets.
    pub clock: ClockConfig,
    /// How the interfaces' timestamps are taken.
    pub stamps: ChainConfig,
    /// The features that tables of the experiment turn on.
    pub tables: InterfaceTables,
    /// The buffers of the hosts' adapters.
    pub adapter: AdapterConfig,
}

/// Tables of the experiment that turn on something in the hosts' interfaces; `None` for off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[expect(missing_docs, reason = "the type of a table says what the table is")]
pub struct InterfaceTables {
    pub pacer: Option<PacerConfig>,
    pub qcn: Option<QcnConfig>,
}

impl InterfaceConfig {
    /// The delay that a receiving host's stack adds to its link's delay: none where the adapter holds packets before
    /// the stack.
    pub fn stack_on_link(&self) -> Span {
        if self.adapter.receive.is_some() { Span::ZERO } else { self.receive_delay }
    }
}

/// The buffers of a host's adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdapterConfig {
    /// Capacity of the send buffer. While the buffer holds this many bytes or more, the host's stack waits; `None` for
    /// no limit.
    pub send_buffer: Option<Bytes>,
    /// How the host fetches packets that have arrived; `None` for at once.
    pub receive: Option<ReceiveConfig>,
}

/// The receiving side of a host's adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveConfig {
    /// The rate at which the host fetches packets that have arrived.
    pub drain: Rate,
    /// Bytes that may wait to be fetched; packets beyond are lost.
    pub buffer: Bytes,
}

impl ReceiveConfig {
    /// The default buffer: that of the adapters in the study of TCP over converged Ethernet (CEE).
    pub const BUFFER: Bytes = Bytes::new(512_000);
}

/// The configuration of a packet fabric's switches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SwitchConfig {
    /// The queue discipline of each output port.
    pub discipline: Discipline,
    /// The queue discipline of each traffic class, from 0 on; empty for one queue, with `discipline`.
    pub classes: Vec<Discipline>,
    /// The weight of each class; empty for strict priorities.
    pub weights: Vec<u32>,
    /// Ports whose queues have another discipline each than all others, by number.
    pub exceptions: BTreeMap<PortId, Discipline>,
    /// A buffer that all ports of a switch share.
    pub buffer: Option<SharedBufferConfig>,
    /// PFC: links can be paused, those of hosts too, and switches have an account of each; `None` for lossy links.
    pub pfc: Option<PfcConfig>,
    /// The features that further tables of the experiment turn on.
    pub tables: FabricTables,
}

impl SwitchConfig {
    /// The queue disciplines of a port that is no exception, the lowest class's first.
    pub fn queues(&self) -> &[Discipline] {
        if self.classes.is_empty() { std::slice::from_ref(&self.discipline) } else { &self.classes }
    }

    /// The queue disciplines of a port, the lowest class's first.
    pub fn queues_at(&self, port: PortId) -> Cow<'_, [Discipline]> {
        match self.exceptions.get(&port) {
            Some(discipline) => vec![*discipline; self.queues().len()].into(),
            None => self.queues().into(),
        }
    }

    /// The queue disciplines that any port has.
    pub fn disciplines(&self) -> impl Iterator<Item = &Discipline> {
        self.queues().iter().chain(self.exceptions.values())
    }
}

/// Hosts and output-queued switches, joined in any way.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphConfig {
    /// Hosts, switches and links.
    pub topology: Topology,
    /// The hosts' interfaces.
    pub interface: InterfaceConfig,
    /// The switches.
    pub switch: SwitchConfig,
    /// Packet spraying: each packet takes any of the shortest paths instead of its flow's.
    pub spray: bool,
    /// Stretches the fabric's times against the engine's clock; 1 for none.
    pub time_scale: u32,
    /// Seeds the fabric's random streams (loss).
    pub seed: u64,
}

/// Racks of hosts behind ToR switches, joined by a packet network and by a circuit switch.
#[derive(Clone, Debug, PartialEq)]
pub struct HybridConfig {
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
    /// The schedule of the circuit switch, which joins all racks; with `control` only that of the first week.
    pub week: Week,
    /// The control loop that makes the schedules of all later weeks, each as long as the first; `None` to repeat the
    /// first.
    pub control: Option<ControlConfig>,
    /// The queues of pairs of racks.
    pub voq: VoqConfig,
    /// PFC: links can be paused, those of hosts too; all packets are one class, and the VOQs' limits hold as well.
    /// `None` for lossy links.
    pub pfc: Option<PfcConfig>,
    /// ECE marks on returning packets, which reTCP needs, begin this long before a day; `None` for no marks.
    pub marks: Option<Span>,
    /// Notices of circuits to the hosts, instead of marks; `None` for none. Not with `control`.
    pub notices: Option<NoticeConfig>,
    /// The features that further tables of the experiment turn on.
    pub tables: FabricTables,
    /// Stretches the fabric's times against the engine's clock; 1 for none.
    pub time_scale: u32,
    /// Seeds the fabric's random streams (loss).
    pub seed: u64,
}

/// The name of the VOQ from a rack to another.
pub fn voq_name(src: usize, dst: usize) -> String {
    format!("voq.{src}.{dst}")
}

/// The name of the VOQ of a pair's mice, where routing is segregated, from that of the pair's VOQ.
pub fn mice_voq_name(voq: &str) -> String {
    format!("{voq}.mice")
}

/// Tables of the experiment that turn on something in the switches; `None` for off. `x-when` is the kind of fabric in
/// which a table has an effect.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[expect(missing_docs, reason = "the type of a table says what the table is")]
pub struct FabricTables {
    #[cfg_attr(feature = "spec", schemars(extend("x-when" = "hybrid fabric")))]
    pub segregation: Option<SegregationConfig>,
}

impl FabricTables {
    /// Tables that turn on segregated routing alone, with elephants of more than this payload.
    pub fn segregated(elephant: Bytes) -> Self {
        FabricTables { segregation: Some(SegregationConfig { elephant }) }
    }
}

/// The packet network of a hybrid fabric.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct PacketConfig {
    /// Rate of each rack's uplink and downlink.
    pub rate: Rate,
    /// Propagation delay of each of these links.
    pub delay: Span,
    /// Packets that each input queue of a downlink holds before its VOQ is held. Packets that are already on the
    /// uplink at that moment are queued beyond this number.
    #[cfg_attr(
        feature = "spec",
        serde(default = "PacketConfig::switch_queue"),
        schemars(range(min = 1, max = 1_048_576), extend("x-of" = "packets"))
    )]
    pub switch_queue: u32,
    /// `false`: the uplink ends at the other ToR, without a switch and a downlink. Two racks only.
    #[cfg_attr(feature = "spec", serde(default = "PacketConfig::switched"))]
    pub switched: bool,
}

#[cfg(feature = "spec")]
impl PacketConfig {
    fn switch_queue() -> u32 {
        3
    }

    fn switched() -> bool {
        true
    }
}

/// The circuit switch of a hybrid fabric.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct CircuitConfig {
    /// Rate of a circuit.
    pub rate: Rate,
    /// Propagation delay of a circuit, from ToR to ToR.
    pub delay: Span,
}

/// Notices of circuits that hosts get over the control plane (Etalon, NSDI'20, the end of section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoticeConfig {
    /// How long before a day its circuits are announced.
    pub advance: Span,
    /// How long a notice takes to the hosts.
    pub delay: Span,
}

/// Segregated routing: elephant flows take circuits only, all other packets the packet network only, where no schedule
/// interrupts them. Helios and c-Through route so (Etalon, NSDI'20, sections 2 and 7). The table's presence turns it
/// on; not with PFC or QCN.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct SegregationConfig {
    /// Payload after which a flow is an elephant. The source's ToR counts what each direction of a connection sends,
    /// retransmissions included: the packet that exceeds this, and all later ones with payload, take circuits.
    pub elephant: Bytes,
}

/// The control loop of a hybrid fabric: at the start of each week demand is estimated, and the schedule is computed
/// that the next week follows (Etalon, NSDI'20, section 2.1).
#[derive(Clone, Debug, PartialEq)]
pub struct ControlConfig {
    /// Where demand is estimated.
    pub demand: DemandSource,
    /// The algorithm that computes the schedule.
    pub scheduler: Scheduler,
    /// How long the computation takes. A schedule that is not ready by the week's end comes a week later.
    pub compute: Span,
    /// How long the switch reconfigures before each day.
    pub night: Span,
    /// The shortest day.
    pub least_day: Span,
}

/// Where demand is estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "spec",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case")
)]
pub enum DemandSource {
    /// The bytes that wait in VOQs.
    #[default]
    Voq,
    /// At the hosts: what applications have written and has not yet passed the VOQ (application data units, after the
    /// slides of Etalon's first version).
    Adu,
    /// In the workload: as `adu`, plus the bytes that flows which start before the next week's end will write. Of
    /// programs only the bytes that they have written count.
    Oracle,
}

impl DemandSource {
    /// The source's name in experiments.
    pub const fn name(self) -> &'static str {
        match self {
            DemandSource::Voq => "voq",
            DemandSource::Adu => "adu",
            DemandSource::Oracle => "oracle",
        }
    }
}

impl HybridConfig {
    /// How many racks there are: as many as the circuit switch joins.
    pub fn racks(&self) -> usize {
        self.week.racks()
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.racks() * self.hosts_per_rack
    }

    /// The names of all VOQs between two racks.
    pub fn voq_names(&self) -> Vec<String> {
        let pairs = (0..self.racks()).flat_map(|src| (0..self.racks()).map(move |dst| (src, dst)));
        let names = pairs.filter(|(src, dst)| src != dst).map(|(src, dst)| voq_name(src, dst));
        let with_mice = |name: String| match self.tables.segregation {
            Some(_) => vec![name.clone(), mice_voq_name(&name)],
            None => vec![name],
        };
        names.flat_map(with_mice).collect()
    }

    /// The frame that each schedule of the control loop must fit in.
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

/// The VOQs of a hybrid fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct VoqConfig {
    /// The queue discipline of each VOQ. A phantom queue has no place here: a VOQ has no link of its own.
    pub discipline: Discipline,
    /// Another size before and during a pair's day; `None` for always the same.
    pub resize: Option<Resize>,
}

impl VoqConfig {
    /// VOQs that hold `limit` packets, and mark beyond `mark` packets, where given.
    pub fn packets(limit: u32, mark: Option<u32>) -> Self {
        VoqConfig { discipline: Discipline::packets(Some(limit), mark), resize: None }
    }

    /// Whether packets can be marked.
    pub fn marks(&self) -> bool {
        self.discipline.marking().next().is_some()
            || self.resize.as_ref().is_some_and(|resize| resize.threshold.is_some())
    }
}

/// Dynamic VOQ resizing (Etalon, NSDI'20, section 5.2): what holds from `advance` before the day until `linger` after
/// it, in place of the discipline's limit and threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Resize {
    /// How much the VOQ holds.
    pub limit: Option<Length>,
    /// Mark ECN-capable packets with which the VOQ would be longer than this; `None` for no such marks. RED goes on as
    /// it is.
    pub threshold: Option<Length>,
    /// How long before the day (the paper's tau).
    pub advance: Span,
    /// How long after the day.
    pub linger: Span,
}

impl Resize {
    /// A limit of `limit` packets from `advance` before the day to its end, with marks beyond `mark` packets, if given.
    pub fn packets(limit: u32, mark: Option<u32>, advance: Span) -> Self {
        Resize {
            limit: Some(Length::Packets(limit)),
            threshold: mark.map(Length::Packets),
            advance,
            linger: Span::ZERO,
        }
    }
}
