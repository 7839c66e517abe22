//! The book of pauses: how often and how long each class of each transmitter was paused, who made it wait, and when.

use firstlight_units::{Span, Time};
use std::collections::BTreeMap;

/// A circle: there is no last port that is not paused itself.
pub(super) const CIRCLE: usize = usize::MAX;

/// Whose queue filled an account.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Cause {
    /// The port for which the account held most.
    pub(super) egress: usize,
    /// The port that this one waited for in turn, and so on, until one that was not paused; or [`CIRCLE`].
    pub(super) root: usize,
}

/// Pauses for one cause.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Toll {
    pub(super) pauses: u64,
    pub(super) time: Span,
}

/// One class of one transmitter.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// Since when it has been stopped, if it is.
    since: Option<Time>,
    /// Why it is paused, or was last,
    cause: Cause,
    /// and why it is about to be.
    next: Cause,
    toll: Toll,
}

/// A pause that begins or ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) at: Time,
    pub(super) transmitter: usize,
    pub(super) priority: usize,
    pub(super) paused: bool,
}

/// The book.
pub(super) struct Ledger {
    priorities: usize,
    pages: Vec<Page>,
    causes: BTreeMap<(usize, usize, Cause), Toll>,
    pub(super) entries: Vec<Entry>,
    most: usize,
    /// Entries beyond the most that are kept.
    pub(super) unrecorded: u64,
}

impl Ledger {
    pub(super) fn new(transmitters: usize, priorities: usize, most: usize) -> Self {
        let pages = vec![Page::default(); transmitters * priorities];
        Ledger { priorities, pages, causes: BTreeMap::new(), entries: vec![], most, unrecorded: 0 }
    }

    fn page(&self, transmitter: usize, priority: usize) -> &Page {
        &self.pages[transmitter * self.priorities + priority]
    }

    /// Since when a class of a transmitter has been stopped, if it is.
    pub(super) fn since(&self, transmitter: usize, priority: usize) -> Option<Time> {
        self.page(transmitter, priority).since
    }

    /// The last port in the chain of those that wait for each other, from `egress` on. `server` is the transmitter that a
    /// port's packets wait for, if that is not the port itself.
    pub(super) fn root(&self, egress: usize, priority: usize, server: impl Fn(usize) -> usize) -> usize {
        let mut at = egress;
        for _ in 0..=self.pages.len() {
            match self.page(server(at), priority) {
                Page { since: Some(_), cause, .. } => at = cause.egress,
                _ => return at,
            }
        }
        CIRCLE
    }

    /// An account has decided to pause its sender.
    pub(super) fn blame(&mut self, transmitter: usize, priority: usize, cause: Cause) {
        let page = &mut self.pages[transmitter * self.priorities + priority];
        page.next = cause;
    }

    /// A pause takes effect at `at`; the class stops at `stops`, when its frame in service has left.
    pub(super) fn begin(&mut self, transmitter: usize, priority: usize, at: Time, stops: Time) {
        let page = &mut self.pages[transmitter * self.priorities + priority];
        page.since = Some(stops);
        page.cause = page.next;
        page.toll.pauses += 1;
        self.causes.entry((transmitter, priority, page.cause)).or_default().pauses += 1;
        self.record(Entry { at, transmitter, priority, paused: true });
    }

    /// A pause ends.
    pub(super) fn end(&mut self, transmitter: usize, priority: usize, at: Time) {
        let page = &mut self.pages[transmitter * self.priorities + priority];
        let since = page.since.take().expect("a pause ends that has begun");
        let time = at.saturating_since(since);
        page.toll.time += time;
        self.causes.entry((transmitter, priority, page.cause)).or_default().time += time;
        self.record(Entry { at, transmitter, priority, paused: false });
    }

    fn record(&mut self, entry: Entry) {
        if self.entries.len() < self.most {
            self.entries.push(entry);
        } else {
            self.unrecorded += 1;
        }
    }

    /// The part of a pause that has not ended by `now`.
    fn open(&self, transmitter: usize, priority: usize, now: Time) -> Span {
        self.since(transmitter, priority).map_or(Span::ZERO, |since| now.saturating_since(since))
    }

    /// What a class of a transmitter has waited until `now`.
    pub(super) fn toll(&self, transmitter: usize, priority: usize, now: Time) -> Toll {
        let Toll { pauses, time } = self.page(transmitter, priority).toll;
        Toll { pauses, time: time + self.open(transmitter, priority, now) }
    }

    /// The same by cause.
    pub(super) fn tolls(&self, now: Time) -> impl Iterator<Item = (usize, usize, Cause, Toll)> + '_ {
        self.causes.iter().map(move |(&(transmitter, priority, cause), toll)| {
            let page = self.page(transmitter, priority);
            let open = if page.cause == cause { self.open(transmitter, priority, now) } else { Span::ZERO };
            (transmitter, priority, cause, Toll { time: toll.time + open, ..*toll })
        })
    }
}
