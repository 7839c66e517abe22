//! `[pfc]`: lossless Ethernet.

use firstlight_net::Framing;
use firstlight_net::pfc::{Classes, PfcConfig};
use firstlight_units::{Bytes, SettingError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lossless Ethernet: links are paused before a buffer overflows. The table's presence turns it on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PfcTable {
    /// The unit of pauses: a traffic class, or the whole link.
    #[serde(default)]
    pub kind: PauseKind,
    /// Thresholds and buffers.
    #[serde(flatten)]
    pub limits: PfcConfig,
    /// Run though a buffer, or another limit of a lossless class, may lose packets.
    #[serde(default)]
    pub allow_loss: bool,
}

/// The unit of pauses: a traffic class, or the whole link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PauseKind {
    /// Each class by itself (IEEE 802.1Qbb).
    #[default]
    Pfc,
    /// All classes of a link together (802.3x).
    Pause,
    /// Nothing: as without the table.
    Off,
}

impl PfcTable {
    /// Checks that classes are not named where a pause stops all of them.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        let all = self.kind == PauseKind::Pause && self.limits.classes.is_some();
        let problem = "has no effect: pfc.kind = \"pause\" stops all classes of a link; take it out, or use \"pfc\"";
        SettingError::unless(!all, "classes", problem)
    }

    /// Whether the class `class` is lossless.
    pub(crate) fn has(&self, class: usize) -> bool {
        match self.kind {
            PauseKind::Pfc => self.limits.classes.is_none_or(|classes| classes.has(class)),
            PauseKind::Pause => true,
            PauseKind::Off => false,
        }
    }

    /// The engine's configuration, with packets of up to `mtu` and this framing; `None` if nothing is paused.
    pub(crate) fn config(&self, mtu: Bytes, framing: Framing) -> Option<PfcConfig> {
        let whole_link = match self.kind {
            PauseKind::Pfc => false,
            PauseKind::Pause => true,
            PauseKind::Off => return None,
        };
        Some(PfcConfig { whole_link, mtu, framing, ..self.limits })
    }

    /// The lossless classes, where some are named.
    pub(crate) fn classes(&self) -> Option<Classes> {
        self.limits.classes.filter(|_| self.kind == PauseKind::Pfc)
    }
}
