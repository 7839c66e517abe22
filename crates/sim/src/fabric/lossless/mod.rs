//! Lossless Ethernet on a packet fabric: PFC (IEEE 802.1Qbb) and PAUSE (802.3x), hop by hop back to the hosts' interfaces.
//!
//! Each transmitter (a switch's port, a host's NIC) has an account at the switch that it sends to, for each lossless class: bytes
//! that came over its link and have not left the switch. A packet counts from the arrival of its last bit to the departure of its
//! last bit. Above XOFF the port on the other direction of the link sends a pause frame; the frame's last bit, the cable and
//! the response time later the transmitter stops its class. A pause lasts until it is ended: the refreshing frames that
//! timed quanta need (64 bytes in 65,535 x 512 bit times) are not sent. With PAUSE there is one account for each
//! link, and all classes stop.
//!
//! A host's adapter with a receive buffer is such a switch too: it has an account of the link to the host, and its NIC sends the pause
//! frames. The host takes everything in, in its time, so an adapter is never paused: it is a root.
//!
//! Transmitters are numbered as `Topology::transmitters` does; hosts' adapters, as ports that accounts hold bytes for, come after all
//! of them.

mod accounts;
mod deadlock;
mod ledger;
mod places;
mod racks;
mod racks_flow;
mod racks_report;
mod racks_victims;
mod report;
mod victims;

pub(super) use places::Place;
pub(super) use racks::Pauses;
pub(super) use racks_flow::Pausing;

use super::core::{Core, Shape};
use super::graph::Graph;
use crate::config::{ConfigError, GraphConfig};
use crate::events::{Event, Kind};
use accounts::{Accounts, Change};
use firstlight_net::pfc::PfcConfig;
use firstlight_net::topology::{Node, Topology};
use firstlight_net::{HostId, PacketId, PausablePort, Ring, Sent, Serializer, SwitchPort};
use firstlight_units::{Span, Time};
use ledger::{Cause, Ledger};
use std::ops::Range;
use victims::Victims;

/// A transmitter's link, as pauses see it.
struct Link {
    /// The transmitter of the other direction.
    back: usize,
    /// From the end of a pause frame on the other direction until it takes effect here.
    way: Span,
    /// Pause frames under way: when each takes effect, and which classes it pauses.
    frames: Ring<(Time, u8)>,
}

/// A packet fabric whose links can be paused.
pub(super) struct Lossless {
    pub(super) graph: Graph<PausablePort>,
    config: PfcConfig,
    links: Vec<Link>,
    accounts: Accounts,
    ledger: Ledger,
    victims: Victims,
    /// The transmitter that each packet came over, or [`HERE`].
    came: Vec<u32>,
    /// Packets of lossless classes that were lost.
    lost: u64,
}

/// A packet that its switch made itself: a notification of QCN, which no account holds.
const HERE: u32 = u32::MAX;

impl Lossless {
    pub(super) fn build(config: &GraphConfig, pfc: &PfcConfig) -> Result<(Core, Lossless), ConfigError> {
        let (mut core, graph) = Graph::build(config, Graph::<PausablePort>::port)?;
        let topology = &graph.topology;
        let scale = u64::from(config.time_scale);
        let classes = config.switch.queues().len();
        let queues = vec![firstlight_net::Discipline::default(); classes];
        let nic = |nic: &firstlight_net::topology::Nic| {
            let link = Serializer::new(nic.wire.rate, config.time_scale);
            PausablePort::pausable(link, nic.wire.delay * scale, &queues, 0)
        };
        core.make_pausable(topology.nics().iter().map(nic).collect());
        let of_adapters = config.interface.adapter.receive.map(|receive| pfc.at_adapter(receive.buffer));
        let limits = |(there, back): (usize, &usize)| {
            let to_host = matches!(topology.target_of(there), Node::Host(_));
            let pfc = of_adapters.as_ref().filter(|_| to_host).unwrap_or(pfc);
            pfc.limits(topology.wire_of(there), topology.wire_of(*back))
        };
        let backs = topology.backs();
        let limits: Vec<_> = backs.iter().enumerate().map(limits).collect();
        let link = |(there, back): (usize, &usize)| Link {
            back: *back,
            way: (topology.wire_of(*back).delay + limits[there].response) * scale,
            frames: Ring::with_capacity(2),
        };
        let links: Vec<_> = backs.iter().enumerate().map(link).collect();
        let priorities = if pfc.whole_link { 1 } else { classes };
        let lossless = Lossless {
            accounts: Accounts::new(|from| egresses(topology, from), limits, priorities),
            ledger: Ledger::new(links.len() + core.hosts(), priorities, pfc.most_events),
            victims: Victims::new(links.len() * priorities, topology.ports().len()),
            links,
            config: *pfc,
            came: vec![],
            lost: 0,
            graph,
        };
        Ok((core, lossless))
    }

    /// The port or NIC of a transmitter.
    fn port<'a>(&'a self, core: &'a Core, transmitter: usize) -> &'a PausablePort {
        let ports = &self.graph.ports;
        ports.get(transmitter).unwrap_or_else(|| &core.pausable.ports[transmitter - ports.len()])
    }

    /// Lets `act` do something to a transmitter that may bring its next event forward.
    fn with_port(&mut self, core: &mut Core, transmitter: usize, act: impl FnOnce(&mut PausablePort) -> Option<Time>) {
        let ports = self.graph.ports.len();
        let (kind, index) =
            if transmitter < ports { (Kind::Port, transmitter) } else { (Kind::Nic, transmitter - ports) };
        let all = if kind == Kind::Port { &mut self.graph.ports } else { &mut core.pausable.ports };
        let event = act(&mut all[index]);
        if event.is_some() {
            core.reschedule(event, kind, index);
        }
    }

    /// The account's class of a packet; none when it is not a lossless one.
    fn priority(&self, class: usize) -> Option<usize> {
        self.config.has(class).then_some(if self.config.whole_link { 0 } else { class })
    }

    /// What a transmitter has done at its event.
    fn on_step(&mut self, core: &mut Core, transmitter: usize, arrived: Option<PacketId>, sent: Option<Sent>) {
        match sent {
            Some(Sent::Packet(id)) => self.on_gone(core, transmitter, id),
            Some(Sent::Pause(classes)) => self.on_pause_frame(core, transmitter, classes),
            None => {}
        }
        if let Some(id) = arrived {
            self.on_arrival(core, transmitter, id);
        }
    }

    /// A packet is at the end of a transmitter's link.
    fn on_arrival(&mut self, core: &mut Core, from: usize, id: PacketId) {
        let switch = match self.graph.topology.target_of(from) {
            Node::Host(host) => return self.on_host_arrival(core, from, id, host),
            Node::Switch(switch) => switch,
        };
        let port = self.graph.route(core, id, switch);
        let packet = core.arena.get(id);
        let (size, class) = (packet.size(), self.graph.ports[port].class_of(packet));
        let priority = self.priority(class);
        if priority.is_some_and(|priority| !self.accounts.has_room(from, priority, size)) {
            self.lost += 1;
            self.graph.ports[port].refuse(packet);
            return core.lose(id, Kind::Port, port);
        }
        let stopped = self.is_stopped(port, class);
        let taken = self.graph.send_seen(core, switch, port, id);
        if let Some(notification) = self.graph.notified.take() {
            self.came_from(notification, HERE);
        }
        if !taken {
            self.lost += u64::from(priority.is_some());
            return;
        }
        self.came_from(id, from as u32);
        if stopped {
            self.victims_of(core, port, core.now);
        }
        self.victims.change(port, self.graph.ports[port].is_idle(), core.now);
        if let Some(priority) = priority {
            let change = self.accounts.add(from, priority, port, size);
            self.on_change(core, from, priority, change);
        }
    }

    /// A packet is at the end of a link to a host, whose adapter may have an account of it.
    fn on_host_arrival(&mut self, core: &mut Core, from: usize, id: PacketId, host: HostId) {
        let Some(priority) = self.account(core, from, id).filter(|_| core.is_buffered(id)) else {
            return core.exit(id, host);
        };
        let size = core.arena.get(id).size();
        if !self.accounts.has_room(from, priority, size) {
            self.lost += 1;
            return core.refuse_at_adapter(id, host);
        }
        core.fill_adapter(id, host);
        let change = self.accounts.add(from, priority, self.links.len() + host.index(), size);
        self.on_change(core, from, priority, change);
    }

    /// A host does what is due with what its adapter holds.
    fn on_adapter(&mut self, core: &mut Core, host: usize) {
        let Some(id) = core.step_adapter(host) else { return };
        let from = self.links[self.graph.ports.len() + host].back;
        let Some(priority) = self.account(core, from, id) else { return core.make_room(id, host) };
        let change = self.accounts.remove(from, priority, self.links.len() + host, core.arena.get(id).size());
        self.on_change(core, from, priority, change);
    }

    /// The account of a link that counts a packet which came over it to its host; none if that is not lossless.
    fn account(&self, core: &Core, from: usize, id: PacketId) -> Option<usize> {
        self.priority(self.port(core, from).class_of(core.arena.get(id)))
    }

    /// Notes by which link a packet came to the switch that it is in.
    fn came_from(&mut self, id: PacketId, from: u32) {
        if self.came.len() <= id.index() {
            self.came.resize(id.index() + 1, HERE);
        }
        self.came[id.index()] = from;
    }

    /// A packet's last bit has left a transmitter.
    fn on_gone(&mut self, core: &mut Core, port: usize, id: PacketId) {
        if port >= self.graph.ports.len() {
            return;
        }
        self.victims.change(port, self.graph.ports[port].is_idle(), core.now);
        let packet = core.arena.get(id);
        let (size, class, from) = (packet.size(), self.graph.ports[port].class_of(packet), self.came[id.index()]);
        if let Some(priority) = self.priority(class).filter(|_| from != HERE) {
            let change = self.accounts.remove(from as usize, priority, port, size);
            self.on_change(core, from as usize, priority, change);
        }
    }

    /// An account has crossed a threshold, or not: its sender is told.
    fn on_change(&mut self, core: &mut Core, from: usize, priority: usize, change: Change) {
        match change {
            Change::None => return,
            Change::Pause => {
                let egress = self.accounts.largest(from, priority);
                let cause = Cause { egress, root: self.ledger.root(egress, priority, |port| port) };
                self.ledger.blame(from, priority, cause);
            }
            Change::Resume => {}
        }
        let wanted = self.accounts.paused(from);
        let classes = if self.config.whole_link && wanted != 0 { u8::MAX } else { wanted };
        let (back, now) = (self.links[from].back, core.now);
        self.with_port(core, back, |port| port.tell(classes, now));
    }

    /// A pause frame's last bit has left the transmitter of the other direction.
    fn on_pause_frame(&mut self, core: &mut Core, sender: usize, classes: u8) {
        let transmitter = self.links[sender].back;
        let Link { way, frames, .. } = &mut self.links[transmitter];
        let at = core.now + *way;
        frames.push((at, classes));
        if frames.len() == 1 {
            core.schedule(Some(at), Kind::Pause, transmitter);
        }
    }

    /// A pause frame takes effect.
    fn on_effect(&mut self, core: &mut Core, transmitter: usize) {
        let frames = &mut self.links[transmitter].frames;
        let (_, classes) = frames.pop().expect("an event is pending only while a frame is under way");
        let next = frames.front().map(|frame| frame.0);
        core.reschedule(next, Kind::Pause, transmitter);
        let now = core.now;
        let changed = self.port(core, transmitter).paused() ^ classes;
        for priority in (0..self.accounts.priorities()).filter(|priority| changed & (1 << priority) != 0) {
            if classes & (1 << priority) == 0 {
                self.ledger.end(transmitter, priority, now);
                self.victims.end(transmitter * self.accounts.priorities() + priority, now);
            } else {
                let served = self.served(core, transmitter, priority);
                self.ledger.begin(transmitter, priority, now, served.max(now));
            }
        }
        self.with_port(core, transmitter, |port| port.pause(classes, now));
        self.victims_of(core, transmitter, now);
    }

    /// When the transmitter has sent what it had begun of a class.
    fn served(&self, core: &Core, transmitter: usize, priority: usize) -> Time {
        let port = self.port(core, transmitter);
        let classes = if self.config.whole_link { 0..port.classes() } else { priority..priority + 1 };
        classes.map(|class| port.served(class)).max().expect("a port has a class")
    }

    /// Whether a packet that comes to this port and class would be the first to wait for the end of a pause.
    fn is_stopped(&self, port: usize, class: usize) -> bool {
        let port = &self.graph.ports[port];
        port.paused() & (1 << class) != 0 && port.head(class).is_none()
    }

    /// Notes where the first packets of a paused transmitter go next.
    fn victims_of(&mut self, core: &Core, transmitter: usize, now: Time) {
        let Node::Switch(next) = self.graph.topology.target_of(transmitter) else { return };
        if self.graph.sprayed.is_some() {
            return;
        }
        let priorities = self.accounts.priorities();
        for priority in 0..priorities {
            let port = self.port(core, transmitter);
            let first = if self.config.whole_link { port.first_class() } else { Some(priority) };
            let paused = port.paused() & (1 << priority) != 0;
            let Some(head) = first.filter(|_| paused).and_then(|class| port.head(class)) else { continue };
            let packet = core.arena.get(head);
            let egress = self.graph.routes.port(next, packet.dst(), || packet.flow_key()).index();
            let idle = self.graph.ports[egress].is_idle();
            self.victims.begin(transmitter * priorities + priority, egress, idle, now);
        }
    }

    /// Packets that have come to paused queues of hosts since the last event.
    fn look_at_hosts(&mut self, core: &mut Core) {
        while let Some((at, host)) = core.pausable.stopped.pop() {
            self.victims_of(core, self.graph.ports.len() + host, at);
        }
    }
}

/// The ports of the switch that a transmitter sends to, or the host's adapter.
fn egresses(topology: &Topology, from: usize) -> Range<usize> {
    match topology.target_of(from) {
        Node::Host(host) => {
            let adapter = topology.transmitters() + host.index();
            adapter..adapter + 1
        }
        Node::Switch(switch) => {
            let ports = topology.ports_of(switch);
            ports.start as usize..ports.end as usize
        }
    }
}

impl Shape for Lossless {
    fn on_event(&mut self, core: &mut Core, event: Event) {
        if !core.pausable.stopped.is_empty() {
            self.look_at_hosts(core);
        }
        let index = event.index();
        match event.kind() {
            Kind::Nic => {
                let (arrived, sent) = core.step_nic(index);
                self.on_step(core, self.graph.ports.len() + index, arrived, sent);
            }
            Kind::Port => {
                let arrived = core.step(&mut self.graph.ports[index], index);
                let sent = self.graph.ports[index].take_sent();
                self.on_step(core, index, arrived, sent);
            }
            Kind::Pause => self.on_effect(core, index),
            Kind::Stack => core.on_stack(index),
            Kind::Pacer => core.on_pacer(index),
            Kind::Limiter => core.on_limiter(index),
            Kind::Adapter => self.on_adapter(core, index),
            Kind::Sample => self.graph.on_sample(core),
            other => unreachable!("a lossless fabric has no event {other:?}"),
        }
    }
}
