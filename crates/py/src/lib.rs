//! Python bindings: `firstlight._core`. Nothing but translation of arguments, results and errors.

mod chain;
mod circuits;
mod convert;
mod error;
mod goal;
mod progress;

use firstlight_lab::spec::{OverrideValue, Spec, keys_json, reference};
use firstlight_lab::{inspect as lab_inspect, plan, run as lab_run};
use progress::Watch;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

type Overrides = Vec<(String, OverrideValue)>;

fn read(text: &str, path: &str, overrides: &Overrides, allow_sweep: bool) -> PyResult<Spec> {
    Spec::read_with(text, path, overrides, allow_sweep).map_err(|problem| error::to_python(problem.into()))
}

/// The version, with the commit it was built from when known.
#[pyfunction]
fn version() -> String {
    firstlight_version::version()
}

/// The keys of an experiment as JSON.
#[pyfunction]
fn keys() -> String {
    keys_json().to_string()
}

/// The reference of keys as Markdown.
#[pyfunction(name = "reference")]
fn reference_text() -> String {
    reference()
}

/// Checks an experiment without building it.
#[pyfunction]
#[pyo3(signature = (text, path, overrides, *, allow_sweep = false))]
fn check(text: &str, path: &str, overrides: &Bound<'_, PyDict>, allow_sweep: bool) -> PyResult<String> {
    let spec = read(text, path, &convert::overrides(overrides)?, allow_sweep)?;
    let sweep: serde_json::Map<_, _> =
        spec.sweep.iter().map(|(key, values)| (key.clone(), values.clone().into())).collect();
    Ok(serde_json::json!({"name": spec.name, "sweep": sweep}).to_string())
}

/// What an experiment would build, as JSON.
#[pyfunction]
#[pyo3(signature = (text, path, overrides, *, allow_sweep = false))]
fn inspect(text: &str, path: &str, overrides: &Bound<'_, PyDict>, allow_sweep: bool) -> PyResult<String> {
    let spec = read(text, path, &convert::overrides(overrides)?, allow_sweep)?;
    Ok(lab_inspect(&spec).to_string())
}

/// What an experiment's Linux hosts are to do, as JSON for the program inside their kernel.
#[pyfunction]
#[pyo3(signature = (text, path, overrides, *, allow_sweep = false))]
fn linux_plan(text: &str, path: &str, overrides: &Bound<'_, PyDict>, allow_sweep: bool) -> PyResult<String> {
    let spec = read(text, path, &convert::overrides(overrides)?, allow_sweep)?;
    let plan = plan(&spec).map_err(error::to_python)?;
    Ok(serde_json::to_string(&plan).expect("a plan is JSON"))
}

/// Runs an experiment.
#[pyfunction]
#[pyo3(signature = (text, path, overrides, progress = None, capture = None, *, allow_sweep = false))]
fn run<'py>(
    py: Python<'py>,
    text: &str,
    path: &str,
    overrides: &Bound<'py, PyDict>,
    progress: Option<Py<PyAny>>,
    capture: Option<PathBuf>,
    allow_sweep: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let overrides = convert::overrides(overrides)?;
    let spec = read(text, path, &overrides, allow_sweep)?;
    let mut watch = Watch::new(progress);
    let result = py.detach(|| lab_run(&spec, &overrides, capture.as_deref(), &mut |done| watch.on_slice(done)));
    if let Some(raised) = watch.raised {
        return Err(raised);
    }
    convert::outcome(py, result.map_err(error::to_python)?)
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::chain::{chain_stages, measurement_chain};
    #[pymodule_export]
    use super::circuits::{bytes_of, schedule, schedulers};
    #[pymodule_export]
    use super::error::{RunError, SpecError};
    #[pymodule_export]
    use super::goal::{goal, goal_names};
    #[pymodule_export]
    use super::{check, inspect, keys, linux_plan, reference_text, run, version};
}
