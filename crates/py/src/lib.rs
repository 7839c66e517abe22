//! Python bindings: `firstlight._core`. Nothing but translation of arguments, results and errors, and a look at the
//! machine itself (`processor`).

mod circuits;
mod convert;
mod error;
mod goal;
mod memory;
mod own;
mod processor;
mod progress;
mod quantities;

use error::SpecError;
use firstlight_lab::{Files, TimelineRequest, inspect_request, plan, run_request};
use firstlight_spec::{Discipline, KernelCode, OverrideValue, Request, Spec, read_input, schema};
use firstlight_units::Span;
use progress::Watch;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The version, with the commit it was built from when known.
#[pyfunction]
fn version() -> String {
    firstlight_version::version()
}

/// The JSON Schema of an experiment.
#[pyfunction(name = "schema")]
fn schema_text() -> String {
    format!("{:#}", schema())
}

/// The tables of queues that drop packets before a queue is full, each with the key that as `false` lets it drop only
/// packets that cannot be marked.
#[pyfunction]
fn dropping_tables() -> BTreeMap<&'static str, Option<&'static str>> {
    Discipline::dropping_tables().collect()
}

/// The content of a file that an experiment names: read once, until it changes.
#[pyfunction(name = "read_input")]
fn input(py: Python<'_>, file: PathBuf) -> PyResult<Bound<'_, PyBytes>> {
    Ok(PyBytes::new(py, &read_input(&file)?))
}

/// Kernel code of the user's: see [`KernelCode`].
type KernelCodeEntry = (String, String, String, Vec<String>);

/// An experiment that was read and checked: one reading serves inspection, identity and run.
#[pyclass(frozen, name = "Experiment")]
struct PyExperiment {
    request: Request,
    overrides: Vec<(String, OverrideValue)>,
}

impl PyExperiment {
    /// The experiment on a network, if it is one.
    fn network(&self) -> Option<&Spec> {
        match &self.request {
            Request::Network(spec) => Some(spec),
            Request::Chain(_) => None,
        }
    }
}

#[pymethods]
impl PyExperiment {
    /// Reads an experiment from the text of its file; `path` is for messages and for the files that it names.
    #[new]
    #[pyo3(signature = (text, path, overrides, *, allow_sweep = false, congestion_control = None))]
    fn read(
        text: &str,
        path: &str,
        overrides: &Bound<'_, PyDict>,
        allow_sweep: bool,
        congestion_control: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let overrides = convert::overrides(overrides)?;
        let own = congestion_control.map(own::controllers).transpose()?.unwrap_or_default();
        let request = Request::read_with(text, path, &overrides, allow_sweep, own);
        Ok(PyExperiment { request: request.map_err(|problem| error::to_python(problem.into()))?, overrides })
    }

    /// The name of the experiment.
    #[getter]
    fn name(&self) -> &str {
        self.request.name()
    }

    /// The experiment with all its defaults, as JSON.
    #[getter]
    fn resolved(&self) -> String {
        self.request.resolved().to_string()
    }

    /// The files that the experiment names: its name for each, and the path.
    #[getter]
    fn inputs(&self) -> BTreeMap<String, String> {
        self.network().map(|spec| spec.inputs.clone()).unwrap_or_default()
    }

    /// The user's own kernel code: of each module, then of each patch, the place of its key for messages, its name in
    /// the experiment, its path, and the files from which it is built.
    #[getter]
    fn kernel_code(&self) -> (Vec<KernelCodeEntry>, Vec<KernelCodeEntry>) {
        let entry =
            |code: &KernelCode| (code.place.clone(), code.name.clone(), code.path.clone(), code.sources.clone());
        let linux = self.network().and_then(|spec| spec.linux.as_ref());
        linux.map_or_else(Default::default, |linux| {
            (linux.own_modules.iter().map(entry).collect(), linux.patches.iter().map(entry).collect())
        })
    }

    /// The network and traffic that would be built, as JSON.
    fn inspect(&self) -> String {
        inspect_request(&self.request).to_string()
    }

    /// The plan of the experiment's Linux hosts, as JSON for the program inside their kernel.
    fn linux_plan(&self) -> PyResult<String> {
        let spec = self.network().ok_or_else(|| error::to_python(firstlight_lab::LabError::NoLinuxHosts))?;
        let plan = plan(spec).map_err(error::to_python)?;
        Ok(serde_json::to_string(&plan).expect("a plan is JSON"))
    }

    /// Runs the experiment.
    #[pyo3(signature = (progress = None, capture = None, timeline = None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
        capture: Option<PathBuf>,
        timeline: Option<TimelineArguments>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut watch = Watch::new(progress);
        let timeline = timeline.map(timeline_request).transpose()?;
        let files = Files { capture: capture.as_deref(), timeline: timeline.as_ref() };
        let on_slice = &mut |done| watch.on_slice(done);
        let result = py.detach(|| run_request(&self.request, &self.overrides, &files, on_slice));
        if let Some(raised) = watch.raised {
            return Err(raised);
        }
        convert::outcome(py, result.map_err(error::to_python)?)
    }
}

/// File, flows, start and end of a timeline.
type TimelineArguments = (PathBuf, Option<BTreeSet<u32>>, Option<String>, Option<String>);

fn timeline_request((path, flows, from, until): TimelineArguments) -> PyResult<TimelineRequest> {
    let span = |text: Option<String>| {
        let read =
            |text: String| text.parse::<Span>().map_err(|error| SpecError::new_err(format!("timeline: {error}")));
        text.map(read).transpose()
    };
    Ok(TimelineRequest { path, flows, from: span(from)?, until: span(until)? })
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::PyExperiment;
    #[pymodule_export]
    use super::circuits::{schedule, schedulers};
    #[pymodule_export]
    use super::error::{RunError, SpecError};
    #[pymodule_export]
    use super::goal::{goal, goal_names};
    #[pymodule_export]
    use super::own::{PyAck, PyWindow, check_controller};
    #[pymodule_export]
    use super::processor::{measure_messages, measure_processor};
    #[pymodule_export]
    use super::quantities::{bps_of, bytes_of, ps_of};
    #[pymodule_export]
    use super::{dropping_tables, input, schema_text, version};
}
