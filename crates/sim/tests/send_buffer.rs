//! Sending buffers of hosts' interfaces: who waits, who goes when there is room, and that nothing else changes.

mod harness;

use firstlight_messages::Messages;
use firstlight_net::interface::ChainConfig;
use firstlight_net::pfc::PfcConfig;
use firstlight_net::topology::{Cable, Graph, LeafSpine};
use firstlight_net::{Direction, Discipline, HostId, PacerConfig, Packet};
use firstlight_sim::{
    AdapterConfig, CaptureSink, Fabric, FlowConfig, GraphConfig, HybridConfig, InterfaceConfig, PortKind, PortReport,
    ProbeConfig, SwitchConfig, VoqConfig, World,
};
use firstlight_transport::{CcConfig, TcpConfig};
use firstlight_units::{Bytes, Rate, Span, Time};
use harness::*;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

fn held(bytes: u64) -> AdapterConfig {
    AdapterConfig { send_buffer: Some(Bytes::new(bytes)), ..AdapterConfig::default() }
}

fn with_buffer(config: GraphConfig, bytes: u64) -> GraphConfig {
    GraphConfig { interface: InterfaceConfig { adapter: held(bytes), ..config.interface }, ..config }
}

/// Data packets of 1500 bytes.
fn flow(src: u16, dst: u16, size: u64) -> FlowConfig {
    FlowConfig { tcp: TcpConfig { mtu: 1500, ..TcpConfig::default() }, ..harness::flow(src, dst, Some(size)) }
}

fn probe(src: u16, dst: u16, every: Span, count: u64) -> ProbeConfig {
    let (src, dst) = (HostId(src), HostId(dst));
    ProbeConfig {
        src,
        dst,
        size: 1500,
        every,
        start: Span::ZERO,
        count: Some(count),
        more: vec![],
        class: 0,
        send_buffer: None,
        record: true,
        external: false,
    }
}

fn world(fabric: Fabric, flows: Vec<FlowConfig>, probes: Vec<ProbeConfig>) -> World {
    World::with(fabric, flows, probes, &Messages::default(), 1).unwrap()
}

/// A packet at a host's edge: when, whose, which way, size and port.
type EdgePacket = (Time, HostId, bool, u16, u16, u64);

#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Vec<EdgePacket>>>);

impl CaptureSink for Witness {
    fn packet(&mut self, packet: &Packet, at: Time, host: HostId, direction: Direction) {
        let sent = direction == Direction::Sent;
        self.0.lock().unwrap().push((at, host, sent, packet.size(), packet.sport(), packet.digest_words()[1]));
    }
}

impl Witness {
    fn of(world: &mut World) -> Self {
        let witness = Witness::default();
        world.fabric_mut().set_capture(Box::new(witness.clone()));
        witness
    }

    /// Large packets that a host has handed in: when, and from which port.
    fn handed_in(&self, host: u16) -> Vec<(Time, u16)> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|s| s.1 == HostId(host) && s.2 && s.3 == 1500).map(|s| (s.0, s.4)).collect()
    }
}

fn nics(fabric: &Fabric) -> Vec<PortReport> {
    fabric.ports().into_iter().filter(|port| port.kind == PortKind::HostNic).collect()
}

/// 1500 bytes last 1.2 us. The packet in service counts whole until its last bit has left.
#[test]
fn room_is_told_when_the_last_bit_has_left() {
    let mut fabric = Fabric::graph(&with_buffer(star(2, None, None), 3000)).unwrap();
    let host = HostId(0);
    for seq in 0..2 {
        assert!(fabric.has_room(host), "{seq}");
        fabric.inject(host, packet(0, 1, 1500, seq), Time::ZERO);
    }
    assert!(!fabric.has_room(host) && fabric.has_room(HostId(1)));
    assert_eq!(fabric.departure(host), None, "it is reported when it happens");
    assert_eq!(fabric.run_to_exit(at(us(9))), at(ns(1200)));
    assert_eq!((fabric.poll_room(), fabric.poll_room()), (Some(host), None));
    assert!(fabric.has_room(host));
    // Nobody asks any more: nothing stops the run but the first packet's arrival, 3.2 us after its last bit left.
    fabric.inject(host, packet(0, 1, 500, 2), at(ns(1200)));
    assert_eq!(fabric.run_to_exit(at(us(9))), at(ns(1200 + 1000 + 1200 + 1000)));
    assert_eq!(nics(&fabric)[0].peak_bytes, Some(3000));
    assert_conserved(&fabric);
}

/// Twice as fast as the link: those whose time has passed follow one by one, each when there is room, be it the
/// interface or the source's own socket that is full.
#[test]
fn datagrams_wait_for_room() {
    for (interface, send_buffer) in
        [(Some(3000), None), (None, Some(Bytes::new(3000))), (Some(3000), Some(Bytes::new(1 << 20)))]
    {
        let star = star(2, None, None);
        let fabric = Fabric::graph(&interface.map_or(star.clone(), |limit| with_buffer(star, limit))).unwrap();
        let source = ProbeConfig { more: vec![(us(20), 1)], send_buffer, ..probe(0, 1, ns(600), 8) };
        let mut world = world(fabric, vec![], vec![source]);
        world.run_until(at(us(40)));
        let report = &world.probes()[0];
        let sent: Vec<u64> = report.samples.iter().map(|sample| sample.sent.as_ps() / 1000).collect();
        assert_eq!(sent, [0, 600, 1200, 2400, 3600, 4800, 6000, 7200, 20_000]);
        let latency: Vec<u64> = report.samples.iter().map(|sample| sample.latency.as_ps() / 1000).collect();
        assert_eq!(
            latency,
            [4400, 5000, 5600, 5600, 5600, 5600, 5600, 5600, 4400],
            "two packets and two links at most"
        );
        assert_eq!((report.sent, report.received), (9, 9));
        assert_eq!(nics(world.fabric())[0].peak_bytes, interface);
        assert_conserved(world.fabric());
    }
}

/// A flow that receives ACKs while it waits has one place in the wait queue: the flow and a source at twice the link's
/// rate share the link.
#[test]
fn a_waiting_flow_has_one_place_in_the_wait_queue() {
    let fabric = Fabric::graph(&with_buffer(star(3, None, None), 3000)).unwrap();
    let mut world = world(fabric, vec![flow(0, 1, 1 << 30)], vec![probe(0, 2, ns(600), 10_000)]);
    world.run_until(at(us(5000)));
    let [mut begun, mut ended] = [[0; 2]; 2];
    for (when, counts) in [(5000, &mut begun), (9000, &mut ended)] {
        world.run_until(at(us(when)));
        *counts = [world.flows()[0].sender.packets_sent, world.probes()[0].sent];
    }
    let [data, datagrams] = [0, 1].map(|index| ended[index] - begun[index]);
    assert!(data > 1500 && data.abs_diff(datagrams) <= 2, "{data} and {datagrams} take turns");
}

/// Two sources at line rate and one flow: what waits of a source is its socket's alone, and a smaller socket gets less
/// of the link.
#[test]
fn each_socket_holds_its_own() {
    let fabric = Fabric::graph(&with_buffer(star(3, None, None), 1 << 20)).unwrap();
    let source = |dst, packets: u64| ProbeConfig {
        send_buffer: Some(Bytes::new(packets * 1500)),
        ..probe(0, dst, ns(100), 1000)
    };
    let mut world = world(fabric, vec![flow(0, 1, 20 * 1448)], vec![source(1, 2), source(2, 6)]);
    world.run_until(at(us(200)));
    let [small, large] = [0, 1].map(|index| world.probes()[index].received);
    assert!(
        small > 20 && large.abs_diff(3 * small) < 12,
        "{small} and {large}: in the proportion of what waits of each"
    );
    let peak = nics(world.fabric())[0].peak_bytes.unwrap();
    assert!((12_000..12_000 + 20 * 1500).contains(&peak), "{peak} are the sockets' and the flow's window at most");
    assert!(world.is_finished(), "the flow is behind eight datagrams at most");
}

/// A datagram that has waited delays none after it: one source is due every 2 us, and a burst of five is in its way
/// from 1.9 us on. Its third waits from 4 us to 5.5, second in the line, and its fourth from 6 us.
#[test]
fn a_datagram_is_due_whenever_the_one_before_was_sent() {
    let fabric = Fabric::graph(&with_buffer(star(2, None, None), 3000)).unwrap();
    let burst = ProbeConfig { start: ns(1900), ..probe(0, 1, ns(100), 5) };
    let mut world = world(fabric, vec![], vec![probe(0, 1, us(2), 4), burst]);
    world.run_until(at(us(40)));
    let sent = world.probes().iter().map(|p| p.samples.iter().map(|s| s.sent.as_ps() / 1000).collect()).collect();
    let sent: Vec<Vec<u64>> = sent;
    assert_eq!(sent, [vec![0, 2000, 5500, 7900], vec![1900, 3100, 4300, 6700, 9100]]);
}

/// Both have all to send from when their handshakes are over; an interface that holds less than a packet takes one at a
/// time, so that they go in turns, back to back.
#[test]
fn two_flows_take_turns() {
    for buffer in [1, 1500] {
        let fabric = Fabric::graph(&with_buffer(star(3, None, None), buffer)).unwrap();
        let mut world = world(fabric, vec![flow(0, 1, 5 * 1448), flow(0, 2, 5 * 1448)], vec![]);
        let witness = Witness::of(&mut world);
        world.run_until_finished(at(us(1000)));
        // A SYN of 60 bytes lasts 48 ns, and so does its answer; then goes the ACK, 52 bytes in 41.6 ns, and the first
        // packet. The other flow's SYN has waited for 48 ns: when its answer comes the first flow has its second packet
        // in the line, so its ACK goes after that one, and its first packet after the next.
        let ack = Span::from_ps(41_600);
        let begin = (ns(48) + us(1)) * 4 + ack;
        // With 1500 bytes there is room behind an ACK at once.
        let behind = |n: u64| if buffer > 1 && [0, 2].contains(&n) { ack } else { Span::ZERO };
        let time = |n: u64| at(begin + ns(1200) * n + ack * u64::from(n > 1) - behind(n));
        let ports = [0, 0, 0, 1, 0, 1, 0, 1, 1, 1].map(|flow| 10_000 + flow);
        let expected: Vec<_> = (0..).map(time).zip(ports).collect();
        assert_eq!(witness.handed_in(0), expected);
        assert!(world.is_finished());
        assert_conserved(world.fabric());
    }
}

/// 10 Gb/s into a host that is reached at 1 Gb/s, with PFC, and a connection that shares only its sender's link.
fn paused(buffer: Option<u64>) -> World {
    let mut graph = Graph::default();
    let switch = graph.switch("s", "switch");
    for (index, gbps) in [10, 10, 1].into_iter().enumerate() {
        let host = graph.host(format!("host{index}"));
        graph.link(host, switch, Cable::new(Rate::from_gbps(gbps), us(1)));
    }
    let pfc = PfcConfig { xoff: Some(Bytes::new(3000)), xon: Some(Bytes::new(1500)), response: Some(us(1)), ..PFC };
    let switch = SwitchConfig { pfc: Some(pfc), ..SwitchConfig::default() };
    let adapter = AdapterConfig { send_buffer: buffer.map(Bytes::new), ..AdapterConfig::default() };
    let config = GraphConfig {
        topology: graph.build().unwrap(),
        interface: InterfaceConfig { adapter, ..InterfaceConfig::default() },
        switch,
        ..star(2, None, None)
    };
    let message = FlowConfig { start: us(2000), ..flow(0, 1, 1448) };
    world(Fabric::graph(&config).unwrap(), vec![message], vec![probe(0, 2, ns(1200), 5000)])
}

const PFC: PfcConfig = PfcConfig::of_all(Bytes::new(1500));

/// Datagrams at 10 Gb/s leave at 1: after 2 ms there are nine tenths of them, 18 ms, before a SYN. With a buffer of two
/// packets, which are sent in 24 us on average, each of SYN, ACK and data waits for the datagram before it in the line
/// and for what the interface holds: three packets, and 36 us and a round of pauses at most.
#[test]
fn a_connection_waits_for_the_buffer_and_not_for_all_datagrams() {
    let (mut without, mut with) = (paused(None), paused(Some(3000)));
    let time = |world: &mut World| {
        world.run_until_finished(at(us(90_000)));
        world.flows()[0].finish.unwrap() - at(us(2000))
    };
    assert!(time(&mut without) > us(18_000));
    let waited = time(&mut with);
    assert!(waited > us(24) && waited < us(3 * (36 + 12)), "{waited}");
    for world in [&mut without, &mut with] {
        world.run_until(at(us(90_000)));
        let probe = &world.probes()[0];
        assert_eq!((probe.sent, probe.received), (5000, 5000), "all arrive");
        assert_eq!(world.fabric().pauses().unwrap().lost, 0);
        assert_conserved(world.fabric());
    }
    assert_eq!(nics(with.fabric())[0].peak_bytes, Some(3060), "a SYN stands before two datagrams");
    // The last datagram waits before the stack instead of behind it: two in the interface, and no more than four at the
    // switch.
    let [late, fresh] = [&without, &with].map(|world| world.probes()[0].samples.last().copied().unwrap());
    assert!(late.latency > us(50_000) && fresh.latency < us(7 * 12), "{late:?} {fresh:?}");
    assert_eq!((late.sent, fresh.sent > at(us(50_000))), (at(ns(1200 * 4999)), true));
}

/// A fabric with the features that may delay packets between stack and wire.
#[derive(Clone, Debug)]
struct Case {
    hybrid: bool,
    pfc: bool,
    classes: usize,
    pacer: bool,
    qcn: bool,
    loss: bool,
    send_delay: Span,
    scale: u32,
    flows: Vec<(u16, u16, u64)>,
    probes: Vec<(u16, u16, u64)>,
    /// The bytes in each probe's socket.
    socket: Option<u64>,
}

const HOSTS: u16 = 4;

fn case() -> impl Strategy<Value = Case> {
    let ends = || (0..HOSTS, 1..HOSTS).prop_map(|(src, more)| (src, (src + more) % HOSTS));
    let flows = prop::collection::vec((ends(), 1u64..200_000).prop_map(|((src, dst), n)| (src, dst, n)), 1..6);
    let probes = prop::collection::vec((ends(), 1u64..60).prop_map(|((src, dst), n)| (src, dst, n)), 0..4);
    let kind = (any::<bool>(), any::<bool>(), 0usize..3, any::<bool>(), any::<bool>(), any::<bool>());
    let times = (prop::sample::select(vec![0u64, 300, 2000]), prop::sample::select(vec![1u32, 20]));
    let socket = prop::option::of(1u64..20_000);
    (kind, times, flows, probes, socket).prop_map(
        |((hybrid, pfc, classes, pacer, qcn, loss), (delay, scale), flows, probes, socket)| Case {
            hybrid,
            pfc,
            classes,
            pacer,
            qcn,
            loss,
            send_delay: ns(delay),
            scale,
            flows,
            probes,
            socket,
        },
    )
}

impl Case {
    fn fabric(&self, buffer: Option<u64>) -> Fabric {
        let pacer = PacerConfig { chance: 1.0, ..PacerConfig::HULL };
        let mut interface = InterfaceConfig {
            send_delay: self.send_delay,
            loss: if self.loss { 0.01 } else { 0.0 },
            stamps: ChainConfig::default(),
            adapter: AdapterConfig { send_buffer: buffer.map(Bytes::new), ..AdapterConfig::default() },
            ..InterfaceConfig::default()
        };
        interface.tables.pacer = self.pacer.then_some(pacer);
        interface.tables.qcn = self.qcn.then(nervous);
        let pfc = self.pfc.then_some(PFC);
        let (seed, time_scale) = (1, self.scale);
        if self.hybrid {
            let mut config = HybridConfig { interface, pfc, seed, time_scale, ..paper(2) };
            config.voq = VoqConfig::packets(if self.pfc { 1 << 20 } else { 16 }, Some(3));
            return Fabric::hybrid(&config).unwrap();
        }
        let cable = Cable::new(Rate::from_gbps(10), us(1));
        let topology = LeafSpine { leaves: 2, spines: 1, hosts_per_leaf: 2, host: cable, uplink: cable }.build();
        let classes = vec![Discipline::packets(None, Some(5)); self.classes];
        let discipline = Discipline::packets(None, Some(5));
        let switch = SwitchConfig { discipline, classes, pfc, ..SwitchConfig::default() };
        let topology = topology.unwrap();
        Fabric::graph(&GraphConfig { topology, interface, switch, spray: false, time_scale, seed }).unwrap()
    }

    fn world(&self, buffer: Option<u64>) -> World {
        let dctcp = CcConfig::from_name("dctcp").unwrap();
        let class = |index: usize| (index % 2) as u8;
        let flow = |(index, &(src, dst, size)): (usize, &(u16, u16, u64))| FlowConfig {
            class: class(index),
            cc: dctcp.clone(),
            tcp: TcpConfig { mtu: 1500, ..TcpConfig::default() },
            ..flow(src, dst, size)
        };
        let probe = |(index, &(src, dst, count)): (usize, &(u16, u16, u64))| ProbeConfig {
            class: class(index),
            send_buffer: self.socket.map(Bytes::new),
            ..probe(src, dst, ns(1000), count)
        };
        let flows = self.flows.iter().enumerate().map(flow).collect();
        world(self.fabric(buffer), flows, self.probes.iter().enumerate().map(probe).collect())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// An interface holds less than its limit and one packet, whatever features it has, and no sender waits without
    /// end.
    #[test]
    fn interfaces_hold_no_more_and_all_arrives(case in case(), buffer in prop_oneof![1u64..1500, 1500u64..40_000]) {
        let mut world = case.world(Some(buffer));
        let end = world.fabric().at(us(4_000_000));
        world.run_until_finished(end);
        prop_assert!(world.is_finished(), "{:?}", world.flows());
        world.run_until(end);
        let totals = world.fabric().totals();
        prop_assert!(totals.imbalances.is_empty(), "{:?}", totals.imbalances);
        prop_assert_eq!(totals.held, 0);
        let peaks: Vec<u64> = nics(world.fabric()).iter().map(|nic| nic.peak_bytes.unwrap()).collect();
        prop_assert!(peaks.iter().all(|peak| *peak < buffer + 1500), "{:?}", peaks);
        for (probe, (_, _, count)) in world.probes().iter().zip(&case.probes) {
            prop_assert_eq!(probe.sent, *count);
        }
        let sent: u64 = world.probes().iter().map(|probe| probe.sent).sum();
        let received: u64 = world.probes().iter().map(|probe| probe.received).sum();
        prop_assert!(sent - received <= totals.lost + totals.dropped);
        prop_assert!(case.loss || case.hybrid || totals.lost + totals.dropped == 0);
    }

    /// Where the limit is never reached, all is as without one.
    #[test]
    fn a_limit_that_is_never_reached_changes_nothing(case in case()) {
        let run = |buffer| {
            let mut world = case.world(buffer);
            let witness = Witness::of(&mut world);
            world.run_until(world.fabric().at(us(20_000)));
            let seen = witness.0.lock().unwrap().clone();
            (seen, world)
        };
        let ((seen, without), (same, with)) = (run(None), run(Some(1 << 40)));
        prop_assert!(seen.len() >= 10, "a handshake, data and its ACK, there and back");
        prop_assert_eq!(seen, same);
        for (a, b) in without.flows().iter().zip(with.flows()) {
            prop_assert_eq!((a.finish, a.bytes_acked), (b.finish, b.bytes_acked));
            prop_assert_eq!((a.sender, a.receiver), (b.sender, b.receiver));
        }
        prop_assert_eq!(without.fabric().digest(), with.fabric().digest());
    }
}

/// Host 2's second flow has a tail loss probe due while its interface holds another's packet, and all that it has sent
/// is acknowledged before its turn comes: then it sends what is left.
#[test]
fn a_probe_that_waited_too_long_is_none() {
    let case = Case {
        hybrid: false,
        pfc: false,
        classes: 0,
        pacer: true,
        qcn: false,
        loss: false,
        send_delay: ns(0),
        scale: 20,
        flows: vec![(2, 0, 26_065), (2, 0, 15_929), (0, 1, 28_730)],
        probes: vec![(1, 3, 24), (3, 1, 15)],
        socket: None,
    };
    let mut world = case.world(Some(1));
    let end = world.fabric().at(us(10_000));
    world.run_until_finished(end);
    assert!(world.is_finished(), "{:?}", world.flows()[1]);
}
