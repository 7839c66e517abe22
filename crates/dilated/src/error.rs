//! Why a run in dilated time is not possible, or ended.

use firstlight_linux::Failure;
use firstlight_uml::SessionError;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run's directory or its experiment.
    #[error(transparent)]
    Run(#[from] SessionError),
    /// The system refused an operation.
    #[error(transparent)]
    System(#[from] Failure),
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
