//! Reading text: blanks, comments, words, numbers.

use crate::ScriptProblem;
use firstlight_units::Span;

/// A text, and how far it has been read.
pub(crate) struct ScriptReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> ScriptReader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        ScriptReader { text, at: 0 }
    }

    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The number of the line that is being read.
    pub(crate) fn line(&self) -> usize {
        1 + self.text[..self.at].matches('\n').count()
    }

    pub(crate) fn wrong(&self, expected: &str) -> ScriptProblem {
        let found: String = self.rest().chars().take_while(|c| *c != '\n').take(40).collect();
        ScriptProblem::syntax(self.line(), format!("expected {expected}, found `{found}`"))
    }

    /// Skips blanks and comments.
    pub(crate) fn skip(&mut self) {
        loop {
            let blanks = self.rest().len() - self.rest().trim_start().len();
            self.at += blanks;
            let comment = match self.rest() {
                rest if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
                rest if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                _ => return,
            };
            self.at += comment;
        }
    }

    /// Whether nothing but blanks and comments is left.
    pub(crate) fn is_done(&mut self) -> bool {
        self.skip();
        self.rest().is_empty()
    }

    /// Takes `token` if it is next.
    pub(crate) fn take(&mut self, token: &str) -> bool {
        self.skip();
        let there = self.rest().starts_with(token);
        if there {
            self.at += token.len();
        }
        there
    }

    pub(crate) fn expect(&mut self, token: &str) -> Result<(), ScriptProblem> {
        if self.take(token) { Ok(()) } else { Err(self.wrong(&format!("`{token}`"))) }
    }

    /// Whether `token` is next.
    pub(crate) fn sees(&mut self, token: &str) -> bool {
        self.skip();
        self.rest().starts_with(token)
    }

    /// As many characters as `part` accepts; perhaps none.
    pub(crate) fn run(&mut self, part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Everything up to `end`, which is skipped.
    pub(crate) fn until(&mut self, end: &str) -> Result<&'a str, ScriptProblem> {
        let rest = self.rest();
        let length = rest.find(end).ok_or_else(|| self.wrong(&format!("`{end}` after this")))?;
        self.at += length + end.len();
        Ok(&rest[..length])
    }

    /// A word of letters, digits and underscores; empty when there is none.
    pub(crate) fn word(&mut self) -> &'a str {
        self.skip();
        self.run(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    /// Whether a number is next.
    pub(crate) fn sees_number(&mut self) -> bool {
        self.skip();
        let digits = self.rest().trim_start_matches('-');
        digits.starts_with(|c: char| c.is_ascii_digit())
    }

    /// A whole number, decimal or hexadecimal.
    pub(crate) fn number(&mut self) -> Result<i64, ScriptProblem> {
        self.skip();
        let negative = self.take("-");
        let number = if self.take("0x") {
            i64::from_str_radix(self.run(|c| c.is_ascii_hexdigit()), 16)
        } else {
            self.run(|c| c.is_ascii_digit()).parse()
        };
        number.map(|n| if negative { -n } else { n }).map_err(|_| self.wrong("a number"))
    }

    pub(crate) fn unsigned<T: TryFrom<i64>>(&mut self) -> Result<T, ScriptProblem> {
        let number = self.number()?;
        T::try_from(number).map_err(|_| self.wrong("a smaller number before this"))
    }

    /// Seconds with a fraction, such as `.105`. The three dots of a range are no part of it.
    pub(crate) fn seconds(&mut self) -> Result<Span, ScriptProblem> {
        self.skip();
        let whole = self.run(|c| c.is_ascii_digit());
        let dot = self.rest().strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let fraction = if dot {
            self.at += 1;
            self.run(|c| c.is_ascii_digit())
        } else {
            ""
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(self.wrong("seconds"));
        }
        let nanoseconds: u64 = format!("{fraction:0<9}")[..9].parse().expect("nine digits");
        Ok(Span::from_secs(whole.parse().unwrap_or(0)) + Span::from_ns(nanoseconds))
    }
}
