//! The network of an experiment: from its tables to the engine's configuration.

use crate::error::SpecError;
use crate::places::Places;
use crate::rules;
use crate::tables::{Experiment, FabricFormat, FabricTable, GraphFile, JitterTable, MarksTable, RackCounts, Routed};
use firstlight_circuits::Week;
use firstlight_formats::{cdf, topology as import};
use firstlight_net::HostId;
use firstlight_net::fabric::{ControlConfig, GraphConfig, HostLinks, HybridConfig, InterfaceConfig, SwitchConfig};
use firstlight_net::interface::Jitter;
use firstlight_net::pfc::{PfcConfig, PfcLimits};
use firstlight_net::topology::{Cable, FurtherLink, Topology, TreeCables, Wire};
use firstlight_units::Rate;

/// The network of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    /// Hosts and switches, joined in any way.
    Graph(Box<GraphConfig>),
    /// Racks joined by a packet network and a circuit switch.
    Hybrid(Box<HybridConfig>),
}

/// A network from a file, with notes on the file.
pub(crate) struct ImportedNetwork {
    pub network: Network,
    /// The number by which lists of flows call each host, ascending.
    pub host_numbers: Vec<u32>,
    /// Notes on parts of the file that are not modelled.
    pub notes: Vec<String>,
}

impl ImportedNetwork {
    /// A network without a file.
    fn new(network: Network) -> Self {
        ImportedNetwork { host_numbers: (0..network.hosts() as u32).collect(), network, notes: vec![] }
    }

    /// The network that an experiment describes; `week` is that of a hybrid fabric.
    pub fn of(experiment: &Experiment, places: &Places, week: Option<Week>) -> Result<Self, SpecError> {
        let imported = match (&experiment.fabric, week) {
            (FabricTable::Hybrid(racks), Some(week)) => {
                let hybrid = rules::lossless_hybrid(experiment, places, hybrid(experiment, places, racks, week)?)?;
                ImportedNetwork::new(Network::Hybrid(Box::new(hybrid)))
            }
            (FabricTable::Graph(Routed { shape, .. }), _) => from_file(experiment, places, shape)?,
            (fabric, _) => {
                let built = fabric.topology(cables(experiment)).expect("all other fabrics are built from keys");
                let topology = built.map_err(|(key, error)| places.problem(key, error.to_string()))?;
                ImportedNetwork::new(Network::Graph(Box::new(graph(experiment, places, topology)?)))
            }
        };
        rules::adapters(experiment, places, &imported.network)?;
        Ok(imported)
    }
}

impl Network {
    /// Further links of hosts, which have numbers after the hosts.
    pub fn further(&self) -> &[FurtherLink] {
        match self {
            Network::Graph(graph) => graph.topology.further(),
            Network::Hybrid(_) => &[],
        }
    }

    /// How many hosts there are, where each further link counts as one.
    pub fn hosts(&self) -> usize {
        match self {
            Network::Graph(graph) => graph.topology.hosts(),
            Network::Hybrid(hybrid) => hybrid.hosts(),
        }
    }

    /// The names of the queues that can be watched: ports in the order of their numbers, or VOQs.
    pub(crate) fn queue_names(&self) -> Vec<String> {
        match self {
            Network::Graph(graph) => rules::port_names(&graph.topology),
            Network::Hybrid(hybrid) => hybrid.voq_names(),
        }
    }

    /// The configuration of the hosts' interfaces, between their TCP and their links.
    pub fn interface(&self) -> &InterfaceConfig {
        match self {
            Network::Graph(graph) => &graph.interface,
            Network::Hybrid(hybrid) => &hybrid.interface,
        }
    }

    /// How links can be paused, if they can.
    fn pfc(&self) -> Option<&PfcConfig> {
        match self {
            Network::Graph(graph) => graph.switch.pfc.as_ref(),
            Network::Hybrid(hybrid) => hybrid.pfc.as_ref(),
        }
    }

    /// The link to each host, by number, and the link in the other direction.
    pub fn links_to_hosts(&self) -> Vec<(Wire, Wire)> {
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
    pub fn limits_of_adapters(&self) -> Vec<PfcLimits> {
        let Some((pfc, receive)) = self.pfc().zip(self.interface().adapter.receive) else { return vec![] };
        let pfc = pfc.at_adapter(receive.buffer);
        self.links_to_hosts().into_iter().map(|(forward, reverse)| pfc.limits(forward, reverse)).collect()
    }

    /// Rate of a host's interface.
    pub fn host_rate(&self, host: HostId) -> Rate {
        match self {
            Network::Graph(graph) => graph.topology.nics()[host.index()].wire.rate,
            Network::Hybrid(hybrid) => hybrid.links.rate,
        }
    }
}

fn links(experiment: &Experiment) -> HostLinks {
    let hosts = &experiment.hosts;
    let rate = hosts.rate.expect("links that no file gives have a rate");
    HostLinks { rate, receive_rate: hosts.receive_rate.unwrap_or(rate), delay: hosts.delay }
}

fn interface(experiment: &Experiment, places: &Places) -> Result<InterfaceConfig, SpecError> {
    let hosts = &experiment.hosts;
    Ok(InterfaceConfig {
        framing: hosts.framing,
        send_delay: hosts.send_delay,
        receive_delay: hosts.receive_delay,
        jitter: hosts.jitter.as_ref().map(|table| jitter(table, places)).transpose()?,
        loss: hosts.loss,
        clock: hosts.clock(),
        stamps: experiment.stamps.chain(),
        tables: experiment.interface,
        adapter: experiment.adapter.config(),
    })
}

fn jitter(table: &JitterTable, places: &Places) -> Result<Jitter, SpecError> {
    const KEY: &str = "hosts.jitter.file";
    Ok(match *table {
        JitterTable::Uniform { most } => Jitter::Uniform(most),
        JitterTable::Exponential { mean } => Jitter::Exponential(mean),
        JitterTable::LogNormal { mean, deviation } => Jitter::LogNormal { mean, deviation },
        JitterTable::File { ref file, unit } => {
            let (path, text) = places.read_file(KEY, file)?;
            let points = cdf::read_delays(&text, &path, unit).map_err(|error| places.imported(KEY, error))?;
            Jitter::Table(points)
        }
    })
}

/// Reads a network from a file, with notes on the file.
fn from_file(experiment: &Experiment, places: &Places, fabric: &GraphFile) -> Result<ImportedNetwork, SpecError> {
    const KEY: &str = "fabric.file";
    let (path, text) = places.read_file(KEY, &fabric.file)?;
    let read = match fabric.format {
        Some(FabricFormat::Htsim) => import::htsim,
        Some(FabricFormat::Ns3) => import::ns3,
        None if path.ends_with(".topo") => import::htsim,
        _ => import::graph,
    };
    let import::Imported { topology, host_numbers, mut notes } =
        read(&path, &text).map_err(|error| places.imported(KEY, error))?;
    rules::slow_links(experiment, places, &path, &topology)?;
    if let Some((host, number)) = host_numbers.iter().enumerate().find(|(host, number)| **number as usize != *host) {
        notes.push(format!(
            "{path}: its host {number} is host{host} here, and so on: hosts are numbered in order. Lists of flows are \
             read with the file's numbers"
        ));
    }
    notes.extend(further_links(&path, &topology));
    let network = Network::Graph(Box::new(graph(experiment, places, topology)?));
    Ok(ImportedNetwork { network, host_numbers, notes })
}

/// The numbers of further links.
fn further_links(path: &str, topology: &Topology) -> Option<String> {
    let first = topology.further().first()?;
    let number = topology.hosts() - topology.further().len();
    Some(format!(
        "{path}: hosts have further links, which are numbered after the hosts: host{number} is the second link of \
         host{}, and so on. What names a host takes its first link",
        first.of.0
    ))
}

fn graph(experiment: &Experiment, places: &Places, topology: Topology) -> Result<GraphConfig, SpecError> {
    let exceptions = rules::special_ports(experiment, places, &topology)?;
    let tables = experiment.switches.clone();
    let switch = SwitchConfig { exceptions, tables, ..experiment.switch.config() };
    let switch = rules::lossless_switches(experiment, places, &topology, switch)?;
    Ok(GraphConfig {
        topology,
        interface: interface(experiment, places)?,
        switch,
        spray: experiment.fabric.spray(),
        time_scale: experiment.time_scale,
        seed: experiment.seed,
    })
}

/// Cables of hosts, of the tier of links above, and of the one above that.
fn cables(experiment: &Experiment) -> TreeCables {
    let HostLinks { rate, receive_rate, delay } = links(experiment);
    let host = Cable { there: Wire { rate, delay }, back: Wire { rate: receive_rate, delay } };
    let links = &experiment.links;
    let (rate, delay) = (links.rate.unwrap_or(rate), links.delay.unwrap_or(delay));
    let core = Cable::new(links.core_rate.unwrap_or(rate), links.core_delay.unwrap_or(delay));
    TreeCables { host, aggregation: Cable::new(rate, delay), core }
}

fn hybrid(experiment: &Experiment, places: &Places, racks: &RackCounts, week: Week) -> Result<HybridConfig, SpecError> {
    const NEEDED: &str = "a hybrid fabric has this table";
    let computed = experiment.schedule.as_ref().and_then(|schedule| schedule.computed());
    Ok(HybridConfig {
        hosts_per_rack: racks.hosts_per_rack as usize,
        links: links(experiment),
        interface: interface(experiment, places)?,
        packet: experiment.packet.clone().expect(NEEDED),
        circuit: experiment.circuit.clone().expect(NEEDED),
        week,
        control: computed.map(|(scheduler, week)| ControlConfig {
            demand: experiment.control.demand,
            scheduler,
            compute: experiment.control.compute,
            night: week.night,
            least_day: week.least_day.unwrap_or(week.night),
        }),
        voq: experiment.voq.config(),
        pfc: None,
        marks: experiment.marks.as_ref().and_then(MarksTable::marks),
        notices: experiment.marks.as_ref().and_then(MarksTable::notices),
        tables: experiment.switches.clone(),
        time_scale: experiment.time_scale,
        seed: experiment.seed,
    })
}
