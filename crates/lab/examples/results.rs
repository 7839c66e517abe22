//! Writes the reference of results: `cargo run -p firstlight-lab --example results > docs/reference/results.md`.

use firstlight_lab::{Counters, Files, LabError, LinuxCounters, Outcome, Spec, build, describe, run};
use std::ops::ControlFlow;

fn main() -> Result<(), LabError> {
    let experiments = [
        include_str!("../tests/specs/pair.toml"),
        include_str!("../tests/specs/incast.toml"),
        include_str!("../tests/specs/fabric.toml"),
        include_str!("../tests/specs/ring.toml"),
        include_str!("../tests/specs/hdfs.toml"),
        include_str!("../tests/specs/lossless.toml"),
        include_str!("../tests/specs/qcn.toml"),
    ];
    let mut results = experiments.map(result).into_iter().collect::<Result<Vec<Outcome>, LabError>>()?;
    results.push(on_linux(include_str!("../tests/specs/linux.toml"))?);
    print!("{}", describe(&results));
    Ok(())
}

fn result(text: &str) -> Result<Outcome, LabError> {
    let spec = Spec::read(text, "experiment.toml", &[])?;
    run(&spec, &[], &Files::default(), &mut |_| ControlFlow::Continue(()))
}

/// The tables of a run on Linux hosts that has not begun: no kernel is needed for them.
fn on_linux(text: &str) -> Result<Outcome, LabError> {
    let spec = Spec::read(text, "experiment.toml", &[])?;
    let world = build(&spec)?;
    let linux = Some(LinuxCounters::default());
    Ok(Outcome::of(&spec, &[], &Counters { linux, ..Counters::of(&spec, &world, world.flows())? }))
}
