//! Writes a schedule: exchanges of messages and computations, one after another, each rank at its own pace.

use super::MOST_OPERATIONS;
use std::fmt::Write;

/// A message: source rank, destination rank, bytes.
pub type RankMessage = (u32, u32, u64);

/// A rank's operations, in GOAL's text form.
#[derive(Clone, Default)]
struct Rank {
    text: String,
    /// How many operations the rank has, which is the label of the last one.
    operations: u32,
    /// Labels of the operations that the next operations wait for.
    last: Vec<u32>,
}

impl Rank {
    /// Adds operations that wait for all of the last operations.
    fn then(&mut self, operations: &[String]) {
        if self.last.len() > 1 {
            // One operation that waits for all of the last ones, instead of an edge for each pair.
            self.add(&["calc 0".to_owned()]);
        }
        self.add(operations);
    }

    fn add(&mut self, operations: &[String]) {
        let first = self.operations + 1;
        for operation in operations {
            self.operations += 1;
            let label = self.operations;
            writeln!(self.text, "l{label}: {operation}").expect("a String takes all");
            for earlier in &self.last {
                writeln!(self.text, "l{label} requires l{earlier}").expect("a String takes all");
            }
        }
        self.last = (first..=self.operations).collect();
    }
}

/// Collects the operations of all ranks.
pub struct ScheduleWriter {
    ranks: Vec<Rank>,
    /// How many sends, receives and computations there are, at most [`MOST_OPERATIONS`].
    operations: usize,
    /// Whether operations were left out because there would be too many.
    full: bool,
}

impl ScheduleWriter {
    /// A schedule of `ranks` ranks, all without operations.
    pub fn new(ranks: u32) -> Self {
        ScheduleWriter { ranks: vec![Rank::default(); ranks as usize], operations: 0, full: false }
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// Whether operations were left out because there would be more than [`MOST_OPERATIONS`].
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Counts operations that are to be added; false, and then for all later ones, if they would be too many.
    fn has_room(&mut self, operations: usize) -> bool {
        self.operations += operations;
        self.full |= self.operations > MOST_OPERATIONS;
        !self.full
    }

    /// Exchanges messages, all at once. A rank continues when it has sent its own and received those sent to it; a rank
    /// without messages does not wait. Empty messages, and those to the sender itself, are left out.
    pub fn exchange(&mut self, messages: impl IntoIterator<Item = RankMessage>) {
        if self.full {
            return;
        }
        let sent = messages.into_iter().filter(|(src, dst, bytes)| src != dst && *bytes > 0);
        let messages: Vec<RankMessage> = sent.take(MOST_OPERATIONS / 2 + 1).collect();
        if !self.has_room(2 * messages.len()) {
            return;
        }
        let mut begun = vec![vec![]; self.ranks.len()];
        for (src, dst, bytes) in messages {
            begun[src as usize].push(format!("send {bytes}b to {dst} tag 0"));
            begun[dst as usize].push(format!("recv {bytes}b from {src} tag 0"));
        }
        for (rank, operations) in self.ranks.iter_mut().zip(&begun) {
            if !operations.is_empty() {
                rank.then(operations);
            }
        }
    }

    /// Lets every rank compute.
    pub fn compute(&mut self, nanoseconds: u64) {
        self.compute_on(0..self.ranks(), nanoseconds);
    }

    /// Lets some ranks compute; a computation of 0 ns is left out.
    pub fn compute_on(&mut self, ranks: impl IntoIterator<Item = u32>, nanoseconds: u64) {
        let operation = [format!("calc {nanoseconds}")];
        for rank in ranks {
            if nanoseconds > 0 && self.has_room(1) {
                self.ranks[rank as usize].then(&operation);
            }
        }
    }

    /// Lets each rank send `bytes` bytes to each other rank, all at once, to the next rank first.
    pub fn all_to_all(&mut self, bytes: u64) {
        let ranks = self.ranks();
        self.exchange((1..ranks).flat_map(|step| (0..ranks).map(move |src| (src, (src + step) % ranks, bytes))));
    }

    /// Sums a small vector of `bytes` bytes over all ranks, whose number is a power of two, by recursive doubling: in
    /// round k ranks at distance 2^k exchange all of it (Thakur, Rabenseifner and Gropp, "Optimization of collective
    /// communication operations in MPICH", IJHPCA 19(1), 2005).
    pub fn all_reduce_doubling(&mut self, bytes: u64) {
        self.sum_within(self.ranks(), bytes);
    }

    /// Sums a small vector of `bytes` bytes within each group of `count` neighbouring ranks, by recursive doubling.
    pub fn sum_within(&mut self, count: u32, bytes: u64) {
        let mut distance = 1;
        while distance < count {
            self.exchange((0..self.ranks()).map(|rank| (rank, rank ^ distance, bytes)));
            distance *= 2;
        }
    }

    /// Sums a large vector of `bytes` bytes over all ranks in a ring: its parts go round once to be reduced and once to
    /// be gathered (Thakur, Rabenseifner and Gropp).
    pub fn all_reduce_ring(&mut self, bytes: u64) {
        let ranks = self.ranks();
        for _ in 0..2 * (ranks - 1) {
            self.exchange((0..ranks).map(|rank| (rank, (rank + 1) % ranks, bytes.div_ceil(ranks.into()))));
        }
    }

    /// The schedule as the text of a file.
    pub fn text(&self) -> String {
        let mut text = format!("num_ranks {}\n", self.ranks.len());
        for (number, rank) in self.ranks.iter().enumerate() {
            write!(text, "rank {number} {{\n{}}}\n", rank.text).expect("a String takes all");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_waits_for_all_of_the_one_before() {
        let mut schedule = ScheduleWriter::new(3);
        schedule.exchange([(0, 1, 8), (0, 2, 8)]);
        schedule.compute_on([0], 5);
        schedule.exchange([(1, 0, 4), (1, 1, 4), (0, 2, 0)]);
        let first = "l1: send 8b to 1 tag 0\nl2: send 8b to 2 tag 0\nl3: calc 0\nl3 requires l1\nl3 requires l2\n";
        let expected = format!(
            "num_ranks 3\nrank 0 {{\n{first}\
             l4: calc 5\nl4 requires l3\nl5: recv 4b from 1 tag 0\nl5 requires l4\n}}\n\
             rank 1 {{\nl1: recv 8b from 0 tag 0\nl2: send 4b to 0 tag 0\nl2 requires l1\n}}\n\
             rank 2 {{\nl1: recv 8b from 0 tag 0\n}}\n"
        );
        assert_eq!(schedule.text(), expected);
    }
}
