//! Where a run can be watched over time: connections, queues, pauses and the circuit schedule.

use crate::causes::{LossPlace, PathChange};
use firstlight_net::Packet;
use firstlight_transport::Standing;
use firstlight_units::{Bytes, Time};

/// Sees what changes over time. Times are on the engine's clock. A sink cannot change the run.
pub trait TimelineSink: Send {
    /// The sender of a flow has sent all that it may, and stands so.
    fn sender(&mut self, flow: usize, standing: &Standing, at: Time);

    /// All of a flow is acknowledged, and its connection is closed.
    fn closed(&mut self, flow: usize, at: Time);

    /// A packet has passed the link behind a queue, which holds this number of bytes now.
    fn queue(&mut self, place: LossPlace, packet: &Packet, bytes: Bytes, at: Time);

    /// A packet was lost.
    fn loss(&mut self, place: LossPlace, packet: &Packet, at: Time);

    /// The schedule changes a pair of racks.
    fn path(&mut self, change: &PathChange);

    /// A class of a transmitter, by its number among pause points, stops or goes on.
    fn pause(&mut self, transmitter: usize, priority: usize, paused: bool, at: Time);
}
