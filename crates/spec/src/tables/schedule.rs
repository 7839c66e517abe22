//! `[schedule]`: when the circuit switch connects which racks.

use super::PairOfRacks;
use firstlight_circuits::Scheduler;
use firstlight_units::{SettingError, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! define {
    ($($(#[$doc:meta])* $name:literal => $Scheduler:ident in $module:ident;)*) => {
        /// When the circuit switch connects which racks, week after week.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum Schedule {
            /// Each rack meets each other rack once a week.
            Strobe(EqualDays),
            /// The three-rack stand-in of Etalon's testbed.
            Etalon(StandIn),
            /// The days of `[[schedule.days]]`.
            List(ListedDays),
            $($(#[$doc])* #[serde(rename = $name)] $Scheduler(ComputedWeek),)*
        }

        impl Schedule {
            /// The scheduler of a computed schedule, and its weeks.
            pub(crate) fn computed(&self) -> Option<(Scheduler, &ComputedWeek)> {
                match self {
                    Schedule::Strobe(_) | Schedule::Etalon(_) | Schedule::List(_) => None,
                    $(Schedule::$Scheduler(week) => Some((Scheduler::$Scheduler, week)),)*
                }
            }
        }
    };
}
firstlight_circuits::computed_schedulers!(define);

/// Days of one length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EqualDays {
    /// How long a matching is up.
    #[schemars(extend("x-above" = "0s"))]
    pub day: Span,
    /// How long the circuit switch reconfigures before each day.
    pub night: Span,
}

/// Three racks that stand for more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StandIn {
    /// The days.
    #[serde(flatten)]
    pub equal: EqualDays,
    /// How many racks the three stand for: a week has one day less.
    #[schemars(range(min = 3, max = 65_535), extend("x-of" = "racks"))]
    pub stands_for: u32,
}

/// A list of days.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListedDays {
    /// How long a matching is up whose day has no length of its own.
    #[schemars(extend("x-above" = "0s", "x-without" = "each day has its own"))]
    pub day: Option<Span>,
    /// How long the circuit switch reconfigures before each day.
    pub night: Span,
    #[serde(default)]
    #[expect(missing_docs, reason = "the type of a table says what the table is")]
    pub days: Vec<ScheduledDay>,
}

/// One day of a list, after its night.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduledDay {
    /// The pairs of racks that have a circuit, as `[[0, 1], [1, 0]]`. Each rack sends to one and receives from one, or
    /// is idle.
    #[schemars(extend("x-type" = "a list of pairs of racks", "examples" = [[[0, 1], [1, 0]]]))]
    pub matching: Vec<PairOfRacks>,
    /// How long the matching is up.
    #[schemars(extend("x-above" = "0s", "x-without" = "`schedule.day`"))]
    pub day: Option<Span>,
}

/// Weeks that a control loop computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComputedWeek {
    /// How long a week is, nights and days.
    #[schemars(extend("x-above" = "0s"))]
    pub week: Span,
    /// How long the circuit switch reconfigures before each day.
    pub night: Span,
    /// The shortest day.
    #[schemars(extend("x-above" = "0s", "x-without" = "the same as `schedule.night`"))]
    pub least_day: Option<Span>,
}

impl Schedule {
    /// Checks that each day of a list has a length, and that a common length is one of some day.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        let Schedule::List(ListedDays { day, days, .. }) = self else { return Ok(()) };
        SettingError::unless(!days.is_empty(), "days", "no day: add [[schedule.days]] with matching and day")?;
        match (day, days.iter().position(|day| day.day.is_none())) {
            (None, Some(_)) => {
                Err(SettingError::new("day", "missing: write for example day = \"180us\" in [schedule]"))
            }
            (Some(_), None) => {
                let problem = "has no effect: it counts only when a day has no length of its own, but each of \
                               schedule.days has its own; take it out";
                Err(SettingError::new("day", problem))
            }
            _ => Ok(()),
        }
    }
}
