//! Why a run in dilated time is not possible, or ended.

use firstlight_uml::SessionError;
use std::io;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run's directory or its experiment.
    #[error(transparent)]
    Run(#[from] SessionError),
    /// The system refused an operation.
    #[error("{what}: {source}")]
    System {
        /// The operation that failed.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The machine lacks something that the run needs.
    #[error("{0}")]
    Machine(String),
    /// The program that runs the hosts has gone.
    #[error("the program that runs the hosts ended before the run: see guest.log")]
    Guest,
    /// A signal ended the run.
    #[error("the run was ended by a signal")]
    Signal,
}

/// Adds to an error of the system the operation that it refused.
pub trait Context<T> {
    /// `what` begins the sentence; the system's answer ends it.
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|error| Error::System { what: what(), source: error.into() })
    }
}
