//! One walk over the document, driven by the schema: unknown keys, wrong types, forms and ranges, keys of another
//! `kind` and missing keys are found here, each with its place.

use crate::document::{Document, Origin, TomlEntry, TomlNode, TomlValue};
use crate::error::{MOST_PROBLEMS, Problem, SpecError};
use crate::kind::Kind;
use crate::model::{self, Key, SchemaTable, Shape, Variant, Without, join};
use crate::places::{Places, all_or};
use firstlight_formats::nearest;
use firstlight_transport::cc::{CcName, OwnConfig};
use serde_json::{Map, Value as Json, json};

/// The result of the walk over a document that has no unknown key and no value of a wrong type.
pub(crate) struct Walked {
    /// The experiment as JSON. A missing key has an example, so that the experiment can be checked for other problems.
    pub json: Json,
    /// The keys to sweep with their values.
    pub sweep: Vec<(String, Vec<Json>)>,
    pub places: Places,
    /// Keys that must be given and are not.
    pub missing: Vec<Problem>,
    /// Keys of another kind of their table.
    pub idle: Vec<Problem>,
}

/// Walks over a document. Fails with every unknown key and every value of a wrong type, form or range.
pub(crate) fn walk(document: Document, allow_sweep: bool, own: Vec<OwnConfig>) -> Result<Walked, SpecError> {
    let entries = document.root.clone();
    let mut walk = SchemaWalk {
        places: Places::of(document, own),
        problems: vec![],
        missing: vec![],
        idle: vec![],
        sweep: vec![],
        allow_sweep,
    };
    let json = walk.root(&entries);
    all_or(walk.problems)?;
    let SchemaWalk { sweep, places, missing, idle, .. } = walk;
    Ok(Walked { json, sweep, places, missing, idle })
}

struct SchemaWalk {
    places: Places,
    problems: Vec<Problem>,
    missing: Vec<Problem>,
    idle: Vec<Problem>,
    sweep: Vec<(String, Vec<Json>)>,
    allow_sweep: bool,
}

impl SchemaWalk {
    /// More problems than are shown are not collected: a file may have a million.
    fn wrong(&mut self, path: &str, origin: &Origin, problem: impl Into<String>) {
        if self.problems.len() > MOST_PROBLEMS {
            return;
        }
        let place = self.places.document.place_of(origin);
        self.problems.push(Problem { key: path.into(), place, problem: problem.into() });
    }

    /// The table `chain` makes a file an experiment on the measurement chain.
    fn root(&mut self, entries: &[TomlEntry]) -> Json {
        let root = model::root();
        let on_chain = entries.iter().any(|entry| entry.name == "chain");
        let variant = root.variants.iter().find(|variant| variant.key("chain").is_some() == on_chain);
        let found =
            if on_chain { "there is no [chain], but there is one" } else { "there is a [chain], but there is none" };
        let other = move |_: &Key| format!("{NO_EFFECT} {found}; take it out");
        self.keys(entries, "", root, variant.expect("one for each kind of file"), &other)
    }

    /// The keys of a table of that variant; `idle` says why a key of another variant has no effect.
    fn keys(
        &mut self,
        entries: &[TomlEntry],
        path: &str,
        table: &SchemaTable,
        variant: &Variant,
        idle: &dyn Fn(&Key) -> String,
    ) -> Json {
        let mut json = Map::new();
        for entry in entries.iter().filter(|entry| variant.kind.is_none() || entry.name != "kind") {
            let path = join(path, &entry.name);
            if let Some(key) = variant.key(&entry.name) {
                if let Some(value) = self.entry(key, entry, &path) {
                    json.insert(entry.name.clone(), value);
                }
            } else if let Some(key) = table.key(&entry.name) {
                let before = self.problems.len();
                self.entry(key, entry, &path);
                if self.problems.len() == before {
                    let first = if matches!(key.shape, Shape::Tables(_)) { join(&path, "0") } else { path };
                    self.idle.push(self.places.problem(&first, idle(key)));
                }
            } else {
                self.wrong(&path, &entry.origin, unknown(&path, table, Some(variant)));
            }
        }
        for key in variant.keys.iter().filter(|key| key.without == Without::Required) {
            if json.contains_key(&key.name) {
                continue;
            }
            self.missing.push(self.places.missing(key, path));
            json.insert(key.name.clone(), example(key));
        }
        Json::Object(json)
    }

    fn entry(&mut self, key: &Key, entry: &TomlEntry, path: &str) -> Option<Json> {
        match &key.shape {
            Shape::Value(kind) => self.value(kind, &entry.node, path),
            Shape::Table(table) => self.table(table, &entry.node, &entry.origin, path),
            Shape::Tables(table) => self.tables(table, &entry.node, path),
            Shape::Sweep => {
                self.sweep(entry);
                None
            }
        }
    }

    fn value(&mut self, kind: &Kind, node: &TomlNode, path: &str) -> Option<Json> {
        self.places.keys.insert(path.into(), node.origin.clone());
        if let (TomlValue::Text(name), true) = (&node.value, kind.what == CcName::WHAT)
            && let Some(found) = self.places.own_controller(name)
        {
            return found.map(|()| json!(name)).map_err(|text| self.wrong(path, &node.origin, text)).ok();
        }
        let own: Vec<&str> = self.places.own.iter().map(OwnConfig::name).collect();
        let or_own = match kind.what == CcName::WHAT && !own.is_empty() {
            true => format!("; the experiment's own: {}", own.join(", ")),
            false => String::new(),
        };
        let found = self.check(kind, node);
        found.map_err(|problem| self.wrong(path, &node.origin, format!("{problem}{or_own}"))).ok()
    }

    /// The value as JSON, or its problem.
    fn check(&self, kind: &Kind, node: &TomlNode) -> Result<Json, String> {
        kind.check(node).or_else(|problem| match &node.value {
            TomlValue::Text(name) if kind.what == CcName::WHAT && self.places.kernel_controller(name) => {
                Ok(json!(name))
            }
            _ => Err(problem),
        })
    }

    fn table(&mut self, table: &SchemaTable, node: &TomlNode, origin: &Origin, path: &str) -> Option<Json> {
        let TomlValue::Table(entries) = &node.value else {
            let found = node.value.describe();
            self.wrong(path, &node.origin, format!("expected a table, found {found}: write [{path}]"));
            return None;
        };
        self.places.tables.insert(path.into(), origin.clone());
        let Some(kind_key) = &table.kind else {
            return Some(self.keys(entries, path, table, table.variant(None)?, &|_| String::new()));
        };
        let given = entries.iter().find(|entry| entry.name == "kind");
        let kind = match (given, &kind_key.without) {
            (Some(entry), _) => self.entry(kind_key, entry, &join(path, "kind"))?,
            (None, Without::Value(kind)) => kind.clone(),
            (None, _) => return self.without_kind(table, entries, path),
        };
        let variant = table.variant(kind.as_str()).expect("the kind is one of the table's");
        let idle = |key: &Key| {
            let with = |variant: &&Variant| variant.key(&key.name).is_some();
            let kinds: Vec<&str> = table.variants.iter().filter(with).filter_map(|v| v.kind.as_deref()).collect();
            let (kinds, kind) = (kinds.join("\" or \""), kind.as_str().unwrap_or_default());
            match path.rsplit('.').next().is_some_and(is_index) {
                false => format!("{NO_EFFECT} {path}.kind = \"{kinds}\", but it is \"{kind}\"; take it out"),
                true => format!("{NO_EFFECT} kind = \"{kinds}\", but this one's is \"{kind}\"; take it out"),
            }
        };
        let mut json = self.keys(entries, path, table, variant, &idle);
        json["kind"] = kind;
        Some(json)
    }

    /// Without a kind, the check of the other keys is whether any kind has them.
    fn without_kind(&mut self, table: &SchemaTable, entries: &[TomlEntry], path: &str) -> Option<Json> {
        for entry in entries {
            let path = join(path, &entry.name);
            match table.key(&entry.name) {
                Some(key) => drop(self.entry(key, entry, &path)),
                None => self.wrong(&path, &entry.origin, unknown(&path, table, None)),
            }
        }
        self.missing.push(self.places.missing(table.kind.as_ref()?, path));
        Some(example_of(table))
    }

    fn tables(&mut self, table: &SchemaTable, node: &TomlNode, path: &str) -> Option<Json> {
        let TomlValue::List(items) = &node.value else {
            let found = node.value.describe();
            self.wrong(path, &node.origin, format!("expected a list of tables, found {found}: write [[{path}]]"));
            return None;
        };
        let numbered = items.iter().enumerate();
        numbered.map(|(index, item)| self.table(table, item, &item.origin, &join(path, &index.to_string()))).collect()
    }

    fn sweep(&mut self, entry: &TomlEntry) {
        if !self.allow_sweep {
            return self.wrong("sweep", &entry.origin, "a plain run takes no [sweep]: use `firstlight sweep`");
        }
        match &entry.node.value {
            TomlValue::Table(entries) => self.sweep_entries(entries, ""),
            other => {
                let found = other.describe();
                self.wrong("sweep", &entry.origin, format!("expected a table, found {found}: write [sweep]"));
            }
        }
    }

    /// The keys of `[sweep]`, quoted with their dots or as tables in tables.
    fn sweep_entries(&mut self, entries: &[TomlEntry], parent: &str) {
        for entry in entries {
            let path = join(parent, &entry.name);
            let shown = format!("sweep.{path}");
            match (&entry.node.value, model::find(&path)) {
                (TomlValue::Table(inner), None) => self.sweep_entries(inner, &path),
                (_, None) => self.wrong(&shown, &entry.origin, unknown_at(&path)),
                (TomlValue::List(items), Some(kinds)) if !items.is_empty() => {
                    let mut values = vec![];
                    for item in items {
                        match kinds
                            .iter()
                            .map(|kind| self.check(kind, item))
                            .reduce(Result::or)
                            .expect("a key has a kind")
                        {
                            Ok(value) => values.push(value),
                            Err(problem) => self.wrong(&shown, &item.origin, problem),
                        }
                    }
                    self.sweep.push((path, values));
                }
                (other, Some(kinds)) => {
                    let (found, example) = (other.describe(), &kinds[0].example);
                    let text = format!("expected a list of values, found {found}: write for example [{example}]");
                    self.wrong(&shown, &entry.node.origin, text);
                }
            }
        }
    }
}

/// How a text begins that says why a key has no effect.
pub(crate) const NO_EFFECT: &str = "has no effect: it counts only when";

fn is_index(step: &str) -> bool {
    step.bytes().all(|b| b.is_ascii_digit())
}

/// Something that a missing key could be.
fn example(key: &Key) -> Json {
    match &key.shape {
        Shape::Value(kind) => kind.example_json(),
        Shape::Table(table) => example_of(table),
        Shape::Tables(table) => json!([example_of(table)]),
        Shape::Sweep => json!({}),
    }
}

/// A table with its required keys only.
fn example_of(table: &SchemaTable) -> Json {
    let variant = &table.variants[0];
    let required = variant.keys.iter().filter(|key| key.without == Without::Required);
    let mut json: Map<String, Json> = required.map(|key| (key.name.clone(), example(key))).collect();
    json.extend(variant.kind.iter().map(|kind| ("kind".into(), json!(kind))));
    Json::Object(json)
}

/// The message for a key that its table does not have, of this variant where that is known.
fn unknown(path: &str, table: &SchemaTable, variant: Option<&Variant>) -> String {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let siblings = table.names();
    if let Some(near) = nearest(name, siblings.iter().copied()) {
        return format!("unknown key: did you mean {}?", join(parent, near));
    }
    let far = |path: &str| (path.matches('*').count(), path.matches('.').count());
    if let Some(elsewhere) = model::keys().iter().filter(|key| key.key.name == name).min_by_key(|key| far(&key.path)) {
        return format!("unknown key: did you mean {}?", elsewhere.path.replace('*', "0"));
    }
    let table = if parent.is_empty() { "the experiment".into() } else { format!("[{parent}]") };
    let possible = match variant {
        Some(Variant { kind: Some(_), keys, .. }) => keys.iter().map(|key| key.name.as_str()).collect(),
        _ => siblings,
    };
    format!("unknown key: {table} has {}", possible.join(", "))
}

/// The message for a path that is no key.
fn unknown_at(path: &str) -> String {
    let mut table = model::root();
    let mut steps = path.split('.').peekable();
    let mut so_far = String::new();
    while let Some(step) = steps.next() {
        so_far = join(&so_far, step);
        match table.key(step).map(|key| &key.shape) {
            Some(Shape::Table(inner)) => table = inner,
            Some(Shape::Tables(inner)) => {
                let number = steps.next().unwrap_or("0");
                if !is_index(number) {
                    return format!("{so_far} is a list of tables: name one by its number, as {so_far}.0");
                }
                so_far = join(&so_far, number);
                table = inner;
            }
            Some(_) => return format!("unknown key: {so_far} has nothing below it"),
            None => return unknown(&so_far, table, None),
        }
    }
    format!("{path} is a table: name one of its keys, {}", table.names().join(", "))
}
