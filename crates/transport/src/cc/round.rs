//! Round trips and what is measured in each of them.

use super::{Ack, Delivery};
use firstlight_units::{Span, Time};

/// Round trips, told apart by stream offsets: one ends when all is acknowledged that was in flight at its start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    end: u64,
}

impl Round {
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

/// What a span is longer than whole ticks of the host's clock.
pub(super) fn part_of_tick(span: Span, tick: Span) -> Span {
    Span::from_ps(span.as_ps().checked_rem(tick.as_ps()).unwrap_or(0))
}

/// When the tick of the host's clock began; `now` where it has none.
pub(super) fn tick_of(now: Time, tick: Span) -> Time {
    now - part_of_tick(now - Time::ZERO, tick)
}

/// The smallest round-trip time of a connection and of its current round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundRtt {
    /// Smallest round-trip time of the connection: that of empty queues.
    pub(super) base: Span,
    /// Smallest round-trip time of this round.
    pub(super) min: Span,
    /// Samples in this round.
    pub(super) samples: u32,
}

impl Default for RoundRtt {
    fn default() -> Self {
        RoundRtt { base: Span::MAX, min: Span::MAX, samples: 0 }
    }
}

impl RoundRtt {
    /// Adds the sample of an ACK, if it has one.
    pub(super) fn add(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.base = self.base.min(rtt);
            self.min = self.min.min(rtt);
            self.samples += 1;
        }
    }

    /// Begins the next round.
    pub(super) fn reset(&mut self) {
        self.min = Span::MAX;
        self.samples = 0;
    }

    /// The packets of a window that wait in queues: cwnd (min - base) / min.
    pub(super) fn waiting(&self, cwnd: u32) -> f64 {
        let share = (self.min - self.base).as_ps() as f64 / self.min.as_ps().max(1) as f64;
        f64::from(cwnd) * share
    }
}

/// Round trips, told apart by what was delivered: one ends when a packet is delivered that was sent after its start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeliveredRound {
    end: u64,
    number: u64,
    begins: bool,
}

impl DeliveredRound {
    /// Takes in what an ACK told; whether a round trip begins.
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
