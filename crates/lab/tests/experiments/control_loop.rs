//! The control loop, from its keys to its tables.

use crate::{check, integers, metric, numbers, result};
use firstlight_circuits::Scheduler;

/// A ring of big flows among small ones, in weeks of 1 ms.
const RING: &str = include_str!("../specs/ring.toml");

/// The kinds of schedule that are computed from demand.
fn computed() -> impl Iterator<Item = &'static str> {
    Scheduler::ALL.iter().map(|scheduler| scheduler.name()).filter(|name| *name != "strobe")
}

/// Solstice with what applications have written gives the ring all of the circuits; with what waits in the VOQs it
/// cannot distinguish big from small.
#[test]
fn a_scheduler_that_sees_what_is_written_serves_the_big_flows() {
    let adu = result(RING, &[]);
    let voq = result(RING, &[("control.demand", "voq")]);
    let longest = |outcome| {
        let (sizes, times) = (integers(outcome, "flows", "size_bytes"), numbers(outcome, "flows", "fct_us"));
        let big: Vec<f64> =
            sizes.iter().zip(times).filter(|(size, _)| **size > 1_000_000).map(|(_, fct)| *fct).collect();
        assert_eq!(big.len(), 8);
        big.into_iter().fold(0.0, f64::max)
    };
    let (adu, voq) = (longest(&adu), longest(&voq));
    assert!(adu * 2.0 < voq, "{adu} us, {voq} us");
}

#[test]
fn the_table_of_circuits_agrees_with_the_counts() {
    for kind in computed() {
        let outcome = result(RING, &[("schedule.kind", kind)]);
        let carried: i64 = integers(&outcome, "circuits", "carried_bytes").iter().sum();
        assert_eq!(carried as f64, metric(&outcome, "circuit_bytes"), "{kind}");
        let share = carried as f64 / (carried as f64 + metric(&outcome, "packet_bytes")) * 100.0;
        assert!((metric(&outcome, "circuit_share_pct") - share).abs() < 1e-9, "{kind}");
        let (starts, ends) = (numbers(&outcome, "circuits", "start_us"), numbers(&outcome, "circuits", "end_us"));
        let (weeks, days) = (integers(&outcome, "circuits", "week"), integers(&outcome, "circuits", "day"));
        for row in 0..starts.len() {
            let week = weeks[row] as f64 * 1000.0;
            assert!(starts[row] >= week + 10.0 && ends[row] <= week + 1000.0 + 1e-9, "{kind}: {row}");
            assert!(ends[row] - starts[row] >= 50.0 - 1e-9, "{kind}: the shortest day");
            assert!(weeks[row] > 0 && days[row] >= 0);
        }
        assert!(outcome.tables.iter().all(|table| table.name != "week"), "no week is repeated");
    }
}

#[test]
fn one_digest_whatever_the_loop_measures() {
    let digest = |set| result(RING, set).manifest["digest"].as_str().expect("a text").to_string();
    assert_eq!(digest(&[]), digest(&[("measure.pair", "[2, 0]")]));
    assert_ne!(digest(&[]), digest(&[("control.compute", "1100us")]));
}

#[test]
#[rustfmt::skip]
fn wrong_loops() {
    let kinds: Vec<_> = computed().collect();
    let has_no_effect = format!("has no effect: it counts only when schedule.kind = \"{}\", but it is \"strobe\"; take \
                                 it out", kinds.join("\" or \""));
    let strobe = format!("x.toml:25:8: schedule.week: {has_no_effect}\nx.toml:27:13: schedule.least_day: \
                          {has_no_effect}\nx.toml:29:2: control: has no effect: it counts only when the schedule is \
                          computed from demand, but its days are given; take it out");
    let sunrise = format!("x.toml:23:8: schedule.kind: 'sunrise' is not one of strobe, etalon, list, {}",
                          kinds.join(", "));
    check(RING, &[
        ("week = \"1ms\"\n", "",
         "x.toml:22:2: schedule.week: missing: write for example week = \"180us\" in [schedule]"),
        ("week = \"1ms\"", "week = \"50us\"", "x.toml:24:8: schedule.week: a week of 50us has no room for a night of \
                                               10us and a day of 50us: make the week longer"),
        ("least_day = \"50us\"", "least_day = \"500ns\"",
         "x.toml:26:13: schedule.least_day: days of 500ns may be shorter than one packet, 900ns: use least_day = \
          \"900ns\" at least"),
        ("kind = \"solstice\"", "kind = \"sunrise\"", &sunrise),
        ("kind = \"solstice\"", "kind = \"strobe\"\nday = \"50us\"", &strobe),
        ("demand = \"adu\"", "demand = \"adu\"\nlead = \"1ms\"",
         "x.toml:30:1: control.lead: unknown key: did you mean control.demand?"),
        ("week = \"1ms\"", "week = \"1ms\"\nday = \"50us\"",
         "x.toml:25:7: schedule.day: has no effect: it counts only when schedule.kind = \"strobe\" or \"etalon\" or \
          \"list\", but it is \"solstice\"; take it out"),
    ]);
}
