//! The link layer of a hybrid fabric, lossy or lossless, as a policy type: pauses cost nothing where links are lossy.

use super::core::Core;
use super::hybrid::HybridFabric;
use super::lossless::PausePoint;
use crate::config::HybridConfig;
use crate::events::EventKind;
use crate::report::PauseReport;
use firstlight_net::{Discipline, FifoPort, HostId, PacketId, PauseControl, Serializer, SwitchPort, Unpausable};
use firstlight_units::{Span, Time};

/// The policy; the defaults are those of links that lose packets.
pub(super) trait LinkLayer: Sized + Send {
    /// How transmitters of uplinks, downlinks and circuits deal with pauses.
    type Pausing: PauseControl + Send;
    /// The ToRs' ports to the hosts.
    type HostPort: SwitchPort + Send;

    /// The link layer of a new fabric, whose hosts' interfaces `core` has.
    fn new(config: &HybridConfig, core: &mut Core) -> Self;

    /// A port to a host, with this serialization and delay.
    fn host_port(serializer: Serializer, delay: Span) -> Self::HostPort;

    /// How many pause points there are.
    fn pause_points(_config: &HybridConfig) -> usize {
        0
    }

    /// Comes before each event.
    #[inline]
    fn before_event(_fabric: &mut HybridFabric<Self>, _core: &mut Core) {}

    /// Comes after each event of this kind.
    #[inline]
    fn after_event(_fabric: &mut HybridFabric<Self>, _core: &mut Core, _kind: EventKind) {}

    /// Carries out the events of a host's interface that are due.
    #[inline]
    fn on_nic(fabric: &mut HybridFabric<Self>, core: &mut Core, host: usize) {
        if let Some(id) = core.on_nic_arrival(host) {
            fabric.on_host_packet(core, id);
        }
    }

    /// Carries out the events of a ToR's port to a host that are due.
    #[inline]
    fn on_host_port(fabric: &mut HybridFabric<Self>, core: &mut Core, host: usize) {
        if let Some(id) = core.step(&mut fabric.host_ports[host], host) {
            core.exit(id, HostId(host as u16));
        }
    }

    /// Carries out the events of a host's adapter that are due.
    fn on_adapter(_fabric: &mut HybridFabric<Self>, core: &mut Core, host: usize) {
        core.on_adapter(host);
    }

    /// A pause frame takes effect.
    fn on_pause_effect(_fabric: &mut HybridFabric<Self>, _core: &mut Core, point: usize) {
        unreachable!("pause point {point} is on a link that cannot be paused");
    }

    /// A pause frame's last bit has left a transmitter.
    #[inline]
    fn on_pause_frame(_fabric: &mut HybridFabric<Self>, _core: &mut Core, _sender: PausePoint, _classes: u8) {}

    /// Whether a switch has room for a packet from there; else the packet is lost.
    #[inline]
    fn has_room(_fabric: &mut HybridFabric<Self>, _from: Option<PausePoint>, _size: u16) -> bool {
        true
    }

    /// A queue has dropped a packet.
    #[inline]
    fn record_loss(_fabric: &mut HybridFabric<Self>) {}

    /// A packet has been queued, which arrived from there, or the switch itself made it.
    #[inline]
    fn on_queued(
        _fabric: &mut HybridFabric<Self>,
        _core: &mut Core,
        _id: PacketId,
        _from: Option<PausePoint>,
        _egress: PausePoint,
    ) {
    }

    /// A packet's last bit has left a switch, or the packet was dropped there.
    #[inline]
    fn on_departure(_fabric: &mut HybridFabric<Self>, _core: &mut Core, _id: PacketId, _egress: PausePoint) {}

    /// A paused transmitter may have another first packet.
    #[inline]
    fn record_head(_fabric: &mut HybridFabric<Self>, _core: &Core, _point: PausePoint) {}

    /// An egress may have become idle or busy.
    #[inline]
    fn update_victims(_fabric: &mut HybridFabric<Self>, _now: Time, _egress: PausePoint) {}

    /// The schedule has turned paths on or off.
    fn on_paths_changed(_fabric: &mut HybridFabric<Self>, _core: &Core) {}

    /// Names of all pause points, and whether a pause is of all classes.
    fn point_names(_fabric: &HybridFabric<Self>) -> (Vec<String>, bool) {
        (vec![], false)
    }

    /// The report of pauses.
    fn pause_report(_fabric: &HybridFabric<Self>, _core: &Core) -> Option<PauseReport> {
        None
    }
}

/// Lossy links: a full queue drops packets.
pub(super) struct Lossy;

impl LinkLayer for Lossy {
    type Pausing = Unpausable;
    type HostPort = FifoPort;

    fn new(_config: &HybridConfig, _core: &mut Core) -> Self {
        Lossy
    }

    fn host_port(serializer: Serializer, delay: Span) -> FifoPort {
        FifoPort::new(serializer, delay, &Discipline::default(), 0)
    }
}
