//! An experiment, from its file to its tables.
//!
//! Data go one way: `spec` reads and checks, [`build()`] makes the world, [`simulate`] runs it and counts, `diagnose`
//! says what is odd, `measure` turns counts into tables, and [`Outcome`] holds the result. A module uses only modules
//! before it in this list: `tests/layers.rs` checks that.

mod error;
mod quantile;
mod table;

pub mod spec;

mod build;
pub mod chain;
mod diagnose;
mod inspect;
pub mod measure;
mod outcome;
mod run;

pub use build::{build, plan, start_capture};
pub use error::LabError;
pub use inspect::inspect;
pub use outcome::{Outcome, describe, run};
pub use run::{Counters, LinuxCounters, ProgramEnd, Progress, TcpInfoSample, simulate};
pub use spec::{Spec, SpecError};
pub use table::{Column, Field, Table};
