//! QCN in a fabric: the way of a notification from the queue that is too long to the interface of the host that fills it.
//!
//! A congestion point stands at every queue of a switch's ports; on a hybrid fabric at every VOQ, at the ToRs' ports to the
//! hosts, and at each of the packet switch's ports, whose inputs are one queue to it. The switch sends a packet to the sampled packet's sender, which takes its way as
//! any other does, may wait and may be lost; in the host's interface it ends. Packets of limited flows wait there, before the
//! interface's queue: what that holds already goes as it is.

use super::core::Core;
use super::hybrid::Hybrid;
use super::interfaces::Interfaces;
use crate::config::HybridConfig;
use crate::digest::End;
use crate::events::Kind;
use crate::report::{PortKind, PortReport, QcnReport, RateSample};
use crate::stream::stream;
use firstlight_net::qcn::{CongestionCounts, CongestionPoint, FlowKey, QcnConfig};
use firstlight_net::{HostId, Pace, Packet, PacketId, SwitchPort};
use firstlight_units::{Bytes, Span};
use rand_xoshiro::rand_core::RngCore;

/// The congestion point of the queue that has this name.
pub(super) fn point(config: &QcnConfig, seed: u64, name: &str) -> CongestionPoint {
    CongestionPoint::new(config, stream(seed, name, "qcn").next_u64())
}

/// The congestion point of a queue that does not count its bytes itself: a VOQ, or a port of the packet switch.
pub(super) struct QueuePoint {
    point: CongestionPoint,
    /// What the queue holds.
    bytes: u64,
}

impl QueuePoint {
    fn new(qcn: &QcnConfig, seed: u64, name: &str) -> Self {
        QueuePoint { point: point(qcn, seed, name), bytes: 0 }
    }

    /// A packet was queued: the feedback for its sender, if there is any. Notifications are not sampled.
    fn on_queued(&mut self, packet: &Packet) -> Option<u8> {
        self.bytes += u64::from(packet.size());
        if packet.notification().is_some() {
            return None;
        }
        self.point.on_queued(packet.size(), Bytes::new(self.bytes))
    }

    /// A packet has left the queue, or was dropped from it.
    pub(super) fn on_gone(&mut self, packet: &Packet) {
        self.bytes -= u64::from(packet.size());
    }
}

/// The congestion points of a hybrid fabric; all are empty without QCN.
#[derive(Default)]
pub(super) struct Points {
    /// Of each pair's VOQ,
    pub(super) voqs: Vec<QueuePoint>,
    /// of the ToRs' port to each host,
    hosts: Vec<CongestionPoint>,
    /// and of the packet switch's port to each rack.
    pub(super) downlinks: Vec<QueuePoint>,
    /// Notifications that go from a ToR as a packet of its hosts would,
    pub(super) routed: u64,
    /// and those that the packet switch has sent.
    pub(super) switched: u64,
}

impl Points {
    pub(super) fn new(config: &HybridConfig) -> Points {
        let Some(qcn) = &config.interface.qcn else { return Points::default() };
        let (racks, seed) = (config.racks, config.seed);
        let voq = |pair| QueuePoint::new(qcn, seed, &format!("voq.{}.{}", pair / racks, pair % racks));
        Points {
            voqs: (0..racks * racks).map(voq).collect(),
            hosts: (0..racks * config.hosts_per_rack)
                .map(|host| point(qcn, seed, &format!("host{host}.port")))
                .collect(),
            downlinks: (0..racks).map(|rack| QueuePoint::new(qcn, seed, &format!("downlink.{rack}"))).collect(),
            ..Points::default()
        }
    }

    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.voqs.is_empty()
    }
}

impl Hybrid {
    /// A VOQ has taken a packet in: its sender, a host of this rack, may be notified.
    pub(super) fn on_queued<const P: bool>(&mut self, core: &mut Core, pair: usize, id: PacketId) {
        let packet = core.arena.get(id);
        if let Some(feedback) = self.points.voqs[pair].on_queued(packet) {
            let host = packet.src().index();
            let id = core.notify(id, feedback);
            self.send_to_host::<P>(core, host, id, None);
        }
    }

    /// A ToR's port to a host has taken a packet in: its sender may be notified, by the way that the host's packets take.
    #[cold]
    pub(super) fn on_queued_for_host<const P: bool>(&mut self, core: &mut Core, host: usize, id: PacketId) {
        let packet = core.arena.get(id);
        if packet.notification().is_some() {
            return;
        }
        let queue = match &self.pauses {
            None => self.host_ports[host].backlog(core.now),
            Some(pauses) => pauses.ports[host].backlog(core.now),
        };
        if let Some(feedback) = self.points.hosts[host].on_queued(packet.size(), queue) {
            let id = core.notify(id, feedback);
            self.points.routed += 1;
            self.enter_tor::<P>(core, id, None);
        }
    }

    /// A port of the packet switch has taken a packet in: its sender may be notified. The notification goes to the sender's rack, in
    /// the queue of what comes from the packet's destination.
    #[cold]
    pub(super) fn on_queued_at_switch<const P: bool>(&mut self, core: &mut Core, dst: usize, id: PacketId) {
        let packet = core.arena.get(id);
        if let Some(feedback) = self.points.downlinks[dst].on_queued(packet) {
            let id = core.notify(id, feedback);
            let src = self.rack(core.arena.get(id).dst());
            self.points.switched += 1;
            self.enter_downlink::<P>(core, id, dst, src, None);
        }
    }

    /// What the congestion points counted.
    pub(super) fn congestion(&self) -> impl Iterator<Item = CongestionCounts> {
        let Points { voqs, hosts, downlinks, .. } = &self.points;
        let queues = voqs.iter().chain(downlinks).map(|queue| queue.point.counts());
        queues.chain(hosts.iter().map(CongestionPoint::counts))
    }
}

impl Core {
    /// A switch notifies the sender of this packet: the notification, which is to be sent from there.
    pub(super) fn notify(&mut self, id: PacketId, feedback: u8) -> PacketId {
        let notification = Packet::new_notification(self.arena.get(id), feedback);
        let id = self.arena.spare();
        self.arena.take(id);
        *self.arena.get_mut(id) = notification;
        self.counts.notified += 1;
        id
    }

    /// A notification has come to its host's interface, and ends here.
    #[cold]
    pub(super) fn take_in(&mut self, id: PacketId, host: HostId, feedback: u8) {
        let packet = self.arena.get(id);
        self.digest.packet(packet, self.now, End::Exit);
        let flow = FlowKey { dst: packet.src().0, sport: packet.dport(), dport: packet.sport() };
        self.counts.taken_in += 1;
        self.arena.release(id);
        let limiters = &mut self.interfaces.limiters[host.index()];
        limiters.on_notification(flow, feedback, self.now);
        let next = limiters.next();
        self.reschedule(next, Kind::Limiter, host.index());
    }

    /// A packet goes on to its host's interface, past the limited flows or as one of them.
    pub(super) fn limit(&mut self, id: PacketId, host: usize) {
        let Some(limiters) = self.interfaces.limiters.get_mut(host) else { return self.pass(id, host) };
        let before = limiters.next();
        let pace = limiters.offer(id, self.arena.get(id), self.now);
        let next = limiters.next();
        if next != before {
            self.reschedule(next, Kind::Limiter, host);
        }
        if pace == Pace::Pass {
            self.pass(id, host);
        }
    }

    /// The interface of a host lets packets of limited flows go, if it is time for some.
    pub(super) fn on_limiter(&mut self, host: usize) {
        while let Some(id) = self.interfaces.limiters[host].release(self.now) {
            self.pass(id, host);
        }
        let next = self.interfaces.limiters[host].next();
        self.reschedule(next, Kind::Limiter, host);
    }

    /// What QCN did, with what its congestion points counted.
    pub(super) fn qcn_report(&self, points: impl Iterator<Item = CongestionCounts>) -> Option<QcnReport> {
        let limiters = &self.interfaces.limiters;
        if limiters.is_empty() {
            return None;
        }
        let mut report = QcnReport::default();
        for point in points {
            report.sent.samples += point.samples;
            report.sent.notifications += point.notifications;
            report.sent.feedback += point.feedback;
        }
        let scale = u64::from(self.scale);
        for (host, limiters) in limiters.iter().enumerate() {
            let counts = limiters.counts();
            report.received += counts.notifications;
            report.feedback += counts.feedback;
            report.limited += counts.limited;
            report.changes += counts.changes;
            report.limited_time += limiters.limited(self.now) / scale;
            report.kept.extend(limiters.changes().iter().map(|change| RateSample {
                at: Span::from_ps(change.at.as_ps() / scale),
                host: HostId(host as u16),
                flow: change.flow,
                current: change.current,
                target: change.target,
            }));
        }
        report.kept.sort_by_key(|sample| sample.at);
        Some(report)
    }
}

impl Interfaces {
    pub(super) fn limiter_reports(&self) -> impl Iterator<Item = PortReport> + '_ {
        self.limiters.iter().enumerate().map(|(host, limiters)| {
            let counts = limiters.counts();
            PortReport {
                name: format!("host{host}.limiter"),
                kind: PortKind::Limiter,
                offered: counts.offered,
                delivered: counts.passed + counts.released,
                dropped: 0,
                held: limiters.held(),
                marked: 0,
                peak_queue: counts.peak.into(),
                peak_bytes: None,
                hops: 0,
            }
        })
    }
}
