//! The fabric against arithmetic done by hand, to the picosecond.

mod harness;

use firstlight_circuits::{Day, Matching, RackId, Week};
use firstlight_net::{Band, Drops, Ecn, HostId, Packet, RedConfig, TcpFlags};
use firstlight_sim::{BuildError, Fabric, FabricTables, HybridConfig, PairReport, PortKind, Resize, VoqConfig};
use firstlight_units::{Bytes, Rate, Span, Time};
use harness::*;

/// 9000 B last 1.8 us on a host link of 40 Gb/s, 7.2 us on the packet network, 0.9 us on a circuit.
const HOST: u64 = 1_800;
const PACKET: u64 = 7_200;
const CIRCUIT: u64 = 900;

fn only(left: &[Left]) -> Span {
    assert_eq!(left.len(), 1);
    left[0].0 - Time::ZERO
}

fn pair_report(fabric: &Fabric, src: u16, dst: u16) -> PairReport {
    let pairs = fabric.pairs();
    pairs.into_iter().find(|pair| (pair.src, pair.dst) == (RackId(src), RackId(dst))).unwrap()
}

/// One packet from rack 0 to rack 1, handed in at `sent`.
fn lone(config: &HybridConfig, sent: Span) -> Span {
    let mut fabric = Fabric::hybrid(config).unwrap();
    let left = drive(&mut fabric, &[(at(sent), packet(0, 1, 9000, 0))], at(us(6000)));
    assert_conserved(&fabric);
    only(&left)
}

/// Enough of rack 0's packets to rack 1 to keep its VOQ full from `from` to `until`.
fn flood(from: Span, until: Span) -> Vec<(Time, Packet)> {
    let step = HOST * 1000;
    let times = (from.as_ps()..until.as_ps()).step_by(step as usize);
    times.enumerate().map(|(k, ps)| (Time::from_ps(ps), packet(0, 1, 9000, k as u32))).collect()
}

#[test]
fn a_lone_packet_by_each_network() {
    let by_packet = ns(HOST + PACKET + 5000 + PACKET + 5000 + HOST);
    assert_eq!(lone(&paper(1), us(1000)), us(1000) + by_packet);
    let by_circuit = ns(HOST + CIRCUIT + 30_000 + HOST);
    assert_eq!(lone(&paper(1), us(4700)), us(4700) + by_circuit);
    let mut slow = paper(1);
    slow.links.receive_rate = Rate::from_gbps(10);
    assert_eq!(lone(&slow, us(1000)), us(1000) + by_packet - ns(HOST) + ns(PACKET), "the last link alone is slower");
    let mut line = paper(1);
    line.packet.switched = false;
    line.week = Week::strobe(2, us(180), us(4620)).unwrap();
    assert_eq!(lone(&line, Span::ZERO), us(4620) + ns(CIRCUIT + 30_000 + HOST), "the night before its day");
}

#[test]
fn a_line_without_a_switch_is_one_hop() {
    let mut line = paper(1);
    line.packet.switched = false;
    let both = Matching::new(2, &[(RackId(0), RackId(1)), (RackId(1), RackId(0))]).unwrap();
    let phase = |matching| Day { night: Span::ZERO, day: us(100), matching };
    line.week = Week::new(vec![phase(both), phase(Matching::new(2, &[]).unwrap())]).unwrap();
    assert_eq!(lone(&line, us(10)), us(10) + ns(HOST + CIRCUIT + 30_000 + HOST));
    assert_eq!(lone(&line, us(110)), us(110) + ns(HOST + PACKET + 5000 + HOST));
}

#[test]
fn a_packet_of_the_night_waits_for_the_day() {
    // The ToR has it at 4601 + 1.8 us; the day begins at 4620 us.
    assert_eq!(lone(&paper(1), us(4601)), us(4620) + ns(CIRCUIT + 30_000 + HOST));
    // Too late for the circuit by one picosecond: it goes by packet once the day has ended, at 4800 us.
    let latest = us(4800) - ns(HOST + CIRCUIT);
    assert_eq!(lone(&paper(1), latest), us(4800) + ns(30_000 + HOST));
    assert_eq!(lone(&paper(1), latest + Span::from_ps(1)), us(4800) + ns(2 * PACKET + 10_000 + HOST));
}

fn segregated(elephant: u64) -> HybridConfig {
    HybridConfig { tables: FabricTables::segregated(Bytes::new(elephant)), ..paper(1) }
}

#[test]
fn an_elephant_waits_for_the_circuit_and_a_mouse_never_does() {
    let (mouse, elephant) = (segregated(8948), segregated(8947));
    let by_packet = ns(HOST + PACKET + 5000 + PACKET + 5000 + HOST);
    // 9000 B have 8948 B of payload. The pair's night begins at 4600 us, its day at 4620 us.
    for sent in [us(1000), us(4590), us(4610), us(4700)] {
        assert_eq!(lone(&mouse, sent), sent + by_packet, "the packet path is on at all times");
    }
    for sent in [us(1000), us(4590), us(4610)] {
        assert_eq!(lone(&elephant, sent), us(4620) + ns(CIRCUIT + 30_000 + HOST), "in the next day");
    }
    assert_eq!(lone(&elephant, us(4700)), us(4700) + ns(HOST + CIRCUIT + 30_000 + HOST));
}

#[test]
fn a_flow_changes_networks_once() {
    // Ten packets at once: the first three bring 26,844 B. They take the packet network, and the others the circuit.
    let mut fabric = Fabric::hybrid(&segregated(3 * 8948)).unwrap();
    let sends: Vec<_> = (0..10).map(|k| (at(us(1000)), packet(0, 1, 9000, k))).collect();
    let left = drive(&mut fabric, &sends, at(us(4800)));
    let pair = pair_report(&fabric, 0, 1);
    assert_eq!((pair.packet_packets, pair.circuit_packets, pair.overtakings), (3, 7, 0));
    let first_by_packet = us(1000) + ns(HOST + 2 * PACKET + 10_000 + HOST);
    let first_by_circuit = us(4620) + ns(CIRCUIT + 30_000 + HOST);
    let expected = (0..10).map(|k| match k {
        0..3 => first_by_packet + ns(PACKET) * k,
        _ => first_by_circuit + ns(HOST) * (k - 3),
    });
    assert_eq!(left.iter().map(|left| left.0 - Time::ZERO).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert_conserved(&fabric);
}

#[test]
fn the_schedule_resizes_the_elephants_voq_alone() {
    let mut config = segregated(0);
    config.voq.resize = Some(Resize::packets(50, None, us(600)));
    let mut fabric = Fabric::hybrid(&config).unwrap();
    let mut sends: Vec<_> = (0..100).map(|k| (at(us(4100)), packet(0, 1, 9000, k))).collect();
    // Packets without payload come faster than the packet network takes those of two racks: 0.0104 us and 0.0416 us.
    sends.extend((0..100).map(|k| (at(us(4100)), packet(0, 1, 52, 100 + k))));
    drive(&mut fabric, &sends, at(us(4500)));
    let voq = |name: &str| fabric.ports().into_iter().find(|port| port.name == name).unwrap();
    assert_eq!((voq("voq.0.1").held, voq("voq.0.1").dropped), (50, 50));
    assert_eq!((voq("voq.0.1.mice").peak_queue, voq("voq.0.1.mice").held), (16, 0));
    assert!(voq("voq.0.1.mice").dropped > 0);
    assert_eq!(pair_report(&fabric, 0, 1).dropped_full, 50 + voq("voq.0.1.mice").dropped);
    assert_conserved(&fabric);
}

#[test]
fn hosts_of_one_rack_meet_at_the_tor() {
    let mut fabric = Fabric::hybrid(&paper(2)).unwrap();
    let left = drive(&mut fabric, &[(at(us(7)), packet(2, 3, 9000, 0))], at(us(100)));
    assert_eq!(only(&left), us(7) + ns(2 * HOST));
    assert_conserved(&fabric);
}

#[test]
fn a_day_carries_what_fits() {
    for (size, fits) in [(9000u16, 200), (7000, 257), (8999, 200), (9001, 199)] {
        let tx = Rate::from_gbps(80).tx_time(firstlight_units::Bytes::new(size.into()));
        assert_eq!(us(180).as_ps() / tx.as_ps(), fits, "the expectation itself");
        let mut config = paper(1);
        config.voq = VoqConfig::packets(10_000, None);
        let mut fabric = Fabric::hybrid(&config).unwrap();
        let sends: Vec<_> = (0..3000).map(|k| (Time::ZERO, packet(0, 1, size, k))).collect();
        drive(&mut fabric, &sends, at(us(4800)));
        assert_eq!(pair_report(&fabric, 0, 1).circuit_packets, fits);
        assert_conserved(&fabric);
    }
}

#[test]
fn nothing_crosses_at_night() {
    let mut config = paper(1);
    config.voq = VoqConfig::packets(10_000, None);
    let mut fabric = Fabric::hybrid(&config).unwrap();
    let sends: Vec<_> = (0..3000).map(|k| (Time::ZERO, packet(0, 1, 9000, k))).collect();
    let mut left = drive(&mut fabric, &sends, at(us(4610)));
    let sent = |fabric: &Fabric| {
        let pair = pair_report(fabric, 0, 1);
        (pair.circuit_packets, pair.packet_packets)
    };
    let (before, packets) = sent(&fabric);
    left.extend(drive(&mut fabric, &[], at(us(4620)) - Span::from_ps(1)));
    assert_eq!(sent(&fabric), (before, packets), "not a packet starts between 4610 and 4620 us");
    drive(&mut fabric, &[], at(us(4620)));
    assert_eq!(sent(&fabric), (1, packets), "the first one starts with the day");
    drive(&mut fabric, &[], at(us(4800)) - Span::from_ps(1));
    assert_eq!(sent(&fabric), (200, packets));
    drive(&mut fabric, &[], at(us(4800)));
    assert_eq!(sent(&fabric), (200, packets + 1), "the packet path is on the moment the day ends");
}

#[test]
fn latency_of_a_full_static_voq() {
    // One host keeps the VOQ full. Its packets come every 1.8 us, in step with departures every 7.2 us; one that comes
    // together with a departure finds the queue full still, so that the luckiest comes 1.8 us after a departure.
    for q in [4u32, 16, 64] {
        let mut config = paper(1);
        config.voq = VoqConfig::packets(q, None);
        let mut fabric = measured(&config);
        drive(&mut fabric, &flood(Span::ZERO, us(4000)), at(us(4100)));
        let meter = fabric.meter().unwrap();
        assert_eq!(meter.packet.longest, ns(PACKET * u64::from(q) - HOST + 24_400), "7.2 q + 24.4 us less 1.8 us");
        assert_eq!(meter.circuit.packets, 0);
        assert_eq!(pair_report(&fabric, 0, 1).peak, u64::from(q));
        assert_conserved(&fabric);
    }
}

#[test]
fn the_packet_path_can_overtake_at_a_days_end() {
    let mut config = paper(1);
    config.voq = VoqConfig::packets(10_000, None);
    let mut fabric = Fabric::hybrid(&config).unwrap();
    let sends: Vec<_> = (0..3000).map(|k| (Time::ZERO, packet(0, 1, 9000, k))).collect();
    let left = drive(&mut fabric, &sends, at(us(5200)));
    // The circuit's last packet starts at 4799.1 us and arrives at 4830; the first by packet arrives at 4824.4, the
    // second at 4831.6. So one passes those seven of the circuit that arrive after it, at 4824.6, 4825.5 .. 4830 us.
    let pair = pair_report(&fabric, 0, 1);
    assert_eq!((pair.overtakings, pair.circuit_overtakings), (1, 0));
    let numbers: Vec<u32> = left.iter().map(|(_, _, p)| number(p)).collect();
    let back = numbers.windows(2).filter(|w| w[1] < w[0]).count();
    assert_eq!(back, 1);
    let early = numbers.windows(2).position(|w| w[1] > w[0] + 1).unwrap();
    assert_eq!(numbers[early + 1] - numbers[early], 8);
}

#[test]
fn a_voq_is_large_from_the_advance_to_the_days_end() {
    let mut config = paper(1);
    config.voq.resize = Some(Resize::packets(50, None, us(600)));
    let mut fabric = Fabric::hybrid(&config).unwrap();
    drive(&mut fabric, &flood(Span::ZERO, us(4020)), at(us(4020)));
    assert_eq!(pair_report(&fabric, 0, 1).peak, 16, "until 600 us before the day");
    drive(&mut fabric, &flood(us(4020), us(7000)), at(us(4500)));
    assert_eq!(pair_report(&fabric, 0, 1).peak, 50);
    assert_eq!(pair_report(&fabric, 0, 1).dropped_shrink, 0);
    // During the day at 80 Gb/s nothing of 40 Gb/s of arrivals queues; so let two hosts' worth of packets come.
    let mut config = paper(2);
    config.voq.resize = Some(Resize::packets(50, None, us(600)));
    config.circuit.rate = Rate::from_gbps(40);
    let mut fabric = Fabric::hybrid(&config).unwrap();
    let mut sends = flood(us(4000), us(7000));
    sends.extend(flood(us(4000), us(7000)).into_iter().map(|(t, p)| (t, between(1, p.dst().0, p))));
    sends.sort_by_key(|send| send.0);
    let sends: Vec<_> = sends.into_iter().map(|(t, p)| (t, between(p.src().0, 2, p))).collect();
    drive(&mut fabric, &sends, at(us(4800)) - Span::from_ps(1));
    assert_eq!(pair_report(&fabric, 0, 1).held, 50);
    drive(&mut fabric, &[], at(us(4800)));
    let pair = pair_report(&fabric, 0, 1);
    assert_eq!((pair.dropped_shrink, pair.held), (34, 15), "16 are kept, and one of them leaves at once");
    assert_conserved(&fabric);
}

#[test]
fn a_voq_that_lingers_shrinks_so_long_after_the_day() {
    let mut config = paper(1);
    config.voq.resize = Some(Resize { linger: us(150), ..Resize::packets(50, None, us(600)) });
    let mut fabric = Fabric::hybrid(&config).unwrap();
    // 40 Gb/s come, and from the day's end on the packet network takes 10: 50 packets wait 120 us later.
    drive(&mut fabric, &flood(us(4000), us(7000)), at(us(4950)) - Span::from_ps(1));
    let pair = pair_report(&fabric, 0, 1);
    assert_eq!((pair.held, pair.dropped_shrink), (50, 0), "the day ended at 4800 us");
    drive(&mut fabric, &[], at(us(4950)));
    let pair = pair_report(&fabric, 0, 1);
    assert_eq!((pair.held, pair.dropped_shrink), (16, 34));
    assert_conserved(&fabric);
}

#[test]
fn an_advance_reaches_back_across_the_week() {
    let mut config = paper(1);
    config.week = Week::etalon(4, us(180), us(20)).unwrap(); // 0 > 1 has its day at 420..600 us
    config.voq.resize = Some(Resize::packets(50, None, us(450))); // large at -30 -> 0, small at 600, large at 570 + ..
    let mut fabric = Fabric::hybrid(&config).unwrap();
    let sends = flood(Span::ZERO, us(3000));
    drive(&mut fabric, &sends, at(us(400)));
    assert_eq!(pair_report(&fabric, 0, 1).held, 50);
    drive(&mut fabric, &flood(us(400), us(3000)), at(us(1000)));
    let pair = pair_report(&fabric, 0, 1);
    assert_eq!((pair.held, pair.dropped_shrink), (50, 0), "the next week's claim came at 570 us, before the day's end");
}

#[test]
fn the_voqs_threshold_follows_its_size() {
    let mut config = paper(1);
    let resize = Some(Resize::packets(50, Some(31), us(600)));
    config.voq = VoqConfig { resize, ..VoqConfig::packets(16, Some(10)) };
    let mut fabric = Fabric::hybrid(&config).unwrap();
    // 200 B come every 40 ns and leave every 160 ns, the first at once. When packet k comes, 1 + (k - 1) / 4 have left
    // (one that comes together with a departure comes first).
    let burst = |from: Span, n: u32| -> Vec<_> { (0..n).map(|k| (at(from), packet(0, 1, 200, k))).collect() };
    let queue_with = |k: u32| k + 1 - k.div_ceil(4);
    for (from, n, threshold) in [(1000, 17, 10), (4100, 60, 31), (4900, 17, 10)] {
        let left = drive(&mut fabric, &burst(us(from), n), at(us(from + 300)));
        let marked: Vec<u32> = left.iter().filter(|(_, _, p)| p.ecn() == Ecn::Ce).map(|(_, _, p)| number(p)).collect();
        let expected: Vec<u32> = (0..n).filter(|k| queue_with(*k) > threshold).collect();
        assert!(!expected.is_empty() && expected.len() < n as usize / 2);
        assert_eq!(marked, expected, "at {from} us");
    }
}

/// Which of six packets at `burst`, and of one that is `idle` later at the ToR than the last of them was taken, are
/// marked from an average of 1 on.
fn marked_by_red(scale: u32, burst: Span, last_taken: Span, idle: Span) -> Vec<u32> {
    let mut config = HybridConfig { time_scale: scale, ..paper(1) };
    config.week = Week::etalon(4, us(180), us(20)).unwrap(); // 0 > 1 has its night at 400 us, its day at 420 us
    config.packet.rate = Rate::from_gbps(9);
    let (typical_packet, drops) = (Bytes::new(9000), Drops::Unmarkable);
    let red = RedConfig::new(Band::packets(1, 1));
    config.voq.discipline.red = Some(RedConfig { weight: 0.5, typical_packet, drops, ..red });
    let stretched = |span: Span| at(span * u64::from(scale));
    let mut sends: Vec<_> = (0..6).map(|k| (stretched(burst), packet(0, 1, 9000, k))).collect();
    // 1.8 us on the host's link.
    sends.push((stretched(last_taken + idle - ns(1800)), packet(0, 1, 9000, 6)));
    let mut fabric = Fabric::hybrid(&config).unwrap();
    let left = drive(&mut fabric, &sends, stretched(us(590)));
    assert_eq!(left.len(), 7);
    assert_conserved(&fabric);
    left.iter().filter(|(_, _, p)| p.ecn() == Ecn::Ce).map(|(_, _, p)| number(p)).collect()
}

/// A packet lasts 8 us on the packet network, 0.9 us on a circuit.
#[test]
fn red_of_a_voq_counts_idle_time_by_the_packet_network() {
    for scale in [1, 20] {
        // Packets come every 1.8 us and find 0, 0, 1, 2, 3, 3: averages 0, 0, 1/2, 1.25, 2.13, 2.56. The uplink takes
        // one every 8 us from 1.8 us on, the last at 41.8 us. Then one packet's time leaves 1.28, two 0.64.
        let by_uplink = |idle| marked_by_red(scale, us(0), ns(41_800), ns(idle));
        assert_eq!(by_uplink(15_990), [3, 4, 5, 6], "time scale {scale}");
        assert_eq!(by_uplink(16_010), [3, 4, 5], "time scale {scale}");
        // At night nothing leaves: they find 0 to 5, and the last average is 4.03. The circuit takes one every 0.9 us
        // from 420 us on.
        let by_circuit = |idle| marked_by_red(scale, us(400), ns(424_500), ns(idle));
        assert_eq!(by_circuit(23_990), [2, 3, 4, 5, 6], "time scale {scale}");
        assert_eq!(by_circuit(24_010), [2, 3, 4, 5], "time scale {scale}");
    }
}

#[test]
fn acks_are_marked_while_the_other_way_has_a_circuit_or_soon_will() {
    let mut config = paper(1);
    config.marks = Some(us(600));
    let mut fabric = Fabric::hybrid(&config).unwrap();
    // Rack 1 to rack 0, a small packet every 10 us.
    let sends: Vec<_> = (0..960).map(|k| (at(us(10 * k)), packet(1, 0, 52, k as u32))).collect();
    let left = drive(&mut fabric, &sends, at(us(9700)));
    // The ToR has it one host link (10.4 ns) before the host does.
    let at_tor = |t: Time| t - Time::ZERO - Span::from_ps(10_400);
    for (t, _, p) in &left {
        let phase = Span::from_ps(at_tor(*t).as_ps() % us(4800).as_ps());
        let expected = phase >= us(4020) && phase < us(4800);
        assert_eq!(p.tcp().unwrap().flags().has(TcpFlags::ECE), expected, "at {phase}");
    }
    let marked = left.iter().filter(|(_, _, p)| p.tcp().unwrap().flags().has(TcpFlags::ECE)).count();
    assert!((150..=160).contains(&marked), "two weeks of 780 us: {marked}");
}

#[test]
fn two_racks_share_a_downlink_and_the_switch_never_drops() {
    let mut fabric = Fabric::hybrid(&paper(1)).unwrap();
    // Racks 0 and 2 flood rack 1. Pair 2 > 1 has circuits on 23 days, 0 > 1 has none: nights and days of the week's
    // first part leave the packet path to 0 > 1 alone, so use the night before the last day on, when 1 > 2 and 2 > 0
    // meet.
    let from = us(4601);
    let sends: Vec<_> = flood(from, us(4790))
        .into_iter()
        .flat_map(|(t, p)| [(t, between(2, p.dst().0, p)), (t, packet(0, 1, 9000, 0))])
        .collect();
    drive(&mut fabric, &sends, at(us(4790)));
    let downlink = fabric.ports().into_iter().find(|port| port.name == "downlink.1").unwrap();
    assert_eq!((downlink.kind, downlink.dropped), (PortKind::Downlink, 0));
    assert!(downlink.peak_queue <= 4, "3, and one that was on the uplink");
    assert_conserved(&fabric);
}

#[test]
fn an_overloaded_downlink_is_shared_fairly() {
    // Without circuits: four racks flood rack 4.
    let mut config = paper(1);
    let idle = Day { night: Span::ZERO, day: us(100), matching: Matching::new(5, &[]).unwrap() };
    config.week = Week::new(vec![idle]).unwrap();
    let mut fabric = Fabric::hybrid(&config).unwrap();
    let sends: Vec<_> = flood(Span::ZERO, us(3000))
        .into_iter()
        .flat_map(|(t, _)| (0..4).map(move |r| (t, packet(r, 4, 9000, 0))))
        .collect();
    let left = drive(&mut fabric, &sends, at(us(3000)));
    let from = |rack: u16| left.iter().filter(|(_, _, p)| p.src().0 == rack).count();
    let counts: Vec<usize> = (0..4).map(from).collect();
    assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
    // The downlink is never idle once it runs: 9 + 5 us of uplink first, 5 + 1.8 us to the host at the end.
    let busy = us(3000) - ns(HOST + PACKET + 5000 + 5000 + HOST);
    assert_eq!(left.len() as u64, busy.as_ps() / ns(PACKET).as_ps());
    let ports = fabric.ports();
    let downlink = ports.iter().find(|port| port.name == "downlink.4").unwrap();
    assert_eq!((downlink.peak_queue, downlink.dropped), (4, 0));
    assert_conserved(&fabric);
}

#[test]
fn small_packets_fill_the_packet_network() {
    // ACKs of 52 B last 41.6 ns at 10 Gb/s: 24,038 of them a millisecond, however long the uplink's delay.
    let mut config = paper(1);
    config.voq = VoqConfig::packets(100_000, None);
    let mut fabric = Fabric::hybrid(&config).unwrap();
    let sends: Vec<_> = (0..50_000).map(|k| (Time::ZERO, packet(0, 1, 52, k))).collect();
    let left = drive(&mut fabric, &sends, at(us(1000)));
    let first = Span::from_ps(2 * 10_400 + 2 * 41_600) + us(10);
    assert_eq!(left[0].0, at(first));
    let expected = (us(1000) - first).as_ps() / 41_600 + 1;
    assert_eq!(left.len() as u64, expected);
}

#[test]
fn every_time_is_stretched_alike() {
    let sends = flood(us(3900), us(5000));
    let run = |scale: u32| {
        let mut config = paper(1);
        config.time_scale = scale;
        config.voq.resize = Some(Resize::packets(50, None, us(600)));
        config.marks = Some(us(600));
        let mut fabric = measured(&config);
        let k = u64::from(scale);
        let sends: Vec<_> = sends.iter().map(|(t, p)| (Time::from_ps(t.as_ps() * k), *p)).collect();
        let until = fabric.at(us(5200));
        let left = drive(&mut fabric, &sends, until);
        let times: Vec<(u64, u32)> = left.iter().map(|(t, _, p)| (t.as_ps() / k, number(p))).collect();
        assert!(left.iter().all(|(t, _, _)| t.as_ps() % k == 0));
        let meter = fabric.meter().unwrap();
        (times, meter.elapsed, meter.packet.longest, meter.circuit.latency.max(), meter.packet.payload)
    };
    assert_eq!(run(1), run(20));
}

#[test]
fn an_incast_drops_and_marks_at_the_port() {
    let mut fabric = Fabric::graph(&star(4, Some(5), Some(2))).unwrap();
    // Three senders at once, four packets each: the first is in service, 5 wait, the queue drains one per 1.2 us.
    let sends: Vec<_> = (0..4).flat_map(|k| (0..3).map(move |h| (Time::ZERO, packet(h, 3, 1500, k)))).collect();
    let left = drive(&mut fabric, &sends, at(us(100)));
    // Three come every 1.2 us, one leaves: waiting 2 after the first round, then 4, then 5 (one dropped), then 5 (two).
    let port = fabric.ports().into_iter().find(|port| port.name == "host3.port").unwrap();
    assert_eq!((port.offered, port.delivered, port.dropped, port.peak_queue), (12, 9, 3, 5));
    let marks = left.iter().filter(|(_, _, p)| p.ecn() == Ecn::Ce).count();
    assert_eq!((marks as u64, port.marked), (5, 5), "those that made it more than 2: 2 + 2 + 1");
    let times: Vec<u64> = left.iter().map(|(t, _, _)| t.as_ps() / 1000).collect();
    let expected: Vec<u64> = (0..9).map(|k| 1200 + 1000 + 1200 * (k + 1) + 1000).collect();
    assert_eq!(times, expected);
    assert_conserved(&fabric);
}

#[test]
fn packets_of_one_moment_leave_together() {
    let mut fabric = Fabric::graph(&star(4, None, None)).unwrap();
    for (src, dst) in [(0, 2), (1, 3)] {
        fabric.inject(firstlight_net::HostId(src), packet(src, dst, 1500, 0), Time::ZERO);
    }
    assert_eq!(fabric.run_to_exit(at(us(100))), at(ns(2 * 1200 + 2000)));
    assert_eq!(fabric.next(), None);
    let hosts: Vec<u16> = std::iter::from_fn(|| fabric.poll_exit()).map(|exit| exit.host.0).collect();
    assert_eq!(hosts, [2, 3]);
    assert_eq!(fabric.run_to_exit(at(us(100))), at(us(100)));
}

#[test]
fn the_meter_counts_data_of_its_pair() {
    let mut fabric = measured(&paper(1));
    let ack = |src, dst| packet(src, dst, 52, 0);
    let sends = [packet(0, 1, 9000, 0), ack(0, 1), packet(0, 1, 1052, 0), packet(1, 0, 9000, 0), packet(0, 2, 9000, 0)];
    drive(&mut fabric, &sends.map(|p| (at(us(1000)), p)), at(us(4700)));
    let by_circuit = [(at(us(4701)), packet(0, 1, 3052, 0)), (at(us(4702)), ack(0, 1))];
    drive(&mut fabric, &by_circuit, at(us(4790)));
    let meter = fabric.meter().unwrap();
    assert_eq!((meter.packet.packets, meter.packet.payload), (2, 8948 + 1000));
    assert_eq!((meter.circuit.packets, meter.circuit.payload), (1, 3000));
    assert_eq!(meter.circuit.longest, us(30) + Span::from_ps(3052 * 100));
    assert_eq!(meter.elapsed, us(4790));
    fabric.reset_meter();
    let meter = fabric.meter().unwrap();
    assert_eq!((meter.packet.packets, meter.circuit.packets, meter.elapsed), (0, 0, Span::ZERO));
}

#[test]
fn faults_lose_the_share_they_were_told() {
    let mut config = star(2, None, None);
    config.interface.loss = 0.1;
    let mut fabric = Fabric::graph(&config).unwrap();
    let sends: Vec<_> = (0..10_000).map(|k| (at(us(k)), packet(0, 1, 1000, k as u32))).collect();
    let left = drive(&mut fabric, &sends, at(us(20_000)));
    let totals = fabric.totals();
    assert!((900..1100).contains(&totals.lost), "{}", totals.lost);
    assert_eq!(left.len() as u64 + totals.lost, 10_000);
    assert_conserved(&fabric);
}

#[test]
fn impossible_fabrics_are_refused() {
    let text = |change: fn(&mut HybridConfig)| {
        let mut config = paper(1);
        change(&mut config);
        Fabric::hybrid(&config).err().map(|e: BuildError| e.to_string()).unwrap_or_default()
    };
    assert_eq!(text(|_| {}), "");
    assert_eq!(text(|c| c.hosts_per_rack = 0), "hosts: 0 is not between 1 and 65536");
    assert_eq!(text(|c| c.circuit.rate = Rate::from_bps(0)), "circuit.rate: a link of zero rate never sends");
    assert_eq!(text(|c| c.interface.loss = 1.5), "interface.loss: 1.5 is not a probability below 1");
}

#[test]
#[should_panic(expected = "Enlarge is 5ms from its day, more than the week of 4800us")]
fn an_operation_of_the_schedule_is_within_a_week_of_its_day() {
    let config = HybridConfig {
        voq: VoqConfig { resize: Some(Resize::packets(50, None, us(5000))), ..paper(1).voq },
        ..paper(1)
    };
    drop(Fabric::hybrid(&config));
}

#[test]
fn a_packet_departs_when_its_last_bit_has_left_the_interface() {
    let mut fabric = Fabric::graph(&star(2, None, None)).unwrap();
    fabric.inject(HostId(0), packet(0, 1, 9000, 0), Time::ZERO);
    assert_eq!(fabric.departure(HostId(0)), Some(at(ns(7200))));
    fabric.inject(HostId(0), packet(0, 1, 1500, 1), Time::ZERO);
    assert_eq!(fabric.departure(HostId(0)), Some(at(ns(8400))), "behind the first one");
    fabric.run(at(us(20)));
    fabric.inject(HostId(0), packet(0, 1, 1500, 2), at(us(20)));
    assert_eq!(fabric.departure(HostId(0)), Some(at(us(20) + ns(1200))));
}

#[test]
fn only_tcp_gets_a_circuits_marks() {
    let config = HybridConfig { marks: Some(us(4800)), ..paper(1) };
    let mut fabric = Fabric::hybrid(&config).unwrap();
    let tcp = packet(1, 0, 500, 1);
    let udp = Packet::new_datagram(tcp.tuple(), 500, 28, 17, [0; 2], 0);
    let left = drive(&mut fabric, &[(at(us(30)), udp), (at(us(30)), tcp)], at(us(600)));
    let marked: Vec<_> = left.iter().map(|left| (left.2.protocol(), left.2.tcp().map(|tcp| tcp.flags()))).collect();
    assert_eq!(marked, [(17, None), (6, Some(TcpFlags::ECE))]);
}
