//! Keys that had another name once: an old name is an error that says the new one.

/// The old path of each key and its path now; `*` stands for an index of a list.
const RENAMED: &[(&str, &str)] = &[];

/// The present path of a key that was once called `path`, if there is one.
pub(crate) fn now(path: &str) -> Option<&'static str> {
    let steps = path.split('.').map(|step| if step.bytes().all(|b| b.is_ascii_digit()) { "*" } else { step });
    let pattern = steps.collect::<Vec<_>>().join(".");
    RENAMED.iter().find(|(old, _)| *old == pattern).map(|(_, now)| *now)
}
