//! The reference of keys in the tree is the one that the code would write.

use firstlight_lab::spec::{Fallback, keys, keys_json, reference};
use firstlight_transport::TcpConfig;

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
