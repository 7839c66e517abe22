//! Next hops: each a link closer, all of them, none more than its share; tables that stay small.

use firstlight_net::HostId;
use firstlight_net::topology::{Cable, Graph, Node, Output, Routes, SwitchId, Topology, TreeCables, fat_tree};
use firstlight_units::{Rate, Span};
use proptest::prelude::*;
use std::collections::BTreeMap;

const CABLE: Cable = Cable::new(Rate::from_gbps(10), Span::from_us(1));
const CABLES: TreeCables = TreeCables { host: CABLE, aggregation: CABLE, core: CABLE };

/// Switches joined at random into a tree, with more links (some parallel) beside it, and hosts at some of them.
fn random_graph() -> impl Strategy<Value = Topology> {
    let parents = prop::collection::vec(any::<prop::sample::Index>(), 0..12);
    let pair = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let hosts = prop::collection::vec(any::<prop::sample::Index>(), 2..10);
    (parents, prop::collection::vec(pair, 0..25), hosts).prop_map(|(parents, more, hosts)| {
        let mut graph = Graph::default();
        let mut switches = vec![graph.switch("s0", "switch")];
        for parent in parents {
            let switch = graph.switch(format!("s{}", switches.len()), "switch");
            graph.link(switch, *parent.get(&switches), CABLE);
            switches.push(switch);
        }
        for (i, at) in hosts.iter().enumerate() {
            let host = graph.host(format!("h{i}"));
            graph.link(*at.get(&switches), host, CABLE);
        }
        for (a, b) in more {
            let (a, b) = (*a.get(&switches), *b.get(&switches));
            if a != b {
                graph.link(a, b, CABLE);
            }
        }
        graph.build().expect("the graph is connected")
    })
}

/// Links from each switch to `edge`, by relaxing all links until nothing changes: not the way that routes find it.
fn distances(topology: &Topology, edge: SwitchId) -> Vec<usize> {
    let mut distance = vec![usize::MAX / 2; topology.switches().len()];
    distance[edge.index()] = 0;
    for _ in 0..distance.len() {
        for port in topology.ports() {
            if let Node::Switch(to) = port.to {
                distance[port.from.index()] = distance[port.from.index()].min(distance[to.index()] + 1);
            }
        }
    }
    distance
}

proptest! {
    #[test]
    fn next_hops_are_all_ports_that_lead_closer(topology in random_graph(), seed in any::<u64>(), key in any::<u64>()) {
        let routes = Routes::new(&topology, seed);
        for to in topology.host_ids() {
            let edge = topology.edge_of(to).expect("the graph has switches");
            let distance = distances(&topology, edge);
            for switch in (0..topology.switches().len()).map(|i| SwitchId(i as u16)) {
                let closer: Vec<u32> = topology.ports_of(switch).filter(|i| match topology.ports()[*i as usize].to {
                    Node::Host(host) => host == to,
                    Node::Switch(next) => distance[next.index()] < distance[switch.index()],
                }).collect();
                let ports: Vec<u32> = routes.ports(switch, to).iter().map(|port| port.0).collect();
                prop_assert_eq!(&ports, &closer);
                prop_assert!(ports.contains(&routes.port(switch, to, || key).0));
            }
            for from in topology.host_ids().filter(|from| *from != to) {
                let path = routes.path(&topology, from, to, key);
                prop_assert_eq!(path.links(), distance[topology.edge_of(from).unwrap().index()] + 2);
            }
        }
    }
}

/// How many of `flows` flows between the first and the last host take each path.
fn spread(topology: &Topology, flows: u64, seed: u64) -> BTreeMap<Vec<Output>, u64> {
    let routes = Routes::new(topology, seed);
    let (from, to) = (HostId(0), HostId(topology.hosts() as u16 - 1));
    let mut taken = BTreeMap::new();
    for flow in 0..flows {
        // As Packet::flow_key makes it: only the ports differ.
        let key = u64::from(to.0) << 32 | flow << 16 | 5001;
        *taken.entry(routes.path(topology, from, to, key).outputs().collect()).or_insert(0) += 1;
    }
    taken
}

/// All shortest paths are taken alike: Pearson's chi-squared. For n paths it has n - 1 degrees of freedom: mean n - 1,
/// variance 2 (n - 1). Five standard deviations are exceeded by a fair hash about once in 10^5 fabrics; one that takes
/// the same choice at two tiers leaves paths out and exceeds it by orders of magnitude.
#[test]
fn flows_use_all_shortest_paths_alike() {
    for (k, seed) in [(4, 0), (4, 1), (6, 2), (8, 3), (16, 4), (16, 5)] {
        let tree = fat_tree(k, CABLES).unwrap();
        let paths = f64::from(k * k / 4);
        let flows = 200 * u64::from(k * k / 4);
        let taken = spread(&tree, flows, seed);
        assert_eq!(taken.len() as f64, paths, "k = {k}: some paths are never taken");
        let chi: f64 = taken.values().map(|n| (*n as f64 - 200.0).powi(2) / 200.0).sum();
        let bound = paths - 1.0 + 5.0 * (2.0 * (paths - 1.0)).sqrt();
        assert!(chi < bound, "k = {k}: chi-squared {chi:.1} of {} degrees", paths - 1.0);
    }
}

/// A switch spreads the flows that it gets from one switch of the tier below over all its uplinks.
#[test]
fn no_tier_repeats_the_choice_of_another() {
    let tree = fat_tree(8, CABLES).unwrap();
    let routes = Routes::new(&tree, 11);
    let to = HostId(127);
    let Some(Node::Switch(tor)) = tree.find("tor0") else { panic!("a fat tree has tor0") };
    let Some(Node::Switch(aggregation)) = tree.find("agg2") else { panic!("a fat tree has agg2") };
    let up = |switch, key| routes.port(switch, to, || key).0 - tree.ports_of(switch).start - 4;
    let sent: Vec<u64> = (0..8000).filter(|key| up(tor, *key) == 2).collect();
    // A quarter of 8,000: 2,000 with a standard deviation of 39.
    assert!(sent.len().abs_diff(2000) < 5 * 39, "{}", sent.len());
    for port in 0..4 {
        let count = sent.iter().filter(|key| up(aggregation, **key) == port).count();
        assert!(count.abs_diff(sent.len() / 4) < 5 * 20, "port {port} of agg2 takes {count} of {}", sent.len());
    }
}

#[test]
fn a_flow_stays_on_its_path_and_another_seed_gives_another() {
    let tree = fat_tree(8, CABLES).unwrap();
    let [a, b, c] = [1, 1, 2].map(|seed| spread(&tree, 40, seed));
    assert_eq!(a, b);
    assert_ne!(a, c);
}

#[test]
fn tables_of_a_large_fat_tree_stay_in_the_cache() {
    let tree = fat_tree(26, CABLES).unwrap();
    assert_eq!((tree.hosts(), tree.switches().len()), (4394, 845));
    let size = Routes::new(&tree, 0).size();
    assert!(size < 64 << 10, "{size} bytes");
}
