//! The keys of `[[workload]]` for queries, paced applications, generated schedules of message passing, and datagrams
//! that go on and off.

use super::super::keys::{Key, Kind, When};
use super::super::registry::{AMOUNT, POSITIVE, SPAN, key};
use super::partition_aggregate::CONNECTIONS;

const QUERIES: When = When::Workload(&["partition_aggregate"]);
const PACED: When = When::Workload(&["paced"]);
const QUERIES_OR_GOAL: When = When::Workload(&["partition_aggregate", "goal"]);
const GOAL: When = When::Workload(&["goal"]);
const UDP: When = When::Workload(&["udp"]);

/// All of them.
pub(super) fn keys() -> Vec<Key> {
    [queries(), paced(), goal(), udp()].into_iter().flatten().collect()
}

fn queries() -> Vec<Key> {
    vec![
        key("workload.*.request", AMOUNT, "Size of a request, to an aggregator and to a worker").or("2kB").when(QUERIES),
        key("workload.*.reply", AMOUNT, "Size of a reply, a worker's and an aggregator's").or("20kB").when(QUERIES),
        key(
            "workload.*.compute",
            SPAN,
            "What a worker takes to answer. `goal`: how long the ranks of an `application` compute between exchanges, in whole \
             nanoseconds",
        )
        .or("0s")
        .when(QUERIES_OR_GOAL),
        key(
            "workload.*.queries",
            Kind::Count { least: 1, most: 1_000_000, of: "queries" },
            "How many queries each host of rack 0 has",
        )
        .or_none("with `interval`: until the run's end; else required")
        .when(QUERIES),
        key(
            "workload.*.connections",
            Kind::Name(CONNECTIONS),
            "`persistent`: each pair's connection, one for each direction, stays open. `new`: one for each request and reply",
        )
        .or(CONNECTIONS[0])
        .when(QUERIES),
    ]
}

fn paced() -> Vec<Key> {
    vec![
        key(
            "workload.*.steps",
            Kind::Texts,
            "When each application starts to write at what rate of payload: `[\"0s 1Gbps\", \"100ms 4Gbps\", \"110ms off\"]`. The last \
             one goes on until the run's end",
        )
        .or_none("required")
        .when(PACED),
        key("workload.*.write", AMOUNT, "How much it writes at once").or("16KiB").when(PACED),
    ]
}

fn goal() -> Vec<Key> {
    vec![
        key(
            "workload.*.application",
            Kind::Text,
            "A schedule that is generated instead of a `file`: the communication of a NAS parallel benchmark, `bt`, `cg`, `ft`, \
             `is` or `mg`, with its problem class, as `cg.A` (classes S, W and A; `cg` is `cg.S`), or of a pattern: `halo`, \
             `all-to-all`, `all-reduce`, `wavefront`",
        )
        .or_none("see `file`")
        .when(GOAL),
        key("workload.*.ranks", Kind::Count { least: 1, most: 65_536, of: "ranks" }, "How many ranks an `application` has")
            .or_none("as many as hosts in `among`")
            .when(GOAL),
        key(
            "workload.*.iterations",
            Kind::Count { least: 1, most: 1_000_000, of: "iterations" },
            "How many iterations of an `application`",
        )
        .or(1)
        .when(GOAL),
    ]
}

fn udp() -> Vec<Key> {
    vec![
        key("workload.*.on", POSITIVE, "How long a source sends").or_none("all the time").when(UDP),
        key("workload.*.off", POSITIVE, "How long it is silent then").or_none("see `on`").when(UDP),
        key("workload.*.exponential", Kind::Flag, "These times are drawn at random, `on` and `off` are their means")
            .or(false)
            .when(UDP),
    ]
}
