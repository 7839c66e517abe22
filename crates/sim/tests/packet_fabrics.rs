//! Packet fabrics over random topologies, disciplines, classes, buffers, pacers, losses and traffic: conservation,
//! order, determinism, timestamps.

mod harness;

use firstlight_net::interface::ClockConfig;
use firstlight_net::topology::{Cable, LeafSpine, PortId, ThreeTier, Topology, TreeCables, dumbbell, fat_tree, star};
use firstlight_net::{
    Band, Direction, Discipline, Drops, Ecn, FlowTuple, HostId, Length, PacerConfig, Packet, PhantomConfig, RedConfig,
    SharedBufferConfig, Stamps,
};
use firstlight_sim::{
    AdapterConfig, CaptureSink, Fabric, GraphConfig, InterfaceConfig, ReceiveConfig, SwitchConfig, WatchConfig,
};
use firstlight_units::{Bytes, Rate, Span, Time};
use harness::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

fn cable() -> impl Strategy<Value = Cable> {
    (prop::sample::select(vec![1u64, 10, 40, 100]), 0u64..3000)
        .prop_map(|(gbps, delay)| Cable::new(Rate::from_gbps(gbps), ns(delay)))
}

fn topology() -> impl Strategy<Value = Topology> {
    (0usize..5, 2u32..5, 1u32..4, 1u32..4, cable(), cable(), cable()).prop_map(
        |(kind, a, b, c, host, aggregation, core)| {
            let cables = TreeCables { host, aggregation, core };
            let tiers = ThreeTier {
                servers: 16,
                tors: 8,
                aggregations: 4,
                cores: 2,
                tor_uplinks: Some(2),
                aggregation_uplinks: Some(1),
                cables,
            };
            match kind {
                0 => star(a, host),
                1 => dumbbell(a, b, host, aggregation),
                2 => LeafSpine { leaves: a, spines: b, hosts_per_leaf: c, host, uplink: aggregation }.build(),
                3 => fat_tree(4, cables),
                _ => tiers.build(),
            }
            .unwrap()
        },
    )
}

fn discipline() -> impl Strategy<Value = Discipline> {
    let length = |packets, bytes| {
        let bytes = (1u64..bytes).prop_map(|bytes| Length::Bytes(Bytes::new(bytes)));
        prop_oneof![(1u32..packets).prop_map(Length::Packets), bytes]
    };
    let drops = prop::sample::select(vec![Drops::Beyond, Drops::Unmarkable, Drops::Nothing]);
    let red = (1u32..5, 0u32..20, any::<bool>(), drops).prop_map(|(min, more, gentle, drops)| RedConfig {
        weight: 0.5,
        gentle,
        drops,
        ..RedConfig::new(Band::packets(min, min + more))
    });
    let marking =
        prop_oneof![
            Just(Discipline::default()),
            (length(10, 30_000), prop::sample::select(vec![0.0, 0.5, 1.0]))
                .prop_map(|(ecn, drop_non_ect)| Discipline { ecn: Some(ecn), drop_non_ect, ..Discipline::default() }),
            red.prop_map(Discipline::red),
            (0.5f64..1.0, 1u64..9000).prop_map(|(drain, threshold)| Discipline::phantom(PhantomConfig {
                drain,
                threshold: Bytes::new(threshold)
            })),
        ];
    (prop::option::of(length(30, 90_000)), marking).prop_map(|(queue, marking)| Discipline { queue, ..marking })
}

prop_compose! {
    fn fabric()(
        topology in topology(),
        discipline in discipline(),
        classes in prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec(discipline(), 1..4)],
        weights in prop::option::of(prop::collection::vec(1u32..10, 4)),
        exceptions in prop::collection::btree_map((0u32..30).prop_map(PortId), discipline(), 0..4),
        buffer in prop::option::weighted(0.3, (10_000u64..200_000, 0.1f64..8.0)),
        loss in prop_oneof![3 => Just(0.0), 1 => 0.0..0.3],
        pacer in prop::bool::weighted(0.3),
        qcn in prop::bool::weighted(0.3),
        adapter in prop::option::weighted(0.3, (1_000_000_000u64..40_000_000_000, 1000u64..100_000)),
        (send, receive) in (0u64..5000, 0u64..5000),
        spray in any::<bool>(),
        time_scale in prop_oneof![Just(1u32), Just(20)],
        seed in any::<u64>(),
    ) -> GraphConfig {
        let weights = weights.map_or(vec![], |weights| weights[..classes.len()].to_vec());
        let buffer = buffer.map(|(size, alpha)| SharedBufferConfig { size: Bytes::new(size), alpha });
        let pacer = pacer.then_some(PacerConfig { chance: 0.5, ..PacerConfig::HULL });
        let qcn = qcn.then(nervous);
        let receive_config =
            |(drain, buffer)| ReceiveConfig { drain: Rate::from_bps(drain), buffer: Bytes::new(buffer) };
        let adapter = AdapterConfig { receive: adapter.map(receive_config), ..AdapterConfig::default() };
        let (send_delay, receive_delay) = (ns(send), ns(receive));
        let mut interface =
            InterfaceConfig { send_delay, receive_delay, loss, adapter, ..InterfaceConfig::default() };
        (interface.tables.pacer, interface.tables.qcn) = (pacer, qcn);
        let switch = SwitchConfig { discipline, classes, weights, exceptions, buffer, ..SwitchConfig::default() };
        GraphConfig { topology, interface, switch, spray, time_scale, seed }
    }
}

/// Gap in ns, ends, size, and what decides on class, ECN, stamps and port.
type Injections = Vec<(u64, u16, u16, u16, u8)>;

fn traffic() -> impl Strategy<Value = Injections> {
    prop::collection::vec((0u64..2000, any::<u16>(), any::<u16>(), 68u16..9001, any::<u8>()), 1..400)
}

/// Each flow (ends and port) is of one class.
fn sends(config: &GraphConfig, traffic: &Injections) -> Vec<(Time, Packet)> {
    let hosts = config.topology.hosts() as u16;
    let mut now = Time::ZERO;
    let mut all = vec![];
    for (k, (gap, src, dst, size, bits)) in traffic.iter().enumerate() {
        now += ns(*gap) * u64::from(config.time_scale);
        let mut packet = packet(src % hosts, dst % hosts, *size, k as u32);
        if packet.src() == packet.dst() {
            continue;
        }
        packet = packet.with_tuple(FlowTuple { sport: u16::from(bits & 3), ..packet.tuple() }).with_class(bits & 3);
        packet.set_ecn(if bits & 4 == 0 { Ecn::Ect0 } else { Ecn::NotEct });
        if bits & 8 != 0 {
            packet.set_stamps(Stamps::default());
        }
        all.push((now, packet));
    }
    all
}

/// Long after the last packet was sent.
fn end(fabric: &Fabric, sends: &[(Time, Packet)]) -> Time {
    let last = sends.last().map_or(Time::ZERO, |send| send.0);
    last + Span::from_ms(200) * u64::from(fabric.time_scale())
}

struct CountingSink(Arc<Mutex<[u64; 2]>>);

impl CaptureSink for CountingSink {
    fn packet(&mut self, packet: &Packet, _: Time, host: HostId, direction: Direction) {
        let sent = direction == Direction::Sent;
        assert_eq!(host, if sent { packet.src() } else { packet.dst() });
        self.0.lock().unwrap()[usize::from(!sent)] += 1;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn every_packet_reaches_its_host_or_is_counted(config in fabric(), traffic in traffic()) {
        let (sends, mut fabric) = (sends(&config, &traffic), Fabric::graph(&config).unwrap());
        let until = end(&fabric, &sends);
        let left = drive(&mut fabric, &sends, until);
        prop_assert!(left.iter().all(|(_, host, packet)| packet.dst() == *host));
        let totals = fabric.totals();
        assert_conserved(&fabric);
        prop_assert_eq!(totals.held, 0, "all is quiet at the end");
        prop_assert_eq!((totals.injected, totals.exited), (sends.len() as u64, left.len() as u64));
        let gone = totals.exited + totals.taken_in + totals.dropped + totals.lost;
        prop_assert_eq!(gone, totals.injected + totals.notified);
        let drops = |queue: &Discipline| queue.has_dropping_table() || queue.dropping().next().is_some();
        let SwitchConfig { buffer, .. } = &config.switch;
        let any = config.switch.disciplines().any(drops);
        let adapters = config.interface.adapter.receive.is_some();
        prop_assert!(totals.dropped == 0 || any || buffer.is_some() || adapters, "{:?}", totals);
        prop_assert!(totals.lost == 0 || config.interface.loss > 0.0);
        // Nothing but ECN-capable packets is marked, and what else a packet carries stays.
        for (_, _, packet) in &left {
            let (_, sent) = sends.iter().find(|(_, sent)| number(sent) == number(packet)).unwrap();
            prop_assert!(packet.ecn() == sent.ecn() || (sent.ecn() == Ecn::Ect0 && packet.ecn() == Ecn::Ce));
            let unchanged = |packet: &Packet| (packet.class(), packet.has_stamps(), packet.size());
            prop_assert_eq!(unchanged(packet), unchanged(sent));
        }
    }

    /// With ECMP and one class for each flow nothing overtakes.
    #[test]
    fn a_flows_packets_stay_in_order(config in fabric(), traffic in traffic()) {
        let config = GraphConfig { spray: false, ..config };
        let (sends, mut fabric) = (sends(&config, &traffic), Fabric::graph(&config).unwrap());
        let until = end(&fabric, &sends);
        let mut last = BTreeMap::new();
        for (_, _, packet) in drive(&mut fabric, &sends, until) {
            if let Some(before) = last.insert(packet.flow_key(), number(&packet)) {
                prop_assert!(before < number(&packet), "{} before {}", before, number(&packet));
            }
        }
    }

    /// Stepping, captures and watches change nothing; one packet more does.
    #[test]
    fn one_digest_however_it_is_run(config in fabric(), traffic in traffic(), step in 100u64..50_000) {
        let sends = sends(&config, &traffic);
        let mut plain = Fabric::graph(&config).unwrap();
        let until = end(&plain, &sends);
        let left = drive(&mut plain, &sends, until);
        let mut watched = Fabric::graph(&config).unwrap();
        let seen = Arc::new(Mutex::new([0; 2]));
        watched.set_capture(Box::new(CountingSink(seen.clone())));
        let first = 0..2.min(config.topology.ports().len() as u32);
        let ports = first.map(|port| config.topology.queue_name(PortId(port)));
        watched.watch(&WatchConfig { ports: ports.collect(), every: Some(us(7)) }).unwrap();
        let mut again = vec![];
        let mut rest = &sends[..];
        let mut now = Time::ZERO;
        while now < until {
            now = (now + ns(step * 1000)).min(until);
            let due = rest.partition_point(|send| send.0 <= now);
            again.extend(drive(&mut watched, &rest[..due], now));
            rest = &rest[due..];
        }
        prop_assert_eq!(watched.digest(), plain.digest());
        prop_assert_eq!(*seen.lock().unwrap(), [sends.len() as u64, left.len() as u64]);
        prop_assert!(left == again);
        let mut more = Fabric::graph(&config).unwrap();
        drive(&mut more, &sends[..sends.len().saturating_sub(1)], until);
        prop_assert!(sends.is_empty() || more.digest() != plain.digest());
    }
}

/// Four hosts at two leaf switches, joined by two spine switches.
fn two_spines() -> Topology {
    let cable = Cable::new(Rate::from_gbps(10), us(1));
    LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 2, host: cable, uplink: cable }.build().unwrap()
}

fn on(topology: Topology) -> GraphConfig {
    let (interface, switch) = (InterfaceConfig::default(), SwitchConfig::default());
    GraphConfig { topology, interface, switch, spray: false, time_scale: 1, seed: 1 }
}

#[test]
fn a_flow_has_one_way_and_sprayed_packets_have_all() {
    let sends: Vec<_> = (0..100).map(|k| (at(us(2) * u64::from(k)), packet(0, 3, 1500, k))).collect();
    let uplinks = |spray: bool| {
        let mut fabric = Fabric::graph(&GraphConfig { spray, ..on(two_spines()) }).unwrap();
        assert_eq!(drive(&mut fabric, &sends, at(us(1000))).len(), 100);
        let ports = fabric.ports();
        ["leaf0->spine0", "leaf0->spine1"].map(|name| ports.iter().find(|port| port.name == name).unwrap().offered)
    };
    let mut own = uplinks(false);
    own.sort_unstable();
    assert_eq!(own, [0, 100]);
    let [a, b] = uplinks(true);
    assert!(a + b == 100 && a.abs_diff(b) <= 40, "each packet takes any of them: {a} and {b}");
}

/// A host with timestamps that sends every 5 us, and two others whose bursts of ten meet its packets at the receiver's
/// port.
fn measured(clock: ClockConfig, seed: u64) -> Vec<(Span, Stamps, Time)> {
    let (send_delay, receive_delay) = (us(3), us(7));
    let interface = InterfaceConfig { send_delay, receive_delay, clock, ..InterfaceConfig::default() };
    let topology = star(4, Cable::new(Rate::from_gbps(10), us(1))).unwrap();
    let mut fabric = Fabric::graph(&GraphConfig { interface, seed, ..on(topology) }).unwrap();
    let mut sends: Vec<(Time, Packet)> = (0..400).map(|k| (at(us(5) * u64::from(k)), packet(0, 3, 1500, k))).collect();
    sends.iter_mut().for_each(|(_, packet)| packet.set_stamps(Stamps::default()));
    let burst = |k: u64| (0..20).map(move |n| (at(us(53 * k + 20)), packet(1 + n % 2, 3, 1500, 9999)));
    sends.extend((0..37).flat_map(burst));
    sends.sort_by_key(|send| send.0);
    let left = drive(&mut fabric, &sends, at(Span::from_ms(10)));
    // Twice 1.2 us and 1 us are an empty path.
    let wait = |now: Time, seq: u32| (now - at(us(5) * u64::from(seq))) - ns(4400) - send_delay - receive_delay;
    let own = left.iter().filter(|(_, _, packet)| number(packet) < 9999);
    own.map(|(now, _, packet)| (wait(*now, number(packet)), packet.stamps(), *now)).collect()
}

#[test]
fn true_clocks_tell_the_way_without_the_stacks() {
    for (wait, Stamps { sent, received, .. }, _) in measured(ClockConfig::TRUE, 1) {
        assert_eq!(received.wrapping_sub(sent), (wait + ns(4400)).as_ps().div_euclid(1000) as u32);
    }
}

/// t2 - t1 by two clocks with an offset and a drift, less the same of a packet without queueing, is the wait in queues.
/// The error is at most the drift between the two packets.
#[test]
fn timestamps_tell_the_queueing_delay() {
    let (mut largest, mut drifted) = (Span::ZERO, 0);
    for seed in 0..20 {
        let all = measured(ClockConfig::default(), seed);
        let one_way = |stamps: &Stamps| stamps.received.wrapping_sub(stamps.sent);
        let (first, base, begin) = &all[0];
        assert!(first.is_zero() && all.len() == 400, "the first meets no queue");
        for (wait, stamps, now) in &all {
            let measured = i64::from(one_way(stamps).wrapping_sub(one_way(base)) as i32) * 1000;
            // 40 ns per ms each; four stamps of whole nanoseconds.
            let apart = (*now - *begin).as_ps() as i64 * 80 / 1_000_000 + 4000;
            let error = (measured - wait.as_ps() as i64).abs();
            assert!(error <= apart, "seed {seed}: {measured} of {wait}, off by {error} of {apart} ps");
            (largest, drifted) = (largest.max(*wait), drifted.max(error));
        }
    }
    assert!(largest > us(8) && drifted > 40_000, "there was a queue, and drift: {largest}, {drifted} ps");
}
