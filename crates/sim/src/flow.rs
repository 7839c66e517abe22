//! Flows: their configuration, their reports, and the endpoints and ports that they have.

use crate::FIRST_PORT;
use crate::config::BuildError;
use crate::stream::{stream, uniform};
use firstlight_net::HostId;
use firstlight_transport::{CcConfig, ReadRate, Stats, TcpConfig};
use firstlight_units::{Bytes, Span, Time};
use std::ops::Deref;

/// One flow.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// The host that sends.
    pub src: HostId,
    /// The host that receives.
    pub dst: HostId,
    /// Both endpoints' TCP.
    pub tcp: TcpConfig,
    /// Both endpoints' congestion control.
    pub cc: CcConfig,
    /// Bytes to send, those of all messages if the flow has some; `None` for a flow that never ends.
    pub size: Option<Bytes>,
    /// When the flow connects, in the fabric's own time; zero where messages decide that.
    pub start: Span,
    /// When a flow without `size` has nothing more to send, in the fabric's own time; `None` for never.
    pub stop: Option<Span>,
    /// The flow connects up to this much later, drawn at random.
    pub jitter: Span,
    /// Traffic class of the flow's packets, ACKs included: 0 to 7.
    pub class: u8,
    /// How fast the receiving program reads, on its host's clock; `None`: what has arrived, at once.
    pub reads: Option<ReadRate>,
    /// Both ends are on external hosts: `tcp` and `cc` have no effect, and the flow's state is what its hosts report.
    pub external: bool,
    /// The flow never starts, and nothing waits for it.
    pub absent: bool,
}

impl FlowConfig {
    /// When the flow connects, on the engine's clock, as flow `index` of a world with this seed and time scale. Hosts'
    /// clocks count whole nanoseconds.
    pub fn starts_at(&self, index: usize, seed: u64, time_scale: u32) -> Time {
        let scale = u64::from(time_scale);
        let mut random = stream(seed, &format!("flow{index}"), "jitter");
        let jitter = uniform(&mut random, (self.jitter * scale).as_ps());
        let ps = (self.start * scale).as_ps() + jitter;
        Time::from_ns(ps.div_ceil(Span::from_ns(1).as_ps()))
    }
}

/// The state of a flow's ends at some moment. Times are on the hosts' clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowState {
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

/// How far a flow has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowProgress {
    /// Bytes that its receiver has in order.
    pub bytes_received: u64,
    /// The congestion window of a simulated sender, in packets.
    pub cwnd: Option<u32>,
}

/// The report of a flow. Times and spans are on the hosts' clock: divide by the time scale for the fabric's.
#[derive(Clone, Debug)]
pub struct FlowReport {
    /// The host that sends.
    pub src: HostId,
    /// The host that receives.
    pub dst: HostId,
    /// The sender's port.
    pub sport: u16,
    /// The receiver's port.
    pub dport: u16,
    /// When the flow connects; [`Time::MAX`] while none of its messages was due.
    pub start: Time,
    /// Bytes to send; `None` for a flow that never ends.
    pub size: Option<Bytes>,
    /// When the receiving program had all bytes.
    pub finish: Option<Time>,
    /// The state of its ends.
    pub state: FlowState,
}

impl Deref for FlowReport {
    type Target = FlowState;

    fn deref(&self) -> &FlowState {
        &self.state
    }
}

/// The endpoints of all flows: grouped by host, the k-th endpoint of a host at local port 10000 + k.
#[derive(Clone, Debug)]
pub(crate) struct EndpointIndex {
    /// The first endpoint of each host, and one past the last.
    pub(crate) first: Vec<u32>,
    /// The sending and the receiving endpoint of each flow.
    pub(crate) of_flows: Vec<[usize; 2]>,
    /// The flow of each endpoint.
    flows: Vec<u32>,
}

impl EndpointIndex {
    /// # Errors
    /// When a flow names a host that does not exist, sends to itself, has nothing to send, or when a host has no port
    /// left.
    pub(crate) fn new(flows: &[FlowConfig], hosts: usize) -> Result<Self, BuildError> {
        let mut per_host = vec![0u32; hosts];
        for (index, flow) in flows.iter().enumerate() {
            count(flow, &mut per_host).map_err(|problem| BuildError::Flow { index, problem })?;
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
        let of_flows: Vec<[usize; 2]> = flows.iter().map(|flow| [take(flow.src), take(flow.dst)]).collect();
        let mut of_endpoints = vec![0; of_flows.len() * 2];
        for (flow, endpoints) in of_flows.iter().enumerate() {
            for endpoint in endpoints {
                of_endpoints[*endpoint] = flow as u32;
            }
        }
        Ok(EndpointIndex { first, of_flows, flows: of_endpoints })
    }

    /// The flow of an endpoint.
    pub(crate) fn flow_at(&self, endpoint: usize) -> usize {
        self.flows[endpoint] as usize
    }

    /// The endpoint at this port of a host, if there is one.
    #[inline]
    pub(crate) fn at(&self, host: HostId, port: u16) -> Option<usize> {
        endpoint_at(&self.first, host, port)
    }

    /// The local port of an endpoint.
    pub(crate) fn port(&self, host: HostId, endpoint: usize) -> u16 {
        FIRST_PORT + (endpoint - self.first[host.index()] as usize) as u16
    }
}

/// The endpoint at this port of a host, if there is one, where these are the first endpoints of all hosts and one past
/// the last.
#[inline]
pub(crate) fn endpoint_at(first: &[u32], host: HostId, port: u16) -> Option<usize> {
    let endpoint = first[host.index()] as usize + usize::from(port.wrapping_sub(FIRST_PORT));
    (endpoint < first[host.index() + 1] as usize).then_some(endpoint)
}

/// Counts a flow's endpoints, or returns why the flow is invalid.
fn count(flow: &FlowConfig, per_host: &mut [u32]) -> Result<(), String> {
    let hosts = per_host.len();
    for host in [flow.src, flow.dst] {
        let Some(count) = per_host.get_mut(host.index()) else {
            return Err(format!("host {} does not exist: there are hosts 0 to {}", host.0, hosts - 1));
        };
        *count += 1;
        if *count > u32::from(u16::MAX - FIRST_PORT) + 1 {
            return Err(format!("host {} has no port left", host.0));
        }
    }
    if flow.src == flow.dst {
        return Err(format!("host {} sends to itself", flow.src.0));
    }
    if flow.class > 7 {
        return Err(format!("there is no traffic class {}: there are 0 to 7", flow.class));
    }
    if flow.stop.is_some() && flow.size.is_some() {
        return Err("it has both a size and a stop: keep one".into());
    }
    if flow.stop.is_some_and(|stop| stop <= flow.start + flow.jitter) {
        return Err("it stops before it starts".into());
    }
    if flow.size == Some(Bytes::new(0)) {
        return Err("it has nothing to send".into());
    }
    Ok(())
}
