//! The log of pauses: how often and how long each class of each transmitter was paused, because of which egress, and
//! when.

use firstlight_units::{Span, Time};
use std::collections::BTreeMap;

/// The root of a pause in a circle of transmitters that wait for each other, all of which are paused.
pub(super) const CIRCLE: usize = usize::MAX;

/// The egress whose queue filled an account.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct PauseOrigin {
    /// The egress for which the account held most.
    pub(super) egress: usize,
    /// The end of the chain of egresses that waited for each other from there on, which was not paused; or [`CIRCLE`].
    pub(super) root: usize,
}

/// How many pauses there were, and how long they lasted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PauseCount {
    pub(super) pauses: u64,
    pub(super) time: Span,
}

/// The pauses of one class of one transmitter.
#[derive(Clone, Copy, Debug, Default)]
struct ClassPauses {
    /// When the class was stopped, if it is stopped.
    since: Option<Time>,
    /// The origin of the present pause, or of the last one.
    origin: PauseOrigin,
    /// The origin of the pause that was requested last.
    requested: PauseOrigin,
    count: PauseCount,
}

/// A pause that begins or ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct PauseEdge {
    pub(super) at: Time,
    pub(super) transmitter: usize,
    pub(super) priority: usize,
    pub(super) paused: bool,
}

/// The log.
pub(super) struct PauseLog {
    priorities: usize,
    classes: Vec<ClassPauses>,
    origins: BTreeMap<(usize, usize, PauseOrigin), PauseCount>,
    /// Beginnings and ends of pauses in the order of time, the first `most` of them.
    pub(super) edges: Vec<PauseEdge>,
    most: usize,
    /// Beginnings and ends beyond the most that are kept.
    pub(super) unrecorded: u64,
}

impl PauseLog {
    pub(super) fn new(transmitters: usize, priorities: usize, most: usize) -> Self {
        let classes = vec![ClassPauses::default(); transmitters * priorities];
        PauseLog { priorities, classes, origins: BTreeMap::new(), edges: vec![], most, unrecorded: 0 }
    }

    fn class(&self, transmitter: usize, priority: usize) -> &ClassPauses {
        &self.classes[transmitter * self.priorities + priority]
    }

    /// When a class of a transmitter was stopped, if it is stopped.
    pub(super) fn since(&self, transmitter: usize, priority: usize) -> Option<Time> {
        self.class(transmitter, priority).since
    }

    /// The last egress in the chain of those that wait for each other, from `egress` on. `transmitter_of` gives the
    /// transmitter that an egress's packets wait for.
    pub(super) fn root(&self, egress: usize, priority: usize, transmitter_of: impl Fn(usize) -> usize) -> usize {
        let mut at = egress;
        for _ in 0..=self.classes.len() {
            match self.class(transmitter_of(at), priority) {
                ClassPauses { since: Some(_), origin, .. } => at = origin.egress,
                _ => return at,
            }
        }
        CIRCLE
    }

    /// An account has requested a pause of its sender.
    pub(super) fn set_origin(&mut self, transmitter: usize, priority: usize, origin: PauseOrigin) {
        self.classes[transmitter * self.priorities + priority].requested = origin;
    }

    /// A pause takes effect at `at`; the class stops at `stops`, when its frame in service has left.
    pub(super) fn begin(&mut self, transmitter: usize, priority: usize, at: Time, stops: Time) {
        let class = &mut self.classes[transmitter * self.priorities + priority];
        class.since = Some(stops);
        class.origin = class.requested;
        class.count.pauses += 1;
        self.origins.entry((transmitter, priority, class.origin)).or_default().pauses += 1;
        self.record(PauseEdge { at, transmitter, priority, paused: true });
    }

    /// Records the end of a pause. Returns when the class was stopped, and the root of the pause.
    pub(super) fn end(&mut self, transmitter: usize, priority: usize, at: Time) -> (Time, usize) {
        let class = &mut self.classes[transmitter * self.priorities + priority];
        let since = class.since.take().expect("a pause ends that has begun");
        let (time, root) = (at.saturating_since(since), class.origin.root);
        class.count.time += time;
        self.origins.entry((transmitter, priority, class.origin)).or_default().time += time;
        self.record(PauseEdge { at, transmitter, priority, paused: false });
        (since, root)
    }

    fn record(&mut self, edge: PauseEdge) {
        if self.edges.len() < self.most {
            self.edges.push(edge);
        } else {
            self.unrecorded += 1;
        }
    }

    /// The part of a pause that has not ended by `now`.
    fn open(&self, transmitter: usize, priority: usize, now: Time) -> Span {
        self.since(transmitter, priority).map_or(Span::ZERO, |since| now.saturating_since(since))
    }

    /// The pauses of a class of a transmitter until `now`.
    pub(super) fn count(&self, transmitter: usize, priority: usize, now: Time) -> PauseCount {
        let PauseCount { pauses, time } = self.class(transmitter, priority).count;
        PauseCount { pauses, time: time + self.open(transmitter, priority, now) }
    }

    /// The pauses of all classes of all transmitters until `now`, by origin.
    pub(super) fn by_origin(&self, now: Time) -> impl Iterator<Item = (usize, usize, PauseOrigin, PauseCount)> + '_ {
        self.origins.iter().map(move |(&(transmitter, priority, origin), count)| {
            let present = self.class(transmitter, priority).origin == origin;
            let open = if present { self.open(transmitter, priority, now) } else { Span::ZERO };
            (transmitter, priority, origin, PauseCount { time: count.time + open, ..*count })
        })
    }
}
