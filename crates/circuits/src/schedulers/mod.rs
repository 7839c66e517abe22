//! Circuit schedulers: from a demand to a week.
//!
//! A scheduler is a pure function of the demand and the [`Frame`] in which it must fit. Its week fills the frame's
//! exactly; what the week does not serve is left to the packet network (Etalon, NSDI'20, section 2.1).

mod bvn;
mod circuit_time;
mod days;
mod eclipse;
mod edge_colouring;
mod heaviest_matching;
mod hotspot;
mod perfect_matching;
mod slices;
mod solstice;
mod strobe;
mod stuffing;
#[cfg(test)]
mod suite;

use crate::{Demand, Week};
use firstlight_units::{Rate, Span};

/// The frame that a schedule must fit in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Length of the week: nights and days fill it exactly.
    pub week: Span,
    /// How long the switch reconfigures before each day.
    pub night: Span,
    /// The shortest day.
    pub least_day: Span,
    /// Rate of a circuit.
    pub circuit: Rate,
    /// Rate of each rack's link to the packet network, which serves what the circuits leave.
    pub packet: Rate,
}

/// Why there is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The week has no room for one night and day.
    #[error("a week of {week} has no room for a night of {night} and a day of {least_day}: make the week longer")]
    NoRoom {
        /// Length of the week.
        week: Span,
        /// Length of a night.
        night: Span,
        /// The shortest day.
        least_day: Span,
    },
    /// A strobe's days would be too short.
    #[error(
        "a strobe of {racks} racks needs {days} days, but a week of {week} with nights of {night} has room for {room} \
         of at least {least_day}: make the week longer"
    )]
    Strobe {
        /// How many racks there are.
        racks: usize,
        /// How many days the schedule needs: one less than there are racks.
        days: usize,
        /// Length of the week.
        week: Span,
        /// Length of a night.
        night: Span,
        /// The shortest day.
        least_day: Span,
        /// How many days there is room for.
        room: u64,
    },
}

/// Hands the schedulers that compute a week from demand to a macro: the text of the reference, the name that users
/// write, the variant, and the module whose `schedule` computes the week.
#[macro_export]
macro_rules! computed_schedulers {
    ($define:ident) => {
        $define! {
            /// Each week is computed from demand, see `[control]`: Birkhoff-von Neumann.
            "bvn" => Bvn in bvn;
            /// Each week is computed from demand: Solstice.
            "solstice" => Solstice in solstice;
            /// Each week is computed from demand: Eclipse.
            "eclipse" => Eclipse in eclipse;
            /// Each week is computed from demand: the matching of maximum weight.
            "hotspot" => Hotspot in hotspot;
            /// Each week is computed from demand: edge colouring.
            "edge-colouring" => EdgeColouring in edge_colouring;
        }
    };
}

macro_rules! define {
    ($($(#[$doc:meta])* $name:literal => $Scheduler:ident in $module:ident;)*) => {
        /// The schedulers, by name.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Scheduler {
            /// Each rack meets each other once, whatever the demand (`strobe.rs`).
            Strobe,
            $($(#[$doc])* $Scheduler,)*
        }

        impl Scheduler {
            /// All schedulers.
            pub const ALL: &[Scheduler] = &[Scheduler::Strobe, $(Scheduler::$Scheduler),*];

            /// The scheduler's name in experiments and on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    Scheduler::Strobe => "strobe",
                    $(Scheduler::$Scheduler => $name,)*
                }
            }

            fn week(self, demand: &Demand, frame: &Frame) -> Result<Week, ScheduleError> {
                match self {
                    Scheduler::Strobe => strobe::schedule(demand.racks(), frame),
                    $(Scheduler::$Scheduler => Ok($module::schedule(demand, frame)),)*
                }
            }
        }
    };
}
computed_schedulers!(define);

impl Scheduler {
    /// The scheduler of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|scheduler| scheduler.name() == name)
    }

    /// The week for this demand. Without any demand the circuits stay idle, unless the scheduler asks for none.
    ///
    /// # Errors
    /// When the frame has no room for a day.
    pub fn schedule(self, demand: &Demand, frame: &Frame) -> Result<Week, ScheduleError> {
        let Frame { week, night, least_day, .. } = *frame;
        if night.as_ps().saturating_add(least_day.as_ps().max(1)) > week.as_ps() {
            return Err(ScheduleError::NoRoom { week, night, least_day });
        }
        self.week(demand, frame)
    }
}

/// The part of a demand that a week serves: the bytes of each pair that circuits carry, if all bytes wait at the week's
/// start.
pub fn served(demand: &Demand, week: &Week, circuit: Rate) -> Demand {
    let mut served = Demand::zero(demand.racks());
    for (src, dst, bytes) in demand.pairs() {
        served.add(src, dst, bytes.min(circuit.bytes_in(week.time_of(src, dst)).get()));
    }
    served
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RackId;

    fn frame(week: u64, night: u64, least_day: u64) -> Frame {
        Frame {
            week: Span::from_us(week),
            night: Span::from_us(night),
            least_day: Span::from_us(least_day),
            circuit: Rate::from_gbps(80),
            packet: Rate::from_gbps(10),
        }
    }

    #[test]
    fn a_strobe_fills_the_week_or_says_what_it_needs() {
        let week = Scheduler::Strobe.schedule(&Demand::zero(8), &frame(1000, 20, 50)).unwrap();
        assert_eq!((week.length(), week.days().len()), (Span::from_us(1000), 7));
        let error = Scheduler::Strobe.schedule(&Demand::zero(8), &frame(400, 20, 50)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a strobe of 8 racks needs 7 days, but a week of 400us with nights of 20us has room for 5 of at least \
             50us: make the week longer"
        );
        assert!(Scheduler::Strobe.schedule(&Demand::zero(2), &frame(60, 20, 50)).is_err());
    }

    #[test]
    fn nothing_is_served_beyond_demand() {
        let mut demand = Demand::zero(3);
        demand.add(RackId(0), RackId(1), 1000);
        demand.add(RackId(1), RackId(0), 10_000_000);
        let week = Week::strobe(3, Span::from_us(100), Span::from_us(10)).unwrap();
        let served = served(&demand, &week, Rate::from_gbps(80));
        assert_eq!(served.get(RackId(0), RackId(1)), 1000);
        assert_eq!(served.get(RackId(1), RackId(0)), 1_000_000);
    }
}
