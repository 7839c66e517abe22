//! The version of this build. The engine and the program inside a Linux kernel compare theirs.

/// The version, with the commit it was built from when that is known: `0.1.0+gc61815c0a`.
pub fn version() -> String {
    match option_env!("FIRSTLIGHT_COMMIT") {
        Some(commit) => format!("{}+g{commit}", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").into(),
    }
}
