//! Why the run cannot go on.

pub use firstlight_linux::{Context, Failure as GuestFailure};
