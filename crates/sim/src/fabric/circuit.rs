//! The circuit switch of a hybrid fabric: a crossbar without queues.
//!
//! A rack's port pulls from the VOQ that the present matching gives it. A packet starts only if its serialization ends
//! by the day's end, so nothing crosses the switch at night and a day carries floor(day / serialization) packets.

use super::core::Core;
use super::hybrid::HybridFabric;
use super::link_layer::LinkLayer;
use super::lossless::PausePoint;
use super::transmitter::Transmitter;
use crate::causes::PlaceKind;
use crate::events::EventKind;
use crate::meter::Carrier;
use firstlight_net::{Line, PauseControl, Sent};
use firstlight_units::Time;

/// A rack's port of the circuit switch.
pub(super) struct CircuitPort<C> {
    pub(super) transmitter: Transmitter<C>,
    /// The rack that the port reaches, while a circuit is up.
    up_to: Option<u16>,
    /// When the day ends.
    until: Time,
    /// Bytes sent in this day.
    pub(super) carried: u64,
}

impl<C: PauseControl> CircuitPort<C> {
    pub(super) fn new(line: Line) -> Self {
        CircuitPort { transmitter: Transmitter::new(line), up_to: None, until: Time::ZERO, carried: 0 }
    }

    /// Whether a circuit to `dst` is up.
    #[inline]
    pub(super) fn is_up_to(&self, dst: usize) -> bool {
        self.up_to.is_some_and(|up| usize::from(up) == dst)
    }

    pub(super) fn connect(&mut self, dst: usize, until: Time) {
        self.up_to = Some(dst as u16);
        self.until = until;
        self.carried = 0;
    }

    pub(super) fn disconnect(&mut self) {
        self.up_to = None;
    }
}

impl<L: LinkLayer> HybridFabric<L> {
    /// Something may have become sendable on this port.
    #[inline]
    pub(super) fn wake_circuit(&mut self, core: &mut Core, src: usize) {
        if !core.is_scheduled(EventKind::CircuitFree, src) {
            let next = self.serve_circuit(core, src);
            core.schedule(next, EventKind::CircuitFree, src);
        } else if L::Pausing::ENDS_ARE_EVENTS
            && let Some(dst) = self.circuits[src].up_to
            && self.circuit_chance(core, src, self.racks.pair(src, usize::from(dst))).is_some()
            && self.circuits[src].transmitter.goes_ahead(core.now)
        {
            self.on_circuit_free(core, src);
        }
    }

    pub(super) fn on_circuit_free(&mut self, core: &mut Core, src: usize) {
        if let Some(Sent::Packet(id)) = self.circuits[src].transmitter.finish() {
            let dst = self.racks.rack(core.arena.get(id).dst());
            L::on_departure(self, core, id, PausePoint::Voq(src, dst));
        }
        let next = self.serve_circuit(core, src);
        core.reschedule(next, EventKind::CircuitFree, src);
    }

    /// Sends if it can. Returns when to try again; `None` when nothing is sendable.
    #[inline]
    fn serve_circuit(&mut self, core: &mut Core, src: usize) -> Option<Time> {
        let pair = self.racks.pair(src, usize::from(self.circuits[src].up_to?));
        let free = self.circuit_chance(core, src, pair)?;
        if free > core.now {
            return Some(free);
        }
        let (id, size) = self.racks.take(core, pair, Carrier::Circuit)?;
        let port = &mut self.circuits[src];
        port.carried += u64::from(size);
        let alone = port.transmitter.send(id, size, core.now);
        core.schedule(alone, EventKind::Circuit, src);
        let next = self.circuit_chance(core, src, pair);
        if L::Pausing::ENDS_ARE_EVENTS { self.circuits[src].transmitter.next(next) } else { next }
    }

    /// When the first packet of the pair that the circuit joins can start; `None` if it cannot end by the day's end.
    #[inline]
    fn circuit_chance(&self, core: &Core, src: usize, pair: usize) -> Option<Time> {
        let port = &self.circuits[src];
        let bytes = core.arena.get(self.racks.pairs[pair].voq.front()?).size();
        let line = &port.transmitter.line;
        (line.end_of(bytes, core.now) <= port.until).then(|| line.free_at())
    }

    pub(super) fn on_circuit_arrival(&mut self, core: &mut Core, src: usize) {
        let (id, next) = self.circuits[src].transmitter.line.arrive();
        core.reschedule(next, EventKind::Circuit, src);
        if core.recorder.is_some() {
            core.record_hop(id, PlaceKind::Circuit, src);
            self.record_voq(core, id, src);
        }
        self.on_rack_arrival(core, id, src, Carrier::Circuit);
    }
}
