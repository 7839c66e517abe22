//! The tables of an experiment: one struct each, in a file of the table's name. A struct's fields are the table's keys;
//! their doc comments, types, ranges and defaults are the reference, the JSON Schema and the reading.
//!
//! The tables of algorithms stand with the algorithms: congestion controls in `firstlight-transport`, queue
//! disciplines, the pacer, QCN and PFC in `firstlight-net`.

mod adapter;
mod chain;
mod control;
mod cpu;
mod experiment;
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
pub use chain::{ChainTable, Stage};
pub use control::ControlTable;
pub use cpu::{CpuProfile, CpuTable};
pub use experiment::{ChainExperiment, Experiment, Root};
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
