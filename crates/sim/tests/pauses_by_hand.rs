//! Pauses whose moments, causes and victims are worked out by hand.

mod harness;

use firstlight_net::pfc::PfcConfig;
use firstlight_net::topology::{Cable, Graph, Topology, Wire, dumbbell};
use firstlight_net::{Discipline, Packet};
use firstlight_sim::{Fabric, GraphConfig, InterfaceConfig, PauseReport, SwitchConfig};
use firstlight_units::{Bytes, Rate, Span, Time};
use harness::{assert_conserved, at, drive, ns, number, packet, us};

/// Pause above two packets, go on at one; a microsecond of response.
const PFC: PfcConfig = PfcConfig {
    xoff: Some(Bytes::new(3000)),
    xon: Some(Bytes::new(1500)),
    response: Some(Span::from_us(1)),
    most_events: 1000,
    ..PfcConfig::of_all(Bytes::new(1500))
};

/// Hosts at one switch, 300 ns there and 700 ns back, each with its own rate.
fn hosts(gbps: &[u64]) -> Topology {
    let mut graph = Graph::default();
    let switch = graph.switch("s", "switch");
    for (index, gbps) in gbps.iter().enumerate() {
        let host = graph.host(format!("host{index}"));
        let wire = |delay| Wire { rate: Rate::from_gbps(*gbps), delay };
        graph.link(host, switch, Cable { there: wire(ns(300)), back: wire(ns(700)) });
    }
    graph.build().unwrap()
}

fn fabric(topology: Topology, pfc: PfcConfig, discipline: Discipline) -> Fabric {
    let switch = SwitchConfig { discipline, pfc: Some(pfc), ..SwitchConfig::default() };
    let interface = InterfaceConfig::default();
    Fabric::graph(&GraphConfig { topology, interface, switch, spray: false, time_scale: 1, seed: 1 }).unwrap()
}

fn burst(src: u16, dst: u16, count: u32, start: Time) -> Vec<(Time, Packet)> {
    (0..count).map(|n| (start, packet(src, dst, 1500, n))).collect()
}

fn run(topology: Topology, sends: &[(Time, Packet)]) -> PauseReport {
    let mut fabric = fabric(topology, PFC, Discipline::default());
    let left = drive(&mut fabric, sends, at(us(1000)));
    assert_eq!(left.len(), sends.len());
    assert_conserved(&fabric);
    fabric.pauses().expect("it is lossless")
}

/// Begins and ends of a port's pauses.
fn events(report: &PauseReport, name: &str) -> Vec<Span> {
    report.events.iter().filter(|event| event.name == name).map(|event| event.at).collect()
}

/// A moment of a pause that has crossed a link.
fn effect(after: Span) -> Span {
    after + Span::from_ps(51_200)
}

/// Packets of 1.2 us come at 1.5, 2.7 and 3.9 us, when they are three: the pause frame of 51.2 ns leaves, crosses in
/// 700 ns and takes effect 1 us later, in the fifth packet, which ends at 6 us. They go on at 1 Gb/s every 12 us from
/// 1.5 us on: the fourth of the five has left at 49.5 us, and the end of the pause takes the same way.
#[test]
fn a_pause_from_its_first_byte_to_its_last() {
    let report = run(hosts(&[10, 1]), &burst(0, 1, 6, Time::ZERO));
    assert_eq!(events(&report, "host0.nic"), [effect(ns(3900 + 1700)), effect(ns(49_500 + 1700))]);
    let port = &report.ports[0];
    assert_eq!((port.pauses, port.paused, port.peak), (1, effect(ns(51_200 - 6000)), 7500));
}

/// A packet for an idle host comes to its own host's queue in the same pause, at 20 us. From 31.5 us on that host's
/// port is busy with another host's packet for 1.2 us.
#[test]
fn a_victim_counts_while_its_port_stands_idle() {
    let mut sends = burst(0, 1, 5, Time::ZERO);
    sends.extend(burst(0, 2, 1, at(us(20))));
    let end = effect(ns(51_200));
    assert_eq!(run(hosts(&[10, 1, 10, 10]), &sends).ports[0].victim, Some(end - us(20)));
    sends.extend(burst(3, 2, 1, at(us(30))));
    assert_eq!(run(hosts(&[10, 1, 10, 10]), &sends).ports[0].victim, Some(end - us(20) - ns(1200)));
}

/// The same between switches: the packet comes to the paused port from a host that is not paused.
#[test]
fn a_victim_at_a_switch_counts_from_its_arrival() {
    let cable = Cable::new(Rate::from_gbps(10), ns(500));
    let slow = Cable { back: Wire { rate: Rate::from_gbps(1), ..cable.back }, ..cable };
    let mut graph = Graph::default();
    let hosts: Vec<_> = (0..4).map(|i| graph.host(format!("host{i}"))).collect();
    let (left, right) = (graph.switch("left", "switch"), graph.switch("right", "switch"));
    graph.link(hosts[0], left, cable);
    graph.link(hosts[1], left, cable);
    graph.link(hosts[2], right, slow);
    graph.link(hosts[3], right, cable);
    graph.link(left, right, cable);
    let sends = [burst(0, 2, 5, Time::ZERO), burst(1, 3, 1, at(us(20)))].concat();
    let report = run(graph.build().unwrap(), &sends);
    let port = report.ports.iter().find(|port| port.name == "left->right").unwrap();
    let [begin, end] = events(&report, "left->right")[..] else { panic!("{:?}", report.events) };
    assert!(begin < us(20) && end > us(40), "{begin} {end}");
    assert_eq!(port.victim, Some(end - ns(21_700)));
}

/// One packet for one slow host, then many for another: it is the second that fills the account.
#[test]
fn the_cause_is_the_port_that_most_of_the_account_waits_for() {
    let sends = [burst(0, 1, 1, Time::ZERO), burst(0, 2, 8, Time::ZERO)].concat();
    let report = run(hosts(&[10, 1, 1]), &sends);
    assert!(!report.causes.is_empty());
    assert!(report.causes.iter().all(|cause| cause.egress == "host2.port"), "{:?}", report.causes);
}

/// A packet that a queue drops is in no account: it would never leave the account.
#[test]
fn a_drop_leaves_nothing_behind_in_an_account() {
    let limit = Discipline::packets(Some(3), None);
    let topology = dumbbell(3, 1, Cable::new(Rate::from_gbps(10), ns(500)), Cable::new(Rate::from_gbps(1), ns(500)));
    let mut fabric = fabric(topology.unwrap(), PFC, limit);
    let mut sends: Vec<_> = (0..3).flat_map(|src| burst(src, 3, 1000, Time::ZERO)).collect();
    // Long after all that each has three packets more, which wait but fit.
    let later = |src: u16| (at(us(50_000 + 100 * u64::from(src))), packet(src, 3, 1500, 5000));
    sends.extend((0..3).flat_map(|src| [later(src); 3]));
    let left = drive(&mut fabric, &sends, at(us(60_000)));
    let (report, totals) = (fabric.pauses().unwrap(), fabric.totals());
    assert!(report.lost > 50 && totals.dropped == report.lost, "{}", report.lost);
    assert_eq!(left.len() as u64 + totals.dropped, 3009, "all pauses end");
    assert_eq!(left.iter().filter(|exit| number(&exit.2) == 5000).count(), 9, "{} lost", report.lost);
    assert_conserved(&fabric);
}
