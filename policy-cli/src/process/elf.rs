//! ELF headers: the processor that a file is for, and the C library that it needs.

use object::Endianness;
use object::elf;
use object::read::elf::FileHeader as _;

use super::maps::Libc;

/// A processor, by its number in ELF headers (`e_machine`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Machine(pub(crate) u16);

impl Machine {
    /// Its name in `uname -m`; the number for processors without a JVM.
    pub(crate) fn name(self) -> String {
        match elf::Machine(self.0) {
            elf::EM_X86_64 => "x86_64".to_owned(),
            elf::EM_AARCH64 => "aarch64".to_owned(),
            elf::EM_386 => "i386".to_owned(),
            elf::EM_ARM => "arm".to_owned(),
            elf::EM_PPC64 => "ppc64le".to_owned(),
            elf::EM_S390 => "s390x".to_owned(),
            elf::EM_RISCV => "riscv64".to_owned(),
            _ => format!("machine {}", self.0),
        }
    }
}

/// The processor and the C library that the ELF header and the dynamic section of a file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elf {
    /// The processor.
    pub(crate) machine: Machine,
    /// The C library that it names as needed; `None` if neither.
    pub(crate) libc: Option<Libc>,
}

/// The processor that a file is for, from its first bytes (at least 20). `None` if it is not ELF.
pub(crate) fn machine(head: &[u8]) -> Option<Machine> {
    if head.get(..4)? != b"\x7fELF" {
        return None;
    }
    let bytes: [u8; 2] = head.get(18..20)?.try_into().ok()?;
    // 1 little, 2 big endian.
    Some(Machine(match head[5] {
        2 => u16::from_be_bytes(bytes),
        _ => u16::from_le_bytes(bytes),
    }))
}

/// Reads a whole file. `None` if it is not a 64-bit ELF file with a dynamic section.
pub(crate) fn read(bytes: &[u8]) -> Option<Elf> {
    let machine = machine(bytes)?;
    let needed = needed(bytes)?;
    let names = |start: &str| needed.iter().any(|name| name.starts_with(start));
    let libc = if names("libc.musl-") || names("ld-musl-") {
        Some(Libc::Musl)
    } else if names("libc.so.6") {
        Some(Libc::Glibc)
    } else {
        None
    };
    Some(Elf { machine, libc })
}

/// The libraries that a file names as needed (`DT_NEEDED`).
fn needed(bytes: &[u8]) -> Option<Vec<String>> {
    let header = elf::FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, bytes).ok()?;
    let table = sections.dynamic_table(endian, bytes).ok()?;
    let mut names = Vec::new();
    for entry in &table {
        if entry.tag == elf::DT_NEEDED {
            let name = table.string(entry).ok()?;
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_program_is_for_this_machine() {
        let path = std::env::current_exe().unwrap();
        let bytes = std::fs::read(path).unwrap();
        let elf = read(&bytes).unwrap();
        assert_eq!(elf.machine.name(), std::env::consts::ARCH);
        let wanted = if cfg!(target_env = "musl") {
            None
        } else {
            Some(Libc::Glibc)
        };
        assert_eq!(elf.libc, wanted);
    }

    #[test]
    fn what_is_no_elf_or_cut_short_is_nothing() {
        for bytes in [
            &b""[..],
            b"\x7fELF",
            b"#!/bin/sh\nexec java -version\n",
            &[0; 100],
        ] {
            assert_eq!(machine(bytes), None);
            assert_eq!(read(bytes), None);
        }
        let path = std::env::current_exe().unwrap();
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(read(&bytes[..64]), None);
        assert!(machine(&bytes[..64]).is_some());
    }

    #[test]
    fn both_byte_orders_are_read() {
        let mut head = [0u8; 64];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[18..20].copy_from_slice(&[183, 0]);
        assert_eq!(machine(&head).unwrap().name(), "aarch64");
        head[5] = 2;
        head[18..20].copy_from_slice(&[0, 22]);
        assert_eq!(machine(&head).unwrap().name(), "s390x");
    }
}
