//! What released the packets of an external host, as far as its connection shows that at the edge of the fabric.
//!
//! A host in virtual time computes in no time: a packet leaves at the moment at which something let it leave, or, where
//! several things happen within a nanosecond of the host's clock, within that nanosecond. So of a departure it is known
//! what else happened at this moment:
//!
//! - a packet of the same connection arrived: that one released it;
//! - the program wrote;
//! - an earlier packet left the interface, or the interface had room again: the stack had held the packet back;
//! - nothing: then a timer of the host released it. Which one follows from what was sent, and when:
//!   - an ACK of new data is a delayed one; where a program reads at a rate, one that leaves sooner than a delayed one
//!     shows that the program has read, as does one that acknowledges nothing new;
//!   - a segment without data from below the window probes a closed window;
//!   - bytes that were sent before, sooner than the shortest timeout after an ACK with SACK: RACK's reordering window;
//!     the last bytes, for the first time: a tail loss probe (RFC 8985, section 7.2); else a retransmission timeout;
//!   - new bytes: the pacer, or after two round trips and 2 ms of silence a tail loss probe that sends new data.
//!
//! Where hosts have processors, what an arrival releases leaves later. There a departure is the processor's, since the
//! arrival before it, unless a timer may have expired since: a delayed ACK's, RACK's, or that of a tail loss probe. A
//! pacer cannot be distinguished from a processor.
//!
//! What the data waited for before follows from the windows that ACKs have offered and from what programs have written.
//! The congestion window has what remains.

use super::{Trigger, WindowEvent};
use firstlight_net::TcpFlags;
use firstlight_net::TcpSegment;
use firstlight_transport::{Alarms, TcpConfig, Wait};
use firstlight_units::{Span, Time};
use std::collections::VecDeque;

/// What Linux adds to the two round trips after which it probes a tail.
const PROBE_SLACK: Span = Span::from_ms(2);
/// A kernel counts its time in nanoseconds: what happens within one is one moment.
const MOMENT: Span = Span::from_ns(1);
/// Later segments that the receiver has before a segment counts as lost.
const DUP_THRESHOLD: u32 = 3;

/// Whether something at that time and a departure now are of one moment.
pub(super) fn is_moment(at: Time, now: Time) -> bool {
    at <= now && now.saturating_since(at) <= MOMENT
}

/// What ACKs and the program have reported to one end of a connection by some moment.
#[derive(Clone, Copy, Debug, Default)]
struct ReportedState {
    /// End of the receive window, by its sequence number.
    edge: u32,
    /// The highest sequence number that SACK has reported.
    sacked: u32,
    /// End of what the program has written.
    written: Option<u32>,
}

/// What has been seen of one end of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct ObservedEnd {
    now: ReportedState,
    /// What was reported before the last moment at which `now` changed.
    before: ReportedState,
    changed: Time,
    arrived: Option<Time>,
    sent: Option<Time>,
    /// When the first packet left after the program had written, if nothing has arrived between.
    wrote: Option<Time>,
    /// The program has written, and nothing has arrived or left since.
    writes: bool,
    /// When packets leave the interface: those that have not left, and some that have.
    leaving: VecDeque<Time>,
    /// Acknowledged up to this, and sent up to that.
    una: u32,
    next: u32,
    has_sent_data: bool,
    /// When the first data left.
    began: Option<Time>,
    /// A segment with an ACK has arrived.
    is_answered: bool,
    /// What the end acknowledged last.
    acked: u32,
    /// The program reads at a rate, so that its reading may release ACKs of data.
    pub(super) reads_later: bool,
    /// Window scale of the other end.
    scale: u8,
    /// The round trip of the handshake.
    round_trip: Span,
    /// A tail has been probed since bytes were acknowledged last.
    probed: bool,
    /// A timeout has taken all bytes before this for lost.
    lost: Option<u32>,
    /// Losses among the bytes before this are being repaired.
    repairing: Option<u32>,
    window: WindowEvent,
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    pub(super) trigger: Trigger,
    pub(super) alarms: Alarms,
    pub(super) wait: Wait,
    pub(super) window: WindowEvent,
    pub(super) repairs: bool,
    /// The packet that arrived last released it, or is what a timer was set by; else it is the departure before.
    pub(super) of_arrival: bool,
}

impl ObservedEnd {
    /// Something is reported at this moment.
    fn update(&mut self, at: Time) -> &mut ReportedState {
        if self.changed != at {
            (self.before, self.changed) = (self.now, at);
        }
        &mut self.now
    }

    /// Whether the last event of the connection was the arrival of a packet.
    pub(super) fn arrived_last(&self) -> bool {
        self.arrived >= self.sent
    }

    /// A packet of the connection arrives.
    pub(super) fn on_arrival(&mut self, segment: TcpSegment<'_>, at: Time) {
        let first_of_all = self.arrived.replace(at).is_none();
        self.writes = false;
        let is_syn = segment.flags().has(TcpFlags::SYN);
        if is_syn {
            self.scale = segment.announced().map_or(0, |(_, scale)| scale);
            if let Some(sent) = self.sent.filter(|_| first_of_all) {
                self.round_trip = at.saturating_since(sent);
            }
        }
        if !segment.flags().has(TcpFlags::ACK) {
            return;
        }
        let (ack, scale) = (segment.ack(), if is_syn { 0 } else { self.scale });
        let first = !std::mem::replace(&mut self.is_answered, true);
        if first || is_before(self.una, ack) {
            self.una = ack;
            self.probed = false;
            self.lost = self.lost.filter(|end| is_before(ack, *end));
            self.repairing = self.repairing.filter(|end| is_before(ack, *end));
        }
        let una = self.una;
        let reported = self.update(at);
        let edge = ack.wrapping_add(u32::from(segment.window()) << scale);
        if first || is_before(reported.edge, edge) {
            reported.edge = edge;
        }
        if first || is_before(reported.sacked, una) {
            reported.sacked = una;
        }
        for block in segment.sack_blocks() {
            if is_before(reported.sacked, block.end) {
                reported.sacked = block.end;
            }
        }
    }

    /// The program writes so many bytes, the first of which has this sequence number; a negative number takes bytes of
    /// an earlier write back. The moment is not reported: it is that of the next packet, unless the connection holds
    /// the bytes back.
    pub(super) fn on_write(&mut self, seq: u32, bytes: i64) {
        if bytes > 0 {
            self.writes = true;
            self.now.written = Some(seq.wrapping_add(bytes as u32));
        } else if let Some(end) = self.now.written {
            self.now.written = Some(end.wrapping_sub(bytes.unsigned_abs() as u32));
        }
    }

    /// A packet of the connection leaves the interface at a moment, which may be still to come.
    pub(super) fn on_leaving(&mut self, at: Time) {
        self.leaving.push_back(at);
    }

    /// The connection sends a segment. `room`: the interface has room again at this moment; `processors`: computing
    /// takes time on the host.
    pub(super) fn on_departure(
        &mut self,
        segment: TcpSegment<'_>,
        payload: u32,
        room: bool,
        processors: bool,
        now: Time,
        tcp: &TcpConfig,
    ) -> Release {
        let is_now = |at: Time| is_moment(at, now);
        while self.leaving.front().is_some_and(|at| *at < now && !is_now(*at)) {
            self.leaving.pop_front();
        }
        let room = room || self.leaving.front().is_some_and(|at| is_now(*at));
        if std::mem::take(&mut self.writes) {
            self.wrote = Some(now);
        }
        let flags = segment.flags();
        let (seq, end) = (segment.seq(), segment.seq().wrapping_add(payload));
        let is_copy = payload > 0 && self.has_sent_data && is_before(seq, self.next);
        let (arrived, wrote) = (self.arrived.is_some_and(is_now), self.wrote.is_some_and(is_now));
        let first = self.sent.is_none();
        let is_worked = processors && self.is_worked(segment, payload, is_copy, now, tcp);
        let (trigger, alarms) = if arrived {
            (Trigger::Arrival, Alarms::NONE)
        } else if is_worked {
            (Trigger::Processor, Alarms::NONE)
        } else if first || (wrote && payload > 0 && !is_copy) {
            (Trigger::Program, Alarms::NONE)
        } else if flags.has(TcpFlags::SYN) {
            (Trigger::Timer, Alarms::SYN)
        } else if room {
            (Trigger::Room, Alarms::NONE)
        } else if payload == 0 {
            self.without_data(segment, now, tcp)
        } else if is_copy {
            (Trigger::Timer, self.of_copy(end, now, tcp))
        } else {
            (Trigger::Timer, self.of_new_data(end, now, tcp))
        };
        let begins = self.began.is_none_or(is_now);
        let wait = if begins { Wait::Handshake } else { self.waited(end, trigger, alarms) };
        let repairs = is_copy && self.is_known_to_be_lost(seq, payload);
        if is_copy && alarms.has(Alarms::RETRANSMISSION) {
            (self.lost, self.repairing, self.window) = (Some(self.next), None, WindowEvent::Timeout);
        } else if is_copy && self.lost.is_none() && self.repairing.is_none() && !alarms.has(Alarms::TAIL_PROBE) {
            (self.repairing, self.window) = (Some(self.next), WindowEvent::Recovery);
        } else if payload > 0 && flags.has(TcpFlags::CWR) {
            self.window = WindowEvent::Mark;
        }
        let probes_after_arrival = alarms.has(Alarms::WINDOW_PROBE) && self.arrived_last();
        self.probed |= alarms.has(Alarms::TAIL_PROBE);
        let over = end.wrapping_add(u32::from(flags.has(TcpFlags::SYN)) + u32::from(flags.has(TcpFlags::FIN)));
        if first || is_before(self.next, over) {
            self.next = over;
        }
        self.has_sent_data |= payload > 0;
        self.began = self.began.or((payload > 0).then_some(now));
        self.acked = segment.ack();
        self.sent = Some(now);
        let timer_of_arrival = Alarms::ACK.has(alarms) || Alarms::REORDERING.has(alarms);
        let reads = trigger == Trigger::Program && payload == 0;
        Release {
            trigger,
            alarms,
            wait,
            window: self.window,
            repairs,
            of_arrival: matches!(trigger, Trigger::Arrival | Trigger::Processor)
                || timer_of_arrival
                || probes_after_arrival
                || (reads && self.arrived.is_some()),
        }
    }

    /// Whether a processor has worked since a packet arrived, and sends now what that packet has released: no timer can
    /// have expired since, and the program has not written after an earlier departure.
    fn is_worked(&self, segment: TcpSegment<'_>, payload: u32, is_copy: bool, now: Time, tcp: &TcpConfig) -> bool {
        let Some(silence) = self.arrived.map(|at| now.saturating_since(at)) else { return false };
        let wrote = self.wrote.is_some_and(|at| is_moment(at, now));
        if payload == 0 {
            silence < tcp.delayed_ack && !is_before(segment.seq(), self.una)
        } else if is_copy {
            silence < tcp.rto_min && Self::is_shown_to_be_lost(segment.seq(), payload, self.now.sacked)
        } else {
            silence < self.round_trip * 2 + PROBE_SLACK && (self.arrived_last() || !wrote)
        }
    }

    /// A segment without data that nothing has released but a timer, or the program that has read.
    fn without_data(&self, segment: TcpSegment<'_>, now: Time, tcp: &TcpConfig) -> (Trigger, Alarms) {
        let silence = self.arrived.map_or(Span::MAX, |at| now.saturating_since(at));
        if is_before(segment.seq(), self.una) {
            (Trigger::Timer, Alarms::WINDOW_PROBE)
        } else if segment.ack() == self.acked || (self.reads_later && silence < tcp.delayed_ack) {
            (Trigger::Program, Alarms::NONE)
        } else {
            (Trigger::Timer, Alarms::ACK)
        }
    }

    /// The timer that has sent bytes again.
    fn of_copy(&self, end: u32, now: Time, tcp: &TcpConfig) -> Alarms {
        let silence = self.arrived.map_or(Span::MAX, |at| now.saturating_since(at));
        if is_before(self.una, self.now.sacked) && silence < tcp.rto_min {
            return Alarms::REORDERING;
        }
        let open = self.lost.is_none() && self.repairing.is_none();
        let is_probe = open && !self.probed && end == self.next && tcp.tail_loss_probe && tcp.sack;
        if is_probe { Alarms::TAIL_PROBE } else { Alarms::RETRANSMISSION }
    }

    /// The timer that has sent new bytes.
    fn of_new_data(&self, end: u32, now: Time, tcp: &TcpConfig) -> Alarms {
        if self.una == self.next && is_before(self.before.edge, end) {
            return Alarms::WINDOW_PROBE;
        }
        let silence = self.arrived.max(self.sent).map_or(Span::ZERO, |at| now.saturating_since(at));
        let is_probe = tcp.tail_loss_probe && tcp.sack && silence >= self.round_trip * 2 + PROBE_SLACK;
        if is_probe { Alarms::TAIL_PROBE } else { Alarms::PACER }
    }

    /// What data had waited for.
    fn waited(&self, end: u32, trigger: Trigger, alarms: Alarms) -> Wait {
        let ReportedState { edge, written, .. } = self.before;
        if alarms.has(Alarms::PACER) {
            Wait::Pacer
        } else if trigger == Trigger::Program {
            Wait::Application
        } else if is_before(edge, end) {
            Wait::ReceiveWindow
        } else if written.is_some_and(|written| is_before(written, end)) {
            Wait::SendBuffer
        } else {
            Wait::CongestionWindow
        }
    }

    /// Whether bytes that are sent again were known to be lost before this moment, and waited for room since.
    fn is_known_to_be_lost(&self, seq: u32, payload: u32) -> bool {
        let by_sack = self.repairing.is_some() && Self::is_shown_to_be_lost(seq, payload, self.before.sacked);
        by_sack || self.lost.is_some_and(|end| is_before(seq, end))
    }

    /// Whether SACK up to a number shows that these bytes were lost.
    fn is_shown_to_be_lost(seq: u32, payload: u32, sacked: u32) -> bool {
        !is_before(sacked, seq.wrapping_add((DUP_THRESHOLD + 1) * payload))
    }
}

/// Compares sequence numbers modulo 2^32.
const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_net::{FlowTuple, Packet, SackBlock, TcpHeader};

    const MSS: u16 = 1000;

    fn ns(n: u64) -> Time {
        Time::from_ps(n * 1000)
    }

    fn segment(seq: u32, payload: u16, ack: u32, flags: TcpFlags) -> Packet {
        let header = TcpHeader { seq, ack, window: 10_000, flags, ..TcpHeader::default() };
        Packet::new_tcp(FlowTuple::default(), 52, payload, header)
    }

    /// A sender whose handshake takes 4 us: it has sent SYN 99, and may send 10,000 bytes from 100 on.
    struct Bench {
        end: ObservedEnd,
        tcp: TcpConfig,
        room: bool,
        processors: bool,
    }

    impl Bench {
        fn new() -> Self {
            let (end, tcp) = (ObservedEnd::default(), TcpConfig::default());
            let mut bench = Bench { end, tcp, room: false, processors: false };
            let syn = bench.sends(segment(99, 0, 0, TcpFlags::SYN), 0);
            assert_eq!((syn.trigger, syn.of_arrival), (Trigger::Program, false), "the program connects");
            bench.arrives(segment(0, 0, 100, TcpFlags::SYN | TcpFlags::ACK), 4000);
            bench
        }

        /// A sender that has sent `segments` segments at once.
        fn with_data(segments: u32) -> Self {
            let mut bench = Bench::new();
            (0..segments).for_each(|n| assert_eq!(bench.data(n, 4000).trigger, Trigger::Arrival));
            bench
        }

        fn sends(&mut self, packet: Packet, at: u64) -> Release {
            let (segment, payload) = (packet.tcp().unwrap(), packet.payload());
            self.end.on_departure(segment, payload, self.room, self.processors, ns(at), &self.tcp)
        }

        /// Sends the segment of this number.
        fn data(&mut self, number: u32, at: u64) -> Release {
            self.sends(segment(100 + number * u32::from(MSS), MSS, 1, TcpFlags::ACK), at)
        }

        fn arrives(&mut self, packet: Packet, at: u64) {
            self.end.on_arrival(packet.tcp().unwrap(), ns(at));
        }

        /// An ACK of all before the segment of this number arrives, with SACK of a segment.
        fn ack(&mut self, number: u32, sacked: Option<u32>, at: u64) {
            let start = |number: u32| 100 + number * u32::from(MSS);
            let mut packet = segment(1, 0, start(number), TcpFlags::ACK);
            if let Some(sacked) = sacked {
                packet.tcp_mut().unwrap().push_sack(SackBlock { start: start(sacked), end: start(sacked + 1) });
            }
            self.arrives(packet, at);
        }
    }

    fn timer(release: Release) -> Alarms {
        assert_eq!(release.trigger, Trigger::Timer);
        release.alarms
    }

    #[test]
    fn an_arrival_at_the_same_nanosecond_releases_a_packet() {
        let mut bench = Bench::new();
        let first = bench.data(0, 4000);
        assert_eq!((first.trigger, first.wait, first.of_arrival), (Trigger::Arrival, Wait::Handshake, true));
        // Between two nanoseconds: the kernel sees it at the later one.
        bench.end.on_arrival(segment(1, 0, 1100, TcpFlags::ACK).tcp().unwrap(), Time::from_ps(8_000_300));
        let second = bench.data(1, 8001);
        assert_eq!((second.trigger, second.wait), (Trigger::Arrival, Wait::CongestionWindow));
    }

    #[test]
    fn what_a_processor_sends_was_released_by_the_arrival_before() {
        let mut server = Bench { end: ObservedEnd::default(), processors: true, ..Bench::new() };
        server.arrives(segment(0, 0, 0, TcpFlags::SYN), 1000);
        let answer = server.sends(segment(0, 0, 1, TcpFlags::SYN | TcpFlags::ACK), 3000);
        assert_eq!((answer.trigger, answer.of_arrival), (Trigger::Processor, true));
        let mut bench = Bench { processors: true, ..Bench::with_data(8) };
        bench.ack(1, None, 8000);
        for at in [9500, 9900] {
            let sent = bench.data(8 + u32::from(at > 9500), at);
            assert_eq!((sent.trigger, sent.wait, sent.of_arrival), (Trigger::Processor, Wait::CongestionWindow, true));
        }
        bench.end.on_write(100, 20_000);
        assert_eq!(bench.data(10, 12_000).trigger, Trigger::Program, "nothing has arrived since the last departure");
        bench.ack(2, Some(3), 13_000);
        assert!(timer(bench.data(2, 14_000)).has(Alarms::REORDERING), "one later packet leaves a doubt");
        bench.ack(2, Some(6), 15_000);
        assert_eq!(bench.data(2, 16_000).trigger, Trigger::Processor, "three later packets show the loss");
        bench.arrives(segment(1, 500, 1100, TcpFlags::ACK), 17_000);
        assert_eq!(bench.sends(segment(10_100, 0, 501, TcpFlags::ACK), 18_000).trigger, Trigger::Processor);
        bench.arrives(segment(501, 500, 1100, TcpFlags::ACK), 19_000);
        let late = 19_000 + 40_000_000;
        assert!(timer(bench.sends(segment(10_100, 0, 1001, TcpFlags::ACK), late)).has(Alarms::ACK));
    }

    #[test]
    fn the_receive_window_is_what_acks_have_offered() {
        let mut bench = Bench::with_data(10);
        bench.ack(1, None, 8000);
        assert_eq!(bench.data(10, 8000).wait, Wait::ReceiveWindow);
    }

    #[test]
    fn data_beyond_what_was_written_waited_for_the_send_buffer_or_the_program() {
        let mut bench = Bench::new();
        bench.end.on_write(100, 2000);
        (0..2).for_each(|n| assert_eq!(bench.data(n, 4000).wait, Wait::Handshake));
        bench.ack(1, None, 8000);
        bench.end.on_write(2100, 1000);
        let released = bench.data(2, 8000);
        assert_eq!((released.trigger, released.wait), (Trigger::Arrival, Wait::SendBuffer));
        bench.end.on_write(3100, 1000);
        let written = bench.data(3, 9000);
        assert_eq!((written.trigger, written.wait, written.of_arrival), (Trigger::Program, Wait::Application, false));
    }

    #[test]
    fn a_packet_that_leaves_makes_room_for_one() {
        let mut bench = Bench::with_data(2);
        bench.end.on_leaving(Time::from_ps(5_000_100));
        assert_eq!(bench.data(2, 5001).trigger, Trigger::Room);
        bench.room = true;
        assert_eq!(bench.data(3, 6000).trigger, Trigger::Room);
    }

    #[test]
    fn timers_are_told_apart_by_what_they_send() {
        let ms = 1_000_000;
        let mut bench = Bench::with_data(2);
        assert!(timer(bench.data(1, 208 * ms)).has(Alarms::TAIL_PROBE), "the last segment");
        let timeout = bench.data(0, 416 * ms);
        assert!(timer(timeout).has(Alarms::RETRANSMISSION) && !timeout.of_arrival);
        bench.ack(1, None, 417 * ms);
        let repair = bench.data(1, 417 * ms);
        assert!(repair.trigger == Trigger::Arrival && repair.repairs, "the timeout had taken it for lost");
        assert_eq!(repair.window, WindowEvent::Timeout);
        let mut bench = Bench::with_data(2);
        assert!(timer(bench.data(0, 208 * ms)).has(Alarms::RETRANSMISSION), "not the last segment");
        let mut bench = Bench::with_data(2);
        bench.tcp.tail_loss_probe = false;
        assert!(timer(bench.data(1, 208 * ms)).has(Alarms::RETRANSMISSION));
    }

    #[test]
    fn a_loss_is_repaired_by_acks_or_by_the_reordering_timer() {
        let mut bench = Bench::with_data(3);
        bench.ack(1, Some(2), 8000);
        let late = bench.data(1, 9000);
        assert!(timer(late).has(Alarms::REORDERING) && late.of_arrival);
        let mut bench = Bench::with_data(8);
        for sacked in [3, 4, 5] {
            bench.ack(1, Some(sacked), 8000 + u64::from(sacked));
        }
        let first = bench.data(1, 8005);
        assert_eq!((first.trigger, first.window, first.repairs), (Trigger::Arrival, WindowEvent::Recovery, false));
        bench.ack(1, Some(6), 9000);
        assert!(bench.data(2, 9000).repairs, "segments 3 to 5 had shown its loss before");
    }

    #[test]
    fn new_data_by_a_timer_are_paced_or_probe_a_tail() {
        let mut bench = Bench::with_data(2);
        let paced = bench.data(2, 7000);
        assert!(timer(paced).has(Alarms::PACER) && paced.wait == Wait::Pacer);
        assert!(timer(bench.data(3, 7000 + 2 * 4000 + 2_000_000)).has(Alarms::TAIL_PROBE));
    }

    #[test]
    fn segments_without_data_by_a_timer() {
        let mut bench = Bench::with_data(1);
        bench.arrives(segment(1, 500, 1100, TcpFlags::ACK), 8000);
        let delayed = bench.sends(segment(1100, 0, 501, TcpFlags::ACK), 40_000);
        assert!(timer(delayed).has(Alarms::ACK) && delayed.of_arrival);
        bench.arrives(segment(501, 500, 1100, TcpFlags::ACK), 41_000);
        bench.end.reads_later = true;
        let sooner = bench.sends(segment(1100, 0, 1001, TcpFlags::ACK), 45_000);
        assert_eq!((sooner.trigger, sooner.of_arrival), (Trigger::Program, true), "a slow program has read");
        let update = bench.sends(segment(1100, 0, 1001, TcpFlags::ACK), 50_000);
        assert_eq!((update.trigger, update.of_arrival), (Trigger::Program, true), "the program has read");
        assert!(timer(bench.sends(segment(1099, 0, 501, TcpFlags::ACK), 60_000)).has(Alarms::WINDOW_PROBE));
        let again = bench.sends(segment(99, 0, 0, TcpFlags::SYN), 70_000);
        assert!(timer(again).has(Alarms::SYN));
    }
}
