//! Routes: all shortest paths, one of them for each flow.
//!
//! The next hops of a switch towards a destination are the neighbours that are one link closer to it. Distances are
//! counted in links, by breadth-first search from each switch that has hosts. Where there are several next hops, a hash
//! of the flow decides (ECMP; RFC 2992), so that a flow's packets stay in order.
//!
//! **Hash.** The flow's key and the switch's salt are added, and the sum goes through the finalizer of SplitMix64
//! (Steele, Lea and Flood, OOPSLA'14). There every input bit affects every output bit. The choice is the hash times the
//! number of next hops, shifted right by 64 (Lemire, ACM TOMACS 29(1), 2019, section 3), which needs no division.
//!
//! **Salt.** Each switch has a salt of its own, which follows from the seed; routers add such a number too. With one
//! hash in all switches the choices would be correlated (polarization): all flows that a ToR switch sends to one
//! aggregation switch would choose the same uplink there.
//!
//! **Tables.** A row has an entry for each switch with hosts: the number of a group of next hops. Switches with equal
//! rows share one. In a tree all ToR switches share a row, so do the aggregation switches of a pod, and so do all core
//! switches. A group whose ports are consecutive, as all groups of a tree are, is stored as its first port and the
//! number of ports. Ports are numbered from the switch's first port. The tables of the 26-ary fat tree (4,394 hosts,
//! 845 switches) take 20 kB, beside 17 kB for its hosts and 20 kB for its switches.

use super::{Node, Output, Path, PortId, SwitchId, Topology};
use crate::HostId;
use std::collections::BTreeMap;

/// No switch with hosts has this number.
const NO_EDGE: u16 = u16::MAX;
/// The group's ports are consecutive, not listed.
const CONSECUTIVE: u32 = u32::MAX;

/// Next hops of every switch.
#[derive(Clone, Debug)]
pub struct Routes {
    hosts: Vec<HostAt>,
    switches: Vec<SwitchAt>,
    /// Per distinct row: the local number of a group, for each switch with hosts.
    rows: Vec<u16>,
    groups: Vec<NextHops>,
    /// Ports of groups that are not consecutive.
    listed: Vec<u16>,
}

/// The switch and the port of a host.
#[derive(Clone, Copy, Debug)]
struct HostAt {
    /// The switch, numbered among those with hosts.
    edge: u16,
    /// The port to the host, within the switch.
    port: u16,
}

#[derive(Clone, Copy, Debug)]
struct SwitchAt {
    salt: u64,
    first_port: u32,
    /// Where the switch's row begins.
    row: u32,
    /// Where the switch's groups begin.
    groups: u32,
    /// The switch's number among those with hosts.
    edge: u16,
}

/// Equal next hops.
#[derive(Clone, Copy, Debug)]
struct NextHops {
    /// The first port, within the switch.
    port: u16,
    /// The number of next hops, less one.
    more: u16,
    /// Where the ports are listed.
    list: u32,
}

impl Routes {
    /// The routes of a network. Which of several paths a flow takes depends on `seed`.
    pub fn new(topology: &Topology, seed: u64) -> Self {
        let edges = Edges::of(topology);
        let tables = next_hops(topology, &edges);
        let mut routes = Routes {
            hosts: edges.hosts(topology),
            switches: Vec::with_capacity(tables.len()),
            rows: Vec::new(),
            groups: Vec::new(),
            listed: Vec::new(),
        };
        let (mut rows, mut groups) = (BTreeMap::new(), BTreeMap::new());
        for (i, (row, members)) in tables.into_iter().enumerate() {
            let row = *rows.entry(row).or_insert_with_key(|row| routes.add_row(row));
            let groups = *groups.entry(members).or_insert_with_key(|members| routes.add_groups(members));
            let salt = mixed(seed.wrapping_add(GOLDEN.wrapping_mul(i as u64 + 1)));
            routes.switches.push(SwitchAt { salt, first_port: topology.first[i], row, groups, edge: edges.number[i] });
        }
        routes
    }

    fn add_row(&mut self, row: &[u16]) -> u32 {
        self.rows.extend_from_slice(row);
        (self.rows.len() - row.len()) as u32
    }

    fn add_groups(&mut self, groups: &[Vec<u16>]) -> u32 {
        for ports in groups {
            let (port, more) = (ports[0], (ports.len() - 1) as u16);
            let mut list = CONSECUTIVE;
            if ports[ports.len() - 1] - port != more {
                list = self.listed.len() as u32;
                self.listed.extend_from_slice(ports);
            }
            self.groups.push(NextHops { port, more, list });
        }
        (self.groups.len() - groups.len()) as u32
    }

    /// The port on which `switch` sends a packet to `host`. Packets of the same `key`, which is asked for where there
    /// is a choice, all go the same way.
    ///
    /// # Panics
    /// When there is no such switch or host.
    #[inline(always)]
    pub fn port(&self, switch: SwitchId, host: HostId, key: impl FnOnce() -> u64) -> PortId {
        let (at, to) = (&self.switches[switch.index()], self.hosts[host.index()]);
        if at.edge == to.edge {
            return PortId(at.first_port + u32::from(to.port));
        }
        let group = self.group(at, to.edge);
        let within = if group.more == 0 { group.port } else { self.choose(at, group, key()) };
        PortId(at.first_port + u32::from(within))
    }

    #[inline]
    fn group(&self, at: &SwitchAt, edge: u16) -> NextHops {
        let local = self.rows[at.row as usize + usize::from(edge)];
        self.groups[at.groups as usize + usize::from(local)]
    }

    #[inline]
    fn choose(&self, at: &SwitchAt, group: NextHops, key: u64) -> u16 {
        let hash = mixed(key.wrapping_add(at.salt));
        let choice = ((u128::from(hash) * (u128::from(group.more) + 1)) >> 64) as u16;
        if group.list == CONSECUTIVE { group.port + choice } else { self.listed[group.list as usize + choice as usize] }
    }

    /// All ports on which `switch` may send to `host`, in order.
    pub fn ports(&self, switch: SwitchId, host: HostId) -> Vec<PortId> {
        let (at, to) = (&self.switches[switch.index()], self.hosts[host.index()]);
        let port = |within: u16| PortId(at.first_port + u32::from(within));
        if at.edge == to.edge {
            return vec![port(to.port)];
        }
        let NextHops { port: first, more, list } = self.group(at, to.edge);
        match list {
            CONSECUTIVE => (first..=first + more).map(port).collect(),
            list => self.listed[list as usize..][..=usize::from(more)].iter().map(|within| port(*within)).collect(),
        }
    }

    /// The way of a flow from host to host: its NIC, then a port of each switch.
    ///
    /// # Panics
    /// When the two are one host, or `topology` is not the one of these routes.
    pub fn path(&self, topology: &Topology, from: HostId, to: HostId, key: u64) -> Path {
        assert_ne!(from, to, "a path leads to another host");
        let nic = topology.nics()[from.index()];
        let (mut path, mut at) = (Path::of(Output::Nic(from), nic.wire), nic.to);
        while let Node::Switch(switch) = at {
            let number = self.port(switch, to, || key);
            let port = topology.ports()[number.index()];
            path.push(Output::Port(number), port.wire);
            assert!(path.links() <= topology.switches().len() + 1, "each hop leads closer, so no switch is met twice");
            at = port.to;
        }
        path
    }

    /// How many shortest paths lead from host to host.
    pub fn count_paths(&self, topology: &Topology, from: HostId, to: HostId) -> u64 {
        let mut known = BTreeMap::new();
        self.count_from(topology, topology.nics()[from.index()].to, to, &mut known)
    }

    fn count_from(&self, topology: &Topology, at: Node, to: HostId, known: &mut BTreeMap<SwitchId, u64>) -> u64 {
        let Node::Switch(switch) = at else { return 1 };
        if let Some(paths) = known.get(&switch) {
            return *paths;
        }
        let next = self.ports(switch, to).into_iter().map(|port| topology.ports()[port.index()].to);
        let paths = next.map(|next| self.count_from(topology, next, to, known)).sum();
        known.insert(switch, paths);
        paths
    }

    /// Bytes that the tables take.
    pub fn size(&self) -> usize {
        size_of_val(&self.hosts[..])
            + size_of_val(&self.switches[..])
            + size_of_val(&self.rows[..])
            + size_of_val(&self.groups[..])
            + size_of_val(&self.listed[..])
    }
}

/// The odd number next to 2^64 divided by the golden ratio: SplitMix64's step.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's finalizer: a bijection in which each bit depends on all.
#[inline]
const fn mixed(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Switches with hosts, numbered.
struct Edges {
    /// The number of each switch, or [`NO_EDGE`].
    number: Vec<u16>,
    switches: Vec<SwitchId>,
}

impl Edges {
    fn of(topology: &Topology) -> Self {
        let mut edges = Edges { number: vec![NO_EDGE; topology.switches.len()], switches: Vec::new() };
        for port in topology.ports() {
            let number = &mut edges.number[port.from.index()];
            if matches!(port.to, Node::Host(_)) && *number == NO_EDGE {
                *number = edges.switches.len() as u16;
                edges.switches.push(port.from);
            }
        }
        edges
    }

    fn hosts(&self, topology: &Topology) -> Vec<HostAt> {
        let mut hosts = vec![HostAt { edge: NO_EDGE, port: 0 }; topology.hosts()];
        for (i, port) in topology.ports().iter().enumerate() {
            if let Node::Host(host) = port.to {
                let within = i as u32 - topology.first[port.from.index()];
                hosts[host.index()] = HostAt { edge: self.number[port.from.index()], port: within as u16 };
            }
        }
        hosts
    }
}

/// A switch's row and its groups: for each switch with hosts a number of a group, and each group's ports in order.
type RouteRow = (Vec<u16>, Vec<Vec<u16>>);

fn next_hops(topology: &Topology, edges: &Edges) -> Vec<RouteRow> {
    let switches = topology.switches.len();
    let mut rows = vec![vec![0; edges.switches.len()]; switches];
    let mut groups: Vec<BTreeMap<Vec<u16>, u16>> = vec![BTreeMap::new(); switches];
    let (mut distance, mut ports) = (Vec::new(), Vec::new());
    for (edge, to) in edges.switches.iter().enumerate() {
        distances(topology, *to, &mut distance);
        for (i, (row, groups)) in rows.iter_mut().zip(&mut groups).enumerate() {
            closer(topology, SwitchId(i as u16), &distance, &mut ports);
            row[edge] = match groups.get(&ports) {
                Some(number) => *number,
                None if ports.is_empty() => 0,
                None => {
                    let number = groups.len() as u16;
                    groups.insert(ports.clone(), number);
                    number
                }
            };
        }
    }
    rows.into_iter().zip(groups).map(|(row, groups)| in_order(row, groups)).collect()
}

/// Numbers a switch's groups in the order of their ports, so that switches with the same next hops have the same table
/// however their groups were found.
fn in_order(mut row: Vec<u16>, groups: BTreeMap<Vec<u16>, u16>) -> RouteRow {
    let mut number = vec![0; groups.len().max(1)];
    for (new, old) in groups.values().enumerate() {
        number[usize::from(*old)] = new as u16;
    }
    row.iter_mut().for_each(|group| *group = number[usize::from(*group)]);
    (row, groups.into_keys().collect())
}

/// How many links each switch is away from `to`: breadth first.
fn distances(topology: &Topology, to: SwitchId, distance: &mut Vec<u32>) {
    distance.clear();
    distance.resize(topology.switches.len(), u32::MAX);
    distance[to.index()] = 0;
    let mut reached = vec![to];
    let mut next = 0;
    while next < reached.len() {
        let at = reached[next];
        next += 1;
        for port in ports_of(topology, at) {
            if let Node::Switch(neighbour) = port.to
                && distance[neighbour.index()] == u32::MAX
            {
                distance[neighbour.index()] = distance[at.index()] + 1;
                reached.push(neighbour);
            }
        }
    }
}

/// The ports of `switch`, numbered within it, that lead one link closer.
fn closer(topology: &Topology, switch: SwitchId, distance: &[u32], ports: &mut Vec<u16>) {
    ports.clear();
    for (i, port) in ports_of(topology, switch).iter().enumerate() {
        if let Node::Switch(neighbour) = port.to
            && distance[neighbour.index()] < distance[switch.index()]
        {
            ports.push(i as u16);
        }
    }
}

fn ports_of(topology: &Topology, switch: SwitchId) -> &[super::Port] {
    let range = topology.ports_of(switch);
    &topology.ports[range.start as usize..range.end as usize]
}
