//! Files that are written into HDFS, as Hadoop's benchmark DFSIO does ("The Hadoop Distributed File System", MSST 2010,
//! sections II and III).
//!
//! All hosts are data nodes; writers take files by turns over racks and then hosts, all write at once, each its files
//! one after another. For a block the writer asks the name node, over connections that stay open, then sends the
//! block in chunks along the line of its replicas: a data node forwards each chunk when it has come. Each hop of a block is
//! a new connection, as in HDFS. The first replica is the writer's own and takes no network. The next block follows when
//! all replicas are complete.
//!
//! Not modelled: disks, the acknowledgements that go up the line, the report to the name node when a file is closed.

use super::super::error::Problem;
use super::super::flows::Table;
use super::Made;
use super::placement::Placement;
use super::work::{Work, limit};
use std::collections::BTreeMap;

/// A request to the name node and its reply, in bytes: the order of a remote call with a path and a list of hosts.
const REQUEST: u64 = 256;
const REPLY: u64 = 512;

/// What is written.
struct Files {
    count: usize,
    size: u64,
    block: u64,
    chunk: u64,
    name_node: usize,
}

/// A host that writes.
#[derive(Default)]
struct Writer {
    /// Its connections to the name node and back, unless it is there itself.
    calls: Option<[u32; 2]>,
    /// Blocks that it has written,
    blocks: usize,
    /// and the last message of the last one.
    last: Option<u32>,
}

/// The connections and messages.
pub(super) fn expand(table: &Table<'_>) -> Result<Made, Box<Problem>> {
    let files = files(table)?;
    let mut placement = Placement::of(table)?;
    let replication = table.values.integer(&table.path("replication"));
    let hops = files.count as u64 * (replication - 1);
    let chunks = (files.size / files.block) * files.block.div_ceil(files.chunk)
        + (files.size % files.block).div_ceil(files.chunk);
    let (blocks, messages) = (hops.saturating_mul(files.size.div_ceil(files.block)), hops.saturating_mul(chunks));
    limit(table, if blocks > messages / 2 { "block" } else { "chunk" }, blocks, messages)?;
    let mut work = Work::new(table)?;
    let mut writers: BTreeMap<usize, Writer> = BTreeMap::new();
    let (per_rack, racks) = (table.shape.per_rack(), table.shape.hosts / table.shape.per_rack());
    for file in 0..files.count {
        let host = file % racks * per_rack + file / racks % per_rack;
        write_file(&mut work, &files, &mut placement, host, writers.entry(host).or_default());
    }
    work.made()
}

fn files(table: &Table<'_>) -> Result<Files, Box<Problem>> {
    let values = table.values;
    let bytes = |key: &str| values.size(&table.path(key)).get();
    let files = Files {
        count: values.integer(&table.path("files")) as usize,
        size: bytes("file_size"),
        block: bytes("block"),
        chunk: bytes("chunk"),
        name_node: table.hosts("name_node")?[0],
    };
    if table.hosts("name_node")?.len() != 1 {
        return Err(table.problem("name_node", "it is one host: write for example \"host0\""));
    }
    if files.chunk > files.block {
        let text =
            format!("a chunk of {} B is larger than a block of {} B: use at most that", files.chunk, files.block);
        return Err(table.problem("chunk", text));
    }
    Ok(files)
}

/// One file, after those that the same host has written.
fn write_file(work: &mut Work<'_>, files: &Files, placement: &mut Placement, host: usize, writer: &mut Writer) {
    let job = work.job(files.size);
    let mut left = files.size;
    while left > 0 {
        let block = left.min(files.block);
        left -= block;
        let granted = ask(work, files, host, writer, job);
        let replicas = placement.hosts(host, writer.blocks);
        writer.last = Some(write_block(work, &replicas, [block, files.chunk], job, granted));
        writer.blocks += 1;
    }
}

/// Asks the name node for a block's hosts; tells the reply, or what the block comes after where that takes no network.
fn ask(work: &mut Work<'_>, files: &Files, host: usize, writer: &mut Writer, job: u32) -> Option<u32> {
    if host == files.name_node {
        return writer.last;
    }
    let [there, back] = *writer
        .calls
        .get_or_insert_with(|| [(host, files.name_node), (files.name_node, host)].map(|pair| work.connection(pair)));
    let request = work.send(there, REQUEST, job, writer.last.as_slice());
    Some(work.send(back, REPLY, job, &[request]))
}

/// Sends a block along its replicas, chunk by chunk; tells the message with which all of them have it.
fn write_block(
    work: &mut Work<'_>,
    replicas: &[usize],
    [block, chunk]: [u64; 2],
    job: u32,
    granted: Option<u32>,
) -> u32 {
    let hops: Vec<u32> = replicas.windows(2).map(|pair| work.connection((pair[0], pair[1]))).collect();
    let (mut left, mut last) = (block, granted);
    while left > 0 {
        let bytes = left.min(chunk);
        left -= bytes;
        last = granted;
        for hop in &hops {
            last = Some(work.send(*hop, bytes, job, last.as_slice()));
        }
    }
    last.expect("a block has a chunk and a hop")
}
