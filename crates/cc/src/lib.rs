//! The interface between a TCP endpoint and its congestion control, which algorithms implement.
//!
//! A controller owns no clock and no packets. The endpoint reports every ACK ([`CongestionControl::on_ack`]), asks the
//! controller to raise the window when that is allowed ([`CongestionControl::grow`]), and asks for the window to fall
//! to when there was congestion ([`CongestionControl::ssthresh`]). The endpoint moves the window there (proportional
//! rate reduction, RFC 6937). A controller that sets window and pace by itself gets delivery rates instead
//! ([`CongestionControl::on_delivery`]).
//!
//! A controller of one's own is a shared object: a crate of the type `cdylib` that depends on this one, implements
//! [`CongestionControl`] and names its type in [`congestion_control!`]. [`abi`] is the binary interface between such an
//! object and the engine.

pub mod abi;
pub mod event;

pub use firstlight_units::{Bytes, Rate, Span, Time};

/// The congestion window, in packets as Linux counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Window {
    /// Packets that may be in flight.
    pub cwnd: u32,
    /// Slow start below, congestion avoidance from here on.
    pub ssthresh: u32,
    /// Packets acknowledged towards the next increase of `cwnd` in congestion avoidance.
    pub credit: u32,
    /// No controller sets the threshold below this many packets, or shrinks the window below it. Swift paces below one.
    pub floor: u32,
}

impl Window {
    /// A window at the start of a connection, with Linux's floor of two packets.
    pub const fn new(initial: u32) -> Self {
        Window { cwnd: initial, ssthresh: u32::MAX, credit: 0, floor: 2 }
    }

    /// True below the threshold.
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start (RFC 5681, section 3.1, with byte counting's spirit: a packet more for each packet acknowledged), up
    /// to the threshold; returns the acknowledged packets that are left over.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let step = acked.min(self.ssthresh.saturating_sub(self.cwnd));
        self.cwnd += step;
        acked - step
    }

    /// Adds one packet for each `per` packets acknowledged. Credit above `per`, from a time when `per` was larger, adds
    /// one packet only.
    pub fn additive_increase(&mut self, per: u32, acked: u32) {
        let per = per.max(1);
        if self.credit >= per {
            self.credit = 0;
            self.cwnd += 1;
        }
        self.credit += acked;
        if self.credit >= per {
            self.cwnd += self.credit / per;
            self.credit %= per;
        }
    }
}

/// Delays that follow from the network interfaces' timestamps of one full-sized data packet and of the ACK that answers
/// it. The packet left at t1 and arrived at t2, the ACK left at t3 and arrived at t4 ("Accurate Latency-based
/// Congestion Feedback for Datacenters", USENIX ATC 2015, section 2 and figure 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latency {
    /// t2 - t1 in nanoseconds: the delay from sender to receiver plus how far the receiver's clock is ahead, modulo
    /// 2^32. Only the difference of two such values means anything; take it with `wrapping_sub`.
    pub one_way: i32,
    /// (t4 - t1) - (t3 - t2): the round trip without the time for which the receiver kept the ACK. Each of the two
    /// spans is on one clock, so that the value has the clocks' drift in it, but not their offset.
    pub rtt: Span,
}

/// The information in an ACK for the sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// The time of the host's clock.
    pub now: Time,
    /// Packets that it newly reports as delivered, cumulatively or by SACK.
    pub delivered: u32,
    /// Packets that it acknowledges cumulatively, whether reported before by SACK or not.
    pub advanced: u32,
    /// Round-trip time of the newest packet that it acknowledges, if that was sent once.
    pub rtt: Option<Span>,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// The network's share of it, where the controller asks for timestamps and the ACK answers a full-sized packet.
    pub latency: Option<Latency>,
    /// The ACK carried ECN-Echo.
    pub ece: bool,
    /// A reduction is under way: the endpoint moves the window to the threshold.
    pub reducing: bool,
    /// Nothing was lost or out of order before this ACK, and no reduction was under way; where the window may grow,
    /// after it.
    pub open: bool,
    /// Whether the ACK acknowledges new data, has no SACK and offers the same window as the ACK before it: header
    /// prediction takes it (Jacobson, "4BSD TCP Header Prediction", ACM CCR 20(2), 1990).
    pub predicted: bool,
    /// Everything before this stream offset is acknowledged.
    pub una: u64,
    /// The next stream offset to be sent.
    pub next: u64,
    /// Payload of a full packet, in bytes.
    pub mss: u32,
    /// The ACK's timestamps (RFC 7323) in milliseconds: the peer's clock, and the echo of this host's clock.
    pub timestamps: [u32; 2],
}

/// The state of a connection when it is established, at the end that sends first.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The time of the host's clock.
    pub now: Time,
    /// The round-trip time of the handshake, if it is known.
    pub srtt: Option<Span>,
    /// A full-sized data packet, headers included.
    pub packet: Bytes,
    /// A number that differs between connections, for controllers that draw random numbers.
    pub seed: u64,
}

/// How fast packets were delivered, for controllers that ask for it (draft-cheng-iccrg-delivery-rate-estimation-00).
/// The sample is that of the newest packet that an ACK reports as delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Packets delivered since the connection's start.
    pub total: u64,
    /// Value of `total` when the sample's packet was sent.
    pub total_before: u64,
    /// The longer of the times in which the sample's packets were sent and acknowledged; `None` without a sample.
    pub interval: Option<Span>,
    /// The sender had too little data while the sample was taken, so that the sample may be too low.
    pub limited: bool,
    /// Packets from the oldest one that was not acknowledged when the sample's packet was sent to that packet.
    pub flight_at_send: u32,
    /// Packets in flight before this ACK.
    pub flight_before: u32,
    /// Packets in flight after this ACK.
    pub in_flight: u32,
    /// Packets that were found lost at this ACK.
    pub lost: u32,
    /// Losses are being repaired: in a recovery, or after a timeout.
    pub repairing: bool,
}

/// How a controller uses ECN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnUse {
    /// RFC 3168, where the endpoint negotiates it.
    Classic,
    /// Always negotiated; the receiver echoes each mark precisely (RFC 8257, section 3.2).
    Precise,
    /// Never negotiated: ECN-Echo means something else to this controller.
    OwnMeaning,
}

/// A congestion control algorithm.
pub trait CongestionControl {
    /// Every ACK, in every state, before the window may be raised. Most need nothing here.
    fn on_ack(&mut self, _window: &mut Window, _ack: &Ack) {}

    /// The host is notified that a circuit for the connection's data is announced (`up`), or has gone down. During a
    /// reduction (`reducing`) the window is the endpoint's, as with [`CongestionControl::on_ack`].
    fn on_circuit(&mut self, _window: &mut Window, _up: bool, _reducing: bool) {}

    /// Raise the window for `ack.delivered` packets: the connection is limited by it and not reducing it.
    fn grow(&mut self, window: &mut Window, ack: &Ack);

    /// An ACK that might raise the window if the program filled it. Most controllers leave the window then.
    fn on_unfilled(&mut self, _window: &mut Window, _ack: &Ack) {}

    /// Congestion was found (loss, or a mark when `marked`): the threshold to fall to.
    fn ssthresh(&mut self, window: &Window, marked: bool) -> u32;

    /// Losses are to be repaired by a recovery. `ssthresh` was asked before, unless a reduction was under way.
    fn on_recovery(&mut self, _window: &mut Window) {}

    /// The handshake is complete.
    fn on_established(&mut self, _window: &mut Window, _start: &Start) {}

    /// An ACK was processed, and the endpoint has found what is lost. `delivery` has the delivery rate. Only for
    /// controllers that ask for it ([`CongestionControl::wants_delivery`]). Returns whether the controller has set the
    /// window itself, so that the endpoint leaves it.
    fn on_delivery(&mut self, _window: &mut Window, _ack: &Ack, _delivery: &Delivery) -> bool {
        false
    }

    /// Whether the controller wants the reduction that a mark causes. The endpoint calls this after each ACK.
    fn backs_off(&mut self) -> bool {
        false
    }

    /// A reduction is over, and the window has become the threshold.
    fn on_reduced(&mut self, _window: &mut Window) {}

    /// Data are sent `now` where none is in flight, or again where all are lost. The last were sent at `last_sent`; new
    /// data start at stream offset `next`.
    fn on_resume(&mut self, _now: Time, _last_sent: Time, _next: u64) {}

    /// The sender's state of congestion has changed. `open`: nothing is known to be lost or out of order. New data
    /// start at stream offset `next`.
    fn on_state(&mut self, _open: bool, _next: u64) {}

    /// The retransmission timer expired. [`Self::ssthresh`] was called before, once for this loss.
    fn on_timeout(&mut self, _window: &mut Window) {}

    /// The retransmission timer expired during a reduction: in a recovery, or again before any ACK. `ssthresh` is not
    /// called and keeps its value; [`Self::on_timeout`] is not called either.
    fn on_timeout_in_reduction(&mut self) {}

    /// The reduction was spurious: the window to go back to, given the one before it.
    fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        window.cwnd.max(prior_cwnd)
    }

    /// How it uses ECN.
    fn ecn(&self) -> EcnUse {
        EcnUse::Classic
    }

    /// Whether its packets carry timestamps of the network interfaces ([`Ack::latency`]), which take 16 bytes of each.
    fn wants_stamps(&self) -> bool {
        false
    }

    /// Whether the controller gets delivery rates ([`CongestionControl::on_delivery`]). If so, each packet in flight
    /// has a record.
    fn wants_delivery(&self) -> bool {
        false
    }

    /// A data packet of `bytes`, headers included, leaves now. Returns how long the next packet has to wait; with zero
    /// only the window limits it.
    fn pace(&mut self, _bytes: Bytes) -> Span {
        Span::ZERO
    }

    /// Full-sized packets that leave per second, where the controller sets that for the whole connection: what the
    /// host's interface may hold of the connection follows it.
    fn packets_per_second(&self) -> Option<f64> {
        None
    }

    /// Bytes that may leave at once where packets are paced; the next burst waits for all of them.
    fn burst(&self) -> Bytes {
        Bytes::new(0)
    }

    /// Packets that leave late make up for it, and the first ones of a connection are not paced, as Linux does it.
    /// `false`: the distance between packets is strict.
    fn makes_up(&self) -> bool {
        false
    }

    /// How many windows a send buffer of tuned size has room for.
    fn windows_buffered(&self) -> u64 {
        2
    }
}
