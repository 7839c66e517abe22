//! The result as JSON, written column by column.

use firstlight_lab::{Column, Field, Outcome, Table};
use std::io::{self, Write};

/// Writes `{"manifest": ..., "tables": [...]}`. NaN becomes null.
pub(crate) fn write(outcome: &Outcome, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(b"{\"manifest\":")?;
    serde_json::to_writer(&mut *to, &outcome.manifest)?;
    to.write_all(b",\"tables\":[")?;
    each(&outcome.tables, to, table)?;
    to.write_all(b"]}")
}

fn table(table: &Table, to: &mut dyn Write) -> io::Result<()> {
    named(table.name, table.doc, to)?;
    to.write_all(b",\"columns\":[")?;
    each(&table.fields, to, field)?;
    to.write_all(b"]}")
}

fn field(field: &Field, to: &mut dyn Write) -> io::Result<()> {
    named(field.name, field.doc, to)?;
    match &field.values {
        Column::Text(values) => column("text", values, to),
        Column::Named(values) => column("text", &values.iter().collect::<Vec<_>>(), to),
        Column::Integer(values) => column("integer", values, to),
        Column::Number(values) => column("number", values, to),
        Column::Flag(values) => column("flag", values, to),
    }?;
    to.write_all(b"}")
}

fn named(name: &str, doc: &str, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(b"{\"name\":")?;
    serde_json::to_writer(&mut *to, name)?;
    to.write_all(b",\"doc\":")?;
    serde_json::to_writer(&mut *to, doc).map_err(Into::into)
}

fn column(kind: &str, values: &(impl serde::Serialize + ?Sized), to: &mut dyn Write) -> io::Result<()> {
    write!(to, ",\"type\":\"{kind}\",\"values\":")?;
    serde_json::to_writer(to, values).map_err(Into::into)
}

/// Writes all of `items`, with commas between them.
fn each<T>(items: &[T], to: &mut dyn Write, one: fn(&T, &mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            to.write_all(b",")?;
        }
        one(item, to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    #[test]
    fn outcome_reads_back_with_null_for_nan() {
        let first = Table::new("a", "rows \"of\" a")
            .with("x", "numbers", Column::Number(vec![0.1, f64::NAN, 1e300]))
            .with("n", "counts", Column::Integer(vec![-1, 0, i64::MAX]))
            .with("t", "texts", Column::Text(vec!["ä".into(), "\n".into(), "".into()]))
            .with("f", "flags", Column::Flag(vec![true, false, true]));
        let outcome = Outcome { manifest: json!({"seed": 1}), tables: vec![first, Table::new("b", "empty")] };
        let mut bytes = vec![];
        write(&outcome, &mut bytes).unwrap();
        let read: Json = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(read["manifest"]["seed"], 1);
        assert_eq!(read["tables"][0]["columns"][0]["values"], json!([0.1, null, 1e300]));
        assert_eq!(read["tables"][0]["columns"][1]["values"], json!([-1, 0, i64::MAX]));
        assert_eq!(
            read["tables"][0]["columns"][2],
            json!({"name": "t", "doc": "texts", "type": "text", "values": ["ä", "\n", ""]})
        );
        assert_eq!((&read["tables"][0]["doc"], &read["tables"][1]["columns"]), (&json!("rows \"of\" a"), &json!([])));
    }
}
