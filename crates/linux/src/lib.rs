//! Real Linux hosts at a fabric's edge.
//!
//! [`Plan`] says what a kernel's hosts are to do; the guest program carries it out inside that kernel and tells the
//! engine what happens by [`Message`]s. [`Driver`] brings that kernel's packets to a world and back: [`wire`] reads
//! their headers. [`TcpInfo`] is what a connection's end tells of itself.

mod driver;
mod message;
mod metric;
mod plan;
mod tcp_info;
pub mod wire;

pub use driver::{CE, Cookie, Device, Driver, ECE, Frames, Kernel};
pub use message::{Malformed, Message, Moment};
pub use metric::Metric;
pub use plan::{FlowPlan, HostPlan, MessagePlan, Parameter, Plan, ProgramPlan, Sysctl};
pub use tcp_info::TcpInfo;
