//! GOAL's text form:
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: calc 1000
//!   l2: send 1024b to 1 tag 7
//!   l2 requires l1
//! }
//! rank 1 {
//!   l1: recv 1024b from 0 tag 7
//! }
//! ```
//!
//! A computation is in nanoseconds. `requires` waits for an operation's end, `irequires` for its start. A label is
//! known in its rank only. `cpu` and `nic` are read and not used. Sends and receives with the same source, destination
//! and tag match in their order. Each line is one operation; `//` or `#` begins a comment.
//!
//! `from any`, or `from -1` as LogGOPSim writes it, receives from any rank: the n-th such receive of a rank and tag in
//! the file ends with the n-th message of that tag to arrive there, whoever sends it. All receives of a rank and tag
//! are of this kind, or none is. A receive of any tag is an error.

use super::{ANY_TAG, GoalAction, GoalEnds, GoalOperation, GoalRequirement, GoalSchedule, MOST, MOST_RANKS};
use crate::ImportError;
use crate::reader::{FilePlace, TextLine, Word, lines};
use std::collections::BTreeMap;

/// The part of the file that has been read.
#[derive(Default)]
struct TextReading<'a> {
    schedule: GoalSchedule,
    /// The rank whose brace is open, and the place of that rank.
    open: Option<(u32, FilePlace<'a>)>,
    labels: BTreeMap<&'a str, u32>,
    /// Requirements of the open rank: the labels may be defined after them.
    waiting: Vec<(Word<'a>, Word<'a>, bool)>,
    /// Which ranks have been read.
    seen: Vec<bool>,
    ends: GoalEnds,
}

/// Reads a schedule; `file` is its name for errors.
///
/// # Errors
/// When a line is not an operation, a label is unknown, or a send or a receive has no partner: with its place.
pub fn read(text: &str, file: &str) -> Result<GoalSchedule, ImportError> {
    let mut reading = TextReading::default();
    let cut: Vec<&str> = text.lines().map(without_comment).collect();
    let text = cut.join("\n");
    for line in lines(file, &text, None) {
        reading.line(&line)?;
    }
    if let Some((rank, place)) = reading.open {
        return Err(place.error(format!("rank {rank} has no end: write }} on a line of its own")));
    }
    if reading.schedule.ranks == 0 {
        return Err(FilePlace::start(file).error("there are no ranks: write for example num_ranks 16"));
    }
    reading.ends.join(&mut reading.schedule, |_| file)?;
    Ok(reading.schedule)
}

fn without_comment(line: &str) -> &str {
    let end = ["//", "#"].into_iter().filter_map(|mark| line.find(mark)).min();
    &line[..end.unwrap_or(line.len())]
}

impl<'a> TextReading<'a> {
    fn line(&mut self, line: &TextLine<'a>) -> Result<(), ImportError> {
        let words = line.words.as_slice();
        match (self.open, words[0].text) {
            (None, "num_ranks") if self.schedule.ranks == 0 => {
                let [_, ranks] = line.columns(["num_ranks", "how many"])?;
                self.schedule.ranks = ranks.whole("how many ranks", 1, MOST_RANKS)?;
                self.seen = vec![false; self.schedule.ranks as usize];
                Ok(())
            }
            (None, "rank") if self.schedule.ranks > 0 => self.begin(line),
            (None, _) if self.schedule.ranks == 0 => {
                Err(words[0].error("the file begins with num_ranks: write for example num_ranks 16"))
            }
            (None, text) => {
                Err(words[0].error(format!("expected a rank, found '{text}': write for example rank 0 {{")))
            }
            (Some(_), "}") => {
                line.expect(&[1], "} on a line of its own")?;
                self.end()
            }
            (Some((rank, _)), _) => self.operation(rank, line),
        }
    }

    /// Reads `rank 0 {` with or without a space before the brace.
    fn begin(&mut self, line: &TextLine<'a>) -> Result<(), ImportError> {
        let right = "rank 0 {";
        let words = line.expect(&[2, 3], right)?;
        let (number, brace) = match words {
            [_, number, brace] => (number.text, brace.text),
            _ => words[1].text.strip_suffix('{').map_or((words[1].text, ""), |number| (number, "{")),
        };
        if brace != "{" {
            return Err(line.end.error(format!("the brace is missing: write {right}")));
        }
        let rank = Word { text: number, ..words[1] }.whole("a rank", 0, self.schedule.ranks - 1)?;
        if std::mem::replace(&mut self.seen[rank as usize], true) {
            return Err(words[1].error(format!("rank {rank} is there already: write each rank once")));
        }
        self.open = Some((rank, words[0].place));
        Ok(())
    }

    /// Ends a rank, whose labels are all known now.
    fn end(&mut self) -> Result<(), ImportError> {
        for (later, earlier, start) in std::mem::take(&mut self.waiting) {
            let number = |word: Word<'a>| {
                let wrong = || word.error(format!("there is no '{}' in this rank: label an operation so", word.text));
                self.labels.get(word.text).copied().ok_or_else(wrong)
            };
            self.schedule.requirements.push(GoalRequirement {
                later: number(later)?,
                earlier: number(earlier)?,
                start,
            });
        }
        self.labels.clear();
        self.open = None;
        Ok(())
    }

    /// Reads `[label:] send 8b to 1 ...`, `recv 8b from 0 ...`, `calc 100 ...`, or `label requires label`.
    fn operation(&mut self, rank: u32, line: &TextLine<'a>) -> Result<(), ImportError> {
        let words = line.words.as_slice();
        if let [later, kind, earlier] = words
            && let Some(start) = requirement(kind.text)
        {
            self.waiting.push((*later, *earlier, start));
            return Ok(());
        }
        let label = words[0].text.strip_suffix(':');
        let (what, rest) = words[usize::from(label.is_some())..].split_first().ok_or_else(|| line.end.error(RIGHT))?;
        let number = self.schedule.operations.len() as u32;
        if let Some(label) = label
            && self.labels.insert(label, number).is_some()
        {
            return Err(words[0].error(format!("'{label}' is there already: label each operation otherwise")));
        }
        let action = match what.text {
            "calc" => {
                let (span, rest) = rest.split_first().ok_or_else(|| line.end.error(RIGHT))?;
                options(rest, &["cpu"])?;
                GoalAction::Compute(span.whole("nanoseconds", 0, MOST)?)
            }
            "send" => self.message(rank, number, line, rest, "to")?,
            "recv" => self.message(rank, number, line, rest, "from")?,
            text => return Err(what.error(format!("expected an operation, found '{text}': {RIGHT}"))),
        };
        self.schedule.operations.push(GoalOperation { rank, action, place: (what.place.line, what.place.column) });
        Ok(())
    }

    fn message(
        &mut self,
        rank: u32,
        number: u32,
        line: &TextLine<'a>,
        rest: &[Word<'a>],
        direction: &str,
    ) -> Result<GoalAction, ImportError> {
        let [size, toward, peer, rest @ ..] = rest else { return Err(line.end.error(RIGHT)) };
        if toward.text != direction {
            return Err(toward.error(format!("expected '{direction}', found '{}': {RIGHT}", toward.text)));
        }
        let bytes = Word { text: size.text.strip_suffix('b').unwrap_or(size.text), ..*size }.whole("bytes", 0, MOST)?;
        let any = direction == "from" && ["any", "-1"].contains(&peer.text);
        let peer = if any { None } else { Some(peer.whole("a rank", 0, self.schedule.ranks - 1)?) };
        let tag = options(rest, &["tag", "cpu", "nic"])?.unwrap_or(0);
        let end = (number, bytes);
        Ok(if direction == "to" {
            self.ends.send(rank, peer.expect("a send names its destination"), tag, end)
        } else {
            self.ends.receive(rank, peer, tag, end)
        })
    }
}

const RIGHT: &str =
    "write for example l1: send 1024b to 3 tag 0, l1: recv 1024b from 3 tag 0, l1: calc 1000 or l2 requires l1";

fn requirement(word: &str) -> Option<bool> {
    match word {
        "requires" => Some(false),
        "irequires" => Some(true),
        _ => None,
    }
}

/// Reads the pairs of a name and a number at the end of an operation. Returns the tag.
fn options(words: &[Word<'_>], names: &[&str]) -> Result<Option<u64>, ImportError> {
    let mut tag = None;
    for pair in words.chunks(2) {
        let [name, number] = pair else {
            return Err(pair[0].error(format!("'{}' has no number: write for example tag 0", pair[0].text)));
        };
        if !names.contains(&name.text) {
            return Err(name.error(format!("expected {}, found '{}'", names.join(", "), name.text)));
        }
        if (name.text, number.text) == ("tag", "-1") {
            return Err(number.error(ANY_TAG));
        }
        let number = number.whole("a number", 0, u64::from(u32::MAX))?;
        if name.text == "tag" {
            tag = Some(number);
        }
    }
    Ok(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: &str = "num_ranks 2\n\
        rank 0 {\n l1: calc 1000 cpu 0\n l2: send 8b to 1 tag 7 cpu 0 nic 0 // all\n l2 requires l1\n}\n\
        rank 1{\nl1: recv 8b from 0 tag 7\n l2: calc 5\nl2 irequires l1\n}\n";

    #[test]
    fn published_schedules_are_read() {
        let schedule = read(PAIR, "a.goal").unwrap();
        let actions: Vec<(u32, GoalAction)> = schedule.operations.iter().map(|op| (op.rank, op.action)).collect();
        assert_eq!(
            actions,
            [
                (0, GoalAction::Compute(1000)),
                (0, GoalAction::Send(8, 1)),
                (1, GoalAction::Receive(1)),
                (1, GoalAction::Compute(5))
            ]
        );
        let requirement = |later, earlier, start| GoalRequirement { later, earlier, start };
        assert_eq!(schedule.requirements, [requirement(1, 0, false), requirement(3, 2, true)]);
        assert_eq!((schedule.ranks, schedule.operations[1].place), (2, (4, 6)));
    }

    /// Messages of two tags: each tag has its own order.
    #[test]
    fn sends_match_receives_in_order() {
        let text = "num_ranks 2\nrank 0 {\nsend 1b to 1 tag 0\nsend 2b to 1 tag 9\nsend 3b to 1 tag 0\n}\n\
                    rank 1 {\nrecv 1b from 0\nrecv 3b from 0\nrecv 2b from 0 tag 9\n}\n";
        let schedule = read(text, "a.goal").unwrap();
        let received: Vec<GoalAction> = schedule.operations[3..].iter().map(|op| op.action).collect();
        assert_eq!(received, [0, 2, 1].map(GoalAction::Receive));
    }

    /// Rank 0 receives a message of each of the others, whichever comes first, and one of another tag by name.
    #[test]
    fn receives_from_any_rank_take_messages_as_they_arrive() {
        let text = "num_ranks 3\nrank 0 {\nrecv 9b from any tag 1\nrecv 8b from -1 tag 1\nrecv 4b from 2\n}\n\
                    rank 1 {\nsend 8b to 0 tag 1\n}\nrank 2 {\nsend 3b to 0 tag 1\nsend 4b to 0\n}\n";
        let schedule = read(text, "a.goal").unwrap();
        let actions: Vec<GoalAction> = schedule.operations[..3].iter().map(|op| op.action).collect();
        let any = |arrived| GoalAction::ReceiveAny { group: 0, arrived };
        assert_eq!((actions, schedule.groups), (vec![any(1), any(2), GoalAction::Receive(5)], vec![vec![3, 4]]));
        let reported = |from: &str, to: &str| read(&text.replacen(from, to, 1), "a.goal").unwrap_err().to_string();
        assert_eq!(
            reported("recv 8b", "recv 7b"),
            "a.goal:4:1: 7 bytes do not hold the 8 that rank 1 sends at 8:1: receive as many"
        );
        assert_eq!(
            reported("from 2", "from 2 tag 1"),
            "a.goal:5:1: rank 0 receives tag 1 from any rank, too: use two tags, or name all sources"
        );
        assert_eq!(
            reported("recv 8b from -1 tag 1", "calc 1"),
            "a.goal:11:1: no operation receives it: write recv from any tag 1 in rank 0 once more"
        );
        assert_eq!(
            reported("send 8b to 0 tag 1", "calc 1"),
            "a.goal:4:1: no operation sends it: write send to 0 tag 1 in another rank"
        );
        assert_eq!(
            reported("recv 8b from -1 tag 1", "recv 8b from -1 tag -1"),
            "a.goal:4:21: any tag (-1) is not modelled: name the tag"
        );
    }

    #[test]
    fn wrong_lines_are_named() {
        let reported = |from: &str, to: &str| {
            let text = PAIR.replacen(from, to, 1);
            assert_ne!(text, PAIR);
            read(&text, "a.goal").map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(
            reported("num_ranks 2\n", ""),
            "a.goal:1:1: the file begins with num_ranks: write for example num_ranks 16"
        );
        assert_eq!(
            reported("num_ranks 2", "num_ranks 0"),
            "a.goal:1:11: expected how many ranks, found '0': write a whole number from 1 to 1048576"
        );
        assert_eq!(
            reported("rank 1{", "rank 2{"),
            "a.goal:7:6: expected a rank, found '2': write a whole number from 0 to 1"
        );
        assert_eq!(reported("rank 1{", "rank 0{"), "a.goal:7:6: rank 0 is there already: write each rank once");
        assert_eq!(reported("rank 1{", "rank 1"), "a.goal:7:7: the brace is missing: write rank 0 {");
        assert_eq!(
            reported("irequires l1\n}", "irequires l1"),
            "a.goal:7:1: rank 1 has no end: write } on a line of its own"
        );
        assert_eq!(
            reported("l2 irequires l1", "l2 irequires l9"),
            "a.goal:10:14: there is no 'l9' in this rank: label an operation so"
        );
        assert_eq!(
            reported(" l2: calc 5", " l1: calc 5"),
            "a.goal:9:2: 'l1' is there already: label each operation otherwise"
        );
        assert_eq!(
            reported("to 1", "to 2"),
            "a.goal:4:17: expected a rank, found '2': write a whole number from 0 to 1"
        );
        assert_eq!(reported("to 1", "from 1"), format!("a.goal:4:14: expected 'to', found 'from': {RIGHT}"));
        assert_eq!(
            reported("tag 7 cpu", "tag 8 cpu"),
            "a.goal:4:6: no operation receives it: write recv from 0 tag 8 in rank 1"
        );
        assert_eq!(reported(" l2: send 8b to 1 tag 7", " l2: calc 8"), "a.goal:4:19: expected cpu, found 'nic'");
        assert_eq!(
            reported(" l2: send 8b to 1 tag 7 cpu 0 nic 0", " l2: calc 8"),
            "a.goal:8:5: no operation sends it: write send to 1 tag 7 in rank 0"
        );
        assert_eq!(
            reported("recv 8b", "recv 7b"),
            "a.goal:8:5: 7 bytes do not hold the 8 that rank 0 sends at 4:6: receive as many"
        );
        assert_eq!(
            reported("calc 5", "calc 5us"),
            format!("a.goal:9:11: expected nanoseconds, found '5us': write a whole number from 0 to {MOST}")
        );
        assert_eq!(reported("calc 5", "wait 5"), format!("a.goal:9:6: expected an operation, found 'wait': {RIGHT}"));
        assert_eq!(reported("tag 7 cpu 0 nic 0", "tag"), "a.goal:4:19: 'tag' has no number: write for example tag 0");
        assert_eq!(
            read("", "a.goal").unwrap_err().to_string(),
            "a.goal:1:1: there are no ranks: write for example num_ranks 16"
        );
    }
}
