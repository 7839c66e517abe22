//! The reference of results (`docs/reference/results.md`): tables, columns and metrics of real results.

use super::Outcome;
use crate::measure;
use crate::table::{Column, Table};
use firstlight_spec::wrapped;

const INTRODUCTION: &str = "\
# Tables of a result

Generated from the code by `make docs`.

Times are the experiment's own: on a run with `time_scale` they are divided by it. A table that does not apply (the
pairs of racks on a star) is absent. The manifest describes the columns of its own result under `columns`.
";

/// Describes every table and every metric that these results have.
pub fn describe(results: &[Outcome]) -> String {
    let mut text = String::from(INTRODUCTION);
    let mut seen: Vec<&str> = vec![];
    for table in results.iter().flat_map(|result| &result.tables) {
        if !seen.contains(&table.name) {
            seen.push(table.name);
            write_table(&mut text, table);
        }
    }
    write_metrics(&mut text, results);
    text
}

fn write_table(text: &mut String, table: &Table) {
    let doc = wrapped(&format!("{}.", sentence(table.doc)), "", "");
    text.push_str(&format!("\n## `{}`\n\n{doc}\n", table.name));
    for field in &table.fields {
        let kind = match field.values {
            Column::Text(_) | Column::Named(_) => "text",
            Column::Integer(_) => "integer",
            Column::Number(_) => "number",
            Column::Flag(_) => "true or false",
        };
        text.push_str(&wrapped(&format!("**`{}`** ({kind}): {}", field.name, field.doc), "- ", "  "));
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

fn write_metrics(text: &mut String, results: &[Outcome]) {
    text.push_str("\n## Metrics of the summary\n\n");
    let mut seen = vec![];
    for summary in results.iter().filter_map(|result| result.table(measure::SUMMARY)) {
        let column = |name| match summary.column(name) {
            Some(Column::Text(values)) => values.as_slice(),
            _ => &[],
        };
        for ((metric, unit), meaning) in column("metric").iter().zip(column("unit")).zip(column("meaning")) {
            if !seen.contains(metric) {
                seen.push(metric.clone());
                let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
                text.push_str(&wrapped(&format!("**`{metric}`**{unit}: {meaning}"), "- ", "  "));
            }
        }
    }
}
