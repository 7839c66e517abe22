//! Runs an experiment without Python and prints its manifest and summary: `cargo run --example run FILE [key=value
//! ...]`.

use firstlight_lab::spec::OverrideValue;
use firstlight_lab::{Column, Files, LabError, Spec, run};
use std::ops::ControlFlow;

fn main() -> std::process::ExitCode {
    match experiment() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn experiment() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: run FILE [key=value ...]")?;
    let overrides: Vec<_> = arguments
        .filter_map(|pair| {
            pair.split_once('=').map(|(key, value)| (key.to_string(), OverrideValue::Text(value.into())))
        })
        .collect();
    let text = std::fs::read_to_string(&path)?;
    let spec = Spec::read(&text, &path, &overrides).map_err(LabError::from)?;
    let outcome = run(&spec, &overrides, &Files::default(), &mut |_| ControlFlow::Continue(()))?;
    println!("{:#}", outcome.manifest);
    let summary = outcome.table("summary").ok_or("a result has a summary")?;
    if let (Some(Column::Text(names)), Some(Column::Number(values))) =
        (summary.column("metric"), summary.column("value"))
    {
        for (name, value) in names.iter().zip(values) {
            println!("{name:28} {value:.4}");
        }
    }
    Ok(())
}
