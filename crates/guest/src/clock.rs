//! Sleeping in virtual time, and measuring virtual time without taking any.

use crate::failure::{Context, GuestFailure};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time;
use std::thread;
use std::time::Duration;

/// When the run begins on the kernel's clock, in nanoseconds. A kernel's timers become exact at one of its first ticks,
/// and some programs take a clock of zero seconds for one that they have not read yet: `ping` would send all its
/// packets at once. A kernel counts its ticks from 300 s before its start, and timers of many ticks expire at multiples
/// of 8, 64 and 512 ticks ("Reinventing the timer wheel", LWN, 2015): at 3.04 s this count is a multiple of 512 at 100,
/// 250 and 1000 Hz, so that the ticks of the run count from zero on each of them.
const BEGIN_NS: u64 = 3_040_000_000;
/// The least common multiple of 512 ticks at 100, 250 and 1000 Hz, in nanoseconds.
const BEGIN_STEP_NS: u64 = 10_240_000_000;

/// Waits until the kernel's timers are exact, its clock is not zero, and its ticks count from zero.
pub fn settle() -> Result<(), GuestFailure> {
    let clock = time::ClockId::CLOCK_MONOTONIC;
    let now = Duration::from(clock.now().context(|| "cannot read a clock".into())?).as_nanos() as u64;
    let late = now.saturating_sub(BEGIN_NS).div_ceil(BEGIN_STEP_NS);
    let begin = TimeSpec::from_duration(Duration::from_nanos(BEGIN_NS + late * BEGIN_STEP_NS));
    time::clock_nanosleep(clock, time::ClockNanosleepFlags::TIMER_ABSTIME, &begin)
        .map(drop)
        .context(|| "cannot wait for the beginning of the run".into())
}

/// Sleeps for this number of nanoseconds.
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

/// The variable that makes LibVT begin dilated time now: all clocks in nanoseconds.
pub fn start_of_virtual_time() -> Result<(String, String), GuestFailure> {
    let now = |clock: &time::ClockId| {
        let now = clock.now().context(|| "cannot read a clock".into())?;
        Ok(Duration::from(now).as_nanos().to_string())
    };
    let all: Result<Vec<String>, GuestFailure> = CLOCKS.iter().map(now).collect();
    Ok(("LIBVT_START".into(), all?.join(":")))
}

/// The expiry of a stopwatch's timer, in nanoseconds: 146 years.
const FAR: u64 = 1 << 62;

/// Measures how much time has passed, in nanoseconds. Reading the kernel's clock takes 1 ns of virtual time; reading
/// how long a timer has still to run takes none.
pub struct Stopwatch(Alarm);

impl Stopwatch {
    pub fn new() -> Result<Self, GuestFailure> {
        Alarm::new().map(Stopwatch)
    }

    /// Starts to measure.
    pub fn start(&self) -> Result<(), GuestFailure> {
        self.0.set(Some(FAR))
    }

    /// Nanoseconds since [`Stopwatch::start`].
    pub fn elapsed(&self) -> Result<u64, GuestFailure> {
        let left = self.0.0.get().context(|| "cannot read a timer".into())?;
        let Some(Expiration::OneShot(left)) = left else {
            return Err(GuestFailure::new("the stopwatch of the run was not started"));
        };
        Ok(FAR - Duration::from(left).as_nanos() as u64)
    }
}

/// A timer that one thread waits for and others set.
pub struct Alarm(TimerFd);

impl Alarm {
    pub fn new() -> Result<Self, GuestFailure> {
        let made = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC);
        made.map(Alarm).context(|| "cannot make a timer".into())
    }

    /// Makes the timer expire after this number of nanoseconds, which is not 0; `None`: never.
    pub fn set(&self, after: Option<u64>) -> Result<(), GuestFailure> {
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
    pub fn wait(&self) -> Result<(), GuestFailure> {
        self.0.wait().context(|| "cannot wait for a timer".into())
    }
}
