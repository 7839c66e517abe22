//! The run's directory: the files that the engine reads before the run, and those that it writes.
//!
//! The engine reads `experiment.toml`, `run.json` and `plan.json`. It writes `progress` during the run and
//! `outcome.json` or `failure.json` at the end. These two get their names when they are complete.

use crate::outcome;
use firstlight_lab::spec::{OverrideValue, Request, SpecError};
use firstlight_lab::{LabError, Outcome, Spec, TimelineRequest};
use firstlight_linux::Plan;
use firstlight_units::UnitError;
use firstlight_version::version;
use serde_json::{Value as Json, json};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Calls between two updates of the progress, at most.
const CALLS_PER_UPDATE: u32 = 1000;
/// Nanoseconds of the hosts' clock after which a call updates the progress: hosts that are quiet make few calls.
const TIME_PER_UPDATE: u64 = 10_000_000;

/// Why there is no run, or no result.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The kernel has another version of the interface.
    #[error(
        "the kernel has version {kernel} of the interface, this engine has {engine}: run `firstlight kernel build`"
    )]
    Abi {
        /// Version of the kernel.
        kernel: u32,
        /// Version of the engine.
        engine: u32,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file has wrong content.
    #[error("{path}: {problem}")]
    Content {
        /// The file.
        path: PathBuf,
        /// The problem of the content.
        problem: String,
    },
    /// Another version of Firstlight wrote the directory.
    #[error("{path} is of Firstlight {theirs}, this engine is of {ours}: build both from one source")]
    Version {
        /// The file.
        path: PathBuf,
        /// The version that wrote the file.
        theirs: String,
        /// The version of this engine.
        ours: String,
    },
    /// The experiment is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The experiment cannot be built, or its result is worthless.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The guest program reported that the run cannot go on.
    #[error("{0}")]
    Guest(String),
    /// The system cannot start a thread.
    #[error("cannot start a thread for the engine's work: {0}; free some memory")]
    Thread(#[source] io::Error),
}

/// The run that the directory describes.
pub(crate) struct RunOrder {
    pub spec: Spec,
    pub overrides: Vec<(String, OverrideValue)>,
    pub plan: Plan,
    /// The file for captured packets; `None`: no capture.
    pub capture: Option<PathBuf>,
    /// The timeline; `None`: none.
    pub timeline: Option<TimelineRequest>,
}

/// A run's directory.
#[derive(Clone, Debug)]
pub struct RunDirectory(PathBuf);

impl RunDirectory {
    /// The directory at this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        RunDirectory(path.into())
    }

    /// The directory at the path that the kernel's command line gives as bytes.
    pub(crate) fn of_bytes(path: &[u8]) -> Self {
        use std::os::unix::ffi::OsStrExt;
        RunDirectory(Path::new(std::ffi::OsStr::from_bytes(path)).into())
    }

    /// Path of a file in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The text of a file in the directory.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn text(&self, name: &str) -> Result<String, SessionError> {
        let path = self.path(name);
        std::fs::read_to_string(&path).map_err(|source| SessionError::Read { path, source })
    }

    fn content(&self, name: &str, problem: impl ToString) -> SessionError {
        SessionError::Content { path: self.path(name), problem: problem.to_string() }
    }

    /// Reads the run's description, and checks that it was written for this version of the engine.
    pub(crate) fn read(&self) -> Result<RunOrder, SessionError> {
        let run: Json = serde_json::from_str(&self.text("run.json")?).map_err(|e| self.content("run.json", e))?;
        let text = |key: &str| {
            run[key].as_str().ok_or_else(|| self.content("run.json", format!("the key {key} is missing or is no text")))
        };
        self.check_version("run.json", text("version")?)?;
        let overrides = run["overrides"].as_object().into_iter().flatten();
        let overrides: Vec<_> = overrides.map(|(key, value)| (key.clone(), override_value(value))).collect();
        let sweep = run["sweep"].as_bool().unwrap_or(false);
        let request = Request::read(&self.text("experiment.toml")?, text("path")?, &overrides, sweep)?;
        let Request::Network(spec) = request else { return Err(LabError::NoLinuxHosts.into()) };
        let plan: Plan =
            serde_json::from_str(&self.text("plan.json")?).map_err(|error| self.content("plan.json", error))?;
        self.check_version("plan.json", &plan.version)?;
        self.check_plan(&plan, &spec)?;
        let capture = run["capture"].as_str().map(PathBuf::from);
        Ok(RunOrder { spec: *spec, overrides, plan, capture, timeline: timeline(&run["timeline"])? })
    }

    fn check_version(&self, name: &str, theirs: &str) -> Result<(), SessionError> {
        let ours = version();
        if theirs == ours {
            return Ok(());
        }
        Err(SessionError::Version { path: self.path(name), theirs: theirs.into(), ours })
    }

    fn check_plan(&self, plan: &Plan, spec: &Spec) -> Result<(), SessionError> {
        let linux = spec.linux.as_ref().ok_or(LabError::NoLinuxHosts)?;
        let planned = plan.hosts.iter().map(|host| host.host);
        if !planned.eq(linux.hosts.iter().map(|host| host.host.0)) {
            return Err(self.content(
                "plan.json",
                "its hosts differ from those of experiment.toml: write both anew by `firstlight run`",
            ));
        }
        if plan.programs.len() != linux.programs.len() {
            return Err(self.content(
                "plan.json",
                "its programs differ from those of experiment.toml: write both anew by `firstlight run`",
            ));
        }
        Ok(())
    }

    /// Writes the result.
    pub(crate) fn write_outcome(&self, outcome: &Outcome) -> Result<(), SessionError> {
        self.write("outcome.json", |file| outcome::write(outcome, file))
    }

    /// Writes why there is no result.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_failure(&self, why: &str) -> Result<(), SessionError> {
        self.write("failure.json", |file| serde_json::to_writer(file, &json!({"error": why})).map_err(Into::into))
    }

    fn write(&self, name: &str, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), SessionError> {
        let (path, part) = (self.path(name), self.path(&format!("{name}.part")));
        let written = || {
            let mut file = BufWriter::with_capacity(1 << 16, File::create(&part)?);
            content(&mut file)?;
            file.flush()?;
            std::fs::rename(&part, &path)
        };
        written().map_err(|source| {
            // The partial file may take the space that the report of this failure needs.
            _ = std::fs::remove_file(&part);
            SessionError::Write { path: path.clone(), source }
        })
    }
}

/// The timeline that the front end asks for.
fn timeline(asked: &Json) -> Result<Option<TimelineRequest>, LabError> {
    let Some(path) = asked["path"].as_str().map(PathBuf::from) else { return Ok(None) };
    let wrong = |problem: &dyn Display| LabError::Timeline(problem.to_string());
    let span = |key: &str| asked[key].as_str().map(str::parse).transpose().map_err(|error: UnitError| wrong(&error));
    let flows = serde_json::from_value(asked["flows"].clone()).map_err(|error| wrong(&error))?;
    Ok(Some(TimelineRequest { path, flows, from: span("start")?, until: span("end")? }))
}

/// An override from JSON; null removes the key.
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
/// the kernel's calls. The front end reads it. The run goes on when the file cannot be written.
pub(crate) struct ProgressFile {
    file: Option<File>,
    calls: u64,
    left: u32,
    /// When the next call updates it.
    due: u64,
}

impl ProgressFile {
    /// Creates the file, if that is possible.
    pub fn new(directory: &RunDirectory) -> Self {
        let file = File::create(directory.path("progress")).ok();
        ProgressFile { file, calls: 0, left: CALLS_PER_UPDATE, due: TIME_PER_UPDATE }
    }

    /// Counts a call when the hosts' clock has run for `elapsed`, and notes it now and then.
    #[inline]
    pub fn count(&mut self, elapsed: u64) {
        self.calls += 1;
        self.left -= 1;
        if self.left == 0 || elapsed >= self.due {
            self.update(elapsed);
        }
    }

    /// Writes how long the hosts' clock has run.
    #[cold]
    pub fn update(&mut self, elapsed: u64) {
        (self.left, self.due) = (CALLS_PER_UPDATE, elapsed + TIME_PER_UPDATE);
        if let Some(file) = &self.file {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&elapsed.to_le_bytes());
            bytes[8..].copy_from_slice(&self.calls.to_le_bytes());
            _ = file.write_at(&bytes, 0);
        }
    }
}

impl SessionError {
    /// The errno value that the guest program's write returns.
    pub(crate) fn errno(&self) -> i32 {
        match self {
            SessionError::Write { source, .. } | SessionError::Read { source, .. } | SessionError::Thread(source) => {
                source.raw_os_error().unwrap_or(libc::EIO)
            }
            _ => libc::EIO,
        }
    }
}
