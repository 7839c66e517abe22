//! Receive buffers of hosts' adapters: when packets come out of them, what they lose, and how they pause their
//! switches.

mod harness;

use firstlight_net::pfc::{Classes, PfcConfig, PfcLimits};
use firstlight_net::qcn::QcnConfig;
use firstlight_net::topology::{Cable, Graph, Topology, Wire, back_to_back, dumbbell, star};
use firstlight_net::{Discipline, HostId, Packet, Stamps};
use firstlight_sim::{
    AdapterConfig, Fabric, GraphConfig, HybridConfig, InterfaceConfig, PauseReport, PausedPort, PortKind, PortReport,
    ReceiveConfig, SwitchConfig,
};
use firstlight_units::{Bytes, Rate, Span, Time};
use harness::{Left, assert_conserved, at, drive, ns, number, packet, paper, us};

/// The switches never pause.
const PFC: PfcConfig = PfcConfig {
    xoff: Some(Bytes::new(1 << 40)),
    response: Some(Span::from_us(1)),
    most_events: 1000,
    ..PfcConfig::of_all(Bytes::new(1500))
};

fn receive(drain: Rate, buffer: u64) -> AdapterConfig {
    AdapterConfig { receive: Some(ReceiveConfig { drain, buffer: Bytes::new(buffer) }), ..AdapterConfig::default() }
}

/// Stacks of 2 us behind the adapters.
fn config(topology: Topology, adapter: AdapterConfig, pfc: Option<PfcConfig>) -> GraphConfig {
    let interface = InterfaceConfig { receive_delay: us(2), adapter, ..InterfaceConfig::default() };
    let switch = SwitchConfig { pfc, ..SwitchConfig::default() };
    GraphConfig { topology, interface, switch, spray: false, time_scale: 1, seed: 1 }
}

fn burst(src: u16, dst: u16, count: u32, start: Time) -> Vec<(Time, Packet)> {
    (0..count).map(|n| (start, packet(src, dst, 1500, n))).collect()
}

fn run(mut fabric: Fabric, sends: &[(Time, Packet)], until: Time) -> (Fabric, Vec<Left>) {
    let mut sends = sends.to_vec();
    sends.sort_by_key(|send| send.0);
    let left = drive(&mut fabric, &sends, until);
    assert_conserved(&fabric);
    (fabric, left)
}

fn on_graph(config: &GraphConfig, sends: &[(Time, Packet)]) -> (Fabric, Vec<Left>) {
    run(Fabric::graph(config).unwrap(), sends, at(us(100_000)))
}

fn adapter(fabric: &Fabric, host: usize) -> PortReport {
    let name = format!("host{host}.adapter");
    fabric.ports().into_iter().find(|port| port.name == name).expect("each host has one")
}

fn port<'a>(report: &'a PauseReport, name: &str) -> &'a PausedPort {
    report.ports.iter().find(|port| port.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn times(left: &[Left]) -> Vec<u64> {
    left.iter().map(|exit| exit.0.as_ps()).collect()
}

/// 1,500 bytes last 1.2 us on links of 10 Gb/s, with 1 us each: the first is there at 4.4 us, the others 1.2 us apart.
/// The host takes 1,500 / 7 Gb/s = 1,714,286 ps (rounded up) for each, one after the other; its stack 2 us.
#[test]
fn arrival_bus_and_stack_to_the_picosecond() {
    let bus = |packet: u64| 4_400_000 + (packet + 1) * 1_714_286 + 2_000_000;
    for classes in [0, 2] {
        let star = star(2, Cable::new(Rate::from_gbps(10), us(1))).unwrap();
        let mut config = config(star, receive(Rate::from_gbps(7), 1 << 20), None);
        config.switch.classes = vec![Discipline::default(); classes];
        let (fabric, left) = on_graph(&config, &burst(0, 1, 3, Time::ZERO));
        assert_eq!(times(&left), [bus(0), bus(1), bus(2)]);
        let report = adapter(&fabric, 1);
        assert_eq!((report.kind, report.delivered, report.peak_queue, report.hops), (PortKind::Adapter, 3, 1, 0));
        // Twice as long is all that is the fabric's.
        let (_, slow) = on_graph(&GraphConfig { time_scale: 2, ..config }, &burst(0, 1, 1, Time::ZERO));
        assert_eq!(times(&slow), [2 * 6_400_000 + 3_428_572]);
    }
}

/// The same on the hybrid fabric, inside a rack: two links of 40 Gb/s without delay.
#[test]
fn arrival_bus_and_stack_on_a_hybrid_fabric() {
    let interface =
        InterfaceConfig { receive_delay: us(2), adapter: receive(Rate::from_gbps(7), 1 << 20), ..Default::default() };
    let config = HybridConfig { interface, ..paper(2) };
    let (fabric, left) = run(Fabric::hybrid(&config).unwrap(), &burst(0, 1, 2, Time::ZERO), at(us(1000)));
    assert_eq!(times(&left), [600_000 + 1_714_286 + 2_000_000, 600_000 + 2 * 1_714_286 + 2_000_000]);
    assert_eq!(adapter(&fabric, 1).offered, 2);
}

/// Packets come every 1.2 us from 4.4 us on, and one leaves every 12 us from 16.4 us on. 4,500 bytes hold three; of 30
/// that come until 39.2 us two more find room, after each that has left.
#[test]
fn what_does_not_fit_is_lost_and_told() {
    let star = star(2, Cable::new(Rate::from_gbps(10), us(1))).unwrap();
    for buffer in [4500, 5999] {
        let config = config(star.clone(), receive(Rate::from_gbps(1), buffer), None);
        let (fabric, left) = on_graph(&config, &burst(0, 1, 30, Time::ZERO));
        // Packets 11 and 21 are the first after 16.4 and 28.4 us: 4.4 + 1.2 x 10 is the very moment, and finds it full.
        assert_eq!(left.iter().map(|exit| number(&exit.2)).collect::<Vec<_>>(), [0, 1, 2, 11, 21]);
        let (report, totals) = (adapter(&fabric, 1), fabric.totals());
        assert_eq!((report.offered, report.dropped, totals.dropped, totals.lost), (30, 25, 25, 0));
    }
    // Three bytes and three packets more.
    let (_, left) = on_graph(&config(star, receive(Rate::from_gbps(1), 6000), None), &burst(0, 1, 30, Time::ZERO));
    assert_eq!(left.len(), 6);
}

/// Timestamps are the interface's: neither the buffer nor the stack is in them.
#[test]
fn packets_are_stamped_before_they_wait() {
    let star = star(2, Cable::new(Rate::from_gbps(10), us(1))).unwrap();
    let mut sends = burst(0, 1, 20, Time::ZERO);
    sends.iter_mut().for_each(|(_, packet)| packet.set_stamps(Stamps::default()));
    let stamps = |adapter| {
        let (_, left) = on_graph(&config(star.clone(), adapter, None), &sends);
        left.iter().map(|(_, _, packet)| packet.stamps()).collect::<Vec<_>>()
    };
    let at_once = stamps(AdapterConfig::default());
    assert_eq!((at_once.len(), stamps(receive(Rate::from_gbps(1), 1 << 20))), (20, at_once));
}

/// Two hosts, 300 ns there and 700 ns back to the hosts.
fn pair() -> Topology {
    let mut graph = Graph::default();
    let switch = graph.switch("s", "switch");
    for name in ["host0", "host1"] {
        let (host, wire) = (graph.host(name), |delay| Wire { rate: Rate::from_gbps(10), delay });
        graph.link(host, switch, Cable { there: wire(ns(300)), back: wire(ns(700)) });
    }
    graph.build().unwrap()
}

/// The headroom is 3,000 + 1,564 bytes and those of 2 us, 2,500: so XOFF is 6,000 and XON 3,000, whatever `pfc.xoff`
/// is.
///
/// Packets of 1.2 us come at 3.4, 4.6, 5.8, 7.0 and 8.2 us, when they are five: the pause frame of 51.2 ns crosses in
/// 300 ns and takes effect 1 us later, in the seventh packet, which has left the switch at 9.9 us. The host takes one
/// every 12 us from 3.4 us on: of seven five are gone at 63.4 us, and the end of the pause takes the same way. The
/// eighth is there 1.9 us later, while the sixth is being taken in.
#[test]
fn a_pause_of_a_switch_by_a_host_from_its_first_byte_to_its_last() {
    let config = config(pair(), receive(Rate::from_gbps(1), 7064 + 6000), Some(PFC));
    let (fabric, left) = on_graph(&config, &burst(0, 1, 8, Time::ZERO));
    let report = fabric.pauses().unwrap();
    let effect = |after: Span| after + Span::from_ps(1_351_200);
    let events: Vec<_> = report.events.iter().map(|event| (event.name.as_str(), event.at)).collect();
    assert_eq!(events, [("host1.port", effect(ns(8200))), ("host1.port", effect(ns(63_400)))]);
    let paused = port(&report, "host1.port");
    assert_eq!((paused.pauses, paused.paused, paused.peak), (1, effect(ns(63_400)) - ns(9900), 7 * 1500));
    assert_eq!((paused.victim, paused.packets, paused.lossless), (Some(Span::ZERO), 8, true));
    let limits = PfcLimits {
        xon: Bytes::new(3000),
        xoff: Bytes::new(6000),
        buffer: Bytes::new(13_064),
        headroom: Bytes::new(7064),
        response: us(1),
    };
    assert_eq!(paused.limits, limits);
    let [cause] = &report.causes[..] else { panic!("{:?}", report.causes) };
    assert_eq!((cause.switch.as_str(), cause.egress.as_str()), ("host1", "host1.adapter"));
    assert_eq!((cause.root.as_deref(), cause.paused), (Some("host1.adapter"), paused.paused));
    let exits: Vec<_> = (1..=8).map(|n| 3_400_000 + n * 12_000_000 + 2_000_000).collect();
    assert_eq!((times(&left), report.lost), (exits, 0));
}

/// The worst case: full speed into a host that takes nothing, whose own frames are ahead of the pause frame in all
/// phases. 1,564 bytes of frames and 1,438 of response are two packets and a little, so the first packet, two and one
/// begun just in time come: 6,000 bytes of a headroom of 6,002, and a XOFF of 0.
fn worst(phase: u64, buffer: u64) -> PauseReport {
    let star = star(2, Cable::new(Rate::from_gbps(10), Span::ZERO)).unwrap();
    let pfc = PfcConfig { response: Some(Span::from_ps(1_150_400)), ..PFC };
    let config = config(star, receive(Rate::from_bps(1_000_000), buffer), Some(pfc));
    let sends = [burst(0, 1, 60, at(us(5))), burst(1, 0, 60, at(ns(phase)))].concat();
    run(Fabric::graph(&config).unwrap(), &sends, at(us(60))).0.pauses().unwrap()
}

#[test]
fn the_headroom_is_what_the_worst_case_takes_and_a_packet_less_loses() {
    let reports: Vec<_> = (0..1200).map(|phase| worst(phase, 6002)).collect();
    let limits = port(&reports[0], "host1.port").limits;
    assert_eq!((limits.headroom.get(), limits.xoff.get(), limits.missing().get()), (6002, 0, 0));
    assert_eq!(reports.iter().map(|report| port(report, "host1.port").peak).max(), Some(6000));
    assert!(reports.iter().all(|report| report.lost == 0));
    let lost = (0..1200).filter(|phase| worst(*phase, 5999).lost > 0).count();
    assert!((1..1200).contains(&lost), "{lost} phases lose");
}

/// One slow host stops senders two switches away, and is the root of all pauses: the slow-receiver symptom.
#[test]
fn a_slow_host_is_the_root_of_pauses_back_to_the_senders() {
    let topology =
        dumbbell(2, 2, Cable::new(Rate::from_gbps(10), ns(500)), Cable::new(Rate::from_gbps(10), us(1))).unwrap();
    let pfc = PfcConfig { xoff: Some(Bytes::new(20_000)), ..PFC };
    let config = config(topology, receive(Rate::from_gbps(1), 40_000), Some(pfc));
    // Host 2, beside the slow one, is sent to as well: it has time for all, but what is for it waits.
    let sends = [burst(0, 3, 300, Time::ZERO), burst(1, 2, 30, Time::ZERO)].concat();
    let (fabric, left) = on_graph(&config, &sends);
    let report = fabric.pauses().unwrap();
    assert_eq!((left.len(), report.lost, report.deadlocks.len()), (330, 0, 0));
    let chain = [
        ("host3.port", "host3", "host3.adapter"),
        ("left->right", "right", "host3.port"),
        ("host0.nic", "left", "left->right"),
    ];
    for (name, switch, egress) in chain {
        let causes = report.causes.iter().filter(|cause| cause.name == name);
        let longest = causes.max_by_key(|cause| cause.paused).unwrap_or_else(|| panic!("{name} is never paused"));
        assert_eq!((longest.switch.as_str(), longest.egress.as_str()), (switch, egress));
        assert_eq!(longest.root.as_deref(), Some("host3.adapter"));
        assert!(longest.paused > us(1000), "{longest:?}");
    }
    assert!(
        report.ports.iter().filter(|port| port.name.ends_with(".port")).all(|port| port.victim == Some(Span::ZERO))
    );
}

/// A class that is not lossless has the buffer that no account counts, and loses what does not fit there; the lossless
/// one has its own.
#[test]
fn each_lossless_class_has_an_account_and_the_others_one_buffer() {
    let mut config =
        config(pair(), receive(Rate::from_gbps(1), 13_064), Some(PfcConfig { classes: Some(Classes(0b10)), ..PFC }));
    config.switch.classes = vec![Discipline::default(); 2];
    let mut sends = burst(0, 1, 100, Time::ZERO);
    sends.iter_mut().filter(|(_, packet)| number(packet) % 2 == 1).for_each(|(_, packet)| packet.set_class(1));
    let (fabric, left) = on_graph(&config, &sends);
    let report = fabric.pauses().unwrap();
    let lossless = left.iter().filter(|(_, _, packet)| packet.class() == 1).count() as u64;
    assert_eq!((lossless, report.lost), (50, 0));
    // Class 1 goes first until it is paused. Eight packets of class 0 fit.
    let dropped = adapter(&fabric, 1).dropped;
    assert_eq!((left.len() as u64, fabric.totals().dropped), (100 - dropped, dropped));
    assert!((30..42).contains(&dropped), "{dropped}");
    // PAUSE has one account for all.
    let (fabric, left) = on_graph(
        &GraphConfig {
            switch: SwitchConfig { pfc: Some(PfcConfig { whole_link: true, ..PFC }), ..config.switch.clone() },
            ..config
        },
        &sends,
    );
    assert_eq!((left.len(), fabric.totals().dropped), (100, 0));
    assert!(port(&fabric.pauses().unwrap(), "host1.port").pauses > 0);
}

/// Two hosts and one link: each one's adapter pauses the other's interface.
#[test]
fn two_hosts_and_one_link() {
    let pair = || back_to_back(Cable::new(Rate::from_gbps(10), us(1))).unwrap();
    let sends = burst(0, 1, 100, Time::ZERO);
    let lossy = |adapter| on_graph(&config(pair(), adapter, None), &sends).1.len();
    assert_eq!((lossy(AdapterConfig::default()), lossy(receive(Rate::from_gbps(1), 15_000))), (100, 19));
    let (fabric, left) = on_graph(&config(pair(), receive(Rate::from_gbps(1), 15_000), Some(PFC)), &sends);
    let report = fabric.pauses().unwrap();
    assert_eq!((left.len(), report.lost), (100, 0));
    assert!(port(&report, "host0.nic").pauses > 5 && port(&report, "host1.nic").pauses == 0);
    assert!(report.causes.iter().all(|cause| cause.root.as_deref() == Some("host1.adapter")));
}

/// A notification ends in the interface: it takes no room in the buffer and is never lost there.
#[test]
fn notifications_do_not_wait() {
    let star = star(3, Cable::new(Rate::from_gbps(10), us(1))).unwrap();
    for pfc in [None, Some(PFC)] {
        let mut config = config(star.clone(), receive(Rate::from_bps(1_000_000), 9000), pfc);
        config.interface.tables.qcn = Some(QcnConfig { set_point: Bytes::new(3000), ..harness::nervous() });
        // The senders' own adapters are full of what host 2 has sent them, and stay so.
        let back = (0..2).flat_map(|host| burst(2, host, 20, Time::ZERO));
        let sends: Vec<_> = back.chain((0..2).flat_map(|host| burst(host, 2, 60, at(us(50))))).collect();
        let (fabric, _) = run(Fabric::graph(&config).unwrap(), &sends, at(us(500)));
        let (qcn, totals) = (fabric.qcn().unwrap(), fabric.totals());
        assert!(qcn.sent.notifications > 0 && totals.taken_in > 0, "{qcn:?}");
        let offered: u64 = [0, 1].iter().map(|host| adapter(&fabric, *host).offered).sum();
        assert!(offered <= 40, "data alone: {offered}");
        if pfc.is_none() {
            assert_eq!((offered, adapter(&fabric, 0).dropped), (40, 14));
        }
    }
}

/// The packets of three hosts leave in the same order as without a buffer.
#[test]
fn a_host_s_exits_are_in_the_order_of_arrival() {
    let star = star(4, Cable::new(Rate::from_gbps(10), us(1))).unwrap();
    let sends: Vec<_> = (0..3).flat_map(|src| burst(src, 3, 40, at(ns(u64::from(src) * 400)))).collect();
    let order = |adapter| {
        let (_, left) = on_graph(&config(star.clone(), adapter, None), &sends);
        left.into_iter().map(|(_, host, packet)| (host, packet.src(), number(&packet))).collect::<Vec<_>>()
    };
    let at_once = order(AdapterConfig::default());
    assert!(at_once.len() == 120 && at_once.iter().all(|exit| exit.0 == HostId(3)));
    assert_eq!(order(receive(Rate::from_gbps(3), 1 << 30)), at_once);
}

/// Five switches in a ring, a host at each, and each host's packets go two switches on: the ring deadlocks, whatever
/// the hosts do. They go on taking in what has come to them, and are no part of it.
#[test]
fn a_deadlock_is_found_beside_hosts_that_are_still_busy() {
    let mut graph = Graph::default();
    let hosts: Vec<_> = (0..5).map(|i| graph.host(format!("host{i}"))).collect();
    let switches: Vec<_> = (0..5).map(|i| graph.switch(format!("s{i}"), "switch")).collect();
    for i in 0..5 {
        graph.link(hosts[i], switches[i], Cable::new(Rate::from_gbps(10), ns(500)));
        graph.link(switches[i], switches[(i + 1) % 5], Cable::new(Rate::from_gbps(10), ns(500)));
    }
    let pfc = PfcConfig { xoff: None, ..PFC };
    let config = config(graph.build().unwrap(), receive(Rate::from_gbps(1), 40_000), Some(pfc));
    let sends: Vec<_> = (0..5).flat_map(|src| burst(src, (src + 2) % 5, 400, Time::ZERO)).collect();
    let report = |until: Span| run(Fabric::graph(&config).unwrap(), &sends, at(until)).0;
    let stopped = report(us(20_000)).pauses().unwrap();
    let [dead] = &stopped.deadlocks[..] else { panic!("{:?}", stopped.deadlocks) };
    assert_eq!((dead.ports.len(), dead.stopped), (5, 10), "the ring, and every host behind it");
    // At that moment adapters are not yet empty.
    let then = report(dead.since);
    let held: u64 = (0..5).map(|host| adapter(&then, host).held).sum();
    assert!(held > 0 && then.pauses().unwrap().deadlocks.len() == 1, "{held}");
}
