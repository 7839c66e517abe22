//! Connection matrices of csg-htsim (`.cm` files; examples in `sim/datacenter/connection_matrices`,
//! github.com/Broadcom/ csg-htsim): a header of counts (`Nodes`, `Connections`, `Triggers`, `Failures`), then a line
//! for each connection, trigger and failure, in any order.
//!
//! A connection is `0->13 id 1 start 0 size 2000000`: the start is in picoseconds, the size in bytes; a connection of
//! size 0 or without a size never ends. A trigger is `trigger id 1 oneshot`, or `multishot`, or `barrier` with a
//! `count`. A connection fires a trigger with `send_done_trigger` or `recv_done_trigger`, and waits for one with
//! `trigger`. A oneshot starts all that wait for it when it is fired. A barrier does so when it has been fired `count`
//! times. A multishot starts the next one each time, in the order of the file. Here `send_done_trigger` fires when the
//! receiver has all bytes, as `recv_done_trigger` does: half a round trip before the sender knows. Failures and `prio`,
//! a priority that receivers of some of htsim's transports apply, are errors.

use super::reader::{FilePlace, TextLine, Word, lines};
use super::{FlowTrigger, ImportError, ListedFlow};
use firstlight_units::{Bytes, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A kind of trigger, with a barrier's count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TriggerKind {
    Oneshot,
    Multishot,
    Barrier(u64),
}

/// A trigger of the file.
struct ListedTrigger<'a> {
    kind: TriggerKind,
    at: Word<'a>,
}

/// Reads a matrix; `file` is its name for errors, `hosts` has the number of each host of the fabric, ascending.
///
/// # Errors
/// When a line is wrong, or asks for something that is not modelled: with its place, and what would be right.
pub fn read(text: &str, file: &str, hosts: &[u32]) -> Result<Vec<ListedFlow>, ImportError> {
    let mut matrix = Matrix {
        start: FilePlace::start(file),
        hosts,
        counts: BTreeMap::new(),
        flows: vec![],
        ids: BTreeSet::new(),
        triggers: BTreeMap::new(),
        fires: vec![],
        waits: vec![],
    };
    for line in lines(file, text, Some('#')) {
        matrix.line(&line)?;
    }
    matrix.finish()
}

struct Matrix<'a> {
    start: FilePlace<'a>,
    hosts: &'a [u32],
    /// The header's counts with their places.
    counts: BTreeMap<&'a str, (u32, Word<'a>)>,
    flows: Vec<ListedFlow>,
    ids: BTreeSet<u64>,
    triggers: BTreeMap<u64, ListedTrigger<'a>>,
    /// Triggers that flows fire, with the flow and the place.
    fires: Vec<(u64, usize, Word<'a>)>,
    /// Triggers that flows wait for, with the flow and the place.
    waits: Vec<(u64, usize, Word<'a>)>,
}

impl<'a> Matrix<'a> {
    fn line(&mut self, line: &TextLine<'a>) -> Result<(), ImportError> {
        let first = line.words[0];
        match first.text {
            "Nodes" | "Connections" | "Triggers" | "Failures" => self.header(line),
            "trigger" => self.trigger(line),
            "failure" => Err(first.error("failed links are not modelled: take the line out, and Failures")),
            text if text.contains("->") => self.connection(line),
            text => {
                let problem = format!(
                    "'{text}' cannot begin a line: write Nodes, Connections, Triggers, trigger, or a connection \
                     like 0->1"
                );
                Err(first.error(problem))
            }
        }
    }

    fn header(&mut self, line: &TextLine<'a>) -> Result<(), ImportError> {
        let [name, count] = line.columns(["name", "count"])?;
        let least = u32::from(name.text == "Nodes") * 2;
        let number = count.whole("a count", least, 1 << 30)?;
        let most = self.hosts.last().map_or(0, |last| last + 1);
        if name.text == "Nodes" && number > most {
            let problem = format!("{number} nodes are more than the fabric's {most} hosts: use a larger one");
            return Err(count.error(problem));
        }
        if name.text == "Failures" && number > 0 {
            return Err(name.error("failed links are not modelled: take the line out, and the failures"));
        }
        if self.counts.insert(name.text, (number, name)).is_some() {
            return Err(name.error(format!("{} is given twice: keep one", name.text)));
        }
        Ok(())
    }

    fn connection(&mut self, line: &TextLine<'a>) -> Result<(), ImportError> {
        let ends = line.words[0];
        let (src, dst) = ends.text.split_once("->").expect("the caller has seen the arrow");
        let behind = ends.place.column + src.chars().count() + 2;
        let nodes = self.counts.get("Nodes").map_or(u32::MAX, |(nodes, _)| *nodes);
        let hosts = &self.hosts[..self.hosts.partition_point(|number| *number < nodes)];
        let src = Word { text: src, ..ends }.host("the sending node", hosts)?;
        let to = Word { text: dst, place: FilePlace { column: behind, ..ends.place } };
        let dst = to.host("the receiving node", hosts)?;
        if src == dst {
            return Err(to.error(format!("node {} sends to itself: write another one", to.text)));
        }
        let (mut size, mut start, mut waits) = (None, None, None);
        for (name, value) in pairs(line, 1)? {
            match name.text {
                "id" => {
                    let id = value.whole("a connection's id", 1, u64::from(u32::MAX))?;
                    if !self.ids.insert(id) {
                        return Err(value.error(format!("there are two connections of id {id}: number each")));
                    }
                }
                "start" => start = Some((picoseconds(&value)?, value)),
                "size" => size = Some(value.whole("its bytes", 0, 1 << 60)?).filter(|size| *size > 0),
                "trigger" => waits = Some((trigger_id(&value)?, value, name)),
                "send_done_trigger" | "recv_done_trigger" => {
                    self.fires.push((trigger_id(&value)?, self.flows.len(), value));
                }
                "prio" => return Err(name.error("priorities of connections are not modelled: take it out")),
                other => {
                    let all = "id, start, size, trigger, send_done_trigger, recv_done_trigger";
                    return Err(name.error(format!("a connection has no '{other}': write {all}")));
                }
            }
        }
        let (start, at) = match (start, waits) {
            (Some(start), None) => start,
            (None, Some((id, value, at))) => {
                self.waits.push((id, self.flows.len(), value));
                (Span::ZERO, at)
            }
            (Some(_), Some((_, _, at))) => {
                return Err(at.error("a connection has a start or waits for a trigger: keep one"));
            }
            (None, None) => return Err(line.end.error("start is missing: write for example start 0")),
        };
        let (size, place) = (size.map(Bytes::new), (at.place.line, at.place.column));
        self.flows.push(ListedFlow { src, dst, size, start, trigger: None, class: None, place });
        Ok(())
    }

    fn trigger(&mut self, line: &TextLine<'a>) -> Result<(), ImportError> {
        let (mut id, mut kind, mut count) = (None, None, None);
        let mut words = line.words[1..].iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().copied().unwrap_or(nothing(line));
            match word.text {
                "id" => id = Some((trigger_id(&value())?, *word)),
                "count" => count = Some((value().whole("a barrier's count", 1u64, 1 << 30)?, *word)),
                "oneshot" | "multishot" | "barrier" if kind.is_none() => kind = Some(word.text),
                "oneshot" | "multishot" | "barrier" => {
                    return Err(word.error("a trigger is of one kind: keep one"));
                }
                other => {
                    let all = "id, count, oneshot, multishot, barrier";
                    return Err(word.error(format!("a trigger has no '{other}': write {all}")));
                }
            }
        }
        let (Some((id, place)), Some(kind)) = (id, kind) else {
            let missing = if id.is_none() { "id" } else { "its kind" };
            let problem = format!("{missing} is missing: write for example trigger id 1 oneshot");
            return Err(line.end.error(problem));
        };
        let kind = match (kind, count) {
            ("barrier", None) => return Err(line.end.error("count is missing: write for example count 2")),
            ("barrier", Some((count, _))) => TriggerKind::Barrier(count),
            (_, Some((_, place))) => return Err(place.error("only a barrier has a count: take it out")),
            ("oneshot", None) => TriggerKind::Oneshot,
            _ => TriggerKind::Multishot,
        };
        if self.triggers.insert(id, ListedTrigger { kind, at: place }).is_some() {
            return Err(place.error(format!("there are two triggers of id {id}: number each")));
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<ListedFlow>, ImportError> {
        for name in ["Nodes", "Connections"] {
            if !self.counts.contains_key(name) {
                return Err(self.start.error(format!("{name} is missing: write for example {name} 16")));
            }
        }
        for (name, found) in [("Connections", self.flows.len()), ("Triggers", self.triggers.len())] {
            match self.counts.get(name) {
                Some((count, at)) if *count as usize != found => {
                    let problem = format!("{count} {} are announced, and {found} follow", name.to_lowercase());
                    return Err(at.error(format!("{problem}: count them anew")));
                }
                None if found > 0 => {
                    return Err(self
                        .start
                        .error(format!("{found} triggers follow, and none is announced: write Triggers {found}")));
                }
                _ => {}
            }
        }
        let mut named = self.fires.iter().chain(&self.waits);
        if let Some((id, _, at)) = named.find(|(id, _, _)| !self.triggers.contains_key(id)) {
            return Err(at.error(format!("there is no trigger {id}: write a line like trigger id {id} oneshot")));
        }
        self.join()
    }

    /// Gives each flow that waits for a trigger those that fire it.
    fn join(mut self) -> Result<Vec<ListedFlow>, ImportError> {
        let (mut firing, mut waiting) = (BTreeMap::<u64, Vec<u32>>::new(), BTreeMap::<u64, Vec<usize>>::new());
        self.waits.iter().for_each(|(id, flow, _)| waiting.entry(*id).or_default().push(*flow));
        self.fires.iter().for_each(|(id, flow, _)| firing.entry(*id).or_default().push(*flow as u32));
        for (id, flow, at) in self.fires.iter().chain(&self.waits) {
            if waiting.contains_key(id) && self.flows[*flow].size.is_none() {
                let problem = "a connection that fires a trigger or waits for one has an end: give it a size";
                return Err(at.error(problem));
            }
        }
        for (id, waits) in waiting {
            let ListedTrigger { kind, at } = &self.triggers[&id];
            let flows: Arc<[u32]> = firing.remove(&id).unwrap_or_default().into();
            let times = flows.len();
            let fits = match kind {
                TriggerKind::Oneshot => times == 1,
                TriggerKind::Barrier(count) => times as u64 == *count,
                TriggerKind::Multishot => times >= waits.len(),
            };
            if !fits {
                let needed = match kind {
                    TriggerKind::Oneshot => "a oneshot is fired once".to_string(),
                    TriggerKind::Barrier(count) => format!("this barrier is fired {count} times"),
                    TriggerKind::Multishot => {
                        format!("a multishot with {0} waiting connections needs at least {0} firings", waits.len())
                    }
                };
                return Err(at.error(format!("{needed}, but connections fire it {times} times: change either")));
            }
            for (nth, flow) in waits.into_iter().enumerate() {
                let enough = if *kind == TriggerKind::Multishot { nth as u32 + 1 } else { times as u32 };
                self.flows[flow].trigger = Some(FlowTrigger { flows: flows.clone(), enough });
            }
        }
        Ok(self.flows)
    }
}

/// Reads the id of a trigger.
fn trigger_id(id: &Word<'_>) -> Result<u64, ImportError> {
    id.whole("a trigger's id", 1, u64::from(u32::MAX))
}

/// The words of a line from `from` on, as pairs of a name and a value.
fn pairs<'a>(line: &TextLine<'a>, from: usize) -> Result<Vec<(Word<'a>, Word<'a>)>, ImportError> {
    let mut found: Vec<(Word<'a>, Word<'a>)> = vec![];
    for pair in line.words[from..].chunks(2) {
        if found.iter().any(|(name, _)| name.text == pair[0].text) {
            return Err(pair[0].error(format!("{} is given twice: keep one", pair[0].text)));
        }
        found.push((pair[0], pair.get(1).copied().unwrap_or(nothing(line))));
    }
    Ok(found)
}

/// An empty word at the end of a line, for a missing one.
fn nothing<'a>(line: &TextLine<'a>) -> Word<'a> {
    Word { text: "", place: line.end }
}

/// A number of picoseconds; decimals must be zeros.
fn picoseconds(value: &Word<'_>) -> Result<Span, ImportError> {
    let (whole, fraction) = value.text.split_once('.').unwrap_or((value.text, "0"));
    let plain = !fraction.is_empty() && fraction.bytes().all(|b| b == b'0');
    let word = Word { text: if plain { whole } else { value.text }, ..*value };
    word.whole("its start in picoseconds", 0, u64::MAX).map(Span::from_ps)
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
