//! Why a program on the system cannot go on.

use std::fmt;

/// Why a program on the system cannot go on: a sentence that says what is wrong, where, and what to do instead.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

impl Failure {
    /// The failure of this sentence.
    pub fn new(sentence: impl Into<String>) -> Self {
        Failure(sentence.into())
    }
}

/// Adds to an error the operation that failed.
pub trait Context<T> {
    /// `what` begins the sentence; the error ends it.
    ///
    /// # Errors
    /// Where there was an error.
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| Failure(format!("{}: {error}", what())))
    }
}
