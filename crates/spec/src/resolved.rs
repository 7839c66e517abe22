//! The experiment with its defaults, as it goes into a manifest.

use crate::conditions::Conditions;
use crate::model::{self, Key, SchemaTable, Shape, Without, join};
use crate::places::Places;
use crate::tables::{ChainExperiment, Experiment};
use firstlight_circuits::RackId;
use firstlight_transport::cc::{CcName, CcTables};
use serde_json::{Map, Value as Json, json};

/// Every key that has an effect and a value, as nested tables. Where only kernels would take a key, a default of
/// simulated hosts is no value: the kernel's own holds.
pub(crate) fn network(
    experiment: &Experiment,
    conditions: &Conditions<'_>,
    places: &Places,
    name: &str,
    pair: Option<(RackId, RackId)>,
) -> Json {
    let mut json = serde_json::to_value(experiment).expect("tables are JSON");
    json["name"] = json!(name);
    json["measure"]["pair"] = json!(pair.map(|(src, dst)| [src.0, dst.0]));
    let Json::Object(table) = &mut json else { unreachable!("an experiment is a table") };
    Prune { conditions, places }.keys(table, model::network(), "");
    json
}

/// The resolved experiment on the measurement chain.
pub(crate) fn chain(experiment: &ChainExperiment, name: &str) -> Json {
    let mut json = serde_json::to_value(experiment).expect("tables are JSON");
    json["name"] = json!(name);
    json
}

/// Removes keys without effect and keys without a value.
struct Prune<'a> {
    conditions: &'a Conditions<'a>,
    places: &'a Places,
}

impl Prune<'_> {
    fn keys(&self, json: &mut Map<String, Json>, keys: &[Key], path: &str) {
        // A table without keys is none.
        json.retain(|name, _| name == "kind" || keys.iter().any(|key| key.name == *name));
        for key in keys {
            let own = join(path, &key.name);
            let Some(value) = json.get_mut(&key.name) else { continue };
            let nothing_else =
                matches!((&key.without, &*value), (Without::Nothing(_), Json::Array(all)) if all.is_empty());
            let idle = self.conditions.no_effect(key, path, self.places).is_some() || self.is_kernels(&own);
            if value.is_null() || idle || (nothing_else && !self.places.has(&own)) {
                json.shift_remove(&key.name);
                continue;
            }
            match &key.shape {
                Shape::Table(table) => {
                    self.table(value, table, &own);
                    if value.as_object().is_some_and(Map::is_empty) {
                        json.shift_remove(&key.name);
                    }
                }
                Shape::Tables(table) => {
                    let entries = value.as_array_mut().into_iter().flatten().enumerate();
                    entries.for_each(|(n, entry)| self.table(entry, table, &join(&own, &n.to_string())));
                    if value.as_array().is_some_and(Vec::is_empty) {
                        json.shift_remove(&key.name);
                    }
                }
                Shape::Value(_) | Shape::Sweep => {}
            }
        }
    }

    fn table(&self, json: &mut Json, table: &SchemaTable, path: &str) {
        let kind = json.get("kind").and_then(Json::as_str).filter(|_| table.kind.is_some()).map(String::from);
        let variant = table.variant(kind.as_deref()).expect("the kind of a table is one of the schema's");
        if let Json::Object(json) = json {
            self.keys(json, &variant.keys, path);
        }
    }

    /// Whether only kernels take a key, which is not given: a key of TCP, or of a controller of Linux's own, that has a
    /// default of the kernel's own.
    fn is_kernels(&self, path: &str) -> bool {
        let chosen = ["tcp.cc", "tcp.tick"].contains(&path);
        let table = path.split_once('.').map_or("", |(table, _)| table);
        let control = || CcTables::default().linux(table.parse::<CcName>().ok()?.linux()?);
        let of_linux = || table == "tcp" || control().is_some_and(|control| control.module.is_none());
        !chosen && !self.conditions.simulated() && !self.places.has(path) && of_linux()
    }
}
