//! Measures the costs of `[linux.cpu]` on this machine's kernel. Each number is the least of several repetitions, since
//! disturbances only add to a measurement.

#![expect(clippy::disallowed_types, reason = "it measures the machine, not a run")]

use pyo3::PyResult;
use pyo3::pyfunction;
use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::thread;
use std::time::Instant;

/// How often each measurement is repeated.
const REPETITIONS: usize = 20;
/// The operations of one repetition.
const TIMES: u32 = 2000;
/// Connections of two threads, each with a byte under way, so that neither thread waits for the other.
const CONNECTIONS: usize = 10;
/// Bytes of a small and of a large copy.
const SMALL: usize = 4096;
const LARGE: usize = 1 << 18;

/// Nanoseconds of a system call, a read of the clock, a wake-up, and a copied byte, by their keys of `[linux.cpu]`.
/// `file` is empty and of a file system in memory.
#[pyfunction]
pub fn measure_processor(file: &str) -> PyResult<BTreeMap<&'static str, f64>> {
    let syscall = least(TIMES, || _ = black_box(parent_id()));
    let clock = least(TIMES, || _ = black_box(Instant::now()));
    Ok([("syscall", syscall), ("clock", clock), ("wakeup", wakeup()?), ("copy", copy(file)?)].into())
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

/// Two threads wake one another in turn; without the calls that write and read, which do not wait by themselves.
fn wakeup() -> io::Result<f64> {
    let (mut here, mut there) = UnixStream::pair()?;
    let mut byte = [0];
    let calls = least(TIMES, || {
        here.write_all(&[1]).and_then(|()| there.read_exact(&mut byte)).expect("both ends are open");
    });
    let echo = thread::spawn(move || {
        let mut byte = [0];
        while there.read_exact(&mut byte).is_ok() && there.write_all(&byte).is_ok() {}
    });
    let round_trip = least(TIMES, || {
        here.write_all(&[1]).and_then(|()| here.read_exact(&mut byte)).expect("both ends are open");
    });
    drop(here);
    echo.join().expect("the other thread only reads and writes");
    Ok((round_trip / 2.0 - calls).max(0.0))
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
