//! The reference of keys as Markdown: `docs/reference/spec.md`.

use crate::kernel::meaning;
use crate::kind::{Class, Kind, TextForm, toml_of};
use crate::model::{self, Key, SchemaTable, Shape, Variant, When, Without, join};
use firstlight_transport::cc::CcName;
use firstlight_units::{BINARY_BYTES, BYTES, Bytes, RATES, SPANS, Units, names};
use serde_json::Value as Json;

/// The width of lines.
const WIDTH: usize = 120;

fn introduction() -> String {
    let [times, rates, sizes, binary] = [SPANS, RATES, BYTES, BINARY_BYTES].map(|units: Units| names(&[units], "`, `"));
    format!(
        "An experiment is one TOML file. A quantity is a text with its unit: times in `{times}`; rates in `{rates}`; \
         sizes in `{sizes}` and `{binary}`. A key that does not exist, or that has no effect where it stands, is an \
         error. `--set key=value` overrides a key; an entry of a list is named by its number, as in `flows.0.cc`. \
         `firstlight schema` prints the same as JSON Schema, for editors."
    )
}

/// The reference.
pub fn reference() -> String {
    let mut page = Page(String::from("# Keys of an experiment\n\n"));
    page.paragraph("Generated from the code by `make docs`.");
    page.paragraph(&introduction());
    let network = &model::root().variants[0];
    let top: Vec<&Key> = network.keys.iter().filter(|key| matches!(key.shape, Shape::Value(_))).collect();
    page.heading("At the top", &network.doc, None);
    page.keys(&top, "");
    page.tables(&network.keys, "");
    let chain = &model::root().variants[1];
    page.heading("Beside `[chain]`", &chain.doc, None);
    let top: Vec<&Key> = chain.keys.iter().filter(|key| matches!(key.shape, Shape::Value(_))).collect();
    page.keys(&top, "");
    page.tables(&chain.keys, "");
    page.congestion_controls();
    page.0
}

/// A text in lines of at most 120 characters, of which the first begins with `first` and the others with `rest`.
pub fn wrapped(text: &str, first: &str, rest: &str) -> String {
    let mut lines = String::new();
    let mut line = String::from(first);
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines += &format!("{}\n", line.trim_end());
            line = String::from(rest);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines + &line + "\n"
}

struct Page(String);

impl Page {
    /// A paragraph, wrapped.
    fn paragraph(&mut self, text: &str) {
        self.wrapped(text, "", "");
        self.0.push('\n');
    }

    /// A text whose lines begin with `first`, then with `rest`.
    fn wrapped(&mut self, text: &str, first: &str, rest: &str) {
        self.0.push_str(&wrapped(text, first, rest));
    }

    fn heading(&mut self, title: &str, doc: &str, when: Option<&When>) {
        self.0.push_str(&format!("## {title}\n\n"));
        self.paragraph(&format!("{doc}{}", condition(when)));
    }

    /// The congestion controls of each kind of hosts.
    fn congestion_controls(&mut self) {
        self.heading(
            "Congestion controls",
            "The values of `cc`, where Linux calls NewReno `reno`: either name does.",
            None,
        );
        let names = |has: fn(CcName) -> bool| {
            let names = CcName::all().filter(|name| has(*name)).map(|name| format!("`{}`", name.as_str()));
            names.collect::<Vec<_>>().join(", ")
        };
        self.wrapped(&format!("On simulated hosts: {}.", names(|name| name.simulated().is_some())), "- ", "  ");
        self.wrapped(&format!("On Linux hosts: {}.", names(|name| name.linux().is_some())), "- ", "  ");
    }

    /// The tables among these keys, and those in them.
    fn tables(&mut self, keys: &[Key], parent: &str) {
        for key in keys {
            let path = join(parent, &key.name);
            match &key.shape {
                Shape::Table(table) => self.table(&format!("`[{path}]`"), &path, key, table),
                Shape::Tables(table) => self.table(&format!("`[[{path}]]`"), &path, key, table),
                Shape::Sweep => self.heading("`[sweep]`", &key.doc, None),
                Shape::Value(_) => {}
            }
        }
    }

    fn table(&mut self, title: &str, path: &str, key: &Key, table: &SchemaTable) {
        let doc = if key.doc.is_empty() { &table.doc } else { &key.doc };
        self.heading(title, doc, key.when.as_ref());
        let shared = shared(table);
        let first: Vec<&Key> = table.kind.as_deref().into_iter().chain(shared.iter().map(|(key, _)| *key)).collect();
        for key in &first {
            let others =
                shared.iter().find(|(shared, _)| std::ptr::eq(*shared, *key)).map(|(_, kinds)| kinds.as_slice());
            self.key(key, others.unwrap_or_default(), path);
        }
        if !first.is_empty() {
            self.0.push('\n');
        }
        let mut kinds: Vec<(Vec<&str>, &Variant, Vec<&Key>)> = vec![];
        for variant in &table.variants {
            let own = |key: &&Key| !shared.iter().any(|(other, _)| is_same(key, other));
            let keys: Vec<&Key> =
                variant.keys.iter().filter(|key| matches!(key.shape, Shape::Value(_))).filter(own).collect();
            let kind = variant.kind.as_deref().unwrap_or_default();
            match kinds.last_mut().filter(|(_, _, before)| is_same_list(before, &keys)) {
                Some((kinds, ..)) => kinds.push(kind),
                None => kinds.push((vec![kind], variant, keys)),
            }
        }
        for (kinds, _, keys) in kinds.iter().filter(|(_, _, keys)| !keys.is_empty()) {
            if table.kind.is_some() {
                self.0.push_str(&format!("### `kind = \"{}\"`\n\n", kinds.join("\"`, `\"")));
            }
            self.keys(keys, path);
        }
        let mut seen: Vec<&str> = vec![];
        for variant in &table.variants {
            for key in variant.keys.iter().filter(|key| !seen.contains(&key.name.as_str())) {
                self.tables(std::slice::from_ref(key), path);
            }
            seen.extend(variant.keys.iter().map(|key| key.name.as_str()));
        }
    }

    fn keys(&mut self, keys: &[&Key], path: &str) {
        keys.iter().for_each(|key| self.key(key, &[], path));
        self.0.push('\n');
    }

    /// A key of the table at `path`; `not_of` are the kinds of the table that do not have it.
    fn key(&mut self, key: &Key, not_of: &[&str], path: &str) {
        let Shape::Value(kind) = &key.shape else { return };
        let not_of = if not_of.is_empty() { String::new() } else { format!(" Not of `{}`.", not_of.join("`, `")) };
        let (what, without) = (type_text(kind), without(key));
        let text =
            format!("**`{}`**: {what}; {without}. {}{not_of}{}", key.name, key.doc, condition(key.when.as_ref()));
        let linux =
            meaning(&join(path, &key.name)).map_or(String::new(), |meaning| format!(" On Linux hosts: {meaning}."));
        self.wrapped(&format!("{text}{linux}"), "- ", "  ");
        let Class::Name(names) = &kind.class else { return };
        for (name, doc) in names.iter().filter(|(_, doc)| !doc.is_empty()) {
            self.wrapped(&format!("`{name}`: {doc}"), "  - ", "    ");
        }
    }
}

/// The keys that more than half of a table's kinds have, each with the kinds that do not.
fn shared(table: &SchemaTable) -> Vec<(&Key, Vec<&str>)> {
    let mut shared: Vec<(&Key, Vec<&str>)> = vec![];
    let kinds = table.variants.len();
    let values =
        table.variants.iter().flat_map(|variant| &variant.keys).filter(|key| matches!(key.shape, Shape::Value(_)));
    for key in values.filter(|_| kinds > 1) {
        let has = |variant: &&Variant| variant.keys.iter().any(|other| is_same(key, other));
        let with = table.variants.iter().filter(has).count();
        if 2 * with > kinds && !shared.iter().any(|(other, _)| is_same(key, other)) {
            let without = table.variants.iter().filter(|variant| !has(variant));
            shared.push((key, without.filter_map(|variant| variant.kind.as_deref()).collect()));
        }
    }
    shared
}

fn is_same(a: &Key, b: &Key) -> bool {
    let what = |key: &Key| match &key.shape {
        Shape::Value(kind) => type_text(kind),
        _ => String::new(),
    };
    (&a.name, &a.doc, &a.without, what(a)) == (&b.name, &b.doc, &b.without, what(b))
}

fn is_same_list(a: &[&Key], b: &[&Key]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
}

fn condition(when: Option<&When>) -> String {
    match when {
        None => String::new(),
        Some(When::Condition(condition)) => {
            let text = condition.to_string();
            let quoted = if text.contains('=') { format!("`{text}`") } else { text };
            format!(" Only when {quoted}.")
        }
        Some(When::With(other)) => format!(" Only with `{other}`."),
    }
}

fn without(key: &Key) -> String {
    match &key.without {
        Without::Required | Without::Needed => "required".into(),
        Without::Value(value) => format!("default `{}`", default(value)),
        Without::Nothing(text) if text.is_empty() => "optional".into(),
        Without::Nothing(text) => format!("default: {text}"),
    }
}

/// A default as a user would write it: `128MiB` where that is shorter.
fn default(value: &Json) -> String {
    let Json::String(text) = value else { return toml_of(value) };
    let bytes = text.parse::<Bytes>().map_or(0, Bytes::get);
    let unit = BINARY_BYTES.iter().find(|(_, size)| bytes > 0 && bytes % size == 0);
    unit.map_or(text.clone(), |(unit, size)| format!("{}{unit}", bytes / size))
}

fn type_text(kind: &Kind) -> String {
    let what = &kind.what;
    match &kind.class {
        Class::Name(names) if names.iter().any(|(_, doc)| !doc.is_empty()) => "one of the names below".into(),
        Class::Name(_) if !what.starts_with("one of") => format!("{what} (see [below](#congestion-controls))"),
        Class::Name(names) => {
            format!("one of {}", names.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", "))
        }
        Class::Count { least, most, .. } if *most >= 1 << 20 => format!("{what}, from {least}"),
        Class::Count { least, most, .. } => format!("{what}, {least} to {most}"),
        Class::Number { least, above: true, most } => format!("a number above {least}, to {most}"),
        Class::Number { least, above: false, most } => format!("a number from {least} to {most}"),
        Class::Text(Some(form)) => format!("{what}{}", range(form)),
        _ => what.clone(),
    }
}

/// The range of a quantity, where it says more than that it is one.
fn range(form: &TextForm) -> String {
    match (form.format.name, &form.above, &form.least, &form.most) {
        (_, Some(_), ..) => " above zero".into(),
        ("size", _, Some(least), Some(most)) if most.len() < 15 => format!(" from {least} to {most}"),
        (_, _, Some(least), None) => format!(" from {least}"),
        _ => String::new(),
    }
}
