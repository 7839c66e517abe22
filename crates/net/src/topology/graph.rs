//! A network from lists of nodes and links, and the checks that every network passes.

use super::error::at_most;
use super::{Cable, FurtherLink, Nic, Node, Port, Switch, SwitchId, Topology, TopologyError};
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
/// The most links of a network.
const LINKS: u64 = 1 << 23;
/// Most links of a host: each has a network of addresses of its own.
const LINKS_OF_HOST: u64 = 64;

/// A link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The link's first end.
    pub a: Node,
    /// The link's second end.
    pub b: Node,
    /// `there` is from `a` to `b`.
    pub cable: Cable,
}

/// Nodes and links in the making.
///
/// Two switches may have several links (parallel ones). The order of links is that of the ports of a switch, and of the
/// links of a host.
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
    /// from a node to itself, a rate of zero, a delay above 1,000 s, a host without or with more than 64 links, a node
    /// that others cannot reach, or a link of two hosts beside other links.
    pub fn build(mut self) -> Result<Topology, TopologyError> {
        check_size(self.hosts.len() as u64, self.switches.len() as u64, self.links.len() as u64)?;
        self.check_names()?;
        for (i, link) in self.links.iter().enumerate() {
            self.check_link(i, link)?;
        }
        let several = self.check_hosts()?;
        self.check_connected()?;
        self.check_pairs()?;
        let further = if several { self.split_hosts() } else { vec![] };
        at_most(self.hosts.len() as u64, HOSTS, "hosts and further links of hosts")?;
        let first = self.first_ports()?;
        let (nics, ports) = self.outputs(&first);
        let islands = if several { self.roots() } else { vec![0; self.hosts.len()] };
        let Graph { hosts, switches, .. } = self;
        let islands = islands[..hosts.len()].to_vec();
        Ok(Topology { hosts, nics, switches, ports, first, further, islands })
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

    /// Returns whether a host has several links.
    fn check_hosts(&self) -> Result<bool, TopologyError> {
        let mut links = vec![0; self.hosts.len()];
        for link in &self.links {
            for end in [link.a, link.b] {
                if let Node::Host(host) = end {
                    links[host.index()] += 1;
                }
            }
        }
        if let Some(i) = links.iter().position(|links| *links == 0) {
            return Err(TopologyError::HostWithoutLink { node: self.node(i), name: self.hosts[i].clone() });
        }
        let most = (0..links.len()).max_by_key(|host| links[*host]).expect("there are hosts");
        at_most(links[most], LINKS_OF_HOST, &format!("links of {}", self.hosts[most]))?;
        Ok(links[most] > 1)
    }

    /// For each node, hosts first, the first node that it is connected with: union-find with path halving.
    fn roots(&self) -> Vec<u32> {
        let mut parent: Vec<u32> = (0..(self.hosts.len() + self.switches.len()) as u32).collect();
        let root = |parent: &mut Vec<u32>, mut i: u32| {
            while parent[i as usize] != i {
                parent[i as usize] = parent[parent[i as usize] as usize];
                i = parent[i as usize];
            }
            i
        };
        for link in &self.links {
            let [a, b] = [link.a, link.b].map(|end| root(&mut parent, self.place(end) as u32));
            parent[a.max(b) as usize] = a.min(b);
        }
        (0..parent.len() as u32).map(|i| root(&mut parent, i)).collect()
    }

    fn check_connected(&self) -> Result<(), TopologyError> {
        // Node 0 is the first of all.
        match self.roots().into_iter().position(|root| root != 0) {
            None => Ok(()),
            Some(i) => {
                let (node, from) = (self.node(i), self.name(self.node(0)).into());
                Err(TopologyError::Unconnected { node, name: self.name(node).into(), from })
            }
        }
    }

    /// Two hosts may be joined where they are all that there is.
    fn check_pairs(&self) -> Result<(), TopologyError> {
        let pair = |link: &&Link| matches!((link.a, link.b), (Node::Host(_), Node::Host(_)));
        match self.links.iter().position(|link| pair(&link)) {
            Some(link) if self.links.len() > 1 => {
                let Link { a, b, .. } = self.links[link];
                Err(TopologyError::HostPair { link, a: self.name(a).into(), b: self.name(b).into() })
            }
            _ => Ok(()),
        }
    }

    /// Makes each further link of a host that of a host of its own: the second links of all hosts first, then the third
    /// ones, and so on.
    fn split_hosts(&mut self) -> Vec<FurtherLink> {
        let mut ends: Vec<Vec<(usize, bool)>> = vec![vec![]; self.hosts.len()];
        for (i, link) in self.links.iter().enumerate() {
            for (end, second) in [(link.a, false), (link.b, true)] {
                if let Node::Host(host) = end {
                    ends[host.index()].push((i, second));
                }
            }
        }
        let most = ends.iter().map(Vec::len).max().unwrap_or_default();
        let all = (1..most).flat_map(|number| (0..ends.len()).map(move |host| (number, host)));
        let mut further = vec![];
        for (number, host) in all {
            let Some(&(link, second)) = ends[host].get(number) else { continue };
            let name = format!("{}.eth{number}", self.hosts[host]);
            let node = self.host(name);
            let Link { a, b, .. } = &mut self.links[link];
            *if second { b } else { a } = node;
            further.push(FurtherLink { of: HostId(host as u16), number: number as u8 });
        }
        further
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
        assert_eq!(message(graph.clone()), "lone has no link: a host needs one");
        graph.link(lone, s, CABLE);
        assert!(graph.clone().build().is_ok());

        let with = |change: &dyn Fn(&mut Graph)| {
            let mut changed = graph.clone();
            change(&mut changed);
            message(changed)
        };
        let pair = with(&|g| {
            let other = g.host("other");
            g.link(lone, other, CABLE);
        });
        assert_eq!(pair, "the link of lone and other joins two hosts: beside other links, one end must be a switch");
        let many = with(&|g| (0..64).for_each(|_| g.link(lone, s, CABLE)));
        assert_eq!(many, "65 links of lone are too many: use at most 64");
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
    fn further_links_of_hosts_are_hosts_of_their_own() {
        let mut graph = Graph::default();
        let [s, t] = ["s", "t"].map(|name| graph.switch(name, "switch"));
        hosts_at(&mut graph, s, 3);
        let [a, c] = [Node::Host(HostId(0)), Node::Host(HostId(2))];
        graph.link(t, c, CABLE);
        graph.link(a, t, CABLE);
        graph.link(t, a, CABLE);
        let topology = graph.build().unwrap();
        let link = |of, number| FurtherLink { of: HostId(of), number };
        assert_eq!(topology.further(), [link(0, 1), link(2, 1), link(0, 2)]);
        assert_eq!((topology.hosts(), topology.links()), (6, 6));
        assert_eq!([2, 3, 4, 5].map(|host| topology.owner(HostId(host)).0), [2, 0, 2, 0]);
        let leads = |host: u16| topology.name(topology.nics()[usize::from(host)].to);
        assert_eq!([0, 1, 2, 3, 4, 5].map(leads), ["s", "s", "s", "t", "t", "t"]);
        assert_eq!(topology.name(Node::Host(HostId(5))), "h0.eth2");
        // Only the hosts join s and t.
        let islands = topology.islands();
        assert_eq!(islands.iter().map(|island| island == &islands[0]).filter(|same| *same).count(), 3);
        assert_eq!((islands[0], islands[3]), (islands[2], islands[5]));
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
