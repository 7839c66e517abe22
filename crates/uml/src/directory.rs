//! The run's directory: what is read from it before the run, and what is written to it.
//!
//! `experiment.toml`, `run.json` and `plan.json` are read; `progress` is written while the run goes on, `outcome.json` or
//! `failure.json` at its end. Both take their names when they are whole.

use crate::outcome;
use firstlight_lab::spec::{OverrideValue, SpecError};
use firstlight_lab::{LabError, Outcome, Spec};
use firstlight_linux::Plan;
use firstlight_version::version;
use serde_json::{Value as Json, json};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Calls between two notes of progress.
const PATIENCE: u32 = 1000;

/// Why there is no run, or no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The kernel speaks another language.
    #[error("the kernel has interface {kernel}, this engine {engine}: build the kernel anew (firstlight kernel build)")]
    Abi { kernel: u32, engine: u32 },
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    /// A file is not what it should be.
    #[error("{path}: {problem}")]
    Content { path: PathBuf, problem: String },
    /// Another Firstlight wrote the directory.
    #[error("{path} is of Firstlight {theirs}, this engine is {ours}: build both from one source")]
    Version { path: PathBuf, theirs: String, ours: String },
    /// The experiment is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// It cannot be built, or its result cannot be trusted.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    /// The guest program gave up.
    #[error("{0}")]
    Guest(String),
    /// The system gives no thread.
    #[error("no memory or thread for the engine's own work: {0}")]
    Aside(#[source] io::Error),
}

/// What the directory says is to be run.
pub(crate) struct Order {
    pub spec: Spec,
    pub overrides: Vec<(String, OverrideValue)>,
    pub plan: Plan,
    /// Where packets are to be captured.
    pub capture: Option<PathBuf>,
}

/// A run's directory.
#[derive(Clone, Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Directory(path.into())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn text(&self, name: &str) -> Result<String, Failure> {
        let path = self.path(name);
        std::fs::read_to_string(&path).map_err(|source| Failure::Read { path, source })
    }

    fn content(&self, name: &str, problem: impl ToString) -> Failure {
        Failure::Content { path: self.path(name), problem: problem.to_string() }
    }

    /// Reads what is to be run, and checks that it was written for this engine.
    pub fn read(&self) -> Result<Order, Failure> {
        let run: Json = serde_json::from_str(&self.text("run.json")?).map_err(|e| self.content("run.json", e))?;
        let text = |key: &str| run[key].as_str().ok_or_else(|| self.content("run.json", format!("{key} is no text")));
        self.check_version("run.json", text("version")?)?;
        let overrides = run["overrides"].as_object().into_iter().flatten();
        let overrides: Vec<_> = overrides.map(|(key, value)| (key.clone(), override_value(value))).collect();
        let sweep = run["sweep"].as_bool().unwrap_or(false);
        let spec = Spec::read_with(&self.text("experiment.toml")?, text("path")?, &overrides, sweep)?;
        let plan: Plan =
            serde_json::from_str(&self.text("plan.json")?).map_err(|error| self.content("plan.json", error))?;
        self.check_version("plan.json", &plan.version)?;
        self.check_plan(&plan, &spec)?;
        Ok(Order { spec, overrides, plan, capture: run["capture"].as_str().map(PathBuf::from) })
    }

    fn check_version(&self, name: &str, theirs: &str) -> Result<(), Failure> {
        let ours = version();
        if theirs == ours {
            return Ok(());
        }
        Err(Failure::Version { path: self.path(name), theirs: theirs.into(), ours })
    }

    fn check_plan(&self, plan: &Plan, spec: &Spec) -> Result<(), Failure> {
        let linux = spec.linux.as_ref().ok_or(LabError::NoLinuxHosts)?;
        let planned = plan.hosts.iter().map(|host| host.host);
        if !planned.eq(linux.hosts.iter().map(|host| host.host.0)) {
            return Err(self.content("plan.json", "its hosts are not those of experiment.toml"));
        }
        if plan.programs.len() != linux.programs.len() {
            return Err(self.content("plan.json", "its programs are not those of experiment.toml"));
        }
        Ok(())
    }

    /// Writes the result.
    pub fn write_outcome(&self, outcome: &Outcome) -> Result<(), Failure> {
        self.write("outcome.json", |file| outcome::write(outcome, file))
    }

    /// Writes why there is none.
    pub fn write_failure(&self, why: &str) -> Result<(), Failure> {
        self.write("failure.json", |file| serde_json::to_writer(file, &json!({"error": why})).map_err(Into::into))
    }

    fn write(&self, name: &str, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let (path, part) = (self.path(name), self.path(&format!("{name}.part")));
        let written = || {
            let mut file = BufWriter::with_capacity(1 << 16, File::create(&part)?);
            content(&mut file)?;
            file.flush()?;
            std::fs::rename(&part, &path)
        };
        written().map_err(|source| {
            // What is left of it takes the room that a message about the failure may need.
            _ = std::fs::remove_file(&part);
            Failure::Write { path: path.clone(), source }
        })
    }
}

/// From JSON; null takes the key away.
fn override_value(value: &Json) -> OverrideValue {
    match value {
        Json::Null => OverrideValue::Remove,
        Json::Bool(flag) => OverrideValue::Flag(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(n) => OverrideValue::Integer(n),
            None => OverrideValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => OverrideValue::Text(text.clone()),
        Json::Array(items) => OverrideValue::List(items.iter().map(override_value).collect()),
        Json::Object(entries) => {
            OverrideValue::Table(entries.iter().map(|(key, value)| (key.clone(), override_value(value))).collect())
        }
    }
}

/// The file that says how far the run is: 16 bytes, the hosts' time since the start in nanoseconds and the number of
/// the kernel's calls. Whoever watches the run reads it; that it cannot be written is no reason to end the run.
pub(crate) struct Progress {
    file: Option<File>,
    calls: u64,
    left: u32,
}

impl Progress {
    pub fn new(directory: &Directory) -> Self {
        Progress { file: File::create(directory.path("progress")).ok(), calls: 0, left: PATIENCE }
    }

    /// Counts a call; true when it is time for a note.
    #[inline]
    pub fn count(&mut self) -> bool {
        self.calls += 1;
        self.left -= 1;
        self.left == 0
    }

    /// Notes how long the hosts' clock has run.
    #[cold]
    pub fn note(&mut self, elapsed: u64) {
        self.left = PATIENCE;
        if let Some(file) = &self.file {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&elapsed.to_le_bytes());
            bytes[8..].copy_from_slice(&self.calls.to_le_bytes());
            _ = file.write_at(&bytes, 0);
        }
    }
}

/// The system's number of what went wrong, for the guest's write.
impl Failure {
    pub fn errno(&self) -> i32 {
        match self {
            Failure::Write { source, .. } | Failure::Read { source, .. } | Failure::Aside(source) => {
                source.raw_os_error().unwrap_or(libc::EIO)
            }
            _ => libc::EIO,
        }
    }
}

/// Whether a path can be given to a kernel's command line.
pub(crate) fn as_directory(bytes: &[u8]) -> Directory {
    use std::os::unix::ffi::OsStrExt;
    Directory::new(Path::new(std::ffi::OsStr::from_bytes(bytes)))
}
