//! Configurations of what is measured on a fabric, and the errors of building a fabric or a world.

pub use firstlight_net::fabric::*;

use firstlight_circuits::RackId;
use firstlight_messages::MessageError;
use firstlight_units::Span;

/// Which queues to watch: ports of a packet fabric, or VOQs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchConfig {
    /// The names of the ports or VOQs, as in their reports.
    pub ports: Vec<String>,
    /// How often to sample their queues; `None` for never.
    pub every: Option<Span>,
}

/// The measurement of one pair of racks.
#[derive(Clone, Debug, PartialEq)]
pub struct MeterConfig {
    /// Source and destination.
    pub pair: (RackId, RackId),
    /// The folded series, if wanted.
    pub series: Option<SeriesConfig>,
}

/// Samples of sequence number and VOQ length, folded over some weeks.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesConfig {
    /// The time between two samples.
    pub every: Span,
    /// How many weeks make one repetition.
    pub fold: u32,
}

/// Why a fabric or a world cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BuildError {
    /// A value that the engine cannot work with.
    #[error("{field}: {problem}")]
    Field {
        /// The field of [`GraphConfig`], [`HybridConfig`], or of the configuration of a meter (`meter`) or of watched
        /// queues (`watch`).
        field: &'static str,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A probe that cannot be.
    #[error("probe {index}: {problem}")]
    Probe {
        /// The probe, counted from 0.
        index: usize,
        /// What is wrong.
        problem: String,
    },
    /// A message that cannot be.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A flow that cannot be.
    #[error("flow {index}: {problem}")]
    Flow {
        /// The flow, counted from 0.
        index: usize,
        /// What is wrong.
        problem: String,
    },
}

impl BuildError {
    /// An error in a field of a fabric's configuration.
    pub(crate) fn field(field: &'static str, problem: impl Into<String>) -> Self {
        BuildError::Field { field, problem: problem.into() }
    }
}
