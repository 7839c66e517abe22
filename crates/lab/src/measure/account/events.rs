//! Table `account_events`: the parts of the time of the slowest flows, one by one.

use super::{CompleteFlow, Names};
use crate::table::{Column, NamedRows, Table};

/// One row for each part of the time of these flows, in order.
pub(super) fn table(names: &Names<'_>, flows: &[CompleteFlow]) -> Table {
    let (mut numbers, mut at, mut time) = (vec![], vec![], vec![]);
    let (mut waiting, mut causes) = (NamedRows::new(), NamedRows::new());
    let (mut places, mut whos, mut details) = (NamedRows::new(), NamedRows::new(), NamedRows::new());
    for flow in flows {
        let start = names.own(flow.start);
        for step in flow.steps(names.index) {
            numbers.push(flow.flow as i64);
            at.push(names.own(step.from) - start);
            time.push(names.time(&step));
            waiting.push(step.waiting, |waiting| waiting.name().into());
            causes.push(step.cause, |cause| cause.name().into());
            places.push(step.place, |place| names.place(place).into());
            whos.push(step.who, |who| names.who(who).into());
            details.push(step.lost, |lost| lost.map_or_else(String::new, |departure| names.loss(departure)).into());
        }
    }
    Table::new(
        "account_events",
        "one row for each part of the time of the slowest flows (measure.account_events), in order",
    )
    .with("flow", "number of the flow, as in table flows", Column::Integer(numbers))
    .with("at_ps", "when it began, from the flow's start", Column::Integer(at))
    .with("time_ps", "how long it lasted", Column::Integer(time))
    .with("waiting_for", "as in table account", waiting.column())
    .with("cause", "as in table account", causes.column())
    .with("where", "as in table account", places.column())
    .with("who", "as in table account", whos.column())
    .with("detail", "for a loss, what happened to the packet", details.column())
}
