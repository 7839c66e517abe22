//! Linux hosts: which there are, what is set on each, and the programs on them.

use super::control::kernel_name;
use super::effect::Setting as Scene;
use super::error::{Problem, SpecError};
use super::flows::Flow;
use super::hosts::{HostKind, Shape};
use super::kernel::Kernel;
use super::programs::Program;
use super::settings::{Setting, set};
use super::values::Values;
use firstlight_linux::{Parameter, Sysctl};
use firstlight_net::HostId;
use firstlight_units::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Most hosts of one kernel.
const MOST_HOSTS: usize = 2048;
/// Most flows of one kernel: each has two threads.
const MOST_FLOWS: usize = 10_000;
/// Most samples of `TCP_INFO`.
const MOST_SAMPLES: u64 = 5_000_000;

/// The Linux hosts of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Linux {
    /// The tick of their kernel: 1/HZ.
    pub tick: Span,
    /// Those that take part, in the order of their numbers.
    pub hosts: Vec<LinuxHost>,
    /// Files of the modules that the kernel is to load.
    pub modules: Vec<String>,
    /// Parameters of its parts.
    pub parameters: Vec<Parameter>,
    /// What runs on them.
    pub programs: Vec<Program>,
}

/// One Linux host.
#[derive(Clone, Debug, PartialEq)]
pub struct LinuxHost {
    /// Which one.
    pub host: HostId,
    /// Its names, the one over the whole fabric first.
    pub names: Vec<String>,
    /// Largest IP packet.
    pub mtu: u16,
    /// Attributes of its route, as `ip route` takes them.
    pub route: String,
    /// Its settings, in the order they are set.
    pub sysctls: Vec<Sysctl>,
}

/// The `[[linux.hosts]]` entries: the hosts that each is about.
pub(crate) struct HostEntries(Vec<BTreeSet<usize>>);

impl HostEntries {
    pub fn read(values: &Values, shape: &Shape) -> Result<Self, SpecError> {
        let (mut entries, mut problems) = (vec![], vec![]);
        for index in 0..values.count("linux.hosts") {
            let path = format!("linux.hosts.{index}.on");
            match shape.hosts(values.hosts(&path)) {
                Ok(hosts) => entries.push(hosts.into_iter().collect()),
                Err(text) => problems.push(values.problem(&path, text)),
            }
        }
        if problems.is_empty() { Ok(HostEntries(entries)) } else { Err(SpecError { problems }) }
    }

    /// The entries that are about a host, in their order.
    fn of(&self, host: usize) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.0.len()).filter(move |&entry| self.0[entry].contains(&host))
    }

    /// The congestion control of a host's connections that name none, by the kernel's name.
    pub fn cc(&self, values: &Values, host: usize) -> Result<&'static str, Box<Problem>> {
        let path = |entry| format!("linux.hosts.{entry}.cc");
        let key = self.of(host).rev().map(path).find(|path| values.has(path)).unwrap_or_else(|| "tcp.cc".into());
        kernel_name(&values.text(&key)).map_err(|text| Box::new(values.problem(&key, text)))
    }
}

/// The Linux hosts of the experiment; none when all are simulated.
pub(crate) fn expand(
    values: &Values,
    scene: &Scene,
    shape: &Shape,
    entries: &HostEntries,
    flows: &[Flow],
    programs: Vec<Program>,
) -> Result<Option<Linux>, SpecError> {
    if !scene.linux() {
        return Ok(None);
    }
    let linux_flows = || flows.iter().filter(|flow| flow.hosts == HostKind::Linux);
    let ends = linux_flows().flat_map(|flow| [flow.src.index(), flow.dst.index()]);
    let taking_part: BTreeSet<usize> = ends.chain(programs.iter().flat_map(|program| program.hosts(shape))).collect();

    // What each host's connections may use: its flows' controls, and its default one where programs are.
    let mut controls: BTreeMap<usize, BTreeSet<&'static str>> = BTreeMap::new();
    for flow in linux_flows() {
        for end in [flow.src, flow.dst] {
            controls.entry(end.index()).or_default().insert(flow.cc.name());
        }
    }
    if !programs.is_empty() {
        for &host in &taking_part {
            let cc = entries.cc(values, host).map_err(|problem| *problem)?;
            controls.entry(host).or_default().insert(cc);
        }
    }
    let all: BTreeSet<&str> = controls.values().flatten().copied().collect();
    let kernel = Kernel::of(values, scene.simulated(), &all.iter().copied().collect::<Vec<_>>());
    let told = Told { values, shape, entries, kernel: &kernel, programs: !programs.is_empty() };
    let hosts: Vec<LinuxHost> = taking_part.iter().map(|&host| told.host(host, &controls[&host])).collect();

    let mut problems = kernel.problems.clone();
    problems.extend(idle(values, entries, &taking_part));
    problems.extend(wide(values, entries));
    problems.extend(crowded(values, "hosts.kind", "hosts", taking_part.len(), MOST_HOSTS));
    problems.extend(crowded(values, "flows", "flows", linux_flows().count(), MOST_FLOWS));
    problems.extend(sampled(values, linux_flows().count()));
    if !problems.is_empty() {
        return Err(SpecError { problems });
    }
    let modules = if all.contains("retcp") { vec!["retcp.ko".into()] } else { vec![] };
    Ok(Some(Linux { tick: values.span("tcp.tick"), hosts, modules, parameters: kernel.parameters, programs }))
}

/// What hosts are told.
struct Told<'a> {
    values: &'a Values,
    shape: &'a Shape,
    entries: &'a HostEntries,
    kernel: &'a Kernel<'a>,
    /// Whether there are programs, whose connections use the host's own congestion control.
    programs: bool,
}

impl Told<'_> {
    fn host(&self, host: usize, controls: &BTreeSet<&str>) -> LinuxHost {
        LinuxHost {
            host: HostId(host as u16),
            names: self.shape.names(host),
            mtu: self.mtu(host),
            route: self.route(host),
            sysctls: self.sysctls(host, controls),
        }
    }

    fn mtu(&self, host: usize) -> u16 {
        let own = self.entries.of(host).rev().find_map(|n| self.values.size_opt(&format!("linux.hosts.{n}.mtu")));
        u16::try_from(own.unwrap_or_else(|| self.values.size("hosts.mtu")).get()).expect("the registry bounds the MTU")
    }

    fn route(&self, host: usize) -> String {
        let mut route = self.kernel.route.clone();
        let own = self.entries.of(host).map(|entry| format!("linux.hosts.{entry}.route"));
        for path in std::iter::once("linux.route".to_string()).chain(own) {
            self.values.route(&path).iter().for_each(|(name, value)| set(&mut route, name, value));
        }
        route.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(" ")
    }

    fn sysctls(&self, host: usize, controls: &BTreeSet<&str>) -> Vec<Sysctl> {
        let mut sysctls = self.kernel.sysctls.clone();
        if controls.contains("retcp") {
            // A circuit's marks come as ECN-Echo, which a kernel heeds only where ECN was negotiated, a lost SYN or not.
            set(&mut sysctls, "net.ipv4.tcp_ecn", "1");
            set(&mut sysctls, "net.ipv4.tcp_ecn_fallback", "0");
        }
        if self.programs {
            let cc = self.entries.cc(self.values, host).expect("it was asked for before");
            set(&mut sysctls, "net.ipv4.tcp_congestion_control", cc);
        }
        let own = self.entries.of(host).map(|entry| format!("linux.hosts.{entry}.sysctls"));
        for path in std::iter::once("linux.sysctls".to_string()).chain(own) {
            let given: Vec<Setting> = self.values.sysctls(&path);
            given.iter().for_each(|(name, value)| set(&mut sysctls, name, value));
        }
        sysctls.into_iter().map(|(name, value)| Sysctl { name, value }).collect()
    }
}

/// Entries that are about no host that takes part.
fn idle(values: &Values, entries: &HostEntries, taking_part: &BTreeSet<usize>) -> Vec<Problem> {
    let without = entries.0.iter().enumerate().filter(|(_, hosts)| hosts.is_disjoint(taking_part));
    let problem = |(index, _)| {
        let text = "has no effect: no flow with Linux hosts and no program is on any of these; take it out";
        values.problem(&format!("linux.hosts.{index}.on"), text)
    };
    without.map(problem).collect()
}

/// MTUs that the fabric is not made for.
fn wide(values: &Values, entries: &HostEntries) -> Vec<Problem> {
    let most = values.size("hosts.mtu");
    let given = (0..entries.0.len()).map(|index| format!("linux.hosts.{index}.mtu"));
    let too_wide = given.filter_map(|path| values.size_opt(&path).filter(|mtu| *mtu > most).map(|mtu| (path, mtu)));
    too_wide
        .map(|(path, mtu)| values.problem(&path, format!("{mtu} is more than hosts.mtu, {most}: use at most that")))
        .collect()
}

fn crowded(values: &Values, path: &str, what: &str, count: usize, most: usize) -> Option<Problem> {
    let text = || format!("{count} Linux {what} are too many for one kernel: use at most {most}");
    (count > most).then(|| values.problem(path, text()))
}

fn sampled(values: &Values, flows: usize) -> Option<Problem> {
    let every = values.span_opt("measure.tcp_info")?;
    let samples = (values.span("duration").as_ps() / every.as_ps()).saturating_mul(flows as u64);
    let text =
        || format!("{every} makes {samples} samples of {flows} flows: use at most {MOST_SAMPLES}, by a longer span");
    (samples > MOST_SAMPLES).then(|| values.problem("measure.tcp_info", text()))
}
