//! The reference of keys in the tree is the one that the code would write, and says something of every key.
//!
//! With `FIRSTLIGHT_WRITE=1` the test writes it: `make docs`.

use firstlight_spec::model::{Shape, Without, keys};
use firstlight_spec::{reference, schema};
use firstlight_transport::TcpConfig;
use serde_json::{Value as Json, json};

#[test]
fn the_reference_is_current() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/spec.md");
    if std::env::var_os("FIRSTLIGHT_WRITE").is_some() {
        std::fs::write(page, reference()).expect("a page of the tree");
    }
    let written = std::fs::read_to_string(page).expect("a page of the tree");
    assert!(written == reference(), "docs/reference/spec.md is out of date: `make docs`");
    let wide = written.lines().find(|line| line.chars().count() > 120);
    assert_eq!(wide, None);
}

#[test]
fn every_key_of_tcp_says_what_it_is_to_a_linux_kernel() {
    let page = reference().split_whitespace().collect::<Vec<_>>().join(" ");
    let start = page.find("## `[tcp]`").expect("a table");
    let table = &page[start..start + 1 + page[start + 1..].find(" ## ").expect("another table")];
    let keys: Vec<&str> = table.split(" - **").skip(1).collect();
    assert!(keys.len() > 15, "{keys:?}");
    let without: Vec<&&str> = keys.iter().filter(|key| !key.contains("On Linux hosts:")).collect();
    assert!(without.is_empty(), "add a line to SWITCHES or MEANINGS of kernel.rs: {without:?}");
}

#[test]
fn every_key_is_described_in_a_sentence() {
    for key in keys() {
        let doc = &key.key.doc;
        assert!(
            doc.ends_with('.') && doc.starts_with(|c: char| !c.is_lowercase() || doc.contains(": ")),
            "{}: {doc}",
            key.path
        );
    }
}

#[test]
fn defaults_are_of_their_own_kind() {
    let defaults = keys().into_iter().filter_map(|key| match (&key.key.without, &key.key.shape) {
        (Without::Value(value), Shape::Value(kind)) => Some((key.path, value.clone(), kind)),
        _ => None,
    });
    for (path, value, kind) in defaults {
        assert!(kind.takes_default(&value), "{path} = {value}");
    }
}

#[test]
fn defaults_are_the_endpoint_s_own() {
    let default = |path: &str| keys().into_iter().find(|key| key.path == path).map(|key| key.key.without.clone());
    assert_eq!(default("tcp.rto_min"), Some(Without::Value(json!(TcpConfig::default().rto_min.to_string()))));
    assert_eq!(default("tcp.initial_window"), Some(Without::Value(json!(10))));
}

/// No table of the schema takes a key that it does not name, and nothing of Rust's types is left in it.
#[test]
fn the_schema_is_one_of_toml() {
    fn look(schema: &Json, path: &str) {
        if let Some(table) = schema.as_object() {
            assert_ne!(table.get("type"), Some(&json!("null")), "{path}");
            if table.contains_key("properties") && path != "/anyOf/0/properties/sweep" {
                assert_eq!(table.get("additionalProperties"), Some(&json!(false)), "{path}");
            }
            table.iter().for_each(|(name, value)| look(value, &format!("{path}/{name}")));
        }
        schema.as_array().into_iter().flatten().enumerate().for_each(|(n, value)| look(value, &format!("{path}/{n}")));
    }
    look(schema(), "");
    assert_eq!(schema()["$schema"], "https://json-schema.org/draft/2020-12/schema");
}
