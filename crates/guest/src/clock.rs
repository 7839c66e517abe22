//! Sleeping in virtual time, and measuring virtual time without taking any.

use crate::failure::{Context, Failure};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time;
use std::thread;
use std::time::Duration;

/// Makes the sleeps of this process and of its children as exact as the kernel can.
pub fn tighten() -> Result<(), Failure> {
    nix::sys::prctl::set_timerslack(1).context(|| "cannot set the timer slack".into())
}

/// Nanoseconds to wait before the run. A kernel's timers become exact at one of its first ticks. Some programs take a
/// clock of zero seconds for one that they have not read yet: `ping` would send all its packets at once.
const SETTLING_NS: u64 = 2_000_000_000;

/// Waits until the kernel's timers are exact and its clock is not zero.
pub fn settle() {
    sleep(SETTLING_NS);
}

/// Sleeps for so many nanoseconds.
pub fn sleep(nanoseconds: u64) {
    if nanoseconds > 0 {
        thread::sleep(Duration::from_nanos(nanoseconds));
    }
}

/// The clocks that LibVT dilates, in its order.
const CLOCKS: [time::ClockId; 5] = [
    time::ClockId::CLOCK_REALTIME,
    time::ClockId::CLOCK_MONOTONIC,
    time::ClockId::CLOCK_MONOTONIC_RAW,
    time::ClockId::CLOCK_BOOTTIME,
    time::ClockId::CLOCK_TAI,
];

/// The variable that tells LibVT that dilated time begins now: all clocks in nanoseconds.
pub fn start_of_virtual_time() -> Result<(String, String), Failure> {
    let now = |clock: &time::ClockId| {
        let now = clock.now().context(|| "cannot read a clock".into())?;
        Ok(Duration::from(now).as_nanos().to_string())
    };
    let all: Result<Vec<String>, Failure> = CLOCKS.iter().map(now).collect();
    Ok(("LIBVT_START".into(), all?.join(":")))
}

/// The expiry of a stopwatch's timer, in nanoseconds: 146 years.
const FAR: u64 = 1 << 62;

/// Measures how much time has passed, in nanoseconds. Reading the kernel's clock takes 1 ns of virtual time; reading
/// how long a timer has still to run takes none.
pub struct Stopwatch(Alarm);

impl Stopwatch {
    pub fn new() -> Result<Self, Failure> {
        Alarm::new().map(Stopwatch)
    }

    /// Starts to measure.
    pub fn start(&self) -> Result<(), Failure> {
        self.0.set(Some(FAR))
    }

    /// Nanoseconds since [`Stopwatch::start`].
    pub fn elapsed(&self) -> Result<u64, Failure> {
        let left = self.0.0.get().context(|| "cannot read a timer".into())?;
        let Some(Expiration::OneShot(left)) = left else {
            return Err(Failure::new("the stopwatch of the run was not started"));
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

    /// Makes the timer expire after so many nanoseconds, which are not 0; `None`: never.
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

    /// Waits until the timer expires.
    pub fn wait(&self) -> Result<(), Failure> {
        self.0.wait().context(|| "cannot wait for a timer".into())
    }
}
