//! Warnings: what makes a run's figures say something else than it seems.

mod experiment;
mod lossless;
mod reasons;
mod run;
mod thresholds;

pub(crate) use experiment::of_spec;
pub(crate) use lossless::circular_waits;
pub(crate) use reasons::{marking, no_notification, no_pause, pausing, unmarked};

use crate::run::Counters;
use crate::spec::{Network, Spec};

/// What the run has shown.
pub fn of_run(spec: &Spec, counters: &Counters) -> Vec<String> {
    let mut notes = of_spec(spec);
    if let (Some(meter), Network::Hybrid(hybrid)) = (&counters.meter, &spec.network) {
        run::pair(spec, hybrid, meter, &mut notes);
    }
    run::flows(spec, counters, &mut notes);
    if let Some(report) = &counters.qcn {
        run::qcn(spec, report, &mut notes);
    }
    if counters.measured.is_zero() {
        notes.push("every flow was complete before the warm-up ended: nothing was measured".into());
    }
    if let (Some(hosts), Some(told)) = (&spec.linux, &counters.linux) {
        run::linux(hosts, told, &mut notes);
    }
    lossless::pauses(counters, &mut notes);
    notes.extend(invalid(spec, counters));
    if counters.strays > 0 {
        notes.push(format!("{} packets came to a port where nobody listens", counters.strays));
    }
    notes
}

/// Why a run's figures are not what the experiment asked for; nothing on a sound run.
pub fn invalid(spec: &Spec, counters: &Counters) -> Vec<String> {
    let lost = counters.pauses.as_ref().map_or(0, |report| report.lost);
    lossless::loss(lost, spec.allow_loss).into_iter().collect()
}
