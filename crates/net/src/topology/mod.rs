//! Packet fabrics: which hosts and switches there are, what joins them, and which way a packet goes.
//!
//! A [`Topology`] is a checked graph in which everything is connected. It comes from a builder ([`star`], [`dumbbell`],
//! [`back_to_back`], [`LeafSpine`], [`fat_tree`], [`ThreeTier`], [`Tree`], [`torus`]) or from lists of nodes and links
//! ([`Graph`]). [`Routes`] says which output port a packet takes, [`Path`] what an empty path costs.
//!
//! Output ports of switches are numbered from 0, those of a switch in one run and in the order in which its links were
//! given, so that an engine keeps them in one array. Builders give a switch its links downward first.
//!
//! A host's output is its NIC, known by the host's number. A host of a graph may have further links. Each is a host of
//! its own to all that sends packets, numbered after the hosts; [`Topology::further`] says whose link it is.

mod channels;
mod error;
mod fat_tree;
mod graph;
mod leaf_spine;
mod path;
mod routes;
mod small;
mod three_tier;
mod torus;
mod tree;

pub use channels::circular_wait;
pub use error::TopologyError;
pub use fat_tree::fat_tree;
pub use graph::{Graph, Link};
pub use leaf_spine::LeafSpine;
pub use path::{Output, Path};
pub use routes::Routes;
pub use small::{back_to_back, dumbbell, star};
pub use three_tier::ThreeTier;
pub use torus::torus;
pub use tree::Tree;

use crate::HostId;
use firstlight_units::{Rate, Span};
use std::ops::Range;

/// A switch: its place in [`Topology::switches`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SwitchId(pub u16);

impl SwitchId {
    /// The number as an index into per-switch tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An output port of a switch: its place in [`Topology::ports`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PortId(pub u32);

impl PortId {
    /// The number as an index into per-port tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node at the end of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Node {
    /// A host.
    Host(HostId),
    /// A switch.
    Switch(SwitchId),
}

/// One direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wire {
    /// How fast it takes bits.
    pub rate: Rate,
    /// How long a bit is under way.
    pub delay: Span,
}

/// Both directions of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cable {
    /// From the link's first end to its second; in a tree: upward.
    pub there: Wire,
    /// From the link's second end to its first; in a tree: downward.
    pub back: Wire,
}

impl Cable {
    /// A cable with one rate and one delay in both directions.
    pub const fn new(rate: Rate, delay: Span) -> Self {
        let wire = Wire { rate, delay };
        Cable { there: wire, back: wire }
    }
}

/// The cables of a tree's tiers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeCables {
    /// Hosts to ToR switches.
    pub host: Cable,
    /// ToR switches to aggregation switches.
    pub aggregation: Cable,
    /// Aggregation switches to core switches.
    pub core: Cable,
}

/// A switch's name and what it is one of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Switch {
    /// The switch's name: `tor3`, `spine1`, `left`.
    pub name: String,
    /// The switch's tier: `tor`, `spine`, `switch`.
    pub tier: String,
}

/// An output port of a switch with what it leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// The switch that the port belongs to.
    pub from: SwitchId,
    /// The node that the port sends to.
    pub to: Node,
    /// The wire to that node.
    pub wire: Wire,
}

/// A host's one output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nic {
    /// The switch that it sends to, or the host at the other end of a network of two hosts and one link.
    pub to: Node,
    /// The wire to that node.
    pub wire: Wire,
}

/// A further link of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FurtherLink {
    /// The host.
    pub of: HostId,
    /// The link's number among the host's links, from 1 on: the first link, number 0, is the host itself.
    pub number: u8,
}

/// A network of hosts and switches. All is connected, perhaps only by hosts that have several links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    hosts: Vec<String>,
    nics: Vec<Nic>,
    switches: Vec<Switch>,
    ports: Vec<Port>,
    /// Where each switch's ports begin, and where the last one's end.
    first: Vec<u32>,
    /// The further links of hosts: in all arrays of hosts they come last.
    further: Vec<FurtherLink>,
    /// A number for each host; hosts that switches join have the same number.
    islands: Vec<u32>,
}

impl Topology {
    /// How many hosts there are, where each further link counts as one.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// The further links of hosts, by number after those of the hosts.
    pub fn further(&self) -> &[FurtherLink] {
        &self.further
    }

    /// The host that the link with this number belongs to; a host's number gives that host.
    pub fn owner(&self, host: HostId) -> HostId {
        let further = host.index().checked_sub(self.hosts.len() - self.further.len());
        further.map_or(host, |further| self.further[further].of)
    }

    /// A number for each host: packets can pass between hosts of the same number.
    pub fn islands(&self) -> &[u32] {
        &self.islands
    }

    /// All hosts in order.
    pub fn host_ids(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..self.hosts.len()).map(|i| HostId(i as u16))
    }

    /// The switches, by number.
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// The output ports of all switches, by number.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// The output ports of hosts, by the host's number.
    pub fn nics(&self) -> &[Nic] {
        &self.nics
    }

    /// How many links there are; each of a pair of parallel links counts.
    pub fn links(&self) -> usize {
        (self.nics.len() + self.ports.len()) / 2
    }

    /// The numbers of a switch's ports.
    pub fn ports_of(&self, switch: SwitchId) -> Range<u32> {
        self.first[switch.index()]..self.first[switch.index() + 1]
    }

    /// The switch that a host hangs at; none in a network of two hosts and one link.
    pub fn edge_of(&self, host: HostId) -> Option<SwitchId> {
        match self.nics[host.index()].to {
            Node::Switch(switch) => Some(switch),
            Node::Host(_) => None,
        }
    }

    /// A node's name: `host17`, `tor3`; `host17.eth1` for the second link of a host.
    pub fn name(&self, node: Node) -> &str {
        match node {
            Node::Host(host) => &self.hosts[host.index()],
            Node::Switch(switch) => &self.switches[switch.index()].name,
        }
    }

    /// The node of that name.
    pub fn find(&self, name: &str) -> Option<Node> {
        let host = self.hosts.iter().position(|host| host == name).map(|i| Node::Host(HostId(i as u16)));
        let switch = || self.switches.iter().position(|switch| switch.name == name);
        host.or_else(|| switch().map(|i| Node::Switch(SwitchId(i as u16))))
    }

    /// A NIC's name: `host17.nic`.
    pub fn nic_name(&self, host: HostId) -> String {
        format!("{}.nic", self.hosts[host.index()])
    }

    /// A port's name: `tor3->agg1`; with `.0`, `.1`, ... behind it where links are parallel.
    pub fn port_name(&self, port: PortId) -> String {
        let Port { from, to, .. } = self.ports[port.index()];
        let name = format!("{}->{}", self.name(Node::Switch(from)), self.name(to));
        let parallel = |range: Range<u32>| range.filter(|i| self.ports[*i as usize].to == to).count();
        let Range { start, end } = self.ports_of(from);
        if parallel(start..end) == 1 { name } else { format!("{name}.{}", parallel(start..port.0)) }
    }

    /// The name of a port's queue: `host17.port` where the port leads to that host, otherwise the port's name.
    pub fn queue_name(&self, port: PortId) -> String {
        match self.ports[port.index()].to {
            Node::Host(host) => format!("host{}.port", host.0),
            Node::Switch(_) => self.port_name(port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nodes_and_ports() {
        let cable = Cable::new(Rate::from_gbps(10), Span::from_us(1));
        let tree = Tree { bundles: [2, 1], ..Tree::two_tiers(2, 1, 2, cable, cable) }.build().unwrap();
        let names: Vec<_> = (0..tree.ports().len() as u32).map(|i| tree.port_name(PortId(i))).collect();
        assert_eq!(names[..4], ["tor0->host0", "tor0->host1", "tor0->agg0.0", "tor0->agg0.1"]);
        assert_eq!(names[8..], ["agg0->tor0.0", "agg0->tor0.1", "agg0->tor1.0", "agg0->tor1.1"]);
        assert_eq!([tree.queue_name(PortId(1)), tree.queue_name(PortId(3))], ["host1.port", "tor0->agg0.1"]);
        assert_eq!(tree.nic_name(HostId(3)), "host3.nic");
        assert_eq!(tree.find("host3"), Some(Node::Host(HostId(3))));
        assert_eq!(tree.find("agg0"), Some(Node::Switch(SwitchId(2))));
        assert_eq!(tree.find("agg1"), None);
        assert_eq!(tree.edge_of(HostId(2)), Some(SwitchId(1)));
    }
}
