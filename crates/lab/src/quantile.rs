//! Quantiles: the one definition that all tables of a result use.
//!
//! A quantile is an order statistic: the smallest value that a part of the sample does not exceed (nearest rank).

use hdrhistogram::Histogram;

/// The smallest of ascending values that `part` of them (0 to 1) does not exceed; `None` without values.
pub(crate) fn quantile<T: Copy>(ascending: &[T], part: f64) -> Option<T> {
    let rank = (part * ascending.len() as f64).ceil() as usize;
    ascending.get(rank.max(1) - 1).copied()
}

/// The smallest value in us that `part` of the values of a histogram in ns does not exceed, to the width of its bin;
/// NaN without values.
pub(crate) fn histogram_quantile_us(ns: &Histogram<u64>, part: f64) -> f64 {
    if ns.is_empty() { f64::NAN } else { ns.value_at_quantile(part) as f64 * 1e-3 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_of_the_sample() {
        let values: Vec<u32> = (1..=200).collect();
        assert_eq!([0.0, 0.5, 0.99, 0.991, 1.0].map(|part| quantile(&values, part)), [1, 100, 198, 199, 200].map(Some));
        assert_eq!((quantile(&values[..1], 0.5), quantile::<u32>(&[], 0.5)), (Some(1), None));
    }

    #[test]
    fn histograms_agree_with_their_values() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        assert!(histogram_quantile_us(&histogram, 0.5).is_nan());
        (1..=200).for_each(|us| histogram += us * 1000);
        let bin = 1e-3;
        assert!((histogram_quantile_us(&histogram, 0.99) / 198.0 - 1.0).abs() < bin);
    }
}
