//! Kernel code of the user's own: the modules and patches that `linux.modules` and `linux.patches` name.

use crate::error::{Problem, SpecError};
use crate::places::{Places, all_or};
use std::path::Path;

/// The most directories below each other in a module's directory.
const DEEPEST: usize = 8;
/// The files that a kernel's build reads first in a module's directory.
const BUILD_FILES: [&str; 2] = ["Kbuild", "Makefile"];

/// A module's directory, a built module, or a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCode {
    /// Place and name of the key, as messages begin with them.
    pub place: String,
    /// The name of the file or directory in the experiment.
    pub name: String,
    /// The path of the file or directory.
    pub path: String,
    /// The files from which a module is built, by their paths in its directory; none for a file.
    pub sources: Vec<String>,
}

/// The modules that an experiment names. All their files are inputs of the experiment.
pub(crate) fn modules(names: &[String], places: &Places) -> Result<Vec<KernelCode>, SpecError> {
    read(names, |name| module(name, places))
}

/// The patches that an experiment names.
pub(crate) fn patches(names: &[String], places: &Places) -> Result<Vec<KernelCode>, SpecError> {
    read(names, |name| file("linux.patches", name, places))
}

fn read(names: &[String], read: impl Fn(&str) -> Result<KernelCode, Problem>) -> Result<Vec<KernelCode>, SpecError> {
    let (mut found, mut problems) = (vec![], vec![]);
    for name in names {
        match read(name) {
            Ok(code) => found.push(code),
            Err(problem) => problems.push(problem),
        }
    }
    all_or(problems).map(|()| found)
}

fn module(name: &str, places: &Places) -> Result<KernelCode, Problem> {
    const KEY: &str = "linux.modules";
    let folder = places.file(name);
    let problem = |text: String| places.problem(KEY, format!("{}: {text}", folder.display()));
    if !folder.is_dir() {
        if folder.exists() && !name.ends_with(".ko") {
            return Err(problem("neither a module's directory nor a built module (.ko)".into()));
        }
        return file(KEY, name, places);
    }
    if !BUILD_FILES.iter().any(|file| folder.join(file).is_file()) {
        return Err(problem(
            "the directory has no Kbuild: write one with the line obj-m := NAME.o, for a module from NAME.c".into(),
        ));
    }
    let mut sources = vec![];
    list(&folder, "", DEEPEST, &mut sources).map_err(|error| problem(format!("cannot be read: {error}")))?;
    sources.sort_unstable();
    for source in &sources {
        places.read_bytes(KEY, &format!("{}/{source}", name.trim_end_matches('/')))?;
    }
    Ok(code(KEY, name, &folder, sources, places))
}

fn file(key: &str, name: &str, places: &Places) -> Result<KernelCode, Problem> {
    places.read_bytes(key, name)?;
    Ok(code(key, name, &places.file(name), vec![], places))
}

fn code(key: &str, name: &str, path: &Path, sources: Vec<String>, places: &Places) -> KernelCode {
    let place = format!("{}: {key}", places.place(key));
    KernelCode { place, name: name.into(), path: path.display().to_string(), sources }
}

/// Adds the sources in a directory, and in those below it, to `found`. Files that a build leaves there are no sources.
fn list(folder: &Path, inside: &str, deepest: usize, found: &mut Vec<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if inside.is_empty() { name.clone() } else { format!("{inside}/{name}") };
        if entry.path().is_dir() && !name.starts_with('.') && deepest > 0 {
            list(&entry.path(), &path, deepest - 1, found)?;
        } else if is_source(&name) && entry.path().is_file() {
            found.push(path);
        }
    }
    Ok(())
}

fn is_source(name: &str) -> bool {
    let code = [".c", ".h", ".S"].iter().any(|ending| name.ends_with(ending));
    BUILD_FILES.contains(&name) || (code && !name.starts_with('.') && !name.ends_with(".mod.c"))
}
