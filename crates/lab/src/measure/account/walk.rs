//! The walk back from a packet's arrival to the start: what released the packet, what released that, and so on.
//!
//! Walks of several flows go back side by side, some records at a time: records of the same time lie close to each
//! other in memory, and are read while they are at hand.

use super::cause::{Cause, Step, Waiting, Where, Who};
use super::index::Index;
use super::service_log::{Served, ServiceLog};
use super::steps::Steps;
use super::sums::{Sum, Sums};
use super::wait::{self, WaitPart, WaitParts};
use firstlight_sim::causes::{Departure, DepartureKind, Record, RecordId, Trigger};
use firstlight_transport::Alarms;
use firstlight_units::{Span, Time};

/// How many walks go side by side.
const TOGETHER: usize = 64;

/// The time of a flow, or a part of it: from a start to a delivery at an end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) flow: usize,
    pub(super) start: Time,
    pub(super) end: Time,
    /// The last hop of the packet that was delivered.
    pub(super) hop: RecordId,
}

/// A walk.
struct Walk<'a> {
    index: &'a Index<'a>,
    flow: usize,
    start: Time,
    waiting: Waiting,
    /// Up to when the time is divided, going back.
    at: Time,
    /// Where the walk goes on.
    next: RecordId,
    sums: Sums<'a>,
}

/// Departures by which walks go back before others do: what is near them fits into the processor's cache.
const PACE: usize = 2048;

/// Divides stretches of time. `begin` makes what the time of each is added to. Returns the sums and the parts that are
/// kept, in the order of the stretches.
pub(super) fn walk<'a>(
    index: &'a Index<'a>,
    stretches: &[Stretch],
    begin: impl Fn(usize) -> Sums<'a>,
) -> Vec<(Vec<Sum>, Option<Steps>)> {
    let mut order: Vec<usize> = (0..stretches.len()).collect();
    order.sort_by_key(|number| stretches[*number].end);
    let mut results: Vec<_> = stretches.iter().map(|_| None).collect();
    for numbers in order.rchunks(TOGETHER) {
        let mut walks: Vec<_> =
            numbers.iter().map(|number| Walk::new(index, stretches[*number], begin(*number))).collect();
        side_by_side(index, &mut walks);
        for (number, walk) in numbers.iter().zip(walks) {
            results[*number] = Some(walk.finish().into_sorted());
        }
    }
    results.into_iter().map(|result| result.expect("each stretch is in a chunk")).collect()
}

/// Lets walks go back side by side, to their starts.
fn side_by_side<'a>(index: &'a Index<'a>, walks: &mut [Walk<'a>]) {
    let departures = &index.report.departures;
    let last = walks.iter().map(|walk| walk.at).max().unwrap_or(Time::ZERO);
    let first = walks.iter().map(|walk| walk.start).min().unwrap_or(Time::ZERO);
    let mut before = departures.partition_point(|departure| departure.at < last);
    while before > PACE && departures[before - 1].at > first {
        before -= PACE;
        index.read_through(before..before + PACE);
        walks.iter_mut().for_each(|walk| walk.back_to(departures[before].at));
    }
    walks.iter_mut().for_each(|walk| walk.back_to(Time::ZERO));
}

impl<'a> Walk<'a> {
    fn new(index: &'a Index<'a>, stretch: Stretch, sums: Sums<'a>) -> Self {
        let Stretch { flow, start, end, hop } = stretch;
        let mut walk = Walk { index, flow, start, waiting: Waiting::Delivery, at: end, next: hop, sums };
        walk.read(hop, end);
        walk
    }

    /// Goes back until the time down to a moment is divided, or as far as records lead.
    fn back_to(&mut self, moment: Time) {
        while self.at > moment.max(self.start) {
            self.next = match self.next.record() {
                Record::Hop(hop) => self.pass(hop),
                Record::Departure(departure) => self.leave(departure),
                Record::None => return,
            };
        }
    }

    /// The sums. What records do not lead to is unknown.
    fn finish(mut self) -> Sums<'a> {
        if self.at > self.start {
            self.add(self.start, self.at, Cause::Unknown, Where::Nowhere, Who::Nobody, None);
        }
        self.sums
    }

    /// Adds a part before all others; what is before the start does not count.
    fn add(&mut self, from: Time, until: Time, cause: Cause, place: Where, who: Who, lost: Option<usize>) {
        let (from, waiting) = (from.max(self.start), self.waiting);
        let step = Step { from, until, waiting, cause, place, who, others: 0, lost };
        if step.from >= step.until {
            return;
        }
        self.at = step.from;
        self.sums.add(step);
    }

    /// The program reads what has arrived, where hosts have processors once these have worked.
    fn read(&mut self, delivery: RecordId, end: Time) {
        if let Record::Hop(hop) = delivery.record() {
            let host = Where::Host(self.index.departure(self.index.owner(hop)).dst.0);
            let cause = if self.index.report.processors { Cause::Processor } else { Cause::Reader };
            self.on_host(self.index.report.hops.get(hop).at, end, cause, host, None);
        }
    }

    /// Adds time on a host. Less than a nanosecond is what a kernel's clock cannot count.
    fn on_host(&mut self, from: Time, until: Time, cause: Cause, host: Where, lost: Option<usize>) {
        let cause = if until.saturating_since(from) < Span::from_ns(1) { Cause::Stack } else { cause };
        self.add(from, until, cause, host, Who::Nobody, lost);
    }

    /// A packet passes a place. Returns what was before.
    fn pass(&mut self, number: usize) -> RecordId {
        let hop = *self.index.report.hops.get(number);
        let code = self.index.report.hops.place(number);
        let (place, at) = (self.index.place(code), Where::Place(code));
        let [begins, ends] = self.index.service(place, hop);
        let arrived = ends + place.propagation;
        let queued = self.index.queued(number);
        let in_stack = queued + place.stack_before;
        self.add(arrived, hop.at, Cause::Stack, at, Who::Nobody, None);
        self.add(ends, arrived, Cause::Propagation, at, Who::Nobody, None);
        self.add(begins, ends, Cause::Serialization, at, Who::Nobody, None);
        wait::divide(self, self.index, number, in_stack, begins);
        self.add(queued, in_stack, Cause::Stack, at, Who::Nobody, None);
        hop.before
    }

    /// A packet leaves its host. Returns what released it.
    fn leave(&mut self, number: usize) -> RecordId {
        let departure = self.index.departure(number);
        let (released, copied) = (self.before_room(departure), self.index.copied(number));
        if let Some(original) = copied.filter(|_| !is_late_repair(released)) {
            return self.repair(departure, released, original);
        }
        let carries = self.index.is_of_sender(number, self.flow)
            && matches!(departure.sent, DepartureKind::Data | DepartureKind::Syn);
        if carries && departure.trigger == Trigger::Room {
            self.waiting = Waiting::InterfaceRoom;
        }
        self.add(released.at, departure.at, Cause::InterfaceRoom, Where::Host(departure.src.0), Who::Nobody, None);
        if carries {
            self.waiting = match copied {
                Some(_) => Waiting::of_window(released.window),
                None => Waiting::of(released.wait, released.window),
            };
        }
        self.released(released, departure.sent, Where::Host(departure.src.0))
    }

    /// The departure, or where it waited for room in the interface the moment at which it began to.
    fn before_room<'b>(&self, departure: &'b Departure) -> &'b Departure
    where
        'a: 'b,
    {
        match departure.cause.record() {
            Record::Departure(nothing) if departure.trigger == Trigger::Room => self.index.departure(nothing),
            _ => departure,
        }
    }

    /// A segment was sent again once its loss was found: the time since it was sent before was lost.
    fn repair(&mut self, departure: &Departure, released: &Departure, original: usize) -> RecordId {
        let (before, lost) = (self.index.departure(original), self.index.lost(original));
        let (place, who) = match self.index.loss(lost) {
            Some(loss) => (self.index.lost_at(loss), self.culprit(lost)),
            None => (Where::Nowhere, Who::Nobody),
        };
        self.waiting = Waiting::Repair;
        let mut until = released.at.max(before.at);
        self.add(until, departure.at, Cause::InterfaceRoom, Where::Host(departure.src.0), Who::Nobody, None);
        let alarms = released.alarms;
        if alarms.has(Alarms::REORDERING)
            && let Some(since) = self.moment(released.cause)
        {
            let since = since.max(before.at).min(until);
            self.add(since, until, Cause::Reordering, place, who, Some(lost));
            until = since;
        }
        let mut cause = of_timeout(alarms).unwrap_or(Cause::FastRecovery);
        if cause == Cause::FastRecovery
            && let Some((timer, at)) = self.shown_by(released)
            && at > before.at
        {
            self.add(at.min(until), until, cause, place, who, Some(lost));
            (cause, until) = (timer, at.min(until));
        }
        self.add(before.at, until, cause, place, who, Some(lost));
        self.leave(original)
    }

    /// The timer that has sent what the ACK answered that a departure followed, and when.
    fn shown_by(&self, released: &Departure) -> Option<(Cause, Time)> {
        let Record::Hop(hop) = released.cause.record() else { return None };
        let answered = self.index.answered_by(self.index.departure(self.index.owner(hop)))?;
        let Departure { alarms, at, .. } = *self.index.departure(answered);
        of_timeout(alarms).map(|cause| (cause, at))
    }

    /// Whose packets filled most of the queue that lost a packet.
    fn culprit(&self, departure: usize) -> Who {
        let held = self.index.loss(departure).map(|loss| self.index.held_at(loss)).unwrap_or_default();
        held.into_iter().max_by_key(|(_, bytes)| *bytes).map_or(Who::Nobody, |(who, _)| who)
    }

    /// What released a packet that repairs no loss, or the moment since when it waited for room.
    fn released(&mut self, departure: &Departure, sent: DepartureKind, host: Where) -> RecordId {
        let cause = match departure.trigger {
            Trigger::Arrival => Cause::Stack,
            Trigger::Processor => Cause::Processor,
            Trigger::Notice => Cause::Notice,
            Trigger::Other | Trigger::Room => return RecordId::NONE,
            // A flow's program connects at once.
            Trigger::Program if self.index.report.processors && sent == DepartureKind::Syn => Cause::Processor,
            Trigger::Program if sent == DepartureKind::Ack => Cause::Reader,
            Trigger::Program => Cause::Application,
            Trigger::Timer => of_alarms(departure.alarms, sent),
        };
        let lost = match (cause, departure.cause.record()) {
            (Cause::SynLoss, Record::Departure(before)) => Some(before),
            _ => None,
        };
        let since = self.moment(departure.cause).unwrap_or(self.start);
        self.on_host(since, departure.at, cause, host, lost);
        departure.cause
    }

    /// When a record was made.
    fn moment(&self, record: RecordId) -> Option<Time> {
        match record.record() {
            Record::Hop(hop) => Some(self.index.report.hops.get(hop).at),
            Record::Departure(departure) => Some(self.index.departure(departure).at),
            Record::None => None,
        }
    }
}

impl<'a> WaitParts<'a> for Walk<'a> {
    fn adds_up(&self, from: Time) -> bool {
        from >= self.start
    }

    fn push(&mut self, part: WaitPart) {
        let WaitPart { from, until, cause, place, who } = part;
        self.add(from, until, cause, place, who, None);
    }

    fn push_served(
        &mut self,
        [from, until]: [Time; 2],
        (cause, place): (Cause, Where),
        log: &'a ServiceLog,
        served: Served,
    ) {
        self.at = from;
        let (waiting, who, lost) = (self.waiting, Who::Nobody, None);
        self.sums.add_served(Step { from, until, waiting, cause, place, who, others: 0, lost }, log, served);
    }
}

/// Whether a segment that is sent again was known to be lost before, and the window or the pacer alone held it back.
fn is_late_repair(departure: &Departure) -> bool {
    let found = [Alarms::RETRANSMISSION, Alarms::TAIL_PROBE, Alarms::REORDERING];
    departure.repairs && !found.into_iter().any(|alarm| departure.alarms.has(alarm))
}

/// What a loss waits for until one of these timers finds it.
fn of_timeout(alarms: Alarms) -> Option<Cause> {
    let of = |(alarm, cause): (Alarms, Cause)| alarms.has(alarm).then_some(cause);
    [(Alarms::RETRANSMISSION, Cause::Timeout), (Alarms::TAIL_PROBE, Cause::TailProbe)].into_iter().find_map(of)
}

/// The cause of the time before timers released a packet.
fn of_alarms(alarms: Alarms, sent: DepartureKind) -> Cause {
    let order = [
        (Alarms::SYN, Cause::SynLoss),
        (Alarms::RETRANSMISSION, Cause::Timeout),
        (Alarms::TAIL_PROBE, Cause::TailProbe),
        (Alarms::WINDOW_PROBE, Cause::WindowProbe),
        (Alarms::REORDERING, Cause::Reordering),
        (Alarms::PACER, Cause::Pacing),
        (Alarms::INTERFACE, Cause::InterfaceRoom),
        (Alarms::ACK, Cause::DelayedAck),
    ];
    let is_ack = sent == DepartureKind::Ack && alarms.has(Alarms::ACK);
    let first = order.into_iter().find(|(alarm, _)| alarms.has(*alarm));
    if is_ack { Cause::DelayedAck } else { first.map_or(Cause::Unknown, |(_, cause)| cause) }
}
