//! Table `fct`: completion times and slowdowns of the sized flows, by workload and by size.
//!
//! A completion time is `fct_us` of table `flows`. A slowdown is that time divided by the least one on an empty fabric
//! (see `ideal`). Flows of several messages have no completion time: see `jobs`. Flows that did not complete count in
//! column `flows` only. Quantiles are order statistics: see `quantile`.
//!
//! Intervals contain the true value with a probability of 95 % if flows are independent; flows that share links are not
//! quite. The interval of the mean is the normal approximation, mean -+ 1.96 s / sqrt(n), with s the sample's standard
//! deviation. The interval of the 99th percentile is made of order statistics: how many of n flows exceed the true
//! percentile is binomial (n, 0.01), so that the a-th largest and the b-th largest time enclose it, with a and b the
//! quantiles of that distribution at 2.5 % and 97.5 % (H. A. David and H. N. Nagaraja, Order Statistics, section 7.1).
//! With fewer than 368 flows there is no upper bound.

use super::flows::completion;
use super::ideal::Ideal;
use super::numbers;
use crate::quantile::quantile;
use crate::run::Counters;
use crate::table::{Column, Table};
use firstlight_spec::Spec;
use firstlight_units::Bytes;

/// Standard deviations that contain 95 % of a normal distribution.
const NORMAL: f64 = 1.96;

/// One group of flows.
#[derive(Default)]
struct FlowGroup {
    workload: String,
    /// Bounds of the sizes; `None` for all sizes.
    sizes: Option<(u64, Option<u64>)>,
    flows: usize,
    /// Completion times in us, ascending.
    times: Vec<f64>,
    /// Slowdowns, ascending.
    slowdowns: Vec<f64>,
}

/// One row for each workload and group of sizes, the workload's as a whole first.
pub(super) fn table(spec: &Spec, counters: &Counters) -> Table {
    let rows = groups(spec, counters);
    let of_times = |of: fn(&[f64]) -> f64| numbers(rows.iter().map(|row| of(&row.times)));
    let of_slowdowns = |of: fn(&[f64]) -> f64| numbers(rows.iter().map(|row| of(&row.slowdowns)));
    let bound = |of: fn(&FlowGroup) -> Option<u64>| {
        Column::Integer(
            rows.iter().map(|row| of(row).map_or(-1, |size| i64::try_from(size).unwrap_or(i64::MAX))).collect(),
        )
    };
    Table::new("fct", "one row for each workload and group of flow sizes: completion times of sized flows")
        .text("workload", "the workload's name; flows: from [[flows]]", &rows, |row| row.workload.clone())
        .text("group", "the sizes in words; all: every size", &rows, FlowGroup::name)
        .with("from_bytes", "smallest size of the group", bound(|row| row.sizes.map_or(Some(0), |sizes| Some(sizes.0))))
        .with("below_bytes", "sizes are smaller than this; -1: no limit", bound(|row| row.sizes?.1))
        .count("flows", "how many flows", &rows, |row| row.flows as u64)
        .count("completed", "how many of them completed; the columns that follow are of these", &rows, |row| {
            row.times.len() as u64
        })
        .with("mean_us", "mean completion time; NaN without any", of_times(mean))
        .with("mean_low_us", "lower end of its 95% interval: mean - 1.96 s / sqrt(n)", of_times(|v| mean(v) - error(v)))
        .with("mean_high_us", "upper end: mean + 1.96 s / sqrt(n)", of_times(|v| mean(v) + error(v)))
        .with("median_us", "completion time that half do not exceed", of_times(|v| quantile_or_nan(v, 0.5)))
        .with("p99_us", "completion time that 99% do not exceed", of_times(|v| quantile_or_nan(v, 0.99)))
        .with(
            "p99_low_us",
            "lower end of its 95% interval, an order statistic (binomial); NaN with too few flows",
            of_times(|v| p99_interval(v).0),
        )
        .with("p99_high_us", "upper end, likewise", of_times(|v| p99_interval(v).1))
        .with("slowdown_mean", "mean of completion time over the least on an empty fabric", of_slowdowns(mean))
        .with("slowdown_median", "slowdown that half do not exceed", of_slowdowns(|v| quantile_or_nan(v, 0.5)))
        .with("slowdown_p99", "slowdown that 99% do not exceed", of_slowdowns(|v| quantile_or_nan(v, 0.99)))
}

/// All groups that have flows, in the order of workloads and sizes.
fn groups(spec: &Spec, counters: &Counters) -> Vec<FlowGroup> {
    let bounds: Vec<u64> =
        std::iter::once(0).chain(spec.tables.measure.fct_groups.iter().map(|size| size.get())).collect();
    let ideal = Ideal::of(spec);
    let mut all: Vec<FlowGroup> = vec![];
    let mut names: Vec<&str> = vec![];
    for (asked, report) in spec.flows.iter().zip(&counters.flows) {
        let Some(size) = asked.size.filter(|_| asked.is_timed()).map(Bytes::get) else { continue };
        let name = spec.workload_name(asked.entry);
        // Flows are ordered by workload.
        if names.last() != Some(&name) {
            names.push(name);
            all.extend(empty(name, &bounds));
        }
        let first = all.len() - bounds.len() - 1;
        let within = bounds.partition_point(|bound| *bound <= size);
        let (time, slowdown) = (completion(spec, report).map(|time| time.as_us_f64()), ideal.slowdown(spec, report));
        for index in [first, first + within] {
            let group = &mut all[index];
            group.flows += 1;
            group.times.extend(time);
            group.slowdowns.extend(slowdown);
        }
    }
    all.retain(|group| group.flows > 0);
    for group in &mut all {
        group.times.sort_unstable_by(f64::total_cmp);
        group.slowdowns.sort_unstable_by(f64::total_cmp);
    }
    all
}

/// The groups of a workload without flows: all sizes, then from bound to bound.
fn empty(workload: &str, bounds: &[u64]) -> impl Iterator<Item = FlowGroup> {
    let of_sizes = (0..bounds.len()).map(|index| Some((bounds[index], bounds.get(index + 1).copied())));
    std::iter::once(None).chain(of_sizes).map(|sizes| FlowGroup {
        workload: workload.into(),
        sizes,
        ..FlowGroup::default()
    })
}

impl FlowGroup {
    fn name(&self) -> String {
        match self.sizes {
            None => "all".into(),
            Some((from, Some(below))) => format!("{} to {}", Bytes::new(from), Bytes::new(below)),
            Some((from, None)) => format!("from {}", Bytes::new(from)),
        }
    }
}

/// A quantile of ascending values; NaN without values.
fn quantile_or_nan(ascending: &[f64], part: f64) -> f64 {
    quantile(ascending, part).unwrap_or(f64::NAN)
}

/// The mean; NaN without values.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Half the width of the mean's interval; NaN with fewer than two values.
fn error(values: &[f64]) -> f64 {
    let (mean, count) = (mean(values), values.len() as f64);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    if values.len() < 2 { f64::NAN } else { NORMAL * (squares / (count - 1.0) / count).sqrt() }
}

/// The values that enclose the true 99th percentile with 95 %; NaN where there is no such value.
fn p99_interval(values: &[f64]) -> (f64, f64) {
    let count = values.len();
    let (a, b) = binomial_bounds(count, 0.01, 0.025);
    let largest = |rank: Option<usize>| rank.and_then(|rank| count.checked_sub(rank)).and_then(|at| values.get(at));
    let value = |rank| largest(rank).copied().unwrap_or(f64::NAN);
    // Rarely more than b values exceed it, so that the (b + 1)-th largest is below it; rarely fewer than a do.
    (value(Some(b + 1)), value((a > 0).then_some(a)))
}

/// Bounds of K, binomial (n, p): the largest a with P(K < a) <= tail, and the smallest b with P(K > b) <= tail.
fn binomial_bounds(n: usize, p: f64, tail: f64) -> (usize, usize) {
    let mut log = n as f64 * (-p).ln_1p();
    let (mut below, mut a) = (0.0, None);
    for k in 0..=n {
        let up_to = below + log.exp();
        if up_to > tail && a.is_none() {
            a = Some(k);
        }
        if 1.0 - up_to <= tail {
            return (a.unwrap_or(k), k);
        }
        below = up_to;
        log += ((n - k) as f64 / (k + 1) as f64 * p / (1.0 - p)).ln();
    }
    (a.unwrap_or(n), n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_sim::{stream, uniform};

    #[test]
    fn error_of_the_mean() {
        assert!(quantile_or_nan(&[], 0.5).is_nan() && mean(&[]).is_nan() && error(&[1.0]).is_nan());
        assert_eq!(error(&[1.0, 3.0]), 1.96);
    }

    /// Binomial (10, 1/2): P(K < 2) = 11/1024, P(K < 3) = 56/1024; symmetric.
    #[test]
    fn bounds_of_a_binomial() {
        assert_eq!(binomial_bounds(10, 0.5, 0.025), (2, 8));
        assert_eq!(binomial_bounds(367, 0.01, 0.025).0, 0, "0.99^367 is 2.50 %");
        assert_eq!(binomial_bounds(368, 0.01, 0.025).0, 1);
        // n p = 1000, standard deviation 31.5: -+ 1.96 of those.
        let (a, b) = binomial_bounds(100_000, 0.01, 0.025);
        assert!((937..=940).contains(&a) && (1061..=1063).contains(&b), "{a} {b}");
    }

    /// Of uniform numbers the mean is 1/2 and the 99th percentile 0.99.
    #[test]
    fn intervals_contain_the_true_value_as_often_as_they_should() {
        let (mut means, mut tails) = (0, 0);
        for sample in 0..400 {
            let mut random = stream(sample, "test", "intervals");
            let mut values: Vec<f64> =
                (0..1000).map(|_| uniform(&mut random, 1 << 40) as f64 / (1u64 << 40) as f64).collect();
            values.sort_unstable_by(f64::total_cmp);
            let (low, high) = p99_interval(&values);
            means += u32::from((mean(&values) - 0.5).abs() <= error(&values));
            tails += u32::from(low <= 0.99 && 0.99 <= high);
        }
        assert!((368..=396).contains(&means) && (372..=400).contains(&tails), "{means} and {tails} of 400");
    }
}
