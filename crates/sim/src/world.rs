//! Simulated hosts at a fabric's edge: our own loop over time, and the first driver of [`Fabric`].
//!
//! Connections are grouped by host, and the k-th connection of a host has local port 10000 + k, so that a packet finds
//! its connection by arithmetic. Each connection has one timer, moved lazily: at once only when its deadline comes
//! forward; one that goes off too early is put where the deadline is by then.

use crate::config::ConfigError;
use crate::events::{Events, Kind};
use crate::fabric::{Exit, Fabric};
use crate::stream::{stream, uniform};
use firstlight_net::HostId;
use firstlight_transport::{CcConfig, Connection, Endpoint, Stats, TcpConfig};
use firstlight_units::{Bytes, Span, Time};

/// The first local port of every host.
const FIRST_PORT: u16 = 10_000;

/// One flow to simulate.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// Who sends.
    pub src: HostId,
    /// Who receives.
    pub dst: HostId,
    /// Both endpoints' TCP.
    pub tcp: TcpConfig,
    /// Both endpoints' congestion control.
    pub cc: CcConfig,
    /// How much to send; `None` never ends.
    pub size: Option<Bytes>,
    /// When to connect, in the fabric's own time.
    pub start: Span,
    /// Up to this much later, drawn at random.
    pub jitter: Span,
}

/// What became of a flow. Times and spans are on the hosts' clock: divide by the time scale for the fabric's.
#[derive(Clone, Debug)]
pub struct FlowReport {
    /// Who sends.
    pub src: HostId,
    /// Who receives.
    pub dst: HostId,
    /// The sender's port.
    pub sport: u16,
    /// The receiver's port.
    pub dport: u16,
    /// The congestion control's name.
    pub cc: &'static str,
    /// When it connected.
    pub start: Time,
    /// How much it was to send.
    pub size: Option<Bytes>,
    /// When the receiver had all of it in order.
    pub finish: Option<Time>,
    /// Bytes acknowledged to the sender.
    pub bytes_acked: u64,
    /// Bytes in order at the receiver.
    pub bytes_received: u64,
    /// The sender's window, in packets.
    pub cwnd: u32,
    /// The sender's smoothed round-trip time.
    pub srtt: Option<Span>,
    /// The sender's smallest round-trip time.
    pub min_rtt: Option<Span>,
    /// What the sender counted.
    pub sender: Stats,
    /// What the receiver counted.
    pub receiver: Stats,
}

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
    /// The sending and the receiving end.
    ends: [usize; 2],
}

/// A fabric with simulated hosts.
pub struct World {
    fabric: Fabric,
    ends: Vec<End>,
    /// The first end of each host.
    first: Vec<u32>,
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
        let (first, places) = place(&flows, fabric.hosts())?;
        let scale = u64::from(fabric.time_scale());
        let mut timers = Events::new(&[(Kind::Timer, flows.len() * 2)]);
        let mut ends: Vec<Option<End>> = (0..flows.len() * 2).map(|_| None).collect();
        let mut built = Vec::with_capacity(flows.len());
        for (index, (config, place)) in flows.into_iter().zip(places).enumerate() {
            let name = format!("flow{index}");
            let mut isn = stream(seed, &name, "isn");
            for side in [0, 1] {
                let isn = uniform(&mut isn, 1 << 32) as u32;
                ends[place[side]] = Some(End::new(&config, side, &first, place, index, isn));
            }
            let jitter = uniform(&mut stream(seed, &name, "jitter"), (config.jitter * scale).as_ps());
            let start = Time::ZERO + config.start * scale + Span::from_ps(jitter);
            timers.set(Some(start), Kind::Timer, place[0]);
            built.push(Flow { config, start, finish: None, ends: place });
        }
        let ends = ends.into_iter().map(|end| end.expect("every place is one end of one flow")).collect();
        let unfinished = built.iter().filter(|flow| flow.config.size.is_some()).count();
        Ok(World { fabric, ends, first, flows: built, timers, now: Time::ZERO, unfinished, strays: 0 })
    }

    /// Runs up to and at `until`.
    pub fn run_until(&mut self, until: Time) {
        while self.step(until) {}
    }

    /// Runs until every flow of a given size is complete, or up to `until`.
    pub fn run_until_finished(&mut self, until: Time) {
        while self.unfinished > 0 && self.step(until) {}
    }

    /// Goes on to the next moment at which hosts have something to do; false when that is not before `until`.
    #[inline]
    fn step(&mut self, until: Time) -> bool {
        self.now = self.fabric.run_to_exit(self.timers.next().map_or(until, |timer| timer.min(until)));
        while let Some(exit) = self.fabric.poll_exit() {
            self.deliver(exit);
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
        let (index, end) = (self.first[host] as usize + port, self.first[host + 1] as usize);
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
        self.flows.iter().map(|flow| self.report(flow)).collect()
    }

    fn report(&self, flow: &Flow) -> FlowReport {
        let [sender, receiver] = flow.ends.map(|end| &self.ends[end].connection);
        FlowReport {
            src: flow.config.src,
            dst: flow.config.dst,
            sport: self.port_of(flow.ends[0]),
            dport: self.port_of(flow.ends[1]),
            cc: flow.config.cc.name(),
            start: flow.start,
            size: flow.config.size,
            finish: flow.finish,
            bytes_acked: sender.bytes_acked(),
            bytes_received: receiver.bytes_received(),
            cwnd: sender.cwnd(),
            srtt: sender.srtt(),
            min_rtt: sender.min_rtt(),
            sender: *sender.stats(),
            receiver: *receiver.stats(),
        }
    }

    fn port_of(&self, end: usize) -> u16 {
        port(&self.first, self.ends[end].host, end)
    }
}

impl End {
    fn new(config: &FlowConfig, side: usize, first: &[u32], place: [usize; 2], flow: usize, isn: u32) -> End {
        let hosts = [config.src, config.dst];
        let endpoint = |side: usize| Endpoint { host: hosts[side], port: port(first, hosts[side], place[side]) };
        let goal = config.size.filter(|_| side == 1).map_or(u64::MAX, Bytes::get);
        let connection = Connection::new(&config.tcp, &config.cc, endpoint(side), endpoint(1 - side), isn);
        End { connection, host: hosts[side], flow: flow as u32, idle: side == 0, goal }
    }
}

fn port(first: &[u32], host: HostId, end: usize) -> u16 {
    FIRST_PORT + (end - first[host.index()] as usize) as u16
}

/// The first end of each host (and one past the last), and the places of each flow's two ends.
fn place(flows: &[FlowConfig], hosts: usize) -> Result<(Vec<u32>, Vec<[usize; 2]>), ConfigError> {
    let mut per_host = vec![0u32; hosts];
    for (index, flow) in flows.iter().enumerate() {
        let fail = |problem: String| Err(ConfigError::Flow { index, problem });
        for host in [flow.src, flow.dst] {
            let Some(count) = per_host.get_mut(host.index()) else {
                return fail(format!("host {} does not exist: there are hosts 0 to {}", host.0, hosts - 1));
            };
            *count += 1;
            if *count > u32::from(u16::MAX - FIRST_PORT) + 1 {
                return fail(format!("host {} has no port left", host.0));
            }
        }
        if flow.src == flow.dst {
            return fail(format!("host {} sends to itself", flow.src.0));
        }
        if flow.size == Some(Bytes::new(0)) {
            return fail("it has nothing to send".into());
        }
    }
    let mut first = vec![0];
    first.extend(per_host.iter().scan(0, |sum, count| {
        *sum += count;
        Some(*sum)
    }));
    let mut next = first.clone();
    let mut take = |host: HostId| {
        next[host.index()] += 1;
        (next[host.index()] - 1) as usize
    };
    let places = flows.iter().map(|flow| [take(flow.src), take(flow.dst)]).collect();
    Ok((first, places))
}
