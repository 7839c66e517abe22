//! QCN on whole fabrics: notifications on their way, limited flows, and where the loop settles.

mod harness;

use firstlight_net::qcn::{FlowKey, QcnConfig};
use firstlight_net::topology::{Cable, LeafSpine, Wire, star};
use firstlight_net::{Discipline, FlowTuple, HostId, Packet};
use firstlight_sim::{
    Fabric, GraphConfig, InterfaceConfig, InterfaceTables, QcnReport, SwitchConfig, VoqConfig, WatchConfig,
};
use firstlight_units::{Bytes, Rate, Span, Time};
use harness::*;

/// A star of hosts with 10 Gb/s, whose ports at the switch have this rate.
fn fabric(hosts: u32, gbps: u64, qcn: Option<QcnConfig>) -> GraphConfig {
    let wire = |gbps| Wire { rate: Rate::from_gbps(gbps), delay: us(1) };
    let topology = star(hosts, Cable { there: wire(10), back: wire(gbps) }).unwrap();
    let interface =
        InterfaceConfig { tables: InterfaceTables { qcn, ..InterfaceTables::default() }, ..InterfaceConfig::default() };
    GraphConfig { topology, interface, switch: SwitchConfig::default(), spray: false, time_scale: 1, seed: 1 }
}

/// Every packet is answered by a notification with the largest feedback.
fn alarm() -> QcnConfig {
    QcnConfig { set_point: Bytes::new(1), weight: 0.0, sample: Bytes::new(1), ..QcnConfig::default() }
}

fn data(src: u16, dst: u16, sport: u16, seq: u32) -> Packet {
    let packet = packet(src, dst, 1500, seq);
    packet.with_tuple(FlowTuple { sport, ..packet.tuple() })
}

fn report(fabric: &Fabric) -> QcnReport {
    fabric.qcn().expect("QCN is on")
}

/// 1,500 bytes last 1.2 us, 64 bytes 51.2 ns, links 1 us.
#[test]
fn a_notification_takes_its_way_and_slows_one_flow() {
    let mut fabric = Fabric::graph(&fabric(3, 10, Some(alarm()))).unwrap();
    fabric.keep_rate_changes(10);
    let sends: Vec<(Time, Packet)> = [(0, 0), (4000, 0), (4000, 0), (4100, 7)]
        .iter()
        .enumerate()
        .map(|(seq, (at_ns, sport))| (at(ns(*at_ns)), data(0, 1, *sport, seq as u32)))
        .collect();
    let left = drive(&mut fabric, &sends, at(us(100)));
    // Packet 0 is at the switch at 2.2 us, its notification back at 3.2512 us: 5 Gb/s. Packet 1 finds nothing unpaid,
    // packet 2 waits 2.4 us, and packet 3, of another flow, only for packet 1's end in the interface.
    let times: Vec<(u32, u64)> = left.iter().map(|(at, _, packet)| (number(packet), at.as_ps() / 1000)).collect();
    assert_eq!(times, [(0, 4400), (1, 8400), (3, 9600), (2, 10_800)]);
    let (totals, seen) = (fabric.totals(), report(&fabric));
    assert_eq!((totals.notified, seen.sent.notifications, seen.received, seen.feedback), (4, 4, 4, 4 * 63));
    assert_eq!((totals.exited, seen.limited, seen.changes), (4, 2, 4));
    let first = seen.kept[0];
    assert_eq!((first.at, first.host, first.flow), (ns(3251) + Span::from_ps(200), HostId(0), key(1, 0)));
    assert_eq!((first.current, first.target), (Rate::from_gbps(5), Rate::from_gbps(10)));
    assert_conserved(&fabric);
}

fn key(dst: u16, sport: u16) -> FlowKey {
    FlowKey { dst, sport, dport: 0 }
}

/// Notifications of one leaf's switch cross the spine, and are no data to anybody.
#[test]
fn notifications_cross_switches() {
    let cable = Cable::new(Rate::from_gbps(10), us(1));
    let topology = LeafSpine { leaves: 2, spines: 1, hosts_per_leaf: 1, host: cable, uplink: cable }.build().unwrap();
    for classes in [vec![], vec![Discipline::default(); 3]] {
        let switch = SwitchConfig { classes, ..SwitchConfig::default() };
        let config = GraphConfig { topology: topology.clone(), switch, ..fabric(2, 10, Some(alarm())) };
        let mut fabric = Fabric::graph(&config).unwrap();
        let left = drive(&mut fabric, &[(at(us(0)), data(0, 1, 0, 0))], at(us(50)));
        assert_eq!(left.len(), 1);
        // One each from leaf, spine and leaf; they make 1, 2 and 3 hops.
        let totals = fabric.totals();
        assert_eq!((totals.notified, report(&fabric).received, totals.hops), (3, 3, 4 + 1 + 2 + 3));
        assert_conserved(&fabric);
    }
}

/// Sources that always have something to send, for so long; then the queue of the last host's port in KB every 10 us
/// over the second half, and the Gb/s of each source in that time.
fn greedy(config: &GraphConfig, sources: u16, length: Span) -> (Vec<f64>, Vec<f64>, Fabric) {
    let mut fabric = Fabric::graph(config).unwrap();
    let name = format!("host{sources}.port");
    fabric.watch(&WatchConfig { ports: vec![name], every: Some(us(10)) }).unwrap();
    let every = Rate::from_gbps(10).tx_time(Bytes::new(1500));
    let moments = length.as_ps() / every.as_ps();
    let mut sends = vec![];
    for k in 0..moments {
        let now = fabric.at(every * k);
        sends.extend((0..sources).map(|src| (now, data(src, sources, 0, k as u32))));
    }
    let end = fabric.at(length);
    let left = drive(&mut fabric, &sends, end);
    let half = fabric.at(length / 2);
    let mut bits = vec![0.0; usize::from(sources)];
    left.iter().filter(|(at, ..)| *at > half).for_each(|(_, _, packet)| bits[packet.src().index()] += 12_000.0);
    let seconds = (length / 2).as_secs_f64();
    let rates = bits.iter().map(|bits| bits / seconds * 1e-9).collect();
    let queues = fabric.queues();
    let late = queues[0].samples.iter().filter(|sample| sample.at > length / 2);
    assert_conserved(&fabric);
    (late.map(|sample| sample.bytes.get() as f64 / 1000.0).collect(), rates, fabric)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The queue is near the set point, and the link is busy.
#[test]
fn one_sender_settles_at_the_rate_of_a_slower_port() {
    for (set_point, scale) in [(66_000, 1), (66_000, 20), (20_000, 1)] {
        let qcn = QcnConfig { set_point: Bytes::new(set_point), ..QcnConfig::default() };
        let config = GraphConfig { time_scale: scale, ..fabric(2, 5, Some(qcn)) };
        let (queue, rates, fabric) = greedy(&config, 1, Span::from_ms(100));
        let (found, wanted) = (mean(&queue), set_point as f64 / 1000.0);
        eprintln!("{wanted} KB at scale {scale}: {found} KB, {rates:?} Gb/s, {:?}", report(&fabric).sent);
        assert!((found / wanted - 1.0).abs() < 0.35, "a queue of {found} KB where {wanted} are wanted");
        assert!(rates[0] > 4.9 && rates[0] <= 5.001, "{rates:?} Gb/s");
        // Feedback is neither silent nor shouting.
        let sent = report(&fabric).sent;
        let feedback = sent.feedback as f64 / sent.notifications as f64;
        assert!(sent.notifications > 20 && feedback < 20.0, "{sent:?}");
    }
}

#[test]
fn without_it_the_queue_grows() {
    let (queue, rates, fabric) = greedy(&fabric(2, 5, None), 1, Span::from_ms(10));
    assert!(mean(&queue) > 4000.0 && rates[0] > 4.9, "{} KB", mean(&queue));
    assert!(fabric.qcn().is_none());
}

#[test]
fn two_senders_share() {
    let qcn = QcnConfig { set_point: Bytes::new(66_000), ..QcnConfig::default() };
    let (queue, rates, fabric) = greedy(&fabric(3, 10, Some(qcn)), 2, Span::from_ms(200));
    eprintln!("{} KB, {rates:?} Gb/s, {:?}", mean(&queue), report(&fabric).sent);
    assert!((mean(&queue) / 66.0 - 1.0).abs() < 0.35, "a queue of {} KB", mean(&queue));
    assert!(rates.iter().sum::<f64>() > 9.8, "{rates:?}");
    assert!(rates.iter().all(|rate| (3.5..6.5).contains(rate)), "{rates:?}");
}

/// A queue that never comes to the set point is not touched, to the last packet.
#[test]
fn without_congestion_it_changes_nothing() {
    let calm = QcnConfig { set_point: Bytes::new(1 << 40), ..QcnConfig::default() };
    let digests = [None, Some(calm)].map(|qcn| greedy(&fabric(3, 10, qcn), 2, Span::from_ms(5)).2.digest());
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn the_seed_decides() {
    let run = |seed| {
        let (_, _, fabric) = greedy(&GraphConfig { seed, ..fabric(3, 10, Some(nervous())) }, 2, Span::from_ms(5));
        (fabric.digest(), report(&fabric))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

/// Queues of classes have a congestion point each: what waits in another class is not held against a flow.
#[test]
fn classes_have_points_of_their_own() {
    let switch = SwitchConfig { classes: vec![Discipline::default(); 2], ..SwitchConfig::default() };
    let qcn = QcnConfig { set_point: Bytes::new(20_000), weight: 0.0, sample: Bytes::new(1), ..QcnConfig::default() };
    let mut fabric = Fabric::graph(&GraphConfig { switch, ..fabric(4, 10, Some(qcn)) }).unwrap();
    fabric.keep_rate_changes(1000);
    // Three hosts fill the fourth's port: two of class 0 to 50 KB and more, one of class 1 with a packet now and then.
    let mut sends = vec![];
    for k in 0..40u64 {
        sends.extend([0, 1].map(|src| (at(ns(1200) * k), data(src, 3, 0, k as u32))));
        if k % 4 == 0 {
            let mut packet = data(2, 3, 0, k as u32);
            packet.set_class(1);
            sends.push((at(ns(1200) * k), packet));
        }
    }
    drive(&mut fabric, &sends, at(us(300)));
    let seen = report(&fabric);
    assert!(seen.received > 2 && seen.kept.iter().all(|change| change.host != HostId(2)), "{seen:?}");
}

/// A notification that meets a full queue is lost, and counted.
#[test]
fn notifications_can_be_lost() {
    let discipline = Discipline::packets(Some(1), None);
    let switch = SwitchConfig { discipline, ..SwitchConfig::default() };
    let mut fabric = Fabric::graph(&GraphConfig { switch, ..fabric(4, 10, Some(alarm())) }).unwrap();
    // Hosts 1 and 2 send to host 0 what fills its port while host 0's packets are answered.
    let all = |k: u64| {
        [(1, 0, 0), (2, 0, 0), (0, 3, 600)]
            .map(|(src, dst, late)| (at(ns(1200 * k + late)), data(src, dst, 0, k as u32)))
    };
    let sends: Vec<(Time, Packet)> = (0..20).flat_map(all).collect();
    drive(&mut fabric, &sends, at(Span::from_ms(100)));
    let totals = fabric.totals();
    assert!(totals.notified > report(&fabric).received, "{totals:?}");
    assert_eq!(totals.exited + totals.dropped + report(&fabric).received, totals.injected + totals.notified);
    assert_conserved(&fabric);
}

/// A VOQ's sender is notified by its ToR.
#[test]
fn a_voq_has_a_congestion_point() {
    let mut config = paper(1);
    config.voq = VoqConfig::packets(1000, None);
    config.interface.tables.qcn = Some(QcnConfig { set_point: Bytes::new(66_000), ..QcnConfig::default() });
    let queue = |config: &firstlight_sim::HybridConfig| {
        let mut fabric = Fabric::hybrid(config).unwrap();
        // Host 0 sends 40 Gb/s to rack 1, whose packet network has 10 Gb/s.
        let sends: Vec<_> = (0..10_000).map(|k| (at(ns(300) * u64::from(k)), packet(0, 1, 1500, k))).collect();
        drive(&mut fabric, &sends, at(Span::from_ms(3)));
        assert_conserved(&fabric);
        let peak = fabric.pairs().iter().map(|pair| pair.peak).max().unwrap();
        (peak, fabric.qcn())
    };
    let (peak, seen) = queue(&config);
    let seen = seen.unwrap();
    assert!(seen.received > 3 && peak < 700, "{peak} packets, {seen:?}");
    config.interface.tables.qcn = None;
    assert_eq!(queue(&config).0, 1000);
}

/// Peaks of a port's queue in 3 ms with QCN and without, while hosts send 8 Gb/s each to host 1 of another rack.
fn peaks(mut config: firstlight_sim::HybridConfig, sources: &[u16], port: &str) -> [u64; 2] {
    [Some(QcnConfig { set_point: Bytes::new(66_000), ..QcnConfig::default() }), None].map(|qcn| {
        config.interface.tables.qcn = qcn;
        let mut fabric = Fabric::hybrid(&config).unwrap();
        let at_once = |k: u32| sources.iter().map(move |src| (at(ns(1500) * u64::from(k)), packet(*src, 1, 1500, k)));
        let sends: Vec<_> = (0..2000).flat_map(at_once).collect();
        drive(&mut fabric, &sends, at(Span::from_ms(3)));
        assert_conserved(&fabric);
        if let Some(seen) = fabric.qcn() {
            assert!(seen.received > 3 && seen.limited >= sources.len() as u64, "{seen:?}");
        }
        let voqs = fabric.pairs().iter().map(|pair| pair.peak).max().unwrap();
        assert!(voqs < 20 || port.starts_with("voq"), "VOQs are not congested: {voqs}");
        fabric.ports().iter().find(|found| found.name == port).unwrap().peak_queue
    })
}

/// A notification from the far ToR takes the way of the host's own packets, VOQ included.
#[test]
fn a_tor_s_port_to_a_host_has_a_congestion_point() {
    let mut config = paper(1);
    config.links.receive_rate = Rate::from_gbps(5);
    let [with, without] = peaks(config, &[0], "host1.port");
    assert!(with > 40 && with * 2 < without, "{with} packets, {without} without QCN");
}

/// The packet switch holds no VOQ here, so its own queue is the long one; its notifications go to two racks.
#[test]
fn the_packet_switch_has_congestion_points() {
    let mut config = paper(1);
    config.packet.switch_queue = 10_000;
    config.week = firstlight_circuits::Week::idle(3, us(4800));
    let [with, without] = peaks(config, &[0, 2], "downlink.1");
    assert!(with > 20 && with * 2 < without, "{with} packets, {without} without QCN");
}
