//! Runs packetdrill scripts, as they are, against the TCP endpoint of `firstlight-transport`. It serves tests alone.
//!
//! Packetdrill (Cardwell et al., USENIX ATC 2013) tests the TCP of an operating system by scripts that say which
//! packets arrive, which calls a program makes, and which packets and results must follow. Here a host in virtual time
//! takes the system's place: the endpoint behind a layer of sockets ([`host`], `calls.rs`), which knows the settings
//! that a script's shell commands make (`shell.rs`, `sysctl.rs`). As in packetdrill several packets of one burst are
//! compared as one, values of timestamps only where the script asks for it, and times with a tolerance of 4 ms or 12.5
//! %.

mod calls;
mod compare;
mod host;
mod names;
mod parse;
mod play;
mod python;
mod reader;
mod script;
mod shell;
mod sysctl;
mod translate;

use std::path::Path;

/// Why a script did not pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptProblem {
    /// The text is not understood.
    #[error("line {line}: {message}")]
    Syntax {
        /// The line of the script.
        line: usize,
        /// The problem.
        message: String,
    },
    /// The script needs a feature that the endpoint, or this runner, does not have.
    #[error("line {line}: there are no {what} here")]
    Unsupported {
        /// The line of the script.
        line: usize,
        /// The missing feature.
        what: String,
    },
    /// Something else happened than the script says.
    #[error("line {line}: {message}")]
    Differs {
        /// The line of the script.
        line: usize,
        /// The result, and the expected result.
        message: String,
    },
    /// A file cannot be read, or Python cannot be started.
    #[error("{0}")]
    System(String),
}

impl ScriptProblem {
    pub(crate) fn syntax(line: usize, message: String) -> Self {
        ScriptProblem::Syntax { line, message }
    }

    pub(crate) fn unsupported(line: usize, what: impl Into<String>) -> Self {
        ScriptProblem::Unsupported { line, what: what.into() }
    }

    /// This problem with its line, which was not known where the problem was found.
    pub(crate) fn at(mut self, at: usize) -> Self {
        if let ScriptProblem::Unsupported { line, .. } | ScriptProblem::Differs { line, .. } = &mut self {
            *line = at;
        }
        self
    }

    pub(crate) fn differs(line: usize, message: impl Into<String>) -> Self {
        ScriptProblem::Differs { line, message: message.into() }
    }
}

/// Runs the script in a file. Files that its commands name are looked for in the script's directory.
///
/// # Errors
/// Why the script did not pass.
pub fn run(path: &Path) -> Result<(), ScriptProblem> {
    let text = std::fs::read_to_string(path).map_err(|e| ScriptProblem::System(format!("{}: {e}", path.display())))?;
    let script = parse::parse(&text)?;
    play::play(&script, path.parent().unwrap_or(Path::new(".")))
}
