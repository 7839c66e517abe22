//! The Linux hosts of an experiment, with the settings of each and the programs on them.

use crate::conditions::Conditions;
use crate::control::{by_own_clock, kernel_name};
use crate::error::{Problem, SpecError};
use crate::expander::Traffic;
use crate::host_directory::HostDirectory;
use crate::host_kind::{DefaultHosts, HostKind};
use crate::kernel::Kernel;
use crate::kernel_code::{self, KernelCode};
use crate::places::{Places, all_or};
use crate::rules;
use crate::settings::set_sysctl;
use crate::tables::{Experiment, LinuxHostTable, Program};
use crate::workload::Probe;
use firstlight_linux::{Parameter, Sysctl};
use firstlight_net::topology::FurtherLink;
use firstlight_net::{HostId, ProbeDatagram};
use firstlight_transport::cc::LinuxControl;
use firstlight_units::{Bytes, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Most hosts of one kernel.
const MOST_HOSTS: usize = 2048;
/// The least MTU of IPv6 (RFC 8200, section 5).
const LEAST_IPV6_MTU: u16 = 1280;
/// Most flows of one kernel: each has two threads.
const MOST_FLOWS: usize = 10_000;

/// The Linux hosts of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Linux {
    /// Whether the hosts have the machine's own kernel, in dilated time.
    pub dilated: bool,
    /// Processors that each host in dilated time has in its own time; none for an equal share of the machine's.
    pub cores: Option<f64>,
    /// The tick of a kernel in virtual time: 1/HZ.
    pub tick: Span,
    /// Whether the hosts have IPv6 addresses too.
    pub ipv6: bool,
    /// The hosts that take part, in the order of their numbers.
    pub hosts: Vec<LinuxHost>,
    /// The names of every host of the fabric and of every further link, by their numbers.
    pub names: Vec<Vec<String>>,
    /// Files of the modules that the kernel is to load.
    pub modules: Vec<String>,
    /// The user's own modules, which it is to load after these.
    pub own_modules: Vec<KernelCode>,
    /// The user's patches of the kernel.
    pub patches: Vec<KernelCode>,
    /// Memory of the hosts' kernel, if the experiment says how much.
    pub memory: Option<Bytes>,
    /// Directories of the machine that programs write to, by absolute paths.
    pub writable: Vec<PathBuf>,
    /// Parameters of the kernel's parts.
    pub parameters: Vec<Parameter>,
    /// The programs on the hosts.
    pub programs: Vec<Program>,
}

impl Linux {
    /// Whether computing takes time on the hosts (`linux.cpu`).
    pub fn has_processors(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.name == "cores")
    }
}

/// One Linux host, or a further link of one.
#[derive(Clone, Debug, PartialEq)]
pub struct LinuxHost {
    /// The host.
    pub host: HostId,
    /// The names of the host, the one over the whole fabric first.
    pub names: Vec<String>,
    /// The host that this is a further link of.
    pub link_of: Option<FurtherLink>,
    /// Largest IP packet.
    pub mtu: u16,
    /// Attributes of the host's route, as `ip route` takes them.
    pub route: String,
    /// The host's settings, in the order they are set.
    pub sysctls: Vec<Sysctl>,
    /// The traffic class of TCP that is not of a flow, where programs set none.
    pub class: u8,
}

/// The `[[linux.hosts]]` entries: the hosts that each is about.
pub(crate) struct HostEntries(Vec<BTreeSet<usize>>);

impl HostEntries {
    pub fn of(experiment: &Experiment, places: &Places, directory: &HostDirectory) -> Result<Self, SpecError> {
        let (mut entries, mut problems) = (vec![], vec![]);
        for (index, table) in experiment.linux.hosts.iter().enumerate() {
            match directory.hosts(table.on) {
                Ok(hosts) => entries.push(hosts.into_iter().collect()),
                Err(text) => problems.push(places.problem(&format!("linux.hosts.{index}.on"), text)),
            }
        }
        all_or(problems).map(|()| HostEntries(entries))
    }

    /// The entries that are about a host, in their order, each with its number.
    fn of_host<'e>(
        &'e self,
        experiment: &'e Experiment,
        host: usize,
    ) -> impl DoubleEndedIterator<Item = (usize, &'e LinuxHostTable)> {
        experiment.linux.hosts.iter().enumerate().filter(move |(entry, _)| self.0[*entry].contains(&host))
    }

    /// The congestion control of a host's connections that name none, by the kernel's name.
    pub fn cc(&self, experiment: &Experiment, places: &Places, host: usize) -> Result<&'static str, Box<Problem>> {
        let own = self.of_host(experiment, host).rev().find_map(|(n, entry)| Some((n, entry.cc?)));
        let (key, name) = match own {
            Some((entry, name)) => (format!("linux.hosts.{entry}.cc"), name),
            None => ("tcp.cc".into(), experiment.tcp.cc),
        };
        kernel_name(name).map_err(|text| Box::new(places.problem(&key, text)))
    }
}

/// The Linux hosts of the experiment; none when all are simulated.
pub(crate) fn expand(
    experiment: &Experiment,
    places: &Places,
    conditions: &Conditions<'_>,
    directory: &HostDirectory,
    entries: &HostEntries,
    Traffic { flows, probes, .. }: &Traffic,
    programs: Vec<Program>,
) -> Result<Option<Linux>, SpecError> {
    if !conditions.linux() {
        return Ok(None);
    }
    let linux_flows = || flows.iter().filter(|flow| flow.hosts == HostKind::Linux);
    let linux_probes = || probes.iter().filter(|probe| probe.hosts == HostKind::Linux);
    let ends = linux_flows().map(|flow| [flow.src, flow.dst]).chain(linux_probes().map(|probe| [probe.src, probe.dst]));
    let named =
        ends.flatten().map(|host| host.index()).chain(programs.iter().flat_map(|program| program.hosts(directory)));
    let mut taking_part: BTreeSet<usize> = named.map(|host| directory.owner(host)).collect();
    let all = directory.hosts..directory.rates.len();
    let links: Vec<usize> = all.filter(|link| taking_part.contains(&directory.owner(*link))).collect();
    taking_part.extend(links);

    // The congestion controls that each host's connections may use: those of its flows and, where programs run, the
    // host's default.
    let mut used: BTreeMap<usize, BTreeSet<&'static str>> = BTreeMap::new();
    for flow in linux_flows() {
        for end in [flow.src, flow.dst] {
            used.entry(directory.owner(end.index())).or_default().insert(flow.cc.name());
        }
    }
    if !programs.is_empty() {
        for &host in &taking_part {
            let cc = entries.cc(experiment, places, host).map_err(|problem| *problem)?;
            used.entry(directory.owner(host)).or_default().insert(cc);
        }
    }
    for &host in &taking_part {
        used.entry(host).or_default();
    }
    for &link in taking_part.range(directory.hosts..) {
        used.insert(link, used[&directory.owner(link)].clone());
    }
    let (controls, unequal) = controls(experiment, places, directory, &used);
    let kernel = Kernel::of(experiment, places, conditions.simulated(), &controls);
    let with_programs = !programs.is_empty();
    let settings = HostSettings { experiment, places, directory, entries, kernel: &kernel, with_programs };
    let hosts: Vec<LinuxHost> = taking_part.iter().map(|&host| settings.host(host, &used[&host])).collect();

    let mut problems = kernel.problems.clone();
    problems.extend(unequal);
    problems.extend(idle(places, entries, &taking_part));
    problems.extend(wide(experiment, places));
    if let Some(narrow) = hosts.iter().find(|host| experiment.linux.ipv6 && host.mtu < LEAST_IPV6_MTU) {
        let text = format!("IPv6 needs an MTU of {LEAST_IPV6_MTU}B, and {} has {}B", narrow.names[0], narrow.mtu);
        problems.push(places.problem("linux.ipv6", text));
    }
    problems.extend(crowded(places, "hosts.kind", "hosts", taking_part.len(), MOST_HOSTS));
    problems.extend(crowded(places, "flows", "flows", linux_flows().count(), MOST_FLOWS));
    problems.extend(crowded(places, "workload", "probes", linux_probes().count(), ProbeDatagram::MOST_EXTERNAL));
    problems.extend(too_large(places, linux_probes(), &hosts));
    problems.extend(rules::tcp_info_samples(experiment, places, linux_flows().count()));
    all_or(problems)?;
    let modules = controls.iter().filter_map(|control| control.module).map(String::from).collect();
    let (dilated, tick) = (experiment.hosts.kind == DefaultHosts::Dilated, experiment.tcp.tcp.tick);
    let own_modules = kernel_code::modules(&experiment.linux.modules, places)?;
    let patches = kernel_code::patches(&experiment.linux.patches, places)?;
    let writable = writable(&experiment.linux.writable, places)?;
    let parameters = kernel.parameters;
    let (cores, ipv6, memory) = (experiment.hosts.cores, experiment.linux.ipv6, experiment.linux.memory);
    let names = (0..directory.rates.len()).map(|host| directory.names(host)).collect();
    Ok(Some(Linux {
        dilated,
        cores,
        tick,
        ipv6,
        hosts,
        names,
        modules,
        own_modules,
        patches,
        memory,
        writable,
        parameters,
        programs,
    }))
}

/// The needs, on a host, of the controller that Linux calls `name`.
fn control(experiment: &Experiment, directory: &HostDirectory, host: usize, name: &str) -> Option<LinuxControl> {
    let rate = by_own_clock(experiment, directory.rates[host]);
    experiment.cc.on_link(rate, experiment.hosts.mtu).linux(name)
}

/// The needs of the controllers in use, by host. A problem is added where a controller has different needs on different
/// hosts, since a module has one set of parameters.
fn controls(
    experiment: &Experiment,
    places: &Places,
    directory: &HostDirectory,
    used: &BTreeMap<usize, BTreeSet<&'static str>>,
) -> (Vec<LinuxControl>, Vec<Problem>) {
    let mut found: BTreeMap<&str, LinuxControl> = BTreeMap::new();
    let mut problems = vec![];
    let all = used.iter().flat_map(|(&host, names)| names.iter().map(move |&name| (host, name)));
    for (host, name) in all {
        let Some(control) = control(experiment, directory, host, name) else { continue };
        let first = found.entry(name).or_insert_with(|| control.clone());
        let mut pairs = first.parameters.iter().zip(&control.parameters);
        if let Some((one, _)) = pairs.find(|(one, other)| one != other) {
            let path = format!("{}.{}", control.table, one.key);
            let text = "missing: Linux hosts have one kernel, and their links differ in rate: write one value for all";
            problems.push(places.problem(&path, text));
        }
    }
    problems.dedup();
    (found.into_values().collect(), problems)
}

/// The settings of hosts.
struct HostSettings<'a> {
    experiment: &'a Experiment,
    places: &'a Places,
    directory: &'a HostDirectory,
    entries: &'a HostEntries,
    kernel: &'a Kernel<'a>,
    /// Whether there are programs, whose connections use the host's own congestion control.
    with_programs: bool,
}

impl HostSettings<'_> {
    fn host(&self, host: usize, controls: &BTreeSet<&str>) -> LinuxHost {
        LinuxHost {
            host: HostId(host as u16),
            names: self.directory.names(host),
            link_of: self.directory.further_link(host),
            mtu: self.mtu(host),
            route: self.route(host),
            sysctls: self.sysctls(host, controls),
            class: self.class(host),
        }
    }

    fn of_host(&self, host: usize) -> impl DoubleEndedIterator<Item = &LinuxHostTable> {
        self.entries.of_host(self.experiment, host).map(|(_, table)| table)
    }

    fn mtu(&self, host: usize) -> u16 {
        let own = self.of_host(host).rev().find_map(|table| table.mtu);
        own.map_or(self.experiment.hosts.mtu(), |mtu| u16::try_from(mtu.get()).expect("the schema bounds the MTU"))
    }

    fn route(&self, host: usize) -> String {
        let mut route = self.kernel.route.clone();
        let own = self.of_host(host).filter_map(|table| table.route.as_ref());
        self.experiment.linux.route.iter().chain(own).for_each(|attributes| route.extend(attributes));
        route.to_string()
    }

    fn class(&self, host: usize) -> u8 {
        if !self.with_programs {
            return 0;
        }
        let cc = self.entries.cc(self.experiment, self.places, host).expect("it was asked for before");
        self.experiment.hosts.class_of(cc, HostKind::Linux)
    }

    fn sysctls(&self, host: usize, controls: &BTreeSet<&str>) -> Vec<Sysctl> {
        let mut sysctls = self.kernel.sysctls.clone();
        let needed = controls.iter().filter_map(|name| control(self.experiment, self.directory, host, name));
        let needed = needed.flat_map(|cc| cc.sysctls);
        needed.for_each(|(name, value)| set_sysctl(&mut sysctls, name, value));
        if self.with_programs {
            let cc = self.entries.cc(self.experiment, self.places, host).expect("it was asked for before");
            set_sysctl(&mut sysctls, "net.ipv4.tcp_congestion_control", cc);
        }
        let own = self.of_host(host).flat_map(|table| &table.sysctls);
        let given = self.experiment.linux.sysctls.iter().chain(own);
        given.for_each(|setting| set_sysctl(&mut sysctls, &setting.0.name, &setting.0.value));
        sysctls
    }
}

/// The directories that programs write to. A file in the place of one is an error.
fn writable(names: &[String], places: &Places) -> Result<Vec<PathBuf>, SpecError> {
    let (mut found, mut problems) = (vec![], vec![]);
    for name in names {
        match std::path::absolute(places.file(name)) {
            Ok(path) if path.is_dir() || !path.exists() => found.push(path),
            _ => problems.push(places.problem("linux.writable", format!("'{name}' is no directory: name one"))),
        }
    }
    all_or(problems).map(|()| found)
}

/// Entries that are about no host that takes part.
fn idle(places: &Places, entries: &HostEntries, taking_part: &BTreeSet<usize>) -> Vec<Problem> {
    let without = entries.0.iter().enumerate().filter(|(_, hosts)| hosts.is_disjoint(taking_part));
    let problem = |(index, _)| {
        let text = "has no effect: no flow with Linux hosts and no program is on any of these; take it out";
        places.problem(&format!("linux.hosts.{index}.on"), text)
    };
    without.map(problem).collect()
}

/// MTUs that the fabric is not made for.
fn wide(experiment: &Experiment, places: &Places) -> Vec<Problem> {
    let most: Bytes = experiment.hosts.mtu;
    let own = experiment.linux.hosts.iter().enumerate().filter_map(|(index, table)| Some((index, table.mtu?)));
    let problem = |(index, mtu)| {
        places.problem(
            &format!("linux.hosts.{index}.mtu"),
            format!("{mtu} is more than hosts.mtu, {most}: use at most that"),
        )
    };
    own.filter(|(_, mtu)| *mtu > most).map(problem).collect()
}

/// Probes whose packets their sender's interface does not take.
fn too_large<'p>(places: &Places, probes: impl Iterator<Item = &'p Probe>, hosts: &[LinuxHost]) -> Option<Problem> {
    let mut of = probes.filter_map(|probe| Some((probe, hosts.iter().find(|host| host.host == probe.src)?)));
    let (probe, host) = of.find(|(probe, host)| probe.packet.get() > host.mtu.into())?;
    let mtu = Bytes::new(host.mtu.into());
    let text = format!("{} are more than the MTU of {}, {mtu}: use at most that", probe.packet, host.names[0]);
    Some(places.problem(&format!("{}.packet", probe.entry), text))
}

fn crowded(places: &Places, path: &str, what: &str, count: usize, most: usize) -> Option<Problem> {
    let text = || format!("{count} Linux {what} are too many for one kernel: use at most {most}");
    (count > most).then(|| places.problem(path, text()))
}
