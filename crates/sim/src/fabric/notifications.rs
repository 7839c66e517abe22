//! QCN in a fabric: the path of a notification from the queue that is too long to the interface of the host that fills
//! it.
//!
//! Every queue of a switch's ports has a congestion point; on a hybrid fabric at every VOQ, at the ToRs' ports to the
//! hosts, and at each of the packet switch's ports, whose inputs it sees as one queue. The switch sends the
//! notification to the sampled packet's sender. A notification is forwarded like any other packet, may wait and may be
//! lost; it ends in the host's interface. There packets of limited flows wait before the interface's queue; what is in
//! that queue already is not held back.
//!
//! A congestion point belongs to the switch of its queue, a rate limiter to its host.

use super::core::Core;
use super::hybrid::HybridFabric;
use super::interfaces::Interfaces;
use super::link_layer::LinkLayer;
use crate::causes::PlaceKind;
use crate::digest::PacketEnd;
use crate::events::EventKind;
use crate::report::{PortKind, PortReport, QcnReport, RateSample};
use crate::stream::stream;
use firstlight_net::qcn::{CongestionCounts, CongestionPoint, FlowKey, QcnConfig};
use firstlight_net::{FlowTuple, HostId, PacerDecision, Packet, PacketId, SwitchPort};
use firstlight_units::{Bytes, Span};
use rand_xoshiro::rand_core::RngCore;

/// The congestion points of a fabric's queues; none without QCN.
#[derive(Default)]
pub(super) struct CongestionPoints(Vec<CongestionPoint>);

impl CongestionPoints {
    /// A congestion point for each queue of these names, which seed the points' random numbers.
    pub(super) fn new(qcn: Option<&QcnConfig>, seed: u64, queues: impl Iterator<Item = String>) -> Self {
        let Some(qcn) = qcn else { return CongestionPoints::default() };
        let point = |name: String| CongestionPoint::new(qcn, stream(seed, &name, "qcn").next_u64());
        CongestionPoints(queues.map(point).collect())
    }

    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A queue has taken in a packet, with which it holds `queue`. Returns the notification that is to be sent to the
    /// packet's sender, if any. Notifications are not sampled.
    pub(super) fn sample(&mut self, core: &mut Core, point: usize, id: PacketId, queue: Bytes) -> Option<PacketId> {
        let packet = core.arena.get(id);
        if packet.notification().is_some() {
            return None;
        }
        let feedback = self.0[point].on_queued(packet.size(), queue)?;
        Some(core.notify(id, feedback))
    }

    /// The sum of all congestion points' counters.
    fn counts(&self) -> CongestionCounts {
        let mut sum = CongestionCounts::default();
        for point in self.0.iter().map(CongestionPoint::counts) {
            sum.samples += point.samples;
            sum.notifications += point.notifications;
            sum.feedback += point.feedback;
        }
        sum
    }
}

impl<L: LinkLayer> HybridFabric<L> {
    /// A VOQ has taken in a packet: its sender, a host of this rack, may be notified.
    pub(super) fn sample_voq(&mut self, core: &mut Core, pair: usize, id: PacketId) {
        let queue = self.racks.pairs[pair].voq.bytes();
        if let Some(notification) = self.racks.points.sample(core, pair, id, queue) {
            let host = core.arena.get(notification).dst().index();
            self.send_to_host(core, host, notification, None);
        }
    }

    /// A ToR's port to a host has taken in a packet: its sender may be notified, over the path of the host's packets.
    #[cold]
    pub(super) fn sample_host_port(&mut self, core: &mut Core, host: usize, id: PacketId) {
        let (queue, point) = (self.host_ports[host].backlog(core.now), self.racks.host_point(host));
        if let Some(notification) = self.racks.points.sample(core, point, id, queue) {
            self.racks.notified_by_tor += 1;
            self.enter_tor(core, notification, None);
        }
    }

    /// A port of the packet switch has taken in a packet: its sender may be notified. The notification goes to the
    /// sender's rack, in the queue of what comes from the packet's destination.
    #[cold]
    pub(super) fn sample_downlink(&mut self, core: &mut Core, dst: usize, id: PacketId, queue: Bytes) {
        let point = self.racks.downlink_point(dst);
        if let Some(notification) = self.racks.points.sample(core, point, id, queue) {
            let src = self.racks.rack(core.arena.get(notification).dst());
            self.racks.notified_by_switch += 1;
            self.enter_downlink(core, notification, dst, src, None);
        }
    }
}

impl Core {
    /// A switch notifies the sender of this packet. Returns the notification, which is to be sent from there.
    fn notify(&mut self, id: PacketId, feedback: u8) -> PacketId {
        let notification = Packet::new_notification(self.arena.get(id), feedback);
        let id = self.arena.spare();
        self.arena.take(id);
        *self.arena.get_mut(id) = notification;
        if let Some(recorder) = &mut self.recorder {
            recorder.notification(id, &notification, self.now);
        }
        self.counts.notified += 1;
        id
    }

    /// A notification has come to its host's interface, and ends here.
    #[cold]
    pub(super) fn receive_notification(&mut self, id: PacketId, host: HostId) {
        let packet = self.arena.get(id);
        self.digest.packet(packet, self.now, PacketEnd::Exit);
        let notification = packet.notification().expect("only notifications end here");
        let (FlowTuple { dst, sport, dport, .. }, feedback) = (notification.flow(), notification.feedback());
        self.counts.notifications_received += 1;
        self.arena.release(id);
        let limiters = &mut self.interfaces.limiters[host.index()];
        limiters.on_notification(FlowKey { dst: dst.0, sport, dport }, feedback, self.now);
        let next = limiters.next();
        self.reschedule(next, EventKind::Limiter, host.index());
    }

    /// Hands a packet to its host's interface; packets of limited flows wait for their rate first.
    pub(super) fn limit(&mut self, id: PacketId, host: usize) {
        let Some(limiters) = self.interfaces.limiters.get_mut(host) else { return self.pass(id, host) };
        let before = limiters.next();
        let decision = limiters.offer(id, self.arena.get(id), self.now);
        let next = limiters.next();
        if next != before {
            self.reschedule(next, EventKind::Limiter, host);
        }
        if decision == PacerDecision::Pass {
            self.pass(id, host);
        }
    }

    /// The interface of a host lets packets of limited flows go, if it is time for some.
    pub(super) fn on_limiter(&mut self, host: usize) {
        while let Some(id) = self.interfaces.limiters[host].release(self.now) {
            self.record_hop(id, PlaceKind::Limiter, host);
            self.pass(id, host);
        }
        let next = self.interfaces.limiters[host].next();
        self.reschedule(next, EventKind::Limiter, host);
    }

    /// QCN's report, with the counters of its congestion points.
    pub(super) fn qcn_report(&self, points: &CongestionPoints) -> Option<QcnReport> {
        let limiters = &self.interfaces.limiters;
        if limiters.is_empty() {
            return None;
        }
        let mut report = QcnReport { sent: points.counts(), ..QcnReport::default() };
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
                offered: counts.offered,
                delivered: counts.passed + counts.released,
                held: limiters.held(),
                peak_queue: counts.peak.into(),
                ..PortReport::of(PortKind::Limiter, format!("host{host}.limiter"))
            }
        })
    }
}
