//! NV, "New Vegas": the window keeps what the measured rate fills, and a few packets more (Brakmo, "TCP-NV: Congestion
//! Avoidance for Data Centers", Linux Plumbers Conference 2010; there is no paper).
//!
//! An ACK gives a rate, the packets in flight when its newest packet was sent by its RTT. With the largest rate of a
//! round trip the window W = rate RTTmin fills the path. Where cwnd > W + pad (10 packets) the flow is congested: cwnd
//! loses 0.3 of the excess, and at least a packet, the threshold becomes W + pad, and growth stops. A loss leaves 0.8
//! of the window and stops growth, too. Growth, which is Reno's, begins again when no packet waits, cwnd <= W to 3 %.
//!
//! Measured on Linux 7.2 (`/sys/module/tcp_nv`: pad 10, least window 2, reset period 5 s):
//! - 40 packets in slow start fall to 37 with a threshold of 29; on a path of 170 packets the window stops at 179;
//! - losses leave 819/1024 of the window, rounded down: 160 packets fall to 127;
//! - windows of 2 and 3 packets with an RTT of four times RTTmin do not grow, nor do they in 15 ACKs without a queue;
//!   after 50 ACKs they do: here growth begins again after 20 ACKs, and congestion is found after 60, 30 in slow start;
//! - RTTmin is replaced by a recent one after 8.0 to 13.6 s, that is 1.6 to 2.7 reset periods (here: drawn uniformly),
//!   so that a flow that is alone adds 7 packets to its own queue each time.

use super::draw::Draw;
use super::round::Round;
use super::{Ack, CongestionControl, ControllerConfig, Delivery, NewReno, NewRenoConfig, Start, Window};
use firstlight_units::{Span, Time};

/// Packets that may wait in queues.
const PAD: f64 = 10.0;
/// The share of the excess by which congestion shrinks the window.
const CUT: f64 = 0.3;
/// The window's factor at a loss.
const LOSS: f64 = 819.0 / 1024.0;
/// ACKs until rates may tell congestion, in congestion avoidance and in slow start.
const ENOUGH: (u32, u32) = (60, 30);
/// The factor of W up to which the window counts as one without a queue.
const EMPTY: f64 = 1.03;
/// ACKs until rates may tell that nothing waits.
const ENOUGH_TO_GROW: u32 = 20;
/// Bounds of the time in milliseconds after which RTTmin is measured anew.
const RESET_MS: (u64, u64) = (8_000, 13_500);

/// TCP-NV (Brakmo, 2010).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct NvConfig {}

impl ControllerConfig for NvConfig {
    const LINUX: Option<&'static str> = Some("nv");
}

/// The state of NV.
#[derive(Clone, Debug)]
pub struct Nv {
    min_rtt: Span,
    /// The smallest RTT since half of the time to the next reset.
    recent: Span,
    reset: Time,
    halfway: Time,
    /// The largest rate in packets per second, and the ACKs that it is the largest of.
    rate: f64,
    acks: u32,
    round: Round,
    may_grow: bool,
    draw: Draw,
    reno: NewReno,
}

impl Nv {
    /// A controller for one connection.
    pub fn new(_config: NvConfig, tick: Span) -> Self {
        Nv {
            min_rtt: Span::MAX,
            recent: Span::MAX,
            reset: Time::ZERO,
            halfway: Time::ZERO,
            rate: 0.0,
            acks: 0,
            round: Round::default(),
            may_grow: true,
            draw: Draw::default(),
            reno: NewReno::new(NewRenoConfig {}, tick),
        }
    }

    fn plan_reset(&mut self, now: Time) {
        let span = Span::from_ms(RESET_MS.0 + self.draw.below(RESET_MS.1 - RESET_MS.0));
        self.reset = now + span;
        self.halfway = now + span / 2;
        self.recent = Span::MAX;
    }

    fn measure(&mut self, rtt: Span, flight_at_send: u32, now: Time) {
        self.min_rtt = self.min_rtt.min(rtt);
        if now >= self.halfway {
            self.recent = self.recent.min(rtt);
        }
        if now >= self.reset && self.recent < Span::MAX {
            self.min_rtt = self.recent;
            self.may_grow = true;
            self.plan_reset(now);
        }
        self.acks += 1;
        self.rate = self.rate.max(f64::from(flight_at_send) / rtt.as_secs_f64());
    }

    fn end_round(&mut self, window: &mut Window) {
        let enough = if window.in_slow_start() { ENOUGH.1 } else { ENOUGH.0 };
        let filling = self.rate * self.min_rtt.as_secs_f64();
        let most = filling + PAD;
        let cwnd = f64::from(window.cwnd);
        if cwnd <= filling * EMPTY {
            self.may_grow |= self.acks >= ENOUGH_TO_GROW;
        } else if cwnd > most && self.acks >= enough {
            self.may_grow = false;
            window.cwnd = ((cwnd - (CUT * (cwnd - most)).max(1.0)) as u32).max(window.floor);
            window.ssthresh = (most as u32).clamp(window.floor, window.cwnd);
        }
        if self.acks >= enough {
            (self.rate, self.acks) = (0.0, 0);
        }
    }
}

impl CongestionControl for Nv {
    fn on_established(&mut self, _window: &mut Window, start: &Start) {
        self.draw = Draw::new(start.seed);
        self.plan_reset(start.now);
    }

    fn on_delivery(&mut self, window: &mut Window, ack: &Ack, delivery: &Delivery) -> bool {
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero() && ack.open) {
            self.measure(rtt, delivery.flight_at_send, ack.now);
        }
        if self.round.ends(ack) && ack.open && self.rate > 0.0 {
            self.end_round(window);
        }
        false
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        if self.may_grow {
            self.reno.grow(window, ack);
        }
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        self.may_grow = false;
        ((f64::from(window.cwnd) * LOSS) as u32).max(window.floor)
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
            let ack = Ack { delivered: 1, rtt, srtt: rtt, open: true, una: una + i, next, ..Ack::default() };
            nv.on_delivery(window, &ack, &Delivery { flight_at_send: packets, ..Delivery::default() });
            nv.grow(window, &ack);
        }
    }

    /// 200 packets at twice the smallest RTT: W = 100, and the window loses 0.3 of the 90 packets above W + 10.
    #[test]
    fn window_is_what_the_rate_fills_and_ten_packets() {
        let (mut nv, mut window) =
            (Nv::new(NvConfig {}, Span::ZERO), Window { cwnd: 200, ssthresh: 100, ..Window::new(1) });
        nv.reset = Time::MAX;
        nv.halfway = Time::MAX;
        nv.min_rtt = Span::from_us(1000);
        (0..2).for_each(|_| round(&mut nv, &mut window, 2000));
        assert_eq!((window.cwnd, window.ssthresh), (173, 110));
        assert_eq!(
            nv.ssthresh(&Window { cwnd: 160, ssthresh: 100, ..Window::new(1) }, false),
            127,
            "measured on Linux"
        );
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
