//! Replaces files atomically: an agent may be watching the policy file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};

/// Writes `text` to a file beside it and renames that file, so that readers find either the old text or
/// the new one. A symbolic link stays a link; owner and permissions stay, the owner if we may set it. A
/// file that is not regular (`/dev/stdout`) is written directly.
///
/// # Errors
/// Those of the file system; the file is then as it was.
pub fn replace(file: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    let text = text.as_ref();
    let before = match fs::metadata(file) {
        Ok(before) if !before.is_file() => return fs::write(file, text),
        Ok(before) => Some(before),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // A dangling link is replaced by the file.
    let target = match before {
        Some(_) => fs::canonicalize(file)?,
        None => file.to_owned(),
    };
    let (beside, mut open) = create_beside(&target)?;
    let written = (|| {
        open.write_all(text)?;
        if let Some(before) = before {
            let own = open.metadata()?;
            if (own.uid(), own.gid()) != (before.uid(), before.gid()) {
                let _ = chown(&beside, Some(before.uid()), Some(before.gid()));
            }
            open.set_permissions(before.permissions())?;
        }
        open.sync_all()?;
        fs::rename(&beside, &target)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A new file in the same folder, with an unused name.
fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    const ATTEMPTS: u32 = 100;
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    for attempt in 0..ATTEMPTS {
        let mut own = std::ffi::OsString::from(".");
        own.push(name);
        own.push(format!(".{}-{attempt}", std::process::id()));
        let beside = target.with_file_name(own);
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&beside)
        {
            Ok(open) => return Ok((beside, open)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_file_is_made_and_an_old_one_replaced_with_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        replace(&file, "one").unwrap();
        let first = fs::metadata(&file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let open = File::open(&file).unwrap();
        replace(&file, "two").unwrap();
        let second = fs::metadata(&file).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        // Whoever had it open still reads the whole of what it was.
        assert_eq!(io::read_to_string(open).unwrap(), "one");
        assert_ne!(first.ino(), second.ino());
        assert_eq!(second.permissions().mode() & 0o777, 0o640);
        assert_eq!(names(folder.path()), ["a.toml"]);
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a"), folder.path().join("link"));
        fs::write(&file, "one").unwrap();
        symlink(&file, &link).unwrap();
        replace(&link, "two").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
    }

    #[test]
    fn what_cannot_be_replaced_is_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("folder");
        fs::create_dir(&taken).unwrap();
        assert!(replace(&taken, "text").is_err());
        assert!(replace(&folder.path().join("no/such"), "text").is_err());
        assert_eq!(names(folder.path()), ["folder"]);
        replace(Path::new("/dev/null"), "text").unwrap();
    }
}
