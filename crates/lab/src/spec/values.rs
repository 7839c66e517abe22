//! The values of an experiment by their key: what was given, and the defaults of what was not.

use super::document::{Document, Node, Origin, Raw};
use super::error::{Place, Problem};
use super::keys::{Fallback, Key};
use super::registry::keys;
use super::settings::Setting;
use super::value::{Hosts, Value};
use firstlight_formats::ImportError;
use firstlight_net::Length;
use firstlight_units::{Bytes, Rate, Span};
use serde_json::Value as Json;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

/// A value that the file or an override gives.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub value: Value,
    /// Where the value stands.
    pub origin: Origin,
    pub key: &'static Key,
}

/// All values of one experiment.
#[derive(Debug)]
pub(crate) struct Values {
    pub document: Document,
    /// By concrete path: `flows.0.cc`.
    pub given: BTreeMap<String, Given>,
    /// The tables that are there, even when empty.
    pub tables: BTreeMap<String, Origin>,
    /// How many entries the lists of tables have.
    pub lists: BTreeMap<String, usize>,
    /// The `[sweep]` table: keys with their values.
    pub sweep: Vec<(String, Vec<Json>)>,
    /// The files that were read: the name that the experiment has for each, and its path.
    pub inputs: RefCell<BTreeMap<String, String>>,
}

/// The key of a concrete path, and the path as the registry writes it.
pub(crate) fn pattern_of(path: &str) -> String {
    let number = |step: &str| !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit());
    path.split('.').map(|step| if number(step) { "*" } else { step }).collect::<Vec<_>>().join(".")
}

pub(crate) fn find_key(pattern: &str) -> Option<&'static Key> {
    keys().iter().find(|key| key.path == pattern)
}

impl Values {
    /// A problem with the value at `path`, at its place.
    pub fn problem(&self, path: &str, problem: impl Into<String>) -> Problem {
        Problem { key: path.into(), place: self.place(path), problem: problem.into() }
    }

    /// A file that the text at `path` names, relative to the experiment's folder: its path, and what it holds.
    pub fn file(&self, path: &str) -> Result<(String, String), Problem> {
        let folder = Path::new(&self.document.path).parent().unwrap_or(Path::new(""));
        let name = self.text(path);
        let file = folder.join(&name);
        let text = std::fs::read_to_string(&file)
            .map_err(|error| self.problem(path, format!("cannot read {}: {error}", file.display())))?;
        let file = file.display().to_string();
        self.inputs.borrow_mut().insert(name, file.clone());
        Ok((file, text))
    }

    /// What is wrong with a file that the text at `key` names, at its place there.
    pub fn imported(&self, key: &str, error: ImportError) -> Problem {
        let ImportError { file: path, line, column, problem } = error;
        Problem { key: key.into(), place: Place::Line { path, line, column }, problem }
    }

    /// Where the value at `path` stands; else the nearest table around it; else the file.
    pub fn place(&self, path: &str) -> Place {
        if let Some(given) = self.given.get(path) {
            return self.document.place_of(&given.origin);
        }
        let mut around = Some(path);
        while let Some(table) = around {
            if let Some(origin) = self.tables.get(table) {
                return self.document.place_of(origin);
            }
            around = table.rsplit_once('.').map(|(parent, _)| parent);
        }
        self.document.place(None)
    }

    /// How many entries the list of tables `path` has.
    pub fn count(&self, path: &str) -> usize {
        self.lists.get(path).copied().unwrap_or(0)
    }

    /// The concrete paths of a key: one, or one for each entry of its list.
    pub fn instances(&self, key: &Key) -> Vec<String> {
        match key.path.split_once(".*.") {
            None => vec![key.path.into()],
            Some((list, leaf)) => (0..self.count(list)).map(|index| format!("{list}.{index}.{leaf}")).collect(),
        }
    }

    /// The value at `path`, given or by default.
    pub fn get(&self, path: &str) -> Option<Value> {
        if let Some(given) = self.given.get(path) {
            return Some(given.value.clone());
        }
        let key = find_key(&pattern_of(path)).unwrap_or_else(|| panic!("{path} is a key of the registry"));
        let Fallback::Value(text) = &key.fallback else { return None };
        let origin = Origin::File(0);
        let raw = Raw::parse_value(text, &origin).expect("a default is TOML");
        Some(Value::read(&Node { value: raw, origin }, key.kind).expect("a default is of its key's type"))
    }

    fn wanted(path: &str, found: Option<Value>) -> ! {
        panic!("{path} was checked to be there and of its type, found {found:?}")
    }

    pub fn has(&self, path: &str) -> bool {
        self.given.contains_key(path)
    }

    pub fn text(&self, path: &str) -> String {
        self.text_opt(path).unwrap_or_else(|| Self::wanted(path, None))
    }

    pub fn text_opt(&self, path: &str) -> Option<String> {
        self.get(path).map(|value| match value {
            Value::Text(text) => text,
            other => Self::wanted(path, Some(other)),
        })
    }

    pub fn integer(&self, path: &str) -> u64 {
        self.integer_opt(path).unwrap_or_else(|| Self::wanted(path, None))
    }

    pub fn integer_opt(&self, path: &str) -> Option<u64> {
        self.get(path).map(|value| match value {
            Value::Count(n) => n,
            other => Self::wanted(path, Some(other)),
        })
    }

    /// A count of packets.
    pub fn packets_opt(&self, path: &str) -> Option<u32> {
        self.integer_opt(path).map(|n| u32::try_from(n).expect("the registry bounds counts of packets"))
    }

    pub fn packets(&self, path: &str) -> u32 {
        self.packets_opt(path).unwrap_or_else(|| Self::wanted(path, None))
    }

    pub fn number(&self, path: &str) -> f64 {
        match self.get(path) {
            Some(Value::Number(x)) => x,
            other => Self::wanted(path, other),
        }
    }

    pub fn flag(&self, path: &str) -> bool {
        match self.get(path) {
            Some(Value::Flag(flag)) => flag,
            other => Self::wanted(path, other),
        }
    }

    pub fn span(&self, path: &str) -> Span {
        self.span_opt(path).unwrap_or_else(|| Self::wanted(path, None))
    }

    pub fn span_opt(&self, path: &str) -> Option<Span> {
        self.get(path).map(|value| match value {
            Value::Time(span) => span,
            other => Self::wanted(path, Some(other)),
        })
    }

    pub fn rate(&self, path: &str) -> Rate {
        self.rate_opt(path).unwrap_or_else(|| Self::wanted(path, None))
    }

    pub fn rate_opt(&self, path: &str) -> Option<Rate> {
        self.get(path).map(|value| match value {
            Value::Rate(rate) => rate,
            other => Self::wanted(path, Some(other)),
        })
    }

    pub fn size_opt(&self, path: &str) -> Option<Bytes> {
        self.get(path).map(|value| match value {
            Value::Size(bytes) => bytes,
            other => Self::wanted(path, Some(other)),
        })
    }

    pub fn size(&self, path: &str) -> Bytes {
        self.size_opt(path).unwrap_or_else(|| Self::wanted(path, None))
    }

    pub fn pair_opt(&self, path: &str) -> Option<(u16, u16)> {
        self.get(path).map(|value| match value {
            Value::Pair(a, b) => (a, b),
            other => Self::wanted(path, Some(other)),
        })
    }

    /// A queue's length, if given.
    pub fn length_opt(&self, path: &str) -> Option<Length> {
        self.get(path).map(|value| match value {
            Value::Count(n) => Length::Packets(n as u32),
            Value::Size(bytes) => Length::Bytes(bytes),
            other => Self::wanted(path, Some(other)),
        })
    }

    /// A list of texts; none when not given.
    pub fn texts(&self, path: &str) -> Vec<String> {
        match self.get(path) {
            Some(Value::Texts(texts)) => texts,
            None => vec![],
            other => Self::wanted(path, other),
        }
    }

    pub fn matching(&self, path: &str) -> Vec<(u16, u16)> {
        match self.get(path) {
            Some(Value::Matching(pairs)) => pairs,
            other => Self::wanted(path, other),
        }
    }

    pub fn hosts(&self, path: &str) -> Hosts {
        match self.get(path) {
            Some(Value::Hosts(hosts)) => hosts,
            other => Self::wanted(path, other),
        }
    }

    /// Settings of a kernel; none when not given.
    pub fn sysctls(&self, path: &str) -> Vec<Setting> {
        match self.get(path) {
            Some(Value::Sysctls(settings)) => settings,
            None => vec![],
            other => Self::wanted(path, other),
        }
    }

    pub fn sizes(&self, path: &str) -> Vec<Bytes> {
        match self.get(path) {
            Some(Value::Sizes(sizes)) => sizes,
            other => Self::wanted(path, other),
        }
    }

    /// Traffic classes, a bit each.
    pub fn classes_opt(&self, path: &str) -> Option<u8> {
        self.get(path).map(|value| match value {
            Value::Classes(mask) => mask,
            other => Self::wanted(path, Some(other)),
        })
    }

    /// Attributes of a route; none when not given.
    pub fn route(&self, path: &str) -> Vec<Setting> {
        match self.get(path) {
            Some(Value::Route(attributes)) => attributes,
            None => vec![],
            other => Self::wanted(path, other),
        }
    }
}
