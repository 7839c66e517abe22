//! Which crate may use which, and which module of this crate may use which. Dependencies point one way.

mod sources;

use sources::{crates, names, sources};
use std::fs;
use std::path::Path;

/// Each crate with the crates of this workspace that it may use.
const CRATES: [(&str, &[&str]); 18] = [
    ("units", &[]),
    ("version", &[]),
    ("net", &["units", "circuits"]),
    ("circuits", &["units"]),
    // Users' controllers depend on this crate.
    ("cc", &["units"]),
    ("transport", &["units", "net", "cc"]),
    ("plugin", &["cc", "transport"]),
    // It plays scripts in tests only.
    ("packetdrill", &["units", "net", "transport"]),
    ("messages", &["units"]),
    ("formats", &["units", "net"]),
    // The program inside a kernel is small: it knows neither packets nor the engine.
    ("linux", &["units", "messages"]),
    ("guest", &["units", "version", "messages", "linux"]),
    ("sim", &["units", "net", "circuits", "transport", "messages"]),
    ("spec", &["units", "net", "circuits", "transport", "plugin", "messages", "formats", "linux"]),
    ("lab", &["units", "version", "net", "circuits", "transport", "messages", "formats", "linux", "sim", "spec"]),
    ("uml", &["units", "version", "net", "formats", "linux", "sim", "lab"]),
    ("dilated", &["units", "net", "linux", "lab", "uml"]),
    ("py", &["units", "version", "circuits", "transport", "plugin", "formats", "spec", "lab"]),
];

/// The modules of this crate: each uses only those before it.
const MODULES: [&str; 11] =
    ["error", "quantile", "table", "build", "fidelity", "run", "diagnose", "measure", "inspect", "outcome", "chain"];

/// The crates of this workspace that a manifest names under `[dependencies]`.
fn dependencies(manifest: &str) -> Vec<&str> {
    let section = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let section = section.take_while(|line| !line.starts_with('['));
    section.filter_map(|line| line.strip_prefix("firstlight-")?.split(['.', ' ', '=']).next()).collect()
}

#[test]
fn crates_use_only_those_below_them() {
    for name in names(&crates()) {
        let (_, allowed) = CRATES.iter().find(|(known, _)| *known == name).unwrap_or_else(|| {
            panic!("crate {name} is not in the table of layers: add it to CRATES with the crates it may use")
        });
        let manifest = fs::read_to_string(crates().join(&name).join("Cargo.toml")).unwrap();
        for used in dependencies(&manifest) {
            assert!(allowed.contains(&used), "crate {name} may not use crate {used}: see CRATES");
        }
    }
}

#[test]
fn no_crate_compiles_a_file_of_another() {
    for source in names(&crates()).iter().flat_map(|name| sources(&crates().join(name))) {
        let text = fs::read_to_string(&source).unwrap();
        let foreign = |line: &str| line.starts_with("#[path") && line.contains("..");
        assert!(!text.lines().any(foreign), "{} compiles a file of another folder: use its crate", source.display());
    }
}

/// The modules of this crate that a line of code names.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let after = line.split("crate::").skip(1);
    after.map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default())
}

#[test]
fn modules_use_only_those_before_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for source in sources(&root) {
        let relative = source.strip_prefix(&root).unwrap().with_extension("");
        let own = relative.components().next().unwrap().as_os_str().to_str().unwrap().to_owned();
        if own == "lib" {
            continue;
        }
        let rank = |name: &str| {
            let found = MODULES.iter().position(|known| *known == name);
            found.unwrap_or_else(|| panic!("{}: '{name}' is no module in MODULES: add it", source.display()))
        };
        let top = relative.components().count() == 1 || relative == Path::new(&own).join("mod");
        for line in fs::read_to_string(&source).unwrap().lines().filter(|line| !line.trim_start().starts_with("//")) {
            assert!(!top || !line.starts_with("use super::"), "{}: write crate:: for '{line}'", source.display());
            for name in named(line) {
                assert!(rank(name) <= rank(&own), "{own} may not use {name}: {}: {line}", source.display());
            }
        }
    }
}
