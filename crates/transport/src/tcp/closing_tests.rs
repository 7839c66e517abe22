//! How connections begin and end, packet by packet: two connections and a wire that delivers the packets that a
//! test names.

use super::*;
use crate::cc::CcConfig;
use firstlight_net::HostId;

const MS: Span = Span::from_ms(1);

/// Two ends; packets that were sent wait until they are handed over.
struct Pair {
    now: Time,
    ends: [Connection; 2],
    sent: [Vec<Packet>; 2],
}

impl Pair {
    fn with(configs: [TcpConfig; 2]) -> Self {
        let cc = CcConfig::from_name("newreno").unwrap();
        let end = |host| Endpoint { host: HostId(host), port: 80 };
        let ends = [0, 1].map(|i| Connection::new(&configs[i as usize], &cc, end(i), end(1 - i), 100 * u32::from(i)));
        Pair { now: Time::ZERO + MS, ends, sent: [vec![], vec![]] }
    }

    fn established() -> Self {
        let mut pair = Pair::with([TcpConfig { mtu: 1500, ..TcpConfig::default() }; 2]);
        pair.ends[0].connect(pair.now);
        pair.settle();
        assert!(pair.ends.iter().all(|end| end.state() == State::Established));
        pair
    }

    /// What an end sends now.
    fn collect(&mut self, from: usize) -> &mut Vec<Packet> {
        let mut p = Packet::default();
        while self.ends[from].transmit(self.now, &mut p) {
            self.sent[from].push(p);
        }
        &mut self.sent[from]
    }

    /// Hands over the packets of one end.
    fn deliver(&mut self, from: usize) {
        self.collect(from);
        for p in std::mem::take(&mut self.sent[from]) {
            self.ends[1 - from].on_segment(p.tcp().unwrap(), self.now);
            self.collect(1 - from);
        }
    }

    /// Hands over everything until nobody sends any more.
    fn settle(&mut self) {
        for _ in 0..20 {
            self.deliver(0);
            self.deliver(1);
        }
    }

    /// Runs timers for `span`, without handing over anything.
    fn wait(&mut self, span: Span) {
        let until = self.now + span;
        while let Some((at, i)) =
            [0, 1].iter().filter_map(|&i| Some((self.ends[i].poll_timeout()?, i))).min().filter(|(at, _)| *at <= until)
        {
            self.now = at;
            self.ends[i].on_timeout(at);
            self.collect(i);
        }
        self.now = until;
    }

    fn states(&self) -> [State; 2] {
        [self.ends[0].state(), self.ends[1].state()]
    }
}

fn flags(packets: &[Packet]) -> Vec<String> {
    packets.iter().map(|p| format!("{:?} {}", p.tcp().unwrap().flags(), p.payload())).collect()
}

#[test]
fn both_ends_close_one_after_the_other() {
    let mut pair = Pair::established();
    pair.ends[0].write(2000, pair.now);
    pair.ends[0].close(pair.now);
    assert_eq!(pair.states(), [State::FinWait1, State::Established]);
    assert_eq!(flags(pair.collect(0)), [". 1448", "FP. 552"]);
    pair.deliver(0);
    assert_eq!((pair.ends[1].bytes_received(), pair.ends[1].state()), (2000, State::CloseWait));
    pair.wait(MS * 50);
    // The tail was probed meanwhile.
    pair.sent[0].clear();
    pair.deliver(1);
    assert_eq!((pair.ends[0].bytes_acked(), pair.ends[0].state()), (2000, State::FinWait2));
    pair.ends[1].write(10, pair.now);
    pair.ends[1].shutdown(pair.now);
    assert_eq!(flags(pair.collect(1)), ["FP. 10"]);
    // The program that has closed does not read: data are answered by a reset.
    pair.deliver(1);
    assert_eq!(flags(pair.collect(0)), ["R 0"]);
}

#[test]
fn a_program_may_read_after_its_fin() {
    let mut pair = Pair::established();
    pair.ends[0].shutdown(pair.now);
    pair.settle();
    pair.ends[1].write(10, pair.now);
    pair.ends[1].close(pair.now);
    pair.settle();
    assert_eq!(pair.ends[0].bytes_received(), 10);
    assert_eq!(pair.states(), [State::TimeWait, State::Closed]);
    pair.wait(Span::from_secs(61));
    assert_eq!((pair.states(), pair.ends[0].poll_timeout()), ([State::Closed; 2], None));
}

#[test]
fn both_ends_close_at_once() {
    let mut pair = Pair::established();
    for i in [0, 1] {
        pair.ends[i].close(pair.now);
        pair.collect(i);
    }
    pair.settle();
    assert_eq!(pair.states(), [State::TimeWait; 2]);
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut pair = Pair::established();
    pair.ends[0].close(pair.now);
    pair.collect(0).clear();
    pair.wait(MS * 300);
    assert_eq!(flags(&pair.sent[0])[0], "F. 0");
    pair.deliver(0);
    pair.wait(MS * 50);
    pair.settle();
    assert_eq!(pair.states(), [State::FinWait2, State::CloseWait]);
}

#[test]
fn unread_data_reset_the_connection_at_close() {
    let mut pair = Pair::established();
    pair.ends[1].read_by_calls();
    pair.ends[0].write(100, pair.now);
    pair.settle();
    assert_eq!((pair.ends[1].read(60), pair.ends[1].readable()), (60, 40));
    pair.ends[1].close(pair.now);
    assert_eq!(flags(pair.collect(1)), ["R. 0"]);
    pair.deliver(1);
    assert_eq!((pair.states(), pair.ends[0].failure()), ([State::Closed; 2], Some(ConnectionFailure::Reset)));
}

/// RFC 5961, section 3.2: a reset that is not at the expected sequence number is answered, and ends nothing.
#[test]
fn only_the_exact_reset_counts() {
    let mut pair = Pair::established();
    let seq = pair.ends[1].sender.map.wire(1);
    let reset = |seq| {
        Packet::new_tcp(FlowTuple::default(), 40, 0, TcpHeader { flags: TcpFlags::RST, seq, ..TcpHeader::default() })
    };
    pair.ends[0].on_segment(reset(seq + 1).tcp().unwrap(), pair.now);
    assert_eq!(flags(pair.collect(0)), [". 0"]);
    pair.ends[0].on_segment(reset(seq.wrapping_sub(1)).tcp().unwrap(), pair.now);
    assert_eq!((flags(&pair.sent[0]).len(), pair.ends[0].state()), (1, State::Established));
    pair.ends[0].on_segment(reset(seq).tcp().unwrap(), pair.now);
    assert_eq!(pair.ends[0].state(), State::Closed);
}

/// An acknowledgement of what was never sent is answered, but not more often than every half second.
#[test]
fn impossible_acknowledgements_are_answered_now_and_then() {
    let mut pair = Pair::established();
    let (seq, ack) = (pair.ends[1].sender.map.wire(1), pair.ends[0].sender.map.wire(2));
    let strange = Packet::new_tcp(
        FlowTuple::default(),
        52,
        0,
        TcpHeader { flags: TcpFlags::ACK, seq, ack, ..TcpHeader::default() },
    );
    for (wait, answers) in [(MS, 1), (MS * 600, 1), (MS, 2)] {
        pair.ends[0].on_segment(strange.tcp().unwrap(), pair.now);
        assert_eq!(pair.collect(0).len(), answers);
        pair.wait(wait);
    }
}

#[test]
fn ends_use_what_both_have() {
    let plain = TcpConfig { mtu: 1500, sack: false, timestamps: false, ..TcpConfig::default() };
    for configs in [[plain, TcpConfig::default()], [TcpConfig::default(), plain]] {
        let mut pair = Pair::with(configs);
        pair.ends[0].connect(pair.now);
        pair.settle();
        for end in &mut pair.ends {
            assert_eq!((end.terms.mss, end.terms.header, end.terms.sack), (1460, 40, false));
            end.write(5000, Time::ZERO + MS);
        }
        assert_eq!(flags(pair.collect(0)), [". 1460", ". 1460", ". 1460", "P. 620"]);
        pair.settle();
        pair.wait(MS * 50);
        pair.settle();
        assert!(pair.ends.iter().all(|end| end.bytes_received() == 5000 && end.bytes_acked() == 5000));
    }
}

#[test]
fn two_callers_meet() {
    let mut pair = Pair::with([TcpConfig::default(); 2]);
    for i in [0, 1] {
        pair.ends[i].connect(pair.now);
        pair.collect(i);
    }
    pair.settle();
    assert_eq!(pair.states(), [State::Established; 2]);
}

#[test]
fn a_program_gives_up() {
    let mut pair = Pair::established();
    pair.ends[0].set_user_timeout(Some(MS * 1000));
    pair.ends[0].write(100, pair.now);
    pair.collect(0).clear();
    pair.wait(Span::from_secs(3));
    assert_eq!((pair.ends[0].state(), pair.ends[0].failure()), (State::Closed, Some(ConnectionFailure::TimedOut)));
}

/// RFC 9293, section 3.8.6.1: a closed window is probed, less and less often, until it opens.
#[test]
fn a_closed_window_is_probed() {
    let mut pair = Pair::established();
    let (seq, ack) = (pair.ends[1].sender.map.wire(1), pair.ends[0].sender.map.wire(1001));
    pair.ends[0].write(1000, pair.now);
    pair.collect(0).clear();
    let answer = |window| {
        Packet::new_tcp(
            FlowTuple::default(),
            52,
            0,
            TcpHeader { flags: TcpFlags::ACK, seq, ack, window, ..TcpHeader::default() },
        )
    };
    pair.ends[0].on_segment(answer(0).tcp().unwrap(), pair.now);
    pair.ends[0].write(500, pair.now);
    assert_eq!(pair.collect(0).len(), 0);
    pair.wait(MS * 1500);
    // After 0.2, 0.4 and 0.8 s, in ticks of 4 ms.
    assert_eq!(flags(&pair.sent[0]), [". 0"; 3]);
    assert!(pair.sent[0].iter().all(|p| p.tcp().unwrap().seq() == ack.wrapping_sub(1)));
    pair.sent[0].clear();
    pair.ends[0].on_segment(answer(100).tcp().unwrap(), pair.now);
    assert_eq!(flags(pair.collect(0)), ["P. 500"]);
}

/// RFC 6582: three duplicates find the first loss, and each partial acknowledgement the next.
#[test]
fn losses_are_found_without_sack() {
    let without = TcpConfig { mtu: 1500, sack: false, tick: Span::ZERO, ..TcpConfig::default() };
    let mut pair = Pair::with([without; 2]);
    pair.ends[0].connect(pair.now);
    pair.settle();
    pair.ends[0].write(14480, pair.now);
    let lost = [1, 4];
    let mut n = 0;
    pair.collect(0).retain(|_| {
        n += 1;
        !lost.contains(&n)
    });
    assert_eq!(n, 10);
    for _ in 0..10 {
        pair.deliver(0);
        pair.deliver(1);
        pair.now += MS;
    }
    assert_eq!(pair.ends[0].bytes_acked(), 14480);
    let Stats { retransmits, timeouts, recoveries, .. } = *pair.ends[0].stats();
    assert_eq!((retransmits, timeouts, recoveries), (2, 0, 1));
}
