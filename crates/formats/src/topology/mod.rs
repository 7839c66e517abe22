//! Networks from files: csg-htsim's `.topo` ([`htsim`]), the `topology.txt` of ns-3's datacenter forks ([`ns3`]), and our
//! own plain list of hosts, switches and links ([`graph`]).

mod graph;
mod htsim;
mod ns3;

pub use graph::graph;
pub use htsim::htsim;
pub use ns3::ns3;

use super::ImportError;
use super::reader::Place;
use firstlight_net::topology::{Graph, Node, Topology, TopologyError};

/// A network from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The network.
    pub topology: Topology,
    /// The number that the file gives each host, by [`firstlight_net::HostId`]: lists of flows that belong to the file
    /// use it.
    pub host_numbers: Vec<u32>,
    /// What the file has and the model has not, or has in another way; each with file and line.
    pub notes: Vec<String>,
}

/// Where in a file the parts of a network stand.
struct Places<'a> {
    /// Where to point when no part is to blame.
    whole: Place<'a>,
    hosts: Vec<Place<'a>>,
    switches: Vec<Place<'a>>,
    links: Vec<Place<'a>>,
}

impl<'a> Places<'a> {
    fn new(whole: Place<'a>) -> Self {
        Places { whole, hosts: Vec::new(), switches: Vec::new(), links: Vec::new() }
    }

    /// The network; what is wrong with it is told at the part's place.
    fn build(&self, graph: Graph) -> Result<Topology, ImportError> {
        graph.build().map_err(|error| self.of(&error).error(error.to_string()))
    }

    fn of(&self, error: &TopologyError) -> Place<'a> {
        use TopologyError::{HostLinks, LongDelay, SelfLoop, Unconnected, UnknownNode, ZeroRate};
        match error {
            HostLinks { node, .. } | Unconnected { node, .. } => match node {
                Node::Host(host) => self.hosts[host.index()],
                Node::Switch(switch) => self.switches[switch.index()],
            },
            LongDelay { link, .. } | SelfLoop { link, .. } | UnknownNode { link, .. } | ZeroRate { link, .. } => {
                self.links[*link]
            }
            _ => self.whole,
        }
    }
}
