//! Table `message_account`: the time of each complete message, from when it was ready to when its receiver had all of
//! it, divided into the same causes as a flow's.

use super::Names;
use super::cause::{Cause, Step, Waiting, Where, Who};
use super::index::Index;
use super::sums::{Sum, Sums};
use super::walk::{self, Parts};
use crate::run::Counters;
use crate::table::{Column, Table};
use firstlight_sim::causes::{CauseReport, RecordId};
use firstlight_spec::Spec;
use firstlight_units::Time;
use std::collections::BTreeMap;

/// The table.
pub(super) fn table(names: &Names<'_>, counters: &Counters, causes: &CauseReport) -> Table {
    let hops: BTreeMap<(u32, Time), RecordId> =
        causes.deliveries.iter().map(|delivery| ((delivery.flow, delivery.at), delivery.hop)).collect();
    let mut rows: Vec<(usize, Sum)> = vec![];
    let list = names.spec.messages.list();
    for (number, report) in counters.messages.iter().enumerate() {
        let Some((ready, complete)) = report.ready.zip(report.complete) else { continue };
        let flow = list[number].flow;
        let delivery = flow.and_then(|flow| hops.get(&(flow, complete)).copied());
        let sums = sums(names.spec, names.index, number, [ready, complete], delivery);
        rows.extend(sums.into_iter().map(|sum| (number, sum)));
    }
    let messages = Column::Integer(rows.iter().map(|(number, _)| *number as i64).collect());
    Table::new(
        "message_account",
        "one row for each complete message, what it waited for, and cause: the times of a message add up to its time \
         from when it was ready until it was complete",
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

/// The time of a message between two moments by its causes; `delivery` is the hop of the packet that completed it.
fn sums(
    spec: &Spec,
    index: &Index<'_>,
    number: usize,
    [ready, complete]: [Time; 2],
    delivery: Option<RecordId>,
) -> Vec<Sum> {
    let message = &spec.messages.list()[number];
    let written = (ready + message.delay * u64::from(spec.time_scale)).min(complete);
    let place = message.flow.map_or(Where::Nowhere, |flow| Where::Host(spec.flows[flow as usize].src.0));
    let (waiting, cause) = (Waiting::Application, Cause::Computation);
    let mut sums = Sums::new(spec.time_scale);
    sums.add(Step { from: ready, until: written, waiting, cause, place, who: Who::Nobody, lost: None });
    if let Some(flow) = message.flow {
        let hop = delivery.unwrap_or(RecordId::NONE);
        sums = walk::walk(index, flow as usize, [written, complete], hop, sums);
    }
    sums.into_sorted()
}
