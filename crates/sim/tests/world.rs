//! Simulated hosts on a fabric: transfers, flow completion times, determinism.

mod harness;

use firstlight_circuits::RackId;
use firstlight_net::{Direction, FlowTuple, HostId, Packet, TcpFlags, TcpHeader};
use firstlight_sim::{
    CaptureSink, Fabric, FlowConfig, GraphConfig, HybridConfig, InterfaceConfig, MeterConfig, NoticeConfig, Resize,
    SeriesConfig, VoqConfig, World,
};
use firstlight_transport::{Autotune, CcConfig, TcpConfig};
use firstlight_units::{Bytes, Span, Time};
use harness::*;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

fn assert_world_conserved(world: &World) {
    assert_conserved(world.fabric());
    for flow in world.flows() {
        assert!(flow.bytes_acked <= flow.bytes_received, "{flow:?}");
    }
    assert_eq!(world.strays(), 0);
}

#[test]
fn completion_time_of_a_lone_flow() {
    for (packets, scale) in [(1u64, 1u32), (2, 1), (10, 1), (10, 20)] {
        let k = u64::from(scale);
        let fabric = Fabric::graph(&GraphConfig { time_scale: scale, ..star(2, None, None) }).unwrap();
        let mut config = flow(0, 1, Some(packets * 8948));
        config.start = us(50);
        let mut world = World::new(fabric, vec![config], 1).unwrap();
        world.run_until_finished(at(us(10_000) * k));
        // SYN and SYN-ACK of 60 B, the ACK of 52 B before the data, then the initial window at line rate: 9000 B last
        // 7.2 us on each of two links of 1 us.
        let handshake = (ns(48) + us(1)) * 4 + Span::from_ps(41_600);
        let data = ns(7200) * (packets + 1) + us(2);
        let report = &world.flows()[0];
        assert_eq!(report.start, at(us(50) * k));
        assert_eq!(report.finish, Some(at((us(50) + handshake + data) * k)));
        assert_eq!(world.now(), report.finish.unwrap());
        assert_eq!(report.bytes_received, packets * 8948);
        world.run_until(at(us(100_000) * k));
        assert_eq!(world.flows()[0].bytes_acked, packets * 8948);
        assert_eq!(world.fabric().totals().held, 0, "all is quiet at the end");
        assert_world_conserved(&world);
    }
}

#[test]
fn a_timer_goes_off_at_its_time() {
    let fabric = Fabric::graph(&star(2, None, None)).unwrap();
    let mut config = flow(0, 1, None);
    // A receive window that does not grow, for a packet that lets it grow is acknowledged at once; of seven packets,
    // for more than half of a window is pushed.
    let (receive_window, autotune) = (Bytes::new(7 * 8948), Autotune::Year2012);
    let tcp = TcpConfig { initial_window: 1, quick_acks: 0, receive_window, autotune, ..config.tcp };
    config.tcp = TcpConfig { delayed_ack: us(500), tick: Span::ZERO, ..tcp };
    let mut world = World::new(fabric, vec![config], 1).unwrap();
    // The window's only packet arrives after the handshake, whose last packet lasts 41.6 ns; its ACK is delayed, then
    // takes two times 41.6 ns and 1 us.
    let arrives = (ns(48) + us(1)) * 4 + Span::from_ps(41_600) + (ns(7200) + us(1)) * 2;
    let acked = at(arrives + us(500) + Span::from_ps(2 * 41_600) + us(2));
    world.run_until(acked - Span::from_ps(1));
    assert_eq!((world.flows()[0].bytes_received, world.flows()[0].bytes_acked), (8948, 0));
    world.run_until(acked);
    assert_eq!(world.flows()[0].bytes_acked, 8948);
}

#[test]
fn a_bulk_transfer_fills_its_link() {
    let fabric = Fabric::graph(&star(2, Some(100), None)).unwrap();
    let mut world = World::new(fabric, vec![flow(0, 1, None)], 1).unwrap();
    world.run_until(at(Span::from_ms(20)));
    let before = world.flows()[0].bytes_received;
    world.run_until(at(Span::from_ms(120)));
    let flow = &world.flows()[0];
    // 100 ms of 10 Gb/s in packets of 9000 B with 8948 B of payload.
    let fits = 125_000_000 / 9000 * 8948;
    let got = flow.bytes_received - before;
    assert!(got <= fits + 8948 && got > fits * 99 / 100, "{got} of {fits}");
    assert_eq!(flow.sender.timeouts, 0);
    assert_world_conserved(&world);
}

#[test]
fn flows_share_an_incast() {
    let fabric = Fabric::graph(&star(9, Some(100), Some(20))).unwrap();
    let mut config = flow(0, 8, None);
    config.cc = CcConfig::from_name("dctcp").unwrap();
    config.jitter = us(100);
    let flows = (0..8).map(|src| FlowConfig { src: HostId(src), ..config.clone() }).collect();
    let mut world = World::new(fabric, flows, 3).unwrap();
    world.run_until(at(Span::from_ms(200)));
    let reports = world.flows();
    let total: u64 = reports.iter().map(|flow| flow.bytes_received).sum();
    assert!(total > 250_000_000 / 9000 * 8948 * 95 / 100, "{total}");
    let least = reports.iter().map(|flow| flow.bytes_received).min().unwrap();
    assert!(least * 8 > total / 2, "{least} of {total}");
    let starts: std::collections::BTreeSet<Time> = reports.iter().map(|flow| flow.start).collect();
    assert!(starts.len() == 8 && starts.last() <= Some(&at(us(100))), "jitter spreads the starts");
    assert_world_conserved(&world);
}

fn hybrid_world(seed: u64, watch: bool) -> World {
    let mut fabric = Fabric::hybrid(&paper(4)).unwrap();
    if watch {
        let series = Some(SeriesConfig { every: us(5), fold: 3 });
        fabric.set_meter(&MeterConfig { pair: (RackId(0), RackId(1)), series }).unwrap();
    }
    let flows = (0..4).map(|h| FlowConfig { jitter: us(50), ..flow(h, 4 + h, None) }).collect();
    World::new(fabric, flows, seed).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed, watch, pieces: u64| {
        let mut world = hybrid_world(seed, watch);
        (1..=pieces).for_each(|k| world.run_until(at(us(60_000 / pieces * k))));
        assert_world_conserved(&world);
        (world.fabric().digest(), world.fabric().totals().exited)
    };
    let first = run(1, false, 1);
    assert!(first.1 > 10_000);
    assert_eq!(first, run(1, false, 1));
    assert_eq!(first, run(1, true, 1), "the meter changes nothing");
    assert_eq!(first, run(1, false, 6), "nor does running in pieces");
    assert_ne!(first.0, run(2, false, 1).0);
}

/// The sequence numbers of the SYNs that leave the hosts.
struct Syns(Arc<Mutex<Vec<u32>>>);

impl CaptureSink for Syns {
    fn packet(&mut self, packet: &Packet, _: Time, _: HostId, direction: Direction) {
        let segment = packet.tcp().unwrap();
        if direction == Direction::Sent && segment.flags().has(TcpFlags::SYN) {
            self.0.lock().unwrap().push(segment.seq());
        }
    }
}

#[test]
fn initial_sequence_numbers_come_from_the_seed() {
    let syns = |seed| {
        let mut world = hybrid_world(seed, false);
        let syns = Arc::new(Mutex::new(Vec::new()));
        world.fabric_mut().set_capture(Box::new(Syns(syns.clone())));
        world.run_until(at(us(400)));
        let mut syns = syns.lock().unwrap().clone();
        syns.sort_unstable();
        syns
    };
    let first = syns(1);
    assert_eq!(first.len(), 8, "four SYNs and their answers");
    assert!(first.windows(2).all(|pair| pair[0] < pair[1]), "all differ: {first:?}");
    assert_eq!(first, syns(1));
    assert_ne!(first, syns(2));
}

#[test]
fn the_meter_agrees_with_the_receivers() {
    let mut world = hybrid_world(1, true);
    world.run_until(at(us(4800 * 3)));
    let before: u64 = world.flows().iter().map(|flow| flow.bytes_received).sum();
    world.fabric_mut().reset_meter();
    world.run_until(at(us(4800 * 9)));
    let after: u64 = world.flows().iter().map(|flow| flow.bytes_received).sum();
    let meter = world.fabric().meter().unwrap();
    assert_eq!(meter.elapsed, us(4800 * 6));
    let series = meter.series.unwrap();
    assert_eq!((series.repetitions, series.sequence.len()), (2, 4800 * 3 / 5));
    assert!(series.sequence.is_sorted() && series.sequence[0] == 0.0);
    // Bytes in order at the ToR and at the hosts differ by what is on the last link or out of order at one of the ends.
    let payload = meter.circuit.payload + meter.packet.payload;
    let resent: u64 = world.flows().iter().map(|flow| flow.sender.retransmits * 8948).sum();
    assert!(payload.abs_diff(after - before) <= resent + 400 * 8948, "{payload} {}", after - before);
    let last = series.sequence.last().unwrap() * 4.0;
    let half = (after - before) as f64 / 2.0;
    assert!((last - half).abs() < half * 0.05, "the series ends where half of the bytes are: {last} {half}");
    assert!(meter.packet.longest <= us(1) * 140 && meter.packet.longest > us(100), "{}", meter.packet.longest);
}

#[test]
fn losses_are_repaired() {
    let mut config = star(2, Some(100), None);
    config.interface.loss = 0.01;
    let fabric = Fabric::graph(&config).unwrap();
    let mut world = World::new(fabric, vec![flow(0, 1, Some(8_948_000))], 1).unwrap();
    world.run_until_finished(at(Span::from_secs(100)));
    let report = &world.flows()[0];
    assert!(report.finish.is_some() && report.sender.retransmits > 0, "{report:?}");
    assert_eq!(report.bytes_received, 8_948_000);
    assert_world_conserved(&world);
}

/// Swift's target of 25 us is below the round trip of the empty path here: it would send a packet a second.
fn with_a_target(mut cc: CcConfig, scale: u32) -> CcConfig {
    if let CcConfig::Swift(swift) = &mut cc {
        swift.base_target = us(500) * u64::from(scale);
    }
    cc
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_sized_flow_completes_over_any_fabric(
        small in 2u32..20, more in prop::option::of(0u32..40), advance in 0u64..2000,
        loss in prop_oneof![Just(0.0), 0.0..0.05],
        cc in prop::sample::select(CcConfig::NAMES), ecn in prop::option::of(1u32..10),
        marks in prop::option::of(0u64..2000),
        flows in prop::collection::vec((0u16..12, 0u16..12, 1u64..2_000_000, 0u64..5000), 1..12),
        scale in prop_oneof![Just(1u32), Just(20)], seed in any::<u64>(),
    ) {
        let config = paper(4);
        let interface = InterfaceConfig { loss, ..InterfaceConfig::default() };
        let resize = more.map(|more| Resize::packets(small + more, None, us(advance)));
        let voq = VoqConfig { resize, ..VoqConfig::packets(small, ecn) };
        let config = HybridConfig { interface, voq, marks: marks.map(us), time_scale: scale, ..config };
        let fabric = Fabric::hybrid(&config).unwrap();
        let flows: Vec<FlowConfig> = flows
            .into_iter()
            .filter(|(src, dst, _, _)| src != dst)
            .map(|(src, dst, size, start)| FlowConfig {
                cc: with_a_target(CcConfig::from_name(cc).unwrap(), scale),
                start: us(start),
                jitter: us(100),
                stop: None,
                class: 0,
                ..flow(src, dst, Some(size))
            })
            .collect();
        let mut world = World::new(fabric, flows, seed).unwrap();
        world.run_until_finished(at(Span::from_secs(200)));
        assert_world_conserved(&world);
        for flow in world.flows() {
            prop_assert!(flow.finish.is_some(), "{:?}", flow);
            prop_assert_eq!(flow.bytes_received, flow.size.unwrap().get());
        }
    }
}

/// Packets sent in vain may come when their flow is over; for a port that no connection ever had they are strays.
#[test]
fn late_packets_of_a_flow_are_no_strays() {
    let fabric = Fabric::graph(&star(2, None, None)).unwrap();
    let late = FlowConfig { start: Span::from_ms(50), ..flow(0, 1, Some(1000)) };
    let mut world = World::new(fabric, vec![flow(0, 1, Some(1000)), late], 1).unwrap();
    world.run_until(at(Span::from_ms(10)));
    let reports = world.flows();
    assert_eq!((reports[0].bytes_acked, reports[1].bytes_acked), (1000, 0));
    let segment = |dport, report: &firstlight_sim::FlowReport| {
        let tuple = FlowTuple { src: HostId(0), sport: report.sport, dst: HostId(1), dport };
        Packet::new_tcp(tuple, 52, 1000, TcpHeader { flags: TcpFlags::ACK, ..TcpHeader::default() })
    };
    let mut send = |packet: Packet, until: u64| {
        world.inject(HostId(0), packet);
        world.run_until(at(Span::from_ms(until)));
        (world.strays(), world.flows()[0].bytes_received)
    };
    assert_eq!(send(segment(reports[0].dport, &reports[0]), 11), (0, 1000), "of a flow that is over");
    assert_eq!(send(segment(reports[1].dport, &reports[1]), 12), (1, 1000), "of one that has not begun");
    assert_eq!(send(segment(9, &reports[0]), 13), (2, 1000), "of none");
    world.run_until_finished(at(Span::from_ms(100)));
    assert_eq!(world.flows()[1].bytes_received, 1000, "it begins all the same");
}

/// The counters of a flow's ends stay when the ends are removed, and each of many short flows in a row completes.
#[test]
fn flows_one_after_another() {
    let run = |slots: u64| {
        let fabric = Fabric::graph(&star(3, Some(100), None)).unwrap();
        let flows = (0..300u16)
            .map(|k| FlowConfig { start: us(u64::from(k) * slots), ..flow(k % 2, 2, Some(1000 + u64::from(k) * 100)) });
        let mut world = World::new(fabric, flows.collect(), 1).unwrap();
        world.run_until_finished(at(Span::from_secs(2)));
        world.run_until(world.now() + Span::from_ms(1));
        assert_world_conserved(&world);
        world.flows()
    };
    for slots in [0, 20, 2000] {
        for (k, report) in run(slots).iter().enumerate() {
            let size = 1000 + k as u64 * 100;
            assert_eq!((report.bytes_acked, report.bytes_received), (size, size), "flow {k}");
            assert!(report.finish.is_some() && report.sender.packets_sent > 0 && report.srtt.is_some(), "{report:?}");
        }
    }
}

#[test]
fn impossible_flows_are_refused() {
    let text = |flows| {
        let fabric = Fabric::graph(&star(2, None, None)).unwrap();
        World::new(fabric, flows, 1).err().unwrap().to_string()
    };
    assert_eq!(text(vec![flow(0, 2, None)]), "flow 0: host 2 does not exist: there are hosts 0 to 1");
    assert_eq!(text(vec![flow(0, 1, None), flow(1, 1, None)]), "flow 1: host 1 sends to itself");
    assert_eq!(text(vec![flow(0, 1, Some(0))]), "flow 0: it has nothing to send");
}

/// reTCP's window follows the notices to the picosecond: they arrive 3 us after the schedule's moments. VOQs lose
/// nothing, since a reduction would keep the window for itself.
#[test]
fn a_notice_changes_the_window_when_it_arrives() {
    let notices = Some(NoticeConfig { advance: us(600), delay: us(3) });
    let config = HybridConfig { notices, voq: VoqConfig::packets(100_000, None), ..paper(1) };
    for scale in [1u32, 20] {
        let config = HybridConfig { time_scale: scale, ..config.clone() };
        let cc = CcConfig::from_name("retcp").unwrap();
        let flows = [(0, 1), (0, 2), (1, 0)].map(|(src, dst)| FlowConfig { cc: cc.clone(), ..flow(src, dst, None) });
        let mut world = World::new(Fabric::hybrid(&config).unwrap(), flows.to_vec(), 1).unwrap();
        let windows = |world: &World| world.flows().iter().map(|flow| flow.cwnd).collect::<Vec<u32>>();
        let mut around = |moment: Span| {
            let moment = at(moment * u64::from(scale));
            world.run_until(moment - Span::from_ps(1));
            let before = windows(&world);
            world.run_until(moment);
            before.into_iter().zip(windows(&world)).collect::<Vec<_>>()
        };
        // The pair's day is from 4620 to 4800 us of the second week on, too; the others have theirs at other times.
        for week in [0, 1] {
            let announced = around(us(4800 * week + 4620 - 600 + 3));
            assert_eq!(announced[0].1, 2 * announced[0].0, "{announced:?}");
            let over = around(us(4800 * (week + 1) + 3));
            assert_eq!(over[0].1, over[0].0 / 2, "{over:?}");
            for other in [1, 2] {
                assert_eq!(announced[other].0, announced[other].1, "{announced:?}");
            }
        }
    }
}
