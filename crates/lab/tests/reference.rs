//! The references in the tree are those that the code would write.

use firstlight_lab::spec::{Fallback, keys, keys_json, reference};
use firstlight_lab::{Counters, LinuxCounters, Outcome, Spec, build, describe, run};
use firstlight_transport::TcpConfig;
use std::ops::ControlFlow;

#[test]
fn the_reference_is_current() {
    let written = include_str!("../../../docs/reference/spec.md");
    let command = "cargo run -p firstlight-lab --example reference > docs/reference/spec.md";
    assert!(written == reference(), "docs/reference/spec.md is out of date: {command}");
}

#[test]
fn every_key_is_described_once() {
    let mut paths: Vec<&str> = keys().iter().map(|key| key.path).collect();
    assert!(keys().iter().all(|key| !key.doc.is_empty() && !key.doc.ends_with('.')));
    paths.sort_unstable();
    assert!(paths.windows(2).all(|pair| pair[0] != pair[1]), "{paths:?}");
    assert_eq!(keys_json().as_array().map(Vec::len), Some(paths.len()));
}

#[test]
fn defaults_are_the_endpoints_own() {
    let default = |path: &str| match keys().iter().find(|key| key.path == path).map(|key| &key.fallback) {
        Some(Fallback::Value(text)) => text.clone(),
        other => panic!("{path}: {other:?}"),
    };
    assert_eq!(default("tcp.rto_min"), format!("\"{}\"", TcpConfig::default().rto_min));
    assert_eq!(default("tcp.initial_window"), "10");
}

/// The result of a run on Linux hosts that has not begun.
fn on_linux(spec: &Spec) -> Outcome {
    let world = build(spec).expect("a world");
    let counted = Counters::of(spec, &world, world.flows()).expect("nothing is lost");
    Outcome::of(spec, &[], &Counters { linux: Some(LinuxCounters::default()), ..counted })
}

#[test]
fn the_reference_of_results_is_current() {
    let read = |text| Spec::read(text, "experiment.toml", &[]).expect("a sound experiment");
    let experiments = [
        include_str!("specs/pair.toml"),
        include_str!("specs/incast.toml"),
        include_str!("specs/fabric.toml"),
        include_str!("specs/ring.toml"),
        include_str!("specs/hdfs.toml"),
        include_str!("specs/lossless.toml"),
        include_str!("specs/qcn.toml"),
    ];
    let mut results = experiments
        .map(|text| run(&read(text), &[], None, &mut |_| ControlFlow::Continue(())).expect("a result"))
        .to_vec();
    results.push(on_linux(&read(include_str!("specs/linux.toml"))));
    let written = include_str!("../../../docs/reference/results.md");
    let command = "cargo run -p firstlight-lab --example results > docs/reference/results.md";
    assert!(written == describe(&results), "docs/reference/results.md is out of date: {command}");
    for result in results {
        let described = result.manifest["columns"].as_object().expect("tables");
        assert_eq!(described.len(), result.tables.len());
        let docs = described.values().flat_map(|table| table.as_object().expect("columns").values());
        assert!(docs.clone().count() > 30 && docs.into_iter().all(|doc| doc != ""));
    }
}
