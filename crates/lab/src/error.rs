//! Errors between an experiment's file and its result.

use firstlight_formats::capture::CaptureError;
use firstlight_formats::perfetto::TimelineError;
use firstlight_spec::SpecError;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The experiment is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The engine refuses the experiment: reading lacks a check.
    #[error("{path}: {source}")]
    Build {
        /// Name of the experiment.
        path: String,
        /// The error of the engine.
        source: firstlight_sim::BuildError,
    },
    /// The experiment has Linux hosts, which this function cannot run.
    #[error("this experiment has Linux hosts, whose kernel runs the network: use `firstlight run`")]
    LinuxHosts,
    /// The experiment has no Linux hosts, so there is no plan for them.
    #[error("this experiment has no Linux hosts: set hosts.kind = \"linux\"")]
    NoLinuxHosts,
    /// Packets appeared or vanished: a defect of the engine that makes the result worthless.
    #[error(
        "the run does not conserve packets, so that its result is worthless; this is a defect, please report it: {0}"
    )]
    Conservation(String),
    /// The capture cannot be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The experiment has a capture, and no file is named for it.
    #[error("measure.capture is set, but this run has no capture file: name one, or set measure.capture to false")]
    NoCaptureFile,
    /// The timeline cannot be written.
    #[error(transparent)]
    TimelineFile(#[from] TimelineError),
    /// The experiment cannot have the timeline that the caller asks for.
    #[error("timeline: {0}")]
    Timeline(String),
    /// A user's own congestion control failed.
    #[error("the congestion control '{name}' failed: {fault}")]
    Controller {
        /// The controller's name in the experiment.
        name: &'static str,
        /// The controller's error, or the invalid state that it left.
        fault: String,
    },
    /// The caller cancelled the run.
    #[error("the run was cancelled")]
    Cancelled,
}
