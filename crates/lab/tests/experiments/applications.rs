//! Workloads of applications: queries, paced writers, background, datagrams, schedules of message passing.

use crate::{integers, metric, numbers, read, reported_at, result};
use firstlight_lab::measure::{PathLink, completion_on};
use firstlight_lab::{Spec, inspect};
use firstlight_net::Framing;
use firstlight_units::{Bytes, Rate, Span};
use std::collections::BTreeSet;

const STAR: &str = "kind = \"star\"\nhosts = 9";

/// Racks of so many hosts behind one spine; all links have 10 Gb/s and 1 us.
fn racks(racks: usize, hosts: usize) -> String {
    format!("kind = \"leaf_spine\"\nracks = {racks}\nhosts_per_rack = {hosts}\nspines = 1")
}

fn on(fabric: &str, workload: &str) -> String {
    let links = if fabric.contains("star") { "" } else { "[links]\nrate = \"10Gbps\"\n" };
    format!(
        "duration = \"20ms\"\n[fabric]\n{fabric}\n[hosts]\nrate = \"10Gbps\"\ndelay = \"1us\"\nmtu = \"1500B\"\n\
         {links}[tcp]\n\
         tick = \"0s\"\n[[workload]]\n{workload}\n"
    )
}

fn path(links: usize) -> Vec<PathLink> {
    vec![PathLink { rate: Rate::from_gbps(10), delay: Span::from_us(1), framing: Framing::Ip }; links]
}

/// The time of a lone flow over this number of links, handshake included.
fn alone(spec: &Spec, links: usize, bytes: u64) -> f64 {
    completion_on(&path(links), &path(links), &spec.tables.tcp.tcp, Bytes::new(bytes)).as_us_f64()
}

/// The time that packets take over links whose first one they leave back to back.
fn way(links: usize, packets: &[u64]) -> f64 {
    let last = packets.last().expect("there are some");
    let sum: u64 = packets.iter().sum();
    (sum + last * (links as u64 - 1)) as f64 * 0.8e-3 + links as f64
}

#[test]
fn a_query_asks_every_other_host_of_a_random_rack() {
    let query = "kind = \"partition_aggregate\"\nqueries = 8\nconnections = \"new\"";
    let spec = read(&on(&racks(3, 3), query), &[]);
    // Two messages between the aggregators, and two for each of two workers.
    assert_eq!((spec.jobs.len(), spec.flows.len(), spec.workloads[0].messages), (24, 24 * 6, 24 * 6));
    let mut aggregators = BTreeSet::new();
    for (nth, query) in spec.flows.chunks(6).enumerate() {
        let pairs: Vec<(u16, u16)> = query.iter().map(|flow| (flow.src.0, flow.dst.0)).collect();
        let (asker, aggregator) = pairs[0];
        let others: Vec<u16> = (3..9).filter(|host| host / 3 == aggregator / 3 && *host != aggregator).collect();
        let [one, two] = others[..] else { panic!("{aggregator} is in rack 0") };
        assert_eq!(usize::from(asker), nth / 8);
        let there = [(aggregator, one), (one, aggregator), (aggregator, two), (two, aggregator)];
        assert_eq!(pairs[1..], [&there[..], &[(aggregator, asker)]].concat());
        let sizes: Vec<u64> = query.iter().map(|flow| flow.size.unwrap().get()).collect();
        assert_eq!(sizes, [2000, 2000, 20_000, 2000, 20_000, 20_000]);
        aggregators.insert(aggregator);
    }
    assert_eq!(aggregators, (3..9).collect(), "each is chosen at times");
    let open = read(&on(&racks(3, 3), query), &[("workload.0.connections", "persistent")]);
    let pairs: BTreeSet<_> = open.flows.iter().map(|flow| (flow.src, flow.dst)).collect();
    assert_eq!((pairs.len(), open.flows.len(), open.workloads[0].messages), (open.flows.len(), pairs.len(), 24 * 6));
    assert_eq!(inspect(&open)["workloads"][0]["jobs"], 24);
}

/// Eight clients read four values from a server: all at once, or one after the other.
#[test]
fn a_bulk_read_asks_for_all_values_or_for_a_few_at_once() {
    let reads = "kind = \"key_value\"\nfrom = \"all\"\nto = \"host0\"\nreads = 2\nvalues = 4\nsize = \"20kB\"";
    let spec = read(&on(STAR, reads), &[]);
    // Host 0 reads nothing from itself; each of the others has a connection in each direction.
    assert_eq!((spec.jobs.len(), spec.flows.len(), spec.jobs[0].size.get()), (16, 16, 80_000));
    let sizes: Vec<u64> = spec.flows.iter().map(|flow| flow.size.unwrap().get()).collect();
    assert_eq!(sizes, [800, 160_000].repeat(8));
    // Of a read there are four requests and replies, and the point where these meet.
    assert_eq!(spec.messages.after(8).len(), 4);
    assert!([0, 2, 4, 6].iter().all(|request| spec.messages.after(*request).is_empty()));
    assert!([9, 11, 13, 15].iter().all(|request| spec.messages.after(*request) == [8]), "the next read");
    let ahead = read(&on(STAR, reads), &[("workload.0.read_ahead", "1")]);
    assert_eq!([0, 2, 4, 6].map(|request| ahead.messages.after(request).to_vec()), [vec![], vec![1], vec![3], vec![5]]);

    // Each reply passes one link by itself, and only then the next is asked for.
    let time = |read_ahead: &str| {
        let keys = [("from", "host1"), ("reads", "1"), ("read_ahead", read_ahead)];
        let overrides = keys.map(|(key, value)| (format!("workload.0.{key}"), value));
        let overrides: Vec<(&str, &str)> = overrides.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        numbers(&result(&on(STAR, reads), &overrides), "jobs", "duration_us")[0]
    };
    let (together, apart) = (time("4"), time("1"));
    assert!(together > 4.0 * 16.0 && apart > together + 3.0 * 4.0, "{together} and {apart} us");
}

/// A request of 1000 B of which 100 B are written first: with Nagle's algorithm the rest waits for their ACK, which a
/// server that answers delays.
#[test]
fn a_request_in_two_pieces_stalls_by_nagles_algorithm() {
    let reads = "kind = \"key_value\"\nfrom = \"host1\"\nto = \"host0\"\nreads = 3\nvalues = 1\nsize = \"100B\"\n\
                 request = \"1000B\"\nheader = \"100B\"\ninterval = \"100ms\"";
    let experiment = on(STAR, reads);
    let spec = read(&experiment, &[("duration", "1s")]);
    let sizes: Vec<u64> = spec.messages.list().iter().map(|message| message.bytes.get()).collect();
    assert_eq!(sizes, [100, 900, 100, 0].repeat(3));
    assert_eq!(
        (spec.messages.after(2), spec.messages.after(4), spec.messages.after(5)),
        (&[0, 1][..], &[3][..], &[3][..])
    );
    let starts: Vec<u64> = [0, 4, 5, 8].map(|index| spec.messages.list()[index].start.as_ps() / 1_000_000_000).into();
    assert_eq!(starts, [0, 100, 100, 200]);

    let times = |keys: &[(&str, &str)]| {
        let all = [&[("duration", "4s"), ("workload.0.reads", "30"), ("tcp.delayed_ack", "40ms")], keys].concat();
        let outcome = result(&experiment, &all);
        assert_eq!(numbers(&outcome, "jobs", "start_us")[29], 2_900_000.0);
        numbers(&outcome, "jobs", "duration_us").to_vec()
    };
    let nagle = ("tcp.nagle", "true");
    let answering = ("tcp.interactive", "true");
    let stalled = times(&[nagle, answering]);
    assert!(stalled[20..].iter().all(|time| (36_000.0..45_000.0).contains(time)), "{stalled:?}");
    assert_eq!(
        times(&[("workload.0.nagle", "true"), ("workload.0.interactive", "true")]),
        stalled,
        "the workload's own"
    );
    let pushed = times(&[answering]);
    assert!(pushed.iter().all(|time| *time < 100.0), "{pushed:?}");
    let two_round_trips = times(&[nagle]);
    assert!(two_round_trips.iter().all(|time| *time < 200.0), "{two_round_trips:?}");
    let shorter = times(&[nagle, answering, ("tcp.delayed_ack", "1ms"), ("tcp.tick", "1ms")]);
    assert!(shorter[20..].iter().all(|time| (500.0..3_000.0).contains(time)), "{shorter:?}");
}

/// Five links of time: the request over four links, that to the worker over two, and their replies; what follows an
/// arrival waits for its ACK of 52 B at the host's link, unless it is computed first.
#[test]
fn the_time_of_a_query_by_hand() {
    let text =
        "kind = \"partition_aggregate\"\nqueries = 2\nconnections = \"new\"\nreply = \"10kB\"\nrequest = \"1kB\"";
    let spec = read(&on(&racks(2, 2), text), &[]);
    let ack = 0.0416;
    let of =
        |spec: &Spec| alone(spec, 4, 1000) + alone(spec, 2, 1000) + alone(spec, 2, 10_000) + alone(spec, 4, 10_000);
    let outcome = result(&on(&racks(2, 2), text), &[("fabric.hosts_per_rack", "2"), ("workload.0.queries", "1")]);
    let times = numbers(&outcome, "jobs", "duration_us");
    let expected = of(&spec) + 3.0 * ack;
    // Both aggregators ask at once, and their packets may share a queue: the faster query shares none, or shares its
    // whole path.
    assert!(times.iter().all(|time| *time >= expected - 1e-6), "{times:?} and {expected}");
    let computed = result(&on(&racks(2, 2), text), &[("workload.0.queries", "1"), ("workload.0.compute", "1ms")]);
    for (with, without) in numbers(&computed, "jobs", "duration_us").iter().zip(times) {
        assert!((with - without - 1000.0).abs() < 10.0, "{with} and {without}");
    }
    assert_eq!(integers(&outcome, "jobs", "size_bytes"), [20_000, 20_000], "a worker's reply and the aggregator's");
    // Back to back: the second one starts where the first has ended.
    let both = result(&on(&racks(2, 2), text), &[]);
    let (starts, times) = (numbers(&both, "jobs", "start_us"), numbers(&both, "jobs", "duration_us"));
    assert_eq!((starts[0], starts[2]), (0.0, 0.0));
    assert!((starts[1] - times[0]).abs() < 1e-6 && (starts[3] - times[2]).abs() < 1e-6);
    assert!(numbers(&both, "jobs", "slowdown").iter().all(|slowdown| (1.0..10.0).contains(slowdown)));
}

/// 16 aggregators with a query each 100 us for 20 ms: 3200, with a standard deviation of 57.
#[test]
fn queries_come_at_random() {
    let text = on(&racks(5, 16), "kind = \"partition_aggregate\"\ninterval = \"100us\"\nstart = \"1ms\"");
    let spec = read(&text, &[("duration", "21ms")]);
    assert!((3000..3400).contains(&spec.jobs.len()), "{}", spec.jobs.len());
    let starts: Vec<Span> = spec.messages.list().iter().map(|m| m.start).filter(|start| !start.is_zero()).collect();
    assert_eq!(starts.len(), spec.jobs.len());
    assert!(starts.iter().all(|start| *start >= Span::from_ms(1) && *start < Span::from_ms(21)));
    assert_eq!(starts.iter().collect::<BTreeSet<_>>().len(), starts.len(), "no two at once");
    let few = read(&text, &[("workload.0.queries", "3")]);
    assert_eq!(few.jobs.len(), 48);
}

/// Eight writers to one link: below its rate a step ends with its last write; at twice the rate for 1 ms it takes 2.
#[test]
fn paced_writers_overload_a_link_for_a_while() {
    let steps = "kind = \"paced\"\nto = \"host8\"\nwrite = \"2500B\"\nsteps = [\"0s 1Gbps\", \"5ms 2.5Gbps\", \"6ms \
                 off\", \"9ms 1Gbps\"]";
    let spec = read(&on(STAR, steps), &[]);
    // 2500 B at 1 Gb/s are 20 us, at 2.5 Gb/s 8 us.
    assert_eq!((spec.flows.len(), spec.jobs.len()), (8, 24));
    assert_eq!(spec.flows[0].messages, 250 + 125 + 550);
    let outcome = result(&on(STAR, steps), &[("tcp.send_buffer", "128KiB")]);
    let (starts, times) = (numbers(&outcome, "jobs", "start_us"), numbers(&outcome, "jobs", "duration_us"));
    assert_eq!(integers(&outcome, "jobs", "size_bytes")[..3], [625_000, 312_500, 1_375_000]);
    for writer in 0..8 {
        let at = writer * 3;
        assert_eq!(starts[at..at + 3], [0.0, 5000.0, 9000.0]);
        // Less than the step and 8 writes that come at once.
        assert!((4980.0..5030.0).contains(&times[at]), "{times:?}");
        assert!((1000.0..2400.0).contains(&times[at + 1]), "{times:?}");
        assert!((10_980.0..11_030.0).contains(&times[at + 2]), "{times:?}");
    }
    // All eight bursts of 312.5 kB take the link 2 ms at least.
    let last = times.iter().skip(1).step_by(3).copied().fold(0.0, f64::max);
    assert!((2000.0..2400.0).contains(&last), "{times:?}");
    let asked: i64 = integers(&outcome, "flows", "size_bytes").iter().sum();
    assert_eq!(integers(&outcome, "flows", "bytes_received").iter().sum::<i64>(), asked);
}

#[test]
fn background_is_one_flow_from_each_host_to_a_random_one() {
    let text = on(&racks(5, 16), "kind = \"background\"\nfrom = \"rack1\"\nsize = \"1MB\"\njitter = \"1ms\"");
    let spec = read(&text, &[]);
    let senders: Vec<u16> = spec.flows.iter().map(|flow| flow.src.0).collect();
    assert_eq!(senders, (16..32).collect::<Vec<_>>());
    assert!(spec.flows.iter().all(|flow| flow.src != flow.dst && flow.size == Some(Bytes::new(1_000_000))));
    let to: BTreeSet<u16> = spec.flows.iter().map(|flow| flow.dst.0).collect();
    assert!(to.len() > 8, "{to:?}");
    let near = read(&text, &[("workload.0.to", "rack1")]);
    assert!(near.flows.iter().all(|flow| flow.dst.0 / 16 == 1));
    let udp = text.replace("jitter = \"1ms\"", "rate = \"1Gbps\"");
    let datagrams = read(&udp, &[]);
    // 1 MB in packets of 1472 B.
    assert!(datagrams.flows.is_empty() && datagrams.probes.iter().all(|probe| probe.count == Some(680)));
    assert_eq!(
        datagrams.probes.iter().map(|probe| probe.dst).collect::<Vec<_>>(),
        spec.flows.iter().map(|flow| flow.dst).collect::<Vec<_>>()
    );
    let outcome = result(&udp, &[]);
    assert_eq!(integers(&outcome, "probes", "received"), [680; 16]);
}

/// 1 Gb/s of 1500 B: a packet each 12 us.
#[test]
fn datagrams_at_a_constant_rate_or_on_and_off() {
    let udp = on(STAR, "kind = \"udp\"\nfrom = \"host0\"\nto = \"host1\"\nrate = \"1Gbps\"\nname = \"noise\"");
    let sent = |set: &[(&str, &str)]| integers(&result(&udp, set), "probes", "sent").to_vec();
    // The last ones start at 19.992 ms and, held, at 4.992 ms.
    assert_eq!(sent(&[]), [1667]);
    assert_eq!(sent(&[("workload.0.start", "5ms"), ("workload.0.hold", "5ms")]), [417]);
    // 100 us on are 9 packets, and 20 ms have 67 such bursts.
    let pulses = [("workload.0.on", "100us"), ("workload.0.off", "200us")];
    assert_eq!(sent(&pulses), [67 * 9]);
    let spec = read(&udp, &pulses);
    assert_eq!((spec.probes[0].count, spec.probes[0].more[0]), (Some(9), (Span::from_us(300), 9)));
    let outcome = result(&udp, &[("measure.probes", "true"), ("workload.0.on", "100us"), ("workload.0.off", "200us")]);
    let at = numbers(&outcome, "probe_packets", "sent_us");
    assert_eq!((at[8], at[9], at[10]), (96.0, 300.0, 312.0));
    // A third of the time on average; a burst has half a packet more than its time.
    let random = [&pulses[..], &[("workload.0.exponential", "true"), ("duration", "1s")]].concat();
    let expected = 1e6 / 300.0 * (100.0 / 12.0 + 0.5);
    let found = sent(&random)[0] as f64;
    assert!((found / expected - 1.0).abs() < 0.1, "{found} and {expected}");
}

/// Two sources of 8 Gb/s share a link of 10: it is full, and what is lost is what did not fit.
#[test]
fn datagrams_are_lost_where_a_link_is_full() {
    let text = on(STAR, "kind = \"udp\"\nto = \"host8\"\nrate = \"2Gbps\"\nhold = \"10ms\"");
    let outcome = result(&text, &[("switch.queue", "100")]);
    let sum = |column| integers(&outcome, "probes", column).iter().sum::<i64>();
    assert_eq!((sum("sent"), sum("lost")), (8 * 1667, sum("sent") - sum("received")));
    // 10 ms at 10 Gb/s are 8333 packets, and the queue has 100 more.
    assert!((8400..8440).contains(&sum("received")), "{}", sum("received"));
    assert_eq!(metric(&outcome, "dropped_packets") as i64, sum("lost"));
    let rates: f64 = numbers(&outcome, "probes", "throughput_gbps").iter().sum();
    // The queue's hundred come after.
    assert!((10.0..10.2).contains(&rates), "{rates}");
}

/// By hand on a star: 2 us of computation, a handshake and ten segments, 3 us of computation, a handshake and one
/// segment; the computation of 100 us starts with rank 1.
#[test]
fn a_schedule_is_replayed() {
    let text = on(STAR, "kind = \"goal\"\nfile = \"tests/specs/pair.goal\"");
    let spec = read(&text, &[]);
    assert_eq!((spec.jobs.len(), spec.jobs[0].size, spec.flows.len()), (1, Bytes::new(15_480), 2));
    let replay = |text: &str| {
        let outcome = result(text, &[]);
        (numbers(&outcome, "jobs", "duration_us")[0], numbers(&outcome, "jobs", "slowdown")[0])
    };
    // The reply's ACK leaves before it.
    let network = alone(&spec, 2, 14_480) + alone(&spec, 2, 1000);
    let (time, slowdown) = replay(&text);
    assert!(
        (time - 100.0).abs() < 1e-9 && (slowdown - 1.0).abs() < 1e-9,
        "{time} {slowdown}: the computation is longest"
    );
    let file = std::fs::read_to_string("tests/specs/pair.goal").unwrap();
    let folder = std::env::temp_dir().join(format!("firstlight-goal-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let short = folder.join("short.goal");
    std::fs::write(&short, file.replace("calc 100000", "calc 1")).unwrap();
    let (time, slowdown) = replay(&text.replace("tests/specs/pair.goal", short.to_str().unwrap()));
    assert!((time - (5.0 + network)).abs() < 1e-6, "{time} and {network}");
    let least = 5.0 + way(2, &[1500; 10]) + way(2, &[1052]);
    assert!((slowdown - time / least).abs() < 1e-6, "{slowdown}: {least}");
    // Each message goes through two stacks of 11 us together, also in the least time; SYN and SYN-ACK do so besides.
    let stacks = "[hosts]\nsend_delay = \"4us\"\nreceive_delay = \"7us\"";
    let behind = text.replace("tests/specs/pair.goal", short.to_str().unwrap()).replace("[hosts]", stacks);
    let (time, slowdown) = replay(&behind);
    assert!((time - (5.0 + network + 6.0 * 11.0)).abs() < 1e-6, "{time} and {network}");
    assert!((slowdown - time / (least + 2.0 * 11.0)).abs() < 1e-6, "{slowdown}: {least}");
    // A message waits for the reply to itself, and the reply waits for the message.
    std::fs::write(&short, file.replace("l2 requires l1\n}\nrank", "l2 requires l3\n}\nrank")).unwrap();
    let stuck = reported_at("x.toml", &text.replace("tests/specs/pair.goal", short.to_str().unwrap()));
    assert!(
        stuck.ends_with(
            "short.goal:5:7: workload.0.file: it waits for itself, by what it requires and receives: \
                             take out one of these"
        ),
        "{stuck}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
#[rustfmt::skip]
fn what_cannot_be_is_refused() {
    let star = |workload: &str| reported_at("x.toml", &on(STAR, workload));
    assert_eq!(star("kind = \"partition_aggregate\"\nqueries = 1"),
        "x.toml:12:8: workload.0.kind: rack 0 asks the others, whose hosts ask each other: use a fabric with racks, \
         at least two of two hosts");
    assert_eq!(reported_at("x.toml", &on(&racks(2, 2), "kind = \"partition_aggregate\"")),
        "x.toml:15:1: workload.0.queries: missing: write for example queries = 100 in [[workload]]");
    let paced = |steps: &str| star(&format!("kind = \"paced\"\nto = \"host0\"\nsteps = {steps}"));
    let wrong = |text: &str| format!("x.toml:14:9: workload.0.steps: {text}");
    assert_eq!(paced("[\"1Gbps\"]"),
        wrong("'1Gbps' is no step: write its start and its rate, for example \"100ms 4Gbps\" or \"110ms off\""));
    assert_eq!(paced("[\"5ms 1Gbps\", \"5ms off\"]"),
        wrong("'5ms 1Gbps' does not end after it starts, at 5ms: write growing times before the run's end"));
    assert_eq!(paced("[\"0s off\"]"), wrong("no step writes anything: write for example [\"0s 1Gbps\"]"));
    assert_eq!(star("kind = \"background\"\nsize = \"1MB\"\nrate = \"1Gbps\"\ncc = \"cubic\""),
        "x.toml:15:6: workload.0.cc: has no effect on datagrams: take it out, or take out rate");
    assert_eq!(star("kind = \"background\"\nsize = \"1MB\"\npacket = \"64B\""),
        "x.toml:14:10: workload.0.packet: has no effect on TCP: take it out, or add rate for datagrams");
    assert_eq!(star("kind = \"background\"\nsize = \"1MB\"\nsend_buffer = \"64kB\""),
        "x.toml:14:15: workload.0.send_buffer: has no effect on TCP: take it out, or add rate for datagrams");
    assert_eq!(star("kind = \"background\"\nsize = \"1MB\"\nfrom = \"host1\"\nto = \"host1\""),
        "x.toml:15:6: workload.0.to: a sender would send to itself: name other hosts");
    let udp = |more: &str| star(&format!("kind = \"udp\"\nto = \"host0\"\n{more}"));
    assert_eq!(udp(""), "x.toml:11:1: workload.0.rate: missing: write for example rate = \"10Gbps\" in [[workload]]");
    assert_eq!(udp("rate = \"11Gbps\""), "x.toml:14:8: workload.0.rate: the host's link of 10Gbps does not carry it: \
                                          1500B take 1200ns, and come every 1090910ps");
    assert_eq!(udp("rate = \"1Gbps\"\non = \"1ms\""),
        "x.toml:11:1: workload.0.off: missing: write for example off = \"1ms\" in [[workload]]");
    assert_eq!(udp("rate = \"1Gbps\"\nexponential = true"),
        "x.toml:11:1: workload.0.on: missing: write for example on = \"1ms\" in [[workload]]");
    assert_eq!(star("kind = \"goal\"\nfile = \"tests/specs/pair.goal\"\namong = \"host0\""),
        "x.toml:13:8: workload.0.file: it has 2 ranks for 1 hosts: use a larger fabric, or more hosts in among");
}
