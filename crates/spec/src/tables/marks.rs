//! `[marks]`: ECE marks that announce circuits.

use firstlight_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// ECE marks on returning packets, which reTCP needs. The table's presence turns them on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MarksTable {
    /// How long before a day the marks begin.
    pub advance: Span,
}
