//! The keys of `[[workload]]`.

use super::super::control::NAMES;
use super::super::hosts::HostKind;
use super::super::keys::{Key, Kind, When};
use super::super::registry::{AMOUNT, CLASS, POSITIVE, SPAN, key};
use super::{application_keys, placement};

/// What a table is.
pub(in super::super) const DOC: &str =
    "Many flows from one table. What is random is drawn from `seed`, apart for each workload";

/// The kinds, in the order of the reference: those of flows, then those of single packets.
const KINDS: &[&str] = &[
    "poisson",
    "permutation",
    "all_to_all",
    "incast",
    "staggered",
    "ring",
    "demand",
    "shuffle",
    "hdfs",
    "partition_aggregate",
    "paced",
    "goal",
    "background",
    "file",
    "probe",
    "udp",
];
const FLOWS: When = When::Workload(KINDS.split_at(KINDS.len() - 2).0);

const POISSON: When = When::Workload(&["poisson"]);
const INCAST: When = When::Workload(&["incast"]);
const ROUNDS: When = When::Workload(&["incast", "ring"]);
const PROBE: When = When::Workload(&["probe"]);
const FILE: When = When::Workload(&["file", "demand", "goal"]);
const DATAGRAMS: When = When::Workload(&["probe", "udp", "background"]);
const RING: When = When::Workload(&["ring"]);
const SHUFFLE: When = When::Workload(&["shuffle"]);
const HDFS: When = When::Workload(&["hdfs"]);

const fn count(least: u64, of: &'static str) -> Kind {
    Kind::Count { least, most: 1_000_000, of }
}

/// All of them.
pub(in super::super) fn keys() -> Vec<Key> {
    [what(), ends(), amounts(), times(), files(), probes(), application_keys::keys(), hosts()]
        .into_iter()
        .flatten()
        .collect()
}

fn what() -> Vec<Key> {
    vec![
        key(
            "workload.*.kind",
            Kind::Name(KINDS),
            "`poisson`: flows start at random moments between random pairs, at a given load. `permutation`: each host sends to \
             one other and receives from one other, at random. `all_to_all`: each host sends to each other. `incast`: many \
             send to one, at once. `staggered`: flows start one after another, and stop. `probe`: single packets at a \
             constant rate, without TCP. `file`: a list of flows. `ring`: each rack sends big flows to the next one and small \
             ones to all others; where a fabric has no racks, each host. `demand`: steady flows that add up to a matrix. \
             `shuffle`: MapReduce's, every reducer fetches from every mapper. `hdfs`: files are written with their replicas. \
             `partition_aggregate`: queries that spread over a rack and come back. `paced`: applications that write at given \
             rates. `goal`: a message-passing application from its trace. These five have jobs (see table `jobs` of results). \
             `background`: each host sends so much to a random one. `udp`: datagrams at a constant rate, or on and off",
        ),
        key("workload.*.name", Kind::Text, "Its name in tables").or_none("`workload.0` and so on"),
        key(
            "workload.*.file",
            Kind::Text,
            "The list, its path relative to the experiment's: a flow list as HPCC's ns-3 reads it, or, if its name ends in \
             `.cm`, a connection matrix of csg-htsim. `demand`: the matrix, a line for each sending rack (host, where there are no \
             racks), entries separated by commas, 0 in the diagonal. `goal`: a schedule in GOAL's text form, or see `application`",
        )
        .or_none("required, `goal`: unless there is an `application`")
        .when(FILE),
    ]
}

fn ends() -> Vec<Key> {
    const DIRECTED: When =
        When::Workload(&["poisson", "incast", "staggered", "probe", "shuffle", "paced", "background", "udp"]);
    vec![
        key(
            "workload.*.among",
            Kind::Hosts,
            "Which hosts send and receive: `rack0`, `all`. `goal`: rank 0 is on the first of them, and so on",
        )
        .or("all")
        .when(When::Workload(&["permutation", "all_to_all", "goal"])),
        key("workload.*.from", Kind::Hosts, "Senders: `host3`, `rack0.host3`, `rack0` or `all`. `shuffle`: the mappers").or("all").when(DIRECTED),
        key(
            "workload.*.to",
            Kind::Hosts,
            "Receivers, in the same form. `poisson`: each pair of different hosts is as likely as any other. `incast`: one \
             host. `staggered`, `paced`, `probe` and `udp`: as for `[[flows]]`. `shuffle`: the reducers",
        )
        .or_none("`poisson`, `shuffle` and `background`: `all`; else required")
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
        key("workload.*.size", AMOUNT, "How much each flow sends. `goal`: the messages of an `application` that is a pattern")
            .or_none("`poisson`: see `sizes`; `demand`, `shuffle` and `background`: required; `goal`: 64KiB; else they send until the end")
            .when(When::Workload(&["poisson", "permutation", "all_to_all", "incast", "demand", "shuffle", "background", "goal"])),
        key("workload.*.big", AMOUNT, "Size of a flow to the next rack").or_none("required").when(RING),
        key("workload.*.small", AMOUNT, "Size of a flow to any other rack").or_none("there are none").when(RING),
        key(
            "workload.*.rings",
            Kind::Count { least: 1, most: 2, of: "rings" },
            "2: the flows to the rack after the next one are big too",
        )
        .or(1)
        .when(RING),
        key("workload.*.per_pair", count(1, "flows"), "Flows from a rack to a rack in each round").or(1).when(RING),
        key(
            "workload.*.parallel",
            count(1, "mappers"),
            "From how many mappers a reducer fetches at once (Hadoop's `mapreduce.reduce.shuffle.parallelcopies`)",
        )
        .or(5)
        .when(SHUFFLE),
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
            .when(When::Workload(&["permutation", "all_to_all", "incast", "ring", "background"])),
        key("workload.*.period", POSITIVE, "All of it begins again this long after it began")
            .or_none("it happens once")
            .when(ROUNDS),
        key("workload.*.rounds", count(1, "rounds"), "How often it happens")
            .or_none("with `period`: until the run's end")
            .when(ROUNDS),
        key(
            "workload.*.interval",
            POSITIVE,
            "`staggered`: from one flow's start to the next one's. `probe`: from packet to packet. \
             `partition_aggregate`: from an aggregator's query to its next one on average, at random",
        )
        .or_none("`staggered`: required; `probe`: see `rate`; `partition_aggregate`: a query follows when the one before is complete")
        .when(When::Workload(&["staggered", "probe", "partition_aggregate"])),
        key("workload.*.hold", POSITIVE, "How long each flow sends; then it stops")
            .or_none("until the run's end")
            .when(When::Workload(&["staggered", "udp"])),
    ]
}

fn files() -> Vec<Key> {
    vec![
        key("workload.*.files", count(1, "files"), "How many files are written, by hosts in turn: over the racks, then over the hosts of each")
            .or(64)
            .when(HDFS),
        key("workload.*.file_size", AMOUNT, "Size of each file").or("400MB").when(HDFS),
        key("workload.*.block", AMOUNT, "A file is written block after block of this size").or("128MiB").when(HDFS),
        key("workload.*.chunk", AMOUNT, "What a data node has received before it forwards it: a packet of HDFS")
            .or("64KiB")
            .when(HDFS),
        key(
            "workload.*.replication",
            Kind::Count { least: 2, most: 3, of: "replicas" },
            "Replicas of each block, the first one on the writer's host",
        )
        .or(3)
        .when(HDFS),
        key(
            "workload.*.placement",
            Kind::Name(placement::NAMES),
            "The rack of the second and third replica. `random`: a random other one, as HDFS has it. `rehdfs`: a function of \
             the writer's rack, see `shift`",
        )
        .or("random")
        .when(HDFS),
        key(
            "workload.*.shift",
            Kind::Count { least: 1, most: 65_535, of: "racks" },
            "With `rehdfs`: replicas go so many racks further",
        )
        .or_none("1")
        .when(HDFS),
        key("workload.*.rotate", count(1, "blocks"), "With `rehdfs`: a writer's `shift` grows by 1 after so many blocks")
            .or_none("it stays")
            .when(HDFS),
        key("workload.*.name_node", Kind::Hosts, "The host that is asked before each block, also a data node")
            .or("host0")
            .when(HDFS),
    ]
}

fn probes() -> Vec<Key> {
    vec![
        key("workload.*.packet", Kind::Size { least: 28, most: 65_535 }, "Size of each packet, IP header included")
            .or_none("`probe`: 64B; else `hosts.mtu`")
            .when(DATAGRAMS),
        key(
            "workload.*.send_buffer",
            Kind::Size { least: 1, most: 1 << 40 },
            "What a socket holds of packets that have not left the host's interface. While it holds that much the program waits; what \
             it was to send meanwhile follows at once",
        )
        .or_none("no limit")
        .when(DATAGRAMS),
        key("workload.*.rate", Kind::Rate, "`probe`: the packets' rate, IP headers included; instead of `interval`; `udp`: the same. `demand`: the payload of an entry of 1. `background`: datagrams at this rate, instead of TCP")
            .or_none("`probe`: see `interval`; `background`: TCP; else required")
            .when(When::Workload(&["probe", "demand", "udp", "background"])),
        key("workload.*.count", count(1, "packets"), "How many packets for each pair of hosts")
            .or_none("until the run's end")
            .when(PROBE),
    ]
}

fn hosts() -> Vec<Key> {
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
