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
    /// A port may hold at most this factor times the free part of `switch.buffer`.
    #[schemars(range(min = 0.0000152587890625, max = 65_536), extend("x-with" = "buffer"))]
    pub alpha: f64,
    /// The queue discipline of every port, if there are no `[[switch.classes]]`.
    #[serde(flatten)]
    pub discipline: Discipline,
    #[expect(missing_docs, reason = "the type of a table says what the table is")]
    pub classes: Vec<ClassTable>,
    #[expect(missing_docs, reason = "the type of a table says what the table is")]
    pub ports: Vec<PortsTable>,
}

/// The queue discipline of a traffic class at all ports: the first table is class 0's. Each later class has priority
/// over the earlier ones, unless all classes have weights. Without any table, all packets share one queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClassTable {
    /// Part of the link that the class gets while others have packets too: its weight over the sum of theirs. All
    /// classes have one, or none has.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-without" = "strict priorities"))]
    pub weight: Option<u32>,
    /// The queue discipline.
    #[serde(flatten)]
    pub discipline: Discipline,
}

/// Queue disciplines of some ports, in place of those of `[switch]`. A later entry replaces an earlier one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortsTable {
    /// Which ports: those of a tier of switches (`leaf`, `spine`, `tor`, `agg`, `core`, in a file its tiers), of a
    /// switch (`spine1`), or one port (`leaf0->spine1`, `host3.port`).
    #[schemars(extend("examples" = ["spine"]))]
    pub on: String,
    /// The queue discipline.
    #[serde(flatten, default)]
    pub discipline: Discipline,
}

impl Default for SwitchTable {
    fn default() -> Self {
        SwitchTable { buffer: None, alpha: 1.0, discipline: Discipline::default(), classes: vec![], ports: vec![] }
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
        if let (Some(key), false) = (self.discipline.any_key(), self.classes.is_empty()) {
            let problem = "has no effect: it counts only when there are no [[switch.classes]], but each of them has \
                           its own; take it out";
            return Err(SettingError::new(key, problem));
        }
        let disciplines = self.classes.iter().map(|class| &class.discipline);
        check_each("classes", disciplines)?;
        check_each("ports", self.ports.iter().map(|ports| &ports.discipline))?;
        self.check_weights()
    }

    /// Checks that all classes have weights, or none has.
    fn check_weights(&self) -> Result<(), SettingError> {
        let without = self.classes.iter().position(|class| class.weight.is_none());
        let (Some(without), Some(with)) = (without, self.classes.iter().position(|class| class.weight.is_some()))
        else {
            return Ok(());
        };
        let problem = format!(
            "class {without} has strict priority, since it has no weight: give each of [[switch.classes]] a weight, or \
             none"
        );
        Err(SettingError::new(format!("classes.{with}.weight"), problem))
    }

    /// The engine's configuration, without what other tables decide.
    pub(crate) fn config(&self) -> SwitchConfig {
        SwitchConfig {
            discipline: self.discipline,
            classes: self.classes.iter().map(|class| class.discipline).collect(),
            weights: self.classes.iter().filter_map(|class| class.weight).collect(),
            buffer: self.buffer.map(|size| SharedBufferConfig { size, alpha: self.alpha }),
            ..SwitchConfig::default()
        }
    }
}

/// Checks the disciplines of a list of tables.
fn check_each<'a>(list: &str, disciplines: impl Iterator<Item = &'a Discipline>) -> Result<(), SettingError> {
    let mut disciplines = disciplines.enumerate();
    disciplines.try_for_each(|(n, queue)| queue.check().map_err(|error| error.within(&format!("{list}.{n}"))))
}
