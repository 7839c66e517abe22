//! What a packet waited for before its service at a place: other packets, pauses, the schedule.

use super::cause::{Cause, Where, Who};
use super::index::{Index, PairState, Service, code_of};
use super::service_log::{Served, ServiceLog};
use firstlight_net::Serializer;
use firstlight_net::pfc::PAUSE_FRAME;
use firstlight_sim::causes::{Paused, PlaceKind};
use firstlight_units::Time;

/// Pause frames that one gap between packets may hold, one for each class and direction.
const MOST_PAUSE_FRAMES: u64 = 16;

/// A part of a wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitPart {
    pub(super) from: Time,
    pub(super) until: Time,
    pub(super) cause: Cause,
    pub(super) place: Where,
    pub(super) who: Who,
}

/// What becomes of the parts of a wait, which are found from its end to its beginning.
pub(super) trait WaitParts<'a> {
    /// Whether parts of a wait that begins at a moment can be added up at once.
    fn adds_up(&self, from: Time) -> bool;

    /// Takes a part.
    fn push(&mut self, part: WaitPart);

    /// Takes all parts between two moments, in which a place served without a gap.
    fn push_served(&mut self, span: [Time; 2], head: (Cause, Where), log: &'a ServiceLog, served: Served);
}

/// A wait that is divided.
struct DividedWait<'a, 'p, P> {
    index: &'a Index<'a>,
    parts: &'p mut P,
}

impl<'a, P: WaitParts<'a>> DividedWait<'a, '_, P> {
    fn push(&mut self, from: Time, until: Time, cause: Cause, place: Where, who: Who) {
        self.parts.push(WaitPart { from, until, cause, place, who });
    }

    /// A wait for the transmitter of a place while it serves without a gap, up to a service that the log numbers.
    /// Returns whether that was so.
    fn at_once(
        &mut self,
        code: u32,
        [from, until]: [Time; 2],
        head: (Cause, Where),
        last: impl FnOnce(&ServiceLog) -> usize,
    ) -> bool {
        let Some(log) = self.index.log(code).filter(|_| self.parts.adds_up(from)) else { return false };
        let Some(served) = log.served(last(log), [from, until]) else { return false };
        self.parts.push_served([from, until], head, log, served);
        true
    }

    /// A wait for the transmitter of a place: for the packets that it served, the latest first, and what `idle` says in
    /// between.
    fn behind(
        &mut self,
        code: u32,
        services: impl Iterator<Item = (Time, Time, Who)>,
        [from, until]: [Time; 2],
        (cause, place): (Cause, Where),
        idle: impl Fn(&mut Self, Time, Time),
    ) {
        let (mut at, mut count) = (until, 0);
        for (begins, ends, who) in services.take_while(|(_, ends, _)| *ends > from) {
            let (begins, ends) = (begins.max(from), ends.min(at));
            idle(self, ends, at);
            self.push(begins, ends, cause, place, who);
            at = at.min(begins);
            count += 1;
        }
        self.index.count(code, count);
        idle(self, from, at);
    }

    /// The services of a place that overlap a wait, the latest first.
    fn services(&self, code: u32, [from, until]: [Time; 2]) -> impl Iterator<Item = Service> + use<P> {
        let all = self.index.services_after(code, from).take_while(|service| service.begins < until);
        all.collect::<Vec<_>>().into_iter().rev()
    }

    /// A transmitter of this name sent no packet though some waited: it was paused, or else there is `another` cause.
    fn paused(&mut self, name: &str, place: Where, link: Option<Serializer>, from: Time, until: Time, another: Cause) {
        let (mut at, mut parts) = (from, vec![]);
        while at < until {
            let over = |pause: &&Paused| pause.from <= at && pause.until > at;
            let now = self.index.pauses_after(name, at).take_while(|pause| pause.from < until);
            let pauses: Vec<&Paused> = now.collect();
            let next = pauses.iter().map(|pause| pause.from).filter(|begin| *begin > at).min().unwrap_or(until);
            if let Some(pause) = pauses.iter().copied().find(over) {
                let ends = pause.until.min(until);
                let who = pause.root.map_or(Who::Circle, |root| Who::Root(root as u32));
                parts.push((at, ends, Cause::Pause, who));
                at = ends;
            } else {
                let next = next.min(until);
                let frames = link.filter(|_| !self.index.report.points.is_empty() && another == Cause::Unknown);
                let most = frames.map_or(0, |link| link.frame_time(PAUSE_FRAME).as_ps() * MOST_PAUSE_FRAMES);
                let is_frames = (next - at).as_ps() <= most;
                let (cause, who) = if is_frames { (Cause::Pause, Who::PauseFrames) } else { (another, Who::Nobody) };
                parts.push((at, next, cause, who));
                at = next;
            }
        }
        for (from, until, cause, who) in parts.into_iter().rev() {
            self.push(from, until, cause, place, who);
        }
    }

    /// A wait in a VOQ, from which the packet leaves over a place of this kind.
    fn in_voq(&mut self, left_by: PlaceKind, pair: (u16, u16), from: Time, until: Time) {
        let (src, dst) = pair;
        let (voq, states) = match (self.index.report.segregated, left_by) {
            (true, PlaceKind::Uplink) => (Where::MiceVoq(src, dst), vec![(from, until, PairState::PacketPath)]),
            _ => (Where::Voq(src, dst), self.index.states(pair, from, until)),
        };
        let is_elephant = self.index.report.segregated && left_by == PlaceKind::Circuit;
        for (from, until, state) in states.into_iter().rev() {
            let (kind, name, idle) = match state {
                PairState::Night => {
                    self.push(from, until, Cause::Night, voq, Who::Nobody);
                    continue;
                }
                PairState::PacketPath if is_elephant => {
                    self.push(from, until, Cause::NoCircuit, voq, Who::Nobody);
                    continue;
                }
                PairState::Day => (PlaceKind::Circuit, format!("circuit.to.{dst}"), Cause::DayTooShort),
                PairState::PacketPath => (PlaceKind::Uplink, format!("uplink.{src}"), Cause::PacketSwitch),
            };
            let code = code_of(kind, src);
            let head = (Cause::Queueing, Where::Place(code));
            if self.at_once(code, [from, until], head, |log| log.at(until)) {
                continue;
            }
            let services =
                self.services(code, [from, until]).map(|service| (service.begins, service.ends, service.who));
            self.behind(code, services, [from, until], head, |parts, from, until| {
                parts.paused(&name, voq, None, from, until, idle);
            });
        }
    }
}

/// Divides what the packet of a hop waited for between two moments, from the end to the beginning.
pub(super) fn divide<'a>(parts: &mut impl WaitParts<'a>, index: &'a Index<'a>, hop: usize, from: Time, until: Time) {
    if from >= until {
        return;
    }
    let mut parts = DividedWait { index, parts };
    let code = index.report.hops.place(hop);
    let (place, at) = (index.place(code), Where::Place(code));
    match place.kind {
        PlaceKind::Uplink | PlaceKind::Circuit => parts.in_voq(place.kind, index.pair(index.owner(hop)), from, until),
        PlaceKind::Stack => parts.push(from, until, Cause::Stack, at, Who::Nobody),
        PlaceKind::Pacer => parts.push(from, until, Cause::HostPacer, at, Who::Nobody),
        PlaceKind::Limiter => parts.push(from, until, Cause::RateLimiter, at, Who::Nobody),
        PlaceKind::Nic | PlaceKind::Port | PlaceKind::Downlink | PlaceKind::Adapter => {
            let cause = if place.kind == PlaceKind::Nic { Cause::InterfaceQueue } else { Cause::Queueing };
            let before = index.report.hops.order(hop).checked_sub(1);
            if before.is_some_and(|last| parts.at_once(code, [from, until], (cause, at), |_| last)) {
                return;
            }
            let idle = |parts: &mut DividedWait<'a, '_, _>, from, until| {
                parts.paused(&place.name, at, place.serializer, from, until, Cause::Unknown);
            };
            match index.log(code) {
                Some(log) => {
                    parts.behind(code, log.before(index.report.hops.order(hop)), [from, until], (cause, at), idle);
                }
                None => {
                    let one_by_one =
                        index.services_before(hop).map(|service| (service.begins, service.ends, service.who));
                    parts.behind(code, one_by_one, [from, until], (cause, at), idle);
                }
            }
        }
    }
}
