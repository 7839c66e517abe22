//! File formats of other programs. In: networks, flow lists, connection and demand matrices, flow-size distributions
//! schedules of message-passing applications, which it also generates, and execution traces. Out: packet captures
//! and timelines.
//!
//! The formats are those that their programs read, as their documentation and published files show them. A wrong line
//! is an [`ImportError`] with file, line and column that says what would be right. A file that asks for something that
//! is not modelled is an error too.

pub mod applications;
pub mod capture;
pub mod cdf;
pub mod chakra;
pub mod connections;
pub mod flows;
pub mod goal;
pub mod matrix;
mod nearest;
pub mod perfetto;
pub mod placement;
mod reader;
pub mod sizes;
pub mod topology;
mod unfinished;

pub use nearest::nearest;

use firstlight_net::HostId;
use firstlight_units::{Bytes, Span};
use std::sync::Arc;

/// A problem of a file, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct ImportError {
    /// Name of the file.
    pub file: String,
    /// Line in the file, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// The problem, and what would be right.
    pub problem: String,
}

/// The trigger of a flow that has no start time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowTrigger {
    /// The flows that fire the trigger, by their index in the list, when they are complete. A flow that fires it twice
    /// is there twice.
    pub flows: Arc<[u32]>,
    /// How often the trigger must have been fired.
    pub enough: u32,
}

/// One flow of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFlow {
    /// Host that sends.
    pub src: HostId,
    /// Host that receives.
    pub dst: HostId,
    /// Bytes that the flow sends; `None` for a flow that sends until the end of the run.
    pub size: Option<Bytes>,
    /// Start of the flow; zero for one that waits for a trigger.
    pub start: Span,
    /// The trigger that the flow waits for.
    pub trigger: Option<FlowTrigger>,
    /// Traffic class of the flow, if the list gives one.
    pub class: Option<u8>,
    /// Line and column of the flow's start in the list, for errors.
    pub place: (usize, usize),
}
