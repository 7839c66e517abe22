//! The receiving half: which segments are acceptable, reassembly, and when to acknowledge.
//!
//! ACKs follow RFC 9293 (section 3.8.6.3) and RFC 5681 (section 4.2): at once for every second full segment, for
//! anything out of order, for what fills a gap and at the end of an application's write; else delayed. As in Linux, the
//! first packets of a connection and those after a duplicate are acknowledged at once, and ACKs that would only report
//! more of what lies beyond a gap are held back for a twentieth of a round trip after the first three, as long as the
//! SACK option has room for all that they would say. ECN is echoed as RFC 3168
//! (section 6.1.3) or, precisely, as RFC 8257 (section 3.2) has it.

use super::latency::{self, Sample};
use super::offer::Offer;
use super::reassembly::{Arrival, Reassembly};
use super::rtt::RttEstimator;
use super::seq::SeqMap;
use super::terms::Terms;
use super::timer::Ticks;
use firstlight_net::{Ecn, TcpFlags, TcpSegment, TcpSegmentMut};
use firstlight_units::{Span, Time};

/// ACKs for out-of-order data that go out at once for each gap: what fast retransmit needs.
const UNCOMPRESSED: u32 = 3;
/// The most ACKs that are held back.
const MOST_COMPRESSED: u32 = 44;
/// ACKs are held back for a twentieth of the round-trip time, and no longer than this.
const LONGEST_COMPRESSION: Span = Span::from_ms(1);
/// The slack of the timer that ends the holding back.
const COMPRESSION_SLACK: Span = Span::from_us(100);

/// ACKs that are being held back.
#[derive(Clone, Copy, Debug)]
struct Compression {
    /// Stream offset at which the gap begins.
    gap: u64,
    /// ACKs that went out for this gap.
    sent: u32,
    /// ACKs that wait.
    held: u32,
    /// When the ACKs that wait go out; [`Time::MAX`] when none waits.
    until: Time,
}

impl Compression {
    const fn of(gap: u64) -> Self {
        Compression { gap, sent: 0, held: 0, until: Time::MAX }
    }
}

/// How marks are echoed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Echo {
    /// ECN was not negotiated.
    Off,
    /// From a mark until CWR arrives.
    Classic,
    /// Each packet's mark as it is.
    Precise,
}

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    stream: Reassembly,
    map: SeqMap,
    offer: Offer,
    pub(crate) echo: Echo,
    /// ECE is set on what is sent now.
    ece: bool,
    /// Stream offset of the last acknowledgement sent.
    acked: u64,
    /// An acknowledgement is due at once.
    ack_now: bool,
    /// A precise echo changed with data unacknowledged: first acknowledge up to here, with the echo as it was.
    ack_before_change: Option<u64>,
    /// When a delayed acknowledgement is due; [`Time::MAX`] when none is.
    deadline: Time,
    compression: Compression,
    quick: u32,
    ticks: Ticks,
    last_arrival: Option<Time>,
    /// The timestamp to echo (RFC 7323, section 4.3).
    ts_recent: u32,
    /// When the newest full-sized packet left and came, until an ACK tells.
    sample: Option<Sample>,
    /// Stream offset after the peer's FIN; [`u64::MAX`] while it has not been seen.
    end: u64,
    /// Stream offset up to which the program has read; [`u64::MAX`] where it reads everything at once.
    read: u64,
}

impl Receiver {
    pub(crate) fn new(terms: &Terms) -> Self {
        Receiver {
            stream: Reassembly::new(0, 0),
            map: SeqMap::new(0),
            offer: Offer::new(terms),
            echo: Echo::Off,
            ece: false,
            acked: 0,
            ack_now: false,
            ack_before_change: None,
            deadline: Time::MAX,
            compression: Compression::of(0),
            quick: 0,
            ticks: Ticks::new(terms.tick),
            last_arrival: None,
            ts_recent: 0,
            sample: None,
            end: u64::MAX,
            read: u64::MAX,
        }
    }

    /// The peer's SYN arrived: its stream starts.
    pub(crate) fn start(&mut self, initial: u32, tsval: u32, terms: &Terms) {
        self.map = SeqMap::new(initial);
        let blocks = if terms.option > 0 { latency::SACK_BLOCKS } else { 3 };
        self.stream = Reassembly::new(1, if terms.sack { blocks } else { 0 });
        self.ts_recent = if terms.timestamps { tsval } else { 0 };
        self.offer.start(terms);
    }

    /// Nothing is acknowledged any more.
    pub(crate) fn abandon(&mut self) {
        self.ack_now = false;
        self.ack_before_change = None;
        self.deadline = Time::MAX;
        self.compression.until = Time::MAX;
    }

    /// From now on the program reads by calls.
    pub(crate) fn read_by_calls(&mut self) {
        self.read = self.stream.next().max(1);
    }

    /// Bytes that the program has not read.
    pub(crate) fn unread(&self) -> u64 {
        (self.bytes() + 1).saturating_sub(self.read)
    }

    /// The program reads at most `bytes`; returns how many there were.
    pub(crate) fn read(&mut self, bytes: u64) -> u64 {
        let read = self.unread().min(bytes);
        if self.read < u64::MAX {
            self.read += read;
        }
        read
    }

    /// The window field of a SYN.
    pub(crate) fn first_window(&self) -> u16 {
        self.offer.unscaled()
    }

    /// The next packets are acknowledged at once: as many as make up half a window, between 2 and `quick_acks`.
    fn acknowledge_quickly(&mut self, terms: &Terms) {
        let half = self.offer.granted() / (2 * u64::from(terms.mss));
        self.quick = (half.clamp(2, u64::from(u32::MAX)) as u32).min(terms.quick_acks);
    }

    /// Bytes received in order.
    pub(crate) fn bytes(&self) -> u64 {
        self.stream.next().saturating_sub(1) - u64::from(self.has_ended())
    }

    /// Whether the peer's FIN and everything before it have arrived.
    pub(crate) fn has_ended(&self) -> bool {
        self.stream.next() >= self.end
    }

    /// Whether `p` carries the sequence number of the peer's SYN.
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
        start >= self.stream.next() && start <= self.offer.limit_of_peer()
    }

    /// Whether `p` carries data that have not arrived before.
    pub(crate) fn is_new(&self, p: TcpSegment<'_>) -> bool {
        p.is_data() && self.map.offset(p.seq(), self.stream.next()) + u64::from(p.payload()) > self.stream.next()
    }

    /// Whether `p` is acceptable (RFC 9293, section 3.10.7.4). What has arrived before is, for it must be acknowledged.
    #[inline]
    pub(crate) fn admits(&self, p: TcpSegment<'_>) -> bool {
        let start = self.map.offset(p.seq(), self.stream.next());
        start <= self.offer.limit_of_peer()
    }

    /// A segment arrived that is not acceptable.
    pub(crate) fn on_unacceptable(&mut self, _p: TcpSegment<'_>) {
        self.ack_now = true;
    }

    /// When [`Receiver::ack_now`] is to be called; [`Time::MAX`] for never.
    pub(crate) fn deadline(&self) -> Time {
        self.deadline.min(self.compression.until)
    }

    pub(crate) fn wants_ack(&self) -> bool {
        self.ack_now || self.ack_before_change.is_some()
    }

    /// Acknowledge at once: the delay is over, or the handshake asks for it.
    pub(crate) fn ack_now(&mut self) {
        self.ack_now = true;
    }

    /// A segment with data or a FIN arrived. After a silence of a timeout ACKs are quick again, hence `rtt`. Returns
    /// whether the peer's stream is complete with it.
    pub(crate) fn on_data(&mut self, p: TcpSegment<'_>, now: Time, terms: &Terms, rtt: &RttEstimator) -> bool {
        let start = self.map.offset(p.seq(), self.stream.next());
        let fin = p.flags().has(TcpFlags::FIN);
        let end = start + u64::from(p.payload()) + u64::from(fin);
        if fin && self.end == u64::MAX {
            self.end = end;
        }
        let ended = self.has_ended();
        if start <= self.acked && terms.timestamps {
            self.ts_recent = p.tsval();
        }
        if p.has_stamps() && p.payload() >= terms.mss {
            self.sample = Some(latency::sample(&p));
        }
        self.on_ecn(p, terms);
        if self.last_arrival.is_none_or(|last| now.saturating_since(last) > rtt.rto()) {
            self.acknowledge_quickly(terms);
        }
        self.last_arrival = Some(now);
        match self.stream.insert(start, end) {
            Arrival::InOrder { filled_gap } => {
                if self.offer.on_progress(self.stream.next(), end - start, now) {
                    self.quick |= 1;
                }
                if self.has_ended() {
                    // Only the program's own FIN is still to come: the ACK may wait for it.
                    self.quick = u32::from(self.bytes() == 0);
                }
                let waiting = self.stream.next() - self.ack_before_change.unwrap_or(self.acked);
                let pushed = p.flags().has(TcpFlags::PSH);
                if filled_gap || pushed || waiting > u64::from(terms.mss) || self.quick > 0 || self.stream.has_gap() {
                    self.ack_now = true;
                } else if self.deadline == Time::MAX {
                    self.deadline = self.ticks.after(now, terms.delayed_ack);
                }
            }
            Arrival::OutOfOrder { crowded } => {
                if crowded || self.quick > 0 || !terms.compress_sacks {
                    self.ack_now = true;
                } else {
                    self.compress(now, rtt);
                }
            }
            Arrival::Duplicate => {
                self.acknowledge_quickly(terms);
                self.ack_now = true;
            }
        }
        !ended && self.has_ended()
    }

    /// More beyond a gap: acknowledge now or with what follows.
    fn compress(&mut self, now: Time, rtt: &RttEstimator) {
        let c = &mut self.compression;
        if c.gap != self.stream.next() {
            *c = Compression::of(self.stream.next());
        }
        if c.sent < UNCOMPRESSED {
            c.sent += 1;
            self.ack_now = true;
            return;
        }
        c.held += 1;
        if c.held >= MOST_COMPRESSED {
            self.ack_now = true;
        } else if c.until == Time::MAX {
            let delay = rtt.smoothed().map_or(LONGEST_COMPRESSION, |rtt| (rtt / 20).min(LONGEST_COMPRESSION));
            c.until = now + delay + COMPRESSION_SLACK;
        }
    }

    /// Follows the marks.
    fn on_ecn(&mut self, p: TcpSegment<'_>, terms: &Terms) {
        let marked = p.ecn() == Ecn::Ce;
        match self.echo {
            Echo::Off => {}
            Echo::Classic => {
                if p.flags().has(TcpFlags::CWR) {
                    self.ece = false;
                }
                if marked && !self.ece {
                    self.ece = true;
                    self.quick = self.quick.max(2.min(terms.quick_acks));
                }
            }
            Echo::Precise => {
                if marked != self.ece {
                    if self.stream.next() > self.acked {
                        self.ack_before_change = Some(self.stream.next());
                        self.deadline = Time::MAX;
                    } else {
                        self.ece = marked;
                    }
                }
            }
        }
    }

    /// Fills in what every packet tells the peer: acknowledgement, echo, timestamp echo and, where no payload needs the
    /// room, SACK.
    pub(crate) fn write_ack(&mut self, p: &mut TcpSegmentMut<'_>) {
        p.insert_flags(TcpFlags::ACK);
        p.set_tsecr(self.ts_recent);
        if self.ece {
            p.insert_flags(TcpFlags::ECE);
        }
        let upto = match self.ack_before_change.take() {
            Some(upto) => {
                self.ece = !self.ece;
                upto
            }
            None => {
                self.ack_now = false;
                self.deadline = Time::MAX;
                self.compression.held = 0;
                self.compression.until = Time::MAX;
                self.stream.next()
            }
        };
        p.set_ack(self.map.wire(upto));
        p.set_window(self.offer.field(upto, self.unread()));
        if upto > self.acked {
            self.quick = self.quick.saturating_sub(1);
            self.acked = upto;
        }
        if let Some(sample) = self.sample
            && p.has_stamps()
        {
            latency::echo(p, sample);
            self.sample = None;
        }
        if !p.is_data() {
            let option = self.stream.write_sack(p, self.map);
            p.add_options(option);
        }
    }
}
