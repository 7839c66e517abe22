//! Reading the files that experiments name. A process that checks many points of a sweep reads each file once.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{Error, Read, Result};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// When a file was modified.
#[expect(clippy::disallowed_types, reason = "decides whether a file is read again; the content is the same")]
type FileTime = std::time::SystemTime;

/// Bytes of a file that an experiment names, at most.
const LARGEST: u64 = 1 << 28;

/// Bytes of all files that are kept, at most.
const KEPT: usize = 1 << 25;

/// A file that was written this recently can change once more without another time of modification.
const FRESH: Duration = Duration::from_millis(100);

/// The files that were read, as they were at that time.
static FILES: Mutex<BTreeMap<PathBuf, CachedFile>> = Mutex::new(BTreeMap::new());

struct CachedFile {
    modified: FileTime,
    content: Vec<u8>,
}

impl CachedFile {
    fn is_of(&self, metadata: &Metadata) -> bool {
        metadata.len() == self.content.len() as u64 && metadata.modified().is_ok_and(|at| at == self.modified)
    }
}

/// The content of a file that an experiment names: read, or kept since it was read and not modified.
///
/// # Errors
/// When the file cannot be read or is too large. It cannot be a pipe: it is read again, for its hash or by Linux hosts'
/// engine, and to open one would wait for a writer.
pub fn read_input(file: &Path) -> Result<Vec<u8>> {
    let metadata = std::fs::metadata(file)?;
    if !metadata.is_file() && !metadata.is_dir() {
        return Err(Error::other("it is a pipe or a device: name a file"));
    }
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = files.get(file).filter(|kept| kept.is_of(&metadata)) {
        return Ok(kept.content.clone());
    }
    let mut content = vec![];
    File::open(file)?.take(LARGEST + 1).read_to_end(&mut content)?;
    if content.len() as u64 > LARGEST {
        return Err(Error::other(format!("it is larger than {} MiB: use a smaller one", LARGEST >> 20)));
    }
    files.remove(file);
    let kept: usize = files.values().map(|kept| kept.content.len()).sum();
    let modified = metadata.modified()?;
    if kept + content.len() <= KEPT && modified.elapsed().is_ok_and(|since| since > FRESH) {
        files.insert(file.into(), CachedFile { modified, content: content.clone() });
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_until_it_changes() {
        let file = std::env::temp_dir().join(format!("firstlight-input-{}", std::process::id()));
        let write = |text: &str, age: u64| {
            std::fs::write(&file, text).unwrap();
            let modified = FileTime::now() - Duration::from_secs(age);
            File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
            modified
        };
        let is_kept = || FILES.lock().unwrap().contains_key(&file);
        let modified = write("one", 9);
        assert_eq!(read_input(&file).unwrap(), b"one");
        std::fs::write(&file, "two").unwrap();
        File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
        assert_eq!(read_input(&file).unwrap(), b"one", "its size and time are those of the kept content");
        write("three", 5);
        assert_eq!(read_input(&file).unwrap(), b"three");
        write("now", 0);
        assert_eq!(read_input(&file).unwrap(), b"now");
        assert!(!is_kept(), "a file that was just written");
        std::fs::remove_file(&file).unwrap();
        assert!(read_input(&file).is_err());
    }
}
