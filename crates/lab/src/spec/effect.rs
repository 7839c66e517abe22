//! Keys that are missing, and keys that have no effect in the setting that the others make.

use super::error::{Problem, SpecError};
use super::hosts::HostKind;
use super::keys::{Fallback, Key, When};
use super::registry::{LIST, TABLES, keys};
use super::values::{Values, pattern_of};
use std::collections::BTreeSet;

/// What decides whether a key has an effect.
pub(crate) struct Setting {
    fabric: String,
    schedule: Option<String>,
    common_day: bool,
    large: bool,
    stamps: String,
    buffer: bool,
    classes: bool,
    queues: bool,
    qcn: bool,
    series: bool,
    controllers: BTreeSet<String>,
    default_cc: bool,
    /// The kind of hosts where nothing else is said.
    kind: HostKind,
    /// Whether a flow or a program is on hosts of the default kind.
    default_hosts: bool,
    /// Whether there are programs.
    programs: bool,
    /// Whether there are flows of that kind of hosts.
    linux_flow: bool,
    simulated_flow: bool,
    /// Whether there are datagrams.
    probes: bool,
    /// The kind of each `[[workload]]`, where it is given.
    workloads: Vec<Option<String>>,
}

/// Checks that every key that is needed is there, and that every key that is there has an effect.
pub(crate) fn check(values: &Values) -> Result<Setting, SpecError> {
    let kind = keys().iter().find(|key| key.path == "fabric.kind").expect("a key of the registry");
    let Some(fabric) = values.text_opt(kind.path) else { return Err(missing(values, kind, kind.path).into()) };
    let setting = Setting::of(values, fabric);
    let absent = |key: &&Key| key.fallback == Fallback::Required && setting.counts(key);
    let mut problems: Vec<Problem> = vec![];
    for key in keys().iter().filter(absent) {
        let instances = values.instances(key);
        let absent = instances.iter().filter(|path| !values.has(path) && setting.holds_at(key.when, path));
        problems.extend(absent.map(|path| missing(values, key, path)));
    }
    if values.count("flows") + values.count("workload") + values.count("program") == 0 {
        let write = "no flow, so nothing would happen: add [[flows]] with from = \"rack0\" and to = \"rack1\"";
        problems.push(values.problem("flows", write));
    }
    if setting.holds(LIST) && values.count("schedule.days") == 0 {
        problems.push(values.problem("schedule.days", "no day: add [[schedule.days]] with matching and day"));
    }
    if problems.is_empty() {
        problems = idle(values, &setting);
    }
    if problems.is_empty() { Ok(setting) } else { Err(SpecError { problems }) }
}

fn missing(values: &Values, key: &Key, path: &str) -> Problem {
    let (table, leaf) = path.rsplit_once('.').unwrap_or(("", path));
    let place = if table.is_empty() { "at the top".into() } else { format!("in [{}]", header(table)) };
    values.problem(path, format!("missing: write for example {leaf} = {} {place}", key.kind.example()))
}

/// `flows.0` is written as `[flows]`.
fn header(table: &str) -> String {
    match table.rsplit_once('.') {
        Some((list, index)) if index.bytes().all(|b| b.is_ascii_digit()) => format!("[{list}]"),
        _ => table.into(),
    }
}

/// One problem for each table that is idle as a whole, and for each key that is idle in another.
fn idle(values: &Values, setting: &Setting) -> Vec<Problem> {
    let mut problems: Vec<Problem> = vec![];
    let mut whole: Vec<&str> = vec![];
    let inside = |whole: &[&str], path: &str| whole.iter().any(|table| path.starts_with(&format!("{table}.")));
    for (path, origin) in &values.tables {
        if inside(&whole, path) {
            continue;
        }
        let pattern = pattern_of(path);
        let Some(table) = TABLES.iter().find(|table| table.path == pattern && !setting.holds(table.when)) else {
            continue;
        };
        let place = values.document.place_of(origin);
        problems.push(Problem { key: path.clone(), place, problem: setting.no_effect(table.when) });
        whole.push(path);
    }
    for (path, given) in &values.given {
        if !inside(&whole, path) && !setting.holds_at(given.key.when, path) {
            problems.push(values.problem(path, setting.no_effect_at(given.key.when, path)));
        }
    }
    problems
}

/// The entries that ask for flows; datagrams are none.
fn entries(values: &Values, workloads: &[Option<String>]) -> Vec<String> {
    let flows = (0..values.count("flows")).map(|index| format!("flows.{index}"));
    let others = (0..workloads.len()).filter(|&index| !sends_datagrams(values, workloads, index));
    flows.chain(others.map(|index| format!("workload.{index}"))).collect()
}

/// Whether a workload has datagrams instead of flows.
fn sends_datagrams(values: &Values, workloads: &[Option<String>], index: usize) -> bool {
    match workloads[index].as_deref() {
        Some("probe" | "udp") => true,
        Some("background") => values.has(&format!("workload.{index}.rate")),
        _ => false,
    }
}

impl Setting {
    fn of(values: &Values, fabric: String) -> Self {
        let kinds = |index| values.text_opt(&format!("workload.{index}.kind"));
        let workloads: Vec<Option<String>> = (0..values.count("workload")).map(kinds).collect();
        let entries = entries(values, &workloads);
        let named = |path: &String| values.text_opt(&format!("{path}.cc"));
        let programs = values.count("program") > 0;
        let default_cc = programs || entries.iter().any(|path| named(path).is_none());
        let of_host = |index: usize| values.text_opt(&format!("linux.hosts.{index}.cc"));
        let of_hosts = (0..values.count("linux.hosts")).filter_map(of_host);
        let mut controllers: BTreeSet<String> = entries.iter().filter_map(named).chain(of_hosts).collect();
        if default_cc {
            controllers.insert(values.text("tcp.cc"));
        }
        let schedule = values.text_opt("schedule.kind");
        let own = |index: usize| values.has(&format!("schedule.days.{index}.day"));
        let common_day = match schedule.as_deref() {
            Some("list") => !(0..values.count("schedule.days")).all(own),
            kind => matches!(kind, Some("strobe" | "etalon")),
        };
        Setting {
            fabric,
            schedule,
            common_day,
            large: values.has("voq.large"),
            stamps: values.text("stamps.kind"),
            buffer: values.has("switch.buffer"),
            classes: values.count("switch.classes") > 0,
            queues: values.has("measure.queues"),
            qcn: values.tables.contains_key("qcn"),
            series: values.has("measure.series"),
            controllers,
            default_cc,
            kind: values.host_kind(),
            default_hosts: programs || entries.iter().any(|path| !values.has(&format!("{path}.hosts"))),
            programs,
            linux_flow: entries.iter().any(|path| values.host_kind_of(path) == HostKind::Linux),
            simulated_flow: entries.iter().any(|path| values.host_kind_of(path) == HostKind::Simulated),
            probes: (0..workloads.len()).any(|index| sends_datagrams(values, &workloads, index)),
            workloads,
        }
    }

    fn scheduled(&self, kinds: &[&str]) -> bool {
        self.fabric == "hybrid" && self.schedule.as_deref().is_some_and(|kind| kinds.contains(&kind))
    }

    fn holds(&self, when: When) -> bool {
        match when {
            When::Always => true,
            When::Fabric(kinds) => kinds.contains(&self.fabric.as_str()),
            When::CommonDay => self.fabric == "hybrid" && self.common_day,
            When::Schedule(kinds) => self.scheduled(kinds),
            When::Large => self.large,
            When::Uses(cc) => self.uses(cc),
            When::DefaultCc => self.default_cc,
            When::Series => self.series,
            When::DefaultHosts => self.default_hosts,
            When::LinuxDefault => self.kind == HostKind::Linux,
            When::Linux => self.linux(),
            When::LinuxFlow => self.linux_flow,
            When::SimulatedFlow => self.simulated_flow,
            When::Stamps(kinds) => kinds.contains(&self.stamps.as_str()),
            When::Buffer => self.buffer,
            When::OneQueue => self.fabric != "hybrid" && !self.classes,
            When::Queues => self.queues,
            When::Qcn => self.qcn,
            When::Probes => self.probes,
            When::Workload(_) => !self.workloads.is_empty(),
        }
    }

    /// As `holds`, for the key at `path`, whose own entry may decide.
    fn holds_at(&self, when: When, path: &str) -> bool {
        match when {
            When::Workload(kinds) => self.workload_kind(path).is_some_and(|kind| kinds.contains(&kind)),
            _ => self.holds(when),
        }
    }

    /// The kind of the `[[workload]]` that a key at `path` stands in.
    fn workload_kind(&self, path: &str) -> Option<&str> {
        let index: usize = path.split('.').nth(1)?.parse().ok()?;
        self.workloads.get(index)?.as_deref()
    }

    /// Whether a connection may use that congestion control.
    pub(crate) fn uses(&self, cc: &str) -> bool {
        self.controllers.contains(cc)
    }

    /// Whether anything is on Linux hosts.
    pub(crate) fn linux(&self) -> bool {
        self.linux_flow || (self.programs && self.kind == HostKind::Linux)
    }

    /// Whether a flow is on simulated hosts.
    pub(crate) fn simulated(&self) -> bool {
        self.simulated_flow
    }

    pub(crate) fn counts(&self, key: &Key) -> bool {
        self.holds(key.table().when) && self.holds(key.when)
    }

    /// As `counts`, for one instance of the key.
    pub(crate) fn counts_at(&self, key: &Key, path: &str) -> bool {
        self.holds(key.table().when) && self.holds_at(key.when, path)
    }

    fn no_effect_at(&self, when: When, path: &str) -> String {
        match (when, self.workload_kind(path)) {
            (When::Workload(_), Some(kind)) => {
                format!("has no effect: it counts only when {when}, but this one's is \"{kind}\"; take it out")
            }
            _ => self.no_effect(when),
        }
    }

    fn no_effect(&self, when: When) -> String {
        let found = match when {
            When::Fabric(_) => format!("fabric.kind is \"{}\"", self.fabric),
            When::Schedule(_) => {
                format!("schedule.kind is \"{}\"", self.schedule.as_deref().unwrap_or("none"))
            }
            When::CommonDay if self.scheduled(&["list"]) => "each of schedule.days has its own".into(),
            When::CommonDay => "each week's days are computed".into(),
            When::Large => "there is no voq.large".into(),
            When::Uses(_) => {
                let used: Vec<&str> = self.controllers.iter().map(String::as_str).collect();
                format!("the flows use {}", used.join(", "))
            }
            When::DefaultCc => "every flow names its own".into(),
            When::Series => "there is no measure.series".into(),
            When::DefaultHosts => "every flow names its own".into(),
            When::LinuxDefault => format!("hosts.kind is \"{}\"", self.kind.name()),
            When::Linux => "all hosts are simulated".into(),
            When::LinuxFlow => "none has".into(),
            When::SimulatedFlow => "all flows have Linux hosts".into(),
            When::Stamps(_) => format!("it is \"{}\"", self.stamps),
            When::Buffer => "there is none".into(),
            When::OneQueue => "each of them has its own".into(),
            When::Queues => "it is not".into(),
            When::Probes | When::Qcn => "there is none".into(),
            When::Workload(_) => "there is no such [[workload]]".into(),
            When::Always => String::new(),
        };
        format!("has no effect: it counts only when {when}, but {found}; take it out")
    }
}
