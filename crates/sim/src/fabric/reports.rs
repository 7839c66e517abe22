//! Counting up: the whole fabric's packets, and the identities that must hold between them.

use super::Fabric;
use super::core::FabricCounts;
use crate::conserve::Violations;
use crate::report::{PortKind, PortReport, Totals};

/// The packets that all ports of some kinds counted.
pub(super) struct PacketSums<'a> {
    ports: &'a [PortReport],
    counts: &'a FabricCounts,
}

impl PacketSums<'_> {
    fn sum(&self, kinds: &[PortKind], of: fn(&PortReport) -> u64) -> u64 {
        self.ports.iter().filter(|port| kinds.contains(&port.kind)).map(of).sum()
    }

    /// Packets offered to ports of these kinds.
    pub(super) fn offered(&self, kinds: &[PortKind]) -> u64 {
        self.sum(kinds, |port| port.offered)
    }

    /// Packets that ports of these kinds have delivered.
    pub(super) fn delivered(&self, kinds: &[PortKind]) -> u64 {
        self.sum(kinds, |port| port.delivered)
    }

    /// Notifications that switches have sent.
    pub(super) fn notified(&self) -> u64 {
        self.counts.notified
    }
}

/// The fabric's counts, and every identity that fails.
pub(super) fn totals(fabric: &Fabric) -> Totals {
    let (ports, counts) = (fabric.ports(), &fabric.core.counts);
    let all = |of: fn(&PortReport) -> u64| -> u64 { ports.iter().map(of).sum() };
    let held = all(|port| port.held);
    let sums = PacketSums { ports: &ports, counts };
    let mut violations = Violations::default();
    for port in &ports {
        let parts = port.delivered + port.dropped + port.held;
        violations.check(&port.name, "offered = delivered + dropped + held", port.offered, parts);
    }
    violations.check("fabric", "drops = drops of all ports", counts.dropped, all(|port| port.dropped));
    check_edges(fabric, &sums, held, &mut violations);
    fabric.kind.check_switches(&sums, &mut violations);
    Totals {
        injected: counts.injected,
        notified: counts.notified,
        taken_in: counts.notifications_received,
        exited: counts.exited,
        dropped: counts.dropped,
        lost: counts.lost,
        held,
        marked: all(|port| port.marked),
        hops: all(|port| port.hops),
        events: counts.events,
        imbalances: violations.into_imbalances(),
    }
}

/// Checks that packets which enter the fabric at its edge leave it there, are lost, or are held.
fn check_edges(fabric: &Fabric, sums: &PacketSums<'_>, held: u64, violations: &mut Violations) {
    let (core, counts) = (&fabric.core, sums.counts);
    let entered = counts.injected + counts.notified;
    let parts = counts.exited + counts.notifications_received + counts.dropped + counts.lost + held;
    let identity = "injected + notifications = exited + notifications received + dropped + lost + held";
    violations.check("fabric", identity, entered, parts);
    let delivered = sums.delivered(&[fabric.kind.last_hop()]);
    let in_stack = sums.sum(&[PortKind::ReceiveStack], |port| port.held);
    let adapters = [PortKind::Adapter];
    if core.adapters.is_empty() {
        let left = counts.exited + counts.notifications_received + in_stack;
        violations.check("fabric", "exits + notifications received = deliveries to hosts", left, delivered);
    } else {
        let kept = sums.offered(&adapters) + counts.notifications_received;
        violations.check("fabric", "adapters + notifications received = deliveries to hosts", kept, delivered);
        violations.check(
            "fabric",
            "exits = deliveries of adapters",
            counts.exited + in_stack,
            sums.delivered(&adapters),
        );
    }
    let held_back = sums.sum(&[PortKind::SendStack, PortKind::Pacer, PortKind::Limiter], |port| port.held);
    violations.check(
        "fabric",
        "injected = lost + offered to interfaces",
        counts.injected,
        counts.lost + sums.offered(&[PortKind::HostNic]) + held_back,
    );
    let waiting = core.drops.as_ref().map_or(0, |drops| drops.len());
    let records = held + counts.exited - counts.released + waiting;
    violations.check("fabric", "records = held + exits not released + drops not taken", core.arena.live(), records);
}
