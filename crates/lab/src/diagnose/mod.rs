//! Warnings: reasons why the results of a run may be misleading.

mod experiment;
mod lossless;
mod reasons;
mod run;
mod thresholds;

pub(crate) use experiment::of_spec;
pub(crate) use lossless::{CircularWait, circular_waits};
pub(crate) use reasons::{marking, no_notification, no_pause, pausing, unmarked};

use crate::run::Counters;
use firstlight_spec::{Network, Spec};

/// Warnings on an experiment and its run.
pub fn of_run(spec: &Spec, counters: &Counters) -> Vec<String> {
    let mut notes = of_spec(spec);
    if let (Some(meter), Network::Hybrid(hybrid)) = (&counters.meter, &spec.network) {
        run::pair(spec, hybrid, meter, &mut notes);
    }
    run::flows(spec, counters, &mut notes);
    run::lockout(spec, counters, &mut notes);
    if let Some(report) = &counters.qcn {
        run::qcn(spec, report, &mut notes);
    }
    if counters.measured.is_zero() {
        notes.push("nothing was measured: every flow was complete before the warm-up ended; shorten warmup".into());
    }
    if let (Some(hosts), Some(reported)) = (&spec.linux, &counters.linux) {
        run::linux(hosts, reported, &mut notes);
    }
    lossless::pauses(counters, &mut notes);
    notes.extend(invalid(spec, counters));
    if counters.strays > 0 {
        notes.push(format!("{} packets arrived at a port without a socket", counters.strays));
    }
    notes
}

/// Why the results of a run are invalid; empty for a valid run.
pub fn invalid(spec: &Spec, counters: &Counters) -> Vec<String> {
    let lost = counters.pauses.as_ref().map_or(0, |report| report.lost);
    let fidelity = counters.linux.as_ref().and_then(|linux| linux.fidelity.as_ref());
    let strayed = fidelity.map(|fidelity| fidelity.problems(spec)).unwrap_or_default();
    lossless::loss(lost, spec.tables.allows_loss()).into_iter().chain(strayed).collect()
}
