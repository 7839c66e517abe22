//! The result of a run: its tables, and a manifest that has the experiment and the evidence that the result is valid.

mod describe;
mod manifest;

pub use describe::describe;

use crate::build::Timeline;
use crate::error::LabError;
use crate::measure;
use crate::run::{Counters, Files, Progress, simulate};
use crate::table::Table;
use firstlight_spec::{Overrides, Spec};
pub(crate) use manifest::{columns, overrides_json};

use manifest::manifest;
use serde_json::Value as Json;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The experiment, and the evidence that the result is valid.
    pub manifest: Json,
    /// The tables of measurements.
    pub tables: Vec<Table>,
}

impl Outcome {
    /// The result that a run's counters give.
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

/// Runs a checked experiment to its result. `overrides` are those with which it was read; the manifest names them.
///
/// # Errors
/// As [`simulate`].
pub fn run(
    spec: &Spec,
    overrides: &Overrides,
    files: &Files<'_>,
    progress: &mut Progress<'_>,
) -> Result<Outcome, LabError> {
    let (counters, timeline) = simulate(spec, files, progress)?;
    if let Some(timeline) = timeline {
        finish_timeline(timeline, spec, &counters)?;
    }
    Ok(Outcome::of(spec, overrides, &counters))
}

/// Completes the timeline of a run by the data that are known only after the run. The world has returned the timeline.
///
/// # Errors
/// When a write fails.
pub fn finish_timeline(timeline: Timeline, spec: &Spec, counters: &Counters) -> Result<(), LabError> {
    measure::critical_paths(spec, counters, |flow, steps| timeline.add_path(flow, steps));
    if let (Some(hosts), Some(linux)) = (&spec.linux, &counters.linux) {
        for sample in &linux.samples {
            timeline.add_sample(&counters.flows, sample.flow as usize, &sample.info, sample.at);
        }
        for (program, ended) in hosts.programs.iter().zip(&linux.ended) {
            timeline.add_program(spec, program, ended.map(|ended| (ended.at, ended.code)), counters.end);
        }
    }
    timeline.finish(spec, counters.end, &counters.flows, &counters.messages)
}
