//! A driver without TCP: hands packets in at given moments and collects those that leave.

#![allow(dead_code)]

use firstlight_circuits::{RackId, Week};
use firstlight_net::qcn::QcnConfig;
use firstlight_net::topology::{self, Cable};
use firstlight_net::{Discipline, Ecn, FlowTuple, HostId, Packet, TcpHeader};
use firstlight_sim::{
    CircuitConfig, Fabric, FabricTables, FlowConfig, GraphConfig, HostLinks, HybridConfig, InterfaceConfig,
    MeterConfig, PacketConfig, SwitchConfig, VoqConfig,
};
use firstlight_transport::{CcConfig, TcpConfig};
use firstlight_units::{Bytes, Rate, Span, Time};

pub fn us(n: u64) -> Span {
    Span::from_us(n)
}

pub fn ns(n: u64) -> Span {
    Span::from_ns(n)
}

pub fn at(span: Span) -> Time {
    Time::ZERO + span
}

/// The paper's fabric, as its three-rack testbed plays it: hosts at 40 Gb/s, static VOQs of 16 packets.
pub fn paper(hosts_per_rack: usize) -> HybridConfig {
    HybridConfig {
        hosts_per_rack,
        links: HostLinks { rate: Rate::from_gbps(40), receive_rate: Rate::from_gbps(40), delay: Span::ZERO },
        interface: InterfaceConfig::default(),
        packet: PacketConfig { rate: Rate::from_gbps(10), delay: us(5), switch_queue: 3, switched: true },
        circuit: CircuitConfig { rate: Rate::from_gbps(80), delay: us(30) },
        week: Week::etalon(25, us(180), us(20)).unwrap(),
        control: None,
        voq: VoqConfig::packets(16, None),
        pfc: None,
        marks: None,
        notices: None,
        tables: FabricTables::default(),
        time_scale: 1,
        seed: 1,
    }
}

pub fn star(hosts: u32, queue: Option<u32>, ecn: Option<u32>) -> GraphConfig {
    let topology = topology::star(hosts, Cable::new(Rate::from_gbps(10), us(1))).unwrap();
    let interface = InterfaceConfig::default();
    let switch = SwitchConfig { discipline: Discipline::packets(queue, ecn), ..SwitchConfig::default() };
    GraphConfig { topology, interface, switch, spray: false, time_scale: 1, seed: 1 }
}

/// A flow of CUBIC that starts at once.
pub fn flow(src: u16, dst: u16, size: Option<u64>) -> FlowConfig {
    FlowConfig {
        src: HostId(src),
        dst: HostId(dst),
        tcp: TcpConfig::default(),
        cc: CcConfig::from_name("cubic").unwrap(),
        size: size.map(Bytes::new),
        start: Span::ZERO,
        jitter: Span::ZERO,
        stop: None,
        class: 0,
        reads: None,
        external: false,
        absent: false,
    }
}

/// QCN that notifies often, and slows flows down to 1 Gb/s at most.
pub fn nervous() -> QcnConfig {
    QcnConfig {
        set_point: Bytes::new(2000),
        sample: Bytes::new(3000),
        byte_limit: Bytes::new(5000),
        timer: us(50),
        min_rate: Rate::from_gbps(1),
        ..QcnConfig::default()
    }
}

pub fn measured(config: &HybridConfig) -> Fabric {
    let mut fabric = Fabric::hybrid(config).unwrap();
    fabric.set_meter(&MeterConfig { pair: (RackId(0), RackId(1)), series: None }).unwrap();
    fabric
}

/// A packet of `size` bytes, numbered `seq`.
pub fn packet(src: u16, dst: u16, size: u16, seq: u32) -> Packet {
    let tuple = FlowTuple { src: HostId(src), dst: HostId(dst), ..FlowTuple::default() };
    let tcp = TcpHeader { seq, ..TcpHeader::default() };
    Packet::new_tcp(tuple, 52, 0, tcp).with_size(size).with_ecn(Ecn::Ect0)
}

/// The number of a packet that [`packet`] has made.
pub fn number(packet: &Packet) -> u32 {
    packet.tcp().expect("it is a segment").seq()
}

/// The packet with another sender and receiver.
pub fn between(src: u16, dst: u16, packet: Packet) -> Packet {
    packet.with_tuple(FlowTuple { src: HostId(src), dst: HostId(dst), ..packet.tuple() })
}

/// A packet that has left: when, where, which.
pub type Left = (Time, HostId, Packet);

/// Runs `fabric` up to `until`, handing in `sends` (in time order) at their hosts, one event time after the other.
pub fn drive(fabric: &mut Fabric, sends: &[(Time, Packet)], until: Time) -> Vec<Left> {
    let mut left = Vec::new();
    let mut sends = sends.iter().copied().peekable();
    loop {
        let now = fabric.next().unwrap_or(Time::MAX).min(sends.peek().map_or(Time::MAX, |send| send.0)).min(until);
        fabric.run(now);
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

/// Fails with the list when an identity of conservation does not hold.
pub fn assert_conserved(fabric: &Fabric) {
    let totals = fabric.totals();
    let failures: Vec<String> = totals.imbalances.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{failures:#?}");
}
