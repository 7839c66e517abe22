//! The plan of a kernel's hosts: written to the run's directory before the run, carried out by the guest program.
//!
//! All times are nanoseconds of the hosts' clock (the fabric's time multiplied by `time_scale`) since the start of the
//! run.

use firstlight_messages::{MessageConfig, MessageEngine, Messages};
use firstlight_units::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// The whole plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of the program that wrote the plan; the guest program refuses any other than its own.
    pub version: String,
    /// The hosts of this kernel, and after them their further links. The first one has the device `fl0`, the second
    /// `fl1`, and so on.
    pub hosts: Vec<HostPlan>,
    /// What `/etc/hosts` says: every host of the experiment, whether or not it is one of this kernel.
    pub names: Vec<NamePlan>,
    /// Whether hosts have IPv6 addresses too.
    pub ipv6: bool,
    /// Kernel modules to load first, as names of files in the folder `modules` of the run's directory.
    pub modules: Vec<String>,
    /// Memory of their kernel, in bytes; `None`: what the plan needs.
    pub memory: Option<u64>,
    /// Directories of the machine that programs write to themselves, by absolute paths.
    pub writable: Vec<PathBuf>,
    /// Parameters of these modules and of the kernel's built-in parts, which read them from its command line.
    pub parameters: Vec<Parameter>,
    /// All connections between the hosts.
    pub flows: Vec<FlowPlan>,
    /// Probes between the hosts.
    pub probes: Vec<ProbePlan>,
    /// Messages that flows carry. See [`firstlight_messages::Messages`].
    pub messages: Vec<MessagePlan>,
    /// All programs that run on the hosts.
    pub programs: Vec<ProgramPlan>,
    /// When the measurement begins: every flow's state is reported then.
    pub warmup: u64,
    /// When the run ends at the latest.
    pub duration: u64,
    /// Whether the run ends earlier, once all flows and messages are complete and all programs but servers have ended.
    pub ends_early: bool,
    /// Interval between samples of every sender's state; `None`: no samples.
    pub tcp_info: Option<u64>,
    /// Interval between reports of what all receivers have, from the end of the warm-up on, in picoseconds.
    pub throughput_ps: Option<u64>,
}

/// The network of the hosts' IPv6 addresses; the host's IPv4 address is the last four bytes.
const IPV6_NETWORK: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0);

/// The IPv6 address of the host with this IPv4 address: `fd00::a00:1` for 10.0.0.1.
pub fn ipv6_of(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(IPV6_NETWORK.to_bits() | u128::from(address.to_bits()))
}

/// The IPv4 address of the host with this IPv6 address; `None` for an address that hosts do not have.
pub fn ipv4_of(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits() ^ IPV6_NETWORK.to_bits();
    u32::try_from(bits).ok().map(Ipv4Addr::from_bits)
}

/// One host of the kernel, or a further link of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostPlan {
    /// Number of the host in the experiment.
    pub host: u16,
    /// Names of the host: `host17`, `rack1.host1`. The first one is also the name of its network namespace.
    pub names: Vec<String>,
    /// The host that this is a further link of, by its index in the plan, and the link's number among the host's.
    pub link_of: Option<(usize, u8)>,
    /// Address of the host in the network 10.0.0.0/8.
    pub address: Ipv4Addr,
    /// How many bits the addresses have in common that this link leads to. Further links have longer prefixes.
    pub prefix: u8,
    /// Largest IP packet, in bytes.
    pub mtu: u16,
    /// Whether the stack hands over pieces of up to 64 KiB that are segmented later; else it hands over single packets.
    pub bursts: bool,
    /// Attributes of the route to the other hosts, as `ip route` takes them (`rto_min 2ms quickack 1`); may be empty.
    pub route: String,
    /// Sysctls of the host, set in this order.
    pub sysctls: Vec<Sysctl>,
}

/// A host, or a further link of one, in `/etc/hosts`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamePlan {
    /// Address of the host or further link.
    pub address: Ipv4Addr,
    /// Names of the address: `host17`, `rack1.host1`.
    pub names: Vec<String>,
}

/// A sysctl of one network namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sysctl {
    /// Name of the sysctl: `net.ipv4.tcp_ecn`.
    pub name: String,
    /// The value as text.
    pub value: String,
}

/// A parameter under `/sys/module`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Name of the module: `tcp_cubic`.
    pub module: String,
    /// Name of the parameter: `hystart`.
    pub name: String,
    /// The value as text.
    pub value: String,
}

/// One flow: a connection that carries data one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowPlan {
    /// Number of the flow in the experiment.
    pub flow: u32,
    /// Index in [`Plan::hosts`] of the host that connects and sends.
    pub from: usize,
    /// Index in [`Plan::hosts`] of the host that listens and receives.
    pub to: usize,
    /// TCP port of the sender.
    pub from_port: u16,
    /// TCP port of the receiver.
    pub to_port: u16,
    /// Congestion control of both ends, by its name in the kernel.
    pub cc: String,
    /// Traffic class of both ends' packets, 0 to 7: the upper three bits of their DSCP.
    pub class: u8,
    /// Bytes to send; `None` for a flow that sends until the end of the run.
    pub size: Option<u64>,
    /// When to connect; `None` for a flow of messages, which connects with the first one.
    pub start: Option<u64>,
    /// When a flow without size has nothing more to send; `None` for never.
    pub stop: Option<u64>,
    /// Whether part of a segment waits while one is in flight; else the sender's socket has TCP_NODELAY.
    pub nagle: bool,
    /// Whether the receiver's socket has TCP_QUICKACK off.
    pub interactive: bool,
    /// How fast the receiver reads; `None`: what has arrived, at once.
    pub reads: Option<ReadPlan>,
}

/// How fast a program reads: it works on what it has read before it reads again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadPlan {
    /// Bytes that one call takes at most.
    pub size: u64,
    /// The rate at which the program works, in bits per second.
    pub bps: u64,
}

/// One probe: datagrams of UDP at a constant rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbePlan {
    /// Index in [`Plan::hosts`] of the host that sends.
    pub from: usize,
    /// Index in [`Plan::hosts`] of the host that receives.
    pub to: usize,
    /// UDP port of the sender.
    pub from_port: u16,
    /// UDP port of the receiver.
    pub to_port: u16,
    /// Traffic class of the datagrams, 0 to 7: the upper three bits of their DSCP.
    pub class: u8,
    /// Payload of each datagram, in bytes.
    pub payload: u64,
    /// When the first datagram is due, in picoseconds.
    pub start_ps: u64,
    /// Time from one datagram to the next, in picoseconds.
    pub every_ps: u64,
    /// How many datagrams; `None` for a probe that sends until the end of the run.
    pub count: Option<u64>,
}

impl ProbePlan {
    /// When each datagram is due, in nanoseconds, rounded up.
    pub fn times(&self) -> impl Iterator<Item = u64> + use<> {
        let ProbePlan { start_ps, every_ps, count, .. } = *self;
        let time = move |nth: u64| Some(start_ps.checked_add(every_ps.checked_mul(nth)?)?.div_ceil(1000));
        (0..count.unwrap_or(u64::MAX)).map_while(time)
    }
}

/// One dependent message: see [`firstlight_messages::MessageConfig`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessagePlan {
    /// Index in [`Plan::flows`] of the flow that carries the message; `None` for a computation.
    pub flow: Option<u32>,
    /// Size of the message.
    pub bytes: u64,
    /// The message is not ready before this time, in picoseconds: in the engine's unit, so that both state machines
    /// order messages alike.
    pub start_ps: u64,
    /// Time from ready to due, in picoseconds.
    pub delay_ps: u64,
    /// Indices in [`Plan::messages`] of the messages that it depends on.
    pub after: Vec<u32>,
    /// How many of these are enough; `None` for all.
    pub enough: Option<u32>,
}

impl Plan {
    /// The state machine of the plan's messages. It does not know their jobs.
    pub fn message_engine(&self) -> MessageEngine {
        let mut messages = Messages::default();
        for plan in &self.messages {
            let (start, delay) = (Span::from_ps(plan.start_ps), Span::from_ps(plan.delay_ps));
            let (flow, bytes, enough) = (plan.flow, Bytes::new(plan.bytes), plan.enough);
            let message = MessageConfig { flow, bytes, start, delay, job: 0, enough };
            messages.push(message, &plan.after);
        }
        MessageEngine::new(&messages, self.flows.len(), 1)
    }
}

/// One program on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramPlan {
    /// Unique name. The output goes to `programs/<name>.out` and `programs/<name>.err` in the run's directory.
    pub name: String,
    /// Index in [`Plan::hosts`] of the host that runs the program.
    pub on: usize,
    /// Command line for `/bin/sh`.
    pub command: String,
    /// When the program starts.
    pub start: u64,
    /// Whether the program runs until the end of the run, which does not wait for it.
    pub server: bool,
    /// The user that the program runs as, by its name; `None`: root.
    pub user: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_due_at_the_next_whole_nanosecond() {
        let plan = |every_ps, count| {
            let (from_port, to_port, class, payload, start_ps) = (1024, 9, 0, 36, 1500);
            ProbePlan { from: 0, to: 1, from_port, to_port, class, payload, start_ps, every_ps, count }
        };
        assert!(plan(1_300_400, Some(3)).times().eq([2, 1302, 2603]));
        assert!(plan(u64::MAX / 2, None).times().eq([2, 9_223_372_036_854_778]), "up to the clock's last moment");
    }
}
