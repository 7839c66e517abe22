//! The files of this workspace's crates.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of all crates.
pub fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate is one of several").into()
}

/// Names of a folder's entries.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// All Rust files in a folder and below it.
pub fn sources(folder: &Path) -> Vec<PathBuf> {
    let all = names(folder).into_iter().map(|name| folder.join(name));
    all.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}
