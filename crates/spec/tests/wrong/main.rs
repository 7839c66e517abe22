//! Every kind of wrong experiment, each with the whole message that a user gets.

mod fabrics;
mod input;

use firstlight_spec::Spec;

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

/// What a user is told of an experiment at `path`.
fn told_at(path: &str, text: &str) -> String {
    Spec::read(text, path, &[]).map_or_else(|error| error.to_string(), |_| "accepted".into())
}

/// What a user is told of `base` with `from` replaced by `to` or, when it is empty, with `to` behind it.
fn told(base: &str, from: &str, to: &str) -> String {
    let text = if from.is_empty() { format!("{base}{to}") } else { base.replacen(from, to, 1) };
    assert_ne!(text, base, "'{from}' stands in the experiment");
    told_at("x.toml", &text)
}

/// Each case is what is replaced, by what, and the whole message.
fn check(base: &str, cases: &[(&str, &str, &str)]) {
    let found = cases.iter().map(|(from, to, expected)| (from, to, *expected, told(base, from, to)));
    let wrong: Vec<String> = found
        .filter(|(_, _, expected, found)| found != expected)
        .map(|(from, to, expected, found)| {
            format!("\n{from:?} -> {to:?}\n  expected: {expected}\n  found:    {found}\n")
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.concat());
}
