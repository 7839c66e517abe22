//! The kinds of hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of an experiment's hosts, by the TCP that they run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DefaultHosts {
    /// The endpoint model.
    #[default]
    Simulated,
    /// A Linux kernel's own, in virtual time, with real programs.
    Linux,
    /// This machine's kernel, in real time, with real programs. `time_scale` is the time dilation factor.
    Dilated,
}

impl DefaultHosts {
    /// The kind of the hosts of a flow that names none.
    pub const fn kind(self) -> HostKind {
        match self {
            DefaultHosts::Simulated => HostKind::Simulated,
            DefaultHosts::Linux | DefaultHosts::Dilated => HostKind::Linux,
        }
    }

    /// The name by which users know it.
    pub const fn name(self) -> &'static str {
        match self {
            DefaultHosts::Simulated => "simulated",
            DefaultHosts::Linux => "linux",
            DefaultHosts::Dilated => "dilated",
        }
    }
}

/// The kind of a host, by the TCP that it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostKind {
    /// The endpoint model.
    #[default]
    Simulated,
    /// A Linux kernel's own, with real programs.
    Linux,
}

impl HostKind {
    /// The name by which users know it.
    pub const fn name(self) -> &'static str {
        match self {
            HostKind::Simulated => "simulated",
            HostKind::Linux => "linux",
        }
    }
}
