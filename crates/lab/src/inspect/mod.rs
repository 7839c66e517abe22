//! Describes what an experiment would build: hosts, rates, week, bandwidth-delay products, pauses, QCN, flows.

mod lossless;

use crate::diagnose;
use crate::measure::matching_text;
use firstlight_circuits::Week;
use firstlight_net::topology::{Node, Routes, Topology};
use firstlight_net::{Framing, HostId};
use firstlight_sim::{GraphConfig, HostLinks, HybridConfig};
use firstlight_spec::{HostKind, Network, Request, Spec};
use firstlight_units::{Bytes, Rate, Span};
use serde_json::{Value as Json, json};

/// Most flows that are listed; all are counted.
const MOST_FLOWS: usize = 1000;

/// A description of the run that a file describes: a network's or the measurement chain's.
pub fn inspect_request(request: &Request) -> Json {
    match request {
        Request::Network(spec) => inspect(spec),
        Request::Chain(chain) => json!({
            "name": chain.name,
            "seed": chain.seed,
            "stage": chain.chain.stage,
            "packets": chain.chain.packets,
            "hosts": "2, back to back at 10 Gb/s",
            "inputs": {},
            "spec": chain.resolved,
        }),
    }
}

/// A description of what would be built.
pub fn inspect(spec: &Spec) -> Json {
    let (fabric, rates, week, bdp) = match &spec.network {
        Network::Graph(graph) => (graph_shape(spec, graph), graph_rates(graph), json!([]), graph_bdp(spec, graph)),
        Network::Hybrid(hybrid) => {
            let fabric = json!({"kind": "hybrid", "racks": hybrid.racks(), "hosts_per_rack": hybrid.hosts_per_rack});
            (fabric, hybrid_rates(hybrid), schedule(hybrid), hybrid_bdp(spec, hybrid))
        }
    };
    json!({
        "name": spec.name,
        "seed": spec.tables.seed,
        "duration_us": spec.tables.duration.as_us_f64(),
        "warmup_us": spec.tables.warmup.as_us_f64(),
        "time_scale": spec.tables.time_scale,
        "fabric": fabric,
        "hosts": spec.hosts() - spec.network.further().len(),
        "rates": rates,
        "framing": framing(spec.network.interface().framing),
        "week": week,
        "week_us": week_us(&spec.network),
        "bdp": bdp,
        "pfc": lossless::pfc(spec),
        "adapter": lossless::adapter(spec),
        "qcn": lossless::qcn(spec),
        "flows": flows(spec),
        "flow_count": spec.flows.len(),
        "workloads": workloads(spec),
        "probes": probes(spec),
        "linux": linux(spec),
        "measure": measure(spec),
        "inputs": spec.inputs,
        "spec": spec.resolved,
        "notes": diagnose::of_spec(spec),
    })
}

/// The framing that links add to each packet.
fn framing(framing: Framing) -> Json {
    json!({"kind": framing.name(), "bytes_per_packet": framing.overhead()})
}

fn week_us(network: &Network) -> Option<f64> {
    match network {
        Network::Hybrid(hybrid) => Some(hybrid.week.length().as_us_f64()),
        Network::Graph(_) => None,
    }
}

fn rate(rate: Rate, delay: Span) -> Json {
    json!({"rate": rate.to_string(), "delay_us": delay.as_us_f64()})
}

fn host_rates(links: &HostLinks) -> Json {
    let mut rates = rate(links.rate, links.delay);
    if links.receive_rate != links.rate {
        rates["receive_rate"] = json!(links.receive_rate.to_string());
    }
    rates
}

/// The fabric's kind, hosts and links, and how many switches each tier has.
fn graph_shape(spec: &Spec, graph: &GraphConfig) -> Json {
    let mut switches = serde_json::Map::new();
    for switch in graph.topology.switches() {
        let count = switches.get(&switch.tier).and_then(Json::as_u64).unwrap_or(0) + 1;
        switches.insert(switch.tier.clone(), count.into());
    }
    json!({
        "kind": spec.resolved["fabric"]["kind"], "hosts": spec.hosts() - graph.topology.further().len(),
        "links": graph.topology.links(), "switches": switches,
    })
}

/// The tier of a node.
fn tier(topology: &Topology, node: Node) -> String {
    match node {
        Node::Host(_) => "host".into(),
        Node::Switch(switch) => topology.switches()[switch.index()].tier.clone(),
    }
}

/// The rates and delays of the links between each pair of tiers: one entry for each that differs.
fn graph_rates(graph: &GraphConfig) -> Json {
    let topology = &graph.topology;
    let tier = |node| tier(topology, node);
    let mut rates = serde_json::Map::new();
    let nics = topology.nics().iter().map(|nic| ("host".to_string(), nic.to, nic.wire));
    let ports = topology.ports().iter().map(|port| (tier(Node::Switch(port.from)), port.to, port.wire));
    for (from, to, wire) in nics.chain(ports) {
        let name = format!("{from}->{}", tier(to));
        let all = rates.entry(name).or_insert_with(|| json!([])).as_array_mut().expect("it was made a list");
        let entry = rate(wire.rate, wire.delay);
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    rates.into()
}

fn hybrid_rates(hybrid: &HybridConfig) -> Json {
    json!({
        "host": host_rates(&hybrid.links),
        "packet": rate(hybrid.packet.rate, hybrid.packet.delay),
        "circuit": rate(hybrid.circuit.rate, hybrid.circuit.delay),
    })
}

/// The days of a week that repeats, or the control loop that computes weeks.
fn schedule(hybrid: &HybridConfig) -> Json {
    let Some(control) = &hybrid.control else { return week(&hybrid.week) };
    json!({
        "scheduler": control.scheduler.name(), "demand": control.demand.name(),
        "compute_us": control.compute.as_us_f64(), "night_us": control.night.as_us_f64(),
        "least_day_us": control.least_day.as_us_f64(),
    })
}

fn week(week: &Week) -> Json {
    let day = |(day, (begins, ends)): (&firstlight_circuits::Day, (Span, Span))| {
        json!({
            "start_us": begins.as_us_f64(), "end_us": ends.as_us_f64(), "night_us": day.night.as_us_f64(),
            "matching": matching_text(&day.matching),
        })
    };
    week.days().iter().zip(week.day_times()).map(day).collect()
}

/// A path's bandwidth-delay product: bottleneck rate times round-trip time without queues, stacks of the hosts
/// included, with both directions over the same network.
fn product(spec: &Spec, rate: Rate, propagation: Span) -> Json {
    let interface = spec.network.interface();
    let packet = interface.framing.on_link(Bytes::new(spec.tables.tcp.tcp.mtu.into()));
    let one_way = interface.send_delay + propagation + interface.receive_delay;
    let round_trip = one_way * 2;
    let bytes = rate.bytes_in(round_trip).get();
    json!({
        "rate": rate.to_string(), "one_way_us": one_way.as_us_f64(), "round_trip_us": round_trip.as_us_f64(),
        "bytes": bytes, "packets": bytes as f64 / packet.get() as f64, "packet_us": rate.tx_time(packet).as_us_f64(),
    })
}

/// The bandwidth-delay product of the path between the first links of the first host and the last; none where no switch
/// joins them.
fn graph_bdp(spec: &Spec, graph: &GraphConfig) -> Json {
    let topology = &graph.topology;
    let last = HostId((topology.hosts() - topology.further().len() - 1) as u16);
    if topology.islands()[0] != topology.islands()[last.index()] {
        return json!({});
    }
    let path = Routes::new(topology, graph.seed).path(topology, HostId(0), last, 0);
    json!({"host0->last": product(spec, path.bottleneck(), path.propagation())})
}

fn hybrid_bdp(spec: &Spec, hybrid: &HybridConfig) -> Json {
    let hosts = hybrid.links.delay * 2;
    let links = if hybrid.packet.switched { 2 } else { 1 };
    let mut bdp = json!({
        "packet": product(spec, hybrid.packet.rate, hosts + hybrid.packet.delay * links),
        "circuit": product(spec, hybrid.circuit.rate, hosts + hybrid.circuit.delay),
    });
    if let Some((src, dst)) = spec.pair.filter(|_| hybrid.control.is_none()) {
        let packet = spec.network.interface().framing.on_link(Bytes::new(spec.tables.tcp.tcp.mtu.into()));
        let day = hybrid.week.days().iter().find(|day| day.matching.destination(src) == Some(dst));
        let packets = day.map(|day| day.day.as_ps() / hybrid.circuit.rate.tx_time(packet).as_ps());
        bdp["day_packets"] = json!(packets);
        bdp["circuit_share"] = json!(hybrid.week.time_of(src, dst).as_secs_f64() / hybrid.week.length().as_secs_f64());
    }
    bdp
}

fn flows(spec: &Spec) -> Json {
    let flow = |flow: &firstlight_spec::Flow| {
        json!({
            "entry": flow.entry.to_string(), "src": flow.src.0, "dst": flow.dst.0, "hosts": flow.hosts.name(),
            "cc": flow.cc.name(), "size": flow.size.map(|size| size.to_string()),
            "start_us": (flow.messages == 0).then(|| flow.start.as_us_f64()), "messages": flow.messages,
            "jitter_us": flow.jitter.as_us_f64(),
            "stop_us": flow.stop.map(Span::as_us_f64), "class": flow.class,
        })
    };
    spec.flows.iter().take(MOST_FLOWS).map(flow).collect()
}

fn workloads(spec: &Spec) -> Json {
    let one = |workload: &firstlight_spec::ExpandedWorkload| {
        json!({
            "name": workload.name, "kind": workload.kind, "flows": workload.flows, "asked": workload.asked,
            "mean_size_bytes": workload.mean_size, "messages": workload.messages, "jobs": workload.jobs,
        })
    };
    spec.workloads.iter().map(one).collect()
}

fn probes(spec: &Spec) -> Json {
    let one = |probe: &firstlight_spec::Probe| {
        json!({
            "entry": probe.entry.to_string(), "src": probe.src.0, "dst": probe.dst.0,
            "packet": probe.packet.to_string(), "interval_us": probe.interval.as_us_f64(), "count": probe.count,
            "start_us": probe.start.as_us_f64(),
            "class": probe.class, "hosts": probe.hosts.name(),
        })
    };
    spec.probes.iter().take(MOST_FLOWS).map(one).collect()
}

/// The programs and flows on Linux hosts, and their kernel; null when all hosts are simulated.
fn linux(spec: &Spec) -> Json {
    let hosts = |linux: &firstlight_spec::Linux| {
        let programs: Vec<&str> = linux.programs.iter().map(|program| program.name.as_str()).collect();
        json!({
            "dilated": linux.dilated,
            "tick_ms": (!linux.dilated).then(|| linux.tick.as_us_f64() * 1e-3),
            "cores": linux.cores,
            "hosts": linux.hosts.len(),
            "flows": spec.flows.iter().filter(|flow| flow.hosts == HostKind::Linux).count(),
            "programs": programs,
            "modules": linux.modules,
        })
    };
    spec.linux.as_ref().map(hosts).into()
}

fn measure(spec: &Spec) -> Json {
    json!({
        "pair": spec.pair.map(|(src, dst)| [src.0, dst.0]),
        "series_us": spec.tables.measure.series.map(Span::as_us_f64),
        "fold": spec.tables.measure.series.map(|_| spec.tables.measure.fold),
        "tcp_info_us": spec.tables.measure.tcp_info.map(Span::as_us_f64),
        "queues": spec.watched,
        "queue_samples_us": spec.tables.measure.queue_samples.map(Span::as_us_f64),
        "throughput_us": spec.tables.measure.throughput.map(Span::as_us_f64),
        "probes": spec.tables.measure.probes,
        "capture": spec.tables.measure.capture,
    })
}
