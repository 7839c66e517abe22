//! Each fabric against what its definition says, worked out by hand: how many of what, which names, how many shortest
//! paths, what a lone packet takes.

use firstlight_net::HostId;
use firstlight_net::topology::{
    Cable, LeafSpine, Node, Output, Routes, ThreeTier, Topology, TopologyError, Tree, TreeCables, back_to_back,
    dumbbell, fat_tree, star,
};
use firstlight_units::{Bytes, Rate, Span};

const TEN: Cable = Cable::new(Rate::from_gbps(10), Span::from_ns(500));
const FORTY: Cable = Cable::new(Rate::from_gbps(40), Span::from_us(1));
const HUNDRED: Cable = Cable::new(Rate::from_gbps(100), Span::from_us(2));
const CABLES: TreeCables = TreeCables { host: TEN, aggregation: FORTY, core: HUNDRED };
/// The tree of DX and HULL.
const DX: ThreeTier = ThreeTier {
    servers: 192,
    tors: 32,
    aggregations: 16,
    cores: 8,
    tor_uplinks: None,
    aggregation_uplinks: None,
    cables: CABLES,
};

/// Hosts, switches, links.
fn counts(topology: &Topology) -> (usize, usize, usize) {
    (topology.hosts(), topology.switches().len(), topology.links())
}

fn latency(topology: &Topology, from: u16, to: u16) -> Span {
    Routes::new(topology, 1).path(topology, HostId(from), HostId(to), 7).latency(Bytes::new(1500))
}

fn names(topology: &Topology, from: u16, to: u16) -> String {
    Routes::new(topology, 1).path(topology, HostId(from), HostId(to), 7).names(topology).join(" ")
}

/// How many ports the switches of a tier have.
fn radix(topology: &Topology, tier: &str) -> Vec<usize> {
    let of_tier = (0..topology.switches().len()).filter(|i| topology.switches()[*i].tier == tier);
    let mut ports: Vec<_> =
        of_tier.map(|i| topology.ports().iter().filter(|port| port.from.index() == i).count()).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

#[test]
fn two_hosts_back_to_back() {
    let pair = back_to_back(TEN).unwrap();
    assert_eq!(counts(&pair), (2, 0, 1));
    assert_eq!(names(&pair, 1, 0), "host1.nic");
    assert_eq!(latency(&pair, 0, 1), Span::from_ns(1200 + 500));
    assert_eq!((pair.edge_of(HostId(0)), pair.nics()[0].to), (None, Node::Host(HostId(1))));
}

#[test]
fn a_star() {
    let star = star(21, TEN).unwrap();
    assert_eq!(counts(&star), (21, 1, 21));
    assert_eq!(names(&star, 20, 3), "host20.nic switch0->host3");
    assert_eq!(latency(&star, 20, 3), Span::from_ns(2 * (1200 + 500)));
}

#[test]
fn a_dumbbell() {
    let bottleneck = Cable::new(Rate::from_gbps(1), Span::from_us(5));
    let dumbbell = dumbbell(3, 2, TEN, bottleneck).unwrap();
    assert_eq!(counts(&dumbbell), (5, 2, 6));
    assert_eq!(names(&dumbbell, 0, 3), "host0.nic left->right right->host3");
    assert_eq!(names(&dumbbell, 4, 3), "host4.nic right->host3");
    assert_eq!(latency(&dumbbell, 0, 3), Span::from_ns(2 * (1200 + 500) + 12_000 + 5000));
    let path = Routes::new(&dumbbell, 0).path(&dumbbell, HostId(4), HostId(1), 0);
    assert_eq!(path.bottleneck(), Rate::from_gbps(1));
}

#[test]
fn leaf_and_spine() {
    let fabric = LeafSpine { leaves: 4, spines: 3, hosts_per_leaf: 5, host: TEN, uplink: FORTY }.build().unwrap();
    assert_eq!(counts(&fabric), (20, 7, 20 + 12));
    let routes = Routes::new(&fabric, 3);
    assert_eq!(routes.count_paths(&fabric, HostId(0), HostId(4)), 1);
    assert_eq!(routes.count_paths(&fabric, HostId(0), HostId(5)), 3);
    // 1500 bytes: 1.2 us at 10 Gb/s, 0.3 at 40.
    assert_eq!(latency(&fabric, 0, 19), Span::from_ns(2 * (1200 + 500) + 2 * (300 + 1000)));
    let name = names(&fabric, 0, 19);
    assert!(name.starts_with("host0.nic leaf0->spine") && name.ends_with("->leaf3 leaf3->host19"), "{name}");
}

#[test]
fn fat_trees() {
    for k in [2, 4, 6, 8] {
        let tree = fat_tree(k, CABLES).unwrap();
        let k = k as usize;
        assert_eq!(counts(&tree), (k * k * k / 4, 5 * k * k / 4, 3 * k * k * k / 4));
        assert_eq!(["tor", "agg", "core"].map(|tier| radix(&tree, tier)), [vec![k], vec![k], vec![k]]);
        let routes = Routes::new(&tree, 5);
        let far = HostId((tree.hosts() - 1) as u16);
        assert_eq!(routes.count_paths(&tree, HostId(0), far), (k * k / 4) as u64);
        if k > 2 {
            assert_eq!(routes.count_paths(&tree, HostId(0), HostId(1)), 1);
            assert_eq!(routes.count_paths(&tree, HostId(0), HostId(k as u16 / 2)), k as u64 / 2);
        }
        // 1500 bytes: 1.2 us at 10 Gb/s, 0.3 at 40, 0.12 at 100.
        let to_core = Span::from_ns(1200 + 500 + 300 + 1000 + 120 + 2000);
        assert_eq!(latency(&tree, 0, far.0), to_core * 2);
    }
}

#[test]
fn every_core_switch_has_one_link_to_each_pod() {
    for (tree, pods) in [(fat_tree(6, CABLES).unwrap(), 6), (DX.build().unwrap(), 8)] {
        let aggregations = tree.switches().iter().filter(|switch| switch.tier == "agg").count();
        let first = tree.switches().iter().position(|switch| switch.tier == "agg").unwrap();
        for (i, _) in tree.switches().iter().enumerate().filter(|(_, switch)| switch.tier == "core") {
            let below = tree.ports().iter().filter(|port| port.from.index() == i).map(|port| match port.to {
                Node::Switch(switch) => (switch.index() - first) / (aggregations / pods),
                Node::Host(_) => panic!("a core switch has no hosts"),
            });
            assert_eq!(below.collect::<Vec<_>>(), (0..pods).collect::<Vec<_>>());
        }
    }
}

#[test]
fn the_tree_of_dx_is_of_8_port_switches() {
    let shape = DX.tree().unwrap();
    assert_eq!((shape.pods, shape.tors, shape.hosts, shape.aggregations, shape.uplinks), (8, 4, 6, 2, 4));
    let tree = DX.build().unwrap();
    assert_eq!(counts(&tree), (192, 56, 192 + 64 + 64));
    assert_eq!(["tor", "agg", "core"].map(|tier| radix(&tree, tier)), [[8], [8], [8]]);
    let routes = Routes::new(&tree, 0);
    let paths = |from, to| routes.count_paths(&tree, HostId(from), HostId(to));
    assert_eq!([paths(0, 5), paths(0, 6), paths(0, 23), paths(0, 24), paths(191, 0)], [1, 2, 2, 8, 8]);
    let given = ThreeTier { tor_uplinks: Some(2), aggregation_uplinks: Some(4), ..DX };
    assert_eq!(given.build().unwrap(), tree);
    assert_eq!(ThreeTier { tor_uplinks: Some(2), ..DX }.build().unwrap(), tree);
}

#[test]
fn uplinks_follow_from_switches_of_one_size() {
    // 4 servers, 2 uplinks; 4 ToR switches, 2 uplinks; 6 aggregation switches.
    let tree = ThreeTier { servers: 48, tors: 12, aggregations: 6, cores: 2, ..DX }.build().unwrap();
    assert_eq!(["tor", "agg", "core"].map(|tier| radix(&tree, tier)), [[6], [6], [6]]);
}

#[test]
fn a_fat_tree_is_a_three_tier_tree() {
    for k in [4, 6, 26] {
        let (servers, tors, cores) = (k * k * k / 4, k * k / 2, k * k / 4);
        let same = ThreeTier { servers, tors, aggregations: tors, cores, ..DX };
        assert_eq!(same.build().unwrap(), fat_tree(k, CABLES).unwrap());
    }
}

#[test]
fn uplinks_may_go_round_the_core_switches_more_than_once() {
    let shape = ThreeTier { servers: 24, tors: 4, aggregations: 4, cores: 3, tor_uplinks: Some(2), ..DX };
    // 2 aggregation switches with 3 uplinks each: every core switch has two links to each of 2 pods.
    let tree = shape.build().unwrap();
    assert_eq!((counts(&tree), radix(&tree, "core")), ((24, 11, 24 + 8 + 12), vec![4]));
    assert_eq!(Routes::new(&tree, 0).count_paths(&tree, HostId(0), HostId(23)), 2 * 3 * 2);
    let twice = ThreeTier { aggregation_uplinks: Some(6), ..shape }.build().unwrap();
    assert_eq!((counts(&twice).2, radix(&twice, "core")), (24 + 8 + 24, vec![8]));
    assert_eq!(Routes::new(&twice, 0).count_paths(&twice, HostId(0), HostId(23)), 2 * 6 * 4);
    assert!(twice.find("agg0").is_some_and(|agg| {
        let Node::Switch(agg) = agg else { return false };
        let names: Vec<_> = twice.ports_of(agg).map(|i| twice.port_name(firstlight_net::topology::PortId(i))).collect();
        names[2..4] == ["agg0->core0.0", "agg0->core1.0"] && names[5] == "agg0->core0.1"
    }));
}

#[test]
fn shapes_that_do_not_exist() {
    let message = |tree: Result<Topology, TopologyError>| tree.unwrap_err().to_string();
    assert_eq!(message(star(1, TEN)), "a network needs at least 2 hosts, and this one has 1");
    assert_eq!(message(star(70_000, TEN)), "70000 hosts are too many: use at most 65535");
    assert_eq!(message(dumbbell(0, 2, TEN, TEN)), "the number of hosts on the left is 0: use at least 1");
    assert_eq!(
        message(fat_tree(5, CABLES)),
        "a fat tree of 5-port switches does not exist: k must be even and at least 2"
    );
    assert_eq!(message(fat_tree(200, CABLES)), "2000000 hosts are too many: use at most 65535");
    assert_eq!(message(fat_tree(4_000_000_000, CABLES)), "18446744073709551615 hosts are too many: use at most 65535");
    assert_eq!(
        message(ThreeTier { servers: 190, ..DX }.build()),
        "190 servers cannot be spread evenly over 32 ToR switches: use a multiple of 32"
    );
    let open = message(ThreeTier { aggregations: 8, ..DX }.build());
    assert!(open.contains("the number of uplinks must be given"), "{open}");
    assert_eq!(
        message(ThreeTier { tor_uplinks: Some(3), ..DX }.build()),
        "16 aggregation switches cannot be spread evenly over 3 uplinks of a ToR switch: use a multiple of 3"
    );
    assert_eq!(
        message(ThreeTier { aggregation_uplinks: Some(3), tor_uplinks: Some(2), ..DX }.build()),
        "6 uplinks of a pod cannot be spread evenly over 8 core switches: use a multiple of 8"
    );
    let pods = Tree { pods: 2, ..Tree::two_tiers(2, 2, 2, TEN, TEN) }.build();
    assert_eq!(message(pods), "host4 cannot be reached from host0: every node must be connected");
}

#[test]
fn outputs_of_a_path_follow_each_other() {
    let tree = DX.build().unwrap();
    let routes = Routes::new(&tree, 9);
    for key in 0..50 {
        let path = routes.path(&tree, HostId(3), HostId(100), key);
        let outputs: Vec<_> = path.outputs().collect();
        assert_eq!((outputs[0], path.links()), (Output::Nic(HostId(3)), 6));
        let mut at = tree.nics()[3].to;
        for output in &outputs[1..] {
            let Output::Port(port) = output else { panic!("only the first output is a host's") };
            let port = tree.ports()[port.index()];
            assert_eq!(Node::Switch(port.from), at);
            at = port.to;
        }
        assert_eq!(at, Node::Host(HostId(100)));
    }
}
