//! The places of an experiment's keys, which of them are given, and the files that they name.

use crate::document::{Document, Origin};
use crate::error::{Problem, ProblemPlace, SpecError};
use crate::input_file::read_input;
use crate::model::{self, Key, Shape};
use firstlight_formats::ImportError;
use firstlight_transport::cc::{CcName, OwnConfig};
use firstlight_units::SettingError;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The places of all keys and tables that a file and its overrides give.
#[derive(Debug)]
pub(crate) struct Places {
    pub document: Document,
    /// The place of each key's value, by the key's path: `flows.0.cc`.
    pub keys: BTreeMap<String, Origin>,
    /// The place of each table, by its path, even if the table is empty.
    pub tables: BTreeMap<String, Origin>,
    /// The files that were read: the name that the experiment has for each, and its path.
    inputs: RefCell<BTreeMap<String, String>>,
    /// The user's own congestion controls that the experiment may name, or does.
    pub own: Vec<OwnConfig>,
    /// Whether the hosts' kernel has code of the user's, and so perhaps congestion controls.
    kernel_code: bool,
}

/// Characters of the name of a kernel's congestion control, at most.
const LONGEST_CONTROL: usize = 15;

impl Places {
    pub fn of(document: Document, own: Vec<OwnConfig>) -> Self {
        let kernel_code = ["modules", "patches"].iter().any(|key| document.has_items("linux", key));
        let (keys, tables) = (BTreeMap::new(), BTreeMap::new());
        Places { document, keys, tables, inputs: RefCell::default(), own, kernel_code }
    }

    /// Whether `name` may be a congestion control of the user's module or patch. Only the kernel can decide.
    pub fn kernel_controller(&self, name: &str) -> bool {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
        self.kernel_code && (1..=LONGEST_CONTROL).contains(&name.len()) && name.bytes().all(fits)
    }

    /// Whether `name` is a user's own congestion control: a Python class that came with the experiment, or a shared
    /// object, which is loaded when it is first named. An error is the text of that file's problem.
    pub fn own_controller(&mut self, name: &str) -> Option<Result<(), String>> {
        if self.own.iter().any(|own| own.name() == name) {
            return Some(Ok(()));
        }
        if !name.ends_with(".so") {
            return None;
        }
        let file = self.file(name);
        let loaded = firstlight_plugin::load(CcName::own(name).as_str(), &file);
        Some(
            loaded
                .map(|own| {
                    self.own.push(own);
                    self.inputs.borrow_mut().insert(name.into(), file.display().to_string());
                })
                .map_err(|problem| format!("{}: {problem}", file.display())),
        )
    }

    /// The path of a file that the experiment names, relative to the experiment's folder.
    pub fn file(&self, name: &str) -> PathBuf {
        Path::new(&self.document.path).parent().unwrap_or(Path::new("")).join(name)
    }

    /// Whether the key at `path` is given.
    pub fn has(&self, path: &str) -> bool {
        debug_assert!(model::key_at(path).is_some(), "{path} is no key");
        self.keys.contains_key(path)
    }

    /// A problem with the key or table at `path`, at its place.
    pub fn problem(&self, path: &str, problem: impl Into<String>) -> Problem {
        debug_assert!(model::key_at(path).is_some(), "{path} is no key");
        Problem { key: path.into(), place: self.place(path), problem: problem.into() }
    }

    /// The key of the table at `path` is missing.
    pub fn missing(&self, key: &Key, path: &str) -> Problem {
        let header = match path.rsplit_once('.') {
            _ if path.is_empty() => "at the top".into(),
            Some((list, index)) if index.bytes().all(|b| b.is_ascii_digit()) => format!("in [[{list}]]"),
            _ => format!("in [{path}]"),
        };
        let text = match &key.shape {
            Shape::Table(table) => {
                let first = table.kind.as_deref().or_else(|| table.variants[0].keys.first());
                let first = first.map_or(String::new(), |key| format!(" with {} = {}", key.name, key.example()));
                format!("missing: write for example [{}]{first}", model::join(path, &key.name))
            }
            _ => format!("missing: write for example {} = {} {header}", key.name, key.example()),
        };
        self.problem(&model::join(path, &key.name), text)
    }

    /// A problem that the table at `table` has found with itself.
    pub fn setting(&self, table: &str, error: SettingError) -> Problem {
        self.problem(&model::join(table, &error.key), error.problem)
    }

    /// The place of the value at `path`; if it is not given, that of the nearest table around it, or else the file.
    pub fn place(&self, path: &str) -> ProblemPlace {
        if let Some(origin) = self.keys.get(path) {
            return self.document.place_of(origin);
        }
        let mut around = Some(path);
        while let Some(table) = around {
            if let Some(origin) = self.tables.get(table) {
                return self.document.place_of(origin);
            }
            around = table.rsplit_once('.').map(|(parent, _)| parent);
        }
        self.document.place(None)
    }

    /// Reads a text file that the key at `path` names, relative to the experiment's folder. Returns its path and its
    /// content.
    pub fn read_file(&self, path: &str, name: &str) -> Result<(String, String), Problem> {
        let (file, bytes) = self.read_bytes(path, name)?;
        let text = self.text(path, &file, bytes)?;
        Ok((file, text))
    }

    /// Reads a file that need not be a text. Returns its path and its content.
    pub fn read_bytes(&self, path: &str, name: &str) -> Result<(String, Vec<u8>), Problem> {
        let file = self.file(name);
        let bytes = read_input(&file).map_err(|error| self.unreadable(path, &file.display().to_string(), &error))?;
        let file = file.display().to_string();
        self.inputs.borrow_mut().insert(name.into(), file.clone());
        Ok((file, bytes))
    }

    /// How many files, relative to the experiment's folder, have names with this beginning and end and a number
    /// between.
    pub fn count_files(&self, begin: &str, end: &str) -> usize {
        // The folder is never the empty path, which cannot be listed.
        let begin = Path::new(".").join(self.file(begin));
        let Some((folder, begin)) = begin.parent().zip(begin.file_name()) else { return 0 };
        let is_one = |name: &str| {
            let number = name.strip_prefix(&*begin.to_string_lossy()).and_then(|rest| rest.strip_suffix(end));
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        };
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter(|entry| is_one(&entry.file_name().to_string_lossy())).count()
    }

    /// The text of a file that the key at `path` names, without its byte order mark.
    pub fn text(&self, path: &str, file: &str, bytes: Vec<u8>) -> Result<String, Problem> {
        let text = String::from_utf8(bytes).map_err(|error| self.unreadable(path, file, &error.utf8_error()))?;
        Ok(text.strip_prefix('\u{feff}').map(String::from).unwrap_or(text))
    }

    fn unreadable(&self, path: &str, file: &str, error: &dyn std::error::Error) -> Problem {
        self.problem(path, format!("cannot read {file}: {error}"))
    }

    /// The problem of a file that the key at `key` names, at its place in that file.
    pub fn imported(&self, key: &str, error: ImportError) -> Problem {
        let ImportError { file: path, line, column, problem } = error;
        Problem { key: key.into(), place: ProblemPlace::Line { path, line, column }, problem }
    }

    /// The files that were read: the name that the experiment has for each, and its path.
    pub fn inputs(&self) -> BTreeMap<String, String> {
        self.inputs.borrow().clone()
    }
}

/// Problems, unless there are none.
pub(crate) fn all_or(problems: Vec<Problem>) -> Result<(), SpecError> {
    if problems.is_empty() { Ok(()) } else { Err(SpecError { problems }) }
}
