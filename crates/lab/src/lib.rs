//! An experiment, from its file to its tables: text, [`Spec`], fabric and flows, run, [`Outcome`].
//!
//! One direction, no way back: [`spec`] reads and checks, [`build()`] makes the world, [`simulate`] runs it and counts,
//! [`measure`] turns counts into tables, [`manifest()`] says what was run and why it can be trusted.

mod build;
mod capture;
pub mod chain;
mod describe;
mod error;
mod inspect;
mod linux;
mod manifest;
pub mod measure;
mod plan;
mod run;
pub mod spec;
mod table;
mod thresholds;
mod warnings;

pub use build::build;
pub use capture::start_capture;
pub use describe::describe;
pub use error::LabError;
pub use inspect::inspect;
pub use linux::{Ended, LinuxCounters, Sample};
pub use manifest::manifest;
pub use plan::plan;
pub use run::{Counters, Progress, simulate};
pub use spec::{Spec, SpecError};
pub use table::{Column, Field, Table};

use serde_json::Value as Json;
use spec::Overrides;
use std::path::Path;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was run, and the evidence that it is sound.
    pub manifest: Json,
    /// What was measured.
    pub tables: Vec<Table>,
}

impl Outcome {
    /// What the counts of a run say.
    pub fn of(spec: &Spec, overrides: &Overrides, counters: &Counters) -> Self {
        let tables = measure::tables(spec, counters);
        Outcome { manifest: manifest(spec, overrides, counters, &tables), tables }
    }

    /// The table of that name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// The value of a metric of the summary.
    pub fn metric(&self, name: &str) -> Option<f64> {
        measure::metric(self.table(measure::SUMMARY)?, name)
    }
}

/// Runs a checked experiment to its result. `overrides` are those it was read with, for the manifest.
///
/// # Errors
/// As [`simulate`].
pub fn run(
    spec: &Spec,
    overrides: &Overrides,
    capture: Option<&Path>,
    progress: &mut Progress<'_>,
) -> Result<Outcome, LabError> {
    Ok(Outcome::of(spec, overrides, &simulate(spec, capture, progress)?))
}
