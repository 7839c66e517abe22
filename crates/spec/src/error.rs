//! Problems of an experiment. Each names the key and its place, says what is wrong and what would be right.

use std::fmt;

/// The place of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemPlace {
    /// The problem is in the file, at a line and a column.
    Line {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1 in characters.
        column: usize,
    },
    /// Something that the file does not have.
    File {
        /// The file.
        path: String,
    },
    /// The problem is in an override.
    Set {
        /// The file that was overridden.
        path: String,
        /// The override's key.
        key: String,
    },
}

impl fmt::Display for ProblemPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProblemPlace::Line { path, line, column } => write!(f, "{path}:{line}:{column}"),
            ProblemPlace::File { path } => write!(f, "{path}"),
            ProblemPlace::Set { path, key } => write!(f, "{path}, from --set {key}"),
        }
    }
}

/// One problem of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key's path; empty if the file is not TOML.
    pub key: String,
    /// The place of the problem.
    pub place: ProblemPlace,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = shown(&self.problem);
        match self.key.as_str() {
            "" => write!(f, "{}: {problem}", shown(&self.place.to_string())),
            key => write!(f, "{}: {}: {problem}", shown(&self.place.to_string()), shown(key)),
        }
    }
}

/// Problems that a message names, at most.
pub(crate) const MOST_PROBLEMS: usize = 100;

/// The most characters of a part of a message, and the characters that are kept at each end of a longer part.
const LONGEST: usize = 2000;
const KEPT: usize = 400;

/// Whether a terminal would obey a character, or show another text than there is: controls, the marks that turn the
/// direction of writing, and blanks without width.
fn misleads(c: char) -> bool {
    let is_invisible =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    c.is_control() || is_invisible
}

/// A text on one line: control characters are escaped, and the middle of a text that is too long is left out.
fn shown(text: &str) -> String {
    let escaped: String = match text.contains(misleads) {
        true => text.chars().map(|c| if misleads(c) { c.escape_default().to_string() } else { c.into() }).collect(),
        false => text.into(),
    };
    let count = escaped.chars().count();
    if count <= LONGEST {
        return escaped;
    }
    let (start, end) = (escaped.chars().take(KEPT), escaped.chars().skip(count - KEPT));
    format!("{} ... {}", start.collect::<String>(), end.collect::<String>())
}

/// The reasons why an experiment cannot be read: at least one problem, all of the same stage of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The problems, in the order of the file where they have one.
    pub problems: Vec<Problem>,
}

impl std::error::Error for SpecError {}

impl fmt::Display for SpecError {
    /// One line for each problem, up to [`MOST_PROBLEMS`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<String> = self.problems.iter().take(MOST_PROBLEMS).map(Problem::to_string).collect();
        if self.problems.len() > MOST_PROBLEMS {
            lines.push("more problems follow: correct these first".into());
        }
        f.write_str(&lines.join("\n"))
    }
}

impl From<Problem> for SpecError {
    fn from(problem: Problem) -> Self {
        SpecError { problems: vec![problem] }
    }
}
