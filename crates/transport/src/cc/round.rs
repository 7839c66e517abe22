//! Round trips, and the measurements of Vegas and its descendants in each of them.

use super::{Ack, Delivery};
use firstlight_units::{Span, Time};

/// Round trips, separated by stream offsets: one ends when all is acknowledged that was in flight at its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    end: u64,
}

impl Default for Round {
    /// The first round trip ends with the first byte.
    fn default() -> Self {
        Round { end: 1 }
    }
}

impl Round {
    /// A round trip begins whose last byte is before stream offset `next`.
    pub(super) const fn begin(&mut self, next: u64) {
        self.end = next;
    }

    /// Whether this ACK ends a round trip; the next one then begins.
    pub(super) fn ends(&mut self, ack: &Ack) -> bool {
        let ends = ack.una > self.end;
        if ends {
            self.end = ack.next;
        }
        ends
    }

    /// The stream offset at which the current round trip ends.
    #[cfg(test)]
    pub(super) const fn end(self) -> u64 {
        self.end
    }
}

/// A span in started ticks of the host's clock.
pub(super) fn in_ticks(span: Span, tick: Span) -> Span {
    if tick.is_zero() { span } else { tick * span.as_ps().div_ceil(tick.as_ps()) }
}

/// The part of a span that exceeds whole ticks of the host's clock.
pub(super) fn part_of_tick(span: Span, tick: Span) -> Span {
    Span::from_ps(span.as_ps().checked_rem(tick.as_ps()).unwrap_or(0))
}

/// When the tick of the host's clock began; `now` where it has none.
pub(super) fn tick_of(now: Time, tick: Span) -> Time {
    now - part_of_tick(now - Time::ZERO, tick)
}

/// The measurements of Vegas and its descendants, as in Linux: the smallest round-trip time of empty queues, and that
/// of the present round trip. Both are a microsecond longer than they are. The round trip begins anew when nothing is
/// known to be lost or out of order any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundRtt {
    /// BaseRTT: the smallest round-trip time since something was in flight.
    pub(super) base: Span,
    /// The smallest round-trip time of this round trip.
    pub(super) min: Span,
    /// Samples in this round trip.
    pub(super) samples: u32,
    /// The round trip ends when more than this stream offset is acknowledged.
    end: u64,
    /// The round trips count for the window: nothing is known to be lost or out of order, or nothing was in flight
    /// since that was last found.
    pub(super) counts: bool,
}

impl Default for RoundRtt {
    fn default() -> Self {
        RoundRtt { base: Span::MAX, min: Span::MAX, samples: 0, end: 0, counts: true }
    }
}

impl RoundRtt {
    /// Adds a sample.
    pub(super) fn add(&mut self, rtt: Span) {
        let rtt = rtt + Span::from_us(1);
        self.base = self.base.min(rtt);
        self.min = self.min.min(rtt);
        self.samples += 1;
    }

    /// Adds the sample of an ACK, if it has one.
    pub(super) fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.add(rtt);
        }
    }

    /// Sending begins again after nothing was in flight, which may be what is sent again after a loss.
    pub(super) fn on_resume(&mut self, next: u64) {
        self.base = Span::MAX;
        self.counts = true;
        self.begin(next);
    }

    /// The state of congestion has changed, `open` or not: only with an open one the round trips count.
    pub(super) fn on_state(&mut self, open: bool, next: u64) {
        self.counts = open;
        if open {
            self.begin(next);
        }
    }

    /// Whether this ACK ends the round trip.
    pub(super) const fn ends(&self, ack: &Ack) -> bool {
        ack.una > self.end
    }

    /// The next round trip begins, whose last byte is before stream offset `next`.
    pub(super) const fn begin(&mut self, next: u64) {
        self.end = next;
        (self.min, self.samples) = (Span::MAX, 0);
    }

    /// The stream offset at which the present round trip ends.
    #[cfg(test)]
    pub(super) const fn end(&self) -> u64 {
        self.end
    }
}

/// Round trips, separated by deliveries: one ends when a packet is delivered that was sent after its start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeliveredRound {
    end: u64,
    number: u64,
    begins: bool,
}

impl DeliveredRound {
    /// Takes in an ACK. Returns whether a round trip begins.
    pub(super) fn on_delivery(&mut self, delivery: &Delivery) -> bool {
        self.begins = delivery.interval.is_some() && delivery.total_before >= self.end;
        if self.begins {
            self.end = delivery.total;
            self.number += 1;
        }
        self.begins
    }

    /// A round trip begins now that `total` packets are delivered.
    pub(super) fn restart(&mut self, total: u64) {
        self.end = total;
    }

    /// Whether the last ACK began a round trip.
    pub(super) const fn begins(&self) -> bool {
        self.begins
    }

    /// How many round trips have begun.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }
}
