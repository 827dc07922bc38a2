//! Files, digests and compression as all that is given away has them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};

/// Bytes compressed without a time or a name.
pub(super) fn gzipped(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = gzip();
    out.write_all(bytes)?;
    Ok(out.finish()?)
}

pub(super) fn gzip() -> flate2::write::GzEncoder<Vec<u8>> {
    GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The files below a folder, by their paths in it, sorted.
pub(super) fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    fn walk(folder: &Path, root: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
        for entry in
            fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?
        {
            let path = entry?.path();
            if path.is_dir() {
                walk(&path, root, files)?;
            } else {
                files.push(path.strip_prefix(root)?.to_owned());
            }
        }
        Ok(())
    }
    let mut files = Vec::new();
    walk(folder, folder, &mut files)?;
    files.sort();
    Ok(files)
}
