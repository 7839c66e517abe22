//! The network of an experiment: from its keys to the engine's configuration.

use super::check;
use super::error::SpecError;
use super::values::Values;
use super::{adapter, pfc, qcn, red, switches};
use firstlight_circuits::{Frame, Scheduler, Week};
use firstlight_formats::topology as import;
use firstlight_net::interface::{ChainConfig, ClockConfig, Remedies, StackConfig};
use firstlight_net::pfc::{PfcConfig, PfcLimits};
use firstlight_net::topology::{
    Cable, LeafSpine, ThreeTier, Topology, TopologyError, TreeCables, Wire, dumbbell, fat_tree, star,
};
use firstlight_net::{Discipline, HostId, Marking, PacerConfig, RedConfig};
use firstlight_sim::{
    CircuitConfig, ControlConfig, DemandSource, GraphConfig, HostLinks, HybridConfig, InterfaceConfig, PacketConfig,
    Resize, VoqConfig,
};
use firstlight_units::Rate;

/// The network of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    /// Hosts and switches, joined in any way.
    Graph(Box<GraphConfig>),
    /// Racks joined by a packet network and a circuit switch.
    Hybrid(Box<HybridConfig>),
}

/// A network, with what goes along with its file.
pub(crate) struct Found {
    pub network: Network,
    /// The number by which lists of flows call each host, ascending.
    pub host_numbers: Vec<u32>,
    /// What the file has and we have not.
    pub notes: Vec<String>,
}

impl Found {
    /// A network without a file.
    fn new(network: Network) -> Self {
        Found { host_numbers: (0..network.hosts() as u32).collect(), network, notes: vec![] }
    }
}

impl Network {
    /// The network that checked values describe; `week` is that of a hybrid fabric.
    pub(crate) fn read(values: &Values, week: Option<Week>) -> Result<Found, SpecError> {
        let found = Self::find(values, week)?;
        adapter::check(values, &found.network)?;
        Ok(found)
    }

    fn find(values: &Values, week: Option<Week>) -> Result<Found, SpecError> {
        if let Some(week) = week {
            let hybrid = pfc::read_hybrid(values, hybrid(values, week)?)?;
            return Ok(Found::new(Network::Hybrid(Box::new(hybrid))));
        }
        if values.text("fabric.kind") == "graph" {
            return imported(values);
        }
        let topology = topology(values).map_err(|(key, error)| values.problem(key, error.to_string()))?;
        Ok(Found::new(Network::Graph(Box::new(graph(values, topology)?))))
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        match self {
            Network::Graph(graph) => graph.topology.hosts(),
            Network::Hybrid(hybrid) => hybrid.racks * hybrid.hosts_per_rack,
        }
    }

    /// What the hosts do to packets on the way between their TCP and their links.
    pub fn interface(&self) -> &InterfaceConfig {
        match self {
            Network::Graph(graph) => &graph.interface,
            Network::Hybrid(hybrid) => &hybrid.interface,
        }
    }

    /// How links can be paused, if they can.
    pub(crate) fn pfc(&self) -> Option<&PfcConfig> {
        match self {
            Network::Graph(graph) => graph.switch.pfc.as_ref(),
            Network::Hybrid(hybrid) => hybrid.pfc.as_ref(),
        }
    }

    /// The link to each host, by number, and the one back from it.
    pub(crate) fn links_to_hosts(&self) -> Vec<(Wire, Wire)> {
        match self {
            Network::Graph(graph) => {
                let (topology, backs) = (&graph.topology, graph.topology.reverses());
                let nics = topology.ports().len()..topology.transmitters();
                nics.map(|nic| (topology.wire_of(backs[nic]), topology.wire_of(nic))).collect()
            }
            Network::Hybrid(hybrid) => {
                let HostLinks { rate, receive_rate, delay } = hybrid.links;
                vec![(Wire { rate: receive_rate, delay }, Wire { rate, delay }); self.hosts()]
            }
        }
    }

    /// When each host pauses the link to it, by number; none where hosts do not.
    pub(crate) fn limits_of_adapters(&self) -> Vec<PfcLimits> {
        let Some((pfc, receive)) = self.pfc().zip(self.interface().adapter.receive) else { return vec![] };
        let pfc = pfc.at_adapter(receive.buffer);
        self.links_to_hosts().into_iter().map(|(there, back)| pfc.limits(there, back)).collect()
    }

    /// Rate of a host's interface.
    pub fn host_rate(&self, host: HostId) -> Rate {
        match self {
            Network::Graph(graph) => graph.topology.nics()[host.index()].wire.rate,
            Network::Hybrid(hybrid) => hybrid.links.rate,
        }
    }
}

fn count(values: &Values, path: &str) -> u32 {
    u32::try_from(values.integer(path)).expect("the registry bounds it")
}

pub(crate) fn time_scale(values: &Values) -> u32 {
    count(values, "time_scale")
}

fn links(values: &Values) -> HostLinks {
    let rate = values.rate("hosts.rate");
    HostLinks {
        rate,
        receive_rate: values.rate_opt("hosts.receive_rate").unwrap_or(rate),
        delay: values.span("hosts.delay"),
    }
}

fn interface(values: &Values) -> Result<InterfaceConfig, SpecError> {
    Ok(InterfaceConfig {
        send_delay: values.span("hosts.send_delay"),
        receive_delay: values.span("hosts.receive_delay"),
        loss: values.number("hosts.loss"),
        clock: ClockConfig {
            offset: values.span("hosts.clock_offset"),
            drift: (values.number("hosts.clock_drift_ppm") * 1000.0).round() as u32,
        },
        stamps: stamps(values),
        pacer: values.tables.contains_key("pacer").then(|| PacerConfig {
            period: values.span("pacer.period"),
            weight: values.number("pacer.weight"),
            drain: values.number("pacer.drain"),
            chance: values.number("pacer.chance"),
            idle: values.span("pacer.idle"),
        }),
        qcn: qcn::read(values),
        adapter: adapter::read(values)?,
    })
}

fn stamps(values: &Values) -> ChainConfig {
    let remedies = || Remedies {
        token_bucket: values.flag("stamps.token_bucket"),
        calibration: values.flag("stamps.calibration"),
    };
    match values.text("stamps.kind").as_str() {
        "gaussian" => ChainConfig::Gaussian { deviation: values.span("stamps.deviation") },
        "kernel" => ChainConfig::Kernel(StackConfig::default()),
        "software" => ChainConfig::software(remedies()),
        "hardware" => ChainConfig::hardware(remedies()),
        _ => ChainConfig::Ideal,
    }
}

/// A network from a file, and what the file has besides.
fn imported(values: &Values) -> Result<Found, SpecError> {
    const KEY: &str = "fabric.file";
    let (path, text) = values.file(KEY)?;
    let format = values.text_opt("fabric.format");
    let read = match format.as_deref() {
        Some("htsim") => import::htsim,
        Some("ns3") => import::ns3,
        None if path.ends_with(".topo") => import::htsim,
        _ => import::graph,
    };
    let import::Imported { topology, host_numbers, mut notes } =
        read(&path, &text).map_err(|error| values.imported(KEY, error))?;
    slow_links(values, &path, &topology)?;
    if let Some((host, number)) = host_numbers.iter().enumerate().find(|(host, number)| **number as usize != *host) {
        notes.push(format!(
            "{path}: its host {number} is host{host} here, and so on: hosts are numbered in order. Lists of flows are read \
             with the file's numbers"
        ));
    }
    let network = Network::Graph(Box::new(graph(values, topology)?));
    Ok(Found { network, host_numbers, notes })
}

/// Refuses links of a file on which one packet would take for ever.
fn slow_links(values: &Values, path: &str, topology: &Topology) -> Result<(), SpecError> {
    let wires = topology.nics().iter().map(|nic| nic.wire).chain(topology.ports().iter().map(|port| port.wire));
    let Some(slowest) = wires.map(|wire| wire.rate).min() else { return Ok(()) };
    match check::too_slow(values, slowest) {
        Some(text) => Err(values.problem("fabric.file", format!("{path} has a link of {slowest}: {text}")).into()),
        None => Ok(()),
    }
}

fn graph(values: &Values, topology: Topology) -> Result<GraphConfig, SpecError> {
    switches::watched(values, &topology)?;
    let switch = pfc::read(values, &topology, switches::read(values)?)?;
    Ok(GraphConfig {
        topology,
        interface: interface(values)?,
        switch,
        spray: values.flag("fabric.spray"),
        time_scale: time_scale(values),
        seed: values.integer("seed"),
    })
}

/// Cables of hosts, of the tier of links above, and of the one above that.
fn cables(values: &Values) -> TreeCables {
    let HostLinks { rate, receive_rate, delay } = links(values);
    let host = Cable { there: Wire { rate, delay }, back: Wire { rate: receive_rate, delay } };
    let rate = values.rate_opt("links.rate").unwrap_or(rate);
    let delay = values.span_opt("links.delay").unwrap_or(delay);
    let core = values.rate_opt("links.core_rate").unwrap_or(rate);
    let core = Cable::new(core, values.span_opt("links.core_delay").unwrap_or(delay));
    TreeCables { host, aggregation: Cable::new(rate, delay), core }
}

/// Who is joined with whom; an error names the key that is to blame.
fn topology(values: &Values) -> Result<Topology, (&'static str, TopologyError)> {
    let cables = cables(values);
    let count = |path| count(values, path);
    match values.text("fabric.kind").as_str() {
        "dumbbell" => dumbbell(count("fabric.left"), count("fabric.right"), cables.host, cables.aggregation)
            .map_err(|error| ("fabric", error)),
        "leaf_spine" => LeafSpine {
            leaves: count("fabric.racks"),
            spines: count("fabric.spines"),
            hosts_per_leaf: count("fabric.hosts_per_rack"),
            host: cables.host,
            uplink: cables.aggregation,
        }
        .build()
        .map_err(|error| ("fabric", error)),
        "fat_tree" => fat_tree(count("fabric.k"), cables).map_err(|error| ("fabric.k", error)),
        "three_tier" => ThreeTier {
            servers: count("fabric.racks").saturating_mul(count("fabric.hosts_per_rack")),
            tors: count("fabric.racks"),
            aggregations: count("fabric.aggregations"),
            cores: count("fabric.cores"),
            tor_uplinks: values.packets_opt("fabric.tor_uplinks"),
            aggregation_uplinks: values.packets_opt("fabric.aggregation_uplinks"),
            cables,
        }
        .build()
        .map_err(|error| ("fabric", error)),
        _ => star(count("fabric.hosts"), cables.host).map_err(|error| ("fabric.hosts", error)),
    }
}

/// The control loop, when the schedule is computed, and what each of its weeks must fit in.
pub(super) fn control(values: &Values) -> Option<(ControlConfig, Frame)> {
    let night = values.span("schedule.night");
    let least_day = values.span_opt("schedule.least_day").unwrap_or(night);
    let scheduler = Scheduler::from_name(&values.text("schedule.kind")).filter(|found| *found != Scheduler::Strobe)?;
    let demand = values.text("control.demand");
    let source = DemandSource::ALL.into_iter().find(|source| source.name() == demand);
    let demand = source.expect("the registry lets no other name through");
    let control = ControlConfig { demand, scheduler, compute: values.span("control.compute"), night, least_day };
    let (circuit, packet) = (values.rate("circuit.rate"), values.rate("packet.rate"));
    Some((control, Frame { week: values.span("schedule.week"), night, least_day, circuit, packet }))
}

fn hybrid(values: &Values, week: Week) -> Result<HybridConfig, SpecError> {
    let resize = values.packets_opt("voq.large").zip(values.span_opt("voq.advance"));
    Ok(HybridConfig {
        racks: count(values, "fabric.racks") as usize,
        hosts_per_rack: count(values, "fabric.hosts_per_rack") as usize,
        links: links(values),
        interface: interface(values)?,
        packet: PacketConfig {
            rate: values.rate("packet.rate"),
            delay: values.span("packet.delay"),
            switch_queue: values.packets("packet.switch_queue"),
            switched: values.flag("packet.switched"),
        },
        circuit: CircuitConfig { rate: values.rate("circuit.rate"), delay: values.span("circuit.delay") },
        week,
        control: control(values).map(|(control, _)| control),
        voq: VoqConfig {
            discipline: voq_discipline(values)?,
            resize: resize.map(|(large, advance)| Resize::packets(large, values.packets_opt("voq.ecn_large"), advance)),
        },
        pfc: None,
        marks: values.tables.contains_key("marks").then(|| values.span("marks.advance")),
        time_scale: time_scale(values),
        seed: values.integer("seed"),
    })
}

fn voq_discipline(values: &Values) -> Result<Discipline, SpecError> {
    let (limit, threshold) = (values.packets_opt("voq.small"), values.packets_opt("voq.ecn_small"));
    let discipline = Discipline::packets(limit, threshold);
    Ok(match voq_red(values)? {
        Some(red) => Discipline { marking: Marking::Red(red), ..discipline },
        None => discipline,
    })
}

fn voq_red(values: &Values) -> Result<Option<RedConfig>, SpecError> {
    const TABLE: &str = "voq.red";
    if !values.tables.contains_key(TABLE) {
        return Ok(None);
    }
    if let Some(threshold) = ["voq.ecn_small", "voq.ecn_large"].into_iter().find(|key| values.has(key)) {
        return Err(values
            .problem(TABLE, format!("there is {threshold} already, and a queue marks in one way: take one of them out"))
            .into());
    }
    red::read(values, TABLE).map(Some)
}
