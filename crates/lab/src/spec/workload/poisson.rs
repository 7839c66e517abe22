//! Flows between random pairs whose starts are a Poisson process.
//!
//! Load is what DX (section 6.3) calls load at the edge: the payload of the flows that start in a second, divided by what
//! the senders' links carry in a second. With n senders of rate R and a mean size S, flows start at the rate
//! load n R / (8 S); where rates differ, n R is their sum. Headers come on top of that, and so do retransmissions.

use super::super::error::Problem;
use super::super::flows::{MOST, Pair, Table};

use super::Made;
use super::arrivals::Arrivals;
use firstlight_formats::cdf;
use firstlight_formats::nearest;
use firstlight_formats::sizes::{Cdf, NAMES};
use firstlight_sim::{Xoshiro256PlusPlus, uniform};
use firstlight_units::Bytes;

/// The flows, in the order in which they start.
pub(super) fn expand(table: &Table<'_>) -> Result<Made, Box<Problem>> {
    let values = table.values;
    let (start, _) = table.start()?;
    let sizes = sizes(table)?;
    let (from, to) = ends(table)?;
    let load = values.number(&table.path("load"));
    if load <= 0.0 {
        return Err(table.problem("load", "at 0 no flow ever starts: use for example 0.15"));
    }
    let carried = load * from.iter().map(|host| table.shape.rates[*host].as_bps() as f64).sum::<f64>();
    let gap = 8.0 * sizes.mean() * 1e12 / carried;
    let asked = values.integer_opt(&table.path("flows")).map(|flows| flows as usize);

    let mut arrivals = Arrivals::new(table.random("arrivals"), start, gap);
    let starts: Vec<_> = std::iter::repeat_with(|| arrivals.next())
        .take_while(|start| *start < table.duration())
        .take(asked.unwrap_or(MOST + 1))
        .collect();
    if starts.len() > MOST {
        let text =
            format!("more than {MOST} flows would start in {}: set flows to fewer, or lower load", table.duration());
        return Err(table.problem("load", text));
    }
    let mut random = table.random("pairs");
    let pairs: Vec<Pair> = starts.iter().map(|_| draw(&mut random, &from, &to)).collect();
    let mut flows = table.between(&pairs)?;
    let mut random = table.random("sizes");
    for (flow, start) in flows.iter_mut().zip(starts) {
        (flow.start, flow.size) = (start, Some(sizes.sample(&mut random)));
    }
    Ok(Made { flows, asked, mean_size: Some(sizes.mean()), ..Made::default() })
}

/// Two different hosts.
fn draw(random: &mut Xoshiro256PlusPlus, from: &[usize], to: &[usize]) -> Pair {
    loop {
        let mut one = |of: &[usize]| of[uniform(random, of.len() as u64) as usize];
        let pair = (one(from), one(to));
        if pair.0 != pair.1 {
            return pair;
        }
    }
}

fn ends(table: &Table<'_>) -> Result<(Vec<usize>, Vec<usize>), Box<Problem>> {
    let from = table.hosts("from")?;
    let all = || (0..table.shape.hosts).collect();
    let to = if table.values.has(&table.path("to")) { table.hosts("to")? } else { all() };
    if from.len() == 1 && from == to {
        return Err(table.problem("to", "the sender would send to itself: name other hosts"));
    }
    Ok((from, to))
}

/// The distribution of the sizes.
fn sizes(table: &Table<'_>) -> Result<Cdf, Box<Problem>> {
    let (values, path) = (table.values, table.path("sizes"));
    let unit = values.size_opt(&table.path("unit"));
    let named = values.text_opt(&path);
    let built_in = named.as_deref().and_then(Cdf::built_in);
    if unit.is_some() && (named.is_none() || built_in.is_some()) {
        let text = "has no effect: it counts only when sizes names a file; take it out";
        return Err(table.problem("unit", text));
    }
    match (values.size_opt(&table.path("size")), named) {
        (Some(_), Some(_)) => Err(table.problem("sizes", "size and sizes exclude each other: keep one")),
        (Some(size), None) => Ok(Cdf::fixed(size)),
        (None, None) => Err(table.missing("sizes", "\"web-search\"")),
        (None, Some(name)) => match built_in {
            Some(cdf) => Ok(cdf.clone()),
            None => from_file(table, &name, unit.unwrap_or(Bytes::new(1))),
        },
    }
}

fn from_file(table: &Table<'_>, name: &str, unit: Bytes) -> Result<Cdf, Box<Problem>> {
    let (path, text) = table.file("sizes").map_err(|mut problem| {
        let near = nearest(name, NAMES.into_iter());
        let names =
            near.map_or_else(|| format!("use {}, or a file", NAMES.join(", ")), |near| format!("did you mean {near}?"));
        problem.problem = format!("'{name}' is no distribution, and {}: {names}", problem.problem);
        problem
    })?;
    cdf::read(&text, &path, unit).map_err(|error| table.imported("sizes", error))
}
