//! Passes to the crate the commit that it is built from, when that can be known: a source archive has no repository.

use std::path::Path;
use std::process::Command;

/// Sets `FIRSTLIGHT_COMMIT` for the crate.
pub fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let root = Path::new("../..");
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    // A repository of somebody else around an unpacked archive is not ours.
    if !root.join(".git").exists() {
        return;
    }
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            let path = root.join(path);
            if path.exists() {
                println!("cargo::rerun-if-changed={}", path.display());
            }
        }
    }
    if let Some(commit) = git(&["rev-parse", "--short=9", "HEAD"]) {
        println!("cargo::rustc-env=FIRSTLIGHT_COMMIT={commit}");
    }
}
