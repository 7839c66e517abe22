//! The Python statements of scripts: assertions about `tcp_info`.

use crate::ScriptProblem;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

/// Statements with what they can name.
#[derive(Debug)]
pub(crate) struct Snippet {
    pub(crate) line: usize,
    pub(crate) code: String,
    pub(crate) names: BTreeMap<&'static str, u64>,
}

/// Ends the process with the line of the snippet that failed, and its message.
const RUNNER: &str = "
import sys
for line, names, code in SNIPPETS:
    try:
        exec(code, dict(names))
    except BaseException as error:
        print(line, type(error).__name__, error)
        sys.exit(1)
";

/// Executes the snippets one after the other, each with its own names.
pub(crate) fn execute(snippets: &[Snippet]) -> Result<(), ScriptProblem> {
    if snippets.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = snippets.iter().map(Snippet::literal).collect();
    let program = format!("SNIPPETS = [{}]\n{RUNNER}", list.join(",\n"));
    let failed = |e: std::io::Error| ScriptProblem::System(format!("python3: {e}"));
    let mut python =
        Command::new("python3").arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    python.stdin.take().expect("it is piped").write_all(program.as_bytes()).map_err(failed)?;
    let output = python.wait_with_output().map_err(failed)?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(());
    }
    let (line, message) = text.split_once(' ').unwrap_or(("0", &text));
    Err(ScriptProblem::differs(line.parse().unwrap_or(0), message))
}

impl Snippet {
    fn literal(&self) -> String {
        let names: Vec<String> = self.names.iter().map(|(name, value)| format!("{name:?}: {value}")).collect();
        format!("({}, {{{}}}, {:?})", self.line, names.join(", "), format!("{}\n", self.code.trim_start()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_told_with_its_line() {
        let snippet = |line, code: &str| Snippet { line, code: code.into(), names: BTreeMap::from([("a", 5)]) };
        assert_eq!(execute(&[snippet(1, " assert 4 <= a <= 6, a; assert a == 5\n")]), Ok(()));
        let problem = execute(&[snippet(1, "assert a == 5"), snippet(7, "assert a == 6, 'a=%d' % a")]).unwrap_err();
        assert_eq!(problem.to_string(), "line 7: AssertionError a=5");
    }
}
