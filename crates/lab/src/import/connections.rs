//! Connection matrices of csg-htsim (`.cm` files; examples in `sim/datacenter/connection_matrices`, github.com/Broadcom/
//! csg-htsim): a header of counts (`Nodes`, `Connections`, `Triggers`, `Failures`), then a line for each connection, trigger
//! and failure, in any order.
//!
//! A connection is `0->13 id 1 start 0 size 2000000`: its start in picoseconds, its size in bytes, where 0 or none stands
//! for one that never ends. A trigger is `trigger id 1 oneshot`, or `multishot`, or `barrier` with a `count`; a
//! connection fires it with `send_done_trigger` or `recv_done_trigger`, and waits for one with `trigger`. Flows here
//! start at a given time: triggers are read and checked, and a connection that waits for one is an error. So are failures
//! and `prio`, whose order is a receiver's own of some of htsim's transports.

use super::{ImportError, Line, ListedFlow, Token, lines};
use firstlight_units::{Bytes, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Reads a matrix for a fabric of so many hosts; `file` is for messages.
///
/// # Errors
/// When a line is wrong, or asks for what is not here: with its place, and what would be right.
pub fn read(text: &str, file: &str, hosts: usize) -> Result<Vec<ListedFlow>, ImportError> {
    let mut matrix = Matrix { file, hosts, ..Matrix::default() };
    for line in lines(text) {
        matrix.line(&line)?;
    }
    matrix.finish()
}

#[derive(Default)]
struct Matrix<'a> {
    file: &'a str,
    hosts: usize,
    /// What the header counts, and where.
    counts: BTreeMap<&'a str, (usize, Token<'a>)>,
    flows: Vec<ListedFlow>,
    ids: BTreeSet<u64>,
    triggers: BTreeSet<u64>,
    /// Triggers that connections name, and where first.
    named: BTreeMap<u64, Token<'a>>,
    /// Where a connection waits for a trigger, first.
    waits: Option<Token<'a>>,
}

impl<'a> Matrix<'a> {
    fn line(&mut self, line: &Line<'a>) -> Result<(), ImportError> {
        let first = line.tokens[0];
        match first.text {
            "Nodes" | "Connections" | "Triggers" | "Failures" => self.header(line),
            "trigger" => self.trigger(line),
            "failure" => Err(first.error(self.file, "failed links are not modelled: take the line out, and Failures")),
            text if text.contains("->") => self.connection(line),
            text => {
                let problem = format!(
                    "'{text}' begins no line: write Nodes, Connections, Triggers, trigger, or a connection like 0->1"
                );
                Err(first.error(self.file, problem))
            }
        }
    }

    fn header(&mut self, line: &Line<'a>) -> Result<(), ImportError> {
        let [name, count] = line.words(self.file, ["name", "count"])?;
        let least = usize::from(name.text == "Nodes") * 2;
        let number = count.whole(self.file, "a count", least, 1 << 30)?;
        if name.text == "Nodes" && number > self.hosts {
            let problem = format!("{number} nodes are more than the fabric's {} hosts: use a larger one", self.hosts);
            return Err(count.error(self.file, problem));
        }
        if name.text == "Failures" && number > 0 {
            return Err(name.error(self.file, "failed links are not modelled: take the line out, and the failures"));
        }
        if self.counts.insert(name.text, (number, name)).is_some() {
            return Err(name.error(self.file, format!("{} is given twice: keep one", name.text)));
        }
        Ok(())
    }

    fn connection(&mut self, line: &Line<'a>) -> Result<(), ImportError> {
        let file = self.file;
        let ends = line.tokens[0];
        let (src, dst) = ends.text.split_once("->").expect("the caller has seen the arrow");
        let arrow = ends.column + src.chars().count();
        let hosts = self.counts.get("Nodes").map_or(self.hosts, |(nodes, _)| *nodes);
        let src = Token { text: src, ..ends }.host(file, "the sending node", hosts)?;
        let to = Token { text: dst, column: arrow + 2, ..ends };
        let dst = to.host(file, "the receiving node", hosts)?;
        if src == dst {
            return Err(to.error(file, format!("node {} sends to itself: write another one", to.text)));
        }
        let (mut size, mut start, mut waits) = (None, None, None);
        for (name, value) in pairs(line, 1, file)? {
            match name.text {
                "id" => {
                    let id = value.whole(file, "a connection's id", 1, u64::from(u32::MAX))?;
                    if !self.ids.insert(id) {
                        return Err(value.error(file, format!("there are two connections of id {id}: number each")));
                    }
                }
                "start" => start = Some((picoseconds(&value, file)?, value)),
                "size" => size = Some(value.whole(file, "its bytes", 0, 1 << 60)?).filter(|size| *size > 0),
                "trigger" => waits = Some((self.name(&value)?, name)),
                "send_done_trigger" | "recv_done_trigger" => _ = self.name(&value)?,
                "prio" => return Err(name.error(file, "priorities of connections are not modelled: take it out")),
                other => {
                    let all = "id, start, size, trigger, send_done_trigger, recv_done_trigger";
                    return Err(name.error(file, format!("a connection has no '{other}': write {all}")));
                }
            }
        }
        let (start, at) = match (start, waits) {
            (Some(start), None) => start,
            (None, Some((_, at))) => {
                self.waits.get_or_insert(at);
                (Span::ZERO, at)
            }
            (Some(_), Some((_, at))) => {
                return Err(at.error(file, "a connection has a start or waits for a trigger: keep one"));
            }
            (None, None) => return Err(line.end.error(file, "start is missing: write for example start 0")),
        };
        let (size, place) = (size.map(Bytes::new), (at.line, at.column));
        self.flows.push(ListedFlow { src, dst, size, start, class: None, place });
        Ok(())
    }

    /// A connection names a trigger.
    fn name(&mut self, id: &Token<'a>) -> Result<u64, ImportError> {
        let number = id.whole(self.file, "a trigger's id", 1, u64::from(u32::MAX))?;
        self.named.entry(number).or_insert(*id);
        Ok(number)
    }

    fn trigger(&mut self, line: &Line<'a>) -> Result<(), ImportError> {
        let (file, mut id, mut kind, mut count) = (self.file, None, None, None);
        let mut words = line.tokens[1..].iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().copied().unwrap_or(line.end);
            match word.text {
                "id" => id = Some((value().whole(file, "a trigger's id", 1, u64::from(u32::MAX))?, *word)),
                "count" => count = Some((value().whole(file, "a barrier's count", 1u64, 1 << 30)?, *word)),
                "oneshot" | "multishot" | "barrier" if kind.is_none() => kind = Some(word.text),
                "oneshot" | "multishot" | "barrier" => {
                    return Err(word.error(file, "a trigger is of one kind: keep one"));
                }
                other => {
                    let all = "id, count, oneshot, multishot, barrier";
                    return Err(word.error(file, format!("a trigger has no '{other}': write {all}")));
                }
            }
        }
        let (Some((id, place)), Some(kind)) = (id, kind) else {
            let missing = if id.is_none() { "id" } else { "its kind" };
            let problem = format!("{missing} is missing: write for example trigger id 1 oneshot");
            return Err(line.end.error(file, problem));
        };
        match (kind, count) {
            ("barrier", None) => return Err(line.end.error(file, "count is missing: write for example count 2")),
            ("barrier", _) | (_, None) => {}
            (_, Some((_, place))) => return Err(place.error(file, "only a barrier has a count: take it out")),
        }
        if !self.triggers.insert(id) {
            return Err(place.error(file, format!("there are two triggers of id {id}: number each")));
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<ListedFlow>, ImportError> {
        let file = self.file;
        let whole = |problem: &str| ImportError { file: file.into(), line: 1, column: 1, problem: problem.into() };
        for name in ["Nodes", "Connections"] {
            if !self.counts.contains_key(name) {
                return Err(whole(&format!("{name} is missing: write for example {name} 16")));
            }
        }
        for (name, found) in [("Connections", self.flows.len()), ("Triggers", self.triggers.len())] {
            match self.counts.get(name) {
                Some((count, at)) if *count != found => {
                    let problem = format!("{count} {} are announced, and {found} follow", name.to_lowercase());
                    return Err(at.error(file, format!("{problem}: count them anew")));
                }
                None if found > 0 => {
                    return Err(whole(&format!(
                        "{found} triggers follow, and none is announced: write Triggers {found}"
                    )));
                }
                _ => {}
            }
        }
        if let Some((id, at)) = self.named.iter().find(|(id, _)| !self.triggers.contains(id)) {
            return Err(at.error(file, format!("there is no trigger {id}: write a line like trigger id {id} oneshot")));
        }
        match self.waits {
            Some(at) => {
                let problem =
                    "a connection that waits for a trigger cannot be run here: give it a start, in picoseconds";
                Err(at.error(file, problem))
            }
            None => Ok(self.flows),
        }
    }
}

/// The words of a line from `from` on, as names with values.
fn pairs<'a>(line: &Line<'a>, from: usize, file: &str) -> Result<Vec<(Token<'a>, Token<'a>)>, ImportError> {
    let mut found: Vec<(Token<'a>, Token<'a>)> = vec![];
    for pair in line.tokens[from..].chunks(2) {
        if found.iter().any(|(name, _)| name.text == pair[0].text) {
            return Err(pair[0].error(file, format!("{} is given twice: keep one", pair[0].text)));
        }
        found.push((pair[0], pair.get(1).copied().unwrap_or(line.end)));
    }
    Ok(found)
}

/// A number of picoseconds; what stands behind its point is zeros.
fn picoseconds(value: &Token<'_>, file: &str) -> Result<Span, ImportError> {
    let (whole, fraction) = value.text.split_once('.').unwrap_or((value.text, "0"));
    let plain = !fraction.is_empty() && fraction.bytes().all(|b| b == b'0');
    let token = Token { text: if plain { whole } else { value.text }, ..*value };
    token.whole(file, "its start in picoseconds", 0, u64::MAX).map(Span::from_ps)
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
