//! The JSON Schema of an experiment (draft 2020-12), from the structs of its tables.
//!
//! Editors complete and check experiments with it, and reading is driven by it ([`crate::model`]). Standard keywords
//! say what they can: types, ranges, patterns, defaults, descriptions. The rest are extensions:
//!
//! | keyword | meaning |
//! |---|---|
//! | `x-type` | what the value is, for messages: `a pair of racks` |
//! | `x-of` | what a whole number counts: `packets` |
//! | `x-least`, `x-above`, `x-most` | bounds of a quantity, as texts in its own form |
//! | `x-without` | what holds without the key |
//! | `x-when` | the name of the [condition](crate::conditions) under which the key or table has an effect |
//! | `x-with` | the key of the same table without which this one has no effect |
//! | `x-needed` | the key or table must be given where its condition holds |
//! | `x-default-kind` | the kind of a table that names none |

use crate::tables::Root;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value as Json, json};
use std::sync::OnceLock;

/// The whole schema.
pub fn schema() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schema = of::<Root>();
        schema["title"] = json!("Firstlight experiment");
        schema
    })
}

/// The schema of one type.
pub(crate) fn of<T: JsonSchema>() -> Json {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let generator = settings.with_transform(AsToml).into_generator();
    generator.into_root_schema_for::<T>().to_value()
}

/// Makes a schema of Rust types one of TOML: there is no null, and a table has no keys but its own.
#[derive(Clone)]
struct AsToml;

impl Transform for AsToml {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(keywords) = schema.as_object_mut() else { return };
        remove_null(keywords);
        unwrap_description(keywords);
        if let Some(kind) = keywords.get("x-default-kind").cloned() {
            make_default(keywords, &kind);
        }
        drop_empty_tables(keywords);
        if keywords.contains_key("properties") {
            keywords.insert("additionalProperties".into(), json!(false));
        }
        // The number's width is of no interest, and a table's default says what its keys' defaults say.
        let format = keywords.get("format").and_then(Json::as_str);
        if format.is_some_and(|format| format.starts_with("uint") || format.starts_with("int") || format == "double") {
            keywords.remove("format");
        }
        if keywords.get("default").is_some_and(|default| default.is_object() || default.is_null()) {
            keywords.remove("default");
        }
    }
}

/// Removes `null`, which stands for an absent key, from the types.
fn remove_null(keywords: &mut Map<String, Json>) {
    if let Some(Json::Array(types)) = keywords.get_mut("type") {
        types.retain(|name| name != "null");
        if let [name] = types.as_slice() {
            let name = name.clone();
            keywords.insert("type".into(), name);
        }
    }
    let Some(Json::Array(options)) = keywords.get_mut("anyOf") else { return };
    options.retain(|option| option.get("type") != Some(&json!("null")));
    if let [Json::Object(only)] = options.as_slice() {
        let only = only.clone();
        keywords.remove("anyOf");
        for (name, value) in only {
            keywords.entry(name).or_insert(value);
        }
    }
}

/// The lines of a doc comment are one text.
fn unwrap_description(keywords: &mut Map<String, Json>) {
    if let Some(Json::String(text)) = keywords.get_mut("description") {
        *text = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
    }
}

/// The table of the default kind need not name it.
fn make_default(keywords: &mut Map<String, Json>, kind: &Json) {
    let variants = keywords.get_mut("oneOf").and_then(Json::as_array_mut).into_iter().flatten();
    for variant in variants.filter(|variant| variant["properties"]["kind"]["const"] == *kind) {
        variant["properties"]["kind"]["default"] = kind.clone();
        if let Some(Json::Array(required)) = variant.get_mut("required") {
            required.retain(|name| name != "kind");
        }
    }
}

/// A table that can have no key does not exist.
fn drop_empty_tables(keywords: &mut Map<String, Json>) {
    if let Some(Json::Object(properties)) = keywords.get_mut("properties") {
        let is_empty = |schema: &Json| {
            schema["type"] == "object" && schema.get("properties").is_none() && schema["additionalProperties"] != true
        };
        properties.retain(|_, schema| !is_empty(schema));
    }
}
