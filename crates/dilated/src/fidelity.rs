//! Measures how well the engine follows the machine's clock.

use crate::peer::Counts;
use firstlight_lab::fidelity::Bounds;
use firstlight_lab::{Fidelity, Lateness};
use firstlight_units::Span;
use hdrhistogram::Histogram;

/// Digits to which times are kept, and the longest, in nanoseconds.
const DIGITS: u8 = 2;
const LONGEST: u64 = 100_000_000_000;

/// Times by which something was late.
#[derive(Clone)]
pub struct Late(Histogram<u64>);

impl Late {
    pub fn new() -> Self {
        Late(Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("the bounds and digits are possible"))
    }

    #[inline]
    pub fn record(&mut self, nanoseconds: u64) {
        self.0.saturating_record(nanoseconds);
    }

    /// Each recorded time, with how often it was recorded.
    pub fn counts(&self) -> Counts {
        self.0.iter_recorded().map(|one| (one.value_iterated_to(), one.count_at_value())).collect()
    }

    /// Adds another machine's recorded times.
    pub fn add_counts(&mut self, counts: &Counts) {
        counts.iter().for_each(|(value, count)| self.0.saturating_record_n(*value, *count));
    }

    pub fn add(&mut self, other: &Late) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// Number, percentiles and maximum. A time above `bound` nanoseconds is late.
    pub fn lateness(&self, bound: u64) -> Lateness {
        let all = self.0.len();
        let late = all - self.0.count_between(0, bound);
        Lateness {
            count: all,
            median: self.0.value_at_quantile(0.5),
            p99: self.0.value_at_quantile(0.99),
            most: self.0.max(),
            share: if all == 0 { 0.0 } else { late as f64 / all as f64 },
        }
    }
}

/// The engine's measurements of itself while the fabric's time runs.
pub struct FidelityMeter {
    /// Whether time is being counted.
    pub running: bool,
    pub delivered: Late,
    taken: Late,
    rounds: Late,
    /// Nanoseconds in which there was work.
    busy: u64,
    all: u64,
    /// Packets that a host's device did not take, or lost on their way to the engine.
    pub lost: u64,
}

impl FidelityMeter {
    pub fn new() -> Self {
        let late = Late::new();
        let (delivered, taken, rounds) = (late.clone(), late.clone(), late);
        FidelityMeter { running: false, delivered, taken, rounds, busy: 0, all: 0, lost: 0 }
    }

    /// A packet was taken in that may have waited for this number of nanoseconds.
    #[inline]
    pub fn on_taken(&mut self, nanoseconds: u64) {
        if self.running {
            self.taken.record(nanoseconds);
        }
    }

    /// A packet was handed over so late.
    #[inline]
    pub fn on_delivered(&mut self, nanoseconds: u64) {
        if self.running {
            self.delivered.record(nanoseconds);
        }
    }

    /// A round of the engine took this number of nanoseconds; `worked`: there was work in it.
    #[inline]
    pub fn on_round(&mut self, nanoseconds: u64, worked: bool) {
        if self.running {
            self.rounds.record(nanoseconds);
            self.all += nanoseconds;
            self.busy += if worked { nanoseconds } else { 0 };
        }
    }

    /// All measurements of the run. `timers` are those of the hosts' processors, `stolen` is the share of its time that
    /// the machine lost.
    pub fn fidelity(&self, bounds: Bounds, timers: &Late, stolen: f64) -> Fidelity {
        let ns = |span: Span| span.as_ps() / 1000;
        let bound = ns(bounds.packets);
        Fidelity {
            delivered: self.delivered.lateness(bound),
            taken: self.taken.lateness(bound),
            timers: timers.lateness(ns(bounds.timers)),
            rounds: self.rounds.lateness(bound),
            load: if self.all == 0 { 0.0 } else { self.busy as f64 / self.all as f64 },
            stolen,
            lost: self.lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_later_than_the_bound_is_a_share() {
        let mut late = Late::new();
        (1..=100).for_each(|n| late.record(n * 1000));
        let found = late.lateness(90_000);
        assert_eq!(found.count, 100);
        assert!((found.share - 0.1).abs() < 0.021, "{found:?}");
        assert!((found.median.abs_diff(50_000) < 1000) && found.p99.abs_diff(99_000) < 1000, "{found:?}");
        assert_eq!(Late::new().lateness(5).share, 0.0);
    }

    #[test]
    fn what_another_machine_recorded_is_added() {
        let (mut here, mut there) = (Late::new(), Late::new());
        [5, 1_000, 1_000, 2_000_000].into_iter().for_each(|time| there.record(time));
        here.record(7);
        here.add_counts(&there.counts());
        assert_eq!((here.lateness(1_500).count, here.lateness(1_500).share), (5, 0.2));
        assert!(here.lateness(0).most.abs_diff(2_000_000) < 20_000);
    }

    #[test]
    fn load_counts_rounds_with_work_while_time_runs() {
        let mut meter = FidelityMeter::new();
        meter.on_round(1000, true);
        meter.running = true;
        meter.on_round(300, true);
        meter.on_round(100, false);
        let mut timers = Late::new();
        [200, 400].into_iter().for_each(|time| timers.record(time));
        let bounds = Bounds { packets: Span::from_ns(250), timers: Span::from_ns(300) };
        let found = meter.fidelity(bounds, &timers, 0.5);
        assert_eq!((found.load, found.rounds.count, found.rounds.share, found.stolen), (0.75, 2, 0.5, 0.5));
        assert_eq!(found.timers.share, 0.5);
    }
}
