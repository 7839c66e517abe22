//! Networks from files: good ones against what they say, and a broken one of each kind.

use firstlight_lab::import::ImportError;
use firstlight_lab::import::topology::{Imported, graph, htsim, ns3};
use firstlight_net::HostId;
use firstlight_net::topology::{Cable, LeafSpine, Routes, ThreeTier, Topology, TreeCables, fat_tree};
use firstlight_units::{Bytes, Rate, Span};

type Read = fn(&str, &str) -> Result<Imported, ImportError>;

fn counts(topology: &Topology) -> (usize, usize, usize) {
    (topology.hosts(), topology.switches().len(), topology.links())
}

fn good(read: Read, text: &str) -> Imported {
    read("net", text).unwrap_or_else(|error| panic!("{error}"))
}

/// Each broken text is the good one with a piece replaced; the message begins with the file and names the place.
fn broken(read: Read, text: &str, changes: &[(&str, &str, &str)]) {
    for (piece, with, message) in changes {
        assert_eq!(text.matches(piece).count(), 1, "'{piece}' is to be replaced once");
        let error = read("net", &text.replace(piece, with)).expect_err(&format!("with '{with}' for '{piece}'"));
        assert_eq!(error.to_string(), format!("net:{message}"));
    }
}

const GRAPH: &str = "\
# two ToR switches below one
switch tor0
switch tor1
switch big aggregation
host h0 tor0 10Gbps 500ns
host h1 tor0 10Gbps 500ns   # the second
host h2 tor1 10Gbps 500ns
link tor0 big 40Gbps 1us
link tor1 big 40Gbps 1us 1Gbps 2us
";

#[test]
fn a_plain_list_of_hosts_switches_and_links() {
    let Imported { topology, host_numbers, notes } = good(graph, GRAPH);
    assert_eq!((counts(&topology), host_numbers, notes), ((3, 3, 5), vec![0, 1, 2], vec![]));
    let tiers: Vec<_> = topology.switches().iter().map(|switch| switch.tier.as_str()).collect();
    assert_eq!(tiers, ["tor", "tor", "aggregation"]);
    let routes = Routes::new(&topology, 0);
    let path = |from, to| routes.path(&topology, HostId(from), HostId(to), 0);
    assert_eq!(path(0, 2).names(&topology), ["h0.nic", "tor0->big", "big->tor1", "tor1->h2"]);
    // 1000 bytes: 800 ns at 10 Gb/s, 200 ns at 40, 8 us at 1.
    assert_eq!(path(0, 2).latency(Bytes::new(1000)), Span::from_ns(800 + 500 + 200 + 1000 + 8000 + 2000 + 800 + 500));
    assert_eq!(path(2, 0).latency(Bytes::new(1000)), Span::from_ns(800 + 500 + 200 + 1000 + 200 + 1000 + 800 + 500));
}

#[test]
fn broken_plain_lists() {
    broken(
        graph,
        GRAPH,
        &[
            ("switch tor1\n", "swich tor1\n", "3:1: 'swich' begins no line: write switch, host or link"),
            (
                "switch tor1\n",
                "switch\n",
                "3:7: the line ends too early: write \"switch NAME\" or \"switch NAME TIER\"",
            ),
            ("switch tor1\n", "switch tor0\n", "3:8: tor0 is already the node of line 2: use another name"),
            ("switch tor1\n", "switch a->b\n", "3:8: 'a->b' is not a name: use letters, digits, '_', '-' and '.'"),
            (
                "link tor0 big",
                "link tor9 big",
                "8:6: there is no switch tor9 above: add a line \"switch tor9\" before or did you mean tor1?",
            ),
            ("link tor0 big", "link tor0 h1", "8:11: h1 is a host, which has its one link already: name a switch"),
            ("link tor0 big", "link big big", "8:10: the link joins big with itself: name two switches"),
            ("h2 tor1 10Gbps", "h2 tor1 10", "7:14: '10' has no unit: write for example \"10bps\""),
            ("h2 tor1 10Gbps", "h2 tor1 0Gbps", "7:14: a link of zero rate never sends: write for example 10Gbps"),
            ("h2 tor1 10Gbps 500ns", "h2 tor1 10Gbps 5x", "7:21: 'x' is not a unit of time: use s, ms, us, ns, ps"),
            (
                "1Gbps 2us",
                "1Gbps",
                "9:31: the line ends too early: write \"link SWITCH SWITCH RATE DELAY\", and RATE DELAY of the way back where \
             it differs",
            ),
            (
                "1Gbps 2us",
                "1Gbps 2us 3us",
                "9:36: '3us' is one word too many: write \"link SWITCH SWITCH RATE DELAY\", and RATE DELAY of the way back \
             where it differs",
            ),
            (
                "link tor1 big 40Gbps 1us 1Gbps 2us",
                "",
                "7:6: h2 cannot be reached from h0: every node must be connected",
            ),
        ],
    );
    let lone = graph("net", "switch s\nhost h s 1Gbps 1us\n").unwrap_err().to_string();
    assert_eq!(lone, "net:1:1: a network needs at least 2 hosts, and this one has 1");
    assert_eq!(graph("net", "").unwrap_err().line, 1);
}

const NS3: &str = "\
6 2 5
4 5
0 4 100Gbps 0.001ms 0
1 4 100Gb/s 1us 0.000000
2 5 800Kbps 1000ns 0
5 3 25Gbps 1us 0
4 5 10000000000 0.000002 0
";

#[test]
fn a_topology_of_an_ns3_fork() {
    let Imported { topology, host_numbers, notes } = good(ns3, NS3);
    assert_eq!((counts(&topology), host_numbers, notes), ((4, 2, 5), vec![0, 1, 2, 3], vec![]));
    let routes = Routes::new(&topology, 0);
    let path = |from, to| routes.path(&topology, HostId(from), HostId(to), 0);
    assert_eq!(path(0, 3).names(&topology), ["host0.nic", "switch4->switch5", "switch5->host3"]);
    // 1000 bytes: 80 ns at 100 Gb/s, 800 at 10, 320 at 25.
    assert_eq!(path(0, 3).latency(Bytes::new(1000)), Span::from_ns(80 + 1000 + 800 + 2000 + 320 + 1000));
    assert_eq!(path(1, 2).bottleneck(), Rate::from_bps(800_000));
}

#[test]
fn hosts_keep_the_numbers_of_the_file() {
    let Imported { topology, host_numbers, notes } = good(
        ns3,
        "5 2 4\n0\n2\n0 1 1Gbps 1us 0\n0 3 1Gbps 1us 0.01\n2 4 1Gbps 1us 1e-3\n0 2 1Gbps 1us 0\n\nFirst line: nodes\n0 9 x\n",
    );
    assert_eq!(host_numbers, [1, 3, 4]);
    let (from, to) = (HostId(0), HostId(2));
    let names = Routes::new(&topology, 0).path(&topology, from, to, 0).names(&topology);
    assert_eq!(names, ["host1.nic", "switch0->switch2", "switch2->host4"]);
    assert_eq!(
        notes,
        [
            "net:5: 2 links have an error rate above zero; here links lose nothing",
            "net:9: 2 lines follow the 4 links of the first line; they are not read",
        ]
    );
}

#[test]
fn broken_topologies_of_ns3_forks() {
    let link = "write one end, the other end, rate, delay and error rate, as in \"0 4 100Gbps 1us 0\"";
    broken(
        ns3,
        NS3,
        &[
            ("6 2 5\n", "6 2\n", "1:4: the line ends too early: write the numbers of nodes, of switches and of links"),
            (
                "6 2 5\n",
                "6 8 2 5 H100\n",
                "1:7: '5' is one word too many: write the numbers of nodes, of switches and of links",
            ),
            ("6 2 5\n", "1 2 5\n", "1:1: the number of nodes is 1: use 2 to 100000"),
            ("6 2 5\n", "6 5 5\n", "1:3: the number of switches is 5: use 0 to 4"),
            ("6 2 5\n", "6 2 x\n", "1:5: 'x' is not the number of links: write a whole number"),
            ("\n4 5\n", "\n4 6\n", "2:3: the number of a switch is 6: use 0 to 5"),
            ("\n4 5\n", "\n4 4\n", "2:3: switch 4 is named twice: name each once"),
            ("\n4 5\n", "\n4 5 3\n", "2:5: '3' is one switch too many: line 1 says 2"),
            ("\n4 5\n", "\n4\n", "3:3: '4' is one switch too many: line 1 says 2"),
            ("0 4 100Gbps 0.001ms 0\n", "0 4 100Gbps 0.001ms\n", &format!("3:20: the line ends too early: {link}")),
            (
                "0 4 100Gbps 0.001ms 0\n",
                "0 4 100Gbps 0.001ms 0 0\n",
                &format!("3:23: '0' is one word too many: {link}"),
            ),
            ("0 4 100Gbps", "0 6 100Gbps", "3:3: the number of a node is 6: use 0 to 5"),
            ("0 4 100Gbps", "0 0 100Gbps", "3:3: the link joins node 0 with itself: name two nodes"),
            ("0 4 100Gbps", "0 4 100GB", "3:5: 'GB' is not a unit of rate: use Tbps, Gbps, Mbps, kbps, bps"),
            ("0 4 100Gbps", "0 4 0", "3:5: a link of zero rate never sends: write for example 10Gbps"),
            ("0.001ms", "soon", "3:13: 'soon' is not a time: write for example \"180us\""),
            ("0.001ms 0", "0.001ms 2", "3:21: '2' is not an error rate: write a share from 0 to 1"),
            (
                "2 5 800Kbps",
                "0 5 800Kbps",
                "5:1: host 0 has a link in line 3 already: a host has one, so name a switch, or list 0 among the switches",
            ),
            ("6 2 5\n", "6 2 6\n", "7:27: the file ends after 5 links, and line 1 says 6"),
            ("6 2 5\n", "6 2 4\n", "5:1: host2 cannot be reached from host0: every node must be connected"),
            ("6 2 5\n", "7 2 5\n", "1:1: host6 has 0 links: a host must have exactly one"),
        ],
    );
    let message = |text| ns3("net", text).unwrap_err().to_string();
    assert_eq!(message(""), "net:1:1: the file is empty: begin with the numbers of nodes, of switches and of links");
    assert_eq!(message("4 2 3\n2\n"), "net:2:2: the file ends, and 1 of 2 switch numbers are missing");
}

const TREE: &str = "\
# three tiers
Nodes 24
Tiers 3
Podsize 8

Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 4
Downlink_Latency_ns 1000
Switch_Latency_ns 0
Oversubscribed 1

Tier 1
Downlink_speed_Gbps 100
radix_down 4
radix_up 6
Bundle 2
Downlink_Latency_ns 500

Tier 2
Downlink_speed_Gbps 100
Radix_Down 9
Bundle 3
Downlink_Latency_ns 2500.5
";

#[test]
fn a_tree_of_htsim() {
    let Imported { topology, notes, .. } = good(htsim, TREE);
    // 3 pods of 2 ToR and 2 aggregation switches; 3 * 2 * 6 uplinks at 9 ports make 4 core switches.
    assert_eq!(counts(&topology), (24, 6 + 6 + 4, 24 + 6 * 4 + 6 * 6));
    assert_eq!(notes, Vec::<String>::new());
    let routes = Routes::new(&topology, 0);
    // Up: 2 bundles of 2, then 2 of 3; down: 3, then 2.
    assert_eq!(routes.count_paths(&topology, HostId(0), HostId(23)), 4 * 6 * 3 * 2);
    let path = routes.path(&topology, HostId(0), HostId(23), 0);
    assert_eq!(path.propagation(), Span::from_ps(2 * (1_000_000 + 500_000 + 2_500_500)));
}

/// A `.topo` text of tiers with these values: radices down and up, bundle.
fn topo(nodes: u32, podsize: u32, tiers: &[(u32, u32, u32)]) -> String {
    let mut text = format!("Nodes {nodes}\nTiers {}\nPodsize {podsize}\n", tiers.len());
    for (i, (down, up, bundle)) in tiers.iter().enumerate() {
        text += &format!(
            "Tier {i}\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1000\nRadix_Down {down}\nBundle {bundle}\n"
        );
        text += &if i + 1 < tiers.len() { format!("Radix_Up {up}\n") } else { String::new() };
    }
    text
}

#[test]
fn trees_of_htsim_are_our_trees() {
    let cable = Cable::new(Rate::from_gbps(100), Span::from_us(1));
    let cables = TreeCables { host: cable, aggregation: cable, core: cable };
    let read = |text: String| good(htsim, &text).topology;
    assert_eq!(read(topo(128, 16, &[(4, 4, 1), (4, 4, 1), (8, 0, 1)])), fat_tree(8, cables).unwrap());
    let dx = ThreeTier {
        servers: 192,
        tors: 32,
        aggregations: 16,
        cores: 8,
        tor_uplinks: None,
        aggregation_uplinks: None,
        cables,
    };
    assert_eq!(read(topo(192, 24, &[(6, 2, 1), (4, 4, 1), (8, 0, 1)])), dx.build().unwrap());
    let two = read(topo(32, 32, &[(8, 2, 1), (4, 0, 1)]));
    let leaves = LeafSpine { leaves: 4, spines: 2, hosts_per_leaf: 8, host: cable, uplink: cable }.build().unwrap();
    assert_eq!((two.nics(), two.ports()), (leaves.nics(), leaves.ports()));
}

#[test]
fn what_htsim_has_and_we_have_not_is_noted() {
    let text = TREE
        .replace("Switch_Latency_ns 0", "Switch_Latency_ns 300\nQueue_Up 90000")
        .replace("Bundle 3", "Bundle 3\nOversubscribed 1\nSwitch_Latency_ns 50");
    let Imported { topology, notes, .. } = good(htsim, &text);
    assert_eq!(
        notes,
        [
            "net:26: Oversubscribed has no meaning in the top tier and is not read",
            "net:12: Queue_Up of 90000 bytes is not taken over: queues are set in the experiment",
            "net:11: the switch latency of 300ns is modelled as that much more delay of each link into a switch of tier 0",
            "net:27: the switch latency of 50ns is modelled as that much more delay of each link into a switch of tier 2",
        ]
    );
    let path = Routes::new(&topology, 0).path(&topology, HostId(0), HostId(23), 0);
    // Two ToR switches and a core switch are passed.
    assert_eq!(path.propagation(), Span::from_ps(2 * (1_000_000 + 500_000 + 2_500_500) + 2 * 300_000 + 50_000));
}

#[test]
fn broken_trees_of_htsim() {
    broken(
        htsim,
        TREE,
        &[
            ("Nodes 24\n", "", "5:1: Nodes is missing before the first tier"),
            (
                "Nodes 24\n",
                "Node 24\n",
                "2:1: 'Node' is not a key before the first tier: use Nodes, Tiers, Podsize: did you mean Nodes?",
            ),
            ("Nodes 24\n", "Nodes 24\nNodes 24\n", "3:1: Nodes is set twice: set it once"),
            ("Nodes 24\n", "Nodes many\n", "2:7: 'many' is not Nodes: write a whole number"),
            ("Nodes 24\n", "Nodes\n", "2:6: the line ends too early: write \"Nodes NUMBER\""),
            ("Nodes 24\n", "Nodes 24 3\n", "2:10: '3' is one word too many: write \"Nodes NUMBER\""),
            ("Tiers 3", "Tiers 4", "3:7: Tiers is 4: use 2 to 3"),
            ("Podsize 8", "Podsize 7", "4:9: Podsize must divide the 24 Nodes evenly"),
            ("Tier 1\n", "Tier 3\n", "14:6: the number of a tier is 3: use 0 to 2"),
            ("Tier 1\n", "Tier 0\n", "14:6: tier 0 has a section already: write each once"),
            (
                "Oversubscribed 1",
                "Oversubscribd 1",
                "12:1: 'Oversubscribd' is not a key of a tier: did you mean Oversubscribed?",
            ),
            (
                "Oversubscribed 1",
                "Oversubscribed 2",
                "12:16: tier 0 is not 2:1 oversubscribed: its radices and link speeds give 1:1",
            ),
            ("Oversubscribed 1", "Radix_Up 4", "12:1: Radix_Up is set twice in tier 0: set it once"),
            ("Oversubscribed 1", "Bundle 2", "12:8: hosts have one link: leave Bundle out of tier 0, or write 1"),
            ("Bundle 3", "Bundle 3\nQueue_Up 5", "25:1: tier 2 is the top and has no uplinks: remove Queue_Up"),
            ("Radix_Up 4\n", "", "6:1: tier 0 has no Radix_Up: add a line \"Radix_Up VALUE\""),
            (
                "Radix_Up 4\n",
                "Radix_Up 3\n",
                "9:10: Radix_Up of tier 0 must be a multiple of tier 1's Bundle, which is 2",
            ),
            ("Radix_Down 4", "Radix_Down 3", "8:12: Radix_Down of tier 0 must divide the Podsize of 8"),
            (
                "radix_down 4",
                "radix_down 8",
                "16:12: Radix_Down of tier 1 is 8, and a pod has 2 ToR switches with a Bundle of 2: write 4",
            ),
            ("radix_up 6", "radix_up 5", "17:10: Radix_Up of tier 1 must be a multiple of tier 2's Bundle, which is 3"),
            (
                "Radix_Down 9",
                "Radix_Down 6",
                "23:12: Radix_Down of tier 2 is 6, and there are 3 pods with a Bundle of 3: write 9",
            ),
            (
                "Downlink_Latency_ns 500",
                "Downlink_Latency_ns 5us",
                "19:21: '5us' is not a number of nanoseconds: write a plain number",
            ),
            (
                "Downlink_Latency_ns 500\n",
                "",
                "14:1: tier 1 has no Downlink_Latency_ns: add a line \"Downlink_Latency_ns VALUE\"",
            ),
        ],
    );
    let speeds = |with: &str| {
        let text = TREE.replacen("Downlink_speed_Gbps 100", &format!("Downlink_speed_Gbps {with}"), 1);
        htsim("net", &text).unwrap_err().to_string()
    };
    assert_eq!(speeds("fast"), "net:7:21: 'fast' is not a number of Gb/s: write a plain number");
    assert_eq!(speeds("0"), "net:7:21: a link of zero rate never sends: write for example 100");
    let message = |text: &str| htsim("net", text).unwrap_err().to_string();
    assert_eq!(message(""), "net:1:1: Nodes is missing before the first tier");
    assert_eq!(
        message("Nodes 4\nTiers 2\nPodsize 4\nTier 0\n"),
        "net:2:7: there are 2 Tiers and no section for tier 1: add \"Tier 1\""
    );
    assert_eq!(message(&topo(32, 16, &[(8, 2, 1), (4, 0, 1)])), "net:3:9: two tiers are one pod: write Podsize 32");
    assert_eq!(
        message(&topo(1_000_000, 1_000_000, &[(1000, 2, 1), (1000, 0, 1)])),
        "net:1:7: 1000000 hosts are too many: use at most 65535"
    );
}
