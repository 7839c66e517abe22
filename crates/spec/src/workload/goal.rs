//! Replay of a message-passing application from its GOAL schedule, a file (`firstlight_formats::goal` has the form) or
//! generated (`firstlight_formats::applications`).
//!
//! A send is over for its rank when it begins (the eager protocol: the stack takes the message). A receive is over when
//! its rank has reached it and its message is complete. A receive from any rank is over when as many messages of its
//! tag have arrived as there are such receives up to it. A computation takes its time; computations of a rank run side
//! by side unless one requires another.
//!
//! The messages from one rank to another go over one connection, in the order in which they are sent; messages of a
//! rank to itself take no network. An empty message has one byte. A job is the whole application.

use super::message_graph::{MessageGraph, limit, order};
use super::ranks::RankKeys;
use super::{Expansion, FlowKeys, SharedKeys, Workload};
use crate::error::Problem;
use crate::expander::{Expander, HostPair};
use firstlight_formats::ImportError;
use firstlight_formats::applications::{ApplicationParameters, RequestPart, generate};
use firstlight_formats::goal::{self, GoalAction, GoalOperation, GoalSchedule};
use firstlight_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Two steps of each operation: it starts; and it ends or, of a send, its message arrives.
const STEPS: u32 = 2;

/// A message-passing application from its trace or by its name. It has one job (see table `jobs` of results).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// The application's schedule in GOAL's text form or, made of it by LogGOPSim's `txt2bin`, binary form; its path
    /// relative to the experiment's.
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
    /// The hosts of the ranks.
    #[serde(flatten)]
    pub ranks_on: RankKeys,
}

fn one() -> u32 {
    1
}

/// A schedule, with the key that names it and its name in messages.
type NamedSchedule = (&'static str, String, GoalSchedule);

impl Workload for Goal {
    fn keys(&self) -> &dyn SharedKeys {
        &self.shared
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let hosts = self.ranks_on.hosts(expander)?;
        let (key, name, schedule) = self.schedule(expander, hosts.len())?;
        Replay { expander, keys: &self.shared, key, name: &|_| &name }.expansion(&schedule, &hosts)
    }
}

/// The replay of a schedule by a workload.
pub(super) struct Replay<'a> {
    pub expander: &'a Expander<'a>,
    pub keys: &'a FlowKeys,
    /// The key that names the schedule.
    pub key: &'a str,
    /// The name of each rank's file.
    pub name: &'a dyn Fn(u32) -> &'a str,
}

impl Goal {
    fn schedule(&self, expander: &Expander<'_>, hosts: usize) -> Result<NamedSchedule, Box<Problem>> {
        match (&self.file, &self.application) {
            (None, None) => Err(expander.missing("file", "\"trace.goal\", or application = \"cg.A\",")),
            (Some(_), Some(_)) => {
                Err(expander.problem("application", "there is a file as well: take one of the two out"))
            }
            (Some(file), None) => {
                let (name, bytes) = expander.read_bytes("file", file)?;
                let read = if goal::is_binary(&bytes) {
                    goal::read_binary(&bytes, &name)
                } else {
                    goal::read(&expander.text("file", &name, bytes)?, &name)
                };
                Ok(("file", name, read.map_err(|error| expander.imported("file", error))?))
            }
            (None, Some(application)) => {
                let text = self.generated(application, expander, hosts)?;
                let read = goal::read(&text, application);
                Ok(("application", application.clone(), read.map_err(|error| expander.imported("application", error))?))
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

/// The steps of a schedule: two of each operation, then the arrivals of messages from any rank.
struct ReplaySteps {
    /// The steps that each step depends on, one list after another.
    list: Vec<u32>,
    /// The end of each step's list.
    ends: Vec<u32>,
    /// How many messages have come at each arrival.
    arrivals: Vec<u32>,
}

impl ReplaySteps {
    fn of(schedule: &GoalSchedule) -> Self {
        let mut required = vec![vec![]; schedule.operations.len()];
        for requirement in &schedule.requirements {
            let ended = !requirement.start
                && !matches!(schedule.operations[requirement.earlier as usize].action, GoalAction::Send(..));
            required[requirement.later as usize].push(requirement.earlier * STEPS + u32::from(ended));
        }
        let mut steps = ReplaySteps { list: vec![], ends: vec![], arrivals: vec![] };
        let first_arrival = schedule.operations.len() as u32 * STEPS;
        let mut groups = vec![];
        for (number, (operation, required)) in schedule.operations.iter().zip(required).enumerate() {
            steps.list.extend(required);
            steps.end();
            steps.list.push(number as u32 * STEPS);
            match operation.action {
                GoalAction::Receive(send) => steps.list.push(send * STEPS + 1),
                GoalAction::ReceiveAny { group, arrived } => {
                    steps.list.push(first_arrival + steps.arrivals.len() as u32);
                    steps.arrivals.push(arrived);
                    groups.push(group);
                }
                GoalAction::Send(..) | GoalAction::Compute(_) => {}
            }
            steps.end();
        }
        for group in groups {
            steps.list.extend(schedule.groups[group as usize].iter().map(|send| send * STEPS + 1));
            steps.end();
        }
        steps
    }

    fn end(&mut self) {
        self.ends.push(self.list.len() as u32);
    }

    fn count(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The steps that a step depends on.
    fn before(&self, step: u32) -> &[u32] {
        let first = step.checked_sub(1).map_or(0, |other| self.ends[other as usize]);
        &self.list[first as usize..self.ends[step as usize] as usize]
    }

    /// How many of these are enough, where that is not all.
    fn enough(&self, step: u32) -> Option<u32> {
        let first = self.ends.len() - self.arrivals.len();
        (step as usize).checked_sub(first).map(|arrival| self.arrivals[arrival])
    }
}

impl Replay<'_> {
    /// The messages of a schedule whose ranks are on these hosts.
    pub fn expansion(&self, schedule: &GoalSchedule, hosts: &[usize]) -> Result<Expansion, Box<Problem>> {
        let Replay { expander, key, .. } = *self;
        if schedule.ranks as usize > hosts.len() {
            let (ranks, hosts) = (schedule.ranks, hosts.len());
            let text = format!("it has {ranks} ranks for {hosts} hosts: use a larger fabric, or more hosts in among");
            return Err(expander.problem(key, text));
        }
        let pairs: u64 = schedule.groups.iter().map(|group| (group.len() as u64).pow(2)).sum();
        limit(expander, key, 0, (schedule.operations.len() as u64 * u64::from(STEPS)).max(pairs))?;
        let steps = ReplaySteps::of(schedule);
        let order = order(steps.count(), |step| steps.before(step), |step| steps.enough(step)).map_err(|stuck| {
            let GoalOperation { rank, place: (line, column), .. } = schedule.operations[(stuck / STEPS) as usize];
            let problem = "it waits for itself, by what it requires and receives: take out one of these".into();
            expander.imported(key, ImportError { file: (self.name)(rank).into(), line, column, problem })
        })?;
        let graph = MessageGraph::new(expander, self.keys)?;
        replay(graph, schedule, hosts, &steps, &order)
    }
}

fn replay(
    mut graph: MessageGraph<'_>,
    schedule: &GoalSchedule,
    hosts: &[usize],
    steps: &ReplaySteps,
    order: &[u32],
) -> Result<Expansion, Box<Problem>> {
    let bytes = |action| if let GoalAction::Send(bytes, _) = action { bytes } else { 0 };
    let job = graph.job(schedule.operations.iter().map(|operation| bytes(operation.action)).sum());
    let mut connections: BTreeMap<HostPair, u32> = BTreeMap::new();
    let mut numbers = vec![0; order.len()];
    order.iter().enumerate().for_each(|(number, step)| numbers[*step as usize] = number as u32);
    let mut after = vec![];
    for &step in order {
        after.clear();
        after.extend(steps.before(step).iter().map(|other| numbers[*other as usize]));
        if let Some(arrived) = steps.enough(step) {
            graph.enough(arrived, job, &after);
            continue;
        }
        let operation = &schedule.operations[(step / STEPS) as usize];
        match operation.action {
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
