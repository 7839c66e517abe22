//! An experiment, from its file to its tables.
//!
//! Data go one way: `spec` reads and checks, [`build()`] makes the world, [`simulate`] runs it and counts, `diagnose`
//! warns of doubtful results, `measure` turns counts into tables, and [`Outcome`] holds the result. A module uses only
//! modules before it in this list: `tests/layers.rs` checks that.

mod error;
mod quantile;
mod table;

mod build;
pub mod chain;
mod diagnose;
pub mod fidelity;
mod inspect;
pub mod measure;
mod outcome;
mod run;

pub use build::{PathStep, Timeline, TimelineRequest, build, plan, start_capture};
pub use error::LabError;
pub use fidelity::{Fidelity, Lateness};
pub use firstlight_spec::{self as spec, Spec, SpecError};
pub use inspect::{inspect, inspect_request};
pub use outcome::{Outcome, describe, finish_timeline, run};
pub use run::{Counters, Done, Files, LinuxCounters, ProgramEnd, Progress, TcpInfoSample, simulate};
pub use table::{Column, Field, Named, Table};

use firstlight_spec::{Overrides, Request};

/// Runs a file's experiment and returns its result. The manifest names `overrides`, with which the file was read.
///
/// # Errors
/// As [`simulate`].
pub fn run_request(
    request: &Request,
    overrides: &Overrides,
    files: &Files<'_>,
    progress: &mut Progress<'_>,
) -> Result<Outcome, LabError> {
    match request {
        Request::Network(spec) => run(spec, overrides, files, progress),
        Request::Chain(_) if files.timeline.is_some() => {
            Err(LabError::Timeline("this experiment has no network: take the timeline out".into()))
        }
        Request::Chain(chain) => Ok(chain::run(chain, overrides)),
    }
}
