//! Table `account_events`: the parts of the time of the slowest flows, one by one.

use super::Names;
use super::cause::Step;
use super::walk::{self, Parts, Stretch};
use crate::table::{Column, NamedRows, Table};

/// Flows whose time is divided at once.
const TOGETHER: usize = <Vec<Step> as Parts<'_>>::TOGETHER;

/// Most rows for which memory is reserved before it is known how many there are.
const MOST_RESERVED: usize = 1 << 22;

/// One row for each part of the time of these flows, in order.
pub(super) fn table(names: &Names<'_>, flows: &[Stretch]) -> Table {
    let (mut numbers, mut at, mut time) = (vec![], vec![], vec![]);
    let (mut waiting, mut causes) = (NamedRows::new(), NamedRows::new());
    let (mut places, mut whos, mut details) = (NamedRows::new(), NamedRows::new(), NamedRows::new());
    // Memory of steps is used again.
    let mut spare: Vec<Vec<Step>> = vec![];
    for (chunk, some) in flows.chunks(TOGETHER).enumerate() {
        let all = walk::walk(names.index, some, |_| spare.pop().unwrap_or_default(), |steps: Vec<Step>| steps);
        if chunk == 0 {
            let rows = all.iter().map(Vec::len).sum::<usize>() / some.len() * flows.len() * 5 / 4;
            let rows = rows.min(MOST_RESERVED);
            [&mut numbers, &mut at, &mut time].into_iter().for_each(|column| column.reserve(rows));
        }
        for (flow, mut steps) in some.iter().zip(all) {
            let start = names.own(flow.start);
            for step in steps.drain(..).rev() {
                numbers.push(flow.flow as i64);
                at.push(names.own(step.from) - start);
                time.push(names.time(&step));
                waiting.push(step.waiting, |waiting| waiting.name().into());
                causes.push(step.cause, |cause| cause.name().into());
                places.push(step.place, |place| names.place(place).into());
                whos.push(step.who, |who| names.who(who).into());
                details.push(step.lost, |lost| lost.map_or_else(String::new, |lost| names.loss(lost)).into());
            }
            spare.push(steps);
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
