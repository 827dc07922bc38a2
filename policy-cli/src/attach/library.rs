//! Finds the agent's library for a JVM.

use std::path::{Path, PathBuf};

use crate::process::{Libc, Machine, Process, ProcessInfo, printable, read_elf};

/// Largest library that is read, in bytes.
const MAX_LIBRARY_BYTES: u64 = 256 << 20;
/// The names that the library has in a folder: of a build for glibc, and of one for musl beside it.
const NAMES: [&str; 2] = ["libheapwarden.so", "libheapwarden-musl.so"];

/// Why there is no library to load.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LibraryError {
    /// A library was named, and cannot be used.
    #[error("{} {why}", printable(&path.to_string_lossy()))]
    Unusable {
        /// As the JVM would open it.
        path: PathBuf,
        /// Why, and what to do.
        why: Unusable,
    },
    /// No library was found.
    #[error(
        "libheapwarden.so was not found in {}: name it with --library FILE or HEAPWARDEN_LIBRARY{}",
        list(looked),
        among(unusable)
    )]
    NotFound {
        /// The folders.
        looked: Vec<PathBuf>,
        /// Libraries that were found, but cannot be used.
        unusable: Vec<(PathBuf, Unusable)>,
    },
}

/// Why a library cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    /// It cannot be read.
    #[error("cannot be read by the JVM's path ({0})")]
    Unreadable(std::io::Error),
    /// It exists here, but not in the JVM's file system.
    #[error(
        "exists here, but not in the JVM's own file system (a container); copy it there \
         (cp {0} /proc/{1}/root/tmp/libheapwarden.so, docker cp, kubectl cp) and give its path \
         there: --library /tmp/libheapwarden.so"
    )]
    NotVisible(String, u32),
    /// Not an ELF.
    #[error("is no native library (it is not a 64-bit ELF file)")]
    NoElf,
    /// Another processor.
    #[error("is built for {library}, but the JVM for {jvm}: build the library for {jvm}")]
    OtherMachine { library: String, jvm: String },
    /// Another C library.
    #[error("needs {library}, but the JVM runs on {jvm}: build the library for {jvm} (rustup target …-linux-{})", target(*jvm_libc))]
    OtherLibc {
        library: &'static str,
        jvm: &'static str,
        jvm_libc: Libc,
    },
    /// By the permissions of the file itself.
    #[error("may not be read by the JVM's user {0}: run chmod a+r on it")]
    NotPermitted(u32),
}

fn target(libc: Libc) -> &'static str {
    match libc {
        Libc::Glibc => "gnu",
        Libc::Musl => "musl",
    }
}

fn list(folders: &[PathBuf]) -> String {
    let folders: Vec<String> = folders
        .iter()
        .map(|folder| printable(&folder.to_string_lossy()))
        .collect();
    folders.join(", ")
}

fn among(unusable: &[(PathBuf, Unusable)]) -> String {
    let reasons = unusable.iter().map(|(path, why)| {
        let path = printable(&path.to_string_lossy());
        format!("; {path} {why}")
    });
    reasons.collect()
}

/// Finds the library for a JVM. A named library (by the option, else by `HEAPWARDEN_LIBRARY`) is the
/// only candidate; without a name the usual folders are searched. Paths are the JVM's.
///
/// # Errors
/// See [`LibraryError`].
pub(crate) fn find(named: Option<&Path>, process: &Process) -> Result<PathBuf, LibraryError> {
    let variable = std::env::var_os("HEAPWARDEN_LIBRARY").filter(|value| !value.is_empty());
    let variable = variable.map(PathBuf::from);
    if let Some(path) = named.or(variable.as_deref()) {
        // A path in a container cannot be completed with our working folder.
        let path = match process.info.shares_files {
            true => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            false => path.to_owned(),
        };
        return match check(&path, process) {
            Ok(()) => Ok(path),
            Err(why) => Err(LibraryError::Unusable { path, why }),
        };
    }
    let looked = folders(std::env::current_exe().ok().as_deref());
    let mut unusable = Vec::new();
    for folder in &looked {
        for name in NAMES {
            let path = folder.join(name);
            match check(&path, process) {
                Ok(()) => return Ok(path),
                Err(Unusable::Unreadable(error))
                    if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(why) => unusable.push((path, why)),
            }
        }
    }
    Err(LibraryError::NotFound { looked, unusable })
}

/// Folders with libraries: beside the command (as cargo builds both), and where packages install them.
fn folders(executable: Option<&Path>) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Some(beside) = executable.and_then(Path::parent) {
        folders.push(beside.to_owned());
        folders.extend(beside.parent().map(|above| above.join("lib")));
        folders.extend(beside.parent().map(|above| above.join("lib/heapwarden")));
    }
    for usual in [
        "/usr/lib/heapwarden",
        "/usr/local/lib/heapwarden",
        "/opt/heapwarden",
    ] {
        if !folders.iter().any(|folder| folder == Path::new(usual)) {
            folders.push(usual.into());
        }
    }
    folders
}

/// Whether the JVM can load the file of that path.
fn check(path: &Path, process: &Process) -> Result<(), Unusable> {
    let info = &process.info;
    let bytes = match process.root.read(path, MAX_LIBRARY_BYTES) {
        Ok(bytes) => bytes,
        Err(_) if !info.shares_files && path.exists() => {
            let here = printable(&path.to_string_lossy());
            return Err(Unusable::NotVisible(here, info.pid));
        }
        Err(error) => return Err(Unusable::Unreadable(error)),
    };
    if !process.may_read(path) {
        return Err(Unusable::NotPermitted(info.status.user));
    }
    fits(&bytes, info.machine, info)
}

fn fits(bytes: &[u8], machine: Option<Machine>, info: &ProcessInfo) -> Result<(), Unusable> {
    let elf = read_elf(bytes).ok_or(Unusable::NoElf)?;
    if let Some(jvm) = machine.filter(|jvm| *jvm != elf.machine) {
        return Err(Unusable::OtherMachine {
            library: elf.machine.name(),
            jvm: jvm.name(),
        });
    }
    match (elf.libc, info.files.libc()) {
        (Some(library), Some(jvm)) if library != jvm => Err(Unusable::OtherLibc {
            library: library.as_str(),
            jvm: jvm.as_str(),
            jvm_libc: jvm,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::MappedFiles;

    fn this_program() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn beside_the_command_comes_first() {
        let folders = folders(Some(Path::new("/usr/local/bin/heapwarden")));
        assert_eq!(folders[0], Path::new("/usr/local/bin"));
        assert_eq!(folders[1], Path::new("/usr/local/lib"));
        let twice = folders
            .iter()
            .filter(|folder| folder.ends_with("local/lib/heapwarden"));
        assert_eq!(twice.count(), 1);
    }

    #[test]
    #[cfg(not(target_env = "musl"))]
    fn a_library_of_another_machine_or_libc_is_refused() {
        let bytes = this_program();
        let own = read_elf(&bytes).unwrap().machine;
        let glibc = ProcessInfo::default();
        assert!(fits(&bytes, Some(own), &glibc).is_ok());
        let other = fits(&bytes, Some(Machine(own.0 + 1)), &glibc);
        assert!(matches!(other, Err(Unusable::OtherMachine { .. })));
        let alpine = ProcessInfo {
            files: MappedFiles::parse("0-1 r-xp 0 fe:00 1 /lib/ld-musl-x86_64.so.1\n"),
            ..ProcessInfo::default()
        };
        let why = fits(&bytes, Some(own), &alpine).unwrap_err().to_string();
        assert!(
            why.contains("needs glibc, but the JVM runs on musl"),
            "{why}"
        );
        assert!(matches!(
            fits(b"#!/bin/sh", None, &glibc),
            Err(Unusable::NoElf)
        ));
    }

    #[test]
    fn what_lies_elsewhere_is_named_in_the_error() {
        let error = LibraryError::NotFound {
            looked: vec!["/a".into(), "/b\u{1b}".into()],
            unusable: vec![("/a/libheapwarden.so".into(), Unusable::NoElf)],
        };
        let text = error.to_string();
        assert!(text.contains("/a, /b\\u{1b}:"), "{text}");
        assert!(
            text.contains("/a/libheapwarden.so is no native library"),
            "{text}"
        );
    }
}
