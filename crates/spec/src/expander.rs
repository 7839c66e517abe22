//! The common part of `[[flows]]` and workloads: it makes one record for each connection of an entry.

use crate::control::ConnectionControl;
use crate::error::{Problem, SpecError};
use crate::host_directory::HostDirectory;
use crate::host_kind::HostKind;
use crate::host_name::HostName;
use crate::linux_hosts::HostEntries;
use crate::places::{Places, all_or};
use crate::tables::{Connections, Experiment};
use crate::workload::{self, ExpandedWorkload, Job, Probe};
use firstlight_circuits::RackId;
use firstlight_formats::ImportError;
use firstlight_messages::Messages;
use firstlight_net::{HostId, Xoshiro256PlusPlus, stream};
use firstlight_transport::ReadRate;
use firstlight_units::{Bytes, Rate, Span};
use std::fmt;

/// Connections that one host can have: its ports from 10000 on.
const MOST_PER_HOST: usize = 50_000;
/// Connections of one experiment.
pub(crate) const MOST_FLOWS: usize = 1_000_000;

/// The table that a flow comes from. It is written as its path, `flows.0` or `workload.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrafficEntry {
    /// An entry of `[[flows]]`, counted from 0.
    Flows(usize),
    /// A `[[workload]]`, counted from 0.
    Workload(usize),
}

impl fmt::Display for TrafficEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrafficEntry::Flows(index) => write!(f, "flows.{index}"),
            TrafficEntry::Workload(index) => write!(f, "workload.{index}"),
        }
    }
}

/// One connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The table that the flow comes from.
    pub entry: TrafficEntry,
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// The kind of both hosts.
    pub hosts: HostKind,
    /// Congestion control: one that these hosts have.
    pub cc: ConnectionControl,
    /// How much the flow sends; `None` for a flow that sends until the end.
    pub size: Option<Bytes>,
    /// When the flow may start first.
    pub start: Span,
    /// The flow starts at random within this span after `start`.
    pub jitter: Span,
    /// When the flow stops sending; such a flow has no size.
    pub stop: Option<Span>,
    /// The traffic class of the flow's packets, 0 to 7.
    pub class: u8,
    /// How fast the receiving program reads, in the fabric's own time; `None`: what has arrived, at once.
    pub reads: Option<ReadRate>,
    /// How many messages the flow carries, which decide when it starts and what it sends when; 0: it sends `size` from
    /// `start` on.
    pub messages: u32,
    /// Whether part of a segment waits while one is in flight.
    pub nagle: bool,
    /// Whether the receiver delays ACKs like one that answers on the same connection.
    pub interactive: bool,
}

impl Flow {
    /// The racks of the flow, when it leaves its own.
    pub fn racks(&self, hosts_per_rack: usize) -> Option<(RackId, RackId)> {
        let rack = |host: HostId| RackId((host.index() / hosts_per_rack) as u16);
        let (src, dst) = (rack(self.src), rack(self.dst));
        (src != dst).then_some((src, dst))
    }

    /// Whether the flow has a completion time: it has a size, and does not wait for later messages.
    pub fn is_timed(&self) -> bool {
        self.size.is_some() && self.messages <= 1
    }
}

/// All traffic except that of programs.
#[derive(Default)]
pub(crate) struct Traffic {
    pub flows: Vec<Flow>,
    pub workloads: Vec<ExpandedWorkload>,
    pub probes: Vec<Probe>,
    pub messages: Messages,
    pub jobs: Vec<Job>,
}

/// One record for each connection: those of `[[flows]]`, then those of `[[workload]]`, in the order of the entries.
pub(crate) fn expand(
    experiment: &Experiment,
    places: &Places,
    directory: &HostDirectory,
    host_entries: &HostEntries,
) -> Result<Traffic, SpecError> {
    let expander = |entry| Expander { experiment, places, directory, host_entries, entry };
    let mut traffic = Traffic::default();
    let mut problems = vec![];
    for (index, table) in experiment.flows.iter().enumerate() {
        let expander = expander(TrafficEntry::Flows(index));
        match table.expand(&expander) {
            Ok(more) => traffic.flows.extend(more),
            Err(problem) => problems.push(*problem),
        }
        if traffic.flows.len() > MOST_FLOWS {
            problems.push(*expander.problem("count", too_many(traffic.flows.len())));
            break;
        }
    }
    for (index, table) in experiment.workload.iter().enumerate() {
        let expander = expander(TrafficEntry::Workload(index));
        if let Err(problem) = workload::expand(table, &expander, &mut traffic) {
            problems.push(*problem);
        }
        if traffic.flows.len() > MOST_FLOWS {
            problems.push(*expander.problem("kind", too_many(traffic.flows.len())));
            break;
        }
    }
    if problems.is_empty() {
        problems.extend(crowded(places, &traffic.flows, directory.rates.len()));
    }
    // An error in a key at the top of the file is an error of each entry.
    problems.dedup();
    all_or(problems).map(|()| traffic)
}

fn too_many(flows: usize) -> String {
    format!("{flows} flows and more are too many: use at most {MOST_FLOWS}")
}

fn crowded(places: &Places, flows: &[Flow], hosts: usize) -> Option<Problem> {
    let mut connections = vec![0usize; hosts];
    for flow in flows {
        for host in [flow.src, flow.dst] {
            connections[host.index()] += 1;
            if connections[host.index()] > MOST_PER_HOST {
                let text =
                    format!("host{} has more than {MOST_PER_HOST} connections, all that its ports allow", host.0);
                return Some(places.problem(&flow.entry.to_string(), text));
            }
        }
    }
    None
}

/// The parts of the experiment that the expansion of one entry needs.
pub(crate) struct Expander<'a> {
    pub experiment: &'a Experiment,
    places: &'a Places,
    pub directory: &'a HostDirectory,
    host_entries: &'a HostEntries,
    pub entry: TrafficEntry,
}

/// Sender and receiver.
pub(crate) type HostPair = (usize, usize);

impl Expander<'_> {
    fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.entry)
    }

    /// Whether a key of the entry is given.
    pub fn has(&self, key: &str) -> bool {
        self.places.has(&self.path(key))
    }

    /// A problem with a key of the entry.
    pub fn problem(&self, key: &str, text: impl Into<String>) -> Box<Problem> {
        Box::new(self.places.problem(&self.path(key), text))
    }

    /// A key that the entry needs is missing.
    pub fn missing(&self, key: &str, example: &str) -> Box<Problem> {
        self.problem(key, format!("missing: write for example {key} = {example} in [[workload]]"))
    }

    /// Reads a text file that a key names, relative to the experiment's folder. Returns its path and its content.
    pub fn read_file(&self, key: &str, name: &str) -> Result<(String, String), Box<Problem>> {
        self.places.read_file(&self.path(key), name).map_err(Box::new)
    }

    /// Reads a file that a key names and that need not be a text. Returns its path and its content.
    pub fn read_bytes(&self, key: &str, name: &str) -> Result<(String, Vec<u8>), Box<Problem>> {
        self.places.read_bytes(&self.path(key), name).map_err(Box::new)
    }

    /// How many files, relative to the experiment's folder, have names with this beginning and end and a number
    /// between.
    pub fn count_files(&self, begin: &str, end: &str) -> usize {
        self.places.count_files(begin, end)
    }

    /// The text of a file that a key names.
    pub fn text(&self, key: &str, file: &str, bytes: Vec<u8>) -> Result<String, Box<Problem>> {
        self.places.text(&self.path(key), file, bytes).map_err(Box::new)
    }

    /// The problem of a file that a key names, at its place in that file.
    pub fn imported(&self, key: &str, error: ImportError) -> Box<Problem> {
        Box::new(self.places.imported(&self.path(key), error))
    }

    /// The random stream of the entry for a purpose.
    pub fn random(&self, purpose: &str) -> Xoshiro256PlusPlus {
        let (TrafficEntry::Flows(index) | TrafficEntry::Workload(index)) = self.entry;
        stream(self.experiment.seed, &format!("workload{index}"), purpose)
    }

    /// The end of the run.
    pub fn duration(&self) -> Span {
        self.experiment.duration
    }

    /// The kind of hosts of connections with these keys.
    pub fn host_kind(&self, connections: &Connections) -> HostKind {
        connections.hosts.unwrap_or(self.experiment.hosts.kind.kind())
    }

    /// The hosts that the value of a key names.
    pub fn hosts(&self, key: &str, name: HostName) -> Result<Vec<usize>, Box<Problem>> {
        self.directory.hosts(name).map_err(|text| self.problem(key, text))
    }

    /// Which hosts send to which, with `from` and `to` of the entry.
    pub fn pairs(&self, from: HostName, to: HostName) -> Result<Vec<HostPair>, Box<Problem>> {
        let (senders, receivers) = (self.hosts("from", from)?, self.hosts("to", to)?);
        let pairs: Vec<HostPair> = match (from, to) {
            (HostName::Rack(a), HostName::Rack(b)) if a == b => {
                return Err(self.problem("to", format!("{to} would send to itself: name another rack or a host")));
            }
            (HostName::Rack(_), HostName::Rack(_)) => senders.into_iter().zip(receivers).collect(),
            _ if from.is_single() || to.is_single() => {
                let all = senders.iter().flat_map(|&src| receivers.iter().map(move |&dst| (src, dst)));
                all.filter(|(src, dst)| src != dst).collect()
            }
            _ => {
                let text = format!("{from} to {to} is not a pattern: use a rack to a rack, or a host at one end");
                return Err(self.problem("to", text));
            }
        };
        if pairs.is_empty() {
            return Err(self.problem("to", format!("{to} would send to itself: name another host")));
        }
        Ok(pairs)
    }

    /// Checks that flows that start at `start`, and up to `jitter` later, start before the run's end.
    pub fn starts(&self, start: Span, jitter: Span) -> Result<(), Box<Problem>> {
        let duration = self.duration();
        let latest = start.as_ps().checked_add(jitter.as_ps());
        if latest.is_some_and(|latest| latest < duration.as_ps()) {
            return Ok(());
        }
        let key = if start >= duration || jitter.is_zero() { "start" } else { "jitter" };
        let text =
            format!("the flow may start after the run's end: start + jitter must be less than duration, {duration}");
        Err(self.problem(key, text))
    }

    /// A flow for each pair, which starts at once and sends until the end.
    /// Where no class is given, it is that of the flow's congestion control.
    pub fn between(
        &self,
        connections: &Connections,
        class: Option<u8>,
        pairs: &[HostPair],
    ) -> Result<Vec<Flow>, Box<Problem>> {
        let hosts = self.host_kind(connections);
        let of_control = |cc: &ConnectionControl| self.experiment.hosts.class_of(cc.name(), hosts);
        let controls = self.controls(connections, pairs)?;
        let flow = |(&(src, dst), cc): (&HostPair, ConnectionControl)| Flow {
            entry: self.entry,
            src: HostId(src as u16),
            dst: HostId(dst as u16),
            hosts,
            class: class.unwrap_or_else(|| of_control(&cc)),
            reads: None,
            cc,
            size: None,
            start: Span::ZERO,
            jitter: Span::ZERO,
            stop: None,
            messages: 0,
            nagle: self.experiment.tcp.tcp.nagle,
            interactive: self.experiment.tcp.tcp.interactive,
        };
        Ok(pairs.iter().zip(controls).map(flow).collect())
    }

    /// The congestion control of each pair's flows: the entry's own, else the sending Linux host's, else that of
    /// `[tcp]`.
    fn controls(&self, connections: &Connections, pairs: &[HostPair]) -> Result<Vec<ConnectionControl>, Box<Problem>> {
        let hosts = self.host_kind(connections);
        let (key, name) = match connections.cc {
            Some(name) => (self.path("cc"), name),
            None if hosts == HostKind::Linux => {
                let of = |&(src, _): &HostPair| {
                    self.host_entries.cc(self.experiment, self.places, src).map(ConnectionControl::Linux)
                };
                return pairs.iter().map(of).collect();
            }
            None => ("tcp.cc".to_string(), self.experiment.tcp.cc),
        };
        // A host's rate decides on some parameters, and most hosts have the same.
        let mut last: Option<(Rate, ConnectionControl)> = None;
        let of = |&(src, _): &HostPair| {
            let rate = self.directory.rates[src];
            if let Some((_, control)) = last.as_ref().filter(|(known, _)| *known == rate) {
                return Ok(control.clone());
            }
            let control = ConnectionControl::of(self.experiment, &self.places.own, name, hosts, rate);
            let control = control.map_err(|text| Box::new(self.places.problem(&key, text)))?;
            last = Some((rate, control.clone()));
            Ok(control)
        };
        pairs.iter().map(of).collect()
    }
}
