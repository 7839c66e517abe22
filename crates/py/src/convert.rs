//! Values from Python, and results to it.

use firstlight_lab::{Column, Field, Outcome, Table};
use firstlight_spec::OverrideValue;
use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::borrow::Cow;

/// How deeply lists and tables may be nested. A list can have itself as an element.
const DEEPEST: usize = 100;

/// A dictionary of overrides, in its own order.
pub(crate) fn overrides(dict: &Bound<'_, PyDict>) -> PyResult<Vec<(String, OverrideValue)>> {
    table_of(dict, "", 0)
}

/// The entries of a table that is the value, or in the value, of the key `within`.
fn table_of(dict: &Bound<'_, PyDict>, within: &str, depth: usize) -> PyResult<Vec<(String, OverrideValue)>> {
    dict.iter()
        .map(|(key, value)| {
            let no_text = |_| PyTypeError::new_err(format!("override {within}: the key {key} is not a text"));
            let key: String = key.extract().map_err(no_text)?;
            let value = override_value(&key, &value, depth)?;
            Ok((key, value))
        })
        .collect()
}

fn override_value(key: &str, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<OverrideValue> {
    if depth > DEEPEST {
        return Err(PyTypeError::new_err(format!("override {key}: it is nested more than {DEEPEST} times")));
    }
    // A bool is an int in Python, so it comes first.
    if value.is_none() {
        Ok(OverrideValue::Remove)
    } else if value.is_instance_of::<PyBool>() {
        value.extract().map(OverrideValue::Flag)
    } else if value.is_instance_of::<PyInt>() {
        let whole = value.extract().map(OverrideValue::Integer);
        whole.map_err(|_| PyTypeError::new_err(format!("override {key}: the number {value} is too large")))
    } else if value.is_instance_of::<PyFloat>() {
        value.extract().map(OverrideValue::Float)
    } else if value.is_instance_of::<PyString>() {
        let text = value.extract().map(OverrideValue::Text);
        text.map_err(|_| PyTypeError::new_err(format!("override {key}: the text is not Unicode")))
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| override_value(key, &item?, depth + 1));
        items.collect::<PyResult<_>>().map(OverrideValue::List)
    } else if let Ok(dict) = value.cast::<PyDict>() {
        table_of(dict, key, depth + 1).map(OverrideValue::Table)
    } else if let Ok(plain) = value.call_method0("tolist") {
        // A number or an array of numpy.
        override_value(key, &plain, depth + 1)
    } else {
        let found = value.get_type().name()?;
        Err(PyTypeError::new_err(format!(
            "override {key}: expected str, int, float, bool, list or dict, found {found}"
        )))
    }
}

/// `{"manifest": JSON text, "tables": {name: {column: array, list of str, or (list of str, array of their numbers)}}}`.
pub(crate) fn outcome(py: Python<'_>, outcome: Outcome) -> PyResult<Bound<'_, PyDict>> {
    let tables = PyDict::new(py);
    for one in outcome.tables {
        tables.set_item(one.name, table(py, one)?)?;
    }
    let result = PyDict::new(py);
    result.set_item("manifest", outcome.manifest.to_string())?;
    result.set_item("tables", tables)?;
    Ok(result)
}

fn table(py: Python<'_>, table: Table) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    for Field { name, values, .. } in table.fields {
        match values {
            Column::Text(values) => columns.set_item(name, texts(py, &values)?)?,
            Column::Named(values) => {
                let codes = PyArray1::from_vec(py, values.codes);
                columns.set_item(name, (texts(py, &values.names)?, codes))?;
            }
            Column::Integer(values) => columns.set_item(name, PyArray1::from_vec(py, values))?,
            Column::Number(values) => columns.set_item(name, PyArray1::from_vec(py, values))?,
            Column::Flag(values) => columns.set_item(name, PyArray1::from_vec(py, values))?,
        }
    }
    Ok(columns)
}

/// Texts. Those that follow each other and are one text in memory become one object.
fn texts<'py>(py: Python<'py>, values: &[Cow<'static, str>]) -> PyResult<Bound<'py, PyList>> {
    let mut last: Option<(&str, Bound<'py, PyString>)> = None;
    let all = values.iter().map(|value| match &last {
        Some((before, object)) if std::ptr::eq(*before, value.as_ref()) => object.clone(),
        _ => last.insert((value, PyString::new(py, value))).1.clone(),
    });
    PyList::new(py, all)
}
