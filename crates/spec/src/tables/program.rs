//! `[[program]]`: programs on Linux hosts.

use crate::error::{Problem, SpecError};
use crate::host_directory::HostDirectory;
use crate::host_name::HostName;
use crate::places::{Places, all_or};
use crate::text_form::text_value;
use firstlight_net::HostId;
use firstlight_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The most programs of one experiment: each is a process of one kernel.
const MOST: usize = 4096;

/// A program that runs on a Linux host: running an experiment runs the commands in it. Other hosts have their names
/// there: `host17`, `rack1.host1`. Programs read the machine's files; in virtual time what they write is gone after the
/// run, but for their outputs, their tables and the directories of `linux.writable`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramTable {
    /// Where the program runs: `host3`, `rack0.host3`; `rack0` or `all`: one on each of these hosts.
    pub on: HostName,
    /// The command line, for `/bin/sh`. It has its host's name as `FIRSTLIGHT_HOST` and the experiment's folder as
    /// `FIRSTLIGHT_EXPERIMENT`. A file `NAME.csv` that it leaves in its working directory becomes a table of the
    /// result. Hosts that no flow and no program is on are there if a command line names them.
    pub run: String,
    /// Names the output, `programs/<name>.out` and `.err`, among the results.
    #[schemars(extend("x-without" = "the command's, with the host's"))]
    pub name: Option<FileName>,
    /// When the program starts.
    #[serde(default)]
    pub start: Span,
    /// The program runs until the run's end, which does not wait for it, and is ended then. Any other program must end
    /// with exit code 0.
    #[serde(default)]
    pub server: bool,
    /// The user that the program runs as, by a name in the machine's `/etc/passwd`. Linux hosts in virtual time only.
    #[schemars(extend("x-without" = "root of the hosts", "examples" = ["postgres"]))]
    pub user: Option<String>,
}

/// A name of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName(String);

/// One program on one host.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The name of the output.
    pub name: String,
    /// Where the program runs.
    pub on: HostId,
    /// A command line for `/bin/sh`.
    pub command: String,
    /// When the program starts.
    pub start: Span,
    /// The program runs until the run's end.
    pub server: bool,
    /// The user that the program runs as; `None`: root.
    pub user: Option<String>,
}

impl FromStr for FileName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        let starts = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if text.len() <= 100 && starts && text.bytes().all(fits) {
            return Ok(FileName(text.into()));
        }
        Err("it names files: use letters, digits, '-', '_' and '.', a letter or digit first, and at most 100 of them"
            .into())
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_value! {
    FileName, format: "file-name", pattern: r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", example: "ping"
}

impl Program {
    /// The hosts that the program needs: its own, and those that its command line names.
    pub(crate) fn hosts(&self, directory: &HostDirectory) -> BTreeSet<usize> {
        let is_part_of_name = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let words = self.command.split(|c: char| !is_part_of_name(c)).map(|word| word.trim_matches('.'));
        let named = words.filter_map(|word| word.parse().ok().filter(|name: &HostName| name.is_single()));
        named.filter_map(|name| directory.hosts(name).ok()).flatten().chain([self.on.index()]).collect()
    }
}

/// One record for each process, in the order of the entries.
pub(crate) fn expand(
    tables: &[ProgramTable],
    duration: Span,
    directory: &HostDirectory,
    places: &Places,
) -> Result<Vec<Program>, SpecError> {
    let (mut programs, mut problems): (Vec<Program>, Vec<Problem>) = (vec![], vec![]);
    for (index, table) in tables.iter().enumerate() {
        let problem = |key: &str, text| places.problem(&format!("program.{index}.{key}"), text);
        match table.programs(index, duration, directory) {
            Ok(more) => programs.extend(more),
            Err((key, text)) => problems.push(problem(key, text)),
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = programs.iter().find(|program| !names.insert(program.name.clone())) {
            let text = format!("two programs are called '{}': give each a name of its own", twice.name);
            problems.push(problem("name", text));
            break;
        }
        let output_of = |name: &str| {
            let of = name.strip_suffix(".out").or_else(|| name.strip_suffix(".err"))?;
            names.contains(of).then(|| of.to_string())
        };
        if let Some((name, of)) = names.iter().find_map(|name| Some((name, output_of(name)?))) {
            let text = format!("'{name}' is the file of what program '{of}' prints: give one of them another name");
            problems.push(problem("name", text));
            break;
        }
        if programs.len() > MOST {
            let text = format!("{} programs and more are too many: use at most {MOST}", programs.len());
            problems.push(problem("on", text));
            break;
        }
    }
    all_or(problems).map(|()| programs)
}

impl ProgramTable {
    /// The programs of the entry `index`; an error names its key.
    fn programs(
        &self,
        index: usize,
        duration: Span,
        directory: &HostDirectory,
    ) -> Result<Vec<Program>, (&'static str, String)> {
        let hosts = directory.hosts(self.on).map_err(|text| ("on", text))?;
        if let Some(link) = hosts.iter().find_map(|host| directory.further_link(*host)) {
            return Err(("on", format!("{} is a further link of host{}: write that", self.on, link.of.0)));
        }
        if self.start >= duration {
            let text = format!("it would start after the run's end: use less than duration, {duration}");
            return Err(("start", text));
        }
        let several = hosts.len() > 1;
        let name = |host: usize| match &self.name {
            Some(name) if several => format!("{name}-host{host}"),
            Some(name) => name.to_string(),
            None => format!("{index}{}-host{host}", command_name(&self.run)),
        };
        let program = |&host: &usize| Program {
            name: name(host),
            on: HostId(host as u16),
            command: self.run.clone(),
            start: self.start,
            server: self.server,
            user: self.user.clone(),
        };
        Ok(hosts.iter().map(program).collect())
    }
}

/// `-iperf3` of `/usr/bin/iperf3 -s`; nothing when the command begins with something else.
fn command_name(command: &str) -> String {
    let word = command.split_whitespace().next().unwrap_or_default();
    let name = word.rsplit('/').next().unwrap_or_default();
    if name.parse::<FileName>().is_ok() { format!("-{name}") } else { String::new() }
}
