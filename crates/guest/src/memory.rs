//! Whether the kernel has run out of memory, by its log.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Name of the file with the name of the process that was ended, in the run's directory.
const KILLED: &str = "killed";
/// The kernel's log: each read gives one record.
const LOG: &str = "/dev/kmsg";
/// Bytes of a record at most.
const RECORD: usize = 8192;

/// Writes a file if the kernel has ended a process because memory was full: the run may go on without it, since the
/// process was a server or a child of a program. Reading the log can let packets of the same instant pass, so this is
/// done when the run is over.
pub fn note_killed(directory: &Path) {
    if let Some(name) = killed(&log()) {
        // Without the file the run's own outcome counts.
        let _ = fs::write(directory.join(KILLED), name);
    }
}

/// The kernel's log, or what can be read of it.
fn log() -> String {
    let mut text = String::new();
    let Ok(mut file) = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(LOG) else { return text };
    let mut record = [0; RECORD];
    loop {
        match file.read(&mut record) {
            Ok(length) if length > 0 => text += &String::from_utf8_lossy(&record[..length]),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {} // older records are gone
            _ => return text,
        }
    }
}

/// The name of the first process that was ended for its memory.
fn killed(log: &str) -> Option<&str> {
    let (_, after) = log.split_once("Out of memory: Killed process ")?;
    let (_, named) = after.split_once('(')?;
    named.split_once(") total-vm").map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_ended_for_its_memory_is_named() {
        let log = "4,1,0,-;Normal free:4296kB\n3,2,0,-;Out of memory: Killed process 22 (a (b)) total-vm:1146612kB, \
                   anon-rss:1143548kB\n";
        assert_eq!(killed(log), Some("a (b)"));
        assert_eq!(killed("3,2,0,-;Killed process 22 (eat)\n"), None);
    }
}
