//! The reference of keys: as JSON for programs, as Markdown for readers (`docs/reference/spec.md`).

use super::keys::{Fallback, Key, Kind, When};
use super::registry::{TABLES, Table, keys};
use firstlight_units::Bytes;
use serde_json::{Value as Json, json};
use std::fmt::Write;

/// All keys: path, type, default, whether required, condition, meaning.
pub fn keys_json() -> Json {
    let entry = |key: &Key| {
        let default = match &key.fallback {
            Fallback::Value(text) => Some(text.as_str()),
            _ => None,
        };
        let required = key.fallback == Fallback::Required;
        json!({
            "path": key.path, "table": key.table().path, "type": type_text(key.kind), "default": default,
            "without": fallback_text(key), "required": required, "when": condition(key), "doc": key.doc,
            "example": key.kind.example(),
        })
    };
    keys().iter().map(entry).collect()
}

/// The reference as Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# Keys of an experiment\n\n\
         Generated from the code (`crates/lab/src/spec/registry.rs`) by `cargo run -p firstlight-lab --example reference`.\n\n\
         An experiment is one TOML file. A quantity is a text with its unit: times in `s`, `ms`, `us`, `ns`, `ps`; rates \
         in `Tbps`, `Gbps`, `Mbps`, `kbps`, `bps`; sizes in `TB`, `GB`, `MB`, `kB`, `B` and `TiB`, `GiB`, `MiB`, `KiB`. \
         A key that does not exist, or that has no effect in its setting, is an error. `--set key=value` overrides a \
         key; an entry of a list is named by its number, as in `flows.0.cc`.\n",
    );
    for table in TABLES {
        write_table(&mut text, table).expect("a String takes all");
    }
    text
}

fn write_table(text: &mut String, table: &Table) -> std::fmt::Result {
    let title = match table.path {
        "" => "At the top".to_string(),
        path => match path.strip_suffix(".*") {
            Some(list) => format!("`[[{list}]]`"),
            None => format!("`[{path}]`"),
        },
    };
    write!(text, "\n## {title}\n\n{}.", table.doc)?;
    if table.when != When::Always {
        write!(text, " Only when {}.", code(&table.when.to_string()))?;
    }
    text.push('\n');
    let rows: Vec<&Key> = keys().iter().filter(|key| key.table().path == table.path).collect();
    if !rows.is_empty() {
        text.push_str("\n| key | type | default | meaning |\n|---|---|---|---|\n");
    }
    for key in rows {
        let leaf = key.path.rsplit('.').next().unwrap_or(key.path);
        let only = match key.when {
            When::Always => String::new(),
            when => format!(". Only when {}", code(&when.to_string())),
        };
        writeln!(text, "| `{leaf}` | {} | {} | {}{only} |", type_text(key.kind), fallback_text(key), key.doc)?;
    }
    if table.path == "sweep" {
        text.push_str("\nKeys are quoted with their dots: `\"voq.small\" = [4, 8, 16]`.\n");
    }
    Ok(())
}

/// `fabric.kind = "star"` as code; sentences as they are.
fn code(condition: &str) -> String {
    if condition.contains('=') { format!("`{condition}`") } else { condition.to_string() }
}

fn condition(key: &Key) -> String {
    let conditions = [key.table().when, key.when];
    let texts: Vec<String> = conditions.iter().filter(|when| **when != When::Always).map(When::to_string).collect();
    texts.join(", and ")
}

fn fallback_text(key: &Key) -> String {
    match &key.fallback {
        Fallback::Required => "required".into(),
        Fallback::Value(text) => format!("`{text}`"),
        Fallback::Absent(meaning) => (*meaning).into(),
    }
}

fn type_text(kind: Kind) -> String {
    match kind {
        Kind::Name(names) => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        Kind::Count { least, most, .. } if most >= 1 << 20 => format!("{kind}, from {least}"),
        Kind::Count { least, most, .. } => format!("{kind}, {least} to {most}"),
        Kind::Number { least, most } => format!("a number from {least} to {most}"),
        Kind::Time { positive: true } => "a time above zero".into(),
        Kind::Rate => "a rate above zero".into(),
        Kind::Size { least, most } if least > 1 && most < 1 << 40 => {
            format!("a size, {} to {}", Bytes::new(least), Bytes::new(most))
        }
        _ => kind.to_string(),
    }
}
