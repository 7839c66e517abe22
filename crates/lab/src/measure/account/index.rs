//! The records of a run, arranged for walks through them.

use super::cause::{Where, Who};
use super::service_log::ServiceLog;
use firstlight_net::HostId;
use firstlight_sim::causes::{
    CauseReport, Change, Departure, DepartureKind, Hop, Loss, LossPlace, Paused, Place, PlaceKind, Record, RecordId,
    Trigger,
};
use firstlight_sim::{FIRST_PORT, FlowReport};
use firstlight_transport::Alarms;
use firstlight_units::{Span, Time};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;

/// What the schedule says of a pair of racks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PairState {
    /// The packet network carries the pair's packets.
    PacketPath,
    /// The circuit switch reconfigures: nothing carries the pair's packets.
    Night,
    /// A circuit carries the pair's packets.
    Day,
}

/// The service of a packet by a transmitter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    pub(super) begins: Time,
    pub(super) ends: Time,
    /// Whose packet it was.
    pub(super) who: Who,
    size: u16,
    hop: usize,
}

/// What a packet was: less to read than its departure, where the packets of a place are read one after the other.
#[derive(Clone, Copy, Debug)]
struct PacketOwner {
    /// A small number for whose packet it was: of the flow, or of none.
    whose: u32,
    /// IP length in bytes.
    size: u16,
}

impl Who {
    /// Whose packet it was, by [`PacketOwner::whose`].
    fn of_number(number: u32) -> Self {
        match number {
            0 => Who::Datagrams,
            1 => Who::Notifications,
            number => Who::Flow(number - 2),
        }
    }
}

/// In place of the end of a flow: a datagram, or a packet of no flow.
const NO_END: u32 = u32::MAX;
/// In place of the end of a flow: a notification of QCN.
const NOTIFICATION: u32 = u32::MAX - 1;

/// The ends of flows by host, and by port from the first that a flow has.
struct FlowEnds(Vec<Vec<u32>>);

impl FlowEnds {
    /// Twice the flow's number, and one more at its receiver; or what packets of no flow have.
    fn of(&self, departure: &Departure) -> u32 {
        match departure.sent {
            DepartureKind::Notification => NOTIFICATION,
            DepartureKind::Datagram => NO_END,
            _ => self.get(departure.src, departure.sport),
        }
    }

    fn get(&self, host: HostId, port: u16) -> u32 {
        let place = port.checked_sub(FIRST_PORT).map(usize::from);
        place.and_then(|place| self.0.get(host.index())?.get(place)).copied().unwrap_or(NO_END)
    }

    /// A small number for whose packet it was: of the flow, or of none.
    fn whose(&self, departure: &Departure) -> u32 {
        match self.of(departure) {
            NO_END => 0,
            NOTIFICATION => 1,
            end => end / 2 + 2,
        }
    }
}

/// Services of a place are arranged once one in so many was read.
const LOG_AFTER: usize = 4;

/// The services of a place, arranged when it is worth while.
#[derive(Default)]
struct PlaceLog {
    /// How many were read one by one.
    read: Cell<usize>,
    log: OnceCell<ServiceLog>,
}

/// The records, and where to find them.
pub(super) struct Index<'a> {
    pub(super) report: &'a CauseReport,
    /// Places by kind and number.
    places: Vec<Vec<Option<&'a Place>>>,
    packets: Vec<PacketOwner>,
    ends: FlowEnds,
    /// The first sequence number of the data from each end of a flow; none for an end that has sent none.
    firsts: Vec<Option<u32>>,
    losses: BTreeMap<u32, usize>,
    /// For each departure that was answered by an ACK that was lost: the departure of this ACK.
    lost_acks: BTreeMap<u32, u32>,
    /// For each departure that carried bytes again: the departure before that carried them.
    copies: BTreeMap<u32, u32>,
    states: BTreeMap<(u16, u16), Vec<(Time, PairState)>>,
    /// Pauses of each transmitter, in the order of time.
    paused: BTreeMap<&'a str, Vec<&'a Paused>>,
    /// The logs of places, as `places` has these.
    logs: Vec<Vec<PlaceLog>>,
    numbers: RefCell<Vec<u32>>,
    time_scale: u64,
}

impl<'a> Index<'a> {
    pub(super) fn new(report: &'a CauseReport, flows: &[FlowReport], time_scale: u32) -> Self {
        let of = |(number, loss): (usize, &Loss)| (owner(report, loss.before), number);
        let losses: BTreeMap<u32, usize> = report.losses.iter().enumerate().map(of).collect();
        let answered = |lost: &u32| Some((answered_by(report, *report.departures.get(*lost as usize)?)?, *lost));
        let lost_acks = losses.keys().filter_map(answered).collect();
        let mut paused: BTreeMap<&str, Vec<&Paused>> = BTreeMap::new();
        for pause in &report.paused {
            paused.entry(&report.points[pause.transmitter]).or_default().push(pause);
        }
        let ends = ends_of(flows);
        let kind = |departure: &Departure| PacketOwner { whose: ends.whose(departure), size: departure.size };
        let packets = report.departures.iter().map(kind).collect();
        let (copies, firsts) = copies(&report.departures, &ends, flows.len() * 2);
        let mut places: Vec<Vec<Option<&Place>>> = vec![];
        for place in &report.places {
            let (kind, number) = PlaceKind::of_code(place.code());
            *slot(slot(&mut places, kind), number) = Some(place);
        }
        let logs = places.iter().map(|places| places.iter().map(|_| PlaceLog::default()).collect()).collect();
        let (numbers, time_scale) = (RefCell::default(), u64::from(time_scale));
        let states = states(report);
        Index {
            copies,
            firsts,
            states,
            places,
            packets,
            ends,
            losses,
            lost_acks,
            paused,
            report,
            logs,
            numbers,
            time_scale,
        }
    }

    /// A moment in the experiment's own time, in whole picoseconds: parts still add up to the whole.
    pub(super) fn own(&self, at: Time) -> u64 {
        own_time(at, self.time_scale)
    }

    /// The services of a place, once a part of them was read one by one: then arranging all of them is worth while.
    pub(super) fn log(&self, code: u32) -> Option<&ServiceLog> {
        let (kind, number) = PlaceKind::of_code(code);
        let PlaceLog { read, log } = &self.logs[kind][number];
        if log.get().is_none() && read.get() * LOG_AFTER < self.report.hops.all(code).len() {
            return None;
        }
        Some(log.get_or_init(|| {
            let place = self.place(code);
            // Most packets are as large as the one before.
            let (mut known, mut time) = (None, Span::ZERO);
            let served = |hop: usize| {
                let Hop { at, departure, .. } = *self.report.hops.get(hop);
                let packet = self.packets[departure as usize];
                if known.replace(packet.size) != Some(packet.size) {
                    time = service_time(place, packet.size);
                }
                let ends = back(at, after_service(place));
                (back(ends, time), ends, packet.whose)
            };
            let services = self.report.hops.all(code).map(served);
            ServiceLog::new(services, Who::of_number, self.time_scale, &mut self.numbers.borrow_mut())
        }))
    }

    /// Reads departures, and the hops of their time, in the order in which they lie in memory: walks go through them in
    /// another order, and find them in the processor's cache.
    pub(super) fn read_through(&self, departures: Range<usize>) {
        let all = &self.report.departures[departures];
        std::hint::black_box(all.iter().step_by(2).map(|departure| departure.at.as_ps()).sum::<u64>());
        if let [first, .., last] = all {
            self.report.hops.read_through(first.at, last.at);
        }
    }

    /// Counts services of a place that were read one by one.
    pub(super) fn count(&self, code: u32, services: usize) {
        let (kind, number) = PlaceKind::of_code(code);
        let read = &self.logs[kind][number].read;
        read.set(read.get() + services);
    }

    pub(super) fn departure(&self, number: usize) -> &'a Departure {
        &self.report.departures[number]
    }

    /// The number of the departure of a hop's packet.
    pub(super) fn owner(&self, hop: usize) -> usize {
        self.report.hops.get(hop).departure as usize
    }

    pub(super) fn place(&self, code: u32) -> &'a Place {
        let (kind, number) = PlaceKind::of_code(code);
        self.places[kind][number].expect("a hop is over a place of the fabric")
    }

    /// When a hop's packet came to the place of the hop.
    pub(super) fn queued(&self, hop: usize) -> Time {
        match self.report.hops.get(hop).before.record() {
            Record::Hop(before) => self.report.hops.get(before).at,
            Record::Departure(departure) => self.departure(departure).at,
            Record::None => Time::ZERO,
        }
    }

    /// When the transmitter of a place began and ended to serve a hop's packet.
    #[inline]
    pub(super) fn service(&self, place: &Place, Hop { at, departure, .. }: Hop) -> [Time; 2] {
        let ends = back(at, after_service(place));
        [back(ends, service_time(place, self.departure(departure as usize).size)), ends]
    }

    /// The services of the place of a hop before it, the latest first.
    pub(super) fn services_before(&self, hop: usize) -> impl Iterator<Item = Service> + '_ {
        let place = self.place(self.report.hops.place(hop));
        self.report.hops.before(hop).map(|hop| self.served_by(place, hop))
    }

    /// The services of a place that end after a moment, in order.
    pub(super) fn services_after(&self, code: u32, moment: Time) -> impl Iterator<Item = Service> + '_ {
        let place = self.place(code);
        self.report.hops.after(code, moment + after_service(place)).map(|hop| self.served_by(place, hop))
    }

    fn served_by(&self, place: &Place, hop: usize) -> Service {
        let Hop { at, departure, .. } = *self.report.hops.get(hop);
        let packet = self.packets[departure as usize];
        let ends = back(at, after_service(place));
        let begins = back(ends, service_time(place, packet.size));
        Service { begins, ends, who: Who::of_number(packet.whose), size: packet.size, hop }
    }

    /// Whether a departure was from the sender of a flow.
    pub(super) fn is_of_sender(&self, departure: usize, flow: usize) -> bool {
        self.ends.of(self.departure(departure)) == flow as u32 * 2
    }

    /// The flow of a departure, and the first byte of the flow that it carried; none for other packets.
    pub(super) fn first_byte(&self, departure: usize) -> Option<(usize, u64)> {
        let end = self.ends.of(self.departure(departure)) as usize;
        let first = (*self.firsts.get(end)?)?;
        Some((end / 2, u64::from(self.departure(departure).seq.wrapping_sub(first))))
    }

    /// Whether the lost packet had waited in the queue that lost it.
    pub(super) fn had_waited(&self, loss: &Loss) -> bool {
        match loss.before.record() {
            Record::Hop(hop) => self.report.hops.get(hop).at < loss.at,
            Record::Departure(departure) => self.departure(departure).at < loss.at,
            Record::None => false,
        }
    }

    /// Where the packet of a departure was lost, if it was.
    pub(super) fn loss(&self, departure: usize) -> Option<&'a Loss> {
        self.losses.get(&(departure as u32)).map(|number| &self.report.losses[*number])
    }

    /// What was lost where a departure had to be repeated: itself, or else the ACK that answered it, if that is known.
    pub(super) fn lost(&self, departure: usize) -> usize {
        let ack = self.lost_acks.get(&(departure as u32)).filter(|_| self.loss(departure).is_none());
        ack.map_or(departure, |ack| *ack as usize)
    }

    /// The departure of the packet whose arrival an ACK answered.
    pub(super) fn answered_by(&self, ack: &Departure) -> Option<usize> {
        answered_by(self.report, *ack).map(|answered| answered as usize)
    }

    /// The departure that carried the same bytes last before.
    pub(super) fn copied(&self, departure: usize) -> Option<usize> {
        self.copies.get(&(departure as u32)).map(|original| *original as usize)
    }

    /// How many timeouts in a row have sent a departure and its copies before it.
    pub(super) fn timeouts(&self, departure: usize) -> usize {
        let before = |number: &usize| {
            let Departure { sent, cause, .. } = self.departure(*number);
            match cause.record() {
                Record::Departure(first) if *sent == DepartureKind::Syn => Some(first),
                _ => self.copied(*number),
            }
        };
        let is_of_timeout = |number: &usize| {
            let alarms = self.departure(*number).alarms;
            alarms.has(Alarms::RETRANSMISSION) || alarms.has(Alarms::SYN)
        };
        std::iter::successors(Some(departure), before).take_while(is_of_timeout).count()
    }

    /// The racks of a packet's ends.
    pub(super) fn pair(&self, departure: usize) -> (u16, u16) {
        let Departure { src, dst, .. } = self.departure(departure);
        (self.report.racks[src.index()], self.report.racks[dst.index()])
    }

    /// What the schedule said of a pair between two moments, in order.
    pub(super) fn states(&self, pair: (u16, u16), from: Time, until: Time) -> Vec<(Time, Time, PairState)> {
        let changes = self.states.get(&pair).map_or(&[][..], Vec::as_slice);
        let first = changes.partition_point(|(at, _)| *at <= from);
        let mut state = first.checked_sub(1).map_or(PairState::PacketPath, |before| changes[before].1);
        let (mut at, mut all) = (from, vec![]);
        for (change, next) in changes[first..].iter().take_while(|(change, _)| *change < until) {
            all.push((at, *change, state));
            (at, state) = (*change, *next);
        }
        all.push((at, until, state));
        all
    }

    /// The pauses of a transmitter that end after a moment.
    pub(super) fn pauses_after(&self, name: &str, moment: Time) -> impl Iterator<Item = &'a Paused> + '_ {
        let all = self.paused.get(name).map_or(&[][..], Vec::as_slice);
        all[all.partition_point(|pause| pause.until <= moment)..].iter().copied()
    }

    /// Whose packets a queue held when it lost one, and how many bytes of each.
    pub(super) fn held_at(&self, loss: &Loss) -> BTreeMap<Who, u64> {
        let mut held = BTreeMap::new();
        let mut count = |code: u32, pair: Option<(u16, u16)>| {
            for service in self.services_after(code, loss.at) {
                if pair.is_some_and(|pair| self.pair(self.owner(service.hop)) != pair) {
                    continue;
                }
                if self.queued(service.hop) > loss.at {
                    break;
                }
                *held.entry(service.who).or_default() += u64::from(service.size);
            }
        };
        match loss.place {
            LossPlace::Injected => {}
            LossPlace::Queue(code) => count(code, None),
            LossPlace::Voq(number) | LossPlace::MiceVoq(number) => {
                let pair = self.racks_of(number);
                let kinds = match loss.place {
                    LossPlace::MiceVoq(_) => &[PlaceKind::Uplink][..],
                    _ if self.report.segregated => &[PlaceKind::Circuit],
                    _ => &[PlaceKind::Circuit, PlaceKind::Uplink],
                };
                kinds.iter().for_each(|kind| count(code_of(*kind, pair.0), Some(pair)));
            }
        }
        held
    }

    /// The racks of a pair by its number.
    pub(super) fn racks_of(&self, pair: u32) -> (u16, u16) {
        let racks = self.report.racks.last().map_or(1, |last| u32::from(*last) + 1);
        ((pair / racks) as u16, (pair % racks) as u16)
    }

    /// Where a packet was lost.
    pub(super) fn lost_at(&self, loss: &Loss) -> Where {
        match loss.place {
            LossPlace::Injected => match loss.before.record() {
                Record::Departure(departure) => Where::Host(self.departure(departure).src.0),
                _ => Where::Nowhere,
            },
            LossPlace::Queue(code) => Where::Place(code),
            LossPlace::Voq(pair) => {
                let (src, dst) = self.racks_of(pair);
                Where::Voq(src, dst)
            }
            LossPlace::MiceVoq(pair) => {
                let (src, dst) = self.racks_of(pair);
                Where::MiceVoq(src, dst)
            }
        }
    }
}

/// The element of that number, which is made if there is none.
fn slot<T: Default>(list: &mut Vec<T>, number: usize) -> &mut T {
    if list.len() <= number {
        list.resize_with(number + 1, T::default);
    }
    &mut list[number]
}

/// The code of a rack's place.
pub(super) fn code_of(kind: PlaceKind, rack: u16) -> u32 {
    kind.code(usize::from(rack))
}

/// A moment in the experiment's own time, without a division where that is the engine's.
#[inline]
pub(super) fn own_time(at: Time, time_scale: u64) -> u64 {
    if time_scale == 1 { at.as_ps() } else { at.as_ps() / time_scale }
}

/// How long a place serves a packet of a size.
fn service_time(place: &Place, size: u16) -> Span {
    place.serializer.map_or(Span::ZERO, |link| link.time(size))
}

/// From the end of a service to the hop.
fn after_service(place: &Place) -> Span {
    place.propagation + place.stack_after
}

/// A moment that is so much earlier; the start of the run at least.
fn back(at: Time, span: Span) -> Time {
    Time::from_ps(at.as_ps().saturating_sub(span.as_ps()))
}

/// The departure of a record's packet; u32::MAX for no record.
fn owner(report: &CauseReport, record: RecordId) -> u32 {
    match record.record() {
        Record::Hop(hop) => report.hops.get(hop).departure,
        Record::Departure(departure) => departure as u32,
        Record::None => u32::MAX,
    }
}

/// The departure of the packet whose arrival an ACK answered; none for another packet.
fn answered_by(report: &CauseReport, ack: Departure) -> Option<u32> {
    match ack.cause.record() {
        Record::Hop(hop)
            if ack.sent == DepartureKind::Ack && matches!(ack.trigger, Trigger::Arrival | Trigger::Processor) =>
        {
            Some(report.hops.get(hop).departure)
        }
        _ => None,
    }
}

/// The highest sequence number that a connection has sent, counted from its first.
struct Stream {
    first: u32,
    end: u32,
    sent: Vec<u32>,
}

fn ends_of(flows: &[FlowReport]) -> FlowEnds {
    let mut ends = FlowEnds(vec![]);
    for (flow, report) in flows.iter().enumerate() {
        for (side, (host, port)) in [(report.src, report.sport), (report.dst, report.dport)].into_iter().enumerate() {
            let ports = slot(&mut ends.0, host.index());
            let place = usize::from(port - FIRST_PORT);
            ports.resize(ports.len().max(place + 1), NO_END);
            ports[place] = (flow * 2 + side) as u32;
        }
    }
    ends
}

/// For each departure of bytes that were sent before: the last departure that carried them; and the first sequence
/// number of the data from each end, of so many.
fn copies(departures: &[Departure], ends: &FlowEnds, count: usize) -> (BTreeMap<u32, u32>, Vec<Option<u32>>) {
    let mut streams: Vec<Option<Stream>> = (0..count).map(|_| None).collect();
    let mut copies = BTreeMap::new();
    for (number, departure) in
        departures.iter().enumerate().filter(|(_, departure)| departure.sent == DepartureKind::Data)
    {
        let Departure { seq, payload, .. } = departure;
        let Some(stream) = streams.get_mut(ends.of(departure) as usize) else { continue };
        let stream = stream.get_or_insert_with(|| Stream { first: *seq, end: 0, sent: vec![] });
        let from = seq.wrapping_sub(stream.first);
        if is_before(from, stream.end) {
            let carried = |other: &&u32| {
                let other = &departures[**other as usize];
                let begin = other.seq.wrapping_sub(stream.first);
                !is_before(from, begin) && is_before(from, begin.wrapping_add(u32::from(other.payload)))
            };
            copies.extend(stream.sent.iter().rev().find(carried).map(|original| (number as u32, *original)));
        }
        let end = from.wrapping_add(u32::from(*payload));
        if is_before(stream.end, end) {
            stream.end = end;
        }
        stream.sent.push(number as u32);
    }
    (copies, streams.iter().map(|stream| stream.as_ref().map(|stream| stream.first)).collect())
}

/// Compares sequence numbers modulo 2^32.
const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

fn states(report: &CauseReport) -> BTreeMap<(u16, u16), Vec<(Time, PairState)>> {
    let mut states: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut nights: BTreeMap<(u16, u16), u32> = BTreeMap::new();
    for change in &report.changes {
        let pair = (change.src, change.dst);
        let off = nights.entry(pair).or_default();
        let state = match change.change {
            Change::Night => {
                *off += 1;
                // The night of another day may begin while a day lasts.
                if *off > 1 { continue } else { PairState::Night }
            }
            Change::Day => PairState::Day,
            Change::End => {
                *off -= 1;
                if *off > 0 { PairState::Night } else { PairState::PacketPath }
            }
        };
        states.entry(pair).or_default().push((change.at, state));
    }
    states
}
