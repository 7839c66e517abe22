//! Lossless Ethernet. Nothing is lost with the headroom, and something is without it. Pauses are charged to the port
//! that caused them, for as long as they last, and deadlocks are found.

mod harness;

use firstlight_net::pfc::{Classes, PfcConfig};
use firstlight_net::qcn::QcnConfig;
use firstlight_net::topology::{Cable, Graph, LeafSpine, Node, Topology, Wire, dumbbell, star};
use firstlight_net::{Discipline, HostId, Packet};
use firstlight_sim::{
    AdapterConfig, Fabric, GraphConfig, InterfaceConfig, InterfaceTables, PauseReport, ReceiveConfig, SwitchConfig,
};
use firstlight_units::{Bytes, Rate, Span, Time};
use harness::{assert_conserved, at, drive, ns, packet, us};
use proptest::prelude::*;

const PFC: PfcConfig = PfcConfig { most_events: 100_000, ..PfcConfig::of_all(Bytes::new(1500)) };

fn bytes(n: u64) -> Option<Bytes> {
    Some(Bytes::new(n))
}

fn gbps(n: u64, delay: Span) -> Cable {
    Cable::new(Rate::from_gbps(n), delay)
}

fn config(topology: Topology, pfc: Option<PfcConfig>, classes: usize) -> GraphConfig {
    let switch = SwitchConfig { classes: vec![Discipline::default(); classes], pfc, ..SwitchConfig::default() };
    GraphConfig { topology, interface: InterfaceConfig::default(), switch, spray: false, time_scale: 1, seed: 1 }
}

fn lossless(topology: Topology, pfc: PfcConfig, classes: usize) -> Fabric {
    Fabric::graph(&config(topology, Some(pfc), classes)).unwrap()
}

fn of_class(class: u8, mut packet: Packet) -> Packet {
    packet.set_class(class);
    packet
}

/// `count` full packets from one host to another, all at once.
fn burst(src: u16, dst: u16, count: u32, start: Time) -> Vec<(Time, Packet)> {
    (0..count).map(|n| (start, packet(src, dst, 1500, n))).collect()
}

fn in_order(mut sends: Vec<(Time, Packet)>) -> Vec<(Time, Packet)> {
    sends.sort_by_key(|send| send.0);
    sends
}

fn report(fabric: &Fabric) -> PauseReport {
    assert_conserved(fabric);
    fabric.pauses().expect("it is lossless")
}

/// Hosts at one switch, each with its own rate.
fn rates(rates: &[u64]) -> Topology {
    let mut graph = Graph::default();
    let switch = graph.switch("s", "switch");
    for (index, rate) in rates.iter().enumerate() {
        let host = graph.host(format!("host{index}"));
        graph.link(host, switch, gbps(*rate, ns(500)));
    }
    graph.build().unwrap()
}

/// The worst case: data at full speed into a slow exit, and the other direction full of large frames whose phase is
/// tried out.
///
/// XOFF is a whole number of packets. 1,564 bytes of frames ahead and 1,438 of response time are two packets and a
/// little, so what comes after XOFF is the packet that exceeds it, two, and one begun just in time: 6,000 bytes of a
/// headroom of 6,002.
fn worst(phase: u64, buffer: Option<Bytes>) -> PauseReport {
    let link = gbps(10, Span::ZERO);
    let mut graph = Graph::default();
    let hosts: Vec<Node> = (0..4).map(|i| graph.host(format!("host{i}"))).collect();
    let (left, right) = (graph.switch("left", "switch"), graph.switch("right", "switch"));
    graph.link(hosts[0], left, link);
    graph.link(hosts[1], left, link);
    graph.link(hosts[2], right, Cable { back: Wire { rate: Rate::from_bps(1_000_000), ..link.back }, ..link });
    graph.link(hosts[3], right, link);
    graph.link(left, right, link);
    // 1,438 bytes last 1,150.4 ns.
    let response = Some(Span::from_ps(1_150_400));
    let pfc = PfcConfig { xoff: bytes(15_000), buffer, response, ..PFC };
    let mut fabric = lossless(graph.build().unwrap(), pfc, 0);
    // The other link of host 0 is paused later, by `left`.
    let sends = in_order([burst(0, 2, 60, at(us(5))), burst(3, 1, 60, at(ns(phase)))].concat());
    drive(&mut fabric, &sends, at(us(60)));
    report(&fabric)
}

fn peak(report: &PauseReport, name: &str) -> u64 {
    report.ports.iter().find(|port| port.name == name).unwrap().peak
}

#[test]
fn the_headroom_is_what_the_worst_case_takes_and_a_packet_less_loses() {
    let reports: Vec<_> = (0..1200).map(|phase| worst(phase, None)).collect();
    let largest = reports.iter().map(|report| peak(report, "left->right")).max().unwrap();
    assert_eq!(largest, 15_000 + 6000);
    assert!(reports.iter().all(|report| report.lost == 0));
    let limits = reports[0].ports[0].limits;
    assert_eq!((limits.headroom.get(), limits.missing().get()), (6002, 0));
    // Just what it takes is enough.
    assert!((0..1200).all(|phase| worst(phase, bytes(15_000 + 6000)).lost == 0));
    // Three bytes below the headroom a phase is found that loses.
    let lost = (0..1200).filter(|phase| worst(*phase, bytes(15_000 + 5999)).lost > 0).count();
    assert!((1..1200).contains(&lost), "{lost} phases lose");
}

/// Three 10 Gb/s senders to one host: what a sender has not sent it was paused for.
#[test]
fn paused_time_is_the_sender_s_idle_time() {
    let sends: Vec<_> = [0, 1, 2].iter().flat_map(|src| burst(*src, 3, 400, Time::ZERO)).collect();
    let run = |until: Time| {
        let mut fabric = lossless(rates(&[10; 4]), PfcConfig { xoff: bytes(30_000), ..PFC }, 0);
        drive(&mut fabric, &sends, until);
        report(&fabric)
    };
    let whole = run(at(us(2000)));
    assert!(whole.lost == 0 && whole.ports[0].pauses > 5, "{:?}", whole.ports);
    let mut checked = 0;
    for pair in whole.events.windows(2).filter(|pair| pair[0].paused) {
        // In the middle of a pause that goes on, after the frame in service.
        let middle = pair[0].at + ns(1300);
        let seen = run(at(middle));
        let port = seen.ports.iter().find(|port| port.name == pair[0].name).unwrap();
        let still = seen.events.iter().rfind(|event| event.name == port.name).is_some_and(|event| event.paused);
        if still {
            assert_eq!(port.paused + ns(1200) * port.packets, middle);
            checked += 1;
        }
    }
    assert!(checked > 5, "{checked} pauses checked");
    // All pauses end: what was open is closed, and causes add up to the ports' time.
    for port in &whole.ports {
        let causes = whole.causes.iter().filter(|cause| cause.name == port.name);
        let (pauses, time) = causes.fold((0, Span::ZERO), |sum, cause| (sum.0 + cause.pauses, sum.1 + cause.paused));
        assert_eq!((pauses, time), (port.pauses, port.paused));
        let events = whole.events.iter().filter(|event| event.name == port.name).count() as u64;
        assert_eq!(events, port.pauses * 2);
    }
}

#[test]
fn one_class_stops_and_the_other_goes_on_but_802_3x_stops_all() {
    // Class 1 to a slow host, class 0 from the same sender to a fast one.
    let sends: Vec<_> = (burst(0, 1, 200, Time::ZERO).into_iter().map(|(at, packet)| (at, of_class(1, packet))))
        .chain(burst(0, 2, 200, Time::ZERO))
        .collect();
    let last = |pfc: PfcConfig| {
        let mut fabric = lossless(rates(&[10, 1, 10]), pfc, 2);
        let left = drive(&mut fabric, &sends, at(us(10_000)));
        let last = |host| left.iter().filter(|exit| exit.1 == HostId(host)).map(|exit| exit.0).max().unwrap();
        assert_eq!(left.len(), 400);
        (last(1), last(2), report(&fabric))
    };
    let limits = PfcConfig { xoff: bytes(15_000), ..PFC };
    let (slow, fast, by_class) = last(limits);
    let nic = |report: &PauseReport, class| {
        let found = report.ports.iter().find(|port| port.name == "host0.nic" && port.class == class);
        found.unwrap().clone()
    };
    assert!(nic(&by_class, Some(1)).pauses > 0 && nic(&by_class, Some(0)).pauses == 0);
    let (slow_x, fast_x, whole) = last(PfcConfig { whole_link: true, ..limits });
    assert!(nic(&whole, None).pauses > 0);
    // 200 packets of 12 us on the slow link either way; class 0 is done in the first class's pauses, or only behind it.
    assert!(slow > at(us(2400)) && slow < at(us(2420)) && slow_x < at(us(2430)), "{slow} {slow_x}");
    assert!(fast < at(us(600)), "{fast}");
    assert!(fast_x > at(us(2200)), "{fast_x}");
    // Class 1 alone is lossless: class 0 has no account.
    let (.., some) = last(PfcConfig { classes: Some(Classes(0b10)), ..limits });
    assert_eq!((nic(&some, Some(0)).lossless, nic(&some, Some(0)).peak), (false, 0));
    assert!(nic(&some, Some(1)).pauses > 0);
}

#[test]
fn a_pause_is_told_back_to_its_root() {
    let topology = dumbbell(2, 2, gbps(10, ns(500)), gbps(10, us(1))).unwrap();
    let mut fabric = lossless(topology, PfcConfig { xoff: bytes(20_000), ..PFC }, 0);
    // All of it is for host 3; host 2 sends there too, so that the link between has half of the exit at most.
    let sends: Vec<_> = [0, 1, 2].iter().flat_map(|src| burst(*src, 3, 300, Time::ZERO)).collect();
    assert_eq!(drive(&mut fabric, &sends, at(us(5000))).len(), 900);
    let report = report(&fabric);
    let cause = |name: &str, root: &str| {
        let found = report.causes.iter().find(|cause| cause.name == name && cause.root.as_deref() == Some(root));
        found.unwrap_or_else(|| panic!("{name} for {root}: {:#?}", report.causes))
    };
    let between = cause("left->right", "host3.port");
    assert_eq!((between.switch.as_str(), between.egress.as_str()), ("right", "host3.port"));
    let sender = cause("host0.nic", "host3.port");
    assert_eq!((sender.switch.as_str(), sender.egress.as_str()), ("left", "left->right"));
    assert!(between.paused > us(100) && sender.paused > us(100));
    assert!(report.deadlocks.is_empty());
}

#[test]
fn a_packet_for_an_idle_port_behind_a_pause_is_a_victim() {
    // Packets go in turn to a slow host and to a host to which no other host sends.
    let sends: Vec<_> = (0..200).map(|n| (Time::ZERO, packet(0, 1 + (n % 2) as u16, 1500, n))).collect();
    let mut fabric = lossless(rates(&[10, 1, 10]), PfcConfig { xoff: bytes(15_000), ..PFC }, 0);
    drive(&mut fabric, &sends, at(us(3000)));
    let mixed = report(&fabric).ports[0].clone();
    let mut fabric = lossless(rates(&[10, 1, 10]), PfcConfig { xoff: bytes(15_000), ..PFC }, 0);
    drive(&mut fabric, &burst(0, 1, 100, Time::ZERO), at(us(3000)));
    let alone = report(&fabric).ports[0].clone();
    assert_eq!((mixed.name.as_str(), alone.victim), ("host0.nic", Some(Span::ZERO)));
    let victim = mixed.victim.unwrap();
    assert!(victim > us(50) && victim < mixed.paused, "{victim} of {}", mixed.paused);
}

/// Switches in a ring, a host at each, everybody's packets two switches on.
fn ring(switches: usize) -> Topology {
    long_ring(switches, ns(500))
}

/// The same with such cables.
fn long_ring(switches: usize, delay: Span) -> Topology {
    let mut graph = Graph::default();
    let hosts: Vec<Node> = (0..switches).map(|i| graph.host(format!("host{i}"))).collect();
    let nodes: Vec<Node> = (0..switches).map(|i| graph.switch(format!("s{i}"), "switch")).collect();
    for i in 0..switches {
        graph.link(hosts[i], nodes[i], gbps(10, delay));
        graph.link(nodes[i], nodes[(i + 1) % switches], gbps(10, delay));
    }
    graph.build().unwrap()
}

#[test]
fn a_ring_that_turns_round_stops_for_ever_and_says_since_when() {
    let sends = |hops: u16, count| {
        let all = (0..5).flat_map(|src| burst(src, (src + hops) % 5, count, Time::ZERO));
        all.collect::<Vec<_>>()
    };
    let run = |hops, until: Span| {
        let mut fabric = lossless(ring(5), PFC, 0);
        let left = drive(&mut fabric, &sends(hops, 400), at(until));
        (left, report(&fabric))
    };
    let (left, stopped) = run(2, us(5000));
    let [dead] = &stopped.deadlocks[..] else { panic!("{:?}", stopped.deadlocks) };
    assert_eq!(dead.ports.len(), 5);
    assert!(dead.ports.iter().all(|name| name.starts_with('s')), "{:?}", dead.ports);
    assert_eq!(dead.stopped, 10, "the ring, and every host behind it");
    // Nothing of the ring moves any more: packets leave it at the latest a few microseconds after.
    let last = left.iter().map(|exit| exit.0).max().unwrap();
    assert!(left.len() < 2000 && dead.since > us(5) && last < at(dead.since + us(60)), "{} {last}", dead.since);
    assert_eq!(run(2, us(50_000)).0, left, "it stays so");
    assert_eq!(run(2, dead.since - ns(1)).1.deadlocks, []);
    assert_eq!(run(2, dead.since).1.deadlocks.len(), 1);
    // With destinations one switch away no switch waits for the next one: all packets arrive.
    let (left, free) = run(1, us(5000));
    assert_eq!((left.len(), free.deadlocks.len()), (2000, 0));
}

/// A lossless fabric whose thresholds are never reached does what any other does.
#[test]
fn without_pauses_it_is_the_same_fabric() {
    let tree = || {
        let host = gbps(10, ns(300));
        LeafSpine { leaves: 3, spines: 2, hosts_per_leaf: 2, host, uplink: gbps(25, us(1)) }.build().unwrap()
    };
    let sends: Vec<_> = (0..900u32)
        .map(|n| {
            (
                at(ns(u64::from(n) * 200)),
                packet((n % 6) as u16, ((n * 7 + 1 + n / 6) % 6) as u16, 100 + (n * 37 % 1400) as u16, n),
            )
        })
        .filter(|(_, packet)| packet.src() != packet.dst())
        .collect();
    let digest = |pfc, classes, delay| {
        let interface = InterfaceConfig { send_delay: delay, receive_delay: delay, ..InterfaceConfig::default() };
        let mut fabric = Fabric::graph(&GraphConfig { interface, ..config(tree(), pfc, classes) }).unwrap();
        drive(&mut fabric, &sends, at(us(2000)));
        assert_conserved(&fabric);
        assert_eq!(fabric.totals().held, 0);
        fabric.digest()
    };
    let large = PfcConfig { xoff: bytes(10_000_000), ..PFC };
    for delay in [Span::ZERO, us(3)] {
        assert_eq!(digest(Some(large), 0, delay), digest(None, 0, delay));
        assert_eq!(digest(Some(large), 2, delay), digest(None, 2, delay));
    }
    let small = PfcConfig { xoff: bytes(3000), ..PFC };
    assert_ne!(digest(Some(small), 0, us(3)), digest(None, 0, us(3)));
    assert_eq!(digest(Some(small), 0, us(3)), digest(Some(small), 0, us(3)));
}

#[test]
fn fewer_events_are_kept_than_there_are() {
    let sends: Vec<_> = [0, 1, 2].iter().flat_map(|src| burst(*src, 3, 200, Time::ZERO)).collect();
    let run = |most_events| {
        let mut fabric = lossless(rates(&[10; 4]), PfcConfig { xoff: bytes(15_000), most_events, ..PFC }, 0);
        drive(&mut fabric, &sends, at(us(3000)));
        report(&fabric)
    };
    let (all, few) = (run(100_000), run(3));
    assert_eq!((few.events.len(), few.unrecorded, all.unrecorded), (3, all.events.len() as u64 - 3, 0));
    assert_eq!((few.events[..].to_vec(), few.causes), (all.events[..3].to_vec(), all.causes));
}

fn topologies() -> impl Strategy<Value = Topology> {
    let rate = prop::sample::select(vec![1u64, 10, 25, 40, 100]);
    let cable = (rate.clone(), rate, 0u64..5000, 0u64..5000).prop_map(|(there, back, forth, ns)| Cable {
        there: Wire { rate: Rate::from_gbps(there), delay: Span::from_ns(forth) },
        back: Wire { rate: Rate::from_gbps(back), delay: Span::from_ns(ns) },
    });
    prop_oneof![
        (2u32..7, cable.clone()).prop_map(|(hosts, cable)| star(hosts, cable).unwrap()),
        (1u32..4, 1u32..4, cable.clone(), cable.clone())
            .prop_map(|(l, r, host, link)| dumbbell(l, r, host, link).unwrap()),
        (2u32..4, 1u32..3, 1u32..4, cable.clone(), cable).prop_map(|(leaves, spines, hosts_per_leaf, host, uplink)| {
            LeafSpine { leaves, spines, hosts_per_leaf, host, uplink }.build().unwrap()
        }),
    ]
}

/// Bursts of packets of all sizes and classes: when, whence, where to, how many, how large.
fn traffic() -> impl Strategy<Value = Vec<(u64, u16, u16, u32, u16, u8)>> {
    prop::collection::vec((0u64..40_000, any::<u16>(), any::<u16>(), 1u32..120, 64u16..=1500, 0u8..3), 1..25)
}

/// Notifications of QCN begin in a switch: no link's account has them there, and that of each link that they cross has.
#[test]
fn notifications_pass_a_lossless_fabric() {
    let leaf_spine =
        LeafSpine { leaves: 2, spines: 1, hosts_per_leaf: 3, host: gbps(10, us(1)), uplink: gbps(10, us(1)) };
    let qcn = QcnConfig { set_point: Bytes::new(20_000), sample: Bytes::new(15_000), ..QcnConfig::default() };
    let lossless = config(leaf_spine.build().unwrap(), Some(PfcConfig { xoff: bytes(30_000), ..PFC }), 0);
    let interface = InterfaceConfig {
        tables: InterfaceTables { qcn: Some(qcn), ..InterfaceTables::default() },
        ..InterfaceConfig::default()
    };
    let mut fabric = Fabric::graph(&GraphConfig { interface, ..lossless }).unwrap();
    let sends = in_order((0..3).flat_map(|src| burst(src, 3, 200, at(us(u64::from(src))))).collect());
    let left = drive(&mut fabric, &sends, at(Span::from_secs(2)));
    let (pauses, qcn) = (report(&fabric), fabric.qcn().expect("QCN is on"));
    assert_eq!((left.len(), pauses.lost, fabric.totals().dropped), (600, 0, 0));
    assert!(qcn.received > 0 && qcn.received == qcn.sent.notifications, "{qcn:?}");
    assert!(pauses.ports.iter().any(|port| port.pauses > 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn with_its_headroom_a_fabric_loses_nothing(
        topology in topologies(), traffic in traffic(), classes in 0usize..4, whole_link in any::<bool>(),
        xoff in 0u64..60_000, hysteresis in prop::option::of(0u64..60_000), response in prop::option::of(0u64..5000),
        extra in 0u64..3, scale in 1u32..3, spray in any::<bool>(),
        drain in prop::option::of((prop::sample::select(vec![1u64, 7, 10, 40]), 0u64..20_000)),
    ) {
        let hosts = topology.hosts() as u16;
        let xon = hysteresis.map(|below| Bytes::new(xoff.saturating_sub(below)));
        let response = response.map(Span::from_ns);
        let pfc = PfcConfig { whole_link, xoff: bytes(xoff), xon, response, ..PFC };
        // At the headroom, or above it.
        let needed = (0..topology.transmitters()).map(|t| {
            let limits = pfc.limits(topology.wire_of(t), topology.wire_of(topology.reverses()[t]));
            limits.buffer.get()
        });
        let headroom = needed.clone().max().unwrap() - xoff;
        let buffer = (extra > 0).then(|| Bytes::new(needed.max().unwrap() + extra * 1000));
        let receive = drain.map(|(drain, above)| ReceiveConfig {
            drain: Rate::from_gbps(drain), buffer: Bytes::new(headroom + above),
        });
        let adapter = AdapterConfig { receive, ..AdapterConfig::default() };
        let interface = InterfaceConfig { adapter, ..InterfaceConfig::default() };
        let mut fabric = Fabric::graph(&GraphConfig {
            time_scale: scale, spray, interface, ..config(topology, Some(PfcConfig { buffer, ..pfc }), classes)
        }).unwrap();
        let sends = traffic.into_iter().filter(|(_, src, dst, ..)| src % hosts != dst % hosts);
        let sends = sends.flat_map(|(start, src, dst, count, size, class)| {
            let one = move |n| of_class(class, packet(src % hosts, dst % hosts, size, n));
            (0..count).map(move |n| (at(ns(start)), one(n)))
        });
        let sends = in_order(sends.collect());
        let left = drive(&mut fabric, &sends, at(Span::from_secs(1)));
        let report = report(&fabric);
        prop_assert_eq!((report.lost, fabric.totals().dropped, report.deadlocks.len()), (0, 0, 0));
        prop_assert_eq!(left.len(), sends.len(), "all pauses end");
        for port in &report.ports {
            prop_assert!(port.peak <= port.limits.xoff.get() + port.limits.headroom.get(), "{:?}", port);
            prop_assert!(port.pauses == 0 || port.peak > port.limits.xoff.get(), "{:?}", port);
        }
        let begun = report.events.iter().filter(|event| event.paused).count();
        prop_assert_eq!(begun * 2, report.events.len());
    }

    /// A deadlock that is reported at one moment is reported ever after, with the same start: a pause frame under way
    /// may let a transmitter go that its account would stop again.
    #[test]
    fn a_deadlock_that_is_told_never_ends(
        switches in 3usize..6, delay in 2000u64..8000, xoff in 3000u64..20_000, band in 0u64..200,
        response in 0u64..4000,
        bursts in prop::collection::vec((0u64..20_000, 0usize..6, 1u32..60), 3..12), step in 50u64..1000,
    ) {
        let pfc = PfcConfig {
            xoff: bytes(xoff), xon: bytes(xoff - band), response: Some(Span::from_ns(response)), ..PFC
        };
        let mut fabric = lossless(long_ring(switches, ns(delay)), pfc, 0);
        let all = bursts.into_iter().flat_map(|(start, src, count)| {
            let src = src % switches;
            burst(src as u16, ((src + 2) % switches) as u16, count, at(ns(start)))
        });
        drive(&mut fabric, &in_order(all.collect()), at(ns(20_000)));
        let mut known: Option<Span> = None;
        for moment in 1..400 {
            let now = ns(20_000 + moment * step);
            drive(&mut fabric, &[], at(now));
            let found = fabric.pauses().expect("it is lossless").deadlocks.first().map(|dead| dead.since);
            prop_assert!(known.is_none() || found == known, "{:?} and at {} {:?}", known, now, found);
            known = found;
        }
    }
}
