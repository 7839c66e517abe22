//! What happens at a hybrid fabric's switches when its links can be paused: accounts, pause frames and their effects.

use super::accounts::Change;
use super::ledger::Cause;
use super::places::Place;
use super::racks::{HERE, Link, Pauses, Transmitter};
use crate::events::{Event, Kind};
use crate::fabric::core::{Core, Shape};
use crate::fabric::hybrid::Hybrid;
use firstlight_net::{HostId, PacketId, Sent, SwitchPort};
use firstlight_units::Time;

/// A hybrid fabric whose links can be paused, at its events.
pub(in crate::fabric) struct Pausing<'a>(pub(in crate::fabric) &'a mut Hybrid);

impl Shape for Pausing<'_> {
    fn on_event(&mut self, core: &mut Core, event: Event) {
        let Pausing(hybrid) = self;
        while let Some((at, host)) = core.pausable.stopped.pop() {
            hybrid.note_head(core, Place::Nic(host), at);
        }
        let index = event.index();
        match event.kind() {
            Kind::Nic => {
                let (arrived, sent) = core.step_nic(index);
                if let Some(Sent::Pause(classes)) = sent {
                    hybrid.on_pause_frame(core, Place::Nic(index), classes != 0);
                }
                if let Some(id) = arrived {
                    hybrid.on_host_packet::<true>(core, id);
                }
            }
            Kind::Port => hybrid.on_pausable_port(core, index),
            Kind::Pause => hybrid.on_effect(core, index),
            Kind::Stack => core.on_stack(index),
            Kind::Adapter => hybrid.on_host_taking(core, index),
            _ => hybrid.on::<true>(core, event),
        }
        if !matches!(event.kind(), Kind::Port | Kind::Circuit | Kind::Stack | Kind::Adapter) {
            hybrid.look_at_voqs(core);
        }
    }
}

impl Hybrid {
    fn pausing(&mut self) -> &mut Pauses {
        self.pauses.as_deref_mut().expect("only links that can be paused get here")
    }

    /// Whether a switch has room for a packet from there; else it is lost.
    pub(in crate::fabric) fn has_room(&mut self, from: Place, size: u16) -> bool {
        self.pausing().has_room(from, size)
    }

    /// A packet of a lossless link was lost all the same.
    #[cold]
    pub(in crate::fabric) fn note_loss(&mut self) {
        let pauses = self.pausing();
        pauses.lost += u64::from(pauses.config.has(0));
    }

    /// A packet goes to a host of its rack.
    pub(in crate::fabric) fn send_pausable(&mut self, core: &mut Core, host: usize, id: PacketId, from: Option<Place>) {
        let size = core.arena.get(id).size();
        let pauses = self.pausing();
        if from.is_some_and(|from| !pauses.has_room(from, size)) {
            pauses.ports[host].refuse(core.arena.get(id));
            return core.lose(id, Kind::Port, host);
        }
        core.send(&mut pauses.ports, host, id);
        pauses.port_changed(host, core.now);
        self.hold(core, id, from, Place::HostPort(host));
    }

    /// A packet from there, or one that was made here, has been queued.
    pub(in crate::fabric) fn hold(&mut self, core: &mut Core, id: PacketId, from: Option<Place>, egress: Place) {
        let size = core.arena.get(id).size();
        let pauses = self.pausing();
        let from = from.map_or(HERE, |from| pauses.of(from));
        pauses.came_from(id, from);
        if from != HERE && pauses.config.has(0) {
            let change = pauses.accounts.add(from, 0, pauses.of(egress), size);
            self.on_change(core, from, change);
        }
    }

    /// A packet's last bit has left a switch, or it was dropped there.
    fn on_gone(&mut self, core: &mut Core, id: PacketId, egress: Place) {
        let size = core.arena.get(id).size();
        let pauses = self.pausing();
        let from = pauses.came[id.index()];
        if from != HERE && pauses.config.has(0) {
            let change = pauses.accounts.remove(from, 0, pauses.of(egress), size);
            self.on_change(core, from, change);
        }
    }

    /// A VOQ that has become smaller has dropped a packet.
    pub(in crate::fabric) fn on_dropped(&mut self, core: &mut Core, id: PacketId, pair: usize) {
        self.note_loss();
        self.on_gone(core, id, Place::Voq(pair / self.racks, pair % self.racks));
    }

    /// An account has crossed a threshold, or not: its sender is told.
    fn on_change(&mut self, core: &mut Core, from: usize, change: Change) {
        match change {
            Change::None => return,
            Change::Pause => {
                let egress = self.pausing().accounts.largest(from, 0);
                let root = self.root(egress);
                self.pausing().ledger.blame(from, 0, Cause { egress, root });
            }
            Change::Resume => {}
        }
        let (pauses, now) = (self.pausing(), core.now);
        let wanted = pauses.accounts.paused(from) != 0;
        match pauses.places.back(pauses.places.place(from)) {
            Some(Place::HostPort(host)) => {
                let event = pauses.ports[host].tell(u8::from(wanted), now);
                if event.is_some() {
                    core.reschedule(event, Kind::Port, host);
                }
            }
            Some(Place::Nic(host)) => {
                let event = core.pausable.ports[host].tell(u8::from(wanted), now);
                if event.is_some() {
                    core.reschedule(event, Kind::Nic, host);
                }
            }
            Some(Place::Uplink(rack)) => {
                pauses.uplinks[rack].wanted = wanted;
                self.wake_uplink::<true>(core, rack);
            }
            Some(Place::Downlink(rack)) => {
                pauses.downlinks[rack].wanted = wanted;
                self.wake_downlink::<true>(core, rack);
            }
            other => unreachable!("no pause frame goes out at {other:?}"),
        }
    }

    /// The last of the places that wait for each other. A VOQ waits for the uplink while its packet path is on.
    fn root(&self, egress: usize) -> usize {
        let pauses = self.pauses.as_deref().expect("only links that can be paused get here");
        let server = |at: usize| match pauses.places.place(at) {
            Place::Voq(src, dst) if self.pairs[self.pair(src, dst)].off == 0 => pauses.of(Place::Uplink(src)),
            _ => at,
        };
        pauses.ledger.root(egress, 0, server)
    }

    /// A ToR's port to a host does what is due.
    fn on_pausable_port(&mut self, core: &mut Core, host: usize) {
        let pauses = self.pausing();
        let arrived = core.step(&mut pauses.ports[host], host);
        match pauses.ports[host].take_sent() {
            Some(Sent::Packet(id)) => {
                pauses.port_changed(host, core.now);
                self.on_gone(core, id, Place::HostPort(host));
            }
            Some(Sent::Pause(classes)) => self.on_pause_frame(core, Place::HostPort(host), classes != 0),
            None => {}
        }
        if let Some(id) = arrived {
            self.on_host_arrival(core, id, host);
        }
    }

    /// A packet is at the end of a link to a host, whose adapter may have an account of it.
    fn on_host_arrival(&mut self, core: &mut Core, id: PacketId, host: usize) {
        let to = HostId(host as u16);
        let pauses = self.pausing();
        if !pauses.config.has(0) || !core.is_buffered(id) {
            return core.exit(id, to);
        }
        let size = core.arena.get(id).size();
        if !pauses.has_room(Place::HostPort(host), size) {
            return core.refuse_at_adapter(id, to);
        }
        core.fill_adapter(id, to);
        let from = pauses.of(Place::HostPort(host));
        let change = pauses.accounts.add(from, 0, pauses.of(Place::Adapter(host)), size);
        self.on_change(core, from, change);
    }

    /// A host does what is due with what its adapter holds.
    fn on_host_taking(&mut self, core: &mut Core, host: usize) {
        let Some(id) = core.step_adapter(host) else { return };
        let pauses = self.pausing();
        if !pauses.config.has(0) {
            return core.make_room(id, host);
        }
        let (from, size) = (pauses.of(Place::HostPort(host)), core.arena.get(id).size());
        let change = pauses.accounts.remove(from, 0, pauses.of(Place::Adapter(host)), size);
        self.on_change(core, from, change);
    }

    /// An uplink has sent what it had begun, if anything.
    pub(in crate::fabric) fn finish_uplink(&mut self, core: &mut Core, src: usize) {
        match self.pausing().uplinks[src].serving.take() {
            Some(Sent::Packet(id)) => {
                let dst = self.rack(core.arena.get(id).dst());
                self.on_gone(core, id, Place::Voq(src, dst));
            }
            Some(Sent::Pause(pause)) => self.on_pause_frame(core, Place::Uplink(src), pause != 0),
            None => {}
        }
    }

    /// So has a downlink,
    pub(in crate::fabric) fn finish_downlink(&mut self, core: &mut Core, dst: usize) {
        match self.pausing().downlinks[dst].serving.take() {
            Some(Sent::Packet(id)) => {
                self.downlink_changed(core.now, dst);
                self.on_gone(core, id, Place::Downlink(dst));
            }
            Some(Sent::Pause(pause)) => self.on_pause_frame(core, Place::Downlink(dst), pause != 0),
            None => {}
        }
    }

    /// and a circuit.
    pub(in crate::fabric) fn finish_circuit(&mut self, core: &mut Core, src: usize) {
        if let Some(Sent::Packet(id)) = self.pausing().circuits[src].serving.take() {
            let dst = self.rack(core.arena.get(id).dst());
            self.on_gone(core, id, Place::Voq(src, dst));
        }
    }

    /// When to look again at an uplink that must not begin a packet now, if at all: it sends something, a pause frame goes first, or
    /// it is paused.
    pub(in crate::fabric) fn hold_uplink(&mut self, now: Time, src: usize) -> Option<Option<Time>> {
        let pauses = self.pauses.as_deref_mut().expect("only links that can be paused get here");
        pauses.uplinks[src].hold(&mut self.uplinks[src].line, now)
    }

    /// The same of a downlink.
    pub(in crate::fabric) fn hold_downlink(&mut self, now: Time, dst: usize) -> Option<Option<Time>> {
        let pauses = self.pauses.as_deref_mut().expect("only links that can be paused get here");
        pauses.downlinks[dst].hold(&mut self.downlinks[dst].line, now)
    }

    fn transmitter(&mut self, kind: Kind, index: usize) -> &mut Transmitter {
        let pauses = self.pausing();
        match kind {
            Kind::UplinkFree => &mut pauses.uplinks[index],
            Kind::DownlinkFree => &mut pauses.downlinks[index],
            _ => &mut pauses.circuits[index],
        }
    }

    /// A transmitter has begun a packet, perhaps the last that waited.
    pub(in crate::fabric) fn begin(&mut self, kind: Kind, index: usize, id: PacketId, last: bool) {
        let transmitter = self.transmitter(kind, index);
        transmitter.serving = Some(Sent::Packet(id));
        transmitter.last = last;
    }

    /// A packet has come that may be sent. Whether it goes now, ahead of the event of the end of the last one.
    pub(in crate::fabric) fn is_overdue(&mut self, kind: Kind, index: usize, free: bool) -> bool {
        let transmitter = self.transmitter(kind, index);
        free & std::mem::take(&mut transmitter.last)
    }

    /// A pause frame's last bit has left the transmitter of the other direction.
    fn on_pause_frame(&mut self, core: &mut Core, sender: Place, pause: bool) {
        let pauses = self.pausing();
        let paused = pauses.places.back(sender).expect("who sends pause frames can be reached");
        let link = pauses.places.link(paused);
        let Link { way, frames } = &mut pauses.links[link];
        let at = core.now + *way;
        frames.push((at, pause));
        if frames.len() == 1 {
            core.schedule(Some(at), Kind::Pause, link);
        }
    }

    /// A pause frame takes effect.
    fn on_effect(&mut self, core: &mut Core, link: usize) {
        let (pauses, now) = (self.pausing(), core.now);
        let frames = &mut pauses.links[link].frames;
        let (_, pause) = frames.pop().expect("an event is pending only while a frame is under way");
        let next = frames.front().map(|frame| frame.0);
        core.reschedule(next, Kind::Pause, link);
        let place = pauses.places.of_link(link);
        let stops = self.served(core, place).max(now);
        let pauses = self.pausing();
        let number = pauses.of(place);
        if pause == pauses.ledger.since(number, 0).is_some() {
            return;
        }
        if pause {
            pauses.ledger.begin(number, 0, now, stops);
        } else {
            pauses.ledger.end(number, 0, now);
            pauses.victims.end(number, now);
        }
        self.set_paused(core, place, pause);
        self.note_head(core, place, now);
    }

    /// When a transmitter has sent the packet that it had begun.
    fn served(&self, core: &Core, place: Place) -> Time {
        let pauses = self.pauses.as_deref().expect("only links that can be paused get here");
        let of_line = |serves: bool, free: Time| if serves { free } else { core.now };
        match place {
            Place::Nic(host) => core.pausable.ports[host].served(0),
            Place::HostPort(host) => pauses.ports[host].served(0),
            Place::Uplink(rack) => of_line(pauses.uplinks[rack].serves_packet(), self.uplinks[rack].line.free_at()),
            Place::Downlink(rack) => {
                of_line(pauses.downlinks[rack].serves_packet(), self.downlinks[rack].line.free_at())
            }
            other => unreachable!("{other:?} is never paused"),
        }
    }

    fn set_paused(&mut self, core: &mut Core, place: Place, pause: bool) {
        match place {
            Place::Nic(host) => {
                let event = core.pausable.ports[host].pause(u8::from(pause), core.now);
                if event.is_some() {
                    core.reschedule(event, Kind::Nic, host);
                }
            }
            Place::HostPort(host) => {
                let event = self.pausing().ports[host].pause(u8::from(pause), core.now);
                if event.is_some() {
                    core.reschedule(event, Kind::Port, host);
                }
            }
            Place::Uplink(rack) => {
                self.pausing().uplinks[rack].paused = pause;
                self.wake_uplink::<true>(core, rack);
            }
            Place::Downlink(rack) => {
                self.pausing().downlinks[rack].paused = pause;
                self.wake_downlink::<true>(core, rack);
            }
            other => unreachable!("{other:?} is never paused"),
        }
    }
}
