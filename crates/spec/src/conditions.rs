//! The conditions under which keys and tables have an effect: a closed set, by name, as the schema has them in
//! `x-when`.

use crate::error::{MOST_PROBLEMS, Problem, SpecError};
use crate::host_kind::{DefaultHosts, HostKind};
use crate::model::{self, Key, SchemaTable, Shape, When, Without, join};
use crate::places::{Places, all_or};
use crate::tables::{Experiment, FabricTable};
use crate::walk::NO_EFFECT;
use firstlight_transport::cc::CcName;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A condition of the whole experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The fabric has circuits.
    Hybrid,
    /// The fabric has none.
    PacketFabric,
    /// The links are given by keys, not by a file.
    Regular,
    /// The fabric has links between switches.
    SwitchLinks,
    /// The fabric has core switches.
    CoreSwitches,
    /// A control loop computes the weeks.
    ComputedSchedule,
    /// A connection may use that controller of simulated hosts, or its like on Linux hosts.
    Uses(String),
    /// A flow names no `cc` of its own.
    DefaultCc,
    /// A flow or program leaves it to `hosts.kind` whose hosts it has.
    DefaultHosts,
    /// `hosts.kind` is `linux` or `dilated`.
    LinuxDefault,
    /// `hosts.kind` is `dilated`.
    Dilated,
    /// A flow or a program has Linux hosts.
    Linux,
    /// A flow has Linux hosts.
    LinuxFlow,
    /// A flow has simulated hosts.
    SimulatedFlow,
    /// A flow has hosts that are not dilated.
    ExactFlow,
    /// A workload sends datagrams.
    Datagrams,
    /// The experiment has a `[qcn]`.
    Qcn,
    /// `measure.account` is on, for all flows or for some.
    Account,
}

/// The conditions without a parameter, by name.
const NAMES: [(&str, Condition); 17] = [
    ("hybrid fabric", Condition::Hybrid),
    ("packet fabric", Condition::PacketFabric),
    ("regular fabric", Condition::Regular),
    ("links between switches", Condition::SwitchLinks),
    ("core switches", Condition::CoreSwitches),
    ("computed schedule", Condition::ComputedSchedule),
    ("default cc", Condition::DefaultCc),
    ("default hosts", Condition::DefaultHosts),
    ("default hosts are Linux", Condition::LinuxDefault),
    ("dilated hosts", Condition::Dilated),
    ("Linux hosts", Condition::Linux),
    ("Linux flow", Condition::LinuxFlow),
    ("simulated flow", Condition::SimulatedFlow),
    ("flow in exact time", Condition::ExactFlow),
    ("datagrams", Condition::Datagrams),
    ("qcn", Condition::Qcn),
    ("account", Condition::Account),
];

impl FromStr for Condition {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if let Some(cc) = name.strip_prefix("uses ") {
            return Ok(Condition::Uses(cc.into()));
        }
        let found = NAMES.iter().find(|(known, _)| *known == name).map(|(_, condition)| condition.clone());
        found.ok_or_else(|| format!("there is no condition '{name}'"))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Condition::Hybrid => "fabric.kind = \"hybrid\"",
            Condition::PacketFabric => "fabric.kind is not \"hybrid\"",
            Condition::Regular => "fabric.kind is not \"graph\"",
            Condition::SwitchLinks => "the fabric's kind has links between switches",
            Condition::CoreSwitches => "the fabric's kind has core switches",
            Condition::ComputedSchedule => "the schedule is computed from demand",
            Condition::Uses(cc) => return write!(f, "a flow uses {cc}"),
            Condition::DefaultCc => "a flow names no cc of its own",
            Condition::DefaultHosts => "a flow or a probe names no hosts of its own",
            Condition::LinuxDefault => "hosts.kind = \"linux\" or \"dilated\"",
            Condition::Dilated => "hosts.kind = \"dilated\"",
            Condition::Linux => "there are Linux hosts",
            Condition::LinuxFlow => "a flow has Linux hosts",
            Condition::SimulatedFlow => "a flow has simulated hosts",
            Condition::ExactFlow => "a flow has simulated hosts, or Linux hosts in virtual time",
            Condition::Datagrams => "there is a probe, or UDP",
            Condition::Qcn => "there is a [qcn]",
            Condition::Account => "measure.account = true",
        })
    }
}

/// The facts that decide the conditions of one experiment.
pub(crate) struct Conditions<'a> {
    experiment: &'a Experiment,
    /// The congestion controls that connections may use.
    controllers: BTreeSet<CcName>,
    /// Whether a flow or a program uses `tcp.cc`.
    default_cc: bool,
    /// Whether a flow, a probe or a program is on hosts of the default kind.
    default_hosts: bool,
    linux_flow: bool,
    simulated_flow: bool,
    datagrams: bool,
    linux_probe: bool,
}

impl<'a> Conditions<'a> {
    pub fn of(experiment: &'a Experiment) -> Self {
        let programs = !experiment.program.is_empty();
        // The congestion control and the kind of hosts of each entry that has flows.
        let flows = experiment.flows.iter().map(|flows| &flows.connections);
        let workloads = experiment.workload.iter().filter_map(|workload| workload.get().keys().connections());
        let entries: Vec<_> = flows.chain(workloads).collect();
        let default_cc = programs || entries.iter().any(|entry| entry.cc.is_none());
        let of_hosts = experiment.linux.hosts.iter().filter_map(|hosts| hosts.cc);
        let named = entries.iter().filter_map(|entry| entry.cc).chain(of_hosts);
        let kind = experiment.hosts.kind.kind();
        let probes = || experiment.workload.iter().filter_map(|workload| workload.probe());
        let has = |hosts| entries.iter().any(|entry| entry.hosts.unwrap_or(kind) == hosts);
        Conditions {
            controllers: named.chain(default_cc.then_some(experiment.tcp.cc)).collect(),
            default_cc,
            default_hosts: programs
                || entries.iter().any(|entry| entry.hosts.is_none())
                || probes().any(|probe| probe.is_of_default(experiment.hosts.kind)),
            linux_flow: has(HostKind::Linux),
            simulated_flow: has(HostKind::Simulated),
            datagrams: experiment.workload.iter().any(|workload| workload.get().keys().connections().is_none()),
            linux_probe: probes().any(|probe| probe.kind(experiment.hosts.kind) == HostKind::Linux),
            experiment,
        }
    }

    pub fn holds(&self, condition: &Condition) -> bool {
        let Experiment { fabric, schedule, hosts, .. } = self.experiment;
        match condition {
            Condition::Hybrid => fabric.is_hybrid(),
            Condition::PacketFabric => !fabric.is_hybrid(),
            Condition::Regular => !matches!(fabric, FabricTable::Graph(_)),
            Condition::SwitchLinks => fabric.switch_tiers() > 1,
            Condition::CoreSwitches => fabric.switch_tiers() > 2,
            Condition::ComputedSchedule => {
                fabric.is_hybrid() && schedule.as_ref().is_some_and(|schedule| schedule.computed().is_some())
            }
            Condition::Uses(name) => self.controllers.iter().any(|cc| cc.as_str() == name),
            Condition::DefaultCc => self.default_cc,
            Condition::DefaultHosts => {
                // Flows that name Linux hosts are dilated, too.
                self.default_hosts || (hosts.kind == DefaultHosts::Dilated && self.linux_flow)
            }
            Condition::LinuxDefault => hosts.kind.kind() == HostKind::Linux,
            Condition::Dilated => hosts.kind == DefaultHosts::Dilated,
            Condition::Linux => self.linux(),
            Condition::LinuxFlow => self.linux_flow,
            Condition::SimulatedFlow => self.simulated_flow,
            Condition::ExactFlow => self.simulated_flow || (self.linux_flow && hosts.kind != DefaultHosts::Dilated),
            Condition::Datagrams => self.datagrams,
            Condition::Qcn => self.experiment.interface.qcn.is_some(),
            Condition::Account => self.experiment.measure.account.any(),
        }
    }

    /// The congestion controls that connections may use.
    pub fn controllers(&self) -> impl Iterator<Item = CcName> {
        self.controllers.iter().copied()
    }

    /// Whether anything is on Linux hosts.
    pub fn linux(&self) -> bool {
        let programs = !self.experiment.program.is_empty();
        self.linux_flow || self.linux_probe || (programs && self.experiment.hosts.kind.kind() == HostKind::Linux)
    }

    /// Whether a flow is on simulated hosts.
    pub fn simulated(&self) -> bool {
        self.simulated_flow
    }

    /// Why the condition does not hold.
    pub fn found(&self, condition: &Condition) -> String {
        match condition {
            Condition::Hybrid
            | Condition::PacketFabric
            | Condition::Regular
            | Condition::SwitchLinks
            | Condition::CoreSwitches => format!("it is \"{}\"", self.experiment.fabric.kind()),
            Condition::ComputedSchedule => "its days are given".into(),
            Condition::Uses(_) => {
                let used: Vec<&str> = self.controllers.iter().map(|cc| cc.as_str()).collect();
                format!("the flows use {}", used.join(", "))
            }
            Condition::DefaultCc => "every flow names its own".into(),
            Condition::DefaultHosts => "each names its own".into(),
            Condition::LinuxDefault | Condition::Dilated => format!("it is \"{}\"", self.experiment.hosts.kind.name()),
            Condition::Linux => "all hosts are simulated".into(),
            Condition::LinuxFlow => "none has".into(),
            Condition::SimulatedFlow => "all flows have Linux hosts".into(),
            Condition::ExactFlow => "all flows have dilated hosts".into(),
            Condition::Datagrams | Condition::Qcn => "there is none".into(),
            Condition::Account => "it is not".into(),
        }
    }
}

/// Checks that every needed key is given, and that every given key has an effect. `missing` and `idle` are the
/// candidates that the walk has found.
pub(crate) fn check(
    conditions: &Conditions<'_>,
    places: &Places,
    mut missing: Vec<Problem>,
    mut idle: Vec<Problem>,
) -> Result<(), SpecError> {
    let experiment = conditions.experiment;
    // Without the kind of fabric, the keys that the fabric needs are not known.
    if missing.iter().all(|problem| !["fabric", "fabric.kind"].contains(&problem.key.as_str())) {
        conditions.missing(model::network(), "", places, &mut missing);
    }
    if experiment.flows.len() + experiment.workload.len() + experiment.program.len() == 0 {
        let write = "no flow, so nothing would happen: add [[flows]] with from = \"rack0\" and to = \"rack1\"";
        missing.push(places.problem("flows", write));
    }
    all_or(missing)?;
    idle.extend(conditions.idle(places));
    all_or(idle)
}

impl Conditions<'_> {
    /// Keys of the table at `path` that are needed under a condition which holds.
    fn missing(&self, keys: &[Key], path: &str, places: &Places, problems: &mut Vec<Problem>) {
        for key in keys {
            let own = join(path, &key.name);
            let absent = !places.has(&own) && !places.tables.contains_key(&own);
            let needed = key.without == Without::Needed && self.no_effect(key, path, places).is_none();
            match &key.shape {
                // For a missing table, the missing keys are those that the table must have.
                Shape::Table(table) if needed && absent => {
                    let keys = match &table.kind {
                        None => &table.variants[0].keys[..],
                        Some(kind) => std::slice::from_ref(&**kind),
                    };
                    let required = keys.iter().filter(|key| key.without == Without::Required);
                    problems.extend(required.map(|key| places.missing(key, &own)));
                }
                Shape::Table(SchemaTable { kind: None, variants, .. }) => {
                    self.missing(&variants[0].keys, &own, places, problems);
                }
                Shape::Value(_) if needed && absent => problems.push(places.missing(key, path)),
                _ => {}
            }
        }
    }

    /// Problems of tables and keys without effect: one for each table that has none as a whole, and one for each such
    /// key of another table.
    fn idle(&self, places: &Places) -> Vec<Problem> {
        let mut problems: Vec<Problem> = vec![];
        for path in places.tables.keys().chain(places.keys.keys()) {
            if problems.len() > MOST_PROBLEMS {
                break;
            }
            let inside = |whole: &Problem| path.strip_prefix(&whole.key).is_some_and(|rest| rest.starts_with('.'));
            let Some(key) = model::key_at(path).filter(|_| !problems.iter().any(inside)) else { continue };
            let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
            problems.extend(self.no_effect(key, parent, places).map(|text| places.problem(path, text)));
        }
        problems
    }

    /// Why a key of the table at `path` has no effect, if it has none.
    pub fn no_effect(&self, key: &Key, path: &str, places: &Places) -> Option<String> {
        let (when, found) = match key.when.as_ref()? {
            When::Condition(condition) if self.holds(condition) => return None,
            When::Condition(condition) => (condition.to_string(), self.found(condition)),
            When::With(other) => {
                let other = join(path, other);
                if places.has(&other) || places.tables.contains_key(&other) {
                    return None;
                }
                (format!("{other} is given"), "it is not".into())
            }
        };
        Some(format!("{NO_EFFECT} {when}, but {found}; take it out"))
    }
}
