//! Table `job_paths`: the critical path of each complete job, step by step.
//!
//! The path leads back from the job's last message to be complete: to the message whose completion made it ready, and
//! so on to a message that was ready at its start, or by a message of another job. The steps of a job cover the time
//! from the job's start to its end without a gap: a step lasts from the end of the one before. Of a job of flows the
//! path is the flow that was complete last.

use super::{jobs, numbers};
use crate::run::Counters;
use crate::table::{Column, Table};
use firstlight_spec::{Job, Spec};
use firstlight_units::Time;
use std::collections::BTreeSet;

/// A step on the path of a job.
#[derive(Clone, Copy)]
struct JobStep<'a> {
    job: &'a Job,
    number: i64,
    /// The number of the message; none for a flow without messages.
    message: Option<usize>,
    flow: Option<usize>,
    bytes: u64,
    /// When the step before ended.
    from: Time,
    ready: Time,
    written: Time,
    complete: Time,
}

impl<'a> JobStep<'a> {
    /// A step of the job without any content.
    fn of(job: &'a Job) -> Self {
        let at = Time::ZERO;
        JobStep { job, number: 0, message: None, flow: None, bytes: 0, from: at, ready: at, written: at, complete: at }
    }
}

/// Table `job_paths`.
pub(super) fn table(spec: &Spec, counters: &Counters) -> Table {
    let steps = steps(spec, counters);
    let us = |of: fn(&JobStep<'_>) -> Time| {
        numbers(steps.iter().map(|step| spec.own_time(of(step)).as_us_f64()).collect::<Vec<_>>())
    };
    let span = |of: fn(&JobStep<'_>) -> (Time, Time)| {
        let length =
            |step: &JobStep<'_>| spec.own_time(of(step).1).saturating_sub(spec.own_time(of(step).0)).as_us_f64();
        numbers(steps.iter().map(length).collect::<Vec<_>>())
    };
    let integer = |of: fn(&JobStep<'_>) -> Option<usize>| {
        Column::Integer(steps.iter().map(|step| of(step).map_or(-1, |number| number as i64)).collect())
    };
    Table::new("job_paths", "critical path of each complete job: one row for each step")
        .text("workload", "the workload's name", &steps, |step| spec.workload_name(step.job.entry).to_string())
        .with(
            "job",
            "number of the job, as in table jobs",
            Column::Integer(steps.iter().map(|step| step.number).collect()),
        )
        .with(
            "message",
            "number of the message in the experiment; -1 for a flow without messages",
            integer(|step| step.message),
        )
        .with(
            "flow",
            "number of the flow that carried it, as in table flows; -1 for a computation",
            integer(|step| step.flow),
        )
        .count("bytes", "its bytes", &steps, |step| step.bytes)
        .with(
            "from_us",
            "when the step before was complete; of the first step, when the job started",
            us(|step| step.from),
        )
        .with(
            "start_us",
            "how long the step waited for its start, or for a message of another job",
            span(|step| (step.from, step.ready)),
        )
        .with("compute_us", "how long it computed before", span(|step| (step.ready, step.written)))
        .with(
            "transfer_us",
            "until the receiver had all of it, after what its flow had to send before",
            span(|step| (step.written, step.complete)),
        )
}

/// The messages on the critical paths of complete jobs.
pub(super) fn messages(spec: &Spec, counters: &Counters) -> BTreeSet<usize> {
    steps(spec, counters).iter().filter_map(|step| step.message).collect()
}

/// The steps of all complete jobs, in the order of the jobs.
fn steps<'a>(spec: &'a Spec, counters: &Counters) -> Vec<JobStep<'a>> {
    let numbers = jobs::numbers_within(&spec.jobs);
    let last = last_messages(spec, counters);
    let mut steps = vec![];
    for (index, (job, report)) in spec.jobs.iter().zip(&counters.jobs).enumerate() {
        let (Some(start), Some(end)) = (report.start, report.finish) else { continue };
        let blank = JobStep { number: numbers[index], from: start, complete: end, ..JobStep::of(job) };
        match last[index] {
            Some(message) => steps.extend(path(spec, counters, message, blank)),
            None => steps.push(slowest_flow(spec, counters, blank)),
        }
    }
    steps
}

/// The message of each job that was complete last, by job.
fn last_messages(spec: &Spec, counters: &Counters) -> Vec<Option<usize>> {
    let mut last = vec![None; spec.jobs.len()];
    for (number, (message, report)) in spec.messages.list().iter().zip(&counters.messages).enumerate() {
        let job = message.job as usize;
        if report.complete.is_some() && report.complete == counters.jobs[job].finish {
            last[job] = Some(number);
        }
    }
    last
}

/// The path to a message from the start of its job. `blank` is a step of the job, which begins with the job.
fn path<'a>(spec: &Spec, counters: &Counters, last: usize, blank: JobStep<'a>) -> Vec<JobStep<'a>> {
    let (list, reports) = (spec.messages.list(), &counters.messages);
    let mut steps = vec![];
    let mut at = Some(last);
    while let Some(number) = at {
        let (message, report) = (&list[number], &reports[number]);
        let (ready, complete) = report.ready.zip(report.complete).expect("a message on the path is complete");
        let before = report.released_by.map(|other| other as usize);
        at = before.filter(|other| list[*other].job == message.job);
        let from = at.and_then(|other| reports[other].complete).unwrap_or(blank.from);
        // The points at which messages meet take no time.
        if message.flow.is_some() || complete > from {
            let written = ready + message.delay * u64::from(spec.tables.time_scale);
            let (flow, bytes) = (message.flow.map(|flow| flow as usize), message.bytes.get());
            steps.push(JobStep { message: Some(number), flow, bytes, from, ready, written, complete, ..blank });
        }
    }
    steps.reverse();
    steps
}

/// The flow of a job of flows that was complete last.
fn slowest_flow<'a>(spec: &Spec, counters: &Counters, blank: JobStep<'a>) -> JobStep<'a> {
    let ended = |flow: &usize| counters.flows[*flow].finish == Some(blank.complete);
    let flow = blank.job.flows.clone().find(ended).expect("a flow of the job was the last");
    let (began, bytes) = (counters.flows[flow].start, spec.flows[flow].size.map_or(0, |size| size.get()));
    JobStep { flow: Some(flow), bytes, ready: began, written: began, ..blank }
}
