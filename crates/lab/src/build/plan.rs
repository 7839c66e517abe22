//! The plan of an experiment's Linux hosts, which the program inside their kernel carries out.

use super::{build, of_host};
use crate::error::LabError;
use firstlight_formats::capture::{Addresses, LINK_PREFIX};
use firstlight_linux::{FlowPlan, HostPlan, MessagePlan, NamePlan, Plan, ProbePlan, ProgramPlan, ReadPlan};
use firstlight_net::{HostId, ProbeDatagram};
use firstlight_sim::{FlowReport, ProbeReport};
use firstlight_spec::{Flow, HostKind, Linux, LinuxHost, Probe, Program, Spec};
use firstlight_transport::ReadRate;
use firstlight_units::{Bytes, Span};
use firstlight_version::version;

/// The bits that addresses of all hosts have in common.
const PREFIX: u8 = 8;

/// The plan of an experiment's Linux hosts.
///
/// # Errors
/// When the experiment has no Linux hosts, or the engine refuses it.
pub fn plan(spec: &Spec) -> Result<Plan, LabError> {
    let linux = spec.linux.as_ref().ok_or(LabError::NoLinuxHosts)?;
    // The world chooses ports and starts.
    let world = build(spec)?;
    let reports = world.flows();
    let flows = || spec.flows.iter().zip(&reports).enumerate().filter(|(_, (flow, _))| flow.hosts == HostKind::Linux);
    Ok(Plan {
        version: version(),
        hosts: linux.hosts.iter().map(|host| host_plan(spec, linux, host)).collect(),
        names: name_plans(spec, linux),
        ipv6: linux.ipv6,
        modules: linux.modules.clone(),
        memory: linux.memory.map(Bytes::get),
        writable: linux.writable.clone(),
        parameters: linux.parameters.clone(),
        flows: flows().map(|(index, (flow, report))| flow_plan(spec, linux, index, flow, report)).collect(),
        probes: probe_plans(spec, linux, &world.probes()),
        messages: message_plans(spec, flows().map(|(index, _)| index)),
        programs: linux.programs.iter().map(|program| program_plan(spec, linux, program)).collect(),
        warmup: nanoseconds(spec, spec.tables.warmup),
        duration: nanoseconds(spec, spec.tables.duration),
        ends_early: ends_early(spec, linux),
        tcp_info: spec.tables.measure.tcp_info.map(|every| nanoseconds(spec, every)),
        throughput_ps: spec.tables.measure.throughput.map(|every| (every * u64::from(spec.tables.time_scale)).as_ps()),
    })
}

/// A span on the hosts' clock in nanoseconds, rounded up.
fn nanoseconds(spec: &Spec, span: Span) -> u64 {
    (span * u64::from(spec.tables.time_scale)).as_ps().div_ceil(Span::from_ns(1).as_ps())
}

/// Whether the run may end when its Linux hosts are done, because it waits for no other hosts. The kernel does not know
/// when simulated flows are complete.
fn ends_early(spec: &Spec, linux: &Linux) -> bool {
    let sized = spec.flows.iter().all(|flow| flow.size.is_some() && flow.hosts == HostKind::Linux);
    let probing = spec.probes.iter().any(|probe| probe.hosts == HostKind::Linux);
    let awaited = !spec.flows.is_empty() || linux.programs.iter().any(|program| !program.server);
    sized && awaited && !probing
}

/// The index of a host in the plan.
fn index(linux: &Linux, host: HostId) -> usize {
    linux.hosts.binary_search_by_key(&host, |known| known.host).expect("hosts of flows and programs are in the plan")
}

/// The addresses of an experiment's hosts.
pub(super) fn addresses(spec: &Spec) -> Addresses {
    let further = spec.network.further().to_vec();
    Addresses { hosts_per_rack: spec.hosts_per_rack, hosts: spec.hosts() - further.len(), further }
}

fn name_plans(spec: &Spec, linux: &Linux) -> Vec<NamePlan> {
    let addresses = addresses(spec);
    let name = |(host, names): (u16, &Vec<String>)| NamePlan {
        address: addresses.of(HostId(host)).into(),
        names: names.clone(),
    };
    (0..).zip(&linux.names).map(name).collect()
}

fn host_plan(spec: &Spec, linux: &Linux, host: &LinuxHost) -> HostPlan {
    HostPlan {
        host: host.host.0,
        names: host.names.clone(),
        link_of: host.link_of.map(|link| (index(linux, link.of), link.number)),
        address: addresses(spec).of(host.host).into(),
        prefix: if host.link_of.is_some() { LINK_PREFIX } else { PREFIX },
        mtu: host.mtu,
        bursts: spec.tables.tcp.tcp.bursts,
        route: host.route.clone(),
        sysctls: host.sysctls.clone(),
    }
}

fn flow_plan(spec: &Spec, linux: &Linux, number: usize, flow: &Flow, report: &FlowReport) -> FlowPlan {
    FlowPlan {
        flow: number as u32,
        from: index(linux, flow.src),
        to: index(linux, flow.dst),
        from_port: report.sport,
        to_port: report.dport,
        cc: flow.cc.name().into(),
        class: flow.class,
        size: flow.size.map(Bytes::get),
        stop: flow.stop.map(|stop| nanoseconds(spec, stop)),
        nagle: flow.nagle,
        interactive: flow.interactive,
        reads: flow.reads.map(|reads| {
            let ReadRate { size, rate } = of_host(spec, reads);
            ReadPlan { size: size.get(), bps: rate.as_bps() }
        }),
        start: (flow.messages == 0).then(|| report.start.whole_ns()),
    }
}

/// The probes of Linux hosts.
fn probe_plans(spec: &Spec, linux: &Linux, reports: &[ProbeReport]) -> Vec<ProbePlan> {
    let scale = u64::from(spec.tables.time_scale);
    let ours = spec.probes.iter().zip(reports).filter(|(probe, _)| probe.hosts == HostKind::Linux);
    let plan = |(probe, report): (&Probe, &ProbeReport)| ProbePlan {
        from: index(linux, probe.src),
        to: index(linux, probe.dst),
        from_port: report.sport,
        to_port: ProbeDatagram::PORT,
        class: probe.class,
        payload: probe.packet.get() - u64::from(ProbeDatagram::HEADER),
        start_ps: (probe.start * scale).as_ps(),
        every_ps: (probe.interval * scale).as_ps(),
        count: probe.count,
    };
    ours.map(plan).collect()
}

/// The messages of Linux hosts. They depend on no message of other hosts: a workload is on one kind of hosts.
fn message_plans(spec: &Spec, flows: impl Iterator<Item = usize>) -> Vec<MessagePlan> {
    let list = spec.messages.list();
    let ours = || (0..list.len()).filter(|index| spec.jobs[list[*index].job as usize].hosts == HostKind::Linux);
    let (flow_of, message_of) = (ranks(flows, spec.flows.len()), ranks(ours(), list.len()));
    let plan = |index: usize| MessagePlan {
        flow: list[index].flow.map(|flow| flow_of[flow as usize]),
        bytes: list[index].bytes.get(),
        start_ps: (list[index].start * u64::from(spec.tables.time_scale)).as_ps(),
        delay_ps: (list[index].delay * u64::from(spec.tables.time_scale)).as_ps(),
        after: spec.messages.after(index).iter().map(|other| message_of[*other as usize]).collect(),
        enough: list[index].enough,
    };
    ours().map(plan).collect()
}

/// The rank of each of `count` items among the chosen ones; 0 for the others.
fn ranks(chosen: impl Iterator<Item = usize>, count: usize) -> Vec<u32> {
    let mut ranks = vec![0; count];
    (0..).zip(chosen).for_each(|(rank, item)| ranks[item] = rank);
    ranks
}

fn program_plan(spec: &Spec, linux: &Linux, program: &Program) -> ProgramPlan {
    ProgramPlan {
        name: program.name.clone(),
        on: index(linux, program.on),
        command: program.command.clone(),
        start: nanoseconds(spec, program.start),
        server: program.server,
        user: program.user.clone(),
    }
}
