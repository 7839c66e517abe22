//! Sorting a document's values to their keys: unknown keys, wrong types and units are found here.

use super::document::{Document, Entry, Node, Origin, Raw, join};
use super::error::{Problem, SpecError};
use super::keys::Key;
use super::registry::{TABLES, keys};
use super::value::Value;
use super::values::{Given, Values, find_key, pattern_of};
use firstlight_formats::nearest;
use serde_json::Value as Json;
use std::cell::RefCell;
use std::collections::BTreeMap;

impl Values {
    /// Sorts a document's values to their keys. Fails with every unknown key and every value of a wrong type or out of
    /// its range.
    pub fn collect(document: Document, allow_sweep: bool) -> Result<Self, SpecError> {
        let mut walk = Walk { allow_sweep, ..Walk::new(&document) };
        walk.table(&document.root, "");
        let Walk { found, tables, lists, sweep, problems, .. } = walk;
        if !problems.is_empty() {
            return Err(SpecError { problems });
        }
        Ok(Values { given: found, tables, lists, sweep, document, inputs: RefCell::default() })
    }
}

fn is_table(pattern: &str) -> bool {
    TABLES.iter().any(|table| table.path == pattern)
}

/// The walk over the document's tree.
struct Walk<'d> {
    document: &'d Document,
    found: BTreeMap<String, Given>,
    tables: BTreeMap<String, Origin>,
    lists: BTreeMap<String, usize>,
    sweep: Vec<(String, Vec<Json>)>,
    problems: Vec<Problem>,
    allow_sweep: bool,
}

impl<'d> Walk<'d> {
    fn new(document: &'d Document) -> Self {
        let (found, tables, lists) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Walk { document, found, tables, lists, sweep: vec![], problems: vec![], allow_sweep: false }
    }

    fn wrong(&mut self, path: &str, origin: &Origin, problem: impl Into<String>) {
        let place = self.document.place_of(origin);
        self.problems.push(Problem { key: path.into(), place, problem: problem.into() });
    }

    fn table(&mut self, entries: &[Entry], path: &str) {
        for entry in entries {
            let path = join(path, &entry.name);
            let pattern = pattern_of(&path);
            if path == "sweep" {
                self.sweep_table(entry);
            } else if let Some(key) = find_key(&pattern) {
                self.leaf(key, &path, &entry.node);
            } else if is_table(&pattern) {
                self.sub_table(&entry.node, &entry.origin, &path);
            } else if is_table(&format!("{pattern}.*")) {
                self.list(&entry.node, &path);
            } else {
                self.wrong(&path, &entry.origin, unknown(&path));
            }
        }
    }

    fn leaf(&mut self, key: &'static Key, path: &str, node: &Node) {
        match Value::read(node, key.kind) {
            Ok(value) => {
                self.found.insert(path.into(), Given { value, origin: node.origin.clone(), key });
            }
            Err(problem) => self.wrong(path, &node.origin, problem),
        }
    }

    fn sub_table(&mut self, node: &Node, origin: &Origin, path: &str) {
        match &node.value {
            Raw::Table(entries) => {
                self.tables.insert(path.into(), origin.clone());
                self.table(entries, path);
            }
            other => {
                self.wrong(path, &node.origin, format!("expected a table, found {}: write [{path}]", other.describe()))
            }
        }
    }

    fn list(&mut self, node: &Node, path: &str) {
        let Raw::List(items) = &node.value else {
            let found = node.value.describe();
            return self.wrong(
                path,
                &node.origin,
                format!("expected a list of tables, found {found}: write [[{path}]]"),
            );
        };
        self.lists.insert(path.into(), items.len());
        for (index, item) in items.iter().enumerate() {
            self.sub_table(item, &item.origin, &join(path, &index.to_string()));
        }
    }

    fn sweep_table(&mut self, entry: &Entry) {
        if !self.allow_sweep {
            return self.wrong("sweep", &entry.origin, "a plain run takes no [sweep]: use `firstlight sweep`");
        }
        match &entry.node.value {
            Raw::Table(entries) => self.sweep_entries(entries, ""),
            other => self.wrong(
                "sweep",
                &entry.origin,
                format!("expected a table, found {}: write [sweep]", other.describe()),
            ),
        }
    }

    /// Keys of `[sweep]`, quoted with their dots or as tables in tables.
    fn sweep_entries(&mut self, entries: &[Entry], parent: &str) {
        for entry in entries {
            let path = join(parent, &entry.name);
            let shown = format!("sweep.{path}");
            match (&entry.node.value, find_key(&pattern_of(&path))) {
                (Raw::Table(inner), None) => self.sweep_entries(inner, &path),
                (_, None) => self.wrong(&shown, &entry.origin, unknown(&path)),
                (Raw::List(items), Some(key)) if !items.is_empty() => {
                    for item in items {
                        if let Err(problem) = Value::read(item, key.kind) {
                            self.wrong(&shown, &item.origin, problem);
                        }
                    }
                    self.sweep.push((path, items.iter().map(|item| item.value.json()).collect()));
                }
                (other, Some(key)) => {
                    let (found, example) = (other.describe(), key.kind.example());
                    self.wrong(
                        &shown,
                        &entry.node.origin,
                        format!("expected a list of values, found {found}: write for example [{example}]"),
                    );
                }
            }
        }
    }
}

impl Raw {
    fn json(&self) -> Json {
        match self {
            Raw::Text(text) | Raw::Date(text) => Json::from(text.clone()),
            Raw::Integer(n) => Json::from(*n),
            Raw::Float(x) => Json::from(*x),
            Raw::Flag(flag) => Json::from(*flag),
            Raw::List(items) => items.iter().map(|item| item.value.json()).collect(),
            Raw::Table(entries) => entries.iter().map(|entry| (entry.name.clone(), entry.node.value.json())).collect(),
        }
    }
}

/// What to say of a key that does not exist.
pub(crate) fn unknown(path: &str) -> String {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let within = pattern_of(parent);
    let siblings = names_in(&within);
    if siblings.is_empty() {
        return unknown(parent);
    }
    if let Some(near) = nearest(name, siblings.iter().copied()) {
        return format!("unknown key: did you mean {}?", join(parent, near));
    }
    let elsewhere = keys().iter().find(|key| key.path.rsplit('.').next() == Some(name));
    if let Some(key) = elsewhere {
        return format!("unknown key: did you mean {}?", key.path.replace('*', "0"));
    }
    let table = if parent.is_empty() { "the experiment".into() } else { format!("[{parent}]") };
    format!("unknown key: {table} has {}", siblings.join(", "))
}

/// The names of the keys and tables directly in a table.
fn names_in(table: &str) -> Vec<&'static str> {
    let paths = keys().iter().map(|key| key.path).chain(TABLES.iter().map(|table| table.path));
    let inside = |path: &'static str| match table {
        "" => Some(path),
        _ => path.strip_prefix(table)?.strip_prefix('.'),
    };
    let mut names: Vec<&str> = paths
        .filter_map(inside)
        .map(|rest| rest.split('.').next().unwrap_or(rest))
        .filter(|name| !name.is_empty() && *name != "*")
        .collect();
    let mut seen: Vec<&str> = vec![];
    names.retain(|name| {
        !seen.contains(name) && {
            seen.push(name);
            true
        }
    });
    names
}
