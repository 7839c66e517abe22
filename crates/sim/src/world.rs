//! Simulated hosts at a fabric's edge: our own loop over time, and the first driver of [`Fabric`].
//!
//! Connections are grouped by host, and the k-th connection of a host has local port 10000 + k, so that a packet finds
//! its connection by arithmetic. Each connection has one timer, moved lazily: at once only when its deadline comes
//! forward; one that goes off too early is put where the deadline is by then.
//!
//! Flows whose ends are outside have ports and a report here, nothing else. Whoever has their hosts steps the world with
//! [`World::next`], [`World::run`] and [`World::inject`], and gets their packets as [`Outside`].

use crate::config::ConfigError;
use crate::events::{Events, Kind};
use crate::fabric::{Exit, Fabric};
use crate::flow::{FIRST_PORT, FlowConfig, FlowReport, FlowState, Places};
use crate::outside::{Nobody, Outside};
use crate::stream::{stream, uniform};
use firstlight_net::{HostId, Packet, PacketId};
use firstlight_transport::{Connection, Endpoint};
use firstlight_units::{Bytes, Time};

/// One end of a flow.
#[derive(Debug)]
struct End {
    connection: Connection,
    host: HostId,
    flow: u32,
    /// A sender that has not connected yet: its timer is the flow's start.
    idle: bool,
    /// The flow is complete when so many bytes have been received; `u64::MAX` for none.
    goal: u64,
}

#[derive(Debug)]
struct Flow {
    config: FlowConfig,
    start: Time,
    finish: Option<Time>,
    /// What its ends told last, when they are outside.
    told: Option<Box<FlowState>>,
}

/// A fabric with simulated hosts.
pub struct World {
    fabric: Fabric,
    ends: Vec<End>,
    places: Places,
    flows: Vec<Flow>,
    timers: Events,
    now: Time,
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
        let places = Places::new(&flows, fabric.hosts())?;
        let mut timers = Events::new(&[(Kind::Timer, flows.len() * 2)]);
        let mut ends: Vec<Option<End>> = (0..flows.len() * 2).map(|_| None).collect();
        let mut built = Vec::with_capacity(flows.len());
        for (index, config) in flows.into_iter().enumerate() {
            let mut isn = stream(seed, &format!("flow{index}"), "isn");
            for side in [0, 1] {
                let isn = uniform(&mut isn, 1 << 32) as u32;
                ends[places.ends[index][side]] = Some(End::new(&config, side, &places, index, isn));
            }
            let start = config.starts_at(index, seed, fabric.time_scale());
            let told = if config.outside {
                Some(Box::default())
            } else {
                timers.set(Some(start), Kind::Timer, places.ends[index][0]);
                None
            };
            built.push(Flow { config, start, finish: None, told });
        }
        let ends = ends.into_iter().map(|end| end.expect("every place is one end of one flow")).collect();
        let unfinished = built.iter().filter(|flow| flow.config.size.is_some()).count();
        Ok(World { fabric, ends, places, flows: built, timers, now: Time::ZERO, unfinished, strays: 0 })
    }

    /// Runs up to and at `until`.
    pub fn run_until(&mut self, until: Time) {
        while self.step(until, &mut Nobody) {}
    }

    /// Runs until every flow of a given size is complete, or up to `until`.
    pub fn run_until_finished(&mut self, until: Time) {
        while self.unfinished > 0 && self.step(until, &mut Nobody) {}
    }

    /// When there is work next; `None` while nothing moves. It changes by [`World::run`] and [`World::inject`] only.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        match (self.fabric.next(), self.timers.next()) {
            (Some(fabric), Some(timer)) => Some(fabric.min(timer)),
            (one, other) => one.or(other),
        }
    }

    /// Runs up to and at `until`, for somebody who has hosts outside.
    pub fn run(&mut self, until: Time, outside: &mut impl Outside) {
        while self.step(until, outside) {}
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

    /// Goes on to the next moment at which hosts have something to do; false when that is not before `until`.
    #[inline]
    fn step<O: Outside>(&mut self, until: Time, outside: &mut O) -> bool {
        self.now = self.fabric.run_to_exit(self.timers.next().map_or(until, |timer| timer.min(until)));
        if O::PRESENT {
            while let Some(id) = self.fabric.poll_drop() {
                outside.on_drop(id);
            }
        }
        while let Some(exit) = self.fabric.poll_exit() {
            if O::PRESENT && outside.on_exit(exit.packet, self.fabric.packet(exit.packet), exit.host) {
                self.fabric.release(exit.packet);
            } else {
                self.deliver(exit);
            }
        }
        while let Some(event) = self.timers.due(self.now) {
            self.on_timer(event.index());
        }
        self.now < until
    }

    #[inline]
    fn deliver(&mut self, exit: Exit) {
        let packet = self.fabric.packet(exit.packet);
        let port = usize::from(packet.dport.wrapping_sub(FIRST_PORT));
        let host = exit.host.index();
        let (index, end) = (self.places.first[host] as usize + port, self.places.first[host + 1] as usize);
        if index >= end {
            self.strays += 1;
            return self.fabric.release(exit.packet);
        }
        let end = &mut self.ends[index];
        end.connection.on_packet(packet, self.now);
        self.fabric.release(exit.packet);
        if end.connection.bytes_received() >= end.goal {
            end.goal = u64::MAX;
            self.flows[end.flow as usize].finish = Some(self.now);
            self.unfinished -= 1;
        }
        if let Some(deadline) = self.transmit(index) {
            self.timers.set_if_earlier(deadline, Kind::Timer, index);
        }
    }

    /// Sends what a connection has to send and tells when its timer is due.
    #[inline]
    fn transmit(&mut self, index: usize) -> Option<Time> {
        let end = &mut self.ends[index];
        while self.fabric.inject_with(end.host, self.now, |packet| end.connection.transmit(self.now, packet)) {}
        end.connection.poll_timeout()
    }

    /// A connection's timer goes off: a flow starts, a deadline has come, or it has moved back meanwhile.
    fn on_timer(&mut self, index: usize) {
        let end = &mut self.ends[index];
        if end.idle {
            end.idle = false;
            end.connection.connect(self.now);
            let size = self.flows[end.flow as usize].config.size;
            end.connection.write(size.map_or(u64::MAX, Bytes::get), self.now);
        } else {
            end.connection.on_timeout(self.now);
        }
        let deadline = self.transmit(index);
        self.timers.set(deadline, Kind::Timer, index);
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

    fn report(&self, flow: &Flow, ends: [usize; 2]) -> FlowReport {
        let [sport, dport] = ends.map(|end| self.places.port(self.ends[end].host, end));
        let FlowConfig { src, dst, size, .. } = flow.config;
        let (start, finish) = (flow.start, flow.finish);
        let state = flow.told.as_deref().copied().unwrap_or_else(|| self.state(ends));
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

    fn state(&self, ends: [usize; 2]) -> FlowState {
        let [sender, receiver] = ends.map(|end| &self.ends[end].connection);
        FlowState {
            bytes_acked: sender.bytes_acked(),
            bytes_received: receiver.bytes_received(),
            cwnd: sender.cwnd(),
            srtt: sender.srtt(),
            min_rtt: sender.min_rtt(),
            sender: *sender.stats(),
            receiver: *receiver.stats(),
        }
    }
}

impl End {
    fn new(config: &FlowConfig, side: usize, places: &Places, flow: usize, isn: u32) -> End {
        let (hosts, ends) = ([config.src, config.dst], places.ends[flow]);
        let endpoint = |side: usize| Endpoint { host: hosts[side], port: places.port(hosts[side], ends[side]) };
        let goal = config.size.filter(|_| side == 1).map_or(u64::MAX, Bytes::get);
        let connection = Connection::new(&config.tcp, &config.cc, endpoint(side), endpoint(1 - side), isn);
        End { connection, host: hosts[side], flow: flow as u32, idle: side == 0, goal }
    }
}
