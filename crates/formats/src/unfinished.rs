//! Files that get their names when they are complete.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// A file under a temporary name, which no error of a write shows.
pub(crate) struct UnfinishedFile(NamedTempFile);

impl Write for UnfinishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_file_mut().flush()
    }
}

/// Begins a file that will be at `path`, under a temporary name in the same folder.
pub(crate) fn begin(path: &Path, prefix: &str, suffix: &str) -> io::Result<BufWriter<UnfinishedFile>> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(suffix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    Ok(BufWriter::new(UnfinishedFile(builder.tempfile_in(folder)?)))
}

/// Gives a complete file its name.
pub(crate) fn complete(mut file: BufWriter<UnfinishedFile>, path: &Path) -> io::Result<()> {
    file.flush()?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.0.persist(path)?;
    Ok(())
}
