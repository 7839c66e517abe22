//! The policer of one queue: it applies the discipline to the packets that arrive and leave.

use super::{Aqm, Discipline, Length, QueueAqm};
use crate::{Ecn, Serializer};
use firstlight_units::{Span, Time};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// The state of a queue at which a packet arrives.
pub(crate) struct QueueState {
    pub(crate) now: Time,
    /// Packets that wait.
    pub(crate) waiting: u32,
    /// How long it takes to send everything that is unsent.
    pub(crate) backlog: Span,
    /// How long it takes to send the arriving packet.
    pub(crate) time: Span,
    /// Whether the transmitter takes the packet at once.
    pub(crate) at_once: bool,
    /// When the queue became empty, if it is empty.
    pub(crate) empty_since: Option<Time>,
}

/// The decision on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Pass,
    /// Set CE: of ECN-capable packets only.
    Mark,
    Drop,
}

/// The policer of one queue: it applies the discipline.
#[derive(Clone, Debug)]
pub(crate) struct Policer {
    /// Packets that may wait.
    limit: u32,
    /// Mark beyond this number of packets.
    mark: u32,
    /// The rules that need to see every packet.
    rules: Option<Box<PerPacketRules>>,
}

/// Rules that need more than the number of packets that wait.
#[derive(Clone, Debug)]
struct PerPacketRules {
    /// The longest time that sending the queue may take; packets beyond it are dropped.
    limit: Span,
    /// Packets are marked when sending the queue takes longer than this.
    mark: Span,
    /// Whether packets beyond a threshold that cannot be marked are dropped; `None`: they pass.
    non_ect: Option<NonEctDrops>,
    aqm: QueueAqm,
}

impl Default for PerPacketRules {
    fn default() -> Self {
        PerPacketRules { limit: Span::MAX, mark: Span::MAX, non_ect: None, aqm: QueueAqm::None }
    }
}

/// Drops of packets that cannot be marked.
#[derive(Clone, Debug)]
struct NonEctDrops {
    probability: f64,
    random: Xoshiro256PlusPlus,
}

impl NonEctDrops {
    fn judge(&mut self) -> Verdict {
        // A number from 0 to 1, without 1: a probability of 1 always drops.
        let drawn = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        if drawn < self.probability { Verdict::Drop } else { Verdict::Pass }
    }
}

impl Policer {
    /// The policer of one queue. `discipline` has passed [`Discipline::check`].
    pub(crate) fn new(discipline: &Discipline, serializer: &Serializer, seed: u64) -> Self {
        let aqm = QueueAqm::new(discipline, serializer, seed);
        let non_ect = (discipline.drop_non_ect > 0.0).then(|| NonEctDrops {
            probability: discipline.drop_non_ect,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        });
        let rules = PerPacketRules { non_ect, aqm, ..PerPacketRules::default() };
        Policer::with(discipline.queue, discipline.ecn, rules, serializer)
    }

    /// A policer with the limit, the threshold and these rules; the bounds of `rules` itself are ignored.
    fn with(limit: Option<Length>, threshold: Option<Length>, rules: PerPacketRules, serializer: &Serializer) -> Self {
        let mut policer = Policer { limit: u32::MAX, mark: u32::MAX, rules: None };
        let mut rules = PerPacketRules { limit: Span::MAX, mark: Span::MAX, ..rules };
        match limit {
            None => {}
            Some(Length::Packets(limit)) => policer.limit = limit,
            Some(Length::Bytes(limit)) => rules.limit = serializer.time_of(limit),
        }
        match threshold {
            None => {}
            Some(Length::Packets(mark)) => policer.mark = mark,
            Some(Length::Bytes(mark)) => rules.mark = serializer.time_of(mark),
        }
        let by_time = rules.limit < Span::MAX || rules.mark < Span::MAX;
        let needed = by_time || rules.non_ect.is_some() || !matches!(rules.aqm, QueueAqm::None);
        policer.rules = needed.then(|| Box::new(rules));
        policer
    }

    /// Changes the queue's limit and its threshold for marks. All other state is kept.
    pub(crate) fn resize(&mut self, limit: Option<Length>, threshold: Option<Length>, serializer: &Serializer) {
        let rules = self.rules.take().map_or_else(PerPacketRules::default, |rules| *rules);
        *self = Policer::with(limit, threshold, rules, serializer);
    }

    /// Whether the policer needs to see every packet; otherwise only those that find [`Policer::calm`] packets or more.
    #[inline]
    pub(crate) fn sees_every_packet(&self) -> bool {
        self.rules.is_some()
    }

    /// The number of waiting packets up to which the policer neither drops nor marks, unless it sees every packet.
    pub(crate) fn calm(&self) -> u32 {
        self.limit.min(self.mark)
    }

    /// Whether a queue of `waiting` packets, which takes `backlog` to send, is longer than the limit.
    pub(crate) fn is_exceeded(&self, waiting: u32, backlog: Span) -> bool {
        waiting > self.limit || self.rules.as_ref().is_some_and(|rules| backlog > rules.limit)
    }

    /// How long a queue must have been empty for the time to count as idle.
    pub(crate) fn idle_step(&self) -> Span {
        self.rules.as_ref().map_or(Span::ZERO, |rules| rules.aqm.idle_step())
    }

    /// Judges a packet that finds `waiting` packets in the queue and will wait too, for a policer that does not see
    /// every packet.
    #[inline]
    pub(crate) fn admit_waiting(&self, ecn: Ecn, waiting: u32) -> Verdict {
        if waiting >= self.limit {
            Verdict::Drop
        } else if waiting >= self.mark {
            congestion(ecn)
        } else {
            Verdict::Pass
        }
    }

    /// Judges an arriving packet.
    pub(crate) fn admit(&mut self, ecn: Ecn, state: &QueueState) -> Verdict {
        if let Some(rules) = &mut self.rules {
            rules.aqm.on_arrival(state);
        }
        if !state.at_once && self.is_full(state) {
            return Verdict::Drop;
        }
        if let Some(verdict) = self.rules.as_mut().and_then(|rules| rules.aqm.judge(ecn)) {
            return verdict;
        }
        if state.at_once || !self.is_beyond(state) {
            return Verdict::Pass;
        }
        match self.rules.as_deref_mut().and_then(|rules| rules.non_ect.as_mut()) {
            Some(drops) if ecn == Ecn::NotEct => drops.judge(),
            _ => congestion(ecn),
        }
    }

    #[inline]
    fn is_full(&self, state: &QueueState) -> bool {
        state.waiting >= self.limit || self.rules.as_ref().is_some_and(|rules| state.backlog + state.time > rules.limit)
    }

    #[inline]
    fn is_beyond(&self, state: &QueueState) -> bool {
        state.waiting >= self.mark || self.rules.as_ref().is_some_and(|rules| state.backlog + state.time > rules.mark)
    }

    /// Judges an admitted packet that will have left the transmitter at `departure`; in order of departures.
    #[inline]
    pub(crate) fn depart(&mut self, ecn: Ecn, size: u16, departure: Time) -> Verdict {
        let marks = self.rules.as_mut().is_some_and(|rules| rules.aqm.depart(size, departure));
        if marks { congestion(ecn) } else { Verdict::Pass }
    }
}

/// The decision on a packet that is to be marked: it is marked if it can be.
#[inline]
fn congestion(ecn: Ecn) -> Verdict {
    if ecn == Ecn::NotEct { Verdict::Pass } else { Verdict::Mark }
}
