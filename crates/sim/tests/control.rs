//! The control loop: which demand a week is made for, when it is followed, and what became of its circuits.

mod harness;

use firstlight_circuits::{RackId, Scheduler, Week};
use firstlight_net::{FlowTuple, HostId, Packet, TcpFlags, TcpHeader};
use firstlight_sim::{
    CircuitReport, ControlConfig, DemandSource, Fabric, FlowConfig, HybridConfig, InterfaceConfig, World,
};
use firstlight_transport::{CcConfig, TcpConfig};
use firstlight_units::{Bytes, Span};
use harness::*;

/// Three racks, weeks of 400 us: a strobe of two days, whatever the demand, so that every pair is recorded.
fn looped(demand: DemandSource, compute: Span) -> HybridConfig {
    let control = ControlConfig { demand, scheduler: Scheduler::Strobe, compute, night: us(20), least_day: us(50) };
    HybridConfig { week: Week::idle(3, us(400)), control: Some(control), ..paper(2) }
}

fn flow(size: Option<u64>, start: Span) -> FlowConfig {
    FlowConfig {
        src: HostId(0),
        dst: HostId(2),
        tcp: TcpConfig::default(),
        cc: CcConfig::from_name("cubic").unwrap(),
        size: size.map(Bytes::new),
        start,
        jitter: Span::ZERO,
        stop: None,
        class: 0,
        reads: None,
        external: false,
        absent: false,
    }
}

fn run(config: &HybridConfig, flows: Vec<FlowConfig>, until: Span) -> World {
    let mut world = World::new(Fabric::hybrid(config).unwrap(), flows, 1).unwrap();
    world.run_until(at(until));
    assert_conserved(world.fabric());
    world
}

/// The estimated demand of racks 0 and 1 for each week, from the second week on.
fn demands(world: &World) -> Vec<(u64, u64)> {
    let own = |circuit: &&CircuitReport| (circuit.src, circuit.dst) == (RackId(0), RackId(1));
    world.fabric().circuits().iter().filter(own).map(|circuit| (circuit.week, circuit.demand)).collect()
}

#[test]
fn weeks_follow_one_another_and_their_circuits_carry() {
    let flows: Vec<_> = (0..8).map(|_| flow(None, Span::ZERO)).collect();
    let world = run(&looped(DemandSource::Voq, Span::ZERO), flows, us(4000));
    let circuits = world.fabric().circuits();
    // Nothing in the first week; then two days of three circuits in each, the last one just over.
    assert_eq!(circuits.len(), 9 * 2 * 3);
    for (nth, circuit) in circuits.iter().enumerate() {
        let (week, day) = (1 + nth as u64 / 6, nth / 3 % 2);
        assert_eq!((circuit.week, circuit.day), (week, day));
        assert_eq!(circuit.begins, us(400 * week + 200 * day as u64 + 20));
        assert_eq!(circuit.ends, us(400 * week + 200 * (day as u64 + 1)));
    }
    let carried: u64 = circuits.iter().map(|circuit| circuit.carried).sum();
    let pairs = world.fabric().pairs();
    assert_eq!(carried, pairs.iter().map(|pair| pair.circuit_bytes).sum::<u64>());
    // Data over 0 > 1, and in a day no more than 180 us at 80 Gb/s.
    assert!(circuits.iter().filter(|c| (c.src, c.dst) == (RackId(0), RackId(1))).all(|c| c.carried > 100_000));
    assert!(circuits.iter().all(|circuit| circuit.carried <= 1_800_000));
}

#[test]
fn an_estimate_is_followed_a_week_later() {
    // The flow starts in the first week and is over in it: 20 packets.
    let size = 20 * 8948;
    let flows = || vec![flow(Some(size), us(100))];
    let of = |demand| demands(&run(&looped(demand, Span::ZERO), flows(), us(2000)));
    // The oracle sees it at the start of the first week, for the second; when that starts, all has passed.
    assert_eq!(of(DemandSource::Oracle), [(1, size), (2, 0), (3, 0), (4, 0)]);
    // Hosts write it after the first estimate and have sent it before the second.
    assert_eq!(of(DemandSource::Adu), [(1, 0), (2, 0), (3, 0), (4, 0)]);
    assert_eq!(of(DemandSource::Voq), [(1, 0), (2, 0), (3, 0), (4, 0)]);
}

#[test]
fn application_data_units_are_what_has_not_passed() {
    let size = 10_000_000;
    let world = run(&looped(DemandSource::Adu, Span::ZERO), vec![flow(Some(size), us(100))], us(40_000));
    let seen = demands(&world);
    // The bytes that the second estimate lacks have passed the VOQ before it, in at most 300 us at 10 Gb/s.
    let passed = size - seen[1].1;
    assert!((0..=375_000).contains(&passed) && passed > 50_000, "{passed}");
    assert!(seen.windows(2).skip(1).all(|pair| pair[0].1 >= pair[1].1), "it only falls");
    // Whatever was dropped and sent again: in the end nothing is left.
    assert!(world.fabric().pairs().iter().any(|pair| pair.dropped_full > 0));
    assert!(world.flows()[0].finish.is_some());
    assert_eq!(seen.last().unwrap().1, 0);
}

#[test]
fn a_queue_shows_no_more_than_it_holds() {
    let flows = (0..4).map(|_| flow(Some(1_000_000), us(100))).collect();
    let seen = demands(&run(&looped(DemandSource::Voq, Span::ZERO), flows, us(2000)));
    let (_, second) = seen[1];
    assert!(second > 9000 && second <= 16 * 9000, "{second}");
}

#[test]
fn flows_that_never_end_have_more_than_any_number_until_they_stop() {
    let stopping = FlowConfig { stop: Some(us(1000)), ..flow(None, us(100)) };
    for demand in [DemandSource::Adu, DemandSource::Oracle] {
        let seen = demands(&run(&looped(demand, Span::ZERO), vec![stopping.clone()], us(2400)));
        let first = if demand == DemandSource::Oracle { u64::MAX } else { 0 };
        assert_eq!(seen, [(1, first), (2, u64::MAX), (3, u64::MAX), (4, 0), (5, 0)]);
    }
}

#[test]
fn a_slow_computation_comes_a_week_later() {
    let flows = || vec![flow(None, us(100))];
    let of = |compute| demands(&run(&looped(DemandSource::Oracle, us(compute)), flows(), us(2800)));
    let endless = |weeks: std::ops::Range<u64>| weeks.map(|week| (week, u64::MAX)).collect::<Vec<_>>();
    assert_eq!(of(399), endless(1..7));
    // There at the very end of the week is too late.
    assert_eq!(of(400), endless(2..7));
    assert_eq!(of(600), endless(2..7));
}

#[test]
fn loss_and_the_time_scale_leave_the_account_right() {
    let interface = InterfaceConfig { loss: 0.02, ..InterfaceConfig::default() };
    let config = HybridConfig { interface, time_scale: 3, ..looped(DemandSource::Adu, us(100)) };
    let flows = vec![flow(Some(1_000_000), us(50)), flow(Some(500_000), us(700))];
    let world = run(&config, flows, Span::from_ms(900));
    assert_eq!(world.unfinished(), 0);
    assert!(world.fabric().totals().lost > 0);
    let seen = demands(&world);
    assert!(seen.iter().any(|(_, bytes)| *bytes > 500_000));
    assert_eq!(seen.last().unwrap().1, 0);
    // Its times are the fabric's own.
    assert_eq!(world.fabric().circuits()[0].begins, us(420));
}

/// A flow whose ends are outside is known to write all it has when it starts, not at the next estimate: what passes
/// before that counts.
#[test]
fn flows_outside_write_when_they_start() {
    let outside = FlowConfig { external: true, ..flow(Some(100_000), us(100)) };
    let seen = |demand| {
        let mut world =
            World::new(Fabric::hybrid(&looped(demand, Span::ZERO)).unwrap(), vec![outside.clone()], 1).unwrap();
        for (seq, payload) in [(0, 0), (1, 8000), (8001, 8000), (1, 8000)] {
            world.run_until(at(us(150)));
            let flags = if payload == 0 { TcpFlags::SYN } else { TcpFlags::ACK };
            let report = &world.flows()[0];
            world.inject(HostId(0), data(report.sport, report.dport, flags, seq, payload));
        }
        world.run_until(at(us(1200)));
        demands(&world)
    };
    assert_eq!(seen(DemandSource::Adu), [(1, 0), (2, 84_000)]);
    assert_eq!(seen(DemandSource::Oracle), [(1, 100_000), (2, 84_000)]);
}

fn data(sport: u16, dport: u16, flags: TcpFlags, seq: u32, payload: u16) -> Packet {
    let tuple = FlowTuple { src: HostId(0), sport, dst: HostId(2), dport };
    Packet::new_tcp(tuple, 40, payload, TcpHeader { flags, seq, ..TcpHeader::default() })
}

/// What a program outside writes to connections that are no flows: from its first write on, whatever it took of it in
/// the end, until it has passed or the connection is over.
#[test]
fn connections_of_programs_are_accounted() {
    let mut world = World::new(Fabric::hybrid(&looped(DemandSource::Adu, Span::ZERO)).unwrap(), vec![], 1).unwrap();
    let connection = |sport| FlowTuple { src: HostId(0), sport, dst: HostId(2), dport: 80 };
    let near_the_wrap = u32::MAX - 999;
    let week = |world: &mut World, nth: u64| world.run_until(at(us(400 * nth + 300)));
    week(&mut world, 0);
    // A write of 50 kB, and one of which no more than a tenth is taken.
    world.fabric_mut().on_program_write(connection(40_000), near_the_wrap, 50_000);
    world.fabric_mut().on_program_write(connection(40_001), 7, 3_000_000_000);
    world.fabric_mut().on_program_write(connection(40_001), 7, -2_700_000_000);
    // A write that was said to be larger, of a connection that has ended meanwhile.
    world.fabric_mut().on_program_write(connection(40_002), 7, -10);
    week(&mut world, 1);
    // Bytes 0 to 8000, 4000 to 12,000, and the first of them once more; and one of a connection that nobody knows.
    for (sport, offset) in [(40_000, 0u32), (40_000, 4000), (40_000, 0), (40_002, 0)] {
        let packet = data(sport, 80, TcpFlags::ACK, near_the_wrap.wrapping_add(offset), 8000);
        world.inject(HostId(0), packet);
    }
    world.fabric_mut().on_program_close(connection(40_002));
    week(&mut world, 2);
    world.fabric_mut().on_program_close(connection(40_001));
    week(&mut world, 3);
    // Its port is used again.
    world.fabric_mut().on_program_write(connection(40_001), 99, 5);
    week(&mut world, 5);
    let waiting = 50_000 - 12_000;
    assert_eq!(demands(&world), [(1, 0), (2, 300_050_000), (3, 300_000_000 + waiting), (4, waiting)]);
}

#[test]
fn what_flows_write_is_not_counted_twice() {
    let outside = FlowConfig { external: true, ..flow(Some(100_000), us(100)) };
    let mut world =
        World::new(Fabric::hybrid(&looped(DemandSource::Adu, Span::ZERO)).unwrap(), vec![outside], 1).unwrap();
    let report = &world.flows()[0];
    let connection = FlowTuple { src: HostId(0), sport: report.sport, dst: HostId(2), dport: report.dport };
    world.run_until(at(us(200)));
    world.fabric_mut().on_program_write(connection, 1, 65_536);
    world.run_until(at(us(1200)));
    assert_eq!(demands(&world), [(1, 0), (2, 100_000)]);
}
