//! Lossless Ethernet on hybrid fabrics: nothing is lost with the headroom, something without; who pauses whom, and why.

mod harness;

use firstlight_circuits::{Day, Matching, RackId, Week};
use firstlight_net::pfc::{Classes, PfcConfig};
use firstlight_net::{Band, Drops, Packet, RedConfig};
use firstlight_sim::{
    AdapterConfig, CircuitConfig, Fabric, FabricTables, HostLinks, HybridConfig, InterfaceConfig, InterfaceTables,
    PacketConfig, PauseReport, PausedPort, ReceiveConfig, Resize, VoqConfig,
};
use firstlight_units::{Bytes, Rate, Span, Time};
use harness::{Left, assert_conserved, at, drive, nervous, ns, packet, us};
use proptest::prelude::*;

const PFC: PfcConfig = PfcConfig { most_events: 1_000_000, ..PfcConfig::of_all(Bytes::new(9000)) };
/// RED as lossless classes have it.
const MARKS: RedConfig = RedConfig {
    band: Band::packets(1, 3),
    max_probability: 0.5,
    weight: 0.5,
    typical_packet: Bytes::new(9000),
    gentle: false,
    drops: Drops::Nothing,
};
/// A VOQ without a limit of its own, and a switch that holds no VOQ.
const MANY: u32 = 1 << 20;

fn bytes(n: u64) -> Option<Bytes> {
    Some(Bytes::new(n))
}

/// The paper's fabric, without a day for half a second, its links without delay.
fn dark(racks: usize, hosts_per_rack: usize, pfc: Option<PfcConfig>) -> HybridConfig {
    let gbps = Rate::from_gbps;
    let idle = Day { night: us(0), day: us(500_000), matching: Matching::new(racks, &[]).unwrap() };
    HybridConfig {
        hosts_per_rack,
        links: HostLinks { rate: gbps(10), receive_rate: gbps(10), delay: Span::ZERO },
        interface: InterfaceConfig::default(),
        packet: PacketConfig { rate: gbps(10), delay: Span::ZERO, switch_queue: MANY, switched: true },
        circuit: CircuitConfig { rate: gbps(80), delay: us(30) },
        week: Week::new(vec![idle]).unwrap(),
        control: None,
        voq: VoqConfig::packets(MANY, None),
        pfc,
        marks: None,
        notices: None,
        tables: FabricTables::default(),
        time_scale: 1,
        seed: 1,
    }
}

/// A fabric without nights in which rack 0 sends to rack 1 all the time.
fn joined(config: HybridConfig) -> HybridConfig {
    let matching = Matching::new(config.racks(), &[(RackId(0), RackId(1))]).unwrap();
    let week = Week::new(vec![Day { night: us(0), day: us(500_000), matching }]).unwrap();
    HybridConfig { week, ..config }
}

fn burst(src: u16, dst: u16, count: u32, start: Time) -> Vec<(Time, Packet)> {
    (0..count).map(|n| (start, packet(src, dst, 9000, n))).collect()
}

fn run(config: &HybridConfig, sends: &[Vec<(Time, Packet)>], until: Time) -> (Fabric, Vec<Left>) {
    let mut sends = sends.concat();
    sends.sort_by_key(|send| send.0);
    let mut fabric = Fabric::hybrid(config).unwrap();
    let left = drive(&mut fabric, &sends, until);
    assert_conserved(&fabric);
    (fabric, left)
}

fn report(config: &HybridConfig, sends: &[Vec<(Time, Packet)>], until: Time) -> PauseReport {
    run(config, sends, until).0.pauses().expect("it is lossless")
}

fn port<'a>(report: &'a PauseReport, name: &str) -> &'a PausedPort {
    report.ports.iter().find(|port| port.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// 9,036 bytes at 10 Gb/s.
const RESPONSE: Span = Span::from_ps(7_228_800);

/// XOFF, 45,000 bytes, is five packets. A packet ahead of the pause frame, that frame and the response are two packets
/// and 100 bytes. So after XOFF come the packet that exceeds it, two, and one that began just in time: 36,000 bytes of
/// a headroom of 36,100.
fn worst_host(phase: u64, buffer: Option<Bytes>) -> PauseReport {
    let mut config = dark(3, 2, Some(PfcConfig { xoff: bytes(45_000), buffer, response: Some(RESPONSE), ..PFC }));
    // The VOQ drains slowly. Host 1's packets fill the other direction of host 0's link.
    config.packet.rate = Rate::from_bps(1_000_000);
    report(&config, &[burst(0, 2, 40, at(us(50))), burst(1, 0, 60, at(ns(phase)))], at(us(400)))
}

#[test]
fn a_host_s_headroom_is_what_the_worst_case_takes_and_less_loses() {
    let phases = || (0..7300).step_by(61);
    let reports: Vec<_> = phases().map(|phase| worst_host(phase, None)).collect();
    let largest = reports.iter().map(|report| port(report, "host0.nic").peak).max().unwrap();
    let limits = port(&reports[0], "host0.nic").limits;
    assert_eq!((largest, limits.headroom.get()), (45_000 + 36_000, 36_100));
    assert!(reports.iter().all(|report| report.lost == 0 && port(report, "host0.nic").pauses > 0));
    let lost = phases().filter(|phase| worst_host(*phase, bytes(45_000 + 35_999)).lost > 0).count();
    assert!(lost > 0 && lost < phases().count(), "{lost} phases lose");
}

/// Rack 2 has filled a slow host of rack 1, and the downlink there is paused, when rack 0 sends. In the other direction
/// of uplink 0 five packets, just XOFF, are under way when its account exceeds XOFF. Also what the packet switch lost;
/// the ToR has less than its headroom, as a pause frame lasts 512 us on a slow host's link.
fn worst_uplink(phase: u64, buffer: Option<Bytes>) -> (PauseReport, u64) {
    let mut config = dark(4, 2, Some(PfcConfig { xoff: bytes(45_000), buffer, response: Some(RESPONSE), ..PFC }));
    config.links.receive_rate = Rate::from_bps(1_000_000);
    let back = at(us(1018) + ns(phase));
    let sends = [burst(4, 2, 12, Time::ZERO), burst(0, 2, 40, at(us(1000))), burst(6, 1, 5, back)];
    let (fabric, _) = run(&config, &sends, at(us(1400)));
    let lost = fabric.ports().iter().find(|port| port.name == "downlink.1").unwrap().dropped;
    (fabric.pauses().unwrap(), lost)
}

#[test]
fn an_uplink_s_headroom_is_what_the_worst_case_takes_and_less_loses() {
    let phases = || (0..7300).step_by(61);
    let all: Vec<_> = phases().map(|phase| worst_uplink(phase, None)).collect();
    let largest = all.iter().map(|(report, _)| port(report, "uplink.0").peak).max().unwrap();
    assert_eq!((largest, port(&all[0].0, "uplink.0").limits.headroom.get()), (45_000 + 36_000, 36_100));
    assert!(all.iter().all(|(report, lost)| report.lost + lost == 0 && port(report, "uplink.0").pauses > 0));
    let lost = phases().filter(|phase| worst_uplink(*phase, bytes(45_000 + 35_999)).1 > 0).count();
    assert!(lost > 0 && lost < phases().count(), "{lost} phases lose");
}

/// A slow host in rack 1 fills its port: ToR 1 pauses its downlink, the packet switch rack 0's uplink, ToR 0 host 0.
#[test]
fn a_pause_is_told_back_to_its_root_over_three_switches() {
    let mut config = dark(3, 2, Some(PfcConfig { xoff: bytes(60_000), ..PFC }));
    config.links.receive_rate = Rate::from_gbps(1);
    let (fabric, left) = run(&config, &[burst(0, 2, 100, Time::ZERO)], at(us(20_000)));
    let report = fabric.pauses().unwrap();
    assert_eq!((report.lost, left.len()), (0, 100));
    let chain = [
        ("host0.nic", "tor0", "voq.0.1"),
        ("uplink.0", "packet switch", "downlink.1"),
        ("downlink.1", "tor1", "host2.port"),
    ];
    for (name, switch, egress) in chain {
        let causes: Vec<_> = report.causes.iter().filter(|cause| cause.name == name).collect();
        assert!(!causes.is_empty(), "{name} is paused");
        assert!(causes.iter().all(|cause| (cause.switch.as_str(), cause.egress.as_str()) == (switch, egress)));
        let longest = causes.iter().max_by_key(|cause| cause.paused).unwrap();
        assert_eq!(longest.root.as_deref(), Some("host2.port"), "{causes:?}");
    }
    // All but what the buffers hold was paused for; nothing else was.
    let quiet = report.ports.iter().filter(|port| port.pauses == 0).count();
    assert_eq!(quiet, report.ports.len() - 3);
    assert_eq!(port(&report, "uplink.0").victim, Some(Span::ZERO));
}

/// An uplink's pause stops all VOQs of its rack: what is bound for an idle downlink is its victim. So is a host's
/// packet for another rack behind one for a full VOQ.
#[test]
fn head_of_line_blocking_of_hosts_and_uplinks_is_told() {
    // The packet switch holds VOQs, so that they fill; VOQ 0->2 is empty, but its uplink is busy with VOQ 0->1.
    let pfc = Some(PfcConfig { xoff: bytes(40_000), ..PFC });
    let config = joined(dark(3, 2, pfc));
    // Host 0 has packets for rack 1, which has a slow circuit, and then one for rack 2, whose packet path is idle.
    let slow = HybridConfig { circuit: CircuitConfig { rate: Rate::from_gbps(1), delay: us(1) }, ..config };
    let mixed: Vec<_> =
        (0..40).map(|n| (Time::ZERO, packet(0, if n * n / 3 % 2 == 1 { 4 } else { 2 }, 9000, n))).collect();
    let (fabric, left) = run(&slow, &[mixed], at(us(20_000)));
    let report = fabric.pauses().unwrap();
    assert_eq!((report.lost, left.len()), (0, 40));
    let nic = port(&report, "host0.nic");
    assert!(nic.victim.unwrap() > us(72), "a packet for rack 2 waits for one of 72 us for rack 1: {nic:?}");
    assert!(nic.victim.unwrap() < nic.paused);
    // Host 2 of rack 1 is slow, host 4 of rack 2 is not: packets for it wait at a paused uplink.
    let mut config = dark(3, 2, Some(PfcConfig { xoff: bytes(60_000), ..PFC }));
    config.packet.rate = Rate::from_gbps(40);
    let sends = [burst(0, 2, 60, Time::ZERO), burst(1, 4, 60, Time::ZERO)];
    let report = self::report(&config, &sends, at(us(20_000)));
    assert!(port(&report, "uplink.0").victim.is_some());
    let cross = [burst(1, 2, 60, Time::ZERO), burst(4, 2, 60, Time::ZERO), burst(0, 5, 60, Time::ZERO)];
    let report = self::report(&config, &cross, at(us(20_000)));
    let uplink = port(&report, "uplink.0");
    assert!(uplink.pauses > 0 && uplink.victim.unwrap() > us(1), "{uplink:?}");
}

/// Circuits are never paused; what they bring is accounted for without a limit.
#[test]
fn a_circuit_is_not_paused_and_what_it_brings_is_told() {
    let config = joined(dark(2, 1, Some(PfcConfig { xoff: bytes(60_000), ..PFC })));
    let mut slow = config.clone();
    slow.links.receive_rate = Rate::from_gbps(1);
    let (fabric, left) = run(&slow, &[burst(0, 1, 100, Time::ZERO)], at(us(20_000)));
    let report = fabric.pauses().unwrap();
    let circuit = port(&report, "circuit.to.1");
    assert_eq!((left.len(), circuit.lossless, circuit.pauses, circuit.packets), (100, false, 0, 100));
    // 100 packets come at 10 Gb/s and leave at a tenth of that.
    assert!((89 * 9000..=91 * 9000).contains(&circuit.peak), "{}", circuit.peak);
    assert_eq!(port(&report, "host0.nic").pauses, 0);
}

#[test]
fn a_voq_that_shrinks_gives_its_bytes_back_and_its_losses_are_told() {
    let mut config = joined(dark(2, 1, Some(PfcConfig { xoff: bytes(60_000), ..PFC })));
    let matching = Matching::new(2, &[(RackId(0), RackId(1))]).unwrap();
    let idle = Day { night: us(0), day: us(300), matching: Matching::new(2, &[]).unwrap() };
    config.week = Week::new(vec![Day { night: us(100), day: us(10), matching }, idle]).unwrap();
    config.circuit.rate = Rate::from_gbps(1);
    config.packet.rate = Rate::from_gbps(1);
    config.voq = VoqConfig { resize: Some(Resize::packets(50, None, us(80))), ..VoqConfig::packets(2, None) };
    let (fabric, left) = run(&config, &[burst(0, 1, 60, Time::ZERO)], at(us(40_000)));
    let report = fabric.pauses().unwrap();
    let shrunk: u64 = fabric.pairs().iter().map(|pair| pair.dropped_shrink).sum();
    assert!(shrunk > 0);
    assert_eq!(report.lost, shrunk + fabric.pairs().iter().map(|pair| pair.dropped_full).sum::<u64>());
    assert_eq!(left.len() as u64 + report.lost, 60, "nobody waits for bytes that were dropped");
}

/// A week of a random fabric.
fn week(racks: usize) -> impl Strategy<Value = Week> {
    let to = Just((0..racks as u16).collect::<Vec<_>>()).prop_shuffle();
    let day = (to, 10u64..60, 0u64..25).prop_map(move |(to, day, night)| {
        let moved = (0..racks as u16).filter(|src| to[usize::from(*src)] != *src);
        let pairs: Vec<_> = moved.map(|src| (RackId(src), RackId(to[usize::from(src)]))).collect();
        Day { night: us(night), day: us(day), matching: Matching::new(racks, &pairs).unwrap() }
    });
    // At last the packet network serves all pairs.
    let idle = Day { night: us(0), day: us(200), matching: Matching::new(racks, &[]).unwrap() };
    prop::collection::vec(day, 1..4).prop_map(move |mut days| {
        days.push(idle.clone());
        Week::new(days).unwrap()
    })
}

prop_compose! {
    /// Rates are few, so that much happens at the same moments.
    fn fabric()(racks in 2usize..5, hosts in 1usize..4)(
        racks in Just(racks),
        hosts_per_rack in Just(hosts),
        week in week(racks),
        rates in prop::array::uniform4(prop::sample::select(vec![1u64, 10, 40])),
        delays in prop::array::uniform3(0u64..6),
        (switch_queue, switched) in (prop::sample::select(vec![2, MANY]), any::<bool>()),
        stack in 0u64..2,
        qcn in prop::bool::weighted(0.3),
        drain in prop::option::weighted(0.4, prop::sample::select(vec![1u64, 7, 10, 40])),
        time_scale in prop::sample::select(vec![1u32, 20]),
    ) -> HybridConfig {
        let [send, receive, packet, circuit] = rates.map(Rate::from_gbps);
        let interface = InterfaceConfig {
            send_delay: us(stack),
            receive_delay: us(stack),
            tables: InterfaceTables { qcn: qcn.then(nervous), ..InterfaceTables::default() },
            adapter: AdapterConfig {
                receive: drain
                    .map(|drain| ReceiveConfig { drain: Rate::from_gbps(drain), buffer: Bytes::new(1 << 40) }),
                ..AdapterConfig::default()
            },
            ..InterfaceConfig::default()
        };
        HybridConfig {
            links: HostLinks { rate: send, receive_rate: receive, delay: us(delays[0]) },
            interface,
            packet: PacketConfig { rate: packet, delay: us(delays[1]), switch_queue, switched: switched || racks > 2 },
            circuit: CircuitConfig { rate: circuit, delay: us(delays[2]) },
            week,
            time_scale,
            ..dark(racks, hosts_per_rack, None)
        }
    }
}

/// (gap in 100 ns, source, destination, large)
type Injections = Vec<(u64, u16, u16, bool)>;

fn traffic() -> impl Strategy<Value = Injections> {
    prop::collection::vec((0u64..20, any::<u16>(), any::<u16>(), prop::bool::weighted(0.8)), 1..300)
}

fn sends(config: &HybridConfig, traffic: &Injections) -> Vec<(Time, Packet)> {
    let hosts = (config.hosts()) as u16;
    let mut now = Time::ZERO;
    let number = |(k, (gap, src, dst, large)): (usize, &(u64, u16, u16, bool))| {
        now += ns(gap / 4 * 100) * u64::from(config.time_scale);
        (now, packet(src % hosts, dst % hosts, if *large { 9000 } else { 64 }, k as u32))
    };
    traffic.iter().enumerate().map(number).filter(|(_, packet)| packet.src() != packet.dst()).collect()
}

/// The least buffer of hosts' adapters.
fn headroom_of_hosts(report: &PauseReport) -> u64 {
    report.ports.iter().find(|port| port.name == "host0.port").expect("it can be paused").limits.headroom.get()
}

fn own(config: &HybridConfig, span: Span) -> Time {
    Time::ZERO + span * u64::from(config.time_scale)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_is_lost_at_the_headroom_and_pauses_add_up(
        config in fabric(), traffic in traffic(), xoff in 0u64..80_000, band in 0u64..80_000,
        response in prop::option::of(0u64..5), more in prop::sample::select(vec![0u64, 1, 5000]),
        whole_link in any::<bool>(), red in any::<bool>(), above in 0u64..60_000,
    ) {
        let response = response.map(us);
        let pfc = PfcConfig { xoff: bytes(xoff), xon: bytes(xoff.saturating_sub(band)), response, whole_link, ..PFC };
        let open = Fabric::hybrid(&HybridConfig { pfc: Some(pfc), ..config.clone() }).unwrap().pauses().unwrap();
        // One buffer for all links: the largest headroom.
        let headroom = open.ports.iter().map(|port| port.limits.headroom.get()).max().unwrap();
        let pfc = PfcConfig { buffer: (more > 0).then(|| Bytes::new(xoff + headroom + more)), ..pfc };
        let mut config = HybridConfig { pfc: Some(pfc), ..config };
        if red {
            config.voq.discipline.red = Some(MARKS);
        }
        if let Some(receive) = &mut config.interface.adapter.receive {
            receive.buffer = Bytes::new(headroom_of_hosts(&open) + above);
        }
        let sends = sends(&config, &traffic);
        let (fabric, left) = run(&config, std::slice::from_ref(&sends), own(&config, us(400_000)));
        let report = fabric.pauses().unwrap();
        prop_assert_eq!((report.lost, left.len()), (0, sends.len()));
        for port in &report.ports {
            let most = port.limits.xoff.get() + port.limits.headroom.get();
            prop_assert!(!port.lossless || port.peak <= most, "{:?}", port);
            let own = if port.name.ends_with(".port") { above } else { xoff };
            prop_assert!(!port.lossless || port.limits.xoff.get() == own, "{:?}", port);
            let causes: Vec<_> = report.causes.iter().filter(|cause| cause.name == port.name).collect();
            prop_assert_eq!(causes.iter().map(|cause| cause.pauses).sum::<u64>(), port.pauses);
            // Each is whole picoseconds of the experiment's own time: less than one is lost where that is stretched.
            let sum: u64 = causes.iter().map(|cause| cause.paused.as_ps()).sum();
            let most = if config.time_scale == 1 { 0 } else { causes.len().saturating_sub(1) as u64 };
            prop_assert!((sum..=sum + most).contains(&port.paused.as_ps()), "{sum} of {:?}", port);
            prop_assert!(port.victim.unwrap() <= port.paused, "{:?}", port);
            let events = report.events.iter().filter(|event| event.name == port.name).count() as u64;
            prop_assert_eq!(events, 2 * port.pauses, "all pauses end: nobody waits for himself");
        }
    }

    #[test]
    fn thresholds_that_are_never_reached_change_nothing(config in fabric(), traffic in traffic()) {
        let sends = sends(&config, &traffic);
        let until = own(&config, us(20_000));
        let (lossy, _) = run(&config, std::slice::from_ref(&sends), until);
        let far = PfcConfig { xoff: bytes(1 << 40), ..PFC };
        let config = HybridConfig { pfc: Some(far), ..config };
        let (lossless, _) = run(&config, std::slice::from_ref(&sends), until);
        prop_assert_eq!(lossy.digest(), lossless.digest());
        prop_assert_eq!(lossy.pairs(), lossless.pairs());
    }
}

/// The worst case of a host that takes nothing in, as that of a host's interface: 36,000 bytes of a headroom of 36,100.
fn worst_adapter(phase: u64, buffer: u64) -> PauseReport {
    let mut config = dark(3, 2, Some(PfcConfig { xoff: bytes(1 << 40), response: Some(RESPONSE), ..PFC }));
    let receive = Some(ReceiveConfig { drain: Rate::from_bps(1_000_000), buffer: Bytes::new(buffer) });
    config.interface.adapter = AdapterConfig { receive, ..AdapterConfig::default() };
    report(&config, &[burst(0, 1, 40, at(us(50))), burst(1, 2, 60, at(ns(phase)))], at(us(400)))
}

#[test]
fn an_adapter_s_headroom_is_what_the_worst_case_takes_and_less_loses() {
    let phases = || (0..7300).step_by(61);
    let reports: Vec<_> = phases().map(|phase| worst_adapter(phase, 36_100)).collect();
    let largest = reports.iter().map(|report| port(report, "host1.port").peak).max().unwrap();
    let limits = port(&reports[0], "host1.port").limits;
    assert_eq!((largest, limits.headroom.get(), limits.xoff.get()), (36_000, 36_100, 0));
    assert!(reports.iter().all(|report| report.lost == 0 && port(report, "host1.port").pauses > 0));
    let lost = phases().filter(|phase| worst_adapter(*phase, 35_999).lost > 0).count();
    assert!(lost > 0 && lost < phases().count(), "{lost} phases lose");
}

/// Packets of 7.2 us cross two links of 1 us inside a rack: they come at 16.4, 23.6 and 30.8 us, when they are more
/// than two. The pause frame of 51.2 ns crosses in 1 us and takes effect 1 us later, in the fourth packet, which has
/// left the ToR at 37 us. The host has taken in all four, 72 us each, at 304.4 us.
#[test]
fn a_pause_of_a_tor_by_a_host_by_hand() {
    let mut config = dark(3, 2, Some(PfcConfig { xoff: bytes(1 << 40), response: Some(us(1)), ..PFC }));
    config.links.delay = us(1);
    // Two packets, the headroom's two and 64 bytes behind one of them, and 3 us.
    let buffer = Bytes::new(18_000 + 3 * 9000 + 64 + 3750);
    let receive = Some(ReceiveConfig { drain: Rate::from_gbps(1), buffer });
    config.interface.adapter = AdapterConfig { receive, ..AdapterConfig::default() };
    let (fabric, left) = run(&config, &[burst(0, 1, 6, Time::ZERO)], at(us(20_000)));
    let report = fabric.pauses().unwrap();
    let effect = |after: Span| after + ns(2000) + Span::from_ps(51_200);
    let events: Vec<_> = report.events.iter().map(|event| (event.name.as_str(), event.at)).collect();
    assert_eq!(events, [("host1.port", effect(ns(30_800))), ("host1.port", effect(ns(304_400)))]);
    let paused = port(&report, "host1.port");
    assert_eq!((paused.paused, paused.peak, left.len()), (effect(ns(304_400)) - us(37), 4 * 9000, 6));
}

/// A host of rack 1 that takes in slowly, and sends as well, is the root of what stops host 0, over ToR, packet switch
/// and ToR.
#[test]
fn a_slow_host_pauses_its_tor_and_what_is_behind() {
    let mut config = dark(3, 2, Some(PfcConfig { xoff: bytes(60_000), ..PFC }));
    let receive = Some(ReceiveConfig { drain: Rate::from_gbps(1), buffer: Bytes::new(100_000) });
    config.interface.adapter = AdapterConfig { receive, ..AdapterConfig::default() };
    let (fabric, left) = run(&config, &[burst(0, 2, 100, Time::ZERO), burst(2, 4, 10, Time::ZERO)], at(us(20_000)));
    let report = fabric.pauses().unwrap();
    assert_eq!((report.lost, left.len()), (0, 110));
    let chain = [
        ("host0.nic", "tor0", "voq.0.1"),
        ("uplink.0", "packet switch", "downlink.1"),
        ("downlink.1", "tor1", "host2.port"),
        ("host2.port", "host2", "host2.adapter"),
    ];
    for (name, switch, egress) in chain {
        let causes = report.causes.iter().filter(|cause| cause.name == name);
        let longest = causes.max_by_key(|cause| cause.paused).unwrap_or_else(|| panic!("{name} is never paused"));
        assert_eq!((longest.switch.as_str(), longest.egress.as_str()), (switch, egress));
        assert_eq!(longest.root.as_deref(), Some("host2.adapter"));
    }
    let slow = port(&report, "host2.port");
    assert_eq!((slow.victim, slow.packets), (Some(Span::ZERO), 100));
    // The last of 100 packets of 72 us: the host is busy from the first arrival on.
    let last = left.iter().filter(|exit| exit.1.0 == 2).map(|exit| exit.0).max().unwrap();
    assert_eq!(last, at(ns(4 * 7200 + 100 * 72_000)));
    // With classes that are not lossless nothing is paused, and the buffer of 11 packets loses.
    let lossy = HybridConfig { pfc: Some(PfcConfig { classes: Some(Classes(0)), ..PFC }), ..config };
    let (fabric, left) = run(&lossy, &[burst(0, 2, 100, Time::ZERO)], at(us(20_000)));
    let report = fabric.pauses().unwrap();
    assert_eq!((report.lost, report.causes.len()), (0, 0));
    assert!(fabric.totals().dropped == 100 - left.len() as u64 && (15..30).contains(&left.len()), "{}", left.len());
}

/// A host's packets for a full VOQ stop what it has for its own rack's other host, but nothing of that host's.
#[test]
fn accounts_are_each_host_s_own() {
    let pfc = PfcConfig { xoff: bytes(60_000), ..PFC };
    let config = HybridConfig {
        packet: PacketConfig { rate: Rate::from_gbps(1), delay: us(1), switch_queue: MANY, switched: true },
        ..dark(3, 2, Some(pfc))
    };
    for (greedy, modest) in [(0, 1), (1, 0)] {
        let sends = [burst(greedy, 2, 100, Time::ZERO), burst(modest, greedy, 20, Time::ZERO)];
        let (fabric, _) = run(&config, &sends, at(us(200)));
        let report = fabric.pauses().unwrap();
        assert!(port(&report, &format!("host{greedy}.nic")).pauses > 0);
        let nic = port(&report, &format!("host{modest}.nic"));
        assert_eq!((nic.pauses, nic.packets), (0, 20));
        let ports = fabric.ports();
        let to_greedy = format!("host{greedy}.port");
        assert_eq!(ports.iter().find(|port| port.name == to_greedy).unwrap().delivered, 20);
    }
}
