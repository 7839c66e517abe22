//! Linux's own packetdrill scripts, unchanged, from the kernel's sources that `firstlight kernel build` keeps in the
//! cache.
//!
//! Without sources nothing is run. `FIRSTLIGHT_PACKETDRILL` names another directory of scripts.

use firstlight_packetdrill::{ScriptProblem, run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the scripts are in a tree of Linux.
const PLACE: &str = "tools/testing/selftests/net/packetdrill";
/// Scripts about what the endpoint does not have: words in their names.
const LEFT_OUT: [&str; 5] = ["accecn", "fastopen", "zerocopy", "md5", "syncookies"];
/// Scripts that do not pass, and why.
const REASONS: [(&str, &str); 4] = [
    ("rto_synack_rto_max", "its first half uses TCP Fast Open, which the endpoint does not have"),
    ("slow_start_slow-start-fq-ack-per-2pkt", "the `fq` queue discipline paces packets; hosts here have none"),
    ("splice_tcp_splice_loop_test", "the endpoint has no urgent data"),
    (
        "user_timeout_user-timeout-probe",
        "the queue discipline refuses packets; a full interface here makes senders wait",
    ),
];

/// The directory of the scripts, taken out of the kernel's sources if that was not done before.
fn scripts() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("FIRSTLIGHT_PACKETDRILL") {
        return Some(PathBuf::from(named));
    }
    let cache = cache()?;
    let sources = std::fs::read_dir(cache.join("sources")).ok()?;
    let tarball = sources.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_tarball(path)).max()?;
    let name = tarball.file_name()?.to_string_lossy().split(".tar").next()?.to_owned();
    let place = cache.join("packetdrill").join(name);
    if !place.exists() {
        unpack(&tarball, &place);
    }
    Some(place)
}

fn cache() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    variable("FIRSTLIGHT_CACHE")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("firstlight")))
        .or_else(|| Some(variable("HOME")?.join(".cache/firstlight")))
}

fn is_tarball(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains(".tar"))
}

/// Takes the scripts out of a tarball of Linux. They appear whole or not at all.
fn unpack(tarball: &Path, place: &Path) {
    let part = place.with_extension(format!("part{}", std::process::id()));
    std::fs::create_dir_all(&part).expect("the cache can be written to");
    let depth = 1 + PLACE.matches('/').count() + 1;
    let tar = Command::new("tar")
        .args(["-x", "--wildcards", &format!("--strip-components={depth}"), "-f"])
        .arg(tarball)
        .arg("-C")
        .arg(&part)
        .arg(format!("*/{PLACE}/*"))
        .status();
    assert!(tar.is_ok_and(|status| status.success()), "tar cannot read {}", tarball.display());
    if std::fs::rename(&part, place).is_err() {
        // Another test was faster.
        std::fs::remove_dir_all(&part).expect("it was made here");
    }
}

/// Runs the scripts that are about what the endpoint has; by name, without prefix and ending.
fn results(directory: &Path) -> BTreeMap<String, Result<(), ScriptProblem>> {
    let files = std::fs::read_dir(directory).expect("the directory of scripts can be read");
    let mut files: Vec<PathBuf> = files.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "pkt"));
    let name = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().replacen("tcp_", "", 1);
    files.retain(|path| !LEFT_OUT.iter().any(|word| name(path).contains(word)));
    files.iter().map(|path| (name(path), run(path))).collect()
}

#[test]
fn the_kernels_scripts_pass() {
    let Some(directory) = scripts() else {
        eprintln!("no sources of Linux in the cache: `firstlight kernel build` brings them");
        return;
    };
    let results = results(&directory);
    let reasons = BTreeMap::from(REASONS);
    let mut wrong = vec![];
    for (name, result) in &results {
        match (result, reasons.get(&**name)) {
            (Ok(()), None) | (Err(_), Some(_)) => {}
            (Ok(()), Some(_)) => wrong.push(format!("{name} passes: take it out of REASONS")),
            (Err(problem), None) => wrong.push(format!("{name}: {problem}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let passed = results.values().filter(|result| result.is_ok()).count();
    assert_is_documented(passed, results.len());
}

/// The page about the endpoint says how many scripts pass, and has the reasons of those that do not.
fn assert_is_documented(passed: usize, all: usize) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/models/tcp.md");
    let text = std::fs::read_to_string(&page).expect("the page is there");
    let mut lines = vec![format!("{passed} of {all} scripts pass")];
    lines.extend(REASONS.iter().map(|(name, reason)| format!("| `{name}` | {reason} |")));
    for line in lines {
        assert!(text.contains(&line), "docs/models/tcp.md lacks this line:\n{line}");
    }
}
