//! Sleeping in virtual time, and telling it without taking any.

use crate::failure::{Context, Failure};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
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

/// When a watch would ring: in 146 years.
const FAR: u64 = 1 << 62;

/// How much time has passed, in nanoseconds. A look at the kernel's clock takes 1 ns; one at how long a timer has still to
/// go takes none.
pub struct Watch(Alarm);

impl Watch {
    pub fn new() -> Result<Self, Failure> {
        Alarm::new().map(Watch)
    }

    pub fn start(&self) -> Result<(), Failure> {
        self.0.set(Some(FAR))
    }

    /// Since the start.
    pub fn elapsed(&self) -> Result<u64, Failure> {
        let left = self.0.0.get().context(|| "cannot read a timer".into())?;
        let Some(Expiration::OneShot(left)) = left else {
            return Err(Failure::new("a watch was not started"));
        };
        Ok(FAR - Duration::from(left).as_nanos() as u64)
    }
}

/// A timer that one thread waits for and others set.
pub struct Alarm(TimerFd);

impl Alarm {
    pub fn new() -> Result<Self, Failure> {
        let made = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC);
        made.map(Alarm).context(|| "cannot make a timer".into())
    }

    /// It goes off after so many nanoseconds, which are not 0, or not at all.
    pub fn set(&self, after: Option<u64>) -> Result<(), Failure> {
        let set = match after {
            Some(after) => {
                let after = Expiration::OneShot(TimeSpec::from_duration(Duration::from_nanos(after)));
                self.0.set(after, TimerSetTimeFlags::empty())
            }
            None => self.0.unset(),
        };
        set.context(|| "cannot set a timer".into())
    }

    /// Waits until it goes off.
    pub fn wait(&self) -> Result<(), Failure> {
        self.0.wait().context(|| "cannot wait for a timer".into())
    }
}
