//! TCP small queues: a sender waits while its host's interface holds more of its data than it should.
//!
//! What waits in the interface delays everything behind it, so a Linux sender keeps little there: what it sends in
//! a millisecond, or two of its bursts where these are more. A sender that waits looks again whenever one of its
//! packets has left the interface. One that has nothing else on the way does not wait. Copies wait at twice that
//! bound; new data may go out meanwhile. A sender without `tcp.small_queues` never waits, because nothing of its
//! own counts. Linux documents the bound (ip-sysctl: `tcp_limit_output_bytes`); how it counts memory is measured:
//! docs/models/tcp.md.
//!
//! A FIFO interface reports in advance when a packet will leave it ([`Connection::on_queued`]). An interface that can
//! be paused reports a packet once it has left ([`Connection::on_left`]).
//!
//! [`Connection::on_queued`]: super::Connection::on_queued
//! [`Connection::on_left`]: super::Connection::on_left

use super::queue::Attempt;
use super::sender::Sender;
use super::terms::Terms;
use firstlight_units::Time;
use std::collections::VecDeque;

/// Memory of an ACK without data in the interface, in bytes; measured. Several count as one.
const ACK: u64 = 2;
/// The most memory in the interface, whatever the rate (`tcp_limit_output_bytes`).
const MOST: u64 = 4 << 20;

/// What a connection has in its host's interface.
#[derive(Debug, Default)]
pub(crate) struct SmallQueue {
    /// When each packet leaves ([`Time::MAX`]: not known), and its memory.
    packets: VecDeque<(Time, u32)>,
    memory: u64,
    /// Memory of the data packet that was written last and is not in the interface yet.
    written: u32,
    /// When the last packet without payload leaves; [`Time::MAX`]: not known.
    ack_leaves: Time,
    /// Data wait for a packet to leave.
    pub(crate) waits: bool,
    /// Until when data wait; [`Time::MAX`] where that is not known, or no data wait.
    pub(crate) wake: Time,
}

impl SmallQueue {
    pub(crate) fn new() -> Self {
        SmallQueue { wake: Time::MAX, ..SmallQueue::default() }
    }

    /// A data packet of so much memory is about to enter the interface.
    #[inline]
    pub(crate) fn on_written(&mut self, memory: u64) {
        self.written = memory as u32;
    }

    /// What was written last is in the interface and leaves it at `leaves`.
    #[inline]
    pub(crate) fn on_queued(&mut self, leaves: Time, now: Time) {
        let memory = std::mem::take(&mut self.written);
        if memory == 0 {
            self.ack_leaves = leaves;
        } else if leaves > now {
            self.forget(now);
            self.memory += u64::from(memory);
            self.packets.push_back((leaves, memory));
        }
    }

    /// The oldest packet has left. Returns whether data have waited for that.
    pub(crate) fn on_left(&mut self, now: Time) -> bool {
        if let Some((_, memory)) = self.packets.pop_front() {
            self.memory -= u64::from(memory);
        }
        if self.waits {
            self.wake = now;
        }
        self.waits
    }

    /// Data wait until `leaves`.
    fn wait(&mut self, leaves: Time) {
        (self.waits, self.wake) = (true, leaves);
    }

    /// No data wait any more.
    pub(crate) fn end_wait(&mut self) {
        (self.waits, self.wake) = (false, Time::MAX);
    }

    /// Memory of all packets in the interface, in bytes.
    fn held(&self, now: Time) -> u64 {
        self.memory + if self.ack_leaves > now && self.ack_leaves < Time::MAX { ACK } else { 0 }
    }

    /// Forgets what has left.
    #[inline]
    fn forget(&mut self, now: Time) {
        while let Some(&(leaves, memory)) = self.packets.front()
            && leaves <= now
        {
            self.memory -= u64::from(memory);
            self.packets.pop_front();
        }
    }
}

impl Sender {
    /// Whether a burst of so many bytes has to wait until a packet has left the interface.
    pub(crate) fn waits_for_interface(&mut self, burst: u64, now: Time, terms: &Terms) -> bool {
        self.small_queue.forget(now);
        let Some(&(leaves, _)) = self.small_queue.packets.front() else { return false };
        let memory = burst + terms.stack.memory.beside_chunk();
        let held = self.small_queue.held(now);
        if self.may_hold(held, memory, terms) || self.has_one_burst() {
            return false;
        }
        self.queue.split_head(self.next + burst);
        // Whatever the program has asked for, it does not hold any more when a packet has left.
        self.queue.attempt = Attempt::Usual;
        self.small_queue.wait(leaves);
        true
    }

    /// Whether the interface may hold `held` bytes beside a burst of `memory`. The rate, which takes a division, comes
    /// last.
    fn may_hold(&self, held: u64, memory: u64, terms: &Terms) -> bool {
        held < MOST && (held < 2 * memory || held < self.bytes_per_ms(terms))
    }

    /// Whether segment `i`, which is sent again, waits for the interface, which may hold twice as much as for new data.
    /// A copy that continues the burst of the copy before it does not wait.
    pub(crate) fn copy_waits_for_interface(&mut self, i: usize, now: Time, terms: &Terms) -> bool {
        self.small_queue.forget(now);
        let Some(&(leaves, _)) = self.small_queue.packets.front() else { return false };
        let (first, last) = self.board.burst(i);
        if first < i && self.copied_upto == self.board.get(i).start {
            return false;
        }
        let [start, end] = [self.board.get(first).start, self.board.get(last).end()];
        let memory = end - start + terms.stack.memory.beside_chunk();
        if self.may_hold(self.small_queue.held(now) / 2, memory, terms) || self.has_one_burst() {
            return false;
        }
        self.small_queue.wait(leaves);
        true
    }

    /// Whether a write whose chunk takes more waits for what the interface holds, for more may be written meanwhile
    /// (ip-sysctl: `tcp_autocorking`).
    pub(crate) fn corks(&mut self, goal: u64, now: Time) -> bool {
        self.small_queue.forget(now);
        let (tail, takes_more) = self.queue.tail(goal);
        let Some(&(leaves, _)) = self.small_queue.packets.front() else { return false };
        if !takes_more || self.board.is_empty() || self.small_queue.held(now) < tail {
            return false;
        }
        self.small_queue.wait(leaves);
        true
    }

    /// Whether all that is not acknowledged is of one burst.
    fn has_one_burst(&self) -> bool {
        self.board.is_empty() || self.board.burst(0).1 + 1 == self.board.len() as usize
    }
}

#[cfg(test)]
mod tests {
    use crate::cc::CcConfig;
    use crate::config::{Memory, TcpConfig};
    use crate::tcp::{Connection, Endpoint};
    use firstlight_net::{HostId, Packet};
    use firstlight_units::{Span, Time};

    const US: Span = Span::from_us(1);

    /// A sender after a handshake of 10 ms: a round trip is that long, so that it sends little in a millisecond.
    fn established() -> (Connection, Time) {
        established_after(0, US * 5000, 1500)
    }

    /// A sender of packets of this size after a handshake whose SYN is lost so often, and whose packets take so long to
    /// the other end.
    fn established_after(losses: u32, delay: Span, mtu: u16) -> (Connection, Time) {
        established_with(&TcpConfig { mtu, nagle: false, ..TcpConfig::default() }, losses, delay)
    }

    fn established_with(tcp: &TcpConfig, losses: u32, delay: Span) -> (Connection, Time) {
        let end = |host| Endpoint { host: HostId(host), port: 1 };
        let connection = |a, b| Connection::new(tcp, &CcConfig::from_name("newreno").unwrap(), end(a), end(b), 0);
        let mut ends = [connection(0, 1), connection(1, 0)];
        ends[0].connect(Time::ZERO);
        let mut now = Time::ZERO;
        for _ in 0..losses {
            assert!(ends[0].transmit(now, &mut Packet::default()));
            now = ends[0].poll_timeout().unwrap();
            assert!(ends[0].on_timeout(now));
        }
        for from in [0, 1, 0] {
            let mut p = Packet::default();
            assert!(ends[from].transmit(now, &mut p));
            now += delay;
            ends[1 - from].on_segment(p.tcp().unwrap(), now);
        }
        let [sender, _] = ends;
        (sender, now)
    }

    /// The payloads that go out at `now`, which leave the interface `wait` after each other, from `free` on.
    fn sent(sender: &mut Connection, now: Time, free: &mut Time, wait: Span) -> Vec<u32> {
        let (mut p, mut payloads) = (Packet::default(), vec![]);
        while sender.transmit(now, &mut p) {
            *free = (*free).max(now) + wait;
            sender.on_queued(*free, now);
            payloads.push(p.payload());
        }
        payloads
    }

    /// The window is 10 packets and a burst 2 of them. Two bursts have the memory of 3 packets and of what is left of a
    /// fourth: a burst goes out as soon as 3 packets or less are in the interface.
    #[test]
    fn the_interface_holds_two_bursts() {
        let (mut sender, now) = established();
        let mut free = now;
        sender.write(100_000, now);
        assert_eq!(sent(&mut sender, now, &mut free, US * 10), [1448; 4]);
        for (after, packets) in [(10, 2), (20, 0), (30, 2), (40, 0), (50, 2)] {
            let at = now + US * after;
            assert_eq!(sender.poll_timeout(), Some(at), "it looks again when a packet has left");
            assert!(sender.on_timeout(at));
            assert_eq!(sent(&mut sender, at, &mut free, US * 10).len(), packets, "after {after} us");
        }
        assert_eq!(sender.in_flight(), 10, "the window is full");
    }

    /// The receive window is of seven packets. A round trip counts as a millisecond, in which the window of ten packets
    /// would be sent twice, but after a lost SYN one packet: then two bursts of three packets are the limit.
    #[test]
    fn the_interface_holds_two_bursts_after_a_lost_syn() {
        for (losses, packets) in [(0, 7), (1, 6)] {
            let (mut sender, now) = established_after(losses, US * 500, 9000);
            sender.write(1_000_000, now);
            assert_eq!(sent(&mut sender, now, &mut { now }, US * 10).len(), packets);
        }
    }

    /// Without segmentation offload a burst is a packet: the interface holds two.
    #[test]
    fn the_interface_holds_two_packets_where_each_is_sent_by_itself() {
        let tcp = TcpConfig { mtu: 1500, bursts: false, ..TcpConfig::default() };
        let (mut sender, now) = established_with(&tcp, 0, US * 5000);
        let mut free = now;
        sender.write(100_000, now);
        assert_eq!(sent(&mut sender, now, &mut free, US * 10), [1448; 2]);
        for after in [10, 20, 30] {
            let at = now + US * after;
            assert_eq!(sender.poll_timeout(), Some(at));
            assert!(sender.on_timeout(at));
            assert_eq!(sent(&mut sender, at, &mut free, US * 10), [1448], "after {after} us");
        }
    }

    /// Neither data nor the end of a write waits for what is in the interface.
    #[test]
    fn nothing_waits_without_small_queues() {
        for bursts in [false, true] {
            let tcp = TcpConfig { mtu: 1500, bursts, small_queues: false, nagle: false, ..TcpConfig::default() };
            let (mut sender, now) = established_with(&tcp, 0, US * 5000);
            sender.write(100_000, now);
            assert_eq!(sent(&mut sender, now, &mut { now }, US * 10), [1448; 10]);
            let (mut sender, now) = established_with(&tcp, 0, US * 5000);
            let mut free = now;
            for _ in 0..3 {
                sender.write(557, now);
                assert_eq!(sent(&mut sender, now, &mut free, US * 10), [557]);
            }
        }
    }

    /// A sender goes on when the interface reports that a packet has left.
    #[test]
    fn a_packet_that_has_left_makes_room() {
        let (mut sender, now) = established();
        sender.write(100_000, now);
        let send = |sender: &mut Connection, now: Time| {
            let mut p = Packet::default();
            std::iter::from_fn(|| sender.transmit(now, &mut p).then(|| sender.on_queued(Time::MAX, now))).count()
        };
        assert_eq!(send(&mut sender, now), 4);
        let timer = sender.poll_timeout();
        for (after, packets) in [(10, 2), (20, 0), (30, 2), (40, 0), (50, 2)] {
            assert_eq!(sender.poll_timeout(), timer, "it does not know when it goes on");
            let at = now + US * after;
            assert!(sender.on_left(at));
            assert_eq!(sender.poll_timeout(), Some(at));
            assert!(sender.on_timeout(at));
            assert_eq!(send(&mut sender, at), packets, "after {after} us");
        }
        assert_eq!(sender.in_flight(), 10, "the window is full");
        assert!(!sender.on_left(now + US * 60));
    }

    #[test]
    fn nothing_waits_where_departures_are_not_known() {
        let (mut sender, now) = established();
        sender.write(100_000, now);
        let mut p = Packet::default();
        assert_eq!(std::iter::from_fn(|| sender.transmit(now, &mut p).then_some(())).count(), 10);
    }

    /// As measured: of many writes of 557 bytes the first goes out, the next waits for as many as take more memory than
    /// the interface holds, and so on.
    #[test]
    fn small_writes_wait_for_the_interface() {
        let (mut sender, now) = established();
        for _ in 0..10 {
            sender.write(557, now);
        }
        let mut free = now;
        assert_eq!(sent(&mut sender, now, &mut free, US * 10), [557, 1114, 1448, 1337]);
        for (after, payloads) in [(10, vec![]), (20, vec![]), (30, vec![1114])] {
            let at = now + US * after;
            assert_eq!(sender.poll_timeout(), Some(at));
            assert!(sender.on_timeout(at));
            assert_eq!(sent(&mut sender, at, &mut free, US * 10), payloads, "after {after} us");
        }
    }

    /// A write that waits is not sent because another one follows.
    #[test]
    fn a_write_does_not_send_what_waits() {
        let (mut sender, now) = established();
        let mut free = now;
        for (after, payloads) in [(0, vec![557]), (2, vec![]), (4, vec![1114]), (6, vec![]), (10, vec![557])] {
            let at = now + US * after;
            if after == 10 {
                assert_eq!(sender.poll_timeout(), Some(at));
                assert!(sender.on_timeout(at));
            } else {
                sender.write(557, at);
            }
            assert_eq!(sent(&mut sender, at, &mut free, US * 10), payloads, "after {after} us");
        }
    }

    #[test]
    fn pieces_of_pages_are_counted() {
        let pieces = [(1, 1448), (2897, 1448), (4097, 1448), (1, 8948), (1, 0)];
        assert_eq!(pieces.map(|(start, len)| Memory::pieces(start, len)), [1, 2, 1, 3, 1]);
    }
}
