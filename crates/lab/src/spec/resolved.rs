//! The experiment with its defaults, as it goes into a manifest.

use super::effect::Setting;
use super::registry::keys;
use super::values::Values;
use firstlight_circuits::RackId;
use serde_json::{Map, Value as Json, json};

/// Every key that counts in this setting and has a value, as nested tables in the registry's order. Where only kernels
/// would take a key, a default of ours is no value: theirs hold.
pub(crate) fn json(values: &Values, setting: &Setting, name: &str, pair: Option<(RackId, RackId)>) -> Json {
    let mut root = json!({});
    for key in keys().iter().filter(|key| setting.counts(key)) {
        let there = |path: &String| setting.counts_at(key, path) && is_on(values, path);
        for path in values.instances(key).into_iter().filter(there) {
            let value = match path.as_str() {
                "name" => Some(json!(name)),
                "measure.pair" => pair.map(|(src, dst)| json!([src.0, dst.0])),
                _ if kernel_has_it(key.path) && !setting.simulated() && !values.has(&path) => None,
                _ => values.get(&path).map(|value| value.json()),
            };
            if let Some(value) = value {
                let steps: Vec<&str> = path.split('.').collect();
                insert(&mut root, &steps, value);
            }
        }
    }
    let classes = values.count("switch.classes");
    if classes > 0 {
        // The table alone makes a class, without any key.
        let list = &mut root["switch"]["classes"];
        let given = list.as_array().cloned().unwrap_or_default();
        *list = given.into_iter().chain(std::iter::repeat(json!({}))).take(classes).collect();
    }
    root
}

/// Whether a key's table is there, if its presence turns something on.
fn is_on(values: &Values, path: &str) -> bool {
    let table = path.rsplit_once('.').map_or("", |(table, _)| table);
    let switches =
        ["marks", "pacer", "pfc", "qcn"].contains(&table) || table.ends_with(".red") || table.ends_with(".phantom");
    !switches || values.tables.contains_key(table)
}

/// Keys of TCP that have a default of a kernel's own on Linux hosts.
fn kernel_has_it(key: &str) -> bool {
    let chosen = ["tcp.cc", "tcp.tick"].contains(&key);
    !chosen && ["tcp.", "cubic.", "dctcp.", "vegas."].iter().any(|table| key.starts_with(table))
}

fn insert(at: &mut Json, steps: &[&str], value: Json) {
    let Some((step, rest)) = steps.split_first() else {
        *at = value;
        return;
    };
    if let Ok(index) = step.parse::<usize>() {
        if !at.is_array() {
            *at = json!([]);
        }
        let list = at.as_array_mut().expect("it was made a list");
        while list.len() <= index {
            list.push(json!({}));
        }
        return insert(&mut list[index], rest, value);
    }
    if !at.is_object() {
        *at = Json::Object(Map::new());
    }
    let table = at.as_object_mut().expect("it was made a table");
    insert(table.entry(*step).or_insert(Json::Null), rest, value);
}
