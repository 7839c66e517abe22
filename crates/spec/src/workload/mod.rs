//! Workloads: from one `[[workload]]` table to its flows, its datagrams and its messages.
//!
//! A workload is one file: the struct of its keys, with their docs, and its expansion. What is random is drawn from
//! streams of the workload's own, named after its place among the workloads, so that one more changes no other.

mod all_to_all;
mod among;
mod arrivals;
mod background;
mod chakra;
mod datagrams;
mod demand;
mod file;
mod goal;
mod hdfs;
mod incast;
mod key_value;
mod message_graph;
mod paced;
mod partition_aggregate;
mod permutation;
mod placement;
mod poisson;
mod probe;
mod ranks;
mod ring;
mod rounds;
mod shuffle;
mod staggered;
mod udp;

pub use datagrams::Probe;
pub use message_graph::Job;
pub use paced::PacedStep;
use probe::ProbeWorkload;

use crate::error::Problem;
use crate::expander::{Expander, Flow, HostPair, Traffic};
use crate::tables::Connections;
use firstlight_messages::Messages;
use firstlight_net::{Xoshiro256PlusPlus, uniform};
use firstlight_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name in tables of the flows of `[[flows]]`.
pub(crate) const FLOWS: &str = "flows";

/// Declares the workloads: the kind that users write, and the struct of its keys.
macro_rules! workloads {
    ($($kind:literal => $Workload:ident in $module:ident;)*) => {
        /// Many flows from one table. Random numbers are drawn from `seed`, from a stream of its own for each workload.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind")]
        pub enum WorkloadTable {
            $(
                #[serde(rename = $kind)]
                #[expect(missing_docs, reason = "the type of a workload says what the workload is")]
                $Workload($module::$Workload),
            )*
        }

        impl WorkloadTable {
            /// The name of the kind.
            pub fn kind(&self) -> &'static str {
                match self { $(WorkloadTable::$Workload(_) => $kind,)* }
            }

            /// The workload of that kind.
            pub(crate) fn get(&self) -> &dyn Workload {
                match self { $(WorkloadTable::$Workload(workload) => workload,)* }
            }
        }
    };
}

workloads! {
    "poisson" => Poisson in poisson;
    "permutation" => Permutation in permutation;
    "all_to_all" => AllToAll in all_to_all;
    "incast" => Incast in incast;
    "staggered" => Staggered in staggered;
    "ring" => RingWorkload in ring;
    "demand" => DemandMatrix in demand;
    "shuffle" => Shuffle in shuffle;
    "hdfs" => Hdfs in hdfs;
    "partition_aggregate" => PartitionAggregate in partition_aggregate;
    "key_value" => KeyValue in key_value;
    "paced" => Paced in paced;
    "goal" => Goal in goal;
    "chakra" => Chakra in chakra;
    "background" => Background in background;
    "file" => FlowFile in file;
    "probe" => ProbeWorkload in probe;
    "udp" => Udp in udp;
}

impl WorkloadTable {
    /// The probe, if it is one.
    pub(crate) fn probe(&self) -> Option<&ProbeWorkload> {
        if let WorkloadTable::ProbeWorkload(probe) = self { Some(probe) } else { None }
    }
}

/// A workload.
pub(crate) trait Workload {
    /// The keys that it shares with other workloads.
    fn keys(&self) -> &dyn SharedKeys;

    /// Size of its datagrams, where that is given.
    fn packet(&self) -> Option<Bytes> {
        None
    }

    /// The flows, datagrams and messages of the workload.
    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>>;
}

/// Keys that every workload has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Common {
    /// Name of the workload in tables.
    #[schemars(extend("x-without" = "`workload.0` and so on"))]
    pub name: Option<String>,
    /// When the workload begins. Starts that a file gives are added to this.
    #[serde(default)]
    pub start: Span,
    /// Traffic class of the packets, in both directions, instead of a class that a file gives.
    #[schemars(
        range(min = 0, max = 7),
        extend("x-without" = "that of `hosts.classes` for its congestion control, else 0")
    )]
    pub class: Option<u8>,
}

/// Keys of every workload of flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowKeys {
    /// Keys that every workload has.
    #[serde(flatten)]
    pub common: Common,
    /// Hosts and congestion control.
    #[serde(flatten)]
    pub connections: Connections,
}

/// Keys that a workload shares with others.
pub(crate) trait SharedKeys {
    /// The keys that every workload has.
    fn common(&self) -> &Common;

    /// The keys of the workload's connections; `None` for a workload that sends datagrams.
    fn connections(&self) -> Option<&Connections>;
}

impl SharedKeys for FlowKeys {
    fn common(&self) -> &Common {
        &self.common
    }

    fn connections(&self) -> Option<&Connections> {
        Some(&self.connections)
    }
}

impl SharedKeys for Common {
    fn common(&self) -> &Common {
        self
    }

    fn connections(&self) -> Option<&Connections> {
        None
    }
}

/// The expansion of a workload.
#[derive(Default)]
pub(crate) struct Expansion {
    pub flows: Vec<Flow>,
    pub probes: Vec<Probe>,
    /// How many flows there were to be, when that is given.
    pub asked: Option<usize>,
    /// The mean of the distribution of the sizes, in bytes, when there is one.
    pub mean_size: Option<f64>,
    pub messages: Messages,
    pub jobs: Vec<Job>,
}

/// One `[[workload]]` after its expansion.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpandedWorkload {
    /// The name of the workload in tables.
    pub name: String,
    /// The kind of the workload.
    pub kind: String,
    /// How many flows the workload has.
    pub flows: usize,
    /// How many flows the workload was to have, when that is given.
    pub asked: Option<usize>,
    /// The mean of the distribution of its sizes, in bytes, when there is one.
    pub mean_size: Option<f64>,
    /// How many messages its flows carry.
    pub messages: usize,
    /// How many jobs these messages make.
    pub jobs: usize,
}

/// Adds a workload's expansion to the traffic.
pub(crate) fn expand(
    table: &WorkloadTable,
    expander: &Expander<'_>,
    traffic: &mut Traffic,
) -> Result<(), Box<Problem>> {
    let workload = table.get();
    let name = name(workload.keys().common(), expander, &traffic.workloads)?;
    let Expansion { flows, probes, asked, mean_size, messages, jobs } = workload.expand(expander)?;
    traffic.workloads.push(ExpandedWorkload {
        name,
        kind: table.kind().into(),
        flows: flows.len(),
        asked,
        mean_size,
        messages: messages.list().len(),
        jobs: jobs.len(),
    });
    traffic.messages.append(&messages, traffic.flows.len() as u32, traffic.jobs.len() as u32);
    let first = traffic.flows.len();
    traffic.flows.extend(flows);
    traffic.probes.extend(probes);
    traffic.jobs.extend(jobs.into_iter().map(|job| job.after(first)));
    Ok(())
}

fn name(common: &Common, expander: &Expander<'_>, others: &[ExpandedWorkload]) -> Result<String, Box<Problem>> {
    let name = common.name.clone().unwrap_or_else(|| expander.entry.to_string());
    if name == FLOWS || others.iter().any(|other| other.name == name) {
        let text = format!("there is a '{name}' already: name each workload by a name of its own");
        return Err(expander.problem("name", text));
    }
    Ok(name)
}

/// The span from the run's start that lies `count` times `each` after `from`; the clock's last moment when that is
/// later.
fn after(from: Span, each: Span, count: u64) -> Span {
    Span::from_ps(from.as_ps().saturating_add(each.saturating_mul(count).as_ps()))
}

/// A flow for each pair; all start at the same time, up to `jitter` later, and send the same amount.
fn at_once(
    expander: &Expander<'_>,
    FlowKeys { common, connections }: &FlowKeys,
    jitter: Span,
    size: Option<Bytes>,
    pairs: &[HostPair],
) -> Result<Expansion, Box<Problem>> {
    expander.starts(common.start, jitter)?;
    let mut flows = expander.between(connections, common.class, pairs)?;
    for flow in &mut flows {
        (flow.start, flow.jitter, flow.size) = (common.start, jitter, size);
    }
    Ok(Expansion { flows, ..Expansion::default() })
}

/// Puts `first` random ones of the items at their head, in random order (Fisher and Yates; Durstenfeld 1964).
fn shuffle_first<T>(random: &mut Xoshiro256PlusPlus, items: &mut [T], first: usize) {
    for at in 0..first.min(items.len()) {
        let other = at + uniform(random, (items.len() - at) as u64) as usize;
        items.swap(at, other);
    }
}
