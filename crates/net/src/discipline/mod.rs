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
mod policer;
mod red;

pub(crate) use policer::{Policer, QueueState, Verdict};
pub use red::{Band, Drops};

use crate::{Ecn, Serializer};
use firstlight_units::{Bytes, SettingError, Span, Time};

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

/// What holds of a table of active queue management (AQM).
trait AqmConfig {
    /// Whether the discipline marks packets.
    const MARKS: bool = true;
    /// Whether the discipline drops packets before the queue is full.
    const DROPS: bool = false;
    /// The key that as `false` lets the discipline drop only packets that cannot be marked.
    const DROP_KEY: Option<&'static str> = None;

    /// Checks the keys against each other. Each by itself is in its range.
    fn check(&self) -> Result<(), SettingError> {
        Ok(())
    }

    /// The reason why a lossless class may not have the table, or not this value of [`AqmConfig::DROP_KEY`].
    fn loses(&self) -> Option<&'static str> {
        Self::DROPS.then_some("this drops packets of a lossless class")
    }

    /// The key of the queue's length below which the discipline does nothing, with its value.
    fn threshold(&self) -> Option<(&'static str, Length)> {
        None
    }

    /// Sets what other tables decide: `packet` is the largest packet, `given` says whether the file has a key.
    fn fill_in(&mut self, _packet: Bytes, _lossless: bool, _given: &dyn Fn(&str) -> bool) {}
}

/// The active queue management of one queue. Its random numbers come from the seed that `new` gets.
trait Aqm {
    /// How long the queue must have been empty for the time to count as idle.
    fn idle_step(&self) -> Span {
        Span::ZERO
    }

    /// Sees each packet that arrives, also at a full queue.
    fn on_arrival(&mut self, _state: &QueueState) {}

    /// The decision on a packet that the queue has room for; `None` leaves it to the threshold.
    fn judge(&mut self, _ecn: Ecn) -> Option<Verdict> {
        None
    }

    /// Whether to mark a packet of `size` bytes that will have left at `departure`; called in order of departures.
    fn depart(&mut self, _size: u16, _departure: Time) -> bool {
        false
    }
}

/// Declares the tables of active queue management. The module of a table has its name and two types: its struct, which
/// is an [`AqmConfig`], and the state of a queue, which is an [`Aqm`] and is made by `new`.
///
/// Tables that `[voq]` has as well stand in `voqs`, with their text in the reference.
macro_rules! disciplines {
    (
        ports { $($key:ident: $Config:ident => $State:ident;)* }
        voqs { $($(#[$doc:meta])* $voq:ident: $Voq:ident;)* }
    ) => {
        $(
            pub use $key::$Config;
            use $key::$State;
        )*

        /// A queue discipline. The default queues without limit and marks nothing.
        #[derive(Clone, Copy, PartialEq, Debug, Default)]
        #[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        #[cfg_attr(feature = "spec", serde(default))]
        pub struct Discipline {
            /// How many packets may wait, or how much data may be unsent. Packets beyond this are dropped.
            #[cfg_attr(feature = "spec", schemars(extend("x-without" = "no limit")))]
            pub queue: Option<Length>,
            /// Mark ECN-capable packets when the queue would exceed this (DCTCP).
            #[cfg_attr(feature = "spec", schemars(extend("x-without" = "no marks")))]
            pub ecn: Option<Length>,
            /// Probability with which packets that are not ECN-capable are dropped where `ecn` marks those that are; 1
            /// is the WRED of switches (Judd, NSDI'15). The others pass unmarked.
            #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 1), extend("x-with" = "ecn")))]
            pub drop_non_ect: f64,
            $(
                #[expect(missing_docs, reason = "the type of a table says what the table is")]
                pub $key: Option<$Config>,
            )*
        }

        impl Discipline {
            $(
                #[doc = concat!("A discipline with the table `", stringify!($key), "` alone.")]
                pub fn $key($key: $Config) -> Self {
                    Discipline { $key: Some($key), ..Discipline::default() }
                }
            )*

            /// The tables that drop packets before the queue is full, each with the key that as `false` lets it drop
            /// only packets that cannot be marked.
            pub fn dropping_tables() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
                let all = [$($Config::DROPS.then_some((stringify!($key), $Config::DROP_KEY))),*];
                all.into_iter().flatten()
            }

            /// Sets what other tables decide: `packet` is the largest packet, `given` says whether the file has a key.
            pub fn fill_in(&mut self, packet: Bytes, lossless: bool, given: &dyn Fn(&str) -> bool) {
                $(if let Some(table) = &mut self.$key {
                    table.fill_in(packet, lossless, &|key| given(&format!("{}.{key}", stringify!($key))));
                })*
            }

            fn tables(&self) -> impl Iterator<Item = AqmTable> + use<> {
                [$(self.$key.as_ref().map(|table| AqmTable::of(stringify!($key), table))),*].into_iter().flatten()
            }
        }

        /// The tables of a VOQ's discipline.
        #[derive(Clone, Copy, PartialEq, Debug, Default)]
        #[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        #[cfg_attr(feature = "spec", serde(default))]
        pub struct VoqDiscipline {
            $($(#[$doc])* pub $voq: Option<$Voq>,)*
        }

        impl From<VoqDiscipline> for Discipline {
            fn from(voq: VoqDiscipline) -> Self {
                Discipline { $($voq: voq.$voq,)* ..Discipline::default() }
            }
        }

        impl From<Discipline> for VoqDiscipline {
            fn from(discipline: Discipline) -> Self {
                VoqDiscipline { $($voq: discipline.$voq,)* }
            }
        }

        /// The active queue management of a queue. An enum and not a trait object: a packet's hop has no dynamic
        /// dispatch.
        #[derive(Clone, Debug)]
        enum QueueAqm {
            None,
            $($State($State),)*
        }

        impl QueueAqm {
            fn new(discipline: &Discipline, serializer: &Serializer, seed: u64) -> Self {
                $(if let Some(config) = &discipline.$key {
                    return QueueAqm::$State($State::new(config, serializer, seed));
                })*
                QueueAqm::None
            }
        }

        impl Aqm for QueueAqm {
            fn idle_step(&self) -> Span {
                match self {
                    QueueAqm::None => Span::ZERO,
                    $(QueueAqm::$State(state) => state.idle_step(),)*
                }
            }
            #[inline]
            fn on_arrival(&mut self, state: &QueueState) {
                match self {
                    QueueAqm::None => {}
                    $(QueueAqm::$State(aqm) => aqm.on_arrival(state),)*
                }
            }
            #[inline]
            fn judge(&mut self, ecn: Ecn) -> Option<Verdict> {
                match self {
                    QueueAqm::None => None,
                    $(QueueAqm::$State(state) => state.judge(ecn),)*
                }
            }
            #[inline]
            fn depart(&mut self, size: u16, departure: Time) -> bool {
                match self {
                    QueueAqm::None => false,
                    $(QueueAqm::$State(state) => state.depart(size, departure),)*
                }
            }
        }
    };
}

disciplines! {
    ports {
        red: RedConfig => Red;
        phantom: PhantomConfig => Phantom;
    }
    voqs {
        /// RED on the average length of each VOQ, instead of `voq.ecn_small` and `voq.ecn_large`. Idle times are
        /// counted in packets at `packet.rate`. The table's presence turns it on.
        red: RedConfig;
    }
}

/// A table that is given, and what holds of it, see [`AqmConfig`].
struct AqmTable {
    name: &'static str,
    marks: bool,
    drops: bool,
    check: Result<(), SettingError>,
    loses: Option<(String, &'static str)>,
    threshold: Option<(String, Length)>,
}

impl AqmTable {
    fn of<C: AqmConfig>(name: &'static str, config: &C) -> Self {
        let key = C::DROP_KEY.map_or(name.to_string(), |key| format!("{name}.{key}"));
        AqmTable {
            name,
            marks: C::MARKS,
            drops: C::DROPS,
            check: config.check().map_err(|error| error.within(name)),
            loses: config.loses().map(|reason| (key, reason)),
            threshold: config.threshold().map(|(key, length)| (format!("{name}.{key}"), length)),
        }
    }
}

impl Discipline {
    /// Drops beyond `limit` packets and marks beyond `mark`, where given.
    pub fn packets(limit: Option<u32>, mark: Option<u32>) -> Self {
        Discipline { queue: limit.map(Length::Packets), ecn: mark.map(Length::Packets), ..Discipline::default() }
    }

    /// `ecn` and the tables that are given, each with whether it marks packets. A valid discipline has at most one of
    /// them.
    fn ways(&self) -> impl Iterator<Item = (&'static str, bool)> + use<> {
        let ecn = self.ecn.map(|_| ("ecn", true));
        ecn.into_iter().chain(self.tables().map(|table| (table.name, table.marks)))
    }

    /// The keys by which packets are marked.
    pub fn marking(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.ways().filter_map(|(key, marks)| marks.then_some(key))
    }

    /// A key that is given, if any is.
    pub fn any_key(&self) -> Option<&'static str> {
        self.queue.map(|_| "queue").or_else(|| self.ways().next().map(|(key, _)| key))
    }

    /// The keys that drop packets, each with the reason why a lossless class may not have it.
    pub fn dropping(&self) -> impl Iterator<Item = (String, &'static str)> {
        let queue = self.queue.map(|_| ("queue".into(), "a queue's limit drops packets of a lossless class"));
        let non_ect =
            (self.drop_non_ect > 0.0).then(|| ("drop_non_ect".into(), "this drops packets of a lossless class"));
        queue.into_iter().chain(self.tables().filter_map(|table| table.loses)).chain(non_ect)
    }

    /// Whether a table drops packets before the queue is full.
    pub fn has_dropping_table(&self) -> bool {
        self.tables().any(|table| table.drops)
    }

    /// The keys of the queue's length below which a table does nothing, with their values.
    pub fn thresholds(&self) -> impl Iterator<Item = (String, Length)> + use<> {
        self.tables().filter_map(|table| table.threshold)
    }

    /// Checks the parameters against each other. Each by itself is in the range of its key.
    ///
    /// # Errors
    /// When the queue would mark in two ways, or a table's keys do not fit each other.
    pub fn check(&self) -> Result<(), SettingError> {
        let mut ways = self.ways();
        if let (Some((first, _)), Some((second, _))) = (ways.next(), ways.next()) {
            let problem = format!("there is {first} already, and a queue marks in one way: take one of them out");
            return Err(SettingError::new(second, problem));
        }
        self.tables().try_for_each(|table| table.check)
    }
}
