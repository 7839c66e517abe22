//! A case computed by hand for each cause of an account that `account.rs` has none for. Sizes and rates are as there: a
//! packet of 1500 B lasts 1.2 us at 10 Gb/s. The hosts' clocks do not tick, so that timers expire to the picosecond.

use super::account::{ACK, RACKS, STAR, SYN, US, account, cause, details, flow, time};
use super::{integers, names};
use firstlight_lab::Outcome;

/// A full packet.
const FULL: i64 = 1500 * 800;
/// A handshake over two links there and two back: SYN and SYN-ACK, each serialized twice.
const HANDSHAKE: i64 = 4 * US + 4 * SYN;

/// Two hosts, and a link of 1 Gb/s between their switches; all links have 1 us.
const SLOW_LINK: &str = "duration = \"1s\"\n[fabric]\nkind = \"dumbbell\"\nleft = 1\nright = 1\n[links]\nrate = \
                         \"1Gbps\"\ndelay = \"1us\"\n[hosts]\nrate = \"10Gbps\"\ndelay = \"1us\"\nmtu = \"1500B\"\n";

fn exact(text: &str, set: super::Set<'_>) -> Outcome {
    account(text, &[&[("tcp.tick", "0s")], set].concat())
}

/// Segments of 524 B are no longer than what a receiver takes for a full one, so the first is not acknowledged at once.
/// The window has room for one: the second segment waits for the delayed ACK of the first.
#[test]
fn a_receiver_delays_its_ack() {
    let set = [("hosts.mtu", "576B"), ("tcp.initial_window", "1"), ("tcp.quick_acks", "0"), ("tcp.delayed_ack", "3ms")];
    let outcome = exact(&format!("{STAR}{}", flow(1, 0, 2 * 524, "0s")), &set);
    let window = "congestion_window (slow start)";
    assert_eq!(time(&outcome, 0, [window, "delayed_ack", "host0", ""]), 3000 * US);
    assert_eq!(cause(&outcome, 0, "delayed_ack"), 3000 * US);
}

/// TIMELY at 1 Gb/s, each packet by itself: 12 us between one and the next, and three packets. The first leaves 200 ps
/// after a whole nanosecond, and the pacer's timer counts whole ones.
#[test]
fn a_pacer_spreads_packets() {
    let set = [("tcp.cc", "timely"), ("timely.line_rate", "1Gbps"), ("timely.segment", "1500B")];
    // Time stamps of the interfaces take 16 B of each packet.
    let outcome = exact(&format!("{STAR}{}", flow(1, 0, 3 * 1432, "0s")), &set);
    let waits = 24 * US + 800;
    assert_eq!(time(&outcome, 0, ["pacer", "pacing", "host1", ""]), waits);
    assert_eq!(cause(&outcome, 0, "pacing"), waits);
}

/// Seven packets come from 10 Gb/s to a link of 1 Gb/s. Counted from the first one's arrival at the switch: the third
/// comes at 2.4 us and is more than `xoff`. The pause frame of 64 B lasts 51.2 ns, crosses in 1 us and takes effect 1
/// us later, at 4.4512 us, in the sixth packet, whose last bit leaves at 5 us. Five packets have left the switch at 60
/// us, and the end of the pause takes as long as its beginning.
#[test]
fn a_pause_has_its_root() {
    let set = [("pfc.xoff", "3000B"), ("pfc.xon", "1500B"), ("pfc.response", "1us")];
    let outcome = exact(&format!("{SLOW_LINK}{}", flow(0, 1, 7 * 1448, "0s")), &set);
    let paused = (60 * US + 64 * 800 + 2 * US) - 5 * US;
    assert_eq!(time(&outcome, 0, ["delivery", "pause", "host0.nic", "left->right"]), paused);
    assert_eq!(cause(&outcome, 0, "pause"), paused);
}

/// Flow 1 has the same way as flow 0, and its SYN waits for flow 0's: from there on it is one SYN behind. When flow 0's
/// packet has begun to leave the packet switch, flow 1's first packet waits there, in a queue for one. Its second
/// packet is on the uplink meanwhile, since that packet began one propagation delay before the first one arrived. So
/// the third packet could go when the second has left, and may when the first leaves the queue, which flow 0's packet
/// lets it do 1.2 us after its own arrival.
#[test]
fn a_full_packet_switch_holds_a_voq() {
    // The first night and day are those of other pairs of six racks.
    let racks = RACKS.replace("racks = 3", "racks = 6");
    let flows = format!("{}{}", flow(2, 0, 1448, "0s"), flow(3, 0, 3 * 1448, "0s"));
    let set = [("hosts.mtu", "1500B"), ("packet.delay", "1us"), ("packet.switch_queue", "1")];
    let outcome = exact(&format!("{racks}{flows}"), &set);
    let could = SYN - US + FULL;
    assert_eq!(time(&outcome, 1, ["delivery", "packet_switch", "voq.3.0", ""]), FULL - could);
    assert_eq!([0, 1].map(|flow| cause(&outcome, flow, "packet_switch")), [0, US - SYN]);
}

/// The day of racks 1 and 0 ends at 120 us. The flow starts in it, at 82 us, and its packet of 9000 B comes to its VOQ
/// after a handshake, an ACK and 7.2 us on the host's link: then the day lasts for less than the packet's 720 ns.
#[test]
fn a_day_ends_too_soon_for_a_packet() {
    let outcome = exact(&format!("{RACKS}{}", flow(1, 0, 8948, "82us")), &[]);
    // The SYN goes over the circuit, at 100 Gb/s and in 20 us; the SYN-ACK over the packet network, in 10 us.
    let handshake = (2 * SYN + SYN / 10 + 20 * US) + (4 * SYN + 10 * US);
    let arrival = 82 * US + handshake + ACK + 9000 * 800;
    assert!(arrival > 120 * US - 9000 * 80 && arrival < 120 * US);
    assert_eq!(time(&outcome, 0, ["delivery", "day", "voq.1.0", ""]), 120 * US - arrival);
    assert_eq!(cause(&outcome, 0, "day"), 120 * US - arrival);
}

/// Each packet of data is sampled when the queue holds itself alone: twice `qeq`, which is the largest feedback with
/// w = 0. The first packet's notification halves the flow's rate. Its ACK then releases two packets: the second one
/// waits until the first is paid for, at 5 Gb/s.
#[test]
fn a_rate_limiter_holds_the_second_packet_back() {
    let set = [("tcp.initial_window", "1"), ("qcn.qeq", "750B"), ("qcn.w", "0"), ("qcn.sample", "1B")];
    let outcome = exact(&format!("{STAR}{}", flow(1, 0, 3 * 1448, "0s")), &set);
    assert_eq!(time(&outcome, 0, ["delivery", "rate_limiter", "host1.limiter", ""]), 2 * FULL);
    assert_eq!(cause(&outcome, 0, "rate_limiter"), 2 * FULL);
}

/// HULL's pacer with eta = 1 and beta = 0: the rate of a period is what came in the one before, and nothing at first.
/// Eleven packets, of which the slow link lets one go each 12 us. The marks of the first round trips are answered late
/// enough that only the last two packets are paced: the first passes, and is paid for half a period after the rate is
/// known, at 1 ms. The eighth ACK releases the last packet.
#[test]
fn a_host_pacer_knows_its_rate_after_a_period() {
    let set = [
        ("tcp.initial_window", "2"),
        ("tcp.ecn", "true"),
        ("switch.ecn", "1"),
        ("switch.queue", "100"),
        ("pacer.period", "1ms"),
        ("pacer.weight", "1"),
        ("pacer.drain", "0"),
        ("pacer.chance", "1"),
    ];
    let outcome = exact(&format!("{SLOW_LINK}{}", flow(0, 1, 11 * 1448, "0s")), &set);
    // Three links each way, the middle one ten times as slow.
    let handshake = 6 * US + 2 * (2 + 10) * SYN;
    let first_ack = handshake + ACK + 6 * US + (2 + 10) * FULL + (2 + 10) * ACK;
    let released = first_ack + 7 * 10 * FULL;
    assert_eq!(time(&outcome, 0, ["delivery", "host_pacer", "host0.pacer", ""]), 1500 * US - released);
    assert_eq!(cause(&outcome, 0, "host_pacer"), 1500 * US - released);
}

/// The interface takes packets while it holds less than 1500 B: the ACK of the handshake and a packet of data, and each
/// next one when the one before has left. The third waits for two.
#[test]
fn an_interface_has_room_for_one_packet() {
    let outcome = exact(&format!("{STAR}{}", flow(1, 0, 3 * 1448, "0s")), &[("adapter.send_buffer", "1500B")]);
    assert_eq!(time(&outcome, 0, ["interface_room", "interface_room", "host1", ""]), ACK + 2 * FULL);
    assert_eq!(cause(&outcome, 0, "interface_room"), ACK + 2 * FULL);
    // What the data waited for before was the handshake.
    assert_eq!(time(&outcome, 0, ["handshake", "", "", ""]), HANDSHAKE);
}

/// As `a_lost_tail_costs_a_timeout`, with tail loss probes. That of a lone packet comes after twice the round trip and
/// the shortest timeout, but no later than the timeout, which is after one round trip, in whole microseconds, and the
/// shortest timeout.
#[test]
fn a_lost_tail_is_probed() {
    let flows: String =
        [(1, "0ns"), (2, "50ns"), (3, "100ns")].map(|(host, start)| flow(host, 0, 1000, start)).concat();
    let outcome = exact(&format!("{STAR}[switch]\nqueue = 1\n{flows}"), &[("tcp.rto_min", "200ms")]);
    let probe = 200_000 * US + HANDSHAKE / US * US;
    assert_eq!(time(&outcome, 2, ["retransmission", "tail_probe", "host0.port", "flow 1"]), probe);
    assert_eq!([0, 1, 2].map(|flow| cause(&outcome, flow, "tail_probe")), [0, 0, probe]);
    assert_eq!(cause(&outcome, 2, "rto"), 0);
}

/// As above, with a window of one packet, which is lost. The probe has new data: the ACK of them shows the loss one
/// round trip later.
#[test]
fn a_probe_of_new_data_shows_a_loss() {
    let flows = format!("{}{}{}", flow(1, 0, 1000, "0ns"), flow(2, 0, 1000, "50ns"), flow(3, 0, 2448, "100ns"));
    let text = format!("{STAR}[switch]\nqueue = 1\n{flows}");
    let outcome = exact(&text, &[("tcp.rto_min", "200ms"), ("tcp.initial_window", "1")]);
    let probe = 200_000 * US + HANDSHAKE / US * US;
    assert_eq!(time(&outcome, 2, ["retransmission", "tail_probe", "host0.port", "flow 1"]), probe);
    let round_trip = 4 * US + 2 * 1052 * 800 + 2 * (ACK + 12 * 800);
    assert_eq!(time(&outcome, 2, ["retransmission", "fast_recovery", "host0.port", "flow 1"]), round_trip);
    assert_eq!(["tail_probe", "fast_recovery"].map(|name| cause(&outcome, 2, name)), [probe, round_trip]);
}

/// Flow 0's second packet is dropped. Counted from the arrival of its first one at the switch, in us: flow 1's packet
/// came at -0.4, flow 2's ACK at -0.2 and flow 2's packet comes at 1.0, when the queue holds flow 0's first. It is full
/// when the second comes at 1.2: with it the queue would hold three packets. From there on each packet waits for flow
/// 2's.
fn a_dropped_second_packet(packets: u64, delay: i64) -> (Outcome, i64) {
    let flows =
        format!("{}{}{}", flow(1, 0, packets * 1448, "400ns"), flow(2, 0, 1448, "0ns"), flow(3, 0, 1448, "1400ns"));
    let text = format!("{STAR}[switch]\nqueue = \"3100B\"\n{flows}");
    let outcome = exact(&text, &[("hosts.delay", &format!("{delay}us"))]);
    let lost = &details(&outcome, 0)[0];
    assert!(lost.starts_with("bytes 1448 to 2895 dropped at host0.port"), "{lost}");
    // The last packet goes over two links, with the queue between them, and its ACK, with a block of SACK, over two.
    let waits = FULL + ACK - 400_000;
    let last = ACK + packets as i64 * FULL + waits + FULL;
    (outcome, last + 2 * (ACK + 12 * 800) + 4 * delay * US)
}

/// Links of 4 us: the third, fourth and fifth packet arrive before the reordering window of a quarter of 16 us ends.
/// The third ACK with SACK shows the loss.
#[test]
fn three_later_packets_show_a_loss() {
    let (outcome, third_ack) = a_dropped_second_packet(5, 4);
    assert_eq!(time(&outcome, 0, ["retransmission", "fast_recovery", "host0.port", "flow 2"]), third_ack);
    assert_eq!(cause(&outcome, 0, "fast_recovery"), third_ack);
    assert_eq!(cause(&outcome, 0, "reordering"), 0);
}

/// One later packet: RACK waits for a quarter of the shortest round trip, which is the handshake's in whole
/// microseconds, whether the other one is only late.
#[test]
fn one_later_packet_leaves_a_doubt() {
    let (outcome, only_ack) = a_dropped_second_packet(3, 1);
    assert_eq!(time(&outcome, 0, ["retransmission", "fast_recovery", "host0.port", "flow 2"]), only_ack);
    assert_eq!(time(&outcome, 0, ["retransmission", "reordering", "host0.port", "flow 2"]), HANDSHAKE / US * US / 4);
    assert_eq!(cause(&outcome, 0, "reordering"), HANDSHAKE / US * US / 4);
}

/// A client reads twice, over connections that stay open. Its connection carries the second request, of 100 B, once the
/// first reply has arrived, over a connection that the server opens when it has the first request.
#[test]
fn a_program_writes_later() {
    let reads = "[[workload]]\nkind = \"key_value\"\nfrom = \"host1\"\nto = \"host0\"\nreads = 2\nvalues = 1\nsize = \
                 \"1000B\"\n";
    let outcome = exact(&format!("{STAR}{reads}"), &[]);
    let request = ACK + 2 * 152 * 800 + 2 * US;
    // The ACK of the request leaves before the SYN.
    let reply = ACK + HANDSHAKE + ACK + 2 * 1052 * 800 + 2 * US;
    assert_eq!(time(&outcome, 0, ["application", "application", "host1", ""]), request + reply);
    assert_eq!(cause(&outcome, 0, "application"), request + reply);
}

/// Messages that follow a computation of 5 us.
#[test]
fn a_program_computes_before_it_writes() {
    let halo = "[[workload]]\nkind = \"goal\"\napplication = \"halo\"\nranks = 2\niterations = 2\nsize = \"1000B\"\n\
                compute = \"5us\"\n";
    let outcome = exact(&format!("{STAR}{halo}"), &[]);
    let (causes, times) =
        (names(&outcome, "message_account", "cause"), integers(&outcome, "message_account", "time_ps"));
    let computed: Vec<i64> =
        causes.iter().zip(times).filter(|(cause, _)| **cause == "computation").map(|(_, time)| *time).collect();
    // Two iterations, each on the path.
    assert_eq!(computed, [5 * US; 2]);
}

/// A program works for 115.84 us on the first packet, which it takes 0.4 ns after its arrival, at the next nanosecond
/// of its host's clock. It reads the second one, which arrives 1.2 us after the first, when it has done that.
#[test]
fn a_program_reads_later() {
    let outcome = exact(&format!("{STAR}{}read_rate = \"100Mbps\"\n", flow(1, 0, 2 * 1448, "0s")), &[]);
    let work = 1448 * 80 * US / 1000;
    assert_eq!((HANDSHAKE + ACK + 2 * FULL + 2 * US) % 1000, 600);
    assert_eq!(time(&outcome, 0, ["delivery", "reader", "host0", ""]), work + 400 - FULL);
    assert_eq!(cause(&outcome, 0, "reader"), work + 400 - FULL);
}

/// Timeouts last 250 ms. A hole is filled, and the ACK of everything says that the window is closed, because the data
/// behind the hole take the memory. When the program has read, another ACK opens the window: with this seed it is lost.
/// The sender probes 250 ms after the first ACK.
#[test]
fn a_closed_window_is_probed() {
    let set = [
        ("seed", "69"),
        ("hosts.mtu", "9000B"),
        ("hosts.loss", "0.02"),
        ("tcp.receive_window", "10000B"),
        ("tcp.rto_min", "250ms"),
        ("tcp.rto_max", "250ms"),
        ("tcp.rto_initial", "250ms"),
    ];
    let outcome = exact(&format!("{STAR}{}", flow(1, 0, 100_000, "0s")), &set);
    assert_eq!(time(&outcome, 0, ["receive_window", "window_probe", "host1", ""]), 250_000 * US);
    assert_eq!(cause(&outcome, 0, "window_probe"), 250_000 * US);
}

/// The day of racks 1 and 0 ends at 120 us, and the next one begins at 260 us, after a night of 20 us. The flow's data
/// are an elephant's, and come to their VOQ before: the packet network does not carry them. SYN, SYN-ACK and ACK are
/// mice, which it carries over four links at any time.
#[test]
fn an_elephant_waits_for_its_circuit() {
    let set = [("segregation.elephant", "1B")];
    let outcome = exact(&format!("{RACKS}{}", flow(1, 0, 8948, "100us")), &set);
    let arrival = 100 * US + 2 * (4 * SYN + 10 * US) + ACK + 9000 * 800;
    assert!(arrival > 120 * US && arrival < 240 * US);
    assert_eq!(time(&outcome, 0, ["delivery", "no_circuit", "voq.1.0", ""]), 240 * US - arrival);
    assert_eq!(["no_circuit", "night"].map(|name| cause(&outcome, 0, name)), [240 * US - arrival, 20 * US]);
}

/// The SYN takes the day of racks 1 and 0, and the SYN-ACK that of racks 0 and 1, from 140 us on, each at 100 Gb/s and
/// in 20 us. The first packet fills the window, and takes 118 us over the packet network, its ACK 90. The pair's next
/// day is at 260 us, and the notice of it, 3 us later, makes room for the second packet.
#[test]
fn a_notice_makes_room() {
    let set = [
        ("tcp.cc", "retcp"),
        ("tcp.initial_window", "1"),
        ("marks.carrier", "notices"),
        ("marks.delay", "3us"),
        ("packet.delay", "45us"),
    ];
    let outcome = exact(&format!("{RACKS}{}", flow(1, 0, 2 * 8948, "100us")), &set);
    let first = 140 * US + SYN / 10 + 20 * US + SYN;
    assert_eq!(time(&outcome, 0, ["congestion_window (slow start)", "notice", "host1", ""]), 263 * US - first);
    assert_eq!(cause(&outcome, 0, "notice"), 263 * US - first);
}

/// When the ACK of a packet arrives on `SLOW_LINK`, for packets from 1 on: three links there and three back, of which
/// the slow one lets a packet go each 12 us.
fn ack_of(number: i64) -> i64 {
    let handshake = 6 * US + 2 * (2 + 10) * SYN;
    handshake + ACK + 6 * US + (2 + 10) * FULL + (2 + 10) * ACK + (number - 1) * 10 * FULL
}

/// The buffer holds five packets and a part of the sixth, which waits: the ACK of the first packet makes room for the
/// rest of it.
#[test]
fn a_send_buffer_holds_the_program_back() {
    let outcome = exact(&format!("{STAR}{}", flow(1, 0, 6 * 1448, "0s")), &[("tcp.send_buffer", "8000B")]);
    let round_trip = 2 * FULL + 2 * ACK + 4 * US;
    assert_eq!(time(&outcome, 0, ["send_buffer", "", "", ""]), ACK + round_trip);
    assert_eq!(cause(&outcome, 0, "application"), 0);
}

/// A client writes 40 B of its request and then 60 B. With Nagle's algorithm the second part waits for the ACK of the
/// first, which the server sends at once.
#[test]
fn a_small_segment_waits_for_an_ack() {
    let reads = "[[workload]]\nkind = \"key_value\"\nfrom = \"host1\"\nto = \"host0\"\nreads = 1\nvalues = 1\nsize = \
                 \"1000B\"\nheader = \"40B\"\nnagle = true\n";
    let outcome = exact(&format!("{STAR}{reads}"), &[]);
    let round_trip = ACK + 2 * 92 * 800 + 2 * ACK + 4 * US;
    assert_eq!(time(&outcome, 0, ["small_segment", "", "", ""]), round_trip);
    assert_eq!(cause(&outcome, 0, "delayed_ack"), 0);
}

/// Both packets of the window meet a full queue. The timeout leaves a window of one, whose ACK releases a new packet
/// (F-RTO); the ACK of this one, with a block of SACK, shows that the second packet was lost as well, and makes room.
#[test]
fn a_timeout_sets_the_window() {
    let flows = [(1, 2, "0ns"), (2, 2, "50ns"), (3, 3, "100ns")];
    let flows: String = flows.map(|(host, packets, start)| flow(host, 0, packets * 1448, start)).concat();
    let set = [("tcp.tail_loss_probe", "false"), ("tcp.rto_min", "200ms"), ("tcp.initial_window", "2")];
    let outcome = exact(&format!("{STAR}[switch]\nqueue = 1\n{flows}"), &set);
    let round_trip = 2 * FULL + 2 * ACK + 4 * US;
    assert_eq!(time(&outcome, 2, ["congestion_window (after a timeout)", "", "", ""]), 2 * round_trip + 2 * 12 * 800);
    assert_eq!(cause(&outcome, 2, "rto"), 200_000 * US + HANDSHAKE / US * US);
}

/// Six packets are on their way when the third ACK with SACK shows the loss, and the window becomes three: it lets the
/// lost packet go, and behind it a new one. The ACK of this one makes room for the last.
#[test]
fn a_recovery_sets_the_window() {
    let flows = format!("{}{}{}", flow(1, 0, 12 * 1448, "400ns"), flow(2, 0, 1448, "0ns"), flow(3, 0, 1448, "1400ns"));
    let set = [("hosts.delay", "4us"), ("tcp.cc", "newreno"), ("tcp.initial_window", "5")];
    let outcome = exact(&format!("{STAR}[switch]\nqueue = \"3100B\"\n{flows}"), &set);
    let round_trip = 2 * FULL + 2 * ACK + 16 * US;
    let window = "congestion_window (after a fast recovery)";
    assert_eq!(time(&outcome, 0, [window, "", "", ""]), FULL + round_trip);
    assert_eq!(time(&outcome, 0, [window, "interface_queue", "host1.nic", "flow 0"]), FULL);
}

/// Of the first two packets none waits long enough for a mark. Their ACKs, and that of the third, release two packets
/// each. The fourth ACK says that its packet was marked: a window of five becomes two. So the tenth packet leaves when
/// the eighth, which the third ACK has released, is acknowledged.
#[test]
fn a_mark_sets_the_window() {
    let set = [
        ("tcp.cc", "newreno"),
        ("tcp.ecn", "true"),
        ("tcp.initial_window", "2"),
        ("tcp.tail_loss_probe", "false"),
        ("switch.ecn", "1"),
        ("switch.queue", "100"),
    ];
    let outcome = exact(&format!("{SLOW_LINK}{}", flow(0, 1, 10 * 1448, "0s")), &set);
    assert_eq!(time(&outcome, 0, ["congestion_window (after a mark)", "", "", ""]), ack_of(8) - ack_of(3));
    let started = 6 * US + 2 * (2 + 10) * SYN;
    assert_eq!(time(&outcome, 0, ["congestion_window (slow start)", "", "", ""]), ack_of(3) - started);
}

/// Vegas ends slow start when its round trips show a queue, with a window of four packets here. So the tenth packet
/// leaves when the sixth, which the second ACK has released, is acknowledged.
#[test]
fn a_controller_sets_the_window() {
    let set = [("tcp.cc", "vegas"), ("tcp.initial_window", "3"), ("tcp.tail_loss_probe", "false")];
    let outcome = exact(&format!("{SLOW_LINK}{}", flow(0, 1, 10 * 1448, "0s")), &set);
    let window = "congestion_window (set by the controller)";
    assert_eq!(time(&outcome, 0, [window, "", "", ""]), ack_of(6) - ack_of(2));
}
