//! Tables `account`, `account_events` and `message_account`: the time of each complete flow and message, divided into
//! causes.
//!
//! The walk begins with the packet that completed the flow and goes back: through the links that it passed, to what
//! released it at its host (an ACK, a timer, a write), through the links that this packet passed, and so on to the
//! flow's start. Each picosecond has one cause; the times of a flow's rows add up to its `fct_us` exactly. Where a
//! segment was sent again, the time since it was sent before is the loss's; where one waited for an ACK, the time has
//! the causes of the ACK's round trip, and `waiting_for` says why the segment needed that ACK.

mod cause;
mod events;
mod index;
mod messages;
mod service_log;
mod steps;
mod sums;
mod wait;
mod walk;

use crate::build::PathStep;
use crate::run::Counters;
use crate::table::{Column, Table};
use cause::{Cause, Where, Who};
use firstlight_net::Discipline;
use firstlight_net::fabric::{mice_voq_name, voq_name};
use firstlight_sim::FlowReport;
use firstlight_sim::causes::{CauseReport, Completion, Departure, DepartureKind, Loss, LossPlace, PlaceKind};
use firstlight_spec::{Network, Spec};
use firstlight_units::{Span, Time};
use index::Index;
use std::collections::{BTreeMap, BTreeSet};
use steps::{Part, StepName, Steps};
use sums::{Sum, Sums};
use walk::Stretch;

/// The tables, of the flows that `measure.account` chooses; that of messages where there are some.
pub(super) fn tables(spec: &Spec, counters: &Counters, causes: &CauseReport) -> Vec<Table> {
    let index = Index::new(causes, &counters.flows, spec.tables.time_scale);
    let names = Names { spec, index: &index };
    let (flows, chosen) = accounted(spec, counters, causes);
    let with_steps: BTreeSet<usize> = slowest(&flows, events(spec)).into_iter().map(|flow| flow.flow).collect();
    let begin = |which: usize| Sums::with_steps(spec.tables.time_scale, with_steps.contains(&flows[which].flow));
    let (mut sums, mut steps) = (vec![], vec![]);
    for (flow, (of_flow, parts)) in flows.iter().zip(walk::walk(&index, &flows, begin)) {
        sums.extend(of_flow.into_iter().map(|sum| (flow.flow, sum)));
        steps.extend(parts.map(|parts| (*flow, parts)));
    }
    let mut tables = vec![account(&names, &sums), events::table(&names, &steps)];
    if !counters.messages.is_empty() {
        tables.push(messages::table(&names, counters, causes, &chosen));
    }
    tables
}

/// Hands over the parts of the time of the slowest flows, of so many as table `account_events` has, for a timeline.
pub(crate) fn critical_paths(spec: &Spec, counters: &Counters, mut add: impl FnMut(usize, &[PathStep])) {
    let Some(causes) = &counters.causes else { return };
    let index = Index::new(causes, &counters.flows, spec.tables.time_scale);
    let names = Names { spec, index: &index };
    let step = |part: Part, StepName { waiting, cause, place, who }: StepName| PathStep {
        from: part.from,
        until: part.until,
        cause: cause.name(),
        waiting_for: waiting.name(),
        place: names.place(place),
        who: names.behind(who, part.others),
    };
    let flows = slowest(&accounted(spec, counters, causes).0, events(spec));
    let all = walk::walk(&index, &flows, |_| Sums::with_steps(spec.tables.time_scale, true));
    for (flow, (_, steps)) in flows.iter().zip(&all) {
        let of_flow = |steps: &Steps| steps.parts().map(|part| step(part, steps.names()[part.name])).collect();
        add(flow.flow, &steps.as_ref().map_or(vec![], of_flow));
    }
}

/// The complete flows that have accounts, in the order of their numbers, and whether each flow has one once complete.
fn accounted(spec: &Spec, counters: &Counters, causes: &CauseReport) -> (Vec<Stretch>, Vec<bool>) {
    let mut flows = complete_flows(counters, causes);
    let chosen = chosen(spec, &flows);
    flows.retain(|flow| chosen[flow.flow]);
    (flows, chosen)
}

/// All complete flows, in the order of their numbers.
fn complete_flows(counters: &Counters, causes: &CauseReport) -> Vec<Stretch> {
    let last: BTreeMap<u32, &Completion> = causes.deliveries.iter().map(|delivery| (delivery.flow, delivery)).collect();
    let of = |(flow, report): (usize, &FlowReport)| {
        let (delivery, end) = (last.get(&(flow as u32))?, report.finish?);
        Some(Stretch { flow, start: report.start, end, hop: delivery.hop })
    };
    counters.flows.iter().enumerate().filter_map(of).collect()
}

/// Whether `measure.account` chooses each flow, of which `flows` are complete.
fn chosen(spec: &Spec, flows: &[Stretch]) -> Vec<bool> {
    let Some(accounted) = &spec.accounted else { return vec![false; spec.flows.len()] };
    let mut chosen: Vec<bool> = (0..spec.flows.len()).map(|flow| accounted.is_named(flow)).collect();
    slowest(flows, accounted.slowest()).into_iter().for_each(|flow| chosen[flow.flow] = true);
    chosen
}

/// The `count` flows that took longest, in the order of their numbers.
fn slowest(flows: &[Stretch], count: usize) -> Vec<Stretch> {
    let mut all = flows.to_vec();
    all.sort_by_key(|flow| (std::cmp::Reverse(flow.end - flow.start), flow.flow));
    all.truncate(count);
    all.sort_by_key(|flow| flow.flow);
    all
}

/// The number of flows of which each part of the time is a row.
fn events(spec: &Spec) -> usize {
    spec.tables.measure.account_events as usize
}

/// What causes, places and others are called.
struct Names<'a> {
    spec: &'a Spec,
    index: &'a Index<'a>,
}

impl Names<'_> {
    fn own(&self, at: Time) -> i64 {
        i64::try_from(self.index.own(at)).unwrap_or(i64::MAX)
    }

    fn place(&self, place: Where) -> String {
        match place {
            Where::Nowhere => String::new(),
            Where::Host(host) => format!("host{host}"),
            Where::Place(code) => self.index.place(code).name.clone(),
            Where::Voq(src, dst) => voq_name(src.into(), dst.into()),
            Where::MiceVoq(src, dst) => mice_voq_name(&voq_name(src.into(), dst.into())),
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

    /// Who was the cause of a part of the time, and how many others.
    fn behind(&self, who: Who, others: u32) -> String {
        if others == 0 { self.who(who) } else { format!("{} and {others} more", self.who(who)) }
    }

    /// The packet of a departure.
    fn packet(&self, departure: usize) -> String {
        let left @ Departure { sent, payload, .. } = self.index.departure(departure);
        if let Some(answered) = self.index.answered_by(left) {
            return format!("the ACK of {}", self.packet(answered));
        }
        match (sent, self.index.first_byte(departure)) {
            (DepartureKind::Syn, _) => "a SYN".into(),
            (DepartureKind::Data, Some((flow, first))) => {
                let end = first + u64::from(*payload);
                let is_last = self.spec.flows[flow].size.is_some_and(|size| size.get() == end);
                format!("bytes {first} to {}{}", end - 1, if is_last { " (its last)" } else { "" })
            }
            _ => "a packet".into(),
        }
    }

    /// Why a queue dropped a packet.
    fn why(&self, loss: &Loss) -> &'static str {
        let drops_early = |queue: &Discipline| queue.has_dropping_table() || queue.drop_non_ect > 0.0;
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

    /// What happened to the packet of a departure that was retransmitted, and the back-off of the timeout that
    /// retransmitted it.
    fn loss(&self, departure: usize, cause: Cause) -> String {
        let fate = self.fate(departure);
        let sent = self.index.answered_by(self.index.departure(departure)).unwrap_or(departure);
        match self.index.timeouts(sent) {
            before @ 1.. if matches!(cause, Cause::Timeout | Cause::SynLoss) => {
                format!("{fate}; timeout {} in a row (back-off {before})", before + 1)
            }
            _ => fate,
        }
    }

    /// What happened to the packet of a departure.
    fn fate(&self, departure: usize) -> String {
        let Some(loss) = self.index.loss(departure) else {
            return format!("{} not lost: the ACK was late, or lost", self.packet(departure));
        };
        let at = format!("{:.3} us", Span::from_ps(self.own(loss.at) as u64).as_us_f64());
        let place = self.place(self.index.lost_at(loss));
        if loss.place == LossPlace::Injected {
            return format!("{} lost at {place} at {at}: an injected fault", self.packet(departure));
        }
        let held = self.index.held_at(loss);
        let drop = format!("{} dropped at {place} at {at}: {}", self.packet(departure), self.why(loss));
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
                format!("{drop}, behind {} B, {workload}, {flow}", held.values().sum::<u64>())
            }
            _ => drop,
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
fn account(names: &Names<'_>, rows: &[(usize, Sum)]) -> Table {
    Table::new(
        "account",
        "one row for each complete flow that measure.account chooses, what it waited for, and cause: the times of a \
         flow add up to its completion time",
    )
    .count("flow", "number of the flow, as in table flows", rows, |(flow, _)| *flow as u64)
    .names(
        "waiting_for",
        "what the flow's next data waited for; delivery: nothing, the last data were under way",
        rows,
        |(_, sum)| sum.waiting,
        |waiting| waiting.name().into(),
    )
    .names("cause", "what took the time", rows, |(_, sum)| sum.cause, |cause| cause.name().into())
    .names(
        "where",
        "at which port, link, VOQ or host; for a loss where the packet was dropped; empty where that has no meaning",
        rows,
        |(_, sum)| sum.place,
        |place| names.place(place).into(),
    )
    .names(
        "who",
        "queueing: whose packets stood ahead; pause: its root, or circle; a loss: whose packets filled most of the \
         queue",
        rows,
        |(_, sum)| sum.who,
        |who| names.who(who).into(),
    )
    .with(
        "time_ps",
        "how long, in whole picoseconds of the experiment's time",
        Column::Integer(rows.iter().map(|(_, sum)| sum.time).collect()),
    )
}
