//! Slowdowns of random schedules: no network is faster than the ideal one.

use crate::{metric, result};
use proptest::prelude::*;
use std::fmt::Write;

/// A message of a schedule: from, how many ranks on, bytes, nanoseconds of computation before it, and whether it waits
/// for all that its sender has got before.
type Message = (usize, usize, u64, u64, bool);

/// The schedule as GOAL's text. A rank waits only for messages that come before its own, so no schedule waits for
/// itself.
fn goal(ranks: usize, messages: &[Message]) -> String {
    let mut texts = vec![String::new(); ranks];
    let mut received: Vec<Vec<usize>> = vec![vec![]; ranks];
    for (nth, &(from, step, bytes, compute, waits)) in messages.iter().enumerate() {
        let from = from % ranks;
        let to = (from + 1 + step % (ranks - 1)) % ranks;
        let send = format!("c{nth}: calc {compute}\ns{nth}: send {bytes}b to {to} tag {nth}\ns{nth} requires c{nth}\n");
        texts[from].push_str(&send);
        for before in received[from].iter().filter(|_| waits) {
            writeln!(texts[from], "c{nth} requires r{before}").unwrap();
        }
        writeln!(texts[to], "r{nth}: recv {bytes}b from {from} tag {nth}").unwrap();
        received[to].push(nth);
    }
    let blocks = texts.iter().enumerate().map(|(rank, text)| format!("rank {rank} {{\n{text}}}\n"));
    format!("num_ranks {ranks}\n{}", blocks.collect::<String>())
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let sizes = prop_oneof![1u64..3000, 1u64..60_000, Just(1448), Just(14_480)];
    let waits = prop::bool::weighted(0.8);
    prop::collection::vec((0usize..60, 0usize..60, sizes, 0u64..5000, waits), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Two ranks make long chains on open connections, where an ideal that is a little too slow shows; six meet each
    /// other.
    #[test]
    fn no_schedule_is_faster_than_its_ideal(
        ranks in prop_oneof![Just(2usize), 3usize..7], messages in messages(), send in 0u32..30, receive in 0u32..30,
        hosts in 1u32..20, spines in 1u32..3, racks in 2u32..4,
        first_window in prop_oneof![Just(3), Just(1000)], pfc: bool,
        seed in 1u32..100,
    ) {
        let file = std::env::temp_dir().join(format!("firstlight-slowdown-{}.goal", std::process::id()));
        std::fs::write(&file, goal(ranks, &messages)).unwrap();
        let text = format!(
            "seed = {seed}\nduration = \"10s\"\n[fabric]\nkind = \"leaf_spine\"\nracks = {racks}\nhosts_per_rack = 6\n\
             spines = {spines}\n[hosts]\nrate = \"{hosts}Gbps\"\ndelay = \"1us\"\nsend_delay = \"{send}us\"\n\
             receive_delay = \"{receive}us\"\nmtu = \"1500B\"\n[links]\nrate = \"10Gbps\"\n[tcp]\ntick = \"0s\"\n\
             initial_window = {first_window}\n{}[[workload]]\nkind = \"goal\"\nfile = \"{}\"\n",
            if pfc { "[pfc]\n" } else { "" }, file.display(),
        );
        let slowdown = metric(&result(&text, &[]), "job_slowdown_mean");
        std::fs::remove_file(file).unwrap();
        prop_assert!(slowdown >= 1.0 - 1e-9, "{}\n{}", slowdown, text);
    }
}
