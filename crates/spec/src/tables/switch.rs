//! `[switch]`: the switches of a packet fabric and their ports.

use firstlight_net::fabric::SwitchConfig;
use firstlight_net::{CLASSES, Discipline, SharedBufferConfig};
use firstlight_units::{Bytes, SettingError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The switches and their ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SwitchTable {
    /// Buffer that all ports of a switch share, beside their own limits.
    #[schemars(extend("x-without" = "no such limit"))]
    pub buffer: Option<Bytes>,
    /// A port may hold so many times what is free of `switch.buffer`.
    #[schemars(range(min = 0.0000152587890625, max = 65_536), extend("x-with" = "buffer"))]
    pub alpha: f64,
    /// What every port does, if there are no `[[switch.classes]]`.
    #[serde(flatten)]
    pub discipline: Discipline,
    /// What ports do with a traffic class: the first table is class 0's, each later class has priority over the earlier
    /// ones. Without any, all packets share one queue.
    pub classes: Vec<Discipline>,
}

impl Default for SwitchTable {
    fn default() -> Self {
        SwitchTable { buffer: None, alpha: 1.0, discipline: Discipline::default(), classes: vec![] }
    }
}

impl SwitchTable {
    /// Checks the disciplines of all queues, and that a port has one or classes.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        if self.classes.len() > CLASSES {
            let (count, last) = (self.classes.len(), CLASSES - 1);
            let problem = format!("{count} classes are too many: a packet's class is 0 to {last}");
            return Err(SettingError::new(format!("classes.{CLASSES}"), problem));
        }
        self.discipline.check()?;
        let given = self.discipline.queue.map(|_| "queue").into_iter().chain(self.discipline.marking()).next();
        if let (Some(key), false) = (given, self.classes.is_empty()) {
            let problem = "has no effect: it counts only when there are no [[switch.classes]], but each of them has \
                           its own; take it out";
            return Err(SettingError::new(key, problem));
        }
        let mut classes = self.classes.iter().enumerate();
        classes.try_for_each(|(class, queue)| queue.check().map_err(|error| error.within(&format!("classes.{class}"))))
    }

    /// The engine's configuration, without pauses.
    pub(crate) fn config(&self) -> SwitchConfig {
        SwitchConfig {
            discipline: self.discipline,
            classes: self.classes.clone(),
            buffer: self.buffer.map(|size| SharedBufferConfig { size, alpha: self.alpha }),
            pfc: None,
        }
    }
}
