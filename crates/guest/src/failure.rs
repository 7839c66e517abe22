//! Why the run cannot go on: one sentence that says what is wrong, where, and what to do instead.

use std::fmt;

/// Why the run cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuestFailure(String);

impl GuestFailure {
    pub fn new(sentence: impl Into<String>) -> Self {
        GuestFailure(sentence.into())
    }
}

impl fmt::Display for GuestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Adds to an error the operation that failed.
pub trait Context<T> {
    /// `what` begins the sentence; the error ends it.
    fn context(self, what: impl FnOnce() -> String) -> Result<T, GuestFailure>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, GuestFailure> {
        self.map_err(|error| GuestFailure(format!("{}: {error}", what())))
    }
}
