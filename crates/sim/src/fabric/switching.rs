//! The interfaces of a kind of fabric: to the event loop, for each event, and to the driver that steps the fabric.

use super::core::Core;
use super::notifications::CongestionPoints;
use super::racks::Racks;
use super::reports::PacketSums;
use crate::causes::Place;
use crate::config::{BuildError, WatchConfig};
use crate::conserve::Violations;
use crate::events::PendingEvent;
use crate::report::{PauseReport, PortKind, PortReport, QueueReport};
use firstlight_units::Time;

/// How a fabric carries out events. [`Core::run`] calls it without dynamic dispatch.
pub(super) trait Switching {
    /// Carries out one event.
    fn on_event(&mut self, core: &mut Core, event: PendingEvent);

    /// Asks for the memory that a coming event needs, and for more if the event comes `next`.
    #[inline]
    fn prefetch(&self, _core: &Core, _event: PendingEvent, _next: bool) {}

    /// The report of pauses; none where links cannot be paused.
    fn pause_report(&self, _core: &Core) -> Option<PauseReport> {
        None
    }

    /// Names of all pause points, and whether a pause is of all classes; nothing where links cannot be paused.
    fn pause_points(&self) -> (Vec<String>, bool) {
        (vec![], false)
    }
}

/// A fabric of some kind, behind one dynamic call for each run up to a moment and for each report.
pub(super) trait FabricKind: Send {
    /// Carries out the events that are due: see [`Core::run`].
    fn run(&mut self, core: &mut Core, limit: Time, to_exit: bool);

    /// Counts of all ports, links and queues behind the hosts' interfaces.
    fn port_reports(&self, now: Time) -> Vec<PortReport>;

    /// The places that packets pass behind the hosts' interfaces.
    fn places(&self, core: &Core) -> Vec<Place>;

    /// Names of all pause points, and whether a pause is of all classes.
    fn points(&self) -> (Vec<String>, bool);

    /// The kind of port that leads to hosts.
    fn last_hop(&self) -> PortKind;

    /// Checks that packets which come to switches leave them.
    fn check_switches(&self, sums: &PacketSums<'_>, violations: &mut Violations);

    /// QCN's congestion points.
    fn congestion_points(&self) -> &CongestionPoints;

    /// The report of pauses; none where links cannot be paused.
    fn pauses(&self, core: &Core) -> Option<PauseReport>;

    /// Watches queues from now on.
    fn watch(&mut self, core: &mut Core, config: &WatchConfig) -> Result<(), BuildError>;

    /// The reports of the watched queues.
    fn queue_reports(&self, now: Time, scale: u32) -> Vec<QueueReport>;

    /// Discards all measurements so far.
    fn reset_measurements(&mut self, now: Time);

    /// Racks, their VOQs and their schedule; none without circuits.
    fn racks(&self) -> Option<&Racks> {
        None
    }

    /// Racks, their VOQs and their schedule; none without circuits.
    fn racks_mut(&mut self) -> Option<&mut Racks> {
        None
    }
}
