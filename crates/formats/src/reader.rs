//! A text as lines of words, each with its place in the file.

use super::ImportError;
use firstlight_net::HostId;
use std::fmt::Display;
use std::str::FromStr;

/// A place in a file, counted from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilePlace<'a> {
    pub file: &'a str,
    pub line: usize,
    pub column: usize,
}

/// A word of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a> {
    pub text: &'a str,
    pub place: FilePlace<'a>,
}

/// A line that has words.
#[derive(Clone, Debug)]
pub(crate) struct TextLine<'a> {
    pub words: Vec<Word<'a>>,
    /// The place behind the last word.
    pub end: FilePlace<'a>,
}

/// The lines of `text` that have words, without comments: from the character `comment` to the end of the line.
pub(crate) fn lines<'a>(file: &'a str, text: &'a str, comment: Option<char>) -> impl Iterator<Item = TextLine<'a>> {
    text.lines().enumerate().filter_map(move |(i, line)| {
        let length = comment.and_then(|comment| line.find(comment)).unwrap_or(line.len());
        // Columns count characters, from the word before: from the line's start, a line of a million words took hours.
        let (mut counted, mut column) = (0, 1);
        let words: Vec<Word<'a>> = line[..length]
            .split_whitespace()
            .map(|text| {
                // The word is a part of the line: the distance of their addresses is the word's offset.
                let at = text.as_ptr() as usize - line.as_ptr() as usize;
                column += line[counted..at].chars().count();
                counted = at;
                Word { text, place: FilePlace { file, line: i + 1, column } }
            })
            .collect();
        let last = words.last()?;
        let column = last.place.column + last.text.chars().count();
        Some(TextLine { end: FilePlace { column, ..last.place }, words })
    })
}

impl<'a> FilePlace<'a> {
    /// The beginning of a file.
    pub const fn start(file: &'a str) -> Self {
        FilePlace { file, line: 1, column: 1 }
    }

    /// An error at this place.
    pub fn error(&self, problem: impl Into<String>) -> ImportError {
        ImportError { file: self.file.into(), line: self.line, column: self.column, problem: problem.into() }
    }

    /// A note on a part of the file that is not modelled.
    pub fn note(&self, note: impl Display) -> String {
        format!("{}:{}: {note}", self.file, self.line)
    }
}

impl Word<'_> {
    /// An error at this word.
    pub fn error(&self, problem: impl Into<String>) -> ImportError {
        self.place.error(problem)
    }

    /// A whole number from `least` to `most`.
    pub fn whole<T>(&self, what: &str, least: T, most: T) -> Result<T, ImportError>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let digits = !self.text.is_empty() && self.text.bytes().all(|b| b.is_ascii_digit());
        let number = self.text.parse().ok().filter(|n| digits && (least..=most).contains(n));
        let wrong = || format!("expected {what}, found '{}': write a whole number from {least} to {most}", self.text);
        number.ok_or_else(|| self.error(wrong()))
    }

    /// The host with this number; `numbers` has the number of each host, ascending.
    pub fn host(&self, what: &str, numbers: &[u32]) -> Result<HostId, ImportError> {
        let last = numbers.last().copied().unwrap_or_default();
        let number = self.whole(what, numbers.first().copied().unwrap_or_default(), last)?;
        let host = numbers.binary_search(&number).map_err(|_| {
            self.error(format!(
                "expected {what}, found '{number}', which is no host of the network's file: use one of its hosts"
            ))
        });
        host.map(|host| HostId(host as u16))
    }

    /// A quantity with its unit.
    pub fn quantity<T: FromStr<Err: Display>>(&self) -> Result<T, ImportError> {
        self.text.parse().map_err(|error: T::Err| self.error(error.to_string()))
    }
}

impl<'a> TextLine<'a> {
    /// The line's words, if their number is one of `counts`; the error says what the line should be.
    pub fn expect(&self, counts: &[usize], right: &str) -> Result<&[Word<'a>], ImportError> {
        let most = *counts.iter().max().expect("a line has some number of words");
        if counts.contains(&self.words.len()) {
            return Ok(&self.words);
        }
        match self.words.get(most) {
            Some(word) => Err(word.error(format!("'{}' is one word too many: write {right}", word.text))),
            None => Err(self.end.error(format!("the line ends too early: write {right}"))),
        }
    }

    /// The line's words, if there is one for each of `names`; the error names the missing one.
    pub fn columns<const N: usize>(&self, names: [&str; N]) -> Result<[Word<'a>; N], ImportError> {
        if let Some(extra) = self.words.get(N) {
            let problem = format!("'{}' is one word too many: a line has {}", extra.text, names.join(", "));
            return Err(extra.error(problem));
        }
        self.words.as_slice().try_into().map_err(|_| {
            let missing = names[self.words.len()];
            self.end.error(format!("{missing} is missing: a line has {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_places() {
        let read: Vec<TextLine> = lines("f", "\n  a µs  b # c\r\n# d\n\tz\n", Some('#')).collect();
        let places =
            |line: &TextLine| line.words.iter().map(|w| (w.text.to_owned(), w.place.column)).collect::<Vec<_>>();
        assert_eq!(places(&read[0]), [("a".into(), 3), ("µs".into(), 5), ("b".into(), 9)]);
        assert_eq!((read[0].end.line, read[0].end.column), (2, 10));
        assert_eq!((places(&read[1]), read[1].end.line, read.len()), (vec![("z".into(), 2)], 4, 2));
    }

    /// Counting each column from the line's start would take hours here.
    #[test]
    fn a_line_may_have_a_million_words() {
        let text = "µ ".repeat(1_000_000);
        let line = lines("f", &text, None).next().unwrap();
        assert_eq!((line.words.len(), line.words[999_999].place.column), (1_000_000, 1_999_999));
    }

    #[test]
    fn numbers_and_lengths_are_checked() {
        let line = lines("f", "12 x 70000", None).next().unwrap();
        let message = |i: usize| line.words[i].whole("a port", 1, 65_535).map_err(|error| error.to_string());
        assert_eq!(message(0), Ok(12));
        assert_eq!(message(1), Err("f:1:4: expected a port, found 'x': write a whole number from 1 to 65535".into()));
        assert_eq!(
            message(2),
            Err("f:1:6: expected a port, found '70000': write a whole number from 1 to 65535".into())
        );
        let wrong = |counts: &[usize]| line.expect(counts, "this").unwrap_err().to_string();
        assert_eq!(wrong(&[2]), "f:1:6: '70000' is one word too many: write this");
        assert_eq!(wrong(&[4, 6]), "f:1:11: the line ends too early: write this");
        assert!(line.expect(&[3, 6], "this").is_ok());
        assert_eq!(
            line.columns(["a", "b"]).unwrap_err().to_string(),
            "f:1:6: '70000' is one word too many: a line has a, b"
        );
        let missing = line.columns(["a", "b", "c", "d"]).unwrap_err().to_string();
        assert_eq!(missing, "f:1:11: d is missing: a line has a, b, c, d");
    }
}
