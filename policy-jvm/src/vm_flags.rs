//! A flag of HotSpot that has no documented setter, set while the VM starts.
//!
//! # How it is found
//! libjvm exports tables that describe its own structures, for debuggers (`gHotSpotVMStructs`, `gHotSpotVMTypes`,
//! `gHotSpotVMIntConstants`): the name and type of each field, and its offset or, if it is static, its address. One of
//! the structures is the list of all flags (`JVMFlag`): name, kind of value, origin and the address of the variable.
//!
//! # What is checked
//! Everything, before anything is written. A symbol or a field that is missing, another type of field, a number that
//! cannot be right, a kind of value that is not an unsigned number, a value that is not the expected default, or an
//! origin that says that somebody has chosen it: each leaves the flag alone, and says why ([`FlagKept`]).
//!
//! # When
//! Only in `Agent_OnLoad`. The VM has read its command line then, has made neither heap nor Java threads, and runs on
//! one thread, so nothing has used the flag yet, and nothing reads it meanwhile. The value of before may be put back at
//! any time ([`ChangedFlag::put_back`]): the VM could have started with either.

mod kept;
mod tables;

use std::ffi::{CStr, CString, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub use kept::FlagKept;
use tables::{FlagEntry, Symbols, Tables, Width};
pub(crate) use tables::{field, read};

/// A new value for a flag that is an unsigned number, and the default that it replaces.
#[derive(Debug, Clone, Copy)]
pub struct FlagChange {
    /// Its name.
    pub name: &'static str,
    /// The default that is replaced.
    pub default: u64,
    /// The new value.
    pub value: u64,
}

/// A flag that was changed.
#[derive(Debug, Clone, Copy)]
pub struct ChangedFlag {
    address: usize,
    width: Width,
    before: u64,
}

impl ChangedFlag {
    /// Gives the flag the value back that it had. Any thread, at any time; one store.
    pub fn put_back(&self) {
        // SAFETY: `write` was given the same address: a variable of this width, aligned for it, which lives as long as
        // the VM. Threads of the VM may read it meanwhile, in one load, and find one of two values with either of which
        // it could have started.
        unsafe {
            match self.width {
                Width::Four => AtomicU32::from_ptr(self.address as *mut u32)
                    .store(self.before as u32, Ordering::Relaxed),
                Width::Eight => AtomicU64::from_ptr(self.address as *mut u64)
                    .store(self.before, Ordering::Relaxed),
            }
        }
    }
}

impl FlagChange {
    /// Whether the flag may be changed, given what it is now.
    fn judge(&self, now: u64, is_default: bool, may_write: bool) -> Result<(), FlagKept> {
        if now == self.value {
            return Err(FlagKept::Already(now));
        }
        if !is_default {
            return Err(FlagKept::Chosen(now));
        }
        if !may_write {
            return Err(FlagKept::Left(now));
        }
        if now != self.default {
            return Err(FlagKept::OtherDefault(now));
        }
        Ok(())
    }

    /// Changes the flag in the VM whose library contains `of_vm`; or says why not. Without
    /// `may_write` it only reads.
    ///
    /// # Errors
    /// [`FlagKept`]: nothing was changed.
    ///
    /// # Safety
    /// `of_vm` must be the address of a function of libjvm. With `may_write`, the caller is in `Agent_OnLoad`.
    pub(crate) unsafe fn make(
        &self,
        of_vm: *const c_void,
        may_write: bool,
    ) -> Result<ChangedFlag, FlagKept> {
        let library = Library::containing(of_vm)?;
        self.make_by(&|name| library.symbol(name), may_write)
    }

    /// As [`FlagChange::make`], with the exported symbols.
    fn make_by(&self, symbols: Symbols<'_>, may_write: bool) -> Result<ChangedFlag, FlagKept> {
        let tables = Tables::read(symbols)?;
        let flag = tables.flag(self.name)?;
        self.judge(flag.value(), flag.is_default(&tables), may_write)?;
        let before = flag.value();
        write(&flag, self.value, &tables);
        Ok(ChangedFlag {
            address: flag.address,
            width: flag.width,
            before,
        })
    }
}

/// Writes a value that [`FlagChange::judge`] allowed, and who wrote it: `jcmd VM.flags` shows both.
fn write(flag: &FlagEntry, value: u64, tables: &Tables) {
    let origin = (flag.flags & !tables.origin_mask) | tables.origin_internal;
    // SAFETY: `address` is that of a variable of `width` bytes and alignment, and `flags_address` that of the field
    // `_flags` (an `int`) of the flag's entry: the tables say so, and that the VM's own command line is written to
    // both shows that they are writable. `judge` let nothing pass but in `Agent_OnLoad`, when the process has no
    // other thread that reads or writes flags.
    unsafe {
        match flag.width {
            Width::Four => (flag.address as *mut u32).write(value as u32),
            Width::Eight => (flag.address as *mut u64).write(value),
        }
        (flag.flags_address as *mut i32).write(origin);
    }
}

/// A loaded library, looked at by name.
pub(crate) struct Library(*mut c_void);

impl Library {
    /// The library that the address is in.
    pub(crate) fn containing(address: *const c_void) -> Result<Library, FlagKept> {
        let mut found: libc::Dl_info = libc::Dl_info {
            dli_fname: std::ptr::null(),
            dli_fbase: std::ptr::null_mut(),
            dli_sname: std::ptr::null(),
            dli_saddr: std::ptr::null_mut(),
        };
        // SAFETY: dladdr reads nothing at the address, and writes to the structure that it is given.
        let is_found = unsafe { libc::dladdr(address, &mut found) } != 0;
        if !is_found || found.dli_fname.is_null() {
            return Err(FlagKept::Unknown("its library has no name"));
        }
        // SAFETY: the name is a terminated string that lives as long as the library, which is never unloaded.
        let name: CString = unsafe { CStr::from_ptr(found.dli_fname) }.to_owned();
        // SAFETY: the name is terminated. RTLD_NOLOAD: nothing is loaded, and no code of a library runs.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        match handle.is_null() {
            true => Err(FlagKept::Unknown("its library cannot be opened")),
            false => Ok(Library(handle)),
        }
    }

    /// The address of a symbol; 0 if there is none.
    pub(crate) fn symbol(&self, name: &CStr) -> usize {
        // SAFETY: the handle is open, and the name is terminated.
        unsafe { libc::dlsym(self.0, name.as_ptr()) as usize }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle came from dlopen and is closed once. The VM has handles of its own.
        unsafe { libc::dlclose(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::tables::tests::FakeVm;
    use super::*;

    const CHANGE: FlagChange = FlagChange {
        name: "TLABRefillWasteFraction",
        default: 64,
        value: 1,
    };

    #[test]
    fn only_an_untouched_default_of_a_vm_that_starts_is_replaced() {
        assert_eq!(CHANGE.judge(64, true, true), Ok(()));
        assert_eq!(CHANGE.judge(64, true, false), Err(FlagKept::Left(64)));
        assert_eq!(CHANGE.judge(64, false, true), Err(FlagKept::Chosen(64)));
        assert_eq!(
            CHANGE.judge(32, true, true),
            Err(FlagKept::OtherDefault(32))
        );
        for may_write in [false, true] {
            assert_eq!(CHANGE.judge(1, false, may_write), Err(FlagKept::Already(1)));
            assert_eq!(CHANGE.judge(8, false, may_write), Err(FlagKept::Chosen(8)));
        }
    }

    #[test]
    fn the_value_is_written_with_its_origin_and_nothing_else_is() {
        let vm = FakeVm::new();
        let make = |may_write| CHANGE.make_by(&|name| vm.symbol(name), may_write);
        assert_eq!(make(false).err(), Some(FlagKept::Left(64)));
        assert_eq!((vm.variable(), vm.origin()), (64, 0x10));
        let changed = make(true).unwrap();
        assert_eq!(
            (vm.variable(), vm.origin()),
            (1, 0x17),
            "internal, and still a product flag"
        );
        assert_eq!(make(true).err(), Some(FlagKept::Already(1)));
        changed.put_back();
        assert_eq!(vm.variable(), 64);
    }

    #[test]
    fn a_library_without_the_tables_is_left_alone() {
        let here = tests::a_library_without_the_tables_is_left_alone as *const c_void;
        // SAFETY: any address may be asked about; this library has none of the symbols, which ends it.
        let made = unsafe { CHANGE.make(here, true) };
        assert!(matches!(made, Err(FlagKept::Unknown(_))), "{made:?}");
        // SAFETY: as above.
        let made = unsafe { CHANGE.make(std::ptr::null(), true) };
        assert!(matches!(made, Err(FlagKept::Unknown(_))), "{made:?}");
    }
}
