//! The experiment: the keys at the top of a file and all its tables, one struct each, in a file of the table's name. A
//! struct's fields are the table's keys; their doc comments, types, ranges and defaults are the reference, the JSON
//! Schema and the reading.
//!
//! The tables of algorithms stand with the algorithms: congestion controls in `firstlight-transport`, queue
//! disciplines, the pacer, QCN and PFC in `firstlight-net`.

mod adapter;
mod chain;
mod control;
mod cpu;
mod experiment_name;
mod fabric;
mod flows;
mod hosts;
mod links;
mod linux;
mod marks;
mod measure;
mod pfc;
mod program;
mod schedule;
mod stamps;
mod switch;
mod tcp;
mod voq;

pub use adapter::AdapterTable;
pub use chain::{ChainTable, HostQueue, Stage};
pub use control::ControlTable;
pub use cpu::{CpuProfile, CpuTable};
pub use experiment_name::ExperimentName;
pub use fabric::*;
pub use flows::{Connections, FlowsTable};
pub use hosts::{HostClassTable, HostsTable, JitterTable};
pub use links::LinksTable;
pub use linux::{LinuxHostTable, LinuxTable};
pub use marks::{MarkCarrier, MarksTable};
pub use measure::{Accounts, CaptureSide, MeasureTable, PairOfRacks};
pub use pfc::{PauseKind, PfcTable};
pub use program::{FileName, Program, ProgramTable};
pub use schedule::{ComputedWeek, EqualDays, ListedDays, Schedule, ScheduledDay, StandIn};
pub use stamps::StampsTable;
pub use switch::{ClassTable, PortsTable, SwitchTable};
pub use tcp::TcpTable;
pub use voq::VoqTable;

pub(crate) use fabric::MOST_HOSTS;
pub(crate) use program::expand as expand_programs;

pub use crate::workload::{PacedStep, WorkloadTable};

use crate::places::Places;
use firstlight_net::Discipline;
use firstlight_net::fabric::{CircuitConfig, FabricTables, InterfaceTables, PacketConfig};
use firstlight_transport::cc::CcTables;
use firstlight_transport::{Autotune, TcpConfig, WINDOW_OF_2012};
use firstlight_units::{SettingError, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// The two kinds of experiment that a file can describe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Root {
    /// An experiment on a network.
    Network(Box<Experiment>),
    /// An experiment on the measurement chain.
    Chain(ChainExperiment),
}

/// An experiment on a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the type of a table says what the table is")]
pub struct Experiment {
    /// Name of the experiment, in tables and reports.
    #[schemars(extend("x-without" = "the name of the file"))]
    pub name: Option<ExperimentName>,
    /// Seed of every random stream.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807_u64))]
    pub seed: u64,
    /// How long the network runs. A run in which every flow is sized ends when all are complete, if that is earlier.
    #[schemars(extend("x-above" = "0s"))]
    pub duration: Span,
    /// The first part of `duration`, which is not measured.
    #[serde(default)]
    pub warmup: Span,
    /// Stretches every time of the fabric against the hosts' clocks, as a testbed under time dilation does to its
    /// kernels. Results stay in the experiment's own times.
    #[serde(default = "unscaled")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub time_scale: u32,
    pub fabric: FabricTable,
    #[serde(default)]
    pub hosts: HostsTable,
    #[serde(default)]
    #[schemars(extend("x-when" = "links between switches"))]
    pub links: LinksTable,
    #[schemars(extend("x-when" = "hybrid fabric", "x-needed" = true))]
    pub packet: Option<PacketConfig>,
    #[schemars(extend("x-when" = "hybrid fabric", "x-needed" = true))]
    pub circuit: Option<CircuitConfig>,
    #[schemars(extend("x-when" = "hybrid fabric", "x-needed" = true))]
    pub schedule: Option<Schedule>,
    #[serde(default)]
    #[schemars(extend("x-when" = "computed schedule"))]
    pub control: ControlTable,
    #[serde(default)]
    #[schemars(extend("x-when" = "hybrid fabric"))]
    pub voq: VoqTable,
    #[serde(default)]
    pub stamps: StampsTable,
    #[serde(flatten)]
    pub interface: InterfaceTables,
    #[serde(default)]
    pub adapter: AdapterTable,
    #[serde(default)]
    #[schemars(extend("x-when" = "packet fabric"))]
    pub switch: SwitchTable,
    pub pfc: Option<PfcTable>,
    #[schemars(extend("x-when" = "hybrid fabric"))]
    pub marks: Option<MarksTable>,
    #[serde(flatten)]
    pub switches: FabricTables,
    #[serde(default)]
    pub tcp: TcpTable,
    #[serde(flatten)]
    pub cc: CcTables,
    #[serde(default)]
    #[schemars(extend("x-when" = "Linux hosts"))]
    pub linux: LinuxTable,
    #[serde(default)]
    pub flows: Vec<FlowsTable>,
    #[serde(default)]
    pub workload: Vec<WorkloadTable>,
    /// Flows of simulated hosts that never start, by their numbers in table `flows`. All others keep their numbers,
    /// ports and random draws.
    #[schemars(
        inner(range(max = 16_777_215)),
        extend("x-type" = "a list of flows", "x-when" = "simulated flow", "x-without" = "none", "examples" = [[7]])
    )]
    pub leave_out: Option<Vec<u32>>,
    #[serde(default)]
    #[schemars(extend("x-when" = "default hosts are Linux"))]
    pub program: Vec<ProgramTable>,
    #[serde(default)]
    pub measure: MeasureTable,
    /// Lists of values for other keys: `firstlight sweep` runs every combination. Keys are quoted with their dots:
    /// `"voq.small" = [4, 8, 16]`.
    #[serde(default, skip_serializing)]
    pub sweep: Map<String, Json>,
}

/// An experiment on the measurement chain: two hosts back to back, a flow that fills the link between them, and the
/// timestamps of one stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the type of a table says what the table is")]
pub struct ChainExperiment {
    /// Name of the experiment, in tables and reports.
    #[schemars(extend("x-without" = "the name of the file"))]
    pub name: Option<ExperimentName>,
    /// Seed of every random stream.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 4_611_686_018_427_387_904_u64))]
    pub seed: u64,
    /// Hosts back to back have no fabric whose times could be stretched.
    #[serde(default = "unscaled")]
    #[schemars(range(min = 1, max = 1))]
    pub time_scale: u32,
    pub chain: ChainTable,
}

fn one() -> u64 {
    1
}

fn unscaled() -> u32 {
    1
}

impl Experiment {
    /// Whether a flow never starts.
    pub fn leaves_out(&self, flow: usize) -> bool {
        self.leave_out.iter().flatten().any(|number| *number as usize == flow)
    }

    /// Whether lossless classes may lose packets.
    pub fn allows_loss(&self) -> bool {
        self.pfc.as_ref().is_some_and(|pfc| pfc.allow_loss)
    }

    /// Gives keys that are not given the values that follow from others.
    pub(crate) fn fill_in(&mut self, places: &Places) {
        let mtu = self.hosts.mtu;
        self.tcp.tcp.mtu = self.hosts.mtu();
        let tcp = &mut self.tcp.tcp;
        if places.has("tcp.receive_window") && !places.has("tcp.autotune") {
            tcp.autotune = Autotune::Off;
        }
        if tcp.autotune == Autotune::On && tcp.receive_window == TcpConfig::default().receive_window {
            // As much memory as a kernel has by default, which has room for less payload.
            tcp.stack.receive_memory = Some(tcp.receive_window);
        }
        if tcp.autotune == Autotune::Year2012 && !places.has("tcp.receive_window") {
            tcp.receive_window = WINDOW_OF_2012;
        }
        let pfc = self.pfc.as_ref();
        let fill = |discipline: &mut Discipline, table: &str, class: usize| {
            let lossless = pfc.is_some_and(|pfc| pfc.has(class));
            discipline.fill_in(mtu, lossless, &|key| places.has(&format!("{table}.{key}")));
        };
        let mut voq = self.voq.discipline.into();
        fill(&mut voq, "voq", 0);
        self.voq.discipline = voq.into();
        fill(&mut self.switch.discipline, "switch", 0);
        for (class, queue) in self.switch.classes.iter_mut().enumerate() {
            fill(&mut queue.discipline, &format!("switch.classes.{class}"), class);
        }
        for (entry, ports) in self.switch.ports.iter_mut().enumerate() {
            fill(&mut ports.discipline, &format!("switch.ports.{entry}"), 0);
        }
    }

    /// The problems within single tables, each with the path of its key.
    pub(crate) fn check(&self) -> Vec<SettingError> {
        let tables = [
            ("tcp", self.tcp.tcp.check()),
            ("voq", self.voq.check()),
            ("marks", self.marks.as_ref().map_or(Ok(()), MarksTable::check)),
            ("adapter", self.adapter.check()),
            ("switch", self.switch.check()),
            ("pfc", self.pfc.as_ref().map_or(Ok(()), PfcTable::check)),
            ("schedule", self.schedule.as_ref().map_or(Ok(()), Schedule::check)),
            ("linux.cpu", self.linux.cpu.check()),
            ("measure", self.measure.check()),
        ];
        tables.into_iter().filter_map(|(table, found)| found.err().map(|error| error.within(table))).collect()
    }
}
