//! BBR, version 1: pace at the measured bandwidth, keep two bandwidth-delay products in flight (Cardwell et al., "BBR:
//! Congestion-Based Congestion Control", ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00).
//!
//! Bandwidth is the largest delivery rate of ten round trips, RTprop the smallest RTT of ten seconds. With BDP =
//! bandwidth RTprop (section 4):
//! - Startup doubles the rate per round trip (gains of 2 / ln 2) until three round trips have not raised the bandwidth
//!   by a quarter; Drain (gain ln 2 / 2) lasts until a BDP is in flight.
//! - ProbeBW paces at 5/4, 3/4 and six times 1 of the bandwidth, about an RTprop each; the window is 2 BDP.
//! - ProbeRTT keeps 4 packets in flight for 200 ms when RTprop has not been measured for ten seconds.
//! - In a recovery the window is what is in flight for a round trip; losses change nothing else.
//!
//! As in Linux (measured, and draft-cardwell-iccrg-bbr-congestion-control-02, sections 4.5.5 and 4.6): packets leave at
//! 99 % of the rate in bursts of a millisecond, of at least two packets and at most 64 KiB; the window has three bursts
//! more, and what ACKs have brought above the bandwidth (section 4.5.5, "aggregation").
//!
//! Beyond the drafts, as in Linux: where a fifth of all packets is lost BBR keeps one rate (`long_term.rs`).

use super::bandwidth::{Aggregation, MaxFilter, per_second};
use super::draw::Draw;
use super::long_term::LongTermRate;
use super::round::DeliveredRound;
use super::{Ack, CongestionControl, ControllerConfig, Delivery, Start, Window};
use firstlight_units::{Bytes, Span, Time};

/// The gain at which the rate doubles per round trip, 2 / ln 2 (section 4.3.2.1), in 256ths as measured on Linux 7.2.
const HIGH_GAIN: f64 = 739.0 / 256.0;
/// The gain that empties the queue, ln 2 / 2 (section 4.3.3), in 256ths as measured on Linux 7.2.
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// The window's gain in ProbeBW.
const CWND_GAIN: f64 = 2.0;
/// Gains of the phases of ProbeBW (section 4.3.4.2).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The share of the rate at which packets leave.
const MARGIN: f64 = 0.99;
/// Growth of the bandwidth, and round trips without it, at which the pipe is full (section 4.3.2.2).
const FULL: (f64, u32) = (1.25, 3);
/// How long an RTprop holds (section 4.1.2).
const RTPROP_HOLDS: Span = Span::from_secs(10);
/// How long ProbeRTT lasts (section 4.3.5).
const PROBE_RTT: Span = Span::from_ms(200);
/// The smallest window, in packets.
const MIN_WINDOW: u32 = 4;
/// The size of a burst: its time at the rate, its least packets, and the most payload of a kernel's burst.
const BURST: (f64, u32, f64) = (1.0 / 1024.0, 2, 65_343.0);

/// BBR, version 1 (Cardwell et al., 2016).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct BbrConfig {}

impl ControllerConfig for BbrConfig {
    const LINUX: Option<&'static str> = Some("bbr");
    const HAS_OWN_FLOOR: bool = true;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    /// The phase of the cycle, and when it began.
    ProbeBw {
        phase: usize,
        since: Time,
    },
    /// The end of the 200 ms, once few enough packets are in flight; whether a round trip has passed since.
    ProbeRtt {
        until: Option<Time>,
        round_passed: bool,
    },
}

/// The state of BBR.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    /// Packets per second.
    bandwidth: MaxFilter,
    aggregation: Aggregation,
    long_term: LongTermRate,
    /// Packets in flight after the last ACK.
    in_flight: u32,
    /// Packets that a timeout after that ACK has found lost.
    timed_out: u32,
    rtprop: Span,
    /// When RTprop was measured.
    rtprop_at: Time,
    round: DeliveredRound,
    /// Bandwidth at the last growth by a quarter, and round trips since then.
    full: (f64, u32),
    filled: bool,
    /// Packets per second at which they leave; 0: not paced.
    pacing: f64,
    /// A full-sized packet, headers included.
    packet: Bytes,
    /// The payload of a full-sized packet.
    mss: u32,
    /// The window before a recovery or ProbeRTT.
    prior_cwnd: u32,
    repairing: bool,
    /// The first round trip of a recovery: each packet delivered lets one go.
    conserving: bool,
    initial_cwnd: u32,
    draw: Draw,
}

impl Bbr {
    /// A controller for one connection.
    pub fn new(_config: BbrConfig, _tick: Span) -> Self {
        Bbr {
            mode: Mode::Startup,
            bandwidth: MaxFilter::default(),
            aggregation: Aggregation::default(),
            long_term: LongTermRate::default(),
            in_flight: 0,
            timed_out: 0,
            rtprop: Span::MAX,
            rtprop_at: Time::ZERO,
            round: DeliveredRound::default(),
            full: (0.0, 0),
            filled: false,
            pacing: 0.0,
            packet: Bytes::new(1500),
            mss: 1448,
            prior_cwnd: 0,
            repairing: false,
            conserving: false,
            initial_cwnd: 0,
            draw: Draw::default(),
        }
    }

    /// Gains of the pacing rate and of the window.
    fn gains(&self) -> (f64, f64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw { .. } if self.long_term.rate().is_some() => (1.0, CWND_GAIN),
            Mode::ProbeBw { phase, .. } => (CYCLE[phase], CWND_GAIN),
            Mode::ProbeRtt { .. } => (1.0, 1.0),
        }
    }

    /// Packets per second: those of the policer, if there is one, or the bandwidth.
    fn rate(&self) -> f64 {
        self.long_term.rate().unwrap_or(self.bandwidth.max())
    }

    /// Section 4.2.3.2: packets in flight at this gain of a bandwidth, with room for three bursts and an even number.
    fn inflight(&self, gain: f64, bandwidth: f64) -> u32 {
        if self.rtprop == Span::MAX {
            return self.initial_cwnd;
        }
        let bdp = libm::ceil(gain * bandwidth * self.rtprop.as_secs_f64()) as u32;
        let packets = bdp.saturating_add(3 * self.burst());
        let probing = matches!(self.mode, Mode::ProbeBw { phase: 0, .. });
        packets.next_multiple_of(2) + 2 * u32::from(probing)
    }

    /// Packets of a burst, of which the window has room for three more.
    fn burst(&self) -> u32 {
        let (seconds, least, most) = BURST;
        let bytes = self.pacing * f64::from(self.mss) * seconds;
        (bytes.min(most) as u32 / self.mss).max(least)
    }

    /// Section 4.1.1: bandwidth and rounds.
    fn update_bandwidth(&mut self, ack: &Ack, delivery: &Delivery) {
        self.conserving &= !self.round.on_delivery(delivery);
        let lost = delivery.lost + self.timed_out;
        let begins = self.round.begins() || std::mem::take(&mut self.timed_out) > 0;
        let probes = matches!(self.mode, Mode::ProbeBw { .. });
        if self.long_term.on_delivery(&Delivery { lost, ..*delivery }, ack.now, begins, probes, self.mss) {
            self.enter_probe_bw(ack.now);
        }
        self.in_flight = delivery.in_flight;
        let Some(interval) = delivery.interval else { return };
        let rate = per_second(delivery.total - delivery.total_before, interval);
        if !delivery.limited || rate >= self.bandwidth.max() {
            self.bandwidth.add(rate, self.round.number());
        }
    }

    /// Section 4.3.4.3: the next phase of ProbeBW.
    fn update_cycle(&mut self, ack: &Ack, delivery: &Delivery) {
        let Mode::ProbeBw { phase, since } = self.mode else { return };
        let long = ack.now.saturating_since(since) > self.rtprop;
        let gain = self.gains().0;
        let next = if gain > 1.0 {
            long && (delivery.lost > 0 || delivery.flight_before >= self.inflight(gain, self.bandwidth.max()))
        } else if gain < 1.0 {
            long || delivery.flight_before <= self.inflight(1.0, self.bandwidth.max())
        } else {
            long
        };
        if next {
            self.mode = Mode::ProbeBw { phase: (phase + 1) % CYCLE.len(), since: ack.now };
        }
    }

    /// Sections 4.3.2.2 and 4.3.3: the end of Startup and of Drain.
    fn check_full(&mut self, ack: &Ack, delivery: &Delivery) {
        if !self.filled && self.round.begins() && !delivery.limited {
            if self.bandwidth.max() >= self.full.0 * FULL.0 {
                self.full = (self.bandwidth.max(), 0);
            } else {
                self.full.1 += 1;
                self.filled = self.full.1 >= FULL.1;
            }
        }
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && delivery.in_flight <= self.inflight(1.0, self.bandwidth.max()) {
            self.enter_probe_bw(ack.now);
        }
    }

    /// Section 4.3.4.3: ProbeBW begins with any phase but the one that drains.
    fn enter_probe_bw(&mut self, now: Time) {
        let phase = (CYCLE.len() - self.draw.below(CYCLE.len() as u64 - 1) as usize) % CYCLE.len();
        self.mode = Mode::ProbeBw { phase, since: now };
    }

    /// Sections 4.1.2.3 and 4.3.5: RTprop and ProbeRTT.
    fn update_rtprop(&mut self, window: &Window, ack: &Ack, delivery: &Delivery) -> bool {
        let expired = self.rtprop < Span::MAX && ack.now > self.rtprop_at + RTPROP_HOLDS;
        if let Some(rtt) = ack.rtt.filter(|&rtt| rtt <= self.rtprop || expired) {
            self.rtprop = rtt;
            self.rtprop_at = ack.now;
        }
        if expired && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.save_cwnd(window.cwnd);
            self.mode = Mode::ProbeRtt { until: None, round_passed: false };
        }
        let Mode::ProbeRtt { until, round_passed } = self.mode else { return false };
        match until {
            None if delivery.in_flight <= MIN_WINDOW => {
                self.round.restart(delivery.total);
                self.mode = Mode::ProbeRtt { until: Some(ack.now + PROBE_RTT), round_passed: false };
            }
            None => {}
            Some(until) => {
                let round_passed = round_passed || self.round.begins();
                self.mode = Mode::ProbeRtt { until: Some(until), round_passed };
                if round_passed && ack.now > until {
                    self.rtprop_at = ack.now;
                    self.mode = Mode::Startup;
                    if self.filled {
                        self.enter_probe_bw(ack.now);
                    }
                    return true;
                }
            }
        }
        false
    }

    /// Section 4.2.1: the pacing rate; it does not fall before the pipe is full.
    fn update_pacing(&mut self) {
        let rate = MARGIN * self.gains().0 * self.rate();
        if rate > 0.0 && (self.filled || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    /// Section 4.2.3: the window.
    fn update_cwnd(&mut self, window: &mut Window, ack: &Ack, delivery: &Delivery) {
        let gain = self.gains().1;
        let extra = if self.filled { self.aggregation.extra(self.rate()) } else { 0 };
        let target = self.inflight(gain, self.rate()).saturating_add(extra);
        if ack.delivered > 0 {
            self.follow_recovery(window, ack, delivery);
            if !self.conserving {
                let raised = window.cwnd.saturating_add(ack.delivered);
                if self.filled {
                    window.cwnd = raised.min(target);
                } else if window.cwnd < target || delivery.total < u64::from(self.initial_cwnd) {
                    window.cwnd = raised;
                }
                window.cwnd = window.cwnd.max(MIN_WINDOW);
            }
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            window.cwnd = window.cwnd.min(MIN_WINDOW);
        }
    }

    /// Section 4.2.3.4: recoveries.
    fn follow_recovery(&mut self, window: &mut Window, ack: &Ack, delivery: &Delivery) {
        if delivery.lost > 0 {
            window.cwnd = window.cwnd.saturating_sub(delivery.lost).max(1);
        }
        let before = std::mem::replace(&mut self.repairing, delivery.repairing);
        if delivery.repairing && !before {
            self.conserving = true;
            self.round.restart(delivery.total);
            window.cwnd = delivery.in_flight + ack.delivered.max(1);
        } else if before && !delivery.repairing {
            self.conserving = false;
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
        if self.conserving {
            window.cwnd = window.cwnd.max(delivery.in_flight + ack.delivered);
        }
    }

    fn save_cwnd(&mut self, cwnd: u32) {
        let lowered = self.repairing || matches!(self.mode, Mode::ProbeRtt { .. });
        self.prior_cwnd = if lowered { self.prior_cwnd.max(cwnd) } else { cwnd };
    }
}

impl CongestionControl for Bbr {
    fn on_established(&mut self, window: &mut Window, start: &Start) {
        self.draw = Draw::new(start.seed);
        self.packet = start.packet;
        self.initial_cwnd = window.cwnd;
        self.rtprop_at = start.now;
        let srtt = start.srtt.unwrap_or(Span::from_ms(1));
        self.rtprop = start.srtt.unwrap_or(Span::MAX);
        self.pacing = MARGIN * HIGH_GAIN * per_second(u64::from(window.cwnd), srtt.max(Span::from_us(1)));
    }

    fn grow(&mut self, _window: &mut Window, _ack: &Ack) {}

    fn on_delivery(&mut self, window: &mut Window, ack: &Ack, delivery: &Delivery) -> bool {
        self.mss = ack.mss.max(1);
        self.update_bandwidth(ack, delivery);
        self.aggregation.on_ack(ack, window.cwnd, self.rate(), self.round.begins());
        self.update_cycle(ack, delivery);
        self.check_full(ack, delivery);
        if self.update_rtprop(window, ack, delivery) {
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
        self.update_pacing();
        self.update_cwnd(window, ack, delivery);
        true
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        self.save_cwnd(window.cwnd);
        window.ssthresh
    }

    fn on_timeout(&mut self, _window: &mut Window) {
        self.on_timeout_in_reduction();
    }

    fn on_timeout_in_reduction(&mut self) {
        self.timed_out = self.in_flight.max(1);
        // A full pipe must show again (section 4.3.2.2), and what follows is no round trip of conservation.
        self.full = (0.0, 0);
        self.repairing = true;
        self.conserving = false;
    }

    fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        self.long_term = LongTermRate::default();
        self.full = (0.0, 0);
        window.cwnd.max(prior_cwnd)
    }

    fn wants_delivery(&self) -> bool {
        true
    }

    fn pace(&mut self, bytes: Bytes) -> Span {
        let rate = self.pacing * self.packet.get() as f64;
        if rate > 0.0 { Span::from_ps((bytes.get() as f64 / rate * 1e12) as u64) } else { Span::ZERO }
    }

    fn packets_per_second(&self) -> Option<f64> {
        Some(self.pacing)
    }

    fn burst(&self) -> Bytes {
        Bytes::new(u64::MAX)
    }

    fn makes_up(&self) -> bool {
        true
    }

    fn windows_buffered(&self) -> u64 {
        3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of 1000 packets per second and 100 ms, ACK by ACK, whose queue is what is in flight above 100 packets.
    struct SteadyPath {
        bbr: Bbr,
        window: Window,
        now: Time,
        delivered: u64,
        /// Packets in flight when each round began.
        rtts: Vec<u32>,
    }

    impl SteadyPath {
        const BDP: u32 = 100;

        fn new() -> Self {
            let (mut bbr, mut window) = (Bbr::new(BbrConfig {}, Span::ZERO), Window::new(10));
            let (now, srtt, packet) = (Time::ZERO, Some(Span::from_ms(100)), Bytes::new(1500));
            bbr.on_established(&mut window, &Start { now, srtt, packet, seed: 1 });
            SteadyPath { bbr, window, now, delivered: 0, rtts: vec![] }
        }

        /// One round trip in which `window` packets were in flight.
        fn round(&mut self) {
            let sent = self.window.cwnd.min((self.bbr.pacing * 0.1) as u32 + Self::BDP / 2).max(4);
            let rtt = Span::from_ms(u64::from(sent.max(Self::BDP)));
            let before = self.delivered;
            for i in 0..sent {
                self.now += rtt / u64::from(sent);
                self.delivered += 1;
                let (now, total) = (self.now, self.delivered);
                let ack = Ack { now, delivered: 1, rtt: Some(rtt), srtt: Some(rtt), open: true, ..Ack::default() };
                let (total_before, in_flight) = (before.saturating_sub(u64::from(sent - i)), sent - 1);
                let packets = total - total_before;
                let interval =
                    Some(Span::from_ms(packets.max(rtt.as_ps() * packets / u64::from(sent) / 1_000_000_000)));
                let flight_before = sent;
                let delivery =
                    Delivery { total, total_before, interval, in_flight, flight_before, ..Delivery::default() };
                assert!(self.bbr.on_delivery(&mut self.window, &ack, &delivery));
            }
            self.rtts.push(sent);
        }
    }

    /// Section 4 by hand: Startup finds the bandwidth of 1000 packets per second, and the window settles at 2 BDP and
    /// three bursts of two packets.
    #[test]
    fn window_is_two_bandwidth_delay_products() {
        let mut path = SteadyPath::new();
        (0..60).for_each(|_| path.round());
        assert!(path.bbr.filled && matches!(path.bbr.mode, Mode::ProbeBw { .. }), "{:?}", path.bbr.mode);
        let bandwidth = path.bbr.bandwidth.max();
        assert!((bandwidth - 1000.0).abs() < 60.0, "{bandwidth}");
        assert!((200..=260).contains(&path.window.cwnd), "{}", path.window.cwnd);
    }

    #[test]
    fn probe_rtt_leaves_four_packets_after_ten_seconds() {
        let mut path = SteadyPath::new();
        (0..40).for_each(|_| path.round());
        path.bbr.rtprop_at = Time::ZERO;
        path.now += Span::from_secs(20);
        path.round();
        assert_eq!(path.window.cwnd, 4);
        let before = path.bbr.prior_cwnd;
        assert!(before > 150);
        (0..8).for_each(|_| path.round());
        assert!(path.window.cwnd >= before, "{} after ProbeRTT, {before} before", path.window.cwnd);
    }
}
