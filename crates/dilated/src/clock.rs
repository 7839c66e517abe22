//! The machine's clock, in nanoseconds.

use nix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC: the engine's clock.
#[inline]
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
