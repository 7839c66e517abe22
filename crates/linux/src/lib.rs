//! The messages between the engine and the program inside a Linux kernel.
//!
//! [`Plan`] has the work of a kernel's hosts; the guest program carries it out inside that kernel and reports to the
//! engine by [`GuestMessage`]s, [`TcpInfo`] among them. [`Dilation`] adds what hosts in dilated time need. [`Frames`]
//! counts the packets that the hosts sent, [`Processors`] what their processors did. The crate does not know the
//! engine: the guest program links it too.

mod dilation;
mod failure;
mod frames;
mod guest_message;
mod metric;
mod plan;
mod processors;
mod tcp_info;

pub use dilation::{DILATION, DilatedHost, Dilation};
pub use failure::{Context, Failure};
pub use frames::Frames;
pub use guest_message::{GuestMessage, MalformedMessage, ReportTime};
pub use metric::Metric;
pub use plan::{
    FlowPlan, HostPlan, MessagePlan, NamePlan, Parameter, Plan, ProbePlan, ProgramPlan, ReadPlan, Sysctl, ipv4_of,
    ipv6_of,
};
pub use processors::Processors;
pub use tcp_info::TcpInfo;
