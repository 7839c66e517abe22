//! Simulated hosts at a fabric's edge: our own loop over time, and the first driver of [`Fabric`].
//!
//! Connections are grouped by host, and the k-th connection of a host has local port 10000 + k, so that a packet finds
//! its connection by arithmetic. Each connection has one timer, moved lazily: at once only when its deadline comes
//! forward; a timer that goes off too early is set to the deadline of that moment.
//!
//! Flows between external hosts have ports and a report here, nothing else. The driver of external hosts steps the
//! world with [`World::next`], [`World::run`] and [`World::inject`], and receives their packets through
//! [`ExternalHosts`].

mod messages;
mod observed;
mod room;

use crate::config::BuildError;
use crate::connection_table::ConnectionTable;
use crate::control_loop::ControlLoop;
use crate::events::{EventKind, EventSet, PendingEvent};
use crate::external_hosts::{ExternalHosts, NoExternalHosts};
use crate::fabric::{Exit, Fabric};
use crate::flow::{EndpointIndex, FlowConfig, FlowProgress, FlowReport, FlowState};
use crate::notices::Notices;
use crate::probe::{ProbeConfig, ProbeReport, ProbeSource};
use crate::stream::{stream, uniform};
use crate::wait_queues::WaitQueues;
use firstlight_messages::{MessageEngine, Messages};
use firstlight_net::{FlowTuple, HostId, Packet, PacketId, TcpSegment};
use firstlight_units::{Bytes, Time};

#[derive(Debug)]
struct WorldFlow {
    config: FlowConfig,
    start: Time,
    finish: Option<Time>,
    /// All bytes are acknowledged to a simulated sender.
    acknowledged: bool,
    /// The state that external hosts reported last, or that the flow had when it ended.
    reported: Option<Box<FlowState>>,
}

/// A fabric with simulated hosts.
pub struct World {
    fabric: Fabric,
    connections: ConnectionTable,
    wait_queues: WaitQueues,
    endpoints: EndpointIndex,
    flows: Vec<WorldFlow>,
    probes: Vec<ProbeSource>,
    /// Some probes have sockets with buffers.
    sockets_fill: bool,
    messages: MessageEngine,
    /// When flows without an end stop, the last one first.
    stops: Vec<(Time, usize)>,
    timers: EventSet,
    control: Option<Box<ControlLoop>>,
    notices: Option<Box<Notices>>,
    now: Time,
    seed: u64,
    unfinished: usize,
    strays: u64,
    /// Whether the causes that release external hosts' packets are recorded.
    follows: bool,
}

impl World {
    /// Puts both ends of each flow on the hosts of `fabric`. `seed` decides initial sequence numbers and jitter.
    ///
    /// # Errors
    /// When a flow names a host that does not exist, sends to itself, has nothing to send, or when a host has no port
    /// left.
    pub fn new(fabric: Fabric, flows: Vec<FlowConfig>, seed: u64) -> Result<Self, BuildError> {
        Self::with(fabric, flows, vec![], &Messages::default(), seed)
    }

    /// Like [`World::new`], with probes, and with messages on some of the flows: those connect when a message is due.
    ///
    /// # Errors
    /// As [`World::new`]; or when a probe names a host that does not exist, sends to itself or has an interval of zero;
    /// or when a message names no flow, a flow with a start or with another size than that of all its messages, or
    /// depends on a later message.
    pub fn with(
        mut fabric: Fabric,
        flows: Vec<FlowConfig>,
        probes: Vec<ProbeConfig>,
        messages: &Messages,
        seed: u64,
    ) -> Result<Self, BuildError> {
        messages::check(messages, &flows)?;
        let endpoints = EndpointIndex::new(&flows, fabric.hosts())?;
        let scale = fabric.time_scale();
        let mut externals = 0;
        let probe = |(index, config): (usize, ProbeConfig)| {
            let before = externals;
            externals += usize::from(config.external);
            ProbeSource::new(config, index, before, fabric.hosts(), scale)
        };
        let probes = probes.into_iter().enumerate().map(probe).collect::<Result<Vec<_>, _>>()?;
        let sockets_fill = probes.iter().any(ProbeSource::has_buffer);
        if sockets_fill {
            fabric.stop_at_sent();
        }
        if flows.iter().any(|flow| !flow.external) {
            fabric.keep_left();
        }
        let messages = MessageEngine::new(messages, flows.len(), scale);
        let mut timers = EventSet::new(&[
            (EventKind::Timer, flows.len() * 2),
            (EventKind::Stop, 1),
            (EventKind::Probe, probes.len()),
            (EventKind::Control, 1),
            (EventKind::Message, 1),
            (EventKind::Notice, 1),
        ]);
        let mut stops = vec![];
        let mut built = Vec::with_capacity(flows.len());
        for (index, config) in flows.into_iter().enumerate() {
            let waits = config.absent || messages.carries(index);
            let start = if waits { Time::MAX } else { config.starts_at(index, seed, scale) };
            if !config.external && !waits {
                timers.set(Some(start), EventKind::Timer, endpoints.of_flows[index][0]);
                stops.extend(config.stop.map(|stop| (fabric.at(stop), index)));
            }
            let reported = config.external.then(Box::default);
            built.push(WorldFlow { config, start, finish: None, acknowledged: false, reported });
        }
        for (index, probe) in probes.iter().enumerate() {
            timers.set(probe.starts_at(), EventKind::Probe, index);
        }
        let starts: Vec<_> = built.iter().map(|flow| (&flow.config, flow.start)).collect();
        let control = ControlLoop::of(&mut fabric, &starts, &endpoints).map(Box::new);
        timers.set(control.as_ref().map(|_| Time::ZERO), EventKind::Control, 0);
        if control.as_ref().is_some_and(|control| control.records_writes()) {
            let external = |(index, flow): (usize, &WorldFlow)| {
                (flow.config.external && !messages.carries(index)).then_some(index)
            };
            for index in built.iter().enumerate().filter_map(external) {
                timers.set(Some(built[index].start), EventKind::Timer, endpoints.of_flows[index][0]);
            }
        }
        let notices = Notices::of(&fabric, built.iter().map(|flow| &flow.config), &endpoints).map(Box::new);
        timers.set(notices.as_ref().map(|notices| notices.next()), EventKind::Notice, 0);
        stops.sort_unstable_by_key(|stop| std::cmp::Reverse(*stop));
        timers.set(stops.last().map(|stop| stop.0), EventKind::Stop, 0);
        timers.set(messages.next(), EventKind::Message, 0);
        let connections = ConnectionTable::new(built.len() * 2);
        let unfinished = built.iter().filter(|flow| flow.config.size.is_some() && !flow.config.absent).count();
        let (flows, now) = (built, Time::ZERO);
        Ok(World {
            fabric,
            connections,
            wait_queues: WaitQueues::default(),
            endpoints,
            flows,
            probes,
            sockets_fill,
            messages,
            stops,
            timers,
            control,
            notices,
            now,
            seed,
            unfinished,
            strays: 0,
            follows: false,
        })
    }

    /// Runs up to and at `until`.
    pub fn run_until(&mut self, until: Time) {
        self.drive(until, false, &mut NoExternalHosts);
    }

    /// Runs until every flow of a given size and every message is complete, or up to `until`.
    pub fn run_until_finished(&mut self, until: Time) {
        self.drive(until, true, &mut NoExternalHosts);
    }

    /// When there is work next; `None` while nothing moves. It changes by [`World::run`], [`World::inject`] and
    /// [`World::complete_message`] only.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        match (self.fabric.next(), self.timers.next()) {
            (Some(fabric), Some(timer)) => Some(fabric.min(timer)),
            (one, other) => one.or(other),
        }
    }

    /// Runs up to and at `until`, or the first moment before it upon which external hosts may act
    /// ([`ExternalHosts::acts`]); [`World::now`] is then that moment.
    pub fn run(&mut self, until: Time, external: &mut impl ExternalHosts) {
        self.drive(until, false, external);
    }

    /// An external host hands in a packet, at the moment up to which the world has been run. `None` when an injected
    /// fault has lost it; [`ExternalHosts::on_drop`] is called for that too.
    ///
    /// # Panics
    /// When the packet's destination, or the host, is none of the fabric's.
    #[inline]
    pub fn inject(&mut self, host: HostId, packet: Packet) -> Option<PacketId> {
        if !self.follows {
            if let Some(causes) = self.fabric.causes() {
                causes.on_other();
            }
            return self.fabric.inject(host, packet, self.now);
        }
        self.follow_departure(&packet);
        let id = self.fabric.inject(host, packet, self.now)?;
        self.follow_leaving(&packet);
        Some(id)
    }

    /// A flow between external hosts is complete now.
    ///
    /// # Panics
    /// When the flow is simulated, or there is no such flow.
    pub fn complete(&mut self, number: usize) {
        let flow = &mut self.flows[number];
        assert!(flow.reported.is_some(), "the world itself sees when a simulated flow is complete");
        if flow.finish.is_none() {
            flow.finish = Some(self.now);
            self.unfinished -= usize::from(flow.config.size.is_some());
            if self.follows {
                self.follow_delivery(number);
            }
        }
    }

    /// The state of a flow between external hosts, as these report it.
    ///
    /// # Panics
    /// When the flow is simulated, or there is no such flow.
    pub fn reported_mut(&mut self, flow: usize) -> &mut FlowState {
        self.flows[flow].reported.as_mut().expect("the world itself knows a simulated flow's state")
    }

    /// Runs from one moment at which hosts have work to the next, up to and at `until`. With `until_finished` it stops
    /// earlier if the world [is finished](World::is_finished) earlier.
    fn drive<X: ExternalHosts>(&mut self, until: Time, until_finished: bool, external: &mut X) {
        while !(until_finished && self.is_finished()) {
            self.step(external, until);
            if external.acts() || self.now >= until {
                return;
            }
        }
    }

    /// Runs to the next moment at which hosts have work.
    #[inline(always)]
    fn step<X: ExternalHosts>(&mut self, external: &mut X, until: Time) {
        self.now = self.fabric.run_to_exit(self.timers.next().map_or(until, |timer| timer.min(until)));
        if X::PRESENT || self.sockets_fill {
            self.on_sent(external);
        }
        if X::PRESENT {
            while let Some(id) = self.fabric.poll_drop() {
                external.on_drop(id);
            }
        }
        while let Some((host, port)) = self.fabric.poll_left() {
            self.on_left(host, port);
        }
        while let Some(host) = self.fabric.poll_room() {
            self.on_room(host, external);
        }
        while let Some(exit) = self.fabric.poll_exit() {
            if X::PRESENT && self.follows {
                self.follow_arrival(exit.packet, exit.host);
            }
            if X::PRESENT && external.on_exit(exit.packet, self.fabric.packet(exit.packet), exit.host) {
                self.note_probe(exit.packet);
                self.fabric.release(exit.packet);
            } else {
                self.deliver(exit);
            }
        }
        while let Some(event) = self.timers.due(self.now) {
            self.on_timer(event);
        }
    }

    #[inline]
    fn deliver(&mut self, exit: Exit) {
        let Some(segment) = self.fabric.packet(exit.packet).tcp() else { return self.deliver_elsewhere(exit) };
        let Some(index) = self.endpoints.at(exit.host, segment.dport()) else { return self.deliver_elsewhere(exit) };
        let Some(flow_end) = self.connections.get_mut(index) else {
            // After a flow's end packets that were sent needlessly may still be in flight.
            self.strays += u64::from(!self.connections.is_over(index));
            return self.fabric.release(exit.packet);
        };
        let more = self.fabric.upcoming_exit().is_some_and(|next| is_same(self.fabric.packet(next.packet), segment));
        flow_end.connection.expect_more(more);
        flow_end.connection.on_segment(segment, self.now);
        if let Some(causes) = self.fabric.causes() {
            causes.on_arrival(index, exit.packet);
        }
        self.fabric.release(exit.packet);
        let flow_end = if flow_end.is_at_goal() {
            if self.on_goal(index) {
                return;
            }
            self.connections.get_mut(index).expect("its flow is not over")
        } else {
            flow_end
        };
        if let Some(deadline) = flow_end.transmit(index, &mut self.fabric, &mut self.wait_queues, self.now) {
            self.timers.set_if_earlier(deadline, EventKind::Timer, index);
        }
    }

    /// A packet that no connection expects: a probe's, or a stray.
    #[cold]
    fn deliver_elsewhere(&mut self, exit: Exit) {
        let packet = self.fabric.packet(exit.packet);
        let datagram = packet.probe();
        match datagram.and_then(|datagram| Some((self.probes.get_mut(datagram.number())?, datagram))) {
            Some((probe, datagram)) => probe.on_arrival(datagram, self.now),
            None => self.strays += 1,
        }
        self.fabric.release(exit.packet);
    }

    /// A receiver's program has a message, or all bytes of its flow, or a sender has all bytes acknowledged. Returns
    /// whether the flow is over with that.
    #[cold]
    fn on_goal(&mut self, endpoint: usize) -> bool {
        let flow_end = self.connections.get_mut(endpoint).expect("an end at its goal has a connection");
        flow_end.goal = u64::MAX;
        let number = flow_end.flow as usize;
        let flow = &mut self.flows[number];
        if flow_end.receives {
            if let Some(causes) = self.fabric.causes() {
                causes.on_delivery(endpoint, number, flow_end.connection.bytes_received(), self.now);
            }
            if self.messages.carries(number) {
                self.on_received(endpoint, number);
                return false;
            }
            flow.finish = Some(self.now);
            self.unfinished -= usize::from(flow.config.size.is_some());
            return flow.acknowledged && self.close(number);
        }
        flow.acknowledged = true;
        (flow.finish.is_some() || self.messages.carries(number)) && self.close(number)
    }

    /// Removes the connections of a flow that is over; returns true.
    fn close(&mut self, number: usize) -> bool {
        let flow = &mut self.flows[number];
        let endpoints = self.endpoints.of_flows[number];
        flow.reported = self.connections.state(endpoints).map(Box::new);
        self.connections.close(endpoints);
        if let Some(timeline) = self.fabric.recorder().and_then(|recorder| recorder.timeline.as_mut()) {
            timeline.closed(number, self.now);
        }
        for endpoint in endpoints {
            self.timers.set(None, EventKind::Timer, endpoint);
        }
        true
    }

    /// Sends the packets that a connection has to send, as far as there is room. Returns when its timer is due.
    fn transmit(&mut self, endpoint: usize) -> Option<Time> {
        self.connections.get_mut(endpoint)?.transmit(endpoint, &mut self.fabric, &mut self.wait_queues, self.now)
    }

    fn on_timer(&mut self, event: PendingEvent) {
        match event.kind() {
            EventKind::Stop => self.on_stop(),
            EventKind::Probe => self.on_probe(event.index()),
            EventKind::Control => self.on_control(),
            EventKind::Message => self.on_messages(),
            EventKind::Notice => self.on_notice(),
            _ => self.on_deadline(event.index()),
        }
    }

    /// A connection's timer goes off: a flow starts, a deadline has come, or it has moved back meanwhile.
    fn on_deadline(&mut self, endpoint: usize) {
        let (due, deadline) = match self.connections.get_mut(endpoint) {
            Some(flow_end) => {
                let connection = &mut flow_end.connection;
                if let Some(causes) = self.fabric.causes() {
                    causes.on_timers(endpoint, connection.alarms(self.now), connection.is_reading(self.now));
                }
                let due = (connection.on_timeout(self.now), connection.poll_timeout());
                if flow_end.receives && flow_end.is_at_goal() {
                    // What the program's last call sends goes out before the flow is over.
                    self.transmit(endpoint);
                    if self.on_goal(endpoint) {
                        return;
                    }
                }
                due
            }
            None => {
                if let Some(causes) = self.fabric.causes() {
                    causes.on_program(endpoint);
                }
                self.start(endpoint);
                (true, None)
            }
        };
        // A sender that waits for more room goes on waiting when its deadline has moved back.
        let deadline = if due { self.transmit(endpoint) } else { deadline };
        self.timers.set(deadline, EventKind::Timer, endpoint);
    }

    /// The flow whose sender is this endpoint connects and sends all its bytes. External hosts do so by themselves: for
    /// them only the write is recorded.
    fn start(&mut self, endpoint: usize) {
        let number = self.endpoints.flow_at(endpoint);
        let FlowConfig { size, stop, external, .. } = self.flows[number].config;
        if !external {
            self.open(number);
            let sender = &mut self.connections.get_mut(endpoint).expect("it was opened").connection;
            sender.write_all(size.map_or(u64::MAX, Bytes::get), stop.is_some(), self.now);
        }
        if self.control.as_ref().is_some_and(|control| control.records_writes()) {
            self.record_write(number, size.map(Bytes::get));
        }
    }

    /// Connects a flow.
    fn open(&mut self, number: usize) {
        let config = &self.flows[number].config;
        let mut isn = stream(self.seed, &format!("flow{number}"), "isn");
        let isns = [0, 1].map(|_| uniform(&mut isn, 1 << 32) as u32);
        self.connections.open(config, &self.endpoints, number, isns);
        let sender = self.endpoints.of_flows[number][0];
        self.connections.get_mut(sender).expect("it was opened").connection.connect(self.now);
    }

    /// Records that bytes are written to a flow.
    fn record_write(&mut self, number: usize, bytes: Option<u64>) {
        let FlowConfig { src, dst, .. } = self.flows[number].config;
        self.fabric.on_write(self.endpoints.of_flows[number][0], [src, dst], bytes);
    }

    fn on_control(&mut self) {
        let control = self.control.as_mut().expect("a control loop is due");
        let next = control.on_due(&mut self.fabric, self.now);
        self.timers.set(Some(next), EventKind::Control, 0);
    }

    /// Senders are notified of circuits.
    fn on_notice(&mut self) {
        while let Some(senders) = self.notices.as_mut().and_then(|notices| notices.poll(self.now)) {
            for (endpoint, up) in senders {
                let Some(flow_end) = self.connections.get_mut(endpoint) else { continue };
                flow_end.connection.on_circuit(up);
                if let Some(causes) = self.fabric.causes() {
                    causes.on_notice(endpoint);
                }
                if let Some(deadline) = self.transmit(endpoint) {
                    self.timers.set_if_earlier(deadline, EventKind::Timer, endpoint);
                }
            }
        }
        self.timers.set(self.notices.as_ref().map(|notices| notices.next()), EventKind::Notice, 0);
    }

    /// The next flow that stops has reached its stop time.
    fn on_stop(&mut self) {
        let (_, number) = self.stops.pop().expect("a stop is due");
        self.timers.set(self.stops.last().map(|stop| stop.0), EventKind::Stop, 0);
        let [sender, receiver] = self.endpoints.of_flows[number];
        if self.control.is_some() {
            let config = &self.flows[number].config;
            self.fabric.on_end([config.src, config.dst]);
        }
        let Some(flow_end) = self.connections.get_mut(sender) else { return };
        let bytes = flow_end.connection.end_write();
        for endpoint in [receiver, sender] {
            let flow_end =
                self.connections.get_mut(endpoint).expect("both ends have a connection until both are closed");
            flow_end.goal = bytes;
            if flow_end.is_at_goal() {
                self.on_goal(endpoint);
            }
        }
    }

    /// How far the world has been run.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The fabric.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The fabric, so that measurements can be set up.
    pub fn fabric_mut(&mut self) -> &mut Fabric {
        &mut self.fabric
    }

    /// Whether every flow of a given size and every message is complete.
    pub fn is_finished(&self) -> bool {
        self.left() == 0
    }

    /// Flows of a given size and messages that are not complete.
    pub fn left(&self) -> usize {
        self.unfinished + self.messages.left()
    }

    /// Flows of a given size that are not complete.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// The part of all flows' bytes that their receivers have in order, of flows of a given size: 0 to 1.
    pub fn part_received(&self) -> f64 {
        let (mut received, mut all) = (0u128, 0u128);
        for (flow, [_, receiver]) in self.flows.iter().zip(&self.endpoints.of_flows) {
            let Some(size) = flow.config.size.filter(|_| !flow.config.absent) else { continue };
            all += u128::from(size.get());
            received += u128::from(match (flow.finish, &flow.reported) {
                (Some(_), _) => size.get(),
                (None, Some(state)) => state.bytes_received,
                (None, None) => self.connections.get(*receiver).map_or(0, |end| end.connection.bytes_received()),
            });
        }
        if all == 0 { 1.0 } else { received as f64 / all as f64 }
    }

    /// Packets that arrived for a port without a connection or a probe.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// The report of each flow, in the order in which they were given.
    pub fn flows(&self) -> Vec<FlowReport> {
        self.flows.iter().zip(&self.endpoints.of_flows).map(|(flow, endpoints)| self.report(flow, *endpoints)).collect()
    }

    /// How far each flow has come, between external hosts as they reported last.
    pub fn progress(&self) -> Vec<FlowProgress> {
        let of = |(flow, report): (&WorldFlow, FlowReport)| FlowProgress {
            bytes_received: report.bytes_received,
            cwnd: flow.reported.is_none().then_some(report.cwnd),
        };
        self.flows.iter().zip(self.flows()).map(of).collect()
    }

    fn report(&self, flow: &WorldFlow, endpoints: [usize; 2]) -> FlowReport {
        let FlowConfig { src, dst, size, .. } = flow.config;
        let (sport, dport) = (self.endpoints.port(src, endpoints[0]), self.endpoints.port(dst, endpoints[1]));
        let (start, finish) = (flow.start, flow.finish);
        let state = flow.reported.as_deref().copied().or_else(|| self.connections.state(endpoints)).unwrap_or_default();
        FlowReport { src, dst, sport, dport, start, size, finish, state }
    }

    /// The probes of external hosts: hosts and ports of their datagrams, and their numbers.
    pub fn external_probes(&self) -> impl Iterator<Item = (FlowTuple, usize)> {
        let of = |(number, probe): (usize, &ProbeSource)| Some((probe.external_tuple()?, number));
        self.probes.iter().enumerate().filter_map(of)
    }

    /// An external host sends a datagram of this probe now: returns the packet to [inject](World::inject), which
    /// carries timestamps of the interfaces.
    ///
    /// # Panics
    /// When there is no such probe.
    pub fn take_probe(&mut self, number: usize, packet: &Packet) -> Packet {
        self.probes[number].count_sent(self.now);
        let probe = Packet::new_probe(packet.src(), packet.dst(), packet.size(), number, self.now);
        probe.with_tuple(packet.tuple()).with_ecn(packet.ecn()).with_class(packet.class())
    }

    /// A packet has been delivered to an external host: notes it if it is a probe's.
    #[inline]
    fn note_probe(&mut self, id: PacketId) {
        if let Some(datagram) = self.fabric.packet(id).probe() {
            self.probes[datagram.number()].on_arrival(datagram, self.now);
        }
    }

    /// The report of each probe, in the order in which they were given.
    pub fn probes(&self) -> Vec<ProbeReport> {
        self.probes.iter().map(ProbeSource::report).collect()
    }
}

/// Whether another packet is a data segment of the same connection, in the same direction.
fn is_same(other: &Packet, segment: TcpSegment<'_>) -> bool {
    other.tcp().is_some_and(|other| other.is_data() && other.tuple() == segment.tuple())
}
