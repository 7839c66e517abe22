//! Dependent messages: bytes that an application writes to its connections once other messages are complete.
//!
//! [`Messages`] is the graph of an application's messages, [`MessageEngine`] the state machine that follows it. The
//! world of simulated hosts and the guest program of Linux hosts each run one over the same graph.

mod engine;
mod list;

pub use engine::{JobReport, MessageEngine, MessageReport};
pub use list::{MessageConfig, MessageError, Messages};
