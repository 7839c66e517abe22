//! Rules about ports that are named: they exist.

use crate::error::SpecError;
use crate::places::Places;
use crate::tables::Experiment;
use firstlight_formats::nearest;
use firstlight_net::Discipline;
use firstlight_net::topology::{PortId, Topology};
use std::collections::BTreeMap;

/// The names of all ports, by number.
pub(crate) fn port_names(topology: &Topology) -> Vec<String> {
    (0..topology.ports().len()).map(|port| topology.queue_name(PortId(port as u32))).collect()
}

/// The number of the port with this name, or the text of the name's problem.
pub(crate) fn port_of_name(all: &[String], name: &str) -> Result<usize, String> {
    let examples = || {
        let between = all.iter().find(|name| name.contains("->"));
        let names: Vec<&str> = all.first().into_iter().chain(between).map(String::as_str).collect();
        format!("ports are called {}", names.join(", "))
    };
    all.iter().position(|known| known == name).ok_or_else(|| {
        let near = nearest(name, all.iter().map(String::as_str));
        let right = near.map_or_else(examples, |near| format!("did you mean {near}?"));
        format!("there is no port '{name}': {right}")
    })
}

/// The disciplines of the ports that `[[switch.ports]]` name.
pub(crate) fn special_ports(
    experiment: &Experiment,
    places: &Places,
    topology: &Topology,
) -> Result<BTreeMap<PortId, Discipline>, SpecError> {
    let mut found = BTreeMap::new();
    if experiment.switch.ports.is_empty() {
        return Ok(found);
    }
    let all = port_names(topology);
    for (entry, table) in experiment.switch.ports.iter().enumerate() {
        let ports = ports_on(topology, &all, &table.on);
        let ports = ports.map_err(|text| places.problem(&format!("switch.ports.{entry}.on"), text))?;
        found.extend(ports.into_iter().map(|port| (PortId(port as u32), table.discipline)));
    }
    Ok(found)
}

/// The ports of a tier, the ports of a switch, or the port of this name.
fn ports_on(topology: &Topology, all: &[String], name: &str) -> Result<Vec<usize>, String> {
    let switch = |port: &usize| &topology.switches()[topology.ports()[*port].from.index()];
    let of_switches = (0..all.len()).filter(|port| switch(port).tier == name || switch(port).name == name);
    let ports: Vec<usize> = of_switches.collect();
    if !ports.is_empty() {
        return Ok(ports);
    }
    port_of_name(all, name).map(|port| vec![port]).map_err(|text| {
        let mut tiers: Vec<&str> = topology.switches().iter().map(|switch| switch.tier.as_str()).collect();
        tiers.sort_unstable();
        tiers.dedup();
        format!("there is no tier and no switch '{name}' (tiers: {}), and {text}", tiers.join(", "))
    })
}
