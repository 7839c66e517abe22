//! The experiment as a checked value: everything that can be wrong with a file is found here, before anything is built.
//!
//! Reading goes in stages; each reports all that it finds, with place, before the next begins: TOML with its spans
//! (`document`), overrides laid over it, every value sorted to its key and type (`walk`), keys that are missing or
//! idle (`effect`), and values that do not fit each other (`check`).

mod adapter;
mod check;
mod control;
mod document;
mod effect;
mod error;
mod fabric_keys;
mod flows;
mod hosts;
mod kernel;
mod keys;
mod linux;
mod network;
mod overrides;
mod pfc;
mod programs;
mod qcn;
mod red;
mod reference;
mod registry;
mod resolved;
mod settings;
mod switches;
mod value;
mod values;
mod walk;
mod workload;

pub use control::Control;
pub use error::{Place, Problem, SpecError};
pub use flows::{Entry, Flow};
pub use hosts::HostKind;
pub use keys::{Fallback, Key, Kind, When};
pub use linux::{Linux, LinuxHost};
pub use network::Network;
pub use overrides::{OverrideValue, Overrides};
pub use programs::Program;
pub use reference::{keys_json, reference};
pub use registry::keys;
pub use workload::{Job, Probe, Workload};

use document::Document;
use firstlight_circuits::RackId;
use firstlight_messages::Messages;
use firstlight_sim::{SeriesConfig, WatchConfig};
use firstlight_transport::TcpConfig;
use firstlight_units::{Bytes, Span};
use flows::Traffic;
use hosts::Shape;
use linux::HostEntries;
use network::time_scale;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use values::Values;

/// A checked experiment. Its spans are the experiment's own, not stretched by `time_scale`.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// How long the network runs, warm-up included.
    pub duration: Span,
    /// The part at the start that is not measured.
    pub warmup: Span,
    /// How much the fabric's times are stretched against the hosts' clocks.
    pub time_scale: u32,
    /// The network.
    pub network: Network,
    /// Whether lossless classes may lose packets.
    pub allow_loss: bool,
    /// Hosts in each rack; all of them where there are no racks.
    pub hosts_per_rack: usize,
    /// What the network's file has and we have not.
    pub notes: Vec<String>,
    /// The files that were read besides the experiment's own: the name that it has for each, and its path.
    pub inputs: BTreeMap<String, String>,
    /// The hosts' TCP.
    pub tcp: TcpConfig,
    /// One entry for each connection.
    pub flows: Vec<Flow>,
    /// One entry for each `[[workload]]`; its flows are among the others.
    pub workloads: Vec<Workload>,
    /// Packets at a constant rate, without TCP.
    pub probes: Vec<Probe>,
    /// What the flows that carry messages send, and after what.
    pub messages: Messages,
    /// The jobs of messages, by number.
    pub jobs: Vec<Job>,
    /// The hosts that run Linux, with their programs.
    pub linux: Option<Linux>,
    /// What is recorded.
    pub measure: Measure,
    /// The experiment with all its defaults, as nested tables.
    pub resolved: Json,
    /// The keys to sweep with their values, when that was allowed.
    pub sweep: Vec<(String, Vec<Json>)>,
}

/// What is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The measured pair of racks; none on a star, or when no flow leaves its rack.
    pub pair: Option<(RackId, RackId)>,
    /// The folded series.
    pub series: Option<SeriesConfig>,
    /// How often the state of each flow with Linux hosts is sampled.
    pub tcp_info: Option<Span>,
    /// Sizes at which the groups of completion times begin, above 0.
    pub fct_groups: Vec<Bytes>,
    /// Which queues are watched, and how.
    pub queues: WatchConfig,
    /// What each flow received is told for each interval of this length.
    pub throughput: Option<Span>,
    /// Whether each packet of a probe is told.
    pub probes: bool,
    /// Whether each change of a rate that QCN limits is told.
    pub rate_limiters: bool,
    /// Whether to write a packet capture.
    pub capture: bool,
    /// Where packets are captured.
    pub side: CaptureSide,
}

/// At which end of a flow packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureSide {
    /// At the host that sends the data, as tcpdump there would.
    Sender,
    /// At the host that receives the data.
    Receiver,
    /// At both: every packet is seen twice.
    Both,
}

impl Spec {
    /// Reads an experiment from its text; `path` is for messages. `[sweep]` is an error.
    ///
    /// # Errors
    /// Everything that one stage of reading finds wrong.
    pub fn read(text: &str, path: &str, overrides: &Overrides) -> Result<Spec, SpecError> {
        Self::read_with(text, path, overrides, false)
    }

    /// As [`Spec::read`]; with `allow_sweep` a `[sweep]` table is checked and handed over in [`Spec::sweep`].
    ///
    /// # Errors
    /// Everything that one stage of reading finds wrong.
    pub fn read_with(text: &str, path: &str, overrides: &Overrides, allow_sweep: bool) -> Result<Spec, SpecError> {
        let mut document = Document::parse(text, path)?;
        document.apply(overrides)?;
        let values = Values::collect(document, allow_sweep)?;
        let setting = effect::check(&values)?;
        let week = check::values(&values, &setting)?;
        let found = Network::read(&values, week)?;
        let shape = Shape::of(&values, &found);
        let entries = HostEntries::read(&values, &shape)?;
        let traffic = flows::expand(&values, &shape, &entries)?;
        check::intervals(&values, traffic.flows.len())?;
        let programs = programs::expand(&values, &shape)?;
        let linux = linux::expand(&values, &setting, &shape, &entries, &traffic.flows, programs)?;
        Ok(Spec { notes: found.notes, ..Spec::of(&values, &setting, found.network, shape.per_rack(), traffic, linux) })
    }

    fn of(
        values: &Values,
        setting: &effect::Setting,
        network: Network,
        hosts_per_rack: usize,
        traffic: Traffic,
        linux: Option<Linux>,
    ) -> Spec {
        let Traffic { flows, workloads, probes, messages, jobs } = traffic;
        let measure = measure(values, &network, &flows);
        Spec {
            name: name(values),
            seed: values.integer("seed"),
            duration: values.span("duration"),
            warmup: values.span("warmup"),
            time_scale: time_scale(values),
            tcp: tcp(values),
            resolved: resolved::json(values, setting, &name(values), measure.pair),
            sweep: values.sweep.clone(),
            network,
            allow_loss: values.flag("pfc.allow_loss"),
            hosts_per_rack,
            notes: vec![],
            inputs: values.inputs.borrow().clone(),
            flows,
            workloads,
            probes,
            messages,
            jobs,
            linux,
            measure,
        }
    }

    /// The name in tables of what a flow comes from.
    pub fn workload_name(&self, entry: Entry) -> &str {
        match entry {
            Entry::Flows(_) => workload::FLOWS,
            Entry::Workload(index) => &self.workloads[index].name,
        }
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.network.hosts()
    }

    /// The part of the run that is measured.
    pub fn measured(&self) -> Span {
        self.duration.saturating_sub(self.warmup)
    }
}

fn name(values: &Values) -> String {
    let stem = Path::new(&values.document.path).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    values.text_opt("name").or(stem).unwrap_or_else(|| "experiment".into())
}

fn tcp(values: &Values) -> TcpConfig {
    TcpConfig {
        mtu: u16::try_from(values.size("hosts.mtu").get()).expect("the registry bounds the MTU"),
        initial_window: values.packets("tcp.initial_window"),
        receive_window: values.size("tcp.receive_window"),
        autotune: values.flag("tcp.autotune") && (values.has("tcp.autotune") || !values.has("tcp.receive_window")),
        send_buffer: values.size_opt("tcp.send_buffer"),
        rto_min: values.span("tcp.rto_min"),
        rto_variance: values.span_opt("tcp.rto_variance"),
        rto_initial: values.span("tcp.rto_initial"),
        rto_max: values.span("tcp.rto_max"),
        delayed_ack: values.span("tcp.delayed_ack"),
        quick_acks: values.packets("tcp.quick_acks"),
        tick: values.span("tcp.tick"),
        ecn: values.flag("tcp.ecn"),
        frto: values.flag("tcp.frto"),
        tail_loss_probe: values.flag("tcp.tail_loss_probe"),
        compress_sacks: values.flag("tcp.compress_sacks"),
        bursts: values.flag("tcp.bursts"),
        ..TcpConfig::default()
    }
}

fn measure(values: &Values, network: &Network, flows: &[Flow]) -> Measure {
    let given = values.pair_opt("measure.pair").map(|(a, b)| (RackId(a), RackId(b)));
    let pair = match network {
        Network::Graph(_) => None,
        Network::Hybrid(hybrid) => given.or_else(|| flows.iter().find_map(|flow| flow.racks(hybrid.hosts_per_rack))),
    };
    let series =
        values.span_opt("measure.series").map(|every| SeriesConfig { every, fold: values.packets("measure.fold") });
    let side = match values.text("measure.capture_side").as_str() {
        "sender" => CaptureSide::Sender,
        "receiver" => CaptureSide::Receiver,
        _ => CaptureSide::Both,
    };
    let tcp_info = values.span_opt("measure.tcp_info");
    let fct_groups = values.sizes("measure.fct_groups");
    let queues = WatchConfig { ports: values.texts("measure.queues"), every: values.span_opt("measure.queue_samples") };
    Measure {
        pair,
        series,
        tcp_info,
        fct_groups,
        queues,
        throughput: values.span_opt("measure.throughput"),
        probes: values.flag("measure.probes"),
        rate_limiters: values.flag("measure.rate_limiters"),
        capture: values.flag("measure.capture"),
        side,
    }
}
