//! The reference of results in the tree is the one that the code would write.
//!
//! With `FIRSTLIGHT_WRITE=1` the test writes it: `make docs`.

use firstlight_lab::{Counters, Files, LinuxCounters, Outcome, Spec, build, describe, run};
use std::ops::ControlFlow;

/// Results that together have every table and every metric.
fn results() -> Vec<Outcome> {
    let experiments = [
        include_str!("specs/pair.toml"),
        include_str!("specs/incast.toml"),
        include_str!("specs/fabric.toml"),
        include_str!("specs/ring.toml"),
        include_str!("specs/hdfs.toml"),
        include_str!("specs/lossless.toml"),
        include_str!("specs/qcn.toml"),
    ];
    let read = |text| Spec::read(text, "experiment.toml", &[]).expect("a sound experiment");
    let mut results = experiments
        .map(|text| run(&read(text), &[], &Files::default(), &mut |_| ControlFlow::Continue(())).expect("a result"))
        .to_vec();
    results.push(on_linux(&read(include_str!("specs/linux.toml"))));
    results
}

/// The result of a run on Linux hosts that has not begun: no kernel is needed for its tables.
fn on_linux(spec: &Spec) -> Outcome {
    let mut world = build(spec).expect("a world");
    let causes = world.fabric_mut().take_causes();
    let counted = Counters::of(spec, &world, world.flows()).expect("nothing is lost");
    Outcome::of(spec, &[], &Counters { linux: Some(LinuxCounters::default()), causes, ..counted })
}

#[test]
fn the_reference_of_results_is_current() {
    let results = results();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/results.md");
    if std::env::var_os("FIRSTLIGHT_WRITE").is_some() {
        std::fs::write(page, describe(&results)).expect("a page of the tree");
    }
    let written = std::fs::read_to_string(page).expect("a page of the tree");
    assert!(written == describe(&results), "docs/reference/results.md is out of date: `make docs`");
    for result in results {
        let described = result.manifest["columns"].as_object().expect("tables");
        assert_eq!(described.len(), result.tables.len());
        let docs = described.values().flat_map(|table| table.as_object().expect("columns").values());
        assert!(docs.clone().count() > 30 && docs.into_iter().all(|doc| doc != ""));
    }
}
