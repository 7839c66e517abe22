//! Users' files: connections with triggers, schedules and traces, and the critical paths of their jobs.

use crate::{integers, numbers, read, reported_at, result};
use firstlight_lab::measure::{PathLink, completion_on};
use firstlight_lab::{Column, Outcome, Spec};
use firstlight_net::Framing;
use firstlight_units::{Bytes, Rate, Span};
use std::path::Path;

/// Hosts on a star, with links of 10 Gb/s and 1 us.
fn star(hosts: usize, more: &str) -> String {
    on(&format!("kind = \"star\"\nhosts = {hosts}"), more)
}

fn on(fabric: &str, more: &str) -> String {
    format!(
        "duration = \"50ms\"\n[fabric]\n{fabric}\n[hosts]\nrate = \"10Gbps\"\ndelay = \"1us\"\nmtu = \"1500B\"\n\
         [tcp]\ntick = \"0s\"\n{more}\n"
    )
}

/// An experiment whose only workload reads a file of a folder.
fn with_file(folder: &Path, name: &str, content: impl AsRef<[u8]>, hosts: usize, more: &str) -> String {
    std::fs::write(folder.join(name), content).expect("a file in a folder");
    let file = folder.join(name);
    star(hosts, &format!("[[workload]]\nfile = {:?}\n{more}", file.to_str().expect("a path of text")))
}

/// The time of a lone flow of so many bytes on a star.
fn alone(spec: &Spec, bytes: u64) -> f64 {
    let path = [PathLink { rate: Rate::from_gbps(10), delay: Span::from_us(1), framing: Framing::Ip }; 2];
    completion_on(&path, &path, &spec.tables.tcp.tcp, Bytes::new(bytes)).as_us_f64()
}

fn starts_and_ends(outcome: &Outcome) -> (Vec<f64>, Vec<f64>) {
    let (starts, times) = (numbers(outcome, "flows", "start_us"), numbers(outcome, "flows", "fct_us"));
    (starts.to_vec(), starts.iter().zip(times).map(|(start, time)| start + time).collect())
}

fn is_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
}

/// The steps of a path follow each other from the job's start to its end.
fn path_is_whole(outcome: &Outcome) {
    let [from, start, compute, transfer] =
        ["from_us", "start_us", "compute_us", "transfer_us"].map(|column| numbers(outcome, "job_paths", column));
    let job = integers(outcome, "job_paths", "job");
    let (starts, times) = (numbers(outcome, "jobs", "start_us"), numbers(outcome, "jobs", "duration_us"));
    for (number, (begin, time)) in starts.iter().zip(times).enumerate() {
        let mut at = *begin;
        for step in (0..job.len()).filter(|step| job[*step] == number as i64) {
            is_near(from[step], at);
            at += start[step] + compute[step] + transfer[step];
        }
        is_near(at, begin + time);
    }
}

#[test]
fn connections_start_when_their_trigger_fires() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |connections: usize, lines: &str| {
        let text = format!("Nodes 5\nConnections {connections}\nTriggers 1\n{lines}\n");
        result(&with_file(folder.path(), "x.cm", text, 5, "kind = \"file\""), &[])
    };
    let outcome = run(
        3,
        "0->1 start 1000000 size 14480 recv_done_trigger 1\n1->2 trigger 1 size 14480\n\
                          3->4 trigger 1 size 99\ntrigger id 1 oneshot",
    );
    let (starts, ends) = starts_and_ends(&outcome);
    is_near(starts[0], 1.0);
    is_near(starts[1], ends[0]);
    is_near(starts[2], ends[0]);
    assert_eq!(integers(&outcome, "job_paths", "flow"), [0, 1]);
    is_near(numbers(&outcome, "jobs", "duration_us")[0], ends[1] - 1.0);
    path_is_whole(&outcome);
    // A barrier waits for the last one, a multishot starts one connection for each.
    let fires = "0->1 start 0 size 14480 send_done_trigger 1\n2->3 start 50000000 size 1448 recv_done_trigger 1";
    let outcome = run(3, &format!("{fires}\n4->1 trigger 1 size 9\ntrigger id 1 barrier count 2"));
    let (starts, ends) = starts_and_ends(&outcome);
    is_near(starts[2], ends[1]);
    let outcome = run(4, &format!("{fires}\n4->1 trigger 1 size 9\n4->3 trigger 1 size 9\ntrigger id 1 multishot"));
    let (starts, ends) = starts_and_ends(&outcome);
    assert!(ends[0] < ends[1]);
    is_near(starts[2], ends[0]);
    is_near(starts[3], ends[1]);
    path_is_whole(&outcome);
    let stuck = "Nodes 3\nConnections 2\nTriggers 2\n0->1 trigger 1 size 5 send_done_trigger 2\n\
                 1->2 trigger 2 size 5 send_done_trigger 1\ntrigger id 1 oneshot\ntrigger id 2 oneshot\n";
    let reported = reported_at("x.toml", &with_file(folder.path(), "x.cm", stuck, 5, "kind = \"file\""));
    let right = "x.cm:4:6: workload.0.file: the connection waits for itself, by the triggers before it: take out one \
                 of these";
    assert!(reported.ends_with(right), "{reported}");
    let text = with_file(folder.path(), "x.cm", stuck, 5, "kind = \"file\"\nflows = 1");
    assert!(reported_at("x.toml", &text).contains("workload.0.flows: connections of the list wait for each other"));
}

#[test]
fn a_list_without_flows_is_an_experiment_without_flows() {
    let folder = tempfile::tempdir().expect("a folder");
    let outcome = result(&with_file(folder.path(), "none.txt", "0\n", 3, "kind = \"file\""), &[]);
    assert_eq!(integers(&outcome, "ports", "offered").iter().sum::<i64>(), 0);
}

/// Each round of an incast is a job, which ends with its last flow.
#[test]
fn rounds_of_flows_are_jobs() {
    let rounds = "period = \"1ms\"\nrounds = 2";
    let incast =
        format!("[[workload]]\nkind = \"incast\"\nto = \"host0\"\nsize = \"20kB\"\njitter = \"5us\"\n{rounds}");
    let outcome = result(&star(4, &incast), &[]);
    let (starts, ends) = starts_and_ends(&outcome);
    let span = |range: std::ops::Range<usize>| {
        let last = ends[range.clone()].iter().copied().fold(0.0, f64::max);
        (starts[range].iter().copied().fold(f64::MAX, f64::min), last)
    };
    for (job, (start, end)) in [span(0..3), span(3..6)].into_iter().enumerate() {
        is_near(numbers(&outcome, "jobs", "start_us")[job], start);
        is_near(numbers(&outcome, "jobs", "duration_us")[job], end - start);
        let flow = integers(&outcome, "job_paths", "flow")[job] as usize;
        is_near(ends[flow], end);
        assert!(numbers(&outcome, "jobs", "slowdown")[job] > 1.0);
    }
    assert_eq!(integers(&outcome, "jobs", "messages"), [3, 3]);
    assert_eq!(integers(&outcome, "jobs", "size_bytes"), [60_000, 60_000]);
    path_is_whole(&outcome);
    // A lone flow is not slowed down, and its job neither. A workload of messages behind it counts on.
    let alone = incast.replace("jitter = \"5us\"\n", "senders = 1\n");
    let goal = "\n[[workload]]\nkind = \"goal\"\nfile = \"tests/specs/pair.goal\"\nstart = \"5ms\"";
    let outcome = result(&star(4, &format!("{alone}{goal}")), &[]);
    let slowdowns = numbers(&outcome, "jobs", "slowdown");
    is_near(slowdowns[0], 1.0);
    assert_eq!((slowdowns.len(), integers(&outcome, "jobs", "job")), (3, &[0, 1, 0][..]));
    path_is_whole_of_each(&outcome);
    let ring = "[[workload]]\nkind = \"ring\"\nbig = \"9kB\"\nsmall = \"1kB\"";
    let spec = read(&star(4, &format!("{ring}\n{incast}")), &[]);
    let of: Vec<_> = spec.jobs.iter().map(|job| (job.flows.clone(), job.size.get())).collect();
    assert_eq!(of, [(0..12, 4 * 11_000), (12..15, 60_000), (15..18, 60_000)]);
    let endless = "[[workload]]\nkind = \"incast\"\nto = \"host0\"";
    assert_eq!(read(&star(4, endless), &[]).jobs, []);
}

/// The last step of each path ends with its job, where jobs of two workloads have the same numbers.
fn path_is_whole_of_each(outcome: &Outcome) {
    let ends: Vec<f64> = numbers(outcome, "jobs", "start_us")
        .iter()
        .zip(numbers(outcome, "jobs", "duration_us"))
        .map(|(start, time)| start + time)
        .collect();
    let columns = ["from_us", "start_us", "compute_us", "transfer_us"].map(|name| numbers(outcome, "job_paths", name));
    let found: Vec<f64> = (0..columns[0].len()).map(|step| columns.iter().map(|column| column[step]).sum()).collect();
    assert!(ends.iter().all(|end| found.iter().any(|step| (step - end).abs() < 1e-6)), "{found:?} {ends:?}");
}

/// Rank 1 computes for 100 us before its message, so that rank 2's is the first, and rank 0 goes on with that.
#[test]
fn receives_from_any_rank_take_what_comes_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "num_ranks 4\nrank 0 {\na: recv 14480b from any tag 1\nb: send 99b to 3\nc: recv 14480b from any tag 1\n\
                d: send 99b to 3 tag 2\nb requires a\nd requires c\n}\n\
                rank 1 {\na: calc 100000\nb: send 14480b to 0 tag 1\nb requires a\n}\n\
                rank 2 {\nsend 14480b to 0 tag 1\n}\nrank 3 {\nrecv 99b from 0\nrecv 99b from 0 tag 2\n}\n";
    let outcome = result(&with_file(folder.path(), "any.goal", text, 4, "kind = \"goal\""), &[]);
    let (starts, ends) = starts_and_ends(&outcome);
    let src = integers(&outcome, "flows", "src");
    let of = |host: i64| src.iter().position(|src| *src == host).expect("it sends");
    is_near(starts[of(0)], ends[of(2)]);
    let job = numbers(&outcome, "jobs", "duration_us")[0];
    assert!(job > ends[of(1)], "{job}: rank 0 waits for the second message as well");
    path_is_whole(&outcome);
    // A worker gets new work for each result: its second message depends on the receive of the first one.
    let work = "num_ranks 2\nrank 0 {\na: recv 9b from any\nb: send 9b to 1\nc: recv 9b from any\nb requires a\n}\n\
                rank 1 {\na: send 9b to 0\nb: recv 9b from 0\nc: send 9b to 0\nc requires b\n}\n";
    let outcome = result(&with_file(folder.path(), "work.goal", work, 2, "kind = \"goal\""), &[]);
    assert!(numbers(&outcome, "jobs", "duration_us")[0] > 0.0);
    assert!(numbers(&outcome, "jobs", "slowdown")[0].is_nan(), "which message is the first is not known");
    assert_eq!(integers(&outcome, "job_paths", "bytes"), [9, 9, 9]);
    path_is_whole(&outcome);
}

/// A schedule in its binary form, which another program wrote, gives the same run.
#[test]
fn both_forms_of_a_schedule_are_the_same_run() {
    let text = star(2, "[[workload]]\nkind = \"goal\"\nfile = \"tests/specs/pair.goal\"");
    let [one, two] = [text.clone(), text.replace("pair.goal", "pair.bin")].map(|text| result(&text, &[]));
    assert_eq!(one.manifest["digest"], two.manifest["digest"]);
    assert_eq!(numbers(&one, "jobs", "duration_us"), numbers(&two, "jobs", "duration_us"));
}

#[test]
fn ranks_are_placed_as_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ranks.txt");
    std::fs::write(&file, "rack1.host0 # rank 0\nhost0\n").expect("a file in a folder");
    let racks = "kind = \"leaf_spine\"\nracks = 2\nhosts_per_rack = 3\nspines = 1";
    let text =
        on(racks, "[links]\nrate = \"10Gbps\"\n[[workload]]\nkind = \"goal\"\napplication = \"halo\"\nranks = 4");
    let pair = on(racks, "[links]\nrate = \"10Gbps\"\n[[workload]]\nkind = \"goal\"\nfile = \"tests/specs/pair.goal\"");
    let ends = |text: &str, placement: &str| {
        let spec = read(text, &[("workload.0.placement", placement)]);
        spec.flows.iter().map(|flow| (flow.src.0, flow.dst.0)).collect::<Vec<_>>()
    };
    assert_eq!(ends(&pair, "packed"), [(0, 1), (1, 0)]);
    assert_eq!(ends(&pair, "spread"), [(0, 3), (3, 0)]);
    assert_eq!(ends(&pair, file.to_str().expect("a path of text")), [(3, 0), (0, 3)]);
    let hosts =
        |placement: &str| ends(&text, placement).iter().map(|(src, _)| *src).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(hosts("spread"), [0, 1, 3, 4].into());
    let shuffled: Vec<_> = (0..20)
        .map(|seed| read(&pair, &[("workload.0.placement", "shuffled"), ("seed", &seed.to_string())]).flows[0].src.0)
        .collect();
    assert!((0..6).all(|host| shuffled.contains(&host)), "{shuffled:?}");
    let reported = |placement: &str| reported_at("x.toml", &format!("{pair}placement = {placement:?}\n"));
    assert!(reported("near").contains("workload.0.placement: cannot read near: "), "{}", reported("near"));
    assert!(reported("near").ends_with("; write packed, spread, shuffled or a file"));
    std::fs::write(&file, "host0\nrack0\n").expect("a file in a folder");
    let reported = reported(file.to_str().expect("a path of text"));
    assert!(
        reported.ends_with("ranks.txt:2:1: workload.0.placement: rack0 is not one host: write for example host0"),
        "{reported}"
    );
}

/// Fields of protobuf, written by hand: a number, and bytes behind their length.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = vec![];
    while value > 127 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn block(field: u64, content: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// A node: its number, kind and duration in us, the nodes that it depends on, and its attributes as `int64`.
fn node(id: u64, kind: u64, micros: u64, after: &[u64], attributes: &[(&str, u64)]) -> Vec<u8> {
    let mut bytes = [number(1, id), block(2, b"a node"), number(3, kind), number(7, micros)].concat();
    bytes.extend(block(5, &after.iter().flat_map(|id| varint(*id)).collect::<Vec<u8>>()));
    for (name, value) in attributes {
        bytes.extend(block(10, &[block(1, name.as_bytes()), number(9, *value)].concat()));
    }
    [varint(bytes.len() as u64), bytes].concat()
}

fn trace(nodes: &[Vec<u8>]) -> Vec<u8> {
    let metadata = block(1, b"0.0.4");
    [varint(metadata.len() as u64), metadata, nodes.concat()].concat()
}

fn chakra(folder: &Path, traces: &[Vec<u8>], more: &str) -> String {
    for rank in 0..4 {
        _ = std::fs::remove_file(folder.join(format!("t.{rank}.et")));
    }
    for (rank, bytes) in traces.iter().enumerate() {
        std::fs::write(folder.join(format!("t.{rank}.et")), bytes).expect("a file in a folder");
    }
    let name = folder.join("t");
    let name = name.to_str().expect("a path of text");
    star(traces.len(), &format!("[[workload]]\nkind = \"chakra\"\ntraces = {name:?}\n{more}"))
}

const COMPUTE: u64 = 4;
const SEND: u64 = 5;
const RECEIVE: u64 = 6;
const COLLECTIVE: u64 = 7;

/// Ten microseconds, a message, five microseconds; beside them a computation that depends on nothing.
#[test]
fn a_trace_is_replayed_in_the_time_computed_by_hand() {
    let folder = tempfile::tempdir().expect("a folder");
    let there = [("comm_src", 0), ("comm_dst", 1), ("comm_tag", 3), ("comm_size", 14_480)];
    let first = trace(&[node(1, COMPUTE, 10, &[], &[]), node(2, SEND, 0, &[1], &there)]);
    let second =
        trace(&[node(7, COMPUTE, 5, &[8], &[]), node(8, RECEIVE, 0, &[], &there), node(9, COMPUTE, 2, &[], &[])]);
    let text = chakra(folder.path(), &[first.clone(), second], "");
    let outcome = result(&text, &[]);
    let network = alone(&read(&text, &[]), 14_480);
    is_near(numbers(&outcome, "jobs", "duration_us")[0], 10.0 + network + 5.0);
    assert_eq!(numbers(&outcome, "job_paths", "compute_us"), [10.0, 0.0, 5.0]);
    assert_eq!(integers(&outcome, "job_paths", "flow"), [-1, 0, -1]);
    path_is_whole(&outcome);
    let reported = |second: &[Vec<u8>]| {
        let reported = reported_at("x.toml", &chakra(folder.path(), &[first.clone(), trace(second)], ""));
        reported.split_once("/t.").expect("the name of a trace").1.to_string()
    };
    assert_eq!(
        reported(&[]),
        "0.et:1:26: workload.0.traces: no operation receives it: write recv from 0 tag 3 in rank 1"
    );
    let short = [("comm_src", 0), ("comm_dst", 1), ("comm_tag", 3), ("comm_size", 9)];
    assert_eq!(
        reported(&[node(8, RECEIVE, 0, &[], &short)]),
        "1.et:1:9: workload.0.traces: 9 bytes do not hold the 14480 that rank 0 sends at 1:26: receive as many"
    );
    assert_eq!(
        reported(&[node(8, RECEIVE, 0, &[6], &there)]),
        "1.et:1:9: workload.0.traces: node 8 waits for node 6, which is not there"
    );
    assert_eq!(
        reported(&[node(8, RECEIVE, 0, &[], &there[..3])]),
        "1.et:1:9: workload.0.traces: node 8 has no attribute comm_size, or none of 50 bits"
    );
    assert_eq!(
        reported(&[node(8, COMPUTE, 0, &[], &[("num_ops", 5)])]),
        "1.et:1:9: workload.0.traces: node 8 has num_ops and no duration_micros: give it one"
    );
    assert_eq!(
        reported(&[node(8, RECEIVE, 0, &[8], &there)]),
        "1.et:1:9: workload.0.traces: it waits for itself, by what it requires and receives: take out one of these"
    );
    std::fs::remove_file(folder.path().join("t.0.et")).expect("the first trace");
    assert!(reported_at("x.toml", &text).contains("t.0.et: No such file"), "{}", reported_at("x.toml", &text));
    let fewer = text.replace("traces =", "among = \"host0\"\ntraces =");
    let few = "there are 2 traces for 1 hosts: use a larger fabric, or more hosts in among";
    std::fs::write(folder.path().join("t.0.et"), &first).expect("the first trace");
    assert!(reported_at("x.toml", &fewer).ends_with(few), "{}", reported_at("x.toml", &fewer));
    assert!(
        reported(&[vec![3, 255, 255, 255]]).starts_with("1.et:1:9: workload.0.traces: this is no message of a Chakra")
    );
}

/// An all-reduce of four ranks: six rounds of a quarter each in a ring; two of all up and down a tree; halves and
/// quarters, there and back.
#[test]
fn collective_operations_become_messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let (size, quarter) = (4 * 14_480, 14_480);
    let all = |kind: u64| [("comm_type", kind), ("comm_size", size)];
    let ranks = |kind: u64| vec![trace(&[node(0, COLLECTIVE, 0, &[], &all(kind)), node(1, COMPUTE, 3, &[0], &[])]); 4];
    let text = chakra(folder.path(), &ranks(0), "");
    let run = |collectives: &str| {
        let outcome = result(&text, &[("workload.0.collectives", collectives)]);
        let flows = integers(&outcome, "flows", "src").len();
        path_is_whole(&outcome);
        (flows, integers(&outcome, "jobs", "sent_bytes")[0] as u64, numbers(&outcome, "jobs", "duration_us")[0])
    };
    let (flows, bytes, time) = run("ring");
    assert_eq!((flows, bytes), (4, 4 * 6 * quarter));
    // The first round opens the connections; a quarter is ten packets, which two links carry.
    let rounds = 6.0 * (11.0 * 1.2 + 2.0) + 3.0;
    assert!(time > rounds && time < rounds * 1.3, "{time} and {rounds}");
    let (flows, bytes, _) = run("tree");
    assert_eq!((flows, bytes), (6, 6 * size));
    let (flows, bytes, _) = run("halving_doubling");
    assert_eq!((flows, bytes), (8, 4 * 2 * (size / 2 + quarter)));
    let bytes = |kind: u64| {
        let outcome = result(&chakra(folder.path(), &ranks(kind), ""), &[]);
        let Some(Column::Integer(sent)) = outcome.table("jobs").and_then(|jobs| jobs.column("sent_bytes")) else {
            panic!("jobs have bytes")
        };
        sent[0] as u64
    };
    // All-gather brings each rank the whole of three others; all-to-all a quarter; a barrier has messages of a byte.
    assert_eq!([2, 6, 9].map(bytes), [12 * size, 12 * quarter, 8]);
    let differ = [ranks(0)[0].clone(), ranks(2)[0].clone()];
    let reported = reported_at("x.toml", &chakra(folder.path(), &differ, ""));
    assert!(
        reported.ends_with("t.1.et:1:9: workload.0.traces: rank 0 has another operation, size or root there"),
        "{reported}"
    );
    let missing = [ranks(0)[0].clone(), trace(&[])];
    let reported = reported_at("x.toml", &chakra(folder.path(), &missing, ""));
    assert!(
        reported.ends_with("t.0.et:1:9: workload.0.traces: rank 1 of the group has no such operation: it has 0"),
        "{reported}"
    );
}

/// As Chakra's converter writes PyTorch's traces: an operator in two parts around the call of its callee, which names
/// the second part as its caller and a node that was left out; the call starts an operation on the GPU.
#[test]
fn traces_of_pytorch_run_in_the_order_of_their_data_dependencies() {
    let folder = tempfile::tempdir().expect("a folder");
    let pytorch = |id, kind, micros, caller: u64, after: &[u64], processor: bool| {
        let attributes = [
            block(10, &[block(1, b"is_cpu_op"), number(27, processor.into())].concat()),
            block(10, &[block(1, b"op_schema"), block(29, b"c10d::allreduce_")].concat()),
        ];
        let node =
            node(id, kind, micros, after, if processor { &[] } else { &[("comm_type", 0), ("comm_size", 28_960)] });
        let fields = &node[node.iter().take_while(|byte| **byte > 127).count() + 1..];
        let bytes = [fields, &block(4, &varint(caller)), &attributes.concat()].concat();
        [varint(bytes.len() as u64), bytes].concat()
    };
    let rank = trace(&[
        pytorch(5, COMPUTE, 10, 3, &[], true),
        pytorch(6, COLLECTIVE, 7, 8, &[5], true),
        pytorch(7, COLLECTIVE, 900, 6, &[6], false),
        pytorch(8, COMPUTE, 4, 3, &[6], true),
        pytorch(9, COMPUTE, 5, 3, &[7, 8], true),
    ]);
    let outcome = result(&chakra(folder.path(), &[rank.clone(), rank], ""), &[]);
    path_is_whole(&outcome);
    assert_eq!(integers(&outcome, "jobs", "sent_bytes"), [2 * 28_960]);
    let duration = numbers(&outcome, "jobs", "duration_us")[0];
    assert!(duration > 10.0 + 7.0 + 2.0 * 14.0 + 5.0 && duration < 900.0, "{duration}");
}

#[test]
fn watched_queues_can_be_patterns() {
    let flow = "[[flows]]\nfrom = \"host0\"\nto = \"host1\"\nsize = \"9kB\"\n[measure]\nqueues = ";
    let watched = |fabric: &str, names: &str| read(&on(fabric, &format!("{flow}{names}")), &[]).watched;
    let racks = "kind = \"leaf_spine\"\nracks = 2\nhosts_per_rack = 2\nspines = 1";
    let all = ["host0.port", "host1.port", "leaf0->spine0", "host2.port", "host3.port", "leaf1->spine0"];
    assert_eq!(watched(racks, "[\"*\"]").len(), 8);
    assert!(all.iter().all(|name| watched(racks, "[\"*\"]").contains(&name.to_string())));
    assert_eq!(watched(racks, "[\"leaf?->*\", \"host1.port\", \"host*\"]").len(), 6, "each once");
    assert_eq!(watched(racks, "[\"leaf?->*\", \"host1.port\"]"), ["leaf0->spine0", "leaf1->spine0", "host1.port"]);
    let outcome = result(&star(3, &format!("{flow}[\"*\"]")), &[]);
    let (ports, queues) = (outcome.table("ports").unwrap(), outcome.table("queues").unwrap());
    let Some(Column::Text(names)) = queues.column("name") else { panic!("queues have names") };
    assert_eq!(names, &["host0.port", "host1.port", "host2.port"]);
    let Some(Column::Text(of_ports)) = ports.column("name") else { panic!("ports have names") };
    for (name, packets) in names.iter().zip(integers(&outcome, "queues", "packets")) {
        let port = of_ports.iter().position(|port| port == name).expect("a watched port is a port");
        assert_eq!(integers(&outcome, "ports", "offered")[port], *packets, "{name}");
    }
    let reported = |names: &str| reported_at("x.toml", &star(3, &format!("{flow}{names}")));
    let wrong = |text: &str| format!("x.toml:16:10: measure.queues: {text}");
    assert_eq!(reported("[\"*\", \"*\"]"), wrong("'*' is listed twice: name it once"));
    let none = "no port matches 'leaf*': ports are called host0.port and so on; '*' is any text";
    assert_eq!(reported("[\"leaf*\"]"), wrong(none));
}
