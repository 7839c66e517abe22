//! The circuit switch of a hybrid fabric: a crossbar without queues.
//!
//! A rack's port pulls from the VOQ that the present matching gives it. A packet starts only if its serialization ends by
//! the day's end, so nothing crosses the switch at night and a day carries floor(day / serialization) packets.

use super::core::Core;
use super::hybrid::Hybrid;
use crate::events::Kind;
use crate::meter::Network;
use firstlight_net::Line;
use firstlight_units::Time;

/// A rack's port of the circuit switch.
pub(super) struct CircuitPort {
    pub(super) line: Line,
    /// The rack that it reaches, while a circuit is up.
    up_to: Option<u16>,
    /// When the day ends.
    until: Time,
    /// Bytes sent in this day.
    pub(super) carried: u64,
}

impl CircuitPort {
    pub(super) fn new(line: Line) -> Self {
        CircuitPort { line, up_to: None, until: Time::ZERO, carried: 0 }
    }

    /// True while a circuit to `dst` is up.
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

impl Hybrid {
    /// Something may have become sendable on this port.
    #[inline]
    pub(super) fn wake_circuit<const P: bool>(&mut self, core: &mut Core, src: usize) {
        if !core.is_scheduled(Kind::CircuitFree, src) {
            let next = self.serve_circuit::<P>(core, src);
            core.schedule(next, Kind::CircuitFree, src);
        } else if P
            && let Some(dst) = self.circuits[src].up_to
            && let Some(free) = self.circuit_chance(core, src, self.pair(src, usize::from(dst)))
            && self.is_overdue(Kind::CircuitFree, src, free <= core.now)
        {
            self.on_circuit_free::<P>(core, src);
        }
    }

    pub(super) fn on_circuit_free<const P: bool>(&mut self, core: &mut Core, src: usize) {
        if P {
            self.finish_circuit(core, src);
        }
        let next = self.serve_circuit::<P>(core, src);
        core.reschedule(next, Kind::CircuitFree, src);
    }

    /// Sends if it can. Tells when to try again; `None` when nothing is sendable.
    #[inline]
    fn serve_circuit<const P: bool>(&mut self, core: &mut Core, src: usize) -> Option<Time> {
        let port = &self.circuits[src];
        let index = self.pair(src, usize::from(port.up_to?));
        let free = self.circuit_chance(core, src, index)?;
        if free > core.now {
            return Some(free);
        }
        let pair = &mut self.pairs[index];
        let id = pair.voq.take(core.now)?;
        let size = core.arena.get(id).size();
        pair.circuit_packets += 1;
        pair.circuit_bytes += u64::from(size);
        pair.order.on_sent(Network::Circuit);
        self.on_passed(core, id, index);
        let port = &mut self.circuits[src];
        port.carried += u64::from(size);
        let alone = port.line.send(id, size, core.now);
        let free = port.line.free_at();
        core.schedule(alone, Kind::Circuit, src);
        let next = self.circuit_chance(core, src, index);
        if P {
            self.begin(Kind::CircuitFree, src, id, next.is_none());
            return Some(free);
        }
        next
    }

    /// When the VOQ's first packet can start, if it can end by the day's end.
    #[inline]
    fn circuit_chance(&self, core: &Core, src: usize, index: usize) -> Option<Time> {
        let port = &self.circuits[src];
        let bytes = core.arena.get(self.pairs[index].voq.front()?).size();
        (port.line.end_of(bytes, core.now) <= port.until).then(|| port.line.free_at())
    }

    pub(super) fn on_circuit_arrival<const P: bool>(&mut self, core: &mut Core, src: usize) {
        let (id, next) = self.circuits[src].line.arrive();
        core.reschedule(next, Kind::Circuit, src);
        self.on_rack_arrival::<P>(core, id, src, Network::Circuit);
    }
}
