//! The records of a run, and the state of connections and packets while the run goes on.

use super::observed::{ObservedEnd, Release};
use super::{
    Completion, Departure, DepartureKind, Hop, HopLog, Loss, LossPlace, PathChange, Paused, Place, PlaceKind, Record,
    RecordId, Trigger, spare,
};
use crate::causes::WindowEvent;
use crate::flow::FlowConfig;
use firstlight_net::{HostId, Packet, PacketId, TcpFlags};
use firstlight_transport::{Alarms, CongestionState, Standing, Wait};
use firstlight_units::Time;
use std::mem::take;

/// The state of an endpoint.
#[derive(Clone, Copy, Debug)]
struct EndpointState {
    wait: Wait,
    window: WindowEvent,
    repairs: bool,
    congestion: CongestionState,
    cwnd: u32,
    departure: RecordId,
    arrival: RecordId,
    /// Since when the endpoint waits for room: a departure of nothing.
    blocked: RecordId,
}

impl EndpointState {
    const NEW: EndpointState = EndpointState {
        wait: Wait::Application,
        window: WindowEvent::Start,
        repairs: false,
        congestion: CongestionState::Open,
        cwnd: 0,
        departure: RecordId::NONE,
        arrival: RecordId::NONE,
        blocked: RecordId::NONE,
    };
}

/// What the host does at present, and so what releases its packets.
#[derive(Clone, Copy, Debug)]
struct Activity {
    trigger: Trigger,
    alarms: Alarms,
    cause: RecordId,
    endpoint: Option<usize>,
}

/// The records of a packet.
#[derive(Clone, Copy, Debug)]
struct PacketState {
    last: RecordId,
    departure: u32,
}

impl PacketState {
    const NEW: PacketState = PacketState { last: RecordId::NONE, departure: u32::MAX };
}

/// The records.
#[derive(Debug)]
pub struct CauseLog {
    hops: HopLog,
    departures: Vec<Departure>,
    losses: Vec<Loss>,
    deliveries: Vec<Completion>,
    pub(crate) changes: Vec<PathChange>,
    pub(crate) paused: Vec<Paused>,
    packets: Vec<PacketState>,
    endpoints: Vec<EndpointState>,
    activity: Activity,
    /// What was seen of the ends of external hosts' connections.
    observed: Vec<ObservedEnd>,
    /// When the interface of each external host had room again, last.
    rooms: Vec<Time>,
    /// External hosts have processors.
    processors: bool,
}

/// The records of a run and the places that they name.
#[derive(Clone, Debug, Default)]
pub struct CauseReport {
    /// Hops by their places, and in the order of time.
    pub hops: HopLog,
    /// Departures in the order of time.
    pub departures: Vec<Departure>,
    /// Losses in the order of time.
    pub losses: Vec<Loss>,
    /// Deliveries in the order of time.
    pub deliveries: Vec<Completion>,
    /// What the schedule changed, in the order of time; nothing without racks.
    pub changes: Vec<PathChange>,
    /// Pauses in the order of their ends.
    pub paused: Vec<Paused>,
    /// Names of pause points; none where links cannot be paused.
    pub points: Vec<String>,
    /// A pause is of all classes.
    pub whole_link: bool,
    /// All places.
    pub places: Vec<Place>,
    /// The rack of each host; none without racks.
    pub racks: Vec<u16>,
    /// Routing is segregated: circuits carry the packets of elephants and no others.
    pub segregated: bool,
    /// Linux hosts have processors, on which computing takes time.
    pub processors: bool,
}

/// The next run uses the memory again.
impl Drop for CauseReport {
    fn drop(&mut self) {
        spare::keep(take(&mut self.hops).into_memory(), take(&mut self.departures));
    }
}

const IDLE: Activity =
    Activity { trigger: Trigger::Other, alarms: Alarms::NONE, cause: RecordId::NONE, endpoint: None };

impl CauseLog {
    pub(crate) fn new() -> Self {
        let (hops, departures) = spare::take();
        CauseLog {
            hops: HopLog::new(hops),
            departures,
            losses: vec![],
            deliveries: vec![],
            changes: vec![],
            paused: vec![],
            packets: vec![],
            endpoints: vec![],
            activity: IDLE,
            observed: vec![],
            rooms: vec![],
            processors: false,
        }
    }

    /// The records, with the fabric's pause points (their names, and whether a pause is of all classes), its places,
    /// the racks of its hosts, and whether its routing is segregated.
    pub(crate) fn into_report(
        self,
        (points, whole_link): (Vec<String>, bool),
        places: Vec<Place>,
        racks: Vec<u16>,
        segregated: bool,
    ) -> CauseReport {
        let CauseLog { hops, departures, losses, deliveries, changes, paused, processors, .. } = self;
        CauseReport {
            hops,
            departures,
            losses,
            deliveries,
            changes,
            paused,
            points,
            whole_link,
            places,
            racks,
            segregated,
            processors,
        }
    }

    /// A packet has come to the end of a place.
    #[inline]
    pub(crate) fn hop(&mut self, packet: PacketId, kind: PlaceKind, index: usize, at: Time) {
        let state = &mut self.packets[packet.index()];
        let hop = Hop { at, before: state.last, departure: state.departure };
        state.last = RecordId::hop(self.hops.push(kind, index, hop));
    }

    /// A packet was lost.
    pub(crate) fn loss(&mut self, packet: PacketId, place: LossPlace, at: Time) {
        self.losses.push(Loss { at, before: self.packets[packet.index()].last, place });
    }

    /// A packet has left its host's stack, or was made by a switch.
    #[inline]
    pub(crate) fn departure(&mut self, id: PacketId, packet: &Packet, at: Time) {
        let record = RecordId::departure(self.departures.len());
        if self.packets.len() <= id.index() {
            self.packets.resize(id.index() + 1, PacketState::NEW);
        }
        self.packets[id.index()] = PacketState { last: record, departure: self.departures.len() as u32 };
        let (sent, seq) = match packet.tcp() {
            Some(segment) if segment.flags().has(TcpFlags::SYN) => (DepartureKind::Syn, segment.seq()),
            Some(segment) if packet.is_data() => (DepartureKind::Data, segment.seq()),
            Some(segment) => (DepartureKind::Ack, segment.seq()),
            None if packet.notification().is_some() => (DepartureKind::Notification, 0),
            None => (DepartureKind::Datagram, 0),
        };
        let departure = self.of_activity(sent, at);
        if let Some(endpoint) = self.activity.endpoint {
            self.endpoints[endpoint].departure = record;
        }
        self.departures.push(Departure {
            seq,
            src: packet.src(),
            dst: packet.dst(),
            sport: packet.sport(),
            size: packet.size(),
            payload: packet.payload() as u16,
            ..departure
        });
    }

    /// A departure by the present activity, of no packet yet.
    fn of_activity(&self, sent: DepartureKind, at: Time) -> Departure {
        let Activity { trigger, alarms, cause, endpoint } = self.activity;
        let state = endpoint.map_or(EndpointState::NEW, |endpoint| self.endpoints[endpoint]);
        Departure { trigger, alarms, cause, ..of_state(state, sent, at) }
    }

    /// A switch has made a notification.
    pub(crate) fn on_notification(&mut self, id: PacketId, notification: &Packet, at: Time) {
        let activity = std::mem::replace(&mut self.activity, IDLE);
        self.departure(id, notification, at);
        self.activity = activity;
    }

    fn state(&mut self, endpoint: usize) -> &mut EndpointState {
        if self.endpoints.len() <= endpoint {
            self.endpoints.resize(endpoint + 1, EndpointState::NEW);
        }
        &mut self.endpoints[endpoint]
    }

    /// A packet has arrived at an endpoint, which acts on it.
    #[inline]
    pub(crate) fn on_arrival(&mut self, endpoint: usize, packet: PacketId) {
        let cause = self.packets[packet.index()].last;
        self.state(endpoint).arrival = cause;
        self.activity = Activity { trigger: Trigger::Arrival, alarms: Alarms::NONE, cause, endpoint: Some(endpoint) };
    }

    /// The program of an endpoint does something.
    pub(crate) fn on_program(&mut self, endpoint: usize) {
        let cause = self.state(endpoint).departure;
        self.activity = Activity { trigger: Trigger::Program, alarms: Alarms::NONE, cause, endpoint: Some(endpoint) };
    }

    /// An endpoint is notified of a circuit.
    pub(crate) fn on_notice(&mut self, endpoint: usize) {
        let cause = self.state(endpoint).departure;
        self.activity = Activity { trigger: Trigger::Notice, alarms: Alarms::NONE, cause, endpoint: Some(endpoint) };
    }

    /// Timers of an endpoint have expired, or its program `reads`.
    pub(crate) fn on_timers(&mut self, endpoint: usize, alarms: Alarms, reads: bool) {
        let EndpointState { arrival, departure, .. } = *self.state(endpoint);
        if reads && alarms == Alarms::NONE {
            let (trigger, cause) = (Trigger::Program, arrival);
            self.activity = Activity { trigger, alarms, cause, endpoint: Some(endpoint) };
            return;
        }
        let of_arrival = alarms.has(Alarms::ACK)
            || alarms.has(Alarms::REORDERING)
            || (alarms.has(Alarms::WINDOW_PROBE) && self.moment(arrival) >= self.moment(departure));
        let cause = if of_arrival { arrival } else { departure };
        self.activity = Activity { trigger: Trigger::Timer, alarms, cause, endpoint: Some(endpoint) };
    }

    /// When a record was made; `None` for no record.
    fn moment(&self, record: RecordId) -> Option<Time> {
        match record.record() {
            Record::Hop(hop) => Some(self.hops.get(hop).at),
            Record::Departure(departure) => Some(self.departures[departure].at),
            Record::None => None,
        }
    }

    /// An endpoint begins to wait for room in its host's interface.
    pub(crate) fn on_blocked(&mut self, endpoint: usize, at: Time) {
        let record = RecordId::departure(self.departures.len());
        self.departures.push(self.of_activity(DepartureKind::Nothing, at));
        self.state(endpoint).blocked = record;
    }

    /// An endpoint that has waited has its turn. Its wait goes on if it has more to send.
    pub(crate) fn on_turn(&mut self, endpoint: usize) {
        let cause = self.state(endpoint).blocked;
        self.activity = Activity { trigger: Trigger::Room, alarms: Alarms::NONE, cause, endpoint: Some(endpoint) };
    }

    /// Whoever sends now is no simulated connection.
    pub(crate) fn on_other(&mut self) {
        self.activity = IDLE;
    }

    /// Computing takes time on external hosts.
    pub(crate) fn give_processors(&mut self) {
        self.processors = true;
    }

    fn observed(&mut self, endpoint: usize) -> &mut ObservedEnd {
        if self.observed.len() <= endpoint {
            self.observed.resize_with(endpoint + 1, ObservedEnd::default);
        }
        &mut self.observed[endpoint]
    }

    /// A packet has arrived at the endpoint of an external host.
    pub(crate) fn on_external_arrival(&mut self, endpoint: usize, id: PacketId, packet: &Packet, at: Time) {
        let Some(segment) = packet.tcp() else { return };
        self.state(endpoint).arrival = self.packets[id.index()].last;
        self.observed(endpoint).on_arrival(segment, at);
    }

    /// A program on an external host writes to its connection.
    pub(crate) fn on_external_write(&mut self, endpoint: usize, seq: u32, bytes: i64) {
        self.observed(endpoint).on_write(seq, bytes);
    }

    /// A packet of an external host's endpoint leaves its interface at a moment, which may be still to come.
    pub(crate) fn on_external_leaving(&mut self, endpoint: usize, at: Time) {
        self.observed(endpoint).on_leaving(at);
    }

    /// The interface of an external host has room again.
    pub(crate) fn on_external_room(&mut self, host: HostId, at: Time) {
        if self.rooms.len() <= host.index() {
            self.rooms.resize(host.index() + 1, Time::MAX);
        }
        self.rooms[host.index()] = at;
    }

    /// The endpoint of an external host sends the packet that is handed in next.
    pub(crate) fn on_external(&mut self, endpoint: usize, packet: &Packet, now: Time, flow: &FlowConfig) {
        let Some(segment) = packet.tcp() else { return self.on_other() };
        let room = self.rooms.get(packet.src().index()).is_some_and(|at| super::observed::is_moment(*at, now));
        let processors = self.processors;
        let observed = self.observed(endpoint);
        observed.reads_later = flow.reads.is_some();
        let arrived_last = observed.arrived_last();
        let release = observed.on_departure(segment, packet.payload(), room, processors, now, &flow.tcp);
        let Release { trigger, alarms, wait, window, repairs, of_arrival } = release;
        let state = self.state(endpoint);
        (state.wait, state.window, state.repairs) = (wait, window, repairs);
        let mut cause = if of_arrival { state.arrival } else { state.departure };
        if trigger == Trigger::Room {
            cause = self.since_when(endpoint, arrived_last);
        }
        self.activity = Activity { trigger, alarms, cause, endpoint: Some(endpoint) };
    }

    /// Records that an endpoint waits for room, as a departure without a packet: since the packet that arrived last, or
    /// else since the one that it sent last.
    fn since_when(&mut self, endpoint: usize, arrived_last: bool) -> RecordId {
        let EndpointState { departure, arrival, .. } = self.endpoints[endpoint];
        let before = match departure.record() {
            Record::Departure(number) => Some(self.departures[number]),
            _ => None,
        };
        let (at, trigger, alarms, cause) = match (arrival.record(), before) {
            (Record::Hop(hop), _) if arrived_last => (self.hops.get(hop).at, Trigger::Arrival, Alarms::NONE, arrival),
            (_, Some(before)) if before.trigger == Trigger::Room => return before.cause,
            (_, Some(before)) => (before.at, before.trigger, before.alarms, before.cause),
            _ => return RecordId::NONE,
        };
        let nothing =
            Departure { trigger, alarms, cause, ..of_state(self.endpoints[endpoint], DepartureKind::Nothing, at) };
        self.departures.push(nothing);
        RecordId::departure(self.departures.len() - 1)
    }

    /// An endpoint has sent what it may.
    #[inline]
    pub(crate) fn settle(&mut self, endpoint: usize, standing: Standing) {
        let state = self.state(endpoint);
        if standing.cwnd < state.cwnd {
            let quiet = matches!(standing.congestion, CongestionState::Open | CongestionState::Disorder);
            state.window = match if quiet { state.congestion } else { standing.congestion } {
                CongestionState::Open | CongestionState::Disorder => WindowEvent::Controller,
                CongestionState::Reduced => WindowEvent::Mark,
                CongestionState::Recovery => WindowEvent::Recovery,
                CongestionState::Loss => WindowEvent::Timeout,
            };
        }
        state.wait = standing.wait;
        state.repairs = standing.repairs;
        state.congestion = standing.congestion;
        state.cwnd = standing.cwnd;
    }

    /// A flow's receiver has all bytes of the flow, or of a message, by what arrived at its endpoint now.
    pub(crate) fn on_delivery(&mut self, endpoint: usize, flow: usize, bytes: u64, at: Time) {
        let hop = self.state(endpoint).arrival;
        self.deliveries.push(Completion { at, flow: flow as u32, hop, bytes });
    }
}

/// A departure of nothing from an endpoint in this state.
fn of_state(state: EndpointState, sent: DepartureKind, at: Time) -> Departure {
    let EndpointState { wait, window, repairs, .. } = state;
    Departure {
        at,
        cause: RecordId::NONE,
        seq: 0,
        src: HostId(0),
        dst: HostId(0),
        sport: 0,
        size: 0,
        payload: 0,
        trigger: Trigger::Other,
        alarms: Alarms::NONE,
        sent,
        wait,
        window,
        repairs,
    }
}
