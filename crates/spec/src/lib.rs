//! An experiment's keys, and the experiment as a checked value. Every error of a file is found here, before anything is
//! built.
//!
//! A key is defined once, on a field of its table's struct ([`tables`], [`workload`](WorkloadTable), and the
//! configurations of algorithms in their own crates). From these structs comes the JSON Schema ([`schema()`]), from the
//! schema the reading, the reference and the suggestions ([`model`]).
//!
//! Reading goes in stages; each reports all that it finds, with its place, before the next begins: TOML with the places
//! of its keys (`document`), overrides laid over it, one walk along the schema (`walk`), conditions under which keys
//! have an effect (`conditions`), checks within each table and rules between tables (`rules`), then the network, and
//! the flows, workloads and programs on it.

mod accounted;
mod conditions;
mod control;
mod document;
mod error;
mod expander;
mod host_directory;
mod host_kind;
mod host_name;
mod input_file;
mod kernel;
mod kernel_code;
mod kind;
mod linux_hosts;
pub mod model;
mod network;
mod overrides;
mod places;
mod reference;
mod resolved;
mod rules;
mod schema;
mod settings;
pub mod tables;
mod text_form;
mod walk;
mod workload;

pub use accounted::Accounted;
pub use control::ConnectionControl;
pub use error::{Problem, ProblemPlace, SpecError};
pub use expander::{Flow, TrafficEntry};
pub use host_kind::{DefaultHosts, HostKind};
pub use host_name::HostName;
pub use input_file::read_input;
pub use kernel_code::KernelCode;
pub use kind::{Class, Kind, TextForm};
pub use linux_hosts::{Linux, LinuxHost};
pub use network::Network;
pub use overrides::{OverrideValue, Overrides};
pub use reference::{reference, wrapped};
pub use schema::schema;
pub use settings::{KernelVersion, RouteAttributes, SysctlText};
pub use tables::{CaptureSide, ChainTable, ExperimentName, HostQueue, MeasureTable, Program, Stage, WorkloadTable};
pub use text_form::Format;
pub use workload::{ExpandedWorkload, Job, Probe};

pub use firstlight_net::Discipline;
pub use firstlight_transport::EctSyn;

use conditions::Conditions;
use document::Document;
use expander::Traffic;
use firstlight_circuits::RackId;
use firstlight_messages::Messages;
use firstlight_net::interface::ChainConfig;
use firstlight_transport::cc::OwnConfig;
use firstlight_units::{Span, Time};
use host_directory::HostDirectory;
use linux_hosts::HostEntries;
use network::ImportedNetwork;
use places::{Places, all_or};
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use tables::{ChainExperiment, Experiment, expand_programs};
use walk::Walked;

/// The kind of run that a file describes.
#[derive(Clone, Debug)]
pub enum Request {
    /// An experiment on a network.
    Network(Box<Spec>),
    /// An experiment on the measurement chain.
    Chain(ChainSpec),
}

/// A checked experiment on the measurement chain.
#[derive(Clone, Debug)]
pub struct ChainSpec {
    /// The name of the experiment.
    pub name: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// The chain.
    pub chain: ChainTable,
    /// The experiment with all its defaults, as nested tables.
    pub resolved: Json,
    /// The keys to sweep with their values, when that was allowed.
    pub sweep: Vec<(String, Vec<Json>)>,
}

/// A checked experiment on a network. Its spans are the experiment's own, not stretched by `time_scale`.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The name of the experiment.
    pub name: String,
    /// The tables, with their defaults.
    pub tables: Experiment,
    /// The network.
    pub network: Network,
    /// Hosts in each rack; all of them where there are no racks.
    pub hosts_per_rack: usize,
    /// Notes on parts of the network's file that are not modelled.
    pub notes: Vec<String>,
    /// The files that were read besides the experiment's own: the name that it has for each, and its path.
    pub inputs: BTreeMap<String, String>,
    /// One entry for each connection.
    pub flows: Vec<Flow>,
    /// One entry for each `[[workload]]`; its flows are among the others.
    pub workloads: Vec<ExpandedWorkload>,
    /// Packets at a constant rate, without TCP.
    pub probes: Vec<Probe>,
    /// The messages of the flows that carry messages, with their dependencies.
    pub messages: Messages,
    /// The jobs of messages, by number.
    pub jobs: Vec<Job>,
    /// The hosts that run Linux, with their programs.
    pub linux: Option<Linux>,
    /// The user's own congestion controls that the experiment may use.
    pub own: Vec<OwnConfig>,
    /// The flows whose completion times are divided into causes; `None` if nothing is recorded for that.
    pub accounted: Option<Accounted>,
    /// The ports or VOQs whose queues are watched: all that `measure.queues` names.
    pub watched: Vec<String>,
    /// The measured pair of racks; `None` on a packet fabric, or when no flow leaves its rack.
    pub pair: Option<(RackId, RackId)>,
    /// The experiment with all its defaults, as nested tables.
    pub resolved: Json,
    /// The keys to sweep with their values, when that was allowed.
    pub sweep: Vec<(String, Vec<Json>)>,
}

impl Request {
    /// Reads a file's text; `path` is for messages and the place of other files. `allow_sweep`: a `[sweep]` table is
    /// checked and handed over, else it is an error.
    ///
    /// # Errors
    /// Everything that one stage of reading finds wrong.
    pub fn read(text: &str, path: &str, overrides: &Overrides, allow_sweep: bool) -> Result<Self, SpecError> {
        Request::read_with(text, path, overrides, allow_sweep, vec![])
    }

    /// Reads a file's text as [`Request::read`] does. Its keys may also name the congestion controls `own`.
    ///
    /// # Errors
    /// Everything that one stage of reading finds wrong.
    pub fn read_with(
        text: &str,
        path: &str,
        overrides: &Overrides,
        allow_sweep: bool,
        own: Vec<OwnConfig>,
    ) -> Result<Self, SpecError> {
        let mut document = Document::parse(text, path)?;
        document.apply(overrides)?;
        let walked = walk::walk(document, allow_sweep, own)?;
        if walked.json.get("chain").is_some() {
            return ChainSpec::of(walked).map(Request::Chain);
        }
        Spec::of(walked).map(|spec| Request::Network(Box::new(spec)))
    }
}

impl Request {
    /// The name of the experiment.
    pub fn name(&self) -> &str {
        match self {
            Request::Network(spec) => &spec.name,
            Request::Chain(spec) => &spec.name,
        }
    }

    /// The experiment with all its defaults, as nested tables.
    pub fn resolved(&self) -> &Json {
        match self {
            Request::Network(spec) => &spec.resolved,
            Request::Chain(spec) => &spec.resolved,
        }
    }
}

impl ChainSpec {
    fn of(walked: Walked) -> Result<Self, SpecError> {
        let Walked { json, sweep, places, missing, idle } = walked;
        all_or(missing)?;
        all_or(idle)?;
        let experiment: ChainExperiment = tables_of(&json);
        let name = name(experiment.name.as_ref(), &places)?;
        let resolved = resolved::chain(&experiment, &name);
        let ChainExperiment { seed, chain, .. } = experiment;
        if chain.bus_jitter.is_some() && !matches!(chain.chain(), ChainConfig::Hardware { .. }) {
            let text = "only the interface's timestamps cross the bus: take a stage \"hardware, ...\", or leave it out";
            return Err(places.problem("chain.bus_jitter", text).into());
        }
        Ok(ChainSpec { name, seed, chain, resolved, sweep })
    }
}

impl Spec {
    /// Reads an experiment on a network from its text, without `[sweep]`; see [`Request::read`].
    ///
    /// # Errors
    /// Everything that one stage of reading finds wrong; and when the file asks for the measurement chain.
    pub fn read(text: &str, path: &str, overrides: &Overrides) -> Result<Spec, SpecError> {
        match Request::read(text, path, overrides, false)? {
            Request::Network(spec) => Ok(*spec),
            Request::Chain(_) => {
                let (key, place) = ("chain".into(), ProblemPlace::File { path: path.into() });
                Err(Problem { key, place, problem: "an experiment on a network has no such table".into() }.into())
            }
        }
    }

    fn of(walked: Walked) -> Result<Spec, SpecError> {
        let Walked { json, sweep, places, missing, idle } = walked;
        let mut experiment: Experiment = tables_of(&json);
        let conditions = Conditions::of(&experiment);
        conditions::check(&conditions, &places, missing, idle)?;
        let week = {
            let own = rules::check(&experiment, &json, &places, &conditions);
            drop(conditions);
            own?
        };
        experiment.fill_in(&places);
        let conditions = Conditions::of(&experiment);
        let imported = ImportedNetwork::of(&experiment, &places, week)?;
        let watched = rules::watched_queues(&experiment, &places, &imported.network)?;
        let directory = HostDirectory::of(&experiment.fabric, &imported);
        let entries = HostEntries::of(&experiment, &places, &directory)?;
        let traffic = expander::expand(&experiment, &places, &directory, &entries)?;
        rules::intervals(&experiment, &places, traffic.flows.len())?;
        rules::left_out(&experiment, &places, &traffic.flows)?;
        rules::further_links(&experiment, &places, &imported.network, &traffic)?;
        let programs = expand_programs(&experiment.program, experiment.duration, &directory, &places)?;
        let linux = linux_hosts::expand(&experiment, &places, &conditions, &directory, &entries, &traffic, programs)?;
        let name = name(experiment.name.as_ref(), &places)?;
        let pair = measured_pair(&experiment, &imported.network, &traffic.flows);
        let resolved = resolved::network(&experiment, &conditions, &places, &name, pair);
        let Traffic { flows, workloads, probes, messages, jobs } = traffic;
        let names: Vec<&str> = flows.iter().map(|flow| name_of(flow.entry, &workloads)).collect();
        let accounted = Accounted::of(&experiment.measure.account, &names, messages.list().len(), &places)?;
        let ImportedNetwork { network, notes, .. } = imported;
        Ok(Spec {
            name,
            tables: experiment,
            network,
            hosts_per_rack: directory.per_rack(),
            notes,
            inputs: places.inputs(),
            flows,
            workloads,
            probes,
            messages,
            jobs,
            linux,
            own: places.own,
            accounted,
            watched,
            pair,
            resolved,
            sweep,
        })
    }

    /// The name in tables of the entry that a flow comes from.
    pub fn workload_name(&self, entry: TrafficEntry) -> &str {
        name_of(entry, &self.workloads)
    }

    /// How many hosts there are, where each further link counts as one.
    pub fn hosts(&self) -> usize {
        self.network.hosts()
    }

    /// A moment of the engine's clock as a span of the experiment's own time since the start.
    pub fn own_time(&self, at: Time) -> Span {
        Span::from_ps(at.as_ps() / u64::from(self.tables.time_scale))
    }

    /// The part of the run that is measured.
    pub fn measured(&self) -> Span {
        self.tables.duration.saturating_sub(self.tables.warmup)
    }
}

/// The name in tables of the entry that a flow comes from.
fn name_of(entry: TrafficEntry, workloads: &[ExpandedWorkload]) -> &str {
    match entry {
        TrafficEntry::Flows(_) => workload::FLOWS,
        TrafficEntry::Workload(index) => &workloads[index].name,
    }
}

/// The tables that a walked document gives. The walk has checked every key by the schema of these very tables.
fn tables_of<'j, T: Deserialize<'j>>(json: &'j Json) -> T {
    T::deserialize(json)
        .unwrap_or_else(|error| panic!("the walk lets through what the tables refuse: {error}\n{json:#}"))
}

/// The name of an experiment: its own, else that of its file.
fn name(own: Option<&ExperimentName>, places: &Places) -> Result<String, Problem> {
    if let Some(own) = own {
        return Ok(own.to_string());
    }
    let stem = Path::new(&places.document.path).file_stem().map_or("experiment".into(), OsStr::to_string_lossy);
    let found: Result<ExperimentName, String> = stem.parse();
    found.map(|name| name.to_string()).map_err(|problem| {
        places.problem("name", format!("the experiment has no name, and that of its file cannot be used: {problem}"))
    })
}

fn measured_pair(experiment: &Experiment, network: &Network, flows: &[Flow]) -> Option<(RackId, RackId)> {
    let Network::Hybrid(hybrid) = network else { return None };
    let given = experiment.measure.pair.map(|pair| pair.racks());
    given.or_else(|| flows.iter().find_map(|flow| flow.racks(hybrid.hosts_per_rack)))
}
