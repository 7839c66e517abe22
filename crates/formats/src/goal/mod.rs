//! Schedules of message-passing applications in GOAL (Hoefler, Siebert and Lumsdaine, "Group Operation Assembly
//! Language: a flexible way to express collective communication", ICPP 2009), in the forms of LogGOPSim and ATLAHS: the
//! text ([`read`]) and the binary file that LogGOPSim's `txt2bin` makes of it ([`read_binary`]).

mod binary;
mod text;

pub use binary::{is_binary, read_binary};
pub use text::read;

use super::ImportError;
use super::reader::FilePlace;
use std::collections::BTreeMap;

/// Largest message, longest computation in nanoseconds.
pub(crate) const MOST: u64 = 1 << 50;
/// The most ranks of a schedule.
const MOST_RANKS: u32 = 1 << 20;

/// Why a tag of any is refused.
const ANY_TAG: &str = "any tag (-1) is not modelled: name the tag";

/// The action of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalAction {
    /// Sends this number of bytes to a rank.
    Send(u64, u32),
    /// Receives the message of the send with this index.
    Receive(u32),
    /// Receives the message of a group that is the how many-th to arrive, counted from 1.
    ReceiveAny {
        /// Index in [`GoalSchedule::groups`].
        group: u32,
        /// How many messages of the group have arrived then.
        arrived: u32,
    },
    /// Computes for this number of nanoseconds.
    Compute(u64),
}

/// An operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoalOperation {
    /// The rank that does the operation.
    pub rank: u32,
    /// The rank's operations.
    pub action: GoalAction,
    /// Line and column of the operation in the file; of a binary file line 1 and the byte, counted from 1.
    pub place: (usize, usize),
}

/// A dependency between two operations of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoalRequirement {
    /// Index of the operation that waits.
    pub later: u32,
    /// Index of the operation that it waits for.
    pub earlier: u32,
    /// True if it waits for the start of the earlier operation, false for its end.
    pub start: bool,
}

/// The operations of all ranks, and their dependencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoalSchedule {
    /// How many ranks there are.
    pub ranks: u32,
    /// Operations of all ranks in the file's order.
    pub operations: Vec<GoalOperation>,
    /// Dependencies between operations of the same rank.
    pub requirements: Vec<GoalRequirement>,
    /// For each rank and tag that receives from any rank, the operations that send to it.
    pub groups: Vec<Vec<u32>>,
}

/// The rank and tag that receive from any rank.
type AnyChannel = (u32, u64);

/// Source, destination, tag.
type Channel = (u32, u32, u64);
/// An operation with its bytes.
type GoalEnd = (u32, u64);

/// The sends and receives that are to be joined.
#[derive(Default)]
pub(crate) struct GoalEnds {
    sends: BTreeMap<Channel, Vec<GoalEnd>>,
    receives: BTreeMap<Channel, Vec<GoalEnd>>,
    from_any: BTreeMap<AnyChannel, Vec<GoalEnd>>,
}

impl GoalEnds {
    /// Adds an operation that sends to a rank.
    pub(crate) fn send(&mut self, rank: u32, to: u32, tag: u64, end: GoalEnd) -> GoalAction {
        self.sends.entry((rank, to, tag)).or_default().push(end);
        GoalAction::Send(end.1, to)
    }

    /// A rank receives from a rank, or from any. `join` fills in what the operation receives.
    pub(crate) fn receive(&mut self, rank: u32, from: Option<u32>, tag: u64, end: GoalEnd) -> GoalAction {
        match from {
            Some(from) => self.receives.entry((from, rank, tag)).or_default().push(end),
            None => self.from_any.entry((rank, tag)).or_default().push(end),
        }
        GoalAction::Receive(u32::MAX)
    }

    /// Joins each receive with its send, or with all that may be its send; `file` is the name of each rank's file.
    pub(crate) fn join<'a>(
        mut self,
        schedule: &mut GoalSchedule,
        file: impl Fn(u32) -> &'a str,
    ) -> Result<(), ImportError> {
        let file = &file;
        self.join_any(schedule, file)?;
        let operations = &mut schedule.operations;
        let channels: Vec<Channel> = self.sends.keys().chain(self.receives.keys()).copied().collect();
        for channel in channels {
            let (src, dst, tag) = channel;
            let sends = self.sends.remove(&channel).unwrap_or_default();
            let receives = self.receives.remove(&channel).unwrap_or_default();
            for (send, receive) in sends.iter().zip(&receives) {
                has_room(operations, file, *send, *receive)?;
                operations[receive.0 as usize].action = GoalAction::Receive(send.0);
            }
            if let Some((send, _)) = sends.get(receives.len()) {
                let problem = format!("no operation receives it: write recv from {src} tag {tag} in rank {dst}");
                return Err(wrong(&operations[*send as usize], file, problem));
            }
            if let Some((receive, _)) = receives.get(sends.len()) {
                let problem = format!("no operation sends it: write send to {dst} tag {tag} in rank {src}");
                return Err(wrong(&operations[*receive as usize], file, problem));
            }
        }
        Ok(())
    }

    /// Takes out the sends that any receive may take, and joins them with these.
    fn join_any<'a>(&mut self, schedule: &mut GoalSchedule, file: &impl Fn(u32) -> &'a str) -> Result<(), ImportError> {
        let operations = &mut schedule.operations;
        let mut sends: BTreeMap<AnyChannel, Vec<GoalEnd>> = BTreeMap::new();
        let from_any = std::mem::take(&mut self.from_any);
        self.sends.retain(|(_, dst, tag), ends| {
            let taken = from_any.contains_key(&(*dst, *tag));
            if taken {
                sends.entry((*dst, *tag)).or_default().append(ends);
            }
            !taken
        });
        if let Some((&(_, dst, tag), ends)) =
            self.receives.iter().find(|((_, dst, tag), _)| from_any.contains_key(&(*dst, *tag)))
        {
            let problem =
                format!("rank {dst} receives tag {tag} from any rank, too: use two tags, or name all sources");
            return Err(wrong(&operations[ends[0].0 as usize], file, problem));
        }
        for ((rank, tag), receives) in from_any {
            let mut sends = sends.remove(&(rank, tag)).unwrap_or_default();
            sends.sort_unstable();
            let largest = sends.iter().copied().max_by_key(|(send, bytes)| (*bytes, std::cmp::Reverse(*send)));
            if let Some((send, _)) = sends.get(receives.len()) {
                let problem =
                    format!("no operation receives it: write recv from any tag {tag} in rank {rank} once more");
                return Err(wrong(&operations[*send as usize], file, problem));
            }
            if let Some((receive, _)) = receives.get(sends.len()) {
                let problem = format!("no operation sends it: write send to {rank} tag {tag} in another rank");
                return Err(wrong(&operations[*receive as usize], file, problem));
            }
            let group = schedule.groups.len() as u32;
            for (nth, receive) in receives.iter().enumerate() {
                has_room(operations, file, largest.expect("there are as many sends"), *receive)?;
                operations[receive.0 as usize].action = GoalAction::ReceiveAny { group, arrived: nth as u32 + 1 };
            }
            schedule.groups.push(sends.into_iter().map(|(send, _)| send).collect());
        }
        Ok(())
    }
}

/// An error at an operation.
fn wrong<'a>(operation: &GoalOperation, file: &impl Fn(u32) -> &'a str, problem: String) -> ImportError {
    let (line, column) = operation.place;
    FilePlace { file: file(operation.rank), line, column }.error(problem)
}

/// Checks that a receive holds what is sent to it.
fn has_room<'a>(
    operations: &[GoalOperation],
    file: &impl Fn(u32) -> &'a str,
    (send, sent): GoalEnd,
    (receive, room): GoalEnd,
) -> Result<(), ImportError> {
    if sent <= room {
        return Ok(());
    }
    let GoalOperation { rank, place: (line, column), .. } = operations[send as usize];
    let problem =
        format!("{room} bytes do not hold the {sent} that rank {rank} sends at {line}:{column}: receive as many");
    Err(wrong(&operations[receive as usize], file, problem))
}
