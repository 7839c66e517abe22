//! Sleeping in virtual time.

use crate::failure::{Context, Failure};
use std::thread;
use std::time::Duration;

/// Makes sleeps of this process, and of those that it starts, as exact as the kernel can.
pub fn tighten() -> Result<(), Failure> {
    nix::sys::prctl::set_timerslack(1).context(|| "cannot set the timer slack".into())
}

/// Sleeps for so many nanoseconds.
pub fn sleep(nanoseconds: u64) {
    if nanoseconds > 0 {
        thread::sleep(Duration::from_nanos(nanoseconds));
    }
}
