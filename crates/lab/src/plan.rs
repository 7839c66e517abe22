//! From the checked experiment to the plan of its Linux hosts, which the program inside their kernel carries out.

use crate::build::build;
use crate::capture::address;
use crate::error::LabError;
use crate::spec::{Flow, HostKind, Linux, LinuxHost, Program, Spec};
use crate::version::version;
use firstlight_linux::{FlowPlan, HostPlan, Plan, ProgramPlan};
use firstlight_net::HostId;
use firstlight_sim::FlowReport;
use firstlight_units::{Bytes, Span};

/// The plan of an experiment's Linux hosts.
///
/// # Errors
/// When it has none, or the engine refuses the experiment.
pub fn plan(spec: &Spec) -> Result<Plan, LabError> {
    let linux = spec.linux.as_ref().ok_or(LabError::NoLinuxHosts)?;
    // Ports and starts are the world's to give.
    let reports = build(spec)?.flows();
    let flows = spec.flows.iter().zip(&reports).enumerate().filter(|(_, (flow, _))| flow.hosts == HostKind::Linux);
    Ok(Plan {
        version: version(),
        hosts: linux.hosts.iter().map(|host| host_plan(spec, host)).collect(),
        modules: linux.modules.clone(),
        parameters: linux.parameters.clone(),
        flows: flows.map(|(index, (flow, report))| flow_plan(linux, index, flow, report)).collect(),
        programs: linux.programs.iter().map(|program| program_plan(spec, linux, program)).collect(),
        warmup: nanoseconds(spec, spec.warmup),
        duration: nanoseconds(spec, spec.duration),
        ends_early: ends_early(spec, linux),
        tcp_info: spec.measure.tcp_info.map(|every| nanoseconds(spec, every)),
    })
}

/// On the hosts' clock, rounded up.
fn nanoseconds(spec: &Spec, span: Span) -> u64 {
    (span * u64::from(spec.time_scale)).as_ps().div_ceil(Span::from_ns(1).as_ps())
}

/// A run that only waits for its Linux hosts ends with them. Nobody there would see simulated flows complete.
fn ends_early(spec: &Spec, linux: &Linux) -> bool {
    let sized = spec.flows.iter().all(|flow| flow.size.is_some() && flow.hosts == HostKind::Linux);
    let awaited = !spec.flows.is_empty() || linux.programs.iter().any(|program| !program.server);
    sized && awaited
}

/// The index of a host in the plan.
fn index(linux: &Linux, host: HostId) -> usize {
    linux.hosts.binary_search_by_key(&host, |known| known.host).expect("ends of flows and programs take part")
}

fn host_plan(spec: &Spec, host: &LinuxHost) -> HostPlan {
    HostPlan {
        host: host.host.0,
        names: host.names.clone(),
        address: address(host.host, spec.hosts_per_rack).into(),
        mtu: host.mtu,
        route: host.route.clone(),
        sysctls: host.sysctls.clone(),
    }
}

fn flow_plan(linux: &Linux, number: usize, flow: &Flow, report: &FlowReport) -> FlowPlan {
    FlowPlan {
        flow: number as u32,
        from: index(linux, flow.src),
        to: index(linux, flow.dst),
        from_port: report.sport,
        to_port: report.dport,
        cc: flow.cc.name().into(),
        size: flow.size.map(Bytes::get),
        start: report.start.as_ps().div_ceil(Span::from_ns(1).as_ps()),
    }
}

fn program_plan(spec: &Spec, linux: &Linux, program: &Program) -> ProgramPlan {
    ProgramPlan {
        name: program.name.clone(),
        on: index(linux, program.on),
        command: program.command.clone(),
        start: nanoseconds(spec, program.start),
        server: program.server,
    }
}
