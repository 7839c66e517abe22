//! The tables and keys of an experiment, read from its JSON Schema once. The walk, the reference and the resolved
//! experiment use them.

use crate::conditions::Condition;
use crate::kind::Kind;
use crate::schema::schema;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A table.
#[derive(Clone, Debug)]
pub struct SchemaTable {
    /// The description of the table.
    pub doc: String,
    /// The key `kind`, if the table has it.
    pub kind: Option<Box<Key>>,
    /// A variant for each value of `kind`; a table without `kind` has one variant.
    pub variants: Vec<Variant>,
}

/// The keys that a table has, if it is of some kind.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The kind; `None` for a table without `kind`.
    pub kind: Option<String>,
    /// The description of the kind.
    pub doc: String,
    /// The keys but `kind`, in the order of the reference.
    pub keys: Vec<Key>,
}

/// A key of a table.
#[derive(Clone, Debug)]
pub struct Key {
    /// The name of the key.
    pub name: String,
    /// The description of the key.
    pub doc: String,
    /// The kind of its value.
    pub shape: Shape,
    /// When the key has an effect.
    pub when: Option<When>,
    /// The default.
    pub without: Without,
}

/// The kinds that the value of a key can have.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A value.
    Value(Kind),
    /// A table.
    Table(SchemaTable),
    /// A list of tables.
    Tables(SchemaTable),
    /// The table of a sweep: lists of values of other keys.
    Sweep,
}

/// When a key has an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A condition of the whole experiment holds.
    Condition(Condition),
    /// Another key of the same table is given.
    With(String),
}

/// The effect of leaving a key out.
#[derive(Clone, Debug, PartialEq)]
pub enum Without {
    /// The key must be given.
    Required,
    /// The key must be given where its condition holds.
    Needed,
    /// The key has this value.
    Value(Json),
    /// The key has no value. The text describes the effect; it is empty where the key's description has it.
    Nothing(String),
}

/// The tables at the root of a file: an experiment on a network, then one on the measurement chain.
pub(crate) fn root() -> &'static SchemaTable {
    static ROOT: OnceLock<SchemaTable> = OnceLock::new();
    ROOT.get_or_init(|| {
        let roots = schema()["anyOf"].as_array().expect("the root is one of two tables");
        let variants = roots.iter().map(|root| Variant::read(root, None)).collect();
        SchemaTable { doc: String::new(), kind: None, variants }
    })
}

impl SchemaTable {
    fn read(schema: &Json) -> Self {
        let doc = text(schema, "description");
        let Some(kinds) = schema["oneOf"].as_array() else {
            return SchemaTable { doc, kind: None, variants: vec![Variant::read(schema, None)] };
        };
        let name = |kind: &Json| text(&kind["properties"]["kind"], "const");
        let variants: Vec<Variant> = kinds.iter().map(|kind| Variant::read(kind, Some(name(kind)))).collect();
        let kind = Key::of_kind(&variants, schema.get("x-default-kind"));
        SchemaTable { doc, kind: Some(Box::new(kind)), variants }
    }

    /// The variant of that kind; of a table without `kind` the only one.
    pub fn variant(&self, kind: Option<&str>) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.kind.as_deref() == kind)
    }

    /// The key `kind`, and the keys of all variants.
    pub fn all_keys(&self) -> impl Iterator<Item = &Key> {
        self.kind.as_deref().into_iter().chain(self.variants.iter().flat_map(|variant| &variant.keys))
    }

    /// The first key of that name, of any variant.
    pub fn key(&self, name: &str) -> Option<&Key> {
        self.all_keys().find(|key| key.name == name)
    }

    /// The names of all keys, each once.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = vec![];
        for key in self.all_keys() {
            if !names.contains(&key.name.as_str()) {
                names.push(&key.name);
            }
        }
        names
    }
}

impl Variant {
    fn read(schema: &Json, kind: Option<String>) -> Self {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let keys = properties.filter(|(name, _)| kind.is_none() || *name != "kind");
        Variant {
            doc: text(schema, "description"),
            keys: keys.map(|(name, schema)| Key::read(name, schema, required.contains(&name.as_str()))).collect(),
            kind,
        }
    }

    /// The key of that name.
    pub fn key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Key {
    fn read(name: &str, schema: &Json, required: bool) -> Self {
        let condition =
            text_opt(schema, "x-when").map(|name| When::Condition(name.parse().expect("a known condition")));
        let without = if required {
            Without::Required
        } else if schema["x-needed"] == true {
            Without::Needed
        } else {
            match schema.get("default") {
                Some(value) if schema.get("x-without").is_none() => Without::Value(value.clone()),
                _ => Without::Nothing(text(schema, "x-without")),
            }
        };
        Key {
            name: name.into(),
            doc: text(schema, "description"),
            shape: Shape::read(name, schema),
            when: condition.or_else(|| text_opt(schema, "x-with").map(When::With)),
            without,
        }
    }
}

impl Key {
    /// The key `kind` of a table with these variants.
    fn of_kind(variants: &[Variant], default: Option<&Json>) -> Self {
        let name = |variant: &Variant| (variant.kind.clone().unwrap_or_default(), variant.doc.clone());
        let without = default.map_or(Without::Required, |kind| Without::Value(kind.clone()));
        let shape = Shape::Value(Kind::of_names(variants.iter().map(name).collect()));
        Key { name: "kind".into(), doc: "Which of these it is.".into(), shape, when: None, without }
    }

    /// An example of the key's value, as TOML writes it.
    pub fn example(&self) -> &str {
        match &self.shape {
            Shape::Value(kind) => &kind.example,
            _ => "{}",
        }
    }
}

impl Shape {
    fn read(name: &str, schema: &Json) -> Self {
        let is_table = |schema: &Json| {
            let variants = schema["oneOf"].as_array();
            schema.get("properties").is_some()
                || variants.is_some_and(|kinds| kinds.iter().all(|kind| kind["type"] == "object"))
        };
        if name == "sweep" {
            Shape::Sweep
        } else if is_table(schema) {
            Shape::Table(SchemaTable::read(schema))
        } else if is_table(&schema["items"]) {
            Shape::Tables(SchemaTable::read(&schema["items"]))
        } else {
            Shape::Value(Kind::read(schema))
        }
    }
}

fn text(schema: &Json, keyword: &str) -> String {
    text_opt(schema, keyword).unwrap_or_default()
}

fn text_opt(schema: &Json, keyword: &str) -> Option<String> {
    schema[keyword].as_str().map(String::from)
}

/// One key with its path, `*` in the place of an index of a list: for tests and tools that go through all keys.
#[derive(Clone, Debug)]
pub struct KeyPath {
    /// The dotted path.
    pub path: String,
    /// The key.
    pub key: &'static Key,
    /// The variant of the table that has the key; `None` for the key `kind` itself.
    pub variant: Option<&'static Variant>,
}

/// All keys that have values, each path once for each kind of its table that has it.
pub fn keys() -> Vec<KeyPath> {
    fn collect(table: &'static SchemaTable, path: &str, all: &mut Vec<KeyPath>) {
        let of_variants =
            table.variants.iter().flat_map(|variant| variant.keys.iter().map(move |key| (Some(variant), key)));
        for (variant, key) in table.kind.as_deref().map(|key| (None, key)).into_iter().chain(of_variants) {
            let path = join(path, &key.name);
            match &key.shape {
                Shape::Value(_) => all.push(KeyPath { path, key, variant }),
                Shape::Table(table) => collect(table, &path, all),
                Shape::Tables(table) => collect(table, &format!("{path}.*"), all),
                Shape::Sweep => {}
            }
        }
    }
    let mut all = vec![];
    collect(root(), "", &mut all);
    all
}

/// The path of a key in a table.
pub(crate) fn join(table: &str, key: &str) -> String {
    if table.is_empty() { key.into() } else { format!("{table}.{key}") }
}

/// The keys at the top of an experiment on a network.
pub(crate) fn network() -> &'static [Key] {
    &root().variants[0].keys
}

/// The key at `path`, or whose value is the table or the list of tables there; of an index of a list any number will
/// do.
pub(crate) fn key_at(path: &str) -> Option<&'static Key> {
    let mut table = root();
    let mut steps = path.split('.').peekable();
    loop {
        let key = table.key(steps.next()?)?;
        if matches!(key.shape, Shape::Tables(_)) {
            steps.next_if(|step| step.bytes().all(|b| b.is_ascii_digit()));
        }
        match &key.shape {
            _ if steps.peek().is_none() => return Some(key),
            Shape::Table(inner) | Shape::Tables(inner) => table = inner,
            Shape::Value(_) | Shape::Sweep => return None,
        }
    }
}

/// The kinds of the values of the key at `path`, one for each kind of its table that has the key; `None` if there is no
/// such key.
pub(crate) fn find(path: &str) -> Option<&'static [&'static Kind]> {
    static KINDS: OnceLock<BTreeMap<String, Vec<&'static Kind>>> = OnceLock::new();
    let kinds = KINDS.get_or_init(|| {
        let mut kinds = BTreeMap::<String, Vec<&Kind>>::new();
        for KeyPath { path, key, .. } in keys() {
            if let Shape::Value(kind) = &key.shape {
                kinds.entry(path).or_default().push(kind);
            }
        }
        kinds
    });
    let steps = path.split('.').map(|step| if step.bytes().all(|b| b.is_ascii_digit()) { "*" } else { step });
    kinds.get(&steps.collect::<Vec<_>>().join(".")).map(Vec::as_slice)
}
