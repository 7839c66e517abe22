//! Table `account_events`: the parts of the time of the slowest flows, one by one.

use super::Names;
use super::cause::Step;
use super::walk::Stretch;
use crate::table::{Column, NamedRows, Table};

/// One row for each part of the time of these flows, in order. Parts of a flow begin with the last.
pub(super) fn table(names: &Names<'_>, flows: Vec<(Stretch, Vec<Step>)>) -> Table {
    let rows = flows.iter().map(|(_, steps)| steps.len()).sum();
    let column = || Vec::with_capacity(rows);
    let (mut numbers, mut at, mut time, mut others) = (column(), column(), column(), column());
    let (mut waiting, mut causes) = (NamedRows::with_capacity(rows), NamedRows::with_capacity(rows));
    let (mut places, mut whos) = (NamedRows::with_capacity(rows), NamedRows::with_capacity(rows));
    let mut details = NamedRows::with_capacity(rows);
    for (flow, steps) in flows {
        let start = names.own(flow.start);
        for step in steps.into_iter().rev() {
            numbers.push(flow.flow as i64);
            at.push(names.own(step.from) - start);
            time.push(names.time(&step));
            waiting.push(step.waiting, |waiting| waiting.name().into());
            causes.push(step.cause, |cause| cause.name().into());
            places.push(step.place, |place| names.place(place).into());
            whos.push(step.who, |who| names.who(who).into());
            others.push(i64::from(step.others));
            let loss = |(lost, cause): (Option<usize>, _)| lost.map(|lost| names.loss(lost, cause)).unwrap_or_default();
            details.push((step.lost, step.cause), |lost| loss(lost).into());
        }
    }
    Table::new(
        "account_events",
        "one row for each part of the time of the slowest flows (measure.account_events), in order; a wait in a queue \
         is one part",
    )
    .with("flow", "number of the flow, as in table flows", Column::Integer(numbers))
    .with("at_ps", "when it began, from the flow's start", Column::Integer(at))
    .with("time_ps", "how long it lasted", Column::Integer(time))
    .with("waiting_for", "as in table account", waiting.column())
    .with("cause", "as in table account", causes.column())
    .with("where", "as in table account", places.column())
    .with(
        "who",
        "as in table account; of a wait behind packets of several flows the one that took most of it",
        whos.column(),
    )
    .with("others", "how many other flows' packets stood ahead too", Column::Integer(others))
    .with("detail", "for a loss, what happened to the packet", details.column())
}
