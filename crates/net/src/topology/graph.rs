//! A network from lists of nodes and links, and the checks that every network passes.

use super::error::at_most;
use super::{Cable, Nic, Node, Port, Switch, SwitchId, Topology, TopologyError};
use crate::HostId;
use firstlight_units::Span;
use std::collections::BTreeSet;

/// Most hosts: their number has 16 bits.
const HOSTS: u64 = 65_535;
/// Most switches: the tables of routes hold a number for each switch and each switch with hosts.
const SWITCHES: u64 = 16_384;
/// Most ports of a switch: a route names the port within its switch in 16 bits.
const PORTS_OF_SWITCH: u64 = 65_536;
/// The longest delay: that of a path through all switches is still a time.
const LONGEST: Span = Span::from_secs(1000);
/// Most links.
const LINKS: u64 = 1 << 23;

/// A link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// One end.
    pub a: Node,
    /// The other end.
    pub b: Node,
    /// `there` is from `a` to `b`.
    pub cable: Cable,
}

/// Nodes and links in the making.
///
/// Two switches may have several links (parallel ones). The order of links is that of the ports of a switch.
#[derive(Clone, Default, Debug)]
pub struct Graph {
    hosts: Vec<String>,
    switches: Vec<Switch>,
    links: Vec<Link>,
}

impl Graph {
    /// Adds a host.
    pub fn host(&mut self, name: impl Into<String>) -> Node {
        self.hosts.push(name.into());
        // Too many are refused when all is known.
        Node::Host(HostId((self.hosts.len() - 1) as u16))
    }

    /// Adds a switch.
    pub fn switch(&mut self, name: impl Into<String>, tier: impl Into<String>) -> Node {
        self.switches.push(Switch { name: name.into(), tier: tier.into() });
        Node::Switch(SwitchId((self.switches.len() - 1) as u16))
    }

    /// Adds a link.
    pub fn link(&mut self, a: Node, b: Node, cable: Cable) {
        self.links.push(Link { a, b, cable });
    }

    /// The links so far.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The network, checked.
    ///
    /// # Errors
    /// When there are fewer than 2 or more than 65,535 hosts, more than 16,384 switches, two nodes of one name, a link
    /// from a node to itself, a rate of zero, a delay above 1,000 s, a host without or with more than one link, or a
    /// node that others cannot reach.
    pub fn build(self) -> Result<Topology, TopologyError> {
        check_size(self.hosts.len() as u64, self.switches.len() as u64, self.links.len() as u64)?;
        self.check_names()?;
        for (i, link) in self.links.iter().enumerate() {
            self.check_link(i, link)?;
        }
        self.check_hosts()?;
        self.check_connected()?;
        let first = self.first_ports()?;
        let (nics, ports) = self.outputs(&first);
        let Graph { hosts, switches, .. } = self;
        Ok(Topology { hosts, nics, switches, ports, first })
    }

    fn name(&self, node: Node) -> &str {
        match node {
            Node::Host(host) => &self.hosts[host.index()],
            Node::Switch(switch) => &self.switches[switch.index()].name,
        }
    }

    /// A node's place in tables of all hosts, then all switches.
    fn place(&self, node: Node) -> usize {
        match node {
            Node::Host(host) => host.index(),
            Node::Switch(switch) => self.hosts.len() + switch.index(),
        }
    }

    fn node(&self, place: usize) -> Node {
        match place.checked_sub(self.hosts.len()) {
            Some(switch) => Node::Switch(SwitchId(switch as u16)),
            None => Node::Host(HostId(place as u16)),
        }
    }

    fn check_names(&self) -> Result<(), TopologyError> {
        let mut names = BTreeSet::new();
        for name in self.hosts.iter().chain(self.switches.iter().map(|switch| &switch.name)) {
            if !names.insert(name.as_str()) {
                return Err(TopologyError::DuplicateName { name: name.clone() });
            }
        }
        Ok(())
    }

    fn check_link(&self, link: usize, &Link { a, b, cable }: &Link) -> Result<(), TopologyError> {
        let exists = |node| match node {
            Node::Host(host) => host.index() < self.hosts.len(),
            Node::Switch(switch) => switch.index() < self.switches.len(),
        };
        if let Some(&node) = [a, b].iter().find(|node| !exists(**node)) {
            return Err(TopologyError::UnknownNode { link, node });
        }
        if a == b {
            return Err(TopologyError::SelfLoop { link, name: self.name(a).into() });
        }
        let (wires, names) = ([cable.there, cable.back], || (self.name(a).into(), self.name(b).into()));
        if wires.iter().any(|wire| wire.rate.as_bps() == 0) {
            let (a, b) = names();
            return Err(TopologyError::ZeroRate { link, a, b });
        }
        if let Some(wire) = wires.iter().find(|wire| wire.delay > LONGEST) {
            let (a, b) = names();
            return Err(TopologyError::LongDelay { link, a, b, delay: wire.delay, most: LONGEST });
        }
        Ok(())
    }

    fn check_hosts(&self) -> Result<(), TopologyError> {
        let mut links = vec![0; self.hosts.len()];
        for link in &self.links {
            for end in [link.a, link.b] {
                if let Node::Host(host) = end {
                    links[host.index()] += 1;
                }
            }
        }
        match links.iter().position(|links| *links != 1) {
            None => Ok(()),
            Some(i) => {
                let (node, name) = (self.node(i), self.hosts[i].clone());
                Err(TopologyError::HostLinks { node, name, links: links[i] })
            }
        }
    }

    /// Joins the islands that links connect: union-find with path halving.
    fn check_connected(&self) -> Result<(), TopologyError> {
        let mut parent: Vec<usize> = (0..self.hosts.len() + self.switches.len()).collect();
        let root = |parent: &mut Vec<usize>, mut i: usize| {
            while parent[i] != i {
                parent[i] = parent[parent[i]];
                i = parent[i];
            }
            i
        };
        for link in &self.links {
            let (a, b) = (root(&mut parent, self.place(link.a)), root(&mut parent, self.place(link.b)));
            parent[a.max(b)] = a.min(b);
        }
        // A root is the first node of its island, and node 0 is the first of all.
        match (0..parent.len()).find(|i| root(&mut parent, *i) != 0) {
            None => Ok(()),
            Some(i) => {
                let (node, from) = (self.node(i), self.name(self.node(0)).into());
                Err(TopologyError::Unconnected { node, name: self.name(node).into(), from })
            }
        }
    }

    /// Where each switch's ports begin, and where the last one's end.
    fn first_ports(&self) -> Result<Vec<u32>, TopologyError> {
        let mut first = vec![0; self.switches.len() + 1];
        for end in self.links.iter().flat_map(|link| [link.a, link.b]) {
            if let Node::Switch(switch) = end {
                first[switch.index() + 1] += 1;
            }
        }
        for i in 0..self.switches.len() {
            at_most(first[i + 1].into(), PORTS_OF_SWITCH, &format!("ports of {}", self.switches[i].name))?;
            first[i + 1] += first[i];
        }
        Ok(first)
    }

    fn outputs(&self, first: &[u32]) -> (Vec<Nic>, Vec<Port>) {
        let mut nics = vec![None; self.hosts.len()];
        let mut ports = vec![None; first[first.len() - 1] as usize];
        let mut next = first.to_vec();
        for Link { a, b, cable } in &self.links {
            for (from, to, wire) in [(*a, *b, cable.there), (*b, *a, cable.back)] {
                match from {
                    Node::Host(host) => nics[host.index()] = Some(Nic { to, wire }),
                    Node::Switch(from) => {
                        ports[next[from.index()] as usize] = Some(Port { from, to, wire });
                        next[from.index()] += 1;
                    }
                }
            }
        }
        let nics = nics.into_iter().map(|nic| nic.expect("every host has a link")).collect();
        (nics, ports.into_iter().map(|port| port.expect("every port has a link")).collect())
    }
}

/// Refuses a network that is too small or too large, before it is built.
pub(super) fn check_size(hosts: u64, switches: u64, links: u64) -> Result<(), TopologyError> {
    if hosts < 2 {
        return Err(TopologyError::TooFewHosts { hosts });
    }
    at_most(hosts, HOSTS, "hosts")?;
    at_most(switches, SWITCHES, "switches")?;
    at_most(links, LINKS, "links")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Wire;
    use firstlight_units::Rate;

    const CABLE: Cable = Cable::new(Rate::from_gbps(10), Span::from_us(1));

    fn hosts_at(graph: &mut Graph, s: Node, hosts: usize) {
        for i in 0..hosts {
            let host = graph.host(format!("h{i}"));
            graph.link(host, s, CABLE);
        }
    }

    fn message(graph: Graph) -> String {
        graph.build().unwrap_err().to_string()
    }

    #[test]
    fn both_directions_of_a_link_are_kept_apart() {
        let mut graph = Graph::default();
        let s = graph.switch("s", "switch");
        hosts_at(&mut graph, s, 1);
        let h = graph.host("h");
        let up = Wire { rate: Rate::from_gbps(1), delay: Span::from_us(3) };
        graph.link(s, h, Cable { there: CABLE.there, back: up });
        let topology = graph.build().unwrap();
        assert_eq!(topology.nics()[1], Nic { to: s, wire: up });
        assert_eq!(topology.ports()[1], Port { from: SwitchId(0), to: h, wire: CABLE.there });
        assert_eq!((topology.links(), topology.ports_of(SwitchId(0))), (2, 0..2));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        let mut graph = Graph::default();
        let s = graph.switch("s", "switch");
        hosts_at(&mut graph, s, 1);
        assert_eq!(message(graph.clone()), "a network needs at least 2 hosts, and this one has 1");
        let lone = graph.host("lone");
        assert_eq!(message(graph.clone()), "lone has 0 links: a host must have exactly one");
        graph.link(lone, s, CABLE);
        assert!(graph.clone().build().is_ok());

        let with = |change: &dyn Fn(&mut Graph)| {
            let mut changed = graph.clone();
            change(&mut changed);
            message(changed)
        };
        assert_eq!(with(&|g| g.link(lone, s, CABLE)), "lone has 2 links: a host must have exactly one");
        assert_eq!(with(&|g| g.link(s, s, CABLE)), "a link joins s with itself: the ends of a link must be two nodes");
        let named = |name: &str| {
            with(&|g| {
                g.switch(name, "switch");
            })
        };
        assert_eq!(named("island"), "island cannot be reached from h0: every node must be connected");
        assert_eq!(named("lone"), "there are two nodes called lone: give each its own name");
        let far = Cable::new(Rate::from_gbps(1), Span::from_secs(1001));
        let long = |g: &mut Graph| {
            let t = g.switch("t", "switch");
            g.link(s, t, far);
        };
        assert_eq!(with(&long), "the link of s and t has a delay of 1001s: use at most 1000s");
        let dead = Cable::new(Rate::from_bps(0), Span::ZERO);
        let slow = |g: &mut Graph| {
            let t = g.switch("t", "switch");
            g.link(s, t, dead);
        };
        assert_eq!(with(&slow), "the link of s and t has a rate of zero and never sends: use more");
        let nowhere = Node::Switch(SwitchId(7));
        assert_eq!(with(&|g| g.link(s, nowhere, CABLE)), "link 2 ends at Switch(SwitchId(7)), which does not exist");
        let many = |g: &mut Graph| {
            for i in 0..SWITCHES {
                g.switch(format!("x{i}"), "x");
            }
        };
        assert_eq!(with(&many), "16385 switches are too many: use at most 16384");
    }

    #[test]
    fn too_many_hosts_are_refused() {
        let mut graph = Graph::default();
        let s = graph.switch("s", "switch");
        hosts_at(&mut graph, s, 65_535);
        assert_eq!(graph.clone().build().map(|topology| topology.hosts()), Ok(65_535));
        graph.host("one too many");
        assert_eq!(message(graph), "65536 hosts are too many: use at most 65535");
    }
}
