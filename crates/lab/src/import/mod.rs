//! Text files of other simulators: flow-size distributions, flow lists and connection matrices.
//!
//! The formats are those that their programs read, as their documentation and published files show them. A wrong line is
//! an error with file, line and column that says what would be right; what a file asks for and we do not have is one too.

pub mod cdf;
pub mod connections;
pub mod flows;
mod reader;
pub mod topology;

use firstlight_net::HostId;
use firstlight_units::{Bytes, Span};
use std::fmt::Display;
use std::str::FromStr;

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct ImportError {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// What is wrong and what would be right.
    pub problem: String,
}

/// One flow of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFlow {
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// How much it sends; nothing for a flow that sends until the end.
    pub size: Option<Bytes>,
    /// When it starts.
    pub start: Span,
    /// Its traffic class, when the list gives one.
    pub class: Option<u8>,
    /// The line and column of its start, for later errors.
    pub place: (usize, usize),
}

/// A word of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub text: &'a str,
    pub line: usize,
    pub column: usize,
}

/// A line with at least one word; `end` is where a missing word would stand.
#[derive(Clone, Debug)]
pub(crate) struct Line<'a> {
    pub tokens: Vec<Token<'a>>,
    pub end: Token<'a>,
}

/// The lines of a file that have words: a `#` begins a comment.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().enumerate().filter_map(|(index, whole)| {
        let code = whole.split('#').next().unwrap_or_default();
        let column = |part: &str| code[..part.as_ptr() as usize - code.as_ptr() as usize].chars().count() + 1;
        let token = |text| Token { text, line: index + 1, column: column(text) };
        let tokens: Vec<Token<'_>> = code.split_whitespace().map(token).collect();
        let end = Token { text: "", line: index + 1, column: code.trim_end().chars().count() + 1 };
        (!tokens.is_empty()).then_some(Line { tokens, end })
    })
}

impl Token<'_> {
    /// An error at this word.
    pub fn error(&self, file: &str, problem: impl Into<String>) -> ImportError {
        ImportError { file: file.into(), line: self.line, column: self.column, problem: problem.into() }
    }

    /// The whole number from `least` to `most` that it is.
    pub fn whole<T>(&self, file: &str, what: &str, least: T, most: T) -> Result<T, ImportError>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let digits = !self.text.is_empty() && self.text.bytes().all(|b| b.is_ascii_digit());
        let number = self.text.parse().ok().filter(|n| digits && (least..=most).contains(n));
        let wrong = || format!("expected {what}, found '{}': write a whole number from {least} to {most}", self.text);
        number.ok_or_else(|| self.error(file, wrong()))
    }

    /// The host that it numbers, of so many.
    pub fn host(&self, file: &str, what: &str, hosts: usize) -> Result<HostId, ImportError> {
        self.whole(file, what, 0, hosts.saturating_sub(1)).map(|host| HostId(host as u16))
    }
}

impl<'a> Line<'a> {
    /// The words, when there are as many as `names`.
    pub fn words<const N: usize>(&self, file: &str, names: [&str; N]) -> Result<[Token<'a>; N], ImportError> {
        if let Some(extra) = self.tokens.get(N) {
            let problem = format!("'{}' is one word too many: a line has {}", extra.text, names.join(", "));
            return Err(extra.error(file, problem));
        }
        self.tokens.as_slice().try_into().map_err(|_| {
            let missing = names[self.tokens.len()];
            self.end.error(file, format!("{missing} is missing: a line has {}", names.join(", ")))
        })
    }
}
