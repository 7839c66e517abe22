//! Deadlines on a clock that ticks.
//!
//! A kernel's timer counts whole ticks and never expires early, so it expires at the tick after the one that is asked
//! for. Timers of many ticks are kept on coarser wheels: from 63 ticks on timers expire at multiples of 8 ticks, from
//! 504 on at multiples of 64, and so on ("Reinventing the timer wheel", LWN, 2015). Measured: docs/models/tcp.md.

use firstlight_units::{Span, Time};

/// The finest wheel has timers of fewer ticks than that; each next one is coarser and longer by `WHEEL_BITS`.
const WHEEL_TICKS: u64 = 63;
const WHEEL_BITS: u32 = 3;
/// The coarsest wheel's shift; its timers may be longer than it is.
const WHEEL_MOST: u32 = 8 * WHEEL_BITS;

/// A clock by whose ticks timers expire; a zero tick is exact. It remembers its last roundings, for these divisions
/// would be a good part of a packet's cost and seldom change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    tick: u64,
    /// The tick that the last `now` was in, ...
    now: u64,
    /// ... and when it began.
    floor: u64,
    /// The last span in whole ticks, ...
    span: u64,
    /// ... the same in picoseconds, ...
    ceiling: u64,
    /// ... and the shift of its wheel.
    shift: u32,
}

impl Ticks {
    pub(crate) const fn new(tick: Span) -> Self {
        Ticks { tick: tick.as_ps(), now: 0, floor: 0, span: 0, ceiling: 0, shift: 0 }
    }

    /// A span in whole ticks: not less than it is.
    pub(crate) const fn whole(&self, span: Span) -> Span {
        if self.tick == 0 { span } else { Span::from_ps(span.as_ps().div_ceil(self.tick).saturating_mul(self.tick)) }
    }

    /// The time between two moments, each rounded down to a tick.
    pub(crate) const fn between(&self, from: Time, to: Time) -> Span {
        if self.tick == 0 {
            return to.saturating_since(from);
        }
        Span::from_ps((to.as_ps() / self.tick).saturating_sub(from.as_ps() / self.tick) * self.tick)
    }

    /// Half of a span in whole ticks, rounded down to a tick.
    pub(crate) fn half(&self, span: Span) -> Span {
        let half = span.as_ps() / 2;
        Span::from_ps(half - half.checked_rem(self.tick).unwrap_or(0))
    }

    /// When a timer set at `now` for `span` expires.
    pub(crate) fn after(&mut self, now: Time, span: Span) -> Time {
        if self.tick == 0 {
            return now + span;
        }
        let (now, span) = (now.as_ps(), span.as_ps());
        if now.wrapping_sub(self.floor) >= self.tick {
            self.now = now / self.tick;
            self.floor = self.now * self.tick;
        }
        if span > self.ceiling || span.saturating_add(self.tick) <= self.ceiling {
            self.span = span.div_ceil(self.tick);
            self.ceiling = self.span.saturating_mul(self.tick);
            self.shift = wheel(self.span);
        }
        let expires = (((self.now + self.span) >> self.shift) + 1) << self.shift;
        Time::from_ps(expires.saturating_mul(self.tick))
    }
}

/// The shift of the wheel that holds a timer of so many ticks.
const fn wheel(ticks: u64) -> u32 {
    let mut shift = 0;
    while ticks >> shift >= WHEEL_TICKS && shift < WHEEL_MOST {
        shift += WHEEL_BITS;
    }
    shift
}

/// What the one retransmission-side timer is armed for (RFC 6298, RFC 8985).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// The timer is not armed.
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
        assert_eq!(ticks.after(at(2_500), Span::from_us(40_000)), at(43_000));
        assert_eq!(ticks.after(at(2_500), Span::from_us(2_300)), at(6_000));
        // 201 ticks are more than 63: the next multiple of 8 ticks.
        assert_eq!(ticks.after(at(4_500), Span::from_us(200_300)), at(208_000));
        assert_eq!(Ticks::new(Span::ZERO).after(at(2_500), Span::from_us(2_300)), at(4_800));
    }

    #[test]
    fn a_span_in_whole_ticks_is_never_shorter() {
        let ticks = Ticks::new(Span::from_ms(4));
        assert_eq!(ticks.whole(Span::from_us(140_100)), Span::from_ms(144));
        assert_eq!(ticks.whole(Span::from_ms(144)), Span::from_ms(144));
        assert_eq!(Ticks::new(Span::ZERO).whole(Span::from_us(140_100)), Span::from_us(140_100));
    }

    proptest! {
        /// What is remembered changes nothing.
        #[test]
        fn agrees_with_plain_division(
            tick in 1u64..1000, sets in prop::collection::vec((0u64..9000, 0u64..9000), 1..50),
        ) {
            let mut ticks = Ticks::new(Span::from_ps(tick));
            for (now, span) in sets {
                let ticks_of_span = span.div_ceil(tick);
                let grains = [(63, 1), (504, 8), (4032, 64), (32_256, 512)];
                let grain = grains.iter().find(|(most, _)| ticks_of_span < *most);
                let grain = grain.expect("spans are shorter than that").1;
                let expected = ((now / tick + ticks_of_span) / grain + 1) * grain * tick;
                prop_assert_eq!(ticks.after(Time::from_ps(now), Span::from_ps(span)), Time::from_ps(expected));
            }
        }
    }
}
