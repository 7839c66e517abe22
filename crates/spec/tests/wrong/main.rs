//! Every kind of wrong experiment, each with the whole message that a user gets.

mod fabrics;
mod input;

use firstlight_spec::{Spec, schema};
use firstlight_units::UnitError;
use std::str::FromStr;

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

/// The kinds of a table that have a key, which messages list: they grow with the code.
fn kinds(table: &str, key: &str) -> Vec<&'static str> {
    let table = &schema()["anyOf"][0]["properties"][table];
    let variants = table.get("items").unwrap_or(table)["oneOf"].as_array().expect("a table of several kinds");
    let keys = variants.iter().map(|variant| &variant["properties"]);
    keys.filter(|keys| keys.get(key).is_some()).filter_map(|keys| keys["kind"]["const"].as_str()).collect()
}

/// The error of a text that is no such quantity. It lists the units, which grow with the code.
fn unit_error<T: FromStr<Err = UnitError>>(text: &str) -> UnitError {
    text.parse::<T>().err().expect("a text that is no quantity")
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
