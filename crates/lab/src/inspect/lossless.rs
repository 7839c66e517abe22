//! Pauses, adapters and QCN of an experiment: thresholds and buffers of each kind of link, circles of ports that may
//! wait for each other, congestion points and their parameters.

use crate::diagnose;
use firstlight_net::pfc::{PfcConfig, PfcLimits};
use firstlight_net::topology::{Node, Topology};
use firstlight_net::{CLASSES, qcn::QcnConfig};
use firstlight_sim::{AdapterConfig, GraphConfig, ReceiveConfig};
use firstlight_spec::{Network, Spec};
use firstlight_units::Rate;
use serde_json::{Map, Value as Json, json};

/// The links that can be paused, with their thresholds; null where no link can be paused.
pub(super) fn pfc(spec: &Spec) -> Json {
    let Network::Graph(graph) = &spec.network else { return Json::Null };
    let Some(pfc) = &graph.switch.pfc else { return Json::Null };
    let classes = graph.switch.queues().len().min(CLASSES);
    let waits = diagnose::circular_waits(spec, graph);
    json!({
        "kind": if pfc.whole_link { "pause" } else { "pfc" },
        "lossless_classes": (0..classes).filter(|class| pfc.has(*class)).collect::<Vec<_>>(),
        "allow_loss": spec.tables.allows_loss(),
        "largest_packet_bytes": pfc.mtu.get(),
        "links": links(&graph.topology, pfc),
        "circular_waits": waits.iter().map(circular_wait).collect::<Vec<_>>(),
    })
}

fn circular_wait(wait: &diagnose::CircularWait) -> Json {
    json!({"class": wait.class, "ports": wait.ports})
}

/// The limits of the links between each pair of tiers: one entry for each that differs.
fn links(topology: &Topology, pfc: &PfcConfig) -> Json {
    let mut links = serde_json::Map::new();
    let backs = topology.reverses();
    for (from, back) in backs.iter().enumerate() {
        let to = topology.target_of(from);
        if matches!(to, Node::Host(_)) {
            continue;
        }
        let name = format!("{}->{}", super::tier(topology, topology.source_of(from)), super::tier(topology, to));
        let rate = topology.wire_of(from).rate;
        let entry = limits(rate, &pfc.limits(topology.wire_of(from), topology.wire_of(*back)));
        let all = links.entry(name).or_insert_with(|| json!([])).as_array_mut().expect("it was made a list");
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    links.into()
}

/// The limits of a link of that rate.
fn limits(rate: Rate, limits: &PfcLimits) -> Json {
    let PfcLimits { xon, xoff, buffer, headroom, response } = limits;
    json!({
        "rate": rate.to_string(), "xon_bytes": xon.get(), "xoff_bytes": xoff.get(), "headroom_bytes": headroom.get(),
        "buffer_bytes": buffer.get(), "response_us": response.as_us_f64(),
    })
}

/// Limits of the hosts' interfaces: the send buffer, the rate at which the host receives, and the thresholds at which
/// it pauses links to it, one entry for each that differs. Null without limits.
pub(super) fn adapter(spec: &Spec) -> Json {
    let AdapterConfig { send_buffer, receive } = spec.network.interface().adapter;
    let mut limits = Map::new();
    limits.extend(send_buffer.map(|limit| ("send_buffer_bytes".into(), json!(limit.get()))));
    limits.extend(receive.into_iter().flat_map(|receive| receiving(spec, receive)));
    if limits.is_empty() { Json::Null } else { Json::Object(limits) }
}

fn receiving(spec: &Spec, ReceiveConfig { drain, buffer }: ReceiveConfig) -> [(String, Json); 3] {
    let links = spec.network.links_to_hosts().into_iter().zip(spec.network.limits_of_adapters());
    let mut pauses: Vec<Json> = vec![];
    for entry in links.map(|((forward, _), of_link)| limits(forward.rate, &of_link)) {
        if !pauses.contains(&entry) {
            pauses.push(entry);
        }
    }
    [
        ("drain".into(), json!(drain.to_string())),
        ("receive_buffer_bytes".into(), json!(buffer.get())),
        ("links_to_hosts".into(), json!(pauses)),
    ]
}

/// The congestion points, and the parameters of congestion and reaction points; null without QCN.
pub(super) fn qcn(spec: &Spec) -> Json {
    let Some(config) = spec.network.interface().tables.qcn else { return Json::Null };
    let (points, at) = match &spec.network {
        Network::Graph(graph) => (queues(graph), "each queue of each port of a switch"),
        Network::Hybrid(hybrid) => (hybrid.racks() * (hybrid.racks() - 1), "each VOQ"),
    };
    let QcnConfig { set_point, weight, gain, sample, byte_limit, timer, fast_recovery, .. } = config;
    json!({
        "congestion_points": points, "at": at,
        "qeq_bytes": set_point.get(), "w": weight, "gd": gain, "sample_bytes": sample.get(),
        "byte_limit_bytes": byte_limit.get(), "timer_us": timer.as_us_f64(), "fast_recovery": fast_recovery,
        "active_increase": config.active_increase.to_string(), "hyper_increase": config.hyper_increase.to_string(),
        "min_rate": config.min_rate.to_string(), "min_decrease": config.min_decrease,
        "extra_fast_recovery": config.extra_fast_recovery,
    })
}

fn queues(graph: &GraphConfig) -> usize {
    graph.topology.ports().len() * graph.switch.queues().len()
}
