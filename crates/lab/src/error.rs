//! What can go wrong between an experiment's file and its result.

use crate::spec::SpecError;
use firstlight_formats::capture::CaptureError;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The experiment is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The engine refuses what was read: a check that reading lacks.
    #[error("{path}: {source}")]
    Build {
        /// The experiment.
        path: String,
        /// What the engine says.
        source: firstlight_sim::ConfigError,
    },
    /// The experiment has Linux hosts, and nobody who runs their kernel.
    #[error("this experiment has Linux hosts, whose kernel runs the network: use `firstlight run`")]
    LinuxHosts,
    /// The experiment has no Linux hosts, and a plan for them was asked for.
    #[error("this experiment has no Linux hosts: set hosts.kind = \"linux\"")]
    NoLinuxHosts,
    /// Packets appeared or vanished: a defect of the engine. The result would be worthless.
    #[error("the run does not conserve packets, so its result is worthless; this is a defect, please report it: {0}")]
    Conservation(String),
    /// The capture cannot be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A capture is asked for, and no file is named.
    #[error("measure.capture is set, but this run was given no file to write packets to: name one, or set it to false")]
    NoCaptureFile,
    /// Whoever watched the run stopped it.
    #[error("the run was cancelled")]
    Cancelled,
}
