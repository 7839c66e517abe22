//! File formats of other programs. In: networks, flow lists, connection and demand matrices, flow-size distributions
//! and schedules of message-passing applications. Out: packet captures.
//!
//! The formats are those that their programs read, as their documentation and published files show them. A wrong line is
//! an [`ImportError`] with file, line and column that says what would be right. A file that asks for something that is
//! not modelled is an error too.

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
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// What is wrong and what would be right.
    pub problem: String,
}

/// One flow of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFlow {
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// How much it sends; nothing for a flow that sends until the end.
    pub size: Option<Bytes>,
    /// When it starts.
    pub start: Span,
    /// Its traffic class, when the list gives one.
    pub class: Option<u8>,
    /// The line and column of its start, for later errors.
    pub place: (usize, usize),
}
