//! From the checked experiment to a world that can run, its capture and timeline, and the plan of its Linux hosts.

mod capture;
mod plan;
mod timeline;

pub use capture::start_capture;
pub use plan::plan;
pub use timeline::{PathStep, Timeline, TimelineRequest};

use crate::error::LabError;
use firstlight_sim::{BuildError, Fabric, FlowConfig, MeterConfig, ProbeConfig, SeriesConfig, WatchConfig, World};
use firstlight_spec::{Flow, HostKind, Network, Probe, Spec};
use firstlight_transport::{CcConfig, ReadRate, TcpConfig, cc::NewRenoConfig};
use firstlight_units::Rate;

/// Most changes of rates that a result keeps for all hosts together.
const MOST_CHANGES: usize = 1_000_000;

/// How many changes each of `hosts` hosts may keep.
fn changes_of_each(hosts: usize) -> usize {
    (MOST_CHANGES / hosts.max(1)).max(1000)
}

/// Builds the fabric with its hosts and flows, and sets up its measurements.
///
/// # Errors
/// When the engine refuses the configuration.
pub fn build(spec: &Spec) -> Result<World, LabError> {
    world(spec).map_err(|source| LabError::Build { path: spec.name.clone(), source })
}

fn world(spec: &Spec) -> Result<World, BuildError> {
    let mut fabric = match &spec.network {
        Network::Graph(graph) => Fabric::graph(graph)?,
        Network::Hybrid(hybrid) => Fabric::hybrid(hybrid)?,
    };
    if let Some(pair) = spec.pair {
        fabric.set_meter(&MeterConfig { pair, series: series(spec) })?;
    }
    if !spec.watched.is_empty() {
        fabric.watch(&WatchConfig { ports: spec.watched.clone(), every: spec.tables.measure.queue_samples })?;
    }
    if spec.accounted.is_some() {
        fabric.keep_causes();
    }
    if spec.tables.measure.rate_limiters {
        fabric.keep_rate_changes(changes_of_each(spec.hosts()));
    }
    let flows = spec.flows.iter().enumerate().map(|(number, flow)| flow_config(spec, number, flow)).collect();
    let probes = spec.probes.iter().map(|probe| probe_config(spec, probe)).collect();
    World::with(fabric, flows, probes, &spec.messages, spec.tables.seed)
}

/// The folded series of the measured pair, if it is wanted.
fn series(spec: &Spec) -> Option<SeriesConfig> {
    spec.tables.measure.series.map(|every| SeriesConfig { every, fold: spec.tables.measure.fold })
}

fn flow_config(spec: &Spec, number: usize, flow: &Flow) -> FlowConfig {
    FlowConfig {
        src: flow.src,
        dst: flow.dst,
        tcp: TcpConfig { nagle: flow.nagle, interactive: flow.interactive, ..spec.tables.tcp.tcp },
        // The world does not use the congestion control of a Linux host.
        cc: flow.cc.simulated().cloned().unwrap_or(CcConfig::NewReno(NewRenoConfig {})),
        size: flow.size,
        start: flow.start,
        jitter: flow.jitter,
        stop: flow.stop,
        class: flow.class,
        reads: flow.reads.map(|reads| of_host(spec, reads)),
        external: flow.hosts == HostKind::Linux,
        absent: spec.tables.leaves_out(number),
    }
}

/// How fast a program reads, on its host's clock.
fn of_host(spec: &Spec, reads: ReadRate) -> ReadRate {
    let bps = reads.rate.as_bps() / u64::from(spec.tables.time_scale);
    ReadRate { rate: Rate::from_bps(bps.max(1)), ..reads }
}

fn probe_config(spec: &Spec, probe: &Probe) -> ProbeConfig {
    ProbeConfig {
        src: probe.src,
        dst: probe.dst,
        size: probe.packet.get() as u16,
        every: probe.interval,
        start: probe.start,
        count: probe.count,
        more: probe.more.clone(),
        class: probe.class,
        send_buffer: probe.send_buffer,
        record: spec.tables.measure.probes,
        external: probe.hosts == HostKind::Linux,
    }
}
