//! Simulated hosts at a fabric's edge: our own loop over time, and the first driver of [`Fabric`].
//!
//! Connections are grouped by host, and the k-th connection of a host has local port 10000 + k, so that a packet finds
//! its connection by arithmetic. Each connection has one timer, moved lazily: at once only when its deadline comes
//! forward; one that goes off too early is put where the deadline is by then.
//!
//! Flows whose ends are outside have ports and a report here, nothing else. Whoever has their hosts steps the world with
//! [`World::next`], [`World::run`] and [`World::inject`], and gets their packets as [`Outside`].

mod lines;
mod messages;

use crate::FIRST_PORT;
use crate::config::ConfigError;
use crate::control::Control;
use crate::ends::Ends;
use crate::events::{Event, Events, Kind};
use crate::fabric::{Exit, Fabric};
use crate::flow::{FlowConfig, FlowReport, FlowState, Places};
use crate::lines::Lines;
use crate::outside::{Nobody, Outside};
use crate::probe::{Probe, ProbeConfig, ProbeReport};
use crate::stream::{stream, uniform};
use firstlight_messages::{MessageEngine, Messages};
use firstlight_net::{HostId, Packet, PacketId};
use firstlight_units::{Bytes, Time};

#[derive(Debug)]
struct Flow {
    config: FlowConfig,
    start: Time,
    finish: Option<Time>,
    /// What its ends told last, when they are outside or gone.
    told: Option<Box<FlowState>>,
}

/// A fabric with simulated hosts.
pub struct World {
    fabric: Fabric,
    ends: Ends,
    lines: Lines,
    places: Places,
    flows: Vec<Flow>,
    probes: Vec<Probe>,
    /// Some of them have sockets with buffers.
    sockets_fill: bool,
    messages: MessageEngine,
    /// When flows stop that never end, the last one first.
    stops: Vec<(Time, usize)>,
    timers: Events,
    control: Option<Box<Control>>,
    now: Time,
    seed: u64,
    unfinished: usize,
    strays: u64,
}

impl World {
    /// Puts both ends of each flow on the hosts of `fabric`. `seed` decides initial sequence numbers and jitter.
    ///
    /// # Errors
    /// When a flow names a host that is not there, talks to itself, has nothing to send, or when a host has no port
    /// left.
    pub fn new(fabric: Fabric, flows: Vec<FlowConfig>, seed: u64) -> Result<Self, ConfigError> {
        Self::with(fabric, flows, vec![], &Messages::default(), seed)
    }

    /// Like [`World::new`], with probes, and with messages on some of the flows: those connect when a message is due.
    ///
    /// # Errors
    /// As [`World::new`]; or when a probe names a host that is not there, talks to itself or never pauses; or when a
    /// message names no flow, one with a start or with another size than that of all its messages, or
    /// comes after a later one.
    pub fn with(
        mut fabric: Fabric,
        flows: Vec<FlowConfig>,
        probes: Vec<ProbeConfig>,
        messages: &Messages,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        messages::check(messages, &flows)?;
        let places = Places::new(&flows, fabric.hosts())?;
        let scale = fabric.time_scale();
        let probe = |(index, config)| Probe::new(config, index, fabric.hosts(), scale);
        let probes = probes.into_iter().enumerate().map(probe).collect::<Result<Vec<_>, _>>()?;
        let sockets_fill = probes.iter().any(Probe::has_buffer);
        if sockets_fill {
            fabric.stop_at_sent();
        }
        let messages = MessageEngine::new(messages, flows.len(), scale);
        let mut timers = Events::new(&[
            (Kind::Timer, flows.len() * 2),
            (Kind::Stop, 1),
            (Kind::Probe, probes.len()),
            (Kind::Control, 1),
            (Kind::Message, 1),
        ]);
        let mut stops = vec![];
        let mut built = Vec::with_capacity(flows.len());
        for (index, config) in flows.into_iter().enumerate() {
            let waits = messages.carries(index);
            let start = if waits { Time::MAX } else { config.starts_at(index, seed, scale) };
            if !config.outside && !waits {
                timers.set(Some(start), Kind::Timer, places.ends[index][0]);
                stops.extend(config.stop.map(|stop| (fabric.at(stop), index)));
            }
            let told = config.outside.then(Box::default);
            built.push(Flow { config, start, finish: None, told });
        }
        for (index, probe) in probes.iter().enumerate() {
            timers.set(Some(probe.starts_at()), Kind::Probe, index);
        }
        let starts: Vec<_> = built.iter().map(|flow| (&flow.config, flow.start)).collect();
        let control = Control::of(&mut fabric, &starts, &places).map(Box::new);
        timers.set(control.as_ref().map(|_| Time::ZERO), Kind::Control, 0);
        if control.as_ref().is_some_and(|control| control.hears_writes()) {
            let outside =
                |(index, flow): (usize, &Flow)| (flow.config.outside && !messages.carries(index)).then_some(index);
            for index in built.iter().enumerate().filter_map(outside) {
                timers.set(Some(built[index].start), Kind::Timer, places.ends[index][0]);
            }
        }
        stops.sort_unstable_by_key(|stop| std::cmp::Reverse(*stop));
        timers.set(stops.last().map(|stop| stop.0), Kind::Stop, 0);
        timers.set(messages.next(), Kind::Message, 0);
        let ends = Ends::new(built.len() * 2);
        let unfinished = built.iter().filter(|flow| flow.config.size.is_some()).count();
        let (flows, now) = (built, Time::ZERO);
        Ok(World {
            fabric,
            ends,
            lines: Lines::default(),
            places,
            flows,
            probes,
            sockets_fill,
            messages,
            stops,
            timers,
            control,
            now,
            seed,
            unfinished,
            strays: 0,
        })
    }

    /// Runs up to and at `until`.
    pub fn run_until(&mut self, until: Time) {
        self.drive(until, false, &mut Nobody);
    }

    /// Runs until every flow of a given size and every message is complete, or up to `until`.
    pub fn run_until_finished(&mut self, until: Time) {
        self.drive(until, true, &mut Nobody);
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

    /// Runs up to and at `until`, for somebody who has hosts outside.
    pub fn run(&mut self, until: Time, outside: &mut impl Outside) {
        self.drive(until, false, outside);
    }

    /// A host outside hands in a packet, at the moment up to which the world has been run. `None` when an injected
    /// fault has lost it; the world tells its [`Outside`] of that too.
    ///
    /// # Panics
    /// When the packet's destination, or the host, is none of the fabric's.
    #[inline]
    pub fn inject(&mut self, host: HostId, packet: Packet) -> Option<PacketId> {
        self.fabric.inject(host, packet, self.now)
    }

    /// A flow with ends outside is complete now.
    ///
    /// # Panics
    /// When the flow is simulated, or there is no such flow.
    pub fn complete(&mut self, flow: usize) {
        let flow = &mut self.flows[flow];
        assert!(flow.told.is_some(), "a simulated flow's completion is seen here");
        if flow.finish.is_none() {
            flow.finish = Some(self.now);
            self.unfinished -= usize::from(flow.config.size.is_some());
        }
    }

    /// What the ends of a flow tell that are outside, for its report.
    ///
    /// # Panics
    /// When the flow is simulated, or there is no such flow.
    pub fn told_mut(&mut self, flow: usize) -> &mut FlowState {
        self.flows[flow].told.as_mut().expect("a simulated flow's state is seen here")
    }

    /// Goes on from one moment at which hosts have something to do to the next, up to and at `until`, or as long as something
    /// is `unfinished`.
    fn drive<O: Outside>(&mut self, until: Time, unfinished: bool, outside: &mut O) {
        while !(unfinished && self.is_finished()) {
            self.step(outside, until);
            if self.now >= until {
                return;
            }
        }
    }

    /// Goes on to the next of these moments.
    #[inline(always)]
    fn step<O: Outside>(&mut self, outside: &mut O, until: Time) {
        self.now = self.fabric.run_to_exit(self.timers.next().map_or(until, |timer| timer.min(until)));
        if O::PRESENT || self.sockets_fill {
            self.on_sent(outside);
        }
        if O::PRESENT {
            while let Some(id) = self.fabric.poll_drop() {
                outside.on_drop(id);
            }
        }
        while let Some(host) = self.fabric.poll_room() {
            self.on_room(host, outside);
        }
        while let Some(exit) = self.fabric.poll_exit() {
            if O::PRESENT && outside.on_exit(exit.packet, self.fabric.packet(exit.packet), exit.host) {
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
        let port = usize::from(segment.dport().wrapping_sub(FIRST_PORT));
        let host = exit.host.index();
        let (index, end) = (self.places.first[host] as usize + port, self.places.first[host + 1] as usize);
        if index >= end {
            return self.deliver_elsewhere(exit);
        }
        let Some(live) = self.ends.get_mut(index) else {
            // After a flow's end packets sent in vain may still be on their way.
            self.strays += u64::from(!self.ends.is_over(index));
            return self.fabric.release(exit.packet);
        };
        live.connection.on_segment(segment, self.now);
        self.fabric.release(exit.packet);
        let live = if live.is_at_goal() {
            if self.on_goal(index) {
                return;
            }
            self.ends.get_mut(index).expect("its flow is not over")
        } else {
            live
        };
        if let Some(deadline) = live.transmit(index, &mut self.fabric, &mut self.lines, self.now) {
            self.timers.set_if_earlier(deadline, Kind::Timer, index);
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

    /// An end has received a message, or has received, or knows to have delivered, all there is; true when its flow is over with that.
    #[cold]
    fn on_goal(&mut self, index: usize) -> bool {
        let live = self.ends.get_mut(index).expect("an end at its goal is there");
        live.goal = u64::MAX;
        let number = live.flow as usize;
        let flow = &mut self.flows[number];
        if live.receives {
            if self.messages.carries(number) {
                self.on_received(index, number);
                return false;
            }
            flow.finish = Some(self.now);
            self.unfinished -= usize::from(flow.config.size.is_some());
            return false;
        }
        let ends = self.places.ends[number];
        flow.told = self.ends.state(ends).map(Box::new);
        self.ends.close(ends);
        for place in ends {
            self.timers.set(None, Kind::Timer, place);
        }
        true
    }

    /// Sends what a connection has to send, as far as there is room for it, and tells when its timer is due.
    fn transmit(&mut self, index: usize) -> Option<Time> {
        self.ends.get_mut(index)?.transmit(index, &mut self.fabric, &mut self.lines, self.now)
    }

    fn on_timer(&mut self, event: Event) {
        match event.kind() {
            Kind::Stop => self.on_stop(),
            Kind::Probe => self.on_probe(event.index()),
            Kind::Control => self.on_control(),
            Kind::Message => self.on_messages(),
            _ => self.on_deadline(event.index()),
        }
    }

    /// A connection's timer goes off: a flow starts, a deadline has come, or it has moved back meanwhile.
    fn on_deadline(&mut self, index: usize) {
        match self.ends.get_mut(index) {
            Some(live) => live.connection.on_timeout(self.now),
            None => self.start(index),
        }
        let deadline = self.transmit(index);
        self.timers.set(deadline, Kind::Timer, index);
    }

    /// The flow whose sender has this place connects and sends all that it has. Who has its ends outside does so by
    /// himself: here it is only noted.
    fn start(&mut self, index: usize) {
        let number = self.places.flow_at(index);
        let FlowConfig { size, outside, .. } = self.flows[number].config;
        if !outside {
            self.open(number);
            let sender = &mut self.ends.get_mut(index).expect("it was opened").connection;
            sender.write(size.map_or(u64::MAX, Bytes::get), self.now);
        }
        if self.hears_writes() {
            self.tell_write(number, size.map(Bytes::get));
        }
    }

    /// A flow connects.
    fn open(&mut self, number: usize) {
        let config = &self.flows[number].config;
        let mut isn = stream(self.seed, &format!("flow{number}"), "isn");
        let isns = [0, 1].map(|_| uniform(&mut isn, 1 << 32) as u32);
        self.ends.open(config, &self.places, number, isns);
        let sender = self.places.ends[number][0];
        self.ends.get_mut(sender).expect("it was opened").connection.connect(self.now);
    }

    /// Something is written to a flow.
    fn tell_write(&mut self, number: usize, bytes: Option<u64>) {
        let FlowConfig { src, dst, .. } = self.flows[number].config;
        self.fabric.on_write(self.places.ends[number][0], [src, dst], bytes);
    }

    fn hears_writes(&self) -> bool {
        self.control.as_ref().is_some_and(|control| control.hears_writes())
    }

    fn on_control(&mut self) {
        let control = self.control.as_mut().expect("a control loop is due");
        let next = control.on_due(&mut self.fabric, self.now);
        self.timers.set(Some(next), Kind::Control, 0);
    }

    /// The next flow has nothing more to send.
    fn on_stop(&mut self) {
        let (_, number) = self.stops.pop().expect("a stop is due");
        self.timers.set(self.stops.last().map(|stop| stop.0), Kind::Stop, 0);
        let [sender, receiver] = self.places.ends[number];
        if self.control.is_some() {
            let config = &self.flows[number].config;
            self.fabric.on_end([config.src, config.dst]);
        }
        let Some(live) = self.ends.get_mut(sender) else { return };
        let bytes = live.connection.end_write();
        for place in [receiver, sender] {
            let live = self.ends.get_mut(place).expect("both ends are there until both have gone");
            live.goal = bytes;
            if live.is_at_goal() {
                self.on_goal(place);
            }
        }
    }

    /// How far it has been run.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The fabric.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The fabric, to set what is measured.
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

    /// Packets that arrived for a port where nobody listens.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// What became of each flow, in the order they were given.
    pub fn flows(&self) -> Vec<FlowReport> {
        self.flows.iter().zip(&self.places.ends).map(|(flow, ends)| self.report(flow, *ends)).collect()
    }

    /// Bytes in order at the receiver of each flow, of those outside as they told last.
    pub fn bytes_received(&self) -> Vec<u64> {
        self.flows().iter().map(|flow| flow.bytes_received).collect()
    }

    fn report(&self, flow: &Flow, ends: [usize; 2]) -> FlowReport {
        let FlowConfig { src, dst, size, .. } = flow.config;
        let (sport, dport) = (self.places.port(src, ends[0]), self.places.port(dst, ends[1]));
        let (start, finish) = (flow.start, flow.finish);
        let state = flow.told.as_deref().copied().or_else(|| self.ends.state(ends)).unwrap_or_default();
        let FlowState { bytes_acked, bytes_received, cwnd, srtt, min_rtt, sender, receiver } = state;
        FlowReport {
            src,
            dst,
            sport,
            dport,
            start,
            size,
            finish,
            bytes_acked,
            bytes_received,
            cwnd,
            srtt,
            min_rtt,
            sender,
            receiver,
        }
    }

    /// What became of each probe, in the order they were given.
    pub fn probes(&self) -> Vec<ProbeReport> {
        self.probes.iter().map(Probe::report).collect()
    }
}
