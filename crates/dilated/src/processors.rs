//! Processors: one for the engine, the others for the hosts.

use crate::clock;
use crate::error::Error;
use crate::fidelity::Late;
use firstlight_linux::Context;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The kernel's priority from -20 to 19: this one goes before all ordinary programs.
const FIRST: i32 = -20;
/// How often timers are looked at.
const PERIOD: u64 = 1_000_000;

/// The processors of the engine and of the hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorShares {
    /// The engine's processor.
    pub engine: usize,
    /// The hosts' processors.
    pub hosts: Vec<usize>,
}

impl ProcessorShares {
    /// Divides the processors that this process may use: the last one is the engine's.
    pub fn find() -> Result<Self, Error> {
        let set = sched_getaffinity(Pid::from_raw(0)).context(|| "cannot ask for this process's processors".into())?;
        let allowed = (0..CpuSet::count()).filter(|processor| set.is_set(*processor).unwrap_or(false));
        Self::divide(allowed.collect())
    }

    fn divide(mut allowed: Vec<usize>) -> Result<Self, Error> {
        match allowed.pop() {
            Some(engine) if !allowed.is_empty() => Ok(ProcessorShares { engine, hosts: allowed }),
            _ => Err(Error::Machine(
                "hosts in dilated time need two processors, one for the engine alone: this process may use one".into(),
            )),
        }
    }
}

/// Keeps the calling thread on one processor.
pub fn stay_on(processor: usize) -> Result<(), Error> {
    let mut set = CpuSet::new();
    let chosen = set.set(processor).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    Ok(chosen.context(|| format!("cannot stay on processor {processor}"))?)
}

/// Lets the calling thread go before all ordinary programs, where the system permits it.
pub fn go_first() {
    // SAFETY: the call has no memory for an argument; 0 is the calling thread.
    #[allow(unsafe_code)]
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, FIRST) };
}

/// Lets the calling thread run only when no other program wants its processor; returns whether the system permits it.
fn go_last() -> bool {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: `none` lives until the call has ended; 0 is the calling thread.
    #[allow(unsafe_code)]
    let refused = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) };
    refused == 0
}

/// Threads that measure how late timers expire, one on each of the hosts' processors, and the means that keep these
/// processors awake. They also measure how much time a virtual machine loses to its own host.
///
/// A processor that has halted takes tens of microseconds to wake up in a virtual machine: hosts would be late by that
/// time at each packet and timer.
pub struct Watches {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Late>>,
    awake: Vec<JoinHandle<()>>,
    /// Processors poll while this is open.
    _polling: Option<File>,
    stolen: [u64; 2],
}

impl Watches {
    pub fn start(processors: &[usize]) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let watch = |processor: &usize| {
            let (over, processor) = (Arc::clone(&over), *processor);
            std::thread::spawn(move || watch(processor, &over))
        };
        let stay_awake = |processor: &usize| {
            let (over, processor) = (Arc::clone(&over), *processor);
            std::thread::spawn(move || stay_awake(processor, &over))
        };
        let threads = processors.iter().map(watch).collect();
        let polling = poll_when_idle();
        let awake = if polling.is_some() { Vec::new() } else { processors.iter().map(stay_awake).collect() };
        Watches { threads, awake, over, _polling: polling, stolen: stolen() }
    }

    /// Ends them: how late timers were, and the part of all time that was taken away.
    pub fn end(self) -> (Late, f64) {
        self.over.store(true, Ordering::Relaxed);
        let mut all = Late::new();
        for thread in self.threads {
            if let Ok(late) = thread.join() {
                all.add(&late);
            }
        }
        self.awake.into_iter().for_each(|thread| drop(thread.join()));
        let now = stolen();
        let [stolen, passed] = [0, 1].map(|index| now[index].saturating_sub(self.stolen[index]));
        (all, if passed == 0 { 0.0 } else { stolen as f64 / passed as f64 })
    }
}

fn watch(processor: usize, over: &AtomicBool) -> Late {
    let mut late = Late::new();
    if stay_on(processor).is_err() {
        return late;
    }
    let _ = nix::sys::prctl::set_timerslack(1);
    go_first();
    while !over.load(Ordering::Relaxed) {
        let due = clock::now() + PERIOD;
        std::thread::sleep(Duration::from_nanos(PERIOD));
        late.record(clock::now().saturating_sub(due));
    }
    late
}

/// Asks that no processor sleeps so deeply that it takes time to wake up, for as long as the file is open; none where
/// the kernel does not choose how deeply (Linux, Documentation/power/pm_qos_interface.rst).
fn poll_when_idle() -> Option<File> {
    let driver = fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_driver").ok()?;
    let mut file = File::options().write(true).open("/dev/cpu_dma_latency").ok()?;
    let microseconds = 0_i32.to_ne_bytes();
    (driver.trim() != "none" && file.write_all(&microseconds).is_ok()).then_some(file)
}

/// Spins while nothing else wants the processor. Two of these on one processor can starve all other programs (Linux
/// 6.18): where it can, the kernel polls instead.
fn stay_awake(processor: usize, over: &AtomicBool) {
    if stay_on(processor).is_err() || !go_last() {
        return;
    }
    while !over.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// Time that a virtual machine lost to its own host, and all time of all processors, in ticks since the machine began.
fn stolen() -> [u64; 2] {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    stolen_in(&text)
}

/// The eighth number of the line of all processors; the first eight are all time.
fn stolen_in(stat: &str) -> [u64; 2] {
    let line = stat.lines().next().unwrap_or_default();
    let numbers: Vec<u64> = line.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
    [numbers.get(7).copied().unwrap_or(0), numbers.iter().sum()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_processor_is_the_engines() {
        assert_eq!(ProcessorShares::divide(vec![0, 2, 5]).unwrap(), ProcessorShares { engine: 5, hosts: vec![0, 2] });
        let alone = ProcessorShares::divide(vec![3]).unwrap_err().to_string();
        assert!(alone.starts_with("hosts in dilated time need two processors"), "{alone}");
    }

    #[test]
    fn stolen_time_is_the_eighth_number() {
        assert_eq!(stolen_in("cpu  10 1 20 300 4 0 5 60 7 0\ncpu0 1 2\n"), [60, 400]);
        assert_eq!(stolen_in(""), [0, 0]);
    }

    #[test]
    fn watches_see_timers() {
        let processors = ProcessorShares::find().unwrap();
        let watches = Watches::start(&processors.hosts);
        std::thread::sleep(Duration::from_millis(20));
        assert!(watches.end().0.lateness(u64::MAX >> 8).count > 0);
    }
}
