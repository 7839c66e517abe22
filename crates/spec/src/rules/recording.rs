//! Rules about what is recorded: it exists, and fits in memory.

use super::{Rules, port_names, port_of_name};
use crate::error::{Problem, SpecError};
use crate::places::Places;
use crate::tables::Experiment;
use firstlight_net::topology::Topology;

/// Most samples of all watched queues, and numbers in all intervals of all flows.
const MOST_CELLS: u64 = 50_000_000;
/// Most samples of `TCP_INFO`.
const MOST_TCP_INFO: u64 = 5_000_000;

impl Rules<'_> {
    pub(super) fn queue_samples(&mut self) {
        let measure = &self.experiment.measure;
        let Some(every) = measure.queue_samples else { return };
        let (duration, queues) = (self.experiment.duration, measure.queues.as_ref().map_or(0, Vec::len) as u64);
        let most = MOST_CELLS / queues.max(1);
        if duration.as_ps() / every.as_ps() > most {
            let text = format!("{every} makes too many samples of {queues} queues in {duration}: use at most {most}");
            self.wrong("measure.queue_samples", text);
        }
    }
}

/// Checks that the intervals of `measure.throughput` with so many flows fit in memory.
pub(crate) fn intervals(experiment: &Experiment, places: &Places, flows: usize) -> Result<(), SpecError> {
    let Some(every) = experiment.measure.throughput else { return Ok(()) };
    let measured = experiment.duration.saturating_sub(experiment.warmup);
    let most = MOST_CELLS / flows.max(1) as u64;
    if measured.as_ps() / every.as_ps() <= most {
        return Ok(());
    }
    let text = format!("{every} makes too many intervals of {measured} for {flows} flows: use at most {most} of them");
    Err(places.problem("measure.throughput", text).into())
}

/// What is wrong with `measure.tcp_info`, if the samples of so many flows do not fit in memory.
pub(crate) fn tcp_info_samples(experiment: &Experiment, places: &Places, flows: usize) -> Option<Problem> {
    let every = experiment.measure.tcp_info?;
    let samples = (experiment.duration.as_ps() / every.as_ps()).saturating_mul(flows as u64);
    let text =
        || format!("{every} makes {samples} samples of {flows} flows: use at most {MOST_TCP_INFO}, by a longer span");
    (samples > MOST_TCP_INFO).then(|| places.problem("measure.tcp_info", text()))
}

/// Checks that `measure.queues` names ports of the network, each once.
pub(crate) fn watched_ports(experiment: &Experiment, places: &Places, topology: &Topology) -> Result<(), SpecError> {
    let wrong = |text: String| Err(places.problem("measure.queues", text).into());
    let Some(wanted) = &experiment.measure.queues else { return Ok(()) };
    let all = port_names(topology);
    for (index, name) in wanted.iter().enumerate() {
        if wanted[..index].contains(name) {
            return wrong(format!("'{name}' is there twice: name it once"));
        }
        if let Err(text) = port_of_name(&all, name) {
            return wrong(text);
        }
    }
    Ok(())
}
