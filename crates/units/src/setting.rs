//! A setting that cannot be, by the name of its key.

use std::borrow::Cow;

/// A setting out of its range, or one that does not fit another of the same table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct SettingError {
    /// The key within its table: `max`, `days.3.day`.
    pub key: Cow<'static, str>,
    /// The problem, and what would be right.
    pub problem: String,
}

impl SettingError {
    /// An error about the setting `key`.
    pub fn new(key: impl Into<Cow<'static, str>>, problem: impl Into<String>) -> Self {
        SettingError { key: key.into(), problem: problem.into() }
    }

    /// This error, of a setting in the table `table`.
    #[must_use]
    pub fn within(self, table: &str) -> Self {
        SettingError { key: format!("{table}.{}", self.key).into(), ..self }
    }

    /// An error about the setting `key` unless `right`.
    ///
    /// # Errors
    /// When `right` is false.
    pub fn unless(right: bool, key: &'static str, problem: impl Into<String>) -> Result<(), Self> {
        if right { Ok(()) } else { Err(SettingError::new(key, problem)) }
    }
}
