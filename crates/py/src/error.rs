//! The one place where errors become Python exceptions.

use firstlight_lab::LabError;
use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(firstlight._core, SpecError, PyException, "The experiment is wrong: one line for each problem.");
create_exception!(firstlight._core, RunError, PyException, "A sound experiment did not come to a result.");

pub(crate) fn to_python(error: LabError) -> PyErr {
    let text = error.to_string();
    match error {
        LabError::Spec(_)
        | LabError::Build { .. }
        | LabError::NoCaptureFile
        | LabError::Timeline(_)
        | LabError::LinuxHosts
        | LabError::NoLinuxHosts => SpecError::new_err(text),
        LabError::Conservation(_)
        | LabError::Controller { .. }
        | LabError::Capture { .. }
        | LabError::TimelineFile(_)
        | LabError::Cancelled => RunError::new_err(text),
    }
}
