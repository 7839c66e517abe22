//! Files that get their names when they are complete.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Begins a file that will be at `path`, under a temporary name in the same folder.
pub(crate) fn begin(path: &Path, prefix: &str, suffix: &str) -> io::Result<BufWriter<NamedTempFile>> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(suffix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    Ok(BufWriter::new(builder.tempfile_in(folder)?))
}

/// Gives a complete file its name.
pub(crate) fn complete(mut file: BufWriter<NamedTempFile>, path: &Path) -> io::Result<()> {
    file.flush()?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.persist(path)?;
    Ok(())
}
