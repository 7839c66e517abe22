//! DX's experiment on its measurement chain: `firstlight_lab::chain`.

use crate::error::SpecError;
use firstlight_lab::chain::{MeasurementChain, measurement_chain as run, stages};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Names of the chain's stages, from the kernel's stamps to all that is done.
#[pyfunction]
pub(crate) fn chain_stages() -> Vec<&'static str> {
    stages().map(|(name, _)| name).to_vec()
}

/// What the stamps of one stage say on the paper's testbed: arrays in nanoseconds, and the part of the time the link was
/// busy.
#[pyfunction]
pub(crate) fn measurement_chain<'py>(
    py: Python<'py>,
    stage: &str,
    packets: u64,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let found = stages().into_iter().find(|(name, _)| *name == stage);
    let (_, chain) = found.ok_or_else(|| {
        SpecError::new_err(format!("stage '{stage}': there is none; there are '{}'", chain_stages().join("', '")))
    })?;
    let report = py.detach(|| run(&MeasurementChain::back_to_back(chain), packets, seed));
    let result = PyDict::new(py);
    result.set_item("rtt_ns", PyArray1::from_vec(py, report.rtt_ns))?;
    result.set_item("one_way_ns", PyArray1::from_vec(py, report.one_way_ns))?;
    result.set_item("tx_gaps_ns", PyArray1::from_vec(py, report.tx_gaps_ns))?;
    result.set_item("rx_gaps_ns", PyArray1::from_vec(py, report.rx_gaps_ns))?;
    result.set_item("busy", report.busy)?;
    Ok(result)
}
