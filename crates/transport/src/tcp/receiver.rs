//! The receiving half: which segments are acceptable, reassembly, and what an acknowledgement says.
//!
//! When to acknowledge is decided in `ack_policy.rs`, how large a window to offer in `offer.rs`. ECN is echoed as RFC
//! 3168 (section 6.1.3) or, precisely, as RFC 8257 (section 3.2) has it.

use super::ack_policy::AckPolicy;
use super::latency::{self, Sample};
use super::offer::Offer;
use super::reader::{ReadRate, ReadingProgram};
use super::reassembly::{Arrival, BufferedPacket, Reassembly, Report, RunBeyondGap};
use super::rtt::RttEstimator;
use super::seq::SeqMap;
use super::terms::Terms;
use super::timer::{is_before, timestamp};
use crate::config::Memory;
use firstlight_net::{Ecn, TcpFlags, TcpSegment, TcpSegmentMut};
use firstlight_units::{Span, Time};

/// The window does not grow for smaller packets.
const LEAST_TO_GROW: u64 = 128;

/// How marks are echoed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Echo {
    /// ECN was not negotiated.
    Off,
    /// Every ACK echoes a mark until CWR arrives.
    Classic,
    /// Every ACK echoes the marks of its packets as they are.
    Precise,
}

/// Segments that were not taken in, by reason, as Linux counts them (snmp_counter).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Segments beyond the receive window (`TcpExtBeyondWindow`).
    pub beyond_window: u64,
    /// Segments for which no memory was left (`TcpExtTCPRcvQDrop`).
    pub no_memory: u64,
    /// Segments that met a closed window (`TcpExtTCPZeroWindowDrop`).
    pub window_closed: u64,
}

/// What the program has not read.
#[derive(Clone, Copy, Debug)]
struct Unread {
    /// Stream offset up to which the program has read; [`u64::MAX`] where it reads everything at once.
    upto: u64,
    /// Memory of what a program that reads at once is about to read, when what has arrived is acknowledged.
    fresh: u64,
    /// End of the packet that has filled a gap, which such a program reads by itself; [`u64::MAX`] for none.
    first: u64,
    /// Whether other packets arrive at the same instant: one did before, one will. The program reads after all.
    batch: [bool; 2],
}

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    stream: Reassembly,
    map: SeqMap,
    pub(crate) offer: Offer,
    pub(crate) policy: AckPolicy,
    pub(crate) echo: Echo,
    /// ECE is set on what is sent now.
    ece: bool,
    /// A packet of this connection could have been marked.
    ect_seen: bool,
    /// The mark of the packet that has arrived asks for quick ACKs, once its arrival is counted.
    hurries: bool,
    /// Stream offset of the last acknowledgement sent.
    acked: u64,
    /// A precise echo changed with data unacknowledged: first acknowledge up to here, with the echo as it was.
    ack_before_change: Option<(u64, Option<u16>)>,
    /// What that one reports, where the packet that is marked otherwise, or one before it, came out of order.
    report_before_change: Option<Box<Report>>,
    /// An acknowledgement that goes out as it would have before the last segment arrived: of what, the window field,
    /// and what was reported.
    held_ack: Option<Box<(u64, u16, Report)>>,
    /// The timestamp to echo (RFC 7323, section 4.3).
    ts_recent: u32,
    /// When the newest full-sized packet left and came, until an ACK echoes it.
    sample: Option<Sample>,
    /// Stream offset after the peer's FIN; [`u64::MAX`] while it has not been seen.
    end: u64,
    unread: Unread,
    /// The program reads by calls; else it reads everything at once.
    reader: Option<Box<ReadingProgram>>,
    /// No memory is left: the next acknowledgement closes the window.
    exhausted: bool,
    pub(crate) refusals: Refusals,
}

impl Receiver {
    pub(crate) fn new(terms: &Terms) -> Self {
        let mut offer = Offer::new(terms);
        // The options of later packets are not known yet.
        offer.settle(u32::from(terms.announcement().segment));
        Receiver {
            stream: Reassembly::new(0, 0),
            map: SeqMap::new(0),
            offer,
            policy: AckPolicy::new(terms),
            echo: Echo::Off,
            ece: false,
            ect_seen: false,
            hurries: false,
            acked: 0,
            ack_before_change: None,
            report_before_change: None,
            held_ack: None,
            ts_recent: 0,
            sample: None,
            end: u64::MAX,
            unread: Unread { upto: u64::MAX, fresh: 0, first: u64::MAX, batch: [false; 2] },
            reader: None,
            exhausted: false,
            refusals: Refusals::default(),
        }
    }

    /// The peer's SYN arrived: its stream starts. A server settles its window now that it knows the peer's terms.
    pub(crate) fn start(&mut self, p: TcpSegment<'_>, server: bool, terms: &Terms) {
        self.map = SeqMap::new(p.seq());
        let blocks = if terms.option > 0 { latency::SACK_BLOCKS } else { 3 };
        self.stream = Reassembly::new(1, if terms.sack { blocks } else { 0 });
        self.ts_recent = if terms.timestamps { p.tsval() } else { 0 };
        if server {
            self.offer.settle(terms.own_mss());
        }
        self.offer.rescale(terms.scale());
        self.offer.start();
        if self.unread.upto < u64::MAX {
            self.unread.upto = 1;
        }
    }

    /// Nothing is acknowledged any more.
    pub(crate) fn abandon(&mut self) {
        self.ack_before_change = None;
        self.report_before_change = None;
        self.held_ack = None;
        self.policy.cancel();
    }

    /// From now on the program reads by calls, or at a rate.
    pub(crate) fn read_by_calls(&mut self, rate: Option<ReadRate>) {
        self.reader = Some(Box::new(ReadingProgram::new(rate)));
        self.unread.upto = self.stream.next().max(1);
    }

    /// Whether a program that reads at a rate reads `now`.
    pub(crate) fn is_reading(&self, now: Time) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.due <= now)
    }

    /// The handshake is complete.
    pub(crate) fn establish(&mut self, now: Time, terms: &Terms) {
        self.policy.start(now);
        self.offer.establish(terms.own_mss(), now);
    }

    /// A program that reads at once reads what has arrived.
    #[inline]
    fn read_at_once(&mut self, now: Time) {
        if self.unread.fresh > 0 {
            self.offer.give_back(std::mem::take(&mut self.unread.fresh));
            let first = self.unread.first.min(self.stream.next());
            self.offer.tune(first, self.stream.next() - first, self.beyond(), now);
            self.unread.first = u64::MAX;
            self.after_reading();
        }
    }

    /// How far what lies beyond a gap reaches beyond what has arrived in order.
    fn beyond(&self) -> u64 {
        if self.stream.has_gap() { self.stream.highest() - self.stream.next() } else { 0 }
    }

    /// Bytes that the program has not read.
    #[inline]
    pub(crate) fn unread(&self) -> u64 {
        (self.bytes() + 1).saturating_sub(self.unread.upto)
    }

    /// The program reads at most `bytes`; returns how many there were.
    pub(crate) fn read(&mut self, bytes: u64) -> u64 {
        let unread = self.unread();
        let read = unread.min(bytes);
        let Some(reader) = self.reader.as_mut().filter(|_| read > 0) else { return 0 };
        self.unread.upto += read;
        // The buffer is tuned when the first packets have been read.
        let (first, freed) = reader.take(self.unread.upto);
        let now = reader.last_packet;
        self.offer.give_back(freed);
        self.offer.tune(first, self.stream.next() - first, self.beyond(), now);
        self.after_reading();
        read
    }

    /// The program has read: an ACK that waited for that goes out, or one that reports a much larger window.
    fn after_reading(&mut self) {
        let next = self.stream.next();
        let waiting = next - self.acked;
        let segment = u64::from(self.policy.segment);
        if self.policy.is_scheduled() && (waiting > segment || (self.policy.is_end_of_write() && self.offer.is_empty()))
        {
            self.policy.now = true;
        }
        let window = self.offer.edge().saturating_sub(next);
        if !self.policy.now && !self.has_ended() && 2 * window <= self.offer.space() {
            let larger = self.offer.select(segment);
            self.policy.now = larger > 0 && larger >= 2 * window;
        }
    }

    /// Bytes that the program has read; one that reads at once has read what is in order.
    #[inline]
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes().min(self.unread.upto - 1)
    }

    /// Bytes received in order.
    pub(crate) fn bytes(&self) -> u64 {
        self.stream.next().saturating_sub(1) - u64::from(self.has_ended())
    }

    /// Whether the peer's FIN and everything before it have arrived.
    pub(crate) fn has_ended(&self) -> bool {
        self.stream.next() >= self.end
    }

    /// Whether `seq` is the sequence number of the peer's SYN.
    pub(crate) fn is_first(&self, seq: u32) -> bool {
        seq == self.map.wire(0)
    }

    /// Whether `p` starts where the received stream ends.
    pub(crate) fn is_next(&self, p: TcpSegment<'_>) -> bool {
        p.seq() == self.map.wire(self.stream.next())
    }

    /// Whether `p` starts in the receive window.
    pub(crate) fn is_in_window(&self, p: TcpSegment<'_>) -> bool {
        let start = self.map.offset(p.seq(), self.stream.next());
        start >= self.stream.next() && start <= self.offer.highest()
    }

    /// Whether `p` carries data that have not arrived before.
    pub(crate) fn is_new(&self, p: TcpSegment<'_>) -> bool {
        p.is_data() && self.map.offset(p.seq(), self.stream.next()) + u64::from(p.payload()) > self.stream.next()
    }

    /// Whether `p` is acceptable: not older than what has arrived (RFC 7323, section 5, PAWS), and in the window (RFC
    /// 9293, section 3.10.7.4). What has arrived before is, for it must be acknowledged.
    #[inline]
    pub(crate) fn admits(&mut self, p: TcpSegment<'_>, terms: &Terms) -> bool {
        if is_before(p.tsval(), self.ts_recent) && terms.timestamps && self.is_too_old(p) {
            return false;
        }
        let start = self.map.offset(p.seq(), self.stream.next());
        let end = start + u64::from(p.payload());
        // A probe of the window lies before what was acknowledged last: it is to be answered.
        let is_old = end < self.acked && !p.is_data();
        !is_old && (end <= self.offer.highest() || self.admits_beyond(start, end))
    }

    /// A packet whose timestamp is older than the newest: a copy from long ago, unless it is an acknowledgement alone.
    #[cold]
    fn is_too_old(&self, p: TcpSegment<'_>) -> bool {
        p.is_data() && p.tsval() != 0
    }

    /// Data beyond the window: a receiver that has nothing to read takes them all the same, if they begin in it.
    #[cold]
    fn admits_beyond(&mut self, start: u64, end: u64) -> bool {
        if start <= self.offer.highest() && (end == start || self.unread() == 0) {
            return true;
        }
        self.refusals.beyond_window += 1;
        false
    }

    /// A segment arrived that is not acceptable: it is acknowledged at once.
    pub(crate) fn on_unacceptable(&mut self, p: TcpSegment<'_>, terms: &Terms) {
        let start = self.map.offset(p.seq(), self.stream.next());
        if p.is_data() && start < self.stream.next() {
            self.stream.insert(
                start,
                start + u64::from(p.payload()).min(self.stream.next() - start),
                BufferedPacket::default(),
            );
            self.policy.force_quick(self.offer_left(), terms);
        }
        self.policy.now = true;
    }

    /// How much of the offered window is left.
    fn offer_left(&self) -> u64 {
        self.offer.edge().saturating_sub(self.acked)
    }

    /// When [`Receiver::on_timer`] is to be called; [`Time::MAX`] for never.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        let deadline = self.policy.deadline();
        self.reader.as_ref().map_or(deadline, |reader| deadline.min(reader.due))
    }

    /// A timer of acknowledgements has expired, or the program reads.
    pub(crate) fn on_timer(&mut self, now: Time, rtt: &RttEstimator, terms: &Terms) {
        if self.policy.deadline() <= now {
            self.policy.on_timer(now, rtt, terms);
        }
        self.read_if_due(now);
    }

    /// A program that reads at a rate reads, if it is time.
    fn read_if_due(&mut self, now: Time) {
        if let Some(size) = self.reader.as_ref().and_then(|reader| reader.asks_for(now)) {
            let read = self.read(size);
            if let Some(reader) = &mut self.reader {
                reader.on_read(read, now);
            }
        }
    }

    /// A packet is about to arrive. A program that wakes in the same nanosecond reads first, and what it has read is
    /// acknowledged by itself.
    #[cold]
    fn read_before(&mut self, now: Time, terms: &Terms) {
        if self.reader.as_ref().is_some_and(|reader| reader.is_first()) {
            self.read_if_due(now);
        }
        if self.policy.now {
            self.send_held_ack(self.stream.next(), terms);
        }
        if let Some(reader) = &mut self.reader {
            reader.last_packet = now;
        }
    }

    #[inline]
    pub(crate) fn wants_ack(&self) -> bool {
        self.policy.now || self.ack_before_change.is_some() || self.held_ack.is_some()
    }

    /// Acknowledge at once.
    pub(crate) fn ack_now(&mut self) {
        self.policy.now = true;
    }

    /// The timestamp to echo is that of a segment which begins at or before what was acknowledged last, and does not
    /// end before it (RFC 7323, section 4.3).
    #[inline]
    pub(crate) fn on_timestamp(&mut self, p: TcpSegment<'_>, terms: &Terms) {
        let newer = !is_before(p.tsval(), self.ts_recent) && p.tsval() != 0;
        let start = self.map.offset(p.seq(), self.acked);
        let end = start + u64::from(p.payload()) + u64::from(p.flags().has(TcpFlags::FIN));
        if newer && terms.timestamps && start <= self.acked && self.acked <= end {
            self.ts_recent = p.tsval();
        }
    }

    /// A packet arrives; another one with data does at the same instant, or not.
    #[inline]
    pub(crate) fn expect_more(&mut self, more: bool) {
        self.unread.batch = [self.unread.batch[1], more];
    }

    /// A segment with data or a FIN arrived. After a silence of a timeout ACKs are quick again, hence `rtt`. Returns
    /// whether the peer's stream is complete with it.
    pub(crate) fn on_data(&mut self, p: TcpSegment<'_>, now: Time, terms: &Terms, rtt: &RttEstimator) -> bool {
        if !self.unread.batch[0] {
            self.read_at_once(now);
        }
        if self.reader.is_some() {
            self.read_before(now, terms);
        }
        let next = self.stream.next();
        let start = self.map.offset(p.seq(), next);
        let fin = p.flags().has(TcpFlags::FIN);
        let (len, end) = (u64::from(p.payload()), start + u64::from(p.payload()) + u64::from(fin));
        if end > next && !self.has_room_for(start, end, len, terms) {
            return false;
        }
        if fin && self.end == u64::MAX {
            self.end = end;
        }
        let ended = self.has_ended();
        if p.has_stamps() && p.payload() >= terms.whole {
            self.sample = Some(latency::sample(&p));
        }
        if terms.timestamps {
            let full = p.payload() >= self.policy.segment;
            self.offer.on_echo(p.tsecr(), || full.then(|| timestamp(now)), self.unread() > 0);
        }
        self.on_ecn(p, start, end, terms);
        let memory = self.measure(p, terms);
        let kept = self.keep(start, len, memory, terms);
        let held = kept.memory;
        let held_until = self.policy.held_until();
        if held_until < Time::MAX && held_until <= Time::from_ns(now.whole_ns()) {
            // The timer expires in the same nanosecond, and first.
            self.send_held_ack(next, terms);
        }
        // As measured on Linux 7.2, what arrived twice is not reported after more data.
        self.stream.forget_duplicate();
        let waiting: Vec<RunBeyondGap> = if self.reader.is_some() { self.stream.runs().collect() } else { vec![] };
        let arrival = self.stream.insert(start, end, kept);
        // What was held back goes out before its report is pushed out, with what an older interval grows by and with
        // what has arrived twice.
        let flushes = arrival.is_beyond() && self.policy.holds_acks() && self.stream.crowds(start, end);
        if flushes {
            self.stream.extend_report(start, end);
            self.send_held_ack(next, terms);
        }
        if arrival.is_beyond() {
            self.stream.report(start, end);
        }
        match arrival {
            Arrival::InOrder { filled_gap, behind } => {
                let upto = end.min(self.stream.next());
                if filled_gap {
                    // What joins it is read with it.
                    self.unread.first = end + behind.first_len;
                }
                let memory_of = terms.stack.memory;
                let joining = memory_of.of(len) - memory_of.of_joined(len);
                let mut saved = u64::from(behind.joints) * joining;
                if let Some(reader) = self.reader.as_mut().filter(|_| upto > next) {
                    reader.on_data(upto, kept, now);
                    let waited = waiting.into_iter().filter(|run| run.start < self.stream.next());
                    saved = waited.map(|run| reader.on_behind(run, joining)).sum();
                }
                self.on_progress([next, upto], [memory, held, behind.memory, saved], filled_gap, now, terms, rtt);
            }
            Arrival::OutOfOrder => {
                self.on_gap(len, [memory, held], terms);
                self.acknowledge_gap(flushes, now, terms, rtt);
            }
            Arrival::Duplicate { beyond: true } => self.acknowledge_gap(flushes, now, terms, rtt),
            Arrival::Duplicate { beyond: false } => {
                self.policy.force_quick(self.offer_left(), terms);
                if end >= self.acked {
                    // An ACK of what was acknowledged before is not one of the quick ones.
                    self.policy.schedule();
                }
                self.policy.now = true;
            }
        }
        let ends = !ended && self.has_ended();
        if ends {
            // What lies beyond the end is not reported.
            self.stream.forget_reports();
        }
        ends
    }

    /// The ACKs that are held back go out before what the packet that has arrived changes; the stream continues at
    /// `next`.
    #[cold]
    fn send_held_ack(&mut self, next: u64, terms: &Terms) {
        self.policy.on_sent(terms);
        self.held_ack = Some(Box::new((next, self.window_field(next, terms), self.stream.take_report(self.map))));
    }

    /// Whether a segment is taken in: not where the window is closed, or no memory is left. A bare FIN always is.
    #[inline]
    fn has_room_for(&mut self, start: u64, end: u64, len: u64, terms: &Terms) -> bool {
        let fits = end <= self.offer.edge() && self.offer.has_memory();
        fits || self.makes_room_for(start, len, terms)
    }

    #[cold]
    fn makes_room_for(&mut self, start: u64, len: u64, terms: &Terms) -> bool {
        let next = self.stream.next();
        let closed = self.offer.edge() <= next && self.unread() > 0;
        if start >= self.offer.edge() && start > next {
            // Beyond the window that is offered now, though not beyond the largest there was.
            self.refusals.beyond_window += 1;
        } else if closed && len > 0 {
            self.refusals.window_closed += 1;
            if start < next {
                self.stream.insert(start, next, BufferedPacket::default());
            }
        } else if !self.offer.has_memory() {
            self.offer.begin_anew(u64::from(terms.own_mss()));
            self.exhausted = true;
            self.policy.now = true;
            if len == 0 || self.unread() == 0 {
                return true;
            }
            self.refusals.no_memory += 1;
            return false;
        } else {
            return true;
        }
        self.policy.force_quick(self.offer_left(), terms);
        self.policy.now = true;
        false
    }

    /// The size of the segment and the memory that it takes, which is returned.
    #[inline]
    fn measure(&mut self, p: TcpSegment<'_>, terms: &Terms) -> u64 {
        let len = u64::from(p.payload());
        if len == 0 {
            return 0;
        }
        let memory = terms.stack.memory.of(len);
        // A large packet holds several segments.
        let segment = p.payload().min(terms.whole);
        if self.policy.measure(segment, p.flags().has(TcpFlags::PSH)) {
            self.offer.measure(len, memory);
        }
        memory
    }

    /// What a packet takes in the buffer that takes `memory` by itself: it joins the packet before it if that is there.
    #[inline]
    fn keep(&self, start: u64, len: u64, memory: u64, terms: &Terms) -> BufferedPacket {
        let pieces = Memory::pieces(start, len);
        if start <= self.stream.next() {
            let joins = self.unread() > 0 && self.reader.as_ref().is_some_and(|reader| reader.joins(pieces));
            let memory = if joins { terms.stack.memory.of_joined(len) } else { memory };
            return BufferedPacket { memory, pieces, joins };
        }
        match self.stream.pieces_before(start).map(|before| before + pieces) {
            Some(together) if together <= Memory::MOST_PIECES => {
                BufferedPacket { memory: terms.stack.memory.of_joined(len), pieces, joins: true }
            }
            _ => BufferedPacket { memory, pieces, joins: false },
        }
    }

    /// A packet continues the stream `from` an offset `upto` another, or with its FIN. It takes `memory` by itself,
    /// `held` in the buffer, and what had waited `behind` it as much, of which `saved` is given back when it has
    /// joined.
    fn on_progress(
        &mut self,
        [from, upto]: [u64; 2],
        [memory, held, behind, saved]: [u64; 4],
        filled_gap: bool,
        now: Time,
        terms: &Terms,
        rtt: &RttEstimator,
    ) {
        if memory > 0 {
            self.policy.on_data(now, self.offer_left(), rtt, terms);
            if std::mem::take(&mut self.hurries) {
                self.policy.need_acks_soon(terms);
            }
            self.hold(held, behind.saturating_sub(saved));
            self.settle_window_before_change(upto, terms);
            // What had waited behind it is not looked at yet.
            self.offer.on_arrival(upto, now);
            let len = upto - from;
            // Whether it is worth its memory is asked as if it joined others.
            let joined = terms.stack.memory.of_joined(len);
            if len >= LEAST_TO_GROW {
                self.grow(len, joined, terms);
            }
            self.offer.give_back(saved);
        }
        if self.has_ended() {
            self.policy.on_end();
        }
        if filled_gap && !self.stream.has_gap() {
            self.policy.now = true;
        }
        self.decide(now, terms, rtt);
        if !self.policy.now && !self.unread.batch[1] {
            self.read_at_once(now);
        }
    }

    /// A packet takes `memory` until the program has read it, and so does what was `behind` it and no longer lies
    /// beyond a gap.
    #[inline]
    fn hold(&mut self, memory: u64, behind: u64) {
        self.offer.hold(memory);
        if self.reader.is_none() {
            self.unread.fresh += memory + behind;
        }
    }

    /// More may be offered for a packet with `len` bytes that takes `memory`.
    fn grow(&mut self, len: u64, memory: u64, terms: &Terms) {
        if self.offer.grow(len, memory, u64::from(terms.own_mss()), u64::from(self.policy.segment)) {
            self.policy.on_growth();
        }
    }

    /// A segment lies beyond a gap. It takes `memory` by itself, `held` in the buffer.
    fn on_gap(&mut self, len: u64, [memory, held]: [u64; 2], terms: &Terms) {
        self.settle_window_before_change(self.stream.next(), terms);
        // A packet that joins the one before it takes its memory at once, another one when the window has grown.
        let joins = held < memory;
        self.offer.hold(if joins { held } else { 0 });
        if terms.sack {
            self.grow(len, memory.min(held), terms);
        }
        self.offer.hold(if joins { 0 } else { held });
        self.offer.make_room_beyond(self.beyond());
    }

    /// The round trip as the receiver sees it: by what arrives, or by what it has sent if that is less.
    fn round_trip(&self, rtt: &RttEstimator) -> Span {
        let by_arrivals = self.offer.round_trip();
        rtt.smoothed().map_or(by_arrivals, |smoothed| smoothed.min(by_arrivals))
    }

    /// Acknowledges what has arrived beyond a gap, now or with what follows; not after another ACK has just gone out.
    fn acknowledge_gap(&mut self, flushes: bool, now: Time, terms: &Terms, rtt: &RttEstimator) {
        if flushes {
            return;
        }
        self.policy.schedule();
        if !terms.compress_sacks || !terms.sack || self.policy.is_quick() {
            self.policy.now = true;
        } else if !self.policy.now {
            self.policy.compress(self.stream.next(), now, self.round_trip(rtt));
        }
    }

    /// Whether to acknowledge now what has arrived in order.
    fn decide(&mut self, now: Time, terms: &Terms, rtt: &RttEstimator) {
        let next = self.stream.next();
        let waiting = next - self.ack_before_change.map_or(self.acked, |(upto, _)| upto);
        if waiting > u64::from(self.policy.segment) {
            let left = self.offer.edge().saturating_sub(self.acked);
            if self.offer.is_scarce() {
                self.policy.slow_down();
            }
            let is_read = self.unread() == 0 && self.unread.fresh == 0;
            if is_read || self.offer.select(u64::from(self.policy.segment)) >= left {
                self.policy.now = true;
            }
        }
        if self.policy.now || self.policy.is_quick() {
            self.policy.now = true;
        } else if self.stream.has_gap() {
            self.policy.compress(next, now, self.round_trip(rtt));
        } else {
            self.policy.delay(now, rtt, terms);
        }
    }

    /// Follows the marks. The segment is from offset `start` to `end`. As in Linux the mark of a duplicate says
    /// nothing.
    fn on_ecn(&mut self, p: TcpSegment<'_>, start: u64, end: u64, terms: &Terms) {
        let is_old = end <= self.stream.next();
        let marked = p.ecn() == Ecn::Ce;
        if p.flags().has(TcpFlags::CWR) && self.echo != Echo::Off {
            // The peer's window may be very small now.
            self.policy.now |= p.is_data();
        }
        match self.echo {
            Echo::Off => {}
            Echo::Classic => {
                if p.flags().has(TcpFlags::CWR) {
                    self.ece = false;
                }
                if is_old {
                    return;
                }
                let capable = p.ecn() != Ecn::NotEct;
                // A packet that is not capable was most likely lost before (RFC 3168, section 6.1.5).
                if (marked && !self.ece) || (!capable && self.ect_seen) {
                    if start <= self.stream.next() {
                        self.hurries = true;
                    } else {
                        self.policy.need_acks_soon(terms);
                    }
                }
                self.ece |= marked;
                self.ect_seen |= capable;
            }
            Echo::Precise => {
                if marked != self.ece && !is_old {
                    // The peer is to know at once (RFC 8257, section 3.2).
                    self.policy.now = true;
                    if self.stream.next() > self.acked {
                        self.ack_before_change = Some((self.stream.next(), None));
                        if start > self.stream.next() || self.stream.reports() {
                            self.report_before_change = Some(Box::new(self.stream.take_report(self.map)));
                        }
                        self.policy.cancel_delay();
                    } else {
                        self.ece = marked;
                    }
                }
            }
        }
    }

    /// The ACK that goes out because the packet that has arrived is marked otherwise than those before it acknowledges
    /// these, but offers what is left from `next` on, after this packet, before the window grows for it.
    #[inline]
    fn settle_window_before_change(&mut self, next: u64, terms: &Terms) {
        if let Some((upto, None)) = self.ack_before_change {
            self.ack_before_change = Some((upto, Some(self.window_field(next, terms))));
        }
    }

    /// The window field of an acknowledgement of what lies before `upto`.
    #[inline]
    fn window_field(&mut self, upto: u64, terms: &Terms) -> u16 {
        if std::mem::take(&mut self.exhausted) {
            self.offer.close(upto)
        } else {
            if self.offer.is_scarce() {
                self.policy.slow_down();
            }
            self.offer.field(upto, u64::from(self.policy.segment), terms.stack.shrink_window)
        }
    }

    /// The acknowledgement that goes out before the one that is due now: what it acknowledges, its window field, and
    /// what it reports, where these are settled.
    #[cold]
    fn take_earlier_ack(&mut self) -> (u64, Option<u16>, Option<Box<Report>>) {
        if let Some(held) = self.held_ack.take() {
            return (held.0, Some(held.1), Some(Box::new(held.2)));
        }
        let (upto, window) = self.ack_before_change.take().expect("one of the two is there");
        self.ece = !self.ece;
        (upto, window, self.report_before_change.take())
    }

    /// Writes the SACK option, with a report that is settled, or else with what there is to report.
    #[inline(never)]
    fn write_report(&mut self, p: &mut TcpSegmentMut<'_>, settled: Option<Box<Report>>) {
        let report = settled.map_or_else(|| self.stream.take_report(self.map), |report| *report);
        let option = report.write(p);
        p.add_options(option);
    }

    /// Fills in what every packet reports to the peer: acknowledgement, echo, timestamp echo and, where no payload
    /// needs the room, SACK.
    #[inline(always)]
    pub(crate) fn write_ack(&mut self, p: &mut TcpSegmentMut<'_>, now: Time, terms: &Terms) {
        p.insert_flags(TcpFlags::ACK);
        p.set_tsecr(self.ts_recent);
        if self.ece {
            p.insert_flags(TcpFlags::ECE);
        }
        let (upto, window, report) = if self.held_ack.is_none() && self.ack_before_change.is_none() {
            self.policy.on_sent(terms);
            (self.stream.next(), None, None)
        } else {
            self.take_earlier_ack()
        };
        p.set_ack(self.map.wire(upto));
        p.set_window(window.unwrap_or_else(|| self.window_field(upto, terms)));
        self.acked = self.acked.max(upto);
        if let Some(sample) = self.sample
            && p.has_stamps()
        {
            latency::echo(p, sample);
            self.sample = None;
        }
        if !p.is_data() && (report.is_some() || self.stream.reports()) {
            self.write_report(p, report);
        }
        if let Some(reader) = &mut self.reader {
            reader.last_packet = now;
        } else if upto == self.stream.next() && !self.unread.batch[1] {
            self.read_at_once(now);
        }
    }
}
