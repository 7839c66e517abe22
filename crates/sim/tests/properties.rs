//! Conservation, order and determinism over random fabrics, schedules, VOQ sizes, losses and traffic.
//!
//! Tests run with debug assertions: that a source has one pending event, and that events come in their order, is
//! checked at every step of every run here.

mod harness;

use firstlight_circuits::{Day, Matching, RackId, Week};
use firstlight_net::{Band, Direction, Discipline, Drops, HostId, Packet, PacketId, RedConfig};
use firstlight_sim::{
    CaptureSink, CircuitConfig, Fabric, FabricTables, HostLinks, HybridConfig, InterfaceConfig, InterfaceTables,
    MeterConfig, PacketConfig, PortKind, Resize, SeriesConfig, VoqConfig,
};
use firstlight_units::{Bytes, Rate, Span, Time};
use harness::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// A matching of `racks` racks in which some are idle: a permutation without its fixed points and without every pair
/// whose source is not in `mask`.
fn matching(racks: usize) -> impl Strategy<Value = Matching> {
    (Just((0..racks as u16).collect::<Vec<_>>()).prop_shuffle(), any::<u8>()).prop_map(move |(to, mask)| {
        let pairs: Vec<_> = (0..racks as u16)
            .filter(|src| to[usize::from(*src)] != *src && mask >> src & 1 == 1)
            .map(|src| (RackId(src), RackId(to[usize::from(src)])))
            .collect();
        Matching::new(racks, &pairs).unwrap()
    })
}

fn week(racks: usize) -> impl Strategy<Value = Week> {
    let day = (matching(racks), 1u64..60, 0u64..25);
    let day = day.prop_map(|(matching, day, night)| Day { night: us(night), day: us(day), matching });
    prop::collection::vec(day, 1..5).prop_map(|days| Week::new(days).unwrap())
}

prop_compose! {
    fn fabric(hosts_per_rack: usize)(racks in 2usize..6)(
        racks in Just(racks),
        week in week(racks),
        (host, packet, circuit) in (1u64..50, 1u64..30, 1u64..100),
        (packet_delay, circuit_delay) in (0u64..20, 0u64..40),
        (switch_queue, switched) in (1u32..5, any::<bool>()),
        (small, more) in (1u32..20, prop::option::of(0u32..40)),
        (advance, marks) in (0u64..100, prop::option::of(0u64..100)),
        (ecn_small, red) in (prop::option::of(0u32..20), prop::option::weighted(0.3, red())),
        loss in prop_oneof![Just(0.0), 0.0..0.3],
        qcn in prop::bool::weighted(0.3),
        elephant in prop::option::weighted(0.3, 0u64..30_000),
        time_scale in prop_oneof![Just(1u32), Just(20)],
    ) -> HybridConfig {
        let advance = us(advance).min(week.length());
        HybridConfig {
            hosts_per_rack,
            links: HostLinks { rate: Rate::from_gbps(host), receive_rate: Rate::from_gbps(host), delay: Span::ZERO },
            interface: InterfaceConfig {
                loss,
                tables: InterfaceTables { qcn: qcn.then(nervous), ..InterfaceTables::default() },
                ..InterfaceConfig::default()
            },
            packet: PacketConfig {
                rate: Rate::from_gbps(packet),
                delay: us(packet_delay),
                switch_queue,
                switched: switched || racks > 2,
            },
            circuit: CircuitConfig { rate: Rate::from_gbps(circuit), delay: us(circuit_delay) },
            voq: VoqConfig {
                discipline: Discipline {
                    red,
                    ..Discipline::packets(Some(small), ecn_small.filter(|_| red.is_none()))
                },
                resize: more.map(|more| Resize::packets(small + more, None, advance)),
            },
            pfc: None,
            marks: marks.map(|marks| us(marks).min(week.length())),
            notices: None,
            tables: elephant
                .filter(|_| !qcn)
                .map_or_else(FabricTables::default, |bytes| FabricTables::segregated(Bytes::new(bytes))),
            week,
            control: None,
            time_scale,
            seed: 5,
        }
    }
}

fn red() -> impl Strategy<Value = RedConfig> {
    let band = prop_oneof![Just(Band::packets(1, 6)), Just(Band::bytes(5000, 40_000))];
    let drops = prop::sample::select(vec![Drops::Beyond, Drops::Unmarkable, Drops::Nothing]);
    (band, drops, any::<bool>()).prop_map(|(band, drops, gentle)| RedConfig {
        weight: 0.3,
        max_probability: 0.3,
        gentle,
        drops,
        ..RedConfig::new(band)
    })
}

/// Random traffic between hosts: (gap in ns, source, destination, size).
type Injections = Vec<(u64, u16, u16, u16)>;

fn traffic() -> impl Strategy<Value = Injections> {
    prop::collection::vec((0u64..3000, any::<u16>(), any::<u16>(), 52u16..9001), 1..400)
}

fn sends(config: &HybridConfig, traffic: &Injections) -> Vec<(Time, Packet)> {
    let hosts = config.hosts() as u16;
    let mut now = Time::ZERO;
    let number = |(k, (gap, src, dst, size)): (usize, &(u64, u16, u16, u16))| {
        now += ns(*gap) * u64::from(config.time_scale);
        (now, packet(src % hosts, dst % hosts, *size, k as u32))
    };
    traffic.iter().enumerate().map(number).filter(|(_, p)| p.src() != p.dst()).collect()
}

/// Packets that left before one of the same pair that was sent earlier.
fn overtakers(left: &[Left], src: u16, dst: u16) -> (u64, Vec<u32>, Vec<u32>) {
    let of_pair: Vec<u32> =
        left.iter().filter(|l| (l.2.src().0, l.2.dst().0) == (src, dst)).map(|l| number(&l.2)).collect();
    let overtook = |k: usize| of_pair[k + 1..].iter().any(|later| *later < of_pair[k]);
    let (ahead, rest): (Vec<usize>, Vec<usize>) = (0..of_pair.len()).partition(|k| overtook(*k));
    let numbers = |of: Vec<usize>| of.into_iter().map(|k| of_pair[k]).collect::<Vec<_>>();
    (ahead.len() as u64, numbers(ahead), numbers(rest))
}

/// The packets of a capture.
type TapedPackets = Vec<(Time, HostId, Direction, u32)>;

struct Tape(Arc<Mutex<TapedPackets>>);

impl CaptureSink for Tape {
    fn packet(&mut self, packet: &Packet, at: Time, host: HostId, direction: Direction) {
        self.0.lock().unwrap().push((at, host, direction, packet.tcp().unwrap().seq()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_packet_appears_or_vanishes(
        config in fabric(2), traffic in traffic(), stops in prop::collection::vec(0u64..900, 0..4),
    ) {
        let mut fabric = Fabric::hybrid(&config).unwrap();
        let sends = sends(&config, &traffic);
        let mut stops: Vec<Time> = stops.into_iter().map(|stop| fabric.at(us(stop))).collect();
        stops.sort_unstable();
        let mut from = 0;
        for stop in stops {
            let until = sends.partition_point(|send| send.0 <= stop).max(from);
            drive(&mut fabric, &sends[from..until], stop);
            from = until;
            assert_conserved(&fabric);
        }
        let end = fabric.at(us(100_000));
        drive(&mut fabric, &sends[from..], end);
        assert_conserved(&fabric);
        let totals = fabric.totals();
        prop_assert_eq!(totals.injected, sends.len() as u64);
        for port in fabric.ports() {
            let drops = port.name.starts_with("voq") || port.name.ends_with("port");
            prop_assert!(drops || port.dropped == 0, "{:?}", port);
        }
    }

    #[test]
    fn each_network_keeps_a_pairs_order(config in fabric(1), traffic in traffic()) {
        // One host a rack, so that the order at the host is the order at the ToR. Where routing is segregated a pair
        // has two VOQs, whose packets have no order among each other.
        let config = HybridConfig { tables: FabricTables::default(), ..config };
        let mut fabric = Fabric::hybrid(&config).unwrap();
        let end = fabric.at(us(100_000));
        let left = drive(&mut fabric, &sends(&config, &traffic), end);
        for pair in fabric.pairs() {
            let (count, ahead, rest) = overtakers(&left, pair.src.0, pair.dst.0);
            // QCN's notifications overtake and are overtaken as well, and never leave.
            let counted = pair.overtakings + pair.circuit_overtakings;
            let more = config.interface.tables.qcn.is_some() && count < counted;
            prop_assert!(count == counted || more, "{} {}", count, counted);
            prop_assert!(counted > 0 || ahead.is_empty());
            prop_assert!(pair.circuit_overtakings > 0 || ahead.is_sorted() && rest.is_sorted());
            prop_assert!(count == 0 || pair.circuit_packets > 0 && pair.packet_packets > 0);
        }
    }

    /// With segregated routing each network carries its own packets and no others, and none of them is interrupted.
    #[test]
    fn segregated_networks_share_no_packet(config in fabric(2), traffic in traffic(), elephant in 0u64..30_000) {
        let interface = InterfaceConfig { tables: InterfaceTables::default(), loss: 0.0, ..config.interface.clone() };
        let tables = FabricTables::segregated(Bytes::new(elephant));
        let config = HybridConfig { interface, tables, ..config };
        let (sends, mut fabric) = (sends(&config, &traffic), Fabric::hybrid(&config).unwrap());
        let end = fabric.at(us(100_000));
        let left = drive(&mut fabric, &sends, end);
        assert_conserved(&fabric);
        let (mut sent, mut offered) = (BTreeMap::<(u16, u16), u64>::new(), BTreeMap::<String, u64>::new());
        let (mut elephants, mut last) = (BTreeSet::new(), BTreeMap::new());
        let rack = |host: HostId| host.index() / config.hosts_per_rack;
        for (_, packet) in sends.iter().filter(|(_, packet)| rack(packet.src()) != rack(packet.dst())) {
            let payload = u64::from(packet.size()) - 52;
            let flow = sent.entry((packet.src().0, packet.dst().0)).or_default();
            *flow += payload;
            let which = if payload > 0 && *flow > elephant { "" } else { ".mice" };
            elephants.extend(which.is_empty().then(|| number(packet)));
            *offered.entry(format!("voq.{}.{}{which}", rack(packet.src()), rack(packet.dst()))).or_default() += 1;
        }
        let voqs: Vec<_> = fabric.ports().into_iter().filter(|port| port.kind == PortKind::Voq).collect();
        prop_assert_eq!(voqs.len(), 2 * config.racks() * (config.racks() - 1));
        for voq in &voqs {
            prop_assert_eq!(voq.offered, offered.get(&voq.name).copied().unwrap_or(0), "{}", &voq.name);
            prop_assert!(!voq.name.ends_with("mice") || voq.held == 0, "the packet network has served all: {:?}", voq);
        }
        for (_, _, packet) in &left {
            let (number, flow) = (number(packet), (packet.src(), packet.dst(), elephants.contains(&number(packet))));
            let before = last.insert(flow, number);
            prop_assert!(before < Some(number), "{:?} comes after {:?}", number, before);
        }
        for pair in fabric.pairs() {
            let name = format!("voq.{}.{}", pair.src.0, pair.dst.0);
            let taken = |name: &str| voqs.iter().find(|voq| voq.name == name).unwrap().delivered;
            prop_assert_eq!(pair.circuit_packets, taken(&name));
            prop_assert_eq!(pair.packet_packets, taken(&format!("{name}.mice")));
        }
    }

    #[test]
    fn watching_changes_nothing(config in fabric(2), traffic in traffic(), every in 1u64..50) {
        let sends = sends(&config, &traffic);
        let run = |watch: bool, in_steps: bool| {
            let mut fabric = Fabric::hybrid(&config).unwrap();
            let tape = Arc::new(Mutex::new(TapedPackets::new()));
            if watch {
                let series = Some(SeriesConfig { every: us(every), fold: 2 });
                fabric.set_meter(&MeterConfig { pair: (RackId(0), RackId(1)), series }).unwrap();
                fabric.set_capture(Box::new(Tape(tape.clone())));
            }
            let end = fabric.at(us(3000));
            let drive = if in_steps { drive } else { drive_to_exits };
            let left = drive(&mut fabric, &sends, end);
            let order: Vec<_> = left.iter().map(|(t, host, p)| (*t, *host, number(p))).collect();
            let seen = tape.lock().unwrap().len();
            (fabric.digest(), fabric.totals().exited, order, seen)
        };
        let plain = run(false, true);
        let watched = run(true, true);
        prop_assert_eq!((plain.0, plain.1, &plain.2), (watched.0, watched.1, &watched.2));
        prop_assert_eq!(watched.3 as u64, sends.len() as u64 + watched.1);
        let fast = run(true, false);
        prop_assert_eq!((plain.0, &plain.2), (fast.0, &fast.2));
    }

    #[test]
    fn the_digest_tells_runs_apart(config in fabric(2), traffic in traffic(), which in any::<prop::sample::Index>()) {
        let run = |traffic: &Injections| {
            let config = HybridConfig { interface: InterfaceConfig::default(), ..config.clone() };
            let mut fabric = Fabric::hybrid(&config).unwrap();
            let end = fabric.at(us(100_000));
            drive(&mut fabric, &sends(&config, traffic), end);
            (fabric.digest(), fabric.totals().held)
        };
        let mut other = traffic.clone();
        let changed = &mut other[which.index(traffic.len())];
        changed.3 ^= 1;
        let hosts = config.hosts() as u16;
        let counts = changed.1 % hosts != changed.2 % hosts;
        let (a, b) = (run(&traffic), run(&other));
        prop_assert!(!counts || a.0 != b.0 || a.1 > 0);
        prop_assert_eq!(a, run(&traffic));
    }
}

/// As [`drive`], by the fast call that our own loop uses.
fn drive_to_exits(fabric: &mut Fabric, sends: &[(Time, Packet)], until: Time) -> Vec<Left> {
    let mut left = Vec::new();
    let mut sends = sends.iter().copied().peekable();
    loop {
        let now = fabric.run_to_exit(sends.peek().map_or(Time::MAX, |send| send.0).min(until));
        assert!(fabric.next().is_none_or(|next| next > now), "all that is due at {now} is done");
        while let Some(exit) = fabric.poll_exit() {
            left.push((now, exit.host, *fabric.packet(exit.packet)));
            fabric.release(exit.packet);
        }
        while let Some((_, packet)) = sends.next_if(|send| send.0 <= now) {
            fabric.inject(packet.src(), packet, now);
        }
        if now == until {
            return left;
        }
    }
}

/// Runs up to `until` as a driver with hosts of its own does; returns how many packets left.
fn take_exits(fabric: &mut Fabric, held: &mut BTreeSet<PacketId>, until: Time) -> u64 {
    let mut exits = 0;
    loop {
        let now = fabric.run_to_exit(until);
        while let Some(exit) = fabric.poll_exit() {
            assert!(held.remove(&exit.packet), "{:?} leaves, and is not inside", exit.packet);
            fabric.release(exit.packet);
            exits += 1;
        }
        if now == until {
            return exits;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// A driver that takes drops gets each packet's end once, however late it asks, and the run is the same.
    #[test]
    fn every_packet_ends_once(config in fabric(2), traffic in traffic(), patience in 1usize..20) {
        // Neither do notifications end here, nor does a limited flow's packet leave when it is handed in.
        let interface = InterfaceConfig { tables: InterfaceTables::default(), ..config.interface.clone() };
        let config = HybridConfig { interface, ..config };
        let (sends, mut plain) = (sends(&config, &traffic), Fabric::hybrid(&config).unwrap());
        let end = plain.at(us(3000)).max(sends.last().map_or(Time::ZERO, |send| send.0));
        drive(&mut plain, &sends, end);
        let mut fabric = Fabric::hybrid(&config).unwrap();
        fabric.keep_drops();
        let (mut held, mut exits, mut drops, mut lost) = (BTreeSet::new(), 0, 0, 0);
        for (k, (time, packet)) in sends.iter().enumerate() {
            exits += take_exits(&mut fabric, &mut held, *time);
            match fabric.inject(packet.src(), *packet, *time) {
                Some(id) => prop_assert!(held.insert(id), "{:?} is given to two packets", id),
                None => lost += 1,
            }
            prop_assert!(fabric.departure(packet.src()).is_none_or(|at| at > *time) || config.interface.loss > 0.0);
            while k % patience == 0 && let Some(id) = fabric.poll_drop() {
                drops += 1;
                held.remove(&id);
            }
            assert_conserved(&fabric);
        }
        exits += take_exits(&mut fabric, &mut held, end);
        while let Some(id) = fabric.poll_drop() {
            drops += 1;
            held.remove(&id);
        }
        let totals = fabric.totals();
        prop_assert_eq!((exits, drops, lost), (totals.exited, totals.dropped + totals.lost, totals.lost));
        prop_assert_eq!(held.len() as u64, totals.held);
        prop_assert_eq!(fabric.digest(), plain.digest());
        assert_conserved(&fabric);
    }
}
