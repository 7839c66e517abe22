//! `[links]`: the links between switches.

use firstlight_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The links between switches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinksTable {
    /// Rate of links between switches.
    #[schemars(extend("x-without" = "the same as `hosts.rate`"))]
    pub rate: Option<Rate>,
    /// Propagation delay of links between switches.
    #[schemars(extend("x-without" = "the same as `hosts.delay`"))]
    pub delay: Option<Span>,
    /// Rate of links between aggregation and core switches.
    #[schemars(extend("x-when" = "core switches", "x-without" = "the same as `links.rate`"))]
    pub core_rate: Option<Rate>,
    /// Propagation delay of links between aggregation and core switches.
    #[schemars(extend("x-when" = "core switches", "x-without" = "the same as `links.delay`"))]
    pub core_delay: Option<Span>,
}
