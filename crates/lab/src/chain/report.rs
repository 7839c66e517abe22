//! Statistics of the timestamps: of the RTT and of the gaps between packets.

use super::path::{Crossing, Exchange};
use crate::quantile::quantile;

/// Series of measurements, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainReport {
    /// RTT of each ACK: (t4 - t1) - (t3 - t2).
    pub rtt_ns: Vec<i64>,
    /// One-way delay of each data packet, t2 - t1, skewed by the clocks: only differences of it mean something.
    pub one_way_ns: Vec<i64>,
    /// Gaps between the stamps of data packets sent one after the other.
    pub tx_gaps_ns: Vec<i64>,
    /// Gaps between the stamps of data packets received one after the other.
    pub rx_gaps_ns: Vec<i64>,
    /// What each ACK brings: the one-way delay of the packet that it answers, with receive offload the mean of all that
    /// it answers.
    pub delivered_ns: Vec<i64>,
    /// How long each packet of the second flow waited for the link.
    pub second_flow_waits_ns: Vec<i64>,
    /// The share of the time in which the link carried data, 0 to 1.
    pub busy: f64,
    pub(super) last: Option<(u32, u32)>,
}

impl ChainReport {
    /// A data packet has crossed.
    pub(super) fn add(&mut self, data: &Crossing) {
        let (t1, t2) = (data.sent, data.received);
        self.one_way_ns.push(data.one_way());
        if let Some((sent, received)) = self.last.replace((t1, t2)) {
            self.tx_gaps_ns.push(apart(t1, sent));
            self.rx_gaps_ns.push(apart(t2, received));
        }
    }

    /// An ACK answers `data` and brings the one-way delay `delivered`.
    pub(super) fn answer(&mut self, data: &Crossing, exchange: &Exchange, delivered: i64) {
        let (t1, t2, t3, t4) = (data.sent, data.received, exchange.ack.sent, exchange.ack.received);
        self.rtt_ns.push(i64::from(t4.wrapping_sub(t1).wrapping_sub(t3.wrapping_sub(t2)) as i32));
        self.delivered_ns.push(delivered);
    }
}

/// The difference of two stamps that are less than 2^31 ns apart.
pub(super) fn apart(later: u32, earlier: u32) -> i64 {
    i64::from(later.wrapping_sub(earlier) as i32)
}

/// How a series is spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// How many there are.
    pub count: usize,
    /// The least value.
    pub min: i64,
    /// A quarter is not above this.
    pub lower_quartile: i64,
    /// Half are not above this.
    pub median: i64,
    /// Three quarters are not above this.
    pub upper_quartile: i64,
    /// The largest value.
    pub max: i64,
    /// The mean.
    pub mean: f64,
    /// Standard deviation of the whole series.
    pub deviation: f64,
}

impl Spread {
    /// The statistics of a series; `None` if the series is empty.
    pub fn of(series: &[i64]) -> Option<Self> {
        let mut sorted = series.to_vec();
        sorted.sort_unstable();
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let [lower_quartile, median, upper_quartile] = [0.25, 0.5, 0.75].map(|part| quantile(&sorted, part));
        let count = sorted.len();
        let mean = sorted.iter().sum::<i64>() as f64 / count as f64;
        let squares: Vec<f64> = series.iter().map(|&value| (value as f64 - mean) * (value as f64 - mean)).collect();
        Some(Spread {
            count,
            min,
            lower_quartile: lower_quartile?,
            median: median?,
            upper_quartile: upper_quartile?,
            max,
            mean,
            deviation: (pairwise_sum(&squares) / count as f64).sqrt(),
        })
    }
}

/// The sum by halves (Higham, SIAM J. Sci. Comput. 14(4), 1993), whose rounding error grows with the logarithm of the
/// length: blocks of up to 128 values in eight sums.
fn pairwise_sum(values: &[f64]) -> f64 {
    const BLOCK: usize = 128;
    if values.len() > BLOCK {
        let half = values.len() / 2 / 8 * 8;
        return pairwise_sum(&values[..half]) + pairwise_sum(&values[half..]);
    }
    let (eights, rest) = values.as_chunks::<8>();
    let lanes =
        eights.iter().fold([0.0; 8], |sums: [f64; 8], next| std::array::from_fn(|lane| sums[lane] + next[lane]));
    let [a, b, c, d, e, f, g, h] = lanes;
    rest.iter().fold(((a + b) + (c + d)) + ((e + f) + (g + h)), |sum, value| sum + value)
}
