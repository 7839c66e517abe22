//! From the counters of a run to the tables of its result.
//!
//! Times are the experiment's own (divided by `time_scale`), those of the hosts' TCP too. Definitions are Etalon's
//! (NSDI'20, section 4); each table's file states them.

mod account;
mod critical_path;
mod fabric;
mod fct;
mod flows;
mod ideal;
mod job_path;
mod jobs;
mod latency;
mod linux;
mod pauses;
mod probes;
mod qcn;
mod queues;
mod series;
mod summary;
mod throughput;

use crate::run::Counters;
use crate::table::{Column, Table};
use firstlight_spec::{Flow, Network, Spec};

/// The name of the summary among the tables.
pub(crate) const SUMMARY: &str = "summary";

/// All tables of a result.
pub fn tables(spec: &Spec, counters: &Counters) -> Vec<Table> {
    let mut tables = vec![summary::table(spec, counters), flows::table(spec, counters), fabric::ports(spec, counters)];
    if spec.flows.iter().any(Flow::is_timed) {
        tables.push(fct::table(spec, counters));
    }
    if !spec.jobs.is_empty() {
        tables.extend([jobs::table(spec, counters), job_path::table(spec, counters)]);
    }
    if !counters.queues.is_empty() {
        tables.extend([queues::table(&counters.queues), queues::waits(&counters.queues)]);
        if spec.tables.measure.queue_samples.is_some() {
            tables.push(queues::samples(&counters.queues));
        }
    }
    if let Some(report) = &counters.pauses {
        tables.extend(pauses::tables(report));
    }
    if !counters.probes.is_empty() {
        tables.push(probes::table(spec, &counters.probes));
        if spec.tables.measure.probes {
            tables.push(probes::packets(spec, &counters.probes));
        }
    }
    if let Some(report) = counters.qcn.as_ref().filter(|_| spec.tables.measure.rate_limiters) {
        tables.push(qcn::table(&counters.flows, report));
    }
    tables.extend(spec.tables.measure.throughput.map(|every| throughput::table(spec, counters, every)));
    if let Network::Hybrid(hybrid) = &spec.network {
        tables.push(fabric::pairs(counters));
        tables.push(if hybrid.control.is_some() { fabric::circuits(counters) } else { fabric::week(&hybrid.week) });
    }
    if let Some(meter) = &counters.meter {
        tables.push(latency::table(meter));
        if let Some(series) = &meter.series {
            tables.push(series::table(spec, series));
        }
    }
    if let (Some(hosts), Some(reported)) = (&spec.linux, &counters.linux) {
        if spec.tables.measure.tcp_info.is_some() {
            tables.push(linux::tcp_info(spec, reported));
        }
        if counters.causes.is_some() {
            tables.push(linux::limits(spec, reported));
        }
        if hosts.has_processors() {
            tables.push(linux::processors(spec, hosts, reported));
        }
        if !hosts.programs.is_empty() {
            tables.push(linux::programs(spec, &hosts.programs, reported));
        }
    }
    if let Some(causes) = &counters.causes {
        tables.extend(account::tables(spec, counters, causes));
    }
    tables
}

pub(crate) use account::critical_paths;
pub(crate) use fabric::matching_text;
pub use ideal::{Ideal, PathLink, completion_on};
pub use summary::metric;

/// A column of numbers.
fn numbers(values: impl IntoIterator<Item = f64>) -> Column {
    Column::Number(values.into_iter().collect())
}
