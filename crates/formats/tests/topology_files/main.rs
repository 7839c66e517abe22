//! Networks from files: good ones against what they say, and a broken one of each kind.

mod graph;
mod htsim;
mod ns3;

use firstlight_formats::ImportError;
use firstlight_formats::topology::{Imported, graph, htsim, ns3};
use firstlight_net::topology::Topology;
use graph::GRAPH;
use htsim::TREE;
use ns3::NS3;
use proptest::prelude::*;

type Read = fn(&str, &str) -> Result<Imported, ImportError>;

fn counts(topology: &Topology) -> (usize, usize, usize) {
    (topology.hosts(), topology.switches().len(), topology.links())
}

fn good(read: Read, text: &str) -> Imported {
    read("net", text).unwrap_or_else(|error| panic!("{error}"))
}

/// Each broken text is the good one with a piece replaced; the message begins with the file and names the place.
fn broken(read: Read, text: &str, changes: &[(&str, &str, &str)]) {
    for (piece, with, message) in changes {
        assert_eq!(text.matches(piece).count(), 1, "'{piece}' is to be replaced once");
        let error = read("net", &text.replace(piece, with)).expect_err(&format!("with '{with}' for '{piece}'"));
        assert_eq!(error.to_string(), format!("net:{message}"));
    }
}

proptest! {
    /// Files with a few words replaced: read or refused with a place that the file has, never a panic.
    #[test]
    fn any_file_is_read_or_refused_at_a_place(
        which in 0usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), word()), 1..4),
    ) {
        let (read, text) = [(graph as Read, GRAPH), (ns3, NS3), (htsim, TREE)][which];
        let mut words: Vec<&str> = text.split_inclusive([' ', '\n']).collect();
        for (at, word) in &changes {
            let at = at.index(words.len());
            words[at] = word;
        }
        let text = words.concat();
        match read("net", &text) {
            Ok(Imported { topology, host_numbers, .. }) => {
                // A host's second link is a host of its own in the topology.
                let hosts = topology.host_ids().filter(|&host| topology.owner(host) == host).count();
                prop_assert_eq!(host_numbers.len(), hosts);
            }
            Err(ImportError { line, column, .. }) => {
                let length = text.lines().nth(line - 1).map_or(0, |line| line.chars().count());
                prop_assert!(column >= 1 && column <= length + 1, "line {line}, column {column}");
            }
        }
    }
}

/// Words that files have, and others.
fn word() -> impl Strategy<Value = String> {
    const KNOWN: [&str; 17] = [
        "0 ",
        "1\n",
        "4 ",
        "65535 ",
        "4294967295 ",
        "host ",
        "link ",
        "switch ",
        "tor1 ",
        "Tier ",
        "Bundle ",
        "\n",
        "",
        "10Gbps ",
        "9000000s ",
        "# ",
        "µ ",
    ];
    prop_oneof![prop::sample::select(&KNOWN[..]).prop_map(str::to_owned), "[ -~]{0,6}[ \n]"]
}
