//! Replay of a message-passing application from its GOAL schedule, a file (`firstlight_formats::goal` has the form) or
//! generated (`firstlight_formats::applications`).
//!
//! Rank r is on the r-th host. A send is over for its rank when it begins (the eager protocol: the stack takes the message);
//! a receive when its rank has come to it and its message is complete; a computation takes its time, and does not wait for
//! another one of its rank that it does not require. What a rank sends to another one goes over one connection, in the
//! order in which it is sent; what it sends to itself takes no network. An empty message is one of a byte. A job is the
//! whole application.

use super::super::error::Problem;
use super::super::flows::{Pair, Table};
use super::Made;
use super::work::{Work, limit};
use firstlight_formats::ImportError;
use firstlight_formats::applications::{ApplicationParameters, RequestPart, generate};
use firstlight_formats::goal::{self, GoalAction, GoalSchedule};
use firstlight_units::Span;
use std::collections::BTreeMap;

/// Two steps of each operation: it starts; and it ends or, of a send, its message arrives.
const STEPS: u32 = 2;
/// Keys that have an effect on generated schedules only.
const OF_APPLICATIONS: [&str; 4] = ["ranks", "size", "iterations", "compute"];

/// The connections and messages.
pub(super) fn expand(table: &Table<'_>) -> Result<Made, Box<Problem>> {
    let hosts = table.hosts("among")?;
    let (key, path, text) = source(table, hosts.len())?;
    let schedule = goal::read(&text, &path).map_err(|error| table.imported(key, error))?;
    if schedule.ranks as usize > hosts.len() {
        let text = format!(
            "it has {} ranks for {} hosts: use a larger fabric, or more hosts in among",
            schedule.ranks,
            hosts.len()
        );
        return Err(table.problem(key, text));
    }
    limit(table, key, 0, schedule.operations.len() as u64 * u64::from(STEPS))?;
    let order = order(&schedule).map_err(|stuck| {
        let (line, column) = schedule.operations[stuck].place;
        let problem = "it waits for itself, by what it requires and receives: take out one of these".into();
        table.imported(key, ImportError { file: path, line, column, problem })
    })?;
    replay(table, &schedule, &hosts, &order)
}

/// The key that asks for the schedule, the schedule's name for messages, and its text.
fn source(table: &Table<'_>, hosts: usize) -> Result<(&'static str, String, String), Box<Problem>> {
    let has = |key: &str| table.values.has(&table.path(key));
    let Some(application) = table.values.text_opt(&table.path("application")) else {
        if let Some(key) = OF_APPLICATIONS.iter().find(|key| has(key)) {
            return Err(table.problem(key, "has no effect without application: take it out, or name an application"));
        }
        if !has("file") {
            return Err(table.missing("file", "\"trace.goal\", or application = \"cg.A\","));
        }
        let (path, text) = table.file("file")?;
        return Ok(("file", path, text));
    };
    if has("file") {
        return Err(table.problem("application", "there is a file as well: take one of the two out"));
    }
    let ranks = table.values.integer_opt(&table.path("ranks")).unwrap_or(hosts as u64);
    if ranks > hosts as u64 {
        return Err(
            table.problem("ranks", format!("there are {hosts} hosts: use a larger fabric, or more hosts in among"))
        );
    }
    let parameters = ApplicationParameters {
        ranks: ranks as u32,
        size: table.values.size_opt(&table.path("size")).map(firstlight_units::Bytes::get),
        iterations: table.values.integer(&table.path("iterations")) as u32,
        compute_ns: table.values.span(&table.path("compute")).as_ps() / 1000,
    };
    let text = generate(&application, &parameters).map_err(|wrong| {
        let key = match wrong.part {
            RequestPart::Name => "application",
            RequestPart::Ranks if has("ranks") => "ranks",
            RequestPart::Ranks => "application",
            RequestPart::Size => "size",
        };
        table.problem(key, wrong.to_string())
    })?;
    Ok(("application", application, text))
}

/// What comes before each step, one after another, and where those of each end.
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
    table: &Table<'_>,
    schedule: &GoalSchedule,
    hosts: &[usize],
    (before, order): &(Before, Vec<u32>),
) -> Result<Made, Box<Problem>> {
    let mut work = Work::new(table)?;
    let bytes = |action| if let GoalAction::Send(bytes, _) = action { bytes } else { 0 };
    let job = work.job(schedule.operations.iter().map(|operation| bytes(operation.action)).sum());
    let mut connections: BTreeMap<Pair, u32> = BTreeMap::new();
    let (mut numbers, mut after) = (vec![0; order.len()], vec![]);
    for &step in order {
        let operation = &schedule.operations[(step / STEPS) as usize];
        after.clear();
        after.extend(before.step(step).iter().map(|other| numbers[*other as usize]));
        numbers[step as usize] = match operation.action {
            GoalAction::Send(bytes, peer) if step % STEPS == 1 && peer != operation.rank => {
                let pair = (hosts[operation.rank as usize], hosts[peer as usize]);
                let connection = *connections.entry(pair).or_insert_with(|| work.connection(pair));
                work.send(connection, bytes.max(1), job, &after)
            }
            GoalAction::Compute(ns) if step % STEPS == 1 => work.wait(Span::from_ns(ns), job, &after),
            _ => work.wait(Span::ZERO, job, &after),
        };
    }
    work.made()
}
