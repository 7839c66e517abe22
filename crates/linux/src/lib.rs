//! Real Linux hosts at a fabric's edge.
//!
//! [`Plan`] says what a kernel's hosts are to do; the guest program carries it out inside that kernel and tells the
//! engine what happens by [`Message`]s.

mod message;
mod plan;

pub use message::{Malformed, Message, Moment};
pub use plan::{FlowPlan, HostPlan, Parameter, Plan, ProgramPlan, Sysctl};
