//! Workloads that happen once or again and again.

use super::after;
use crate::error::Problem;
use crate::expander::{Expander, MOST_FLOWS};
use firstlight_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a workload begins again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rounds {
    /// The whole workload begins again this long after it began.
    #[schemars(extend("x-above" = "0s", "x-without" = "it happens once"))]
    pub period: Option<Span>,
    /// How often the workload happens.
    #[schemars(
        range(min = 1, max = 1_000_000),
        extend("x-of" = "rounds", "x-without" = "with `period`: until the run's end")
    )]
    pub rounds: Option<u32>,
}

impl Rounds {
    /// How many rounds there were to be, when that is given.
    pub(super) fn asked(&self) -> Option<usize> {
        self.rounds.map(|rounds| rounds as usize)
    }

    /// When each round starts, before the run's end.
    pub(super) fn starts(&self, expander: &Expander<'_>, start: Span, jitter: Span) -> Result<Vec<Span>, Box<Problem>> {
        let Some(period) = self.period else {
            if self.rounds.is_some() {
                let text = "has no effect without period: add for example period = \"10ms\"";
                return Err(expander.problem("rounds", text));
            }
            return Ok(vec![start]);
        };
        let rounds = (0..).map(|round| after(start, period, round));
        let rounds = rounds.take_while(|round| after(*round, jitter, 1) < expander.duration());
        Ok(rounds.take(self.asked().unwrap_or(MOST_FLOWS + 1)).collect())
    }
}
