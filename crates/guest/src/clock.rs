//! Sleeping in virtual time.

use crate::failure::{Context, Failure};
use std::thread;
use std::time::Duration;

/// Makes sleeps of this process, and of those that it starts, as exact as the kernel can.
pub fn tighten() -> Result<(), Failure> {
    nix::sys::prctl::set_timerslack(1).context(|| "cannot set the timer slack".into())
}

/// A kernel's timers become exact at one of its first ticks. And there are programs that take a clock of zero seconds for
/// one that they have not read yet: `ping` would send all its packets at once.
const FIRST_SECONDS: u64 = 2_000_000_000;

/// Waits until the kernel's clock is such as programs expect.
pub fn settle() {
    sleep(FIRST_SECONDS);
}

/// Sleeps for so many nanoseconds.
pub fn sleep(nanoseconds: u64) {
    if nanoseconds > 0 {
        thread::sleep(Duration::from_nanos(nanoseconds));
    }
}
