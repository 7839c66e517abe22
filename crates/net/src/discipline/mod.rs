//! Queue disciplines: how many packets may wait in a queue, and which packets are marked or dropped early.
//!
//! A queue is measured in one of two ways, the same for limits, thresholds and averages:
//! - in **packets**: those that wait; the one in service does not count;
//! - in **bytes**: all that is not yet sent, so the rest of the packet in service counts. At a constant rate that is a
//!   time, and times are compared. The comparison is exact where a byte lasts a whole number of picoseconds; elsewhere
//!   it includes the rounding up of each packet's time.
//!
//! A packet that finds its transmitter idle does not queue: no limit drops it and no threshold marks it. RED (`red.rs`)
//! and the phantom queue (`phantom.rs`) see it all the same.
//!
//! The threshold is DCTCP's (Alizadeh et al., SIGCOMM'10, section 3.1): an ECN-capable packet is marked when the
//! instantaneous queue would exceed the threshold with it; others pass unmarked up to the limit, or are dropped there
//! with `drop_non_ect`, as by the WRED of switches (Judd, NSDI'15).

mod phantom;
mod red;

pub use phantom::PhantomConfig;
pub use red::{Band, Drops, RedConfig};

use crate::{Ecn, Serializer};
use firstlight_units::{Bytes, SettingError, Span, Time};
use phantom::Phantom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use red::Red;

/// A queue's length. The [module](self) says which packets and bytes count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize), serde(untagged))]
pub enum Length {
    /// Packets that wait, the one in service not counted.
    Packets(u32),
    /// Bytes that are not yet sent.
    Bytes(Bytes),
}

impl std::fmt::Display for Length {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Length::Packets(packets) => write!(f, "{packets} packets"),
            Length::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

#[cfg(feature = "spec")]
impl schemars::JsonSchema for Length {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Length".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let size = generator.subschema_for::<Bytes>();
        schemars::json_schema!({
            "anyOf": [{ "type": "integer", "minimum": 1, "maximum": 16_777_216, "x-of": "packets" }, size],
            "examples": [100],
            "x-type": "a number of packets or a size",
        })
    }
}

/// A queue discipline. The default queues without limit and marks nothing.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct Discipline {
    /// How many packets may wait, or how much data may be unsent. Packets beyond this are dropped.
    #[cfg_attr(feature = "spec", schemars(extend("x-without" = "no limit")))]
    pub queue: Option<Length>,
    /// Mark ECN-capable packets when the queue would exceed this (DCTCP).
    #[cfg_attr(feature = "spec", schemars(extend("x-without" = "no marks")))]
    pub ecn: Option<Length>,
    /// Probability with which packets that are not ECN-capable are dropped where `ecn` marks those that are; 1 is the
    /// WRED of switches (Judd, NSDI'15). The others pass unmarked.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 1), extend("x-with" = "ecn")))]
    pub drop_non_ect: f64,
    #[expect(missing_docs, reason = "the type of a table says what the table is")]
    pub red: Option<RedConfig>,
    #[expect(missing_docs, reason = "the type of a table says what the table is")]
    pub phantom: Option<PhantomConfig>,
}

impl Discipline {
    /// Drops beyond `limit` packets and marks beyond `mark`, where given.
    pub fn packets(limit: Option<u32>, mark: Option<u32>) -> Self {
        Discipline { queue: limit.map(Length::Packets), ecn: mark.map(Length::Packets), ..Discipline::default() }
    }

    /// A discipline that marks by RED.
    pub fn red(red: RedConfig) -> Self {
        Discipline { red: Some(red), ..Discipline::default() }
    }

    /// Marks by a phantom queue.
    pub fn phantom(phantom: PhantomConfig) -> Self {
        Discipline { phantom: Some(phantom), ..Discipline::default() }
    }

    /// The keys by which packets are marked. A valid discipline has at most one of them.
    pub fn marking(&self) -> impl Iterator<Item = &'static str> {
        let ways = [("ecn", self.ecn.is_some()), ("red", self.red.is_some()), ("phantom", self.phantom.is_some())];
        ways.into_iter().filter_map(|(key, given)| given.then_some(key))
    }

    /// The keys that drop packets, each with the reason why a lossless class may not have it. RED drops packets of a
    /// lossless class only if `red.drop_beyond` is given.
    pub fn dropping(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let beyond = self.red.as_ref().is_some_and(|red| red.drops == Drops::Beyond);
        let queue = self.queue.map(|_| ("queue", "a queue's limit drops packets of a lossless class"));
        let text = "RED drops packets of a lossless class; without this key it only marks there";
        let non_ect = (self.drop_non_ect > 0.0).then_some(("drop_non_ect", "this drops packets of a lossless class"));
        queue.into_iter().chain(beyond.then_some(("red.drop_beyond", text))).chain(non_ect)
    }

    /// Checks the parameters against each other. Each by itself is in the range of its key.
    ///
    /// # Errors
    /// When the queue would mark in two ways, or RED's thresholds do not fit each other.
    pub fn check(&self) -> Result<(), SettingError> {
        let mut ways = self.marking();
        if let (Some(first), Some(second)) = (ways.next(), ways.next()) {
            let problem = format!("there is {first} already, and a queue marks in one way: take one of them out");
            return Err(SettingError::new(second, problem));
        }
        match &self.red {
            Some(red) => red.check().map_err(|error| error.within("red")),
            None => Ok(()),
        }
    }
}

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
    aqm: Aqm,
}

impl Default for PerPacketRules {
    fn default() -> Self {
        PerPacketRules { limit: Span::MAX, mark: Span::MAX, non_ect: None, aqm: Aqm::None }
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

/// Active queue management.
#[derive(Clone, Debug)]
enum Aqm {
    None,
    Red(Red),
    Phantom(Phantom),
}

impl Policer {
    /// The policer of one queue. `discipline` has passed [`Discipline::check`].
    pub(crate) fn new(discipline: &Discipline, serializer: &Serializer, seed: u64) -> Self {
        let aqm = match discipline {
            Discipline { red: Some(red), .. } => Aqm::Red(Red::new(red, serializer, seed)),
            Discipline { phantom: Some(phantom), .. } => Aqm::Phantom(Phantom::new(phantom, serializer)),
            _ => Aqm::None,
        };
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
        let needed = by_time || rules.non_ect.is_some() || !matches!(rules.aqm, Aqm::None);
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

    /// How long a queue must have been empty for RED to count the time as idle; zero without RED.
    pub(crate) fn idle_step(&self) -> Span {
        match self.rules.as_deref() {
            Some(PerPacketRules { aqm: Aqm::Red(red), .. }) => red.idle_step(),
            _ => Span::ZERO,
        }
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
        if let Some(PerPacketRules { aqm: Aqm::Red(red), .. }) = self.rules.as_deref_mut() {
            red.on_arrival(state);
        }
        if !state.at_once && self.is_full(state) {
            return Verdict::Drop;
        }
        if let Some(PerPacketRules { aqm: Aqm::Red(red), .. }) = self.rules.as_deref_mut() {
            return red.judge(ecn);
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
        let Some(PerPacketRules { aqm: Aqm::Phantom(phantom), .. }) = self.rules.as_deref_mut() else {
            return Verdict::Pass;
        };
        if phantom.depart(size, departure) { congestion(ecn) } else { Verdict::Pass }
    }
}

/// The decision on a packet that a threshold or a phantom queue chooses: it is marked if it can be.
#[inline]
fn congestion(ecn: Ecn) -> Verdict {
    if ecn == Ecn::NotEct { Verdict::Pass } else { Verdict::Mark }
}
