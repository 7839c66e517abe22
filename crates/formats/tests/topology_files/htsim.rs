//! csg-htsim's `.topo` files.

use crate::{broken, counts, good};
use firstlight_formats::topology::{Imported, htsim};
use firstlight_net::HostId;
use firstlight_net::topology::{Cable, LeafSpine, Routes, ThreeTier, TreeCables, fat_tree};
use firstlight_units::{Rate, Span};

pub const TREE: &str = "\
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
fn keys_that_are_not_modelled_are_noted() {
    let text = TREE
        .replace("Switch_Latency_ns 0", "Switch_Latency_ns 300\nQueue_Up 90000")
        .replace("Bundle 3", "Bundle 3\nOversubscribed 1\nSwitch_Latency_ns 50");
    let Imported { topology, notes, .. } = good(htsim, &text);
    assert_eq!(
        notes,
        [
            "net:26: Oversubscribed has no meaning in the top tier and is not read",
            "net:12: Queue_Up of 90000 bytes is ignored: set queues in the experiment",
            "net:11: the switch latency of 300ns is modelled as delay of each link into a switch of tier 0",
            "net:27: the switch latency of 50ns is modelled as delay of each link into a switch of tier 2",
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
            (
                "Nodes 24\n",
                "Nodes many\n",
                "2:7: expected the number of Nodes, found 'many': write a whole number from 1 to 1000000",
            ),
            ("Nodes 24\n", "Nodes\n", "2:6: the line ends too early: write \"Nodes NUMBER\""),
            ("Nodes 24\n", "Nodes 24 3\n", "2:10: '3' is one word too many: write \"Nodes NUMBER\""),
            ("Tiers 3", "Tiers 4", "3:7: expected the number of Tiers, found '4': write a whole number from 2 to 3"),
            ("Podsize 8", "Podsize 7", "4:9: Podsize must divide the 24 Nodes evenly"),
            (
                "Tier 1\n",
                "Tier 3\n",
                "14:6: expected the number of a tier, found '3': write a whole number from 0 to 2",
            ),
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
