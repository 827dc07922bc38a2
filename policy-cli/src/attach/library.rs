//! The agent's library that fits a JVM.

use std::path::{Path, PathBuf};

use crate::process::{Facts, Libc, Machine, Process, printable, read_elf};

/// Largest library that is read, in bytes.
const MAX_LIBRARY_BYTES: u64 = 256 << 20;
/// The names that the library has in a folder: of a build for glibc, and of one for musl beside it.
const NAMES: [&str; 2] = ["libheapwarden.so", "libheapwarden-musl.so"];

/// Why there is no library to load.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LibraryError {
    /// Named, and does not do.
    #[error("{} {why}", printable(&path.to_string_lossy()))]
    Unfit {
        /// As the JVM would open it.
        path: PathBuf,
        /// In half a sentence, with the remedy.
        why: Unfit,
    },
    /// Nowhere.
    #[error(
        "libheapwarden.so was not found in {}: name it by --library FILE or HEAPWARDEN_LIBRARY{}",
        list(looked),
        among(unfit)
    )]
    NotFound {
        /// The folders.
        looked: Vec<PathBuf>,
        /// What was there and does not do.
        unfit: Vec<(PathBuf, Unfit)>,
    },
}

/// Why one library does not do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfit {
    /// As it says.
    #[error("cannot be read by the JVM's path ({0})")]
    Unreadable(std::io::Error),
    /// Here, but not there.
    #[error(
        "is here, but the JVM has files of its own (a container) and it is not there; copy it there \
         (cp {0} /proc/{1}/root/tmp/libheapwarden.so, docker cp, kubectl cp) and name it by its path \
         there: --library /tmp/libheapwarden.so"
    )]
    NotVisible(String, u32),
    /// Not an ELF.
    #[error("is no native library (no 64-bit ELF)")]
    NoElf,
    /// Another processor.
    #[error("is for {library}, and the JVM is for {jvm}: build it for that")]
    OtherMachine { library: String, jvm: String },
    /// Another C library.
    #[error("wants {library}, and the JVM runs on {jvm}: build it for that (rustup target …-linux-{})", target(*jvm_libc))]
    OtherLibc {
        library: &'static str,
        jvm: &'static str,
        jvm_libc: Libc,
    },
    /// By the permissions of the file itself.
    #[error("may not be read by the JVM's user {0}: chmod a+r it")]
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

fn among(unfit: &[(PathBuf, Unfit)]) -> String {
    let reasons = unfit.iter().map(|(path, why)| {
        let path = printable(&path.to_string_lossy());
        format!("; {path} {why}")
    });
    reasons.collect()
}

/// Finds the library for a JVM. What is named (the option, else `HEAPWARDEN_LIBRARY`) is taken or
/// refused; without a name the usual folders are searched. Paths are the JVM's.
///
/// # Errors
/// See [`LibraryError`].
pub(crate) fn find(named: Option<&Path>, process: &Process) -> Result<PathBuf, LibraryError> {
    let variable = std::env::var_os("HEAPWARDEN_LIBRARY").filter(|value| !value.is_empty());
    let variable = variable.map(PathBuf::from);
    if let Some(path) = named.or(variable.as_deref()) {
        // A name in a container cannot be completed by our working folder.
        let path = match process.facts.shares_files {
            true => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            false => path.to_owned(),
        };
        return match judge(&path, process) {
            Ok(()) => Ok(path),
            Err(why) => Err(LibraryError::Unfit { path, why }),
        };
    }
    let looked = folders(std::env::current_exe().ok().as_deref());
    let mut unfit = Vec::new();
    for folder in &looked {
        for name in NAMES {
            let path = folder.join(name);
            match judge(&path, process) {
                Ok(()) => return Ok(path),
                Err(Unfit::Unreadable(error)) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(why) => unfit.push((path, why)),
            }
        }
    }
    Err(LibraryError::NotFound { looked, unfit })
}

/// Where libraries lie: beside the command (as cargo builds both), where packages put them.
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
fn judge(path: &Path, process: &Process) -> Result<(), Unfit> {
    let facts = &process.facts;
    let bytes = match process.root.read(path, MAX_LIBRARY_BYTES) {
        Ok(bytes) => bytes,
        Err(_) if !facts.shares_files && path.exists() => {
            let here = printable(&path.to_string_lossy());
            return Err(Unfit::NotVisible(here, facts.pid));
        }
        Err(error) => return Err(Unfit::Unreadable(error)),
    };
    if !process.may_read(path) {
        return Err(Unfit::NotPermitted(facts.status.user));
    }
    fits(&bytes, facts.machine, facts)
}

fn fits(bytes: &[u8], machine: Option<Machine>, facts: &Facts) -> Result<(), Unfit> {
    let elf = read_elf(bytes).ok_or(Unfit::NoElf)?;
    if let Some(jvm) = machine.filter(|jvm| *jvm != elf.machine) {
        return Err(Unfit::OtherMachine {
            library: elf.machine.name(),
            jvm: jvm.name(),
        });
    }
    match (elf.libc, facts.files.libc()) {
        (Some(library), Some(jvm)) if library != jvm => Err(Unfit::OtherLibc {
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
        let glibc = Facts::default();
        assert!(fits(&bytes, Some(own), &glibc).is_ok());
        let other = fits(&bytes, Some(Machine(own.0 + 1)), &glibc);
        assert!(matches!(other, Err(Unfit::OtherMachine { .. })));
        let alpine = Facts {
            files: MappedFiles::parse("0-1 r-xp 0 fe:00 1 /lib/ld-musl-x86_64.so.1\n"),
            ..Facts::default()
        };
        let why = fits(&bytes, Some(own), &alpine).unwrap_err().to_string();
        assert!(
            why.contains("wants glibc, and the JVM runs on musl"),
            "{why}"
        );
        assert!(matches!(
            fits(b"#!/bin/sh", None, &glibc),
            Err(Unfit::NoElf)
        ));
    }

    #[test]
    fn what_lies_elsewhere_is_named_in_the_error() {
        let error = LibraryError::NotFound {
            looked: vec!["/a".into(), "/b\u{1b}".into()],
            unfit: vec![("/a/libheapwarden.so".into(), Unfit::NoElf)],
        };
        let text = error.to_string();
        assert!(text.contains("/a, /b\\u{1b}:"), "{text}");
        assert!(
            text.contains("/a/libheapwarden.so is no native library"),
            "{text}"
        );
    }
}
