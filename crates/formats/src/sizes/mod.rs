//! Flow sizes: cumulative distributions, piecewise linear in bytes, and those of published measurements.
//!
//! Between two points a size is uniform: the distribution is interpolated linearly in bytes, not in their logarithm,
//! like in the simulators that these tables come from. A point that repeats the size before it is a step: that part of
//! the flows has exactly this size. Sampling inverts the distribution with integers, so that a seed gives the same
//! sizes on every machine, and the mean is exact.
//!
//! Mean sizes of the built-in distributions: `data-mining` 7,470 kB, `web-search` 1,666 kB, `hadoop` 120 kB,
//! `cache-follower` 911 kB, `storage` 40.9 kB. DX (Lee et al., USENIX ATC 2015, section 6.3) describes two of them:
//!
//! - `data-mining` is the published table. 80 % of flows are below 10.3 kB (DX: 10 kB), 96 % of bytes are of flows
//!   above 30 MB (DX: 95 %), and the mean is 0.2 % above DX's 7,452 kB.
//! - `web-search` differs from DX's, whose mean is 654 kB with more than 95 % of bytes in flows below 20 MB (here
//!   79 %). No published table of that name has such a mean, and DX does not print its own. At the same load, this
//!   distribution starts 2.5 times fewer flows in a second.

use crate::cdf;
use firstlight_net::interface::uniform;
use firstlight_units::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::OnceLock;

/// The number of parts that stands for all flows.
pub const WHOLE: u64 = 1_000_000_000_000;

/// Payload of a packet in tables that count packets.
const PACKET: Bytes = Bytes::new(1460);
const BYTE: Bytes = Bytes::new(1);

const TABLES: [(&str, &str, Bytes); 5] = [
    ("web-search", include_str!("web_search.txt"), PACKET),
    ("data-mining", include_str!("data_mining.txt"), PACKET),
    ("hadoop", include_str!("hadoop.txt"), BYTE),
    ("cache-follower", include_str!("cache_follower.txt"), PACKET),
    ("storage", include_str!("storage.txt"), BYTE),
];

/// Names of the built-in distributions.
pub const NAMES: [&str; 5] = [TABLES[0].0, TABLES[1].0, TABLES[2].0, TABLES[3].0, TABLES[4].0];

/// A point of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Flow size.
    pub size: Bytes,
    /// Flows that are not larger, in parts of [`WHOLE`].
    pub below: u64,
}

/// A distribution of flow sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cdf {
    points: Vec<Point>,
}

impl Cdf {
    /// A distribution through these points; flows below the first point have exactly its size. `None` when sizes or
    /// parts decrease, when the last point does not have all flows, or when no flow has a byte.
    pub fn new(points: Vec<Point>) -> Option<Self> {
        let grows = points.windows(2).all(|pair| pair[0].size <= pair[1].size && pair[0].below <= pair[1].below);
        let last = points.last()?;
        (grows && last.below == WHOLE && last.size > Bytes::new(0)).then_some(Cdf { points })
    }

    /// A distribution in which every flow has this size.
    pub fn fixed(size: Bytes) -> Self {
        Cdf { points: vec![Point { size, below: WHOLE }] }
    }

    /// The built-in distribution of that name, one of [`NAMES`].
    pub fn built_in(name: &str) -> Option<&'static Self> {
        static ALL: OnceLock<Vec<Cdf>> = OnceLock::new();
        let read =
            |(name, text, unit): &(&str, &str, Bytes)| cdf::read(text, name, *unit).expect("a table in the tree");
        let all = ALL.get_or_init(|| TABLES.iter().map(read).collect());
        NAMES.iter().position(|known| *known == name).map(|index| &all[index])
    }

    /// The uniform parts of the distribution by their ends: the first point, then each pair of neighbours.
    fn pieces(&self) -> impl Iterator<Item = (Point, Point)> {
        let first = self.points[0];
        let step = (Point { size: first.size, below: 0 }, first);
        std::iter::once(step).chain(self.points.windows(2).map(|pair| (pair[0], pair[1])))
    }

    /// The mean size in bytes.
    pub fn mean(&self) -> f64 {
        let twice: u128 = self
            .pieces()
            .map(|(a, b)| u128::from(b.below - a.below) * (u128::from(a.size.get()) + u128::from(b.size.get())))
            .sum();
        twice as f64 / (2.0 * WHOLE as f64)
    }

    /// The size below which `part` of [`WHOLE`] flows are; at least one byte. It is taken in the middle of a part, so
    /// that rounding to whole bytes does not change the mean.
    fn at(&self, part: u64) -> Bytes {
        let piece = self.points.partition_point(|point| point.below <= part);
        let b = self.points[piece.min(self.points.len() - 1)];
        let a = if piece == 0 { Point { size: b.size, below: 0 } } else { self.points[piece - 1] };
        let parts = u128::from(b.below - a.below);
        let within = u128::from(part - a.below);
        let more = (u128::from(b.size.get() - a.size.get()) * (2 * within + 1) + parts) / (2 * parts);
        Bytes::new((a.size.get() + more as u64).max(1))
    }

    /// Draws a size from a random stream.
    pub fn sample(&self, stream: &mut Xoshiro256PlusPlus) -> Bytes {
        self.at(uniform(stream, WHOLE))
    }

    /// The part of flows that are not larger than `size`, 0 to 1.
    pub fn share(&self, size: Bytes) -> f64 {
        let piece = self.points.partition_point(|point| point.size <= size);
        let (Some(a), Some(b)) = (piece.checked_sub(1).map(|a| self.points[a]), self.points.get(piece)) else {
            return if piece == 0 { 0.0 } else { 1.0 };
        };
        let along = (size.get() - a.size.get()) as f64 / (b.size.get() - a.size.get()) as f64;
        (a.below as f64 + along * (b.below - a.below) as f64) / WHOLE as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    fn named(name: &str) -> &'static Cdf {
        Cdf::built_in(name).unwrap()
    }

    /// The part of all bytes that is in flows up to a size, summed over a fine grid of equal parts.
    fn bytes_below(cdf: &Cdf, size: u64) -> f64 {
        let sizes = (0..1_000_000u64).map(|k| cdf.at(k * (WHOLE / 1_000_000) + WHOLE / 2_000_000).get());
        let (below, all) = sizes.fold((0, 0), |(below, all), s| (below + if s <= size { s } else { 0 }, all + s));
        below as f64 / all as f64
    }

    #[test]
    fn means_are_those_computed_by_hand() {
        let means = NAMES.map(|name| named(name).mean());
        assert_eq!(means, [1_665_830.8, 7_470_236.0, 120_420.75, 910_682.3, 40_869.8]);
    }

    #[test]
    fn the_table_of_the_documentation_holds() {
        let mining = named("data-mining");
        assert_eq!(mining.share(Bytes::new(10_220)), 0.8);
        assert!((mining.mean() / 7_452e3 - 1.0).abs() < 0.003);
        assert!((1.0 - bytes_below(mining, 30_000_000) - 0.960).abs() < 0.001);
        assert!((bytes_below(named("web-search"), 20_000_000) - 0.791).abs() < 0.001);
    }

    /// Kolmogorov-Smirnov test: the largest distance between the empirical distribution of n draws and the true one
    /// exceeds 1.95 / sqrt(n) once in a thousand. Steps count from both sides.
    #[test]
    fn draws_follow_the_table() {
        const DRAWS: usize = 100_000;
        for name in NAMES {
            let cdf = named(name);
            let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
            let mut sizes: Vec<Bytes> = (0..DRAWS).map(|_| cdf.sample(&mut random)).collect();
            sizes.sort_unstable();
            let distance = |(k, size): (usize, &Bytes)| {
                let last = sizes.get(k + 1).is_none_or(|next| next > size);
                if last { (cdf.share(*size) - (k + 1) as f64 / DRAWS as f64).abs() } else { 0.0 }
            };
            let largest = sizes.iter().enumerate().map(distance).fold(0.0, f64::max);
            assert!(largest < 1.95 / (DRAWS as f64).sqrt(), "{name}: {largest}");
        }
    }

    #[test]
    fn the_ends_of_a_distribution() {
        let cdf = named("web-search");
        assert_eq!(cdf.at(0), Bytes::new(6 * 1460), "the smallest flows are one size");
        assert_eq!(cdf.at(WHOLE * 15 / 100 - 1), Bytes::new(6 * 1460));
        assert_eq!(cdf.at(WHOLE - 1), Bytes::new(20_000 * 1460));
        assert_eq!(named("hadoop").at(0), Bytes::new(1), "an empty flow is none");
        let step = Cdf::new(vec![
            Point { size: Bytes::new(7), below: WHOLE / 2 },
            Point { size: Bytes::new(9), below: WHOLE },
        ]);
        let step = step.unwrap();
        assert_eq!(
            (step.at(WHOLE / 2 - 1), step.share(Bytes::new(6)), step.share(Bytes::new(7))),
            (Bytes::new(7), 0.0, 0.5)
        );
        assert_eq!(step.mean(), 0.5 * 7.0 + 0.5 * 8.0);
        assert_eq!(Cdf::fixed(Bytes::new(5)).at(WHOLE - 1), Bytes::new(5));
        assert!(Cdf::new(vec![]).is_none());
        assert!(Cdf::new(vec![Point { size: Bytes::new(7), below: 3 }]).is_none());
    }
}
