//! Settings of a run in dilated time besides its experiment: an object `dilated` in the run's `run.json`.

use crate::error::Error;
use crate::machines::Joined;
use firstlight_uml::{RunDirectory, SessionError};
use serde::Deserialize;
use std::path::PathBuf;

/// Programs and libraries of the run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Settings {
    /// The program that runs the hosts.
    pub guest: PathBuf,
    /// The library that dilates programs' time.
    pub libvt: PathBuf,
    /// The library that counts programs' writes.
    pub libadu: PathBuf,
    /// Machines that have joined the run, with hosts of theirs.
    pub joined: Option<Joined>,
}

impl Settings {
    /// Reads the settings of a run.
    pub fn read(directory: &RunDirectory) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct RunFile {
            dilated: Settings,
        }
        let run: Result<RunFile, _> = serde_json::from_str(&directory.text("run.json")?);
        let wrong = |error: serde_json::Error| SessionError::Content {
            path: directory.path("run.json"),
            problem: error.to_string(),
        };
        Ok(run.map_err(wrong)?.dilated)
    }
}
