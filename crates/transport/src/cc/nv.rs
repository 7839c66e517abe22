//! NV, "New Vegas": the window keeps what the measured rate fills, and a few packets more (Brakmo, "TCP-NV: Congestion
//! Avoidance for Data Centers", Linux Plumbers Conference 2010; there is no paper).
//!
//! An ACK gives a rate, the packets that were out when its newest packet had been sent by the RTT, which is the mean of
//! this sample and the mean before. With the largest rate of a round trip the window W = rate RTTmin fills the path.
//! - Where cwnd > W + pad (10 packets) the flow is congested: cwnd loses 0.3 of the excess, at least 2 packets, the
//!   threshold becomes W + pad, and growth stops.
//! - Where cwnd <= W + pad - 2 growth, which is Reno's, begins again.
//! - A loss leaves 0.8 of the window. Growth stops, and rates and RTTmin are measured anew from the end of the recovery
//!   on.
//! - A timeout halves the pace of growth, down to 1/256 of Reno's. It doubles again whenever growth was found to be
//!   allowed nine times without a loss between.
//!
//! Measured on Linux 7.2 (`/sys/module/tcp_nv` has the numbers: pad 10 and its buffer of 2, least window 2, ACKs and
//! round trips that are enough, reset period 5 s):
//! - 40 packets in slow start fall to 37 with a threshold of 29; on a path of 170 packets the window stops at 179;
//! - losses leave 819/1024 of the window, rounded down: 160 packets fall to 127;
//! - a window of one packet grows to two where rates are judged;
//! - windows of 2 and 3 packets with an RTT of four times RTTmin do not grow, nor do they in 15 ACKs without a queue;
//!   after 50 ACKs they do: growth begins again at the end of a round trip when there are 20 ACKs, and congestion is
//!   found with 60, 30 where the window was never reduced, of at least two round trips;
//! - RTTmin is replaced by a recent one after 8.0 to 13.6 s, that is 1.6 to 2.7 reset periods (here: drawn uniformly),
//!   so that a flow that is alone adds 7 packets to its own queue each time.

use super::draw::Draw;
use super::round::Round;
use super::{Ack, CongestionControl, ControllerConfig, Delivery, Start, Window};
use firstlight_units::{Span, Time};

/// Packets that may wait in queues, and by how many fewer may wait where the window grows.
const PAD: u32 = 10;
const PAD_BUFFER: u32 = 2;
/// The share of the excess by which congestion shrinks the window: 30 %, in 128ths.
const CUT: (u32, u32) = (38, 128);
/// The window's factor at a loss.
const LOSS: (u64, u64) = (819, 1024);
/// The numbers of ACKs until rates may show congestion, until they may where the window was never reduced, and until
/// growth may begin again.
const ENOUGH: u32 = 60;
const ENOUGH_AT_FIRST: u32 = 30;
const ENOUGH_TO_GROW: u32 = 20;
/// The numbers of round trips until rates may show congestion, and after which growth stops while rates cannot show it.
const ENOUGH_ROUNDS: u32 = 2;
const STOP_ROUNDS: u32 = 10;
/// The least window for which growth is worked out.
const LEAST: u32 = 4;
/// The least window after rates were judged.
const LEAST_AFTER: u32 = 2;
/// Growth is slowed down by this power of two at most.
const SLOWEST: u32 = 8;
/// How often growth is found to be allowed until it is slowed down less.
const CALM: u32 = 8;
/// The unit of rates: packets in this number of microseconds.
const PER: u64 = 80_000;
/// Bounds of the time in milliseconds after which RTTmin is measured anew.
const RESET_MS: (u64, u64) = (8_000, 13_500);

/// TCP-NV (Brakmo, 2010).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct NvConfig {}

impl ControllerConfig for NvConfig {
    const LINUX: Option<&'static str> = Some("nv");
}

/// The state of NV. Times are in microseconds.
#[derive(Clone, Debug)]
pub struct Nv {
    min_rtt: u64,
    /// The smallest RTT since half of the time to the next reset.
    recent: u64,
    reset: Time,
    halfway: Time,
    /// The mean RTT.
    mean: Option<u64>,
    /// The largest rate, and the ACKs and round trips that it is the largest of.
    rate: u64,
    acks: u32,
    rounds: u32,
    round: Round,
    /// Everything before this stream offset is acknowledged.
    una: u64,
    may_grow: bool,
    /// There was congestion: all is measured anew.
    anew: bool,
    /// Growth is slowed down by this power of two, and how often growth was found to be allowed since it was.
    slowed: u32,
    calm: u32,
    draw: Draw,
}

impl Nv {
    /// A controller for one connection.
    pub fn new(_config: NvConfig, _tick: Span) -> Self {
        Nv {
            min_rtt: u64::MAX,
            recent: u64::MAX,
            reset: Time::ZERO,
            halfway: Time::ZERO,
            mean: None,
            rate: 0,
            acks: 0,
            rounds: 0,
            round: Round::default(),
            una: 0,
            may_grow: true,
            anew: false,
            slowed: 0,
            calm: 0,
            draw: Draw::default(),
        }
    }

    fn plan_reset(&mut self, now: Time) {
        let span = Span::from_ms(RESET_MS.0 + self.draw.below(RESET_MS.1 - RESET_MS.0));
        self.reset = now + span;
        self.halfway = now + span / 2;
        self.recent = u64::MAX;
    }

    fn begin_anew(&mut self) {
        self.anew = false;
        self.mean = None;
        self.round.begin(self.una);
        self.clear();
    }

    fn clear(&mut self) {
        (self.rate, self.acks, self.rounds) = (0, 0, 0);
    }

    fn measure(&mut self, rtt: u64, flight: u32, now: Time) {
        let mean = self.mean.map_or(rtt, |mean| u64::midpoint(mean, rtt)).max(1);
        if self.mean.replace(mean).is_none() {
            self.min_rtt = mean;
        }
        self.min_rtt = self.min_rtt.min(mean);
        if now >= self.halfway {
            self.recent = self.recent.min(mean);
        }
        if now >= self.reset && self.recent < u64::MAX {
            self.min_rtt = self.recent;
            self.plan_reset(now);
        }
        self.acks += 1;
        self.rate = self.rate.max(u64::from(flight) * PER / mean);
    }

    fn end_round(&mut self, window: &mut Window) {
        self.rounds += 1;
        let most = (self.rate * self.min_rtt / PER) as u32 + PAD;
        if window.cwnd > most {
            let enough = if window.ssthresh == u32::MAX { ENOUGH_AT_FIRST } else { ENOUGH };
            if self.rounds < ENOUGH_ROUNDS || self.acks < enough {
                self.may_grow &= self.rounds <= STOP_ROUNDS;
                return;
            }
            (self.may_grow, self.calm) = (false, 0);
            let excess = window.cwnd - most;
            let cut = if excess > 2 { (excess * CUT.0 / CUT.1).max(2) } else { excess };
            window.cwnd = (window.cwnd - cut).max(window.floor);
            window.ssthresh = most.max(window.floor);
        } else if window.cwnd <= most - PAD_BUFFER {
            if self.acks < ENOUGH_TO_GROW {
                return;
            }
            self.may_grow = true;
            self.calm += 1;
            if self.slowed > 0 && self.calm > CALM {
                (self.slowed, self.calm) = (self.slowed - 1, 0);
            }
        } else {
            return;
        }
        window.cwnd = window.cwnd.max(LEAST_AFTER);
        self.clear();
    }
}

impl CongestionControl for Nv {
    fn on_established(&mut self, _window: &mut Window, start: &Start) {
        self.draw = Draw::new(start.seed);
        self.plan_reset(start.now);
    }

    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        if self.anew && ack.open {
            self.begin_anew();
        }
    }

    fn on_delivery(&mut self, window: &mut Window, ack: &Ack, delivery: &Delivery) -> bool {
        if let Some(rtt) = ack.rtt.filter(|_| !self.anew) {
            let flight = if ack.advanced > 0 { delivery.flight_at_send } else { 0 };
            self.measure((Time::ZERO + rtt).whole_us(), flight, ack.now);
            if self.round.ends(ack) {
                self.end_round(window);
            }
        }
        self.una = ack.una;
        false
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        if !self.may_grow {
            return;
        }
        let acked = if window.in_slow_start() { window.slow_start(ack.delivered) } else { ack.delivered };
        if acked > 0 {
            let per = if self.slowed > 0 { window.cwnd << self.slowed } else { window.cwnd.max(LEAST) };
            window.additive_increase(per, acked);
        }
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        (self.may_grow, self.anew, self.calm) = (false, true, 0);
        ((u64::from(window.cwnd) * LOSS.0 / LOSS.1) as u32).max(window.floor)
    }

    fn on_timeout(&mut self, _window: &mut Window) {
        self.on_timeout_in_reduction();
    }

    fn on_timeout_in_reduction(&mut self) {
        self.slowed = (self.slowed + 1).min(SLOWEST);
    }

    fn wants_delivery(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round trip of as many ACKs as the window has packets.
    fn round(nv: &mut Nv, window: &mut Window, rtt_us: u64) {
        let (una, rtt) = (nv.round.end() + 1, Some(Span::from_us(rtt_us)));
        let packets = window.cwnd;
        for i in 0..u64::from(packets) {
            let next = una + u64::from(packets);
            let ack =
                Ack { delivered: 1, advanced: 1, rtt, srtt: rtt, open: true, una: una + i, next, ..Ack::default() };
            nv.on_delivery(window, &ack, &Delivery { flight_at_send: packets, ..Delivery::default() });
            nv.grow(window, &ack);
        }
    }

    /// 200 packets at twice the smallest RTT: W = 100, and the window loses 38/128 of the 90 packets above W + 10.
    #[test]
    fn window_is_what_the_rate_fills_and_ten_packets() {
        let (mut nv, mut window) =
            (Nv::new(NvConfig {}, Span::ZERO), Window { cwnd: 200, ssthresh: 100, ..Window::new(1) });
        nv.reset = Time::MAX;
        nv.halfway = Time::MAX;
        nv.measure(1000, 1, Time::ZERO);
        nv.clear();
        nv.mean = Some(2000);
        (0..2).for_each(|_| round(&mut nv, &mut window, 2000));
        assert_eq!((window.cwnd, window.ssthresh), (174, 110));
        assert_eq!(
            nv.ssthresh(&Window { cwnd: 160, ssthresh: 100, ..Window::new(1) }, false),
            127,
            "measured on Linux"
        );
    }

    /// A loss while growth is slow: nine allowed judgements without a loss are needed from there on.
    #[test]
    fn losses_keep_growth_slow() {
        let (mut nv, mut window) =
            (Nv::new(NvConfig {}, Span::ZERO), Window { cwnd: 30, ssthresh: 20, ..Window::new(1) });
        (nv.reset, nv.halfway) = (Time::MAX, Time::MAX);
        nv.on_timeout(&mut window);
        let rounds = |nv: &mut Nv, window: &mut Window, n| (0..n).for_each(|_| round(nv, window, 1000));
        rounds(&mut nv, &mut window, 8);
        nv.ssthresh(&window, false);
        nv.anew = false;
        rounds(&mut nv, &mut window, 8);
        assert_eq!(nv.slowed, 1);
        rounds(&mut nv, &mut window, 1);
        assert_eq!(nv.slowed, 0);
    }

    #[test]
    fn window_stops_ten_packets_above_the_path() {
        let (mut nv, mut window) =
            (Nv::new(NvConfig {}, Span::ZERO), Window { cwnd: 90, ssthresh: 80, ..Window::new(1) });
        nv.reset = Time::MAX;
        nv.halfway = Time::MAX;
        // A path of 100 packets in 1 ms.
        (0..60).for_each(|_| {
            let rtt_us = 1000.max(u64::from(window.cwnd) * 10);
            round(&mut nv, &mut window, rtt_us);
        });
        assert_eq!(window.cwnd, 110);
    }
}
