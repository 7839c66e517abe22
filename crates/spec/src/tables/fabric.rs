//! `[fabric]`: the shape of the network. The builders of packet fabrics stand in `firstlight_net::topology`.

use firstlight_net::topology::{
    LeafSpine, ThreeTier, Topology, TopologyError, TreeCables, dumbbell, fat_tree, star, torus,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most hosts of a fabric: a host's number has 16 bits.
pub(crate) const MOST_HOSTS: u64 = 65_535;

/// The shape of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FabricTable {
    /// Racks joined by a packet network and a circuit switch.
    Hybrid(RackCounts),
    /// Hosts around one switch.
    Star(Star),
    /// Hosts at two switches, `left` and `right`.
    Dumbbell(Routed<Dumbbell>),
    /// Racks, each of whose switches is joined with every spine switch.
    LeafSpine(Routed<LeafSpineRacks>),
    /// A tree of switches that all have k ports, with k³/4 hosts.
    FatTree(Routed<FatTree>),
    /// ToR, aggregation and core switches of given numbers.
    ThreeTier(Routed<ThreeTierRacks>),
    /// A grid of switches with hosts, whose rows and columns are rings.
    Torus(Routed<Torus>),
    /// Hosts and switches from a file.
    Graph(Routed<GraphFile>),
}

/// A fabric with several paths between hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Routed<Shape> {
    /// The shape.
    #[serde(flatten)]
    pub shape: Shape,
    /// Each packet takes any of the shortest paths. `false`: each flow has its own, by a hash (ECMP).
    #[serde(default)]
    pub spray: bool,
}

/// Hosts in racks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RackCounts {
    /// How many racks, each with its ToR (or leaf) switch.
    #[schemars(range(min = 2, max = 4096), extend("x-of" = "racks"))]
    pub racks: u32,
    /// How many hosts in each rack.
    #[schemars(range(min = 1, max = 65_535), extend("x-of" = "hosts"))]
    pub hosts_per_rack: u32,
}

/// A star.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Star {
    /// How many hosts.
    #[schemars(range(min = 2, max = 65_535), extend("x-of" = "hosts"))]
    pub hosts: u32,
}

/// A dumbbell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dumbbell {
    /// How many hosts at the switch `left`.
    #[schemars(range(min = 1, max = 65_535), extend("x-of" = "hosts"))]
    pub left: u32,
    /// How many hosts at the switch `right`.
    #[schemars(range(min = 1, max = 65_535), extend("x-of" = "hosts"))]
    pub right: u32,
}

/// Leaf and spine switches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeafSpineRacks {
    /// The racks.
    #[serde(flatten)]
    pub racks: RackCounts,
    /// How many spine switches.
    #[schemars(range(min = 1, max = 4096), extend("x-of" = "switches"))]
    pub spines: u32,
}

/// A fat tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FatTree {
    /// How many ports a switch has; even.
    #[schemars(range(min = 2, max = 62), extend("x-of" = "ports"))]
    pub k: u32,
}

/// A tree of three tiers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreeTierRacks {
    /// The racks.
    #[serde(flatten)]
    pub racks: RackCounts,
    /// How many aggregation switches.
    #[schemars(range(min = 1, max = 4096), extend("x-of" = "switches"))]
    pub aggregations: u32,
    /// How many core switches.
    #[schemars(range(min = 1, max = 4096), extend("x-of" = "switches"))]
    pub cores: u32,
    /// Uplinks of a ToR switch: the aggregation switches of its pod.
    #[schemars(
        range(min = 1, max = 4096),
        extend("x-of" = "switches", "x-without" = "as many as give all switches the same number of ports")
    )]
    pub tor_uplinks: Option<u32>,
    /// Uplinks of an aggregation switch.
    #[schemars(
        range(min = 1, max = 4096),
        extend("x-of" = "switches", "x-without" = "the fewest with which a pod reaches all core switches alike")
    )]
    pub aggregation_uplinks: Option<u32>,
}

/// A torus of two dimensions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Torus {
    /// How many switches are in a column; with 1 the torus is a ring.
    #[schemars(range(min = 1, max = 4096), extend("x-of" = "switches"))]
    pub rows: u32,
    /// How many switches are in a row.
    #[schemars(range(min = 2, max = 4096), extend("x-of" = "switches"))]
    pub columns: u32,
    /// How many hosts are at each switch, which is their rack.
    #[schemars(range(min = 1, max = 65_535), extend("x-of" = "hosts"))]
    pub hosts_per_rack: u32,
}

/// A network from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GraphFile {
    /// The network's file, its path relative to the experiment's.
    pub file: String,
    /// The format of the file.
    #[schemars(extend("x-without" = "`htsim` for a name that ends in `.topo`, else `list`"))]
    pub format: Option<FabricFormat>,
}

/// A format of files of networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FabricFormat {
    /// Our own list of hosts, switches and links.
    List,
    /// csg-htsim's `.topo`.
    Htsim,
    /// `topology.txt` of ns-3's datacenter forks.
    Ns3,
}

impl FabricTable {
    /// The name of the kind.
    pub fn kind(&self) -> &'static str {
        match self {
            FabricTable::Hybrid(_) => "hybrid",
            FabricTable::Star(_) => "star",
            FabricTable::Dumbbell(_) => "dumbbell",
            FabricTable::LeafSpine(_) => "leaf_spine",
            FabricTable::FatTree(_) => "fat_tree",
            FabricTable::ThreeTier(_) => "three_tier",
            FabricTable::Torus(_) => "torus",
            FabricTable::Graph(_) => "graph",
        }
    }

    /// Whether the fabric has circuits.
    pub fn is_hybrid(&self) -> bool {
        matches!(self, FabricTable::Hybrid(_))
    }

    /// How many tiers of switches have links of given rates between them: 2 for ToR or leaf and the tier above, 3 with
    /// core switches.
    pub(crate) fn switch_tiers(&self) -> u32 {
        match self {
            FabricTable::Hybrid(_) | FabricTable::Star(_) | FabricTable::Graph(_) => 1,
            FabricTable::Dumbbell(_) | FabricTable::LeafSpine(_) | FabricTable::Torus(_) => 2,
            FabricTable::FatTree(_) | FabricTable::ThreeTier(_) => 3,
        }
    }

    /// How many racks there are; `None` where the fabric has none.
    pub(crate) fn racks(&self) -> Option<u32> {
        match self {
            FabricTable::Hybrid(racks) => Some(racks.racks),
            FabricTable::LeafSpine(Routed { shape, .. }) => Some(shape.racks.racks),
            FabricTable::ThreeTier(Routed { shape, .. }) => Some(shape.racks.racks),
            FabricTable::FatTree(Routed { shape, .. }) => Some(shape.k * shape.k / 2),
            FabricTable::Torus(Routed { shape, .. }) => Some(shape.rows * shape.columns),
            FabricTable::Star(_) | FabricTable::Dumbbell(_) | FabricTable::Graph(_) => None,
        }
    }

    /// Whether packets take any of the shortest paths.
    pub(crate) fn spray(&self) -> bool {
        match self {
            FabricTable::Hybrid(_) | FabricTable::Star(_) => false,
            FabricTable::Dumbbell(Routed { spray, .. })
            | FabricTable::LeafSpine(Routed { spray, .. })
            | FabricTable::FatTree(Routed { spray, .. })
            | FabricTable::ThreeTier(Routed { spray, .. })
            | FabricTable::Torus(Routed { spray, .. })
            | FabricTable::Graph(Routed { spray, .. }) => *spray,
        }
    }

    /// The network of a packet fabric whose links are given by keys; `None` for other fabrics. An error names the key
    /// that is to blame.
    pub(crate) fn topology(&self, cables: TreeCables) -> Option<Result<Topology, (&'static str, TopologyError)>> {
        let (key, built) = match self {
            FabricTable::Hybrid(_) | FabricTable::Graph(_) => return None,
            FabricTable::Star(Star { hosts }) => ("fabric.hosts", star(*hosts, cables.host)),
            FabricTable::Dumbbell(Routed { shape: Dumbbell { left, right }, .. }) => {
                ("fabric", dumbbell(*left, *right, cables.host, cables.aggregation))
            }
            FabricTable::LeafSpine(Routed { shape, .. }) => ("fabric", shape.build(cables)),
            FabricTable::FatTree(Routed { shape: FatTree { k }, .. }) => ("fabric.k", fat_tree(*k, cables)),
            FabricTable::ThreeTier(Routed { shape, .. }) => ("fabric", shape.build(cables)),
            FabricTable::Torus(Routed { shape: Torus { rows, columns, hosts_per_rack }, .. }) => {
                ("fabric", torus(*rows, *columns, *hosts_per_rack, cables))
            }
        };
        Some(built.map_err(|error| (key, error)))
    }
}

impl LeafSpineRacks {
    fn build(&self, cables: TreeCables) -> Result<Topology, TopologyError> {
        let LeafSpineRacks { racks: RackCounts { racks, hosts_per_rack }, spines } = *self;
        let (host, uplink) = (cables.host, cables.aggregation);
        LeafSpine { leaves: racks, spines, hosts_per_leaf: hosts_per_rack, host, uplink }.build()
    }
}

impl ThreeTierRacks {
    fn build(&self, cables: TreeCables) -> Result<Topology, TopologyError> {
        let ThreeTierRacks { racks: RackCounts { racks, hosts_per_rack }, aggregations, cores, .. } = *self;
        let tree = ThreeTier {
            servers: racks.saturating_mul(hosts_per_rack),
            tors: racks,
            aggregations,
            cores,
            tor_uplinks: self.tor_uplinks,
            aggregation_uplinks: self.aggregation_uplinks,
            cables,
        };
        tree.build()
    }
}
