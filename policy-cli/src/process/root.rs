//! The file system as a process sees it.
//!
//! A process in a container has its own root. Its files are below `/proc/PID/root`, but an absolute
//! symbolic link there, which the container chooses, would lead to the host's files. So the kernel
//! resolves every path as if that root were ours (`RESOLVE_IN_ROOT`, Linux 5.6).

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;

/// The root folder of a process.
#[derive(Debug)]
pub(crate) struct Root {
    folder: OwnedFd,
    /// Whether it is the same tree of files as ours.
    ours: bool,
}

impl Root {
    /// Opens the root of a process.
    ///
    /// # Errors
    /// Permission, or the process is gone.
    pub(crate) fn of(pid: u32) -> io::Result<Root> {
        let path = format!("/proc/{pid}/root");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Root {
            folder: open(path, flags, Mode::empty())?,
            ours: shares_files(pid),
        })
    }

    /// Whether the process sees the same files as this command.
    pub(crate) fn is_ours(&self) -> bool {
        self.ours
    }

    /// Opens an absolute path as the process would.
    ///
    /// # Errors
    /// As `open`.
    pub(crate) fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match openat2(&self.folder, path, flags, Mode::empty(), resolve) {
            // On an older kernel, only if the process has the same root.
            Err(Errno::NOSYS) if self.ours => Ok(open(path, flags, Mode::empty())?),
            other => Ok(other?),
        }
    }

    /// Reads a file of at most `most` bytes; what is longer is cut.
    ///
    /// # Errors
    /// As `open` and `read`; a folder or a device is refused.
    pub(crate) fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        // Not to wait for the writer of a FIFO.
        let file = File::from(self.open(path, OFlags::RDONLY | OFlags::NONBLOCK)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a plain file",
            ));
        }
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Opens a folder, as a place to make files in.
    ///
    /// # Errors
    /// As `open`.
    pub(crate) fn folder(&self, path: &Path) -> io::Result<Folder> {
        let folder = self.open(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Folder(folder))
    }
}

/// An open folder: renaming a folder on its path cannot divert files that are made in it.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

impl Folder {
    /// Opens a folder of ours.
    ///
    /// # Errors
    /// As `open`.
    pub(crate) fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Folder(open(path, flags, Mode::empty())?))
    }

    /// A path to one of its entries, for calls that take nothing else. Valid in this process
    /// while the folder is open.
    pub(crate) fn path_to(&self, name: &str) -> PathBuf {
        use std::os::fd::AsRawFd as _;
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.0.as_raw_fd()))
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Same mount namespace and same root folder.
fn shares_files(pid: u32) -> bool {
    let namespace = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/mnt")).ok();
    let root = |who: &str| {
        let root = rustix::fs::statat(
            CWD,
            format!("/proc/{who}/root/"),
            rustix::fs::AtFlags::empty(),
        );
        root.ok().map(|root| (root.st_dev, root.st_ino))
    };
    let who = pid.to_string();
    let ours = namespace("self");
    ours.is_some() && ours == namespace(&who) && root("self") == root(&who)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_at(path: &Path) -> Root {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        Root {
            folder: open(path, flags, Mode::empty()).unwrap(),
            ours: false,
        }
    }

    #[test]
    fn links_do_not_lead_out() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "ours").unwrap();
        let inside = tempfile::tempdir().unwrap();
        std::fs::write(inside.path().join("release"), "theirs").unwrap();
        std::os::unix::fs::symlink("/release", inside.path().join("absolute")).unwrap();
        std::os::unix::fs::symlink("../../../../release", inside.path().join("upwards")).unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.path().join("tmp")).unwrap();
        let root = root_at(inside.path());
        for name in ["/absolute", "/upwards", "/../release"] {
            assert_eq!(
                root.read(Path::new(name), 100).unwrap(),
                b"theirs",
                "{name}"
            );
        }
        assert!(root.read(Path::new("/tmp/secret"), 100).is_err());
        assert!(root.folder(Path::new("/tmp")).is_err());
    }

    #[test]
    fn reading_is_bounded_and_takes_plain_files_only() {
        let inside = tempfile::tempdir().unwrap();
        std::fs::write(inside.path().join("long"), [b'x'; 100]).unwrap();
        let root = root_at(inside.path());
        assert_eq!(root.read(Path::new("/long"), 10).unwrap().len(), 10);
        assert!(root.read(Path::new("/"), 10).is_err());
    }

    #[test]
    fn our_own_root_is_ours() {
        assert!(Root::of(std::process::id()).unwrap().is_ours());
    }
}
