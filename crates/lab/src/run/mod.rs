//! The run: warm-up, measurement, and counters.
//!
//! The run is divided into slices so that the caller can watch and stop it. A slice is as long as a fixed number of
//! events takes; where slices end changes nothing in the run.

mod counters;
mod linux;

pub use counters::Counters;
pub use linux::{LinuxCounters, ProgramEnd, TcpInfoSample};

use crate::build::{Timeline, TimelineRequest, build, start_capture};
use crate::error::LabError;
use firstlight_sim::{FlowProgress, World};
use firstlight_spec::Spec;
use firstlight_units::Span;
use std::ops::ControlFlow;
use std::path::Path;

/// Events of one slice: some tens of milliseconds of real time.
const SLICE_EVENTS: u64 = 300_000;
/// The first slice is this part of the run.
const FIRST_SLICE: u64 = 10_000;
/// No slice is longer than this part of the run.
const LONGEST_SLICE: u64 = 50;

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// The part of the run that is done, 0 to 1: of its time, or of its flows' bytes where these end it.
    pub part: f64,
    /// Transmissions begun, over all links.
    pub packet_hops: u64,
}

/// A function that is called after every slice; [`ControlFlow::Break`] cancels the run.
pub type Progress<'a> = dyn FnMut(Done) -> ControlFlow<()> + 'a;

/// Files that a run writes beside its result.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files<'a> {
    /// The packet capture.
    pub capture: Option<&'a Path>,
    /// The timeline.
    pub timeline: Option<&'a TimelineRequest>,
}

/// Runs an experiment, and writes the files that are named. The timeline still lacks the data that are known only after
/// the run.
///
/// # Errors
/// When the engine refuses the experiment, a file cannot be written, the run is cancelled, or packets are not
/// conserved.
pub fn simulate(
    spec: &Spec,
    files: &Files<'_>,
    progress: &mut Progress<'_>,
) -> Result<(Counters, Option<Timeline>), LabError> {
    if spec.tables.measure.capture && files.capture.is_none() {
        return Err(LabError::NoCaptureFile);
    }
    if spec.linux.is_some() {
        return Err(LabError::LinuxHosts);
    }
    let mut world = build(spec)?;
    let writer = files.capture.map(|path| start_capture(spec, &mut world, path)).transpose()?;
    let timeline = files.timeline.map(|request| Timeline::begin(spec, request, &mut world)).transpose()?;
    // A run that has only probes or flows without a size waits for its time.
    let sized = !spec.flows.is_empty() && spec.probes.is_empty() && spec.flows.iter().all(|flow| flow.size.is_some());
    let mut runner = Runner { spec, world, progress, slice: first_slice(spec), events: 0 };
    runner.run(spec.tables.warmup, false)?;
    runner.world.fabric_mut().reset_meter();
    let warm = runner.world.flows();
    let intervals = match spec.tables.measure.throughput {
        None => {
            runner.run(spec.tables.duration, sized)?;
            vec![]
        }
        Some(every) => runner.run_in_intervals(every, sized)?,
    };
    let mut world = runner.world;
    if let Some(writer) = writer {
        drop(world.fabric_mut().take_capture());
        writer.finish()?;
    }
    drop(world.fabric_mut().take_timeline());
    let causes = world.fabric_mut().take_causes();
    Ok((Counters { intervals, causes, ..Counters::of(spec, &world, warm)? }, timeline))
}

fn first_slice(spec: &Spec) -> Span {
    Span::from_ps((spec.tables.duration.as_ps() / FIRST_SLICE).max(1))
}

struct Runner<'a, 'p> {
    spec: &'a Spec,
    world: World,
    progress: &'a mut Progress<'p>,
    slice: Span,
    events: u64,
}

impl Runner<'_, '_> {
    /// Runs to the end. Returns how far each flow has come at the start and after each interval.
    fn run_in_intervals(&mut self, every: Span, until_finished: bool) -> Result<Vec<Vec<FlowProgress>>, LabError> {
        let mut all = vec![self.world.progress()];
        let mut end = self.spec.tables.warmup;
        while end < self.spec.tables.duration {
            end = Span::from_ps(end.as_ps().saturating_add(every.as_ps())).min(self.spec.tables.duration);
            self.run(end, until_finished)?;
            let finished = until_finished && self.world.is_finished();
            if (end - self.spec.tables.warmup).as_ps().is_multiple_of(every.as_ps()) {
                all.push(self.world.progress());
            }
            if finished {
                break;
            }
        }
        Ok(all)
    }

    /// Runs up to `end`, in the experiment's time; with `until_finished` only until all flows are complete.
    fn run(&mut self, end: Span, until_finished: bool) -> Result<(), LabError> {
        let scale = u64::from(self.spec.tables.time_scale);
        loop {
            let now = Span::from_ps(self.world.now().as_ps() / scale);
            if now >= end || (until_finished && self.world.is_finished()) {
                return Ok(());
            }
            let next = Span::from_ps(now.as_ps().saturating_add(self.slice.as_ps())).min(end);
            let until = self.world.fabric().at(next);
            if until_finished {
                self.world.run_until_finished(until)
            } else {
                self.world.run_until(until)
            }
            self.adapt();
            for own in &self.spec.own {
                if let Some(fault) = own.take_fault() {
                    return Err(LabError::Controller { name: own.name(), fault });
                }
            }
            let packet_hops = self.world.fabric().totals().hops;
            let done = Done { part: self.done(until_finished), packet_hops };
            if (self.progress)(done).is_break() {
                return Err(LabError::Cancelled);
            }
        }
    }

    /// The part of the run that is done: of its time, or of its flows' bytes where these end it.
    fn done(&self, until_finished: bool) -> f64 {
        let time = self.world.now().as_secs_f64() / self.world.fabric().at(self.spec.tables.duration).as_secs_f64();
        let received = if until_finished { self.world.part_received() } else { 0.0 };
        time.max(received).min(1.0)
    }

    /// Makes the next slice about as long as [`SLICE_EVENTS`] take.
    fn adapt(&mut self) {
        let events = self.world.fabric().totals().events;
        let passed = events - self.events;
        self.events = events;
        let longest = (self.spec.tables.duration.as_ps() / LONGEST_SLICE).max(1);
        let slice = self.slice.as_ps();
        let next = if passed < SLICE_EVENTS / 2 {
            slice * 2
        } else if passed > SLICE_EVENTS * 2 {
            slice / 2
        } else {
            slice
        };
        self.slice = Span::from_ps(next.clamp(1, longest));
    }
}
