//! The reports of a run's Linux hosts, beside the network's counters.

use crate::fidelity::Fidelity;
use firstlight_linux::{Frames, Processors, TcpInfo};
use firstlight_units::Time;
use std::collections::BTreeMap;

/// Reports of a run's Linux hosts.
#[derive(Clone, Debug, Default)]
pub struct LinuxCounters {
    /// The last report of each flow's sender, samples excepted.
    pub senders: BTreeMap<u32, TcpInfo>,
    /// The counts of the hosts' frames.
    pub frames: Frames,
    /// States of the flows over time, if `measure.tcp_info` is set.
    pub samples: Vec<TcpInfoSample>,
    /// How each program of the experiment ended; `None` for a program that ran until the end.
    pub ended: Vec<Option<ProgramEnd>>,
    /// The counters of each host's processors; none where hosts have no processors.
    pub processors: Vec<Processors>,
    /// How closely the run followed the clock, if hosts ran in dilated time.
    pub fidelity: Option<Fidelity>,
}

/// The state of a flow's sender at one time.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfoSample {
    /// Time of the sample on the hosts' clock.
    pub at: Time,
    /// Number of the flow.
    pub flow: u32,
    /// The sender's state.
    pub info: TcpInfo,
}

/// The end of a program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramEnd {
    /// Time of the end on the hosts' clock.
    pub at: Time,
    /// Exit code; 128 and the signal's number for a program that a signal ended.
    pub code: i32,
}
