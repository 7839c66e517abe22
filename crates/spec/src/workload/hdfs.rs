//! Files that are written into HDFS, as Hadoop's benchmark DFSIO does ("The Hadoop Distributed File System", MSST 2010,
//! sections II and III).
//!
//! All hosts are data nodes; writers take files by turns over racks and then hosts, all write at once, each its files
//! one after another. For a block the writer asks the name node, over connections that stay open, then sends the block
//! in chunks along the line of its replicas: a data node forwards each chunk when it has come. Each hop of a block is a
//! new connection, as in HDFS. The first replica is the writer's own and takes no network. The next block follows when
//! all replicas are complete.
//!
//! Not modelled: disks, the acknowledgements that go up the line, the report to the name node when a file is closed.

use super::message_graph::{MessageGraph, limit};
use super::placement::{Placement, PlacementKeys};
use super::{Expansion, FlowKeys, SharedKeys, Workload};
use crate::error::Problem;
use crate::expander::Expander;
use crate::host_name::HostName;
use firstlight_net::{Xoshiro256PlusPlus, uniform};
use firstlight_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A request to the name node and its reply, in bytes: the order of a remote call with a path and a list of hosts.
const REQUEST: u64 = 256;
const REPLY: u64 = 512;

/// Files are written with their replicas. It has jobs (see table `jobs` of results).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hdfs {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// How many files are written, by hosts in turn: over the racks, then over the hosts of each.
    #[serde(default = "files")]
    #[schemars(range(min = 1, max = 1_000_000), extend("x-of" = "files"))]
    pub files: u32,
    /// Size of each file.
    #[serde(default = "file_size")]
    pub file_size: Bytes,
    /// A file is written block after block of this size.
    #[serde(default = "block")]
    pub block: Bytes,
    /// The amount that a data node receives before it forwards it: a packet of HDFS.
    #[serde(default = "chunk")]
    pub chunk: Bytes,
    /// The hosts of replicas.
    #[serde(flatten)]
    pub placement: PlacementKeys,
    /// The host that is asked before each block, also a data node.
    #[serde(default = "name_node")]
    pub name_node: HostName,
    /// Each writer starts up to this much later, at a random time.
    #[serde(default)]
    pub jitter: Span,
    /// The unit that is a job.
    #[serde(default)]
    pub job: HdfsJob,
}

/// The unit that is a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HdfsJob {
    /// A file with all its blocks.
    #[default]
    File,
    /// A block, from the writer's question to the name node on.
    Block,
}

fn files() -> u32 {
    64
}

fn file_size() -> Bytes {
    Bytes::new(400_000_000)
}

fn block() -> Bytes {
    Bytes::new(128 << 20)
}

fn chunk() -> Bytes {
    Bytes::new(64 << 10)
}

fn name_node() -> HostName {
    HostName::Host(0)
}

/// A host that writes.
#[derive(Default)]
struct Writer {
    /// The connections to the name node and from it, unless the host is the name node.
    calls: Option<[u32; 2]>,
    /// How many blocks the host has written.
    blocks: usize,
    /// The last message of the last block.
    last: Option<u32>,
}

impl Workload for Hdfs {
    fn keys(&self) -> &dyn SharedKeys {
        &self.shared
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let name_node = self.name_node(expander)?;
        expander.starts(self.shared.common.start, self.jitter)?;
        let mut placement = Placement::of(&self.placement, expander)?;
        let (size, block, chunk) = (self.file_size.get(), self.block.get(), self.chunk.get());
        let hops = u64::from(self.files) * u64::from(self.placement.replication - 1);
        let chunks = (size / block) * block.div_ceil(chunk) + (size % block).div_ceil(chunk);
        let (blocks, messages) = (hops.saturating_mul(size.div_ceil(block)), hops.saturating_mul(chunks));
        limit(expander, if blocks > messages / 2 { "block" } else { "chunk" }, blocks, messages)?;
        let graph = MessageGraph::new(expander, &self.shared)?;
        let random = expander.random("jitter");
        let mut files = WrittenFiles { graph, keys: self, name_node, placement: &mut placement, random };
        let mut writers: BTreeMap<usize, Writer> = BTreeMap::new();
        let (racks, per_rack) = expander.directory.units();
        for file in 0..self.files as usize {
            let host = file % racks * per_rack + file / racks % per_rack;
            files.write(host, writers.entry(host).or_default());
        }
        files.graph.expansion()
    }
}

impl Hdfs {
    fn name_node(&self, expander: &Expander<'_>) -> Result<usize, Box<Problem>> {
        let &[host] = expander.hosts("name_node", self.name_node)?.as_slice() else {
            return Err(expander.problem("name_node", "it is one host: write for example \"host0\""));
        };
        if self.chunk > self.block {
            let (chunk, block) = (self.chunk.get(), self.block.get());
            let text = format!("a chunk of {chunk} B is larger than a block of {block} B: use at most that");
            return Err(expander.problem("chunk", text));
        }
        Ok(host)
    }
}

/// Files in the writing.
struct WrittenFiles<'a> {
    graph: MessageGraph<'a>,
    keys: &'a Hdfs,
    name_node: usize,
    placement: &'a mut Placement,
    random: Xoshiro256PlusPlus,
}

impl WrittenFiles<'_> {
    /// One file, after those that the same host has written.
    fn write(&mut self, host: usize, writer: &mut Writer) {
        let mut left = self.keys.file_size.get();
        let mut job = None;
        while left > 0 {
            let block = left.min(self.keys.block.get());
            let job = match self.keys.job {
                HdfsJob::File => *job.get_or_insert_with(|| self.graph.job(left)),
                HdfsJob::Block => self.graph.job(block),
            };
            left -= block;
            if writer.blocks == 0 {
                writer.last = self.begin(job);
            }
            let granted = self.ask(host, writer, job);
            let replicas = self.placement.hosts(host, writer.blocks);
            writer.last = Some(self.write_block(&replicas, block, job, granted));
            writer.blocks += 1;
        }
    }

    /// The moment at which a writer starts, if that is not the workload's start.
    fn begin(&mut self, job: u32) -> Option<u32> {
        let jitter = self.keys.jitter.as_ps();
        (jitter > 0).then(|| {
            let later = Span::from_ps(uniform(&mut self.random, jitter));
            self.graph.wait_until(self.keys.shared.common.start + later, job)
        })
    }

    /// Asks the name node for a block's hosts. Returns the reply, or the message that the block depends on where asking
    /// takes no network.
    fn ask(&mut self, host: usize, writer: &mut Writer, job: u32) -> Option<u32> {
        if host == self.name_node {
            return writer.last;
        }
        let ends = [(host, self.name_node), (self.name_node, host)];
        let [forward, reverse] = *writer.calls.get_or_insert_with(|| ends.map(|pair| self.graph.connection(pair)));
        let request = self.graph.send(forward, REQUEST, job, writer.last.as_slice());
        Some(self.graph.send(reverse, REPLY, job, &[request]))
    }

    /// Sends a block along its replicas, chunk by chunk. Returns the message with which all of them have it.
    fn write_block(&mut self, replicas: &[usize], block: u64, job: u32, granted: Option<u32>) -> u32 {
        let hops: Vec<u32> = replicas.windows(2).map(|pair| self.graph.connection((pair[0], pair[1]))).collect();
        let (mut left, mut last) = (block, granted);
        while left > 0 {
            let bytes = left.min(self.keys.chunk.get());
            left -= bytes;
            last = granted;
            for hop in &hops {
                last = Some(self.graph.send(*hop, bytes, job, last.as_slice()));
            }
        }
        last.expect("a block has a chunk and a hop")
    }
}
