//! The records of a run, arranged for walks through them.

use super::cause::{Where, Who};
use firstlight_net::HostId;
use firstlight_sim::causes::{
    CauseReport, Change, Departure, Loss, LossPlace, Paused, Place, PlaceKind, Record, RecordId, Sent,
};
use firstlight_sim::{FIRST_PORT, FlowReport};
use firstlight_units::{Span, Time};
use std::collections::BTreeMap;

/// What the schedule says of a pair of racks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PairState {
    /// The packet network carries the pair's packets.
    PacketPath,
    /// Nothing does, for the circuit switch reconfigures.
    Night,
    /// The circuit does.
    Day,
}

/// The service of a packet by a transmitter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    pub(super) begins: Time,
    pub(super) ends: Time,
    /// The hop that ended it.
    hop: u32,
}

/// The ends of flows by host, and by port from the first that a flow has.
struct Ends(Vec<Vec<u32>>);

impl Ends {
    /// Twice the flow's number, and one more at its receiver; none for a port of no flow.
    fn get(&self, host: HostId, port: u16) -> u32 {
        let place = port.checked_sub(FIRST_PORT).map(usize::from);
        place.and_then(|place| self.0.get(host.index())?.get(place)).copied().unwrap_or(NONE)
    }
}

const NONE: u32 = u32::MAX;

/// The records, and where to find them.
pub(super) struct Index<'a> {
    pub(super) report: &'a CauseReport,
    /// Places by kind and number.
    places: Vec<Vec<Option<&'a Place>>>,
    /// The hops over each place in their order, by kind and number.
    hops: Vec<Vec<Vec<u32>>>,
    /// The end of a flow that each departure was from, as [`Ends`] numbers them.
    ends: Vec<u32>,
    /// The first sequence number of the data from each end of a flow; none for an end that has sent none.
    firsts: Vec<Option<u32>>,
    losses: BTreeMap<u32, usize>,
    /// For each departure that carried bytes again: the departure before that carried them.
    copies: BTreeMap<u32, u32>,
    states: BTreeMap<(u16, u16), Vec<(Time, PairState)>>,
    /// Pauses of each transmitter, in the order of time.
    paused: BTreeMap<&'a str, Vec<&'a Paused>>,
}

impl<'a> Index<'a> {
    pub(super) fn new(report: &'a CauseReport, flows: &[FlowReport]) -> Self {
        let owner = |loss: &Loss| owner(report, loss.before);
        let losses = report.losses.iter().enumerate().map(|(number, loss)| (owner(loss), number)).collect();
        let mut paused: BTreeMap<&str, Vec<&Paused>> = BTreeMap::new();
        for pause in &report.paused {
            paused.entry(&report.points[pause.transmitter]).or_default().push(pause);
        }
        let all = ends_of(flows);
        let ends: Vec<u32> =
            report.departures.iter().map(|departure| all.get(departure.src, departure.sport)).collect();
        let mut places: Vec<Vec<Option<&Place>>> = vec![];
        for place in &report.places {
            *slot(slot(&mut places, kind_of(place.code())), place.index) = Some(place);
        }
        let (copies, firsts) = copies(&report.departures, &ends, flows.len() * 2);
        let mut hops: Vec<Vec<Vec<u32>>> = vec![];
        for (number, hop) in report.hops.iter().enumerate() {
            slot(slot(&mut hops, kind_of(hop.place)), number_of(hop.place)).push(number as u32);
        }
        Index { copies, firsts, states: states(report), hops, places, ends, losses, paused, report }
    }

    pub(super) fn departure(&self, number: usize) -> &'a Departure {
        &self.report.departures[number]
    }

    /// The number of the departure of a hop's packet.
    pub(super) fn owner(&self, hop: usize) -> usize {
        owner(self.report, self.report.hops[hop].before) as usize
    }

    pub(super) fn place(&self, code: u32) -> &'a Place {
        self.places[kind_of(code)][number_of(code)].expect("a hop is over a place of the fabric")
    }

    /// When a hop's packet came to the place of the hop.
    pub(super) fn queued(&self, hop: usize) -> Time {
        match self.report.hops[hop].before.record() {
            Record::Hop(before) => self.report.hops[before].at,
            Record::Departure(departure) => self.departure(departure).at,
            Record::None => Time::ZERO,
        }
    }

    /// How a transmitter served a hop's packet.
    pub(super) fn service(&self, hop: usize) -> Service {
        let place = self.place(self.report.hops[hop].place);
        let size = self.departure(self.owner(hop)).size;
        let ends = self.served_until(hop);
        let begins = back(ends, place.serializer.map_or(Span::ZERO, |link| link.time(size)));
        Service { begins, ends, hop: hop as u32 }
    }

    /// When the service of a hop's packet ended.
    fn served_until(&self, hop: usize) -> Time {
        let record = &self.report.hops[hop];
        let place = self.place(record.place);
        back(record.at, place.propagation + place.stack_after)
    }

    /// The services of a place that end after a moment, in order.
    pub(super) fn services_after(&self, code: u32, moment: Time) -> impl Iterator<Item = Service> + '_ {
        let all = self.hops.get(kind_of(code)).and_then(|kind| kind.get(number_of(code)));
        let all = all.map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|hop| self.served_until(*hop as usize) <= moment);
        all[first..].iter().map(|hop| self.service(*hop as usize))
    }

    /// Whose packet a departure was.
    pub(super) fn who(&self, departure: usize) -> Who {
        match (self.departure(departure).sent, self.ends[departure]) {
            (Sent::Notification, _) => Who::Notifications,
            (Sent::Datagram, _) | (_, NONE) => Who::Datagrams,
            (_, end) => Who::Flow(end / 2),
        }
    }

    /// Whose packet a transmitter served.
    pub(super) fn served(&self, service: &Service) -> Who {
        self.who(self.owner(service.hop as usize))
    }

    /// Whether a departure was from the sender of a flow.
    pub(super) fn is_of_sender(&self, departure: usize, flow: usize) -> bool {
        self.ends[departure] == flow as u32 * 2
    }

    /// The flow of a departure, and the first byte of the flow that it carried; none for other packets.
    pub(super) fn first_byte(&self, departure: usize) -> Option<(usize, u64)> {
        let end = self.ends[departure] as usize;
        let first = (*self.firsts.get(end)?)?;
        Some((end / 2, u64::from(self.departure(departure).seq.wrapping_sub(first))))
    }

    /// Whether the lost packet had waited in the queue that lost it.
    pub(super) fn had_waited(&self, loss: &Loss) -> bool {
        match loss.before.record() {
            Record::Hop(hop) => self.report.hops[hop].at < loss.at,
            Record::Departure(departure) => self.departure(departure).at < loss.at,
            Record::None => false,
        }
    }

    /// Where the packet of a departure was lost, if it was.
    pub(super) fn loss(&self, departure: usize) -> Option<&'a Loss> {
        self.losses.get(&(departure as u32)).map(|number| &self.report.losses[*number])
    }

    /// The departure that carried the same bytes last before.
    pub(super) fn copied(&self, departure: usize) -> Option<usize> {
        self.copies.get(&(departure as u32)).map(|original| *original as usize)
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
            let owner = |service: &Service| self.owner(service.hop as usize);
            let of_pair = |service: &Service| pair.is_none_or(|pair| self.pair(owner(service)) == pair);
            let waits = self.services_after(code, loss.at).filter(of_pair);
            for service in waits.take_while(|service| self.queued(service.hop as usize) <= loss.at) {
                let size = self.departure(owner(&service)).size;
                *held.entry(self.served(&service)).or_default() += u64::from(size);
            }
        };
        match loss.place {
            LossPlace::Injected => {}
            LossPlace::Queue(code) => count(code, None),
            LossPlace::Voq(number) => {
                let (src, dst) = self.racks_of(number);
                for kind in [PlaceKind::Circuit, PlaceKind::Uplink] {
                    count(code_of(kind, src), Some((src, dst)));
                }
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
        }
    }
}

/// The kind of a place's code, as a number.
const fn kind_of(code: u32) -> usize {
    (code >> 24) as usize
}

/// The number of a place's code among those of its kind.
const fn number_of(code: u32) -> usize {
    (code & 0xff_ffff) as usize
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

/// A moment that is so much earlier; the start of the run at least.
pub(super) fn back(at: Time, span: Span) -> Time {
    Time::from_ps(at.as_ps().saturating_sub(span.as_ps()))
}

/// The departure of a record's packet; none for no record.
fn owner(report: &CauseReport, mut record: RecordId) -> u32 {
    loop {
        match record.record() {
            Record::Hop(hop) => record = report.hops[hop].before,
            Record::Departure(departure) => return departure as u32,
            Record::None => return NONE,
        }
    }
}

/// The highest sequence number that a connection has sent, counted from its first.
struct Stream {
    first: u32,
    end: u32,
    sent: Vec<u32>,
}

fn ends_of(flows: &[FlowReport]) -> Ends {
    let mut ends = Ends(vec![]);
    for (flow, report) in flows.iter().enumerate() {
        for (side, (host, port)) in [(report.src, report.sport), (report.dst, report.dport)].into_iter().enumerate() {
            let ports = slot(&mut ends.0, host.index());
            let place = usize::from(port - FIRST_PORT);
            ports.resize(ports.len().max(place + 1), NONE);
            ports[place] = (flow * 2 + side) as u32;
        }
    }
    ends
}

/// For each departure of bytes that were sent before: the last departure that carried them; and the first sequence
/// number of the data from each end. `ends` has the end that each departure was from, of so many.
fn copies(departures: &[Departure], ends: &[u32], count: usize) -> (BTreeMap<u32, u32>, Vec<Option<u32>>) {
    let mut streams: Vec<Option<Stream>> = (0..count).map(|_| None).collect();
    let mut copies = BTreeMap::new();
    for (number, Departure { seq, payload, sent, .. }) in departures.iter().enumerate() {
        let Some(stream) = streams.get_mut(ends[number] as usize).filter(|_| *sent == Sent::Data) else { continue };
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
