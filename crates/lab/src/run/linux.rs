//! What a run's Linux hosts told besides what the network counted.

use firstlight_linux::{Frames, TcpInfo};
use firstlight_units::Time;

/// What Linux hosts told.
#[derive(Clone, Debug, Default)]
pub struct LinuxCounters {
    /// What became of their frames.
    pub frames: Frames,
    /// The flows' states over time, when they were asked for.
    pub samples: Vec<Sample>,
    /// How each program of the experiment ended; none for one that ran until the end.
    pub ended: Vec<Option<Ended>>,
}

/// The state of a flow's sender at some moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When, on the hosts' clock.
    pub at: Time,
    /// The flow's number.
    pub flow: u32,
    /// What its sender told.
    pub info: TcpInfo,
}

/// The end of a program.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// When, on the hosts' clock.
    pub at: Time,
    /// Its exit code; 128 and the signal's number for one that a signal ended.
    pub code: i32,
}
