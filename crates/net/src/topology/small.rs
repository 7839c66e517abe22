//! The smallest fabrics: two hosts, a star, a dumbbell.

use super::error::{at_least_one, at_most};
use super::graph::check_size;
use super::{Cable, Graph, Node, Topology, TopologyError};

/// Two hosts and one link, no switch.
///
/// # Errors
/// As [`Graph::build`].
pub fn back_to_back(cable: Cable) -> Result<Topology, TopologyError> {
    let mut graph = Graph::default();
    let (a, b) = (graph.host("host0"), graph.host("host1"));
    graph.link(a, b, cable);
    graph.build()
}

/// All hosts at `switch0`.
///
/// # Errors
/// As [`Graph::build`].
pub fn star(hosts: u32, cable: Cable) -> Result<Topology, TopologyError> {
    check_size(hosts.into(), 1, hosts.into())?;
    let mut graph = Graph::default();
    let switch = graph.switch("switch0", "switch");
    link_hosts(&mut graph, 0..hosts, switch, cable);
    graph.build()
}

/// `left` hosts at switch `left`, the others at switch `right`, and one link between the two.
///
/// # Errors
/// When one side has no host, or as [`Graph::build`].
pub fn dumbbell(left: u32, right: u32, host: Cable, bottleneck: Cable) -> Result<Topology, TopologyError> {
    at_least_one(left, "hosts on the left")?;
    at_least_one(right, "hosts on the right")?;
    at_most(u64::from(left) + u64::from(right), 65_535, "hosts")?;
    let mut graph = Graph::default();
    let ends = (graph.switch("left", "switch"), graph.switch("right", "switch"));
    link_hosts(&mut graph, 0..left, ends.0, host);
    link_hosts(&mut graph, left..left + right, ends.1, host);
    graph.link(ends.0, ends.1, bottleneck);
    graph.build()
}

fn link_hosts(graph: &mut Graph, hosts: std::ops::Range<u32>, switch: Node, cable: Cable) {
    for i in hosts {
        let host = graph.host(format!("host{i}"));
        graph.link(host, switch, cable);
    }
}
