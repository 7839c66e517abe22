//! Writes the reference of results: `cargo run -p firstlight-lab --example results > docs/reference/results.md`.

use firstlight_lab::{LabError, Outcome, Spec, describe, run};
use std::ops::ControlFlow;

fn main() -> Result<(), LabError> {
    let experiments = [include_str!("../tests/specs/pair.toml"), include_str!("../tests/specs/incast.toml")];
    let results = experiments.map(result).into_iter().collect::<Result<Vec<Outcome>, LabError>>()?;
    print!("{}", describe(&results));
    Ok(())
}

fn result(text: &str) -> Result<Outcome, LabError> {
    let spec = Spec::read(text, "experiment.toml", &[])?;
    run(&spec, &[], None, &mut |_| ControlFlow::Continue(()))
}
