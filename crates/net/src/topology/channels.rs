//! Both directions of every link, each known by its transmitter, and which of them wait for which.
//!
//! On a lossless fabric a transmitter that is paused waits for the transmitters behind it. Where these waits can close
//! a circle, packets may wait for each other for ever: the channel dependency graph of Dally and Seitz, IEEE ToC 36(5),
//! 1987, with links as channels.

use super::{Node, PortId, Routes, SwitchId, Topology, Wire};
use crate::HostId;
use std::collections::{BTreeMap, BTreeSet};

impl Topology {
    /// How many transmitters there are: the ports of switches, by their numbers, and after them the hosts' NICs.
    pub fn transmitters(&self) -> usize {
        self.ports.len() + self.nics.len()
    }

    /// The number of a host's NIC among the transmitters.
    pub fn nic_transmitter(&self, host: HostId) -> usize {
        self.ports.len() + host.index()
    }

    /// The node of a transmitter.
    pub fn source_of(&self, transmitter: usize) -> Node {
        match self.ports.get(transmitter) {
            Some(port) => Node::Switch(port.from),
            None => Node::Host(HostId((transmitter - self.ports.len()) as u16)),
        }
    }

    /// The node that the transmitter sends to.
    pub fn target_of(&self, transmitter: usize) -> Node {
        let nic = || self.nics[transmitter - self.ports.len()].to;
        self.ports.get(transmitter).map_or_else(nic, |port| port.to)
    }

    /// The wire of a transmitter.
    pub fn wire_of(&self, transmitter: usize) -> Wire {
        let nic = || self.nics[transmitter - self.ports.len()].wire;
        self.ports.get(transmitter).map_or_else(nic, |port| port.wire)
    }

    /// The name of the transmitter's queue: `host3.nic`, `host3.port`, `tor0->agg1`.
    pub fn transmitter_name(&self, transmitter: usize) -> String {
        match self.source_of(transmitter) {
            Node::Host(host) => format!("host{}.nic", host.0),
            Node::Switch(_) => self.queue_name(PortId(transmitter as u32)),
        }
    }

    /// For each transmitter that of the reverse direction of its link. Of parallel links the first in one direction
    /// belongs to the first in the other.
    pub fn reverses(&self) -> Vec<usize> {
        let ends = |transmitter| (self.source_of(transmitter), self.target_of(transmitter));
        let mut between: BTreeMap<(Node, Node), Vec<usize>> = BTreeMap::new();
        (0..self.transmitters())
            .for_each(|transmitter| between.entry(ends(transmitter)).or_default().push(transmitter));
        let mut met: BTreeMap<(Node, Node), usize> = BTreeMap::new();
        let reverse = |transmitter| {
            let (from, to) = ends(transmitter);
            let nth = met.entry((from, to)).or_default();
            *nth += 1;
            between[&(to, from)][*nth - 1]
        };
        (0..self.transmitters()).map(reverse).collect()
    }
}

/// A circle of ports each of which may wait for the next, with traffic between these hosts on all their shortest paths;
/// none when there is no such circle.
pub fn circular_wait(
    topology: &Topology,
    routes: &Routes,
    pairs: impl Iterator<Item = (HostId, HostId)>,
) -> Option<Vec<PortId>> {
    // Hosts of one switch are reached on the same paths, but for the last port, which waits for no other port.
    let mut sources: BTreeMap<SwitchId, (HostId, BTreeSet<SwitchId>)> = BTreeMap::new();
    for (from, to) in pairs {
        if let (Some(from), Some(edge)) = (topology.edge_of(from), topology.edge_of(to)) {
            sources.entry(edge).or_insert_with(|| (to, BTreeSet::new())).1.insert(from);
        }
    }
    let mut waits: Vec<Vec<u32>> = vec![vec![]; topology.ports().len()];
    for (to, from) in sources.into_values() {
        add_waits(topology, routes, to, from, &mut waits);
    }
    circle(&waits)
}

/// The ports that each port waits for, with traffic to one host.
fn add_waits(topology: &Topology, routes: &Routes, to: HostId, from: BTreeSet<SwitchId>, waits: &mut [Vec<u32>]) {
    let (mut met, mut open) = (from.clone(), from.into_iter().collect::<Vec<_>>());
    while let Some(switch) = open.pop() {
        for port in routes.ports(switch, to) {
            let Node::Switch(next) = topology.ports()[port.index()].to else { continue };
            let row = &mut waits[port.index()];
            for onward in routes.ports(next, to) {
                if !row.contains(&onward.0) {
                    row.push(onward.0);
                }
            }
            if met.insert(next) {
                open.push(next);
            }
        }
    }
}

/// A circle in a graph, found in depth first.
fn circle(next: &[Vec<u32>]) -> Option<Vec<PortId>> {
    let mut done = vec![false; next.len()];
    let mut place = vec![None; next.len()];
    for first in 0..next.len() {
        // The way so far: nodes, and how many of their successors were looked at.
        let mut way: Vec<(usize, usize)> = vec![];
        if !done[first] {
            place[first] = Some(0);
            way.push((first, 0));
        }
        while let Some((node, looked)) = way.last_mut() {
            let Some(&onward) = next[*node].get(*looked) else {
                done[*node] = true;
                place[*node] = None;
                way.pop();
                continue;
            };
            *looked += 1;
            let onward = onward as usize;
            if let Some(begin) = place[onward] {
                return Some(way[begin..].iter().map(|(node, _)| PortId(*node as u32)).collect());
            }
            if !done[onward] {
                place[onward] = Some(way.len());
                way.push((onward, 0));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Cable, Graph, Tree, fat_tree};
    use firstlight_units::{Rate, Span};

    fn cable() -> Cable {
        Cable::new(Rate::from_gbps(10), Span::from_us(1))
    }

    /// Switches in a ring, a host at each.
    fn ring(switches: usize) -> Topology {
        let mut graph = Graph::default();
        let hosts: Vec<Node> = (0..switches).map(|i| graph.host(format!("host{i}"))).collect();
        let nodes: Vec<Node> = (0..switches).map(|i| graph.switch(format!("s{i}"), "switch")).collect();
        for i in 0..switches {
            graph.link(hosts[i], nodes[i], cable());
            graph.link(nodes[i], nodes[(i + 1) % switches], cable());
        }
        graph.build().unwrap()
    }

    fn circle_of(topology: &Topology, pairs: &[(u16, u16)]) -> Option<Vec<String>> {
        let routes = Routes::new(topology, 1);
        let pairs = pairs.iter().map(|(from, to)| (HostId(*from), HostId(*to)));
        let circle = circular_wait(topology, &routes, pairs)?;
        Some(circle.into_iter().map(|port| topology.port_name(port)).collect())
    }

    #[test]
    fn a_ring_turns_round_when_all_go_two_links_on() {
        let ring = ring(5);
        let all: Vec<(u16, u16)> = (0..5).map(|i| (i, (i + 2) % 5)).collect();
        assert_eq!(circle_of(&ring, &all).unwrap(), ["s0->s1", "s1->s2", "s2->s3", "s3->s4", "s4->s0"]);
        assert_eq!(circle_of(&ring, &all[1..]), None);
        let neighbours: Vec<(u16, u16)> = (0..5).map(|i| (i, (i + 1) % 5)).collect();
        assert_eq!(circle_of(&ring, &neighbours), None);
        assert_eq!(circle_of(&ring, &[]), None);
    }

    #[test]
    fn up_and_down_a_tree_there_is_no_circle() {
        let tree =
            fat_tree(4, crate::topology::TreeCables { host: cable(), aggregation: cable(), core: cable() }).unwrap();
        let all: Vec<(u16, u16)> = (0..16).flat_map(|a| (0..16).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
        assert_eq!(circle_of(&tree, &all), None);
    }

    #[test]
    fn each_transmitter_has_its_own_reverse() {
        let tree = Tree { bundles: [2, 1], ..Tree::two_tiers(2, 1, 2, cable(), cable()) }.build().unwrap();
        let reverses = tree.reverses();
        for (transmitter, reverse) in reverses.iter().enumerate() {
            assert_eq!(reverses[*reverse], transmitter);
            assert_eq!(tree.source_of(*reverse), tree.target_of(transmitter));
        }
        let named = |name: &str| (0..tree.transmitters()).find(|t| tree.transmitter_name(*t) == name).unwrap();
        assert_eq!(reverses[named("tor0->agg0.1")], named("agg0->tor0.1"));
        assert_eq!(reverses[named("host2.nic")], named("host2.port"));
    }
}
