//! DX: the window follows the queueing delay, measured one way and without synchronized clocks (Lee, Park, Jang, Moon
//! and Han, "Accurate Latency-based Congestion Feedback for Datacenters", USENIX ATC 2015).
//!
//! Once per round trip, Q is the average queueing delay of the round's samples. The window grows by one packet if Q is
//! zero, and becomes cwnd (1 - Q / V) if not (equation 1). V is R W* / (W* - 1), with the base round-trip time R and
//! the window W* before the decrease (equation 8). A Q below the headroom counts as zero (section 4.2).
//!
//! Queueing delay is the one-way delay less a base. The base is the one-way delay of the packet with the smallest
//! round-trip time. It is measured anew when a round-trip time is smaller than that or as small (section 2), since an
//! old base drifts away with the clocks. The base is subtracted from the average of the one-way delays. Drift or noise
//! can make the result negative, by less than any headroom.
//!
//! Where the paper is silent:
//! - *As small* means within half the headroom of the smallest, and at least within 84 ns. Real timestamps are noisy,
//!   so that the very smallest round-trip time comes too seldom to follow the drift. Half the headroom is no queueing
//!   by section 4.2. The 84 ns are 4 for four timestamps of 1 ns, twice, and 80 for two clocks that each drift by 40 ns
//!   per ms, over 1 ms, the longest time for which an ACK counts as a measure. One packet's delay at 10 Gb/s is 1200
//!   ns. Where the noise is larger than this, the base is older, as in the paper.
//! - *R* is the round trip between the interfaces, from the four timestamps that the sender gets (section 4), or the
//!   round trip with the hosts' stacks, which the windows fill (equation 2: the sum of W = C R). See
//!   [`DxConfig::round_trip`].
//! - *Q above the headroom* is drained whole, or only as far as it exceeds the headroom ([`DxConfig::drain`]). Section
//!   5.3 has the queue grow with the headroom "by the same amount", which fits the second.
//! - *The headroom* must exceed the noise (0.53 us in hardware) and one packet, since two packets that reach a switch
//!   at the same moment are not congestion. The default is 1.2 us, a packet of 1500 B at 10 Gb/s.
//! - *Samples after a decrease*: those of one round are of packets that were sent before it, under the larger window.
//!   They are left out, since equation 8 derives V for one answer to a queue. After an increase by one packet they
//!   count, so that the window grows by one packet each round trip.
//! - *Slow start* is TCP's until the first round with Q above the headroom. The window goes on doubling until the end
//!   of that round, or stops at the first sample above the headroom ([`DxConfig::slow_start`]). Then equation 1 sets
//!   it.
//! - *Loss* halves the window as in Reno, and the round with the loss is left out. Two packets are the least window.
//! - A round without samples (short packets are not measured) leaves the window as it is.

use super::exact::Exact;
use super::{Ack, CongestionControl, ControllerConfig, Latency, ModuleParameter, NewReno, NewRenoConfig, Window};
use firstlight_units::{Bytes, Rate, Span};

/// Round-trip times this close are always the same.
const SAME_RTT: Span = Span::from_ns(84);

/// The headroom where no link is known: the serialization of a packet of 1,500 bytes at 10 Gb/s.
const HEADROOM: Span = Span::from_ns(1200);

/// The largest headroom of the kernel's module, which counts picoseconds in 32 bits.
const MOST_ON_LINUX: Span = Span::from_ms(4);

/// DX (USENIX ATC'15). Its times are of the hosts' own clocks: `time_scale` does not stretch them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct DxConfig {
    /// An average queueing delay below this counts as none.
    #[cfg_attr(feature = "spec", schemars(extend("x-without" = "what a packet of `hosts.mtu` takes at `hosts.rate`")))]
    pub headroom: Option<Span>,
    /// The base round-trip time R of equation 8.
    pub round_trip: RoundTrip,
    /// The queueing delay Q by which equation 1 shrinks the window.
    pub drain: Drain,
    /// When slow start ends.
    pub slow_start: SlowStart,
}

/// When DX's slow start ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "spec", serde(rename_all = "lowercase"))]
pub enum SlowStart {
    /// At the end of the first round whose average queueing delay is above the headroom.
    #[default]
    Round,
    /// At the first packet whose queueing delay is above the headroom. The round's average then decides as always.
    Sample,
}

/// Which round-trip time DX's window is decreased by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "spec", serde(rename_all = "lowercase"))]
pub enum RoundTrip {
    /// The least between the hosts' interfaces, of the timestamps that the queueing delay is of (section 4).
    #[default]
    Interface,
    /// The least that TCP measures, the hosts' stacks included: what the windows fill (equation 2).
    Host,
}

/// Which part of a queueing delay above the headroom DX drains.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "spec", serde(rename_all = "lowercase"))]
pub enum Drain {
    /// The whole queueing delay.
    #[default]
    Queue,
    /// The part that exceeds the headroom, so that a queue as long as the headroom stays.
    Excess,
}

impl ControllerConfig for DxConfig {
    const LINUX: Option<&'static str> = Some("dx");
    const MODULE: Option<&'static str> = Some("dx.ko");
    const NEEDS_OUR_KERNEL: bool = true;

    fn parameters(&self) -> Vec<ModuleParameter> {
        let headroom = self.headroom.unwrap_or(HEADROOM);
        let value = if headroom > MOST_ON_LINUX {
            Err(format!("a Linux host takes at most {MOST_ON_LINUX}, not {headroom}"))
        } else {
            Ok(headroom.as_ps() as u32)
        };
        vec![
            ModuleParameter { key: "headroom", module: "dx", name: "headroom", value },
            ModuleParameter::switch("dx", "round_trip", "host_rtt", self.round_trip == RoundTrip::Host),
            ModuleParameter::switch("dx", "drain", "excess", self.drain == Drain::Excess),
            ModuleParameter::switch("dx", "slow_start", "stop_at_sample", self.slow_start == SlowStart::Sample),
        ]
    }

    fn on_link(self, rate: Rate, mtu: Bytes) -> Self {
        DxConfig { headroom: self.headroom.or_else(|| Some(rate.tx_time(mtu))), ..self }
    }
}

/// A packet that met no queue.
#[derive(Clone, Copy, Debug)]
struct Base {
    /// The smallest round-trip time there was.
    rtt: Span,
    /// The skewed one-way delay of the last packet that had it.
    one_way: i32,
}

/// The samples of a round.
#[derive(Clone, Copy, Debug, Default)]
struct DelayRound {
    /// The first; the others are summed up as differences from it, since they wrap.
    first: i32,
    sum: i64,
    count: u32,
}

/// The state of DX.
#[derive(Clone, Debug)]
pub struct Dx {
    headroom: f64,
    /// Round-trip times this close are the same.
    same_rtt: Span,
    exact: Exact,
    base: Option<Base>,
    round_trip: RoundTrip,
    drain: Drain,
    slow_start: SlowStart,
    /// The least round-trip time that TCP has measured.
    host_rtt: Option<Span>,
    round: DelayRound,
    /// The round ends when this stream offset is acknowledged.
    round_end: u64,
    /// The samples of this round are of an earlier window.
    stale: bool,
    /// The window is to grow by a packet.
    raise: bool,
    reno: NewReno,
}

impl Dx {
    /// A controller for one connection.
    pub fn new(config: DxConfig, tick: Span) -> Self {
        let headroom = config.headroom.unwrap_or(HEADROOM);
        Dx {
            headroom: nanoseconds(headroom),
            same_rtt: SAME_RTT.max(headroom / 2),
            exact: Exact::new(),
            base: None,
            round_trip: config.round_trip,
            drain: config.drain,
            slow_start: config.slow_start,
            host_rtt: None,
            round: DelayRound::default(),
            round_end: 0,
            stale: false,
            raise: false,
            reno: NewReno::new(NewRenoConfig {}, tick),
        }
    }

    /// The smallest round-trip time, and the one-way delay that is taken for that of an empty path.
    #[cfg(test)]
    pub(crate) fn base(&self) -> Option<(Span, i32)> {
        self.base.map(|base| (base.rtt, base.one_way))
    }

    fn measure(&mut self, latency: Latency) {
        let Latency { one_way, rtt } = latency;
        match &mut self.base {
            Some(base) if rtt > base.rtt + self.same_rtt => {}
            Some(base) => *base = Base { rtt: rtt.min(base.rtt), one_way },
            none => *none = Some(Base { rtt, one_way }),
        }
        self.round.add(one_way);
    }

    /// Whether a packet has met a queue above the headroom.
    fn is_queued(&self, latency: Latency) -> bool {
        self.base.is_some_and(|base| f64::from(latency.one_way.wrapping_sub(base.one_way)) >= self.headroom)
    }

    /// R of equation 8 in nanoseconds.
    fn round_trip(&self, base: Base) -> f64 {
        nanoseconds(match self.round_trip {
            RoundTrip::Interface => base.rtt,
            RoundTrip::Host => self.host_rtt.unwrap_or(base.rtt),
        })
    }

    /// The round's average queueing delay in nanoseconds.
    fn queueing(&self) -> Option<f64> {
        let base = self.base?;
        let average = self.round.sum as f64 / f64::from(self.round.count);
        let first = f64::from(self.round.first.wrapping_sub(base.one_way));
        (self.round.count > 0).then_some(first + average)
    }

    fn end_round(&mut self, window: &mut Window) {
        let queueing = self.queueing();
        let stale = std::mem::take(&mut self.stale);
        self.round = DelayRound::default();
        self.raise = false;
        let (Some(q), Some(base), false) = (queueing, self.base, stale) else { return };
        if q < self.headroom {
            self.raise = true;
            return;
        }
        let cwnd = self.exact.of(window);
        let least = f64::from(window.floor).min(cwnd);
        let drained = match self.drain {
            Drain::Queue => q,
            Drain::Excess => q - self.headroom,
        };
        self.exact.set(window, decreased(cwnd, drained, self.round_trip(base)).max(least));
        // Slow start is over for good: below an old threshold it would begin again.
        window.ssthresh = window.cwnd.max(window.floor);
        self.stale = true;
    }
}

impl DelayRound {
    fn add(&mut self, one_way: i32) {
        if self.count == 0 {
            self.first = one_way;
        }
        self.sum += i64::from(one_way.wrapping_sub(self.first));
        self.count += 1;
    }
}

fn nanoseconds(span: Span) -> f64 {
    span.as_ps() as f64 / 1e3
}

/// Equations 1 and 8, for Q > 0.
fn decreased(cwnd: f64, q: f64, rtt: f64) -> f64 {
    let v = rtt * cwnd / (cwnd - 1.0);
    cwnd * (1.0 - q / v)
}

impl CongestionControl for Dx {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if let Some(latency) = ack.latency {
            self.measure(latency);
            if self.slow_start == SlowStart::Sample && window.in_slow_start() && self.is_queued(latency) {
                window.ssthresh = window.cwnd;
            }
        }
        self.host_rtt = ack.rtt.map_or(self.host_rtt, |rtt| Some(self.host_rtt.map_or(rtt, |least| least.min(rtt))));
        if ack.una > self.round_end {
            self.round_end = ack.next;
            self.end_round(window);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        if window.in_slow_start() {
            window.slow_start(ack.delivered);
        } else if std::mem::take(&mut self.raise) {
            let cwnd = self.exact.of(window);
            self.exact.set(window, cwnd + 1.0);
        }
    }

    fn ssthresh(&mut self, window: &Window, marked: bool) -> u32 {
        self.stale = true;
        self.raise = false;
        self.reno.ssthresh(window, marked)
    }

    fn wants_stamps(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dx() -> Dx {
        Dx::new(DxConfig::default(), Span::ZERO)
    }

    /// ACKs that make a round: queueing delays in ns, over a base of 20 us one way (and a clock that is off) and 40 us
    /// there and back.
    fn round(dx: &mut Dx, window: &mut Window, queueing: &[i32]) {
        let una = dx.round_end + 1;
        for (i, &q) in queueing.iter().enumerate() {
            let last = i + 1 == queueing.len();
            let (one_way, rtt) = (i32::MAX.wrapping_add(20_000 + q), Span::from_ns(40_000 + q as u64));
            let latency = Some(Latency { one_way, rtt });
            let una = if last { una } else { dx.round_end };
            let (rtt, next) = (Some(rtt), una + u64::from(window.cwnd));
            let ack = Ack { delivered: 1, rtt, srtt: rtt, latency, una, next, ..Ack::default() };
            dx.on_ack(window, &ack);
            dx.grow(window, &ack);
        }
    }

    #[test]
    fn equations_1_and_8_by_hand() {
        // W* = 11, R = 40 us: V = 44 us. Q = 4 us: 11 (1 - 4 / 44) = 10: one packet less, of the 11 that were one too
        // many.
        assert!((decreased(11.0, 4_000.0, 40_000.0) - 10.0).abs() < 1e-9);
        // Section 3's own case: C R = 100 packets, N = 5 flows, W* = 105 / 5 = 21, Q = N D = 5 R / 100: all 105 become
        // 100.
        assert!((5.0 * decreased(21.0, 2_000.0, 40_000.0) - 100.0).abs() < 1e-9);
        assert_eq!(decreased(1.0, 4_000.0, 40_000.0), 1.0);
    }

    #[test]
    fn the_window_by_hand() {
        let (mut dx, mut window) = (dx(), Window { cwnd: 11, ssthresh: 8, ..Window::new(1) });
        round(&mut dx, &mut window, &[0]);
        assert_eq!(window.cwnd, 12, "no queue: one more");
        round(&mut dx, &mut window, &[0, 1_000, 2_000]);
        assert_eq!(window.cwnd, 13, "1 us on average is below the headroom");
        // 3 us on average: 13 - 12 * 3 / 40 = 12.1; then a round of packets from before; then 12.1 - 11.1 * 2 / 40 =
        // 11.545.
        round(&mut dx, &mut window, &[0, 6_000, 3_000]);
        assert!((dx.exact.last() - 12.1).abs() < 1e-9, "{}", dx.exact.last());
        assert_eq!(window.cwnd, 12);
        round(&mut dx, &mut window, &[6_000, 6_000]);
        assert_eq!(window.cwnd, 12, "answered already");
        round(&mut dx, &mut window, &[2_000, 2_000]);
        assert!((dx.exact.last() - 11.545).abs() < 1e-9, "{}", dx.exact.last());
        round(&mut dx, &mut window, &[2_000]);
        round(&mut dx, &mut window, &[0]);
        assert!((dx.exact.last() - 12.545).abs() < 1e-9, "the fraction is kept: {}", dx.exact.last());
    }

    /// Stacks that take 10 us of TCP's 50 us: V = 55 us instead of 44 us.
    #[test]
    fn the_host_s_round_trip_is_tcp_s_least() {
        for (round_trip, cwnd) in [(RoundTrip::Interface, 10.0), (RoundTrip::Host, 10.2)] {
            let mut dx = Dx::new(DxConfig { round_trip, ..DxConfig::default() }, Span::ZERO);
            let mut window = Window { cwnd: 10, ssthresh: 8, ..Window::new(1) };
            for q in [0, 4_000] {
                let latency = Latency { one_way: 20_000 + q, rtt: Span::from_ns(40_000 + q as u64) };
                let rtt = Some(Span::from_ns(50_000 + q as u64));
                let una = dx.round_end + 1;
                let ack = Ack { delivered: 1, rtt, latency: Some(latency), una, next: una + 10, ..Ack::default() };
                dx.on_ack(&mut window, &ack);
                dx.grow(&mut window, &ack);
            }
            // Eleven packets after the first round: 11 (1 - 4 / 44) or 11 (1 - 4 / 55).
            assert!((dx.exact.last() - cwnd).abs() < 1e-9, "{round_trip:?}: {}", dx.exact.last());
        }
    }

    /// 4 us of queue with 1.2 us of headroom: 11 (1 - 4 / 44) or 11 (1 - 2.8 / 44).
    #[test]
    fn what_exceeds_the_headroom_may_be_all_that_is_drained() {
        for (drain, cwnd) in [(Drain::Queue, 10.0), (Drain::Excess, 10.3)] {
            let mut dx = Dx::new(DxConfig { drain, ..DxConfig::default() }, Span::ZERO);
            let mut window = Window { cwnd: 10, ssthresh: 8, ..Window::new(1) };
            round(&mut dx, &mut window, &[0]);
            round(&mut dx, &mut window, &[4_000]);
            assert!((dx.exact.last() - cwnd).abs() < 1e-9, "{drain:?}: {}", dx.exact.last());
        }
    }

    #[test]
    fn slow_start_ends_with_the_first_queue() {
        let (mut dx, mut window) = (dx(), Window::new(10));
        round(&mut dx, &mut window, &[0; 10]);
        assert_eq!(window.cwnd, 20);
        round(&mut dx, &mut window, &[20_000; 20]);
        // The last ACK ends the round before it could raise the window: 39 - 38 * 20 / 40 = 20.
        assert_eq!((window.cwnd, window.in_slow_start()), (20, false));
    }

    #[test]
    fn slow_start_may_end_with_the_first_packet_that_met_a_queue() {
        let config = DxConfig { slow_start: SlowStart::Sample, ..DxConfig::default() };
        let (mut dx, mut window) = (Dx::new(config, Span::ZERO), Window::new(10));
        round(&mut dx, &mut window, &[0; 10]);
        round(&mut dx, &mut window, &[0, 0, 1_000, 0, 0, 20_000, 20_000, 20_000, 20_000, 20_000]);
        // 20, five more before the queue, and one for the round before, which had none. The average is 10.1 us:
        // 26 - 25 * 10.1 / 40 = 19.6875.
        assert!((dx.exact.last() - 19.6875).abs() < 1e-9, "{}", dx.exact.last());
        assert!(!window.in_slow_start());
    }

    #[test]
    fn slow_start_does_not_begin_again() {
        let (mut dx, mut window) = (dx(), Window { cwnd: 70, ssthresh: 70, ..Window::new(1) });
        round(&mut dx, &mut window, &[0]);
        round(&mut dx, &mut window, &[20_000]);
        // 71 - 70 / 2 = 36; then a round that is left out, then one without a queue: one packet more.
        assert_eq!((window.cwnd, window.in_slow_start()), (36, false));
        round(&mut dx, &mut window, &[0; 36]);
        assert_eq!(window.cwnd, 36);
        round(&mut dx, &mut window, &[0; 36]);
        assert_eq!(window.cwnd, 37);
    }

    #[test]
    fn a_loss_halves_and_spoils_its_round() {
        let (mut dx, mut window) = (dx(), Window { cwnd: 20, ssthresh: 8, ..Window::new(1) });
        round(&mut dx, &mut window, &[0]);
        window.ssthresh = dx.ssthresh(&window, false);
        window.cwnd = window.ssthresh;
        assert_eq!(window.cwnd, 10);
        round(&mut dx, &mut window, &[30_000]);
        assert_eq!(window.cwnd, 10);
        round(&mut dx, &mut window, &[30_000]);
        assert!(window.cwnd < 10);
    }

    /// Two clocks, 5 s apart and drifting by 40 ns per ms each in opposite directions, so that every wrap is crossed.
    /// Every 500 us a packet meets no queue. What is taken for queueing delay is the true one, within what the clocks
    /// drift apart until the base is taken anew (80 ns per ms for 0.5 ms), the timestamps' 1 ns and the tolerance (half
    /// the headroom).
    #[test]
    fn queueing_delay_through_drifting_clocks() {
        let (sender, receiver) = (|t: f64| t * (1.0 - 40e-6) + 5e9, |t: f64| t * (1.0 + 40e-6));
        let stamp = |ns: f64| ns as u64 as u32;
        let (mut dx, mut worst) = (dx(), 0.0f64);
        for i in 0u64..1_500_000 {
            let sent = i as f64 * 10_000.0;
            let queue = if i.is_multiple_of(50) { 0.0 } else { 150.0 * (i * 7 % 61) as f64 };
            let came = sent + 20_000.0 + queue;
            let [t1, t2, t3, t4] =
                [sender(sent), receiver(came), receiver(came + 5_000.0), sender(came + 25_000.0)].map(stamp);
            let rtt = t4.wrapping_sub(t1).wrapping_sub(t3.wrapping_sub(t2));
            dx.round = DelayRound::default();
            dx.measure(Latency { one_way: t2.wrapping_sub(t1) as i32, rtt: Span::from_ns(u64::from(rtt)) });
            worst = worst.max((dx.queueing().unwrap() - queue).abs());
        }
        let bound = 80.0 * 0.5 + 2.0 + 600.0;
        assert!(worst <= bound, "{worst} ns");
        // Without the refresh it would be 80 us per second.
        assert!(worst > 30.0, "the clocks do drift: {worst} ns");
    }
}
