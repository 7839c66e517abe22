//! The known name that a misspelt one most likely means.

/// The name most like `text`, if any is like it at all.
pub fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(&text.to_lowercase(), name);
    let best = names.map(|name| (likeness(name), name)).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= 0.5).then_some(best.1)
}
