//! Lossless Ethernet: PFC (IEEE 802.1Qbb) and PAUSE (802.3x), hop by hop back to the hosts' interfaces.
//!
//! The code is the same for all fabrics: [`LosslessFabric`] says where pauses act. A fabric numbers its *pause points*,
//! the places where packets wait or are sent from. A pause point that is a link's transmitter has an account at the
//! switch that it sends to, for each lossless class: bytes that came over the link and have not left the switch. A
//! packet counts from the arrival of its last bit to the departure of its last bit. Above XOFF the port on the reverse
//! direction of the link sends a pause frame. When the frame's last bit has left, the cable's delay and the response
//! time pass; then the transmitter stops the class. A pause lasts until it is ended: the refreshing frames that timed
//! quanta need (64 bytes in 65,535 x 512 bit times) are not sent. With PAUSE there is one account for each link, and
//! all classes stop.
//!
//! A host's adapter with a receive buffer is such a switch too: it has an account of the link to the host, and its NIC
//! sends the pause frames. A host processes all that arrives, in its time, so an adapter is never paused: it is a root.
//!
//! Of the receiving switch are the account of a link and the decision to pause; of the sending switch the pauses of a
//! transmitter, their record, and head-of-line blocking; pause frames are under way between the two. Global is the root
//! of a pause, which is found by following the chain of paused transmitters through all switches at the moment at which
//! the pause is requested, and the list of single pauses, in the order of time.

mod accounts;
mod deadlock;
mod graph;
mod hybrid;
mod pause_log;
mod pause_points;
mod report;
mod victims;

pub(super) use graph::LosslessGraph;
pub(super) use hybrid::LosslessRacks;
pub(super) use pause_points::PausePoint;

use super::core::Core;
use crate::causes::Paused;
use crate::events::EventKind;
use accounts::{IngressAccounts, ThresholdCrossing};
use firstlight_net::pfc::{PfcConfig, PfcLimits};
use firstlight_net::{HostId, PacketId, PausablePort, Ring};
use firstlight_units::{Span, Time};
use pause_log::{CIRCLE, PauseLog, PauseOrigin};
use std::ops::Range;
use victims::Victims;

/// A packet that its switch made itself, a notification of QCN, which no account holds.
const LOCAL: u32 = u32::MAX;

/// The configuration of a pause point.
struct PointConfig {
    /// The transmitter of the reverse direction, if the point is a link that can be paused.
    reverse: Option<usize>,
    /// From the end of a pause frame on the reverse direction until the frame takes effect here.
    latency: Span,
    /// The limits of the account of packets that come over this link.
    limits: PfcLimits,
    /// The points of the switch that the link leads to.
    egresses: Range<usize>,
}

impl PointConfig {
    /// A point that is no link: its packets are never paused.
    fn root() -> Self {
        PointConfig { reverse: None, latency: Span::ZERO, limits: PfcLimits::default(), egresses: 0..0 }
    }
}

/// A pause point at work.
struct PauseState {
    reverse: Option<usize>,
    latency: Span,
    /// The classes that are paused, a bit each.
    paused: u8,
    /// Pause frames under way: when each takes effect, and which classes it pauses.
    frames: Ring<(Time, u8)>,
}

/// The link layer of a lossless fabric.
pub(super) struct Lossless {
    config: PfcConfig,
    /// The state of each pause point.
    points: Vec<PauseState>,
    accounts: IngressAccounts,
    log: PauseLog,
    victims: Victims,
    /// The point over which each packet arrived, or [`LOCAL`].
    ingress: Vec<u32>,
    /// Packets of lossless classes that were lost.
    lost: u64,
}

impl Lossless {
    /// A link layer with these pause points and this number of classes.
    fn with(config: &PfcConfig, classes: usize, points: Vec<PointConfig>) -> Self {
        let priorities = if config.whole_link { 1 } else { classes };
        let count = points.len();
        let state = |point: &PointConfig| PauseState {
            reverse: point.reverse,
            latency: point.latency,
            paused: 0,
            frames: Ring::with_capacity(1),
        };
        Lossless {
            config: *config,
            points: points.iter().map(state).collect(),
            accounts: IngressAccounts::new(points.into_iter().map(|point| (point.egresses, point.limits)), priorities),
            log: PauseLog::new(count, priorities, config.most_events),
            victims: Victims::new(count * priorities, count),
            ingress: vec![],
            lost: 0,
        }
    }

    /// The account's class of a packet; none when the packet is not of a lossless class.
    fn priority(&self, class: usize) -> Option<usize> {
        self.config.has(class).then_some(if self.config.whole_link { 0 } else { class })
    }

    /// The transmitter of the reverse direction of a link that can be paused.
    fn reverse(&self, point: usize) -> usize {
        self.points[point].reverse.expect("only links that can be paused have accounts with thresholds")
    }

    /// The classes of a transmitter with `classes` that an account's class comprises.
    fn classes_of(&self, priority: usize, classes: usize) -> Range<usize> {
        if self.config.whole_link { 0..classes } else { priority..priority + 1 }
    }

    /// Counts a packet of this class that was lost.
    fn record_loss(&mut self, class: usize) {
        self.lost += u64::from(self.config.has(class));
    }

    /// Whether the account of a link has room for a packet of this class; if it has not, the packet is counted as lost.
    fn has_room(&mut self, from: usize, class: usize, size: u16) -> bool {
        let room = self.priority(class).is_none_or(|priority| self.accounts.has_room(from, priority, size));
        self.lost += u64::from(!room);
        room
    }

    /// Records over which point a packet arrived at the switch that it is in.
    fn set_ingress(&mut self, id: PacketId, from: u32) {
        if self.ingress.len() <= id.index() {
            self.ingress.resize(id.index() + 1, LOCAL);
        }
        self.ingress[id.index()] = from;
    }
}

/// Where pauses act: a fabric with numbered pause points, and what happens at them.
trait LosslessFabric {
    fn lossless(&self) -> &Lossless;
    fn lossless_mut(&mut self) -> &mut Lossless;

    /// The pause point of a host's interface.
    fn nic(&self, host: usize) -> usize;

    /// The pause point of a host's adapter.
    fn adapter(&self, host: usize) -> usize;

    /// The class that a packet has at a transmitter.
    fn class_at(&self, core: &Core, point: usize, id: PacketId) -> usize;

    /// Asks the far end of a transmitter's link, by a pause frame, to pause just these classes.
    fn request_pause(&mut self, core: &mut Core, point: usize, classes: u8);

    /// Lets a transmitter send all but these classes.
    fn pause(&mut self, core: &mut Core, point: usize, classes: u8);

    /// Whether a transmitter has a pause frame that waits or is in service.
    fn pause_frame_pending(&self, core: &Core, point: usize) -> bool;

    /// When a transmitter has sent the packet of an account's class that it had begun.
    fn served(&self, core: &Core, point: usize, priority: usize) -> Time;

    /// The pause point at the next switch that the first waiting packet of an account's class is bound for; none where
    /// none waits, or where that is not known.
    fn next_egress(&self, core: &Core, point: usize, priority: usize) -> Option<usize>;

    /// Whether a packet that arrived at an egress would leave at once.
    fn is_idle(&self, now: Time, egress: usize) -> bool;

    /// The transmitter that the packets of an egress wait for.
    fn transmitter_of(&self, egress: usize) -> usize {
        egress
    }

    /// The time from which the first packet of a transmitter waits because of a pause. The pause takes effect, or the
    /// packet becomes the first, at `now`; the transmitter stops at `stops`.
    fn waits_from(&self, now: Time, stops: Time) -> Time {
        now.max(stops)
    }

    // Used by reports.

    /// A pause point's name, as in other tables.
    fn name(&self, point: usize) -> String;

    /// The name of the switch, or host, that a link leads to.
    fn switch_name(&self, point: usize) -> String;

    /// Packets of an account's class that a transmitter has begun to send.
    fn packets(&self, core: &Core, point: usize, priority: usize) -> u64;

    /// The links into switches and adapters, in the order in which they are reported.
    fn inward(&self, core: &Core) -> Vec<usize>;

    /// Whether it is known where waiting packets are bound for.
    fn knows_egresses(&self) -> bool {
        true
    }

    // Events of pauses, which are the same on every fabric.

    /// A packet of this class has been queued for `egress`; it arrived over `from`, or the switch itself made it.
    fn on_queued(&mut self, core: &mut Core, id: PacketId, class: usize, from: Option<usize>, egress: usize) {
        let lossless = self.lossless_mut();
        lossless.set_ingress(id, from.map_or(LOCAL, |from| from as u32));
        if let Some(from) = from
            && let Some(priority) = lossless.priority(class)
        {
            let crossing = lossless.accounts.add(from, priority, egress, core.arena.get(id).size());
            self.on_crossing(core, from, priority, crossing);
        }
    }

    /// A packet's last bit has left a switch by `egress`, or the packet was dropped there.
    fn on_departure(&mut self, core: &mut Core, id: PacketId, class: usize, egress: usize) {
        let lossless = self.lossless_mut();
        let from = lossless.ingress[id.index()];
        if let Some(priority) = lossless.priority(class).filter(|_| from != LOCAL) {
            let from = from as usize;
            let crossing = lossless.accounts.remove(from, priority, egress, core.arena.get(id).size());
            self.on_crossing(core, from, priority, crossing);
        }
    }

    /// An account may have crossed a threshold: then its sender gets a pause frame.
    fn on_crossing(&mut self, core: &mut Core, from: usize, priority: usize, crossing: ThresholdCrossing) {
        match crossing {
            ThresholdCrossing::None => return,
            ThresholdCrossing::Xoff => {
                let lossless = self.lossless();
                let egress = lossless.accounts.largest(from, priority);
                let root = lossless.log.root(egress, priority, |egress| self.transmitter_of(egress));
                self.lossless_mut().log.set_origin(from, priority, PauseOrigin { egress, root });
            }
            ThresholdCrossing::Xon => {}
        }
        let lossless = self.lossless();
        let wanted = lossless.accounts.paused(from);
        let classes = if lossless.config.whole_link && wanted != 0 { u8::MAX } else { wanted };
        let reverse = lossless.reverse(from);
        self.request_pause(core, reverse, classes);
    }

    /// A pause frame's last bit has left the transmitter of the reverse direction.
    fn on_pause_frame(&mut self, core: &mut Core, sender: usize, classes: u8) {
        let lossless = self.lossless_mut();
        let point = lossless.reverse(sender);
        let PauseState { latency, frames, .. } = &mut lossless.points[point];
        let at = core.now + *latency;
        frames.push((at, classes));
        if frames.len() == 1 {
            core.schedule(Some(at), EventKind::Pause, point);
        }
    }

    /// A pause frame takes effect.
    fn on_pause_effect(&mut self, core: &mut Core, point: usize) {
        let now = core.now;
        let state = &mut self.lossless_mut().points[point];
        let (_, classes) = state.frames.pop().expect("an event is pending only while a frame is under way");
        let changed = std::mem::replace(&mut state.paused, classes) ^ classes;
        core.reschedule(state.frames.front().map(|frame| frame.0), EventKind::Pause, point);
        if changed == 0 {
            return;
        }
        let priorities = self.lossless().accounts.priorities();
        for priority in (0..priorities).filter(|priority| changed & (1 << priority) != 0) {
            if classes & (1 << priority) == 0 {
                let lossless = self.lossless_mut();
                let (from, root) = lossless.log.end(point, priority, now);
                lossless.victims.end(point * priorities + priority, now);
                if let Some(recorder) = &mut core.recorder {
                    let root = (root != CIRCLE).then_some(root);
                    recorder.pause_ends(Paused { from, until: now, transmitter: point, priority, root });
                }
            } else {
                let stops = self.served(core, point, priority).max(now);
                self.lossless_mut().log.begin(point, priority, now, stops);
                if let Some(recorder) = &mut core.recorder {
                    recorder.pause_begins(point, priority, stops);
                }
            }
        }
        self.pause(core, point, classes);
        self.record_heads(core, point, now);
    }

    /// Records where the first packets of a paused transmitter go next.
    fn record_heads(&mut self, core: &Core, point: usize, now: Time) {
        let priorities = self.lossless().accounts.priorities();
        for priority in 0..priorities {
            let Some(stops) = self.lossless().log.since(point, priority) else { continue };
            let Some(egress) = self.next_egress(core, point, priority) else { continue };
            let (idle, from) = (self.is_idle(now, egress), self.waits_from(now, stops));
            self.lossless_mut().victims.begin(point * priorities + priority, egress, idle, from);
        }
    }

    /// Records the first packets that hosts' interfaces gave to paused queues since the last event.
    fn record_stopped_nics(&mut self, core: &mut Core) {
        while let Some((at, host)) = core.pausable.stopped.pop() {
            self.record_heads(core, self.nic(host), at);
        }
    }

    /// An egress may have become idle or busy.
    fn update_victims(&mut self, now: Time, egress: usize) {
        let idle = self.is_idle(now, egress);
        self.lossless_mut().victims.update(egress, idle, now);
    }

    /// A packet is at the end of a link to a host, whose adapter may have an account of it.
    fn on_host_arrival(&mut self, core: &mut Core, from: usize, id: PacketId, host: HostId) {
        let class = self.class_at(core, from, id);
        let adapter = self.adapter(host.index());
        let lossless = self.lossless_mut();
        let Some(priority) = lossless.priority(class).filter(|_| core.is_buffered(id)) else {
            return core.exit(id, host);
        };
        let size = core.arena.get(id).size();
        if !lossless.has_room(from, class, size) {
            return core.refuse_at_adapter(id, host);
        }
        core.fill_adapter(id, host);
        let crossing = lossless.accounts.add(from, priority, adapter, size);
        self.on_crossing(core, from, priority, crossing);
    }

    /// Carries out the events of a host's adapter that are due.
    fn on_adapter(&mut self, core: &mut Core, host: usize) {
        let Some(id) = core.step_adapter(host) else { return };
        let (from, adapter) = (self.lossless().reverse(self.nic(host)), self.adapter(host));
        let class = self.class_at(core, from, id);
        let lossless = self.lossless_mut();
        let Some(priority) = lossless.priority(class) else { return core.make_room(id, host) };
        let crossing = lossless.accounts.remove(from, priority, adapter, core.arena.get(id).size());
        self.on_crossing(core, from, priority, crossing);
    }
}

/// Lets `act` change a port, an output port of a switch or a host's interface by `kind`, so that its next event may
/// come earlier.
fn act_on_port(
    core: &mut Core,
    ports: &mut [PausablePort],
    kind: EventKind,
    index: usize,
    act: impl FnOnce(&mut PausablePort, Time) -> Option<Time>,
) {
    let now = core.now;
    let nic = kind == EventKind::Nic;
    let port = if nic { &mut core.pausable.ports[index] } else { &mut ports[index] };
    let event = act(port, now);
    if event.is_some() {
        core.reschedule(event, kind, index);
    }
}
