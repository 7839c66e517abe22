//! Generated schedules of message passing: `firstlight_formats::applications`.

use crate::error::SpecError;
use firstlight_formats::applications::{ApplicationParameters, BENCHMARKS, CLASSES, PATTERNS, RequestPart, generate};
use pyo3::prelude::*;

/// Names of the benchmarks, of their problem classes, and of the patterns.
#[pyfunction]
pub(crate) fn goal_names() -> (Vec<&'static str>, Vec<&'static str>, Vec<&'static str>) {
    (BENCHMARKS.to_vec(), CLASSES.to_vec(), PATTERNS.to_vec())
}

/// The schedule of an application as a file in GOAL's text form has it.
#[pyfunction]
pub(crate) fn goal(
    py: Python<'_>,
    name: &str,
    ranks: u32,
    size: Option<u64>,
    iterations: u32,
    compute_ns: u64,
) -> PyResult<String> {
    let parameters = ApplicationParameters { ranks, size, iterations, compute_ns };
    py.detach(|| generate(name, &parameters)).map_err(|wrong| {
        let option = match wrong.part {
            RequestPart::Name => "",
            RequestPart::Ranks => "--ranks: ",
            RequestPart::Size => "--size: ",
        };
        SpecError::new_err(format!("{option}{wrong}"))
    })
}
