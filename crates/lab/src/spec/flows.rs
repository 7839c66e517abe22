//! Flows: from the entries that a user writes to one record for each connection.

use super::control::Control;
use super::error::{Problem, SpecError};
use super::hosts::{HostKind, Shape};
use super::linux::HostEntries;
use super::value::Hosts;
use super::values::Values;
use super::workload::{self, Job, Probe, Workload};
use firstlight_circuits::RackId;
use firstlight_messages::Messages;
use firstlight_net::HostId;
use firstlight_units::{Bytes, Rate, Span};
use std::fmt;

/// Connections that one host can have: its ports from 10000 on.
const MOST_PER_HOST: usize = 50_000;
/// Connections of one experiment.
pub(super) const MOST: usize = 1_000_000;

/// The table that a flow comes from; it is written as its path, `flows.0` or `workload.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// A `[[flows]]` entry, counted from 0.
    Flows(usize),
    /// A `[[workload]]`, counted from 0.
    Workload(usize),
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Flows(index) => write!(f, "flows.{index}"),
            Entry::Workload(index) => write!(f, "workload.{index}"),
        }
    }
}

/// One connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// What it comes from.
    pub entry: Entry,
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Whose TCP both ends are.
    pub hosts: HostKind,
    /// Congestion control: one of these hosts'.
    pub cc: Control,
    /// How much it sends; nothing for a flow that sends until the end.
    pub size: Option<Bytes>,
    /// When it may start first.
    pub start: Span,
    /// It starts at random within this span after `start`.
    pub jitter: Span,
    /// When it sends no more; such a flow has no size.
    pub stop: Option<Span>,
    /// The traffic class of its packets, 0 to 7.
    pub class: u8,
    /// How many messages it carries, which decide when it starts and what it sends when; 0: it sends `size` from `start` on.
    pub messages: u32,
}

impl Flow {
    /// Its racks, when it leaves its own.
    pub fn racks(&self, hosts_per_rack: usize) -> Option<(RackId, RackId)> {
        let rack = |host: HostId| RackId((host.index() / hosts_per_rack) as u16);
        let (src, dst) = (rack(self.src), rack(self.dst));
        (src != dst).then_some((src, dst))
    }

    /// Whether its completion time is one: it has a size, and does not wait for later messages.
    pub fn is_timed(&self) -> bool {
        self.size.is_some() && self.messages <= 1
    }
}

/// All that is sent without a program.
#[derive(Default)]
pub(crate) struct Traffic {
    pub flows: Vec<Flow>,
    pub workloads: Vec<Workload>,
    pub probes: Vec<Probe>,
    pub messages: Messages,
    pub jobs: Vec<Job>,
}

/// One record for each connection: those of `[[flows]]`, then those of `[[workload]]`, in the order of the entries.
pub(crate) fn expand(values: &Values, shape: &Shape, settings: &HostEntries) -> Result<Traffic, SpecError> {
    let mut traffic = Traffic::default();
    let mut problems = vec![];
    for entry in 0..values.count("flows") {
        let table = Table { values, shape, settings, entry: Entry::Flows(entry) };
        match table.flows() {
            Ok(more) => traffic.flows.extend(more),
            Err(problem) => problems.push(*problem),
        }
        if traffic.flows.len() > MOST {
            problems.push(*table.problem("count", too_many(traffic.flows.len())));
            break;
        }
    }
    for entry in 0..values.count("workload") {
        let table = Table { values, shape, settings, entry: Entry::Workload(entry) };
        if let Err(problem) = workload::expand(&table, &mut traffic) {
            problems.push(*problem);
        }
        if traffic.flows.len() > MOST {
            problems.push(*table.problem("kind", too_many(traffic.flows.len())));
            break;
        }
    }
    if problems.is_empty() {
        problems.extend(crowded(values, &traffic.flows, shape.hosts));
    }
    // What is wrong at the top is wrong for each entry.
    problems.dedup();
    if problems.is_empty() { Ok(traffic) } else { Err(SpecError { problems }) }
}

fn too_many(flows: usize) -> String {
    format!("{flows} flows and more are too many: use at most {MOST}")
}

fn crowded(values: &Values, flows: &[Flow], hosts: usize) -> Option<Problem> {
    let mut connections = vec![0usize; hosts];
    for flow in flows {
        for host in [flow.src, flow.dst] {
            connections[host.index()] += 1;
            if connections[host.index()] > MOST_PER_HOST {
                let text =
                    format!("host{} has more than {MOST_PER_HOST} connections, all that its ports allow", host.0);
                return Some(values.problem(&flow.entry.to_string(), text));
            }
        }
    }
    None
}

/// One table that asks for flows.
pub(super) struct Table<'a> {
    pub values: &'a Values,
    pub shape: &'a Shape,
    settings: &'a HostEntries,
    pub entry: Entry,
}

/// Sender and receiver.
pub(super) type Pair = (usize, usize);

impl Table<'_> {
    pub fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.entry)
    }

    pub fn problem(&self, key: &str, text: impl Into<String>) -> Box<Problem> {
        Box::new(self.values.problem(&self.path(key), text))
    }

    fn flows(&self) -> Result<Vec<Flow>, Box<Problem>> {
        let pairs = self.pairs()?;
        let per_pair = self.values.integer(&self.path("count")) as usize;
        let count = pairs.len() * per_pair;
        let share = self.share(count)?;
        let (start, jitter) = self.start()?;
        let each: Vec<Pair> =
            pairs.iter().flat_map(|pair| std::iter::repeat_n(*pair, per_pair)).take(MOST + 1).collect();
        let mut flows = self.between(&each)?;
        for (nth, flow) in flows.iter_mut().enumerate() {
            flow.size = share.map(|(size, longer)| Bytes::new(size + u64::from((nth as u64) < longer)));
            (flow.start, flow.jitter) = (start, jitter);
        }
        Ok(flows)
    }

    /// A flow for each pair, with what the table says of all of them; it starts at once and sends until the end.
    pub fn between(&self, pairs: &[Pair]) -> Result<Vec<Flow>, Box<Problem>> {
        let hosts = self.values.host_kind_of(&self.entry.to_string());
        let class = self.values.integer(&self.path("class")) as u8;
        if hosts == HostKind::Linux && class != 0 {
            let text = "a Linux host's packets have the class that its programs give them: take it out, or use hosts = \
                        \"simulated\"";
            return Err(self.problem("class", text));
        }
        let controls = self.controls(hosts, pairs)?;
        let flow = |(&(src, dst), &cc): (&Pair, &Control)| Flow {
            entry: self.entry,
            src: HostId(src as u16),
            dst: HostId(dst as u16),
            hosts,
            cc,
            size: None,
            start: Span::ZERO,
            jitter: Span::ZERO,
            stop: None,
            class,
            messages: 0,
        };
        Ok(pairs.iter().zip(&controls).map(flow).collect())
    }

    /// The congestion control of each pair's flows: the entry's own, else the sending Linux host's, else that of `[tcp]`.
    fn controls(&self, hosts: HostKind, pairs: &[Pair]) -> Result<Vec<Control>, Box<Problem>> {
        let own = self.values.text_opt(&self.path("cc"));
        let (key, name) = match own {
            Some(name) => (self.path("cc"), name),
            None if hosts == HostKind::Linux => {
                let of = |&(src, _): &Pair| self.settings.cc(self.values, src).map(Control::Linux);
                return pairs.iter().map(of).collect();
            }
            None => ("tcp.cc".to_string(), self.values.text("tcp.cc")),
        };
        // A host's rate decides on some parameters, and most hosts have the same.
        let mut last: Option<(Rate, Control)> = None;
        let of = |&(src, _): &Pair| {
            let rate = self.shape.rates[src];
            if let Some((_, control)) = last.filter(|(known, _)| *known == rate) {
                return Ok(control);
            }
            let control = Control::of(self.values, &name, hosts, rate);
            let control = control.map_err(|text| Box::new(self.values.problem(&key, text)))?;
            last = Some((rate, control));
            Ok(control)
        };
        pairs.iter().map(of).collect()
    }

    /// The hosts that a key names.
    pub fn hosts(&self, key: &str) -> Result<Vec<usize>, Box<Problem>> {
        self.shape.hosts(self.values.hosts(&self.path(key))).map_err(|text| self.problem(key, text))
    }

    /// Who sends to whom.
    pub fn pairs(&self) -> Result<Vec<Pair>, Box<Problem>> {
        let side = |key: &str| self.hosts(key).map(|hosts| (self.values.hosts(&self.path(key)), hosts));
        let ((from, senders), (to, receivers)) = (side("from")?, side("to")?);
        let single = |name| matches!(name, Hosts::Host(_) | Hosts::RackHost(..));
        let pairs: Vec<Pair> = match (from, to) {
            (Hosts::Rack(a), Hosts::Rack(b)) if a == b => {
                return Err(self.problem("to", format!("{to} would send to itself: name another rack or a host")));
            }
            (Hosts::Rack(_), Hosts::Rack(_)) => senders.into_iter().zip(receivers).collect(),
            _ if single(from) || single(to) => {
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

    /// Bytes for each flow, and how many of the first ones send one byte more.
    fn share(&self, count: usize) -> Result<Option<(u64, u64)>, Box<Problem>> {
        let size = self.values.size_opt(&self.path("size"));
        let total = self.values.size_opt(&self.path("total"));
        match (size, total) {
            (Some(_), Some(_)) => Err(self.problem("total", "size and total exclude each other: keep one")),
            (Some(size), None) => Ok(Some((size.get(), 0))),
            (None, Some(total)) if total.get() < count as u64 => {
                Err(self.problem("total", format!("{total} is too little for {count} flows: use at least {count}B")))
            }
            (None, Some(total)) => Ok(Some((total.get() / count as u64, total.get() % count as u64))),
            (None, None) => Ok(None),
        }
    }

    /// When the table's flows start, and how much later at most.
    pub fn start(&self) -> Result<(Span, Span), Box<Problem>> {
        let (start, jitter) = (self.values.span(&self.path("start")), self.values.span(&self.path("jitter")));
        let duration = self.values.span("duration");
        let latest = start.as_ps().checked_add(jitter.as_ps());
        if latest.is_none_or(|latest| latest >= duration.as_ps()) {
            let key = if start >= duration || jitter.is_zero() { "start" } else { "jitter" };
            let text = format!(
                "the flow may start after the run's end: start + jitter must be less than duration, {duration}"
            );
            return Err(self.problem(key, text));
        }
        Ok((start, jitter))
    }
}
