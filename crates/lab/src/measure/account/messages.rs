//! Table `message_account`: the time of messages, from when one was ready to when its receiver had all of it, divided
//! into the same causes as a flow's. It has the messages on the critical paths of jobs, and those that
//! `measure.account` names: many messages may wait side by side, so that the time of all is far more than the run's.

use super::Names;
use super::cause::{Cause, Step, Waiting, Where, Who};
use super::sums::{Sum, Sums};
use super::walk::{self, Stretch};
use crate::measure::job_path;
use crate::run::Counters;
use crate::table::{Column, Table};
use firstlight_sim::causes::{CauseReport, RecordId};
use firstlight_spec::Spec;
use firstlight_units::Time;
use std::collections::BTreeMap;

/// The table.
pub(super) fn table(names: &Names<'_>, counters: &Counters, causes: &CauseReport, chosen: &[bool]) -> Table {
    let hops: BTreeMap<(u32, Time), RecordId> =
        causes.deliveries.iter().map(|delivery| ((delivery.flow, delivery.at), delivery.hop)).collect();
    let on_paths = job_path::messages(names.spec, counters);
    let is_named = |number| names.spec.accounted.as_ref().is_some_and(|accounted| accounted.is_message(number));
    let (mut messages, mut stretches) = (vec![], vec![]);
    for (number, (message, report)) in names.spec.messages.list().iter().zip(&counters.messages).enumerate() {
        let Some((ready, complete)) = report.ready.zip(report.complete) else { continue };
        let is_chosen = message.flow.is_none_or(|flow| chosen[flow as usize]);
        if !(is_named(number) || is_chosen && on_paths.contains(&number)) {
            continue;
        }
        let start = (ready + message.delay * u64::from(names.spec.tables.time_scale)).min(complete);
        let hop = message.flow.and_then(|flow| hops.get(&(flow, complete)).copied()).unwrap_or(RecordId::NONE);
        let flow = message.flow.map_or(usize::MAX, |flow| flow as usize);
        messages.push((number, ready));
        stretches.push(Stretch { flow, start, end: if message.flow.is_some() { complete } else { start }, hop });
    }
    let begin = |which: usize| {
        let ((_, ready), Stretch { flow, start, .. }) = (messages[which], stretches[which]);
        computation(names.spec, flow, [ready, start])
    };
    let sums = walk::walk(names.index, &stretches, begin);
    let of_messages = messages.iter().zip(sums);
    let rows: Vec<(usize, Sum)> =
        of_messages.flat_map(|(message, (sums, _))| sums.into_iter().map(move |sum| (message.0, sum))).collect();
    let messages = Column::Integer(rows.iter().map(|(number, _)| *number as i64).collect());
    Table::new(
        "message_account",
        "one row for each complete message on the critical path of a job, of the flows that measure.account chooses, \
         or named by it, what it waited for, and cause: the times of a message add up to its time from when it was \
         ready until it was complete",
    )
    .with("message", "number of the message, as in table job_paths", messages)
    .names("waiting_for", "as in table account", &rows, |(_, sum)| sum.waiting, |waiting| waiting.name().into())
    .names(
        "cause",
        "as in table account; computation: its program computed before it",
        &rows,
        |(_, sum)| sum.cause,
        |cause| cause.name().into(),
    )
    .names("where", "as in table account", &rows, |(_, sum)| sum.place, |place| names.place(place).into())
    .names("who", "as in table account", &rows, |(_, sum)| sum.who, |who| names.who(who).into())
    .with("time_ps", "as in table account", Column::Integer(rows.iter().map(|(_, sum)| sum.time).collect()))
}

/// The time of a message in which its program computed, before it was written; `flow` has no host where there is none.
fn computation<'a>(spec: &Spec, flow: usize, [from, until]: [Time; 2]) -> Sums<'a> {
    let place = spec.flows.get(flow).map_or(Where::Nowhere, |flow| Where::Host(flow.src.0));
    let (waiting, cause) = (Waiting::Application, Cause::Computation);
    let mut sums = Sums::new(spec.tables.time_scale);
    sums.add(Step { from, until, waiting, cause, place, who: Who::Nobody, others: 0, lost: None });
    sums
}
