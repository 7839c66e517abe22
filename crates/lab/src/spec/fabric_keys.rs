//! The keys of fabrics, of the hosts at their edge and of the switches in packet fabrics.

use super::hosts::HostKind;
use super::keys::{Key, Kind, When};
use super::red;
use super::registry::{AMOUNT, MOST_HOSTS, MOST_RACKS, POSITIVE, SPAN, key};
use firstlight_net::{PacerConfig, PhantomConfig};

/// Names of fabrics.
const FABRICS: &[&str] = &["hybrid", "star", "dumbbell", "leaf_spine", "fat_tree", "three_tier", "graph"];
/// The fabric with circuits,
pub(super) const HYBRID: When = When::Fabric(&["hybrid"]);
/// and those without.
pub(super) const PACKET: When = When::Fabric(&["star", "dumbbell", "leaf_spine", "fat_tree", "three_tier", "graph"]);
/// Fabrics whose links are told by keys.
const REGULAR: When = When::Fabric(&["hybrid", "star", "dumbbell", "leaf_spine", "fat_tree", "three_tier"]);
/// Fabrics of several switches,
pub(super) const SWITCHES: When = When::Fabric(&["dumbbell", "leaf_spine", "fat_tree", "three_tier"]);
/// with racks,
const RACKS: When = When::Fabric(&["hybrid", "leaf_spine", "three_tier"]);
/// and of three tiers of switches.
const TIERS: When = When::Fabric(&["fat_tree", "three_tier"]);

/// Formats of files of networks.
const FORMATS: &[&str] = &["list", "htsim", "ns3"];
/// How timestamps of interfaces come about.
const STAMPS: &[&str] = &["ideal", "gaussian", "kernel", "software", "hardware"];
const GAUSSIAN: When = When::Stamps(&["gaussian"]);
const DRIVER: When = When::Stamps(&["software", "hardware"]);

pub(super) const SHARE: Kind = Kind::Number { least: 0.0, most: 1.0 };

/// Shapes and links.
pub(super) fn fabric() -> Vec<Key> {
    let hosts = |least| Kind::Count { least, most: MOST_HOSTS, of: "hosts" };
    let racks = Kind::Count { least: 2, most: MOST_RACKS, of: "racks" };
    let switches = Kind::Count { least: 1, most: MOST_RACKS, of: "switches" };
    let of = |kinds| When::Fabric(kinds);
    vec![
        key(
            "fabric.kind",
            Kind::Name(FABRICS),
            "`hybrid`: racks joined by a packet network and a circuit switch. `star`: hosts around one switch. `dumbbell`: \
             hosts at two switches. `leaf_spine`: racks, each switch joined with every spine switch. `fat_tree`: of \
             switches with k ports. `three_tier`: ToR, aggregation and core switches of given numbers. `graph`: from a file",
        ),
        key("fabric.racks", racks, "How many racks, each with its ToR (or leaf) switch").when(RACKS),
        key("fabric.hosts_per_rack", hosts(1), "How many hosts in each rack").when(RACKS),
        key("fabric.hosts", hosts(2), "How many hosts").when(of(&["star"])),
        key("fabric.left", hosts(1), "How many hosts at the switch `left`").when(of(&["dumbbell"])),
        key("fabric.right", hosts(1), "How many hosts at the switch `right`").when(of(&["dumbbell"])),
        key("fabric.spines", switches, "How many spine switches").when(of(&["leaf_spine"])),
        key("fabric.k", Kind::Count { least: 2, most: 62, of: "ports" }, "How many ports a switch has: k³/4 hosts")
            .when(of(&["fat_tree"])),
        key("fabric.aggregations", switches, "How many aggregation switches").when(of(&["three_tier"])),
        key("fabric.cores", switches, "How many core switches").when(of(&["three_tier"])),
        key("fabric.tor_uplinks", switches, "Uplinks of a ToR switch: the aggregation switches of its pod")
            .or_none("as many as give all switches the same number of ports")
            .when(of(&["three_tier"])),
        key("fabric.aggregation_uplinks", switches, "Uplinks of an aggregation switch")
            .or_none("the fewest with which a pod reaches all core switches alike")
            .when(of(&["three_tier"])),
        key("fabric.file", Kind::Text, "The network, its path relative to the experiment's").when(of(&["graph"])),
        key("fabric.format", Kind::Name(FORMATS), "`list`: our own list of hosts, switches and links. `htsim`: csg-htsim's `.topo`. `ns3`: `topology.txt` of ns-3's datacenter forks")
            .or_none("`htsim` for a name that ends in `.topo`, else `list`")
            .when(of(&["graph"])),
        key(
            "fabric.spray",
            Kind::Flag,
            "Packets take all shortest ways, each any of them; false: each flow has its own, by a hash (ECMP)",
        )
        .or(false)
        .when(When::Fabric(&["dumbbell", "leaf_spine", "fat_tree", "three_tier", "graph"])),
        key("links.rate", Kind::Rate, "Rate of links between switches")
            .or_none("the same as `hosts.rate`")
            .when(SWITCHES),
        key("links.delay", SPAN, "Propagation delay of links between switches")
            .or_none("the same as `hosts.delay`")
            .when(SWITCHES),
        key("links.core_rate", Kind::Rate, "Rate of links between aggregation and core switches")
            .or_none("the same as `links.rate`")
            .when(TIERS),
        key("links.core_delay", SPAN, "Propagation delay of links between aggregation and core switches")
            .or_none("the same as `links.delay`")
            .when(TIERS),
    ]
}

/// Hosts, their links and interfaces.
pub(super) fn hosts() -> Vec<Key> {
    [links(), stamps(), pacer()].into_iter().flatten().collect()
}

fn links() -> Vec<Key> {
    vec![
        key(
            "hosts.kind",
            Kind::Name(HostKind::NAMES),
            "Whose TCP the hosts run. `simulated`: the endpoint model. `linux`: a Linux kernel's own, in virtual time, with \
             real programs",
        )
        .or("simulated")
        .when(When::DefaultHosts),
        key("hosts.rate", Kind::Rate, "Rate of each host's link").when(REGULAR),
        key("hosts.receive_rate", Kind::Rate, "Rate of each host's link in the direction to the host")
            .or_none("the same as `hosts.rate`")
            .when(REGULAR),
        key("hosts.delay", SPAN, "Propagation delay of each host's link").or("0s").when(REGULAR),
        key("hosts.send_delay", SPAN, "How long a packet takes through the sending host's stack").or("0s"),
        key("hosts.receive_delay", SPAN, "How long a packet takes through the receiving host's stack").or("0s"),
        key(
            "hosts.mtu",
            Kind::Size { least: 100, most: 65_535 },
            "Largest IP packet. Links are charged for IP bytes, with no Ethernet overhead",
        )
        .or("9000B"),
        key("hosts.loss", SHARE, "Probability that a packet is lost on its way into the network (fault injection)").or("0.0"),
        key(
            "hosts.clock_offset",
            SPAN,
            "Each host's clock, by which its interface stamps packets, is off by up to this at the start, to either side",
        )
        .or("1s"),
        key(
            "hosts.clock_drift_ppm",
            Kind::Number { least: 0.0, most: 1000.0 },
            "Each such clock goes too fast or too slow by up to this many millionths; 40 are 40 ns per ms",
        )
        .or("40.0"),
    ]
}

fn stamps() -> Vec<Key> {
    vec![
        key(
            "stamps.kind",
            Kind::Name(STAMPS),
            "How interfaces' timestamps come about. `ideal`: as the bits pass. `gaussian`: with normal noise. `kernel`: above \
             the host's stack. `software`: by a polling driver. `hardware`: when a packet's DMA is complete",
        )
        .or("ideal"),
        key("stamps.deviation", POSITIVE, "Standard deviation of the noise on each arrival's timestamp").when(GAUSSIAN),
        key(
            "stamps.token_bucket",
            Kind::Flag,
            "Packets wait in a token bucket at the link's rate, and not in the interface where they have a timestamp already",
        )
        .or(true)
        .when(DRIVER),
        key("stamps.calibration", Kind::Flag, "Timestamps nearer than the link allows are moved apart")
            .or(true)
            .when(DRIVER),
    ]
}

fn pacer() -> Vec<Key> {
    let PacerConfig { period, weight, drain, chance, idle } = PacerConfig::HULL;
    vec![
        key("pacer.period", POSITIVE, "T_r: between two updates of the rate").or(period),
        key("pacer.weight", SHARE, "eta: weight of what came in the last period").or(format!("{weight:?}")),
        key("pacer.drain", Kind::Number { least: 0.0, most: 1e6 }, "beta: how fast the rate grows with what waits")
            .or(format!("{drain:?}")),
        key("pacer.chance", SHARE, "p_a: probability that an ACK with ECN-Echo makes its flow a paced one")
            .or(format!("{chance:?}")),
        key("pacer.idle", POSITIVE, "T_i: a flow that sends nothing for so long is no longer paced").or(idle),
    ]
}

/// What switches of packet fabrics do.
pub(super) fn switch() -> Vec<Key> {
    let mut keys = vec![
        key("switch.buffer", AMOUNT, "Buffer that all ports of a switch share, beside their own limits")
            .or_none("no such limit"),
        key(
            "switch.alpha",
            Kind::Number { least: 1.0 / 65_536.0, most: 65_536.0 },
            "A port may hold so many times what is free of `switch.buffer`",
        )
        .or("1.0")
        .when(When::Buffer),
    ];
    let one = [
        "switch.queue",
        "switch.ecn",
        "switch.red.min",
        "switch.red.max",
        "switch.red.probability",
        "switch.red.weight",
        "switch.red.gentle",
        "switch.red.drop_beyond",
        "switch.phantom.drain",
        "switch.phantom.threshold",
    ];
    let each = [
        "switch.classes.*.queue",
        "switch.classes.*.ecn",
        "switch.classes.*.red.min",
        "switch.classes.*.red.max",
        "switch.classes.*.red.probability",
        "switch.classes.*.red.weight",
        "switch.classes.*.red.gentle",
        "switch.classes.*.red.drop_beyond",
        "switch.classes.*.phantom.drain",
        "switch.classes.*.phantom.threshold",
    ];
    keys.extend(discipline(one).map(|key| key.when(When::OneQueue)));
    keys.extend(discipline(each));
    keys
}

fn discipline(paths: [&'static str; 10]) -> impl Iterator<Item = Key> {
    let phantom = PhantomConfig::HULL_10G;
    let [queue, ecn, min, max, probability, weight, gentle, beyond, drain, threshold] = paths;
    let red = red::keys([min, max, probability, weight, gentle, beyond]);
    let length = Kind::Length { least: 1 };
    let limits = [
        key(queue, length, "How many packets may wait at a port, or how much data may be unsent there")
            .or_none("no limit"),
        key(ecn, length, "Mark ECN-capable packets when a port's queue would exceed this (DCTCP)").or_none("no marks"),
    ];
    let phantom = [
        key(
            drain,
            Kind::Number { least: 0.01, most: 1.0 },
            "HULL's phantom queue: the share of the link's rate at which it drains",
        )
        .or(format!("{:?}", phantom.drain)),
        key(threshold, AMOUNT, "HULL's phantom queue: mark packets that leave while it is above this")
            .or(phantom.threshold),
    ];
    limits.into_iter().chain(red).chain(phantom)
}
