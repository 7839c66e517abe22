//! Quantities as users write them, and as an experiment's manifest has them.

use crate::error::SpecError;
use firstlight_units::{Bytes, Rate, Span, UnitError};
use pyo3::prelude::*;
use std::str::FromStr;

fn read<T: FromStr<Err = UnitError>>(text: &str) -> PyResult<T> {
    text.parse().map_err(|problem: UnitError| SpecError::new_err(problem.to_string()))
}

/// An amount of data in bytes.
#[pyfunction]
pub(crate) fn bytes_of(text: &str) -> PyResult<u64> {
    read(text).map(Bytes::get)
}

/// A rate in bits per second.
#[pyfunction]
pub(crate) fn bps_of(text: &str) -> PyResult<u64> {
    read(text).map(Rate::as_bps)
}

/// A time in picoseconds.
#[pyfunction]
pub(crate) fn ps_of(text: &str) -> PyResult<u64> {
    read(text).map(Span::as_ps)
}
