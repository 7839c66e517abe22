//! Tables `account`, `account_events` and `message_account`: the time of each complete flow and message, divided into
//! causes.
//!
//! The walk begins with the packet that completed the flow and goes back: through the links that it passed, to what
//! released it at its host (an ACK, a timer, a write), through the links that this packet passed, and so on to the
//! flow's start. Each picosecond has one cause; the times of a flow's rows add up to its `fct_us` exactly. Where a
//! segment was sent again, the time since it was sent before is the loss's; where one waited for an ACK, the time has
//! the causes of the ACK's round trip, and `waiting_for` says why the segment needed that ACK.

mod cause;
mod index;
mod messages;
mod wait;
mod walk;

use crate::build::PathStep;
use crate::run::Counters;
use crate::table::{Column, Table};
use cause::{Step, Waiting, Where, Who};
use firstlight_net::Discipline;
use firstlight_sim::FlowReport;
use firstlight_sim::causes::{CauseReport, Delivery, Departure, Loss, LossPlace, PlaceKind, Sent};
use firstlight_spec::{Network, Spec};
use firstlight_units::{Span, Time};
use index::Index;
use std::collections::BTreeMap;

/// The parts of the time of one flow.
struct FlowAccount {
    flow: usize,
    start: Time,
    steps: Vec<Step>,
}

/// The tables; that of messages where there are some.
pub(super) fn tables(spec: &Spec, counters: &Counters, causes: &CauseReport) -> Vec<Table> {
    let index = Index::new(causes, &counters.flows);
    let accounts = accounts(counters, causes, &index);
    let names = Names { spec, index: &index };
    let mut tables = vec![account(&names, &accounts), events(&names, &slowest(spec, &accounts))];
    if !counters.messages.is_empty() {
        tables.push(messages::table(&names, counters, causes));
    }
    tables
}

/// The parts of the time of the slowest flows, of so many as table `account_events` has, for a timeline.
pub(crate) fn critical_paths(spec: &Spec, counters: &Counters) -> Vec<(usize, Vec<PathStep>)> {
    let Some(causes) = &counters.causes else { return vec![] };
    let index = Index::new(causes, &counters.flows);
    let (accounts, names) = (accounts(counters, causes, &index), Names { spec, index: &index });
    let step = |step: &Step| PathStep {
        from: step.from,
        until: step.until,
        cause: step.cause.name(),
        waiting_for: step.waiting.name(),
        place: names.place(step.place),
        who: names.who(step.who),
    };
    let of = |account: &&FlowAccount| (account.flow, account.steps.iter().map(step).collect());
    slowest(spec, &accounts).iter().map(of).collect()
}

/// The accounts of all complete flows.
fn accounts(counters: &Counters, causes: &CauseReport, index: &Index<'_>) -> Vec<FlowAccount> {
    let last: BTreeMap<u32, &Delivery> = causes.deliveries.iter().map(|delivery| (delivery.flow, delivery)).collect();
    let of = |(flow, report): (usize, &FlowReport)| {
        let (delivery, end) = (last.get(&(flow as u32))?, report.finish?);
        let steps = walk::walk(index, flow, report.start, end, delivery.hop);
        Some(FlowAccount { flow, start: report.start, steps })
    };
    counters.flows.iter().enumerate().filter_map(of).collect()
}

/// The accounts of the flows that took longest, in the order of their numbers.
fn slowest<'a>(spec: &Spec, accounts: &'a [FlowAccount]) -> Vec<&'a FlowAccount> {
    let length = |account: &&FlowAccount| account.steps.last().map_or(Time::ZERO, |last| last.until) - account.start;
    let mut all: Vec<&FlowAccount> = accounts.iter().collect();
    all.sort_by_key(|account| (std::cmp::Reverse(length(account)), account.flow));
    all.truncate(spec.measure.account_events as usize);
    all.sort_by_key(|account| account.flow);
    all
}

/// What causes, places and others are called.
struct Names<'a> {
    spec: &'a Spec,
    index: &'a Index<'a>,
}

impl Names<'_> {
    /// Moments in the experiment's own time, in whole picoseconds: parts still add up to the whole.
    fn own(&self, at: Time) -> i64 {
        i64::try_from(self.spec.own_time(at).as_ps()).unwrap_or(i64::MAX)
    }

    fn time(&self, step: &Step) -> i64 {
        self.own(step.until) - self.own(step.from)
    }

    fn place(&self, place: Where) -> String {
        match place {
            Where::Nowhere => String::new(),
            Where::Host(host) => format!("host{host}"),
            Where::Place(code) => self.index.place(code).name.clone(),
            Where::Voq(src, dst) => format!("voq.{src}.{dst}"),
        }
    }

    fn who(&self, who: Who) -> String {
        match who {
            Who::Nobody => String::new(),
            Who::Flow(flow) => format!("flow {flow}"),
            Who::Datagrams => "datagrams".into(),
            Who::Notifications => "notifications".into(),
            Who::Root(point) => self.index.report.points[point as usize].clone(),
            Who::Circle => "circle".into(),
            Who::PauseFrames => "pause frames".into(),
        }
    }

    /// The packet of a departure.
    fn packet(&self, departure: usize) -> String {
        let Departure { sent, payload, .. } = self.index.departure(departure);
        match (sent, self.index.first_byte(departure)) {
            (Sent::Syn, _) => "a SYN".into(),
            (Sent::Data, Some((flow, first))) => {
                let end = first + u64::from(*payload);
                let is_last = self.spec.flows[flow].size.is_some_and(|size| size.get() == end);
                format!("bytes {first} to {}{}", end - 1, if is_last { " (its last)" } else { "" })
            }
            _ => "a packet".into(),
        }
    }

    /// Why a queue dropped a packet.
    fn why(&self, loss: &Loss) -> &'static str {
        let drops_early = |discipline: &Discipline| discipline.red.is_some() || discipline.drop_non_ect > 0.0;
        let early = match &self.spec.network {
            Network::Graph(graph) => graph.switch.disciplines().any(drops_early),
            Network::Hybrid(hybrid) => drops_early(&hybrid.voq.discipline),
        };
        match loss.place {
            LossPlace::Voq(_) if self.index.had_waited(loss) => "its VOQ became small",
            LossPlace::Queue(code) if self.index.place(code).kind == PlaceKind::Adapter => {
                "the receive buffer was full"
            }
            _ if early => "the queue was full, or dropped it early",
            _ => "the queue was full",
        }
    }

    /// What happened to the packet of a departure that had to be sent again.
    fn loss(&self, departure: usize) -> String {
        let Some(loss) = self.index.loss(departure) else {
            return format!("{} not lost: the ACK was late, or lost", self.packet(departure));
        };
        let at = format!("{:.3} us", Span::from_ps(self.own(loss.at) as u64).as_us_f64());
        let place = self.place(self.index.lost_at(loss));
        if loss.place == LossPlace::Injected {
            return format!("{} lost at {place} at {at}: an injected fault", self.packet(departure));
        }
        let held = self.index.held_at(loss);
        let told = format!("{} dropped at {place} at {at}: {}", self.packet(departure), self.why(loss));
        let (mut flows, mut workloads) = (BTreeMap::<String, u64>::new(), BTreeMap::<String, u64>::new());
        for (who, bytes) in &held {
            *flows.entry(self.who(*who)).or_default() += bytes;
            let workload = match who {
                Who::Flow(flow) => self.spec.workload_name(self.spec.flows[*flow as usize].entry).to_string(),
                other => self.who(*other),
            };
            *workloads.entry(workload).or_default() += bytes;
        }
        match (most_of(flows), most_of(workloads)) {
            (Some(flow), Some(workload)) => {
                format!("{told}, behind {} B, {workload}, {flow}", held.values().sum::<u64>())
            }
            _ => told,
        }
    }
}

/// Whose most of some bytes are, and their part of all.
fn most_of(bytes: BTreeMap<String, u64>) -> Option<String> {
    let all: u64 = bytes.values().sum();
    let (name, most) = bytes.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    Some(format!("{:.0} % of them of {name}", most as f64 * 100.0 / all as f64))
}

/// One row for each flow and cause.
fn account(names: &Names<'_>, accounts: &[FlowAccount]) -> Table {
    type Row = (usize, Waiting, cause::Cause, Where, Who);
    let mut sums: BTreeMap<Row, i64> = BTreeMap::new();
    for account in accounts {
        for step in &account.steps {
            let row = (account.flow, step.waiting, step.cause, step.place, step.who);
            *sums.entry(row).or_default() += names.time(step);
        }
    }
    let rows: Vec<(Row, i64)> = sums.into_iter().collect();
    Table::new(
        "account",
        "one row for each complete flow, what it waited for, and cause: the times of a flow add up to its completion \
         time",
    )
    .count("flow", "number of the flow, as in table flows", &rows, |(row, _)| row.0 as u64)
    .text(
        "waiting_for",
        "what the flow's next data waited for; delivery: nothing, the last data were under way",
        &rows,
        |(row, _)| row.1.name().into(),
    )
    .text("cause", "what took the time", &rows, |(row, _)| row.2.name().into())
    .text(
        "where",
        "at which port, link, VOQ or host; for a loss where the packet was dropped; empty where that has no meaning",
        &rows,
        |(row, _)| names.place(row.3),
    )
    .text(
        "who",
        "queueing: whose packets stood ahead; pause: its root, or circle; a loss: whose packets filled most of the \
         queue",
        &rows,
        |(row, _)| names.who(row.4),
    )
    .with(
        "time_ps",
        "how long, in whole picoseconds of the experiment's time",
        Column::Integer(rows.iter().map(|row| row.1).collect()),
    )
}

/// One row for each part of the time of the slowest flows.
fn events(names: &Names<'_>, accounts: &[&FlowAccount]) -> Table {
    let of = |account: &&FlowAccount| {
        let start = names.own(account.start);
        account.steps.iter().map(|step| (account.flow, names.own(step.from) - start, *step)).collect::<Vec<_>>()
    };
    let rows: Vec<(usize, i64, Step)> = accounts.iter().flat_map(of).collect();
    Table::new(
        "account_events",
        "one row for each part of the time of the slowest flows (measure.account_events), in order",
    )
    .count("flow", "number of the flow, as in table flows", &rows, |row| row.0 as u64)
    .with("at_ps", "when it began, from the flow's start", Column::Integer(rows.iter().map(|row| row.1).collect()))
    .with("time_ps", "how long it lasted", Column::Integer(rows.iter().map(|row| names.time(&row.2)).collect()))
    .text("waiting_for", "as in table account", &rows, |row| row.2.waiting.name().into())
    .text("cause", "as in table account", &rows, |row| row.2.cause.name().into())
    .text("where", "as in table account", &rows, |row| names.place(row.2.place))
    .text("who", "as in table account", &rows, |row| names.who(row.2.who))
    .text("detail", "for a loss, what happened to the packet", &rows, |row| {
        row.2.lost.map_or_else(String::new, |departure| names.loss(departure))
    })
}
