//! The guest program's settings, beside the plan, where hosts run in dilated time on the machine's own kernel.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The file's name in the run's directory. Without it the guest program has a kernel of its own.
pub const DILATION: &str = "dilation.json";

/// Hosts that share the machine's kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dilation {
    /// Processors that the hosts run on.
    pub processors: Vec<usize>,
    /// Variables of the programs' environment, beside the usual ones.
    pub environment: Vec<(String, String)>,
    /// The hosts, in the plan's order.
    pub hosts: Vec<DilatedHost>,
}

/// A host that shares the machine's kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DilatedHost {
    /// Bytes of IP packets that its link takes in a second of the machine's time.
    pub rate: u64,
    /// The file to which a process writes its number to join the host's control group; none without control groups.
    pub group: Option<PathBuf>,
}
