//! What is known of a key of an experiment: its type, default, condition and meaning. The keys themselves are in
//! [`super::registry`].

use std::fmt;

/// What a key's value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// One of these names.
    Name(&'static [&'static str]),
    /// A whole number from `least` to `most` of something.
    Count {
        /// Smallest.
        least: u64,
        /// Largest.
        most: u64,
        /// What is counted, for messages; may be empty.
        of: &'static str,
    },
    /// A number from `least` to `most`.
    Number {
        /// Smallest.
        least: f64,
        /// Largest.
        most: f64,
    },
    /// True or false.
    Flag,
    /// A span of time; `positive` when zero makes no sense.
    Time {
        /// Whether it must be longer than zero.
        positive: bool,
    },
    /// A rate above zero.
    Rate,
    /// An amount of data from `least` to `most` bytes.
    Size {
        /// Smallest.
        least: u64,
        /// Largest.
        most: u64,
    },
    /// Source and destination rack.
    Pair,
    /// A matching: a list of pairs.
    Matching,
    /// Hosts: `rack0`, `host3`, `rack0.host3`, `all`.
    Hosts,
    /// Settings of a kernel: a list of texts `name=value`.
    Sysctls,
    /// Attributes of a route: names and values in one text.
    Route,
    /// A queue's length: so many packets, or an amount of data, at least `least` of either.
    Length {
        /// Smallest.
        least: u64,
    },
    /// A list of texts.
    Texts,
    /// A list of traffic classes.
    Classes,
    /// Amounts of data, each larger than the one before.
    Sizes,
    /// A version of Linux, or the beginning of one.
    Version,
}

/// When a key has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In every experiment.
    Always,
    /// `fabric.kind` is one of these.
    Fabric(&'static [&'static str]),
    /// A day of the schedule has no length of its own.
    CommonDay,
    /// `schedule.kind` is one of these.
    Schedule(&'static [&'static str]),
    /// `voq.large` is given.
    Large,
    /// A flow uses that controller.
    Uses(&'static str),
    /// A flow names no `cc` of its own.
    DefaultCc,
    /// `measure.series` is given.
    Series,
    /// A flow leaves it to `hosts.kind` whose hosts it has, or there are programs.
    DefaultHosts,
    /// `hosts.kind = "linux"`.
    LinuxDefault,
    /// A flow or a program has Linux hosts.
    Linux,
    /// A flow has Linux hosts.
    LinuxFlow,
    /// A flow has simulated hosts.
    SimulatedFlow,
    /// `stamps.kind` is one of these.
    Stamps(&'static [&'static str]),
    /// `switch.buffer` is given.
    Buffer,
    /// There are no `[[switch.classes]]`, on a packet fabric.
    OneQueue,
    /// `measure.queues` is given.
    Queues,
    /// A `[[workload]]` is a probe.
    Probes,
    /// There is a `[qcn]`.
    Qcn,
    /// The key's own `[[workload]]` is of one of these kinds.
    Workload(&'static [&'static str]),
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            When::Always => "",
            When::Fabric(kinds) => {
                let quoted: Vec<String> = kinds.iter().map(|kind| format!("\"{kind}\"")).collect();
                return write!(f, "fabric.kind = {}", quoted.join(" or "));
            }
            When::CommonDay => "a day has no length of its own",
            When::Schedule(kinds) => return write!(f, "schedule.kind = \"{}\"", kinds.join("\" or \"")),
            When::Large => "voq.large is given",
            When::Uses(cc) => return write!(f, "a flow uses {cc}"),
            When::DefaultCc => "a flow names no cc of its own",
            When::Series => "measure.series is given",
            When::DefaultHosts => "a flow names no hosts of its own",
            When::LinuxDefault => "hosts.kind = \"linux\"",
            When::Linux => "there are Linux hosts",
            When::LinuxFlow => "a flow has Linux hosts",
            When::SimulatedFlow => "a flow has simulated hosts",
            When::Stamps(kinds) => return write!(f, "stamps.kind = \"{}\"", kinds.join("\" or \"")),
            When::Buffer => "switch.buffer is given",
            When::OneQueue => "there are no [[switch.classes]]",
            When::Queues => "measure.queues is given",
            When::Probes => "there is a probe, or UDP",
            When::Qcn => "there is a [qcn]",
            When::Workload(kinds) => return write!(f, "kind = \"{}\"", kinds.join("\" or \"")),
        })
    }
}

/// What holds when a key is not given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// It must be given (where its condition holds).
    Required,
    /// This value, as written in TOML.
    Value(String),
    /// No value; the text says what that means.
    Absent(&'static str),
}

/// One key.
#[derive(Clone, Debug)]
pub struct Key {
    /// Dotted path; `*` stands for an index of a list.
    pub path: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// What holds without it.
    pub fallback: Fallback,
    /// When it has an effect.
    pub when: When,
    /// What it does.
    pub doc: &'static str,
}
