//! Rules about the engine's clock: no stretched span exceeds its range, and no packet takes too long on a link.

use super::Rules;
use crate::error::SpecError;
use crate::kind::{Class, Kind};
use crate::model;
use crate::places::Places;
use crate::tables::Experiment;
use firstlight_net::topology::Topology;
use firstlight_transport::CcConfig;
use firstlight_units::{Rate, Span};
use serde_json::Value as Json;

/// Longest run on the engine's clock, which ends after 213 days.
const LONGEST_RUN: Span = Span::from_secs(100 * 86_400);
/// Longest of all other spans there.
const LONGEST_SPAN: Span = Span::from_secs(10 * 86_400);
/// The longest serialization of one packet, on the engine's clock.
const LONGEST_PACKET: Span = Span::from_secs(1);

/// The given values of one form, each with its path.
fn given<T: std::str::FromStr>(places: &Places, json: &Json, format: &str) -> Vec<(String, T)> {
    let is_of = |kind: &&Kind| matches!(&kind.class, Class::Text(Some(form)) if form.format.name == format);
    let paths = places.keys.keys().filter(|path| model::find(path).is_some_and(|kinds| kinds.iter().any(is_of)));
    let value = |path: &String| {
        let value = path.split('.').try_fold(json, |at, step| match at {
            Json::Array(items) => items.get(step.parse::<usize>().ok()?),
            table => table.get(step),
        });
        Some((path.clone(), value?.as_str()?.parse().ok()?))
    };
    paths.filter_map(value).collect()
}

impl Rules<'_> {
    /// No span leaves the engine's clock when it is stretched.
    pub(super) fn clock(&mut self) {
        let scale = u64::from(self.experiment.time_scale);
        for (path, span) in given::<Span>(self.places, self.json, "time") {
            let table = path.split('.').next().unwrap_or_default();
            let of_hosts = table == "tcp" || CcConfig::NAMES.contains(&table);
            let by = if of_hosts { 1 } else { scale };
            let most = if matches!(path.as_str(), "duration" | "warmup") { LONGEST_RUN } else { LONGEST_SPAN };
            if span > most / by {
                let stretched = if by > 1 { format!(" times time_scale = {by}") } else { String::new() };
                let days = most.as_ps() / Span::from_secs(86_400).as_ps();
                let text = format!("{span}{stretched} is too long for the engine's clock: use at most {days} days");
                self.wrong(&path, text);
            }
        }
    }

    /// Checks that no link is so slow that one packet exceeds the longest serialization.
    pub(super) fn slowest_packet(&mut self) {
        // The rate of a limited flow or of a workload is none of a link.
        let is_link = |path: &str| !["qcn.", "workload."].iter().any(|table| path.starts_with(table));
        for (path, rate) in given::<Rate>(self.places, self.json, "rate").into_iter().filter(|(path, _)| is_link(path))
        {
            if let Some(text) = too_slow(self.experiment, rate) {
                self.wrong(&path, text);
            }
        }
    }
}

/// The problem of a link whose rate is so low that one packet exceeds the longest serialization, if that is so.
fn too_slow(experiment: &Experiment, rate: Rate) -> Option<String> {
    let (mtu, scale) = (experiment.hosts.mtu, experiment.time_scale);
    let least = (u128::from(mtu.get()) * 8 * u128::from(scale)) as u64;
    let text = || {
        format!(
            "at {rate} one packet of {mtu} takes longer than {LONGEST_PACKET}, time_scale included: use at least \
             {least}bps"
        )
    };
    (rate.as_bps() < least).then(text)
}

/// Refuses links of a file on which one packet would exceed the longest serialization.
pub(crate) fn slow_links(
    experiment: &Experiment,
    places: &Places,
    path: &str,
    topology: &Topology,
) -> Result<(), SpecError> {
    let wires = topology.nics().iter().map(|nic| nic.wire).chain(topology.ports().iter().map(|port| port.wire));
    let Some(slowest) = wires.map(|wire| wire.rate).min() else { return Ok(()) };
    match too_slow(experiment, slowest) {
        Some(text) => Err(places.problem("fabric.file", format!("{path} has a link of {slowest}: {text}")).into()),
        None => Ok(()),
    }
}
