//! The timeline of a run: a file of tracks for flows, ports, circuits and hosts, which is written as the run goes on.
//!
//! Times are the experiment's own (divided by `time_scale`), in whole nanoseconds. Tracks are made when they have
//! something to show.

mod window;

use crate::error::LabError;
use firstlight_formats::perfetto::{CounterUnit, SliceFields, TimelineWriter, TrackId};
use firstlight_linux::TcpInfo;
use firstlight_messages::MessageReport;
use firstlight_net::fabric::{mice_voq_name, voq_name};
use firstlight_net::{HostId, Packet};
use firstlight_sim::causes::{Change, LossPlace, PathChange, Place};
use firstlight_sim::{FlowReport, TimelineSink, World};
use firstlight_spec::{HostKind, Program, Spec};
use firstlight_transport::{CongestionState, Standing, Wait};
use firstlight_units::{Bytes, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use window::{NumberTrack, StateTrack, TraceWindow};

/// What a timeline is to show, and where it is written.
#[derive(Clone, Debug)]
pub struct TimelineRequest {
    /// The file of the timeline.
    pub path: PathBuf,
    /// The flows that are shown, with the queues that their packets pass; `None` for all.
    pub flows: Option<BTreeSet<u32>>,
    /// When the timeline begins, in the experiment's own time.
    pub from: Option<Span>,
    /// When the timeline ends, in the experiment's own time.
    pub until: Option<Span>,
}

/// A part of the time of a flow, on its critical path.
#[derive(Clone, Debug)]
pub struct PathStep {
    /// When the part began.
    pub from: Time,
    /// When the part ended.
    pub until: Time,
    /// What took the time.
    pub cause: &'static str,
    /// What the flow's next data waited for.
    pub waiting_for: &'static str,
    /// The port, link, VOQ or host; empty where that has no meaning.
    pub place: String,
    /// The flow or workload that was the cause; empty for none.
    pub who: String,
}

/// A timeline that is being written.
#[derive(Clone)]
pub struct Timeline(Arc<Mutex<TimelineState>>);

impl Timeline {
    /// Begins the timeline of a world that has not run yet.
    ///
    /// # Errors
    /// When a flow or the span of time is not the experiment's, or the file cannot be begun.
    pub fn begin(spec: &Spec, request: &TimelineRequest, world: &mut World) -> Result<Self, LabError> {
        let flows = spec.flows.len();
        if let Some(unknown) = request.flows.iter().flatten().find(|flow| **flow as usize >= flows) {
            let known = flows.checked_sub(1).map_or("none".into(), |last| format!("flows 0 to {last}"));
            return Err(LabError::Timeline(format!("there is no flow {unknown}: the experiment has {known}")));
        }
        let (from, until) = (request.from.unwrap_or(Span::ZERO), request.until.unwrap_or(spec.tables.duration));
        if from >= until.min(spec.tables.duration) {
            let problem =
                format!("its time from {from} to {until} is empty: let it end after it begins, within the run");
            return Err(LabError::Timeline(problem));
        }
        let file = TimelineWriter::create(&request.path)?;
        let fabric = world.fabric();
        let (places, points) = (fabric.places(), fabric.pause_points());
        let state = TimelineState {
            window: TraceWindow { file, scale: u64::from(spec.tables.time_scale), from, until },
            tracks: BTreeMap::new(),
            places: places.into_iter().map(|place| (place.code(), place)).collect(),
            racks: ((spec.hosts() - spec.network.further().len()) / spec.hosts_per_rack.max(1)) as u32,
            points,
            shown: request.flows.clone(),
            ends: request.flows.as_ref().map(|flows| ends(flows, &world.flows())),
            names: (0..flows).map(|flow| flow_name(spec, flow)).collect(),
            flows: BTreeMap::new(),
            queues: BTreeMap::new(),
            circuits: BTreeMap::new(),
            pauses: BTreeMap::new(),
        };
        let timeline = Timeline(Arc::new(Mutex::new(state)));
        world.fabric_mut().set_timeline(Box::new(timeline.clone()));
        Ok(timeline)
    }

    fn state(&self) -> MutexGuard<'_, TimelineState> {
        self.0.lock().expect("no writer of a timeline panics")
    }

    /// Adds a flow's critical path: parts that follow each other, each at its place, joined by arrows.
    pub fn add_path(&self, flow: usize, steps: &[PathStep]) {
        let mut state = self.state();
        if !state.shows(flow) {
            return;
        }
        for step in steps {
            let track = state.path_track(flow, &step.place);
            let fields = SliceFields {
                texts: &[("waiting_for", step.waiting_for), ("who", &step.who)],
                numbers: &[("time_ps", (step.until - step.from).as_ps() as i64)],
                arrow: Some(flow as u64 + 1),
            };
            state.window.slice(track, step.from, step.until, step.cause, fields);
        }
    }

    /// Adds what a Linux host reported of a flow's sender. Reports come in order, and do not count once the flow is
    /// complete.
    pub fn add_sample(&self, flows: &[FlowReport], flow: usize, info: &TcpInfo, at: Time) {
        if flows[flow].finish.is_none_or(|finish| at < finish) {
            self.state().on_sample(flow, info, at);
        }
    }

    /// Adds a program of a Linux host: when it ended and its exit code, if it did before the run's end.
    pub fn add_program(&self, spec: &Spec, program: &Program, ended: Option<(Time, i32)>, end: Time) {
        let mut state = self.state();
        let track = state.track(&["hosts", &format!("host{}", program.on.0), &format!("program {}", program.name)]);
        let start = Time::ZERO + program.start * u64::from(spec.tables.time_scale);
        let code = ended.map(|(_, code)| ("exit code", i64::from(code)));
        let fields = SliceFields { numbers: code.as_slice(), ..SliceFields::default() };
        state.window.slice(track, start, ended.map_or(end, |(at, _)| at), &program.command, fields);
    }

    /// Completes the file of a run that has ended at `end`.
    ///
    /// # Errors
    /// When something could not be written.
    pub fn finish(
        self,
        spec: &Spec,
        end: Time,
        flows: &[FlowReport],
        messages: &[MessageReport],
    ) -> Result<(), LabError> {
        let mut state = self.state();
        state.end_reports(spec, flows);
        state.end_states(end);
        state.add_flows(flows, end);
        state.add_messages(spec, messages);
        drop(state);
        let state = Arc::into_inner(self.0).expect("the world has given back its timeline");
        Ok(state.into_inner().expect("no writer of a timeline panics").window.file.finish()?)
    }
}

/// The tracks of a flow.
struct FlowTracks {
    state: StateTrack,
    /// What the flow's next data wait for; none where a Linux host sends, which does not report that.
    waits: Option<StateTrack>,
    cwnd: NumberTrack,
    ssthresh: Option<NumberTrack>,
    in_flight: NumberTrack,
}

struct TimelineState {
    window: TraceWindow,
    /// Tracks by their names from the first level on.
    tracks: BTreeMap<Vec<String>, TrackId>,
    places: BTreeMap<u32, Place>,
    racks: u32,
    points: Vec<String>,
    /// The flows that are shown; `None` for all.
    shown: Option<BTreeSet<u32>>,
    /// Hosts and ports of these flows.
    ends: Option<BTreeSet<(HostId, u16)>>,
    names: Vec<String>,
    flows: BTreeMap<usize, FlowTracks>,
    queues: BTreeMap<LossPlace, NumberTrack>,
    circuits: BTreeMap<(u16, u16), StateTrack>,
    pauses: BTreeMap<(usize, usize), StateTrack>,
}

impl TimelineState {
    fn shows(&self, flow: usize) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.contains(&(flow as u32)))
    }

    /// Whether a packet is of a flow that is shown.
    fn shows_packet(&self, packet: &Packet) -> bool {
        self.ends.as_ref().is_none_or(|ends| ends.contains(&(packet.src(), packet.sport())))
    }

    /// The track with these names, from the first level on.
    fn track(&mut self, names: &[&str]) -> TrackId {
        let key: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
        if let Some(track) = self.tracks.get(&key) {
            return *track;
        }
        let (name, parents) = names.split_last().expect("a track has a name");
        let parent = (!parents.is_empty()).then(|| self.track(parents));
        let track = self.window.file.track(name, parent);
        self.tracks.insert(key, track);
        track
    }

    fn flow_track(&mut self, flow: usize) -> TrackId {
        let name = self.names[flow].clone();
        self.track(&["flows", &name])
    }

    /// The track of a critical path at a place.
    fn path_track(&mut self, flow: usize, place: &str) -> TrackId {
        let path = format!("critical path of flow {flow}");
        if place.is_empty() {
            let name = self.names[flow].clone();
            self.track(&["flows", &name, &path])
        } else if place.strip_prefix("host").is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit())) {
            self.track(&["hosts", place, &path])
        } else {
            self.track(&["ports", place, &path])
        }
    }

    fn voq_name(&self, pair: u32) -> String {
        voq_name((pair / self.racks) as usize, (pair % self.racks) as usize)
    }

    fn place_name(&self, place: LossPlace, packet: &Packet) -> String {
        match place {
            LossPlace::Queue(code) => self.places[&code].name.clone(),
            LossPlace::Voq(pair) => self.voq_name(pair),
            LossPlace::MiceVoq(pair) => mice_voq_name(&self.voq_name(pair)),
            LossPlace::Injected => format!("host{}.nic", packet.src().0),
        }
    }

    /// The tracks of a flow, which are made if there are none.
    fn flow(&mut self, flow: usize, has_waits: bool) -> &mut FlowTracks {
        if !self.flows.contains_key(&flow) {
            let (name, track) = (self.names[flow].clone(), self.flow_track(flow));
            let state = StateTrack::new(self.track(&["flows", &name, "state"]));
            let waits = has_waits.then(|| StateTrack::new(self.track(&["flows", &name, "waiting for"])));
            let [cwnd, in_flight] =
                ["cwnd", "in flight"].map(|name| self.window.file.counter(name, track, CounterUnit::Packets));
            let [cwnd, in_flight] = [cwnd, in_flight].map(NumberTrack::new);
            self.flows.insert(flow, FlowTracks { state, waits, cwnd, ssthresh: None, in_flight });
        }
        self.flows.get_mut(&flow).expect("it is there")
    }

    fn on_sender(&mut self, flow: usize, standing: &Standing, at: Time) {
        if self.shows(flow) {
            let &Standing { cwnd, ssthresh, in_flight, .. } = standing;
            self.set(flow, at, state_of(standing), Some(wait_of(standing.wait)), [cwnd, in_flight], ssthresh);
        }
    }

    fn on_sample(&mut self, flow: usize, info: &TcpInfo, at: Time) {
        if self.shows(flow) {
            self.set(flow, at, reported_state(info), None, [info.cwnd, info.in_flight()], info.ssthresh);
        }
    }

    /// How the sender of a flow stands from now on: its congestion window and its packets in flight.
    fn set(
        &mut self,
        flow: usize,
        at: Time,
        state: &'static str,
        waits: Option<&'static str>,
        [cwnd, in_flight]: [u32; 2],
        ssthresh: Option<u32>,
    ) {
        if ssthresh.is_some() && self.flow(flow, waits.is_some()).ssthresh.is_none() {
            let track = self.flow_track(flow);
            let counter = self.window.file.counter("ssthresh", track, CounterUnit::Packets);
            self.flow(flow, waits.is_some()).ssthresh = Some(NumberTrack::new(counter));
        }
        self.flow(flow, waits.is_some());
        let (window, tracks) = (&mut self.window, self.flows.get_mut(&flow).expect("it was made"));
        tracks.state.set(window, at, Some(state));
        if let Some(track) = &mut tracks.waits {
            track.set(window, at, waits);
        }
        tracks.cwnd.set(window, at, i64::from(cwnd));
        tracks.in_flight.set(window, at, i64::from(in_flight));
        if let (Some(track), Some(ssthresh)) = (&mut tracks.ssthresh, ssthresh) {
            track.set(window, at, i64::from(ssthresh));
        }
    }

    fn on_closed(&mut self, flow: usize, at: Time) {
        let Some(tracks) = self.flows.get_mut(&flow) else { return };
        for state in std::iter::once(&mut tracks.state).chain(&mut tracks.waits) {
            state.set(&mut self.window, at, None);
        }
        tracks.in_flight.set(&mut self.window, at, 0);
    }

    /// Linux hosts do not report when all is acknowledged: what they reported ends when the flow is complete.
    fn end_reports(&mut self, spec: &Spec, flows: &[FlowReport]) {
        for (flow, report) in flows.iter().enumerate() {
            if let Some(finish) = report.finish.filter(|_| spec.flows[flow].hosts == HostKind::Linux) {
                self.on_closed(flow, finish);
            }
        }
    }

    fn on_queue(&mut self, place: LossPlace, packet: &Packet, bytes: Bytes, at: Time) {
        if !self.queues.contains_key(&place) {
            if !self.shows_packet(packet) {
                return;
            }
            let name = self.place_name(place, packet);
            let port = self.track(&["ports", &name]);
            let counter = self.window.file.counter("queue", port, CounterUnit::Bytes);
            self.queues.insert(place, NumberTrack::new(counter));
        }
        if let Some(queue) = self.queues.get_mut(&place) {
            queue.set(&mut self.window, at, bytes.get() as i64);
        }
    }

    fn on_loss(&mut self, place: LossPlace, packet: &Packet, at: Time) {
        if self.shows_packet(packet) && self.window.has(at) {
            let name = self.place_name(place, packet);
            let track = self.track(&["ports", &name, "drops"]);
            let what = format!("host{} to host{}, {} B", packet.src().0, packet.dst().0, packet.size());
            self.window.instant(track, at, &what);
        }
    }

    fn on_path(&mut self, change: &PathChange) {
        let pair = (change.src, change.dst);
        let state = match change.change {
            Change::Night => Some("night"),
            Change::Day => Some("day"),
            Change::End => None,
        };
        let track = self.track(&["circuits", &format!("rack {} to rack {}", pair.0, pair.1)]);
        self.circuits.entry(pair).or_insert_with(|| StateTrack::new(track)).set(&mut self.window, change.at, state);
    }

    fn on_pause(&mut self, transmitter: usize, priority: usize, paused: bool, at: Time) {
        let (name, class) = (self.points[transmitter].clone(), format!("pauses of class {priority}"));
        let track = self.track(&["ports", &name, &class]);
        let state = self.pauses.entry((transmitter, priority)).or_insert_with(|| StateTrack::new(track));
        state.set(&mut self.window, at, paused.then_some("paused"));
    }

    /// What lasts at the end of the run ends there.
    fn end_states(&mut self, end: Time) {
        let of_flows =
            self.flows.values_mut().flat_map(|tracks| std::iter::once(&mut tracks.state).chain(&mut tracks.waits));
        for state in of_flows.chain(self.circuits.values_mut()).chain(self.pauses.values_mut()) {
            state.set(&mut self.window, end, None);
        }
    }

    /// When flows began and were complete.
    fn add_flows(&mut self, flows: &[FlowReport], end: Time) {
        for (flow, report) in flows.iter().enumerate() {
            if self.shows(flow) && report.start < end {
                let track = self.flow_track(flow);
                let name = if report.finish.is_some() { "until complete" } else { "not complete" };
                self.window.slice(track, report.start, report.finish.unwrap_or(end), name, SliceFields::default());
            }
        }
    }

    /// What hosts' programs did: when they computed before a message, and when a message was under way. A message of a
    /// flow begins after the flow's message before.
    fn add_messages(&mut self, spec: &Spec, messages: &[MessageReport]) {
        let mut before: BTreeMap<u32, (Time, Time)> = BTreeMap::new();
        for (number, (message, report)) in spec.messages.list().iter().zip(messages).enumerate() {
            let (Some(flow), Some((ready, complete))) = (message.flow, report.ready.zip(report.complete)) else {
                continue;
            };
            if !self.shows(flow as usize) {
                continue;
            }
            let ends = &spec.flows[flow as usize];
            let host = format!("host{}", ends.src.0);
            let to = format!("to host{} (flow {flow})", ends.dst.0);
            let written = ready + message.delay * u64::from(spec.tables.time_scale);
            let (computed, passed) = before.get(&flow).copied().unwrap_or_default();
            let computes = self.track(&["hosts", &host, &to, "computations"]);
            let sends = self.track(&["hosts", &host, &to, "messages"]);
            let name = format!("before message {number}");
            self.window.slice(computes, ready.max(computed), written, &name, SliceFields::default());
            let fields = SliceFields {
                numbers: &[("bytes", message.bytes.get() as i64), ("job", i64::from(message.job))],
                ..SliceFields::default()
            };
            self.window.slice(sends, written.max(passed), complete, &format!("message {number}"), fields);
            before.insert(flow, (written.max(computed), complete.max(passed)));
        }
    }
}

impl TimelineSink for Timeline {
    fn sender(&mut self, flow: usize, standing: &Standing, at: Time) {
        self.state().on_sender(flow, standing, at);
    }

    fn closed(&mut self, flow: usize, at: Time) {
        self.state().on_closed(flow, at);
    }

    fn queue(&mut self, place: LossPlace, packet: &Packet, bytes: Bytes, at: Time) {
        self.state().on_queue(place, packet, bytes, at);
    }

    fn loss(&mut self, place: LossPlace, packet: &Packet, at: Time) {
        self.state().on_loss(place, packet, at);
    }

    fn path(&mut self, change: &PathChange) {
        self.state().on_path(change);
    }

    fn pause(&mut self, transmitter: usize, priority: usize, paused: bool, at: Time) {
        self.state().on_pause(transmitter, priority, paused, at);
    }
}

/// Hosts and ports of both ends of flows.
fn ends(flows: &BTreeSet<u32>, reports: &[FlowReport]) -> BTreeSet<(HostId, u16)> {
    let of = |flow: &u32| {
        let report = &reports[*flow as usize];
        [(report.src, report.sport), (report.dst, report.dport)]
    };
    flows.iter().flat_map(of).collect()
}

fn flow_name(spec: &Spec, number: usize) -> String {
    let flow = &spec.flows[number];
    let size = flow.size.map_or(String::new(), |size| format!(", {} B", size.get()));
    let workload = spec.workload_name(flow.entry);
    format!("flow {number}: host{} to host{}{size}, {workload}", flow.src.0, flow.dst.0)
}

const fn state_of(standing: &Standing) -> &'static str {
    match (standing.wait, standing.congestion) {
        (Wait::Handshake, _) => "handshake",
        (_, CongestionState::Recovery) => "fast recovery",
        (_, CongestionState::Loss) => "after a timeout",
        (_, CongestionState::Reduced) => "reduction after a mark",
        (_, CongestionState::Open | CongestionState::Disorder) => match standing.ssthresh {
            Some(ssthresh) if standing.cwnd >= ssthresh => "congestion avoidance",
            _ => "slow start",
        },
    }
}

/// The state of a sender in a report of its kernel, which numbers SYN_SENT and SYN_RECV 2 and 3.
fn reported_state(info: &TcpInfo) -> &'static str {
    match (info.state, info.ca_state) {
        (2 | 3, _) => "handshake",
        (_, 2) => "reduction after a mark",
        (_, 3) => "fast recovery",
        (_, 4) => "after a timeout",
        _ if info.ssthresh.is_some_and(|ssthresh| info.cwnd >= ssthresh) => "congestion avoidance",
        _ => "slow start",
    }
}

const fn wait_of(wait: Wait) -> &'static str {
    match wait {
        Wait::Application => "application",
        Wait::Handshake => "handshake",
        Wait::CongestionWindow => "congestion_window",
        Wait::ReceiveWindow => "receive_window",
        Wait::SendBuffer => "send_buffer",
        Wait::SmallSegment => "small_segment",
        Wait::Pacer => "pacer",
        Wait::Interface => "interface",
    }
}
