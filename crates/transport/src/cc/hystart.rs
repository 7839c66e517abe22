//! HyStart: leaving slow start before it overshoots (Ha and Rhee, "Taming the elephants: new TCP slow start",
//! Computer Networks 55(9), 2011).
//!
//! Two signs are watched for in each round of slow start, from a window of 16 packets on: an ACK train (ACKs that come
//! close together) longer than half the smallest round-trip time, and a rise of the round's smallest RTT (over its
//! first 8 samples) by an eighth, bounded to 4..16 ms.
//!
//! As in Linux the train may be longer by the time in which the sender, at the pace of slow start, sends two bursts of
//! 64 KiB, at most by half a millisecond: on short paths the ACKs of a burst alone are longer than half a round trip.
//! That pace is of the round-trip time that the ACK before has left. Times are in whole microseconds.

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
/// Slow start doubles the window in a round trip: it sends at twice the rate of window / RTT.
const SLOW_START_PACE: u64 = 2;
const DELAY_MIN: Span = Span::from_ms(4);
const DELAY_MAX: Span = Span::from_ms(16);

/// The state of one connection's HyStart.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    round_end: u64,
    /// In microseconds.
    round_start: u64,
    last_ack: Time,
    round_rtt: Span,
    samples: u32,
    min_rtt: Span,
    /// The smoothed round-trip time after the last ACK.
    srtt: Span,
}

impl HyStart {
    pub(super) fn new() -> Self {
        HyStart {
            round_end: 0,
            round_start: 0,
            last_ack: Time::ZERO,
            round_rtt: Span::MAX,
            samples: 0,
            min_rtt: Span::MAX,
            srtt: Span::ZERO,
        }
    }

    /// Begin anew, after a timeout: a new slow start measures a new path.
    pub(super) fn reset(&mut self) {
        self.round_end = 0;
    }

    /// An ACK during slow start; ends it by lowering the threshold to the window when a sign is seen.
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let srtt = std::mem::replace(&mut self.srtt, ack.srtt.unwrap_or(Span::ZERO));
        let Some(rtt) = ack.rtt else { return };
        self.min_rtt = self.min_rtt.min(rtt);
        if ack.una > self.round_end {
            self.round_end = ack.next;
            self.round_start = ack.now.whole_us();
            self.last_ack = ack.now;
            self.round_rtt = Span::MAX;
            self.samples = 0;
        }
        if window.cwnd < LOW_WINDOW {
            return;
        }
        if self.long_train(window.cwnd, srtt, ack) || self.delay_rises(rtt) {
            window.ssthresh = window.cwnd;
        }
    }

    fn long_train(&mut self, cwnd: u32, srtt: Span, ack: &Ack) -> bool {
        if ack.now.saturating_since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = ack.now;
        let per_round_trip = SLOW_START_PACE * u64::from(cwnd) * u64::from(ack.mss);
        let eighths = (srtt.as_ps() / Span::from_ns(125).as_ps()).max(1);
        let bytes_per_second = per_round_trip.saturating_mul(8_000_000) / eighths;
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
