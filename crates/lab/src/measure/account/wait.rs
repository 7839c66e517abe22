//! What a packet waited for before its service at a place: other packets, pauses, the schedule.

use super::cause::{Cause, Step, Waiting, Where, Who};
use super::index::{Index, PairState, code_of};
use firstlight_net::Serializer;
use firstlight_net::pfc::PAUSE_FRAME;
use firstlight_sim::causes::{Paused, PlaceKind};
use firstlight_units::Time;

/// Pause frames that one gap between packets may hold, one for each class and direction.
const MOST_PAUSE_FRAMES: u64 = 16;

/// A wait that is divided.
struct WaitParts<'a, 'b> {
    index: &'a Index<'a>,
    waiting: Waiting,
    steps: &'b mut Vec<Step>,
}

impl WaitParts<'_, '_> {
    fn push(&mut self, from: Time, until: Time, cause: Cause, place: Where, who: Who) {
        if let Some(last) = self.steps.last_mut()
            && last.until == from
            && (last.cause, last.place, last.who) == (cause, place, who)
        {
            last.until = until;
        } else if from < until {
            self.steps.push(Step { from, until, waiting: self.waiting, cause, place, who, lost: None });
        }
    }

    /// A wait for the transmitter of a place: for the packets that it served, and what `idle` says in between.
    fn behind(&mut self, code: u32, from: Time, until: Time, cause: Cause, idle: impl Fn(&mut Self, Time, Time)) {
        let mut at = from;
        let index = self.index;
        for service in index.services_after(code, from).take_while(|service| service.begins < until) {
            let (begins, ends) = (service.begins.max(at), service.ends.min(until));
            idle(self, at, begins);
            self.push(begins, ends, cause, Where::Place(code), index.served(&service));
            at = at.max(ends);
        }
        idle(self, at, until);
    }

    /// A transmitter of this name sent no packet though some waited: it was paused, or else there is `another` cause.
    fn paused(&mut self, name: &str, place: Where, link: Option<Serializer>, from: Time, until: Time, another: Cause) {
        let mut at = from;
        while at < until {
            let over = |pause: &&Paused| pause.from <= at && pause.until > at;
            let now = self.index.pauses_after(name, at).take_while(|pause| pause.from < until);
            let pauses: Vec<&Paused> = now.collect();
            let next = pauses.iter().map(|pause| pause.from).filter(|begin| *begin > at).min().unwrap_or(until);
            if let Some(pause) = pauses.iter().copied().find(over) {
                let ends = pause.until.min(until);
                let who = pause.root.map_or(Who::Circle, |root| Who::Root(root as u32));
                self.push(at, ends, Cause::Pause, place, who);
                at = ends;
            } else {
                let next = next.min(until);
                let frames = link.filter(|_| !self.index.report.points.is_empty() && another == Cause::Unknown);
                let most = frames.map_or(0, |link| link.frame_time(PAUSE_FRAME).as_ps() * MOST_PAUSE_FRAMES);
                let is_frames = (next - at).as_ps() <= most;
                let (cause, who) = if is_frames { (Cause::Pause, Who::PauseFrames) } else { (another, Who::Nobody) };
                self.push(at, next, cause, place, who);
                at = next;
            }
        }
    }

    /// A wait in a VOQ.
    fn in_voq(&mut self, pair: (u16, u16), from: Time, until: Time) {
        let (src, dst) = pair;
        let voq = Where::Voq(src, dst);
        for (from, until, state) in self.index.states(pair, from, until) {
            match state {
                PairState::Night => self.push(from, until, Cause::Night, voq, Who::Nobody),
                PairState::Day => {
                    let code = code_of(PlaceKind::Circuit, src);
                    let name = format!("circuit.to.{dst}");
                    self.behind(code, from, until, Cause::Queueing, |parts, from, until| {
                        parts.paused(&name, voq, None, from, until, Cause::DayTooShort);
                    });
                }
                PairState::PacketPath => {
                    let code = code_of(PlaceKind::Uplink, src);
                    let name = format!("uplink.{src}");
                    self.behind(code, from, until, Cause::Queueing, |parts, from, until| {
                        parts.paused(&name, voq, None, from, until, Cause::PacketSwitch);
                    });
                }
            }
        }
    }
}

/// Appends what the packet of a hop waited for between two moments, in order.
pub(super) fn divide(index: &Index<'_>, hop: usize, from: Time, until: Time, waiting: Waiting, steps: &mut Vec<Step>) {
    if from >= until {
        return;
    }
    let mut parts = WaitParts { index, waiting, steps };
    let code = index.report.hops[hop].place;
    let place = index.place(code);
    match place.kind {
        PlaceKind::Uplink | PlaceKind::Circuit => parts.in_voq(index.pair(index.owner(hop)), from, until),
        PlaceKind::Stack => parts.push(from, until, Cause::Stack, Where::Place(code), Who::Nobody),
        PlaceKind::Pacer => parts.push(from, until, Cause::HostPacer, Where::Place(code), Who::Nobody),
        PlaceKind::Limiter => parts.push(from, until, Cause::RateLimiter, Where::Place(code), Who::Nobody),
        PlaceKind::Nic | PlaceKind::Port | PlaceKind::Downlink | PlaceKind::Adapter => {
            let cause = if place.kind == PlaceKind::Nic { Cause::InterfaceQueue } else { Cause::Queueing };
            parts.behind(code, from, until, cause, |parts, from, until| {
                parts.paused(&place.name, Where::Place(code), place.serializer, from, until, Cause::Unknown);
            });
        }
    }
}
