//! Table `jobs`: one row for each job of a workload of messages, in the order of the experiment.
//!
//! A job runs from the time at which its first message may be sent to the time at which its last message is complete; a
//! job of flows, from the start of its first flow to the end of its last one.

use super::critical_path::least_times;
use super::numbers;
use crate::run::Counters;
use crate::table::{Column, Table};
use firstlight_messages::JobReport;
use firstlight_spec::{Job, Spec};
use firstlight_units::Span;

/// Table `jobs`.
pub(super) fn table(spec: &Spec, counters: &Counters) -> Table {
    let rows: Vec<(&Job, &JobReport)> = spec.jobs.iter().zip(&counters.jobs).collect();
    let start = |job: &JobReport| job.start.map(|start| spec.own_time(start).as_us_f64());
    Table::new(
        "jobs",
        "one row for each job: a file that is written, a reducer that fetches its input, a query, a step of an \
         application, an application, a round of an incast or ring",
    )
    .text("workload", "the workload's name", &rows, |(asked, _)| spec.workload_name(asked.entry).to_string())
    .with("job", "number of the job, from 0 in its workload", Column::Integer(numbers_within(&spec.jobs)))
    .number(
        "start_us",
        "when its first message could be sent, or its first flow started; NaN if that never was",
        &rows,
        |(_, report)| start(report).unwrap_or(f64::NAN),
    )
    .number("duration_us", "until its last message or flow was complete; NaN if it never was", &rows, |(_, report)| {
        duration(spec, report).map_or(f64::NAN, Span::as_us_f64)
    })
    .count(
        "size_bytes",
        "payload of the job: the file's size, the reducer's input, the replies to a query, what an application writes \
         or sends",
        &rows,
        |(asked, _)| asked.size.get(),
    )
    .count("sent_bytes", "bytes of its messages or flows, replicas and calls included", &rows, |(_, report)| {
        report.bytes.get()
    })
    .count("messages", "how many messages or flows it has", &rows, |(_, report)| u64::from(report.messages))
    .with(
        "throughput_gbps",
        "size_bytes over duration_us; NaN if it is not complete",
        numbers(rows.iter().map(|(asked, report)| {
            duration(spec, report).map_or(f64::NAN, |time| asked.size.get() as f64 * 8e-9 / time.as_secs_f64())
        })),
    )
    .with(
        "slowdown",
        "duration_us over the least that its messages take without any other, one after another where they must; NaN \
         where that is not known",
        numbers(slowdowns(spec, counters)),
    )
}

/// Each job's slowdown: its duration divided by its least time; NaN where one of them is not known.
pub(super) fn slowdowns(spec: &Spec, counters: &Counters) -> Vec<f64> {
    let of = |(report, least): (&JobReport, Option<Span>)| match (duration(spec, report), least) {
        (Some(time), Some(least)) if !least.is_zero() => time.as_secs_f64() / least.as_secs_f64(),
        _ => f64::NAN,
    };
    counters.jobs.iter().zip(least_times(spec)).map(of).collect()
}

/// The number of each job within its workload; jobs are ordered by workload.
pub(super) fn numbers_within(jobs: &[Job]) -> Vec<i64> {
    jobs.chunk_by(|a, b| a.entry == b.entry).flat_map(|own| 0..own.len() as i64).collect()
}

/// Duration of a complete job in the experiment's own time.
fn duration(spec: &Spec, job: &JobReport) -> Option<Span> {
    Some(spec.own_time(job.finish?).saturating_sub(spec.own_time(job.start?)))
}

/// All complete jobs together.
pub(super) struct Jobs {
    /// Durations of the jobs, ascending.
    pub times: Vec<Span>,
    /// Sizes of the jobs over the time from the first start to the last end, in Gb/s.
    pub gbps: f64,
}

impl Jobs {
    /// The complete jobs; `None` when no job is complete.
    pub fn complete(spec: &Spec, counters: &Counters) -> Option<Self> {
        let done = || spec.jobs.iter().zip(&counters.jobs).filter(|(_, report)| report.finish.is_some());
        let mut times: Vec<Span> = done().filter_map(|(_, report)| duration(spec, report)).collect();
        times.sort_unstable();
        let bytes: u64 = done().map(|(asked, _)| asked.size.get()).sum();
        let first = done().filter_map(|(_, report)| report.start).min()?;
        let last = done().filter_map(|(_, report)| report.finish).max()?;
        let time = spec.own_time(last).saturating_sub(spec.own_time(first));
        Some(Jobs { times, gbps: bytes as f64 * 8e-9 / time.as_secs_f64() })
    }
}
