//! Table `jobs`: one row for each job of a workload of messages, in the order of the experiment.
//!
//! A job runs from the moment at which its first message may be sent to the moment at which its last one is complete.

use super::critical_path::least_times;
use super::numbers;
use crate::run::Counters;
use crate::spec::{Job, Spec};
use crate::table::{Column, Table};
use firstlight_messages::JobReport;
use firstlight_units::Span;

/// All jobs.
pub(super) fn table(spec: &Spec, counters: &Counters) -> Table {
    let rows: Vec<(&Job, &JobReport)> = spec.jobs.iter().zip(&counters.jobs).collect();
    let start = |job: &JobReport| job.start.map(|start| spec.own_time(start).as_us_f64());
    Table::new("jobs", "one row for each job: a file that is written, a reducer that fetches its input, a query, a step of an application, an application")
        .text("workload", "the workload's name", &rows, |(asked, _)| spec.workload_name(asked.entry).to_string())
        .with("job", "number of the job, from 0 in its workload", Column::Integer(numbers_within(&spec.jobs)))
        .number("start_us", "when its first message could be sent; NaN if that never was", &rows, |(_, told)| {
            start(told).unwrap_or(f64::NAN)
        })
        .number("duration_us", "until its last message was complete; NaN if it never was", &rows, |(_, told)| {
            duration(spec, told).map_or(f64::NAN, Span::as_us_f64)
        })
        .count("size_bytes", "what it is about: the file's size, the reducer's input, the replies to a query, what an application writes or sends", &rows, |(asked, _)| {
            asked.size.get()
        })
        .count("sent_bytes", "what its messages have, replicas and calls included", &rows, |(_, told)| told.bytes.get())
        .count("messages", "how many messages it has", &rows, |(_, told)| u64::from(told.messages))
        .with(
            "throughput_gbps",
            "size_bytes over duration_us; NaN if it is not complete",
            numbers(rows.iter().map(|(asked, told)| {
                duration(spec, told).map_or(f64::NAN, |time| asked.size.get() as f64 * 8e-9 / time.as_secs_f64())
            })),
        )
        .with(
            "slowdown",
            "duration_us over the least that its messages take without any other, one after another where they must; NaN where that is \
             not known",
            numbers(slowdowns(spec, counters)),
        )
}

/// Each job's time over its least one.
pub(super) fn slowdowns(spec: &Spec, counters: &Counters) -> Vec<f64> {
    let of = |(told, least): (&JobReport, Option<Span>)| match (duration(spec, told), least) {
        (Some(time), Some(least)) if !least.is_zero() => time.as_secs_f64() / least.as_secs_f64(),
        _ => f64::NAN,
    };
    counters.jobs.iter().zip(least_times(spec)).map(of).collect()
}

/// Jobs are numbered workload by workload, and stand so.
fn numbers_within(jobs: &[Job]) -> Vec<i64> {
    jobs.chunk_by(|a, b| a.entry == b.entry).flat_map(|own| 0..own.len() as i64).collect()
}

/// How long a complete job took, in the experiment's own time.
fn duration(spec: &Spec, job: &JobReport) -> Option<Span> {
    Some(spec.own_time(job.finish?).saturating_sub(spec.own_time(job.start?)))
}

/// The complete jobs as a whole.
pub(super) struct Jobs {
    /// How long each took, growing.
    pub times: Vec<Span>,
    /// What they are about, over the time from the first start to the last end.
    pub gbps: f64,
}

impl Jobs {
    /// None when no job is complete.
    pub fn complete(spec: &Spec, counters: &Counters) -> Option<Self> {
        let done = || spec.jobs.iter().zip(&counters.jobs).filter(|(_, told)| told.finish.is_some());
        let mut times: Vec<Span> = done().filter_map(|(_, told)| duration(spec, told)).collect();
        times.sort_unstable();
        let bytes: u64 = done().map(|(asked, _)| asked.size.get()).sum();
        let first = done().filter_map(|(_, told)| told.start).min()?;
        let last = done().filter_map(|(_, told)| told.finish).max()?;
        let time = spec.own_time(last).saturating_sub(spec.own_time(first));
        Some(Jobs { times, gbps: bytes as f64 * 8e-9 / time.as_secs_f64() })
    }
}
