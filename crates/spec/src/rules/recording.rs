//! Rules about recordings: what is to be recorded exists, and its records fit in memory.

use super::port_of_name;
use crate::error::{Problem, SpecError};
use crate::network::Network;
use crate::places::Places;
use crate::tables::Experiment;
use wildmatch::WildMatch;

/// Most samples of all watched queues, and numbers in all intervals of all flows.
const MOST_CELLS: u64 = 50_000_000;
/// Most samples of `TCP_INFO`.
const MOST_TCP_INFO: u64 = 5_000_000;

/// Checks that the intervals of `measure.throughput` for `flows` flows fit in memory.
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

/// The problem of `measure.tcp_info` if the samples of `flows` flows do not fit in memory.
pub(crate) fn tcp_info_samples(experiment: &Experiment, places: &Places, flows: usize) -> Option<Problem> {
    let every = experiment.measure.tcp_info?;
    let samples = (experiment.duration.as_ps() / every.as_ps()).saturating_mul(flows as u64);
    let text =
        || format!("{every} makes {samples} samples of {flows} flows: use at most {MOST_TCP_INFO}, by a longer span");
    (samples > MOST_TCP_INFO).then(|| places.problem("measure.tcp_info", text()))
}

/// The ports or VOQs that `measure.queues` names, each once, in the order of the names and of the ports.
pub(crate) fn watched_queues(
    experiment: &Experiment,
    places: &Places,
    network: &Network,
) -> Result<Vec<String>, SpecError> {
    let wrong = |text: String| SpecError::from(places.problem("measure.queues", text));
    let Some(wanted) = &experiment.measure.queues else { return Ok(vec![]) };
    let all = network.queue_names();
    let mut found: Vec<usize> = vec![];
    let mut is_found = vec![false; all.len()];
    for (index, name) in wanted.iter().enumerate() {
        if wanted[..index].contains(name) {
            return Err(wrong(format!("'{name}' is listed twice: name it once")));
        }
        let ports = ports_like(&all, name).map_err(wrong)?;
        found.extend(ports.into_iter().filter(|port| !std::mem::replace(&mut is_found[*port], true)));
    }
    if let Some(every) = experiment.measure.queue_samples {
        let most = MOST_CELLS / found.len().max(1) as u64;
        if experiment.duration.as_ps() / every.as_ps() > most {
            let (duration, queues) = (experiment.duration, found.len());
            let text = format!("{every} makes too many samples of {queues} queues in {duration}: use at most {most}");
            return Err(places.problem("measure.queue_samples", text).into());
        }
    }
    Ok(found.into_iter().map(|port| all[port].clone()).collect())
}

/// The ports with this name, or those that a pattern with `*` or `?` matches.
fn ports_like(all: &[String], name: &str) -> Result<Vec<usize>, String> {
    if !name.contains(['*', '?']) {
        return port_of_name(all, name).map(|port| vec![port]);
    }
    let pattern = WildMatch::new(name);
    let ports: Vec<usize> = (0..all.len()).filter(|port| pattern.matches(&all[*port])).collect();
    if ports.is_empty() {
        let example = all.first().map_or("", String::as_str);
        return Err(format!("no port matches '{name}': ports are called {example} and so on; '*' is any text"));
    }
    Ok(ports)
}
