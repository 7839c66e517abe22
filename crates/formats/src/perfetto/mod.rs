//! Timelines: Perfetto's protobuf trace format, its TrackEvent part, as <https://ui.perfetto.dev> opens it.

mod schema;
mod writer;

pub use writer::{CounterUnit, SliceFields, TimelineError, TimelineWriter, TrackId};
