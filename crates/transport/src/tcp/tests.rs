//! Scenarios: two connections over a wire that loses, marks and delays the packets that a scenario names. A failing
//! scenario prints the history of its packets.

use super::*;
use crate::cc::{CcConfig, Controller, Latency, SwiftConfig, TimelyConfig};
use crate::{Autotune, EctSyn};
use firstlight_net::HostId;
use firstlight_units::{Bytes, Rate};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const MS: Span = Span::from_ms(1);
const US: Span = Span::from_us(1);

/// A wire between two connections: every packet takes `delay`, data packets also `spacing` after the one before.
struct Wire {
    now: Time,
    ends: [Connection; 2],
    flying: BTreeMap<(Time, u64), (usize, Packet)>,
    count: u64,
    delay: Span,
    spacing: Span,
    free: Time,
    /// Data packets sent so far, copies included: the numbers by which a scenario names packets.
    data: u64,
    lose: BTreeSet<u64>,
    /// The first retransmission is lost.
    lose_copy: bool,
    mark: BTreeSet<u64>,
    hold: BTreeMap<u64, Span>,
    /// Everything is lost from..to.
    blackout: Option<(Time, Time)>,
    /// ECN-Echo is set on every ACK from..to, as a circuit's switch would.
    echo: Option<(Time, Time)>,
    /// By how much each end's clock is ahead in nanoseconds, and drifts in ppm: what its interface's timestamps are of.
    clocks: [(u64, f64); 2],
    /// Packets with data that came to end 1: t1 and t2, payload and the true time on the way.
    on_the_way: BTreeMap<(u32, u32), (u32, Span)>,
    /// What ACKs reported to end 0 of such packets: t1 and t2, and the delays.
    reported: Vec<((u32, u32), Latency)>,
    history: Vec<String>,
}

impl Wire {
    fn new(cc: &str, tcp: TcpConfig) -> Self {
        Self::with_isn(cc, tcp, 1000)
    }

    fn with_isn(cc: &str, tcp: TcpConfig, isn: u32) -> Self {
        let mut cc = CcConfig::from_name(cc).unwrap();
        if let CcConfig::Swift(swift) = &mut cc {
            // The way there and back takes 107 us here, which is no congestion.
            swift.base_target = US * 150;
        }
        Self::with_cc(cc, tcp, isn)
    }

    fn with_cc(cc: CcConfig, tcp: TcpConfig, isn: u32) -> Self {
        let end = |host| Endpoint { host: HostId(host), port: 10_000 };
        let connection = |a, b, isn| Connection::new(&tcp, &cc, end(a), end(b), isn);
        let mut wire = Wire {
            now: Time::ZERO,
            ends: [connection(0, 1, isn), connection(1, 0, isn.wrapping_mul(7))],
            flying: BTreeMap::new(),
            count: 0,
            delay: US * 50,
            spacing: US * 7,
            free: Time::ZERO,
            data: 0,
            lose: BTreeSet::new(),
            lose_copy: false,
            mark: BTreeSet::new(),
            hold: BTreeMap::new(),
            blackout: None,
            echo: None,
            clocks: [(0, 0.0); 2],
            on_the_way: BTreeMap::new(),
            reported: Vec::new(),
            history: Vec::new(),
        };
        wire.ends[0].connect(Time::ZERO);
        wire.pump(0);
        wire
    }

    fn lose(mut self, packets: impl IntoIterator<Item = u64>) -> Self {
        self.lose.extend(packets);
        self
    }

    fn send(mut self, packets: u64) -> Self {
        let mss = u64::from(self.ends[0].terms.mss);
        let now = self.now;
        self.ends[0].write(packets * mss, now);
        self.pump(0);
        self
    }

    fn during(range: Option<(Time, Time)>, now: Time) -> bool {
        range.is_some_and(|(from, to)| (from..to).contains(&now))
    }

    /// Where there is nothing to ask a sender for, asking it would yield nothing and leave it as it is.
    fn idle_polls_change_nothing(&mut self, from: usize) {
        let established = self.ends[from].is_established();
        let Connection { sender, terms, .. } = &mut self.ends[from];
        if established && !sender.has_work() {
            let before = format!("{sender:?}");
            assert!(sender.poll(self.now, terms).is_none(), "{from} has a segment to send at {}", self.now);
            assert_eq!(format!("{sender:?}"), before);
        }
    }

    fn pump(&mut self, from: usize) {
        let mut p = Packet::default();
        loop {
            let copies = self.ends[from].stats().retransmits;
            self.idle_polls_change_nothing(from);
            if !self.ends[from].transmit(self.now, &mut p) {
                break;
            }
            let copy = self.ends[from].stats().retransmits > copies;
            let (mut at, mut leaves) = (self.now, self.now);
            let mut fate = "";
            if p.is_data() {
                self.data += 1;
                leaves = self.free.max(self.now);
                at = leaves + self.spacing;
                self.free = at;
                at += self.hold.get(&self.data).copied().unwrap_or(Span::ZERO);
                if self.mark.contains(&self.data) && p.ecn() != Ecn::NotEct {
                    p.mark();
                    fate = "marked";
                }
            }
            if from == 1 && Self::during(self.echo, self.now) {
                p.tcp_mut().unwrap().insert_flags(TcpFlags::ECE);
            }
            let lost = (p.is_data() && self.lose.contains(&self.data))
                || (copy && std::mem::take(&mut self.lose_copy))
                || Self::during(self.blackout, self.now);
            if lost {
                fate = "lost";
            }
            if p.has_stamps() {
                let sent = self.clock(from, leaves);
                p.set_stamps(Stamps { sent, ..p.stamps() });
                p.set_queued_at(leaves);
            }
            let (n, now) = (if p.is_data() { self.data } else { 0 }, self.now);
            let segment = p.tcp().unwrap();
            let (seq, ack, flags, cwnd) = (segment.seq(), segment.ack(), segment.flags(), self.ends[from].cwnd());
            let sack: Vec<_> = segment.sack_blocks().collect();
            self.history.push(format!("{now} {from} #{n} seq {seq} ack {ack} {flags:?} {sack:?} cwnd {cwnd} {fate}"));
            if !lost {
                self.count += 1;
                self.flying.insert((at + self.delay, self.count), (1 - from, p));
            }
        }
        self.ends[from].sender.board.check();
    }

    /// An end's clock in nanoseconds, as its interface stamps it.
    fn clock(&self, end: usize, at: Time) -> u32 {
        let (ahead, drift) = self.clocks[end];
        (ahead + (at.as_ps() as f64 / 1e3 * (1.0 + drift / 1e6)) as u64) as u32
    }

    /// A packet with timestamps comes to an end's interface. Its own `sent` is when its first bit entered the wire.
    fn stamp(&mut self, to: usize, p: &mut Packet, at: Time) {
        let received = self.clock(to, at);
        p.set_stamps(Stamps { received, ..p.stamps() });
        let Stamps { echo_sent, echo_received, sent, .. } = p.stamps();
        if to == 1 && p.is_data() {
            self.on_the_way.insert((sent, received), (p.payload(), at - p.queued_at()));
        } else if let Some(latency) = latency::measured(p).filter(|_| to == 0) {
            self.reported.push(((echo_sent, echo_received), latency));
        }
    }

    /// Runs until `until`.
    fn run(mut self, until: Time) -> Self {
        loop {
            let arrival = self.flying.first_key_value().map(|(&key, _)| key);
            let timeouts = [0, 1].map(|i| self.ends[i].poll_timeout().unwrap_or(Time::MAX));
            let next = arrival.map_or(Time::MAX, |(at, _)| at).min(timeouts[0]).min(timeouts[1]);
            if next > until {
                self.now = until;
                return self;
            }
            assert!(next >= self.now, "time runs forward");
            self.now = next;
            if let Some(key) = arrival.filter(|&(at, _)| at == next) {
                let (to, mut p) = self.flying.remove(&key).unwrap();
                if p.has_stamps() {
                    self.stamp(to, &mut p, next);
                }
                self.ends[to].on_segment(p.tcp().unwrap(), next);
                self.pump(to);
            } else {
                let i = usize::from(timeouts[0] != next);
                self.history.push(format!("{next} {i} timeout {:?}", self.ends[i].sender.timer.purpose));
                self.ends[i].on_timeout(next);
                self.pump(i);
                assert!(self.ends[i].poll_timeout() != Some(next), "a timer that fired is armed for later");
            }
        }
    }

    fn run_for(self, span: Span) -> Self {
        let until = self.now + span;
        self.run(until)
    }

    /// What the sender counted.
    fn stats(&self) -> Stats {
        Stats { established: None, ..*self.ends[0].stats() }
    }

    fn received_packets(&self) -> u64 {
        self.ends[1].bytes_received() / u64::from(self.ends[0].terms.mss)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let skip = self.history.len().saturating_sub(120);
            eprintln!("the last packets of {}:\n{}", self.history.len(), self.history[skip..].join("\n"));
        }
    }
}

fn after_ms(ms: u64) -> Time {
    Time::ZERO + MS * ms
}

#[test]
fn handshake_then_the_initial_window() {
    let wire = Wire::new("newreno", TcpConfig::default()).run(after_ms(1));
    assert!(wire.ends.iter().all(Connection::is_established));
    assert_eq!(wire.ends[0].srtt(), Some(US * 100));
    // The initial window is 10, but a SYN's receive window is not scaled: 65535 bytes hold 7 segments of 8948.
    let wire = wire.send(100).run_for(US * 10);
    assert_eq!((wire.ends[0].cwnd(), wire.data), (10, 7));
    let wire = wire.run_for(MS * 5);
    assert_eq!(wire.received_packets(), 100);
    assert_eq!(wire.ends[0].bytes_acked(), wire.ends[1].bytes_received());
    // The ends of three bursts lie where the receive window ended.
    assert_eq!(wire.stats(), Stats { packets_sent: 103, ..Stats::default() });
}

/// RFC 6582: each partial acknowledgement retransmits a packet at once, so that 60 losses take 60 round trips and no
/// timeout. Under proportional rate reduction packets of unknown fate count as in flight, and the sender waits for a
/// timeout.
#[test]
fn many_losses_without_sack_take_a_round_trip_each() {
    for prr in [false, true] {
        let receive_window = Bytes::new(4 << 20);
        let tcp = TcpConfig { sack: false, prr, receive_window, autotune: Autotune::Off, ..TcpConfig::default() };
        let wire = Wire::new("newreno", tcp).run(after_ms(1)).lose(100..160).send(1000).run_for(MS * 1000);
        assert_eq!(wire.received_packets(), 1000);
        let Stats { retransmits, timeouts, recoveries, .. } = wire.stats();
        if prr {
            assert!(timeouts > 0);
        } else {
            assert_eq!((retransmits, timeouts, recoveries), (60, 0, 1));
        }
    }
}

/// The client answers the SYN-ACK with an empty packet even where data are waiting.
#[test]
fn the_handshake_has_a_packet_of_its_own() {
    let wire = Wire::new("newreno", TcpConfig::default()).send(1).run_for(US * 100);
    let sent: Vec<_> = wire.history.iter().filter(|line| line.starts_with("100us 0")).collect();
    assert_eq!(sent.len(), 2, "{:?}", wire.history);
    assert!(sent[0].contains("#0 seq 1001") && sent[1].contains("#1 seq 1001"), "{sent:?}");
}

/// As measured on Linux with a tick of 4 ms: the first five timeouts are a second, and the wheels round them up.
#[test]
fn a_syn_without_an_answer_is_sent_again() {
    let end = |host| Endpoint { host: HostId(host), port: 1 };
    let mut client =
        Connection::new(&TcpConfig::default(), &CcConfig::from_name("newreno").unwrap(), end(0), end(1), 0);
    client.connect(Time::ZERO);
    let times: Vec<Time> = std::iter::from_fn(|| {
        let at = client.poll_timeout()?;
        client.on_timeout(at);
        Some(at)
    })
    .take(7)
    .collect();
    assert_eq!(times, [1024, 2048, 3072, 4096, 5120, 7136, 11_264].map(after_ms));
}

/// As measured on Linux (docs/models/tcp.md): the window of a host that tunes it starts at seven jumbo packets and
/// grows by two for each in order, and those are acknowledged one by one; then it is twice what arrives in a round
/// trip.
#[test]
fn the_receive_window_is_tuned() {
    let mut wire = Wire::new("newreno", TcpConfig::default()).send(u64::MAX / 100_000);
    let offered = |wire: &Wire| wire.ends[0].sender.window_end - wire.ends[0].sender.una;
    wire = wire.run_for(US * 150);
    assert_eq!(offered(&wire), 62_636);
    wire = wire.run_for(US * 58);
    let (window, mss) = (offered(&wire), u64::from(wire.ends[0].terms.mss));
    // Room for a segment stays free at first.
    let grown = 65_536 - mss + 2 * mss;
    assert!((grown..grown + 128).contains(&window), "{window}");
    // As long as it grows a packet makes an ACK, also where nothing asks for quick ones.
    let slow = TcpConfig { quick_acks: 0, autotune: Autotune::Off, ..TcpConfig::default() };
    let quiet = Wire::new("newreno", slow).send(u64::MAX / 100_000).run(after_ms(1));
    let acks = quiet.history.iter().filter(|line| line.contains(" 1 #0 ")).count();
    assert!((110..=quiet.received_packets() as usize + 2).contains(&acks), "{acks} of {}", quiet.received_packets());
    wire = wire.run(after_ms(20));
    // 7 us a packet: about 16 in a round trip of 107 us and more.
    assert!((2 * 15 * mss..=2 * 20 * mss).contains(&offered(&wire)), "{}", offered(&wire));
    let fixed = TcpConfig { autotune: Autotune::Off, ..TcpConfig::default() };
    let wire = Wire::new("newreno", fixed).send(u64::MAX / 100_000).run(after_ms(20));
    assert!(wire.ends[0].sender.window_end - wire.ends[0].sender.una > 6_000_000);
}

/// What goes out at each moment: whether each packet has a push.
fn bursts(bursts: bool) -> Vec<Vec<bool>> {
    let mut wire = Wire::new("newreno", TcpConfig { autotune: Autotune::Off, bursts, ..TcpConfig::default() });
    wire.spacing = Span::from_us(20);
    wire.ends[0].sender.window.ssthresh = 12;
    let wire = wire.send(2000).run(after_ms(20));
    let mut bursts = std::collections::BTreeMap::<&str, Vec<bool>>::new();
    for line in wire.history.iter().filter(|line| line.contains(" 0 #") && !line.contains(" #0 ")) {
        bursts.entry(line.split(' ').next().unwrap()).or_default().push(line.contains('P'));
    }
    bursts.into_values().collect()
}

/// The window was full: an ACK of two packets lets two go, and one more where it grows.
#[test]
fn without_bursts_each_ack_lets_go_what_it_acknowledges() {
    let late: Vec<usize> = bursts(false).iter().skip(100).map(Vec::len).collect();
    let more = late.iter().filter(|&&packets| packets > 2).count();
    assert!(late.len() > 100 && more * 10 < late.len(), "once per window, and at a recovery's end: {late:?}");
}

/// Ten packets or more in flight: pieces of seven, or a third of the window, and each ends with a push, unless it is a
/// lone packet. Without something to wait for, nothing waits.
#[test]
fn new_data_go_out_in_bursts() {
    let bursts = bursts(true);
    let ends = |burst: &Vec<bool>| burst.iter().rev().take(2).any(|push| *push);
    assert!(bursts.iter().all(|burst| burst.len() == 1 || ends(burst)), "{bursts:?}");
    let late: Vec<usize> = bursts.iter().skip(bursts.len() / 2).map(Vec::len).collect();
    let whole = late.iter().filter(|&&packets| packets == 7).count();
    assert!(whole * 3 > late.len() * 2, "{late:?}");
}

/// Slow start by hand: of 7 packets (see above) the last came alone and without a push, so that its ACK waits: 6 raise
/// 10 to 16.
#[test]
fn slow_start_adds_what_is_acknowledged() {
    let mut wire = Wire::new("newreno", TcpConfig::default());
    wire.spacing = Span::ZERO;
    let wire = wire.run(after_ms(1)).send(1000).run_for(US * 99);
    assert_eq!(wire.ends[0].cwnd(), 10);
    let wire = wire.run_for(US * 100);
    assert_eq!(wire.ends[0].cwnd(), 16);
    let acked = wire.ends[0].bytes_acked();
    let wire = wire.run_for(US * 100);
    let packets = (wire.ends[0].bytes_acked() - acked) as f64 / f64::from(wire.ends[0].terms.mss);
    assert!((f64::from(wire.ends[0].cwnd()) - 16.0 - packets).abs() < 2.0, "{} {packets}", wire.ends[0].cwnd());
}

#[test]
fn one_loss_is_one_recovery_and_no_timeout() {
    for cc in CcConfig::NAMES {
        let wire = Wire::new(cc, TcpConfig::default()).lose([40]).send(200).run(after_ms(20));
        assert_eq!(wire.received_packets(), 200, "{cc}");
        let Stats { retransmits, timeouts, recoveries, undos, .. } = wire.stats();
        assert_eq!((retransmits, timeouts, recoveries, undos), (1, 0, 1, 0), "{cc}");
    }
}

#[test]
fn recovery_ends_at_the_threshold() {
    let mut wire = Wire::new("newreno", TcpConfig::default()).lose([60]).send(10_000);
    while wire.stats().recoveries == 0 {
        wire = wire.run_for(US * 5);
    }
    let (threshold, before) = (wire.ends[0].ssthresh().unwrap(), wire.ends[0].sender.prior_cwnd);
    assert_eq!(threshold, before / 2);
    while wire.ends[0].sender.phase == sender::Phase::Recovery {
        wire = wire.run_for(US);
    }
    assert!((threshold..=threshold + 1).contains(&wire.ends[0].cwnd()), "{} of {before}", wire.ends[0].cwnd());
}

/// In a recovery in flight is what the window lets out, but a copy does not say that the window limits the program.
#[test]
fn a_copy_does_not_make_the_window_limit_the_program() {
    let wire = Wire::new("newreno", TcpConfig::default()).lose([110]).send(100).run(after_ms(5));
    let before = wire.ends[0].cwnd();
    assert!(before > 60);
    let wire = wire.send(30).run(after_ms(10));
    assert_eq!((wire.stats().recoveries, wire.received_packets()), (1, 130));
    assert_eq!(wire.ends[0].cwnd(), before / 2, "the ACK that ends the recovery lets the window not grow");
    assert_eq!((wire.ends[0].sender.limited, wire.ends[0].sender.window.credit), (false, 0));
}

#[test]
fn many_losses_in_a_window_are_repaired_in_one_recovery() {
    let wire = Wire::new("cubic", TcpConfig::default()).lose((60..80).step_by(2)).send(400).run(after_ms(30));
    assert_eq!(wire.received_packets(), 400);
    assert_eq!((wire.stats().retransmits, wire.stats().timeouts), (10, 0));
}

#[test]
fn a_lost_retransmission_is_found_without_a_timeout() {
    // With a window that has room: what is sent after the copy shows that it was lost.
    let tcp = TcpConfig { autotune: Autotune::Off, ..TcpConfig::default() };
    let mut wire = Wire::new("newreno", tcp).lose([40]).send(2000);
    wire.lose_copy = true;
    let wire = wire.run(after_ms(60));
    assert_eq!(wire.received_packets(), 2000);
    assert_eq!((wire.stats().retransmits, wire.stats().timeouts), (2, 0));
}

#[test]
fn a_probe_repairs_a_lost_tail() {
    // Of 21 packets, for one ends where the receive window ended.
    let wire = Wire::new("cubic", TcpConfig::default()).lose([20, 21]).send(20).run(after_ms(20));
    assert_eq!(wire.received_packets(), 20);
    assert_eq!((wire.stats().timeouts, wire.stats().probes), (0, 1));
}

#[test]
fn a_lone_packet_is_repaired_by_the_timeout() {
    let tcp = TcpConfig { tail_loss_probe: false, ..TcpConfig::default() };
    let wire = Wire::new("cubic", tcp).run(after_ms(10)).lose([1]).send(1);
    // SRTT 100 us + floor 200 ms, in ticks of 4 ms, and the tick after these: due at 8 + 204 + 4 ms.
    let wire = wire.run(after_ms(216) - US);
    assert_eq!(wire.stats().timeouts, 0);
    let wire = wire.run(after_ms(216) + US * 60);
    assert_eq!((wire.stats().timeouts, wire.received_packets()), (1, 1));
}

#[test]
fn timeouts_back_off_and_the_flow_comes_back() {
    let mut wire = Wire::new("newreno", TcpConfig::default()).send(100_000).run(after_ms(20));
    wire.blackout = Some((after_ms(20), after_ms(2000)));
    // From about 20 ms: after 0.2 s, then 0.4, 0.8 and 1.6 s.
    let wire = wire.run(after_ms(2000));
    assert_eq!(wire.stats().timeouts, 3);
    let received = wire.received_packets();
    let wire = wire.run(after_ms(3200));
    assert_eq!(wire.stats().timeouts, 4);
    assert!(wire.received_packets() > received + 1000);
}

/// A timeout that a copy of a lone packet repairs leaves nothing behind that keeps later copies back.
#[test]
fn a_recovery_after_a_timeout_repairs_all_losses() {
    let tcp = TcpConfig { tail_loss_probe: false, ..TcpConfig::default() };
    let wire = Wire::new("newreno", tcp).lose([1]).send(1).run(after_ms(300));
    assert_eq!((wire.stats().timeouts, wire.received_packets()), (1, 1));
    let wire = wire.lose([200, 212]).send(1000).run(after_ms(340));
    assert_eq!((wire.stats().timeouts, wire.received_packets()), (1, 1001));
    assert_eq!(wire.stats().retransmits, 3);
}

/// All packets of a while are held 300 ms: the timeout is spurious, F-RTO finds out and the window is restored.
#[test]
fn a_spurious_timeout_is_undone() {
    let mut wire = Wire::new("newreno", TcpConfig::default()).send(100_000).run(after_ms(3));
    let first = wire.data + 1;
    wire.hold.extend((first..first + 40_000).map(|n| (n, MS * 300)));
    let before = wire.ends[0].cwnd();
    let wire = wire.run(after_ms(400));
    assert!(wire.stats().timeouts >= 1);
    assert!(wire.stats().undos >= 1);
    assert!(wire.ends[0].cwnd() >= before, "{} was {before}", wire.ends[0].cwnd());
}

/// One packet is overtaken by many: a needless retransmission is undone by DSACK and the window comes back.
#[test]
fn reordering_is_undone() {
    let mut wire = Wire::new("newreno", TcpConfig::default()).send(100_000);
    wire.hold.insert(60, US * 90);
    let mut before = 0;
    while wire.stats().recoveries == 0 {
        before = wire.ends[0].cwnd();
        wire = wire.run_for(US);
    }
    let wire = wire.run_for(MS);
    assert_eq!((wire.stats().undos, wire.stats().timeouts), (1, 0));
    assert!(wire.ends[0].cwnd() >= before, "{} was {before}", wire.ends[0].cwnd());
}

#[test]
fn acks_are_delayed_after_the_first_packets() {
    let window = Bytes::new(100_000);
    let tcp = TcpConfig {
        quick_acks: 0,
        tail_loss_probe: false,
        autotune: Autotune::Off,
        receive_window: window,
        ..TcpConfig::default()
    };
    // After 20 packets the window has grown, and what grows it is not acknowledged at once any more.
    let mut wire = Wire::new("newreno", tcp).send(20).run(after_ms(100));
    let next = wire.data + 4;
    wire = wire.lose([next]);
    let (mss, before) = (u64::from(wire.ends[0].terms.mss), wire.ends[0].bytes_acked());
    // Of four packets the last, which alone is pushed, is lost: the third waits for the timer, a tick more than 40 ms
    // after the tick that it came in.
    wire = wire.send(4).run_for(MS);
    assert_eq!(wire.ends[0].bytes_acked() - before, 2 * mss);
    assert_eq!(wire.ends[1].poll_timeout(), Some(after_ms(144)));
    wire = wire.run(after_ms(144) + US * 49);
    assert_eq!(wire.ends[0].bytes_acked() - before, 2 * mss);
    wire = wire.run(after_ms(144) + US * 51);
    assert_eq!(wire.ends[0].bytes_acked() - before, 3 * mss);
}

/// Of the ACKs for one gap three go out at once. The others wait for a third of the round trip.
#[test]
fn acks_beyond_a_gap_are_held_back() {
    let acks = |compress_sacks| {
        // A window that grows is reported with each packet.
        let receive_window = Bytes::new(1 << 20);
        let tcp = TcpConfig {
            quick_acks: 0,
            autotune: Autotune::Off,
            receive_window,
            compress_sacks,
            ..TcpConfig::default()
        };
        let mut wire = Wire::new("newreno", tcp).lose([201]).send(2000);
        while wire.stats().retransmits == 0 {
            wire = wire.run_for(US);
        }
        let wire = wire.run_for(US * 50);
        assert_eq!(wire.stats().timeouts, 0);
        wire.history.iter().filter(|line| line.contains("SackBlock")).count()
    };
    let (held, all) = (acks(true), acks(false));
    // A gap of a round trip of 107 us at 7 us a packet: after the third packet one ACK goes out in 36 us and more.
    assert!((5..=6).contains(&held), "{held} of {all}");
    assert!(all >= 14, "{all}");
}

#[test]
fn marks_reduce_once_per_window() {
    let tcp = TcpConfig { ecn: true, ..TcpConfig::default() };
    let mut wire = Wire::new("newreno", tcp).send(100_000);
    wire.mark.extend(60..70);
    let wire = wire.run(after_ms(3));
    assert_eq!((wire.stats().retransmits, wire.stats().recoveries), (0, 0));
    let cwnd = wire.ends[0].cwnd();
    let threshold = wire.ends[0].ssthresh().unwrap();
    assert!(cwnd >= threshold && threshold >= 10, "one halving: {cwnd} {threshold}");
    assert!(wire.history.iter().filter(|line| line.contains('W') && line.contains("seq")).count() <= 3, "CWR once");
}

#[test]
fn handshakes_are_ecn_capable_where_asked_and_ecn_is_negotiated() {
    let handshake = |cc: &str, ecn: bool, ect_syn| {
        let mut wire = Wire::new(cc, TcpConfig { ecn, ect_syn, ..TcpConfig::default() });
        let (_, (_, syn)) = wire.flying.pop_first().expect("a SYN");
        wire.ends[1].on_segment(syn.tcp().unwrap(), wire.now);
        let mut answer = Packet::default();
        assert!(wire.ends[1].transmit(wire.now, &mut answer));
        [syn, answer].map(|packet| packet.ecn() == Ecn::Ect0)
    };
    for (cc, ecn) in [("dctcp", false), ("newreno", true)] {
        assert_eq!(handshake(cc, ecn, None), [false, false]);
        assert_eq!(handshake(cc, ecn, Some(EctSyn::None)), [false, false]);
        assert_eq!(handshake(cc, ecn, Some(EctSyn::SynAck)), [false, true]);
        assert_eq!(handshake(cc, ecn, Some(EctSyn::Both)), [true, true]);
    }
    assert_eq!(handshake("newreno", false, Some(EctSyn::Both)), [false, false]);
}

/// Data packets beyond the first quick ACKs: two for an ACK, one without a delay, whatever the clock's tick.
#[test]
fn without_delay_each_packet_is_acknowledged() {
    for (delayed_ack, acks) in [(MS, 520..600), (Span::ZERO, 1000..1010)] {
        let tcp = TcpConfig {
            delayed_ack,
            receive_window: Bytes::new(1 << 20),
            autotune: Autotune::Off,
            ..TcpConfig::default()
        };
        let wire = Wire::new("newreno", tcp).send(1000).run(after_ms(100));
        let sent = wire.history.iter().filter(|line| line.contains(" 1 #0 ")).count();
        assert!(acks.contains(&sent), "{sent} ACKs with {delayed_ack}");
    }
}

/// Where each packet is marked, DCTCP halves its window until the floor.
#[test]
fn marks_shrink_the_window_to_its_floor() {
    for min_window in [1, 2] {
        let tcp = TcpConfig { min_window, delayed_ack: MS, ..TcpConfig::default() };
        let mut wire = Wire::new("dctcp", tcp).send(10_000);
        wire.mark.extend(0..10_000);
        let wire = wire.run(after_ms(100));
        assert_eq!((wire.ends[0].cwnd(), wire.ends[0].ssthresh()), (min_window, Some(min_window)));
        assert_eq!((wire.stats().retransmits, wire.stats().timeouts), (0, 0));
    }
}

/// A controller that has a floor of its own sends the same packets whatever the window's floor is.
#[test]
fn a_floor_of_its_own_hides_the_window_s() {
    let own = |name: &&&str| CcConfig::from_name(name).unwrap().has_own_floor();
    let named: Vec<&str> = CcConfig::NAMES.iter().filter(own).copied().collect();
    assert_eq!(named, ["timely", "swift", "bbr"]);
    let history = |name, min_window| {
        let tcp = TcpConfig { min_window, ..TcpConfig::default() };
        Wire::new(name, tcp).lose((10..1000).step_by(5)).send(2000).run(after_ms(3000)).history.clone()
    };
    for name in named {
        assert_eq!(history(name, 1), history(name, 2), "{name}");
    }
    assert_ne!(history("newreno", 1), history("newreno", 2));
}

/// A congestion window that nothing reduces stops at its cap, for every controller; so does the first.
#[test]
fn the_window_stops_at_its_cap() {
    for name in CcConfig::NAMES {
        for cap in [4, 30] {
            let tcp = TcpConfig { max_window: Some(cap), ..TcpConfig::default() };
            let wire = Wire::new(name, tcp).send(2000).run(after_ms(400));
            let most = wire.ends[0].cwnd();
            assert!(most <= cap, "{name}: {most}");
        }
    }
    let tcp = TcpConfig { max_window: Some(4), ..TcpConfig::default() };
    assert_eq!(Wire::new("newreno", tcp).send(2000).run(after_ms(400)).ends[0].cwnd(), 4);
}

#[test]
fn without_ecn_nothing_is_marked() {
    let mut wire = Wire::new("newreno", TcpConfig::default()).send(1000);
    wire.mark.extend(60..70);
    let wire = wire.run(after_ms(20));
    assert_eq!(wire.ends[0].ssthresh(), None);
    assert!(!wire.history.iter().any(|line| line.contains("marked")));
}

/// RFC 8257, section 3.2: the echo changes with the mark, and delayed ACKs do not blur where.
#[test]
fn dctcp_echoes_each_mark() {
    let tcp = TcpConfig { quick_acks: 0, autotune: Autotune::Off, ..TcpConfig::default() };
    let mut wire = Wire::new("dctcp", tcp).send(1000);
    wire.mark.extend(31..=35);
    let wire = wire.run(after_ms(20));
    assert_eq!(wire.received_packets(), 1000);
    let number = |line: &str, name: &str| {
        line.split(name).nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok()).unwrap()
    };
    let with =
        |what: &str| wire.history.iter().filter(|line| line.contains(what)).map(String::as_str).collect::<Vec<_>>();
    let marked: Vec<u32> = with("marked").iter().map(|line| number(line, "seq ")).collect();
    let acks: Vec<u32> =
        with(" 1 #0 ").iter().filter(|line| line.contains(" .E ")).map(|line| number(line, "ack ")).collect();
    let last = marked[4] + wire.ends[0].terms.mss;
    assert_eq!((marked.len(), acks.last()), (5, Some(&last)), "{acks:?}");
    assert!(acks.iter().all(|&ack| marked[0] < ack && ack <= last), "{marked:?} {acks:?}");
}

/// What a receiver of DCTCP acknowledges of a peer's first segments, which arrive in this order, some marked: how many
/// are acknowledged, ECE if that is set, and the segments from and to that SACK options report.
fn acks_of(arrivals: &[(usize, bool)]) -> Vec<String> {
    let mut wire = Wire::new("dctcp", TcpConfig { quick_acks: 0, ..TcpConfig::default() }).run(after_ms(1));
    let mss = wire.ends[0].terms.mss;
    wire.ends[0].write(10 * u64::from(mss), wire.now);
    let mut p = Packet::default();
    let mut segments = Vec::new();
    while wire.ends[0].transmit(wire.now, &mut p) {
        segments.push(p);
    }
    let first = segments[0].tcp().unwrap().seq();
    let number = |seq: u32| seq.wrapping_sub(first) / mss;
    let mut acks = Vec::new();
    for &(segment, marked) in arrivals {
        segments[segment].set_ecn(if marked { Ecn::Ce } else { Ecn::Ect0 });
        wire.now += US;
        wire.ends[1].on_segment(segments[segment].tcp().unwrap(), wire.now);
        while wire.ends[1].transmit(wire.now, &mut p) {
            let ack = p.tcp().unwrap();
            let echo = if ack.flags().has(TcpFlags::ECE) { " ECE" } else { "" };
            let blocks = ack.sack_blocks().map(|block| format!(" {}-{}", number(block.start), number(block.end)));
            acks.push(format!("{}{echo}{}", number(ack.ack()), blocks.collect::<String>()));
        }
    }
    acks
}

/// The mark of what has arrived before says nothing.
#[test]
fn the_mark_of_a_duplicate_is_not_echoed() {
    let acks = acks_of(&[(0, false), (1, false), (1, true), (2, false), (3, false)]);
    assert!(acks.len() >= 2 && !acks.iter().any(|ack| ack.contains("ECE")), "{acks:?}");
}

/// The window doubles when marks begin and halves when they end, and only then (NSDI 2020, section 5.3).
#[test]
fn retcp_acts_on_edges() {
    let mut wire = Wire::new("retcp", TcpConfig::default()).send(u64::MAX / 100_000);
    wire.ends[0].sender.window.ssthresh = 8;
    wire = wire.run(after_ms(2));
    let before = wire.ends[0].cwnd();
    wire.echo = Some((after_ms(2), after_ms(3)));
    wire = wire.run(after_ms(2) + US * 110);
    let raised = wire.ends[0].cwnd();
    assert!((2 * before..=2 * before + 3).contains(&raised), "{before} -> {raised}");
    wire = wire.run(after_ms(3) + US * 40);
    let later = wire.ends[0].cwnd();
    wire = wire.run(after_ms(3) + US * 110);
    let lowered = wire.ends[0].cwnd();
    assert!((later / 2..=later / 2 + 2).contains(&lowered), "{later} -> {lowered}");
}

#[test]
fn a_lost_handshake_is_repeated() {
    let mut wire = Wire::new("cubic", TcpConfig::default());
    wire.blackout = Some((Time::ZERO, after_ms(500)));
    wire.flying.clear();
    let wire = wire.send(10).run(after_ms(1500));
    assert_eq!((wire.stats().syn_retransmits, wire.received_packets()), (1, 10));
}

/// RFC 3168, section 6.1.1.1: a SYN that is sent again does not ask for ECN. Where only the SYN-ACK was lost its copy
/// still offers ECN, the round trip is that of the first SYN, and the first data have CWR.
#[test]
fn a_syn_that_is_sent_again_does_not_ask_for_ecn() {
    let tcp = TcpConfig { ecn: true, ..TcpConfig::default() };
    let lose = |from: Span| {
        let mut wire = Wire::new("cubic", tcp);
        wire.blackout = Some((Time::ZERO + from, after_ms(500)));
        if from.is_zero() {
            wire.flying.clear();
        }
        wire.send(10).run(after_ms(1026))
    };
    let syn = lose(Span::ZERO);
    assert!(!syn.ends[0].sender.ecn && !syn.ends[1].sender.ecn);
    assert_eq!(syn.ends[0].srtt().map(|srtt| srtt < MS), Some(true));
    let answer = lose(US);
    assert!(answer.ends[0].sender.ecn && answer.ends[1].sender.ecn);
    assert!(answer.ends[0].srtt() > Some(MS * 100));
    let first = answer.history.iter().find(|line| line.contains("#1 ")).unwrap();
    assert!(first.contains('W'), "{first}");
}

/// RFC 6928, section 2: the first window after two timeouts of the SYN is one packet; after one it is the usual.
#[test]
fn two_timeouts_of_a_syn_leave_a_window_of_one_packet() {
    for (until, at, window) in [(500, 1024, 10), (1500, 2048, 1)] {
        let mut wire = Wire::new("newreno", TcpConfig::default());
        wire.flying.clear();
        wire.blackout = Some((Time::ZERO, after_ms(until)));
        let wire = wire.run(after_ms(at) + US * 150);
        assert!(wire.ends[0].is_established());
        assert_eq!(wire.ends[0].cwnd(), window);
    }
}

/// Half of a buffer of 9 kB has room for no segment of 9000 B: segments become smaller, and no probe has to be waited
/// for.
#[test]
fn a_small_window_makes_segments_smaller() {
    let tcp = TcpConfig { receive_window: Bytes::new(9000), autotune: Autotune::Off, ..TcpConfig::default() };
    let wire = Wire::new("newreno", tcp).send(3).run(after_ms(10));
    assert_eq!((wire.ends[1].bytes_received(), wire.stats().probes), (3 * 8948, 0));
}

/// The stream crosses 2^32 on the wire, losses included.
#[test]
fn sequence_numbers_wrap() {
    let wire = Wire::with_isn("cubic", TcpConfig::default(), u32::MAX - 500_000).lose([50, 55, 56, 57, 58, 59]);
    let wire = wire.send(300).run(after_ms(50));
    assert_eq!(wire.received_packets(), 300);
    assert_eq!(wire.stats().timeouts, 0);
}

#[test]
fn the_receive_window_is_respected() {
    let tcp = TcpConfig { receive_window: Bytes::new(40_000), ..TcpConfig::default() };
    let mut wire = Wire::new("newreno", tcp).send(200);
    while wire.received_packets() < 200 {
        wire = wire.run_for(US);
        assert!(wire.ends[0].sender.next - wire.ends[0].sender.una <= 40_000);
    }
}

/// At most the buffer's whole segments are unacknowledged, all of it is used, and what is held back so does not let the
/// window grow.
#[test]
fn the_send_buffer_is_respected() {
    for bursts in [true, false] {
        let tcp = TcpConfig { send_buffer: Some(Bytes::new(131_072)), bursts, ..TcpConfig::default() };
        let mut wire = Wire::new("newreno", tcp).send(400);
        let mut most = 0;
        while wire.received_packets() < 400 {
            wire = wire.run_for(US);
            most = most.max(wire.ends[0].sender.next - wire.ends[0].sender.una);
        }
        assert_eq!(most, 14 * 8948, "131072 B hold 14 segments");
        // Slow start goes on to twice what is used; the last ACK of it may be for a whole burst.
        assert!(wire.ends[0].cwnd() < 28 + 7, "{}", wire.ends[0].cwnd());
    }
    let tcp = TcpConfig { send_buffer: Some(Bytes::new(1)), ..TcpConfig::default() };
    let wire = Wire::new("newreno", tcp).send(3).run(after_ms(200));
    assert_eq!((wire.received_packets(), wire.stats().timeouts), (3, 0), "less than a segment counts as one");
}

/// Data that come to an end with nothing in flight report the window, and nothing to its controller.
#[test]
fn the_peers_data_report_the_window() {
    let mut wire = Wire::new("dctcp", TcpConfig::default()).send(20).run_for(MS * 20);
    let (now, seq) = (wire.now, wire.ends[0].sender.map.wire(1));
    let end = &mut wire.ends[1];
    let (flags, ack) = (TcpFlags::ACK | TcpFlags::ECE, end.sender.map.wire(end.sender.una));
    let tsval = timestamp(now);
    let tcp = TcpHeader { flags, seq, ack, window: u16::MAX, tsval, ..TcpHeader::default() };
    let data = Packet::new_tcp(FlowTuple::default(), 52, 1000, tcp);
    let before = (format!("{:?} {:?}", end.sender.cc, end.sender.window), end.sender.phase);
    end.on_segment(data.tcp().unwrap(), now);
    assert_eq!(end.sender.window_end, end.sender.una + (u64::from(u16::MAX) << end.terms.scale()));
    assert_eq!(before, (format!("{:?} {:?}", end.sender.cc, end.sender.window), end.sender.phase));
}

/// The clocks are 3 s apart, the receiver's wraps at once, and each drifts by 40 ppm.
fn apart(mut wire: Wire) -> Wire {
    wire.clocks = [(3_000_000_000, -40.0), (u64::from(u32::MAX) - 200_000, 40.0)];
    wire
}

/// What every sample of a run must be: of a full-sized packet, each at most once, its true time on the way behind the
/// clocks, and a round trip with 50 us more, within the resolution and what clocks drift apart while a packet is under
/// way and an ACK waits.
fn check_samples(wire: &Wire) {
    let mss = wire.ends[0].terms.mss;
    let mut seen = BTreeSet::new();
    for &(stamps, Latency { one_way, rtt }) in &wire.reported {
        let (len, way) = wire.on_the_way[&stamps];
        assert!(len >= mss && seen.insert(stamps), "{len} B, {stamps:?}");
        let skew = stamps.0.wrapping_sub(stamps.1);
        assert_eq!(one_way as u32, skew.wrapping_neg());
        let offset = (u64::from(u32::MAX) - 200_000) as f64 - 3e9 + wire.now.as_ps() as f64 * 80e-9;
        let way_ns = (one_way.wrapping_sub(offset as u64 as u32 as i32)) as f64;
        let drift = wire.now.as_ps() as f64 * 80e-9;
        assert!((way_ns - way.as_ps() as f64 / 1e3).abs() <= 3.0 + drift, "{way_ns} ns for {way}");
        let error = rtt.as_ps() as f64 / 1e3 - (way + US * 50).as_ps() as f64 / 1e3;
        assert!(error.abs() <= 2.0 + 80.0, "{rtt} for {way}: {error} ns");
    }
}

/// DX's option is on every packet: 16 bytes more of header, and of three SACK blocks one is left.
#[test]
fn timestamps_take_their_room() {
    let mut wire = Wire::new("dx", TcpConfig { mtu: 1500, ..TcpConfig::default() }).lose([30, 33, 36]);
    assert_eq!(wire.flying.values().map(|(_, p)| (p.size(), p.has_stamps())).collect::<Vec<_>>(), [(76, true)]);
    wire = wire.send(300);
    let mut sizes = BTreeMap::<(usize, u8, u8), u16>::new();
    while wire.received_packets() < 300 {
        wire = wire.run_for(US * 5);
        for (to, p) in wire.flying.values() {
            assert!(p.has_stamps() && p.header() <= 80, "{p:?}");
            let largest = sizes.entry((*to, p.header(), p.tcp().unwrap().sacks())).or_default();
            *largest = p.size().max(*largest);
        }
    }
    assert_eq!(wire.ends[0].terms.mss, 1432);
    assert_eq!(sizes[&(1, 68, 0)], 1500);
    assert_eq!((sizes.get(&(0, 80, 1)), sizes.get(&(0, 88, 2))), (Some(&80), None));
    assert_eq!(wire.stats().timeouts, 0);
    let plain = Wire::new("cubic", TcpConfig { mtu: 1500, ..TcpConfig::default() });
    assert_eq!((plain.flying.values().next().unwrap().1.size(), plain.ends[0].terms.mss), (60, 1448));
}

#[test]
fn the_controller_sees_true_delays() {
    let mut wire = apart(Wire::new("dx", TcpConfig::default())).send(500);
    wire.hold.extend((100..160).map(|n| (n, US * (n % 7))));
    let wire = wire.lose([40, 41, 60]).run(after_ms(15));
    assert_eq!((wire.received_packets(), wire.stats().timeouts), (500, 0));
    check_samples(&wire);
    assert!(wire.reported.len() > 250, "{}", wire.reported.len());
    // The first packet meets no queue: 7 us on the wire and 50 us there, 50 us back.
    let first = wire.reported[0].1.rtt.as_ps() / 1000;
    assert!((106_990..=107_002).contains(&first), "{first}");
    let Controller::Dx(dx) = &wire.ends[0].sender.cc else { panic!() };
    let (rtt, one_way) = dx.base().unwrap();
    assert!(wire.reported.iter().all(|(_, latency)| latency.rtt >= rtt), "{rtt}");
    assert!(wire.reported.iter().any(|(_, latency)| latency.one_way == one_way));
    // A copy is measured as well as an original: what came of the lost ones has t1 of its own.
    assert!(wire.stats().retransmits >= 3);
}

/// Of two packets that one ACK answers the second is measured. An ACK that waits a while is a measure all the same, one
/// that waits for long is none.
#[test]
fn delayed_acks_discard_samples() {
    let round_trips = |delayed_ack| {
        let tcp = TcpConfig {
            quick_acks: 0,
            tail_loss_probe: false,
            delayed_ack,
            tick: Span::ZERO,
            autotune: Autotune::Off,
            receive_window: Bytes::new(100_000),
            ..TcpConfig::default()
        };
        let mut wire = apart(Wire::new("dx", tcp)).send(20).run(after_ms(100));
        // Of four packets the last, which alone is pushed, is lost.
        let last = wire.data + 4;
        wire = wire.lose([last]);
        let (before, acked) = (wire.reported.len(), wire.ends[0].bytes_acked());
        wire = wire.send(4).run_for(MS * 20);
        check_samples(&wire);
        assert_eq!(wire.ends[0].bytes_acked() - acked, 3 * u64::from(wire.ends[0].terms.mss));
        let round_trips = wire.reported[before..].iter().map(|(_, latency)| latency.rtt.as_ps() / 1_000_000);
        round_trips.collect::<Vec<_>>()
    };
    // 107 us, less what drift makes of 300 us and rounding.
    assert_eq!(round_trips(US * 300), [106, 106]);
    assert_eq!(round_trips(MS * 5), [106]);
}

/// Data in both directions: an ACK on a data packet reports as much as one of its own.
#[test]
fn data_packets_carry_echoes() {
    let mut wire = apart(Wire::new("dx", TcpConfig::default())).run(after_ms(1)).send(300);
    let (mss, now) = (u64::from(wire.ends[1].terms.mss), wire.now);
    wire.ends[1].write(300 * mss, now);
    wire.pump(1);
    let mut carried = 0;
    while wire.ends[0].bytes_received() < 300 * mss || wire.received_packets() < 300 {
        wire = wire.run_for(US * 20);
        let echoes = |(to, p): &&(usize, Packet)| *to == 0 && p.is_data() && p.stamps().echo_received != 0;
        carried += wire.flying.values().filter(echoes).count();
    }
    assert!(carried > 20, "{carried}");
    let [client, server] = [0, 1].map(|i| match &wire.ends[i].sender.cc {
        Controller::Dx(dx) => dx.base().unwrap(),
        other => panic!("{other:?}"),
    });
    // Each has the other's offset with the opposite sign.
    let both = client.1.wrapping_add(server.1);
    assert!(
        (114_000..=116_000).contains(&both) && client.0 >= US * 106 && server.0 >= US * 106,
        "{client:?} {server:?}"
    );
}

/// Times at which an end put data on the wire.
fn departures(wire: &Wire) -> Vec<Time> {
    let ps = |text: &str| text.parse::<Span>().unwrap();
    let data = wire.history.iter().filter(|line| line.contains(" 0 #") && !line.contains(" #0 "));
    data.map(|line| Time::ZERO + ps(line.split(' ').next().unwrap())).collect()
}

fn timely(rate: Rate, segment: u64) -> CcConfig {
    let segment = Bytes::new(segment);
    CcConfig::Timely(TimelyConfig { line_rate: Some(rate), step: rate, segment, ..TimelyConfig::default() })
}

/// 9000 B at 1 Gb/s are 72 us: whatever the window allows, through losses and their repair, no packet leaves earlier,
/// and where there is something to send none leaves later.
#[test]
fn a_paced_sender_keeps_its_distance() {
    for lose in [vec![], vec![20, 21, 40, 41, 42, 99, 100]] {
        let wire = Wire::with_cc(timely(Rate::from_gbps(1), 1), TcpConfig::default(), 1);
        let wire = wire.lose(lose.clone()).run(after_ms(1)).send(100).run(after_ms(40));
        assert_eq!((wire.received_packets(), wire.stats().timeouts), (100, 0), "{lose:?}");
        let left = departures(&wire);
        let gaps: Vec<Span> = left.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|&gap| gap >= US * 72), "{gaps:?}");
        let exact = gaps.iter().filter(|&&gap| gap == US * 72).count();
        assert!(exact >= 95, "{exact} {gaps:?}");
    }
    // Segments of two packets leave together, twice as far apart.
    let wire = Wire::with_cc(timely(Rate::from_gbps(1), 16_000), TcpConfig::default(), 1);
    let left = departures(&wire.run(after_ms(1)).send(100).run(after_ms(40)));
    assert_eq!(left.len(), 100);
    assert!(left.chunks(2).all(|pair| pair[0] == pair[1]));
    assert!(left.windows(3).step_by(2).all(|three| three[2] - three[1] >= US * 144), "{left:?}");
}

/// BBR's first packets leave at once, in bursts of three: the seven that the receiver has offered room for. Later ones
/// are paced: no more than a burst leaves at one moment.
#[test]
fn bbr_paces_all_but_the_first_packets() {
    let wire = Wire::with_cc(CcConfig::from_name("bbr").unwrap(), TcpConfig::default(), 1);
    let left = departures(&wire.run(after_ms(1)).send(100).run(after_ms(40)));
    assert!(left[..7].iter().all(|&at| at == left[0]), "{left:?}");
    let together = left[7..].chunk_by(|one, two| one == two).map(<[Time]>::len).max();
    assert!(together <= Some(7), "{together:?} {left:?}");
}

/// Timers that come due while everything waits for the pacer do nothing: neither probes nor timeouts, however slow it
/// is.
#[test]
fn a_slow_pacer_is_not_a_loss() {
    let tcp = TcpConfig { rto_min: MS, tick: Span::ZERO, ..TcpConfig::default() };
    // 72 ms for each packet.
    let wire = Wire::with_cc(timely(Rate::from_bps(1_000_000), 1), tcp, 1).run(after_ms(1)).send(20);
    let wire = wire.run(after_ms(3000));
    assert_eq!((wire.received_packets(), wire.stats()), (20, Stats { packets_sent: 20, ..Stats::default() }));
    // A lost packet is found by a timeout; its copy waits for its turn, and is not taken for lost before.
    let wire = Wire::with_cc(timely(Rate::from_bps(1_000_000), 1), tcp, 1).lose([3]).run(after_ms(1)).send(5);
    let wire = wire.run(after_ms(3000));
    let Stats { packets_sent, timeouts, probes, .. } = wire.stats();
    assert_eq!(wire.received_packets(), 5);
    assert!(packets_sent <= 7 && timeouts + probes <= 2, "{:?}", wire.stats());
    assert!(departures(&wire).windows(2).all(|pair| pair[1] - pair[0] >= MS * 72));
}

/// A window below a packet: one packet in several round trips, which is acknowledged at once.
#[test]
fn swift_sends_less_than_a_packet_per_round_trip() {
    let slow = SwiftConfig { base_target: US, fs_range: US, ..SwiftConfig::default() };
    // Without delayed ACKs: the second packet of the last window of two has no push.
    let tcp = TcpConfig { delayed_ack: Span::ZERO, ..TcpConfig::default() };
    let wire = Wire::with_cc(CcConfig::Swift(slow), tcp, 1).run(after_ms(1)).send(1000);
    let wire = wire.run(after_ms(60));
    let late: Vec<Span> = departures(&wire).windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The delay never comes below the target, so that each ACK halves the window: the pace of 107 us / cwnd doubles.
    let paced: Vec<Span> = late.into_iter().filter(|&gap| gap > US * 128).collect();
    assert!(paced.len() >= 7 && paced.windows(2).all(|pair| pair[1] == pair[0] * 2), "{paced:?}");
    assert_eq!(wire.stats().timeouts, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever is lost, marked or late: everything arrives, nothing is sent without need when nothing was lost or
    /// late, and the books agree after every packet (`Wire::pump` recounts them).
    #[test]
    fn everything_arrives(
        cc in prop::sample::select(CcConfig::NAMES),
        isn: u32,
        ecn: bool,
        tick in prop::sample::select(vec![0u64, 1, 4]),
        lose in prop::collection::btree_set(1u64..300, 0..40),
        mark in prop::collection::btree_set(1u64..300, 0..40),
        hold in prop::collection::btree_map(1u64..300, 1u64..2000, 0..10),
        packets in 1u64..300,
    ) {
        let tcp = TcpConfig { ecn, tick: MS * tick, ..TcpConfig::default() };
        let quiet = lose.is_empty() && hold.is_empty();
        let mut wire = apart(Wire::with_isn(cc, tcp, isn)).lose(lose);
        wire.mark = mark;
        wire.hold = hold.into_iter().map(|(n, us)| (n, US * us)).collect();
        let wire = wire.send(packets).run(Time::ZERO + Span::from_secs(600));
        prop_assert_eq!(wire.received_packets(), packets);
        prop_assert_eq!(wire.ends[0].bytes_acked(), wire.ends[1].bytes_received());
        prop_assert_eq!(wire.ends[0].in_flight(), 0);
        if quiet {
            prop_assert_eq!(wire.stats().retransmits, 0);
        }
    }
}

/// As measured on Linux: where `rto_min` is set to a millisecond an ACK waits for a tick and no longer, up to the tick
/// after that.
#[test]
fn a_short_least_timeout_bounds_the_delay_of_acks() {
    for (rto_min, waits) in [(MS * 200, 40), (MS * 10, 8), (MS, 4)] {
        let tcp = TcpConfig { rto_min, ..TcpConfig::default() };
        let wire = Wire::new("newreno", tcp).run(after_ms(1));
        let Connection { sender, terms, .. } = &wire.ends[1];
        let mut policy = super::ack_policy::AckPolicy::new(terms);
        policy.on_data(wire.now, 0, &sender.rtt, terms);
        policy.delay(wire.now, &sender.rtt, terms);
        assert_eq!(policy.deadline(), after_ms(waits + 4), "{rto_min}");
    }
}

/// A window grows for packets of 128 bytes and more, once a full one has shown how much memory packets take.
#[test]
fn tiny_packets_do_not_enlarge_the_window() {
    let grown = |full, bytes| {
        let tcp = TcpConfig { nagle: false, ..TcpConfig::default() };
        let mut wire = Wire::new("newreno", tcp).run(after_ms(1));
        wire.ends[0].write(full, wire.now);
        wire.pump(0);
        let mut wire = wire.run_for(MS);
        let window = |wire: &Wire| wire.ends[0].sender.window_end - wire.ends[0].sender.una;
        let before = window(&wire);
        wire.ends[0].write(bytes, wire.now);
        wire.pump(0);
        window(&wire.run_for(MS)) > before
    };
    assert_eq!([127, 128].map(|bytes| grown(8948, bytes)), [false, true]);
    assert!(!grown(0, 500));
}

/// Memory of what lay beyond a gap is given back when that gap is filled, though there is another.
#[test]
fn each_gap_gives_back_its_memory() {
    let mut stream = super::reassembly::Reassembly::new(1, 3);
    let kept = |memory| super::reassembly::BufferedPacket { memory, pieces: 1, joins: false };
    for (start, memory) in [(11, 5), (21, 6), (41, 7)] {
        stream.insert(start, start + 10, kept(memory));
    }
    let filled = |arrival| match arrival {
        super::reassembly::Arrival::InOrder { filled_gap: true, behind } => behind.memory,
        _ => panic!("{arrival:?}"),
    };
    assert_eq!([(1, 11), (31, 41)].map(|(start, end)| filled(stream.insert(start, end, kept(9)))), [11, 7]);
}

/// Of packets that arrive at the same instant the program reads none before the last. The second one would be
/// acknowledged, but the window would move back.
#[test]
fn a_program_reads_after_all_that_arrives_at_once() {
    let acknowledged = |at_once: bool| {
        let receive_window = Bytes::new(100_000);
        let tcp = TcpConfig { quick_acks: 0, autotune: Autotune::Off, receive_window, ..TcpConfig::default() };
        let mut wire = Wire::new("newreno", tcp).send(20).run(after_ms(1));
        wire.ends[0].write(100_000, wire.now);
        let mut packets = [Packet::default(); 3];
        assert!(packets.iter_mut().all(|p| wire.ends[0].transmit(wire.now, p)));
        let receiver = &mut wire.ends[1];
        let mut on_packet = |(p, more): (&Packet, bool)| {
            receiver.expect_more(more);
            receiver.on_segment(p.tcp().unwrap(), wire.now);
            receiver.transmit(wire.now, &mut Packet::default())
        };
        let acks: Vec<_> = packets.iter().zip([at_once, at_once, false]).map(&mut on_packet).collect();
        acks
    };
    assert_eq!(acknowledged(false), [false, true, false]);
    assert_eq!(acknowledged(true), [false, false, true]);
}

/// A probe of the window, of which nothing is new, is answered: the ACK that reported the window may be lost.
#[test]
fn a_probe_of_the_window_is_answered() {
    let mut wire = Wire::new("newreno", TcpConfig::default()).send(20).run(after_ms(1));
    let receiver = &mut wire.ends[1];
    assert!(!receiver.transmit(wire.now, &mut Packet::default()), "all is acknowledged");
    let seq = receiver.receiver.bytes() as u32 + 1000;
    let tcp = TcpHeader { flags: TcpFlags::ACK, seq, ack: 7001, tsval: timestamp(wire.now), ..TcpHeader::default() };
    receiver.on_segment(Packet::new_tcp(FlowTuple::default(), 52, 0, tcp).tcp().unwrap(), wire.now);
    let mut answer = Packet::default();
    assert!(receiver.transmit(wire.now, &mut answer));
    assert_eq!(answer.tcp().unwrap().ack(), seq + 1);
}
