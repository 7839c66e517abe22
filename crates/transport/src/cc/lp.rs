//! LP: a flow that yields to others (Kuzmanovic and Knightly, "TCP-LP: A Distributed Algorithm for Low Priority Data
//! Transfer", INFOCOM 2003, section III).
//!
//! One-way delays d come from the timestamps of ACKs: the peer's clock less the echo of ours. The smoothed delay is sd
//! <- (1 - 1/8) sd + 1/8 d. Congestion is early where sd > d_min + (d_max - d_min) delta, with delta = 0.15. It halves
//! the window and begins an inference phase of three round trips without growth. Early congestion in that phase leaves
//! a window of one packet. Otherwise LP is Reno.
//!
//! Linux 7.2 finds early congestion on few connections. In two runs of 32 connections that shared a queue of 24 ms for
//! 1.2 s, 9 of the 11 whose peer's timestamps began below 2^29 backed off, and 3 of the 53 others. Timestamps begin at
//! random, so about one connection in eight is concerned. One flow that filled queues of 12 to 180 ms over 20 s had
//! NewReno's windows at each of 19,999 samples. A smoothed delay of 29 bits that has the peer's timestamp in it would
//! explain the bound; the three others are not explained. `lp.early = false`, the default, is Linux's LP: it draws for
//! each connection whether it finds early congestion. `true` is the paper's.

use super::draw::Draw;
use super::{Ack, CongestionControl, ControllerConfig, NewReno, NewRenoConfig, Start, Window};
use firstlight_units::{Span, Time};

/// Weight of the newest sample in the smoothed one-way delay, gamma.
const GAIN: f64 = 1.0 / 8.0;
/// The threshold between the smallest and the largest one-way delay, delta.
const THRESHOLD: f64 = 0.15;
/// The length of the inference phase in round trips.
const INFERENCE: u64 = 3;
/// One in so many connections of Linux finds early congestion.
const SEEING: u64 = 8;

/// TCP-LP (Kuzmanovic and Knightly, 2003).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct LpConfig {
    /// Back off when one-way delays rise, as in the paper. `false`: as Linux, where one connection in eight does.
    #[cfg_attr(feature = "spec", schemars(extend("x-when" = "simulated flow")))]
    pub early: bool,
}

impl ControllerConfig for LpConfig {
    const LINUX: Option<&'static str> = Some("lp");
}

/// One-way delays in milliseconds, by the difference of two clocks.
#[derive(Clone, Copy, Debug)]
struct OneWay {
    min: f64,
    max: f64,
    smoothed: f64,
}

/// The state of LP.
#[derive(Clone, Debug)]
pub struct Lp {
    /// This connection finds early congestion.
    early: bool,
    /// The difference of the clocks at the first ACK, to which delays are relative.
    offset: Option<u32>,
    one_way: Option<OneWay>,
    /// The end of the inference phase.
    inference_end: Time,
    reno: NewReno,
}

impl Lp {
    /// A controller for one connection.
    pub fn new(config: LpConfig, tick: Span) -> Self {
        let reno = NewReno::new(NewRenoConfig {}, tick);
        Lp { early: config.early, offset: None, one_way: None, inference_end: Time::ZERO, reno }
    }

    /// Takes in a one-way delay. Returns whether it shows early congestion.
    fn finds_congestion(&mut self, [theirs, ours]: [u32; 2]) -> bool {
        let difference = theirs.wrapping_sub(ours);
        let offset = *self.offset.get_or_insert(difference);
        let d = f64::from(difference.wrapping_sub(offset) as i32);
        let delays = self.one_way.get_or_insert(OneWay { min: d, max: d, smoothed: d });
        delays.min = delays.min.min(d);
        delays.max = delays.max.max(d);
        delays.smoothed += GAIN * (d - delays.smoothed);
        delays.smoothed > delays.min + (delays.max - delays.min) * THRESHOLD
    }
}

impl CongestionControl for Lp {
    fn on_established(&mut self, _window: &mut Window, start: &Start) {
        self.early |= Draw::new(start.seed).below(SEEING) == 0;
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if !self.early || ack.timestamps[1] == 0 || !self.finds_congestion(ack.timestamps) || !ack.open {
            return;
        }
        let inferring = ack.now < self.inference_end;
        let phase = ack.srtt.unwrap_or(Span::ZERO) * INFERENCE;
        if inferring && self.inference_end.saturating_since(ack.now) + ack.srtt.unwrap_or(Span::ZERO) > phase {
            // The congestion that began the phase takes a round trip to go away.
            return;
        }
        window.cwnd = if inferring { 1 } else { (window.cwnd / 2).max(1) };
        window.ssthresh = window.ssthresh.min(window.cwnd.max(window.floor));
        self.inference_end = ack.now + phase;
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        if ack.now >= self.inference_end {
            self.reno.grow(window, ack);
        }
    }

    fn ssthresh(&mut self, window: &Window, marked: bool) -> u32 {
        self.reno.ssthresh(window, marked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_units::Bytes;

    fn ack(lp: &mut Lp, window: &mut Window, now_ms: u64, delay: u32) -> u32 {
        let (now, srtt) = (Time::ZERO + Span::from_ms(now_ms), Some(Span::from_ms(10)));
        let timestamps = [5000 + now_ms as u32 + delay, now_ms as u32 + 1];
        let ack = Ack { now, delivered: 1, rtt: srtt, srtt, open: true, timestamps, ..Ack::default() };
        lp.on_ack(window, &ack);
        lp.grow(window, &ack);
        window.cwnd
    }

    /// Section III by hand. Delays of 0 and 20 ms put the threshold at 3 ms; from there sd takes a sample of 20 to 4.4.
    #[test]
    fn early_congestion_halves_and_then_leaves_one_packet() {
        let (mut lp, mut window) =
            (Lp::new(LpConfig { early: true }, Span::ZERO), Window { cwnd: 40, ssthresh: 20, ..Window::new(1) });
        (1..10).for_each(|i| _ = ack(&mut lp, &mut window, i, 0));
        assert_eq!(ack(&mut lp, &mut window, 20, 20), 40, "sd = 2.5 ms is below 3 ms");
        assert_eq!(ack(&mut lp, &mut window, 21, 20), 20, "sd = 4.7 ms: half");
        assert_eq!(ack(&mut lp, &mut window, 25, 20), 20, "no growth and no second step in the same round trip");
        assert_eq!(ack(&mut lp, &mut window, 35, 20), 1, "still congested in the inference phase");
    }

    /// 100 of 800 connections are expected, with a standard deviation of 9.
    #[test]
    fn one_connection_in_eight_finds_early_congestion() {
        let sees = |seed| {
            let mut lp = Lp::new(LpConfig::default(), Span::ZERO);
            lp.on_established(
                &mut Window::new(10),
                &Start { now: Time::ZERO, srtt: None, packet: Bytes::new(1500), seed },
            );
            lp.early
        };
        let seeing = (0..800).filter(|&seed| sees(seed)).count();
        assert!((70..130).contains(&seeing), "{seeing}");
    }

    #[test]
    fn linux_s_lp_is_reno() {
        let (mut lp, mut window) =
            (Lp::new(LpConfig::default(), Span::ZERO), Window { cwnd: 40, ssthresh: 20, ..Window::new(1) });
        (1..=80).for_each(|i| _ = ack(&mut lp, &mut window, i, i as u32));
        assert_eq!(window.cwnd, 41);
    }
}
