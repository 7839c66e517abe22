//! Replay of a message-passing application from its GOAL schedule, a file (`firstlight_formats::goal` has the form) or
//! generated (`firstlight_formats::applications`).
//!
//! Rank r is on the r-th host. A send is over for its rank when it begins (the eager protocol: the stack takes the
//! message); a receive when its rank has come to it and its message is complete; a computation takes its time, and does
//! not wait for another one of its rank that it does not require. What a rank sends to another one goes over one
//! connection, in the order in which it is sent; what it sends to itself takes no network. An empty message is one of a
//! byte. A job is the whole application.

use super::message_graph::{MessageGraph, limit};
use super::{Common, Expansion, Workload};
use crate::error::Problem;
use crate::expander::{Expander, HostPair};
use crate::host_name::HostName;
use crate::tables::Connections;
use firstlight_formats::ImportError;
use firstlight_formats::applications::{ApplicationParameters, RequestPart, generate};
use firstlight_formats::goal::{self, GoalAction, GoalSchedule};
use firstlight_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Two steps of each operation: it starts; and it ends or, of a send, its message arrives.
const STEPS: u32 = 2;

/// A message-passing application from its trace or by its name. It has one job (see table `jobs` of results).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// Keys that every workload has.
    #[serde(flatten)]
    pub common: Common,
    /// Hosts and congestion control.
    #[serde(flatten)]
    pub connections: Connections,
    /// The application's schedule in GOAL's text form, its path relative to the experiment's.
    #[schemars(extend("x-without" = "required unless there is an `application`"))]
    pub file: Option<String>,
    /// A schedule that is generated instead of a `file`: the communication of a NAS parallel benchmark, `bt`, `cg`,
    /// `ft`, `is` or `mg`, with its problem class, as `cg.A` (classes S, W and A; `cg` is `cg.S`), or of a pattern:
    /// `halo`, `all-to-all`, `all-reduce`, `wavefront`.
    #[schemars(extend("x-without" = "see `file`"))]
    pub application: Option<String>,
    /// How many ranks an `application` has.
    #[schemars(
        range(min = 1, max = 65_536),
        extend("x-of" = "ranks", "x-with" = "application", "x-without" = "as many as hosts in `among`")
    )]
    pub ranks: Option<u32>,
    /// The messages of an `application` that is a pattern.
    #[schemars(extend("x-with" = "application", "x-without" = "64KiB"))]
    pub size: Option<Bytes>,
    /// How many iterations of an `application`.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000), extend("x-of" = "iterations", "x-with" = "application"))]
    pub iterations: u32,
    /// How long the ranks of an `application` compute between exchanges, in whole nanoseconds.
    #[serde(default)]
    #[schemars(extend("x-with" = "application"))]
    pub compute: Span,
    /// Which hosts have ranks: rank 0 is on the first of them, and so on.
    #[serde(default = "HostName::all")]
    pub among: HostName,
}

fn one() -> u32 {
    1
}

/// The text of a schedule, with the key that asks for it and its name in messages.
struct ScheduleSource {
    key: &'static str,
    name: String,
    text: String,
}

impl Workload for Goal {
    fn common(&self) -> &Common {
        &self.common
    }

    fn connections(&self) -> Option<&Connections> {
        Some(&self.connections)
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let hosts = expander.hosts("among", self.among)?;
        let ScheduleSource { key, name, text } = self.source(expander, hosts.len())?;
        let schedule = goal::read(&text, &name).map_err(|error| expander.imported(key, error))?;
        if schedule.ranks as usize > hosts.len() {
            let (ranks, hosts) = (schedule.ranks, hosts.len());
            let text = format!("it has {ranks} ranks for {hosts} hosts: use a larger fabric, or more hosts in among");
            return Err(expander.problem(key, text));
        }
        limit(expander, key, 0, schedule.operations.len() as u64 * u64::from(STEPS))?;
        let order = order(&schedule).map_err(|stuck| {
            let (line, column) = schedule.operations[stuck].place;
            let problem = "it waits for itself, by what it requires and receives: take out one of these".into();
            expander.imported(key, ImportError { file: name, line, column, problem })
        })?;
        let graph = MessageGraph::new(expander, &self.common, &self.connections)?;
        replay(graph, &schedule, &hosts, &order)
    }
}

impl Goal {
    fn source(&self, expander: &Expander<'_>, hosts: usize) -> Result<ScheduleSource, Box<Problem>> {
        match (&self.file, &self.application) {
            (None, None) => Err(expander.missing("file", "\"trace.goal\", or application = \"cg.A\",")),
            (Some(_), Some(_)) => {
                Err(expander.problem("application", "there is a file as well: take one of the two out"))
            }
            (Some(file), None) => {
                let (name, text) = expander.read_file("file", file)?;
                Ok(ScheduleSource { key: "file", name, text })
            }
            (None, Some(application)) => {
                let text = self.generated(application, expander, hosts)?;
                Ok(ScheduleSource { key: "application", name: application.clone(), text })
            }
        }
    }

    fn generated(&self, application: &str, expander: &Expander<'_>, hosts: usize) -> Result<String, Box<Problem>> {
        let ranks = self.ranks.unwrap_or(hosts as u32);
        if ranks as usize > hosts {
            let text = format!("there are {hosts} hosts: use a larger fabric, or more hosts in among");
            return Err(expander.problem("ranks", text));
        }
        let parameters = ApplicationParameters {
            ranks,
            size: self.size.map(Bytes::get),
            iterations: self.iterations,
            compute_ns: self.compute.as_ps() / 1000,
        };
        generate(application, &parameters).map_err(|wrong| {
            let key = match wrong.part {
                RequestPart::Name => "application",
                RequestPart::Ranks if self.ranks.is_some() => "ranks",
                RequestPart::Ranks => "application",
                RequestPart::Size => "size",
            };
            expander.problem(key, wrong.to_string())
        })
    }
}

/// The steps that each step depends on, one list after another, and where the list of each step ends.
struct Before {
    list: Vec<u32>,
    ends: Vec<u32>,
}

impl Before {
    fn of(schedule: &GoalSchedule) -> Self {
        let mut required = vec![vec![]; schedule.operations.len()];
        for requirement in &schedule.requirements {
            let ended = !requirement.start
                && !matches!(schedule.operations[requirement.earlier as usize].action, GoalAction::Send(..));
            required[requirement.later as usize].push(requirement.earlier * STEPS + u32::from(ended));
        }
        let mut before = Before { list: vec![], ends: vec![] };
        for (number, (operation, required)) in schedule.operations.iter().zip(required).enumerate() {
            before.list.extend(required);
            before.ends.push(before.list.len() as u32);
            before.list.push(number as u32 * STEPS);
            if let GoalAction::Receive(send) = operation.action {
                before.list.push(send * STEPS + 1);
            }
            before.ends.push(before.list.len() as u32);
        }
        before
    }

    fn step(&self, step: u32) -> &[u32] {
        let first = step.checked_sub(1).map_or(0, |other| self.ends[other as usize]);
        &self.list[first as usize..self.ends[step as usize] as usize]
    }
}

/// The steps in an order in which each comes after all that it waits for (Kahn, CACM 5(11), 1962), with those; or an
/// operation that never can start.
fn order(schedule: &GoalSchedule) -> Result<(Before, Vec<u32>), usize> {
    let before = Before::of(schedule);
    let steps = schedule.operations.len() as u32 * STEPS;
    let mut waiting: Vec<u32> = (0..steps).map(|step| before.step(step).len() as u32).collect();
    let mut followers = vec![vec![]; steps as usize];
    for step in 0..steps {
        before.step(step).iter().for_each(|other| followers[*other as usize].push(step));
    }
    let mut order: Vec<u32> = (0..steps).filter(|step| waiting[*step as usize] == 0).collect();
    let mut next = 0;
    while let Some(&step) = order.get(next) {
        next += 1;
        for &follower in &followers[step as usize] {
            waiting[follower as usize] -= 1;
            if waiting[follower as usize] == 0 {
                order.push(follower);
            }
        }
    }
    match waiting.iter().position(|left| *left > 0) {
        Some(stuck) => Err(stuck / STEPS as usize),
        None => Ok((before, order)),
    }
}

fn replay(
    mut graph: MessageGraph<'_>,
    schedule: &GoalSchedule,
    hosts: &[usize],
    (before, order): &(Before, Vec<u32>),
) -> Result<Expansion, Box<Problem>> {
    let bytes = |action| if let GoalAction::Send(bytes, _) = action { bytes } else { 0 };
    let job = graph.job(schedule.operations.iter().map(|operation| bytes(operation.action)).sum());
    let mut connections: BTreeMap<HostPair, u32> = BTreeMap::new();
    let (mut numbers, mut after) = (vec![0; order.len()], vec![]);
    for &step in order {
        let operation = &schedule.operations[(step / STEPS) as usize];
        after.clear();
        after.extend(before.step(step).iter().map(|other| numbers[*other as usize]));
        numbers[step as usize] = match operation.action {
            GoalAction::Send(bytes, peer) if step % STEPS == 1 && peer != operation.rank => {
                let pair = (hosts[operation.rank as usize], hosts[peer as usize]);
                let connection = *connections.entry(pair).or_insert_with(|| graph.connection(pair));
                graph.send(connection, bytes.max(1), job, &after)
            }
            GoalAction::Compute(ns) if step % STEPS == 1 => graph.wait(Span::from_ns(ns), job, &after),
            _ => graph.wait(Span::ZERO, job, &after),
        };
    }
    graph.expansion()
}
