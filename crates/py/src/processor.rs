//! Measures the costs of `[linux.cpu]` on this machine's kernel. Each number but the interrupt's is the least of
//! several repetitions, since disturbances only add to a measurement.

#![expect(clippy::disallowed_types, reason = "it measures the machine, not a run")]
#![allow(unsafe_code)]

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use nix::unistd::Pid;
use pyo3::PyResult;
use pyo3::pyfunction;
use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often each measurement is repeated.
const REPETITIONS: usize = 20;
/// The operations of one repetition.
const TIMES: u32 = 2000;
/// Connections of two threads, each with a byte under way, so that neither thread waits for the other.
const CONNECTIONS: usize = 10;
/// Bytes of a small and of a large copy.
const SMALL: usize = 4096;
const LARGE: usize = 1 << 18;
/// The least time from one interrupt to the next, while interrupts are measured.
const BETWEEN_INTERRUPTS: Duration = Duration::from_micros(50);
/// How many interrupts are measured.
const INTERRUPTS: usize = 400;

/// Measures the costs of this machine's processor in nanoseconds, by their keys of `[linux.cpu]`.
///
/// They are those of a system call, a read of the clock, a wake-up, and a copied byte. With an `other` processor there
/// are two more: an interrupt, and leaving the idle state. The calling thread stays on one processor. `file` is an
/// empty file of a file system in memory.
#[pyfunction]
#[pyo3(signature = (file, other))]
pub fn measure_processor(file: &str, other: Option<usize>) -> PyResult<BTreeMap<&'static str, f64>> {
    let clock = least(TIMES, || _ = black_box(Instant::now()));
    let here = turn(TIMES, None)?;
    let wakeup = (here - two_calls()?).max(0.0);
    let mut all =
        BTreeMap::from([("syscall", syscall()?), ("clock", clock), ("wakeup", wakeup), ("copy", copy(file)?)]);
    if let Some(other) = other {
        all.insert("idle", (turn(TIMES / 10, Some(other))? - here).max(0.0));
        all.insert("interrupt", interrupt(other)?);
    }
    Ok(all)
}

/// Nanoseconds until a thread has received a byte over TCP and sent one, with both calls, while another thread does the
/// same.
#[pyfunction]
pub fn measure_messages() -> PyResult<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let (mut here, mut there) = (vec![], vec![]);
    for _ in 0..CONNECTIONS {
        here.push(TcpStream::connect(listener.local_addr()?)?);
        there.push(listener.accept()?.0);
    }
    here.iter().chain(&there).try_for_each(|end| end.set_nodelay(true))?;
    here.iter_mut().try_for_each(|end| end.write_all(&[1]))?;
    let echo = thread::spawn(move || while there.iter_mut().try_for_each(answer).is_ok() {});
    let round = least(TIMES / 10, || here.iter_mut().try_for_each(answer).expect("both ends are open"));
    drop(here);
    echo.join().expect("the other thread only reads and writes");
    Ok(round / CONNECTIONS as f64)
}

/// Nanoseconds that `work` takes, in the fastest of the repetitions.
fn least(times: u32, mut work: impl FnMut()) -> f64 {
    let repetition = |_| {
        let begin = Instant::now();
        (0..times).for_each(|_| work());
        begin.elapsed().as_nanos() as f64 / f64::from(times)
    };
    (0..REPETITIONS).map(repetition).fold(f64::INFINITY, f64::min)
}

/// Measures a system call as the mean of four that a server makes beside those that carry data.
///
/// They write a counter, read it, and call `epoll_ctl` and `epoll_wait` for it.
fn syscall() -> io::Result<f64> {
    let counter = EventFd::new()?;
    let poll = Epoll::new(EpollCreateFlags::empty())?;
    let event = EpollEvent::new(EpollFlags::EPOLLIN, 0);
    poll.add(&counter, event)?;
    let mut ready = [EpollEvent::empty()];
    let four = least(TIMES, || {
        let called = counter
            .write(1)
            .and_then(|_| poll.modify(&counter, &mut event.clone()))
            .and_then(|()| poll.wait(&mut ready, EpollTimeout::NONE))
            .and_then(|_| counter.read());
        called.expect("the counter is above zero");
    });
    Ok(four / 4.0)
}

/// The two calls of [`turn`], which do not wait by themselves.
fn two_calls() -> io::Result<f64> {
    let (mut here, mut there) = UnixStream::pair()?;
    let mut byte = [0];
    Ok(least(TIMES, || {
        here.write_all(&[1]).and_then(|()| there.read_exact(&mut byte)).expect("both ends are open");
    }))
}

/// Two threads wake one another in turn: the time of one of them, with a call that writes and one that reads. The other
/// thread is on the same processor, or on another, so that either is idle while the other one works.
fn turn(times: u32, other: Option<usize>) -> io::Result<f64> {
    let (mut here, mut there) = UnixStream::pair()?;
    let echo = thread::spawn(move || {
        other.map_or(Ok(()), stay_on)?;
        let mut byte = [0];
        while there.read_exact(&mut byte).is_ok() && there.write_all(&byte).is_ok() {}
        Ok(())
    });
    let mut byte = [0];
    let mut round = || here.write_all(&[1]).and_then(|()| here.read_exact(&mut byte));
    // The other thread is in its place from here on, or has closed its end.
    let begun = round();
    let took = begun.map(|()| least(times, || round().expect("both ends are open")) / 2.0);
    drop(here);
    echo.join().expect("the other thread only reads and writes").and(took)
}

/// What this thread loses by an interrupt that another processor sends: from each interrupt to the next one the longest
/// gap between reads of the clock; the median of these. The interrupts only order memory accesses (membarrier).
fn interrupt(other: usize) -> io::Result<f64> {
    barrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)?;
    let (sent, in_place) = (AtomicUsize::new(0), Barrier::new(2));
    let send = || -> io::Result<()> {
        let moved = stay_on(other);
        in_place.wait();
        moved?;
        for number in 1..=INTERRUPTS {
            let begin = Instant::now();
            sent.store(number, Ordering::Relaxed);
            barrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)?;
            while begin.elapsed() < BETWEEN_INTERRUPTS {}
        }
        Ok(())
    };
    let mut longest = vec![];
    thread::scope(|scope| {
        let sender = scope.spawn(send);
        in_place.wait();
        let (mut seen, mut last) = (0, Instant::now());
        while !sender.is_finished() {
            let now = Instant::now();
            let number = sent.load(Ordering::Relaxed);
            if number != seen {
                seen = number;
                longest.push(Duration::ZERO);
            }
            if let Some(longest) = longest.last_mut() {
                *longest = (now - last).max(*longest);
            }
            last = now;
        }
        sender.join().expect("it only sends interrupts")
    })?;
    longest.sort_unstable();
    Ok(longest.get(longest.len() / 2).map_or(0.0, |gap| gap.as_nanos() as f64))
}

/// A memory barrier on all processors that run this process: each gets an interrupt.
fn barrier(command: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes three numbers and touches no memory.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Keeps the calling thread on a processor.
fn stay_on(processor: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(processor)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &only)?)
}

/// A byte of a read from a file in memory.
fn copy(file: &str) -> io::Result<f64> {
    let mut bytes = vec![1; LARGE];
    let file = File::options().read(true).write(true).open(file)?;
    file.write_all_at(&bytes, 0)?;
    let mut read = |length: usize| {
        least(TIMES / 20, || file.read_exact_at(&mut bytes[..length], 0).expect("the file has as many bytes"))
    };
    let (small, large) = (read(SMALL), read(LARGE));
    Ok(((large - small) / (LARGE - SMALL) as f64).max(0.0))
}

/// Receives a byte and sends one.
fn answer(end: &mut TcpStream) -> io::Result<()> {
    let mut byte = [0];
    end.read_exact(&mut byte)?;
    end.write_all(&byte)
}
