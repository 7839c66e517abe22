//! `[linux]`: settings of Linux hosts.

use super::CpuTable;
use crate::host_name::HostName;
use crate::settings::{KernelVersion, RouteAttributes, SysctlText};
use firstlight_transport::cc::CcName;
use firstlight_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of all Linux hosts. Keys that are given under `[tcp]` and in the controllers' tables are set before them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinuxTable {
    /// Version of their kernel: `6.12` is any 6.12, `6.12.117` this one. `firstlight kernel list` shows what is built.
    #[schemars(extend("x-without" = "the newest that is built"))]
    pub version: Option<KernelVersion>,
    /// Settings of the kernel in each host's network namespace, set in this order.
    #[schemars(extend("x-type" = "a list of settings", "x-without" = "none"))]
    pub sysctls: Vec<SysctlText>,
    /// Attributes of the route to the other hosts, as `ip route` takes them.
    #[schemars(extend("x-without" = "none"))]
    pub route: Option<RouteAttributes>,
    /// Kernel modules of your own, loaded in this order before connections are made: a directory with a `Kbuild`, which
    /// is built for the kernel, or a built `.ko`. A congestion control that a module registers is a `tcp.cc`.
    #[schemars(extend("x-type" = "a list of paths", "examples" = [["./my_cc"]], "x-without" = "none"))]
    pub modules: Vec<String>,
    /// Patches for the kernel, applied in this order (`patch -p1`). They make it another one, which
    /// `firstlight kernel build EXPERIMENT` builds.
    #[schemars(extend("x-type" = "a list of paths", "examples" = [["a.patch"]], "x-without" = "none"))]
    pub patches: Vec<String>,
    /// Hosts have IPv6 addresses too, `fd00::a00:1` beside 10.0.0.1, for programs; flows keep IPv4.
    pub ipv6: bool,
    /// Memory of the hosts' kernel, of which the machine gives what they use. Half of it must be free in `/dev/shm`.
    #[schemars(extend("x-least" = "256MB", "x-most" = "1TB", "x-without" = "1 GiB, 1 MiB more for each host, 128 MiB \
        for each program and up to 4.25 MiB for each flow"))]
    pub memory: Option<Bytes>,
    /// Directories of the machine that programs really write to, relative to the experiment's file. They are made if
    /// missing. Files that programs write elsewhere are gone after the run.
    #[schemars(extend("x-type" = "a list of paths", "examples" = [["results/"]], "x-without" = "none"))]
    pub writable: Vec<String>,
    #[expect(missing_docs, reason = "the type of a table says what the table is")]
    pub cpu: CpuTable,
    #[expect(missing_docs, reason = "the type of a table says what the table is")]
    pub hosts: Vec<LinuxHostTable>,
}

/// Settings of some Linux hosts. A later entry is set after an earlier one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinuxHostTable {
    /// Which hosts: `host3`, `rack0.host3`, `rack0` (each of its hosts) or `all`.
    pub on: HostName,
    /// Settings as in `linux.sysctls`, set after those.
    #[serde(default)]
    #[schemars(extend("x-type" = "a list of settings", "x-without" = "none more"))]
    pub sysctls: Vec<SysctlText>,
    /// Attributes as in `linux.route`. An attribute replaces the same one there.
    #[schemars(extend("x-without" = "none more"))]
    pub route: Option<RouteAttributes>,
    /// Largest IP packet that these hosts send.
    #[schemars(extend("x-least" = "100B", "x-most" = "65535B", "x-without" = "`hosts.mtu`"))]
    pub mtu: Option<Bytes>,
    /// Congestion control of flows that these hosts send and that name none, and of programs' connections.
    #[schemars(extend("x-without" = "`tcp.cc`"))]
    pub cc: Option<CcName>,
}
