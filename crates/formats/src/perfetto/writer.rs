//! The file of a timeline. It is written as the run goes on, under a temporary name, and gets its own name when it is
//! complete.

use super::schema::{CounterDescriptor, DebugAnnotation, EventType, TracePacket, TrackDescriptor, TrackEvent};
use crate::unfinished::{self, UnfinishedFile};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// All packets are of one sequence.
const SEQUENCE: u32 = 1;

/// A track of a timeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrackId(u64);

/// What a track of numbers counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CounterUnit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

/// What a slice has beside its name and times.
#[derive(Clone, Copy, Debug, Default)]
pub struct SliceFields<'a> {
    /// Named texts; empty ones are left out.
    pub texts: &'a [(&'static str, &'a str)],
    /// Named numbers.
    pub numbers: &'a [(&'static str, i64)],
    /// Arrows lead through the slices that have the same number, in the order of time.
    pub arrow: Option<u64>,
}

/// Why a timeline cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the timeline {path}: {source}")]
pub struct TimelineError {
    /// The timeline's file.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

/// Writes a timeline. Times are in nanoseconds and need no order between tracks. [`TimelineWriter::finish`] reports
/// failures of all that was written.
pub struct TimelineWriter {
    path: PathBuf,
    /// `None` after a write has failed.
    file: Option<BufWriter<UnfinishedFile>>,
    failure: Option<io::Error>,
    tracks: u64,
    bytes: Vec<u8>,
}

impl TimelineWriter {
    /// Begins a timeline that will be at `path`.
    ///
    /// # Errors
    /// When the file cannot be begun.
    pub fn create(path: &Path) -> Result<Self, TimelineError> {
        let file = unfinished::begin(path, ".timeline-", ".pftrace");
        let file = file.map_err(|source| TimelineError { path: path.into(), source })?;
        Ok(TimelineWriter { path: path.into(), file: Some(file), failure: None, tracks: 0, bytes: vec![] })
    }

    /// A new track, below another if one is named.
    pub fn track(&mut self, name: &str, parent: Option<TrackId>) -> TrackId {
        self.describe(name, parent, None)
    }

    /// A new track of a number.
    pub fn counter(&mut self, name: &str, parent: TrackId, unit: CounterUnit) -> TrackId {
        let (unit, unit_name) = match unit {
            CounterUnit::Packets => (2, "packets".to_string()),
            CounterUnit::Bytes => (3, String::new()),
        };
        self.describe(name, Some(parent), Some(CounterDescriptor { unit, unit_name }))
    }

    fn describe(&mut self, name: &str, parent: Option<TrackId>, counter: Option<CounterDescriptor>) -> TrackId {
        self.tracks += 1;
        let uuid = self.tracks;
        let parent_uuid = parent.map(|track| track.0);
        let descriptor = TrackDescriptor { uuid, name: name.into(), parent_uuid, counter };
        self.packet(None, |packet| packet.track_descriptor = Some(descriptor));
        TrackId(uuid)
    }

    /// Something lasted from one time to another. Slices of a track must not overlap unless one holds the other.
    pub fn slice(&mut self, track: TrackId, from_ns: u64, until_ns: u64, name: &str, fields: SliceFields<'_>) {
        let number = |(name, value): &(&str, i64)| DebugAnnotation {
            name: (*name).into(),
            int_value: Some(*value),
            ..DebugAnnotation::default()
        };
        let text = |(name, value): &(&str, &str)| DebugAnnotation {
            name: (*name).into(),
            string_value: Some((*value).into()),
            ..DebugAnnotation::default()
        };
        let texts = fields.texts.iter().filter(|(_, value)| !value.is_empty()).map(text);
        let begin = TrackEvent {
            debug_annotations: texts.chain(fields.numbers.iter().map(number)).collect(),
            name: Some(name.into()),
            flow_ids: fields.arrow.into_iter().collect(),
            ..TrackEvent::default()
        };
        self.event(track, from_ns, EventType::SliceBegin, begin);
        self.event(track, until_ns, EventType::SliceEnd, TrackEvent::default());
    }

    /// Something happened at one time.
    pub fn instant(&mut self, track: TrackId, at_ns: u64, name: &str) {
        self.event(track, at_ns, EventType::Instant, TrackEvent { name: Some(name.into()), ..TrackEvent::default() });
    }

    /// A track's number has this value from now on.
    pub fn count(&mut self, track: TrackId, at_ns: u64, value: i64) {
        let event = TrackEvent { counter_value: Some(value), ..TrackEvent::default() };
        self.event(track, at_ns, EventType::Counter, event);
    }

    fn event(&mut self, track: TrackId, at_ns: u64, kind: EventType, event: TrackEvent) {
        let event = TrackEvent { kind: kind.into(), track_uuid: track.0, ..event };
        self.packet(Some(at_ns), |packet| packet.track_event = Some(event));
    }

    fn packet(&mut self, timestamp: Option<u64>, fill: impl FnOnce(&mut TracePacket)) {
        let Some(file) = &mut self.file else { return };
        let mut packet = TracePacket { timestamp, trusted_packet_sequence_id: SEQUENCE, ..TracePacket::default() };
        fill(&mut packet);
        self.bytes.clear();
        prost::encoding::message::encode(1, &packet, &mut self.bytes);
        if let Err(error) = file.write_all(&self.bytes) {
            self.failure = Some(error);
            self.file = None;
        }
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// When something could not be written.
    pub fn finish(self) -> Result<(), TimelineError> {
        let done = match (self.failure, self.file) {
            (Some(failure), _) => Err(failure),
            (None, Some(file)) => unfinished::complete(file, &self.path),
            (None, None) => Ok(()),
        };
        done.map_err(|source| TimelineError { path: self.path, source })
    }
}
