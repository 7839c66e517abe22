//! What a queue does with the packets that come: how many may wait, and which are marked or dropped early.
//!
//! A queue is measured in one of two ways, the same for limits, thresholds and averages:
//! - in **packets**: those that wait; the one in service does not count;
//! - in **bytes**: all that is not yet sent, so the rest of the packet in service counts. At a constant rate that is a
//!   time, and it is compared as one: exact where a byte lasts a whole number of picoseconds, else each packet's
//!   rounding up counts as well.
//!
//! A packet that finds its transmitter idle does not queue: no limit drops it and no threshold marks it. RED (`red.rs`) and
//! the phantom queue (`phantom.rs`) see it all the same.
//!
//! The threshold is DCTCP's (Alizadeh et al., SIGCOMM'10, section 3.1): an ECN-capable packet is marked when the
//! instantaneous queue would exceed the threshold with it; others pass unmarked up to the limit.

use crate::phantom::{Phantom, PhantomConfig};
use crate::red::{Red, RedConfig};
use crate::{Ecn, Serializer};
use firstlight_units::{Bytes, Span, Time};

/// A queue's length: see the [module](self) for what counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// Packets that wait, the one in service not counted.
    Packets(u32),
    /// Bytes that are not yet sent.
    Bytes(Bytes),
}

/// How much a queue holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Limit {
    /// Any number.
    #[default]
    None,
    /// So many packets wait at most, the one in service not counted.
    Packets(u32),
    /// So many bytes are unsent at most, the rest of the packet in service counted.
    Bytes(Bytes),
}

/// Which packets are marked (or dropped early).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Marking {
    /// None.
    #[default]
    None,
    /// Those with which the queue would be longer than this.
    Threshold(Length),
    /// By chance, on the average queue.
    Red(RedConfig),
    /// Those that leave while a slower link's queue would be long.
    Phantom(PhantomConfig),
}

/// What a queue does. The default queues without limit and marks nothing.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Discipline {
    /// Drop beyond this.
    pub limit: Limit,
    /// Mark these.
    pub marking: Marking,
}

/// A parameter out of its range.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{parameter} {problem}")]
pub struct DisciplineError {
    /// Which one.
    pub parameter: &'static str,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl Discipline {
    /// Drops beyond `limit` packets and marks beyond `mark`, where given.
    pub fn packets(limit: Option<u32>, mark: Option<u32>) -> Self {
        Discipline {
            limit: limit.map_or(Limit::None, Limit::Packets),
            marking: mark.map_or(Marking::None, |mark| Marking::Threshold(Length::Packets(mark))),
        }
    }

    /// # Errors
    /// When a parameter is out of its range.
    pub fn check(&self) -> Result<(), DisciplineError> {
        match &self.marking {
            Marking::None | Marking::Threshold(_) => Ok(()),
            Marking::Red(red) => red.check(),
            Marking::Phantom(phantom) => phantom.check(),
        }
    }
}

/// An error unless `right`.
pub(crate) fn ensure(right: bool, parameter: &'static str, problem: impl Into<String>) -> Result<(), DisciplineError> {
    if right { Ok(()) } else { Err(DisciplineError { parameter, problem: problem.into() }) }
}

/// What a packet finds when it comes to its queue.
pub(crate) struct Found {
    pub(crate) now: Time,
    /// Packets that wait.
    pub(crate) waiting: u32,
    /// How long all that is unsent lasts.
    pub(crate) backlog: Span,
    /// How long the packet itself lasts.
    pub(crate) time: Span,
    /// The transmitter takes it at once.
    pub(crate) at_once: bool,
    /// Since when the queue has had nothing to send, if it has nothing.
    pub(crate) empty_since: Option<Time>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Pass,
    /// Set CE: of ECN-capable packets only.
    Mark,
    Drop,
}

/// A discipline at work on one queue.
#[derive(Clone, Debug)]
pub(crate) struct Warden {
    /// Packets that may wait.
    limit: u32,
    /// Mark beyond so many.
    mark: u32,
    /// What needs to see every packet.
    watch: Option<Box<Watch>>,
}

#[derive(Clone, Debug)]
struct Watch {
    /// How long what is unsent may last.
    limit: Span,
    /// Mark beyond that.
    mark: Span,
    aqm: Aqm,
}

/// Active queue management.
#[derive(Clone, Debug)]
enum Aqm {
    None,
    Red(Red),
    Phantom(Phantom),
}

impl Warden {
    /// # Panics
    /// When [`Discipline::check`] fails.
    pub(crate) fn new(discipline: &Discipline, serializer: &Serializer, seed: u64) -> Self {
        discipline.check().unwrap_or_else(|error| panic!("a discipline is checked before it is used: {error}"));
        let mut warden = Warden { limit: u32::MAX, mark: u32::MAX, watch: None };
        let mut watch = Watch { limit: Span::MAX, mark: Span::MAX, aqm: Aqm::None };
        match discipline.limit {
            Limit::None => {}
            Limit::Packets(limit) => warden.limit = limit,
            Limit::Bytes(limit) => watch.limit = serializer.time_of(limit),
        }
        match &discipline.marking {
            Marking::None => {}
            Marking::Threshold(Length::Packets(mark)) => warden.mark = *mark,
            Marking::Threshold(Length::Bytes(mark)) => watch.mark = serializer.time_of(*mark),
            Marking::Red(config) => watch.aqm = Aqm::Red(Red::new(config, serializer, seed)),
            Marking::Phantom(config) => watch.aqm = Aqm::Phantom(Phantom::new(config, serializer)),
        }
        let watches = watch.limit < Span::MAX || watch.mark < Span::MAX || !matches!(watch.aqm, Aqm::None);
        warden.watch = watches.then(|| Box::new(watch));
        warden
    }

    /// Whether it needs to see every packet; otherwise only those that find [`Warden::calm`] packets or more.
    pub(crate) fn is_watchful(&self) -> bool {
        self.watch.is_some()
    }

    /// With no more packets waiting than this there is nothing to drop or to mark, unless it is watchful.
    pub(crate) fn calm(&self) -> u32 {
        self.limit.min(self.mark)
    }

    /// Judges a packet that finds so many waiting and will wait too; for one that is not watchful.
    #[inline]
    pub(crate) fn admit_waiting(&self, ecn: Ecn, waiting: u32) -> Verdict {
        if waiting >= self.limit {
            Verdict::Drop
        } else if waiting >= self.mark && ecn != Ecn::NotEct {
            Verdict::Mark
        } else {
            Verdict::Pass
        }
    }

    /// Judges a packet that comes.
    pub(crate) fn admit(&mut self, ecn: Ecn, found: &Found) -> Verdict {
        if let Some(Watch { aqm: Aqm::Red(red), .. }) = self.watch.as_deref_mut() {
            red.on_arrival(found);
        }
        if !found.at_once && self.is_full(found) {
            return Verdict::Drop;
        }
        if let Some(Watch { aqm: Aqm::Red(red), .. }) = self.watch.as_deref_mut() {
            return red.judge(ecn);
        }
        let beyond = !found.at_once && self.is_beyond(found);
        if beyond && ecn != Ecn::NotEct { Verdict::Mark } else { Verdict::Pass }
    }

    #[inline]
    fn is_full(&self, found: &Found) -> bool {
        found.waiting >= self.limit || self.watch.as_ref().is_some_and(|watch| found.backlog + found.time > watch.limit)
    }

    #[inline]
    fn is_beyond(&self, found: &Found) -> bool {
        found.waiting >= self.mark || self.watch.as_ref().is_some_and(|watch| found.backlog + found.time > watch.mark)
    }

    /// Judges an admitted packet that will have left the transmitter at `departure`; in order of departures.
    #[inline]
    pub(crate) fn depart(&mut self, ecn: Ecn, size: u16, departure: Time) -> Verdict {
        match self.watch.as_deref_mut() {
            Some(Watch { aqm: Aqm::Phantom(phantom), .. }) => phantom.depart(ecn, size, departure),
            _ => Verdict::Pass,
        }
    }
}
