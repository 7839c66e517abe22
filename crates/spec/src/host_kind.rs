//! The kinds of hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose TCP a host runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostKind {
    /// The endpoint model.
    #[default]
    Simulated,
    /// A Linux kernel's own, in virtual time, with real programs.
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
