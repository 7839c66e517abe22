//! The driver with a test kernel that records all calls.

use firstlight_circuits::Week;
use firstlight_linux::Frames;
use firstlight_messages::Messages;
use firstlight_net::pfc::PfcConfig;
use firstlight_net::qcn::QcnConfig;
use firstlight_net::topology::{self, Cable};
use firstlight_net::{Discipline, HostId, PacerConfig};
use firstlight_sim::{
    AdapterConfig, CircuitConfig, Fabric, FabricTables, FlowConfig, FlowReport, GraphConfig, HostLinks, HybridConfig,
    InterfaceConfig, InterfaceTables, PacketConfig, ProbeConfig, Resize, SwitchConfig, VoqConfig, World,
};
use firstlight_transport::{CcConfig, TcpConfig};
use firstlight_uml::{CE, Cookie, Device, ECE, KernelCalls, KernelDriver};
use firstlight_units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Start of the fabric's time on the kernel's clock, in nanoseconds.
const ZERO: u64 = 1_000_000_007;

/// When the driver reported a packet as sent, delivered or dropped, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
struct PacketFate {
    sent: Option<u64>,
    delivered: Option<(u64, u32, u32)>,
    dropped: Option<u64>,
}

#[derive(Default)]
struct TestKernel {
    now: u64,
    packets: BTreeMap<usize, PacketFate>,
    /// Devices that may send again: (time, device).
    rooms: Vec<(u64, u32)>,
    /// Timestamps of packets before they are delivered: packet, sent, received.
    stamps: Vec<(usize, u32, u32)>,
}

impl TestKernel {
    fn of(&mut self, packet: Cookie) -> &mut PacketFate {
        self.packets.get_mut(&packet.get()).expect("the kernel has given this packet")
    }
}

impl KernelCalls for TestKernel {
    fn stamp(&mut self, packet: Cookie, sent: u32, received: u32) {
        assert!(self.of(packet).delivered.is_none());
        self.stamps.push((packet.get(), sent, received));
    }

    fn deliver(&mut self, device: u32, packet: Cookie, marks: u32) {
        let now = self.now;
        let fate = self.of(packet);
        assert!(fate.delivered.is_none() && fate.dropped.is_none(), "given back before: {fate:?}");
        assert!(fate.sent.is_some(), "delivered before it was sent");
        fate.delivered = Some((now, device, marks));
    }

    fn drop(&mut self, packet: Cookie) {
        let now = self.now;
        let fate = self.of(packet);
        assert!(fate.delivered.is_none() && fate.dropped.is_none(), "given back before: {fate:?}");
        fate.dropped = Some(now);
    }

    fn sent(&mut self, packet: Cookie) {
        let now = self.now;
        let fate = self.of(packet);
        assert!(fate == &PacketFate::default(), "sent before, or gone: {fate:?}");
        fate.sent = Some(now);
    }

    fn room(&mut self, device: u32) {
        self.rooms.push((self.now, device));
    }
}

fn address(host: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

fn driver(world: World, hosts: &[u16], warmup: Span, end: Span) -> KernelDriver<TestKernel> {
    let devices: Vec<Device> =
        hosts.iter().map(|&host| Device { host: HostId(host), address: address(host) }).collect();
    KernelDriver::new(world, TestKernel::default(), &devices, warmup, end)
}

/// An ECN-capable segment with `payload` bytes.
fn frame(to: u16, payload: usize) -> (Vec<u8>, usize) {
    let builder = etherparse::PacketBuilder::ethernet2([2; 6], [2; 6])
        .ipv4([10, 0, 0, 1], address(to).octets(), 64)
        .tcp(1, 2, 3, 4)
        .ack(5);
    let mut frame = vec![];
    builder.write(&mut frame, &vec![0; payload]).unwrap();
    frame[15] |= 2;
    let length = frame.len();
    frame.truncate(134);
    (frame, length)
}

/// A datagram of 100 bytes.
fn datagram(to: u16) -> (Vec<u8>, usize) {
    let builder = etherparse::PacketBuilder::ethernet2([2; 6], [2; 6]);
    let builder = builder.ipv4([10, 0, 0, 1], address(to).octets(), 64).udp(1, 9);
    let mut frame = vec![];
    builder.write(&mut frame, &[0; 72]).unwrap();
    let length = frame.len();
    (frame, length)
}

/// A kernel's clock: it goes to the driver's next time or to the kernel's, whichever is earlier.
struct KernelClock {
    driver: KernelDriver<TestKernel>,
    packets: usize,
    /// Whether the device of the last packet may send the next one.
    goes_on: bool,
}

impl KernelClock {
    fn new(driver: KernelDriver<TestKernel>) -> Self {
        KernelClock { driver, packets: 0, goes_on: true }
    }

    /// Goes to `until` and runs the driver at each time that it asks for, at no other.
    fn go(&mut self, until: u64) {
        while let Some(next) = self.driver.next().filter(|next| *next <= until) {
            assert!(next >= self.driver.kernel().now, "time goes forward");
            self.driver.kernel().now = next;
            let moment = self.driver.world().now();
            self.driver.run(next);
            let goes_on = self.driver.world().now() > moment;
            assert!(
                self.driver.next().is_none_or(|later| later > next || (later == next && goes_on)),
                "all that is due at {next} is done, or what is due at another moment of this nanosecond"
            );
        }
        self.driver.kernel().now = until;
    }

    fn send(&mut self, device: u32, frame: &(Vec<u8>, usize)) -> usize {
        self.packets += 1;
        let kernel = self.driver.kernel();
        kernel.packets.insert(self.packets, PacketFate::default());
        let (cookie, now) = (Cookie::new(self.packets).unwrap(), kernel.now);
        self.goes_on = self.driver.send(device, cookie, &frame.0, frame.1, now);
        self.packets
    }

    fn fate(&mut self, packet: usize) -> PacketFate {
        self.driver.kernel().packets[&packet].clone()
    }
}

fn star(hosts: u32, ecn: Option<u32>, loss: f64) -> Fabric {
    let interface = InterfaceConfig { loss, ..InterfaceConfig::default() };
    let switch = SwitchConfig { discipline: Discipline::packets(Some(20), ecn), ..SwitchConfig::default() };
    with(hosts, interface, switch)
}

fn with(hosts: u32, interface: InterfaceConfig, switch: SwitchConfig) -> Fabric {
    let topology = topology::star(hosts, Cable::new(Rate::from_gbps(10), Span::from_us(1))).unwrap();
    let config = GraphConfig { topology, interface, switch, spray: false, time_scale: 1, seed: 1 };
    Fabric::graph(&config).unwrap()
}

fn hybrid(marks: Option<Span>, time_scale: u32, loss: f64) -> Fabric {
    hybrid_with(marks, time_scale, InterfaceConfig { loss, ..InterfaceConfig::default() })
}

fn hybrid_with(marks: Option<Span>, time_scale: u32, interface: InterfaceConfig) -> Fabric {
    let (us, gbps) = (Span::from_us, Rate::from_gbps);
    let resize = Some(Resize::packets(50, None, us(400)));
    let config = HybridConfig {
        hosts_per_rack: 4,
        links: HostLinks { rate: gbps(40), receive_rate: gbps(800), delay: Span::ZERO },
        interface,
        packet: PacketConfig { rate: gbps(10), delay: us(5), switch_queue: 3, switched: true },
        circuit: CircuitConfig { rate: gbps(80), delay: us(30) },
        week: Week::etalon(25, us(180), us(20)).unwrap(),
        control: None,
        voq: VoqConfig { resize, ..VoqConfig::packets(4, Some(2)) },
        pfc: None,
        marks,
        notices: None,
        tables: FabricTables::default(),
        time_scale,
        seed: 1,
    };
    Fabric::hybrid(&config).unwrap()
}

fn flow(src: u16, dst: u16, external: bool) -> FlowConfig {
    FlowConfig {
        src: HostId(src),
        dst: HostId(dst),
        tcp: TcpConfig::default(),
        cc: CcConfig::from_name("cubic").unwrap(),
        size: None,
        start: Span::from_us(7),
        jitter: Span::from_us(50),
        stop: None,
        class: 0,
        reads: None,
        external,
        absent: false,
    }
}

fn empty(fabric: Fabric) -> World {
    World::new(fabric, vec![], 1).unwrap()
}

/// The second packet waits for the first, 1200 ns, and both are 2400 ns and two links of 1 us on the way.
#[test]
fn a_packet_with_the_option_is_stamped_at_its_interfaces() {
    let builder = etherparse::PacketBuilder::ethernet2([2; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 3], 64);
    let option = [1, 1, 253, 14, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2];
    let mut bytes = vec![];
    let builder = builder.tcp(1, 2, 3, 4).options_raw(&option).unwrap();
    builder.write(&mut bytes, &[0; 1444]).unwrap();
    let length = bytes.len();
    let stamped = (bytes, length);
    let mut clock = KernelClock::new(driver(empty(star(3, None, 0.0)), &[0, 2], Span::ZERO, Span::from_ms(1)));
    clock.driver.start(ZERO);
    clock.go(ZERO + 500);
    clock.send(0, &stamped);
    clock.send(0, &frame(2, 1460));
    clock.send(0, &stamped);
    clock.go(ZERO + 20_000);
    // Each interface has a clock of its own, which begins at any time.
    let [(1, sent, received), (3, later, last)] = clock.driver.kernel().stamps[..] else { panic!("two have stamps") };
    assert_eq!((later - sent, last - received), (2400, 2400));
    assert_eq!(clock.fate(3).delivered, Some((ZERO + 7_300, 1, 0)));
}

/// A datagram from a probe's port is the probe's: its interfaces stamp it as a packet of a simulated one. Of two, the
/// second waits for the first, 1200 ns, and both are 2400 ns and two links of 1 us on the way. Others are not.
#[test]
fn a_datagram_of_a_probe_is_stamped_and_reported() {
    let config = ProbeConfig {
        src: HostId(0),
        dst: HostId(2),
        size: 1500,
        every: Span::from_us(10),
        start: Span::ZERO,
        count: Some(3),
        more: vec![],
        class: 0,
        send_buffer: None,
        record: true,
        external: true,
    };
    let world = World::with(star(3, None, 0.0), vec![], vec![config], &Messages::default(), 1).unwrap();
    let mut clock = KernelClock::new(driver(world, &[0, 2], Span::ZERO, Span::from_ms(1)));
    clock.go(ZERO);
    clock.driver.start(ZERO);
    clock.go(ZERO + 500);
    let port = clock.driver.world().probes()[0].sport;
    let datagram = |port: u16| {
        let builder = etherparse::PacketBuilder::ethernet2([2; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 3], 64);
        let mut bytes = vec![];
        builder.udp(port, 9).write(&mut bytes, &[0; 1472]).unwrap();
        let length = bytes.len();
        (bytes, length)
    };
    let packets = [port, port, port + 1].map(|port| clock.send(0, &datagram(port)));
    clock.go(ZERO + 20_000);
    let delivered = packets.map(|packet| clock.fate(packet).delivered);
    assert_eq!(delivered, [4900, 6100, 7300].map(|at| Some((ZERO + at, 1, 0))));
    assert!(clock.driver.kernel().stamps.is_empty(), "a datagram has no option to write them into");
    let report = &clock.driver.world().probes()[0];
    assert_eq!((report.sent, report.received, report.last_sent), (2, 2, Some(Time::ZERO + Span::from_ns(500))));
    let latencies: Vec<_> = report.samples.iter().map(|sample| sample.latency).collect();
    assert_eq!(latencies, [Span::from_ns(4400), Span::from_ns(5600)]);
    let [first, second] = [0, 1].map(|packet| report.samples[packet].stamps);
    assert_eq!((second.sent - first.sent, second.received - first.received), (1200, 1200));
}

#[test]
fn a_packet_passes_at_exact_nanoseconds() {
    let mut clock = KernelClock::new(driver(empty(star(3, None, 0.0)), &[2, 0], Span::ZERO, Span::from_ms(1)));
    assert_eq!(clock.driver.next(), None);
    clock.go(ZERO - 50);
    let early = clock.send(1, &frame(2, 100));
    assert_eq!(clock.fate(early).dropped, Some(ZERO - 50));
    clock.go(ZERO);
    assert!(clock.driver.start(ZERO) && !clock.driver.start(ZERO));
    clock.go(ZERO + 500);
    // 1041 bytes last 832.8 ns on each of two links of 1 us.
    let first = clock.send(1, &frame(2, 1001));
    let second = clock.send(1, &frame(2, 1001));
    clock.go(ZERO + 10_000);
    let fate =
        |sent, arrived| PacketFate { sent: Some(ZERO + sent), delivered: Some((ZERO + arrived, 0, 0)), dropped: None };
    assert_eq!(clock.fate(first), fate(500 + 833, 500 + 3666));
    assert_eq!(clock.fate(second), fate(500 + 1666, 500 + 4499));
    assert_eq!(clock.driver.elapsed(ZERO + 10_000), 10_000);
    let frames = Frames { sent: 3, delivered: 2, early: 1, ..Frames::default() };
    assert_eq!(clock.driver.frames(), frames);
}

/// A kernel that answers in the nanosecond in which a packet has arrived answers at the picosecond: four trips of
/// 3665.6 ns end after 14,662.4 ns.
#[test]
fn an_answer_leaves_at_the_moment_of_arrival() {
    let mut clock = running(star(3, None, 0.0), &[2, 0]);
    let mut packet = clock.send(1, &frame(2, 1001));
    for (trip, arrived) in [(1, 3666), (2, 7332), (3, 10_997), (4, 14_663)] {
        while clock.fate(packet).delivered.is_none() {
            let next = clock.driver.next().unwrap();
            clock.go(next);
        }
        assert_eq!(clock.fate(packet).delivered.unwrap().0, ZERO + arrived);
        packet = if trip % 2 == 1 { clock.send(0, &frame(0, 1001)) } else { clock.send(1, &frame(2, 1001)) };
    }
}

/// When these packets left their device, in nanoseconds since the start.
fn left(clock: &mut KernelClock, packets: &[usize]) -> Vec<u64> {
    packets.iter().map(|packet| clock.fate(*packet).sent.expect("it has left") - ZERO).collect()
}

fn running(fabric: Fabric, hosts: &[u16]) -> KernelClock {
    let mut clock = KernelClock::new(driver(empty(fabric), hosts, Span::ZERO, Span::from_ms(100)));
    clock.driver.start(ZERO);
    clock.go(ZERO);
    clock
}

/// Where sockets count no queues, a packet of TCP counts no longer once its device has it. This holds where the fabric
/// knows departures in advance and where it does not; datagrams always count.
#[test]
fn a_packet_counts_as_left_where_sockets_count_no_queues() {
    let pfc = PfcConfig { response: Some(Span::from_us(1)), most_events: 10, ..PfcConfig::of_all(Bytes::new(1500)) };
    let paused = SwitchConfig { pfc: Some(pfc), ..SwitchConfig::default() };
    for switch in [SwitchConfig::default(), paused] {
        let fabric = with(2, InterfaceConfig::default(), switch);
        let mut driver = driver(empty(fabric), &[0, 1], Span::ZERO, Span::from_ms(100));
        driver.count_no_queues();
        let mut clock = KernelClock::new(driver);
        clock.driver.start(ZERO);
        clock.go(ZERO);
        let packets = [clock.send(0, &frame(1, 1460)), clock.send(0, &frame(1, 1460)), clock.send(0, &datagram(1))];
        clock.go(ZERO + 20_000);
        assert_eq!(left(&mut clock, &packets), [0, 0, 2_480]);
        assert_eq!(packets.map(|packet| clock.fate(packet).delivered.is_some()), [true; 3]);
    }
}

/// The stack's delay is before the interface, so that a packet leaves that much later.
#[test]
fn a_packet_leaves_after_the_delay_of_the_stack() {
    let interface = InterfaceConfig { send_delay: Span::from_us(5), ..InterfaceConfig::default() };
    let mut clock = running(with(2, interface, SwitchConfig::default()), &[0, 1]);
    let packets = [clock.send(0, &frame(1, 1460)), clock.send(0, &frame(1, 1460))];
    clock.go(ZERO + 20_000);
    assert_eq!(left(&mut clock, &packets), [6_200, 7_400]);
    assert_eq!(clock.fate(packets[0]).delivered.unwrap().0, ZERO + 5_000 + 4_400);
}

/// Two hosts send packets of 1,500 bytes to a third, and both are paused. What was begun when the pause took effect is
/// finished; the next one leaves 1.2 us after its end. These two times are from the fabric's own report.
#[test]
fn a_packet_leaves_when_a_pause_is_over() {
    let pfc = PfcConfig {
        xoff: Some(Bytes::new(3000)),
        xon: Some(Bytes::new(1500)),
        response: Some(Span::from_us(1)),
        most_events: 10,
        ..PfcConfig::of_all(Bytes::new(1500))
    };
    let switch = SwitchConfig { pfc: Some(pfc), ..SwitchConfig::default() };
    let mut clock = running(with(3, InterfaceConfig::default(), switch), &[0, 1, 2]);
    let packets: Vec<usize> = (0..8).map(|_| clock.send(0, &frame(2, 1460))).collect();
    (0..8).for_each(|_| _ = clock.send(1, &frame(2, 1460)));
    clock.go(ZERO + 100_000);
    let left = left(&mut clock, &packets);
    let pauses = clock.driver.world().fabric().pauses().unwrap();
    let of_host: Vec<u64> =
        pauses.events.iter().filter(|event| event.name == "host0.nic").map(|event| event.at.as_ps()).collect();
    let (begun, stopped) = (of_host[0].div_ceil(1_200_000) as usize, of_host[1].div_ceil(1000));
    assert_eq!(left[..begun], [1_200, 2_400, 3_600, 4_800, 6_000, 7_200, 8_400, 9_600][..begun]);
    assert_eq!(left[begun], stopped + 1_200, "{of_host:?}");
    assert!(stopped > 1_200 * begun as u64 + 2_000, "a prediction would have been wrong by that");
}

/// Each packet is answered by a notification with the largest feedback: the flow has half its rate, 5 Gb/s, before its
/// second packet, which then is charged; the third waits for 2.4 us.
#[test]
fn a_packet_leaves_at_the_rate_of_the_limiter() {
    let qcn = QcnConfig { set_point: Bytes::new(1), weight: 0.0, sample: Bytes::new(1), ..QcnConfig::default() };
    let interface = InterfaceConfig {
        tables: InterfaceTables { qcn: Some(qcn), ..InterfaceTables::default() },
        ..InterfaceConfig::default()
    };
    let mut clock = running(with(3, interface, SwitchConfig::default()), &[0, 1]);
    let mut packets = vec![clock.send(0, &frame(1, 1460))];
    clock.go(ZERO + 4_000);
    packets.extend([clock.send(0, &frame(1, 1460)), clock.send(0, &frame(1, 1460))]);
    clock.go(ZERO + 50_000);
    assert_eq!(left(&mut clock, &packets), [1_200, 5_200, 4_000 + 2_400 + 1_200]);
}

/// The rate of a paced flow is zero until the first update at 64 us, when the first packet begins to earn credit.
#[test]
fn a_packet_leaves_at_the_rate_of_the_pacer() {
    let pacer = PacerConfig { chance: 1.0, ..PacerConfig::HULL };
    let interface = InterfaceConfig {
        tables: InterfaceTables { pacer: Some(pacer), ..InterfaceTables::default() },
        ..InterfaceConfig::default()
    };
    let mut clock = running(with(2, interface, SwitchConfig::default()), &[0, 1]);
    let mut echo = frame(0, 10);
    echo.0[47] |= 0x40;
    // From port 2 to port 1: it answers the packets of the other direction.
    (echo.0[34], echo.0[35], echo.0[36], echo.0[37]) = (0, 2, 0, 1);
    clock.send(1, &echo);
    clock.go(ZERO + 10_000);
    let packets = [clock.send(0, &frame(1, 1460)), clock.send(0, &frame(1, 1460))];
    clock.go(ZERO + 63_000);
    assert_eq!(clock.fate(packets[0]).sent, Some(ZERO + 11_200));
    assert_eq!(clock.fate(packets[1]), PacketFate::default(), "it is held, and has not left");
    clock.go(ZERO + 10_000_000);
    let fate = clock.fate(packets[1]);
    let (sent, delivered) = (fate.sent.unwrap(), fate.delivered.unwrap().0);
    // It goes to an idle interface, and over two links of 1 us.
    assert_eq!(delivered - sent, 1_000 + 1_200 + 1_000);
}

fn full_at(bytes: u64) -> InterfaceConfig {
    let adapter = AdapterConfig { send_buffer: Some(Bytes::new(bytes)), ..AdapterConfig::default() };
    InterfaceConfig { adapter, ..InterfaceConfig::default() }
}

#[test]
fn a_device_waits_while_its_interface_is_full() {
    let mut clock = running(with(2, full_at(3000), SwitchConfig::default()), &[0, 1]);
    let mut packets = vec![];
    let mut sent = |clock: &mut KernelClock| {
        packets.push(clock.send(0, &frame(1, 1460)));
        clock.goes_on
    };
    assert_eq!((sent(&mut clock), sent(&mut clock)), (true, false));
    clock.go(ZERO + 10_000);
    assert_eq!(clock.driver.kernel().rooms, [(ZERO + 1_200, 0)], "once, when the first packet has left");
    // One that is handed in all the same is taken; there is room when less than two packets are left.
    assert_eq!((sent(&mut clock), sent(&mut clock)), (true, false));
    sent(&mut clock);
    clock.go(ZERO + 20_000);
    let rooms = [(ZERO + 12_400, 0), (ZERO + 13_600, 0)];
    assert_eq!(clock.driver.kernel().rooms[1..], rooms, "as often as it was to wait");
    assert_eq!(left(&mut clock, &packets), [1_200, 2_400, 11_200, 12_400, 13_600]);
    assert_eq!(clock.driver.frames().delivered, 5);
}

/// A simulated source of datagrams shares the device's host: the two take turns.
#[test]
fn a_device_takes_turns_with_simulated_senders() {
    let source = ProbeConfig {
        src: HostId(0),
        dst: HostId(1),
        size: 1500,
        every: Span::from_ns(100),
        start: Span::ZERO,
        count: None,
        more: vec![],
        class: 0,
        send_buffer: None,
        record: false,
        external: false,
    };
    let fabric = with(3, full_at(3000), SwitchConfig::default());
    let world = World::with(fabric, vec![], vec![source], &Messages::default(), 1).unwrap();
    let mut clock = KernelClock::new(driver(world, &[0, 2], Span::ZERO, Span::from_ms(100)));
    clock.driver.start(ZERO);
    clock.go(ZERO + 50);
    let mut packets = vec![];
    for _ in 0..10 {
        packets.push(clock.send(0, &frame(2, 1460)));
        let rooms = clock.driver.kernel().rooms.len();
        assert!(!clock.goes_on);
        while clock.driver.kernel().rooms.len() == rooms {
            let next = clock.driver.next().unwrap();
            clock.go(next);
        }
    }
    clock.go(ZERO + 100_000);
    let left = left(&mut clock, &packets);
    let gaps: Vec<u64> = left.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps[0], 1_200, "it was first in the line");
    assert_eq!(gaps[1..], [2 * 1_200; 8], "each has half of the link");
    let nic = clock.driver.world().fabric().ports().remove(0);
    assert_eq!(nic.peak_bytes, Some(3000), "the room that a device is fate of is not given to others");
}

#[test]
fn packets_inside_at_the_end_go_back_as_dropped() {
    let mut clock = KernelClock::new(driver(empty(star(2, None, 0.0)), &[0, 1], Span::ZERO, Span::from_ps(5_000_500)));
    clock.driver.start(ZERO);
    clock.go(ZERO + 3_500);
    let inside = [clock.send(0, &frame(1, 1001)), clock.send(0, &frame(1, 1001))];
    clock.go(ZERO + 9_000);
    // The end lies between two nanoseconds: it comes at the later one.
    assert_eq!(
        clock.fate(inside[0]),
        PacketFate { sent: Some(ZERO + 4_333), delivered: None, dropped: Some(ZERO + 5_001) }
    );
    assert_eq!(clock.fate(inside[1]), PacketFate { dropped: Some(ZERO + 5_001), ..PacketFate::default() });
    let late = clock.send(0, &frame(1, 10));
    assert_eq!(clock.fate(late).dropped, Some(ZERO + 9_000));
    assert_eq!((clock.driver.next(), clock.driver.is_running()), (None, false));
    assert_eq!(clock.driver.world().now(), Time::from_ps(5_000_500));
    clock.driver.finish(ZERO + 9_000);
    assert_eq!(clock.driver.frames(), Frames { sent: 3, held: 2, late: 1, ..Frames::default() });
}

#[test]
fn a_run_that_ends_in_its_warm_up_measures_nothing() {
    let mut clock = KernelClock::new(driver(empty(hybrid(None, 1, 0.0)), &[0], Span::from_ms(1), Span::from_ms(2)));
    clock.driver.start(ZERO);
    clock.go(ZERO + 500_000);
    assert!(clock.driver.warm().is_none());
    clock.driver.finish(ZERO + 500_000);
    assert!(clock.driver.warm().is_some());
    assert_eq!(clock.driver.world().now(), Time::from_ps(500_000_000));
}

#[test]
fn frames_for_other_addresses_are_counted() {
    let mut clock = KernelClock::new(driver(empty(star(3, None, 0.0)), &[0, 1], Span::ZERO, Span::from_ms(1)));
    clock.driver.start(ZERO);
    clock.go(ZERO);
    let arp = [&[2; 12][..], &[8, 6], &[0; 28]].concat();
    clock.send(0, &(arp, 42));
    clock.send(0, &frame(2, 10));
    clock.send(0, &(vec![1, 2, 3], 3));
    let frames = Frames { sent: 3, not_ip: 1, elsewhere: 1, malformed: 1, ..Frames::default() };
    assert_eq!(clock.driver.frames(), frames);
    assert!(clock.driver.kernel().packets.values().all(|fate| fate.dropped.is_some()));
}

#[test]
fn only_marks_of_the_fabric_are_delivered() {
    let mut clock = KernelClock::new(driver(empty(star(3, Some(1), 0.0)), &[0, 1, 2], Span::ZERO, Span::from_ms(1)));
    clock.driver.start(ZERO);
    clock.go(ZERO);
    let sent: Vec<_> = [0, 1, 0, 1, 0, 1].map(|device| clock.send(device, &frame(2, 1000))).to_vec();
    let mut marked = frame(2, 1000);
    marked.0[15] |= 3;
    let own = clock.send(0, &marked);
    clock.go(ZERO + 100_000);
    let marks: Vec<_> = sent.iter().map(|packet| clock.fate(*packet).delivered.unwrap().2).collect();
    // Each turn brings two packets and takes one away: one waits after the first, two after the second, three then.
    assert_eq!(marks, [0, 0, 0, CE, CE, CE]);
    assert_eq!(clock.fate(own).delivered.unwrap().2, 0, "it came marked");

    let always = Some(Span::from_us(4800));
    let mut clock = KernelClock::new(driver(empty(hybrid(always, 1, 0.0)), &[0, 4], Span::ZERO, Span::from_ms(1)));
    clock.driver.start(ZERO);
    clock.go(ZERO + 250_000);
    let mut echo = frame(0, 10);
    echo.0[47] |= 0x40;
    let packets = [clock.send(1, &frame(0, 10)), clock.send(1, &echo)];
    clock.go(ZERO + 700_000);
    assert_eq!(packets.map(|packet| clock.fate(packet).delivered.unwrap().2), [ECE, 0]);
}

/// A host's frame: nanoseconds since the one before, device, destination, payload; a payload above 9000 is not a
/// packet.
type Sends = Vec<(u64, u32, u16, usize)>;

fn sends() -> impl Strategy<Value = Sends> {
    prop::collection::vec((0u64..4000, 0u32..6, 0u16..13, 0usize..9100), 1..200)
}

const HOSTS: [u16; 6] = [0, 1, 4, 5, 8, 11];

/// Interfaces with all parts between a device and its link.
fn interface() -> impl Strategy<Value = InterfaceConfig> {
    let pacer = Some(PacerConfig { chance: 1.0, ..PacerConfig::HULL });
    let qcn = Some(QcnConfig { set_point: Bytes::new(2000), sample: Bytes::new(3000), ..QcnConfig::default() });
    let kinds = vec![
        InterfaceConfig::default(),
        full_at(3000),
        InterfaceConfig { tables: InterfaceTables { pacer, ..InterfaceTables::default() }, ..full_at(20_000) },
        InterfaceConfig {
            tables: InterfaceTables { qcn, ..InterfaceTables::default() },
            send_delay: Span::from_us(2),
            ..InterfaceConfig::default()
        },
        InterfaceConfig { send_delay: Span::from_us(2), ..full_at(1) },
    ];
    prop::sample::select(kinds)
}

/// Runs external flows, simulated flows and the kernel's own packets.
fn play(sends: &Sends, marks: bool, scale: u32, interface: &InterfaceConfig, finish: bool) -> (KernelClock, u64) {
    let fabric = hybrid_with(marks.then(|| Span::from_us(300)), scale, interface.clone());
    let flows = vec![flow(0, 4, true), flow(0, 4, false), flow(2, 6, false), flow(8, 0, false)];
    let world = World::new(fabric, flows, 3).unwrap();
    let end = Span::from_us(600);
    let mut clock = KernelClock::new(driver(world, &HOSTS, Span::from_ps(100_000_001), end));
    clock.driver.start(ZERO);
    let mut now = ZERO;
    for &(gap, device, to, payload) in sends {
        now += gap;
        clock.go(now);
        let frame =
            if payload > 9000 { (vec![payload as u8; payload - 9000], payload) } else { frame(to, payload.min(8900)) };
        clock.send(device, &frame);
    }
    if finish {
        clock.driver.finish(now);
    } else {
        clock.go(now.max(ZERO + 600_000 * u64::from(scale)));
    }
    let digest = clock.driver.world().fabric().digest();
    (clock, digest)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_packet_is_returned_once(
        sends in sends(), marks in any::<bool>(), scale in prop_oneof![Just(1u32), Just(20)],
        loss in prop_oneof![Just(0.0), 0.0..0.3], interface in interface(), finish in any::<bool>(),
    ) {
        let interface = InterfaceConfig { loss, ..interface };
        let (mut clock, digest) = play(&sends, marks, scale, &interface, finish);
        let kernel = clock.driver.kernel();
        let back = |fate: &PacketFate| fate.delivered.is_some() != fate.dropped.is_some();
        prop_assert!(kernel.packets.values().all(back), "{:?}", kernel.packets);
        let delivered = kernel.packets.values().filter(|fate| fate.delivered.is_some()).count();
        let Frames { sent, delivered: counted, dropped, held, early, late, not_ip, malformed, elsewhere } =
            clock.driver.frames();
        prop_assert_eq!((sent, counted), (sends.len() as u64, delivered as u64));
        prop_assert_eq!(sent, counted + dropped + held + early + late + not_ip + malformed + elsewhere);
        let totals = clock.driver.world().fabric().totals();
        prop_assert!(totals.imbalances.is_empty(), "{:?}", totals.imbalances);
        prop_assert_eq!(clock.driver.world().strays(), 0);
        let (mut again, same) = play(&sends, marks, scale, &interface, finish);
        prop_assert_eq!(digest, same);
        prop_assert_eq!(&clock.driver.kernel().packets, &again.driver.kernel().packets);
    }

    /// A kernel that sends nothing, and stops the world at its nanoseconds, changes nothing in the world.
    #[test]
    fn simulated_flows_run_as_if_alone(
        scale in prop_oneof![Just(1u32), Just(20)],
        loss in prop_oneof![Just(0.0), 0.0..0.05],
        more in prop::collection::vec(1u64..90_000, 0..20),
    ) {
        let world = || {
            let sized = FlowConfig { size: Some(Bytes::new(200_000)), ..flow(5, 9, false) };
            World::new(hybrid(None, scale, loss), vec![flow(0, 4, false), flow(9, 1, false), sized], 5).unwrap()
        };
        let end = Span::from_ps(6_000_000_777);
        let mut alone = world();
        alone.run_until(alone.fabric().at(end));
        let mut clock = KernelClock::new(driver(world(), &HOSTS, Span::from_us(333), end));
        clock.driver.start(ZERO);
        let mut now = ZERO;
        for gap in more {
            now += gap;
            clock.go(now);
        }
        clock.go(ZERO + 6_000_001 * u64::from(scale));
        let stepped = clock.driver.world();
        prop_assert_eq!((stepped.now(), stepped.fabric().digest()), (alone.now(), alone.fabric().digest()));
        prop_assert_eq!(stepped.fabric().totals(), alone.fabric().totals());
        for (a, b) in stepped.flows().iter().zip(alone.flows()) {
            let state = |flow: &FlowReport| (flow.bytes_acked, flow.bytes_received, flow.finish, flow.sender);
            prop_assert_eq!(state(a), state(&b));
        }
        prop_assert!(alone.fabric().totals().exited > 100);
    }
}
