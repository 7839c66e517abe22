//! Doc comments can be read alone, and a type's name has one meaning in the whole workspace.

mod sources;

use sources::{crates, names, sources};
use std::collections::BTreeMap;
use std::fs;

/// First words of a comment that only goes on with the one before: "in the tick that starts here."
const HALVES: [&str; 6] = ["and", "or", "in", "by", "where", "which"];

/// First words whose noun is in another comment.
const WITHOUT_NOUN: [&str; 8] = ["As above", "As [", "The same", "It", "Its", "Those", "They", "Them"];

/// All files of crates' `src`, by name, with their text.
fn texts() -> Vec<(String, String)> {
    let folders = names(&crates()).into_iter().map(|name| crates().join(name).join("src"));
    let files = folders.flat_map(|folder| sources(&folder));
    files.map(|file| (file.display().to_string(), fs::read_to_string(&file).unwrap())).collect()
}

/// Doc comments of items (`///`), each with the number of the line where it begins.
fn doc_comments(text: &str) -> Vec<(usize, Vec<&str>)> {
    let mut found: Vec<(usize, Vec<&str>)> = vec![];
    let mut goes_on = false;
    for (at, line) in text.lines().enumerate() {
        let comment = line.trim_start().strip_prefix("///").map(str::trim);
        match comment {
            Some(comment) if goes_on => found.last_mut().unwrap().1.push(comment),
            Some(comment) => found.push((at + 1, vec![comment])),
            None => {}
        }
        goes_on = comment.is_some();
    }
    found
}

/// Whether `text` begins with these words, and not only with their letters.
fn begins(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| words.ends_with('[') || !rest.starts_with(char::is_alphanumeric))
}

/// What is wrong with a doc comment that cannot be read alone.
fn problem(comment: &[&str]) -> Option<String> {
    let (first, last) = (comment.first()?, comment.last()?);
    if last.ends_with(',') {
        return Some("ends in a comma: say all of it in one comment".into());
    }
    let half = HALVES.iter().find(|word| begins(first, word));
    if let Some(word) = half {
        return Some(format!("begins with '{word}': write a sentence about this item alone"));
    }
    let word = WITHOUT_NOUN.iter().find(|words| begins(first, words))?;
    Some(format!("begins with '{word}': name the thing"))
}

#[test]
fn doc_comments_can_be_read_alone() {
    for (file, text) in texts() {
        for (line, comment) in doc_comments(&text) {
            if let Some(problem) = problem(&comment) {
                panic!("{file}:{line}: the comment {problem}");
            }
        }
    }
}

#[test]
fn halves_of_comments_are_found() {
    let wrong = ["For this window,", "in the tick that starts here.", "Its name.", "The same of others.", "It echoes."];
    assert!(wrong.iter().all(|comment| problem(&[comment]).is_some()));
    let right = ["The window, in packets.", "Item of a list.", "Where the burst begins.", "inner, as RFC 1 calls it."];
    assert!(right.iter().all(|comment| problem(&[comment]).is_none()));
    assert_eq!(problem(&["A comment of two lines,", "of which the first has a comma."]), None);
    let text = "/// One.\nstruct A {\n    /// Two\n    /// lines.\n    b: u8,\n}";
    assert_eq!(doc_comments(text), [(1, vec!["One."]), (3, vec!["Two", "lines."])]);
}

/// Names of the types and traits that a text defines outside its tests.
fn defined(text: &str) -> Vec<&str> {
    let before_tests = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    before_tests.lines().filter_map(definition).collect()
}

/// The name of the type or trait whose definition a line begins.
fn definition(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let after = line.strip_prefix("pub").map(|rest| match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')').map_or(rest, |(_, after)| after),
        None => rest,
    });
    let mut words = after.unwrap_or(line).split_whitespace().skip_while(|word| *word == "unsafe");
    let name = ["struct", "enum", "trait", "union"].contains(&words.next()?).then(|| words.next()).flatten()?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| name.starts_with(char::is_uppercase))
}

#[test]
fn names_of_types_have_one_meaning() {
    let mut places = BTreeMap::<String, String>::new();
    for (file, text) in texts().iter().filter(|(file, _)| !file.ends_with("tests.rs")) {
        for name in defined(text) {
            let before = places.insert(name.into(), file.clone());
            assert!(before.is_none(), "{name} is defined in {} and in {file}: rename one", before.unwrap());
        }
    }
    assert!(places.contains_key("ConnectionFailure"), "definitions are found");
}

#[test]
fn definitions_are_recognized() {
    let text = "pub(crate) struct Aa<'a> {\n    enum Bb {\npub trait Cc: D {\nstruct Ee;\n// struct Ff\n\
                #[cfg(test)]\nmod tests {\n    struct Gg;";
    assert_eq!(defined(text), ["Aa", "Bb", "Cc", "Ee"]);
}
