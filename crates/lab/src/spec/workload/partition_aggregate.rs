//! Queries that are split and gathered over two levels, as in the study of TCP over Converged Enhanced Ethernet (Anghel,
//! Birke, Crisan and Gusat, "Cross-Layer Flow and Congestion Control for Datacenter Networks", 2011: commercial workloads).
//!
//! The hosts of rack 0 are high-level aggregators. For a query one of them asks a mid-level aggregator, a random host of the
//! other racks; that one asks every other host of its rack at once; each of them replies, and when all replies are there
//! the mid-level aggregator replies. A job is a query: its time is the query's completion time.
//!
//! A connection carries what is sent one way, so a pair that asks and replies has two. With `connections = "new"` each
//! request and each reply is a connection of its own and pays for its handshake.

use super::super::error::Problem;
use super::super::flows::{Pair, Table};
use super::Made;
use super::arrivals::Arrivals;
use super::work::{Work, limit};
use firstlight_sim::uniform;
use firstlight_units::Span;
use std::collections::BTreeMap;

/// Connections that stay open, or a new one for each message.
pub(super) const CONNECTIONS: &[&str] = &["persistent", "new"];

/// What a query sends, and over what.
struct Query {
    request: u64,
    reply: u64,
    compute: Span,
    /// Those that stay open; none when each message has its own.
    open: Option<BTreeMap<Pair, u32>>,
}

/// The connections and messages.
pub(super) fn expand(table: &Table<'_>) -> Result<Made, Box<Problem>> {
    let values = table.values;
    let (racks, per_rack) = racks(table)?;
    let starts = (0..per_rack).map(|host| starts(table, host)).collect::<Result<Vec<_>, _>>()?;
    let compute = values.span(&table.path("compute"));
    let persistent = values.text(&table.path("connections")) == CONNECTIONS[0];
    let mut query = Query {
        request: values.size(&table.path("request")).get(),
        reply: values.size(&table.path("reply")).get(),
        compute,
        open: persistent.then(BTreeMap::new),
    };
    let sent = starts.iter().map(Vec::len).sum::<usize>() as u64 * 2 * per_rack as u64;
    limit(table, "queries", if persistent { 0 } else { sent }, sent * 2)?;
    let mut random = table.random("aggregators");
    let mut work = Work::new(table)?;
    for (asker, starts) in starts.into_iter().enumerate() {
        let mut last = None;
        for start in starts {
            let aggregator = per_rack + uniform(&mut random, ((racks - 1) * per_rack) as u64) as usize;
            let first = aggregator - aggregator % per_rack;
            let workers = (first..first + per_rack).filter(|host| *host != aggregator);
            let job = work.job(query.reply * per_rack as u64);
            let asked = start.map_or(last, |start| Some(work.wait_until(start, job)));
            last = Some(query.send(&mut work, [asker, aggregator], workers, job, asked));
        }
    }
    work.made()
}

/// How many racks, and hosts in each.
fn racks(table: &Table<'_>) -> Result<(usize, usize), Box<Problem>> {
    match (table.shape.racks(), table.shape.per_rack()) {
        (Some(racks), per_rack) if racks > 1 && per_rack > 1 => Ok((racks, per_rack)),
        _ => {
            let text = "rack 0 asks the others, whose hosts ask each other: use a fabric with racks, at least two of two hosts";
            Err(table.problem("kind", text))
        }
    }
}

/// When an aggregator's queries come; none for a query that follows the one before.
fn starts(table: &Table<'_>, host: usize) -> Result<Vec<Option<Span>>, Box<Problem>> {
    let values = table.values;
    let asked = values.integer_opt(&table.path("queries")).map(|queries| queries as usize);
    let Some(mean) = values.span_opt(&table.path("interval")) else {
        let queries = asked.ok_or_else(|| table.missing("queries", "100"))?;
        return Ok(vec![None; queries]);
    };
    let (start, _) = table.start()?;
    let mut arrivals = Arrivals::new(table.random(&format!("queries{host}")), start, mean.as_ps() as f64);
    let moments = std::iter::repeat_with(|| arrivals.next()).take_while(|moment| *moment < table.duration());
    Ok(moments.take(asked.unwrap_or(usize::MAX)).map(Some).collect())
}

impl Query {
    /// Sends it after what went before; tells its last message.
    fn send(
        &mut self,
        work: &mut Work<'_>,
        [asker, aggregator]: [usize; 2],
        workers: impl Iterator<Item = usize>,
        job: u32,
        after: Option<u32>,
    ) -> u32 {
        let request = self.message(work, (asker, aggregator), self.request, job, after.as_slice());
        let replies: Vec<u32> = workers
            .map(|worker| {
                let mut asked = self.message(work, (aggregator, worker), self.request, job, &[request]);
                if !self.compute.is_zero() {
                    asked = work.wait(self.compute, job, &[asked]);
                }
                self.message(work, (worker, aggregator), self.reply, job, &[asked])
            })
            .collect();
        self.message(work, (aggregator, asker), self.reply, job, &replies)
    }

    fn message(&mut self, work: &mut Work<'_>, pair: Pair, bytes: u64, job: u32, after: &[u32]) -> u32 {
        let connection = match &mut self.open {
            Some(open) => *open.entry(pair).or_insert_with(|| work.connection(pair)),
            None => work.connection(pair),
        };
        work.send(connection, bytes, job, after)
    }
}
