//! The report of pauses at the end of a run.

use super::deadlock::{self, Circle};
use super::pause_log::{CIRCLE, PauseCount, PauseEdge, PauseOrigin};
use super::{LosslessFabric, PauseState};
use crate::fabric::core::Core;
use crate::report::{DeadlockReport, PauseCause, PauseEvent, PauseReport, PausedPort};
use firstlight_net::pfc::PfcLimits;
use firstlight_units::Time;

/// The report of a fabric's pauses until now.
pub(super) fn pause_report(fabric: &impl LosslessFabric, core: &Core) -> PauseReport {
    let lossless = fabric.lossless();
    let priorities = lossless.accounts.priorities();
    let all = fabric.inward(core).into_iter().flat_map(|from| (0..priorities).map(move |class| (from, class)));
    let by_origin = lossless.log.by_origin(core.now);
    let dead = |priority| deadlock::find(&lossless.accounts, &lossless.log, &resting(fabric, core, priority), priority);
    PauseReport {
        ports: all.map(|(from, priority)| paused_port(fabric, core, from, priority)).collect(),
        causes: by_origin.map(|(from, class, origin, count)| cause(fabric, core, from, class, origin, count)).collect(),
        events: lossless.log.edges.iter().map(|edge| event(fabric, core, edge)).collect(),
        unrecorded: lossless.log.unrecorded,
        lost: lossless.lost,
        deadlocks: (0..priorities).filter_map(dead).map(|circle| deadlock(fabric, core, &circle)).collect(),
    }
}

/// The names of all pause points, and whether a pause is of all classes.
pub(super) fn pause_points(fabric: &impl LosslessFabric) -> (Vec<String>, bool) {
    let lossless = fabric.lossless();
    let names = (0..lossless.points.len()).map(|point| fabric.name(point)).collect();
    (names, lossless.config.whole_link)
}

fn paused_port(fabric: &impl LosslessFabric, core: &Core, from: usize, priority: usize) -> PausedPort {
    let lossless = fabric.lossless();
    let pausable = lossless.points[from].reverse.is_some();
    let count = lossless.log.count(from, priority, core.now);
    let victim = || core.own(lossless.victims.time(from * lossless.accounts.priorities() + priority, core.now));
    PausedPort {
        name: fabric.name(from),
        class: class(fabric, priority),
        lossless: lossless.config.has(priority) && pausable,
        packets: fabric.packets(core, from, priority),
        pauses: count.pauses,
        paused: core.own(count.time),
        victim: fabric.knows_egresses().then(victim),
        peak: lossless.accounts.get(from, priority).peak,
        limits: if pausable { *lossless.accounts.limits(from) } else { PfcLimits::default() },
    }
}

fn cause(
    fabric: &impl LosslessFabric,
    core: &Core,
    from: usize,
    priority: usize,
    origin: PauseOrigin,
    count: PauseCount,
) -> PauseCause {
    PauseCause {
        name: fabric.name(from),
        class: class(fabric, priority),
        switch: fabric.switch_name(from),
        egress: fabric.name(origin.egress),
        root: (origin.root != CIRCLE).then(|| fabric.name(origin.root)),
        pauses: count.pauses,
        paused: core.own(count.time),
    }
}

fn event(fabric: &impl LosslessFabric, core: &Core, edge: &PauseEdge) -> PauseEvent {
    let (name, class) = (fabric.name(edge.transmitter), class(fabric, edge.priority));
    PauseEvent { at: core.own(edge.at - Time::ZERO), name, class, paused: edge.paused }
}

fn deadlock(fabric: &impl LosslessFabric, core: &Core, circle: &Circle) -> DeadlockReport {
    DeadlockReport {
        class: class(fabric, circle.priority),
        ports: circle.transmitters.iter().map(|transmitter| fabric.name(*transmitter)).collect(),
        since: core.own(circle.since - Time::ZERO),
        stopped: circle.stopped,
    }
}

/// The class as reports have it: none for all together.
fn class(fabric: &impl LosslessFabric, priority: usize) -> Option<u8> {
    (!fabric.lossless().config.whole_link).then_some(priority as u8)
}

/// Which pause points are paused in this class, have nothing of it in service, and have no change ahead.
fn resting(fabric: &impl LosslessFabric, core: &Core, priority: usize) -> Vec<bool> {
    let lossless = fabric.lossless();
    let rests = |(point, state): (usize, &PauseState)| {
        let stopped = lossless.log.since(point, priority).is_some_and(|since| since <= core.now);
        let settled = |reverse| state.frames.is_empty() && !fabric.pause_frame_pending(core, reverse);
        let wanted = lossless.accounts.paused(point) & (1 << priority) != 0;
        stopped && wanted && state.reverse.is_some_and(settled)
    };
    lossless.points.iter().enumerate().map(rests).collect()
}
