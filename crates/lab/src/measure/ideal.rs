//! The least completion time of a flow on an empty fabric: slowdowns are measured against it.
//!
//! The time is that of the connection's handshake and of all segments back to back, stored and forwarded by each
//! switch, headers included, without waiting for a window or an ACK. Each packet passes the stacks of both hosts
//! (`hosts.send_delay`, `hosts.receive_delay`). Where hosts receive at a rate of their own (`adapter.drain`), this is
//! one more link. So a slowdown is the cost of fabric and transport, not of hosts.
//!
//! The client sends a SYN (60 bytes), the server a SYN-ACK (60), the client an ACK (52) and the segments; the flow is
//! complete when the last segment has arrived. Headers are those of TCP with timestamps, also for congestion controls
//! that send more options, so that slowdowns compare. A sender that cuts a segment at the end of an offered window can
//! be faster by one packet's time on the last link.
//!
//! Along one path with one rate everywhere this is, of N full segments of MTU bytes and a last one of L, over h links:
//! twice the handshake's (60 h / rate + delays), then (52 + N MTU) / rate + h L / rate + delays, if L is not much
//! smaller than the MTU: a small last segment waits behind a full one at each link.

use firstlight_net::topology::{Routes, Wire};
use firstlight_net::{Framing, HostId};
use firstlight_sim::{FlowReport, GraphConfig};
use firstlight_spec::{Network, Spec};
use firstlight_transport::TcpConfig;
use firstlight_units::{Bytes, Rate, Span};

/// A SYN or SYN-ACK: IP, TCP, and the options MSS, window scale, SACK permitted and timestamps.
const SYN: Bytes = Bytes::new(60);

/// A link of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathLink {
    /// Rate of the link.
    pub rate: Rate,
    /// Propagation delay of the link, and the delay of a host's stack at its end.
    pub delay: Span,
    /// The framing that the link adds to each packet.
    pub framing: Framing,
}

/// Least completion times on one network.
pub struct Ideal<'a> {
    /// `None` where the time is not a single number: over a circuit it depends on the start.
    graph: Option<(&'a GraphConfig, Routes)>,
    tcp: &'a TcpConfig,
}

impl<'a> Ideal<'a> {
    /// The least times on an experiment's network.
    pub fn of(spec: &'a Spec) -> Self {
        let graph = match &spec.network {
            Network::Graph(graph) => Some((&**graph, Routes::new(&graph.topology, graph.seed))),
            Network::Hybrid(_) => None,
        };
        Ideal { graph, tcp: &spec.tables.tcp.tcp }
    }

    /// The least time from connecting at `src` until `dst` has `size` bytes, in the fabric's own time, on one of the
    /// shortest paths.
    pub fn completion(&self, src: HostId, dst: HostId, size: Bytes) -> Option<Span> {
        Some(completion_on(&self.hops(src, dst)?, &self.hops(dst, src)?, self.tcp, size))
    }

    /// The least time from writing `size` bytes to an open connection until the receiver has them, in the fabric's own
    /// time.
    pub(super) fn transfer(&self, src: HostId, dst: HostId, size: Bytes) -> Option<Span> {
        Some(arrival(&self.hops(src, dst)?, &segments(self.tcp, size)))
    }

    /// The links of the path from stack to stack.
    fn hops(&self, src: HostId, dst: HostId) -> Option<Vec<PathLink>> {
        let (config, routes) = self.graph.as_ref().filter(|_| src != dst)?;
        let path = routes.path(&config.topology, src, dst, 0);
        let framing = config.interface.framing;
        let link = |Wire { rate, delay }| PathLink { rate, delay, framing };
        let mut hops: Vec<PathLink> = path.wires().map(link).collect();
        hops.first_mut()?.delay += config.interface.send_delay;
        hops.extend(config.interface.adapter.receive.map(|bus| PathLink {
            rate: bus.drain,
            delay: Span::ZERO,
            framing: Framing::Ip,
        }));
        hops.last_mut()?.delay += config.interface.receive_delay;
        Some(hops)
    }

    /// A complete flow's completion time, divided by the least one.
    pub(super) fn slowdown(&self, spec: &Spec, flow: &FlowReport) -> Option<f64> {
        let ideal = self.completion(flow.src, flow.dst, flow.size?)?;
        Some(super::flows::completion(spec, flow)?.as_us_f64() / ideal.as_us_f64())
    }
}

/// The least time from connecting until the receiver has `size` bytes, on empty paths in both directions.
pub fn completion_on(forward: &[PathLink], reverse: &[PathLink], tcp: &TcpConfig, size: Bytes) -> Span {
    let handshake = arrival(forward, &[(1, SYN)]) + arrival(reverse, &[(1, SYN)]);
    let [full, last] = segments(tcp, size);
    let ack = (1, Bytes::new(u64::from(tcp.mtu) - u64::from(tcp.mss())));
    handshake + arrival(forward, &[ack, full, last])
}

/// The packets that carry `size` bytes: full ones, and a last one.
fn segments(tcp: &TcpConfig, size: Bytes) -> [(u64, Bytes); 2] {
    let (mss, mtu) = (u64::from(tcp.mss()), u64::from(tcp.mtu));
    let full = size.get().saturating_sub(1) / mss;
    [(full, Bytes::new(mtu)), (1, Bytes::new(size.get() - full * mss + mtu - mss))]
}

/// Time until the last packet of a train has arrived, since the first packet was handed to the first link. The train is
/// given as runs of packets of one size, each with its count, which are all ready at the start.
///
/// On each link the packets of a run arrive evenly spaced, or all at once. The first packet starts when it has arrived
/// and the link is free. The last packet ends when the whole run has been sent back to back, or, if packets arrive
/// slower than the link sends, one packet's time after the last arrival.
fn arrival(path: &[PathLink], train: &[(u64, Bytes)]) -> Span {
    let mut free = vec![Span::ZERO; path.len()];
    let mut end = Span::ZERO;
    for &(count, size) in train.iter().filter(|(count, _)| *count > 0) {
        // When the run's first and last packets arrive at the link.
        let (mut first, mut last) = (Span::ZERO, Span::ZERO);
        for (hop, free) in path.iter().zip(&mut free) {
            let each = hop.rate.tx_time(hop.framing.on_link(size));
            let start = first.max(*free);
            *free = (start + each * count).max(last + each);
            (first, last) = (start + each + hop.delay, *free + hop.delay);
        }
        end = last;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hop(gbps: u64, us: u64) -> PathLink {
        PathLink { rate: Rate::from_gbps(gbps), delay: Span::from_us(us), framing: Framing::Ip }
    }

    #[test]
    fn completion_times_are_those_computed_by_hand() {
        // 8 bits at 10 Gb/s: 0.8 ns a byte.
        let (tcp, path) = (TcpConfig { mtu: 1500, ..TcpConfig::default() }, [hop(10, 1); 2]);
        let (handshake, delays) = (2 * (2 * 48_000 + 2_000_000), 2_000_000);
        let of = |size| completion_on(&path, &path, &tcp, Bytes::new(size)).as_ps();
        assert_eq!(of(1448), handshake + delays + 41_600 + 2 * 1_200_000);
        assert_eq!(of(14_480), handshake + delays + 41_600 + 11 * 1_200_000);
        // One byte more is a packet of 53 bytes, which waits at the second link until the segment before it has left.
        assert_eq!(of(1449), handshake + delays + 41_600 + 2 * 1_200_000 + 42_400);
        // A last link of a tenth of the rate sends all packets; after such a first link the second sends only the last.
        let slow = [hop(10, 0), hop(1, 0)];
        assert_eq!(arrival(&slow, &[(5, Bytes::new(1500))]), Span::from_ns(1_200 + 5 * 12_000));
        let fast = [hop(1, 0), hop(10, 0)];
        assert_eq!(arrival(&fast, &[(5, Bytes::new(1500))]), Span::from_ns(5 * 12_000 + 1_200));
        // Framing of 38 bytes, 30.4 ns, on each of two links: of both SYNs, the ACK, and of one segment twice.
        let framed = path.map(|hop| PathLink { framing: Framing::Ethernet, ..hop });
        let more = completion_on(&framed, &framed, &tcp, Bytes::new(1448))
            - completion_on(&path, &path, &tcp, Bytes::new(1448));
        assert_eq!(more.as_ps(), (2 + 2 + 1 + 2) * 30_400);
    }

    /// The arrival of the train, computed packet by packet.
    fn literal(path: &[PathLink], train: &[(u64, Bytes)]) -> Span {
        let mut free = vec![Span::ZERO; path.len()];
        let mut at = Span::ZERO;
        for size in train.iter().flat_map(|&(count, size)| (0..count).map(move |_| size)) {
            at = Span::ZERO;
            for (hop, free) in path.iter().zip(&mut free) {
                *free = at.max(*free) + hop.rate.tx_time(size);
                at = *free + hop.delay;
            }
        }
        at
    }

    proptest! {
        #[test]
        fn arrival_of_runs_is_that_of_their_packets(
            path in proptest::collection::vec((1u64..50, 0u64..3), 1..6), full in 0u64..40, last in 53u64..1500
        ) {
            let path: Vec<PathLink> = path.into_iter().map(|(gbps, us)| hop(gbps, us)).collect();
            let train = [(1, Bytes::new(52)), (full, Bytes::new(1500)), (1, Bytes::new(last))];
            let (runs, packets) = (arrival(&path, &train).as_ps(), literal(&path, &train).as_ps());
            prop_assert!(runs.abs_diff(packets) <= packets / 10_000, "{} and {} ps", runs, packets);
        }
    }
}
