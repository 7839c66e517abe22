//! The keys of `[[workload]]`.

use super::super::control::NAMES;
use super::super::hosts::HostKind;
use super::super::keys::{Key, Kind, When};
use super::super::registry::{AMOUNT, CLASS, POSITIVE, SPAN, key};

/// What a table is.
pub(in super::super) const DOC: &str =
    "Many flows from one table. What is random is drawn from `seed`, apart for each workload";

/// The kinds, in the order of the reference.
const KINDS: &[&str] = &["poisson", "permutation", "all_to_all", "incast", "staggered", "probe", "file"];

const POISSON: When = When::Workload(&["poisson"]);
const INCAST: When = When::Workload(&["incast"]);
const PROBE: When = When::Workload(&["probe"]);
const FILE: When = When::Workload(&["file"]);

const fn count(least: u64, of: &'static str) -> Kind {
    Kind::Count { least, most: 1_000_000, of }
}

/// All of them.
pub(in super::super) fn keys() -> Vec<Key> {
    [what(), ends(), amounts(), times(), probes(), hosts()].into_iter().flatten().collect()
}

fn what() -> Vec<Key> {
    vec![
        key(
            "workload.*.kind",
            Kind::Name(KINDS),
            "`poisson`: flows start at random moments between random pairs, at a given load. `permutation`: each host sends to \
             one other and receives from one other, at random. `all_to_all`: each host sends to each other. `incast`: many \
             send to one, at once. `staggered`: flows start one after another, and stop. `probe`: single packets at a \
             constant rate, without TCP. `file`: a list of flows",
        ),
        key("workload.*.name", Kind::Text, "Its name in tables").or_none("`workload.0` and so on"),
        key(
            "workload.*.file",
            Kind::Text,
            "The list, its path relative to the experiment's: a flow list as HPCC's ns-3 reads it, or, if its name ends in \
             `.cm`, a connection matrix of csg-htsim",
        )
        .when(FILE),
    ]
}

fn ends() -> Vec<Key> {
    const DIRECTED: When = When::Workload(&["poisson", "incast", "staggered", "probe"]);
    vec![
        key(
            "workload.*.among",
            Kind::Hosts,
            "Which hosts send and receive: `rack0`, `all`",
        )
        .or("all")
        .when(When::Workload(&["permutation", "all_to_all"])),
        key("workload.*.from", Kind::Hosts, "Senders: `host3`, `rack0.host3`, `rack0` or `all`").or("all").when(DIRECTED),
        key(
            "workload.*.to",
            Kind::Hosts,
            "Receivers, in the same form. `poisson`: each pair of different hosts is as likely as any other. `incast`: one \
             host. `staggered` and `probe`: as for `[[flows]]`",
        )
        .or_none("`poisson`: `all`; else required")
        .when(DIRECTED),
        key("workload.*.senders", Kind::Count { least: 1, most: 65_535, of: "hosts" }, "How many of `from` send at once")
            .or_none("all of them")
            .when(INCAST),
        key("workload.*.random", Kind::Flag, "The senders are drawn anew each time; `false`: always the first of `from`")
            .or(false)
            .when(INCAST),
    ]
}

fn amounts() -> Vec<Key> {
    vec![
        key(
            "workload.*.load",
            Kind::Number { least: 0.0, most: 2.0 },
            "The load at the edge: the payload that starts in a second, of what the links of all hosts in `from` carry. Flows \
             start at load x hosts x `hosts.rate` / mean flow size",
        )
        .when(POISSON),
        key(
            "workload.*.sizes",
            Kind::Text,
            "Distribution of the flow sizes: `web-search`, `data-mining`, `hadoop`, `cache-follower`, `storage`, or a file \
             with a size and the part of the flows that are not larger (in percent or as a probability) on each line, its \
             path relative to the experiment's",
        )
        .or_none("see `size`")
        .when(POISSON),
        key("workload.*.unit", AMOUNT, "What a size in the file of `sizes` counts: `1460B` where it has packets")
            .or_none("bytes")
            .when(POISSON),
        key("workload.*.size", AMOUNT, "How much each flow sends")
            .or_none("`poisson`: see `sizes`; else they send until the end")
            .when(When::Workload(&["poisson", "permutation", "all_to_all", "incast"])),
        key(
            "workload.*.flows",
            count(1, "flows"),
            "How many flows: no more start. `staggered`: pair after pair, beginning again at the first",
        )
        .or_none("`poisson`: all until the run's end; `staggered`: one for each pair; `file`: all")
        .when(When::Workload(&["poisson", "staggered", "file"])),
    ]
}

fn times() -> Vec<Key> {
    vec![
        key("workload.*.start", SPAN, "When it begins. `file`: added to the starts in the file").or("0s"),
        key("workload.*.jitter", SPAN, "Each flow starts at random within this span after its time")
            .or("0s")
            .when(When::Workload(&["permutation", "all_to_all", "incast"])),
        key("workload.*.period", POSITIVE, "The incast begins again this long after it began")
            .or_none("it happens once")
            .when(INCAST),
        key("workload.*.rounds", count(1, "rounds"), "How often it happens")
            .or_none("with `period`: until the run's end")
            .when(INCAST),
        key(
            "workload.*.interval",
            POSITIVE,
            "`staggered`: from one flow's start to the next one's. `probe`: from packet to packet",
        )
        .or_none("`staggered`: required; `probe`: see `rate`")
        .when(When::Workload(&["staggered", "probe"])),
        key("workload.*.hold", POSITIVE, "How long each flow sends; then it stops")
            .or_none("until the run's end")
            .when(When::Workload(&["staggered"])),
    ]
}

fn probes() -> Vec<Key> {
    vec![
        key("workload.*.packet", Kind::Size { least: 28, most: 65_535 }, "Size of each packet, IP header included")
            .or("64B")
            .when(PROBE),
        key("workload.*.rate", Kind::Rate, "The packets' rate, IP headers included; instead of `interval`")
            .or_none("see `interval`")
            .when(PROBE),
        key("workload.*.count", count(1, "packets"), "How many packets for each pair of hosts")
            .or_none("until the run's end")
            .when(PROBE),
    ]
}

fn hosts() -> Vec<Key> {
    const FLOWS: When = When::Workload(&["poisson", "permutation", "all_to_all", "incast", "staggered", "file"]);
    vec![
        key("workload.*.hosts", Kind::Name(HostKind::NAMES), "Whose TCP both ends are")
            .or_none("`hosts.kind`")
            .when(FLOWS),
        key("workload.*.cc", Kind::Name(NAMES), "Congestion control")
            .or_none("`tcp.cc`, or the sending Linux host's own")
            .when(FLOWS),
        key(
            "workload.*.class",
            CLASS,
            "Traffic class of its packets, in both directions. `file`: instead of the file's",
        )
        .or(0),
    ]
}
