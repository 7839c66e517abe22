//! Workloads: from one `[[workload]]` table to its flows, or to its probes.
//!
//! Each one draws from streams of its own, named after its place among the workloads, so that one more changes no other.

mod application_keys;
mod arrivals;
mod background;
mod demand;
mod goal;
mod hdfs;
mod keys;
mod listed;
mod paced;
mod partition_aggregate;
mod patterns;
mod placement;
mod poisson;
mod probe;
mod ring;
mod shuffle;
mod work;

pub(super) use keys::{DOC, keys};
pub use probe::Probe;
pub use work::Job;

use super::error::Problem;
use super::flows::{Entry, Flow, Table, Traffic};
use firstlight_formats::ImportError;
use firstlight_messages::Messages;
use firstlight_sim::{Xoshiro256PlusPlus, stream};
use firstlight_units::Span;

/// The name in tables of what comes from `[[flows]]`.
pub(crate) const FLOWS: &str = "flows";

/// One `[[workload]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its name in tables.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// How many flows it has.
    pub flows: usize,
    /// How many it was to have, when it was told.
    pub asked: Option<usize>,
    /// The mean of the distribution of its sizes, in bytes, when it has one.
    pub mean_size: Option<f64>,
    /// How many messages its flows carry.
    pub messages: usize,
    /// How many jobs those make.
    pub jobs: usize,
}

/// What a workload expands to.
#[derive(Default)]
struct Made {
    flows: Vec<Flow>,
    asked: Option<usize>,
    mean_size: Option<f64>,
    messages: Messages,
    jobs: Vec<Job>,
}

/// Adds a workload to what is sent.
pub(super) fn expand(table: &Table<'_>, traffic: &mut Traffic) -> Result<(), Box<Problem>> {
    let name = name(table, &traffic.workloads)?;
    let kind = table.values.text(&table.path("kind"));
    let made = match kind.as_str() {
        "poisson" => poisson::expand(table)?,
        "permutation" => patterns::permutation(table)?,
        "all_to_all" => patterns::all_to_all(table)?,
        "incast" => patterns::incast(table)?,
        "staggered" => patterns::staggered(table)?,
        "ring" => ring::expand(table)?,
        "demand" => demand::expand(table)?,
        "hdfs" => hdfs::expand(table)?,
        "shuffle" => shuffle::expand(table)?,
        "partition_aggregate" => partition_aggregate::expand(table)?,
        "paced" => paced::expand(table)?,
        "goal" => goal::expand(table)?,
        "background" => background::expand(table, &mut traffic.probes)?,
        "udp" => {
            traffic.probes.extend(probe::udp(table)?);
            Made::default()
        }
        "probe" => {
            traffic.probes.extend(probe::expand(table)?);
            Made::default()
        }
        _ => listed::expand(table)?,
    };
    let Made { flows, asked, mean_size, messages, jobs } = made;
    let counts = (flows.len(), messages.list().len(), jobs.len());
    traffic.workloads.push(Workload {
        name,
        kind,
        flows: counts.0,
        asked,
        mean_size,
        messages: counts.1,
        jobs: counts.2,
    });
    traffic.messages.append(&messages, traffic.flows.len() as u32, traffic.jobs.len() as u32);
    traffic.flows.extend(flows);
    traffic.jobs.extend(jobs);
    Ok(())
}

fn name(table: &Table<'_>, others: &[Workload]) -> Result<String, Box<Problem>> {
    let name = table.values.text_opt(&table.path("name")).unwrap_or_else(|| table.entry.to_string());
    if name == FLOWS || others.iter().any(|other| other.name == name) {
        let text = format!("there is a '{name}' already: name each workload by a name of its own");
        return Err(table.problem("name", text));
    }
    Ok(name)
}

impl Table<'_> {
    /// The workload's random stream for a purpose.
    fn random(&self, purpose: &str) -> Xoshiro256PlusPlus {
        let (Entry::Flows(index) | Entry::Workload(index)) = self.entry;
        stream(self.values.integer("seed"), &format!("workload{index}"), purpose)
    }

    /// A key that this kind needs is not there.
    fn missing(&self, key: &str, example: &str) -> Box<Problem> {
        self.problem(key, format!("missing: write for example {key} = {example} in [[workload]]"))
    }

    /// A file that a key names, relative to the experiment's folder: its path, and what it holds.
    fn file(&self, key: &str) -> Result<(String, String), Box<Problem>> {
        self.values.file(&self.path(key)).map_err(Box::new)
    }

    /// What is wrong with a file that a key names, at its place there.
    fn imported(&self, key: &str, error: ImportError) -> Box<Problem> {
        Box::new(self.values.imported(&self.path(key), error))
    }

    /// The run's end.
    fn duration(&self) -> Span {
        self.values.span("duration")
    }
}

/// `from` and `count` times `each` more; the clock's last moment when that is later.
fn after(from: Span, each: Span, count: u64) -> Span {
    Span::from_ps(from.as_ps().saturating_add(each.saturating_mul(count).as_ps()))
}
