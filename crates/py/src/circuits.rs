//! Circuit schedulers: `firstlight_circuits::schedulers`.

use crate::error::SpecError;
use crate::progress::WallClock;
use firstlight_circuits::schedulers::served;
use firstlight_circuits::{Demand, Frame, RackId, Scheduler, Week};
use firstlight_units::UnitError;
use numpy::{PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Between two looks for Ctrl-C.
const PACE: Duration = Duration::from_millis(50);

/// Names of the schedulers.
#[pyfunction]
pub(crate) fn schedulers() -> Vec<&'static str> {
    Scheduler::ALL.iter().map(|scheduler| scheduler.name()).collect()
}

/// The week of one scheduler for a demand in bytes, what it serves, and how long the computation took.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the parts of a frame, by name")]
pub(crate) fn schedule<'py>(
    py: Python<'py>,
    demand: PyReadonlyArray2<'py, u64>,
    scheduler: &str,
    week: &str,
    night: &str,
    least_day: &str,
    circuit_rate: &str,
    packet_rate: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let rows: Vec<Vec<u64>> = demand.as_array().outer_iter().map(|row| row.to_vec()).collect();
    let demand = Demand::from_rows(&rows).map_err(|problem| SpecError::new_err(problem.to_string()))?;
    let frame = Frame {
        week: quantity("week", week)?,
        night: quantity("night", night)?,
        least_day: quantity("least_day", least_day)?,
        circuit: quantity("circuit_rate", circuit_rate)?,
        packet: quantity("packet_rate", packet_rate)?,
    };
    for (key, rate) in [("circuit_rate", frame.circuit), ("packet_rate", frame.packet)] {
        if rate.as_bps() == 0 {
            return Err(SpecError::new_err(format!(
                "{key}: a link of zero rate never sends: write for example 10Gbps"
            )));
        }
    }
    let found = Scheduler::from_name(scheduler).ok_or_else(|| unknown(scheduler))?;
    let (answer, receiver) = channel();
    std::thread::spawn(move || {
        let began = WallClock::now();
        let week = found.schedule(&demand, &frame);
        let took = began.elapsed();
        answer.send(week.map(|week| (served(&demand, &week, frame.circuit), week, took)))
    });
    let (served, week, took) = wait(py, receiver)?.map_err(|problem| SpecError::new_err(problem.to_string()))?;
    let result = PyDict::new(py);
    result.set_item("days", days(py, &week)?)?;
    let served: Vec<Vec<u64>> = served.rows().map(<[u64]>::to_vec).collect();
    result.set_item("served", PyArray2::from_vec2(py, &served)?)?;
    result.set_item("run_time_ns", u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))?;
    result.set_item("circuit_bps", frame.circuit.as_bps())?;
    result.set_item("packet_bps", frame.packet.as_bps())?;
    Ok(result)
}

fn quantity<T: FromStr<Err = UnitError>>(key: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|problem| SpecError::new_err(format!("{key}: {problem}")))
}

fn unknown(name: &str) -> PyErr {
    SpecError::new_err(format!("scheduler '{name}': there is none; there are '{}'", schedulers().join("', '")))
}

/// The result of the computation, waited for without the GIL. Ctrl-C does not wait for it: it ends by itself and is
/// forgotten.
fn wait<T: Send>(py: Python<'_>, mut receiver: Receiver<T>) -> PyResult<T> {
    loop {
        let answer;
        (receiver, answer) = py.detach(move || {
            let answer = receiver.recv_timeout(PACE);
            (receiver, answer)
        });
        match answer {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the scheduler panicked: its message is above"));
            }
        }
    }
}

/// `[(night, day, destinations)]` in picoseconds; -1 where a rack is idle.
fn days<'py>(py: Python<'py>, week: &Week) -> PyResult<Bound<'py, PyList>> {
    let days = week.days().iter().map(|day| {
        let racks = 0..day.matching.racks();
        let to = racks.map(|rack| day.matching.destination(RackId(rack as u16)).map_or(-1, |to| i64::from(to.0)));
        (day.night.as_ps(), day.day.as_ps(), PyArray1::from_iter(py, to))
    });
    PyList::new(py, days.collect::<Vec<_>>())
}
