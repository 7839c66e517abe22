//! Counting up: ports, pairs, and the identities that must hold between them.

use super::core::port_report;
use super::hybrid::Hybrid;
use super::notifications::Points;
use super::{Fabric, Kind};
use crate::conserve::Ledger;
use crate::report::{PairReport, PortKind, PortReport, Totals};
use firstlight_circuits::RackId;
use firstlight_units::Time;

impl Hybrid {
    /// All pairs of two racks, in order.
    fn pairs_of_two(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.racks).flat_map(|src| (0..self.racks).map(move |dst| (src, dst))).filter(|(src, dst)| src != dst)
    }

    pub(super) fn pair_reports(&self) -> Vec<PairReport> {
        let report = |(src, dst): (usize, usize)| {
            let pair = &self.pairs[self.pair(src, dst)];
            let counts = pair.voq.counts();
            PairReport {
                src: RackId(src as u16),
                dst: RackId(dst as u16),
                offered: counts.offered,
                dropped_full: counts.dropped_full,
                dropped_shrink: counts.dropped_shrink,
                marked: counts.marked,
                circuit_packets: pair.circuit_packets,
                packet_packets: pair.packet_packets,
                circuit_bytes: pair.circuit_bytes,
                packet_bytes: pair.packet_bytes,
                overtakings: pair.order.packet_overtakings,
                circuit_overtakings: pair.order.circuit_overtakings,
                peak: u64::from(counts.peak),
                held: u64::from(pair.voq.len()),
            }
        };
        self.pairs_of_two().map(report).collect()
    }

    pub(super) fn port_reports(&self, now: Time) -> Vec<PortReport> {
        let name = |i| format!("host{i}.port");
        let to_host = |(i, port)| port_report(PortKind::HostPort, name(i), port, now);
        let mut reports: Vec<PortReport> = self.host_ports.iter().enumerate().map(to_host).collect();
        let pausable = self.pauses.iter().flat_map(|pauses| pauses.ports.iter().enumerate());
        reports.extend(pausable.map(|(i, port)| port_report(PortKind::HostPort, name(i), port, now)));
        reports.extend(self.pairs_of_two().map(|(src, dst)| self.voq_report(src, dst)));
        for (src, uplink) in self.uplinks.iter().enumerate() {
            let offered = self.pairs[self.pair(src, 0)..][..self.racks].iter().map(|pair| pair.packet_packets).sum();
            let name = format!("uplink.{src}");
            reports.push(line_report(PortKind::Uplink, name, offered, &uplink.line));
        }
        for (dst, downlink) in self.downlinks.iter().enumerate() {
            let waiting: u64 = downlink.inputs.iter().map(|input| u64::from(input.len())).sum();
            let name = format!("downlink.{dst}");
            let line = line_report(PortKind::Downlink, name, downlink.entered, &downlink.line);
            let (held, peak_queue) = (line.held + waiting, u64::from(downlink.peak));
            reports.push(PortReport { held, peak_queue, dropped: downlink.dropped, ..line });
        }
        for (src, circuit) in self.circuits.iter().enumerate() {
            let offered = self.pairs[self.pair(src, 0)..][..self.racks].iter().map(|pair| pair.circuit_packets).sum();
            let name = format!("circuit.{src}");
            reports.push(line_report(PortKind::Circuit, name, offered, &circuit.line));
        }
        reports
    }

    fn voq_report(&self, src: usize, dst: usize) -> PortReport {
        let voq = &self.pairs[self.pair(src, dst)].voq;
        let counts = voq.counts();
        PortReport {
            name: format!("voq.{src}.{dst}"),
            kind: PortKind::Voq,
            offered: counts.offered,
            delivered: counts.taken,
            dropped: counts.dropped_full + counts.dropped_shrink,
            held: u64::from(voq.len()),
            marked: counts.marked,
            peak_queue: u64::from(counts.peak),
            peak_bytes: None,
            hops: 0,
        }
    }
}

fn line_report(kind: PortKind, name: String, offered: u64, line: &firstlight_net::Line) -> PortReport {
    let (delivered, held, hops) = (line.arrived(), line.held(), line.sent());
    PortReport { name, kind, offered, delivered, dropped: 0, held, marked: 0, peak_queue: 0, peak_bytes: None, hops }
}

fn has_switches(kind: &Kind) -> bool {
    let topology = match kind {
        Kind::Graph(graph) => &graph.topology,
        Kind::Classes(graph) => &graph.topology,
        Kind::Lossless(lossless) => &lossless.graph.topology,
        Kind::Hybrid(_) => return true,
    };
    !topology.switches().is_empty()
}

/// The fabric's counts, and every identity that fails.
pub(super) fn totals(fabric: &Fabric) -> Totals {
    let (ports, counts) = (fabric.ports(), &fabric.core.counts);
    let sum = |kinds: &[PortKind], of: fn(&PortReport) -> u64| -> u64 {
        ports.iter().filter(|port| kinds.contains(&port.kind)).map(of).sum()
    };
    let all = |of: fn(&PortReport) -> u64| -> u64 { ports.iter().map(of).sum() };
    let (nic, host) = ([PortKind::HostNic], [PortKind::HostPort]);
    let (offered, delivered) = (|p: &PortReport| p.offered, |p: &PortReport| p.delivered);
    let mut ledger = Ledger::default();
    for port in &ports {
        let parts = port.delivered + port.dropped + port.held;
        ledger.check(&port.name, "offered = delivered + dropped + held", port.offered, parts);
    }
    let held = all(|p| p.held);
    let come = counts.injected + counts.notified;
    let parts = counts.exited + counts.taken_in + counts.dropped + counts.lost + held;
    ledger.check("fabric", "injected + notifications = exited + taken in + dropped + lost + held", come, parts);
    ledger.check("fabric", "drops = drops of all ports", counts.dropped, all(|p| p.dropped));
    let adapters = [PortKind::Adapter];
    // Of two hosts and one link, the interfaces lead to each other.
    let to_hosts = if has_switches(&fabric.kind) { host } else { nic };
    let come = sum(&to_hosts, delivered);
    if fabric.core.adapters.is_empty() {
        let left = counts.exited + counts.taken_in;
        ledger.check("fabric", "exits + notifications taken in = deliveries to hosts", left, come);
    } else {
        let kept = sum(&adapters, offered) + counts.taken_in;
        ledger.check("fabric", "adapters + notifications taken in = deliveries to hosts", kept, come);
        ledger.check("fabric", "exits = deliveries of adapters", counts.exited, sum(&adapters, delivered));
    }
    ledger.check(
        "fabric",
        "injected = lost + offered to interfaces",
        counts.injected,
        counts.lost + sum(&nic, offered) + sum(&[PortKind::Pacer, PortKind::Limiter], |p| p.held),
    );
    let untold = fabric.core.drops.as_ref().map_or(0, |drops| drops.len());
    let records = held + counts.exited - counts.released + untold;
    ledger.check("fabric", "records = held + exits not released + drops not told", fabric.core.arena.live(), records);
    match &fabric.kind {
        Kind::Graph(_) | Kind::Classes(_) | Kind::Lossless(_) if to_hosts == nic => {}
        Kind::Graph(_) | Kind::Classes(_) | Kind::Lossless(_) => {
            // What comes to a switch goes to one of its ports, and all ports but those to hosts lead to a switch.
            let inside = [PortKind::SwitchPort];
            let (come, gone) =
                (sum(&nic, delivered) + sum(&inside, delivered), sum(&host, offered) + sum(&inside, offered));
            ledger.check("switches", "in + notifications = out", come + counts.notified, gone);
        }
        Kind::Hybrid(hybrid) => {
            use PortKind::{Circuit, Downlink, Uplink, Voq};
            let local = hybrid.local;
            let Points { routed, switched, .. } = hybrid.points;
            let from_hosts = sum(&nic, delivered) + routed;
            ledger.check(
                "tor",
                "from hosts and made for them = VOQs + local",
                from_hosts,
                sum(&[Voq], offered) + local,
            );
            ledger.check("tor", "VOQs = uplinks + circuits", sum(&[Voq], delivered), sum(&[Uplink, Circuit], offered));
            let last = if hybrid.downlinks.is_empty() { Uplink } else { Downlink };
            let arrived = sum(&[last, Circuit], delivered) + counts.notified - routed - switched;
            ledger.check("tor", "to hosts = arrived + local + notifications", sum(&host, offered), arrived + local);
            if last == Downlink {
                ledger.check(
                    "packet switch",
                    "in = out",
                    sum(&[Uplink], delivered) + switched,
                    sum(&[Downlink], offered),
                );
            }
        }
    }
    Totals {
        injected: counts.injected,
        notified: counts.notified,
        taken_in: counts.taken_in,
        exited: counts.exited,
        dropped: counts.dropped,
        lost: counts.lost,
        held,
        marked: all(|p| p.marked),
        hops: all(|p| p.hops),
        events: counts.events,
        imbalances: ledger.failures(),
    }
}
