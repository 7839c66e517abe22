//! Watching a run from Python: progress, and Ctrl-C.

use firstlight_lab::Done;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::time::Duration;

/// The wall clock. It decides how often Python is called, and measures the computation of a schedule. No result depends
/// on it.
#[expect(clippy::disallowed_types, reason = "paces calls into Python; the run knows nothing of it")]
pub(crate) type WallClock = std::time::Instant;

/// Between two calls into Python.
const PACE: Duration = Duration::from_millis(50);

/// Calls the user's function and looks for signals, at most every [`PACE`].
pub(crate) struct Watch {
    progress: Option<Py<PyAny>>,
    last: WallClock,
    /// The Python exception that stopped the run.
    pub raised: Option<PyErr>,
}

impl Watch {
    pub fn new(progress: Option<Py<PyAny>>) -> Self {
        Watch { progress, last: WallClock::now(), raised: None }
    }

    /// The run has come so far.
    pub fn on_slice(&mut self, done: Done) -> ControlFlow<()> {
        if self.last.elapsed() < PACE && done.part < 1.0 {
            return ControlFlow::Continue(());
        }
        self.last = WallClock::now();
        let asked = Python::attach(|py| {
            py.check_signals()?;
            self.progress
                .as_ref()
                .map(|progress| progress.call1(py, (done.part, done.packet_hops)))
                .transpose()
                .map(drop)
        });
        match asked {
            Ok(()) => ControlFlow::Continue(()),
            Err(raised) => {
                self.raised = Some(raised);
                ControlFlow::Break(())
            }
        }
    }
}
