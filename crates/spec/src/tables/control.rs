//! `[control]`: the control loop.

use firstlight_net::fabric::DemandSource;
use firstlight_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The control loop: at the start of each week demand is estimated, and the schedule computed that the next week
/// follows. The first week has no circuits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ControlTable {
    /// Where demand is seen.
    pub demand: DemandSource,
    /// How long it takes to compute a schedule. A schedule that is not ready by the week's end is followed a week
    /// later. `firstlight schedule` measures it.
    pub compute: Span,
}
