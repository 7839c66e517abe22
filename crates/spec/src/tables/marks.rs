//! `[marks]`: how hosts learn of circuits.

use firstlight_net::fabric::NoticeConfig;
use firstlight_units::{SettingError, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How hosts learn of circuits, which reTCP needs: by ECE marks on returning packets, or by notices. The table's
/// presence turns them on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MarksTable {
    /// How long before a day its circuits are announced.
    pub advance: Span,
    /// The signal that announces circuits.
    pub carrier: MarkCarrier,
    /// How long a notice takes to the hosts. With `carrier = "notices"` only.
    pub delay: Span,
}

/// A signal that announces circuits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarkCarrier {
    /// ECE marks on the packets that return to the circuit's source, until the day's end.
    #[default]
    Acks,
    /// Messages of the control plane to all hosts at the circuit's source, at its announcement and at the day's end.
    /// Simulated hosts only, on a schedule that is not computed.
    Notices,
}

impl MarksTable {
    /// Checks that the delay has an effect.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        if self.carrier == MarkCarrier::Acks && !self.delay.is_zero() {
            let problem = "has no effect: marks take as long as ACKs; take it out, or write carrier = \"notices\"";
            return Err(SettingError::new("delay", problem));
        }
        Ok(())
    }

    /// How long before a day ACKs are marked, if they are.
    pub(crate) fn marks(&self) -> Option<Span> {
        (self.carrier == MarkCarrier::Acks).then_some(self.advance)
    }

    /// The notices, if there are any.
    pub(crate) fn notices(&self) -> Option<NoticeConfig> {
        let MarksTable { advance, carrier, delay } = *self;
        (carrier == MarkCarrier::Notices).then_some(NoticeConfig { advance, delay })
    }
}
