//! `[measure]`: measurements and recordings of a run.

use firstlight_circuits::RackId;
use firstlight_units::{Bytes, SettingError, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Measurements and recordings of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MeasureTable {
    /// The pair of racks whose latency, circuit utilization and series are measured.
    #[schemars(extend("x-when" = "hybrid fabric", "x-without" = "that of the first flow between racks"))]
    pub pair: Option<PairOfRacks>,
    /// Ports whose queues are watched, as table `ports` names them: `host2.port`, `left->right`; on a hybrid fabric
    /// VOQs, `voq.0.2`. In a name `*` stands for any text and `?` for one character: `*` is all of them, `host*.port`
    /// are the ports to hosts, `voq.0.*` the VOQs of rack 0.
    #[schemars(extend(
        "x-type" = "a list of texts",
        "examples" = [["host2.port"], ["*"]],
        "x-without" = "none"
    ))]
    pub queues: Option<Vec<String>>,
    /// Sample the watched queues this often.
    #[schemars(extend("x-with" = "queues", "x-above" = "0s", "x-without" = "no samples"))]
    pub queue_samples: Option<Span>,
    /// Record what each flow received in each interval of this length, and the congestion window at its end.
    #[schemars(extend("x-above" = "0s", "x-without" = "no such table"))]
    pub throughput: Option<Span>,
    /// Record each packet of a probe, and not their numbers alone.
    #[schemars(extend("x-when" = "datagrams"))]
    pub probes: bool,
    /// Record each change of a rate that QCN limits.
    #[schemars(extend("x-when" = "qcn"))]
    pub rate_limiters: bool,
    /// Divide the completion times of flows into their causes, to the picosecond: of all flows, or of those that a list
    /// chooses. An entry of the list is the name of a workload (`flows` for all `[[flows]]`), in which `*` stands for
    /// any text and `?` for one character; or `flow 7`; or `slowest 5`: the flows that took longest; or `message 7`: a
    /// message that is on no job's critical path.
    #[schemars(extend("x-when" = "flow in exact time"))]
    pub account: Accounts,
    /// For how many of the slowest of these flows each part of that time is a row of its own.
    #[schemars(range(max = 1_000_000), extend("x-of" = "flows", "x-when" = "account"))]
    pub account_events: u32,
    /// Sample the pair's sequence numbers and the length of its VOQ this often.
    #[schemars(extend("x-when" = "hybrid fabric", "x-above" = "0s", "x-without" = "no series"))]
    pub series: Option<Span>,
    /// How many weeks the series covers; averaged over all repetitions.
    #[schemars(range(min = 1, max = 1000), extend("x-of" = "weeks", "x-with" = "series"))]
    pub fold: u32,
    /// Sample each Linux flow's `TCP_INFO` (window, RTT, retransmissions) this often.
    #[schemars(extend("x-when" = "Linux flow", "x-above" = "0s", "x-without" = "no samples"))]
    pub tcp_info: Option<Span>,
    /// Flow sizes at which the groups of completion times begin, in growing order. The first group begins at 0.
    #[schemars(extend("x-type" = "a list of sizes", "examples" = [["10kB", "1MB"]]))]
    pub fct_groups: Vec<Bytes>,
    /// Write a packet capture (pcapng).
    pub capture: bool,
    /// At which end of each flow packets are captured.
    pub capture_side: CaptureSide,
}

impl Default for MeasureTable {
    fn default() -> Self {
        MeasureTable {
            pair: None,
            queues: None,
            queue_samples: None,
            throughput: None,
            probes: false,
            rate_limiters: false,
            account: Accounts::All(false),
            account_events: 3,
            series: None,
            fold: 3,
            tcp_info: None,
            fct_groups: [10_000, 100_000, 10_000_000].map(Bytes::new).to_vec(),
            capture: false,
            capture_side: CaptureSide::Sender,
        }
    }
}

impl MeasureTable {
    /// Checks that lists hold something, in order.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        let empty = self.queues.as_ref().is_some_and(Vec::is_empty);
        SettingError::unless(!empty, "queues", "an empty list watches nothing: name ports, or take it out")?;
        let none = matches!(&self.account, Accounts::Of(chosen) if chosen.is_empty());
        SettingError::unless(!none, "account", "an empty list chooses no flow: name some, or write true or false")?;
        let mut before = Bytes::new(0);
        for &size in &self.fct_groups {
            let problem = format!("{size} is not larger than what is before it: write sizes that grow, from above 0B");
            SettingError::unless(size > before, "fct_groups", problem)?;
            before = size;
        }
        Ok(())
    }
}

/// The flows whose completion times are divided into causes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Accounts {
    /// The times of all flows, or of none.
    All(bool),
    /// The times of the flows that these names choose.
    Of(Vec<String>),
}

impl Accounts {
    /// Whether any flow's are.
    pub fn any(&self) -> bool {
        *self != Accounts::All(false)
    }
}

impl JsonSchema for Accounts {
    fn schema_name() -> Cow<'static, str> {
        "Accounts".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = json_schema!({
            "type": "array", "items": { "type": "string" },
            "examples": [["slowest 5"]], "x-type": "a list of texts",
        });
        json_schema!({
            "anyOf": [{ "type": "boolean" }, names],
            "examples": [["slowest 5"], true],
            "x-type": "true, false, or a list of flows",
        })
    }
}

/// At which end of a flow packets are captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaptureSide {
    /// At the host that sends the data, as tcpdump there would.
    #[default]
    Sender,
    /// At the host that receives the data.
    Receiver,
    /// At both: every packet is seen twice.
    Both,
}

/// Source and destination rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairOfRacks(pub u16, pub u16);

impl PairOfRacks {
    /// The two racks.
    pub const fn racks(self) -> (RackId, RackId) {
        (RackId(self.0), RackId(self.1))
    }
}

impl JsonSchema for PairOfRacks {
    fn schema_name() -> Cow<'static, str> {
        "PairOfRacks".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 65_535 },
            "minItems": 2, "maxItems": 2,
            "examples": [[0, 1]], "x-type": "a pair of racks, source and destination",
        })
    }
}
