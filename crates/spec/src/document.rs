//! The TOML of an experiment as a tree in which every key and value has its place in the file.

use crate::error::{Problem, ProblemPlace, SpecError};
use crate::model::join;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct TomlNode {
    pub value: TomlValue,
    pub origin: Origin,
}

/// A TOML value, not yet checked against its key.
#[derive(Clone, Debug)]
pub(crate) enum TomlValue {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    /// A date or time of TOML. No key takes one.
    Date(String),
    List(Vec<TomlNode>),
    Table(Vec<TomlEntry>),
}

/// A key of a table with its value.
#[derive(Clone, Debug)]
pub(crate) struct TomlEntry {
    pub name: String,
    /// Where the key itself stands.
    pub origin: Origin,
    pub node: TomlNode,
}

/// A place in the file or among the overrides.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// Byte offset in the experiment's file.
    File(usize),
    /// The override of this key.
    Set(String),
}

/// The parsed file, with the line starts and names that are needed to report places in it.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub path: String,
    text: String,
    /// Byte offsets at which the lines begin.
    lines: Vec<usize>,
    pub root: Vec<TomlEntry>,
}

impl Document {
    /// Reads TOML; a syntax error names its place.
    pub fn parse(text: &str, path: &str) -> Result<Self, SpecError> {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut document = Document { path: path.into(), text: text.into(), lines, root: vec![] };
        let at = |offset: Option<usize>| document.place(offset);
        let table = DeTable::parse(text).map_err(|error| {
            let place = at(Some(error.span().map_or(0, |span| span.start)));
            let problem = format!("this is not TOML: {}", error.message().replace('\n', "; "));
            SpecError::from(Problem { key: String::new(), place, problem })
        })?;
        document.root = convert_table(table.get_ref(), "")
            .map_err(|(key, span, problem)| SpecError::from(Problem { key, place: at(Some(span.start)), problem }))?;
        Ok(document)
    }

    /// The place of an origin, for a message.
    pub fn place_of(&self, origin: &Origin) -> ProblemPlace {
        match origin {
            Origin::File(offset) => self.place(Some(*offset)),
            Origin::Set(key) => ProblemPlace::Set { path: self.path.clone(), key: key.clone() },
        }
    }

    /// Whether the key `key` of the table `table` is a list with items; an override may have it as a text.
    pub fn has_items(&self, table: &str, key: &str) -> bool {
        let of = |entries: &[TomlEntry], name: &str| {
            entries.iter().find(|entry| entry.name == name).map(|entry| entry.node.value.clone())
        };
        let Some(TomlValue::Table(entries)) = of(&self.root, table) else { return false };
        match of(&entries, key) {
            Some(TomlValue::List(items)) => !items.is_empty(),
            Some(TomlValue::Text(text)) => !text.trim_matches(['[', ']', ' ']).is_empty(),
            _ => false,
        }
    }

    /// The place of a byte offset; without an offset, the file as a whole.
    pub fn place(&self, offset: Option<usize>) -> ProblemPlace {
        let Some(offset) = offset else { return ProblemPlace::File { path: self.path.clone() } };
        let offset = offset.min(self.text.len());
        let line = self.lines.partition_point(|start| *start <= offset);
        let column = self.text[self.lines[line - 1]..offset].chars().count() + 1;
        ProblemPlace::Line { path: self.path.clone(), line, column }
    }
}

impl TomlValue {
    /// The type of the value, in words.
    pub fn describe(&self) -> String {
        match self {
            TomlValue::Text(text) => format!("the text \"{text}\""),
            TomlValue::Integer(n) => format!("the number {n}"),
            TomlValue::Float(x) => format!("the number {x:?}"),
            TomlValue::Flag(flag) => format!("{flag}"),
            TomlValue::Date(date) => format!("the date {date}"),
            TomlValue::List(_) => "a list".into(),
            TomlValue::Table(_) => "a table".into(),
        }
    }

    /// Reads one TOML value, as typed after `--set key=`; `None` for what is not TOML, and the problem of a number that
    /// is too large.
    pub fn parse(text: &str, origin: &Origin) -> Option<Result<TomlValue, String>> {
        let value = DeValue::parse(text).ok()?;
        Some(convert(value.get_ref(), value.span(), "").map_err(|(_, _, problem)| problem).map(|mut raw| {
            raw.value.replace_origin(origin);
            raw.value
        }))
    }

    fn replace_origin(&mut self, origin: &Origin) {
        match self {
            TomlValue::List(items) => {
                for item in items {
                    item.origin = origin.clone();
                    item.value.replace_origin(origin);
                }
            }
            TomlValue::Table(entries) => {
                for entry in entries {
                    entry.origin = origin.clone();
                    entry.node.origin = origin.clone();
                    entry.node.value.replace_origin(origin);
                }
            }
            _ => {}
        }
    }
}

/// Keys that a tree cannot hold, each with its place and the text of the problem.
type Refused = (String, Range<usize>, String);

fn convert_table(table: &DeTable<'_>, path: &str) -> Result<Vec<TomlEntry>, Refused> {
    let entry = |(key, value): (&toml::Spanned<toml::de::DeString<'_>>, &toml::Spanned<DeValue<'_>>)| {
        let name = key.get_ref().to_string();
        let node = convert(value.get_ref(), value.span(), &join(path, &name))?;
        Ok(TomlEntry { name, origin: Origin::File(key.span().start), node })
    };
    table.iter().map(entry).collect()
}

fn convert(value: &DeValue<'_>, span: Range<usize>, path: &str) -> Result<TomlNode, Refused> {
    let refuse = |problem: String| (path.to_string(), span.clone(), problem);
    let raw = match value {
        DeValue::String(text) => TomlValue::Text(text.to_string()),
        DeValue::Integer(n) => TomlValue::Integer(
            i64::from_str_radix(n.as_str(), n.radix()).map_err(|_| refuse(format!("the number {n} is too large")))?,
        ),
        DeValue::Float(x) => {
            TomlValue::Float(x.as_str().parse().map_err(|_| refuse(format!("the number {x} cannot be read")))?)
        }
        DeValue::Boolean(flag) => TomlValue::Flag(*flag),
        DeValue::Datetime(date) => TomlValue::Date(date.to_string()),
        DeValue::Array(items) => {
            let item = |(index, item): (usize, &toml::Spanned<DeValue<'_>>)| {
                convert(item.get_ref(), item.span(), &join(path, &index.to_string()))
            };
            TomlValue::List(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => TomlValue::Table(convert_table(table, path)?),
    };
    Ok(TomlNode { value: raw, origin: Origin::File(span.start) })
}
