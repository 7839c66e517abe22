//! States and numbers over time, as far as they are in the window of time that a timeline shows.

use firstlight_formats::perfetto::{SliceFields, TimelineWriter, TrackId};
use firstlight_units::{Span, Time};

/// The time that is shown, and the file.
pub(super) struct TraceWindow {
    pub(super) file: TimelineWriter,
    pub(super) scale: u64,
    pub(super) from: Span,
    pub(super) until: Span,
}

impl TraceWindow {
    /// A moment in the experiment's own time.
    fn own(&self, at: Time) -> Span {
        Span::from_ps(at.as_ps() / self.scale)
    }

    pub(super) fn has(&self, at: Time) -> bool {
        let own = self.own(at);
        self.from <= own && own <= self.until
    }

    /// The nearest moment that is shown, in nanoseconds.
    fn ns(&self, at: Time) -> u64 {
        self.own(at).clamp(self.from, self.until).as_ps() / 1000
    }

    /// Shows what lasted from one moment to another.
    pub(super) fn slice(&mut self, track: TrackId, from: Time, until: Time, name: &str, fields: SliceFields<'_>) {
        if self.own(from) <= self.until && self.own(until) >= self.from && from < until {
            self.file.slice(track, self.ns(from), self.ns(until), name, fields);
        }
    }

    /// Shows what happened at a moment.
    pub(super) fn instant(&mut self, track: TrackId, at: Time, name: &str) {
        if self.has(at) {
            self.file.instant(track, self.ns(at), name);
        }
    }
}

/// A state that lasts until it changes.
#[derive(Debug)]
pub(super) struct StateTrack {
    track: TrackId,
    now: Option<(Time, &'static str)>,
}

impl StateTrack {
    pub(super) const fn new(track: TrackId) -> Self {
        StateTrack { track, now: None }
    }

    /// The state is this from now on.
    pub(super) fn set(&mut self, window: &mut TraceWindow, at: Time, next: Option<&'static str>) {
        if self.now.map(|(_, state)| state) == next {
            return;
        }
        if let Some((since, state)) = self.now {
            window.slice(self.track, since, at, state, SliceFields::default());
        }
        self.now = next.map(|state| (at, state));
    }
}

/// A number that is the same until it changes.
#[derive(Debug)]
pub(super) struct NumberTrack {
    track: TrackId,
    value: Option<i64>,
    /// Whether the value is in the file.
    shown: bool,
}

impl NumberTrack {
    pub(super) const fn new(track: TrackId) -> Self {
        NumberTrack { track, value: None, shown: false }
    }

    /// The number is this from now on. What it was at the beginning of the window is shown there.
    pub(super) fn set(&mut self, window: &mut TraceWindow, at: Time, value: i64) {
        if window.has(at) {
            if let Some(before) = self.value.filter(|_| !self.shown) {
                window.file.count(self.track, window.from.as_ps() / 1000, before);
            }
            if self.value != Some(value) {
                window.file.count(self.track, window.ns(at), value);
            }
            self.shown = true;
        }
        self.value = Some(value);
    }
}
