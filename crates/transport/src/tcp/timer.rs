//! Deadlines on a clock that ticks.

use firstlight_units::{Span, Time};

/// Timer granularity; a zero tick is exact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick(pub(crate) Span);

impl Tick {
    /// When a timer set at `now` for `span` expires: `span` rounded up to whole ticks after the tick that `now` is in.
    pub(crate) fn after(self, now: Time, span: Span) -> Time {
        let tick = self.0.as_ps();
        if tick == 0 {
            return now + span;
        }
        let ticks = now.as_ps() / tick + span.as_ps().div_ceil(tick);
        Time::from_ps(ticks.saturating_mul(tick))
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

    #[test]
    fn deadlines_fall_on_ticks() {
        let tick = Tick(Span::from_ms(1));
        let at = |us| Time::ZERO + Span::from_us(us);
        assert_eq!(tick.after(at(2_500), Span::from_us(40_000)), at(42_000));
        assert_eq!(tick.after(at(2_500), Span::from_us(2_300)), at(5_000));
        assert_eq!(Tick(Span::ZERO).after(at(2_500), Span::from_us(2_300)), at(4_800));
    }
}
