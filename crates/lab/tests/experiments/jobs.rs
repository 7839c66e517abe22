//! Workloads of messages: what they expand to, the times of their jobs against arithmetic, what is refused.

use crate::{integers, numbers, read};
use firstlight_lab::measure::{PathLink, completion_on};
use firstlight_lab::spec::{Flow, OverrideValue};
use firstlight_lab::{Files, Outcome, Spec, inspect, run};
use firstlight_linux::Plan;
use firstlight_net::Framing;
use firstlight_units::{Bytes, Rate, Span};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const HDFS: &str = include_str!("../specs/hdfs.toml");

fn error(text: &str, set: &[(&str, &str)]) -> String {
    let overrides: Vec<_> = set.iter().map(|(k, v)| (k.to_string(), OverrideValue::Text(v.to_string()))).collect();
    Spec::read(text, "x.toml", &overrides).map(|_| ()).unwrap_err().to_string()
}

fn star(hosts: usize, workload: &str) -> String {
    format!(
        "duration = \"1s\"\n[fabric]\nkind = \"star\"\nhosts = {hosts}\n[hosts]\nrate = \"10Gbps\"\ndelay = \"1us\"\n\
         mtu = \"1500B\"\n[[workload]]\n{workload}\n"
    )
}

fn result(spec: &Spec) -> Outcome {
    run(spec, &[], &Files::default(), &mut |_| ControlFlow::Continue(())).unwrap_or_else(|error| panic!("{error}"))
}

/// Connections of a block, hop after hop: those that are not between a writer and the name node.
fn blocks(spec: &Spec, hops: usize) -> Vec<Vec<&Flow>> {
    let data: Vec<&Flow> = spec.flows.iter().filter(|flow| flow.size.unwrap().get() > 10_000).collect();
    data.chunks(hops).map(<[&Flow]>::to_vec).collect()
}

#[test]
fn a_file_is_written_block_after_block_along_its_replicas() {
    let spec = read(HDFS, &[]);
    // 1 MB are 400, 400 and 200 kB in chunks of 64 KiB: 7 + 7 + 4, each over two hops, and a call for each block.
    let workload = &spec.workloads[0];
    // Files 0 and 6 are of host 0, the name node; the other five writers have two connections to it.
    assert_eq!((workload.flows, workload.jobs), (8 * 3 * 2 + 5 * 2, 8));
    assert_eq!(workload.messages, 8 * 18 * 2 + 6 * 3 * 2);
    let writers: Vec<u16> = blocks(&spec, 2).iter().step_by(3).map(|block| block[0].src.0).collect();
    assert_eq!(writers, [0, 2, 4, 1, 3, 5, 0, 2], "over racks, then hosts");
    for block in blocks(&spec, 2) {
        let [first, second] = block.as_slice() else { panic!("two hops") };
        assert!(first.src.0 / 2 != first.dst.0 / 2, "the second replica is in another rack");
        assert_eq!((second.src, second.src.0 / 2), (first.dst, second.dst.0 / 2), "the third in the same");
        assert_eq!(first.size, second.size);
    }
    // Chunks do not wait for each other, each is forwarded when it is there, and the second block waits for the first.
    let after: Vec<&[u32]> = [0, 1, 2, 3, 12, 13, 14, 15, 16].map(|index| spec.messages.after(index)).to_vec();
    assert_eq!(after, [&[][..], &[0], &[], &[2], &[], &[12], &[13], &[14], &[13]]);
    let seen = inspect(&spec);
    assert_eq!((&seen["workloads"][0]["jobs"], &seen["workloads"][0]["messages"]), (&8.into(), &324.into()));
    assert!(seen["flows"][0]["start_us"].is_null() && seen["flows"][0]["messages"] == 7);
    assert_eq!(seen["spec"]["workload"][0]["replication"], 3);
    assert!(seen["spec"]["workload"][0].get("shift").is_none());
}

#[test]
fn jobs_are_measured() {
    let spec = read(HDFS, &[("measure.fct_groups", "[]")]);
    let outcome = result(&spec);
    let (starts, times) = (numbers(&outcome, "jobs", "start_us"), numbers(&outcome, "jobs", "duration_us"));
    assert_eq!(integers(&outcome, "jobs", "job"), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(integers(&outcome, "jobs", "size_bytes"), [1_000_000; 8]);
    let sent = |calls: i64| 2_000_000 + 3 * calls * 768;
    assert_eq!(integers(&outcome, "jobs", "sent_bytes"), [0, 1, 1, 1, 1, 1, 0, 1].map(sent));
    // A host's second file comes after its first; all first ones start at once.
    assert_eq!(starts[..6], [0.0; 6]);
    assert!((starts[6] - times[0]).abs() < 1e-6 && (starts[7] - times[1]).abs() < 1e-6);
    // No file is faster than its bytes over the writer's link.
    assert!(times.iter().all(|time| *time > 800.0));
    let metric = |name| outcome.metric(name).unwrap();
    let last = starts.iter().zip(times).map(|(start, time)| start + time).fold(0.0, f64::max);
    assert!((metric("jobs_gbps") / (8e6 * 8e-3 / last) - 1.0).abs() < 1e-9);
    assert!((metric("job_mean_us") - times.iter().sum::<f64>() / 8.0).abs() < 1e-6);
    assert_eq!((metric("jobs_complete"), metric("job_max_us")), (8.0, times.iter().copied().fold(0.0, f64::max)));
    assert_eq!(outcome.manifest["finished"], true);
    assert!(outcome.table("fct").is_none(), "a connection that waits has no completion time of its own");
    assert!(numbers(&outcome, "flows", "slowdown").iter().all(|value| value.is_nan()));
    assert_eq!(outcome.manifest["digest"], result(&spec).manifest["digest"]);
    let cut = result(&read(HDFS, &[("duration", "1ms")]));
    assert!(numbers(&cut, "jobs", "start_us")[6].is_nan() && numbers(&cut, "jobs", "throughput_gbps")[0].is_nan());
    assert_eq!(cut.manifest["finished"], false);
    assert!(cut.manifest["warnings"].to_string().contains("8 of 8 jobs were not complete"), "{}", cut.manifest);
}

/// A block's job runs from the writer's question to the block's last replica; the next one begins where it ends.
#[test]
fn a_job_may_be_a_block() {
    let set = |job| read(HDFS, &[("measure.fct_groups", "[]"), ("workload.0.job", job)]);
    let (files, blocks) = (result(&set("file")), result(&set("block")));
    assert_eq!(files.manifest["digest"], blocks.manifest["digest"], "what is sent is the same");
    let of = |name| numbers(&blocks, "jobs", name);
    let (starts, times, wholes) = (of("start_us"), of("duration_us"), numbers(&files, "jobs", "duration_us"));
    assert_eq!(integers(&blocks, "jobs", "size_bytes"), [400_000, 400_000, 200_000].repeat(8));
    for (file, whole) in wholes.iter().enumerate() {
        let its = 3 * file..3 * file + 3;
        assert!((times[its.clone()].iter().sum::<f64>() - whole).abs() < 1e-6, "blocks of file {file}");
        assert!(its.clone().skip(1).all(|block| (starts[block] - starts[block - 1] - times[block - 1]).abs() < 1e-6));
    }
    assert!((blocks.metric("jobs_gbps").unwrap() - files.metric("jobs_gbps").unwrap()).abs() < 1e-9);
}

/// Writers start up to the jitter later, each at a time of its own; their second files follow the first.
#[test]
fn writers_may_start_at_random_times() {
    let outcome = result(&read(HDFS, &[("workload.0.jitter", "20ms"), ("workload.0.start", "5ms")]));
    let (starts, times) = (numbers(&outcome, "jobs", "start_us"), numbers(&outcome, "jobs", "duration_us"));
    let mut first = starts[..6].to_vec();
    assert!(first.iter().all(|start| (5_000.0..25_000.0).contains(start)), "{first:?}");
    first.sort_by(f64::total_cmp);
    assert!(first.windows(2).all(|pair| pair[0] < pair[1]) && first[5] - first[0] > 5_000.0, "{first:?}");
    assert!((starts[6] - starts[0] - times[0]).abs() < 1e-6 && (starts[7] - starts[1] - times[1]).abs() < 1e-6);
}

/// Links of 10 Gb/s and 1 us.
fn path(links: usize) -> Vec<PathLink> {
    vec![PathLink { rate: Rate::from_gbps(10), delay: Span::from_us(1), framing: Framing::Ip }; links]
}

/// One block of one chunk: a call to the name node in the rack, four links to the second replica, two to the third.
/// What follows an arrival waits for its ACK of 52 B at the host's link.
#[test]
fn the_time_of_a_block_by_hand() {
    let set = [("workload.0.files", "1"), ("workload.0.name_node", "host1"), ("workload.0.chunk", "14480B")];
    let spec = read(HDFS, &[&set[..], &[("workload.0.block", "14480B"), ("workload.0.file_size", "14480B")]].concat());
    let least = |links, bytes| completion_on(&path(links), &path(links), &spec.tables.tcp.tcp, Bytes::new(bytes));
    let acks = Span::from_ps(41_600) * 3;
    let expected = least(2, 256) + least(2, 512) + least(4, 14_480) + least(2, 14_480) + acks;
    let took = numbers(&result(&spec), "jobs", "duration_us")[0];
    assert!((took - expected.as_us_f64()).abs() < 1e-6, "{took} and {expected}");
}

/// Chi squared over the racks and over the hosts there of 3000 blocks: 13.8 with 2, 16.3 with 3 degrees of freedom are
/// exceeded once in a thousand.
#[test]
fn random_replicas_are_spread_evenly() {
    let set = [("fabric.racks", "4"), ("fabric.hosts_per_rack", "4"), ("workload.0.file_size", "1200000kB")];
    let spec = read(HDFS, &[&set[..], &[("workload.0.files", "1"), ("workload.0.chunk", "400kB")]].concat());
    let (mut racks, mut places, mut thirds) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for block in blocks(&spec, 2) {
        *racks.entry(block[0].dst.0 / 4).or_insert(0u32) += 1;
        *places.entry(block[0].dst.0 % 4).or_insert(0u32) += 1;
        *thirds.entry((block[1].dst.0 + 4 - block[1].src.0 % 4) % 4).or_insert(0u32) += 1;
    }
    let chi = |counts: &BTreeMap<u16, u32>| {
        let mean = 3000.0 / counts.len() as f64;
        counts.values().map(|n| (f64::from(*n) - mean).powi(2) / mean).sum::<f64>()
    };
    assert!(racks.len() == 3 && chi(&racks) < 13.8, "{racks:?}");
    assert!(places.len() == 4 && chi(&places) < 16.3, "{places:?}");
    assert!(thirds.len() == 3 && !thirds.contains_key(&0) && chi(&thirds) < 13.8, "{thirds:?}");
}

#[test]
fn rehdfs_makes_the_rack_a_function_of_the_writers() {
    let further = |set: &[(&str, &str)]| -> Vec<u16> {
        let base = [("workload.0.placement", "rehdfs"), ("fabric.racks", "4"), ("workload.0.files", "5")];
        let spec = read(HDFS, &[&base[..], set].concat());
        blocks(&spec, 2).iter().map(|block| (block[0].dst.0 / 2 + 4 - block[0].src.0 / 2) % 4).collect()
    };
    assert_eq!(further(&[]), [1; 15]);
    assert_eq!(further(&[("workload.0.shift", "3")]), [3; 15]);
    let rotated = [2, 2, 3, 2, 2, 3, 2, 2, 3, 2, 2, 3, 2, 2, 3];
    assert_eq!(further(&[("workload.0.shift", "2"), ("workload.0.rotate", "2")]), rotated, "three blocks a file");
    let longer = [("workload.0.rotate", "1"), ("workload.0.files", "9")];
    assert_eq!(further(&longer)[24..], [1, 2, 3], "the ninth file is the second of its writer: blocks 3 to 5");
}

#[test]
fn a_reducer_fetches_from_so_many_at_once() {
    let fetch = |parallel: &str| {
        let set = [("workload.0.parallel", parallel)];
        read(&star(9, "kind = \"shuffle\"\nto = \"host0\"\nsize = \"10kB\""), &set)
    };
    let spec = fetch("1");
    assert_eq!((spec.flows.len(), spec.jobs.len(), spec.jobs[0].size), (8, 1, Bytes::new(80_000)));
    assert!(spec.flows.windows(2).any(|pair| pair[0].src > pair[1].src), "in random order");
    let one = completion_on(&path(2), &path(2), &spec.tables.tcp.tcp, Bytes::new(10_000));
    let took = numbers(&result(&spec), "jobs", "duration_us")[0];
    assert!((took - (one * 8).as_us_f64()).abs() < 1e-6, "one after another: {took}");
    let outcome = result(&fetch("3"));
    let times = (numbers(&outcome, "flows", "start_us"), numbers(&outcome, "flows", "fct_us"));
    let spans: Vec<(f64, f64)> = times.0.iter().zip(times.1).map(|(start, time)| (*start, start + time)).collect();
    let open = |at: &f64| spans.iter().filter(|(start, end)| start <= at && at < end).count();
    assert_eq!(times.0.iter().map(open).max(), Some(3));
    assert!(outcome.table("fct").is_some(), "a connection of one message is like any other");
}

#[test]
fn every_reducer_fetches_from_every_mapper() {
    let spec = read(&star(4, "kind = \"shuffle\"\nsize = \"10kB\""), &[]);
    let mut pairs: Vec<(u16, u16)> = spec.flows.iter().map(|flow| (flow.src.0, flow.dst.0)).collect();
    pairs.sort_unstable();
    let all = (0..4).flat_map(|src| (0..4).filter(move |dst| *dst != src).map(move |dst| (src, dst)));
    assert_eq!(pairs, all.collect::<Vec<_>>());
    assert_eq!(spec.jobs.iter().map(|job| job.size.get()).collect::<Vec<_>>(), [30_000; 4]);
    let outcome = result(&spec);
    assert_eq!(outcome.metric("jobs_complete"), Some(4.0));
}

/// Two workloads of messages and other flows share a run, each with its own.
#[test]
fn workloads_stand_beside_each_other() {
    let text = "kind = \"shuffle\"\nsize = \"10kB\"\nname = \"a\"\n[[workload]]\nkind = \"permutation\"\n\
                size = \"1kB\"\n[[workload]]\nkind = \"shuffle\"\nsize = \"20kB\"\nstart = \"5ms\"\n\
                [[flows]]\nfrom = \"host0\"\nto = \"host1\"\nsize = \"1kB\"";
    let outcome = result(&read(&star(4, text), &[]));
    assert_eq!(integers(&outcome, "jobs", "size_bytes"), [[30_000; 4], [60_000; 4]].concat());
    assert_eq!(integers(&outcome, "jobs", "job"), [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(numbers(&outcome, "jobs", "start_us"), [[0.0; 4], [5000.0; 4]].concat());
    let expected = integers(&outcome, "flows", "size_bytes");
    assert_eq!(integers(&outcome, "flows", "bytes_received"), expected);
}

#[test]
#[rustfmt::skip]
fn what_cannot_be_is_refused() {
    let wrong = |set: &[(&str, &str)]| error(HDFS, set);
    let one = |key: &str, value: &str| wrong(&[(&format!("workload.0.{key}"), value)]);
    assert_eq!(one("shift", "1"), "x.toml, from --set workload.0.shift: workload.0.shift: has no effect: random \
                                   placement has no shift; take it out, or use placement = \"rehdfs\"");
    assert_eq!(wrong(&[("workload.0.placement", "rehdfs"), ("workload.0.shift", "3")]),
        "x.toml, from --set workload.0.shift: workload.0.shift: the fabric has 3 racks: use at most 2");
    assert_eq!(error(&star(4, "kind = \"hdfs\""), &[]),
        "x.toml:10:8: workload.0.kind: replicas go to another rack: use a fabric with at least two racks");
    assert_eq!(wrong(&[("fabric.hosts_per_rack", "1"), ("workload.0.replication", "3")]),
        "x.toml, from --set workload.0.replication: workload.0.replication: the third replica goes to another host \
         of the second one's rack, which has one: use 2");
    assert_eq!(one("chunk", "500kB"), "x.toml, from --set workload.0.chunk: workload.0.chunk: a chunk of 500000 B is \
                                       larger than a block of 400000 B: use at most that");
    assert_eq!(one("jitter", "1s"), "x.toml, from --set workload.0.jitter: workload.0.jitter: the flow may start \
                                     after the run's end: start + jitter must be less than duration, 1s");
    assert_eq!(one("job", "blok"),
        "x.toml, from --set workload.0.job: workload.0.job: 'blok' is not one of file, block: did you mean \"block\"?");
    assert_eq!(one("name_node", "rack1"),
        "x.toml, from --set workload.0.name_node: workload.0.name_node: it is one host: write for example \"host0\"");
    assert_eq!(wrong(&[("workload.0.chunk", "1B"), ("workload.0.file_size", "4MB")]),
        "x.toml, from --set workload.0.chunk: workload.0.chunk: 64000000 messages are too many: at most 10000000; use \
         less work or larger pieces");
    assert_eq!(wrong(&[("workload.0.block", "9B"), ("workload.0.chunk", "9B")]),
        "x.toml, from --set workload.0.block: workload.0.block: 1777792 connections are too many: at most 1000000; use \
         less work or larger pieces");
}

/// The plan of Linux hosts has their messages alone, which count flows and messages of their own.
/// HDFS without an account, which Linux hosts cannot have.
fn on_linux() -> String {
    HDFS.replace("account = true", "")
}

#[test]
fn a_plan_has_the_messages_of_linux_hosts() {
    let shuffle = |more: &str| format!("kind = \"shuffle\"\nto = \"host0\"\nsize = \"10kB\"\nparallel = 1\n{more}");
    let tables = [shuffle(""), shuffle("hosts = \"linux\"\nstart = \"3us\"")].join("[[workload]]\n");
    let spec = read(&star(3, &tables), &[("time_scale", "2")]);
    let plan = firstlight_lab::plan(&spec).unwrap();
    assert_eq!((spec.messages.list().len(), plan.messages.len(), plan.flows.len()), (4, 2, 2));
    assert_eq!(plan.flows.iter().map(|flow| (flow.flow, flow.start)).collect::<Vec<_>>(), [(2, None), (3, None)]);
    let reported =
        |index: usize| (plan.messages[index].flow, plan.messages[index].bytes, plan.messages[index].start_ps);
    assert_eq!((reported(0), reported(1)), ((Some(0), 10_000, 6_000_000), (Some(1), 10_000, 0)));
    assert_eq!((&plan.messages[0].after[..], &plan.messages[1].after[..]), (&[][..], &[0][..]));
    assert!(!plan.ends_early, "nobody there sees the simulated ones complete");
    let all = firstlight_lab::plan(&read(&on_linux(), &[("hosts.kind", "linux")])).unwrap();
    assert!(all.ends_early);
    assert!(all.messages.iter().any(|message| !message.after.is_empty()));
}

/// A hundred thousand messages go through the plan as text and come back the same.
#[test]
fn a_large_graph_goes_through_the_plan() {
    let set = [("hosts.kind", "linux"), ("workload.0.chunk", "1kB"), ("workload.0.file_size", "7MB")];
    let plan = firstlight_lab::plan(&read(&on_linux(), &set)).unwrap();
    assert!(plan.messages.len() > 100_000, "{}", plan.messages.len());
    let text = serde_json::to_string(&plan).unwrap();
    assert!(text.len() < 100 * plan.messages.len(), "{}", text.len());
    assert!(serde_json::from_str::<Plan>(&text).unwrap() == plan);
}
