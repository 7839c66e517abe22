//! Rules about lossless Ethernet: its buffers hold all packets that can arrive, and nothing else drops packets of
//! lossless classes.

use crate::error::SpecError;
use crate::network::Network;
use crate::places::{Places, all_or};
use crate::tables::{Experiment, MOST_HOSTS};
use firstlight_net::Discipline;
use firstlight_net::fabric::{HostLinks, HybridConfig, ReceiveConfig, SwitchConfig};
use firstlight_net::pfc::{PfcConfig, PfcLimits};
use firstlight_net::topology::{Node, Topology, Wire};
use firstlight_units::Bytes;

/// The links into switches that have buffers.
struct Links<'a> {
    limits: Vec<(usize, PfcLimits)>,
    name: &'a dyn Fn(usize) -> String,
}

/// The links into the switches of a packet fabric with their limits, if the links can be paused.
pub(crate) fn lossless_switches(
    experiment: &Experiment,
    places: &Places,
    topology: &Topology,
    switch: SwitchConfig,
) -> Result<SwitchConfig, SpecError> {
    let Some(config) = config(experiment) else { return Ok(switch) };
    let limits = links(topology, &config).collect();
    let links = Links { limits, name: &|transmitter| topology.transmitter_name(transmitter) };
    let absent = absent_class(experiment, switch.queues().len());
    check(experiment, places, &links, absent, other_limits(experiment, &switch, &config))?;
    Ok(SwitchConfig { pfc: Some(config), ..switch })
}

/// The limits of the links of a hybrid fabric: those of hosts, and those of the packet network.
pub(crate) fn lossless_hybrid(
    experiment: &Experiment,
    places: &Places,
    hybrid: HybridConfig,
) -> Result<HybridConfig, SpecError> {
    let Some(config) = config(experiment) else { return Ok(hybrid) };
    let HostLinks { rate, receive_rate, delay } = hybrid.links;
    let (there, back) = (Wire { rate, delay }, Wire { rate: receive_rate, delay });
    let packet = Wire { rate: hybrid.packet.rate, delay: hybrid.packet.delay };
    let of_hosts = (0..hybrid.hosts()).map(|host| (host, config.limits(there, back)));
    let of_uplinks = (0..hybrid.racks()).map(|rack| (MOST_HOSTS as usize + rack, config.limits(packet, packet)));
    let links = Links {
        limits: of_hosts.chain(of_uplinks).collect(),
        name: &|link| match link.checked_sub(MOST_HOSTS as usize) {
            None => format!("host{link}.nic"),
            Some(rack) => format!("uplink.{rack}"),
        },
    };
    let classes = experiment.pfc.as_ref().and_then(|pfc| pfc.classes());
    let highest = classes.and_then(|classes| classes.highest()).filter(|highest| *highest > 0);
    let text = |highest| format!("there is no class {highest}: the packets of a hybrid fabric are all of class 0");
    let absent = highest.map(|highest| ("pfc.classes".to_string(), text(highest)));
    let capacity = "a VOQ's capacity drops packets of a lossless class: take it out, so that VOQs take what hosts' \
                    accounts let in, or say pfc.allow_loss = true";
    let limit = if !config.has(0) {
        None
    } else if experiment.voq.small.is_some() {
        Some(("voq.small".to_string(), capacity.to_string()))
    } else {
        Discipline::from(experiment.voq.discipline)
            .dropping()
            .next()
            .map(|(key, text)| (format!("voq.{key}"), format!("{text}: take it out, or say pfc.allow_loss = true")))
    };
    check(experiment, places, &links, absent, limit)?;
    Ok(HybridConfig { pfc: Some(config), ..hybrid })
}

/// A key's path, and the text of its problem.
type Wrong = Option<(String, String)>;

/// The table `[pfc]`, if links can be paused.
fn config(experiment: &Experiment) -> Option<PfcConfig> {
    experiment.pfc.as_ref()?.config(largest_packet(experiment), experiment.hosts.framing)
}

/// The largest packet of any host.
fn largest_packet(experiment: &Experiment) -> Bytes {
    let of_hosts = experiment.linux.hosts.iter().filter_map(|hosts| hosts.mtu);
    let of_workloads = experiment.workload.iter().filter_map(|workload| workload.get().packet());
    of_hosts.chain(of_workloads).chain([experiment.hosts.mtu]).max().expect("one is there")
}

/// The table of a queue's keys.
fn table(switch: &SwitchConfig, class: usize) -> String {
    if switch.classes.is_empty() { "switch".into() } else { format!("switch.classes.{class}") }
}

/// Fails with all problems of lossless links. `pfc.allow_loss` permits other limits and buffers that are too small.
fn check(
    experiment: &Experiment,
    places: &Places,
    links: &Links<'_>,
    absent_class: Wrong,
    other_limit: Wrong,
) -> Result<(), SpecError> {
    let mut wrong: Vec<(String, String)> = absent_class.into_iter().chain(upside_down(links)).collect();
    if !experiment.pfc.as_ref().is_some_and(|pfc| pfc.allow_loss) {
        wrong.extend(other_limit);
        wrong.extend(too_small(places, links));
    }
    all_or(wrong.into_iter().map(|(path, text)| places.problem(&path, text)).collect())
}

/// Finds a class that ports do not have.
fn absent_class(experiment: &Experiment, queues: usize) -> Wrong {
    let highest = usize::from(experiment.pfc.as_ref()?.classes()?.highest()?);
    let text = || format!("there is no class {highest}: the last is {}; add [[switch.classes]]", queues - 1);
    (highest >= queues).then(|| ("pfc.classes".into(), text()))
}

/// Each link into a switch with its limits.
fn links<'a>(topology: &'a Topology, config: &'a PfcConfig) -> impl Iterator<Item = (usize, PfcLimits)> + 'a {
    let backs = topology.reverses();
    let inward = (0..topology.transmitters()).filter(|from| matches!(topology.target_of(*from), Node::Switch(_)));
    inward.map(move |from| (from, config.limits(topology.wire_of(from), topology.wire_of(backs[from]))))
}

fn upside_down(links: &Links<'_>) -> Wrong {
    let (from, limits) = links.limits.iter().find(|(_, limits)| limits.xon > limits.xoff)?;
    let PfcLimits { xon, xoff, .. } = limits;
    let text = format!("{xon} is above xoff, {xoff} on the link {}: use at most that", (links.name)(*from));
    Some(("pfc.xon".into(), text))
}

/// A limit that drops packets of a lossless class, besides its buffer.
fn other_limits(experiment: &Experiment, switch: &SwitchConfig, config: &PfcConfig) -> Wrong {
    const RIGHT: &str = "take it out, name other pfc.classes, or say pfc.allow_loss = true";
    if switch.buffer.is_some() {
        let text = format!("the shared buffer drops packets of lossless classes: {RIGHT}");
        return Some(("switch.buffer".into(), text));
    }
    let mut classes = (0..switch.queues().len()).filter(|class| config.has(*class));
    let found = classes.clone().find_map(|class| {
        let (key, text) = switch.queues()[class].dropping().next()?;
        Some((format!("{}.{key}", table(switch, class)), format!("{text}: {RIGHT}")))
    });
    classes.next()?;
    let special = || {
        let mut entries = experiment.switch.ports.iter().enumerate();
        entries.find_map(|(entry, ports)| {
            let (key, text) = ports.discipline.dropping().next()?;
            Some((format!("switch.ports.{entry}.{key}"), format!("{text}: {RIGHT}")))
        })
    };
    found.or_else(special)
}

/// The link whose buffer lacks most.
fn too_small(places: &Places, links: &Links<'_>) -> Wrong {
    let lacking: Vec<_> = links.limits.iter().filter(|(_, limits)| limits.missing().get() > 0).collect();
    let (from, limits) = lacking.iter().max_by_key(|(from, limits)| (limits.missing(), std::cmp::Reverse(*from)))?;
    let PfcLimits { xoff, buffer, headroom, response, .. } = limits;
    let others = if lacking.len() > 1 { format!(" (and {} links more)", lacking.len() - 1) } else { String::new() };
    let text = format!(
        "a buffer of {buffer} is {} too small on the link {}{others}: the buffer must hold xoff, {xoff}, and the \
         headroom, {headroom}. The headroom takes three packets, a pause frame, the cable both ways and a response of \
         {}us. Use a larger buffer or a smaller xoff, or say pfc.allow_loss = true",
        limits.missing(),
        (links.name)(*from),
        response.as_us_f64(),
    );
    Some((if places.has("pfc.buffer") { "pfc.buffer" } else { "pfc.xoff" }.into(), text))
}

/// Refuses receive buffers of adapters that cannot hold a packet, or that cannot hold the packets that arrive after a
/// pause has been requested.
pub(crate) fn adapters(experiment: &Experiment, places: &Places, network: &Network) -> Result<(), SpecError> {
    let Some(ReceiveConfig { buffer, .. }) = network.interface().adapter.receive else { return Ok(()) };
    let wrong = |text| Err(places.problem("adapter.receive_buffer", text).into());
    let largest = largest_packet(experiment);
    if buffer < largest {
        return wrong(format!("{buffer} cannot hold a packet of {largest}: use at least that"));
    }
    if experiment.pfc.as_ref().is_some_and(|pfc| pfc.allow_loss) {
        return Ok(());
    }
    let limits = network.limits_of_adapters();
    let lacking: Vec<_> = limits.iter().enumerate().filter(|(_, limits)| limits.missing().get() > 0).collect();
    let most = lacking.iter().max_by_key(|(host, limits)| (limits.missing(), std::cmp::Reverse(*host)));
    let Some((host, PfcLimits { headroom, response, .. })) = most else { return Ok(()) };
    let others = if lacking.len() > 1 { format!(" (and {} links more)", lacking.len() - 1) } else { String::new() };
    wrong(format!(
        "{buffer} is {} too small on the link host{host}.port{others}: {headroom} can arrive after the host has \
         requested a pause (three packets, a pause frame, the cable both ways and a response of {response}). Use at \
         least {headroom}, or say pfc.allow_loss = true",
        limits[*host].missing(),
    ))
}
