//! File formats of other programs. In: networks, flow lists, connection and demand matrices, flow-size distributions
//! and schedules of message-passing applications, which it also generates. Out: packet captures.
//!
//! The formats are those that their programs read, as their documentation and published files show them. A wrong line
//! is an [`ImportError`] with file, line and column that says what would be right. A file that asks for something that
//! is not modelled is an error too.

pub mod applications;
pub mod capture;
pub mod cdf;
pub mod connections;
pub mod flows;
pub mod goal;
pub mod matrix;
mod nearest;
mod reader;
pub mod sizes;
pub mod topology;

pub use nearest::nearest;

use firstlight_net::HostId;
use firstlight_units::{Bytes, Span};

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct ImportError {
    /// Name of the file.
    pub file: String,
    /// Line in the file, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// What is wrong, and what would be right.
    pub problem: String,
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
    /// Start of the flow.
    pub start: Span,
    /// Traffic class of the flow, if the list gives one.
    pub class: Option<u8>,
    /// Line and column of the flow's start in the list, for errors.
    pub place: (usize, usize),
}
