//! Rules about hosts with several links: flows can reach their ends.

use crate::error::SpecError;
use crate::expander::{Traffic, TrafficEntry};
use crate::host_kind::DefaultHosts;
use crate::network::Network;
use crate::places::{Places, all_or};
use crate::tables::Experiment;
use firstlight_net::HostId;

/// Refuses flows and probes between links of one host or links that no switch joins, and further links of hosts that
/// cannot have them.
pub(crate) fn further_links(
    experiment: &Experiment,
    places: &Places,
    network: &Network,
    traffic: &Traffic,
) -> Result<(), SpecError> {
    let Network::Graph(graph) = network else { return Ok(()) };
    let topology = &graph.topology;
    if topology.further().is_empty() {
        return Ok(());
    }
    let wrong = |(entry, src, dst): (TrafficEntry, HostId, HostId)| {
        let islands = topology.islands();
        let text = if topology.owner(src) == topology.owner(dst) {
            format!("host{} and host{} are links of one host: name links of two", src.0, dst.0)
        } else if islands[src.index()] != islands[dst.index()] {
            format!("no switches join host{} and host{}: name links that they do", src.0, dst.0)
        } else {
            return None;
        };
        Some(places.problem(&entry.to_string(), text))
    };
    let flows = traffic.flows.iter().map(|flow| (flow.entry, flow.src, flow.dst));
    let probes = traffic.probes.iter().map(|probe| (probe.entry, probe.src, probe.dst));
    let mut problems: Vec<_> = flows.chain(probes).filter_map(wrong).collect();
    problems.dedup();
    if experiment.hosts.kind == DefaultHosts::Dilated {
        problems.push(places.problem("hosts.kind", "hosts in dilated time have one link, and some have several here"));
    }
    all_or(problems)
}
