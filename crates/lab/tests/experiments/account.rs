//! Accounts computed by hand: a SYN or a SYN-ACK has 60 B, an ACK 52 B, data 52 B of headers; at 10 Gb/s a byte lasts
//! 0.8 ns.

use super::{Set, integers, names, numbers, result};
use firstlight_lab::Outcome;

pub(super) const STAR: &str = "duration = \"3s\"\n[fabric]\nkind = \"star\"\nhosts = 4\n\
                               [hosts]\nrate = \"10Gbps\"\ndelay = \"1us\"\nmtu = \"1500B\"\n";
pub(super) const RACKS: &str = "duration = \"2s\"\n[fabric]\nkind = \"hybrid\"\nracks = 3\nhosts_per_rack = 1\n\
                                [hosts]\nrate = \"10Gbps\"\n[packet]\nrate = \"10Gbps\"\ndelay = \"5us\"\n\
                                [circuit]\nrate = \"100Gbps\"\ndelay = \"20us\"\n[voq]\nsmall = 16\n\
                                [schedule]\nkind = \"strobe\"\nday = \"100us\"\nnight = \"20us\"\n";
pub(super) const SYN: i64 = 60 * 800;
pub(super) const ACK: i64 = 52 * 800;
pub(super) const US: i64 = 1_000_000;

pub(super) fn flow(from: u32, to: u32, size: u64, start: &str) -> String {
    format!("[[flows]]\nfrom = \"host{from}\"\nto = \"host{to}\"\nsize = \"{size}B\"\nstart = \"{start}\"\n")
}

pub(super) fn account(text: &str, set: Set<'_>) -> Outcome {
    result(text, &[&[("measure.account", "true")], set].concat())
}

/// The time of a flow in rows whose names begin so: waiting_for, cause, where, who.
pub(super) fn time(outcome: &Outcome, flow: i64, row: [&str; 4]) -> i64 {
    let columns = ["waiting_for", "cause", "where", "who"].map(|column| names(outcome, "account", column));
    let flows = integers(outcome, "account", "flow");
    let is_asked =
        |index: &usize| flows[*index] == flow && (0..4).all(|column| columns[column][*index].starts_with(row[column]));
    (0..flows.len()).filter(is_asked).map(|index| integers(outcome, "account", "time_ps")[index]).sum()
}

pub(super) fn cause(outcome: &Outcome, flow: i64, cause: &str) -> i64 {
    time(outcome, flow, ["", cause, "", ""])
}

/// What became of the lost packets of a flow, as its events say.
pub(super) fn details(outcome: &Outcome, flow: i64) -> Vec<String> {
    let (flows, all) = (integers(outcome, "account_events", "flow"), names(outcome, "account_events", "detail"));
    (0..flows.len())
        .filter(|row| flows[*row] == flow && !all[*row].is_empty())
        .map(|row| all[row].to_string())
        .collect()
}

#[test]
fn a_lone_packet_is_serialized_and_propagates() {
    let outcome = account(&format!("{STAR}{}", flow(1, 0, 1000, "0s")), &[]);
    // SYN, SYN-ACK and data over two links each; the handshake's ACK leaves just before the data.
    assert_eq!(cause(&outcome, 0, "propagation"), 6 * US);
    assert_eq!(cause(&outcome, 0, "serialization"), 4 * SYN + 2 * 1052 * 800);
    assert_eq!(time(&outcome, 0, ["delivery", "interface_queue", "host1.nic", "flow 0"]), ACK);
    assert_eq!(time(&outcome, 0, ["handshake", "", "", ""]), 4 * US + 4 * SYN);
    let all = 6 * US + 4 * SYN + 2 * 1052 * 800 + ACK;
    assert_eq!((cause(&outcome, 0, ""), (numbers(&outcome, "flows", "fct_us")[0] * 1e6).round()), (all, all as f64));
}

#[test]
fn a_packet_queues_behind_another_flow_s() {
    let outcome = account(&format!("{STAR}{}{}", flow(1, 0, 1000, "0s"), flow(2, 0, 1000, "0s")), &[]);
    assert_eq!(cause(&outcome, 0, "queueing"), 0);
    // The second SYN waits for the first. Then the second flow's data come so much later, and wait for the rest.
    assert_eq!(time(&outcome, 1, ["handshake", "queueing", "host0.port", "flow 0"]), SYN);
    assert_eq!(time(&outcome, 1, ["delivery", "queueing", "host0.port", "flow 0"]), 1052 * 800 - SYN);
    assert_eq!(cause(&outcome, 1, "queueing"), 1052 * 800);
}

#[test]
fn stacks_take_their_delays() {
    let set = [("hosts.send_delay", "3us"), ("hosts.receive_delay", "2us")];
    for more in [&[][..], &[("pfc.xoff", "60kB")], &[("adapter.drain", "10Gbps"), ("adapter.receive_buffer", "1MB")]] {
        let outcome = account(&format!("{STAR}{}", flow(1, 0, 1000, "0s")), &[&set[..], more].concat());
        assert_eq!(cause(&outcome, 0, "stack"), 3 * 5 * US, "{more:?}");
    }
}

#[test]
fn windows_ask_for_round_trips() {
    let round_trip = 2 * 1500 * 800 + 2 * ACK + 4 * US;
    let text = format!("{STAR}{}", flow(1, 0, 3 * 1448, "0s"));
    let outcome = account(&text, &[("tcp.initial_window", "1")]);
    // One segment in the first round trip, behind the handshake's ACK; two in the second.
    let window = "congestion_window (slow start)";
    assert_eq!(time(&outcome, 0, [window, "", "", ""]), ACK + round_trip);
    assert_eq!(time(&outcome, 0, ["receive_window", "", "", ""]), 0);
    // A buffer of 40 kB begins with a window of two segments of 9000 B; the ACK of the first one makes it larger.
    let round_trip = 2 * 9000 * 800 + 2 * ACK + 4 * US;
    let text = format!("{STAR}{}", flow(1, 0, 3 * 8948, "0s"));
    let outcome = account(&text, &[("tcp.receive_window", "40kB"), ("hosts.mtu", "9000B")]);
    assert_eq!(time(&outcome, 0, ["receive_window", "", "", ""]), ACK + round_trip);
    assert_eq!(time(&outcome, 0, [window, "", "", ""]), 0);
}

#[test]
fn a_lost_syn_costs_the_first_timeout() {
    let flows: String = (1..4).map(|host| flow(host, 0, 1000, "0s")).collect();
    let outcome = account(&format!("{STAR}[switch]\nqueue = 1\n{flows}"), &[("tcp.tick", "0s")]);
    // Of three SYNs at once one is served, one waits, and one is dropped.
    assert_eq!([0, 1, 2].map(|flow| cause(&outcome, flow, "syn_loss")), [0, 0, 1_000_000 * US]);
    assert!(details(&outcome, 2)[0].starts_with("a SYN dropped at host0.port"), "{:?}", details(&outcome, 2));
}

#[test]
fn a_lost_tail_costs_a_timeout() {
    let flows: String =
        [(1, "0ns"), (2, "50ns"), (3, "100ns")].map(|(host, start)| flow(host, 0, 1000, start)).concat();
    let text = format!("{STAR}[switch]\nqueue = 1\n{flows}");
    let outcome = account(&text, &[("tcp.tick", "0s"), ("tcp.tail_loss_probe", "false"), ("tcp.rto_min", "200ms")]);
    // SYNs come one after the other, data at almost the same time: the third packet is dropped. The timeout is that of
    // RFC 6298 after one sample, the handshake's, in whole microseconds.
    let timeout = 200_000 * US + (4 * US + 4 * SYN) / US * US;
    assert_eq!([0, 1, 2].map(|flow| cause(&outcome, flow, "rto")), [0, 0, timeout]);
    assert_eq!(time(&outcome, 2, ["retransmission", "rto", "host0.port", "flow 1"]), timeout);
    let at = "bytes 0 to 999 (its last) dropped at host0.port at 6.";
    assert!(details(&outcome, 2)[0].starts_with(at), "{:?}", details(&outcome, 2));
    let before = ": the queue was full, behind 2104 B, 100 % of them of flows, 50 % of them of flow 1";
    assert!(details(&outcome, 2)[0].ends_with(before), "{:?}", details(&outcome, 2));
}

/// As above, and flows 3 and 4 stand ahead of the packet when the first timeout has sent it again, as flows 0 and 1 did
/// before. The second timeout is twice as long.
#[test]
fn a_tail_that_is_lost_twice_costs_a_timeout_and_its_back_off() {
    let starts = ["0ns", "50ns", "100ns", "200004us", "200004050ns"];
    let flows: String =
        [1, 2, 3, 1, 2].into_iter().zip(starts).map(|(host, start)| flow(host, 0, 1000, start)).collect();
    let text = format!("{STAR}[switch]\nqueue = 1\n{flows}");
    let outcome = account(&text, &[("tcp.tick", "0s"), ("tcp.tail_loss_probe", "false"), ("tcp.rto_min", "200ms")]);
    let timeout = 200_000 * US + (4 * US + 4 * SYN) / US * US;
    assert_eq!([0, 1, 2].map(|flow| cause(&outcome, flow, "rto")), [0, 0, 3 * timeout]);
    let details = details(&outcome, 2);
    assert!(details[0].ends_with("50 % of them of flow 1"), "{details:?}");
    assert!(details[1].ends_with("50 % of them of flow 4; timeout 2 in a row (back-off 1)"), "{details:?}");
}

#[test]
fn a_night_holds_packets_in_their_voq() {
    let outcome = account(&format!("{RACKS}{}", flow(0, 1, 1000, "0s")), &[]);
    // The SYN passes the packet network: two hosts' links, the uplink and the downlink at 10 Gb/s. The SYN-ACK comes to
    // its VOQ in the night before the first day of racks 1 and 0, which begins at 20 us.
    let syn = 4 * SYN + 10 * US;
    assert_eq!(time(&outcome, 0, ["handshake", "night", "voq.1.0", ""]), 20 * US - syn - SYN);
    assert_eq!(cause(&outcome, 0, "unknown"), 0);
}

#[test]
fn losses_have_their_reasons() {
    let flows: String = (1..4).map(|host| flow(host, 0, 50_000, "0s")).collect();
    let (star, racks) = (format!("{STAR}{flows}"), format!("{RACKS}{}", flow(0, 1, 1_000_000, "0s").repeat(4)));
    // Each flow's second segment waits for the ACK of the first.
    let short: String = (0..60).map(|start| flow(1, 0, 2000, &format!("{start}ms"))).collect();
    let short = format!("{STAR}{short}");
    let acks = [("hosts.loss", "0.2"), ("tcp.initial_window", "1"), ("measure.account_events", "60")];
    let buffer = [("adapter.drain", "1Gbps"), ("adapter.receive_buffer", "9kB")];
    let early = [("switch.queue", "100"), ("switch.ecn", "4"), ("switch.drop_non_ect", "1")];
    // The circuit is slower than the host: the VOQ holds more at the end of the day than it may at night.
    let shrinks = [("voq.large", "60"), ("voq.advance", "30us"), ("circuit.rate", "2Gbps"), ("hosts.mtu", "1500B")];
    let cases: [(&str, Set<'_>, &str); 5] = [
        (&star, &buffer, ": the receive buffer was full"),
        (&star, &[("hosts.loss", "0.1")], ": an injected fault"),
        (&short, &acks, "the ACK of bytes 0 to 1447 lost at host0 at "),
        (&star, &early, ": the queue was full, or dropped it early"),
        (&racks, &shrinks, ": its VOQ became small"),
    ];
    for (text, set, reason) in cases {
        let outcome = account(text, set);
        let details = names(&outcome, "account_events", "detail");
        assert!(details.iter().any(|detail| detail.contains(reason)), "{reason}: {details:?}");
    }
}
