//! Table `account_events`: the parts of the time of the slowest flows, one by one.

use super::Names;
use super::cause::Cause;
use super::steps::{StepName, Steps};
use super::walk::Stretch;
use crate::table::{Column, NamedRows, Table};

/// One row for each part of the time of these flows, in order.
pub(super) fn table(names: &Names<'_>, flows: &[(Stretch, Steps)]) -> Table {
    let rows = flows.iter().map(|(_, steps)| steps.len()).sum();
    let column = || Vec::with_capacity(rows);
    let (mut numbers, mut at, mut time, mut others) = (column(), column(), column(), column());
    let (mut waiting, mut causes) = (NamedRows::with_capacity(rows), NamedRows::with_capacity(rows));
    let (mut places, mut whos) = (NamedRows::with_capacity(rows), NamedRows::with_capacity(rows));
    let mut details = NamedRows::with_capacity(rows);
    let loss = |lost: Option<(usize, Cause)>| lost.map(|(lost, cause)| names.loss(lost, cause)).unwrap_or_default();
    for (flow, steps) in flows {
        let start = names.own(flow.start);
        let mut codes = |name: &StepName| {
            [
                waiting.code(name.waiting, |waiting| waiting.name().into()),
                causes.code(name.cause, |cause| cause.name().into()),
                places.code(name.place, |place| names.place(place).into()),
                whos.code(name.who, |who| names.who(who).into()),
            ]
        };
        let codes: Vec<[u32; 4]> = steps.names().iter().map(&mut codes).collect();
        for part in steps.parts() {
            let (from, until) = (names.own(part.from), names.own(part.until));
            numbers.push(flow.flow as i64);
            at.push(from - start);
            time.push(until - from);
            let [of_waiting, of_cause, of_place, of_who] = codes[part.name];
            waiting.push_code(of_waiting);
            causes.push_code(of_cause);
            places.push_code(of_place);
            whos.push_code(of_who);
            others.push(i64::from(part.others));
            let lost = part.lost.map(|lost| (lost, steps.names()[part.name].cause));
            details.push(lost, |lost| loss(lost).into());
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
