//! The manifest of a result: the experiment, the version that ran it, and the evidence that the result is valid.

use crate::diagnose;
use crate::run::Counters;
use crate::table::Table;
use firstlight_linux::Frames;
use firstlight_spec::{HostKind, OverrideValue, Overrides, Spec};
use firstlight_version::version;
use serde_json::{Map, Value as Json, json};

/// Version of the manifest's layout: counted up when readers have to change.
const FORMAT: u32 = 1;

/// The manifest.
pub fn manifest(spec: &Spec, overrides: &Overrides, counters: &Counters, tables: &[Table]) -> Json {
    let totals = &counters.totals;
    json!({
        "format": FORMAT,
        "name": spec.name,
        "version": version(),
        "seed": spec.tables.seed,
        "digest": format!("{:016x}", counters.digest),
        "time_scale": spec.tables.time_scale,
        "duration_us": spec.tables.duration.as_us_f64(),
        "warmup_us": spec.tables.warmup.as_us_f64(),
        "elapsed_us": counters.elapsed.as_us_f64(),
        "measured_us": counters.measured.as_us_f64(),
        "finished": counters.unfinished == 0 && counters.jobs.iter().all(|job| job.finish.is_some()),
        "hosts": hosts(spec, counters),
        "warnings": diagnose::of_run(spec, counters),
        "invalid": diagnose::invalid(spec, counters),
        "conservation": {
            // Switches send congestion notifications, and hosts' interfaces receive them.
            "offered": totals.injected + totals.notified,
            "delivered": totals.exited + totals.taken_in,
            "dropped": totals.dropped,
            "lost": totals.lost,
            "held": totals.held,
            "ok": totals.imbalances.is_empty(),
        },
        "counts": {
            "events": totals.events,
            "packet_hops": totals.hops,
            "delivered_data_packets": delivered_data_packets(spec, counters),
            "marked": totals.marked,
        },
        "columns": columns(tables),
        "overrides": overrides_json(overrides),
        "spec": spec.resolved,
    })
}

/// The number of flows of each kind of hosts, and the counts of Linux hosts' frames.
fn hosts(spec: &Spec, counters: &Counters) -> Json {
    let linux = spec.flows.iter().filter(|flow| flow.hosts == HostKind::Linux).count();
    let mut hosts = json!({"simulated": spec.flows.len() - linux, "linux": linux});
    if let Some(reported) = &counters.linux {
        let Frames { sent, delivered, dropped, held, early, late, not_ip, malformed, elsewhere } = reported.frames;
        hosts["frames"] = json!({
            "sent": sent,
            "delivered": delivered,
            "dropped": dropped,
            "held": held,
            "early": early,
            "late": late,
            "not_ip": not_ip,
            "malformed": malformed,
            "elsewhere": elsewhere,
        });
        if let Some(fidelity) = &reported.fidelity {
            hosts["fidelity"] = fidelity.json(spec);
        }
    }
    hosts
}

/// Segments that receivers have in order, counted as full ones: the unit of costs per delivered packet.
fn delivered_data_packets(spec: &Spec, counters: &Counters) -> u64 {
    counters.flows.iter().map(|flow| flow.bytes_received.div_ceil(u64::from(spec.tables.tcp.tcp.mss()))).sum()
}

/// The meaning of each table's columns.
pub(crate) fn columns(tables: &[Table]) -> Json {
    let fields = |table: &Table| table.fields.iter().map(|field| (field.name.into(), field.doc.into())).collect();
    Json::Object(tables.iter().map(|table| (table.name.into(), Json::Object(fields(table)))).collect())
}

pub(crate) fn overrides_json(overrides: &Overrides) -> Json {
    Json::Object(overrides.iter().map(|(key, value)| (key.clone(), override_json(value))).collect::<Map<_, _>>())
}

fn override_json(value: &OverrideValue) -> Json {
    match value {
        OverrideValue::Text(text) => json!(text),
        OverrideValue::Integer(n) => json!(n),
        OverrideValue::Float(x) => json!(x),
        OverrideValue::Flag(flag) => json!(flag),
        OverrideValue::List(items) => items.iter().map(override_json).collect(),
        OverrideValue::Table(entries) => overrides_json(entries),
        OverrideValue::Remove => Json::Null,
    }
}
