//! Execution traces of distributed machine learning in MLCommons' Chakra format (Sridharan et al., "Chakra: Advancing
//! Performance Benchmarking and Co-design using Standardized Execution Traces", arXiv:2305.14516; schema
//! `schema/protobuf/et_def.proto`, github.com/mlcommons/chakra): one file for each rank.
//!
//! A file is a sequence of protobuf messages, each behind its length: the trace's metadata, then its nodes. A node
//! waits for the ends of its data and control dependencies. It is a computation of its duration, a send, a receive, or
//! a rank's part of a collective operation; nodes of memory, storage and metadata take their duration. Collective
//! operations become messages ([`collectives`]). The result is a schedule as [`goal`](crate::goal) has it.
//!
//! Traces that Chakra's converter makes of PyTorch's have the attribute `op_schema`. Their data dependencies are the
//! order of execution, and a control dependency names the caller of an operator, of which a part runs after its
//! callees; control dependencies are therefore not read in these traces. A communication node of a processor
//! (`is_cpu_op`) that names no operation is a call that starts one on a GPU, and counts as a computation.
//!
//! Attributes that are used: `comm_type`, `comm_size` (bytes that a rank brings, of a scatter those of the root),
//! `comm_src`, `comm_dst`, `comm_tag`, `pg_name` (the group; its members are the ranks that name it, all without it)
//! and `root` (a rank; the group's first without it). The k-th collective operation of a group is the same on all its
//! members. A computation that has operations (`num_ops`) and no duration is an error, as are dimensions of a group
//! (`involved_dim`) of which not all take part.

pub mod collectives;
mod schema;

use crate::ImportError;
use crate::goal::{GoalAction, GoalEnds, GoalOperation, GoalRequirement, GoalSchedule};
use crate::reader::FilePlace;
use collectives::{Collective, CollectiveAlgorithm, transfers};
use prost::Message;
use schema::{Attribute, AttributeValue, GlobalMetadata, TraceNode};
use std::collections::BTreeMap;

/// Most operations of all ranks.
const MOST_OPERATIONS: usize = 5_000_000;
/// Tags of messages between two nodes lie below this.
const FIRST_COLLECTIVE: u64 = 1 << 32;
/// Rounds of one collective operation, and parts of a message in a round, at most.
const ROUNDS: u64 = 1 << 22;

/// The trace of a rank: its file's name and bytes.
pub struct RankTrace {
    /// Name of the file, for errors.
    pub name: String,
    /// The content of the file.
    pub bytes: Vec<u8>,
}

/// A node at its place in the file.
struct PlacedNode {
    node: TraceNode,
    at: usize,
}

/// A rank's part of a collective operation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CollectivePart {
    rank: u32,
    at: usize,
    collective: Collective,
    bytes: u64,
    root: Option<u32>,
    /// The operations before all messages of the part and behind them.
    begins: u32,
    ends: u32,
}

/// Reads the traces of all ranks; collective operations take this algorithm. The places of operations are line 1 and
/// the byte of their node in its rank's file, counted from 1.
///
/// # Errors
/// When a trace is no sequence of messages, a node lacks an attribute or has one that is not modelled, a dependency
/// does not exist, or ranks do not agree on a message or a collective operation: with the place.
pub fn read(traces: &[RankTrace], algorithm: CollectiveAlgorithm) -> Result<GoalSchedule, ImportError> {
    let ranks = traces.len() as u32;
    let mut reading = Reading {
        schedule: GoalSchedule { ranks, ..GoalSchedule::default() },
        ends: GoalEnds::default(),
        traces,
        groups: BTreeMap::new(),
    };
    for rank in 0..ranks {
        reading.rank(rank)?;
    }
    reading.expand(algorithm)?;
    let Reading { mut schedule, ends, .. } = reading;
    let name = |rank: u32| traces[rank as usize].name.as_str();
    ends.join(&mut schedule, name)?;
    Ok(schedule)
}

struct Reading<'a> {
    schedule: GoalSchedule,
    ends: GoalEnds,
    traces: &'a [RankTrace],
    /// The parts of each group's collective operations, by rank in the order of its trace.
    groups: BTreeMap<String, BTreeMap<u32, Vec<CollectivePart>>>,
}

impl Reading<'_> {
    fn error(&self, rank: u32, at: usize, problem: impl Into<String>) -> ImportError {
        FilePlace { file: &self.traces[rank as usize].name, line: 1, column: at + 1 }.error(problem)
    }

    fn rank(&mut self, rank: u32) -> Result<(), ImportError> {
        let nodes = self.nodes(rank)?;
        // Where each node begins and ends, by its number.
        let mut operations: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
        for placed in &nodes {
            let ends = self.node(rank, placed)?;
            if operations.insert(placed.node.id, ends).is_some() {
                let problem = format!("there are two nodes {}: number each", placed.node.id);
                return Err(self.error(rank, placed.at, problem));
            }
        }
        let of_pytorch = nodes.iter().any(|placed| attribute(&placed.node, "op_schema").is_some());
        for PlacedNode { node, at } in &nodes {
            let (later, _) = operations[&node.id];
            let control = if of_pytorch { &[] } else { node.ctrl_deps.as_slice() };
            for before in control.iter().chain(&node.data_deps) {
                let Some((_, earlier)) = operations.get(before) else {
                    let problem = format!("node {} waits for node {before}, which is not there", node.id);
                    return Err(self.error(rank, *at, problem));
                };
                self.schedule.requirements.push(GoalRequirement { later, earlier: *earlier, start: false });
            }
        }
        Ok(())
    }

    /// The nodes of a rank's trace, behind its metadata.
    fn nodes(&self, rank: u32) -> Result<Vec<PlacedNode>, ImportError> {
        let bytes = self.traces[rank as usize].bytes.as_slice();
        let mut rest = bytes;
        let wrong = |at: usize, error: prost::DecodeError| {
            let at = at.min(bytes.len().saturating_sub(1));
            self.error(rank, at, format!("this is no message of a Chakra trace: {error}"))
        };
        if bytes.is_empty() {
            return Err(self.error(rank, 0, "the trace is empty: it begins with its metadata"));
        }
        GlobalMetadata::decode_length_delimited(&mut rest).map_err(|error| wrong(0, error))?;
        let mut nodes = vec![];
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            let node = TraceNode::decode_length_delimited(&mut rest).map_err(|error| wrong(at, error))?;
            nodes.push(PlacedNode { node, at });
        }
        Ok(nodes)
    }

    /// Adds an operation, which begins at a node's place.
    fn add(&mut self, rank: u32, at: usize, action: GoalAction) -> Result<u32, ImportError> {
        if self.schedule.operations.len() == MOST_OPERATIONS {
            let problem = format!("the traces make more than {MOST_OPERATIONS} operations: use smaller ones");
            return Err(self.error(rank, at, problem));
        }
        self.schedule.operations.push(GoalOperation { rank, action, place: (1, at + 1) });
        Ok(self.schedule.operations.len() as u32 - 1)
    }

    /// The next operation's number.
    fn next(&self) -> u32 {
        self.schedule.operations.len() as u32
    }

    fn require(&mut self, later: u32, earlier: u32) {
        self.schedule.requirements.push(GoalRequirement { later, earlier, start: false });
    }

    /// The operations of a node: the one that waits for its dependencies, and the one that others wait for.
    fn node(&mut self, rank: u32, PlacedNode { node, at }: &PlacedNode) -> Result<(u32, u32), ImportError> {
        let at = *at;
        match node.kind {
            5..=7 if is_call(node) => self.computation(rank, at, node),
            5 | 6 => {
                let peer = |name| self.needed(rank, at, node, name);
                let (own, other) = if node.kind == 5 { ("comm_src", "comm_dst") } else { ("comm_dst", "comm_src") };
                let (peer, bytes) = (peer(other)?, self.needed(rank, at, node, "comm_size")?);
                let tag = integer(node, "comm_tag").unwrap_or(0);
                if let Some(named) = integer(node, own).filter(|named| *named != u64::from(rank)) {
                    return Err(self.error(rank, at, format!("{own} is {named} in the trace of rank {rank}")));
                }
                if peer >= u64::from(self.schedule.ranks) {
                    let problem = format!("{other} is {peer}, and there are {} traces", self.schedule.ranks);
                    return Err(self.error(rank, at, problem));
                }
                if tag >= FIRST_COLLECTIVE {
                    return Err(self.error(rank, at, format!("comm_tag = {tag} has more than 32 bits")));
                }
                let (peer, end) = (peer as u32, (self.next(), bytes));
                let action = if node.kind == 5 {
                    self.ends.send(rank, peer, tag, end)
                } else {
                    self.ends.receive(rank, Some(peer), tag, end)
                };
                self.add(rank, at, action).map(|one| (one, one))
            }
            7 => self.part(rank, at, node),
            _ => self.computation(rank, at, node),
        }
    }

    /// A computation of a node's duration.
    fn computation(&mut self, rank: u32, at: usize, node: &TraceNode) -> Result<(u32, u32), ImportError> {
        let micros = node.duration_micros;
        if micros == 0 && integer(node, "num_ops").is_some_and(|operations| operations > 0) {
            let problem = format!("node {} has num_ops and no duration_micros: give it one", node.id);
            return Err(self.error(rank, at, problem));
        }
        let Some(ns) = micros.checked_mul(1000).filter(|ns| *ns <= crate::goal::MOST) else {
            return Err(self.error(rank, at, format!("{micros} us are too long for node {}", node.id)));
        };
        self.add(rank, at, GoalAction::Compute(ns)).map(|one| (one, one))
    }

    /// An attribute that a node needs.
    fn needed(&self, rank: u32, at: usize, node: &TraceNode, name: &str) -> Result<u64, ImportError> {
        let missing = || self.error(rank, at, format!("node {} has no attribute {name}, or none of 50 bits", node.id));
        integer(node, name).filter(|value| *value <= crate::goal::MOST).ok_or_else(missing)
    }

    /// A rank's part of a collective operation.
    fn part(&mut self, rank: u32, at: usize, node: &TraceNode) -> Result<(u32, u32), ImportError> {
        let kind = self.needed(rank, at, node, "comm_type")?;
        let collective = match kind {
            0 => Collective::AllReduce,
            1 => Collective::Reduce,
            2 => Collective::AllGather,
            3 => Collective::Gather,
            4 => Collective::Scatter,
            5 => Collective::Broadcast,
            6 => Collective::AllToAll,
            7 | 8 => Collective::ReduceScatter,
            9 => Collective::Barrier,
            _ => return Err(self.error(rank, at, format!("comm_type = {kind}: it is from 0 to 9"))),
        };
        if let Some(AttributeValue::Bools(dimensions)) = attribute(node, "involved_dim")
            && dimensions.values.contains(&false)
        {
            let problem = "involved_dim leaves a dimension out, which is not modelled: name the group in pg_name";
            return Err(self.error(rank, at, problem));
        }
        let bytes = if collective == Collective::Barrier { 0 } else { self.needed(rank, at, node, "comm_size")? };
        let root = integer(node, "root").map(|root| u32::try_from(root).unwrap_or(u32::MAX));
        let (begins, ends) = (self.add(rank, at, GoalAction::Compute(0))?, self.add(rank, at, GoalAction::Compute(0))?);
        self.require(ends, begins);
        let group = match attribute(node, "pg_name") {
            Some(AttributeValue::Text(name)) => name.clone(),
            _ => integer(node, "pg_name").map(|number| number.to_string()).unwrap_or_default(),
        };
        let part = CollectivePart { rank, at, collective, bytes, root, begins, ends };
        self.groups.entry(group).or_default().entry(rank).or_default().push(part);
        Ok((begins, ends))
    }

    /// Turns the collective operations of all groups into messages.
    fn expand(&mut self, algorithm: CollectiveAlgorithm) -> Result<(), ImportError> {
        let mut tag = FIRST_COLLECTIVE;
        for (name, mut members) in std::mem::take(&mut self.groups) {
            if name.is_empty() {
                (0..self.schedule.ranks).for_each(|rank| _ = members.entry(rank).or_default());
            }
            let most = members.values().map(Vec::len).max().unwrap_or(0);
            for nth in 0..most {
                let parts: Vec<Option<&CollectivePart>> = members.values().map(|parts| parts.get(nth)).collect();
                let first = parts.iter().flatten().next().expect("one member has so many");
                for (part, rank) in parts.iter().zip(members.keys()) {
                    let agrees = |part: &CollectivePart| {
                        (part.collective, part.bytes, part.root) == (first.collective, first.bytes, first.root)
                    };
                    match part {
                        Some(part) if agrees(part) => {}
                        Some(part) => {
                            let problem = format!("rank {} has another operation, size or root there", first.rank);
                            return Err(self.error(part.rank, part.at, problem));
                        }
                        None => {
                            let problem = format!("rank {rank} of the group has no such operation: it has {nth}");
                            return Err(self.error(first.rank, first.at, problem));
                        }
                    }
                }
                let parts: Vec<CollectivePart> = parts.into_iter().flatten().cloned().collect();
                self.collective(&parts, algorithm, tag)?;
                tag += ROUNDS;
            }
        }
        Ok(())
    }

    fn collective(
        &mut self,
        parts: &[CollectivePart],
        algorithm: CollectiveAlgorithm,
        tag: u64,
    ) -> Result<(), ImportError> {
        let CollectivePart { rank, at, collective, bytes, root, .. } = parts[0];
        let members = parts.len() as u32;
        let root = match root.map(|root| parts.iter().position(|part| part.rank == root)) {
            None => 0,
            Some(Some(member)) => member as u32,
            Some(None) => {
                return Err(self.error(rank, at, format!("root = {} is no member", root.unwrap_or_default())));
            }
        };
        let size = |chunk: u32| match collective {
            Collective::AllGather | Collective::Gather => u128::from(bytes) * u128::from(chunk),
            _ => u128::from(bytes) * u128::from(chunk) / u128::from(members),
        };
        // What each member has received in earlier rounds, and in this one.
        let mut received: Vec<Vec<u32>> = parts.iter().map(|part| vec![part.begins]).collect();
        let list = transfers(collective, algorithm, members, root);
        for (number, round) in list.chunk_by(|a, b| a.round == b.round).enumerate() {
            let mut new: Vec<Vec<u32>> = vec![vec![]; parts.len()];
            for transfer in round {
                let (from, to) = (&parts[transfer.from as usize], &parts[transfer.to as usize]);
                let bytes = (size(transfer.chunks.end) - size(transfer.chunks.start)) as u64;
                let tag = tag + number as u64;
                let action = self.ends.send(from.rank, to.rank, tag, (self.next(), bytes));
                let send = self.add(from.rank, from.at, action)?;
                let action = self.ends.receive(to.rank, Some(from.rank), tag, (self.next(), bytes));
                let receive = self.add(to.rank, to.at, action)?;
                for earlier in &received[transfer.from as usize] {
                    self.require(send, *earlier);
                }
                for earlier in &received[transfer.to as usize] {
                    self.require(receive, *earlier);
                }
                self.require(from.ends, send);
                self.require(to.ends, receive);
                new[transfer.to as usize].push(receive);
            }
            for (received, new) in received.iter_mut().zip(new).filter(|(_, new)| !new.is_empty()) {
                *received = new;
            }
        }
        Ok(())
    }
}

/// Whether a communication node is the call that starts an operation of another node.
fn is_call(node: &TraceNode) -> bool {
    attribute(node, "is_cpu_op") == Some(&AttributeValue::Bool(true))
        && ["comm_type", "comm_size"].iter().all(|name| attribute(node, name).is_none())
}

fn attribute<'a>(node: &'a TraceNode, name: &str) -> Option<&'a AttributeValue> {
    node.attributes.iter().find(|attribute| attribute.name == name).and_then(|Attribute { value, .. }| value.as_ref())
}

/// An attribute that is a whole number, not negative, of any of protobuf's types.
fn integer(node: &TraceNode, name: &str) -> Option<u64> {
    match *attribute(node, name)? {
        AttributeValue::Int32(value) | AttributeValue::Sint32(value) | AttributeValue::Sfixed32(value) => {
            u64::try_from(value).ok()
        }
        AttributeValue::Int64(value) | AttributeValue::Sint64(value) | AttributeValue::Sfixed64(value) => {
            u64::try_from(value).ok()
        }
        AttributeValue::Uint32(value) | AttributeValue::Fixed32(value) => Some(value.into()),
        AttributeValue::Uint64(value) | AttributeValue::Fixed64(value) => Some(value),
        AttributeValue::Bool(_) | AttributeValue::Bools(_) | AttributeValue::Text(_) => None,
    }
}
