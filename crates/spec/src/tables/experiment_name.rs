//! The name of an experiment, which is the name of its results' directories too.

use crate::text_form::text_value;
use std::fmt;
use std::str::FromStr;

/// Bytes of a name at most.
const LONGEST: usize = 100;

/// A name that a directory can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentName(String);

impl FromStr for ExperimentName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = !text.contains(|c: char| c.is_control() || c == '/');
        if (1..=LONGEST).contains(&text.len()) && !text.starts_with('.') && plain && text.trim() == text {
            return Ok(ExperimentName(text.into()));
        }
        Err(format!(
            "'{text}' cannot be the name of a directory of results: use at most {LONGEST} bytes without '/' and \
             control characters, and no '.' or blank first"
        ))
    }
}

impl fmt::Display for ExperimentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_value! {
    ExperimentName, format: "name", pattern: r"^[^./\s][^/]{0,99}$", example: "my-experiment"
}
