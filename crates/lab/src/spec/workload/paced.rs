//! Applications that write at a rate which changes at given times, over TCP: admissible traffic, a hotspot, recovery (the
//! congestive traffic of 802.1's data center bridging, and of the study of TCP over Converged Enhanced Ethernet).
//!
//! Each pair has one connection. In a step its application writes `write` bytes at a time, evenly spaced, the first at
//! the step's start; what the connection cannot send waits in it. A job is a step of a connection: it ends when the receiver has
//! all that was written in the step, so what it takes beyond the step's length is how long the network took to catch up.

use super::super::error::Problem;
use super::super::flows::Table;
use super::Made;
use super::patterns::required;
use super::work::{Work, limit};
use firstlight_units::{Bytes, Rate, Span};

/// A rate from one moment to another.
struct Step {
    start: Span,
    end: Span,
    rate: Rate,
}

/// The connections and messages.
pub(super) fn expand(table: &Table<'_>) -> Result<Made, Box<Problem>> {
    required(table, "to", "\"host0\"")?;
    required(table, "steps", "[\"0s 1Gbps\"]")?;
    let pairs = table.pairs()?;
    let write = table.values.size(&table.path("write"));
    let steps = steps(table)?;
    let writes: u64 = steps.iter().map(|step| step.writes(write)).fold(0, u64::saturating_add);
    limit(table, "write", pairs.len() as u64, writes.saturating_mul(pairs.len() as u64))?;
    let mut work = Work::new(table)?;
    for pair in pairs {
        let connection = work.connection(pair);
        for step in &steps {
            let job = work.job(step.writes(write) * write.get());
            for nth in 0..step.writes(write) {
                work.send_at(connection, write.get(), job, step.start + step.moment(write, nth));
            }
        }
    }
    work.made()
}

impl Step {
    /// When, after the start, a write is due.
    fn moment(&self, write: Bytes, nth: u64) -> Span {
        let ps = u128::from(write.get()) * 8 * u128::from(nth) * 1_000_000_000_000 / u128::from(self.rate.as_bps());
        Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// How many fall into the step: those before its end, one at least.
    fn writes(&self, write: Bytes) -> u64 {
        let length = u128::from((self.end - self.start).as_ps());
        let bits = u128::from(write.get()) * 8 * 1_000_000_000_000;
        u64::try_from((length * u128::from(self.rate.as_bps())).div_ceil(bits)).unwrap_or(u64::MAX).max(1)
    }
}

/// The steps that write something: each ends where the next one starts, the last one with the run.
fn steps(table: &Table<'_>) -> Result<Vec<Step>, Box<Problem>> {
    let texts = table.values.texts(&table.path("steps"));
    let read = texts.iter().map(|text| step(table, text)).collect::<Result<Vec<_>, _>>()?;
    let ends = read.iter().skip(1).map(|(start, _)| *start).chain([table.duration()]);
    let mut steps = vec![];
    for ((&(start, rate), end), text) in read.iter().zip(ends).zip(&texts) {
        if start >= end {
            let text =
                format!("'{text}' does not end after it starts, at {end}: write growing times before the run's end");
            return Err(table.problem("steps", text));
        }
        steps.extend(rate.map(|rate| Step { start, end, rate }));
    }
    if steps.is_empty() {
        return Err(table.problem("steps", "no step writes anything: write for example [\"0s 1Gbps\"]"));
    }
    Ok(steps)
}

fn step(table: &Table<'_>, text: &str) -> Result<(Span, Option<Rate>), Box<Problem>> {
    let wrong = || {
        let text =
            format!("'{text}' is no step: write its start and its rate, for example \"100ms 4Gbps\" or \"110ms off\"");
        table.problem("steps", text)
    };
    let (start, rate) = text.trim().split_once(char::is_whitespace).ok_or_else(wrong)?;
    let rate = match rate.trim() {
        "off" => None,
        rate => Some(rate.parse().map_err(|_| wrong())?),
    };
    Ok((start.parse().map_err(|_| wrong())?, rate))
}
