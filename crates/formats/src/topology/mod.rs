//! Networks from files: csg-htsim's `.topo` ([`htsim`]), the `topology.txt` of ns-3's datacenter forks ([`ns3`]), and
//! Firstlight's own list of hosts, switches and links ([`graph`]).

mod graph;
mod htsim;
mod ns3;

pub use graph::graph;
pub use htsim::htsim;
pub use ns3::ns3;

use super::ImportError;
use super::reader::FilePlace;
use firstlight_net::topology::{Graph, Node, Topology, TopologyError};

/// A network from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The network.
    pub topology: Topology,
    /// The number that the file gives each host, by [`firstlight_net::HostId`]. Flow lists that belong to the file use
    /// these numbers.
    pub host_numbers: Vec<u32>,
    /// Parts of the file that the model lacks or models differently, each with file and line.
    pub notes: Vec<String>,
}

/// The places in a file of a network's parts.
struct NetworkPlaces<'a> {
    /// The place for errors that concern no single part.
    whole: FilePlace<'a>,
    hosts: Vec<FilePlace<'a>>,
    switches: Vec<FilePlace<'a>>,
    links: Vec<FilePlace<'a>>,
}

impl<'a> NetworkPlaces<'a> {
    fn new(whole: FilePlace<'a>) -> Self {
        NetworkPlaces { whole, hosts: Vec::new(), switches: Vec::new(), links: Vec::new() }
    }

    /// Builds the network. An error is at the place of the part that it concerns.
    fn build(&self, graph: Graph) -> Result<Topology, ImportError> {
        graph.build().map_err(|error| self.of(&error).error(error.to_string()))
    }

    fn of(&self, error: &TopologyError) -> FilePlace<'a> {
        use TopologyError::{HostPair, HostWithoutLink, LongDelay, SelfLoop, Unconnected, UnknownNode, ZeroRate};
        match error {
            HostWithoutLink { node, .. } | Unconnected { node, .. } => match node {
                Node::Host(host) => self.hosts[host.index()],
                Node::Switch(switch) => self.switches[switch.index()],
            },
            LongDelay { link, .. }
            | SelfLoop { link, .. }
            | UnknownNode { link, .. }
            | ZeroRate { link, .. }
            | HostPair { link, .. } => self.links[*link],
            _ => self.whole,
        }
    }
}
