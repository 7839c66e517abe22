//! QCN in a fabric: the way of a notification from the queue that is too long to the interface of the host that fills it.
//!
//! A congestion point stands at every queue of a switch's ports, and at every VOQ of a hybrid fabric (not at its ToRs' ports
//! to the hosts, whose queues are unlimited). The switch sends a packet to the sampled packet's sender, which takes its way as
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
use firstlight_net::{HostId, Pace, Packet, PacketId};
use firstlight_units::{Bytes, Span};
use rand_xoshiro::rand_core::RngCore;

/// The congestion point of the queue that has this name.
pub(super) fn point(config: &QcnConfig, seed: u64, name: &str) -> CongestionPoint {
    CongestionPoint::new(config, stream(seed, name, "qcn").next_u64())
}

/// The congestion point of a VOQ.
pub(super) struct VoqPoint {
    point: CongestionPoint,
    /// What the VOQ holds.
    bytes: u64,
}

impl VoqPoint {
    /// Those of all pairs; none without QCN.
    pub(super) fn all(config: &HybridConfig) -> Vec<VoqPoint> {
        let Some(qcn) = &config.interface.qcn else { return vec![] };
        let name = |pair| format!("voq.{}.{}", pair / config.racks, pair % config.racks);
        let of_pair = |pair| VoqPoint { point: point(qcn, config.seed, &name(pair)), bytes: 0 };
        (0..config.racks * config.racks).map(of_pair).collect()
    }

    /// A packet has left the VOQ, or was dropped from it.
    pub(super) fn on_gone(&mut self, packet: &Packet) {
        self.bytes -= u64::from(packet.size);
    }
}

impl Hybrid {
    /// A VOQ has taken a packet in: its sender, a host of this rack, may be notified.
    pub(super) fn on_queued<const P: bool>(&mut self, core: &mut Core, pair: usize, id: PacketId) {
        let (packet, VoqPoint { point, bytes }) = (core.arena.get(id), &mut self.points[pair]);
        *bytes += u64::from(packet.size);
        if let Some(feedback) = point.on_queued(packet.size, Bytes::new(*bytes)) {
            let host = packet.src.index();
            let id = core.notify(id, feedback);
            self.send_to_host::<P>(core, host, id, None);
        }
    }

    /// What the congestion points counted.
    pub(super) fn congestion(&self) -> impl Iterator<Item = CongestionCounts> {
        self.points.iter().map(|voq| voq.point.counts())
    }
}

impl Core {
    /// A switch notifies the sender of this packet: the notification, which is to be sent from there.
    pub(super) fn notify(&mut self, id: PacketId, feedback: u8) -> PacketId {
        let notification = Packet::notification(self.arena.get(id), feedback);
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
        let flow = FlowKey { dst: packet.src.0, sport: packet.dport, dport: packet.sport };
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
                hops: 0,
            }
        })
    }
}
