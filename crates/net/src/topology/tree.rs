//! A regular tree of two or three tiers: pods of ToR and aggregation switches, and core switches above them.
//!
//! The general form behind [`super::LeafSpine`], [`super::fat_tree`] and [`super::ThreeTier`]. Within a pod every ToR
//! switch has a bundle of links to every aggregation switch. The uplinks of a pod's aggregation switches, taken in
//! order, go round the core switches: with as many core switches as a pod has uplinks, each core switch has one link
//! to each pod, as in Al-Fares, Loukissas and Vahdat, SIGCOMM'08, section 3.

use super::error::at_least_one;
use super::graph::check_size;
use super::{Cable, Graph, Node, Topology, TopologyError, TreeCables};

/// The shape of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tree {
    /// Pods.
    pub pods: u32,
    /// ToR switches of a pod.
    pub tors: u32,
    /// Hosts of a ToR switch.
    pub hosts: u32,
    /// Aggregation switches of a pod.
    pub aggregations: u32,
    /// Core switches in all; none in a tree of two tiers.
    pub cores: u32,
    /// Bundles that an aggregation switch has upward.
    pub uplinks: u32,
    /// Links in a bundle: between a ToR and an aggregation switch, between an aggregation and a core switch.
    pub bundles: [u32; 2],
    /// Rates and delays.
    pub cables: TreeCables,
    /// What the switches of each tier are called, from below.
    pub names: [&'static str; 3],
}

impl Tree {
    /// A tree of one pod and no core switches, of single links.
    pub const fn two_tiers(tors: u32, aggregations: u32, hosts: u32, host: Cable, uplink: Cable) -> Self {
        Tree {
            pods: 1,
            tors,
            hosts,
            aggregations,
            cores: 0,
            uplinks: 0,
            bundles: [1, 1],
            cables: TreeCables { host, aggregation: uplink, core: uplink },
            names: ["tor", "agg", "core"],
        }
    }

    /// The network.
    ///
    /// # Errors
    /// When a count is zero, when the uplinks of a pod do not go round the core switches evenly, or as
    /// [`Graph::build`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        self.check()?;
        let mut graph = Graph::default();
        let tors = switches(&mut graph, self.pods * self.tors, self.names[0]);
        let aggregations = switches(&mut graph, self.pods * self.aggregations, self.names[1]);
        let cores = switches(&mut graph, self.cores, self.names[2]);
        self.link_hosts(&mut graph, &tors);
        self.link_pods(&mut graph, &tors, &aggregations);
        self.link_cores(&mut graph, &aggregations, &cores);
        graph.build()
    }

    fn check(&self) -> Result<(), TopologyError> {
        at_least_one(self.pods, "pods")?;
        at_least_one(self.tors, "ToR switches of a pod")?;
        at_least_one(self.hosts, "hosts of a ToR switch")?;
        at_least_one(self.aggregations, "aggregation switches of a pod")?;
        at_least_one(self.bundles[0], "links between a ToR and an aggregation switch")?;
        if self.cores > 0 {
            at_least_one(self.uplinks, "uplinks of an aggregation switch")?;
            at_least_one(self.bundles[1], "links between an aggregation and a core switch")?;
        }
        let product = |counts: &[u32]| counts.iter().fold(1u64, |all, n| all.saturating_mul((*n).into()));
        let hosts = product(&[self.pods, self.tors, self.hosts]);
        let upper = product(&[self.pods, self.aggregations]).saturating_add(self.cores.into());
        let in_pods = product(&[self.pods, self.tors, self.aggregations, self.bundles[0]]);
        let above = product(&[self.pods, self.aggregations, self.uplinks, self.bundles[1]]);
        let switches = product(&[self.pods, self.tors]).saturating_add(upper);
        check_size(hosts, switches, hosts.saturating_add(in_pods).saturating_add(above))?;
        let uplinks = product(&[self.aggregations, self.uplinks]);
        if self.cores > 0 && !uplinks.is_multiple_of(self.cores.into()) {
            let (of, over) = ("uplinks of a pod", "core switches");
            return Err(TopologyError::Uneven { count: uplinks, of, groups: self.cores.into(), over });
        }
        Ok(())
    }

    fn link_hosts(&self, graph: &mut Graph, tors: &[Node]) {
        for i in 0..self.hosts * tors.len() as u32 {
            let host = graph.host(format!("host{i}"));
            graph.link(host, tors[(i / self.hosts) as usize], self.cables.host);
        }
    }

    fn link_pods(&self, graph: &mut Graph, tors: &[Node], aggregations: &[Node]) {
        let pods = tors.chunks(self.tors as usize).zip(aggregations.chunks(self.aggregations as usize));
        for (tors, aggregations) in pods {
            for tor in tors {
                for aggregation in aggregations {
                    bundle(graph, *tor, *aggregation, self.cables.aggregation, self.bundles[0]);
                }
            }
        }
    }

    fn link_cores(&self, graph: &mut Graph, aggregations: &[Node], cores: &[Node]) {
        for pod in aggregations.chunks(self.aggregations as usize) {
            let mut round = cores.iter().cycle();
            for aggregation in pod {
                for core in round.by_ref().take(self.uplinks as usize) {
                    bundle(graph, *aggregation, *core, self.cables.core, self.bundles[1]);
                }
            }
        }
    }
}

fn switches(graph: &mut Graph, count: u32, tier: &str) -> Vec<Node> {
    (0..count).map(|i| graph.switch(format!("{tier}{i}"), tier)).collect()
}

fn bundle(graph: &mut Graph, a: Node, b: Node, cable: Cable, links: u32) {
    (0..links).for_each(|_| graph.link(a, b, cable));
}
