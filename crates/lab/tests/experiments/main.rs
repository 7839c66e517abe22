//! Experiments from their texts: wrong ones to the messages that a user gets, sound ones to their results.

mod account;
mod account_causes;
mod account_properties;
mod adapters;
mod applications;
mod control_loop;
mod end_to_end;
mod jitter;
mod jobs;
mod lossless;
mod packet_fabrics;
mod qcn;
mod schedules;
mod slowdowns;
mod workloads;

use firstlight_lab::spec::OverrideValue;
use firstlight_lab::{Column, Files, Outcome, Spec, run};
use std::borrow::Cow;
use std::ops::ControlFlow;

/// A sound experiment, short enough to know its lines by number.
const STAR: &str = "\
duration = \"1s\"

[fabric]
kind = \"star\"
hosts = 3

[hosts]
rate = \"10Gbps\"

[[flows]]
from = \"all\"
to = \"host0\"
";

/// Keys and the values laid over a text's own.
type Set<'a> = &'a [(&'a str, &'a str)];

fn overrides(set: Set<'_>) -> Vec<(String, OverrideValue)> {
    set.iter().map(|(key, value)| (key.to_string(), OverrideValue::Text(value.to_string()))).collect()
}

fn read(text: &str, set: Set<'_>) -> Spec {
    Spec::read(text, "x.toml", &overrides(set)).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn result(text: &str, set: Set<'_>) -> Outcome {
    let going_on = &mut |_| ControlFlow::Continue(());
    run(&read(text, set), &overrides(set), &Files::default(), going_on).unwrap_or_else(|error| panic!("{error}"))
}

/// The errors of an experiment at `path` as a user reads them, or "accepted".
fn reported_at(path: &str, text: &str) -> String {
    Spec::read(text, path, &[]).map_or_else(|error| error.to_string(), |_| "accepted".into())
}

/// The errors of `base` with `from` replaced by `to` or, when `from` is empty, with `to` appended.
fn reported(base: &str, from: &str, to: &str) -> String {
    let text = if from.is_empty() { format!("{base}{to}") } else { base.replacen(from, to, 1) };
    assert_ne!(text, base, "'{from}' stands in the experiment");
    reported_at("x.toml", &text)
}

/// Each case is what is replaced, by what, and the whole message.
fn check(base: &str, cases: &[(&str, &str, &str)]) {
    let found = cases.iter().map(|(from, to, expected)| (from, to, *expected, reported(base, from, to)));
    let wrong: Vec<String> = found
        .filter(|(_, _, expected, found)| found != expected)
        .map(|(from, to, expected, found)| {
            format!("\n{from:?} -> {to:?}\n  expected: {expected}\n  found:    {found}\n")
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

fn metric(outcome: &Outcome, name: &str) -> f64 {
    outcome.metric(name).unwrap_or_else(|| panic!("the summary has {name}"))
}

fn numbers<'a>(outcome: &'a Outcome, table: &str, column: &str) -> &'a [f64] {
    match outcome.table(table).and_then(|table| table.column(column)) {
        Some(Column::Number(values)) => values,
        other => panic!("{table}.{column} is {other:?}"),
    }
}

fn texts<'a>(outcome: &'a Outcome, table: &str, column: &str) -> &'a [Cow<'static, str>] {
    match outcome.table(table).and_then(|table| table.column(column)) {
        Some(Column::Text(values)) => values,
        other => panic!("{table}.{column} is {other:?}"),
    }
}

/// A column of names, each of which the table has once.
fn names<'a>(outcome: &'a Outcome, table: &str, column: &str) -> Vec<&'a str> {
    let column = outcome.table(table).and_then(|table| table.column(column));
    column.and_then(Column::texts).unwrap_or_else(|| panic!("{table} has no such names: {column:?}"))
}

fn integers<'a>(outcome: &'a Outcome, table: &str, column: &str) -> &'a [i64] {
    match outcome.table(table).and_then(|table| table.column(column)) {
        Some(Column::Integer(values)) => values,
        other => panic!("{table}.{column} is {other:?}"),
    }
}
