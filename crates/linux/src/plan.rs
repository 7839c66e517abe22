//! What the hosts of a kernel are to do: written beside the experiment before the run, read by the guest program.
//!
//! All times are nanoseconds of the hosts' own clock (the fabric's, times `time_scale`) since the start of the run.

use firstlight_messages::{MessageConfig, MessageEngine, Messages};
use firstlight_units::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// The whole plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of the program that wrote it; the guest refuses another.
    pub version: String,
    /// The hosts that have a kernel's stack. Device `fl0` is the first one's, `fl1` the second's and so on.
    pub hosts: Vec<HostPlan>,
    /// Kernel modules to load before anything else, as names of files in the kernel's folder of modules.
    pub modules: Vec<String>,
    /// Parameters of these modules, and of the kernel's own parts, which take them from its command line.
    pub parameters: Vec<Parameter>,
    /// Connections.
    pub flows: Vec<FlowPlan>,
    /// What flows send, for those whose data are messages: each comes after none but earlier ones.
    pub messages: Vec<MessagePlan>,
    /// Programs.
    pub programs: Vec<ProgramPlan>,
    /// When measuring begins: every flow's state is reported then.
    pub warmup: u64,
    /// When the run ends, at the latest.
    pub duration: u64,
    /// Whether it ends when all flows and messages are complete and all programs that are no servers have ended, if that is earlier.
    pub ends_early: bool,
    /// How often every flow's state is sampled.
    pub tcp_info: Option<u64>,
    /// How often what all receivers have is told, from the end of the warm-up on, in picoseconds.
    pub throughput_ps: Option<u64>,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostPlan {
    /// Its number in the experiment.
    pub host: u16,
    /// Its names: `host17`, `rack1.host1`. The first one names its network namespace.
    pub names: Vec<String>,
    /// Its address; the network is 10.0.0.0/8.
    pub address: Ipv4Addr,
    /// Largest IP packet, in bytes.
    pub mtu: u16,
    /// Whether its stack hands over pieces of up to 64 KiB to be segmented; else packet by packet.
    pub bursts: bool,
    /// Attributes of the route to the others, as `ip route` takes them (`rto_min 2ms quickack 1`); may be empty.
    pub route: String,
    /// Set in this order.
    pub sysctls: Vec<Sysctl>,
}

/// A kernel setting of one network namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sysctl {
    /// `net.ipv4.tcp_ecn`.
    pub name: String,
    /// Its value as text.
    pub value: String,
}

/// A parameter under `/sys/module`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// `tcp_cubic`.
    pub module: String,
    /// `hystart`.
    pub name: String,
    /// Its value as text.
    pub value: String,
}

/// One connection, which carries data one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowPlan {
    /// Its number in the experiment.
    pub flow: u32,
    /// Index in [`Plan::hosts`] of the host that connects and sends.
    pub from: usize,
    /// Index in [`Plan::hosts`] of the host that listens and receives.
    pub to: usize,
    /// The sender's TCP port.
    pub from_port: u16,
    /// The receiver's.
    pub to_port: u16,
    /// Congestion control of both ends, by the kernel's name.
    pub cc: String,
    /// Bytes to send; without it the flow sends until the end.
    pub size: Option<u64>,
    /// When to connect; `None` for a flow whose data are messages: with the first one of them.
    pub start: Option<u64>,
}

/// So many bytes that are written when others have come: see [`firstlight_messages::MessageConfig`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessagePlan {
    /// Index in [`Plan::flows`] of the flow that carries it; none for a computation.
    pub flow: Option<u32>,
    /// How much.
    pub bytes: u64,
    /// It is not ready before. In picoseconds, so that the engine, which keeps the same books, has the same order.
    pub start_ps: u64,
    /// From ready to due, in picoseconds.
    pub delay_ps: u64,
    /// Indices in [`Plan::messages`] of what it comes after.
    pub after: Vec<u32>,
}

impl Plan {
    /// The state machine of the plan's messages. It does not know their jobs.
    pub fn message_engine(&self) -> MessageEngine {
        let mut messages = Messages::default();
        for plan in &self.messages {
            let (start, delay) = (Span::from_ps(plan.start_ps), Span::from_ps(plan.delay_ps));
            let message = MessageConfig { flow: plan.flow, bytes: Bytes::new(plan.bytes), start, delay, job: 0 };
            messages.push(message, &plan.after);
        }
        MessageEngine::new(&messages, self.flows.len(), 1)
    }
}

/// One program on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramPlan {
    /// Unique: its output goes to `programs/<name>.out` and `programs/<name>.err` in the run's directory.
    pub name: String,
    /// Index in [`Plan::hosts`].
    pub on: usize,
    /// A command line for `/bin/sh`.
    pub command: String,
    /// When it starts.
    pub start: u64,
    /// It runs until the run's end and is ended then; the run does not wait for it.
    pub server: bool,
}
