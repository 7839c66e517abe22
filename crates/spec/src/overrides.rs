//! Overrides of an experiment's keys: `--set voq.large=50`, or a dictionary from Python.
//!
//! Overrides are laid over the file's tree before anything is checked, so that an override can mend what the file alone
//! would get wrong. A text stays a text here; where its key wants a number, a flag or a list it is read as TOML.

use crate::document::{Document, Origin, TomlEntry, TomlNode, TomlValue};
use crate::error::{Problem, SpecError};
use crate::model::join;

/// A value given from outside the file.
#[derive(Clone, Debug, PartialEq)]
pub enum OverrideValue {
    /// A text: a quantity, a name, or a value as typed on the command line.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// True or false.
    Flag(bool),
    /// A list.
    List(Vec<OverrideValue>),
    /// A table.
    Table(Vec<(String, OverrideValue)>),
    /// Takes the key away.
    Remove,
}

/// Dotted keys with their values, in the order they are applied.
pub type Overrides = [(String, OverrideValue)];

impl OverrideValue {
    fn node(&self, origin: &Origin) -> TomlNode {
        let value = match self {
            OverrideValue::Text(text) => TomlValue::Text(text.clone()),
            OverrideValue::Integer(n) => TomlValue::Integer(*n),
            OverrideValue::Float(x) => TomlValue::Float(*x),
            OverrideValue::Flag(flag) => TomlValue::Flag(*flag),
            OverrideValue::List(items) => TomlValue::List(items.iter().map(|item| item.node(origin)).collect()),
            OverrideValue::Table(entries) => {
                let entry = |(name, value): &(String, OverrideValue)| TomlEntry {
                    name: name.clone(),
                    origin: origin.clone(),
                    node: value.node(origin),
                };
                TomlValue::Table(entries.iter().map(entry).collect())
            }
            OverrideValue::Remove => TomlValue::Table(vec![]),
        };
        TomlNode { value, origin: origin.clone() }
    }
}

impl Document {
    /// Lays the overrides over the file, in their order.
    pub fn apply(&mut self, overrides: &Overrides) -> Result<(), SpecError> {
        for (key, value) in overrides {
            let origin = Origin::Set(key.clone());
            let steps: Vec<&str> = key.split('.').collect();
            if let Err(problem) = set(&mut self.root, &steps, "", value, &origin) {
                let place = self.place_of(&origin);
                return Err(Problem { key: key.clone(), place, problem }.into());
            }
        }
        Ok(())
    }
}

/// Sets `value` at `steps` below the table `entries`, whose own path is `parent`.
fn set(
    entries: &mut Vec<TomlEntry>,
    steps: &[&str],
    parent: &str,
    value: &OverrideValue,
    origin: &Origin,
) -> Result<(), String> {
    let (step, rest) = (steps[0], &steps[1..]);
    if step.is_empty() {
        return Err("an empty name: write a key like voq.large".into());
    }
    let found = entries.iter().position(|entry| entry.name == step);
    match (rest, found, value) {
        ([], Some(index), OverrideValue::Remove) => drop(entries.remove(index)),
        (_, None, OverrideValue::Remove) => {
            let path = join(parent, step);
            return Err(format!("the file has no {path}, so there is nothing to take away: leave the override out"));
        }
        ([], Some(index), _) => entries[index].node = value.node(origin),
        ([], None, _) => {
            entries.push(TomlEntry { name: step.into(), origin: origin.clone(), node: value.node(origin) });
        }
        (_, Some(index), _) => {
            let path = join(parent, step);
            descend(&mut entries[index].node, rest, &path, value, origin)?;
        }
        (_, None, _) => {
            let mut inner = vec![];
            set(&mut inner, rest, &join(parent, step), value, origin)?;
            let node = TomlNode { value: TomlValue::Table(inner), origin: origin.clone() };
            entries.push(TomlEntry { name: step.into(), origin: origin.clone(), node });
        }
    }
    Ok(())
}

fn descend(
    node: &mut TomlNode,
    steps: &[&str],
    path: &str,
    value: &OverrideValue,
    origin: &Origin,
) -> Result<(), String> {
    let described = node.value.describe();
    match &mut node.value {
        TomlValue::Table(entries) => set(entries, steps, path, value, origin),
        TomlValue::List(items) => {
            let count = items.len();
            let Some(item) = steps[0].parse::<usize>().ok().and_then(|index| items.get_mut(index)) else {
                let last = count.saturating_sub(1);
                let names = if count == 1 { format!("{path}.0") } else { format!("{path}.0 to {path}.{last}") };
                let entries = if count == 1 { "entry" } else { "entries" };
                return Err(format!("{path} has {count} {entries}: write {names}"));
            };
            match (&steps[1..], value) {
                ([], OverrideValue::Remove) => Err("an entry of a list cannot be taken away".into()),
                ([], _) => {
                    *item = value.node(origin);
                    Ok(())
                }
                (rest, _) => descend(item, rest, &format!("{path}.{}", steps[0]), value, origin),
            }
        }
        _ => Err(format!("{path} is {described}, with nothing below it")),
    }
}
