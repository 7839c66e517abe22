//! `[voq]`: the virtual output queues of a hybrid fabric.

use firstlight_net::fabric::{Resize, VoqConfig};
use firstlight_net::{Discipline, Length, VoqDiscipline};
use firstlight_units::{SettingError, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The virtual output queues: one for each pair of racks, at the ToR of the source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VoqTable {
    /// Capacity of a VOQ.
    #[schemars(
        range(min = 1, max = 16_777_216),
        extend(
            "x-of" = "packets",
            "x-without" = "with `[pfc]` no limit: a VOQ takes what the accounts of hosts' links let in. Without, it \
             must be given"
        )
    )]
    pub small: Option<u32>,
    /// Capacity from `voq.advance` before the pair's day until its end, or `voq.linger` after it.
    #[schemars(range(min = 1, max = 16_777_216), extend("x-of" = "packets", "x-without" = "VOQs keep their size"))]
    pub large: Option<u32>,
    /// How long before its day a VOQ is enlarged.
    #[schemars(extend("x-without" = "VOQs keep their size"))]
    pub advance: Option<Span>,
    /// How long after its day a VOQ stays large.
    #[schemars(extend("x-with" = "large"))]
    pub linger: Span,
    /// Mark ECN-capable packets when the VOQ would exceed this, while it is small.
    #[schemars(range(min = 1, max = 16_777_216), extend("x-of" = "packets", "x-without" = "no marks"))]
    pub ecn_small: Option<u32>,
    /// Mark ECN-capable packets when the VOQ would exceed this, while it is large.
    #[schemars(
        range(min = 1, max = 16_777_216),
        extend("x-of" = "packets", "x-without" = "no marks", "x-with" = "large")
    )]
    pub ecn_large: Option<u32>,
    /// Other ways to mark, or to drop early.
    #[serde(flatten)]
    pub discipline: VoqDiscipline,
}

impl VoqTable {
    /// Checks what resizing needs, and that a VOQ marks in one way.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        let discipline = Discipline::from(self.discipline);
        if let (Some(table), Some(threshold)) = (discipline.any_key(), self.thresholds().next()) {
            let problem =
                format!("there is voq.{threshold} already, and a queue marks in one way: take one of them out");
            return Err(SettingError::new(table, problem));
        }
        discipline.check()?;
        match (self.large, self.advance, self.small) {
            (Some(_), None, _) => Err(SettingError::new(
                "large",
                "has no effect without voq.advance: add for example advance = \"600us\"",
            )),
            (None, Some(_), _) => {
                Err(SettingError::new("advance", "has no effect without voq.large: add for example large = 50"))
            }
            (Some(large), _, Some(small)) if large < small => {
                let problem = format!("{large} packets are fewer than voq.small = {small}: use at least {small}");
                Err(SettingError::new("large", problem))
            }
            _ => Ok(()),
        }
    }

    fn thresholds(&self) -> impl Iterator<Item = &'static str> {
        let thresholds = [("ecn_small", self.ecn_small), ("ecn_large", self.ecn_large)];
        thresholds.into_iter().filter_map(|(key, given)| given.map(|_| key))
    }

    /// The keys by which packets are marked.
    pub(crate) fn marking(&self) -> impl Iterator<Item = &'static str> {
        self.thresholds().chain(Discipline::from(self.discipline).marking())
    }

    /// The engine's configuration.
    pub(crate) fn config(&self) -> VoqConfig {
        let large = self.large.zip(self.advance);
        VoqConfig {
            discipline: Discipline {
                queue: self.small.map(Length::Packets),
                ecn: self.ecn_small.map(Length::Packets),
                ..self.discipline.into()
            },
            resize: large.map(|(large, advance)| Resize {
                linger: self.linger,
                ..Resize::packets(large, self.ecn_large, advance)
            }),
        }
    }
}
