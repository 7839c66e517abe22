//! Programs on Linux hosts: from the `[[program]]` entries to one record for each process.

use super::error::{Problem, SpecError};
use super::hosts::Shape;
use super::value::Hosts;
use super::values::Values;
use firstlight_net::HostId;
use firstlight_units::Span;
use std::collections::BTreeSet;

/// Most programs of one experiment: each is a process of one kernel.
const MOST: usize = 4096;

/// One program on one host.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Names its output.
    pub name: String,
    /// Where it runs.
    pub on: HostId,
    /// A command line for `/bin/sh`.
    pub command: String,
    /// When it starts.
    pub start: Span,
    /// It runs until the run's end.
    pub server: bool,
}

impl Program {
    /// The hosts that it needs: its own, and those that its command line names.
    pub(crate) fn hosts(&self, shape: &Shape) -> BTreeSet<usize> {
        let is_part_of_name = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let words = self.command.split(|c: char| !is_part_of_name(c)).map(|word| word.trim_matches('.'));
        let single = |name: &Hosts| matches!(name, Hosts::Host(_) | Hosts::RackHost(..));
        let named = words.filter_map(|word| word.parse().ok().filter(single)).filter_map(|name| shape.hosts(name).ok());
        named.flatten().chain([self.on.index()]).collect()
    }
}

/// One record for each process, in the order of the entries.
pub(crate) fn expand(values: &Values, shape: &Shape) -> Result<Vec<Program>, SpecError> {
    let (mut programs, mut problems): (Vec<Program>, Vec<Problem>) = (vec![], vec![]);
    for index in 0..values.count("program") {
        match (Entry { values, shape, index }).programs() {
            Ok(more) => programs.extend(more),
            Err(problem) => problems.push(*problem),
        }
        let own = format!("program.{index}.name");
        let mut names = BTreeSet::new();
        if let Some(twice) = programs.iter().find(|program| !names.insert(program.name.clone())) {
            let text = format!("there are two programs of the name '{}': name each by a name of its own", twice.name);
            problems.push(values.problem(&own, text));
            break;
        }
        if programs.len() > MOST {
            let text = format!("{} programs and more are too many: use at most {MOST}", programs.len());
            problems.push(values.problem(&format!("program.{index}.on"), text));
            break;
        }
    }
    if problems.is_empty() { Ok(programs) } else { Err(SpecError { problems }) }
}

/// One `[[program]]` table.
struct Entry<'a> {
    values: &'a Values,
    shape: &'a Shape,
    index: usize,
}

impl Entry<'_> {
    fn path(&self, key: &str) -> String {
        format!("program.{}.{key}", self.index)
    }

    fn problem(&self, key: &str, text: impl Into<String>) -> Box<Problem> {
        Box::new(self.values.problem(&self.path(key), text))
    }

    fn programs(&self) -> Result<Vec<Program>, Box<Problem>> {
        let hosts = self.shape.hosts(self.values.hosts(&self.path("on"))).map_err(|text| self.problem("on", text))?;
        let (start, duration) = (self.values.span(&self.path("start")), self.values.span("duration"));
        if start >= duration {
            let text = format!("it would start after the run's end: use less than duration, {duration}");
            return Err(self.problem("start", text));
        }
        let given = self.values.text_opt(&self.path("name"));
        if given.as_deref().is_some_and(|name| !is_file_name(name)) {
            return Err(
                self.problem("name", "it names files: use letters, digits, '-', '_' and '.', a letter or digit first")
            );
        }
        let command = self.values.text(&self.path("run"));
        let several = hosts.len() > 1;
        let name = |host: usize| match &given {
            Some(name) if several => format!("{name}-host{host}"),
            Some(name) => name.clone(),
            None => format!("{}{}-host{host}", self.index, command_name(&command)),
        };
        let program = |&host: &usize| Program {
            name: name(host),
            on: HostId(host as u16),
            command: command.clone(),
            start,
            server: self.values.flag(&self.path("server")),
        };
        Ok(hosts.iter().map(program).collect())
    }
}

fn is_file_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    name.len() <= 100 && name.bytes().all(fits) && name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
}

/// `-iperf3` of `/usr/bin/iperf3 -s`; nothing when the command begins with something else.
fn command_name(command: &str) -> String {
    let word = command.split_whitespace().next().unwrap_or_default();
    let name = word.rsplit('/').next().unwrap_or_default();
    if is_file_name(name) { format!("-{name}") } else { String::new() }
}
