//! Collective operations as rounds of messages between the members of a group.
//!
//! A buffer has as many chunks as the group has members; a message carries some consecutive ones. Within a round all
//! messages are sent at once; a member begins a round when it has received all that the rounds before brought it.
//!
//! | operation | ring | tree | halving-doubling |
//! |---|---|---|---|
//! | all-reduce | reduce-scatter, all-gather | reduce, broadcast | recursive halving, recursive doubling |
//! | reduce-scatter | ring | reduce, scatter | recursive halving |
//! | all-gather | ring | gather, broadcast | recursive doubling |
//!
//! Reduce, broadcast, gather and scatter take the binomial tree, all-to-all sends each pair its chunk directly, and a
//! barrier is the dissemination barrier, whatever the algorithm.
//!
//! Sources: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2),
//! 2009 (ring); Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA
//! 19(1), 2005 (halving and doubling, binomial trees); Hensgen, Finkel and Manber, "Two Algorithms for Barrier
//! Synchronization", IJPP 17(1), 1988. Groups whose size is no power of two take the ring where the table says halving
//! or doubling: the folding of the members beyond the largest power of two is not modelled.

use std::ops::Range;

/// How collective operations are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveAlgorithm {
    /// Each member sends to the next one only.
    Ring,
    /// Binomial trees.
    Tree,
    /// Recursive halving and doubling.
    HalvingDoubling,
}

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// Each member has the reduced buffer.
    AllReduce,
    /// The root has the reduced buffer.
    Reduce,
    /// Each member has the chunks of all.
    AllGather,
    /// The root has the chunks of all.
    Gather,
    /// Each member has its chunk of the root's buffer.
    Scatter,
    /// Each member has the root's buffer.
    Broadcast,
    /// Each member has its chunk of every buffer.
    AllToAll,
    /// Each member has its chunk of the reduced buffer.
    ReduceScatter,
    /// Each member has come.
    Barrier,
}

/// A message of a collective operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The round, counted from 0.
    pub round: u32,
    /// The member that sends.
    pub from: u32,
    /// The member that receives.
    pub to: u32,
    /// The chunks that it carries; none for a signal.
    pub chunks: Range<u32>,
    /// Whether the receiver adds them to its own, instead of replacing these.
    pub reduces: bool,
}

/// The messages of a collective operation in a group of `members`, with its `root` where it has one, round by round.
pub fn transfers(collective: Collective, algorithm: CollectiveAlgorithm, members: u32, root: u32) -> Vec<Transfer> {
    let mut rounds = CollectiveRounds { members, root, list: vec![], round: 0 };
    let halves = algorithm == CollectiveAlgorithm::HalvingDoubling && members.is_power_of_two();
    let tree = algorithm == CollectiveAlgorithm::Tree;
    match collective {
        Collective::AllReduce if tree => {
            rounds.reduce();
            rounds.broadcast();
        }
        Collective::ReduceScatter if tree => {
            rounds.reduce();
            rounds.scatter();
        }
        Collective::AllGather if tree => {
            rounds.gather();
            rounds.broadcast();
        }
        Collective::AllReduce if halves => {
            rounds.halve();
            rounds.double();
        }
        Collective::ReduceScatter if halves => rounds.halve(),
        Collective::AllGather if halves => rounds.double(),
        Collective::AllReduce => {
            rounds.ring(true);
            rounds.ring(false);
        }
        Collective::ReduceScatter => rounds.ring(true),
        Collective::AllGather => rounds.ring(false),
        Collective::Reduce => rounds.reduce(),
        Collective::Gather => rounds.gather(),
        Collective::Scatter => rounds.scatter(),
        Collective::Broadcast => rounds.broadcast(),
        Collective::AllToAll => rounds.all_to_all(),
        Collective::Barrier => rounds.disseminate(),
    }
    rounds.list
}

struct CollectiveRounds {
    members: u32,
    root: u32,
    list: Vec<Transfer>,
    round: u32,
}

impl CollectiveRounds {
    fn send(&mut self, from: u32, to: u32, chunks: Range<u32>, reduces: bool) {
        self.list.push(Transfer { round: self.round, from, to, chunks, reduces });
    }

    /// Chunks go round, and are reduced on the way if wanted. Member i ends with chunk i reduced, or begins with it.
    fn ring(&mut self, reduces: bool) {
        let members = self.members;
        for step in 1..members {
            for from in 0..members {
                let chunk =
                    if reduces { (from + members - step) % members } else { (from + members + 1 - step) % members };
                self.send(from, (from + 1) % members, chunk..chunk + 1, reduces);
            }
            self.round += 1;
        }
    }

    /// Recursive halving: partners at half the distance each time keep half of what they had each.
    fn halve(&mut self) {
        let mut distance = self.members / 2;
        while distance > 0 {
            for from in 0..self.members {
                let to = from ^ distance;
                let first = to / distance * distance;
                self.send(from, to, first..first + distance, true);
            }
            self.round += 1;
            distance /= 2;
        }
    }

    /// Recursive doubling: partners at twice the distance each time have twice as much each.
    fn double(&mut self) {
        let mut distance = 1;
        while distance < self.members {
            for from in 0..self.members {
                let first = from / distance * distance;
                self.send(from, from ^ distance, first..first + distance, false);
            }
            self.round += 1;
            distance *= 2;
        }
    }

    /// The edges of the binomial tree, from the root's on: the distance from a parent to its child, and both, counted
    /// from the root.
    fn tree(&self) -> Vec<(u32, u32)> {
        let mut edges = vec![];
        let mut distance = self.members.next_power_of_two() / 2;
        while distance > 0 {
            let parents = (0..self.members).step_by(2 * distance as usize);
            edges.extend(parents.filter(|parent| parent + distance < self.members).map(|parent| (distance, parent)));
            distance /= 2;
        }
        edges
    }

    /// The member that stands `behind` places after the root.
    fn member(&self, behind: u32) -> u32 {
        (self.root + behind) % self.members
    }

    fn broadcast(&mut self) {
        self.down(CollectiveRounds::whole);
    }

    fn scatter(&mut self) {
        self.down(CollectiveRounds::below);
    }

    fn reduce(&mut self) {
        self.up(true, CollectiveRounds::whole);
    }

    fn gather(&mut self) {
        self.up(false, CollectiveRounds::below);
    }

    /// Every member sends all chunks.
    fn whole(&self, _distance: u32, _child: u32) -> Vec<Range<u32>> {
        std::iter::once(0..self.members).collect()
    }

    /// The chunks of a child and of all below it, counted from the root: two ranges where they go beyond the last.
    fn below(&self, distance: u32, child: u32) -> Vec<Range<u32>> {
        let (first, count) = (self.member(child), distance.min(self.members - child));
        let end = (first + count).min(self.members);
        [first..end, 0..first + count - end].into_iter().filter(|range| !range.is_empty()).collect()
    }

    /// Chunks go down the tree, the longest edges first.
    fn down(&mut self, chunks: impl Fn(&Self, u32, u32) -> Vec<Range<u32>>) {
        for level in self.tree().chunk_by(|a, b| a.0 == b.0) {
            for &(distance, parent) in level {
                let child = parent + distance;
                for range in chunks(self, distance, child) {
                    self.send(self.member(parent), self.member(child), range, false);
                }
            }
            self.round += 1;
        }
    }

    /// Chunks go up the tree, the shortest edges first.
    fn up(&mut self, reduces: bool, chunks: impl Fn(&Self, u32, u32) -> Vec<Range<u32>>) {
        for level in self.tree().chunk_by(|a, b| a.0 == b.0).rev() {
            for &(distance, parent) in level {
                let child = parent + distance;
                for range in chunks(self, distance, child) {
                    self.send(self.member(child), self.member(parent), range, reduces);
                }
            }
            self.round += 1;
        }
    }

    fn all_to_all(&mut self) {
        for distance in 1..self.members {
            for from in 0..self.members {
                let to = (from + distance) % self.members;
                self.send(from, to, to..to + 1, false);
            }
        }
    }

    fn disseminate(&mut self) {
        let mut distance = 1;
        while distance < self.members {
            for from in 0..self.members {
                self.send(from, (from + distance) % self.members, 0..0, false);
            }
            self.round += 1;
            distance *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALGORITHMS: [CollectiveAlgorithm; 3] =
        [CollectiveAlgorithm::Ring, CollectiveAlgorithm::Tree, CollectiveAlgorithm::HalvingDoubling];

    /// How often each member's contribution is in each chunk of each member.
    type Buffers = Vec<Vec<Vec<u32>>>;

    /// Buffers with a member's own contribution in the chunks that `has` names.
    fn buffers(members: u32, has: impl Fn(u32, u32) -> bool) -> Buffers {
        let own = |member: u32, chunk: u32| {
            (0..members).map(|other| u32::from(other == member && has(member, chunk))).collect::<Vec<u32>>()
        };
        (0..members).map(|member| (0..members).map(|chunk| own(member, chunk)).collect()).collect()
    }

    fn carry_out(mut buffers: Buffers, transfers: &[Transfer]) -> Buffers {
        for round in transfers.chunk_by(|a, b| a.round == b.round) {
            let before = buffers.clone();
            for Transfer { from, to, chunks, reduces, .. } in round {
                assert_ne!(from, to);
                for chunk in chunks.clone().map(|chunk| chunk as usize) {
                    let sent = &before[*from as usize][chunk];
                    let own = &mut buffers[*to as usize][chunk];
                    if *reduces {
                        own.iter_mut().zip(sent).for_each(|(own, sent)| *own += sent);
                    } else {
                        own.clone_from(sent);
                    }
                }
            }
        }
        buffers
    }

    /// Each contribution is where it belongs, once.
    #[test]
    fn data_arrive_where_they_belong() {
        for (members, algorithm) in (1..=17).flat_map(|members| ALGORITHMS.map(|algorithm| (members, algorithm))) {
            let root = members / 3;
            let of = |collective, has: &dyn Fn(u32, u32) -> bool| {
                carry_out(buffers(members, has), &transfers(collective, algorithm, members, root))
            };
            let all = vec![1; members as usize];
            let of_one = |one: u32| (0..members).map(|other| u32::from(other == one)).collect::<Vec<u32>>();
            let (reduced, anything) = (of(Collective::AllReduce, &|_, _| true), |_, _| true);
            assert!(reduced.iter().flatten().all(|chunk| *chunk == all), "{members} {algorithm:?}");
            assert!(of(Collective::Reduce, &anything)[root as usize].iter().all(|chunk| *chunk == all));
            let scattered = of(Collective::ReduceScatter, &anything);
            assert!((0..members as usize).all(|own| scattered[own][own] == all), "{members} {algorithm:?}");
            let gathered = of(Collective::AllGather, &|member, chunk| member == chunk);
            assert!(gathered.iter().all(|own| (0..members).all(|chunk| own[chunk as usize] == of_one(chunk))));
            let at_root = &of(Collective::Gather, &|member, chunk| member == chunk)[root as usize];
            assert!((0..members).all(|chunk| at_root[chunk as usize] == of_one(chunk)), "{members}");
            let sent = of(Collective::Broadcast, &|member, _| member == root);
            assert!(sent.iter().flatten().all(|chunk| *chunk == of_one(root)));
            let parts = of(Collective::Scatter, &|member, _| member == root);
            assert!((0..members as usize).all(|own| parts[own][own] == of_one(root)), "{members}");
        }
    }

    #[test]
    fn all_pairs_exchange_a_chunk_and_a_barrier_reaches_all() {
        for members in 1..=17u32 {
            let pairs = transfers(Collective::AllToAll, CollectiveAlgorithm::Ring, members, 0);
            assert_eq!(pairs.len() as u32, members * (members - 1));
            assert!(pairs.iter().all(|pair| pair.chunks == (pair.to..pair.to + 1) && pair.round == 0));
            // The members whose chunks each member has.
            let mut heard: Vec<Vec<bool>> =
                (0..members).map(|own| (0..members).map(|other| own == other).collect()).collect();
            let signals = transfers(Collective::Barrier, CollectiveAlgorithm::Tree, members, 0);
            for round in signals.chunk_by(|a, b| a.round == b.round) {
                let before = heard.clone();
                for Transfer { from, to, .. } in round {
                    let own = &mut heard[*to as usize];
                    own.iter_mut().zip(&before[*from as usize]).for_each(|(own, other)| *own |= other);
                }
            }
            assert!(heard.into_iter().flatten().all(|heard| heard), "{members}");
        }
    }

    /// Rounds, and chunks that each of eight members sends: 7 + 7 of one chunk; 3 + 3 of all; 4 + 2 + 1 twice.
    #[test]
    fn algorithms_differ_in_rounds_and_bytes() {
        let cost = |algorithm| {
            let list = transfers(Collective::AllReduce, algorithm, 8, 0);
            let last = list.last().map_or(0, |last| last.round + 1);
            (last, list.iter().map(|transfer| transfer.chunks.len()).sum::<usize>())
        };
        assert_eq!(ALGORITHMS.map(cost), [(14, 8 * 14), (6, 2 * 7 * 8), (6, 8 * 14)]);
    }
}
