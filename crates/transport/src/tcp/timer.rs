//! Deadlines on a clock that ticks.

use firstlight_units::{Span, Time};

/// A clock by whose ticks timers expire; a zero tick is exact. It remembers its last roundings, for these divisions
/// would be a good part of a packet's cost and seldom change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    tick: u64,
    /// Start of the tick that the last `now` was in.
    floor: u64,
    /// The last span, rounded up.
    ceiling: u64,
}

impl Ticks {
    pub(crate) const fn new(tick: Span) -> Self {
        Ticks { tick: tick.as_ps(), floor: 0, ceiling: 0 }
    }

    /// When a timer set at `now` for `span` expires: `span` rounded up to whole ticks after the tick that `now` is in.
    pub(crate) fn after(&mut self, now: Time, span: Span) -> Time {
        if self.tick == 0 {
            return now + span;
        }
        let (now, span) = (now.as_ps(), span.as_ps());
        if now.wrapping_sub(self.floor) >= self.tick {
            self.floor = now - now % self.tick;
        }
        if span > self.ceiling || span.saturating_add(self.tick) <= self.ceiling {
            self.ceiling = span.div_ceil(self.tick).saturating_mul(self.tick);
        }
        Time::from_ps(self.floor.saturating_add(self.ceiling))
    }
}

/// What the one retransmission-side timer is armed for (RFC 6298, RFC 8985).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Nothing.
    Idle,
    /// Retransmission timeout.
    Retransmit,
    /// Tail loss probe.
    Probe,
    /// RACK's reordering window.
    Reorder,
    /// A probe of the peer's closed window (RFC 9293, section 3.8.6.1).
    WindowProbe,
    /// The end of TIME-WAIT, or of FIN-WAIT-2.
    Linger,
}

/// The retransmission-side timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    pub(crate) purpose: Purpose,
    pub(crate) at: Time,
}

impl Timer {
    pub(crate) const IDLE: Timer = Timer { purpose: Purpose::Idle, at: Time::MAX };
}

/// The clock of the timestamp option: milliseconds, as Linux's, and never 0 (RFC 7323, section 5.4).
pub(crate) fn timestamp(now: Time) -> u32 {
    (now.as_ps() / 1_000_000_000) as u32 | 1 << 31
}

/// Compares timestamps modulo 2^32.
pub(crate) const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn deadlines_fall_on_ticks() {
        let mut ticks = Ticks::new(Span::from_ms(1));
        let at = |us| Time::ZERO + Span::from_us(us);
        assert_eq!(ticks.after(at(2_500), Span::from_us(40_000)), at(42_000));
        assert_eq!(ticks.after(at(2_500), Span::from_us(2_300)), at(5_000));
        assert_eq!(Ticks::new(Span::ZERO).after(at(2_500), Span::from_us(2_300)), at(4_800));
    }

    proptest! {
        /// What is remembered changes nothing.
        #[test]
        fn agrees_with_plain_division(tick in 1u64..1000, sets in prop::collection::vec((0u64..9000, 0u64..9000), 1..50)) {
            let mut ticks = Ticks::new(Span::from_ps(tick));
            for (now, span) in sets {
                let expected = (now / tick + span.div_ceil(tick)) * tick;
                prop_assert_eq!(ticks.after(Time::from_ps(now), Span::from_ps(span)), Time::from_ps(expected));
            }
        }
    }
}
