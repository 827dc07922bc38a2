//! The libraries and the glibc that an ELF file needs of the system that it runs on.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Context, Result, bail};
use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _, VersionTable};
use object::{Endianness, read::StringTable};

/// Libraries and versions.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Needs {
    /// By the names that the loader looks for.
    pub(super) libraries: BTreeSet<String>,
    /// The latest glibc whose symbols are used, as major and minor.
    pub(super) glibc: (u32, u32),
}

impl Needs {
    /// Of one file.
    ///
    /// # Errors
    /// If it is no 64-bit ELF file, or damaged.
    pub(super) fn of(bytes: &[u8]) -> Result<Needs> {
        let header = FileHeader64::<Endianness>::parse(bytes).context("no 64-bit ELF file")?;
        let endian = header.endian()?;
        let sections = header.sections(endian, bytes)?;
        let mut needs = Needs::default();
        let (dynamic, strings) = sections
            .dynamic(endian, bytes)?
            .context("it is not linked dynamically")?;
        let strings = sections.strings(endian, bytes, strings)?;
        for entry in dynamic {
            if entry.tag(endian) == DT_NEEDED {
                let name = entry.string(endian, strings)?;
                needs
                    .libraries
                    .insert(String::from_utf8_lossy(name).into_owned());
            }
        }
        needs.glibc = latest_glibc(&versions(&sections, endian, bytes)?);
        Ok(needs)
    }

    /// Returns the needs of both together: all libraries, and the later glibc.
    pub(super) fn and(mut self, other: Needs) -> Needs {
        self.libraries.extend(other.libraries);
        self.glibc = self.glibc.max(other.glibc);
        self
    }

    /// As a Debian package declares it.
    ///
    /// # Errors
    /// A library that no known package has.
    pub(super) fn debian(&self) -> Result<String> {
        let mut packages = BTreeSet::new();
        for library in &self.libraries {
            packages.insert(match library.as_str() {
                "libc.so.6"
                | "libm.so.6"
                | "libdl.so.2"
                | "libpthread.so.0"
                | "librt.so.1"
                | "ld-linux-x86-64.so.2" => format!("libc6 (>= {}.{})", self.glibc.0, self.glibc.1),
                "libgcc_s.so.1" => "libgcc-s1 | libgcc1".to_owned(),
                other => bail!("it needs {other}, and no Debian package is known that has it"),
            });
        }
        Ok(packages.into_iter().collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let libraries: Vec<&str> = self.libraries.iter().map(String::as_str).collect();
        write!(
            out,
            "glibc {}.{} and {}",
            self.glibc.0,
            self.glibc.1,
            libraries.join(", ")
        )
    }
}

/// The versions of symbols that are asked for.
fn versions(
    sections: &object::read::elf::SectionTable<'_, FileHeader64<Endianness>>,
    endian: Endianness,
    bytes: &[u8],
) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let Some((mut libraries, link)) = sections.gnu_verneed(endian, bytes)? else {
        return Ok(names);
    };
    let strings: StringTable<'_> = sections.strings(endian, bytes, link)?;
    while let Some((_, mut symbols)) = libraries.next()? {
        while let Some(symbol) = symbols.next()? {
            let name = symbol.name(endian, strings)?;
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    // The table exists to be parsed by others: a file that breaks it is one that a loader rejects.
    VersionTable::parse(
        endian,
        sections
            .gnu_versym(endian, bytes)?
            .map_or(&[], |(all, _)| all),
        sections.gnu_verdef(endian, bytes)?.map(|(all, _)| all),
        sections.gnu_verneed(endian, bytes)?.map(|(all, _)| all),
        strings,
    )?;
    Ok(names)
}

fn latest_glibc(versions: &[String]) -> (u32, u32) {
    let parsed = versions.iter().filter_map(|version| {
        let mut numbers = version.strip_prefix("GLIBC_")?.split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    });
    parsed.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_needs_the_c_library() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let needs = Needs::of(&program).unwrap();
        assert!(needs.libraries.contains("libc.so.6"), "{needs}");
        assert!(needs.glibc >= (2, 17), "{needs}");
        assert!(needs.debian().unwrap().contains("libc6 (>= 2."), "{needs}");
        assert!(Needs::of(b"#!/bin/sh\n").is_err());
    }

    #[test]
    fn the_latest_version_is_by_number_and_not_by_text() {
        let names = ["GLIBC_2.9", "GLIBC_2.17", "GLIBC_2.2.5", "GCC_4.2.0"];
        assert_eq!(latest_glibc(&names.map(str::to_owned)), (2, 17));
    }

    #[test]
    fn an_unknown_library_is_no_dependency_that_can_be_declared() {
        let mut needs = Needs::default();
        needs.libraries.insert("libssl.so.3".to_owned());
        assert!(needs.debian().is_err());
    }
}
