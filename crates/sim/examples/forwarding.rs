//! The floor of our own engine: the benchmark's workloads, forwarded without TCP.
//!
//! Senders keep a fixed window of packets on their way, about as many as TCP keeps there, and receivers answer each
//! with an ACK: FIFO ports, VOQs, tail drop and marking tests, the calendar, and nothing else. What a run with TCP
//! costs beyond this is TCP. The queues have room for all windows together, so nothing is lost.
//!
//!     cargo run --release --example forwarding -- incast|etalon-pair|tree|permutation
//!     [million data packets] [ports of a switch in the permutation's fat tree]
//!
//! prints one JSON object.

use firstlight_circuits::Week;
use firstlight_net::topology::{self, Cable, ThreeTier, Topology, TreeCables};
use firstlight_net::{Discipline, Ecn, FlowTuple, HostId, Packet, TcpHeader};
use firstlight_sim::{
    CircuitConfig, Fabric, FabricTables, GraphConfig, HostLinks, HybridConfig, InterfaceConfig, PacketConfig,
    SwitchConfig, VoqConfig,
};
use firstlight_units::{Rate, Span, Time};

/// Senders of the incast, and of a rack of the pair.
const SENDERS: u16 = 20;
const PAIR_SENDERS: u16 = 16;
/// IP, TCP and timestamps.
const HEADER: u8 = 52;

/// A fabric, who sends to whom over it, and in packets of which size.
struct ForwardedLoad {
    fabric: Fabric,
    flows: Vec<(HostId, HostId)>,
    mtu: u16,
    /// Packets that each sender keeps on their way.
    window: u32,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "incast".into());
    let millions: u64 = arguments.next().map_or(5, |text| text.parse().expect("the second argument is a whole number"));
    let workload = match name.as_str() {
        "incast" => incast(),
        "etalon-pair" => etalon_pair(),
        "tree" => tree(),
        "permutation" => {
            permutation(arguments.next().map_or(16, |k| k.parse().expect("the third argument is a number")))
        }
        other => panic!("no workload `{other}`: incast, etalon-pair, tree or permutation"),
    };
    run(&name, workload, millions * 1_000_000);
}

/// As `benches/incast.toml`.
fn incast() -> ForwardedLoad {
    let hosts = u32::from(SENDERS) + 1;
    let cable = Cable::new(Rate::from_gbps(10), Span::from_us(5));
    let fabric = graph(topology::star(hosts, cable).expect("the example's own settings are legal"));
    let flows = (0..SENDERS).map(|sender| (HostId(sender), HostId(SENDERS))).collect();
    ForwardedLoad { fabric, flows, mtu: 1500, window: 4 }
}

/// As `benches/tree.toml`: about as many senders as are busy there at a time.
fn tree() -> ForwardedLoad {
    let cable = Cable::new(Rate::from_gbps(10), Span::from_us(1));
    let tree = ThreeTier {
        servers: 192,
        tors: 32,
        aggregations: 16,
        cores: 8,
        tor_uplinks: None,
        aggregation_uplinks: None,
        cables: cables(cable),
    };
    let fabric = graph(tree.build().expect("the example's own settings are legal"));
    ForwardedLoad { fabric, flows: pairs(192).step_by(2).collect(), mtu: 1500, window: 16 }
}

/// As `benches/permutation.toml`.
fn permutation(k: u32) -> ForwardedLoad {
    let cables = cables(Cable::new(Rate::from_gbps(10), Span::from_us(1)));
    let fabric = graph(topology::fat_tree(k, cables).expect("the example's own settings are legal"));
    ForwardedLoad { fabric, flows: pairs(k * k * k / 4).collect(), mtu: 1500, window: 32 }
}

const fn cables(cable: Cable) -> TreeCables {
    TreeCables { host: cable, aggregation: cable, core: cable }
}

/// Each host sends to one other and receives from one other, near and far. The number of hosts is even and no multiple
/// of 5.
fn pairs(hosts: u32) -> impl Iterator<Item = (HostId, HostId)> {
    (0..hosts).map(move |host| (HostId(host as u16), HostId(((host * 5 + 77) % hosts) as u16)))
}

fn graph(topology: Topology) -> Fabric {
    let switch = SwitchConfig { discipline: Discipline::packets(Some(1000), Some(65)), ..SwitchConfig::default() };
    let interface = InterfaceConfig::default();
    let config = GraphConfig { topology, interface, switch, spray: false, time_scale: 1, seed: 1 };
    Fabric::graph(&config).expect("the example's own settings are legal")
}

/// As `benches/etalon-pair.toml`, but with a VOQ that holds all windows.
fn etalon_pair() -> ForwardedLoad {
    let window = 4;
    let small = u32::from(PAIR_SENDERS) * window;
    let config = HybridConfig {
        hosts_per_rack: usize::from(PAIR_SENDERS),
        links: HostLinks { rate: Rate::from_gbps(40), receive_rate: Rate::from_gbps(40), delay: Span::ZERO },
        interface: InterfaceConfig::default(),
        packet: PacketConfig { rate: Rate::from_gbps(10), delay: Span::from_us(5), switch_queue: 3, switched: true },
        circuit: CircuitConfig { rate: Rate::from_gbps(80), delay: Span::from_us(30) },
        week: Week::etalon(25, Span::from_us(180), Span::from_us(20)).expect("the example's own week is legal"),
        control: None,
        voq: VoqConfig::packets(small, None),
        pfc: None,
        marks: None,
        notices: None,
        tables: FabricTables::default(),
        time_scale: 1,
        seed: 1,
    };
    let fabric = Fabric::hybrid(&config).expect("the example's own settings are legal");
    let flows = (0..PAIR_SENDERS).map(|sender| (HostId(sender), HostId(PAIR_SENDERS + sender))).collect();
    ForwardedLoad { fabric, flows, mtu: 9000, window }
}

fn run(name: &str, ForwardedLoad { mut fabric, flows, mtu, window }: ForwardedLoad, packets: u64) {
    for seq in 0..window {
        for &(src, dst) in &flows {
            fabric.inject(src, data(src, dst, seq, mtu), Time::ZERO);
        }
    }
    let before = user_seconds();
    let mut delivered = 0u64;
    while delivered < packets {
        let now = fabric.run_to_exit(Time::from_ps(u64::MAX - 1));
        while let Some(exit) = fabric.poll_exit() {
            let packet = fabric.packet(exit.packet);
            let answer = if packet.size() == mtu {
                delivered += 1;
                packet.with_tuple(packet.tuple().reversed()).with_size(HEADER.into()).with_ecn(Ecn::NotEct)
            } else {
                data(packet.dst(), packet.src(), packet.tcp().map_or(0, |segment| segment.seq()) + window, mtu)
            };
            fabric.release(exit.packet);
            fabric.inject(exit.host, answer, now);
        }
    }
    report(name, &fabric, delivered, user_seconds() - before);
}

fn data(src: HostId, dst: HostId, seq: u32, size: u16) -> Packet {
    let tcp = TcpHeader { seq, ..TcpHeader::default() };
    Packet::new_tcp(FlowTuple { src, dst, ..FlowTuple::default() }, HEADER, 0, tcp).with_size(size).with_ecn(Ecn::Ect0)
}

fn report(name: &str, fabric: &Fabric, delivered: u64, seconds: f64) {
    let totals = fabric.totals();
    assert!(totals.imbalances.is_empty() && totals.dropped == 0, "{:?}", totals.imbalances);
    println!(
        "{{\"bench\": \"forwarding\", \"workload\": \"{name}\", \"packet_hops\": {}, \"events\": {}, \
         \"delivered_data_packets\": {delivered}, \"user_cpu_s\": {seconds:.2}, \"ns_per_hop\": {:.2}, \
         \"digest\": \"{:016x}\"}}",
        totals.hops,
        totals.events,
        seconds * 1e9 / totals.hops as f64,
        fabric.digest(),
    );
}

/// This process's user CPU time; in hundredths of a second, as Linux counts it.
fn user_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("the benchmark runs on Linux");
    let fields = stat.rsplit(')').next().expect("the command's name is in brackets");
    let ticks: f64 = fields.split_whitespace().nth(11).and_then(|ticks| ticks.parse().ok()).expect("field 14 is utime");
    ticks / 100.0
}
