//! HyStart: leaving slow start before it overshoots (Ha and Rhee, "Taming the elephants: new TCP slow start", Computer
//! Networks 55(9), 2011).
//!
//! From a window of 16 packets on, each round of slow start looks for two signs. One is an ACK train, which are ACKs
//! close together, that lasts longer than half the smallest round-trip time. The other is a rise of the round's
//! smallest RTT, over its first 8 samples, by an eighth, but by at least 4 and at most 16 ms.
//!
//! As in Linux the train may last longer by the time in which the sender sends two bursts of 64 KiB at its pace, at
//! most by half a millisecond. On short paths the ACKs of one burst alone last longer than half a round trip. The pace
//! is the one after the previous ACK: the window, or what is in flight, twice in a round trip in slow start and 1.2
//! times near the threshold. Times are in whole microseconds.

use super::{Ack, Window};
use crate::tcp::LARGEST;
use firstlight_units::{Span, Time};

const LOW_WINDOW: u32 = 16;
const MIN_SAMPLES: u32 = 8;
const TRAIN_GAP: Span = Span::from_ms(2);
/// Twice the bytes of the two largest bursts (`queue.rs`) by which a train may be longer, ...
const CUSHION: u64 = 4 * LARGEST;
/// ... and twice the most time, in microseconds.
const CUSHION_MAX: u64 = 1000;
const DELAY_MIN: Span = Span::from_ms(4);
const DELAY_MAX: Span = Span::from_ms(16);

/// The state of one connection's HyStart.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    /// `None` after a timeout, until the next ACK.
    round_end: Option<u64>,
    /// When the round began, in microseconds.
    round_start: u64,
    last_ack: Time,
    round_rtt: Span,
    samples: u32,
    /// The least round-trip time; the longest before the first sample.
    pub(super) min_rtt: Span,
    /// The smoothed round-trip time, and the packets in flight, after the last ACK.
    srtt: Span,
    in_flight: u64,
}

impl HyStart {
    pub(super) fn new() -> Self {
        HyStart {
            round_end: Some(0),
            round_start: 0,
            last_ack: Time::ZERO,
            round_rtt: Span::MAX,
            samples: 0,
            min_rtt: Span::MAX,
            srtt: Span::ZERO,
            in_flight: 0,
        }
    }

    /// Begin anew, after a timeout: a new slow start measures a new path.
    pub(super) fn reset(&mut self) {
        self.round_end = None;
    }

    /// An ACK; during slow start it ends this by lowering the threshold to the window when a sign is seen. Returns
    /// whether one was.
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &Ack, watches: bool) -> bool {
        let bytes_per_second = self.pace(window, ack);
        self.srtt = ack.srtt.unwrap_or(Span::ZERO);
        self.in_flight = ack.next.saturating_sub(ack.una).div_ceil(u64::from(ack.mss.max(1)));
        let Some(rtt) = ack.rtt else { return false };
        self.min_rtt = self.min_rtt.min(rtt);
        if !watches || !window.in_slow_start() {
            return false;
        }
        if self.round_end.is_none_or(|end| ack.una > end) {
            if self.round_end.replace(ack.next).is_some() {
                self.last_ack = ack.now;
            }
            self.round_start = ack.now.whole_us();
            self.round_rtt = Span::MAX;
            self.samples = 0;
        }
        if window.cwnd < LOW_WINDOW {
            return false;
        }
        let found = self.long_train(bytes_per_second, ack) || self.delay_rises(rtt);
        if found {
            window.ssthresh = window.cwnd;
        }
        found
    }

    /// The sender's pace since the last ACK, in bytes per second.
    fn pace(&self, window: &Window, ack: &Ack) -> u64 {
        let percent = if window.cwnd < window.ssthresh / 2 { 200 } else { 120 };
        let per_round_trip = u64::from(window.cwnd).max(self.in_flight) * u64::from(ack.mss) * percent;
        let eighths = (self.srtt.as_ps() / Span::from_ns(125).as_ps()).max(1);
        per_round_trip.saturating_mul(80_000) / eighths
    }

    fn long_train(&mut self, bytes_per_second: u64, ack: &Ack) -> bool {
        if ack.now.saturating_since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = ack.now;
        let cushion = (CUSHION * 1_000_000 / bytes_per_second.max(1)).min(CUSHION_MAX);
        ack.now.whole_us() - self.round_start > ((Time::ZERO + self.min_rtt).whole_us() + cushion) / 2
    }

    fn delay_rises(&mut self, rtt: Span) -> bool {
        self.round_rtt = self.round_rtt.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.round_rtt > self.min_rtt + (self.min_rtt / 8).clamp(DELAY_MIN, DELAY_MAX)
    }
}
