//! Accounts of random experiments on every fabric: they add up, no time is negative, and none is unknown.

use super::{integers, names, read};
use firstlight_lab::{Files, Outcome, run};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

const STAR: &str = "[fabric]\nkind = \"star\"\nhosts = 6\n[hosts]\nrate = \"10Gbps\"\ndelay = \"1us\"\n";
const LEAVES: &str = "[links]\nrate = \"10Gbps\"\n[fabric]\nkind = \"leaf_spine\"\nracks = 3\nhosts_per_rack = 2\n\
                      spines = 2\n[hosts]\nrate = \"10Gbps\"\ndelay = \"1us\"\n";
const DUMBBELL: &str = "[links]\nrate = \"2Gbps\"\n[fabric]\nkind = \"dumbbell\"\nleft = 3\nright = 3\n[hosts]\nrate = \
                        \"10Gbps\"\ndelay = \"1us\"\n";
const THREE_TIERS: &str = "[links]\nrate = \"10Gbps\"\n[fabric]\nkind = \"three_tier\"\nracks = 4\nhosts_per_rack = 2\n\
                           aggregations = 4\ncores = 2\nspray = true\n[hosts]\nrate = \"10Gbps\"\ndelay = \"1us\"\n";
const TREE: &str =
    "[links]\nrate = \"7Gbps\"\n[fabric]\nkind = \"fat_tree\"\nk = 4\n[hosts]\nrate = \"7Gbps\"\ndelay = \"700ns\"\n";
const TORUS: &str = "[links]\nrate = \"7Gbps\"\n[fabric]\nkind = \"torus\"\nrows = 3\ncolumns = 3\n\
                     hosts_per_rack = 2\nspray = true\n[hosts]\nrate = \"10Gbps\"\ndelay = \"1us\"\n";
const GRAPH: &str = "[fabric]\nkind = \"graph\"\nfile = \"tests/specs/uneven.txt\"\n[hosts]\n";
const RACKS: &str = "[fabric]\nkind = \"hybrid\"\nracks = 3\nhosts_per_rack = 2\n\
                     [packet]\nrate = \"5Gbps\"\ndelay = \"5us\"\n[circuit]\nrate = \"40Gbps\"\ndelay = \"20us\"\n\
                     [schedule]\nkind = \"strobe\"\nday = \"90us\"\nnight = \"15us\"\n[hosts]\nrate = \"10Gbps\"\n";

/// A fabric, whose text ends with the table of hosts; and tables that go with it.
fn fabric() -> impl Strategy<Value = (&'static str, String)> {
    let switch = prop_oneof![
        3 => (2u32..60).prop_map(|queue| format!("[switch]\nqueue = {queue}\n")),
        1 => (2u32..30).prop_map(|ecn| format!("[switch]\nqueue = 100\necn = {ecn}\n")),
        1 => Just("[[switch.classes]]\nqueue = 20\n[[switch.classes]]\nqueue = 10\n".to_string()),
        1 => Just("[pfc]\nxoff = \"30kB\"\n".to_string()),
        1 => Just("[pfc]\nkind = \"pause\"\nxoff = \"30kB\"\n".to_string()),
        1 => Just("[switch]\nqueue = \"60kB\"\n[qcn]\nqeq = \"20kB\"\n".to_string()),
        1 => Just("[switch]\nqueue = 100\n[switch.red]\nmin = 5\nmax = 20\n".to_string()),
        1 => Just("[switch]\nbuffer = \"100kB\"\n".to_string()),
    ];
    let voq = prop_oneof![
        2 => (2u32..30).prop_map(|small| format!("[voq]\nsmall = {small}\n")),
        1 => (2u32..30).prop_map(|small| format!("[voq]\nsmall = {small}\nlarge = 60\nadvance = \"30us\"\n")),
        1 => Just("[voq]\nsmall = 16\n[qcn]\nqeq = \"20kB\"\n".to_string()),
        1 => Just("[pfc]\nxoff = \"30kB\"\n".to_string()),
        1 => Just("[voq]\nsmall = 40\n[voq.red]\nmin = 5\nmax = 15\n".to_string()),
        2 => (2u32..30, 1u32..60_000).prop_map(|(small, elephant)| {
            format!("[voq]\nsmall = {small}\n[segregation]\nelephant = \"{elephant}B\"\n")
        }),
        2 => (1u32..60).prop_map(|advance| {
            format!("[voq]\nsmall = 16\n[marks]\nadvance = \"{advance}us\"\ncarrier = \"notices\"\ndelay = \"3us\"\n")
        }),
    ];
    prop_oneof![
        3 => (prop::sample::select(vec![STAR, DUMBBELL, LEAVES, TREE, THREE_TIERS, TORUS, GRAPH]), switch),
        2 => (Just(RACKS), voq),
    ]
}

/// Keys of hosts, and tables of hosts' adapters and of TCP.
fn hosts() -> impl Strategy<Value = (String, String)> {
    let keys = prop::collection::vec(
        prop::sample::select(vec![
            "send_delay = \"3us\"\n",
            "receive_delay = \"2us\"\n",
            "mtu = \"1500B\"\n",
            "loss = 0.02\n",
            "jitter = { kind = \"exponential\", mean = \"2us\" }\n",
        ]),
        0..5,
    );
    let keys = keys.prop_map(|mut keys| {
        keys.sort_unstable();
        keys.dedup();
        keys.concat()
    });
    let adapter = prop_oneof![
        3 => Just(""),
        1 => Just("[adapter]\nsend_buffer = \"40kB\"\n"),
        1 => Just("[adapter]\ndrain = \"3Gbps\"\nreceive_buffer = \"200kB\"\n"),
    ];
    let tcp = prop::sample::select(vec![
        "",
        "cc = \"dctcp\"\n",
        "cc = \"bbr\"\n",
        "cc = \"dx\"\n",
        "cc = \"vegas\"\n",
        "nagle = true\n",
        "cc = \"newreno\"\nsack = false\n",
        "initial_window = 1\n",
        "receive_window = \"20kB\"\n",
        "send_buffer = \"20kB\"\n",
        "tail_loss_probe = false\n",
        "rto_min = \"1ms\"\ntick = \"100us\"\n",
    ]);
    (keys, adapter, tcp).prop_map(|(keys, adapter, tcp)| {
        let tcp = if tcp.is_empty() { String::new() } else { format!("[tcp]\n{tcp}") };
        (keys, format!("{adapter}{tcp}"))
    })
}

fn workloads() -> impl Strategy<Value = String> {
    let reader = prop_oneof![4 => Just(""), 1 => Just("read_rate = \"300Mbps\"\n")];
    let flow = (0u32..6, 0u32..5, 1u64..200_000, 0u64..200, reader).prop_map(|(from, to, size, start, reader)| {
        let to = if to >= from { to + 1 } else { to };
        let ends = format!("from = \"host{from}\"\nto = \"host{to}\"\n");
        format!("[[flows]]\n{ends}size = \"{size}B\"\nstart = \"{start}us\"\n{reader}")
    });
    let workload = |kind: &str, keys: &str| format!("[[workload]]\nkind = \"{kind}\"\n{keys}");
    let incast =
        (1u64..300_000).prop_map(move |size| workload("incast", &format!("to = \"host0\"\nsize = \"{size}B\"\n")));
    let files = workload("hdfs", "files = 4\nfile_size = \"300kB\"\nblock = \"100kB\"\n");
    let reads = (1u64..30_000, prop::bool::ANY).prop_map(move |(size, nagle)| {
        let keys = "from = \"host0\"\nreads = 3\nvalues = 2\nheader = \"40B\"\ninterval = \"300us\"\n";
        workload("key_value", &format!("{keys}size = \"{size}B\"\nnagle = {nagle}\n"))
    });
    let halo =
        workload("goal", "application = \"halo\"\nranks = 4\niterations = 3\nsize = \"20kB\"\ncompute = \"5us\"\n");
    prop_oneof![
        4 => prop::collection::vec(flow, 1..8).prop_map(|flows| flows.concat()),
        1 => incast,
        1 => Just(files),
        1 => reads,
        1 => Just(halo),
    ]
}

/// The parts of the time of a flow, for messages.
fn events(outcome: &Outcome, flow: i64) -> String {
    let table = "account_events";
    let rows = (0..integers(outcome, table, "flow").len()).filter(|row| integers(outcome, table, "flow")[*row] == flow);
    let [cause, place, who, waiting] = NAMES.map(|column| names(outcome, table, column));
    let row = |row: usize| {
        let (at, time) = (integers(outcome, table, "at_ps")[row], integers(outcome, table, "time_ps")[row]);
        format!("{at:>14} {time:>14} {} | {} | {} | {}\n", cause[row], place[row], who[row], waiting[row])
    };
    rows.map(row).collect()
}

const NAMES: [&str; 4] = ["cause", "where", "who", "waiting_for"];

/// Causes whose `who` is in `account_events` only the one that took most of a wait.
const AHEAD: [&str; 2] = ["queueing", "interface_queue"];

/// Checks that each flow that took most of a wait has time in the account, beside so many others as stood ahead.
fn check_ahead(outcome: &Outcome, text: &str) -> Result<(), TestCaseError> {
    let mut known: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    let columns = |table| NAMES.map(|column| names(outcome, table, column));
    let ([causes, places, whos, waiting], flows) = (columns("account"), integers(outcome, "account", "flow"));
    for row in 0..flows.len() {
        known.entry((flows[row], causes[row], places[row], waiting[row])).or_default().insert(whos[row]);
    }
    let [causes, places, whos, waiting] = columns("account_events");
    let table = "account_events";
    let (flows, others) = (integers(outcome, table, "flow"), integers(outcome, table, "others"));
    let (at, times) = (integers(outcome, table, "at_ps"), integers(outcome, table, "time_ps"));
    for row in 0..flows.len() {
        if row > 0 && flows[row] == flows[row - 1] {
            prop_assert_eq!(at[row], at[row - 1] + times[row - 1], "without gaps\n{}", text);
        }
        // On a time scale a part can be shorter than a picosecond of the experiment's own time.
        if times[row] == 0 {
            continue;
        }
        let key = (flows[row], causes[row], places[row], waiting[row]);
        let all =
            known.get(&key).ok_or_else(|| TestCaseError::fail(format!("{key:?} is not in the account\n{text}")))?;
        prop_assert!(all.contains(whos[row]), "{} {}\n{}", flows[row], whos[row], text);
        prop_assert!((others[row] as usize) < all.len(), "{} others of {:?}\n{}", others[row], all, text);
        prop_assert!(others[row] == 0 || AHEAD.contains(&causes[row]), "{}\n{}", causes[row], text);
    }
    Ok(())
}

/// The time of a table by flow and names, without whose packets stood ahead.
fn by_name<'a>(outcome: &'a Outcome, table: &str) -> BTreeMap<(i64, [&'a str; 4]), i64> {
    let columns = NAMES.map(|column| names(outcome, table, column));
    let (flows, times) = (integers(outcome, table, "flow"), integers(outcome, table, "time_ps"));
    let mut sums = BTreeMap::new();
    for (row, (flow, time)) in flows.iter().zip(times).enumerate().filter(|(_, (_, time))| **time > 0) {
        let names = [0, 1, 2, 3].map(|column: usize| columns[column][row]);
        let names = if AHEAD.contains(&names[0]) { [names[0], names[1], "", names[3]] } else { names };
        *sums.entry((*flow, names)).or_default() += time;
    }
    sums
}

/// Runs an experiment with and without an account, and checks the account.
fn check(text: &str) -> Result<(), TestCaseError> {
    let going_on = &mut |_| ControlFlow::Continue(());
    let plain = run(&read(text, &[]), &[], &Files::default(), going_on).unwrap();
    let outcome = run(
        &read(text, &[("measure.account", "true"), ("measure.account_events", "1000")]),
        &[],
        &Files::default(),
        going_on,
    )
    .unwrap();
    prop_assert_eq!(&plain.manifest["digest"], &outcome.manifest["digest"], "an account changes nothing");
    let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
    let (flows, times) = (integers(&outcome, "account", "flow"), integers(&outcome, "account", "time_ps"));
    let causes = names(&outcome, "account", "cause");
    for ((flow, time), cause) in flows.iter().zip(times).zip(causes) {
        prop_assert!(*time > 0, "flow {} has {} ps of {}\n{}", flow, time, cause, text);
        prop_assert_ne!(cause, "unknown", "flow {} has {} ps of it\n{}\n{}", flow, time, text, events(&outcome, *flow));
        *sums.entry(*flow).or_default() += time;
    }
    let complete = super::numbers(&outcome, "flows", "fct_us");
    for (flow, fct) in complete.iter().enumerate().filter(|(_, fct)| !fct.is_nan()) {
        prop_assert_eq!(sums.get(&(flow as i64)).copied(), Some((fct * 1e6).round() as i64), "flow {}\n{}", flow, text);
    }
    prop_assert_eq!(by_name(&outcome, "account"), by_name(&outcome, "account_events"), "{}", text);
    check_ahead(&outcome, text)?;
    check_messages(&outcome, text)
}

/// Checks that the times of each message on a job's path add up to its time, and that none is unknown.
fn check_messages(outcome: &Outcome, text: &str) -> Result<(), TestCaseError> {
    if outcome.table("message_account").is_none() {
        return Ok(());
    }
    let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
    let messages = integers(outcome, "message_account", "message");
    let causes = names(outcome, "message_account", "cause");
    for (row, message) in messages.iter().enumerate() {
        prop_assert_ne!(causes[row], "unknown", "{}", text);
        *sums.entry(*message).or_default() += integers(outcome, "message_account", "time_ps")[row];
    }
    let column = |name| super::numbers(outcome, "job_paths", name);
    for (row, message) in integers(outcome, "job_paths", "message").iter().enumerate() {
        let time = ((column("compute_us")[row] + column("transfer_us")[row]) * 1e6).round() as i64;
        prop_assert_eq!(sums.get(message).copied().unwrap_or(0), time, "message {}\n{}", message, text);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn accounts_add_up_and_nothing_is_unknown(
        (fabric, switch) in fabric(), (keys, tables) in hosts(), workload in workloads(),
        seed in 0u64..1000, scale in prop::sample::select(vec![1, 20]),
    ) {
        // Replicas of a file go to another rack.
        if workload.contains("hdfs") && [STAR, DUMBBELL, GRAPH].contains(&fabric) {
            return Ok(());
        }
        // Notices are for reTCP.
        let retcp = switch.contains("[marks]") && !tables.contains("[tcp]");
        let retcp = if retcp { "[tcp]\ncc = \"retcp\"\n" } else { "" };
        let text = format!("duration = \"2s\"\nseed = {seed}\ntime_scale = {scale}\n\
                            {fabric}{keys}{switch}{tables}{retcp}{workload}");
        check(&text)?;
    }
}
